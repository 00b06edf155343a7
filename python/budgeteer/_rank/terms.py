"""The words that BM25 counts: languages of stems, stopwords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError

Language: TypeAlias = Literal[
    "arabic", "armenian", "basque", "catalan", "dutch", "english", "esperanto", "estonian",
    "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "polish", "portuguese", "romanian", "russian", "serbian",
    "spanish", "swedish", "tamil", "turkish",
]  # fmt: skip
STEMMED: tuple[Language, ...] = get_args(Language)
"""Snowball's languages in which every word has the same stem in Rust and in Python."""

Listed: TypeAlias = Literal[
    "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "indonesian",
    "irish", "italian", "norwegian", "portuguese", "russian", "sesotho", "spanish", "swedish",
]  # fmt: skip
LISTED: tuple[Listed, ...] = get_args(Listed)
"""The languages with a list of stopwords."""

Stopwords: TypeAlias = Listed | AbstractSet[str] | list[str] | tuple[str, ...]
"""A language, or a collection of words; not any iterable, as a misspelt language is one."""

Words: TypeAlias = tuple[Language | None, Listed | tuple[str, ...] | None]
"""The form that backends take: the language of stems, and the stopwords or their language."""


def words_of(stemming: object, stopwords: object) -> Words:
    """Return the two options, checked, as a backend takes them."""
    language = None if stemming is None else _validate.choice("stemming", stemming, STEMMED)
    return language, _stopwords(stopwords)


def _stopwords(stopwords: object) -> Listed | tuple[str, ...] | None:
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
