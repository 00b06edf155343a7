"""A section of a prompt, and its state while a layout is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._codes import SUM_OF_PARTS
from budgeteer._count.counter import TokenCounter
from budgeteer._layout.select import (
    SELECTS,
    Select,
    checked_names,
    fitting,
    ranked,
    tool_name,
)
from budgeteer._messages.history import History
from budgeteer._messages.keep import Keeper, Rules
from budgeteer._messages.messages import MessageCosts
from budgeteer._messages.shapes import AnyMessage, mapping
from budgeteer._messages.tools import ToolTexts, framed_tools, render_tools
from budgeteer._messages.views import placed
from budgeteer._pack.packer import Packer, prepared_of
from budgeteer._pack.packing import Packing
from budgeteer._pack.prepared import refuse_sticky
from budgeteer._pack.state import Indexed
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

Role: TypeAlias = Literal["system", "developer", "user", "assistant"]
ROLES: tuple[Role, ...] = get_args(Role)
"""The roles that a text may have."""

_SOURCES = ("content", "tokens", "fill", "chunks")

_ENDS = ("_call", "_output")
"""How the types of items of OpenAI's Responses end, and those of no tool."""

Fill: TypeAlias = Callable[[int], Packing[Any] | Sequence[AnyMessage] | str]


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Section:
    """
    A part of a prompt, and how its share of the window may grow and shrink.

    It has *content*, *chunks* or *fill*, or none of them. With none it only reserves tokens, such
    as those of the answer.

    Args:
        name: Its name, different from that of any other section of the layout.
        content: A text, messages of any provider, or tool schemas. A text is cut at its
            end to the section's share, never within a grapheme cluster; messages are trimmed as by
            `trim_messages`. Tools never shrink, as a model that lacks a tool behaves differently:
            all are in, or the section is dropped by priority. Only if *basis* or *max_tokens* is
            below their count, the first ones that fit stay. With *select* they shrink.
        tokens: A number of tokens to reserve.
        fill: A function that takes a number of tokens and returns a `Packing`, messages or a text
            of at most that size by the layout's counter. The cost of a message beside its text is
            already subtracted from that number.
        query: The question to pack *chunks* or to *select* tools for, required with them; empty
            where the ranking needs none.
        chunks: The chunks to pack into the section's share, as for `Packer.pack`.
        packer: The options to pack *chunks* with. The layout's counter replaces the packer's own,
            and its ``max_tokens`` is a bound beside the section's share. None takes the default
            options and no bound.
        basis: The tokens to start from. None takes *tokens*, or the count of the content with the
            full cost of its messages; a fill and chunks start at 0.
        grow: Its weight when free tokens are shared: 0, or from 0.000001 to 10000, rounded to a
            millionth.
        shrink: Its weight, times its basis, when missing tokens are taken away; the same range.
            With 0 the section never shrinks: it has its basis, or is dropped by priority.
        min_tokens: Its minimum size.
        max_tokens: Its maximum size; None for no limit.
        priority: If the minimum sizes of all sections do not fit, sections of the lowest priority
            are dropped first, and the last of equal ones.
        role: The role of a text: ``system``, ``developer``, ``user`` or ``assistant``. None takes
            the section's name if it is one of these, else ``user``, as retrieved text must not
            speak with the authority of the system. With one, a fill must not answer messages.
        previous: For messages, what was kept of them last time, as for `trim_messages`. The
            ``messages`` of the last `Allocation` will do, as those of other sections are passed
            over; an empty list the first time.
        step: For messages, the share of the section's tokens that a cut frees, as for
            `trim_messages`.
        keep_results: For messages, how many of the newest tool results are never masked, as for
            `trim_messages`.
        select: ``"bm25"`` chooses among tools that are too many for the section's share: those of
            *keep* first, then those whose name, description and parameters match *query* best by
            BM25, each with its whole schema, in the order of *content*. They are counted together,
            as they are rendered. None, the default, takes all or the first ones.
        keep: The names of the tools that *select* takes first. The section is at least as large
            as they are, unless *max_tokens* is less: then those that fit stay.

    Raises:
        InvalidArgumentError: An argument has a wrong type, is out of range or contradicts another.

    Examples:
        >>> from budgeteer import Layout
        >>> system = Section("system", "Be brief.", shrink=0)
        >>> answer = Section("answer", tokens=1_000, min_tokens=300)
        >>> context = Section("context", query="tea", chunks=["Green tea."], grow=1)
        >>> Layout(20, [context]).fit().messages
        [{'role': 'user', 'content': 'Green tea.'}]
        >>> today = Section("today", grow=1, fill=lambda max_tokens: "It is Monday.")
        >>> tools = [
        ...     {"name": "search_files", "description": "Find files by their names"},
        ...     {"name": "send_mail", "description": "Send a mail"},
        ... ]
        >>> section = Section("tools", tools, select="bm25", query="Which file is it?")
        >>> [tool["name"] for tool in Layout(33, [section]).fit().tools]
        ['search_files']

    """

    name: str
    content: str | Sequence[AnyMessage] | None = field(default=None, repr=False)
    _: KW_ONLY
    tokens: int | None = None
    fill: Fill | None = field(default=None, repr=False)
    query: str | None = field(default=None, repr=False)
    chunks: Iterable[Any] | Indexed[Any] | None = field(default=None, repr=False)
    packer: Packer | None = field(default=None, repr=False)
    basis: int | None = None
    grow: float = 0.0
    shrink: float = 1.0
    min_tokens: int = 0
    max_tokens: int | None = None
    priority: int = 0
    role: Role | None = None
    previous: Sequence[AnyMessage] | None = field(default=None, repr=False)
    step: float | None = None
    keep_results: int | None = None
    select: Select | None = None
    keep: Sequence[str] = ()

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "name", _validate.text("name", self.name))
        if not self.name:
            raise InvalidArgumentError("name must not be empty")
        set_field(self, "content", _content(self.content))
        if self.fill is not None and not callable(self.fill):
            raise InvalidArgumentError(
                f"fill must be a callable that takes max_tokens, "
                f"not {_validate.type_name(self.fill)}"
            )
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidArgumentError(
                f"a section has one of content, tokens, fill and chunks, not both {given[0]} and "
                f"{given[1]}; basis is where its tokens start from"
            )
        self._check_chunks()
        for name in ("tokens", "basis", "max_tokens"):
            if getattr(self, name) is not None:
                set_field(self, name, _validate.tokens(name, getattr(self, name)))
        set_field(self, "min_tokens", _validate.tokens("min_tokens", self.min_tokens))
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidArgumentError(
                f"min_tokens must be at most the max_tokens {self.max_tokens}, "
                f"not {self.min_tokens}"
            )
        set_field(self, "grow", _factor("grow", self.grow))
        set_field(self, "shrink", _factor("shrink", self.shrink))
        set_field(self, "priority", _priority(self.priority))
        if self.role is not None:
            set_field(self, "role", _validate.choice("role", self.role, ROLES))
            if Kind.of(self) not in (Kind.TEXT, Kind.FILL):
                raise InvalidArgumentError(
                    "role is for a text, for chunks, or for a fill that answers a text"
                )
        self._check_rules()

    def _check_rules(self) -> None:
        """Check what says how messages are trimmed."""
        rules = Rules.of(self.previous, self.step, self.keep_results)
        if Kind.of(self) is not Kind.MESSAGES:
            for name in ("previous", "step", "keep_results"):
                if getattr(self, name) is not None:
                    raise InvalidArgumentError(
                        f"{name} is for a section whose content is messages: a fill may trim its "
                        "own by trim_messages"
                    )
        if rules.previous is not None:
            object.__setattr__(self, "previous", tuple(rules.previous))
        object.__setattr__(self, "step", rules.step)
        object.__setattr__(self, "keep_results", rules.keep_results)

    def _check_select(self) -> None:
        """Check select and keep, which are for tools and need a query."""
        if self.select is None:
            if self.keep != ():
                raise InvalidArgumentError("keep is for tools that select='bm25' chooses among")
            return
        _validate.choice("select", self.select, SELECTS)
        if Kind.of(self) is not Kind.TOOLS:
            raise InvalidArgumentError("select is for a content of tools")
        if self.query is None:
            raise InvalidArgumentError("query is required with select")
        object.__setattr__(self, "query", _validate.text("query", self.query))
        content: Any = self.content
        names = [tool_name(f"content[{i}]", tool) for i, tool in enumerate(content)]
        object.__setattr__(self, "keep", checked_names(self.keep, names))

    def _check_chunks(self) -> None:
        """Check query, chunks and packer, and keep a copy of the chunks."""
        self._check_select()
        if self.chunks is None:
            for name in ("query", "packer"):
                if getattr(self, name) is not None and (name, self.select) != ("query", "bm25"):
                    raise InvalidArgumentError(f"{name} is for chunks, which are not given")
            return
        if self.query is None:
            raise InvalidArgumentError(
                "query is required with chunks; '' is for a ranking that needs none"
            )
        object.__setattr__(self, "query", _validate.text("query", self.query))
        if not isinstance(self.chunks, Indexed):
            items = tuple(_validate.batch("chunks", self.chunks))
            object.__setattr__(self, "chunks", items)
        if self.packer is None:
            return
        if not isinstance(self.packer, Packer):
            raise InvalidArgumentError(
                f"packer must be a Packer or None, not {_validate.type_name(self.packer)}"
            )
        refuse_sticky(self.packer, "in a section")
        ranking = prepared_of(self.packer).ranking
        if ranking.needs.cosines and ranking.embedder is None:
            raise InvalidArgumentError(
                f"packer ranks by vectors under {ranking.shown} and has no embedder: give the "
                "ranking one, or the section a fill that packs with vectors"
            )


class Kind(Enum):
    """The kind of a section."""

    RESERVED = 0
    TEXT = 1
    MESSAGES = 2
    TOOLS = 3
    FILL = 4

    @classmethod
    def of(cls, section: Section) -> Kind:
        """Return the kind of *section*; the first of messages is one, that of tools is not."""
        content = section.content
        if section.fill is not None or section.chunks is not None:
            return cls.FILL
        if content is None:
            return cls.RESERVED
        if isinstance(content, str):
            return cls.TEXT
        if not content:  # only what is asked of it says what it would have
            return cls.MESSAGES if section.select is None else cls.TOOLS
        return cls.MESSAGES if _is_message(content[0]) else cls.TOOLS


def _is_message(item: Any) -> bool:
    """Return whether *item* is a message of any provider or framework, rather than a tool."""
    fields = mapping("content[0]", item)
    view = placed("content[0]", item)
    if view is None or view.shape in ("chat", "item", "output"):
        kind = fields.get("type")
        is_item = isinstance(kind, str) and (kind.endswith(_ENDS) or kind == "reasoning")
        return "role" in fields or is_item
    return True


class Part:
    """A section while a layout is fitted: its tokens and its outcome."""

    __slots__ = (
        *("costs", "counter", "each", "history", "items", "kind", "least", "messages", "role"),
        *("section", "tokens", "tools", "used", "was_cut", "where"),
    )

    def __init__(self, section: Section, counter: TokenCounter, costs: MessageCosts) -> None:
        """Count the content of the section."""
        self.section, self.counter, self.costs = section, counter, costs
        self.kind = Kind.of(section)
        self.role = section.role or (section.name if section.name in ROLES else "user")
        self.where = f"section {section.name[:80]!r}: content"
        self.items: Sequence[AnyMessage] = ()
        self.messages: Sequence[AnyMessage] = ()
        self.tools: Sequence[AnyMessage] = ()
        self.used = self.tokens = self.least = 0
        self.was_cut = False
        content: Any = section.content
        if self.kind is Kind.RESERVED:
            self.tokens = section.tokens or 0
        elif self.kind is Kind.TEXT:
            self.tokens = self._text_tokens(content)
        elif self.kind is Kind.MESSAGES:
            self.history = History.read(self.where, content)
            self.items = content = self.history.complete(content)
            self.each = {
                i: costs.of(f"{self.where}[{i}]", content[i])
                for i in (*self.history.system, *self.history.others)
            }
            self.tokens = sum(self.each.values())
            self.least = sum(self.each[i] for i in self.history.system)
        elif self.kind is Kind.TOOLS:
            self.tokens = self._tool_tokens(content)
            if section.select is not None:
                kept = [t for t in content if tool_name(self.where, t) in section.keep]
                self.least = self._tool_tokens(kept)

    @property
    def is_rigid(self) -> bool:
        """Whether it never shrinks, as tools that are not selected."""
        return self.kind is Kind.TOOLS and self.section.select is None

    @property
    def _frame(self) -> int:
        return self.costs.frame(self.role)

    def _text_tokens(self, text: str) -> int:
        return self._frame + self.counter.count(text) if text else 0

    def _tool_tokens(self, tools: Sequence[AnyMessage], known: ToolTexts | None = None) -> int:
        counted = self.counter.count(render_tools(self.where, tools, known)) if tools else 0
        return framed_tools(counted, has_system_message=False) if tools else 0

    def _say(self, text: str, used: int) -> None:
        self.messages = ({"role": self.role, "content": text},)
        self.used = used

    def render(self, size: int) -> None:
        """Render as much of the content as fits into *size* tokens."""
        content: Any = self.section.content
        if self.kind is Kind.MESSAGES:
            self._trim(size)
        elif self.kind is Kind.TEXT and content:
            self.was_cut = size < self.tokens
            if not self.was_cut:
                self._say(content, self.tokens)
            elif size > self._frame:
                cut = self.counter.truncate(content, size - self._frame)
                used = self._text_tokens(cut)
                if cut and used <= size:  # an impure counter may count it differently
                    self._say(cut, used)

    def _cost(self, i: int, message: AnyMessage, _: int) -> int:
        """Return the tokens of a message of the content, or of what was kept of it last time."""
        if message is self.items[i]:
            return self.each[i]
        return self.costs.of(f"{self.where}[{i}]", message)

    def _trim(self, size: int) -> None:
        """Keep the messages that fit into *size* tokens."""
        content = self.items
        room = size - self.least
        if room < 0:
            self.was_cut = True
            return
        section, history = self.section, self.history
        rules = Rules(section.previous, section.step, section.keep_results)
        keeper = Keeper(
            *(self.where, content, history, rules, self.costs, self.counter),
            self._cost,
        )
        kept = keeper.keep(size, room)
        places = sorted([*history.system, *kept.tokens])
        self.messages = [kept.messages.get(i, content[i]) for i in places]
        self.used = self.least + sum(kept.tokens.values())
        is_whole = all(item is content[i] for i, item in kept.messages.items())
        self.was_cut = len(places) < len(content) or not is_whole or bool(history.partial)

    def keep_tools(self, size: int) -> None:
        """Keep the tools that fit into *size* tokens: those selected, or the first ones."""
        tools: Any = self.section.content
        if self.tokens <= size:
            self.tools, self.used = tools, self.tokens
            return
        self.was_cut = True
        section = self.section
        if section.select is not None:
            order = ranked(self.where, tools, section.query or "", section.keep)
            known: ToolTexts = dict.fromkeys(map(id, tools))  # each is tried with many others
            chosen = fitting(
                order, lambda places: self._tool_tokens([tools[i] for i in places], known) <= size
            )
            self.tools = [tools[i] for i in chosen]
            self.used = self._tool_tokens(self.tools)
            return
        low, high = 0, len(tools) - 1
        while low < high:
            middle = (low + high + 1) // 2
            tokens = self._tool_tokens(tools[:middle])
            if tokens <= size:
                low, self.used = middle, tokens
            else:
                high = middle - 1
        self.tools = tools[:low]

    def fill(self, size: int) -> None:
        """Pack the chunks, or call the fill, for *size* tokens."""
        room = size - self._frame
        if room <= 0:
            self.was_cut = True
            return
        section = self.section
        where = f"the fill of section {section.name[:80]!r}"
        answer: Any = self._packed(room) if section.fill is None else section.fill(room)
        text = answer.text if isinstance(answer, Packing) else answer
        if isinstance(text, str):
            text = _validate.text(where, text)
            if not text:
                return
            tokens = self.counter.count(text)
            if tokens > room:
                raise InvalidArgumentError(
                    f"{where} answered a text of {_validate.shown(tokens)} tokens, more than the "
                    f"{room} that it was asked for{self._other_counter(answer)}"
                )
            self._say(text, self._frame + tokens)
            return
        if isinstance(answer, (bytes, bytearray, Mapping)) or not isinstance(answer, Iterable):
            raise InvalidArgumentError(
                f"{where} must answer a Packing, messages or a str, "
                f"not {_validate.type_name(answer)}"
            )
        items = list(answer)
        if items and section.role is not None:
            raise InvalidArgumentError(
                f"{where} answered messages, which have roles of their own: role is for a text"
            )
        used = sum(self.costs.of(f"{where}: [{i}]", item) for i, item in enumerate(items))
        if used > size:
            raise InvalidArgumentError(
                f"{where} answered messages of {_validate.shown(used)} tokens, more than the "
                f"{size} of its section"
            )
        self.messages, self.used = items, used

    def _packed(self, room: int) -> Packing[Any]:
        """Return the chunks packed into *room* tokens of the layout's counter."""
        section, most = self.section, _validate.MAX_TOKENS
        try:
            packer = replace(section.packer or Packer(most), counter=self.counter)
            return packer.pack(
                *(section.query, section.chunks),  # type: ignore[arg-type]  # both are given
                max_tokens=min(room, packer.max_tokens),
            )
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"section {section.name[:80]!r}: {error}") from error

    def _other_counter(self, answer: object) -> str:
        """Return what to say of a packing that is too large: why, and what to do."""
        ours = self.counter
        if isinstance(answer, str):
            return f", counted by {ours.name[:80]!r}, the counter of the layout"
        prepared = getattr(answer, "_prepared", None)  # a pickled packing has none
        if prepared is None:
            return ""
        if prepared.counter == ours:
            if prepared.policy[0] != SUM_OF_PARTS:
                return ""
            return ": a context_router overruns its budget, and a Packer does not"
        return (
            f": its packer counts by {prepared.counter.name[:80]!r}, the layout by "
            f"{ours.name[:80]!r}; give the packer the layout's counter, or the section query, "
            "chunks and packer in place of fill"
        )


def _content(content: Any) -> Any:
    """Return the content of a section, with a copy of a sequence."""
    if content is None:
        return None
    if isinstance(content, str):
        return _validate.text("content", content)
    if isinstance(content, (bytes, bytearray, Mapping)) or not isinstance(content, Iterable):
        raise InvalidArgumentError(
            f"content must be a str, messages or tools, not {_validate.type_name(content)}"
        )
    items = tuple(content)
    for i, item in enumerate(items):
        mapping(f"content[{i}]", item)
    return items


def _factor(name: str, value: object) -> float:
    factor = _validate.number(name, value)
    if factor != 0 and not 0.000001 <= factor <= 10_000:
        raise InvalidArgumentError(f"{name} must be 0 or from 0.000001 to 10000, not {factor!r}")
    return factor


def _priority(value: object) -> int:
    number = _validate.as_int(value)
    if number is None:
        raise InvalidArgumentError(f"priority must be an int, not {_validate.type_name(value)}")
    least, most = -_validate.MAX_TOKENS - 1, _validate.MAX_TOKENS
    if not least <= number <= most:
        raise InvalidArgumentError(
            f"priority must be from {least} to {most}, not {_validate.shown(number)}"
        )
    return number
