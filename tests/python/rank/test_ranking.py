"""Ranking: scores by keyword overlap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, Liar, long_texts, queries, texts, using

from budgeteer import InvalidArgumentError, pack, ranking

QUERY = "What is the remote work policy?"


@pytest.mark.parametrize("name", BACKENDS)
@given(
    query=queries,
    pairs=st.lists(st.tuples(texts | long_texts, st.just("") | texts), max_size=6),
)
def test_scores(name, query, pairs):
    """Scores are shares of the query's keywords as float64, the ones that pack ranks by."""
    items, titles = [text for text, _ in pairs], [title for _, title in pairs]
    with using(name) as backend:
        scores = ranking.keyword_scores(query, items, titles=titles)
        chunks = [{"text": text, "title": title} for text, title in pairs]
        packing = pack(query, chunks, 10**9, ranking="keyword", dedupe=None)
        wanted = backend.keywords(query)
        found = [backend.keywords(text) for text in items]
        headed = [backend.keywords(title) for title in titles]

    expected = [
        len({*wanted} & {*a, *b}) / len(wanted) if wanted and a else 0.0
        for a, b in zip(found, headed, strict=True)
    ]
    assert expected == scores.tolist()
    assert (np.float64, (len(items),)) == (scores.dtype, scores.shape)
    for chunk in (*packing.kept, *packing.dropped):
        assert scores[chunk.index] == chunk.score


def test_example(backend):
    """The document's example: all, one and none of the query's three keywords."""
    items = ["Remote Work Policy: employees may", "PTO Policy", "Office hours"]

    assert [1.0, 1 / 3, 0.0] == ranking.keyword_scores(QUERY, items).tolist()


def test_str_subclass(backend):
    """Texts of a str subclass score by their characters, whatever their methods say."""
    tea = Liar("tea")

    assert [1.0, 0.0] == ranking.keyword_scores("tea", [tea, "loud"]).tolist()
    assert [1.0, 0.0] == ranking.keyword_scores(tea, ["tea", "loud"]).tolist()
    assert [1.0] == ranking.keyword_scores("tea", ["rye"], titles=[tea]).tolist()


def test_titles(backend):
    """A title's keywords count, but not for a text without any of its own."""
    items, titles = ["Employees may.", "", "the", "x"], ["Remote work"] * 4

    assert [2 / 3, 0.0, 0.0, 0.0] == ranking.keyword_scores(QUERY, items, titles=titles).tolist()


@pytest.mark.parametrize("query", ["", " ", "the", "a I x", "?!", "-"])
def test_query_without_keywords(backend, query):
    """A query without keywords scores 0.0 everywhere."""
    assert [0.0, 0.0] == ranking.keyword_scores(query, ["the", query + " tea"]).tolist()


@pytest.mark.parametrize(
    ("query", "text", "score"),
    [
        ("TEA", "tea", 1.0),
        ("tea", "(Tea)!", 1.0),
        ("tea", "'\"tea\"'", 1.0),
        ("tea", "teas", 0.0),
        ("tea", "green-tea", 0.0),
        ("tea", "*tea*", 0.0),
        ("don't", "Don't.", 1.0),
        ("e-mail", "e mail", 0.0),
        ("a/b/c", "/A/B/C/", 1.0),
        ("42", "[42]", 1.0),
        ("tea tea TEA", "tea", 1.0),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2", 1.0),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3", 0.0),
        ("\u212aelvin", "KELVIN", 1.0),
        ("STRASSE", "stra\u00dfe", 0.0),
        ("STRA\u1e9eE", "stra\u00dfe", 1.0),
        ("\u0130x", "i\u0307x", 1.0),
        ("\u01c5x", "\u01c6X", 1.0),
        ("caf\u00e9", "cafe\u0301", 0.0),
        ("tea", "x\x1ctea\x1fy", 1.0),
        ("tea", "x\u00a0tea\u3000y", 1.0),
        ("tea", "x\u0085tea\u2028y", 1.0),
        ("tea", "x\u200btea\u180ey", 0.0),
        ("tea", "\ufefftea", 0.0),
        ("te\ud800", "TE\ud800,", 1.0),
    ],
)
def test_words(backend, query, text, score):
    """Words are lowered, split and stripped as Python does it, and are equal or not."""
    assert [score] == ranking.keyword_scores(query, [text]).tolist()
    assert [score] == ranking.keyword_scores(query, ["some text"], titles=[text]).tolist()


def test_keywords_whose_first_letters_mix(backend):
    """Vectors may take the space behind a short text for the start of "$0" or "p.m"."""
    query = "$0 b1 c1 d1 e1 f1 g1 h1 p.m"
    scores = ranking.keyword_scores(query, ["Tea.", "Tea at 5 p.m.", "x" * 64])
    assert [0.0, 1 / 9, 0.0] == scores.tolist()


@pytest.mark.parametrize("titles", [None, []])
def test_empty(backend, titles):
    """No texts have scores of shape (0,)."""
    scores = ranking.keyword_scores("tea", [], titles=titles)

    assert ((0,), np.float64) == (scores.shape, scores.dtype)


@pytest.mark.parametrize("titles", [[], ["a"], ["a", "b", "c"]])
def test_lengths_differ(backend, titles):
    """Titles of another length than the texts are refused, with both lengths."""
    with pytest.raises(InvalidArgumentError, match=f"titles has {len(titles)} .* texts has 2"):
        ranking.keyword_scores("tea", ["a", "b"], titles=titles)


@pytest.mark.parametrize("bad", [None, 3, b"x", ["x"], True])
def test_bad_text(backend, bad):
    """What is no str is named by argument, index and type."""
    kind = "None" if bad is None else type(bad).__name__
    with pytest.raises(InvalidArgumentError, match=rf"^texts\[1\] must be a str, not {kind}$"):
        ranking.keyword_scores("tea", ["secret", bad, None])
    with pytest.raises(InvalidArgumentError, match=rf"^titles\[1\] must be a str, not {kind}$"):
        ranking.keyword_scores("tea", ["a", "b", "c"], titles=["secret", bad, None])
    with pytest.raises(InvalidArgumentError, match=rf"^query must be a str, not {kind}$"):
        ranking.keyword_scores(bad, [])


@pytest.mark.parametrize("bad", ["text", b"text", {"a": 1}, 3])
def test_no_batch(backend, bad):
    """A lone text, a mapping and what has no items are no batch."""
    with pytest.raises(InvalidArgumentError, match=r"^texts must be a sequence"):
        ranking.keyword_scores("tea", bad)
    with pytest.raises(InvalidArgumentError, match=r"^titles must be a sequence"):
        ranking.keyword_scores("tea", ["a"], titles=bad)
