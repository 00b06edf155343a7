"""Exceptions that the library raises, the same from either backend."""


class BudgeteerError(Exception):
    """Base class of every error that this library raises on purpose."""


class InvalidArgumentError(BudgeteerError, ValueError):
    """An argument has a wrong type, is out of range or contradicts another."""


class BudgetExhaustedError(BudgeteerError, ValueError):
    """Nothing is left for chunks once the fixed costs are taken."""


class InputValidationError(BudgetExhaustedError):
    """A query and the fixed costs leave nothing for retrieval; nothing need be retrieved."""


class CounterError(BudgeteerError):
    """A token counter cannot be had, or answered something that is not a count."""


class InternalError(BudgeteerError, RuntimeError):
    """A defect of this library, not of its input. Please report it."""


class EmbeddingError(BudgeteerError):
    """
    Texts cannot be embedded. The message quotes neither a text nor a key.

    Attributes:
        status: The HTTP status that the endpoint answered; None where it did not answer.
        code: The endpoint's own short name of what is wrong, such as ``"invalid_api_key"``; None
            where it gives none.
        is_retryable: Whether the same call may succeed later.
        retry_after: For how many seconds the endpoint asks to be left alone; None where it does
            not say.
        index: Which text is meant; None where no single one is.

    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        is_retryable: bool = False,
        retry_after: float | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.index = index
