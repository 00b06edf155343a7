"""Reference of ``Admitted`` in ``rust/core/src/pack.rs``."""

from dataclasses import dataclass, field

from budgeteer._codes import BUDGET, DUPLICATE
from budgeteer._reference._pack.template import Piece

Left = dict[int, tuple[int, int]]
"""For each kept chunk that left: the tokens it needed, and those available."""


@dataclass(slots=True)
class Outcome:
    """The outcome of the chunks."""

    kept: list[Piece] = field(default_factory=list)
    """The kept chunks, best first."""
    dropped: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Index, reason, needed and available tokens of each dropped chunk, in order of dropping."""
    duplicates: dict[int, int] = field(default_factory=dict)
    """The kept chunk that each dropped duplicate repeats."""

    def drop(self, index: int, reason: int, needed: int = 0, available: int = 0) -> None:
        self.dropped.append((index, reason, needed, available))

    def drop_repeated(self, left: Left) -> None:
        """
        Turn the duplicates of chunks that have left into chunks dropped for the budget.

        They keep their places among the dropped chunks, and get the figures of the chunk they
        repeat.
        """
        for place, (index, reason, _, _) in enumerate(self.dropped):
            if reason == DUPLICATE and self.duplicates[index] in left:
                self.dropped[place] = (index, BUDGET, *left[self.duplicates.pop(index)])
