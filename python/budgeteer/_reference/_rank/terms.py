"""Reference of ``rust/core/src/terms.rs``: the terms that BM25 counts."""

import functools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from budgeteer._reference._rank import stopword_table as _stopword_table
from budgeteer._reference._rank.stem import stemmer

STOPWORDS = frozenset(
    "a about above after again against all also am an and any are aren as at be because been "
    "before being below between both but by can cannot could couldn did didn do does doesn doing "
    "down during each every few for from further had hadn has hasn have haven having he her here "
    "hers herself him himself his how i if in into is isn it its itself just ll may me might more "
    "most mustn my myself no nor not of off on once only or other ought our ours ourselves out "
    "over own re s same shan she should shouldn so some such t than that the their theirs them "
    "themselves then there these they this those through to too under until up us ve very was "
    "wasn we were weren what when where which while who whom why will with would wouldn you your "
    "yours yourself yourselves".split()
)
"""
English stopwords: the stopwords of keywords, the other words of Snowball's list, and the pieces of
its contractions.
"""

UNSPACED_SCRIPTS = (
    (0x0E01, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x3005, 0x3006),
    (0x3031, 0x3035), (0x303B, 0x303C), (0x3041, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA960, 0xA97F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip
"""
The scripts whose letters are terms in pairs: Thai and Lao, Myanmar, Hangul, Khmer, Kana, Bopomofo
and Han.
"""

ASCII_WORD = re.compile("[a-z0-9]+")

SEPARATOR, WORD, UNSPACED, MARK = range(4)
"""The kinds of characters in terms."""


@functools.lru_cache(maxsize=8_192)
def kind(character: str) -> int:
    """Return the kind of *character*."""
    category = unicodedata.category(character)[0]
    if category == "L":
        code = ord(character)
        is_unspaced = any(first <= code <= last for first, last in UNSPACED_SCRIPTS)
        return UNSPACED if is_unspaced else WORD
    return {"N": WORD, "M": MARK}.get(category, SEPARATOR)


def terms(text: str) -> list[str]:
    """Return the terms of *text*: its words, and pairs of letters of scripts without spaces."""
    lowered = text.lower().replace("\u03c2", "\u03c3")  # a final sigma is a sigma
    if lowered.isascii():
        return ASCII_WORD.findall(lowered)
    found = []
    start, before = 0, SEPARATOR
    for place, character in enumerate((*lowered, " ")):
        here = kind(character)
        if here == MARK:
            here = before  # a mark belongs to the character before it
        if here != before:
            run = lowered[start:place]
            if before == UNSPACED and len(run) > 1:
                found += [run[i : i + 2] for i in range(len(run) - 1)]
            elif before != SEPARATOR:
                found.append(run)
            start, before = place, here
    return found


Words = tuple[str | None, str | tuple[str, ...] | None]
"""The language of stems, if any; the language of stopwords, or the stopwords."""

DEFAULT_WORDS: Words = (None, "english")


@dataclass(frozen=True, slots=True)
class Terms:
    """Turns texts into terms, with stopwords and stemming."""

    words: Words = DEFAULT_WORDS

    def stopwords(self) -> Collection[str]:
        """Return the stopwords, which match nothing."""
        _, given = self.words
        if given == "english":
            return STOPWORDS
        if isinstance(given, str):
            return frozenset(_stopword_table.STOPWORDS[given].split())
        return frozenset(term for word in given or () for term in terms(word))

    def stem(self) -> Callable[[str], str]:
        """Return the function that stems a word; without a language, a word is its own stem."""
        language, _ = self.words
        return _same if language is None else stemmer(language)

    def of_query(self, query: str) -> list[str]:
        """Return the terms of *query*, stemmed, each once, in order of occurrence."""
        language, _ = self.words
        stopwords = self.stopwords()
        wanted = [term for term in terms(query) if term not in stopwords]
        return list(dict.fromkeys(wanted if language is None else map(stemmer(language), wanted)))

    def of_texts(self, texts: Iterable[str]) -> list[list[str | None]]:
        """Return the terms of each of *texts*, stemmed; a stopword becomes None."""
        language, _ = self.words
        if language is None:
            return [[*terms(text)] for text in texts]  # not needed: queries have no stopwords
        stopwords, stem = self.stopwords(), stemmer(language)
        return [
            [None if term in stopwords else stem(term) for term in terms(text)] for text in texts
        ]


def _same(word: str) -> str:
    return word
