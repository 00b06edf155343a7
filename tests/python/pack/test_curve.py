"""Other budgets: what a packing would hold in them is what packing again holds."""

import gc
import json
import math
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from support import (
    chunk_lists,
    counters,
    on_both,
    options,
    options_of,
    outcome,
    queries,
    using,
)

from budgeteer import (
    BudgeteerError,
    Chunk,
    Corpus,
    InvalidArgumentError,
    Packer,
    Packing,
    Prompt,
    Template,
    compare,
    pack,
    presets,
)
from budgeteer._pack.curve import budgets_of, by_known_scores
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService

CHUNKS = ["Green tea is mild.", "Rye bread.", "Black tea is strong and hot.", "Tea.", ""]


TOO_FINE = (
    "step must be at least 100 for budgets up to 100000, as a curve has at most 1000 points, not 1"
)


def facts(packing):
    return packing.text, packing.total_tokens, packing.to_dict()


def points_of(packings):
    """Return the points of a curve, made of the packing in each of its budgets."""
    found, before = [], set()
    for packing in packings:
        kept = {chunk.index for chunk in packing.kept}
        found.append(
            (packing.total_tokens, len(kept), sorted(kept - before), sorted(before - kept))
        )
        before = kept
    return found


def shown(curve):
    return [
        (point.total_tokens, point.kept_count, [*point.admitted], [*point.left]) for point in curve
    ]


more_options = st.fixed_dictionaries(
    {},
    optional={
        "min_score": st.sampled_from(["auto", None, 0.3, float("-inf")]),
        "units": st.sampled_from(["chunk", "sentence"]),
    },
)


@on_both
@given(
    query=queries,
    chunks=chunk_lists(),
    budget=st.integers(0, 40),
    counter=counters,
    chosen=options,
    more=more_options,
)
def test_a_curve_is_packing_again(name, query, chunks, budget, counter, chosen, more):
    """Each point, and `whatif`, is what the same packer makes within that budget."""
    with using(name):
        packer = outcome(Packer, budget, counter=counter, **{**chosen, **more})
        if isinstance(packer, tuple):  # options that do not go together
            return
        packing = packer.pack(query, chunks)
        curve = packing.budget_curve(step=7, up_to=60)
        again = [packer.pack(query, chunks, max_tokens=point.max_tokens) for point in curve]
        whatifs = [packing.whatif(point.max_tokens) for point in curve]

    assert points_of(again) == shown(curve)
    assert [*map(facts, again)] == [*map(facts, whatifs)]
    assert budget in [point.max_tokens for point in curve]


@on_both
@pytest.mark.parametrize(
    ("made", "chunks"),
    [
        (lambda: presets.agentic_rag(40), [Chunk(text, source="a.md") for text in CHUNKS]),
        (lambda: presets.context_router(20), CHUNKS),
        (lambda: presets.retrieval_service(20), CHUNKS),
        (
            lambda: presets.context_gate(30, max_docs=2),
            [{"id": str(i), "content": text} for i, text in enumerate(CHUNKS)],
        ),
        (lambda: Packer(20, template=Prompt(lambda chunks: f"<{'|'.join(chunks)}>")), CHUNKS),
        (lambda: Packer(20, template=Template(lambda chunk: f"* {chunk}")), CHUNKS),
        (
            lambda: Packer(20, template=Template("{nonce}{text}", header="{nonce}", nonce=True)),
            CHUNKS,
        ),
    ],
    ids=[
        "agentic_rag",
        "context_router",
        "retrieval_service",
        "gate",
        "prompt",
        "written",
        "nonce",
    ],
)
def test_presets_and_templates(name, made, chunks):
    """What a preset, a prompt or a template of a function makes is made again in each budget."""
    with using(name):
        packer = made()
        packing = packer.pack("green tea", chunks)
        curve = packing.budget_curve(step=3)
        again = [packer.pack("green tea", chunks, max_tokens=point.max_tokens) for point in curve]
        whatifs = [packing.whatif(point.max_tokens) for point in curve]

    assert points_of(again) == shown(curve)
    assert [*map(facts, again)] == [*map(facts, whatifs)]


@on_both
@pytest.mark.parametrize("ranking", ["embedding", "hybrid"])
def test_vectors(name, ranking):
    """Vectors are let go, and what they said is not."""
    rows = np.array([[1, 0], [3, 4], [0, 1], [1, 1], [0, 0]], dtype="float32")
    gone = weakref.ref(rows)
    with using(name):
        packer = Packer(9, ranking=ranking)
        packing = packer.pack("tea", CHUNKS, vectors=([0, 1], rows))
        again = [
            packer.pack("tea", CHUNKS, max_tokens=limit, vectors=([0, 1], rows))
            for limit in range(3, 19, 3)
        ]
        del rows
        gc.collect()
        curve = packing.budget_curve(step=3)
        whatifs = [packing.whatif(point.max_tokens) for point in curve]

    assert gone() is None
    assert points_of(again) == shown(curve)
    assert [*map(facts, again)] == [*map(facts, whatifs)]


def test_an_embedder_is_not_asked_again():
    """Neither the curve nor `whatif` embeds."""

    class Letters:
        asked = 0

        def embed(self, texts):
            self.asked += 1
            return np.array([[text.count("e") + 1, text.count("a")] for text in texts], "float32")

    from budgeteer.ranking import Embedding

    letters = Letters()
    packing = Packer(9, ranking=Embedding(letters)).pack("tea", CHUNKS)
    asked = letters.asked
    assert packing.whatif(20).kept
    assert packing.budget_curve()
    assert asked == letters.asked


@on_both
def test_a_fallback_stays(name):
    """Where embedding failed, other budgets are ranked by the fallback, too."""
    from budgeteer.embedding import EmbeddingError
    from budgeteer.ranking import Embedding

    class Failing:
        def embed(self, texts):
            raise EmbeddingError("no network")

    with using(name):
        packer = Packer(5, ranking=Embedding(Failing(), fallback="bm25"))
        packing = packer.pack("green tea", CHUNKS)
        found = packing.whatif(12)
        by_words = Packer(12, ranking="bm25").pack("green tea", CHUNKS)

    assert "bm25" == found.fallback
    assert by_words.text == found.text


@on_both
def test_a_corpus(name):
    """A corpus that has changed meanwhile is asked as it was."""
    with using(name):
        corpus = Corpus(CHUNKS)
        packing = Packer(9).pack("green tea", corpus)
        expected = Packer(20).pack("green tea", corpus)
        corpus.append(["Green tea, green tea."])
        found = packing.whatif(20)
        curve = packing.budget_curve(step=11, up_to=20)

    assert facts(expected) == facts(found)
    assert expected.total_tokens == curve[-1].total_tokens


@on_both
def test_previous(name):
    """A sticky order keeps the beginning of the same text; packings do not form a chain."""
    with using(name):
        packer = Packer(12, order="sticky")
        first = packer.pack("rye bread", CHUNKS)
        second = packer.pack("green tea", CHUNKS, previous=first)
        expected = packer.pack("green tea", CHUNKS, previous=first, max_tokens=20)
        gone = weakref.ref(first)
        del first
        gc.collect()
        found = second.whatif(20)

    assert gone() is None
    assert facts(expected) == facts(found)
    assert expected.stable_prefix_tokens == found.stable_prefix_tokens > 0


@on_both
def test_the_reserve(name):
    """The reserve is taken off any budget, though it took all of a small one."""
    with using(name):
        packing = Packer(3, reserve_tokens=5, counter="words").pack("tea", CHUNKS)
        found = packing.whatif(9)

    assert (0, 4) == (packing.budget_tokens, found.budget_tokens)
    assert 3 == found.total_tokens


def test_the_service():
    """A packing of the service is made again as its own packer makes it."""
    service = RetrievalService(ChunkRetriever(CHUNKS), LlmSettings(model="gpt-4"))
    packing = service.retrieve("green tea").packing

    assert facts(packing) == facts(packing.whatif(packing.budget_tokens))
    assert len(packing.whatif(5).kept) < len(packing.kept)


def test_chunks_are_scored_once(native):
    """A curve ranks by the scores that are known, in every budget."""
    packing = Packer(40).pack("green tea", CHUNKS)
    call = by_known_scores(packing, packing._again.call)
    assert "score" == call.prepared.ranking.name
    assert bytes(packing._scores) == call.keys()


@pytest.mark.parametrize("doing", ["whatif", "budget_curve"])
def test_a_pickled_packing(doing):
    """What was pickled says that it cannot be packed again."""
    packing = pickle.loads(pickle.dumps(pack("tea", CHUNKS, 9)))
    with pytest.raises(BudgeteerError, match=rf"{doing}\(\) packs again, .* pickled"):
        getattr(packing, doing)(*([4] if doing == "whatif" else []))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": 0}, "step must be from 1 to 9223372036854775807, not 0"),
        ({"step": 1.5}, "step must be an int, not float"),
        ({"up_to": -1}, "up_to must be from 0 to 9223372036854775807, not -1"),
        ({"up_to": True}, "up_to must be an int, not bool"),
        ({"step": 1, "up_to": 100_000}, TOO_FINE),
    ],
)
def test_refused(arguments, message):
    """A step or a bound that makes no curve is refused."""
    with pytest.raises(InvalidArgumentError) as error:
        pack("tea", CHUNKS, 9).budget_curve(**arguments)
    assert message == str(error.value)


def test_refused_at_no_budget():
    """Too many points are refused, however many: a range may have no len()."""
    with pytest.raises(InvalidArgumentError, match=r"^step must be at least 9223372036854776 for"):
        pack("tea", CHUNKS, 0).budget_curve(step=1, up_to=2**63 - 1)
    assert 1_000 == len(budgets_of(0, 1, 999))
    with pytest.raises(InvalidArgumentError, match=r"^step must be at least 2 for"):
        budgets_of(0, 1, 1_000)


def test_refused_whatif():
    """A budget is checked as that of a packer is."""
    with pytest.raises(InvalidArgumentError, match="max_tokens must be from 0 to"):
        pack("tea", CHUNKS, 9).whatif(-1)


@given(own=st.integers(0, 2**63 - 1), step=st.none() | st.integers(1, 2**63 - 1))
def test_budgets(own, step):
    """The own budget is among them; they lie a step apart; by default they are few."""
    up_to = None if step is None else own
    found = outcome(budgets_of, own, step, up_to)
    if isinstance(found, tuple):
        assert own // step > 900
        return
    assert own in found
    assert found[-1] <= 2 * own
    if step is None:
        assert len(found) <= 32
    else:
        assert step == found.step


def test_options_are_kept():
    """Another budget has the packer's other options."""
    packer = Packer(9, overflow="truncate_end", notice=True, max_chunks=2)
    packing = packer.pack("green tea", CHUNKS)
    other = Packer(**{**options_of(packer), "max_tokens": 14})

    assert facts(other.pack("green tea", CHUNKS)) == facts(packing.whatif(14))


def test_infinite_scores_have_no_json_form(backend):
    """They are None in plain data, and add nothing to the sums of a curve."""
    scores = (0.5, math.inf, -math.inf, None, 0.25, -math.inf)
    chunks = [Chunk(f"tea {i}", score=score) for i, score in enumerate(scores)]
    packing = Packer(8, ranking="score", counter="words").pack("", chunks)
    curve = packing.budget_curve(step=2)

    assert math.inf == packing.kept[0].score
    assert -math.inf in [it.score for it in packing.dropped]
    data = json.loads(json.dumps(packing.to_dict(), allow_nan=False))
    assert packing.to_dict() == data
    found = {item["index"]: item["score"] for item in data["kept"] + data["dropped"]}
    assert {i: None if it in (math.inf, -math.inf) else it for i, it in enumerate(scores)} == found
    assert data == pickle.loads(pickle.dumps(packing)).to_dict()
    assert TypeAdapter(Packing).dump_python(packing, mode="json") == data
    assert not compare(packing, data).chunks
    assert [0.0, 0.5, *[0.75] * 6] == [point.score for point in curve]
    json.dumps([point.to_dict() for point in curve], allow_nan=False)
    assert "inf" in packing.report()


def test_a_sum_beyond_a_float_has_no_json_form(backend):
    """It is infinite, and None in plain data."""
    chunks = [Chunk(f"tea {i}", score=1.5e308) for i in range(2)]
    point = Packer(9, ranking="score", counter="words").pack("", chunks).budget_curve()[-1]
    assert math.inf == point.score
    assert point.to_dict()["score"] is None
