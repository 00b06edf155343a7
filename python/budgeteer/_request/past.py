"""What is known of a request that was fitted: what became of its messages, and what they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from budgeteer._count.counter import TokenCounter
from budgeteer._messages.memory import Contents
from budgeteer._request.read import Item
from budgeteer._request.state import Entry


@dataclass(frozen=True, slots=True)
class Counted:
    """
    What was found out of the messages of a request, each with its content at that time.

    Attributes:
        contents: What they held.
        entries: What they took.
        counter: By which counter.
        model: For which model.

    """

    contents: Contents
    entries: Sequence[Entry]
    counter: TokenCounter
    model: str

    def item(self, key: str, number: int, value: Any) -> Item | None:
        """Return what was read of a message that is the same as then, else None."""
        if number >= len(self.entries):
            return None
        item = self.entries[number].item
        is_same = item.key == key and item.value is value and self.contents.is_same(number, value)
        return item if is_same else None

    def entry(self, item: Item, counter: TokenCounter, model: str) -> Entry | None:
        """Return a new entry of a message that was counted so then, else None."""
        if item.number >= len(self.entries) or self.model != model or self.counter != counter:
            return None
        entry = self.entries[item.number]
        return entry.anew() if entry.item is item else None


def contents_of(items: Sequence[Item], counted: Counted | None) -> Contents:
    """Return what messages hold, taken over from those of last time if all of these lead."""
    values = [item.value for item in items]
    known = () if counted is None else counted.entries
    if counted is None or len(known) > len(items):
        return Contents(values)
    if all(entry.item is item for entry, item in zip(known, items, strict=False)):
        return counted.contents.grown(values)
    return Contents(values)


@dataclass(frozen=True, slots=True)
class Past:
    """
    What became of the messages of a request.

    Attributes:
        given: The messages that were given.
        kept: Whether each was kept.
        sent: Those that were kept, as they were sent.
        counted: What they took, None if that was not kept.

    """

    given: Sequence[Any]
    kept: Sequence[bool]
    sent: Sequence[Any]
    counted: Counted | None = None

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Yield each message that was given, and what was sent for it, None for nothing."""
        sent = iter(self.sent)
        for given, kept in zip(self.given, self.kept, strict=True):
            yield given, next(sent) if kept else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Forget what was counted: another process has other objects."""
        return Past, (self.given, self.kept, self.sent)
