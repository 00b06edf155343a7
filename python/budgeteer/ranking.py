"""Rankings with their options, and functions that score texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from budgeteer import _process, _validate
from budgeteer._backend import backend
from budgeteer._codes import TITLE_TYPE
from budgeteer._rank import similarity
from budgeteer._rank.rankings import Bm25, Embedding, Hybrid, Lexical
from budgeteer._rank.statistics import Statistics
from budgeteer._rank.terms import Language, Stopwords
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Bm25",
    "Embedding",
    "Hybrid",
    "Lexical",
    "Statistics",
    "bm25_scores",
    "cosine_scores",
    "keyword_scores",
    "lexical_scores",
]


def keyword_scores(
    query: str, texts: Sequence[str], *, titles: Sequence[str] | None = None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """
    Return the share of the query's keywords that each text or its title contains.

    Keywords are the lowercased words between whitespace, without the punctuation
    ``. , ; : ! ? " ' ( ) [ ] { } / -`` at either end, longer than one character, and not in a list
    of 96 English stopwords. A text without any keyword scores 0, whatever its title.

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
    batch = _batch(query, texts, titles)
    return _scores(backend.keyword_scores(*batch), *batch)


def bm25_scores(
    query: str,
    texts: Sequence[str],
    *,
    titles: Sequence[str] | None = None,
    k1: float = 1.2,
    b: float = 0.75,
    stemming: Language | None = None,
    stopwords: Stopwords | None = "english",
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """
    Return the BM25 score of each text, with its title, for the query.

    A term of the query scores ``ln(1 + (N - n + 0.5) / (n + 0.5))``, where n of the N texts
    contain it, times ``f * (k1 + 1) / (f + k1 * (1 - b + b * L / A))``, where the text contains it
    f times and has L terms, and A is the mean of L (Robertson and Zaragoza, "The Probabilistic
    Relevance Framework: BM25 and Beyond", with the idf of Lucene). A text's title counts as a part
    of it.

    Terms are lowercased words: runs of letters, digits and the marks after them, of any script. In
    Korean and in scripts without spaces (Chinese, Japanese, Thai and the like), each pair of
    neighbouring letters is a term. Stopwords match nothing but count for the length of a text.
    Under *stemming*, words of the same stem are one term.

    Args:
        query: The question.
        texts: The texts to score, shape ``(n,)``.
        titles: A title for each text, shape ``(n,)``; None for no titles.
        k1: How much repetitions of a term add, from 0 (nothing) to 1,000,000.
        b: How strongly long texts are marked down, from 0 to 1.
        stemming: A language, as for `Bm25`.
        stopwords: A language or words, as for `Bm25`.

    Returns:
        Scores from 0.0 up as float64, shape ``(n,)``. They compare within one call only.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, or the lengths
            differ.

    Examples:
        >>> bm25_scores("What is black tea?", ["Green tea.", "Black tea, black tea.", "Coffee."])
        array([0.49917627, 1.66117668, 0.        ])
        >>> bm25_scores("working remotely", ["Remote work.", "Lunch."], stemming="english")
        array([1.21993904, 0.        ])

    """
    bm25 = Bm25(stemming=stemming, stopwords=stopwords, k1=k1, b=b)
    batch = _batch(query, texts, titles)
    words = (bm25.stemming, bm25.stopwords)
    return _scores(backend.bm25_scores(*batch, bm25.k1, bm25.b, words), *batch)


def lexical_scores(
    query: str,
    texts: Sequence[str],
    *,
    titles: Sequence[str] | None = None,
    stemming: Language | None = "english",
    stopwords: Stopwords | None = "english",
    headings: bool = True,
    links: bool = True,
    feedback: bool = True,
    k1: float = 1.2,
    b: float = 0.75,
    k3: float = 3.0,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """
    Return the score of each text, with its title, by BM25, headings, links and feedback.

    A term of the query weighs its idf (the first factor of `bm25_scores`) times
    ``(k3 + 1) * f / (k3 + f)``, where the query has it f times. To the sum of these weights, each
    times the second factor of `bm25_scores`, are added, in this order:

    - *headings*: the idf of all terms that heading and query share, times the share of the
      heading's distinct terms that they are.
    - *links*: a fifth of the score of one of the three best texts, for a text behind it whose
      heading stands there word for word. The heading must have a term that the query has not, at
      most 32 terms in all, and differ from that of the best text.
    - *feedback*: for each of the ten other terms of the best text that score most there, what it
      scores in the text, times a fifth of its share of the first one's score. Terms that begin
      with a digit, and those of no other text, are left out.

    A heading is the title or, without one, a first line of at most 120 characters with text behind
    it; words in parentheses at its end are left out.

    Args:
        query: The question.
        texts: The texts to score, shape ``(n,)``.
        titles: A title for each text, shape ``(n,)``; None for no titles.
        stemming: A language, as for `Lexical`.
        stopwords: A language or words, as for `Lexical`.
        headings: Whether headings count, as above.
        links: Whether links count.
        feedback: Whether feedback counts.
        k1: How much repetitions of a term in a text add, from 0 (nothing) to 1,000,000.
        b: How strongly long texts are marked down, from 0 to 1.
        k3: How much repetitions of a term in the query add, from 0 (nothing) to 1,000,000.

    Returns:
        Scores from 0.0 up as float64, shape ``(n,)``. They compare within one call only.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, or the lengths
            differ.

    Examples:
        >>> texts = ["Ada gave her books to the Blue Library.", "It is in Lyon.", "It rains."]
        >>> titles = ["Ada", "Blue Library", "Weather"]
        >>> lexical_scores("Where are Ada's books?", texts, titles=titles)
        array([3.13354878, 0.78349587, 0.        ])

    """
    lexical = Lexical(
        stemming=stemming, stopwords=stopwords, headings=headings, links=links,
        feedback=feedback, k1=k1, b=b, k3=k3,
    )  # fmt: skip
    batch = _batch(query, texts, titles)
    return _scores(backend.lexical_scores(*batch, lexical._wire), *batch)  # noqa: SLF001


def cosine_scores(query_vector: object, vectors: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """
    Return the cosine between the query's vector and each of *vectors*.

    The scores are the same to the bit on every machine. Vectors need not be normalised.

    Args:
        query_vector: The query's vector, shape ``(d,)``; a list of numbers will do.
        vectors: The vectors to compare it with, shape ``(n, d)``. A contiguous float32 array of
            numpy, of Arrow (fixed-size lists) or of any other buffer is read in place. A strided,
            float16 or float64 array is copied as float32. Lists are refused.

    Returns:
        Scores from -1.0 to 1.0 as float64, shape ``(n,)``; 0.0 if one of the two vectors is zero.

    Raises:
        InvalidArgumentError: An argument has a wrong type or shape, the dimensions differ, or a
            number is infinite or NaN.

    Examples:
        >>> import numpy
        >>> vectors = numpy.array([[1, 0], [3, 4], [0, 0]], dtype="float32")
        >>> cosine_scores([0, 2], vectors)
        array([0. , 0.8, 0. ])

    """
    _process.load_numpy()
    import numpy as np

    names = ("query_vector", "vectors")
    wanted = similarity.query_vector(names[0], query_vector)
    found = similarity.chunk_vectors(names[1], vectors)
    return np.frombuffer(similarity.cosine_scores(wanted, found, names), dtype=np.float64)


def _batch(
    query: object, texts: object, titles: object
) -> tuple[str, Sequence[Any], Sequence[Any] | None]:
    """Return checked arguments; a backend checks the types of texts and titles."""
    query = _validate.text("query", query)
    items = _validate.batch("texts", texts)
    headings = None if titles is None else _validate.batch("titles", titles)
    if headings is not None and len(headings) != len(items):
        raise InvalidArgumentError(
            f"titles has {len(headings)} entries, but texts has {len(items)}"
        )
    return query, items, headings


def _scores(
    scores: Any, _query: str, texts: Sequence[Any], titles: Sequence[Any] | None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a backend's scores as an array, or raise if it could not read a text."""
    _process.load_numpy()
    import numpy as np

    if isinstance(scores, tuple):
        code, i = scores
        if code == TITLE_TYPE and titles is not None:
            _validate.text(f"titles[{i}]", titles[i])
        _validate.text(f"texts[{i}]", texts[i])
    return np.frombuffer(scores, dtype=np.float64)
