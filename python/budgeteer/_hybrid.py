"""The hybrid ranking: what it weighs, and how it compares scores of different scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError

Hybrid: TypeAlias = tuple[float, float, float, float | None]
"""What a backend takes: the weight of each of `WEIGHTS`, and the k of reciprocal ranks or None."""

WEIGHTS = ("bm25", "embedding", "score")
"""What a hybrid ranking weighs."""

FUSIONS = ("minmax", "rrf")


def weights_of(weights: object) -> dict[str, float]:
    """Return the weights that the caller names, checked."""
    if not isinstance(weights, Mapping):
        raise InvalidArgumentError(
            f"weights must be a mapping or None, not {_validate.type_name(weights)}"
        )
    checked = {}
    for name, weight in weights.items():
        _validate.choice("a key of weights", name, WEIGHTS)
        checked[name] = _validate.number_between(f"weights[{name!r}]", weight, 0, 1_000_000)
    if not any(checked.values()):
        raise InvalidArgumentError("weights must have one above 0")
    return checked


def hybrid_of(weights: Mapping[str, float] | None, fusion: str, rrf_k: float) -> Hybrid:
    """Return what a backend takes; None weighs BM25 and embedding alike."""
    k = rrf_k if fusion == "rrf" else None
    if weights is None:
        weight = 0.5 if k is None else 1.0
        weights = {"bm25": weight, "embedding": weight}
    bm25, embedding, score = (weights.get(name, 0.0) for name in WEIGHTS)
    return bm25, embedding, score, k
