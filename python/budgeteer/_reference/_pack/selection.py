"""Reference of ``rust/core/src/selection.rs``: the order of admission."""

import heapq
import math
from collections.abc import Sequence

from budgeteer._reference._rank import bm25 as _bm25
from budgeteer._reference._rank.terms import Words

CANDIDATES = 512
"""The number of best-ranked chunks to consider."""

RELEVANCE = 2.0
"""The weight of a chunk's rank, where one word of the query weighs 1."""


def by_coverage(
    query: str,
    pairs: Sequence[tuple[str, str]],
    order: Sequence[int],
    k1: float,
    b: float,
    words: Words,
) -> list[int]:
    """Return *order*, which is by rank, with the chunks that cover *query* best first."""
    candidates = order[:CANDIDATES]
    texts = [pairs[i] for i in candidates]
    weights, parts = _bm25.parts(query, texts, k1, b, words)
    return [candidates[place] for place in cover(weights, parts)] + list(order[CANDIDATES:])


def cover(weights: Sequence[float], parts: Sequence[Sequence[tuple[int, float]]]) -> list[int]:
    """
    Return the places of texts in the order in which the greedy method takes them.

    Lazily: a text's gain is computed again only while it seems to be the largest. The order of the
    operations is part of the result, as the native backend uses the same.
    """
    most = 0.0
    for found in parts:
        whole = 0.0
        for _, part in found:
            whole += part
        most = max(most, whole)
    covered = [0.0] * len(weights)

    def gain(place: int) -> float:
        gain = 0.0
        for term, part in parts[place]:
            weight, before = weights[term], covered[term]
            gain += math.sqrt(weight * (before + part)) - math.sqrt(weight * before)
        return RELEVANCE * (most / math.sqrt(place + 1)) + gain

    chosen: list[int] = []
    offers = [(-gain(place), place, 0) for place in range(len(parts))]
    heapq.heapify(offers)
    while offers:
        _, place, had = heapq.heappop(offers)
        if had < len(chosen):
            heapq.heappush(offers, (-gain(place), place, len(chosen)))
            continue
        for term, part in parts[place]:
            covered[term] += part
        chosen.append(place)
    return chosen
