"""Which words BM25 counts: languages of stems, stopwords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError

Words: TypeAlias = tuple[str | None, str | tuple[str, ...] | None]
"""What a backend takes: the language of stems, and that of stopwords or these themselves."""

STEMMED = (
    "arabic", "armenian", "basque", "catalan", "dutch", "english", "esperanto", "estonian",
    "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "polish", "portuguese", "romanian", "russian", "serbian",
    "spanish", "swedish", "tamil", "turkish",
)  # fmt: skip
"""Snowball's languages of which every word has the same stem in Rust and in Python."""

LISTED = (
    "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "indonesian",
    "irish", "italian", "norwegian", "portuguese", "russian", "sesotho", "spanish", "swedish",
)  # fmt: skip
"""The languages of which there are stopwords."""


def words_of(stemming: object, stopwords: object) -> Words:
    """Return what a backend takes for the two options, checked."""
    language = None if stemming is None else _validate.choice("stemming", stemming, STEMMED)
    return language, _stopwords(stopwords)


def _stopwords(stopwords: object) -> str | tuple[str, ...] | None:
    if stopwords is None:
        return None
    if isinstance(stopwords, str):
        return _validate.choice("stopwords", stopwords, LISTED)
    if isinstance(stopwords, (bytes, bytearray, Mapping)) or not isinstance(stopwords, Iterable):
        raise InvalidArgumentError(
            "stopwords must be the name of a language, a collection of words or None, "
            f"not {_validate.type_name(stopwords)}"
        )
    found = {_validate.text(f"stopwords[{i}]", word) for i, word in enumerate(stopwords)}
    return tuple(sorted(found)) or None
