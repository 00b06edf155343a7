"""The data that each ranking needs, for the facade and the reference."""

from typing import NamedTuple

from budgeteer._codes import (
    BM25,
    COVERAGE,
    EMBEDDING,
    HYBRID,
    INPUT,
    KEYWORD,
    RANK,
    RECENCY,
    SCORE,
)

HybridWire = tuple[float, float, float, float | None]
"""The weights of BM25, cosine and own score, and the k of reciprocal ranks or None."""


class Needs(NamedTuple):
    """
    The data that a ranking needs.

    Attributes:
        bm25: The terms of query, texts and titles, as BM25 counts them.
        keywords: The keywords of query, texts and titles.
        cosines: The cosines between the vectors of query and chunks.
        scores: The chunks' own scores.
        times: The times of the chunks' last changes.

    """

    bm25: bool = False
    keywords: bool = False
    cosines: bool = False
    scores: bool = False
    times: bool = False

    @property
    def titles(self) -> bool:
        """Whether titles are read."""
        return self.bm25 or self.keywords


_NEEDS = {
    BM25: Needs(bm25=True),
    KEYWORD: Needs(keywords=True),
    RECENCY: Needs(keywords=True, times=True),
    INPUT: Needs(keywords=True),
    SCORE: Needs(scores=True),
    EMBEDDING: Needs(cosines=True),
}


def needs_of(ranking: int, hybrid: HybridWire | None = None, selection: int = RANK) -> Needs:
    """Return the needs of the ranking with that code; *hybrid* are a hybrid ranking's weights."""
    if ranking == HYBRID and hybrid is not None:
        bm25, embedding, score, _ = hybrid
        needs = Needs(bm25=bm25 > 0, cosines=embedding > 0, scores=score > 0)
    else:
        needs = _NEEDS[ranking]
    return needs._replace(bm25=True) if selection == COVERAGE else needs
