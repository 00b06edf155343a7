"""Scores of texts against a query, for those who rank on their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._codes import TITLE_TYPE
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["keyword_scores"]


def keyword_scores(
    query: str, texts: Sequence[str], *, titles: Sequence[str] | None = None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """
    Return the share of the query's keywords that each text or its title contains.

    Keywords are the lowercased words between whitespace, without the punctuation
    ``. , ; : ! ? " ' ( ) [ ] { } / -`` at either end, longer than one character, and not among 96
    English stopwords. A text without any keyword scores 0, whatever its title.

    Args:
        query: The question.
        texts: The texts to score, shape ``(n,)``.
        titles: A title for each text, shape ``(n,)``; None for no titles.

    Returns:
        Scores from 0.0 to 1.0 as float64, shape ``(n,)``.

    Raises:
        InvalidArgumentError: An argument has a wrong type, or the lengths differ.

    Examples:
        >>> keyword_scores("What is the remote work policy?", ["Remote Work Policy", "PTO policy"])
        array([1.        , 0.33333333])

    """
    import numpy as np

    query = _validate.text("query", query)
    items = _validate.batch("texts", texts)
    headings = None if titles is None else _validate.batch("titles", titles)
    if headings is not None and len(headings) != len(items):
        raise InvalidArgumentError(
            f"titles has {len(headings)} entries, but texts has {len(items)}"
        )
    scores = backend.keyword_scores(query, items, headings)
    if isinstance(scores, tuple):
        code, i = scores
        if code == TITLE_TYPE and headings is not None:
            _validate.text(f"titles[{i}]", headings[i])
        _validate.text(f"texts[{i}]", items[i])
    return np.frombuffer(scores, dtype=np.float64)
