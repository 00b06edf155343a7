"""The exceptions of the library, the same from either backend."""


class BudgeteerError(Exception):
    """
    Base class of every error that this library raises on purpose.

    Examples:
        >>> from budgeteer import Packer
        >>> try:
        ...     Packer(-1)
        ... except BudgeteerError as error:
        ...     print(type(error).__name__)
        InvalidArgumentError

    """


class InvalidArgumentError(BudgeteerError, ValueError):
    """
    An argument has a wrong type, is out of range or contradicts another.

    Examples:
        >>> from budgeteer import Packer
        >>> try:
        ...     Packer(9, overflow="drop")
        ... except InvalidArgumentError as error:
        ...     print(error)
        overflow must be one of 'skip', 'stop', 'truncate_end', 'truncate_middle', not 'drop'

    """


class BudgetExhaustedError(BudgeteerError, ValueError):
    """
    The fixed costs leave nothing for chunks.

    Examples:
        >>> from budgeteer import trim_messages
        >>> try:
        ...     trim_messages([{"role": "system", "content": "Be brief and kind."}], 5)
        ... except BudgetExhaustedError as error:
        ...     print(error)
        the system messages do not fit: max_tokens 5 - 9 for 1 system message - 3 for the reply
        = -7

    """


class InputValidationError(BudgetExhaustedError):
    """
    A query and the fixed costs leave nothing for retrieval; raised before retrieving.

    Examples:
        >>> from budgeteer.window import retrieval_budget
        >>> try:
        ...     retrieval_budget(
        ...         context_window=99, system_tokens=60, max_output_tokens=30, query_tokens=20
        ...     )
        ... except InputValidationError as error:
        ...     print(error)
        nothing is left for retrieval: context_window 99 - system_tokens 60 - max_output_tokens 30
        - query_tokens 20 = -11

    """


class ContextLengthError(BudgetExhaustedError):
    """
    A model's endpoint refused a request that exceeds its window.

    Attributes:
        context_window: The most tokens the endpoint takes; None if it does not say.
        requested_tokens: The tokens it counted; None if it does not say.

    Examples:
        >>> from budgeteer.service import context_length_error
        >>> answered = Exception("prompt is too long: 5000 tokens > 4096 maximum")
        >>> error = context_length_error(answered)
        >>> error.context_window, error.requested_tokens
        (4096, 5000)

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

    Examples:
        >>> from budgeteer.service import LlmSettings, RetrievalService
        >>> class Broken:
        ...     name = "handbook"
        ...     def retrieve(self, query, limit):
        ...         raise OSError("secret")
        >>> try:
        ...     RetrievalService(Broken(), LlmSettings("gpt-4o")).retrieve("tea")
        ... except RetrievalError as error:
        ...     print(error.source, type(error.__cause__).__name__)
        handbook OSError

    """

    def __init__(self, message: str, *, source: str = "") -> None:
        super().__init__(message)
        self.source = source


class RetrievalTimeoutError(RetrievalError, TimeoutError):
    """
    The deadline of a request has passed.

    Examples:
        >>> import time
        >>> from budgeteer.service import LlmSettings, RetrievalService
        >>> class Slow:
        ...     def retrieve(self, query, limit):
        ...         time.sleep(0.5)
        ...         return []
        >>> try:
        ...     RetrievalService(Slow(), LlmSettings("gpt-4o")).retrieve("tea", timeout=0.01)
        ... except TimeoutError as error:
        ...     print(type(error).__name__)
        RetrievalTimeoutError

    """


class PackingTimeoutError(BudgeteerError, TimeoutError):
    """
    The deadline of a packing has passed.

    Examples:
        >>> from budgeteer import Packer
        >>> try:
        ...     Packer(9).pack("tea", ["Green tea."], deadline=1e-9)
        ... except TimeoutError as error:
        ...     print(error)
        the deadline of 1e-09 seconds passed before the chunks were packed

    """


class CounterError(BudgeteerError):
    """
    A token counter is not available, or returned something that is not a count.

    Examples:
        >>> from budgeteer import pack
        >>> try:
        ...     pack("tea", ["Green tea."], 9, counter=lambda text: "three")
        ... except CounterError as error:
        ...     print(error)
        the counter must answer an int from 0 on for chunks[0], not str

    """


class CorpusError(BudgeteerError):
    """
    A file is not a corpus, or it is of another version, cut off or damaged.

    Examples:
        >>> import pathlib, tempfile
        >>> from budgeteer import Corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tea.txt")
        ...     _ = path.write_text("Green tea.")
        ...     try:
        ...         Corpus.open(path)
        ...     except CorpusError as error:
        ...         print(str(error).rpartition(": ")[2])
        the file is no corpus

    """


class MissingPackageError(BudgeteerError, ImportError):
    """
    A module of `budgeteer.integrations` needs a package that is not installed, or is too old.

    Examples:
        >>> issubclass(MissingPackageError, ImportError)
        True

    """


class InternalError(BudgeteerError, RuntimeError):
    """
    A defect of this library, not of its input. Please report it.

    Examples:
        >>> issubclass(InternalError, BudgeteerError), issubclass(InternalError, ValueError)
        (True, False)

    """


class EmbeddingError(BudgeteerError):
    """
    Texts cannot be embedded. The message quotes neither a text nor a key.

    Attributes:
        status: The HTTP status of the endpoint's answer; None if there was none.
        code: The endpoint's error code, such as ``"invalid_api_key"``; None if it gives none.
        is_retryable: Whether the same call may succeed later.
        retry_after: The seconds that the endpoint asks to wait; None if it does not say.
        index: The index of the text; None if it is not about a single one.

    Examples:
        >>> from budgeteer.embedding import OpenAIEmbedder
        >>> embedder = OpenAIEmbedder(max_input_tokens=2, truncate=False)
        >>> try:
        ...     embedder.embed(["tea", "a cup of green tea"])
        ... except EmbeddingError as error:
        ...     print(error.index, error.is_retryable)
        1 False

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
