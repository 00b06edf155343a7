"""Exceptions that the library raises, the same from either backend."""


class BudgeteerError(Exception):
    """Base class of every error that this library raises on purpose."""


class InvalidArgumentError(BudgeteerError, ValueError):
    """An argument has a wrong type, is out of range or contradicts another."""


class BudgetExhaustedError(BudgeteerError, ValueError):
    """Nothing is left for chunks once the fixed costs are taken."""


class InputValidationError(BudgetExhaustedError):
    """A query and the fixed costs leave nothing for retrieval; nothing need be retrieved."""


class ContextLengthError(BudgetExhaustedError):
    """
    A model's endpoint refused a request that does not fit into its window.

    Attributes:
        context_window: How many tokens the endpoint takes, None where it does not say.
        requested_tokens: How many it counted, None where it does not say.

    """

    def __init__(
        self,
        message: str,
        *,
        context_window: int | None = None,
        requested_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.context_window = context_window
        self.requested_tokens = requested_tokens


class RetrievalError(BudgeteerError):
    """
    A retriever, reranker or embedder failed or broke its protocol. What it raised is the cause.

    The message names it and the type of what it raised; of what it raised it quotes this library's
    own messages only, and never a text.

    Attributes:
        source: What failed: its ``name`` where it has one, else its class.

    """

    def __init__(self, message: str, *, source: str = "") -> None:
        super().__init__(message)
        self.source = source


class RetrievalTimeoutError(RetrievalError, TimeoutError):
    """The deadline of a request has passed."""


class CounterError(BudgeteerError):
    """A token counter cannot be had, or answered something that is not a count."""


class CorpusError(BudgeteerError):
    """A file is no corpus, of another version, cut off or damaged."""


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
