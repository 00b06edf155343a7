"""Reference of ``rust/core/src/score/hybrid.rs``."""

import math
from collections.abc import Sequence

Columns = Sequence[tuple[float, Sequence[float]]]
"""Each a weight and the scores of all chunks: NaN for none."""


def fuse(count: int, columns: Columns, k: float | None) -> list[float]:
    """
    Return the weighted sum of scores, by their ranks if *k* is a number, else scaled.

    The order of the operations is part of the result, as the native backend uses the same.
    """
    fused = [0.0] * count
    for weight, column in columns:
        if k is None:
            _add_scaled(fused, weight, column)
        else:
            _add_places(fused, weight, column, k)
    return fused


def _add_scaled(fused: list[float], weight: float, column: Sequence[float]) -> None:
    # Halved, so that no difference of two numbers is infinite.
    halves = [(i, score * 0.5) for i, score in enumerate(column) if not math.isnan(score)]
    lowest = min((half for _, half in halves), default=0.0)
    highest = max((half for _, half in halves), default=0.0)
    if highest > lowest:
        for i, half in halves:
            fused[i] += weight * ((half - lowest) / (highest - lowest))


def _add_places(fused: list[float], weight: float, column: Sequence[float], k: float) -> None:
    scored = [i for i, score in enumerate(column) if not math.isnan(score)]
    scored.sort(key=lambda i: -column[i])
    for place, i in enumerate(scored, start=1):
        fused[i] += weight / (k + place)
