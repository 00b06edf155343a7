"""The figures of a service: how often the budget cut, and what a larger one would keep."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from budgeteer import _validate
from budgeteer._pack.options import REASONS
from budgeteer._process import renew
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.counter import TokenCounter
    from budgeteer._pack.packing import Packing

Outcome = Literal["answered", "rejected", "failed", "timed_out", "cancelled"]

_COUNTS = (
    *("requests", "answered", "rejected", "failed", "timed_out", "cancelled", "cut"),
    *("kept_chunks", "cut_chunks", "retrieved_tokens", "dropped_chunks", "dropped_tokens"),
)
_BUDGET = REASONS.index("budget")
_SAMPLE = 32  # dropped chunks, and cut ones, to count in a request
_LONGEST = 1 << 12  # tokens to count of one of them


@public("budgeteer.service")
@dataclass(frozen=True, slots=True)
class ServiceStats:
    """
    The figures of the requests since the service began, or since the last reset.

    A request that runs during a reset counts in ``requests`` before it, and with its outcome after
    it. All other figures are added at once when a request ends.

    Attributes:
        requests: The number of requests. Each is one of the next five, or still runs.
        answered: The number answered.
        rejected: The number with nothing left for retrieval.
        failed: The number that ended with another error.
        timed_out: The number that passed their deadline.
        cancelled: The number cancelled.
        cut: The number of answers in which the budget dropped or cut chunks.
        kept_chunks: The number of chunks kept.
        cut_chunks: The number of these that were cut.
        retrieved_tokens: The tokens of the packed texts.
        dropped_chunks: The number of chunks dropped for the budget.
        dropped_tokens: The tokens of these, and of the parts cut off.
        is_dropped_exact: Whether all of them were counted. In a request with more than 32 dropped
            chunks, 32 evenly spaced ones are counted and the rest is extrapolated; the same holds
            for cut chunks. At most 4,096 tokens of a chunk are counted.
        next_budgets: For each answer that was cut, about the smallest budget that would also have
            kept the first dropped chunk, or kept the first cut chunk whole: a dict from upper
            bound to number of answers. A budget here is for the texts alone, joined by the plain
            template, without the messages' own cost and the reserve.
        full_budgets: For every answer, about the smallest budget that would have kept all chunks
            whole; for texts alone, as above.

    Examples:
        >>> from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService
        >>> service = RetrievalService(ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"))
        >>> _ = service.retrieve("tea")
        >>> stats = service.stats()
        >>> stats.requests, stats.answered, stats.cut
        (1, 1, 0)

    """

    requests: int = 0
    answered: int = 0
    rejected: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    cut: int = 0
    kept_chunks: int = 0
    cut_chunks: int = 0
    retrieved_tokens: int = 0
    dropped_chunks: int = 0
    dropped_tokens: int = 0
    is_dropped_exact: bool = True
    next_budgets: Mapping[int, int] = field(default_factory=dict)
    full_budgets: Mapping[int, int] = field(default_factory=dict)

    @property
    def cut_rate(self) -> float:
        """
        The share of answers that the budget cut, from 0 to 1.

        Examples:
            >>> ServiceStats(answered=4, cut=1).cut_rate
            0.25

        """
        return self.cut / max(1, self.answered)

    def budget_for(self, share: float) -> int | None:
        """
        Return a budget under which *share* of the answers would have kept every chunk whole.

        It is the upper bound of a bucket, at most an eighth above the smallest such budget, and
        for texts alone, as `full_budgets`.

        Args:
            share: The share of answers, from 0 to 1, such as 0.95.

        Returns:
            Tokens for chunks; None if no request was answered yet.

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
            if seen / total >= share:  # a product may be rounded up, above the share
                return budget
        return None

    def to_dict(self) -> dict[str, Any]:
        """
        Return a dict of all figures.

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


class Packed(NamedTuple):
    """A packing's additions to the figures."""

    counts: Mapping[str, int]
    next_budget: int | None  # None if nothing was cut
    full_budget: int
    is_exact: bool


def packed(
    packing: Packing[Any], dropped: int, cut: Sequence[int], counter: TokenCounter
) -> Packed:
    """
    Return what a packing adds to the figures; *dropped* is how many chunks the budget dropped.

    A bounded sample of these, and of the kept chunks at the places *cut*, is counted.
    """
    total = packing.total_tokens
    counts = {"kept_chunks": len(packing.kept), "retrieved_tokens": total}
    if not dropped and not cut:
        return Packed(counts, None, max(1, total), is_exact=True)
    # Cut chunks come before dropped ones, so more budget would first go to the parts cut off.
    kept, dropped_at = packing._kept, packing._dropped  # noqa: SLF001
    sample = [(kept[at], packing._counts[at]) for at in _spread(cut)]  # noqa: SLF001
    rests = _lost(packing, sample, len(cut), counter)
    sample = [(dropped_at[at], 0) for at in _spread(_places(packing, dropped))]
    whole = _lost(packing, sample, dropped, counter)
    separator = counter.count("\n\n") if dropped else 0
    tokens = rests.tokens + whole.tokens
    counts |= {"cut": 1, "cut_chunks": len(cut)}
    counts |= {"dropped_chunks": dropped, "dropped_tokens": tokens}
    return Packed(
        counts,
        total + (rests.first if cut else separator + whole.first),
        max(1, total + dropped * separator + tokens),
        is_exact=rests.is_exact and whole.is_exact,
    )


class _Lost(NamedTuple):
    """The tokens that dropped or cut chunks lost."""

    first: int
    tokens: int
    is_exact: bool


def _lost(
    packing: Packing[Any], sample: Sequence[tuple[int, int]], chunks: int, counter: TokenCounter
) -> _Lost:
    """Return what *chunks* chunks lost, from a *sample* of index and kept tokens."""
    if not sample:
        return _Lost(0, 0, is_exact=True)
    items = packing._chunks  # noqa: SLF001
    limits = [kept + _LONGEST for _, kept in sample]
    counts = counter._count_chunks(tuple([items[i] for i, _ in sample]), limits)  # noqa: SLF001
    lost = [
        _LONGEST if count is None else max(0, count - kept)
        for count, (_, kept) in zip(counts, sample, strict=True)
    ]
    is_exact = len(sample) == chunks and None not in counts
    total = sum(lost)
    if len(sample) < chunks:
        total = round(total / len(sample) * chunks)
    return _Lost(lost[0], total, is_exact)


def _places(packing: Packing[Any], dropped: int) -> Sequence[int]:
    """Return the places of the chunks dropped for the budget."""
    if dropped == packing.dropped_count:
        return range(dropped)
    reasons = packing._reasons  # noqa: SLF001
    return [place for place, reason in enumerate(reasons) if reason == _BUDGET]


def _spread(places: Sequence[int]) -> Sequence[int]:
    """Return some of *places*, evenly spaced, or all if they are few."""
    size = min(len(places), _SAMPLE)
    return [places[i * len(places) // size] for i in range(size)]


class Recorder:
    """Adds figures up, in bounded memory: there are at most about 500 buckets."""

    def __init__(self) -> None:
        self._begin_anew()
        self._begin()
        renew(self)

    def _begin_anew(self) -> None:
        """Make a new lock, which no thread of another process holds."""
        self._lock = threading.RLock()  # a signal handler may call in the middle of an update

    def _begin(self) -> None:
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._is_exact = True
        self._next: dict[int, int] = {}
        self._full: dict[int, int] = {}

    def begin(self) -> None:
        """Add a request."""
        with self._lock:
            self._counts["requests"] += 1

    def end(self, outcome: Outcome, packed: Packed | None) -> None:
        """Add its outcome and figures at once, so that they stay consistent."""
        with self._lock:
            self._counts[outcome] += 1
            if packed is None:
                return
            for name, count in packed.counts.items():
                self._counts[name] += count
            self._is_exact &= packed.is_exact
            budgets = (self._next, packed.next_budget), (self._full, packed.full_budget)
            for histogram, budget in budgets:
                if budget is not None:
                    bound = bucket(budget)
                    histogram[bound] = histogram.get(bound, 0) + 1

    def stats(self, *, reset: bool) -> ServiceStats:
        """Return the figures, and reset them if asked; no request is lost between the two."""
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
    Return the upper bound of the bucket of *tokens*; there are eight for each power of two.

    Examples:
        >>> [bucket(tokens) for tokens in (1, 8, 9, 17, 1000, 1025)]
        [1, 8, 9, 18, 1024, 1152]

    """
    step = 1 << max(0, (tokens - 1).bit_length() - 4)
    return -(-tokens // step) * step
