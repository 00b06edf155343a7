"""What trimming knows of the list that it returned last time: counts, kinds and places."""

from __future__ import annotations

import marshal
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from budgeteer._count.counter import TokenCounter
from budgeteer._messages.history import History

_DEEPEST = 20


class Memory:
    """
    What was found out of messages by one counter, each with its content at that time.

    A message may be changed by its owner. So what is known of it counts only while its content is
    the same, which takes less time to see than to count it again.

    Attributes:
        history: All messages of that time by their kinds.
        tokens: The tokens of each message that was kept, as it was kept, by its place.
        shortened: Those that were kept with less of their tool results.

    """

    __slots__ = (
        *("_by_id", "_contents", "_counter", "_made", "_model", "_sent"),
        *("history", "shortened", "tokens"),
    )

    def __init__(self, counter: TokenCounter, model: str) -> None:
        """Begin with nothing, for a counter and a model's own costs."""
        self._counter, self._model = counter, model
        self._contents = Contents()
        self._made = Contents()
        self._sent: Sequence[Any] = ()
        self._by_id: dict[int, tuple[Any, int]] | None = None
        self.history = History()
        self.tokens: Mapping[int, int] = {}
        self.shortened: Mapping[int, Any] = {}

    def is_of(self, counter: TokenCounter, model: str) -> bool:
        """Return whether it is of that counter and model."""
        return self._counter == counter and self._model == model

    def __len__(self) -> int:
        """Return the number of messages of last time."""
        return len(self._contents)

    def resumes(self, messages: Sequence[Any], previous: Sequence[Any]) -> bool:
        """Return whether *messages* begin with those of last time, and *previous* was returned."""
        return (
            len(previous) == len(self._sent)
            and all(map(operator.is_, previous, self._sent))
            and self._contents.lead(messages)
            and self._made.lead([*self.shortened.values()])
        )

    def known(self, message: Any) -> int | None:
        """Return the tokens of a message that was kept; None if they are not known."""
        if self._by_id is None:
            places = zip(sorted(self.tokens), self._sent, strict=True)
            self._by_id = {id(item): (item, place) for place, item in places}
        item, place = self._by_id.get(id(message), (None, 0))
        if item is not message or item is None:
            return None
        is_same = self._contents.is_same(place, message)
        if place in self.shortened:
            is_same = self._made.is_same([*self.shortened].index(place), message)
        return self.tokens[place] if is_same else None

    def after(
        self,
        messages: Sequence[Any],
        history: History,
        sent: Sequence[Any],
        tokens: Mapping[int, int],
        shortened: Mapping[int, Any],
        resumed: bool,
    ) -> Memory:
        """Return what to remember next; what is the same is taken over if it *resumed*."""
        memory = Memory(self._counter, self._model)
        memory._contents = self._contents.grown(messages) if resumed else Contents(messages)
        memory._made = self._made_after(shortened, resumed)
        memory._sent = [*sent]
        memory.history, memory.tokens, memory.shortened = history, tokens, shortened
        return memory

    def _made_after(self, shortened: Mapping[int, Any], resumed: bool) -> Contents:
        """Return the contents of shortened messages; most of them are those of last time."""
        if not resumed:
            return Contents([*shortened.values()])
        numbers = {place: number for number, place in enumerate(self.shortened)}
        same = [
            numbers[place] if self.shortened.get(place) is item else None
            for place, item in shortened.items()
        ]
        return self._made.picked([*shortened.values()], same)

    def __reduce__(self) -> tuple[Any, ...]:
        """Forget all: another process has other objects."""
        return Memory, (self._counter, self._model)


class Contents:
    """The contents of messages, to see whether they change."""

    __slots__ = ("_copies", "_numbers")

    def __init__(self, messages: Sequence[Any] = ()) -> None:
        self._copies: list[Any] = []
        # Of messages with numbers, whose types matter; empty where only the order of fields does.
        self._numbers: dict[int, bytes] = {}
        self._add(messages)

    def __len__(self) -> int:
        return len(self._copies)

    def _add(self, messages: Sequence[Any]) -> None:
        for i in range(len(self._copies), len(messages)):
            self._copies.append(None)
            self._put(i, messages[i])

    def _put(self, i: int, message: Any) -> None:
        numbers: list[object] = []
        self._numbers.pop(i, None)
        try:
            self._copies[i] = _copied(message, numbers)
            if numbers:
                is_order = all(number is None for number in numbers)
                self._numbers[i] = b"" if is_order else marshal.dumps(self._copies[i], 2)
        except ValueError:
            self._copies[i] = object()  # it may hide a change: equal to nothing

    def grown(self, messages: Sequence[Any], same: Sequence[bool] | None = None) -> Contents:
        """
        Return the contents of *messages*, taken over of those that are the *same*.

        None says that all that are known here are.
        """
        contents, end = Contents(), len(messages)
        contents._copies = self._copies[:end]
        contents._numbers = {i: found for i, found in self._numbers.items() if i < end}
        if same is not None:
            for i, is_same in enumerate(same):
                if not is_same:
                    contents._put(i, messages[i])
        contents._add(messages)
        return contents

    def picked(self, messages: Sequence[Any], numbers: Sequence[int | None]) -> Contents:
        """Return the contents of *messages*, taken over of those that have a number here."""
        contents = Contents()
        for i, (message, number) in enumerate(zip(messages, numbers, strict=True)):
            contents._copies.append(None if number is None else self._copies[number])
            if number is None:
                contents._put(i, message)
            elif number in self._numbers:
                contents._numbers[i] = self._numbers[number]
        return contents

    def lead(self, messages: Sequence[Any]) -> bool:
        """Return whether *messages* begin with the same contents."""
        try:
            is_same = bool(self._copies == [*messages[: len(self._copies)]])
        except Exception:  # noqa: BLE001 - of a value that cannot be compared
            return False
        return is_same and all(self._has_numbers(i, messages[i]) for i in self._numbers)

    def same(self, messages: Sequence[Any]) -> list[bool]:
        """Return of each of *messages* that has a number here whether its content is the same."""
        try:
            pairs = zip(self._copies, messages, strict=False)
            found = [(copied == message) is True for copied, message in pairs]
        except Exception:  # noqa: BLE001 - of a value that cannot be compared
            return [False] * min(len(self._copies), len(messages))
        for i in self._numbers:
            if i < len(found):
                found[i] = found[i] and self._has_numbers(i, messages[i])
        return found

    def is_same(self, i: int, message: Any) -> bool:
        """Return whether the content of a message is that of the one of that number."""
        try:
            is_same = bool(self._copies[i] == message)
        except Exception:  # noqa: BLE001 - of a value that cannot be compared
            return False
        return is_same and (i not in self._numbers or self._has_numbers(i, message))

    def _has_numbers(self, i: int, message: Any) -> bool:
        """Return whether an equal message is also written alike."""
        try:
            if not self._numbers[i]:
                return _is_ordered(self._copies[i], message)
            return marshal.dumps(message, 2) == self._numbers[i]
        except ValueError:
            return False


def _copied(value: Any, numbers: list[object], depth: int = 0, of: str = "") -> Any:
    """
    Return a copy of a value of JSON's types; else raise ValueError.

    Its numbers are noted, and None where the order of fields may matter, as in arguments of calls.
    It does not in a message, nor in some parts and calls, *of* that field of it.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind in (bool, int, float):
        numbers.append(value)
        return value
    if depth > _DEEPEST:
        raise ValueError
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise ValueError
        has_names = _has_names(value, depth, of)
        if len(value) > 1 and not has_names:
            numbers.append(None)
        return {
            key: _copied(
                item,
                numbers,
                depth + 1,
                key if has_names and (key == "function" or type(item) is list) else "",
            )
            for key, item in value.items()
        }
    if kind is list or kind is tuple:
        return kind([_copied(item, numbers, depth + 1, of) for item in value])
    raise ValueError


def _has_names(value: dict[str, Any], depth: int, of: str) -> bool:
    """Return whether what counts of these fields is found by their names."""
    if depth == 0:
        return "role" in value
    if of in ("content", "parts"):
        return value.get("type") in ("text", "tool_result")
    return of in ("tool_calls", "function")


def _is_ordered(copied: Any, value: Any) -> bool:
    """Return whether the fields of two equal values stand in the same order, at every depth."""
    if isinstance(copied, dict):
        if [*copied] != [*value]:
            return False
        pairs = zip(copied.values(), value.values(), strict=True)
    elif isinstance(copied, (list, tuple)):
        pairs = zip(copied, value, strict=True)
    else:
        return True
    return all(_is_ordered(one, other) for one, other in pairs)
