"""Reference of ``rust/core/src/scope.rs``: the cut-off by score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from budgeteer._codes import HEADING, LINK
from budgeteer._reference._rank.lexical import Signal

SHARE = 0.35
"""The share of the mean of the best scores that ``"auto"`` asks for."""

BEST = 3
"""The number of best scores."""


@dataclass(frozen=True, slots=True)
class Scope:
    """
    The chunks in scope.

    Attributes:
        least: The score from which on chunks are in scope; None if all are.
        found: The same if it was found from the scores, else None.
        exempt: The chunks that are in scope with any score.

    """

    least: float | None
    found: float | None = None
    exempt: frozenset[int] = frozenset()

    def has(self, index: int, score: float) -> bool:
        """Return whether a chunk with that score is in scope."""
        if self.least is None or index in self.exempt:
            return True
        # A chunk without a score of its own (NaN) ranks and filters as the lowest.
        return (-math.inf if math.isnan(score) else score) >= self.least


def scope_of(
    min_score: float | str | None, scores: Sequence[float], signals: Sequence[Signal]
) -> Scope:
    """
    Return the scope of chunks with these scores.

    The order of the operations is part of the result.
    """
    if min_score is None or isinstance(min_score, float):
        return Scope(min_score)
    best = sorted(scores, reverse=True)[:BEST]
    total = 0.0
    for score in best:
        total += score
    mean = total / len(best) if best else 0.0
    if not mean > 0.0:
        return Scope(None)
    least = SHARE * mean
    exempt = frozenset(
        chunk
        for chunk, kind, other, _ in signals
        if kind == LINK or (kind == HEADING and other == 1)
    )
    return Scope(least, least, exempt)
