"""Reference of ``rust/core/src/statistics.rs``."""

from collections import Counter
from typing import NamedTuple

from budgeteer._reference._rank.terms import Terms, Words, terms


class Statistics(NamedTuple):
    """How many chunks and words a collection has, and by stem the number of chunks with it."""

    of: Words
    chunks: int
    words: int
    frequencies: dict[str, int]


def statistics_of(texts: list[str], titles: list[str], of: Words) -> Statistics:
    """Return the statistics of texts with their titles."""
    rules = Terms(of)
    stopwords, stem = rules.stopwords(), rules.stem()
    words = 0
    frequencies: Counter[str] = Counter()
    for pair in zip(texts, titles, strict=True):
        found = [word for part in pair for word in terms(part)]
        words += len(found)
        frequencies.update({stem(word) for word in found if word not in stopwords})
    return Statistics(of, len(texts), words, dict(frequencies))
