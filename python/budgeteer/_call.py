"""A call of a packer: its arguments, and what its chunks are ranked by."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from budgeteer import _chunk, _validate
from budgeteer._corpus import State
from budgeteer._hybrid import Hybrid
from budgeteer._packing import Packing
from budgeteer._similarity import Vectors
from budgeteer.errors import EmbeddingError, InvalidArgumentError

LOG = logging.getLogger("budgeteer")


@dataclass(slots=True)
class Call:
    """
    The arguments of a call.

    ``state`` is that of the corpus which the items are, None where they are a batch. ``fallback``
    is the ranking that replaces that of the packer, None until one does.
    """

    query: str
    items: Sequence[Any]
    state: State[Any] | None
    budget: int
    reserve: int
    vectors: Vectors | None
    previous: Packing[Any] | None
    links: tuple[str, ...]
    allowed: str | None
    fallback: str | None = None

    def within(self, limit: int, reserve: int) -> Call:
        """Return the call for another limit, of which *reserve* tokens are set aside."""
        budget = max(0, limit - reserve)
        return replace(self, budget=budget, reserve=limit - budget)

    def fall_back(self, error: EmbeddingError) -> None:
        """Replace the ranking where that is allowed; raise *error* otherwise."""
        if self.allowed is None:
            raise error
        LOG.warning(
            *("ranking by %s, as embedding failed: %s", self.allowed, error),
            extra={
                "fallback": self.allowed,
                "chunks": len(self.items),
                "http.status": error.status,
                "is_retryable": error.is_retryable,
            },
        )
        self.fallback = self.allowed

    def keys(self, ranking: str, hybrid: Hybrid | None) -> bytes | None:
        """Return what the chunks are ranked by beside their words."""
        if self.fallback is not None:
            return None
        if self.state is not None and ranking in ("recency", "score"):
            return self.state.keys(ranking)
        if ranking == "recency":
            return _chunk.mtime_keys(self.items)
        keys = None if self.vectors is None else self.vectors.cosines()
        if ranking == "score":
            return _chunk.score_keys(self.items)
        if hybrid is not None and hybrid[2] > 0:
            keys = (keys or b"") + _chunk.finite_score_keys(self.items)
        return keys


def links_of(previous: Packing[Any] | None, order: str) -> tuple[str, ...]:
    """Return what a backend takes for the packing before."""
    if previous is None:
        return ()
    if not isinstance(previous, Packing):
        raise InvalidArgumentError(
            f"previous must be a Packing or None, not {_validate.type_name(previous)}"
        )
    if order != "sticky":
        raise InvalidArgumentError(
            f"previous must be None under order={order!r}: it is for order='sticky'"
        )
    return previous._links()
