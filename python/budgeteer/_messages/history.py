"""The messages of a history by their kinds, and where a part of it may begin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from budgeteer._messages.messages import SYSTEM_ROLES, role_of
from budgeteer._messages.shapes import RESULT_ROLES, fields_of, mapping
from budgeteer.errors import InvalidArgumentError

StartOn: TypeAlias = Literal["user"]


@dataclass(slots=True)
class History:
    """
    The places of the messages of a history, by the kinds that trimming distinguishes.

    Attributes:
        system: The system messages.
        others: The others, except those with a result whose call is missing.
        reach: For each of the others, the place of the first call whose result it has, or its own
            place.
        results: For each of the others that has results, their number.
        users: Those of the others that are the user's.
        replies: Those of the others that are the model's.
        question: The newest of these that holds more than tool results; None if there is none.

    """

    system: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    reach: dict[int, int] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)
    users: set[int] = field(default_factory=set)
    replies: set[int] = field(default_factory=set)
    question: int | None = None

    @classmethod
    def read(cls, name: str, messages: Sequence[Any]) -> History:
        """Sort *messages* into these kinds; *name* is theirs in an error."""
        history = cls()
        calls: dict[object, int] = {}
        caller: int | None = None  # the call that results without an id belong to
        for i, item in enumerate(messages):
            role = item.get("role") if type(item) is dict else None
            fields = item
            if type(role) is not str:
                fields = mapping(f"{name}[{i}]", item)
                role = role_of(f"{name}[{i}]", fields)
            if role in SYSTEM_ROLES:
                history.system.append(i)
                continue
            reach = i
            if _is_plain(role, fields):
                history._add(i, role, fields, 0)
                caller = None
                continue
            answers = results_of(role, fields)
            if answers:
                found = [caller if key is None else calls.get(key) for key in answers]
                if None in found:
                    continue
                reach = min(call for call in found if call is not None)
                history.results[i] = len(answers)
            history._add(i, role, fields, len(answers))
            history.reach[i] = reach
            asked = calls_of(fields)
            if asked:
                caller = i
                calls.update((key, i) for key in asked if key is not None)
            elif not answers:
                caller = None
        return history

    def _add(self, i: int, role: str, fields: Mapping[str, Any], answers: int) -> None:
        """Add the message at a place, with that number of results."""
        self.others.append(i)
        self.reach[i] = i
        if role == "user":
            self.users.add(i)
            content = fields.get("content")
            parts = len(content) if isinstance(content, (list, tuple)) else 0
            if not answers or answers < parts:
                self.question = i
        elif role not in RESULT_ROLES:
            self.replies.add(i)

    def starts(self, start_on: StartOn | None = None) -> list[int]:
        """Return the places of the others at which a history may begin, ascending."""
        found = []
        reach = self.others[-1] if self.others else 0
        for i in reversed(self.others):
            reach = min(reach, self.reach[i])
            if reach >= i and (start_on is None or i in self.users):
                found.append(i)
        return found[::-1]

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
        pins: Iterable[int],
        starts: Sequence[int],
        start_on: StartOn | None = None,
    ) -> list[int]:
        """
        Return the places of the others that stay because of *pins*, ascending.

        A pinned message stays with the calls and results that belong to it, and what is between
        them. Where a user's message must come first, so does the last one before the first pin.
        """
        others = [i for i in pins if i in self.reach]
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


def calls_of(message: Mapping[str, Any]) -> list[str | None]:
    """Return the id of each tool call in a message; None for a call without."""
    calls = message.get("tool_calls")
    keys = [_id(call, "id") for call in calls] if isinstance(calls, (list, tuple)) else []
    if message.get("function_call") is not None:
        keys.append(None)
    return keys + _ids_of_parts(message, "tool_use", "id")


def results_of(role: str, message: Mapping[str, Any]) -> list[str | None]:
    """Return the id of the call of each result in a message; None for a result without."""
    own = [_id(message, "tool_call_id")] if role in RESULT_ROLES else []
    return own + _ids_of_parts(message, "tool_result", "tool_use_id")


def _ids_of_parts(message: Mapping[str, Any], kind: str, key: str) -> list[str | None]:
    content = message.get("content")
    if not isinstance(content, (list, tuple)):
        return []
    found = (fields_of(part) for part in content)
    return [_id(part, key) for part in found if part is not None and part.get("type") == kind]


def _id(value: object, key: str) -> str | None:
    found = (fields_of(value) or {}).get(key)
    return found if isinstance(found, str) else None
