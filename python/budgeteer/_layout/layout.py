"""Layout: divides a context window among the sections of a prompt, and renders the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._count.counter import TokenCounter
from budgeteer._count.limits import ModelLimits, model_limits
from budgeteer._layout.section import Kind, Part, Section
from budgeteer._messages.messages import (
    Counter,
    MessageCosts,
    Sent,
    chosen,
    has_system,
    model_name,
)
from budgeteer._messages.tools import framed_tools, render_tools
from budgeteer._public import public
from budgeteer._pydantic import instance_schema
from budgeteer.errors import InvalidArgumentError


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Allocation:
    """
    How a window was divided, and the rendered prompt. Made by `Layout.fit`.

    ``total_tokens``, the tokens of sections without content, and the gap together never exceed the
    window.

    Attributes:
        tokens: The tokens allotted to each section, by its name; 0 if it was dropped.
        used_tokens: The tokens of each section's part of the prompt, by its name: at most its
            share in *tokens*. 0 for a section that only reserves tokens.
        free_tokens: The tokens allotted to no section.
        dropped_sections: The names of the sections dropped because the minimum sizes of all did
            not fit, in the order of dropping.
        cut_sections: The names of the sections that are only partly in the prompt, or not at all
            because their share is too small for any part.
        messages: The prompt: the sections' messages in their order. Texts are messages in OpenAI's
            shape, whatever the model; a caller's messages are the same objects. The items are
            typed Any because each client takes only its own TypedDicts.
        tools: The tool schemas to send with it, typed Any for the same reason.
        total_tokens: The count of exactly these messages and tools, by `count_messages` and
            `count_tools`.
        is_exact: Whether the counter is exact and no part of the sections' messages was estimated,
            such as audio or an image of unknown size, nor what stands around them, as for
            `MessageCount`.

    Examples:
        >>> sections = [Section("system", "Be brief."), Section("answer", tokens=20)]
        >>> allocation = Layout(40, sections).fit()
        >>> allocation.tokens, allocation.total_tokens
        ({'system': 7, 'answer': 20}, 10)
        >>> allocation.messages
        [{'role': 'system', 'content': 'Be brief.'}]

    """

    tokens: dict[str, int]
    used_tokens: dict[str, int]
    free_tokens: int
    dropped_sections: list[str]
    cut_sections: list[str]
    messages: list[Sent] = field(repr=False)
    tools: list[Sent] = field(repr=False)
    total_tokens: int
    is_exact: bool

    def to_dict(self) -> dict[str, Any]:
        """
        Return the figures and names as plain data for a log, without the prompt.

        Examples:
            >>> Layout(9, [Section("query", "tea")]).fit().to_dict()["used_tokens"]
            {'query': 5}

        """
        return {
            "tokens": dict(self.tokens),
            "used_tokens": dict(self.used_tokens),
            "free_tokens": self.free_tokens,
            "dropped_sections": list(self.dropped_sections),
            "cut_sections": list(self.cut_sections),
            "total_tokens": self.total_tokens,
            "is_exact": self.is_exact,
        }

    def report(self) -> str:
        """
        Return a page that shows the tokens of each section: one HTML file.

        It needs no network, and has none of the texts. `Packing.report` says more of chunks.

        Examples:
            >>> page = Layout(9, [Section("query", "tea")]).fit().report()
            >>> "<h1>What is in the window?</h1>" in page
            True

        """
        from budgeteer._layout.shown import report_of
        from budgeteer._report.page import page

        return page(report_of(self))

    def _repr_html_(self) -> str:
        """Show the sections in a notebook."""
        from budgeteer._layout.shown import report_of
        from budgeteer._report.small import small

        return small(report_of(self))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, and write what `to_dict` returns."""
        return instance_schema(cls, cls.to_dict)


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Layout:
    """
    Divides a context window among sections as CSS Flexbox divides a line, and never overflows it.

    Each section starts from its basis. Free tokens go to the sections that grow, and missing ones
    are taken from those that shrink, within their limits, in whole tokens that sum exactly. The
    algorithm is that of CSS Flexbox, section 9.7, except where CSS would overflow: shrink factors
    that sum below 1 count as 1, and if the minimum sizes of all sections do not fit, whole
    sections are dropped by priority. While no further section is dropped, a larger window takes at
    most one token, of rounding, from any section.

    *gap* is subtracted first, and if there may be messages, what primes the reply and what the
    model's chat template writes before the first: by OpenAI's rule 3 tokens. A section pays for
    its own messages and tools, with all they cost beside their texts.

    Immutable, safe to share between threads, picklable unless the counter or something in a
    section is not: a fill, a packer, a corpus in memory.

    Args:
        context_window: The window in tokens; or a model's name or limits, which give the window,
            the counter by default, and the bound ``max_input_tokens`` of the prompt.
        sections: The sections, in the order of the prompt.
        gap: Tokens to keep free as a margin, 0 by default.
        counter: The counter, as for `count_messages`. None takes the model's, or ``o200k_base``
            without a model.
        model: A model whose own costs apply, as for `count_messages`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, or two sections have
            the same name.
        CounterError: As for `get_counter`.

    Examples:
        >>> layout = Layout(
        ...     400,
        ...     [
        ...         Section("a", tokens=100, grow=1),
        ...         Section("b", tokens=100, grow=3),
        ...         Section("c", tokens=100),
        ...     ],
        ... )
        >>> layout.fit().tokens
        {'a': 125, 'b': 175, 'c': 100}
        >>> query, chunks = "green tea", ["Green tea is not oxidised.", "Coffee is roasted."]
        >>> layout = Layout(
        ...     60,
        ...     [
        ...         Section("system", "Answer from the context.", shrink=0, priority=2),
        ...         Section("context", query=query, chunks=chunks, grow=1),
        ...         Section("query", query, shrink=0, priority=2),
        ...         Section("answer", tokens=20, min_tokens=10, priority=1),
        ...     ],
        ...     gap=2,
        ... )
        >>> allocation = layout.fit()
        >>> allocation.tokens, allocation.total_tokens
        ({'system': 9, 'context': 20, 'query': 6, 'answer': 20}, 33)
        >>> [message["role"] for message in allocation.messages]
        ['system', 'user', 'user']

    """

    context_window: int | str | ModelLimits
    sections: Sequence[Section] = field(repr=False)
    _: KW_ONLY
    gap: int = 0
    counter: Counter | None = None
    model: str | ModelLimits | None = None
    _window: int = field(init=False, repr=False, compare=False)
    _input: int = field(init=False, repr=False, compare=False)
    _model: str = field(init=False, repr=False, compare=False)
    _counter: TokenCounter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        window, most_input, limits = _window(self.context_window)
        model = limits if self.model is None else self.model
        set_field(self, "_window", window)
        set_field(self, "_input", most_input)
        set_field(self, "_model", model_name(model))
        set_field(self, "gap", _validate.tokens("gap", self.gap))
        set_field(self, "_counter", chosen(self.counter, model))
        sections = tuple(_validate.batch("sections", self.sections))
        names = set()
        for i, section in enumerate(sections):
            if not isinstance(section, Section):
                raise InvalidArgumentError(
                    f"sections[{i}] must be a Section, not {_validate.type_name(section)}"
                )
            if section.name in names:
                raise InvalidArgumentError(
                    f"sections[{i}] has the name {section.name[:80]!r} of another section"
                )
            names.add(section.name)
        set_field(self, "sections", sections)

    def fit(self) -> Allocation:
        """
        Divide the window, fill the sections and render the prompt.

        The contents are counted first, each text once. Then chunks are packed and each fill is
        called once, in the order of the sections, unless a section was dropped or has no tokens
        left. The layout is not changed: another call returns the same if the fills do.

        Raises:
            InvalidArgumentError: A message or tool is not of a known shape, or a fill returned a
                wrong type or too many tokens, or chunks cannot be packed; the message names the
                section.
            EmbeddingError: As from `Packer.pack`.
            CounterError: As for `TokenCounter.count`.

        Examples:
            >>> layout = Layout(20, [Section("low", "a b c"), Section("answer", tokens=15,
            ...     shrink=0, priority=1)], counter="words")
            >>> allocation = layout.fit()
            >>> allocation.tokens, allocation.cut_sections
            ({'low': 2, 'answer': 15}, ['low'])

        """
        costs = MessageCosts(self._counter.count, self._model)
        parts = [Part(section, self._counter, costs) for section in self.sections]
        space, sizes, dropped = self._divide(parts, costs.around)
        messages: list[Sent] = []
        tooled = []
        for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            if i in dropped:
                continue
            if part.kind is Kind.TOOLS:
                part.keep_tools(size)
                tooled.append(i)
            else:
                part.render(size)
        for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            if part.kind is Kind.FILL and i not in dropped:
                part.fill(size)
            messages += part.messages
        tools, tool_tokens = self._join(parts, tooled, sizes, dropped, has_system(messages))
        total = sum(part.used for part in parts if part.kind is not Kind.TOOLS) + tool_tokens
        names = [section.name for section in self.sections]
        return Allocation(
            tokens=dict(zip(names, sizes, strict=True)),
            used_tokens={name: part.used for name, part in zip(names, parts, strict=True)},
            free_tokens=space - sum(sizes),
            dropped_sections=[names[i] for i in dropped],
            cut_sections=[
                names[i] for i, part in enumerate(parts) if part.was_cut and i not in dropped
            ],
            messages=messages,
            tools=tools,
            total_tokens=total + (costs.around if messages else 0),
            is_exact=self._counter.is_exact and costs.is_exact,
        )

    def _divide(self, parts: Sequence[Part], around: int) -> tuple[int, list[int], list[int]]:
        """Return the tokens to divide, the size of each part, and the dropped ones in order."""
        sent = [i for i, part in enumerate(parts) if part.kind is not Kind.RESERVED]
        speaks = any(parts[i].kind is not Kind.TOOLS for i in sent)
        apart = self.gap + (around if speaks else 0)
        space = max(0, self._window - apart)
        sizes, dropped = _resolve(space, parts)
        room = max(0, self._input - apart)
        if sum(sizes[i] for i in sent) > room:  # the model's input limit is below its window
            sent = [i for i in sent if i not in dropped]
            fewer, gone = _resolve(room, [parts[i] for i in sent])
            for i, size in zip(sent, fewer, strict=True):
                sizes[i] = size
            dropped += [sent[i] for i in gone]
        return space, sizes, dropped

    def _join(
        self,
        parts: Sequence[Part],
        tooled: list[int],
        sizes: list[int],
        dropped: list[int],
        has_system_message: bool,
    ) -> tuple[list[Sent], int]:
        """
        Return the tools of all sections and their tokens together.

        These exceed the sum of the sections only if a counter counts a text higher than its parts;
        then the section of lowest priority is dropped, as elsewhere.
        """
        while True:
            tools = [tool for i in tooled for tool in parts[i].tools]
            if not tools:
                return tools, 0
            if len(tooled) == 1:
                counted = parts[tooled[0]].used - framed_tools(0, has_system_message=False)
            else:
                counted = self._counter.count(render_tools("tools", tools))
            tokens = framed_tools(counted, has_system_message)
            if tokens <= sum(sizes[i] for i in tooled):
                return tools, tokens
            last = min(tooled, key=lambda i: (parts[i].section.priority, -i))
            tooled.remove(last)
            dropped.append(last)
            sizes[last] = parts[last].used = 0


def _resolve(space: int, parts: Sequence[Part]) -> tuple[list[int], list[int]]:
    """Return the size of each part in *space* tokens, and the dropped ones in order."""
    sections = [part.section for part in parts]
    most = [_validate.MAX_TOKENS if s.max_tokens is None else s.max_tokens for s in sections]
    sizes, dropped, _ = backend.resolve_layout(
        space,
        [
            min(_validate.MAX_TOKENS, p.tokens) if p.section.basis is None else p.section.basis
            for p in parts
        ],
        [section.grow for section in sections],
        [0.0 if part.is_rigid else part.section.shrink for part in parts],
        [max(p.section.min_tokens, min(p.least, m)) for p, m in zip(parts, most, strict=True)],
        most,
        [section.priority for section in sections],
    )
    return sizes, dropped


def _window(window: Any) -> tuple[int, int, ModelLimits | None]:
    """Return a window, its input limit, and the model's limits if a model was given."""
    if _validate.as_int(window) is not None:
        tokens = _validate.tokens("context_window", window)
        return tokens, tokens, None

    if not isinstance(window, (str, ModelLimits)):
        raise InvalidArgumentError(
            "context_window must be an int, the name of a model or its limits, "
            f"not {_validate.type_name(window)}"
        )
    limits = model_limits(window)
    return limits.context_window, limits.max_input_tokens, limits
