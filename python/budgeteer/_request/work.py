"""One request while it is fitted: what everything in it takes, and what is sacrificed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._count.counter import TokenCounter
from budgeteer._count.limits import ModelLimits, model_limits
from budgeteer._layout.select import fitting, ranked, tool_name
from budgeteer._messages.frames import Frame, frame_of, weakest
from budgeteer._messages.mask import MASK
from budgeteer._messages.messages import Message, MessageCosts
from budgeteer._messages.previous import same, stable
from budgeteer._messages.tools import ToolTexts
from budgeteer._messages.turn import MARKER
from budgeteer._messages.views import placed, without_results
from budgeteer._request.history import Order, order_of
from budgeteer._request.parts import Cost, answer_costs, chosen_names, schema_cost, tool_cost
from budgeteer._request.past import Counted, Past
from budgeteer._request.read import Reading, read_item, texts_of, with_fields
from budgeteer._request.result import (
    Action,
    FittedRequest,
    RequestChange,
    RequestReport,
    SectionName,
    SectionTokens,
)
from budgeteer._request.state import LEAST_CUT, Entry, Result, alive, cut, level
from budgeteer._request.template import SOURCE, ChatTemplate
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

Sacrifice: TypeAlias = Literal["mask_results", "cut_results", "history", "chunks"]
SACRIFICES: tuple[Sacrifice, ...] = get_args(Sacrifice)

_REASONS = {
    "orphan": "its call is missing",
    "turn": "an old turn of the history",
    "masked": "an old tool result",
    "cut": "a large tool result",
    "chunks": "no room for more chunks",
    "empty": "no chunk fits",
    "before": "as in the previous request",
    "tool": "other tools match the query better",
}

_WITH_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
"""What providers refuse in a request without tools."""

_INSTRUCTIONS = ("system", "instructions", "system_instruction", "systemInstruction")
_LEADING = (*_INSTRUCTIONS, "tools", "functions", "config")
"""What a provider reads before the messages."""

_SYSTEM = "request's system_instruction"

_IS_EXACT, _MEDIA_BASIS = attrgetter("is_exact"), attrgetter("media_basis")

_BY_TEMPLATE = Frame("bound", SOURCE, special=0, has_role=False, per_name=0, reply=0)


class Work:
    """One request under way."""

    def __init__(
        self,
        reading: Reading,
        name: str,
        counter: TokenCounter,
        template: ChatTemplate | None = None,
        extra: int = 0,
        previous: FittedRequest | None = None,
        *,
        carries: bool = True,
    ) -> None:
        """
        Count all that it has.

        *extra* is what a template writes beyond what it did before; *carries* says whether to do
        again what was done to the messages of *previous*.
        """
        self.reading, self.counter, self.template = reading, counter, template
        self.name = name
        self.extra = extra
        self.frame: Frame = frame_of(name) if template is None else _BY_TEMPLATE
        self._count = count = counting(counter)
        self.costs = MessageCosts(count, name, self.frame)
        system = self._instructions = _system(reading)
        self.system = 0 if system is None else _system_cost(self.costs, reading, system)
        past = None if previous is None else previous._past  # noqa: SLF001 - of this package
        counted = None if past is None or template is not None else past.counted
        is_exact, media_basis = self.costs.is_exact, self.costs.media_basis
        self.entries = [
            (counted and counted.entry(item, counter, name)) or Entry(item, self.costs, count)
            for item in reading.items
        ]
        self.is_exact = is_exact and all(map(_IS_EXACT, self.entries))
        self.media_basis = weakest({media_basis, *map(_MEDIA_BASIS, self.entries)})
        for i in reading.history.orphans:
            self.entries[i].gone = "orphan"
        self.previous = previous
        self.counted: Counted | None = None
        if previous is not None and template is None:
            self.counted = Counted.of(reading, self.entries, counter, name)
        self.goes_on = True
        if past is not None and carries:
            self.entries = [*self.entries]
            self._carry(past.pairs())
            self.goes_on = self.goes_on and len(past.given) <= len(self.entries)
        if reading.history.partial:
            self.entries = [*self.entries]
            self._leave_orphans()
        self.parted = [
            entry
            for entry in self.entries
            if entry.results
            or entry.media
            or entry.lost is not None
            or entry.item.section is not None
        ]
        self.has_system = self._finds_system()
        self.chosen: Sequence[int] = range(len(reading.tools))
        self._tool_texts: ToolTexts | None = None
        self.tools: Cost = self._tool_cost(self.chosen)
        self.tools_before = self.tools.tokens
        self.schema: Cost = schema_cost(reading, count)
        self.around = self.costs.around if self.entries or system is not None else 0
        if template is not None:  # of what was given, whatever left it before
            given = self.fixed + sum(entry.before for entry in self.entries)
            self.around += self._as_rendered(reading, self.entries) - given
        self.around_before = self.around
        self.around += extra
        self.has_sections = reading.section is not None or any(
            item.section is not None for item in reading.items
        )
        self.is_changed = bool(reading.history.orphans) or self.has_sections
        if previous is not None or reading.history.partial:
            self.is_changed |= any(e.gone is not None or e.lost is not None for e in self.entries)

    @cached_property
    def order(self) -> Order:
        """What may be left out, and in which order."""
        return order_of(self.reading.history)

    def _carry(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Do again what was done to the messages of the previous request."""
        for i, (entry, (given, made)) in enumerate(zip(self.entries, pairs, strict=False)):
            if entry.item.section is not None:
                continue
            is_same = same(entry.item.value, given)
            # Where chunks were, another message may be in the next turn.
            if not is_same and read_item(self.reading.key, i, given).section is None:
                self.goes_on = False
            if entry.gone is not None:
                continue
            if not is_same:
                break
            if made is None:
                entry.gone = "before"
            elif made is not given:
                self._change(i, made, "before")
        self._keep_pairs()

    def _leave_orphans(self) -> None:
        """Leave out the results whose calls are missing of messages that hold more."""
        for i, numbers in self.reading.history.partial.items():
            entry = self.entries[i]
            if entry.lost is None:  # else it was done for the previous request
                self._change(i, without_results(entry.item.value, numbers), "orphan")

    def _change(self, place: int, made: Any, reason: str) -> None:
        """Let the message at a place be *made*, which is less of it."""
        before = self.entries[place].before
        changed = Entry(read_item(self.reading.key, place, made), self.costs, self._count)
        changed.lost, changed.lost_by = before - changed.before, reason
        changed.gone = self.entries[place].gone  # what left with its turn does not come back
        self.entries[place] = changed

    def _keep_pairs(self) -> None:
        """Separate no call from a result that came since, and leave out nothing that must stay."""
        for block in self.reading.history.blocks():
            if any(self.entries[i].gone for i in block):
                for i in block:
                    self.entries[i].gone = "before" if i in self.order.optional else None

    def rendered(self, reading: Reading) -> int:
        """Return the tokens of the request that *reading* is of, as the template renders it."""
        return self._as_rendered(reading, alive(self.entries))

    def _as_rendered(self, reading: Reading, entries: Iterable[Entry]) -> int:
        """Return the same for a request whose messages have these *entries*."""
        assert self.template is not None  # noqa: S101 - callers have asked
        text = self.template.render(reading, self._instructions, reading.tools)
        media = sum(entry.media for entry in entries)
        return self.counter.count(text) + media + self.schema.tokens

    def _tool_cost(self, places: Sequence[int]) -> Cost:
        """Return the cost of the tools at these places."""
        reading = self.reading
        tools = [reading.tools[i] for i in places]
        if self.template is not None:
            text, without = (
                self.template.render(reading, self._instructions, given) for given in (tools, ())
            )
            tokens = self.counter.count(text) - self.counter.count(without)
            return Cost(max(0, tokens), "bound", SOURCE)
        count, known = self.counter.count, self._tool_texts
        return tool_cost(reading, tools, self.name, count, self.frame, self.has_system, known)

    def _finds_system(self) -> bool:
        """Return whether instructions or a system message stay."""
        return self._instructions is not None or any(
            entry.item.is_system and entry.gone is None for entry in self.entries
        )

    @property
    def fixed(self) -> int:
        """The tokens of all that is not messages."""
        return self.system + self.tools.tokens + self.schema.tokens + self.around

    @property
    def total(self) -> int:
        parts = [e.result_tokens + e.chunk_tokens for e in self.parted if e.gone is None]
        return self.fixed + sum(parts) + sum([e.fixed for e in self.entries if e.gone is None])

    def limit(
        self,
        model: str | ModelLimits | None,
        context_window: int | None,
        max_output_tokens: int | None,
        step: float,
    ) -> None:
        """Read the window and what is reserved of it."""
        self.step = step
        output = max_output_tokens
        if output is not None:
            output = _validate.tokens("max_output_tokens", output)
        self.reasoning, self.reply = answer_costs(self.reading, output)
        reserved = self.reasoning.tokens + self.reply.tokens
        if context_window is not None:
            self.window = _validate.tokens("context_window", context_window)
            self.most = self.window - reserved
        elif model is None:
            raise InvalidArgumentError(
                "the window is not known: give model, context_window, or a request with 'model'"
            )
        else:
            limits = model_limits(model)
            self.window = limits.context_window
            self.most = min(limits.max_input_tokens, self.window - reserved)

    def share_frames(self) -> Work:
        """Give each message its share of what a template writes around all: both leave as one."""
        share = max(0, self.around_before) // len(self.entries) if self.entries else 0
        for entry in self.entries:
            entry.fixed += share
        self.around -= share * len(self.entries)
        self.around_before -= share * len(self.entries)
        return self

    def fit(self, steps: Sequence[Sacrifice]) -> FittedRequest:
        """Sacrifice what the steps allow until it fits."""
        self._select_tools()
        self._pack_chunks()
        over = self.total - self.most
        spare = int(self.step * self.most) if over > 0 else 0
        over += spare
        for step in steps:
            if over > 0:
                over = getattr(self, f"_{step}")(over)
        over -= spare
        results = self._open_results() if "cut_results" in steps else []
        if over > 0 and results:
            over = self._lower(results, over, self.counter.count(MARKER))
        if over <= 0 and any(result.tokens < result.before for result in results):
            # What was planned is the most that is cut: history that went may have left room.
            free = max(0, -over - spare)
            room = sum(result.tokens for result in results) + free
            cut(results, room, self.counter, self._query())
        if self.total > self.most:
            raise self.exhausted()
        return self.answer(self._made())

    def _select_tools(self) -> None:
        """Choose among the tools, as far as what must stay leaves room."""
        section, tools = self.reading.section, self.reading.tools
        if section is None:
            return
        needed = (
            self.fixed
            - self.tools.tokens
            + sum(
                entry.fixed + sum(min(result.tokens, LEAST_CUT) for result in entry.results)
                for i, entry in enumerate(self.entries)
                if i not in self.order.optional and entry.gone is None
            )
        )
        room = self.most - needed
        if section.max_tokens is not None:
            room = min(room, section.max_tokens)
        if self.tools.tokens <= room:
            return
        self._tool_texts = dict.fromkeys(map(id, tools))  # each is tried with many others
        where = "request['tools']"
        keep = (*section.keep, *chosen_names(self.reading))
        kept = [i for i, tool in enumerate(tools) if tool_name(where, tool) in keep]
        room = max(room, self._tool_cost(kept).tokens)
        order = ranked(where, tools, section.query or "", keep)
        self.chosen = fitting(order, lambda places: self._tool_cost(places).tokens <= room)
        self.tools = self._tool_cost(self.chosen)

    def _pack_chunks(self) -> None:
        """Give sections of chunks what they ask for, as far as what must stay leaves room."""
        waiting = [entry for entry in self.entries if entry.item.section is not None]
        if not waiting:
            return
        stay = [e for i, e in enumerate(self.entries) if i not in self.order.optional]
        for entry in waiting:
            needed = sum(e.fixed + e.chunk_tokens for e in stay if e.gone is None)
            room = max(0, self.most - self.fixed - needed)
            entry.pack(max(0, self.most), self.counter)
            entry.chunk_before = entry.chunk_tokens
            if entry.chunk_tokens > room:
                entry.pack(room, self.counter)
            if not entry.chunks:
                self._leave_empty(entry)

    def _leave_empty(self, entry: Entry) -> None:
        """Leave out a message that is nothing but a section without chunks."""
        content = entry.item.view.fields.get("content")
        if entry.item.at is None or not isinstance(content, (list, tuple)) or len(content) == 1:
            entry.gone = "empty"
            if entry.item.is_system:  # beside which tools take less
                self.has_system = self._finds_system()
                self.tools = self._tool_cost(self.chosen)
                self._select_tools()

    def _mask_results(self, over: int) -> int:
        """Mask old tool results, and return how many tokens are still too many, as all steps."""
        tokens = self._count(MASK)
        for entry in self.parted:
            if entry.gone is not None or entry.item.number in self.order.newest:
                continue
            for result in entry.results:
                if over <= 0:
                    return over
                if tokens < result.tokens:
                    over -= result.tokens - tokens
                    result.is_masked, result.tokens = True, tokens
        return over

    def _query(self) -> str | None:
        """Return the newest question of the user, which what stays of a result should answer."""
        place = self.reading.history.question
        if place is None:
            return None
        return "\n".join(texts_of(self.reading.items[place].fields.get("content")))

    def _open_results(self) -> list[Result]:
        """Return the tool results that may be cut."""
        return [r for entry in alive(self.parted) for r in entry.results if not r.is_masked]

    def _cut_results(self, over: int) -> int:
        return self._lower(self._open_results(), over, LEAST_CUT)

    @staticmethod
    def _lower(results: Sequence[Result], over: int, floor: int) -> int:
        """Plan to cut the largest results, to no fewer than *floor* tokens."""
        most = level(results, over, floor)
        for result in results:
            if result.tokens > most:
                over -= result.tokens - most
                result.tokens = most
        return over

    def _history(self, over: int) -> int:
        for group in self.order.groups:
            if over <= 0:
                break
            for i in group:
                over -= self.entries[i].tokens
                self.entries[i].gone = "turn"
        return over

    def _chunks(self, over: int) -> int:
        for entry in reversed(self.entries):
            section = entry.item.section
            if section is None or entry.gone is not None or over <= 0:
                continue
            before = self.total
            room = max(section.min_tokens, entry.chunk_tokens - over)
            if room < entry.chunk_tokens:
                entry.pack(room, self.counter)
                if not entry.chunks:
                    self._leave_empty(entry)
            over -= before - self.total
        return over

    def _made(self) -> Message:
        """Return a copy of the request with what stays."""
        for entry in alive(self.parted):
            for result in entry.results:
                result.text = MASK if result.is_masked else result.text
        made = [
            entry.made() if entry.results or entry.chunks is not None else entry.item.value
            for entry in self.entries
            if entry.gone is None
        ]
        key = self.reading.key
        given = self.reading.request[key]
        fields: dict[str, Any] = {}
        if self.reading.section is not None:
            fields["tools"] = [self.reading.tools[i] for i in self.chosen]
        items = _listed(given)
        if len(made) != len(items) or any(a is not b for a, b in zip(made, items, strict=True)):
            fields[key] = tuple(made) if isinstance(given, tuple) else made
        if not fields:
            return self.reading.request
        answer = with_fields(self.reading.request, fields)
        if fields.get("tools") == []:
            for name in _WITH_TOOLS:
                answer.pop(name, None)
        return answer

    def answer(self, request: Message) -> FittedRequest:
        """Return the request with its report."""
        is_empty = self._instructions is None and not any(alive(self.entries))
        if is_empty and self.template is None:  # which was asked what it writes around nothing
            self.around = 0
        changes: list[RequestChange] = []
        if len(self.chosen) < len(self.reading.tools):
            left = [i for i in range(len(self.reading.tools)) if i not in self.chosen]
            changes += [
                RequestChange(f"tools[{i}]", "left_out", _REASONS["tool"], self._alone(i), 0)
                for i in left
            ]
        for entry in self.entries:
            if entry.gone or entry.results or entry.lost is not None or entry.chunks is not None:
                _add_changes(changes, entry)
        is_by_rule = all(
            cost.basis == "published rule" for cost in (self.frame, self.tools, self.schema)
        )
        sections = self._sections()
        reserved = self.reasoning.tokens + self.reply.tokens
        total = sum(section.tokens for section in sections.values()) - reserved
        report = RequestReport(
            provider=self.reading.provider,
            context_window=self.window,
            max_input_tokens=max(0, self.most),
            sections=sections,
            changes=changes,
            stable_prefix_tokens=self._stable_prefix(request),
            is_exact=self.counter.is_exact and self.is_exact and is_by_rule,
        )
        given = [item.value for item in self.reading.items]
        kept = [entry.gone is None for entry in self.entries]
        past = Past(given, kept, [*_listed(request[self.reading.key])], self.counted)
        return FittedRequest(request, report, total, past)

    def _stable_prefix(self, request: Message) -> int:
        """Return the tokens of the beginning that is that of the previous request."""
        if self.previous is None:
            return 0
        before = self.previous.request
        if any(request.get(name) != before.get(name) for name in _LEADING):
            return 0
        key = self.reading.key
        count = stable(_listed(request[key]), _listed(before.get(key, ())))
        first = islice(alive(self.entries), count)
        return self.system + self.tools.tokens + sum(entry.tokens for entry in first)

    def _alone(self, place: int) -> int:
        """Return the tokens of one tool without those that any tools cost."""
        return self._tool_cost([place]).tokens

    def _sections(self) -> dict[SectionName, SectionTokens]:
        frame = self.frame
        names: Sequence[SectionName] = ("system", "history", "tool_results", "chunks", "media")
        before, now = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        for sizes, entries in ((before, self.entries), (now, [*alive(self.entries)])):
            sizes["system"] = sum([entry.fixed for entry in entries if entry.item.is_system])
            sizes["history"] = sum([entry.fixed for entry in entries]) - sizes["system"]
        for entry in self.parted:
            name: SectionName = "system" if entry.item.is_system else "history"
            results, media = entry.results, entry.media
            before[name] -= media
            before["media"] += media
            before["chunks"] += entry.chunk_before
            before["tool_results"] += sum([r.before for r in results]) + (entry.lost or 0)
            if entry.gone is None:
                now[name] -= media
                now["media"] += media
                now["chunks"] += entry.chunk_tokens
                now["tool_results"] += sum([r.tokens for r in results])
        for sizes, around in ((before, self.around_before), (now, self.around)):
            sizes["system"] += self.system
            sizes["history"] += around
        source = f"{frame.source}; texts: {self.counter.source}"
        rules: dict[str, tuple[Any, str]] = {
            "system": (frame.basis, source),
            "history": (frame.basis, source),
            "tool_results": (frame.basis, f"texts: {self.counter.source}"),
            "chunks": (frame.basis, f"texts: {self.counter.source}"),
            "media": (
                self.media_basis,
                "guides of OpenAI, Anthropic (2026-06) and Google (2025-11)",
            ),
        }
        costs = {
            "tools": self.tools,
            "schema": self.schema,
            "reasoning": self.reasoning,
            "reply": self.reply,
        }
        order: Sequence[SectionName] = get_args(SectionName)
        return {
            name: SectionTokens(
                self.tools_before if name == "tools" else costs[name].tokens, *costs[name]
            )
            if name in costs
            else SectionTokens(before[name], now[name], *rules[name])
            for name in order
        }

    def exhausted(self) -> BudgetExhaustedError:
        """Return the error for what does not fit, with the arithmetic."""
        reserved = self.reasoning.tokens + self.reply.tokens
        stays = sum(entry.tokens for entry in self.entries)
        parts = (
            (reserved, "the answer"),
            (self.system + self.around, "instructions and frames"),
            (self.tools.tokens, "tools"),
            (self.schema.tokens, "the schema"),
            (stays, "the messages that must stay"),
        )
        shown = " - ".join(f"{tokens} for {name}" for tokens, name in parts if tokens)
        left = self.window - sum(tokens for tokens, _ in parts)
        tail = "" if left < 0 else f", and the input may have {self.most}"
        return BudgetExhaustedError(
            f"the request does not fit: context_window {self.window} - {shown} = {left}{tail}"
        )


def counting(counter: TokenCounter) -> Callable[[str], int]:
    """Return the function that counts a str by *counter*, with as few calls as can be."""
    if counter._function is not None:  # noqa: SLF001 - of this package
        return counter.count
    return partial(backend.count, counter._kind, counter._ratio)  # noqa: SLF001 - the same


def _listed(items: Any) -> Sequence[Any]:
    return items if isinstance(items, (list, tuple)) else (items,)


def _system(reading: Reading) -> Mapping[str, Any] | None:
    """Return the instructions beside the messages as a message."""
    found = reading.system
    if found is None:
        return None
    if reading.provider != "gemini":
        return {"role": "system", "content": found}
    parts = found if isinstance(found, (list, tuple)) else [found]
    if len(parts) == 1 and not isinstance(parts[0], str):
        view = placed(_SYSTEM, parts[0])
        if view is not None:
            return {**view.fields, "role": "system"}
    shown = placed(_SYSTEM, {"role": "system", "parts": [*parts]})
    return None if shown is None else shown.fields


def _system_cost(costs: MessageCosts, reading: Reading, system: Mapping[str, Any]) -> int:
    """Return what these instructions cost; an error names where the request has them."""
    try:
        return costs.of("system", system)
    except InvalidArgumentError as error:
        message = str(error)
    place = "request['instructions']" if reading.key == "input" else "request['system']"
    place = _SYSTEM if reading.provider == "gemini" else place
    raise InvalidArgumentError(message.replace("system['content']", place, 1))


def _add_changes(changes: list[RequestChange], entry: Entry) -> None:
    """Add what became of one message."""
    place = entry.item.place
    if entry.gone is not None:
        changes.append(RequestChange(place, "left_out", _REASONS[entry.gone], entry.before, 0))
        return
    if entry.lost is not None:
        texts = [result.text or result.slot.text for result in entry.results]
        action: Action = "masked" if MASK in texts else "cut"
        is_new = any(result.text is not None for result in entry.results)
        reason = _REASONS[action if is_new else entry.lost_by]
        changes.append(RequestChange(place, action, reason, entry.before, entry.tokens))
        return
    for result in entry.results:
        if result.text is not None:
            action = "masked" if result.is_masked else "cut"
            numbers = result.before, result.tokens
            changes.append(RequestChange(place, action, _REASONS[action], *numbers))
    if entry.chunk_tokens < entry.chunk_before:
        numbers = entry.chunk_before, entry.chunk_tokens
        changes.append(RequestChange(place, "cut", _REASONS["chunks"], *numbers))
