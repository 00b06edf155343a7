"""
LlamaIndex: nodes and chat histories within a budget.

`BudgetPostprocessor` packs retrieved nodes, counted as LlamaIndex writes them for its models.
`BudgetMemory` is a memory whose messages fit, and `tokenizer` counts for LlamaIndex itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter, chosen, model_name
from budgeteer._messages.trim import Trimmed
from budgeteer._pack.packer import Packer
from budgeteer._pydantic import check_known
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations._histories import trimmed_history
from budgeteer.integrations._missing import missing
from budgeteer.integrations._packers import Kept, as_packer, listed, plain, taken, written

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import PrivateAttr, field_serializer
    from llama_index.core.constants import DEFAULT_NUM_OUTPUTS
    from llama_index.core.llms import LLM
    from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY, BaseChatStoreMemory
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
    from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
except ImportError as _error:
    raise missing(__name__, _error) from None

__all__ = ["BudgetMemory", "BudgetPostprocessor", "tokenizer"]


class BudgetPostprocessor(BaseNodePostprocessor):
    """
    Keeps the nodes whose written text fits.

    The law: the nodes that it returns, each written as ``node.get_content(MetadataMode.LLM)``,
    stripped and joined by blank lines, count at most the budget. This is what LlamaIndex's
    response modes ``compact`` and ``tree_summarize``, and its chat engines, put into a prompt: the
    metadata that a model sees are counted. The nodes are the given objects, with their scores. A
    node without text is left out.

    Args:
        packer: A `Packer`, a mapping of its options, or the most tokens, from 0 on. In the last
            two the retriever's order is the default. Its ``template`` and ``notice`` are the
            defaults, as LlamaIndex writes the text, and its ``overflow`` is ``"skip"`` or
            ``"stop"``.

    Raises:
        InvalidArgumentError: *packer* is neither, or has other options.
        BudgeteerError: From the methods, as from `Packer.pack`.

    Examples:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> texts = ["Green tea is mild.", "Tea. " * 9, "Rye."]
        >>> nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in texts]
        >>> kept = BudgetPostprocessor(packer=8).postprocess_nodes(nodes, query_str="tea")
        >>> [node.text for node in kept]
        ['Green tea is mild.', 'Rye.']

    """

    packer: Any
    _kept: Kept = PrivateAttr(default_factory=Kept)

    def __init__(self, *, packer: Packer | Mapping[str, Any] | int, **base: Any) -> None:
        as_packer(packer, written(_write, "\n\n"))  # before pydantic, which would hide its error
        _check_known(type(self), base)
        super().__init__(**{"packer": taken(packer), **base})

    @field_serializer("packer")
    def _write_packer(self, packer: Any) -> Any:
        return plain(packer)

    @property
    def _packer(self) -> Packer:
        """The packer that counts nodes as LlamaIndex writes them."""
        packer = self.packer
        return self._kept.get((packer,), lambda: as_packer(packer, written(_write, "\n\n")))

    @classmethod
    def class_name(cls) -> str:
        """
        Return the name that LlamaIndex writes into files.

        Examples:
            >>> BudgetPostprocessor.class_name()
            'BudgetPostprocessor'

        """
        return "BudgetPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        nodes = listed("nodes", nodes, NodeWithScore)
        packing = self._packer.pack(_query(query_bundle), [_chunk(node) for node in nodes])
        return [nodes[kept.index] for kept in packing.kept]

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        nodes = listed("nodes", nodes, NodeWithScore)
        chunks = [_chunk(node) for node in nodes]
        packing = await self._packer.apack(_query(query_bundle), chunks)
        return [nodes[kept.index] for kept in packing.kept]


def _check_known(item: Any, given: Mapping[str, Any]) -> None:
    """Refuse options that a class does not have, which LlamaIndex takes and forgets."""
    aliases = {field.alias for field in item.model_fields.values()}
    check_known(item, item.model_fields, [name for name in given if name not in aliases])


def _check_kind(name: str, value: object, kinds: type | tuple[type, ...]) -> None:
    """Refuse what is not of LlamaIndex's own kind; the first of several is named."""
    if not isinstance(value, kinds):
        kind = kinds[0] if isinstance(kinds, tuple) else kinds
        raise InvalidArgumentError(
            f"{name} must be a {kind.__name__}, not {_validate.type_name(value)}"
        )


def _query(bundle: QueryBundle | None) -> str:
    return "" if bundle is None else bundle.query_str


def _chunk(found: NodeWithScore) -> dict[str, Any]:
    text = found.node.get_content(metadata_mode=MetadataMode.NONE)
    return {
        "text": text,
        "score": found.score,
        "metadata": found.node.metadata,
        "node": found.node,
    }


def _write(chunk: dict[str, Any]) -> str:
    text: str = chunk["node"].get_content(metadata_mode=MetadataMode.LLM)
    return text.strip()


def tokenizer(
    model: str | ModelLimits | None = None, *, counter: Counter | None = None
) -> Callable[[str], Sequence[int]]:
    """
    Return a function from a text to a sequence as long as its tokens, for ``Settings.tokenizer``.

    Args:
        model: The model whose counter counts. None counts with ``o200k_base``.
        counter: Counts instead, as for `get_counter`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or value.
        CounterError: As for `get_counter`.

    Examples:
        >>> len(tokenizer("gpt-4o")("Green tea is mild."))
        5

    """
    model_name(model)
    count = chosen(counter, model).count
    return lambda text: range(count(text))


class BudgetMemory(BaseChatStoreMemory):
    """
    A memory whose messages fit: tool calls stay with their results, and large results are cut.

    The law: the messages that `get` returns, counted by `count_messages`, and the
    ``initial_token_count`` that LlamaIndex adds around them, count at most *max_tokens*. The first
    of them that is not the system's is the user's. All messages stay in the store. What left stays
    away, so that the beginning of the prompt stays the same for a provider's cache.

    Chat engines read the memory before they add a question. Where the newest turn is answered and
    does not fit, it is left out: only the system messages are returned then.

    Args:
        max_tokens: The most tokens of messages, from 0 on.
        model: The model whose costs and counter apply. None counts with ``o200k_base``.
        counter: Counts the texts, as for `count_messages`. None takes the model's.
        **store: ``chat_store``, where the messages are, in memory by default, and
            ``chat_store_key``, the key of this conversation there.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        BudgetExhaustedError: From `get`: the system messages do not fit, or a question or tool
            result that waits for an answer does not, as from `trim_messages`.

    Examples:
        >>> from llama_index.core.llms import ChatMessage
        >>> memory = BudgetMemory(max_tokens=20)
        >>> memory.put(ChatMessage("Green tea. " * 9, role="user"))
        >>> memory.put(ChatMessage("And rye?", role="user"))
        >>> [message.content for message in memory.get()]
        ['And rye?']

    """

    max_tokens: int
    model: Any = None
    counter: Any = None
    _previous: Trimmed[Any] | list[Any] = PrivateAttr(default_factory=list)

    def __init__(
        self,
        *,
        max_tokens: int,
        model: str | ModelLimits | None = None,
        counter: Counter | None = None,
        **store: Any,
    ) -> None:
        limit = _validate.tokens("max_tokens", max_tokens)
        model_name(model)
        chosen(counter, model)
        _check_known(type(self), store)
        if "chat_store" in store:
            _check_kind("chat_store", store["chat_store"], (BaseChatStore, Mapping))
        if "chat_store_key" in store:
            _validate.text("chat_store_key", store["chat_store_key"])
        given: dict[str, Any] = {"max_tokens": limit, "model": model, "counter": counter}
        super().__init__(**given, **store)

    @field_serializer("model", "counter")
    def _write_name(self, value: Any, info: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        raise InvalidArgumentError(
            f"{info.field_name} is a {_validate.type_name(value)}, which has no JSON form: give "
            "its name"
        )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what is shown: not the store, which would show the messages."""
        yield from (item for item in super().__repr_args__() if item[0] != "chat_store")

    @classmethod
    def class_name(cls) -> str:
        """
        Return the name that LlamaIndex writes into files.

        Examples:
            >>> BudgetMemory.class_name()
            'BudgetMemory'

        """
        return "BudgetMemory"

    @classmethod
    def from_defaults(
        cls,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        chat_store: BaseChatStore | None = None,
        chat_store_key: str = DEFAULT_CHAT_STORE_KEY,
        **options: Any,
    ) -> BudgetMemory:
        """
        Return a memory, as LlamaIndex makes its own.

        Args:
            chat_history: What was said before.
            llm: Its window, without the tokens of its answer (LlamaIndex's default where it states
                none), is the *max_tokens*, and its name the *model*, where these are not given.
            chat_store: As for the class.
            chat_store_key: As for the class.
            options: The other arguments of the class.

        Raises:
            InvalidArgumentError: Neither *max_tokens* nor *llm* is given, or as for the class.

        Examples:
            >>> BudgetMemory.from_defaults(max_tokens=20).get()
            []

        """
        if llm is not None:
            _check_kind("llm", llm, LLM)
            answer = llm.metadata.num_output
            # -1 is what a model has without `max_tokens`, for which LlamaIndex reserves as much.
            room = llm.metadata.context_window - (DEFAULT_NUM_OUTPUTS if answer < 0 else answer)
            options = {"max_tokens": room, "model": llm.metadata.model_name, **options}
        if "max_tokens" not in options:
            raise InvalidArgumentError("max_tokens must be given where llm is not")
        store = SimpleChatStore() if chat_store is None else chat_store
        _check_kind("chat_store", store, BaseChatStore)
        if chat_history is not None:
            chat_history = listed("chat_history", chat_history, ChatMessage)
            store.set_messages(chat_store_key, chat_history)
        return cls(chat_store=store, chat_store_key=chat_store_key, **options)

    def get(
        self,
        input: str | None = None,  # noqa: A002, ARG002 - LlamaIndex's own
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """
        Return the newest messages that fit.

        Args:
            input: Not used.
            initial_token_count: The tokens that LlamaIndex adds around the messages.
            kwargs: For the store.

        Examples:
            >>> BudgetMemory(max_tokens=20).get()
            []

        """
        return self._trimmed(super().get(**kwargs), initial_token_count)

    async def aget(
        self,
        input: str | None = None,  # noqa: A002, ARG002 - likewise
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """
        Return what `get` does, awaiting the store.

        Args:
            input: Not used.
            initial_token_count: As for `get`.
            kwargs: For the store.

        Examples:
            >>> import asyncio
            >>> asyncio.run(BudgetMemory(max_tokens=20).aget())
            []

        """
        return self._trimmed(await super().aget(**kwargs), initial_token_count)

    def _trimmed(self, messages: list[ChatMessage], around: int) -> list[ChatMessage]:
        room = self.max_tokens - _validate.tokens("initial_token_count", around)
        if room < 0:
            raise BudgetExhaustedError(
                f"the messages have no room: max_tokens {self.max_tokens} - {around} around them "
                f"= {room}"
            )
        self._previous = trimmed_history(
            messages,
            room,
            counter=self.counter,
            model=self.model,
            start_on="user",
            previous=self._previous,
        )
        return [*self._previous]
