"""Statistics of a collection: in how many of its chunks each word stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._public import public
from budgeteer._rank.terms import Language, Stopwords, words_of
from budgeteer.errors import InvalidArgumentError

MOST = 2**53
"""The most words of a collection: up to it a float is exact."""


@public("budgeteer.ranking")
@dataclass(frozen=True, slots=True)
class Statistics:
    """
    How many chunks and words a collection has, and in how many chunks each word stands.

    Under ``Lexical(statistics=...)`` or ``Bm25(statistics=...)`` a word weighs what it weighs in
    the whole collection, although a call has some of its chunks only: those of a shard, say, or
    those that the shards found. `Corpus.retrieve` does not take them. `Corpus.statistics` makes
    them. They can be pickled, and made again of
    what their attributes hold, as JSON has it.

    Args:
        chunks: The number of chunks, from 0 on.
        words: The number of words of all chunks and their titles, stopwords included, from 0 on.
        frequencies: By stem the number of chunks that have it, up to *chunks*; by word, without
            stemming. One of no or one chunk may be left out.
        stemming: The language of the stems, as for `Bm25`.
        stopwords: The words left out, as for `Bm25`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.

    Examples:
        >>> from budgeteer import Corpus, Packer
        >>> from budgeteer.ranking import Lexical, Statistics
        >>> shards = Corpus(["Green tea.", "Rye bread."]), Corpus(["Black tea.", "White tea."])
        >>> statistics = Statistics.merged(shard.statistics() for shard in shards)
        >>> statistics
        Statistics(chunks=4, words=8, stemming='english', stopwords='english')
        >>> packer = Packer(6, ranking=Lexical(statistics=statistics))
        >>> packer.pack("tea or bread", ["Green tea.", "Rye bread."]).text
        'Rye bread.'

    """

    chunks: int
    words: int
    frequencies: Mapping[str, int] = field(repr=False, hash=False)
    _: KW_ONLY
    stemming: Language | None = "english"
    stopwords: Stopwords | None = "english"
    _wire: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stemming, stopwords = words_of(self.stemming, self.stopwords)
        chunks = _validate.whole("chunks", self.chunks, 0, MOST)
        words = _validate.whole("words", self.words, 0, MOST)
        if not isinstance(self.frequencies, Mapping):
            found = _validate.type_name(self.frequencies)
            raise InvalidArgumentError(f"frequencies must be a mapping, not {found}")
        frequencies = {
            _validate.text("a key of frequencies", word): number
            if type(number) is int and 0 <= number <= chunks
            else _validate.whole("a value of frequencies", number, 0, chunks)
            for word, number in self.frequencies.items()
        }
        wire = backend.Statistics((stemming, stopwords), chunks, words, frequencies)
        for name, value in (
            ("chunks", chunks), ("words", words), ("frequencies", frequencies),
            ("stemming", stemming), ("stopwords", stopwords), ("_wire", wire),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @classmethod
    def merged(cls, parts: Iterable[Statistics]) -> Statistics:
        """
        Return the statistics of a collection from those of its parts.

        Raises:
            InvalidArgumentError: There is no part, one is not a `Statistics`, or two differ in
                stemming or stopwords.

        Examples:
            >>> from budgeteer import Corpus
            >>> parts = [Corpus([text]).statistics() for text in ("Green tea.", "Tea leaves.")]
            >>> Statistics.merged(parts).frequencies["tea"]
            2

        """
        found = [*_validate.iterable("parts", parts, "an iterable of Statistics")]
        chunks = words = 0
        frequencies: dict[str, int] = {}
        for i, part in enumerate(found):
            if not isinstance(part, Statistics):
                raise InvalidArgumentError(
                    f"parts[{i}] must be a Statistics, not {_validate.type_name(part)}"
                )
            refuse_other_words(f"parts[{i}]", part, found[0], "parts[0]")
            chunks, words = chunks + part.chunks, words + part.words
            for word, number in part.frequencies.items():
                frequencies[word] = frequencies.get(word, 0) + number
        if not found:
            raise InvalidArgumentError("parts must have a Statistics")
        stemming, stopwords = found[0].stemming, found[0].stopwords
        return cls(chunks, words, frequencies, stemming=stemming, stopwords=stopwords)

    def __reduce__(self) -> Any:
        """Pickle what it was made of."""
        made = self.chunks, self.words, self.frequencies
        return _restored, (made, (self.stemming, self.stopwords))


def refuse_other_words(name: str, statistics: Statistics, other: Any, whose: str) -> None:
    """Refuse statistics of other stems or stopwords than those of *other*, which has both."""
    for option in ("stemming", "stopwords"):
        found, wanted = getattr(statistics, option), getattr(other, option)
        if found != wanted:
            raise InvalidArgumentError(
                f"{name} must have the {option} of {whose}, {_shown(wanted)}, not {_shown(found)}"
            )


def _shown(value: object) -> str:
    return f"{len(value)} words" if isinstance(value, tuple) else repr(value)


def _restored(made: tuple[int, int, Mapping[str, int]], words: tuple[Any, Any]) -> Statistics:
    return Statistics(*made, stemming=words[0], stopwords=words[1])
