"""Counts that a calibration corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Learned:
    """
    Counts by another counter, times a scale, rounded up: a picklable callable.

    Attributes:
        counter: The `TokenCounter` that is corrected.
        scale: The scale.
        pairs: How many pairs of a count and a bill it was learned from.

    """

    counter: Any
    scale: float
    pairs: int

    def __call__(self, text: str) -> int:
        return scaled(self.counter.count(text), self.scale)


def scaled(count: int, scale: float) -> int:
    """Return a count times a scale, rounded up, exactly."""
    times, parts = scale.as_integer_ratio()
    return -(-times * count // parts)
