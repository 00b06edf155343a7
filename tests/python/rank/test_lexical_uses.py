"""Where the lexical ranking stands: as default, as fallback, in hybrids; and its errors."""

import math

import numpy as np
import pytest

from budgeteer import Chunk, Corpus, InvalidArgumentError, Packer, pack
from budgeteer.errors import EmbeddingError
from budgeteer.ranking import Bm25, Embedding, Hybrid, Lexical, lexical_scores

ADA = "Ada gave her books to the Blue Library."
QUERY = "Where are Ada's books?"
SCORES = lexical_scores(
    QUERY, ["It is in Lyon.", "Rye bread.", ADA], titles=["Blue Library", "", ""]
).tolist()
"""The scores of CHUNKS."""


def scores_of(packing):
    """Return the scores of a packing that has room for all chunks, by their indices."""
    return {one.index: one.score for one in packing.kept}


class Away:
    """An embedder that never answers."""

    def embed(self, texts):
        raise EmbeddingError("it is away")


CHUNKS = [{"title": "Blue Library", "text": "It is in Lyon."}, "Rye bread.", ADA]


def test_it_is_the_default(backend):
    """A packer ranks by it, and a corpus finds by it; the scores are those of the function."""
    assert "lexical" == Packer(1).ranking
    assert dict(enumerate(SCORES)) == scores_of(pack(QUERY, CHUNKS, 99))
    assert [ADA, CHUNKS[0]] == [
        one.text if isinstance(one, Chunk) and not one.title else CHUNKS[0]
        for one in Corpus(CHUNKS).retrieve(QUERY, 2)
    ]


@pytest.mark.parametrize(
    ("embedding", "expected", "named"),
    [
        (Embedding(Away(), fallback="lexical"), Lexical(), "lexical"),
        (Embedding(Away(), fallback=Lexical(links=False)), Lexical(links=False), "lexical"),
        (Embedding(Away(), fallback="bm25"), Bm25(), "bm25"),
        (
            Hybrid(embedding=Embedding(Away(), fallback="lexical")),
            Lexical(),
            "lexical",
        ),
        (
            Hybrid(bm25=Lexical(k3=0), embedding=Embedding(Away(), fallback="bm25")),
            Lexical(k3=0),
            "lexical",
        ),
    ],
)
def test_fallback(backend, caplog, embedding, expected, named):
    """A fallback ranks by words where the embedder fails, and the packing names it."""
    for pool in (CHUNKS, Corpus(CHUNKS)):
        packing = Packer(99, ranking=embedding).pack(QUERY, pool)
        wanted = Packer(99, ranking=expected).pack(QUERY, pool)

        assert named == packing.fallback
        assert [one.score for one in wanted.kept] == [one.score for one in packing.kept]
        assert f"by {named}, as embedding failed" in packing.explain(0)
    assert "it is away" in caplog.text


def test_hybrid_scales_the_whole_score(backend):
    """A hybrid ranking takes scores with headings, links and feedback, scaled as any."""
    packer = Packer(99, ranking=Hybrid({"bm25": 2}, bm25=Lexical()))
    expected = {0: 2 * SCORES[0] / SCORES[2], 1: 0.0, 2: 2.0}

    assert expected == pytest.approx(scores_of(packer.pack(QUERY, CHUNKS)))
    plain = Packer(99, ranking=Hybrid({"bm25": 2})).pack(QUERY, CHUNKS)
    assert 0.0 == scores_of(plain)[0]


def test_coverage_and_sentences_count_its_words(backend):
    """Coverage, and sentences, go by its stems and stopwords."""
    chunks = ["Tea. Lunch is at noon.", "We worked remotely. Nothing here."]
    for options in ({"selection": "coverage"}, {"units": "sentence"}):
        stemmed, plain = (
            Packer(5, counter="words", ranking=by, **options).pack("working", chunks).text
            for by in (Lexical(), Lexical(stemming=None))
        )
        assert "worked" in stemmed
        assert "worked" not in plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k3": -0.1}, "k3 must be from 0 to 1000000, not -0.1"),
        ({"k3": math.inf}, "k3 must be from 0 to 1000000, not inf"),
        ({"k3": math.nan}, "k3 must be a number, not NaN"),
        ({"k3": "3"}, "k3 must be a float, not str"),
        ({"k3": True}, "k3 must be a float, not bool"),
        ({"k1": -1}, "k1 must be from 0 to 1000000, not -1.0"),
        ({"b": 2}, "b must be from 0 to 1, not 2.0"),
        ({"headings": 1}, "headings must be a bool, not int"),
        ({"links": "no"}, "links must be a bool, not str"),
        ({"feedback": None}, "feedback must be a bool, not None"),
        ({"stemming": "englisch"}, "stemming must be one of 'arabic', .*; did you mean 'english'"),
        ({"stopwords": 3}, "stopwords must be the name of a language, .*, not int"),
    ],
)
def test_bad_options(backend, options, message):
    """A wrong option is named, by the ranking and the function alike."""
    for call in (lambda: Lexical(**options), lambda: lexical_scores("", [], **options)):
        with pytest.raises(InvalidArgumentError, match=f"^{message}"):
            call()


def test_flags_of_numpy():
    """A bool of numpy is a bool."""
    assert Lexical(links=False) == Lexical(links=np.bool_(False))


@pytest.mark.parametrize("bad", [None, 3, b"x"])
def test_bad_text(backend, bad):
    """What is no str is named by argument, index and type, never by its text."""
    kind = "None" if bad is None else type(bad).__name__
    with pytest.raises(InvalidArgumentError, match=rf"^texts\[1\] must be a str, not {kind}$"):
        lexical_scores("tea", ["secret", bad])
    with pytest.raises(InvalidArgumentError, match=rf"^titles\[1\] must be a str, not {kind}$"):
        lexical_scores("tea", ["a", "b"], titles=["secret", bad])
    with pytest.raises(InvalidArgumentError, match=r"^titles has 1 entries, but texts has 2$"):
        lexical_scores("tea", ["a", "b"], titles=["secret"])


@pytest.mark.parametrize("titles", [None, []])
def test_empty(backend, titles):
    """No texts have scores of shape (0,)."""
    found = lexical_scores("tea", [], titles=titles)

    assert ((0,), np.float64) == (found.shape, found.dtype)
    assert "" == pack("tea", Corpus(), 9).text


def test_without_words(backend):
    """A weight for words of 0 leaves nothing for these options to do."""
    with pytest.raises(InvalidArgumentError, match="where weights has none for 'bm25'"):
        Hybrid({"score": 1}, bm25=Lexical())
