"""Reference of ``rust/binding/src/chunk.rs``: texts and titles of chunks of any type."""

from collections.abc import Mapping, Sequence
from typing import Any

from budgeteer._codes import NO_TEXT, TEXT_ATTRIBUTES, TEXT_KEYS, TEXT_TYPE, TITLE_TYPE

_MISSING = object()


def read(
    chunks: Sequence[Any], with_titles: bool
) -> tuple[list[str], list[str]] | tuple[int, int]:
    """Return texts and titles; or a code and the index of the first chunk that cannot be read."""
    texts: list[str] = []
    titles: list[str] = []
    accesses: dict[type, tuple[str | None, bool]] = {}
    for i, chunk in enumerate(chunks):
        kind = type(chunk)
        if issubclass(kind, str):
            texts.append(str.__str__(chunk))
            titles.append("")
            continue
        if kind not in accesses:
            accesses[kind] = access(chunk, with_titles)
        name, has_title = accesses[kind]
        if name == MAPPING:
            key = next((key for key in TEXT_KEYS if key in chunk), None)
            text = _MISSING if key is None else chunk[key]
            title = chunk.get("title") if with_titles and key is not None else None
        else:
            text = _MISSING if name is None else getattr(chunk, name, _MISSING)
            title = getattr(chunk, "title", None) if has_title and text is not _MISSING else None
        if text is _MISSING:
            return NO_TEXT, i
        if not issubclass(type(text), str):
            return TEXT_TYPE, i
        if title is not None and not issubclass(type(title), str):
            return TITLE_TYPE, i
        texts.append(str.__str__(text))
        titles.append("" if title is None else str.__str__(title))
    return texts, titles


MAPPING = ""
"""In place of an attribute's name: the mapping's keys."""


def access(chunk: object, with_title: bool) -> tuple[str | None, bool]:
    """Return the attribute with the text of objects of this type, and whether they have titles."""
    if isinstance(chunk, Mapping):
        return MAPPING, False
    for name in TEXT_ATTRIBUTES:
        if hasattr(chunk, name):
            return name, with_title and hasattr(chunk, "title")
    return None, False
