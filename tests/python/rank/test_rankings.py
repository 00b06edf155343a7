"""Rankings as objects: they are values, refuse what is wrong, and take effect."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, chunk_lists, on_both, options_of, queries, text_of, using

from budgeteer import Corpus, InvalidArgumentError, Packer, pack
from budgeteer._chunk.chunk import label_of
from budgeteer._codes import CITE, GATE, NO_POLICY, SUM_OF_PARTS
from budgeteer.errors import EmbeddingError
from budgeteer.presets import agentic_rag, context_gate, context_router, retrieval_service
from budgeteer.ranking import Bm25, Embedding, Hybrid, Lexical, bm25_scores

CHUNKS = ["Green tea, green tea.", "Rye bread is dark.", "Tea.", "We work on a green."]


class Letters:
    """An embedder that counts letters; equal to its like, as it holds nothing."""

    def embed(self, texts):
        return np.array([[text.count("e"), text.count("a"), 1] for text in texts], np.float32)

    def __eq__(self, other):
        return isinstance(other, Letters)

    def __hash__(self):
        return 7

    def __repr__(self):
        return f"{type(self).__name__}()"


class Away(Letters):
    """An embedder that never answers."""

    def embed(self, texts):
        raise EmbeddingError("it is away")


RANKINGS = [
    Bm25(),
    Bm25(stemming="english", stopwords=["Tea", "rye"], k1=0, b=1),
    Bm25(stopwords=None, k1=2),
    Lexical(),
    Lexical(stemming="german", stopwords=["Tea", "rye"], k1=0, b=1, k3=0),
    Lexical(headings=False, links=False, feedback=False),
    Embedding(),
    Embedding(Letters(), fallback="bm25"),
    Embedding(Letters(), fallback="lexical"),
    Embedding(Letters(), fallback=Lexical(links=False)),
    Embedding(Letters(), fallback=Bm25(stopwords="german")),
    Hybrid(),
    Hybrid({"bm25": 1, "score": 0.5}, fusion="rrf", k=3, bm25=Bm25(b=0)),
    Hybrid({"embedding": 1}, embedding=Embedding(Letters(), fallback="bm25")),
    Hybrid({"bm25": 1, "score": 0.5}, bm25=Lexical(feedback=False)),
]
NAMES = ["lexical", "bm25", "keyword", "recency", "input", "score", "embedding", "hybrid"]
each_ranking = pytest.mark.parametrize("ranking", RANKINGS + NAMES, ids=str)


def scored(packing):
    """Return the score of each chunk by its index."""
    return {item.index: item.score for item in (*packing.kept, *packing.dropped)}


def arguments(ranking):
    """Return the vectors that a packer by *ranking* needs, if it makes none."""
    by_vectors = ranking in ("embedding", "hybrid") or ranking in (Embedding(), Hybrid())
    vectors = [1, 0.5, 0], Letters().embed(CHUNKS)
    return {"vectors": vectors} if by_vectors else {}


# What they are.


@pytest.mark.parametrize("ranking", RANKINGS, ids=str)
def test_values(ranking):
    """A ranking is equal to its like and to no other, hashes alike, and none can be changed."""
    like = type(ranking)(**{item.name: getattr(ranking, item.name) for item in fields(ranking)})

    assert (ranking, hash(ranking)) == (like, hash(like))
    assert 1 == RANKINGS.count(ranking)
    for name in [item.name for item in fields(ranking)]:
        with pytest.raises(FrozenInstanceError):
            setattr(ranking, name, None)


@pytest.mark.parametrize("ranking", RANKINGS, ids=str)
def test_copies(ranking):
    """A ranking pickles, copies and is replaced by an equal one."""
    for other in (
        *(pickle.loads(pickle.dumps(ranking, protocol)) for protocol in range(2, 6)),
        copy.copy(ranking),
        copy.deepcopy(ranking),
        replace(ranking),
    ):
        assert (ranking, hash(ranking), repr(ranking)) == (other, hash(other), repr(other))


def test_numbers_are_floats():
    """1 and 1.0 make the same ranking."""
    assert repr(Bm25(k1=1, b=1)) == repr(Bm25(k1=1.0, b=1.0))
    assert repr(Lexical(k3=1)) == repr(Lexical(k3=1.0))
    assert repr(Hybrid({"score": 1}, fusion="rrf", k=2)) == repr(
        Hybrid({"score": 1.0}, fusion="rrf", k=2.0)
    )


def test_the_names_are_short_forms(backend):
    """The names of rankings with options rank as their objects without options do."""
    vectors = [1, 0.5, 0], Letters().embed(CHUNKS)
    for name, ranking in (
        ("lexical", Lexical()),
        ("bm25", Bm25()),
        ("embedding", Embedding()),
        ("hybrid", Hybrid()),
    ):
        given_vectors = vectors if name in ("embedding", "hybrid") else None
        by_name, by_object = (
            Packer(9, ranking=it).pack("green tea", CHUNKS, vectors=given_vectors).to_dict()
            for it in (name, ranking)
        )
        assert by_name == by_object


# What they refuse.


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Bm25, {"k1": -0.1}, "k1 must be from 0 to 1000000, not -0.1"),
        (Bm25, {"k1": 2e6}, "k1 must be from 0 to 1000000, not 2000000.0"),
        (Bm25, {"k1": "1.2"}, "k1 must be a float, not str"),
        (Bm25, {"k1": float("nan")}, "k1 must be a number, not NaN"),
        (Bm25, {"b": 1.01}, "b must be from 0 to 1, not 1.01"),
        (Bm25, {"b": None}, "b must be a float, not None"),
        (Bm25, {"b": True}, "b must be a float, not bool"),
        (Bm25, {"stopwords": 3}, "stopwords must be the name of a language, .*, not int"),
        (Bm25, {"stemming": 3}, "stemming must be one of 'arabic', .*, not int"),
        (Lexical, {"k3": -1}, "k3 must be from 0 to 1000000, not -1.0"),
        (Lexical, {"k3": None}, "k3 must be a float, not None"),
        (Lexical, {"k1": 2e6}, "k1 must be from 0 to 1000000, not 2000000.0"),
        (Lexical, {"b": -0.01}, "b must be from 0 to 1, not -0.01"),
        (Lexical, {"headings": 1}, "headings must be a bool, not int"),
        (Lexical, {"links": None}, "links must be a bool, not None"),
        (Lexical, {"feedback": "yes"}, "feedback must be a bool, not str"),
        (Lexical, {"stemming": "danish"}, "stemming must be one of 'arabic', .*"),
        (Lexical, {"stopwords": 3}, "stopwords must be the name of a language, .*, not int"),
        (Embedding, {"embedder": 3}, "embedder must have a method embed, not int"),
        (Embedding, {"embedder": "e5"}, "embedder must have a method embed, not str"),
        (Embedding, {"fallback": "bm25"}, "fallback must be None where there is no embedder"),
        (Embedding, {"fallback": Bm25()}, "fallback must be None where there is no embedder"),
        (
            Embedding,
            {"embedder": Letters(), "fallback": "keyword"},
            "fallback must be 'lexical', 'bm25', a Lexical, a Bm25 or None, not 'keyword'",
        ),
        (
            Embedding,
            {"embedder": Letters(), "fallback": Hybrid()},
            "fallback must be 'lexical', 'bm25', a Lexical, a Bm25 or None, not Hybrid",
        ),
    ],
)
def test_refused(kind, options, message):
    """A wrong option is named, with its value or type and what is allowed."""
    with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
        kind(**options)


@pytest.mark.parametrize("kind", [Bm25, Lexical, Embedding, Hybrid])
def test_options_have_names(kind):
    """Only what a ranking is about may be given by its place; no other option is taken."""
    with pytest.raises(TypeError):
        kind(None, None)
    with pytest.raises(TypeError, match="limit"):
        kind(limit=3)


@pytest.mark.parametrize(
    ("ranking", "shown"),
    [
        (None, "None"),
        (3, "int"),
        (Bm25, "type"),
        (bm25_scores, "function"),
        (["bm25"], "list"),
        (Letters(), "Letters"),
    ],
)
def test_no_ranking(ranking, shown):
    """A packer says what a ranking may be; a misspelt name brings the one that was meant."""
    with pytest.raises(
        InvalidArgumentError,
        match=f"^ranking must be one of 'lexical', .*, or a Lexical, Bm25, Embedding or Hybrid, "
        f"not {shown}$",
    ):
        Packer(9, ranking=ranking)
    with pytest.raises(InvalidArgumentError, match=r"^ranking must be one of .*; did you mean "):
        Packer(9, ranking="bm52")


# What they do.


@on_both
@given(
    queries,
    chunk_lists(),
    st.sampled_from([0.0, 1.2, 1e6]) | st.floats(0, 3),
    st.sampled_from([0.0, 0.75, 1.0]) | st.floats(0, 1),
)
def test_k1_and_b(name, query, chunks, k1, b):
    """A packing scores as `bm25_scores` does with the same k1 and b, and so does a corpus."""
    query = f"{query} {text_of(chunks[0])}"
    titles = [label_of(chunk, "title") for chunk in chunks]
    packer = Packer(10**6, counter="words", dedupe=None, ranking=Bm25(k1=k1, b=b))
    with using(name):
        expected = bm25_scores(query, [*map(text_of, chunks)], titles=titles, k1=k1, b=b).tolist()
        for given_chunks in (chunks, Corpus(chunks)):
            assert dict(enumerate(expected)) == scored(packer.pack(query, given_chunks))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda bm25: bm25,
        lambda bm25: Hybrid({"bm25": 1}, bm25=bm25),
        lambda bm25: Embedding(Away(), fallback=bm25),
        lambda bm25: Hybrid({"embedding": 1}, embedding=Embedding(Away(), fallback=bm25)),
        lambda bm25: Hybrid(
            {"embedding": 1}, bm25=bm25, embedding=Embedding(Away(), fallback="bm25")
        ),
    ],
    ids=["alone", "weighed", "fallback", "fallback of a hybrid", "fallback by name"],
)
def test_options_of_bm25_reach_every_place(backend, wrap):
    """Stems, stopwords, k1 and b count wherever a Bm25 ranks: for a list and for a corpus."""
    chunks = ["tea " * 3 + "leaf", "tea", "work work", "working it", "zzz"]
    corpus = Corpus(chunks)
    orders = set()
    for bm25 in (
        Bm25(),
        Bm25(k1=0),
        Bm25(b=0),
        Bm25(stemming="english"),
        Bm25(stopwords=["tea"]),
    ):
        packer = Packer(99, ranking=wrap(bm25))
        listed, indexed = packer.pack("tea working", chunks), packer.pack("tea working", corpus)
        expected = Packer(99, ranking=bm25).pack("tea working", chunks)
        assert listed.to_dict() == indexed.to_dict()
        assert [kept.index for kept in expected.kept] == [kept.index for kept in listed.kept]
        orders.add(str(scored(listed)))

    assert 5 == len(orders)


def test_coverage_counts_as_the_ranking_does(backend):
    """Coverage, and sentences, go by the Bm25 of the ranking."""
    chunks = ["Tea. Lunch is at noon.", "We worked remotely. Nothing here."]
    for options in ({"selection": "coverage"}, {"units": "sentence"}):
        plain, stemmed = (
            Packer(5, counter="words", ranking=bm25, **options).pack("working", chunks).text
            for bm25 in (Bm25(), Bm25(stemming="english"))
        )
        assert "worked" not in plain
        assert "worked" in stemmed


# Packers by them.


@each_ranking
def test_packers(backend, ranking):
    """A packer by each ranking pickles and copies, and its copies answer as it does."""
    packer = Packer(9, ranking=ranking, counter="words")
    expected = packer.pack("green tea", CHUNKS, **arguments(ranking)).to_dict()
    for other in (
        *(pickle.loads(pickle.dumps(packer, protocol)) for protocol in range(2, 6)),
        copy.copy(packer),
        copy.deepcopy(packer),
        replace(packer),
        replace(replace(packer, max_tokens=1, ranking="input"), max_tokens=9, ranking=ranking),
    ):
        assert (packer, hash(packer), repr(packer)) == (other, hash(other), repr(other))
        assert expected == other.pack("green tea", CHUNKS, **arguments(ranking)).to_dict()
    assert packer != replace(packer, max_tokens=8)


@pytest.mark.parametrize(
    ("preset", "policy"),
    [
        (agentic_rag(99), (CITE, 0)),
        (retrieval_service(99), (NO_POLICY, 0)),
        (context_gate(99, max_docs=1), (GATE, 1)),
        (context_router(9, truncation="truncate_end"), (SUM_OF_PARTS, 0)),
        (Packer(99), (NO_POLICY, 0)),
    ],
    ids=lambda it: type(it).__name__,
)
def test_presets_keep_their_policy(backend, preset, policy):
    """Whatever a preset is copied by, and with whatever other options, it stays one."""
    chunks = [{"text": text, "score": i / 4, "id": str(i)} for i, text in enumerate(CHUNKS)]
    answer = preset.pack("green tea", chunks).to_dict()
    for other in (
        pickle.loads(pickle.dumps(preset)),
        copy.copy(preset),
        copy.deepcopy(preset),
        replace(preset),
        replace(replace(preset, counter="words", max_tokens=3), **options_of(preset)),
    ):
        assert (preset, policy) == (other, other._policy)
        assert type(preset) is type(other)
        assert answer == other.pack("green tea", chunks).to_dict()
    plain = Packer(**{name: options_of(preset)[name] for name in options_of(Packer(1))})
    assert (type(preset) is Packer) == (plain == preset)


def test_unknown_options():
    """`pack` takes the options of `Packer` and no other; none that went by another name."""
    for name in (
        *("stemming", "stopwords", "weights", "fusion", "rrf_k", "embedder", "fallback"),
        *("_sum_of_parts", "_is_citing", "_max_docs", "_policy", "_prepared", "k1", "limit"),
    ):
        for call in (lambda o: pack("tea", CHUNKS, 9, **o), lambda o: Packer(9, **o)):
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
                call({name: None})
    for name in ("vectors", "previous"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            pack("tea", CHUNKS, 9, **{name: None})


def test_backends_have_a_plan_each():
    """A packer that is made for one backend is prepared anew for another, in tests alone."""
    packer = Packer(9)
    answers = []
    for name in BACKENDS:
        with using(name):
            answers.append(packer.pack("tea", CHUNKS).to_dict())

    assert [answers[0]] * len(BACKENDS) == answers
