"""What is known of a request that was fitted: what became of its messages, and what they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from budgeteer._count.counter import TokenCounter
from budgeteer._messages.history import History
from budgeteer._messages.memory import Contents
from budgeteer._request.read import Item, Reading
from budgeteer._request.state import Entry


@dataclass(frozen=True, slots=True)
class Counted:
    """
    What was found out of the messages of a request, each with its content at that time.

    Attributes:
        contents: What they held.
        entries: What they took.
        history: Their places by their kinds.
        counter: By which counter.
        model: For which model.

    """

    contents: Contents
    entries: Sequence[Entry]
    history: History
    counter: TokenCounter
    model: str

    @classmethod
    def of(
        cls, reading: Reading, entries: Sequence[Entry], counter: TokenCounter, model: str
    ) -> Counted:
        """Return what was found out of a request, whose messages have these entries."""
        values = [item.value for item in reading.items]
        known = reading.known
        if known is None:
            contents = Contents(values)
        else:
            pairs = zip(known.entries, reading.items, strict=False)
            contents = known.contents.grown(values, [entry.item is item for entry, item in pairs])
        return cls(contents, entries, reading.history, counter, model)

    def items(self, key: str, values: Sequence[Any]) -> list[Item | None]:
        """Return what was read of each message that was there then, None if it changed since."""
        items = [entry.item for entry in self.entries]
        triples = zip(items, values, self.contents.same(values), strict=False)
        return [
            item if is_same and item.value is value and item.key == key else None
            for item, value, is_same in triples
        ]

    def entry(self, item: Item, counter: TokenCounter, model: str) -> Entry | None:
        """Return a new entry of a message that was counted so then, else None."""
        if item.number >= len(self.entries) or self.model != model or self.counter != counter:
            return None
        entry = self.entries[item.number]
        return entry.anew() if entry.item is item else None


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
