"""
Haystack: documents, prompts and conversations within a budget.

`BudgetPromptBuilder` keeps the documents whose rendered prompt fits. `BudgetPacker` does so for
their contents alone. `BudgetTokenCounter` counts messages for Haystack's own compaction, and
`BudgetCompactor` makes conversations fit there. All of them can be in a pipeline's YAML, which is
loaded with ``allowed_modules=["budgeteer.integrations.haystack"]``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from budgeteer import _validate
from budgeteer._messages.history import StartOn
from budgeteer._messages.messages import SYSTEM_ROLES, chosen, count_tools, model_name
from budgeteer._messages.shapes import mapping
from budgeteer._messages.trim import Trimmed, trim_messages
from budgeteer._messages.views import plain_text, result_texts
from budgeteer._pack.packer import Packer
from budgeteer._pack.template import Prompt
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations._missing import missing
from budgeteer.integrations._packers import as_packer, listed, plain, taken, written
from budgeteer.integrations._requests import counted

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.components.builders import PromptBuilder
    from haystack.dataclasses import ChatMessage, TextContent
except ImportError as _error:
    raise missing(__name__, _error) from None

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BudgetCompactor", "BudgetPacker", "BudgetPromptBuilder", "BudgetTokenCounter"]


@component
class BudgetPacker:
    r"""
    Keeps the documents whose contents fit.

    The law: the contents of the documents that it returns, joined by *separator*, count at most
    the budget. Where a prompt writes more around each, use `BudgetPromptBuilder`. The documents
    are the given objects; of one that was cut it is a copy with another ``content``, and the same
    id, meta and score. A document without text is left out.

    Args:
        packer: A `Packer`, a mapping of its options, or the most tokens, from 0 on. In the last
            two the retriever's order is the default. Its ``template`` and ``notice`` are the
            defaults, as the pipeline writes the text.
        separator: The text between two documents, a blank line by default.

    Raises:
        InvalidArgumentError: *packer* is none of these, or its options do not go with these.
        BudgeteerError: From `run`, as from `Packer.pack`.

    Examples:
        >>> from haystack import Document
        >>> texts = ["Green tea is mild.", "Tea. " * 9, "Rye."]
        >>> documents = [Document(content=text) for text in texts]
        >>> kept = BudgetPacker(8).run(documents)["documents"]
        >>> [document.content for document in kept]
        ['Green tea is mild.', 'Rye.']

    """

    def __init__(
        self, packer: Packer | Mapping[str, Any] | int, *, separator: str = "\n\n"
    ) -> None:
        self._packer = as_packer(packer, written(None, separator))
        self._given, self._separator = taken(packer), separator

    def to_dict(self) -> dict[str, Any]:
        """
        Return what a pipeline's YAML has of it.

        Examples:
            >>> BudgetPacker(8, separator=" ").to_dict()["init_parameters"]
            {'packer': 8, 'separator': ' '}

        """
        return _dict(self, packer=plain(self._given), separator=self._separator)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], query: str = "") -> dict[str, Any]:
        """
        Return the documents that fit, in the order of the text.

        Args:
            documents: The documents.
            query: What they should answer; it matters where the packer ranks by it.

        Examples:
            >>> from haystack import Document
            >>> BudgetPacker(1).run([Document(content="Green tea.")])
            {'documents': []}

        """
        documents = listed("documents", documents, Document)
        packing = self._packer.pack(query, [_chunk(document) for document in documents])
        kept = []
        for chunk in packing.kept:
            document = documents[chunk.index]
            kept.append(replace(document, content=chunk.text) if chunk.was_cut else document)
        return {"documents": kept}


@component
class BudgetPromptBuilder:
    r"""
    Renders a prompt with as many documents as fit into it.

    The law: the prompt that it returns counts at most the budget, with all that the template
    writes. It stands where a ``PromptBuilder`` does, with the same inputs; the template has a
    variable ``documents``. Where a variable ``query`` or ``question`` is a text, a packer that
    ranks goes by it. A document without text is left out.

    Args:
        template: The template, in Jinja, as for Haystack's ``PromptBuilder``.
        packer: A `Packer`, a mapping of its options, or the most tokens, from 0 on. In the last
            two the retriever's order is the default. Its ``template`` and ``notice`` are the
            defaults, as *template* writes the text, and its ``overflow`` is ``"skip"`` or
            ``"stop"``.
        required_variables: As for ``PromptBuilder``: the names of inputs that must be given, or
            ``"*"`` for all.

    Raises:
        InvalidArgumentError: *packer* is none of these, or its options do not go with these, or
            *template* has no variable ``documents``.
        BudgetExhaustedError: From `run`: the prompt without any document is over the budget.
        BudgeteerError: From `run`, as from `Packer.pack`.

    Examples:
        >>> from haystack import Document
        >>> template = "{% for d in documents %}- {{ d.content }}\n{% endfor %}{{ question }}"
        >>> builder = BudgetPromptBuilder(template, 16)
        >>> texts = ["Green tea is mild.", "Tea. " * 9, "Rye."]
        >>> documents = [Document(content=text) for text in texts]
        >>> print(builder.run(documents=documents, question="Which is mild?")["prompt"])
        - Green tea is mild.
        - Rye.
        Which is mild?

    """

    def __init__(
        self,
        template: str,
        packer: Packer | Mapping[str, Any] | int,
        *,
        required_variables: list[str] | Literal["*"] | None = "*",
    ) -> None:
        if required_variables not in (None, "*"):
            for i, name in enumerate(_validate.batch("required_variables", required_variables)):
                _validate.text(f"required_variables[{i}]", name)
        self._template = _validate.text("template", template)
        self._required = required_variables
        self._packer = as_packer(packer)
        self._given = taken(packer)
        as_packer(packer, Prompt(str))  # whether its options go with a function that writes
        self._builder = PromptBuilder(template, required_variables=required_variables)
        names = self._builder.variables
        _check_variables(names)
        for name in names:
            default = {} if self._is_required(name) else {"default": ""}
            component.set_input_type(self, name, Any, **default)

    def to_dict(self) -> dict[str, Any]:
        """
        Return what a pipeline's YAML has of it.

        Examples:
            >>> BudgetPromptBuilder("{{ documents }}", 8).to_dict()["init_parameters"]["packer"]
            8

        """
        return _dict(
            self,
            template=self._template,
            packer=plain(self._given),
            required_variables=self._required,
        )

    @component.output_types(prompt=str, documents=list[Document])
    def run(
        self,
        template: str | None = None,
        template_variables: dict[str, Any] | None = None,
        **variables: Any,
    ) -> dict[str, Any]:
        """
        Return the prompt, and the documents that are in it, in its order.

        Args:
            template: A template for this run, instead of the builder's own.
            template_variables: Variables that go before those given by name.
            variables: Those of the template, the documents among them.

        Examples:
            >>> BudgetPromptBuilder("Hello.{{ documents }}", 8).run(documents=[])
            {'prompt': 'Hello.[]', 'documents': []}

        """
        if template is not None:
            _check_template(template)
        variables = {**variables, **mapping("template_variables", template_variables or {})}
        if "documents" not in variables and self._is_required("documents"):
            raise InvalidArgumentError("documents must be given, as required_variables says")
        documents = listed("documents", variables.get("documents") or (), Document)

        def render(chunks: list[dict[str, Any]]) -> str:
            given = {**variables, "documents": [chunk["document"] for chunk in chunks]}
            prompt: str = self._builder.run(template, given)["prompt"]
            return prompt

        queries = (variables.get(name) for name in ("query", "question"))
        query = next((query for query in queries if isinstance(query, str)), "")
        packer = replace(self._packer, template=Prompt(render))
        packing = packer.pack(query, [_chunk(document) for document in documents])
        if not packing.text:
            self._check_empty(render([]))
        return {"prompt": packing.text, "documents": [documents[k.index] for k in packing.kept]}

    def _is_required(self, name: str) -> bool:
        return self._required == "*" or name in (self._required or ())

    def _check_empty(self, prompt: str) -> None:
        """Refuse a prompt that is over the budget without any document."""
        if prompt:
            budget = max(0, self._packer.max_tokens - self._packer.reserve_tokens)
            tokens = chosen(self._packer.counter, None).count(prompt)
            raise BudgetExhaustedError(
                f"the prompt without documents does not fit: {budget} - {tokens} for the "
                f"template = {budget - tokens}"
            )


class _Counting:
    """Counts by a model's rules, or by a counter, and is written into a pipeline's YAML so."""

    def __init__(self, model: str | None = None, *, counter: str | None = None) -> None:
        self._model, self._counter = model, counter
        model_name(model)
        if counter is not None:
            _validate.text("counter", counter)
        self._counting = chosen(counter, model)

    def to_dict(self) -> dict[str, Any]:
        """
        Return what a pipeline's YAML has of it.

        Examples:
            >>> BudgetTokenCounter("gpt-4o").to_dict()["init_parameters"]
            {'model': 'gpt-4o', 'counter': None}

        """
        return _dict(self, model=self._model, counter=self._counter)

    def _total(self, messages: list[ChatMessage], views: list[dict[str, Any]]) -> int:
        """Return the tokens of messages: what OpenAI's Responses answered goes back as items."""
        own = (part for message in messages for part in (*message.tool_calls, message.reasoning))
        as_items = any({"call_id", "id"} & {*(getattr(part, "extra", None) or ())} for part in own)
        return counted(views, as_items=as_items, counter=self._counting, model=self._model)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """
        Return what `to_dict` wrote.

        Args:
            data: What it wrote.

        Examples:
            >>> compactor = BudgetCompactor("gpt-4o")
            >>> BudgetCompactor.from_dict(compactor.to_dict()).to_dict() == compactor.to_dict()
            True

        """
        made: Self = default_from_dict(cls, data)
        return made


class BudgetTokenCounter(_Counting):
    """
    Counts messages and tools as `count_messages` and `count_tools` do, for Haystack's hooks.

    Args:
        model: The model whose costs and counter apply. None counts with ``o200k_base``.
        counter: The name of a counter, as for `get_counter`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or value.
        CounterError: As for `get_counter`.

    Examples:
        >>> from haystack.dataclasses import ChatMessage
        >>> BudgetTokenCounter("gpt-4o").count([ChatMessage.from_user("Hello, world!")])
        11

    """

    def count(self, messages: list[ChatMessage], tools: Any = None) -> int:
        """
        Return the tokens of messages and tools.

        Args:
            messages: The messages.
            tools: Tools or toolsets whose schemas are sent with them, None for none.

        Examples:
            >>> BudgetTokenCounter().count([])
            0

        """
        views = _views(messages)
        shown = [] if tools is None else [tool.tool_spec for tool in _flat(tools)]
        has_system = any(view["role"] == "system" for view in views)
        total = self._total(messages, views)
        options: Any = {"counter": self._counting, "model": self._model}
        return total + count_tools(shown, has_system_message=has_system, **options)


class BudgetCompactor(_Counting):
    """
    Shortens a conversation as `trim_messages` does, for Haystack's ``CompactionHook``.

    The law: messages that it returns count at most the tokens that are asked for, as by
    `BudgetTokenCounter` of the same model; or, where what must stay takes more, as few as that
    and at most an eighth more. Old tool results are replaced by a line first, then the oldest
    turns leave, then the longest results are cut. No call is separated from its results, and a
    conversation that the user began still begins with a message of the user.

    Args:
        model: The model whose costs and counter apply. None counts with ``o200k_base``.
        counter: The name of a counter, as for `get_counter`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or value.
        CounterError: As for `get_counter`.

    Examples:
        >>> from haystack.dataclasses import ChatMessage
        >>> messages = [ChatMessage.from_user("Tea? " * 99), ChatMessage.from_user("And rye?")]
        >>> [message.text for message in BudgetCompactor().compact(messages, 20)]
        ['And rye?']

    """

    def compact(
        self,
        messages: list[ChatMessage],
        target_tokens: int,
        token_counter: Any = None,
    ) -> list[ChatMessage] | None:
        """
        Return a shorter conversation, None where it need not, or cannot, be shorter.

        Args:
            messages: The conversation, oldest first; it stays as it is.
            target_tokens: The most tokens of what is returned.
            token_counter: Haystack's own counter. What is not shorter by it is not returned.

        Examples:
            >>> from haystack.dataclasses import ChatMessage
            >>> BudgetCompactor().compact([ChatMessage.from_user("Hello!")], 20) is None
            True

        """
        views = _views(messages)
        limit = _validate.tokens("target_tokens", target_tokens)
        more = 0
        while True:
            trimmed = self._trimmed(views, max(0, limit - more))
            left_out, shortened = {*trimmed.left_out}, {*trimmed.shortened}
            kept = [i for i in range(len(messages)) if i not in left_out]
            added = self._total([messages[i] for i in kept], [*trimmed]) - trimmed.total_tokens
            if added <= more:
                break
            more = added
        if not left_out and not shortened:
            return None
        made = [
            _shortened(messages[i], view) if i in shortened else messages[i]
            for i, view in zip(kept, trimmed, strict=True)
        ]
        if token_counter is None or token_counter.count(made) < token_counter.count(messages):
            return made
        return None

    async def compact_async(
        self,
        messages: list[ChatMessage],
        target_tokens: int,
        token_counter: Any = None,
    ) -> list[ChatMessage] | None:
        """
        Return what `compact` does.

        Args:
            messages: As there.
            target_tokens: As there.
            token_counter: As there.

        Examples:
            >>> import asyncio
            >>> asyncio.run(BudgetCompactor().compact_async([], 20)) is None
            True

        """
        return self.compact(messages, target_tokens, token_counter)

    def _trimmed(self, views: list[dict[str, Any]], limit: int) -> Trimmed[dict[str, Any]]:
        roles = (view["role"] for view in views if view["role"] not in SYSTEM_ROLES)
        # Some providers refuse what begins with an answer.
        start_on: StartOn | None = "user" if next(roles, None) == "user" else None
        while True:
            try:
                return trim_messages(
                    views,
                    limit,
                    counter=self._counting,
                    model=self._model,
                    keep_results=1,
                    start_on=start_on,
                )
            except BudgetExhaustedError:  # noqa: PERF203 - it is rare
                limit += limit // 8 + 1  # Haystack wants what comes nearest, not an error


def _dict(item: object, **parameters: Any) -> dict[str, Any]:
    found: dict[str, Any] = default_to_dict(item, **parameters)
    return found


def _check_template(template: Any) -> None:
    """Refuse a template for one run that would show no documents."""
    builder = PromptBuilder(_validate.text("template", template), required_variables="*")
    _check_variables(builder.variables)


def _check_variables(names: Collection[str]) -> None:
    if "documents" not in names:
        raise InvalidArgumentError("template must have a variable 'documents'")


def _chunk(document: Document) -> dict[str, Any]:
    return {
        "text": document.content or "",
        "id": document.id,
        "score": document.score,
        "metadata": document.meta,
        "document": document,
    }


def _views(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages as Haystack sends them to OpenAI, results of several parts as they are."""
    found = listed("messages", messages, ChatMessage)
    return [_result_view(message) or _with_seals(message) for message in found]


def _with_seals(message: ChatMessage) -> dict[str, Any]:
    """Return a message with the thought signatures that Gemini gets back."""
    shown, given = _with_reasoning(message), message.meta.get("thought_signatures")
    if not isinstance(given, (list, tuple)) or shown["role"] != "assistant":
        return shown
    seals = [one.get("signature") for one in given if isinstance(one, Mapping)]
    return {**shown, "thought_signatures": [*map(plain_text, seals)]}


def _with_reasoning(message: ChatMessage) -> dict[str, Any]:
    """Return a message with its reasoning, which chat completions alone do not get back."""
    reasoning = message.reasoning
    if reasoning is None:
        return _sent(message)
    text, more = reasoning.reasoning_text, reasoning.extra
    # What only its provider can read: beside a text Anthropic's is a mere seal.
    sealed = more.get("encrypted_content") if text else more
    return {**_sent(message), "reasoning": [{"type": "summary_text", "text": text}, sealed]}


def _sent(message: ChatMessage) -> dict[str, Any]:
    sent: dict[str, Any] = message.to_openai_dict_format(require_tool_call_ids=False)
    return sent


def _result_view(message: ChatMessage) -> dict[str, Any] | None:
    """Return a tool's message whose result has several parts: chat completions take no images."""
    if len(message.tool_call_results) != 1 or isinstance(message.tool_call_results[0].result, str):
        return None
    [found] = message.tool_call_results
    parts = [
        {"type": "text", "text": part.text}
        if isinstance(part, TextContent)
        else _sent(ChatMessage.from_user(content_parts=[part]))["content"][0]
        for part in found.result
    ]
    return {"role": "tool", "tool_call_id": found.origin.id, "content": parts}


def _flat(tools: Any) -> list[Any]:
    """Return the tools in a list of tools and toolsets, or in a toolset."""
    found: list[Any] = []
    for tool in _validate.iterable("tools", tools):
        found += [tool] if hasattr(tool, "tool_spec") else _validate.iterable("tools", tool)
    for i, tool in enumerate(found):
        if not hasattr(tool, "tool_spec"):
            kind = _validate.type_name(tool)
            raise InvalidArgumentError(f"tools[{i}] must be a Tool, not {kind}")
    return found


def _shortened(message: ChatMessage, view: dict[str, Any]) -> ChatMessage:
    """Return a message of a tool with other texts."""
    [found] = message.tool_call_results
    texts = iter(result_texts(view))
    if isinstance(view["content"], str):  # one line stands for all parts of a masked result
        result: Any = next(texts)
    else:
        result = [
            TextContent(next(texts)) if isinstance(part, TextContent) else part
            for part in found.result
        ]
    return ChatMessage.from_tool(result, found.origin, found.error, {**message.meta})
