"""
LangChain: documents, histories and agents within a budget.

`BudgetCompressor` packs retrieved documents, counted as a chain writes them. `token_counter`
counts messages for LangChain's own functions. `BudgetMiddleware` makes the calls of an
agent fit; it is the only one that needs ``langchain`` itself, from 1.0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter, chosen, count_messages, model_name
from budgeteer._pack.packer import Packer
from budgeteer._pack.packing import Packing
from budgeteer._validate import type_name
from budgeteer.errors import InvalidArgumentError
from budgeteer.integrations._missing import missing
from budgeteer.integrations._packers import Kept, as_packer, listed, plain, taken, written

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.messages import BaseMessage
    from langchain_core.prompts import BasePromptTemplate, format_document
    from langchain_core.runnables import Runnable, RunnableLambda
    from pydantic import PrivateAttr, field_serializer
except ImportError as _error:
    raise missing(__name__, _error) from None

if TYPE_CHECKING:
    from budgeteer.integrations._langchain_agent import BudgetMiddleware

__all__ = ["BudgetCompressor", "BudgetMiddleware", "token_counter"]


class BudgetCompressor(BaseDocumentCompressor):
    r"""
    Keeps the documents whose written text fits.

    The law: the documents that it returns, each written by *document_prompt* and joined by
    *separator*, count at most the budget. This is what LangChain's chain "stuff" puts into a
    prompt, with the same two options. The documents are the given objects; of one that was cut it
    is a copy with another ``page_content``, and the same id and metadata.

    Args:
        packer: A `Packer`, a mapping of its options, or the most tokens, from 0 on. In the last
            two the retriever's order is the default. Its ``template`` and ``notice`` are the
            defaults, as LangChain writes the text.
        document_prompt: Writes a document, as in LangChain's chains. None, the default, writes its
            ``page_content``. With one no document is cut: ``overflow`` is ``"skip"`` or
            ``"stop"``.
        separator: The text between two documents, a blank line by default.

    Raises:
        InvalidArgumentError: *packer* is neither, or its options do not go with these.
        BudgeteerError: From the methods, as from `Packer.pack`.

    Examples:
        >>> from langchain_core.documents import Document
        >>> compressor = BudgetCompressor(packer=8)
        >>> found = [Document("Green tea is mild."), Document("Tea. " * 9), Document("Rye.")]
        >>> [kept.page_content for kept in compressor.compress_documents(found, "tea")]
        ['Green tea is mild.', 'Rye.']

    """

    packer: Any
    document_prompt: Any = None
    separator: str = "\n\n"
    _kept: Kept = PrivateAttr(default_factory=Kept)

    def __init__(
        self,
        *,
        packer: Packer | Mapping[str, Any] | int,
        document_prompt: BasePromptTemplate[str] | None = None,
        separator: str = "\n\n",
    ) -> None:
        # Before pydantic's own checks, which would hide the type of an error.
        as_packer(packer, written(_writer(document_prompt), separator))
        options = {"document_prompt": document_prompt, "separator": separator}
        super().__init__(**{"packer": taken(packer), **options})

    @field_serializer("packer")
    def _write_packer(self, packer: Any) -> Any:
        return plain(packer)

    @property
    def _packer(self) -> Packer:
        """The packer that counts documents as LangChain writes them."""
        given = (self.packer, self.document_prompt, self.separator)
        return self._kept.get(
            given, lambda: as_packer(given[0], written(_writer(given[1]), given[2]))
        )

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Any = None,  # noqa: ARG002 - LangChain's own, for models within
    ) -> list[Document]:
        """
        Return the documents that fit, in the order in which they are to be written.

        Args:
            documents: The documents.
            query: What they should answer; it matters where the packer ranks by it.
            callbacks: Not used, as no model is called.

        Examples:
            >>> from langchain_core.documents import Document
            >>> BudgetCompressor(packer=1).compress_documents([Document("Green tea.")], "tea")
            []

        """
        return _documents(self._packer.pack(query, listed("documents", documents, Document)))

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Any = None,  # noqa: ARG002 - likewise
    ) -> list[Document]:
        """
        Return what `compress_documents` does, without blocking the event loop.

        Args:
            documents: The documents.
            query: As there.
            callbacks: Not used.

        Examples:
            >>> import asyncio
            >>> from langchain_core.documents import Document
            >>> found = [Document("Green tea.")]
            >>> asyncio.run(BudgetCompressor(packer=9).acompress_documents(found, "tea")) == found
            True

        """
        found = listed("documents", documents, Document)
        return _documents(await self._packer.apack(query, found))

    def as_runnable(self) -> Runnable[dict[str, Any], list[Document]]:
        """
        Return a runnable from a mapping with ``documents`` and ``query`` to the documents.

        Examples:
            >>> from langchain_core.documents import Document
            >>> given = {"documents": [Document("Green tea.")], "query": "tea"}
            >>> BudgetCompressor(packer=9).as_runnable().invoke(given) == given["documents"]
            True

        """

        def compress(given: dict[str, Any]) -> list[Document]:
            return self.compress_documents(*_asked(given))

        async def acompress(given: dict[str, Any]) -> list[Document]:
            return await self.acompress_documents(*_asked(given))

        return RunnableLambda(compress, acompress, name="BudgetCompressor")


def _writer(prompt: BasePromptTemplate[str] | None) -> Callable[[Document], str] | None:
    """Return the function that writes a document by a prompt, None without one."""
    if prompt is None:
        return None
    if not isinstance(prompt, BasePromptTemplate):
        raise InvalidArgumentError(
            f"document_prompt must be a BasePromptTemplate or None, not {type_name(prompt)}"
        )
    return lambda document: format_document(document, prompt)


def _asked(given: dict[str, Any]) -> tuple[Any, Any]:
    """Return the documents and the query that a runnable was given."""
    if isinstance(given, Mapping) and {"documents", "query"} <= {*given}:
        return given["documents"], given["query"]
    raise InvalidArgumentError("the input must be a mapping with 'documents' and 'query'")


def _documents(packing: Packing[Document]) -> list[Document]:
    return [
        kept.chunk.model_copy(update={"page_content": kept.text}) if kept.was_cut else kept.chunk
        for kept in packing.kept
    ]


def token_counter(
    model: str | ModelLimits | None = None, *, counter: Counter | None = None
) -> Callable[[Sequence[BaseMessage]], int]:
    """
    Return a function that counts messages, for the ``token_counter`` of LangChain's functions.

    It answers what `budgeteer.window.count_messages` does, so calls and results of tools, images
    and the tokens around each message count.

    Args:
        model: The model whose costs and counter apply. None counts with ``o200k_base``.
        counter: Counts the texts, as for `get_counter`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or value.
        CounterError: As for `get_counter`.

    Examples:
        >>> from langchain_core.messages import HumanMessage, trim_messages
        >>> messages = [HumanMessage("Green tea. " * 9), HumanMessage("And rye?")]
        >>> counter = token_counter("gpt-4o")
        >>> trimmed = trim_messages(messages, max_tokens=20, token_counter=counter)
        >>> [message.content for message in trimmed], counter(trimmed)
        (['And rye?'], 10)

    """
    model_name(model)
    counting = chosen(counter, model)

    def count(messages: Sequence[BaseMessage]) -> int:
        return count_messages(messages, counter=counting, model=model)

    return count


if not TYPE_CHECKING:  # the middleware's package is larger, and there are versions without it

    def __getattr__(name: str) -> object:
        """Load the middleware."""
        if name == "BudgetMiddleware":
            from budgeteer.integrations._langchain_agent import BudgetMiddleware

            return BudgetMiddleware
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
