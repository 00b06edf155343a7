"""Reference of ``Admitted`` in ``rust/core/src/pack.rs``."""

from dataclasses import dataclass, field

from budgeteer._codes import BUDGET, DUPLICATE
from budgeteer._reference._pack.template import Piece


@dataclass(slots=True)
class Outcome:
    """What became of the chunks."""

    kept: list[Piece] = field(default_factory=list)
    dropped: list[tuple[int, int, int, int]] = field(default_factory=list)
    duplicates: dict[int, int] = field(default_factory=dict)

    def drop(self, index: int, reason: int, needed: int = 0, available: int = 0) -> None:
        self.dropped.append((index, reason, needed, available))

    def drop_repeated(self, left: dict[int, tuple[int, int]]) -> None:
        """Let what repeated a chunk that left go for the same reason; *left* has the figures."""
        for place, (index, reason, _, _) in enumerate(self.dropped):
            if reason == DUPLICATE and self.duplicates[index] in left:
                self.dropped[place] = (index, BUDGET, *left[self.duplicates.pop(index)])
