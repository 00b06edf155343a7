"""Reference of ``rust/core/src/score/lexical.rs``: BM25 with headings, links and feedback."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from budgeteer._reference._rank.bm25 import ln
from budgeteer._reference._rank.terms import Terms, Words, terms

MAX_HEADING = 120
"""The most code points of a first line that is a heading."""

SOURCES = 3
"""The number of best chunks whose texts name other chunks."""

LINK = 0.2
"""The share of its source's score that a linked chunk gets."""

EXPANSION = 10
"""The number of words taken from the best chunk."""

FEEDBACK = 0.2
"""The weight of the strongest of these words."""

LEAST_FREQUENCY = 2.0
"""The number of chunks that must have such a word."""


class Options(NamedTuple):
    """The options of the ranking, as a backend takes them."""

    k1: float
    b: float
    stemming: str | None
    stopwords: str | tuple[str, ...] | None
    k3: float
    headings: bool
    links: bool
    feedback: bool

    @property
    def words(self) -> Words:
        """Stemming and stopwords."""
        return self.stemming, self.stopwords


@dataclass(slots=True)
class Found:
    """
    The scores of all texts, and what they are made of.

    Attributes:
        scores: The scores.
        linked: The texts that another names by their heading, each with that other.

    """

    scores: list[float]
    linked: dict[int, int] = field(default_factory=dict)


def score(query: str, texts: Sequence[tuple[str, str]], options: Options) -> Found:
    """
    Return the score of each text with its title, over all of them.

    The order of the operations is part of the result, as the native backend uses the same.
    """
    return _Scoring(query, texts, options).found()


class _Scoring:
    def __init__(
        self, query: str, texts: Sequence[tuple[str, str]], options: Options
    ) -> None:
        self.texts, self.options = texts, options
        rules = Terms(options.words)
        self.stopwords = rules.stopwords()
        self.stem = rules.stem()
        self.wanted = self._stems(terms(query))
        self.counted = [Counter(self._marked(pair)) for pair in texts]
        self.lengths = [float(sum(counts.values())) for counts in self.counted]
        total = 0.0
        for length in self.lengths:
            total += length
        self.size = float(len(texts))
        self.mean = total / self.size if texts else 0.0

    def found(self) -> Found:
        options = self.options
        scores = [0.0] * len(self.texts)
        found = Found(scores)
        if not self.wanted or not scores:
            return found
        idf = {term: self._idf(term) for term in self.wanted}
        k3 = options.k3
        for term, times in self.wanted.items():
            weight = idf[term] * (((k3 + 1.0) * times) / (k3 + times))
            for i in range(len(scores)):
                scores[i] += self._part(i, term, weight)
        headings: list[str] = []
        named: list[Counter[str]] = []
        if options.headings or options.links:
            headings = [heading(*pair) for pair in self.texts]
            named = [self._stems(terms(each)) for each in headings]
        if options.headings:
            for i, stems in enumerate(named):
                hits = [term for term in self.wanted if term in stems]
                if hits:
                    value = 0.0
                    for term in hits:
                        value += idf[term]
                    scores[i] += value * (len(hits) / len(stems))
        if options.links:
            self._link(found, headings, named)
        if options.feedback:
            self._feed_back(scores)
        return found

    def _link(self, found: Found, headings: list[str], named: list[Counter[str]]) -> None:
        """Let the best texts raise those whose headings they name."""
        before = list(found.scores)
        order = sorted(range(len(before)), key=lambda i: -before[i])
        runs = [terms(each) for each in headings]
        for place, source in enumerate(order[:SOURCES]):
            if before[source] <= 0.0:
                break
            within = [terms(part) for part in self.texts[source]]
            for i in order[place + 1 :]:
                if i in found.linked or not named[i] or named[i].keys() <= self.wanted.keys():
                    continue
                if runs[i] != runs[source] and any(_contains(part, runs[i]) for part in within):
                    found.linked[i] = source
                    found.scores[i] = before[i] + LINK * before[source]

    def _feed_back(self, scores: list[float]) -> None:
        """Add what the strongest other words of the best text score."""
        best = min(range(len(scores)), key=lambda i: -scores[i])
        if scores[best] <= 0.0:
            return
        strong = []
        for term in self.counted[best]:
            if term is None or term in self.wanted or term[0] in "0123456789":
                continue
            if self._frequency(term) >= LEAST_FREQUENCY:
                idf = self._idf(term)
                strong.append((-self._part(best, term, idf), term, idf))
        strong = sorted(strong)[:EXPANSION]
        for strength, term, idf in strong:
            weight = (FEEDBACK * (strength / strong[0][0])) * idf
            for i in range(len(scores)):
                scores[i] += self._part(i, term, weight)

    def _part(self, i: int, term: str, weight: float) -> float:
        """Return what a term of that weight adds to the score of text *i*."""
        count = float(self.counted[i][term])
        if count == 0.0:
            return 0.0
        k1, b = self.options.k1, self.options.b
        norm = k1 * ((1.0 - b) + b * (self.lengths[i] / self.mean))
        return weight * ((count * (k1 + 1.0)) / (count + norm))

    def _frequency(self, term: str) -> float:
        return float(sum(term in counts for counts in self.counted))

    def _idf(self, term: str) -> float:
        frequency = self._frequency(term)
        return ln(1.0 + (self.size - frequency + 0.5) / (frequency + 0.5))

    def _stems(self, words: list[str]) -> Counter[str]:
        """Return the stems of *words*, without stopwords, in order of occurrence."""
        return Counter(self.stem(word) for word in words if word not in self.stopwords)

    def _marked(self, pair: tuple[str, str]) -> list[str | None]:
        """Return the stems of a text and its title; a stopword becomes None."""
        words = (word for part in pair for word in terms(part))
        return [None if word in self.stopwords else self.stem(word) for word in words]


def heading(text: str, title: str) -> str:
    """
    Return the title, else a short first line with text behind it, else nothing.

    What stands in parentheses at its end is left out.
    """
    found = title
    if not title:
        end = text.find("\n", 0, MAX_HEADING + 1)
        found = text[:end] if end > 0 and text[end:].strip() else ""
    shown = found.rstrip()
    if shown.endswith(")"):
        start = max(shown.rfind(mark, 0, -1) for mark in "()")
        if start >= 0 and shown[start] == "(":
            return shown[:start]
    return found


def _contains(words: list[str], run: list[str]) -> bool:
    """Return whether *run* stands in *words*, word for word."""
    return any(words[at : at + len(run)] == run for at in range(len(words) - len(run) + 1))
