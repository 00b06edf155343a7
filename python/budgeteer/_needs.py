"""The data that each ranking needs, for the facade and the reference."""

from typing import NamedTuple

from budgeteer._codes import (
    COVERAGE,
    EMBEDDING,
    HYBRID,
    INPUT,
    KEYWORD,
    LEXICAL,
    RANK,
    RECENCY,
    SCORE,
)

HybridWire = tuple[float, float, float, float | None]
"""The weights of words, cosine and own score, and the k of reciprocal ranks or None."""


class Needs(NamedTuple):
    """
    The data that a ranking needs.

    Attributes:
        terms: The terms of query, texts and titles.
        keywords: The keywords of query, texts and titles.
        cosines: The cosines between the vectors of query and chunks.
        scores: The chunks' own scores.
        times: The times of the chunks' last changes.

    """

    terms: bool = False
    keywords: bool = False
    cosines: bool = False
    scores: bool = False
    times: bool = False

    @property
    def titles(self) -> bool:
        """Whether titles are read."""
        return self.terms or self.keywords


_NEEDS = {
    LEXICAL: Needs(terms=True),
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
        needs = Needs(terms=bm25 > 0, cosines=embedding > 0, scores=score > 0)
    else:
        needs = _NEEDS[ranking]
    return needs._replace(terms=True) if selection == COVERAGE else needs
