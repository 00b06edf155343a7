"""The messages of a history by their kinds, which belong together, and where it may begin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from budgeteer._messages.messages import SYSTEM_ROLES, role_of
from budgeteer._messages.shapes import RESULT_ROLES, fields_of, mapping
from budgeteer._messages.views import Shape, placed, without_results
from budgeteer.errors import InvalidArgumentError

StartOn: TypeAlias = Literal["user"]


class Links(NamedTuple):
    """
    What ties a message of the model to others of the model, beside the calls of a caller's tools.

    Attributes:
        asks: The ids of the calls that the provider runs and has not answered in it.
        needs: The ids of such calls in a message before, which it answers or goes on with.

    """

    asks: Sequence[str]
    needs: Sequence[str]


NO_LINKS = Links((), ())

_RUN_BY_PROVIDER = ("server_tool_use", "mcp_tool_use")
_CALLERS = ("tool_id", "caller_id")
"""Where a call by a program has the id of that program, Anthropic's key and OpenAI's."""


@dataclass(slots=True)
class History:
    """
    The places of the messages of a history, by the kinds that trimming distinguishes.

    Attributes:
        system: The system messages.
        others: The others, except those that are nothing but results whose calls are missing.
        orphans: These.
        partial: For each of the others that has such results beside what stays, their numbers
            among its results that are parts.
        results: For each of the others that has results, the number of those that stay.
        users: Those of the others that are the user's.
        replies: Those of the others that are the model's; of items of one reply, the first.
        questions: Those of the user's that hold more than tool results, ascending.

    """

    system: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    partial: dict[int, set[int]] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)
    users: set[int] = field(default_factory=set)
    replies: set[int] = field(default_factory=set)
    questions: list[int] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _calls: dict[str, int] = field(default_factory=dict)
    _caller: int | None = None  # the call that results without an id belong to
    _reply: tuple[int, bool] | None = None  # the last message, if the model's; if it is an item
    _part: int | None = None  # the last of the user's that is a part of Gemini's by itself

    @classmethod
    def read(cls, name: str, messages: Sequence[Any]) -> History:
        """Sort *messages* into these kinds; *name* is theirs in an error."""
        return cls().grown(name, messages, 0)

    def grown(self, name: str, messages: Sequence[Any], start: int) -> History:
        """Return the same with the *messages* from the place *start* on, which are new."""
        history = self.copy()
        for i in range(start, len(messages)):
            item = messages[i]
            role = item.get("role") if type(item) is dict and "parts" not in item else None
            if type(role) is str and _is_plain(role, item):  # as most messages are
                history.add_plain(i, role)
                continue
            where = f"{name}[{i}]"
            view = placed(where, item)
            fields = mapping(where, item) if view is None else view.fields
            role = role_of(where, fields)
            if role in SYSTEM_ROLES:
                history.system.append(i)
            else:
                calls, results, others = ties_of(role, fields)
                shape = "chat" if view is None else view.shape
                links = links_of(role, fields)
                history.add(i, role, calls, results, others, shape, links)
        return history

    def copy(self) -> History:
        """Return a history that can grow without this one."""
        copied = replace(self)
        copied.system, copied.others = [*self.system], [*self.others]
        copied.orphans, copied.questions = [*self.orphans], [*self.questions]
        copied.partial, copied.results = {**self.partial}, {**self.results}
        copied.replies = {*self.replies}
        copied.users, copied._starts = {*self.users}, [*self._starts]  # noqa: SLF001 - its own
        copied._calls = {**self._calls}  # noqa: SLF001 - its own
        return copied

    def add_plain(self, i: int, role: str) -> None:
        """Add the message at a place, a text without calls and results."""
        if role in SYSTEM_ROLES:
            self.system.append(i)
            return
        self.others.append(i)
        self._starts.append(i)
        self._caller = None
        if role == "user":
            self.users.add(i)
            self.questions.append(i)
            self._reply = None
            return
        if self._reply is not None and self._reply[1]:
            self._reach(self._reply[0])
        else:
            self.replies.add(i)
        self._reply = i, False

    def add(
        self,
        i: int,
        role: str,
        calls: Sequence[str | None],
        results: Sequence[str | None],
        others: int,
        shape: Shape = "chat",
        links: Links = NO_LINKS,
    ) -> None:
        """
        Add the message at a place that has no role of the system's.

        It has the *calls* and *results* of these ids, None where there is none, and that number
        of *others* in its content, and these *links*. Where the *shape* of it or of the one
        before is an item's, of OpenAI's Responses, both are of one reply, as reasoning must stay
        with what follows it. Parts of Gemini's in a row are one message, as its client sends them.
        """
        asking = self._asking(i, role, results, others) if results else ()
        if asking is None:
            self.orphans.append(i)
            return
        reach = min(asking, default=None)
        if asking:
            self.results[i] = len(asking)
        if role == "user":
            self.users.add(i)
            if others or not results:
                self.questions.append(i)
            self._reply = None
            reach = self._follows(i, reach) if shape == "part" else reach
        elif role not in RESULT_ROLES:
            reach = self._answered(i, reach, shape in ("item", "output", "part"))
        else:
            self._reply = None
        reach = self._linked(reach, links.needs) if links.needs else reach
        self.others.append(i)
        if reach is None:
            self._starts.append(i)
        else:
            self._reach(reach)
        if calls or i not in self.results:
            self._caller = i if calls else None
        for key in (*calls, *links.asks):
            if key is not None:
                self._calls[key] = i

    def _asking(
        self, i: int, role: str, results: Sequence[str | None], others: int
    ) -> Sequence[int] | None:
        """Return the places of the calls of results; None where nothing of the message stays."""
        calls = [self._caller if key is None else self._calls.get(key) for key in results]
        asking = [call for call in calls if call is not None]
        if len(asking) < len(calls):
            is_result = role in RESULT_ROLES  # the first is the message itself
            if (is_result and calls[0] is None) or not (asking or others):
                return None
            self.partial[i] = {k - is_result for k, call in enumerate(calls) if call is None}
        return asking

    def _answered(self, i: int, reach: int | None, is_item: bool) -> int | None:
        """Note a message of the model, and return the first that it needs; None for itself."""
        before = self._reply
        self._reply = None if i in self.results else (i, is_item)
        if reach is None and before is not None and (is_item or before[1]):
            return before[0]
        self.replies.add(i)
        return reach

    def _follows(self, i: int, reach: int | None) -> int | None:
        """Note a part of the user's, and return the first message that it needs, as `reach`."""
        before, self._part = self._part, i
        if before is None or before != self.others[-1]:
            return reach
        return before if reach is None else min(reach, before)

    def _linked(self, reach: int | None, needs: Sequence[str]) -> int | None:
        """Return the first message that one that *needs* calls of these ids reaches to."""
        asked = [self._calls[key] for key in needs if key in self._calls]
        return min(asked if reach is None else [reach, *asked], default=None)

    def _reach(self, place: int) -> None:
        """Let the newest message need all from *place* on: no history begins in between."""
        while self._starts and self._starts[-1] > place:
            self._starts.pop()

    def complete(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return its *messages*, without the results whose calls are missing in the others."""
        if not self.partial:
            return messages
        made = [*messages]
        for i, numbers in self.partial.items():
            made[i] = without_results(made[i], numbers)
        return made

    @property
    def question(self) -> int | None:
        """The newest of the questions; None if there is none."""
        return self.questions[-1] if self.questions else None

    def starts(self, start_on: StartOn | None = None) -> list[int]:
        """Return the places of the others at which a history may begin, ascending."""
        return (
            [*self._starts] if start_on is None else [i for i in self._starts if i in self.users]
        )

    def blocks(self) -> list[list[int]]:
        """Return the others in pieces that no call is separated from its results by."""
        ends = [bisect_left(self.others, start) for start in self._starts]
        return [
            self.others[a:b] for a, b in zip(ends, [*ends[1:], len(self.others)], strict=False)
        ]

    def turn(self, name: str, starts: Sequence[int], start_on: StartOn | None = None) -> list[int]:
        """
        Return the places of the others that must stay: the question and all that follows it.

        They begin at one of *starts*, which are those of *start_on*. Without a question they are
        the newest of the others and what it belongs to, or none where a user's message must come
        first.
        """
        last = self.others[-1] if self.others and start_on is None else None
        last = last if self.question is None else self.question
        if last is None:
            return []
        at = bisect_right(starts, last)
        if at == 0:
            raise InvalidArgumentError(
                f"start_on {start_on!r} would leave out {name}[{last}], the newest message of the "
                "user: it, or what follows it, has the result of a call, and no message of the "
                "user is before that call"
            )
        return self.others[bisect_left(self.others, starts[at - 1]) :]

    def pinned(
        self,
        name: str,
        pins: Collection[int],
        starts: Sequence[int],
        start_on: StartOn | None = None,
    ) -> list[int]:
        """
        Return the places of the others that stay because of *pins*, ascending.

        A pinned message stays with the calls and results that belong to it, and what is between
        them. Where a user's message must come first, so does the last one before the first pin.
        """
        if not pins:
            return []
        known = {*self.others}
        others = [i for i in pins if i in known]
        if not others:
            return []
        ends = starts if start_on is None else self.starts()
        blocks = {bisect_right(ends, i) for i in others}
        if start_on is not None:
            at = bisect_right(starts, ends[min(blocks) - 1])
            if at == 0:
                raise InvalidArgumentError(
                    f"start_on {start_on!r} would leave out {name}[{min(others)}], which is "
                    "pinned: no message of the user is before it and what it belongs to"
                )
            blocks |= {*range(bisect_right(ends, starts[at - 1]), min(blocks))}
        return [i for i in self.others if bisect_right(ends, i) in blocks]

    def newest(
        self, room: int, cost: Callable[[int, int], int | None], begin: int
    ) -> list[tuple[int, int]]:
        """
        Return the newest of the others that fit into *room* together, and their tokens.

        The newest comes first; none is before the place *begin*. *cost* returns the tokens of the
        message at a place; it may return None if they exceed what is left.
        """
        kept: list[tuple[int, int]] = []
        for i in reversed(self.others):
            if i < begin:
                break
            tokens = cost(i, room)
            if tokens is None or tokens > room:
                break
            room -= tokens
            kept.append((i, tokens))
        return kept


def _is_plain(role: str, message: Mapping[str, Any]) -> bool:
    """Return whether a message is a text without calls and results, as most are."""
    return (
        isinstance(message.get("content"), str)
        and role not in RESULT_ROLES
        and message.get("tool_calls") is None
        and message.get("function_call") is None
    )


def ties_of(
    role: str, fields: Mapping[str, Any]
) -> tuple[list[str | None], list[str | None], int]:
    """
    Return the ids of the calls in a message, those of its results, and how much else it holds.

    None stands for a call or a result without an id.
    """
    calls: list[str | None] = []
    given = fields.get("tool_calls")
    if given and isinstance(given, (list, tuple)):
        calls = [_id(call, "id") for call in given]
    if fields.get("function_call") is not None:
        calls.append(None)
    results: list[str | None] = []
    if role in RESULT_ROLES:
        found = fields.get("tool_call_id")
        results.append(found if isinstance(found, str) else None)
    content = fields.get("content")
    if not isinstance(content, (list, tuple)):
        return calls, results, 1
    others = 0
    for part in content:
        inner = part if type(part) is dict else fields_of(part) or {}
        kind = inner.get("type")
        if kind == "tool_result":
            results.append(_id(inner, "tool_use_id"))
            continue
        others += 1
        if kind == "tool_use":
            calls.append(_id(inner, "id"))
    return calls, results, others


def links_of(role: str, fields: Mapping[str, Any]) -> Links:
    """Return what ties a message of the model to others of the model."""
    if role != "assistant":
        return NO_LINKS
    asks: dict[str | None, None] = {}  # sets in order
    answers: dict[str | None, None] = {}
    callers: dict[str | None, None] = {}
    for key in ("content", "tool_calls"):
        value = fields.get(key)
        for part in value if isinstance(value, (list, tuple)) else ():
            inner = part if type(part) is dict else fields_of(part) or {}
            kind = inner.get("type")
            if kind in _RUN_BY_PROVIDER:
                asks[_id(inner, "id")] = None
            elif isinstance(kind, str) and kind.endswith("_tool_result"):
                answers[_id(inner, "tool_use_id")] = None
            caller = inner.get("caller")
            if caller is not None:
                callers |= {_id(caller, name): None for name in _CALLERS}
    if not (asks or answers or callers):
        return NO_LINKS
    return Links(
        [key for key in asks if key is not None and key not in answers],
        [key for key in (*answers, *callers) if key is not None and key not in asks],
    )


def _id(value: object, key: str) -> str | None:
    found = (value if type(value) is dict else fields_of(value) or {}).get(key)
    return found if isinstance(found, str) else None
