"""Reference of ``rust/core/src/corpus.rs``: the texts themselves, read again for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from budgeteer._reference._chunk.chunk import read
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
