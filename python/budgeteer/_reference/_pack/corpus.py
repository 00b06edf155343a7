"""Reference of ``rust/core/src/corpus.rs``: the texts themselves, read again for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from budgeteer._reference._chunk.chunk import read
from budgeteer._reference._rank.statistics import statistics_of
from budgeteer._reference._rank.terms import Words
from budgeteer.errors import BudgeteerError


@dataclass(frozen=True, slots=True)
class Index:
    """The texts and titles of a corpus."""

    texts: list[str]
    titles: list[str]


def index_chunks(chunks: Sequence[object], index: Index | None) -> Index | tuple[int, int]:
    """Index chunks after those of *index*; or return a code and the index of a bad chunk."""
    found = read(chunks, with_titles=True)
    texts, titles = found
    if isinstance(texts, int) or isinstance(titles, int):
        return found  # type: ignore[return-value]  # both are numbers, or neither
    if index is None:
        return Index(texts, titles)
    return Index(index.texts + texts, index.titles + titles)


def remove_chunks(index: Index, places: list[int]) -> Index:
    """Return the index of the chunks that are not at *places*."""
    gone = set(places)
    rest = [place for place in range(len(index.texts)) if place not in gone]
    return Index([index.texts[place] for place in rest], [index.titles[place] for place in rest])


def replace_chunks(
    index: Index, places: list[int], chunks: Sequence[object]
) -> Index | tuple[int, int]:
    """Return the index of chunks that are others at *places*; or as `index_chunks`."""
    new = index_chunks(chunks, None)
    if isinstance(new, tuple):
        return new
    texts, titles = list(index.texts), list(index.titles)
    for place, text, title in zip(places, new.texts, new.titles, strict=True):
        texts[place], titles[place] = text, title
    return Index(texts, titles)


def corpus_statistics(index: Index, of: Words) -> tuple[int, int, dict[str, int]]:
    """Return the number of chunks and of words, and of the chunks with each stem."""
    _, chunks, words, frequencies = statistics_of(index.texts, index.titles, of)
    return chunks, words, frequencies


_NATIVE_ONLY = "files of corpora need the native backend: the reference knows none"


def save_corpus(index: Index, path: str, records: list[bytes]) -> NoReturn:
    """Refuse."""
    raise BudgeteerError(_NATIVE_ONLY)


def open_corpus(path: str) -> NoReturn:
    """Refuse."""
    raise BudgeteerError(_NATIVE_ONLY)


def stored_chunk(index: Index, place: int) -> NoReturn:
    """Refuse."""
    raise BudgeteerError(_NATIVE_ONLY)
