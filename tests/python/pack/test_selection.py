"""Selection: coverage admits other chunks first, on both backends."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    budgets,
    chunk_lists,
    compared,
    counters,
    on_both,
    options,
    outcome,
    queries,
    using,
)

from budgeteer import Chunk, Corpus, Packer, pack
from budgeteer.presets import agentic_rag, context_gate, context_router, retrieval_service
from budgeteer.ranking import bm25_scores


def scored(*pairs):
    """Return chunks with those texts and scores."""
    return [Chunk(text, score=score) for text, score in pairs]


def kept(packing):
    """Return the places of what was kept, in the order of the text."""
    return [kept.index for kept in packing.kept]


def test_coverage_takes_what_is_new(backend):
    """A chunk about another part of the question comes before one that says the same again."""
    chunks = ["Tea is green.", "Tea is green, or tea.", "Spring comes.", "Rye."]
    ranked = pack("green tea in spring", chunks, 99, ranking="input")
    covering = pack("green tea in spring", chunks, 99, ranking="input", selection="coverage")
    assert ([0, 1, 2, 3], [0, 2, 1, 3]) == (kept(ranked), kept(covering))


def test_coverage_of_nothing_is_the_rank(backend):
    """Where no chunk has a word of the query, or the query none, the order is that of the rank."""
    chunks = scored(("a", 1), ("b", 3), ("c", None), ("d", 2))
    for query in ("", "the", "tea"):
        packing = pack(query, chunks, 99, ranking="score", selection="coverage")
        assert [1, 3, 0, 2] == kept(packing)


words = st.sampled_from(["green", "tea", "rye", "bread", "spring", "x", "y", "z"])
small_texts = st.lists(words, min_size=1, max_size=6).map(" ".join)
small = st.lists(small_texts, min_size=1, max_size=8)


@on_both
@given(small, st.lists(words, min_size=1, max_size=5, unique=True))
def test_coverage_is_greedy(name, chunks, query):
    """Each time the one is taken that adds most, by the formula written out."""
    with using(name):
        order = kept(
            pack(
                " ".join(query), chunks, 10**6, ranking="input", dedupe=None,
                selection="coverage",
            )
        )  # fmt: skip
        parts = {word: bm25_scores(word, chunks) for word in query}
    count = len(chunks)
    weights = {}
    for word in query:
        having = sum(word in text.split() for text in chunks)
        weights[word] = math.log(1 + (count - having + 0.5) / (having + 0.5))
    most = max(sum(parts[word][i] for word in query) for i in range(count))

    def value(chosen):
        ranks = sum(most / math.sqrt(1 + i) for i in chosen)
        had = (weights[word] * sum(parts[word][i] for i in chosen) for word in query)
        return 2 * ranks + sum(map(math.sqrt, had))

    assert sorted(order) == list(range(count))
    for place, taken in enumerate(order):
        before = order[:place]
        best = max(value([*before, other]) for other in order[place:])
        assert value([*before, taken]) >= best - 1e-9


def test_coverage_looks_at_512(backend):
    """Those that rank behind the 512 best stay where they are."""
    chunks = [f"green tea {i}" for i in range(512)] + ["spring"] + ["rye"] * 3
    packer = Packer(10**6, ranking="input", selection="coverage", dedupe=None)
    behind = kept(packer.pack("green tea spring", chunks))
    assert [512, 513, 514, 515] == behind[512:]
    among = kept(packer.pack("green tea spring", chunks[1:]))
    assert [512, 513, 514] == among[512:]
    assert 511 in among[:9]


@compared
@given(queries, chunk_lists(), budgets, counters, options)
def test_identity(query, chunks, max_tokens, counter, options):
    """Both backends answer alike, for a list and for a corpus, under every option."""
    answers = []
    for name in BACKENDS:
        with using(name):
            for given_chunks in (chunks, Corpus(chunks)):
                answer = outcome(
                    pack, query, given_chunks, max_tokens, counter=counter,
                    **{**options, "selection": "coverage"},
                )  # fmt: skip
                answers.append(answer if isinstance(answer, tuple) else answer.to_dict())

    assert [answers[0]] * 4 == answers


@compared
@pytest.mark.parametrize("ranking", ["bm25", "keyword", "input", "score"])
def test_identity_of_many(ranking):
    """Packings of a thousand chunks are equal in every field."""
    vocabulary = ["green", "tea", "rye", "bread", "spring", "caf\u00e9", "\u8336", "the"]
    chunks = [
        Chunk(
            " ".join(vocabulary[(i * i * k + i) % 8] for k in range(1, 2 + i * 7 % 23)),
            title="Green tea" if i % 5 == 0 else "",
            score=math.sin(i),
        )
        for i in range(1_000)
    ]
    for counter, max_tokens in (("words", 50), ("o200k_base", 2_000), (len, 700)):
        answers = []
        for name in BACKENDS:
            with using(name):
                packing = pack(
                    "green tea in spring", chunks, max_tokens, counter=counter,
                    ranking=ranking, selection="coverage",
                )  # fmt: skip
                answers.append(packing.to_dict())
        assert answers[0] == answers[1]


@pytest.mark.parametrize("preset", [agentic_rag, context_gate, context_router, retrieval_service])
def test_presets_go_by_rank(preset):
    """Presets fix the option."""
    assert "rank" == preset(99).selection
