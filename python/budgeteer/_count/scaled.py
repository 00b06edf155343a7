"""Counts times a factor."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from budgeteer._codes import LOOSE


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

    def __call__(self, text: str, index: int = LOOSE, name: str = "chunks") -> int:
        """Return the count of a text; *index* and *name* say in an error where it is."""
        tokens: int = self.counter._count_chunk(text, index, name)  # noqa: SLF001
        return ceil(tokens * self.factor)
