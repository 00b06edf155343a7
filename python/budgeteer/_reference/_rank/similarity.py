"""Reference of ``rust/core/src/similarity.rs``."""

import math
from array import array
from collections.abc import Sequence
from typing import Any

LANES = 8


def cosine_scores(query: Any, vectors: Any) -> bytearray | int:
    """
    Score each of *vectors*, a buffer of float32, as float64.

    Or return the index of the first vector with a number that is not finite, -1 for the query's.
    """
    wanted = _numbers(query)
    rows = _numbers(vectors)
    size = len(wanted)
    wanted_square = dot(wanted, wanted)
    if not math.isfinite(wanted_square):
        return -1
    scores = array("d")
    for i in range(len(rows) // size):
        row = rows[i * size : (i + 1) * size]
        square = dot(row, row)
        if not math.isfinite(square):
            return i
        norms = math.sqrt(wanted_square * square)
        # Rounding may exceed 1 by the last bit.
        cosine = 0.0 if norms == 0.0 else dot(wanted, row) / norms
        scores.append(min(1.0, max(-1.0, cosine)))
    return bytearray(scores.tobytes())


def _numbers(buffer: Any) -> list[float]:
    return array("f", memoryview(buffer).tobytes()).tolist()


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """
    Return the sum of the products, which are exact as both factors are float32.

    The order of the operations is part of the result, as the native backend uses the same.
    """
    a, b, c, d, e, f, g, h = (
        _sum([x * y for x, y in zip(left[lane::LANES], right[lane::LANES], strict=True)])
        for lane in range(LANES)
    )
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


def _sum(numbers: Sequence[float]) -> float:
    """Return the sum from left to right; ``sum`` depends on the version of Python."""
    total = 0.0
    for number in numbers:
        total += number
    return total
