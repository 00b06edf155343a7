"""Hybrid ranking: several scores as one, the same on both backends."""

import math
import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    chunk_lists,
    compared,
    odd_texts,
    outcome,
    queries,
    using,
)

from budgeteer import Chunk, InvalidArgumentError, Packer, ranking
from budgeteer._pack import prepared
from budgeteer._pack.call import begun
from budgeteer.embedding import EmbeddingError
from budgeteer.ranking import Bm25, Embedding, Hybrid

QUERY = "green tea"
TEXTS = ["Green tea, green.", "Rye bread.", "Black tea.", "Coffee."]
VECTORS = (
    np.array([1, 0], np.float32),
    np.array([[0, 1], [4, 3], [3, 4], [-1, 0]], np.float32),
)
COSINES = [0.0, 0.8, 0.6, -1.0]
GIVEN = [None, 7.0, -1.0, 3.0]
CHUNKS = [Chunk(text, score=score) for text, score in zip(TEXTS, GIVEN, strict=True)]


class Axes:
    """An embedder of texts that are all alike."""

    def embed(self, texts):
        return np.ones((len(texts), 2), np.float32)


class Failing:
    """An embedder that answers nothing."""

    def embed(self, texts):
        raise EmbeddingError("it is away")


def packed(chunks=CHUNKS, vectors=VECTORS, query=QUERY, **options):
    """Return the score of each chunk, and their order, by a hybrid ranking of these options."""
    packer = Packer(10**6, ranking=Hybrid(**options), dedupe=None)
    packing = packer.pack(query, chunks, vectors=vectors)
    scores = {chunk.index: chunk.score for chunk in (*packing.kept, *packing.dropped)}
    return [scores[i] for i in range(len(chunks))], [kept.index for kept in packing.kept]


def scaled(column):
    """What min-max makes of scores, as the documentation has it."""
    known = [score for score in column if score is not None]
    low, high = min(known, default=0), max(known, default=0)
    return [
        0.0 if score is None or low == high else (score - low) / (high - low) for score in column
    ]


def places(column, k=60):
    """What reciprocal ranks are, as the documentation has it."""
    known = [i for i, score in enumerate(column) if score is not None]
    order = sorted(known, key=lambda i: (-column[i], i))
    return [1 / (k + order.index(i) + 1) if i in order else 0.0 for i in range(len(column))]


def added(*columns):
    """The weighted sum: pairs of a weight and scores, from left to right."""
    sums = [0.0] * len(columns[0][1])
    for weight, column in columns:
        sums = [total + weight * score for total, score in zip(sums, column, strict=True)]
    return sums


def by_score(scores):
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def bm25():
    return ranking.bm25_scores(QUERY, TEXTS).tolist()


def test_default(backend):
    """BM25 and the cosine weigh half each, both scaled from 0 to 1."""
    scores, order = packed()

    assert added((0.5, scaled(bm25())), (0.5, scaled(COSINES))) == scores
    assert by_score(scores) == order == [0, 2, 1, 3]


@pytest.mark.parametrize(
    "weights",
    [
        {"bm25": 0.3, "embedding": 0.7},
        {"embedding": 2, "bm25": 0.1, "score": 1},
        {"embedding": 1},
        {"score": 0.25, "embedding": 1e6},
        {"bm25": 0, "embedding": 5e-324, "score": 0},
    ],
)
def test_weights(backend, weights):
    """The score is the weighted sum; a chunk without a score of its own gets 0 for it."""
    expected = added(
        (weights.get("bm25", 0), scaled(bm25())),
        (weights["embedding"], scaled(COSINES)),
        (weights.get("score", 0), scaled(GIVEN)),
    )
    scores, order = packed(weights=weights)

    assert expected == scores
    assert by_score(scores) == order


@pytest.mark.parametrize("k", [60, 0, 1.5, 1_000_000])
def test_reciprocal_ranks(backend, k):
    """The published fusion: 1 / (k + r) by each ranking, r from 1 on, ties by input order."""
    scores, order = packed(fusion="rrf", k=k)
    assert added((1, places(bm25(), k)), (1, places(COSINES, k))) == scores
    assert by_score(scores) == order

    weights = {"score": 1.0, "bm25": 1.0, "embedding": 1.0}
    scores, _ = packed(fusion="rrf", k=k, weights=weights)
    columns = bm25(), COSINES, GIVEN
    assert added(*((1, places(column, k)) for column in columns)) == scores


def test_places_of_ties(backend):
    """Equal scores take their places in input order; -0.0 equals 0.0."""
    chunks = [Chunk("a", score=score) for score in (-0.0, 1, 0.0, 1, None)]
    scores, order = packed(chunks, None, weights={"score": 1}, fusion="rrf", k=0)

    assert [1 / 3, 1, 1 / 4, 1 / 2, 0.0] == scores
    assert [1, 3, 0, 2, 4] == order


def test_without_vectors(backend):
    """Where the embedding weighs nothing no vectors are needed, nor taken."""
    weights = {"bm25": 1, "score": 2}
    scores, _ = packed(vectors=None, weights=weights)

    assert added((1, scaled(bm25())), (2, scaled(GIVEN))) == scores
    with pytest.raises(
        InvalidArgumentError,
        match=r"^vectors must be None under ranking='hybrid' without a weight for 'embedding', ",
    ):
        packed(weights=weights)
    with pytest.raises(InvalidArgumentError, match=r"^vectors must be a pair"):
        packed(vectors=None)


def test_constant_columns(backend):
    """Scores that are all equal tell nothing: they scale to 0."""
    same = [Chunk("tea", score=5.0)] * 3
    vectors = VECTORS[0], np.ones((3, 2), np.float32)
    weights = {"bm25": 1, "embedding": 1, "score": 1}

    assert ([0.0] * 3, [0, 1, 2]) == packed(same, vectors, weights=weights)
    assert ([0.0], [0]) == packed(same[:1], (VECTORS[0], vectors[1][:1]), weights=weights)
    assert ([0.0] * 3, [0, 1, 2]) == packed(["a", "b", "c"], None, weights={"score": 1})
    assert ([], []) == packed([], (VECTORS[0], vectors[1][:0]), weights=weights)


def test_widest(backend):
    """No difference is infinite, however far scores are apart."""
    most = 1.7976931348623157e308
    chunks = [Chunk("a", score=score) for score in (-most, 0, most, None)]

    assert ([0.0, 0.5, 1.0, 0.0], [2, 1, 0, 3]) == packed(chunks, None, weights={"score": 1})


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinite_scores(backend, bad):
    """A score that nothing compares with is refused by its index, where it weighs something."""
    chunks = [*CHUNKS[:3], {"text": "x", "score": bad}]
    message = rf"^chunks\[3\].score must be finite under ranking='hybrid', not {bad}$"
    with pytest.raises(InvalidArgumentError, match=message):
        packed(chunks, weights={"embedding": 1, "score": 1})
    assert 4 == len(packed(chunks)[0])
    with pytest.raises(
        InvalidArgumentError, match=r"^chunks\[1\].score must be a number, not NaN"
    ):
        packed(["a", {"text": "b", "score": math.nan}], None, weights={"score": 1})


def test_min_score(backend):
    """min_score looks at the one score that comes out."""
    packer = Packer(99, ranking="hybrid", min_score=0.5)
    packing = packer.pack(QUERY, CHUNKS, vectors=VECTORS)

    assert all(kept.score >= 0.5 for kept in packing.kept)
    assert [(3, "out_of_scope")] == [(d.index, d.reason) for d in packing.dropped]


def test_titles(backend):
    """A title is read where BM25 weighs something."""
    chunks = [{"text": "a"}, {"text": "b", "title": "tea"}]
    assert ([0.0, 1.0], [1, 0]) == packed(chunks, None, "tea", weights={"bm25": 1})
    chunks = [{"text": "a", "score": 1}, {"text": "b", "title": 3}]
    assert ([0.0, 0.0], [0, 1]) == packed(chunks, None, "tea", weights={"score": 1})
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[1\].title must be a str, not int$"):
        packed(chunks, None, "tea", weights={"bm25": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": 3}, "weights must be a mapping or None, not int"),
        ({"weights": [("bm25", 1)]}, "weights must be a mapping or None, not list"),
        ({"weights": {}}, "weights must have one above 0"),
        ({"weights": {"bm25": 0, "score": -0.0}}, "weights must have one above 0"),
        ({"weights": {"bm25": -1}}, "weights.'bm25'. must be from 0 to 1000000, not -1.0"),
        ({"weights": {"score": 1e7}}, "weights.'score'. must be from 0 to 1000000, not .*"),
        ({"weights": {"bm25": math.nan}}, "weights.'bm25'. must be a number, not NaN"),
        ({"weights": {"bm25": "1"}}, "weights.'bm25'. must be a float, not str"),
        ({"weights": {"bm52": 1}}, "a key of weights must be one of .*; did you mean 'bm25'.*"),
        ({"weights": {3: 1}}, "a key of weights must be one of .*, not int"),
        ({"fusion": "rff"}, "fusion must be one of 'minmax', 'rrf', not 'rff'; did you mean .*"),
        ({"k": -1}, "k must be from 0 to 1000000, not -1.0"),
        ({"k": None}, "k must be a float, not None"),
        ({"k": 61}, "k must be 60 under fusion='minmax': it has none"),
        ({"bm25": "bm25"}, "bm25 must be a Bm25 or a Lexical, not str"),
        ({"bm25": None}, "bm25 must be a Bm25 or a Lexical, not None"),
        ({"embedding": None}, "embedding must be an Embedding, not None"),
        ({"embedding": Bm25()}, "embedding must be an Embedding, not Bm25"),
        (
            {"weights": {"score": 1}, "bm25": Bm25(k1=1)},
            r"bm25 must be Bm25\(\) where weights has none for 'bm25'",
        ),
        (
            {"weights": {"bm25": 0, "embedding": 1}, "bm25": Bm25(stemming="english")},
            r"bm25 must be Bm25\(\) where weights has none for 'bm25'",
        ),
        (
            {"weights": {"bm25": 1, "embedding": 0}, "embedding": Embedding(Axes())},
            r"embedding must be Embedding\(\) where weights has none for 'embedding'",
        ),
    ],
)
def test_bad_options(options, message):
    """What cannot be weighed, and what would have no effect, is refused when it is made."""
    with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
        Hybrid(**options)


@pytest.mark.parametrize("units", ["chunk", "sentence"])
def test_the_plan_of_a_fallback_is_made_once(backend, units):
    """An embedder that fails again and again costs no new plan each time."""
    packer = Packer(9, ranking=Embedding(Failing(), fallback="bm25"), units=units)
    made = prepared.prepared(packer)
    with mock.patch.object(prepared.backend, "Plan", side_effect=AssertionError("a new plan")):
        for _ in range(2):
            call = begun(made, "tea", ["Rye.", "Tea."])
            call.embed()
            assert call.prepared is made.stand_in
    assert made.stand_in.stand_in is None
    assert [None] * len(made.steps) == [step.stand_in for step in made.steps]


def test_bm25_of_a_fallback(backend):
    """The fallback by name is the ranking's own BM25, which may then have options."""
    bm25 = Bm25(stemming="english")
    embedding = Embedding(Failing(), fallback="bm25")
    for weights in ({"embedding": 1}, {"embedding": 1, "bm25": 1}):
        hybrid = Hybrid(weights, bm25=bm25, embedding=embedding)
        packing = Packer(5, ranking=hybrid).pack("working", ["Lunch is at noon.", "We work."])

        assert ("bm25", "We work.") == (packing.fallback, packing.kept[0].text)
    with pytest.raises(InvalidArgumentError, match=r"^bm25 must be "):
        Hybrid({"embedding": 1}, bm25=bm25, embedding=replace(embedding, fallback=Bm25(b=0)))


def test_a_packer_stays_as_it_is(backend):
    """A ranking copies its weights; a packer by it is equal to its like, hashes and pickles."""
    weights = {"bm25": 1, "score": 2}
    packer = Packer(9, ranking=Hybrid(weights))
    weights["bm25"] = 0
    other = pickle.loads(pickle.dumps(packer))

    assert {"bm25": 1.0, "score": 2.0} == packer.ranking.weights == other.ranking.weights
    assert (packer, hash(packer)) == (other, hash(other))
    assert packer != Packer(9, ranking=Hybrid({"bm25": 1, "score": 3}))
    assert packer.pack("tea", CHUNKS).to_dict() == other.pack("tea", CHUNKS).to_dict()


all_weights = st.none() | st.dictionaries(
    st.sampled_from(["bm25", "embedding", "score"]),
    st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1e6),
    min_size=1,
)


@compared
@given(
    queries,
    chunk_lists(odd_texts),
    st.fixed_dictionaries({}, optional={"weights": all_weights, "fusion": st.just("minmax")})
    | st.fixed_dictionaries(
        {"fusion": st.just("rrf")},
        optional={
            "weights": all_weights,
            "k": st.sampled_from([0, 60]) | st.floats(0, 1e6),
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "min_score": st.none() | st.floats(-1, 2),
            "max_chunks": st.none() | st.integers(0, 4),
            "order": st.sampled_from(["rank", "input"]),
        },
    ),
    st.integers(1, 20),
    st.integers(0, 60),
    st.randoms(use_true_random=False),
)
def test_backends_agree(query, chunks, weighing, options, size, max_tokens, random):
    """Both backends answer alike to the bit, errors included, for every weight and fusion."""
    rows = [
        [random.choice([0, 1, -1, random.uniform(-9, 9)]) for _ in range(size)] for _ in chunks
    ]
    given_vectors = ([random.uniform(-1, 1) for _ in range(size)], np.array(rows, np.float32))
    weights = weighing.get("weights")
    weighs = weights is None or weights.get("embedding", 0) > 0
    answers = []
    for name in BACKENDS:
        with using(name):
            answers.append(
                outcome(
                    lambda: (
                        Packer(
                            max_tokens,
                            ranking=Hybrid(**weighing),
                            counter="chars_div4",
                            **options,
                        )
                        .pack(query, chunks, vectors=given_vectors if weighs else None)
                        .to_dict()
                    )
                )
            )

    assert repr(answers[0]) == repr(answers[1])
