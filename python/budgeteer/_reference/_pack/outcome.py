"""Reference of ``Admitted`` in ``rust/core/src/pack.rs``, and of ``binding/src/outcome.rs``."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


def kept_chunks(
    kind: type,
    chunks: Sequence[object],
    places: tuple[int, int],
    texts: str | list[str],
    columns: tuple[Sequence[Any], ...],
    cut: list[int],
) -> list[Any]:
    """Return the kept chunks from one place to another, with these texts or those in one text."""
    kept, scores, counts, citations, spans = columns
    made = []
    for place in range(*places):
        index, start, end = kept[place], spans[2 * place], spans[2 * place + 1]
        made.append(
            kind(
                chunks[index],
                index,
                texts[start:end] if isinstance(texts, str) else texts[place - places[0]],
                _score(scores, place),
                counts[place],
                citations[place],
                None if start < 0 else (start, end),
                place in cut,
            )
        )
    return made


def dropped_chunks(
    kind: type,
    chunks: Sequence[object],
    places: tuple[int, int],
    names: tuple[str, ...],
    columns: tuple[Sequence[Any], ...],
    duplicates: Mapping[int, int],
) -> list[Any]:
    """Return the dropped chunks from one place to another."""
    dropped, scores, reasons, needed, available = columns
    return [
        kind(
            chunks[index],
            index,
            _score(scores, index),
            names[reasons[place]],
            needed[place],
            available[place],
            duplicates.get(index),
        )
        for place, index in enumerate(dropped[slice(*places)], places[0])
    ]


def _score(scores: Sequence[float], index: int) -> float | None:
    score = scores[index]
    return None if math.isnan(score) else score
