"""What a service remembers of its requests: how often the budget cut, and what more would do."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError

_COUNTS = (
    *("requests", "answered", "rejected", "failed", "timed_out", "cancelled", "cut"),
    *("kept_chunks", "retrieved_tokens", "dropped_chunks", "dropped_tokens"),
)


@dataclass(frozen=True, slots=True)
class ServiceStats:
    """
    What became of the requests since the service began, or since the figures were reset.

    Attributes:
        requests: How many there were. Each is one of the next five, or still under way.
        answered: How many were answered.
        rejected: How many had nothing left for retrieval.
        failed: How many ended with another error.
        timed_out: How many passed their deadline.
        cancelled: How many were cancelled.
        cut: How many answers left chunks out for the budget.
        kept_chunks: How many chunks were kept.
        retrieved_tokens: What the packed texts took.
        dropped_chunks: How many chunks were left out for the budget.
        dropped_tokens: How many tokens these had.
        is_dropped_exact: Whether each of them was counted. Of a request that drops more than 32,
            that many are counted, evenly spaced, and stand for the others.
        next_budgets: The smallest budget under which the first chunk that was left out would have
            been kept too, for each answer that was cut: upper bound to number of answers.
        full_budgets: The smallest budget under which everything would have been kept, for each
            answer, the ones that were not cut included.

    """

    requests: int = 0
    answered: int = 0
    rejected: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    cut: int = 0
    kept_chunks: int = 0
    retrieved_tokens: int = 0
    dropped_chunks: int = 0
    dropped_tokens: int = 0
    is_dropped_exact: bool = True
    next_budgets: Mapping[int, int] = field(default_factory=dict)
    full_budgets: Mapping[int, int] = field(default_factory=dict)

    @property
    def cut_rate(self) -> float:
        """The share of answers that the budget cut, from 0 to 1."""
        return self.cut / max(1, self.answered)

    def budget_for(self, share: float) -> int | None:
        """
        Return a budget under which *share* of the answers would have kept every chunk.

        It is the upper bound of a bucket, at most an eighth above the smallest that would do.

        Args:
            share: From 0 to 1, such as 0.95.

        Returns:
            Tokens for chunks, None where nothing was answered yet.

        Raises:
            InvalidArgumentError: *share* is not a number from 0 to 1.

        Examples:
            >>> ServiceStats(full_budgets={1024: 90, 4096: 10}).budget_for(0.95)
            4096

        """
        share = _validate.number("share", share)
        if not 0 <= share <= 1:
            raise InvalidArgumentError(f"share must be from 0 to 1, not {share!r}")
        total = sum(self.full_budgets.values())
        seen = 0
        for budget, answers in sorted(self.full_budgets.items()):
            seen += answers
            if seen >= math.ceil(share * total):
                return budget
        return None

    def to_dict(self) -> dict[str, Any]:
        """
        Return every figure by its name.

        Examples:
            >>> ServiceStats(answered=4, cut=1).to_dict()["cut_rate"]
            0.25

        """
        figures = {name: getattr(self, name) for name in self.__slots__}
        return {
            **figures,
            "next_budgets": dict(self.next_budgets),
            "full_budgets": dict(self.full_budgets),
            "cut_rate": self.cut_rate,
        }


class Recorder:
    """Adds figures up. Its memory is bounded: there are at most some 500 buckets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._is_exact = True
        self._next: dict[int, int] = {}
        self._full: dict[int, int] = {}

    def add(
        self,
        counts: Mapping[str, int],
        *,
        next_budget: int = 0,
        full_budget: int = 0,
        is_exact: bool = True,
    ) -> None:
        """Add what became of a request; a budget of 0 stands for none."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count
            self._is_exact &= is_exact
            for histogram, budget in ((self._next, next_budget), (self._full, full_budget)):
                if budget:
                    bound = bucket(budget)
                    histogram[bound] = histogram.get(bound, 0) + 1

    def stats(self, *, reset: bool) -> ServiceStats:
        """Return the figures, and begin anew on request; no request is lost between the two."""
        with self._lock:
            stats = ServiceStats(
                **self._counts,
                is_dropped_exact=self._is_exact,
                next_budgets=dict(sorted(self._next.items())),
                full_budgets=dict(sorted(self._full.items())),
            )
            if reset:
                self._begin()
            return stats


def bucket(tokens: int) -> int:
    """
    Return the upper bound of the bucket of *tokens*; eight lead from a power of two to the next.

    Examples:
        >>> [bucket(tokens) for tokens in (1, 8, 9, 17, 1000, 1025)]
        [1, 8, 9, 18, 1024, 1152]

    """
    step = 1 << max(0, (tokens - 1).bit_length() - 4)
    return -(-tokens // step) * step
