"""The exceptions of the library, the same from either backend."""


class BudgeteerError(Exception):
    """Base class of every error that this library raises on purpose."""


class InvalidArgumentError(BudgeteerError, ValueError):
    """An argument has a wrong type, is out of range or contradicts another."""


class BudgetExhaustedError(BudgeteerError, ValueError):
    """The fixed costs leave nothing for chunks."""


class InputValidationError(BudgetExhaustedError):
    """A query and the fixed costs leave nothing for retrieval; raised before retrieving."""


class ContextLengthError(BudgetExhaustedError):
    """
    A model's endpoint refused a request that exceeds its window.

    Attributes:
        context_window: The most tokens the endpoint takes; None if it does not say.
        requested_tokens: The tokens it counted; None if it does not say.

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
    A retriever, reranker or embedder failed or broke its protocol.

    Its own exception is the cause. The message names the component and the type of the exception;
    it quotes only messages of this library, and never a text.

    Attributes:
        source: The component that failed: its ``name`` if it has one, else its class.

    """

    def __init__(self, message: str, *, source: str = "") -> None:
        super().__init__(message)
        self.source = source


class RetrievalTimeoutError(RetrievalError, TimeoutError):
    """The deadline of a request has passed."""


class CounterError(BudgeteerError):
    """A token counter is not available, or returned something that is not a count."""


class CorpusError(BudgeteerError):
    """A file is not a corpus, or it is of another version, cut off or damaged."""


class InternalError(BudgeteerError, RuntimeError):
    """A defect of this library, not of its input. Please report it."""


class EmbeddingError(BudgeteerError):
    """
    Texts cannot be embedded. The message quotes neither a text nor a key.

    Attributes:
        status: The HTTP status of the endpoint's answer; None if there was none.
        code: The endpoint's error code, such as ``"invalid_api_key"``; None if it gives none.
        is_retryable: Whether the same call may succeed later.
        retry_after: The seconds that the endpoint asks to wait; None if it does not say.
        index: The index of the text; None if it is not about a single one.

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
