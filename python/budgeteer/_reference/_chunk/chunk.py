"""Reference of ``rust/binding/src/chunk.rs``: texts and titles of chunks of any type."""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgeteer._codes import NO_TEXT, TEXT_ATTRIBUTES, TEXT_KEYS, TEXT_TYPE, TITLE_TYPE
from budgeteer._validate import is_null

_MISSING = object()


def read(
    chunks: Iterable[Any], with_titles: bool
) -> tuple[list[str], list[str]] | tuple[int, int]:
    """Return texts and titles; or a code and the index of the first chunk that cannot be read."""
    texts: list[str] = []
    titles: list[str] = []
    accesses: dict[type, Access] = {}
    for i, chunk in enumerate(chunks):
        kind = type(chunk)
        if issubclass(kind, str):
            texts.append(str.__str__(chunk))
            titles.append("")
            continue
        if kind not in accesses:
            accesses[kind] = access(chunk, with_titles)
        found = accesses[kind]
        name, get = found.text, found.getter(chunk)
        if found.is_mapping:
            name = next((key for key in TEXT_KEYS if key in chunk), None)
            text = _MISSING if name is None else chunk[name]
        else:
            text = _MISSING if name is None else getattr(chunk, name, _MISSING)
        if text is _MISSING:
            return NO_TEXT, i
        if not issubclass(type(text), str):
            return TEXT_TYPE, i
        title = get("title") if with_titles else None
        if with_titles and _is_missing(title):
            title = title_inside(get)
        if title is not None and not issubclass(type(title), str):
            return TITLE_TYPE, i
        texts.append(str.__str__(text))
        titles.append("" if title is None else str.__str__(title))
    return texts, titles


def _is_missing(title: Any) -> bool:
    """Return whether the title of a chunk itself gives way to its metadata's."""
    return is_null(title) or (issubclass(type(title), str) and not str.__len__(title))


@dataclass(frozen=True)
class Access:
    """Where the objects of a type hold their text, and which other attributes are read."""

    is_mapping: bool
    text: str | None = None
    others: frozenset[str] = frozenset()

    def getter(self, chunk: Any) -> Callable[[str], Any]:
        """Return the function that returns a field of *chunk*, None where there is none."""
        if self.is_mapping:
            return chunk.get  # type: ignore[no-any-return]
        return lambda name: getattr(chunk, name, None) if name in self.others else None


def access(chunk: object, with_titles: bool) -> Access:
    """Return how objects of the type of *chunk* are read: as the first of them is."""
    if isinstance(chunk, Mapping):
        return Access(True)
    for name in TEXT_ATTRIBUTES:
        if hasattr(chunk, name):
            others = ("title", "metadata", "meta") if with_titles else ()
            return Access(
                False, name, frozenset(other for other in others if hasattr(chunk, other))
            )
    return Access(False)


def title_inside(get: Callable[[str], Any]) -> str | None:
    """Return the title in the metadata, None unless it is a str."""
    metadata = get("metadata")
    if is_null(metadata):
        metadata = get("meta")
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    return title if isinstance(title, str) else None


def read_scores(chunks: Sequence[Any]) -> tuple[bytearray, list[int]]:
    """
    Return the scores that are plain floats as float64, NaN for the others, whose indices follow.

    The facade reads those. Here that is all: it defines what a score is.
    """
    return bytearray(array("d", [math.nan]) * len(chunks)), [*range(len(chunks))]


def scored(kind: type, chunks: list[Any], scores: list[float | None]) -> list[Any]:
    """Return copies of chunks that have these scores, as objects of *kind*, a class with slots."""
    copies = []
    for chunk, score in zip(chunks, scores, strict=True):
        copy: Any = object.__new__(kind)
        for name in kind.__slots__:  # type: ignore[attr-defined]  # it has slots
            value = score if name == "score" else getattr(chunk, name)
            object.__setattr__(copy, name, value)
        copies.append(copy)
    return copies
