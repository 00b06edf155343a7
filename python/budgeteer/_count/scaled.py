"""Counts times a factor."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any


@dataclass(frozen=True, slots=True)
class Scaled:
    """
    Counts by another counter, times a factor, rounded up: a picklable callable.

    Attributes:
        counter: The `TokenCounter`, which no backend scales.
        factor: The factor.

    """

    counter: Any
    factor: float

    def __call__(self, text: str) -> int:
        tokens: int = self.counter.count(text)
        return ceil(tokens * self.factor)
