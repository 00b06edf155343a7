"""Reference of ``rust/core/src/stem.rs``: the stems of words."""

import importlib
from collections.abc import Callable

from budgeteer.errors import BudgeteerError

MAX_CHARS = 64
"""A longer word is its own stem."""


def stemmer(language: str) -> Callable[[str], str]:
    """Return the function that stems a word of *language*; each is made once."""
    # Not snowballstemmer.stemmer(), which prefers PyStemmer's, of another release.
    try:
        module = importlib.import_module(f"snowballstemmer.{language}_stemmer")
    except ImportError:
        raise BudgeteerError(
            f"without the native backend, stemming={language!r} needs snowballstemmer: "
            "pip install 'budgeteer[stemming]'"
        ) from None
    stem_word = getattr(module, f"{language.title()}Stemmer")().stemWord
    stems: dict[str, str] = {}

    def stem(word: str) -> str:
        if word not in stems:
            stems[word] = stem_word(word) if len(word) <= MAX_CHARS else word
        return stems[word]

    return stem
