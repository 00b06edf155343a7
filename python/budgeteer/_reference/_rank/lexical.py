"""Reference of ``rust/core/src/score/lexical.rs``: BM25 with headings, links and feedback."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from budgeteer._codes import FEEDBACK as FED
from budgeteer._codes import HEADING
from budgeteer._codes import LINK as LINKED
from budgeteer._reference._rank.bm25 import ln, pairs_of
from budgeteer._reference._rank.statistics import Statistics
from budgeteer._reference._rank.terms import Terms, Words, terms

MAX_HEADING = 120
"""The most code points of a first line that is a heading."""

SOURCES = 3
"""The number of best chunks whose texts name other chunks."""

MAX_RUN = 32
"""The most terms of a heading that is looked for."""

LINK = 0.2
"""The share of its source's score that a linked chunk gets."""

EXPANSION = 10
"""The number of words taken from the best chunk."""

FEEDBACK = 0.2
"""The weight of the strongest of these words."""

LEAST_FREQUENCY = 2.0
"""The number of chunks that must have such a word."""

DIGITS = tuple("0123456789")
"""What numbers begin with. A stem may be empty, which is none."""


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
    statistics: Statistics | None = None

    @property
    def words(self) -> Words:
        """Stemming and stopwords."""
        return self.stemming, self.stopwords


Signal: TypeAlias = tuple[int, int, int, float]
"""
A text, a kind, another text, and what is added to the score of the first.

For a heading, 1 in place of the other text says that the query has all its terms.
"""


@dataclass(slots=True)
class Scored:
    """
    The scores of all texts.

    Attributes:
        scores: The scores.
        signals: What they have besides the scores of the query's words.

    """

    scores: list[float]
    signals: list[Signal] = field(default_factory=list)


def score(query: str, texts: Sequence[tuple[str, str]], options: Options) -> Scored:
    """
    Return the score of each text with its title, over all of them.

    The order of the operations is part of the result, as the native backend uses the same.
    """
    return _Scoring(query, texts, options).scored()


class _Scoring:
    def __init__(self, query: str, texts: Sequence[tuple[str, str]], options: Options) -> None:
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
        self.known: dict[str, int] = {}
        if options.statistics is not None:
            _, chunks, words, self.known = options.statistics
            self.size = max(self.size, float(chunks))
            if chunks and words:
                self.mean = float(words) / float(chunks)

    def scored(self) -> Scored:
        options = self.options
        scores = [0.0] * len(self.texts)
        scored = Scored(scores)
        if not self.wanted or not scores:
            return scored
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
                    added = value * (len(hits) / len(stems))
                    scores[i] += added
                    is_whole = len(hits) == len(stems)
                    scored.signals.append((i, HEADING, int(is_whole), added))
        if options.links:
            self._link(scored, headings, named)
        if options.feedback:
            self._feed_back(scored)
        return scored

    def _link(self, scored: Scored, headings: list[str], named: list[Counter[str]]) -> None:
        """Let the best texts raise those whose headings they name."""
        before = list(scored.scores)
        linked: dict[int, Signal] = {}
        order = sorted(range(len(before)), key=lambda i: -before[i])
        runs = [terms(each) for each in headings]
        for place, source in enumerate(order[:SOURCES]):
            if before[source] <= 0.0:
                break
            within = [terms(part) for part in self.texts[source]]
            for i in order[place + 1 :]:
                if i in linked or not named[i] or named[i].keys() <= self.wanted.keys():
                    continue
                if len(runs[i]) > MAX_RUN or runs[i] == runs[source]:
                    continue
                if any(_contains(part, runs[i]) for part in within):
                    linked[i] = (i, LINKED, source, LINK * before[source])
        for i, signal in sorted(linked.items()):
            scored.scores[i] += signal[3]
            scored.signals.append(signal)

    def _feed_back(self, scored: Scored) -> None:
        """Add what the strongest other words of the best text score."""
        scores = scored.scores
        before = list(scores)
        best = min(range(len(scores)), key=lambda i: -scores[i])
        if scores[best] <= 0.0:
            return
        strong = []
        for term in self.counted[best]:
            if term is None or term in self.wanted or term.startswith(DIGITS):
                continue
            if self._frequency(term) >= LEAST_FREQUENCY:
                idf = self._idf(term)
                strong.append((-self._part(best, term, idf), term, idf))
        strong = sorted(strong)[:EXPANSION]
        if not strong or strong[0][0] == 0.0:  # in 2**52 texts a word of all weighs nothing
            return
        fed = set()
        for strength, term, idf in strong:
            weight = (FEEDBACK * (strength / strong[0][0])) * idf
            for i in range(len(scores)):
                scores[i] += self._part(i, term, weight)
                if term in self.counted[i]:
                    fed.add(i)
        scored.signals.extend((i, FED, best, scores[i] - before[i]) for i in sorted(fed))

    def _part(self, i: int, term: str, weight: float) -> float:
        """Return what a term of that weight adds to the score of text *i*."""
        count = float(self.counted[i][term])
        if count == 0.0:
            return 0.0
        k1, b = self.options.k1, self.options.b
        norm = k1 * ((1.0 - b) + b * (self.lengths[i] / self.mean))
        return weight * ((count * (k1 + 1.0)) / (count + norm))

    def _frequency(self, term: str) -> float:
        found = sum(term in counts for counts in self.counted)
        return float(max(found, self.known.get(term, 0)))

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


def lexical_scores(
    query: str,
    texts: Sequence[object],
    titles: Sequence[object] | None,
    options: tuple[Any, ...],
) -> bytearray | tuple[int, int]:
    """Score each text as float64; or return a code and the index of an item that is not a str."""
    pairs = pairs_of(texts, titles)
    if isinstance(pairs, tuple):
        return pairs
    return bytearray(array("d", score(query, pairs, Options(*options)).scores).tobytes())


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
