"""The cut-off that is found from the scores: ``min_score="auto"``."""

import math
import pickle
from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, budgets, chunk_lists, compared, notices, on_both, queries, using

from budgeteer import Corpus, InvalidArgumentError, Packer, get_counter, pack, presets
from budgeteer._codes import FEEDBACK, HEADING, LINK
from budgeteer._reference._pack.scope import scope_of
from budgeteer.errors import EmbeddingError
from budgeteer.ranking import Bm25, Embedding, Hybrid, Lexical

PLAIN = Bm25(k1=0, stopwords=None)
"""A chunk scores the sum of the weights of the words that it shares with the query."""
RANKINGS = [
    *("lexical", "bm25", PLAIN, Lexical(feedback=False), Lexical(headings=False)),
    *(Lexical(links=False, stemming=None), Lexical(k3=0, k1=9)),
]


def weight(chunks, having):
    """Return the weight of a word that so many of the chunks have."""
    return log(1 + (chunks - having + 0.5) / (having + 0.5))


def outcome(query, chunks, ranking=PLAIN, **options):
    """Return the indices of the chunks in scope and of those that are not, ascending."""
    packing = pack(query, chunks, 10_000, ranking=ranking, min_score="auto", **options)
    out = sorted(one.index for one in packing.dropped if one.reason == "out_of_scope")
    return sorted({*range(len(chunks))} - {*out}), out, packing


# Cases by hand.


@on_both
def test_a_share_of_the_mean_of_the_best(name):
    """In scope is what scores at least 0.35 times the mean of the three best."""
    chunks = ["alpha beta gamma", "delta", "alpha", "alpha beta"]
    alpha, beta, gamma = (weight(4, having) for having in (3, 2, 1))
    least = 0.35 * ((alpha + beta + gamma) + (alpha + beta) + alpha) / 3
    assert alpha < least < alpha + beta
    with using(name):
        kept, out, packing = outcome("alpha beta gamma", chunks)
    assert ([0, 3], [1, 2]) == (kept, out)
    assert packing.explain(2) == (
        f"Chunk 2 (score {alpha:.2f}) was dropped: its score is below {least:.2f}, the automatic "
        f"min_score."
    )
    assert packing.explain(2) == pickle.loads(pickle.dumps(packing)).explain(2)


@on_both
def test_fewer_than_three(name):
    """The mean is over all scores if there are fewer than three."""
    beta, both = weight(2, 2), weight(2, 1) + weight(2, 2)
    assert 0.35 * (both + beta) / 3 < beta < 0.35 * (both + beta) / 2
    with using(name):
        assert ([0], [1]) == outcome("alpha beta", ["alpha beta", "beta"])[:2]
        assert ([0], []) == outcome("alpha", ["alpha"])[:2]
        assert ([], []) == outcome("alpha", [])[:2]


@on_both
def test_zeros_are_scores(name):
    """A score of 0 among the three best lowers the mean."""
    beta = weight(4, 2)
    most = 3 * weight(4, 1) + beta
    assert 0.35 * (most + beta + 0) / 3 < beta < 0.35 * (most + beta) / 2
    with using(name):
        chunks = ["one two three beta", "beta", "tea", "rye"]
        assert ([0, 1], [2, 3]) == outcome("one two three beta", chunks)[:2]


@on_both
@pytest.mark.parametrize("query", ["", "silk", "the of"])
def test_nothing_scores(name, query):
    """Nothing is out of scope if all scores are 0."""
    with using(name):
        kept, _, packing = outcome(query, ["Green tea.", "Rye bread."], "lexical")
    assert [0, 1] == kept == [one.index for one in packing.kept]


@on_both
@pytest.mark.parametrize(("least", "kept"), [(-math.inf, [0, 1]), (-1e308, [1])])
def test_a_chunk_without_a_score_has_the_lowest(name, least, kept):
    """What has no score of its own is in scope only where any score is."""
    with using(name):
        chunks = ["tea", {"text": "rye", "score": -1e308}]
        packing = pack("", chunks, 9, ranking="score", min_score=least, counter="words")
    assert kept == sorted(one.index for one in packing.kept)


NAMED = {"title": "Ada Moreau", "text": "She comes from Lyon."}
BOOKS = [
    *("The winter garden is by Ada Moreau.", "A winter garden is warm.", "No winter garden."),
    *("Rye bread is dark.", "Tea is green."),
]


@on_both
@pytest.mark.parametrize(("links", "kept"), [(True, [0, 1, 2, 5]), (False, [0, 1, 2])])
def test_a_linked_chunk_stays(name, links, kept):
    """A chunk whose heading one of the best names is in scope, though it scores less."""
    ranking = Lexical(feedback=False, headings=False, links=links)
    with using(name):
        found, _, packing = outcome("Who wrote the winter garden?", [*BOOKS, NAMED], ranking)
    assert kept == found
    by_index = {one.index: one.score for one in (*packing.kept, *packing.dropped)}
    assert by_index[5] < 0.35 * sum(sorted(by_index.values())[-3:]) / 3


@on_both
@pytest.mark.parametrize(
    ("title", "headings", "stays"),
    [
        *(("Tea", True, True), ("Teas (drink)", True, True), ("Tea pots", True, False)),
        *(("Tea", False, False), ("The", True, False)),
    ],
)
def test_a_whole_heading_stays(name, title, headings, stays):
    """A chunk is in scope, though it scores less, if the query has all terms of its heading."""
    good = "The silk road, old camels, and the deserts of Asia"
    chunks = [good, good + ".", good + "!", *["Tea"] * 9, {"title": title, "text": "It is."}]
    ranking = Lexical(feedback=False, links=False, headings=headings)
    with using(name):
        query = "tea on the silk road by old camels over deserts of Asia"
        kept, _, packing = outcome(query, chunks, ranking, dedupe=None)
    assert [0, 1, 2] + [12] * stays == kept
    score = next(one.score for one in (*packing.kept, *packing.dropped) if one.index == 12)
    assert score < 0.35 * packing.kept[0].score


@on_both
def test_sentences(name):
    """With sentences as units the same chunks are in scope, linked ones included."""
    question = "Who wrote the winter garden?"
    chunks = [*BOOKS, NAMED]
    ranking = Lexical(feedback=False, headings=False)
    with using(name):
        kept, out, packing = outcome(question, chunks, ranking, units="sentence")
        assert ([0, 1, 2, 5], [3, 4]) == (kept, out)
        assert outcome(question, chunks, ranking)[2].explain(3) == packing.explain(3)
        assert "the automatic min_score" in packing.explain(3)


@pytest.mark.parametrize(
    ("scores", "least"),
    [
        ([2.0, 3.0, 1.0, 4.0], 0.35 * ((4.0 + 3.0 + 2.0) / 3)),
        ([0.0, 3.0, 0.0, 0.0], 0.35 * (3.0 / 3)),
        ([3.0, 0.0], 0.35 * (3.0 / 2)),
        ([3.0], 0.35 * 3.0),
        # Added up best first: the sum in any other order has other bits.
        ([0.1, 0.7, 0.3], 0.35 * (((0.7 + 0.3) + 0.1) / 3)),
        *[([], None), ([0.0] * 5, None), ([5e-324, 0.0, 0.0], None)],
    ],
)
def test_the_reference_finds_the_least(scores, least):
    """The order of the operations is fixed; where the mean is 0 there is no least."""
    assert least == scope_of("auto", scores, []).found == scope_of("auto", scores, []).least
    assert scope_of(0.5, scores, []).found is None


def test_the_reference_lets_ties_and_exceptions_in():
    """In scope is the least score itself; links and whole headings; nothing else below."""
    signals = [(4, LINK, 0, 0.1), (3, HEADING, 1, 0.1), (2, HEADING, 0, 0.1), (1, FEEDBACK, 1, 1)]
    found = scope_of("auto", [1.0, 1.0, 1.0, 0.1, 0.1, 0.35], signals)
    assert [True, False, False, True, True] == [
        found.has(index, score)
        for index, score in [(5, 0.35), (2, 0.3499), (1, float("nan")), (3, 0.1), (4, 0.1)]
    ]
    assert not scope_of(0.5, [1.0] * 5, signals).has(4, 0.1)


# Laws.

options = st.fixed_dictionaries(
    {"min_score": st.just("auto"), "ranking": st.sampled_from(RANKINGS)},
    optional={
        "counter": st.sampled_from(["chars_div4", "words", "o200k_base"]),
        "overflow": st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
        "max_chunks": st.none() | st.integers(0, 6),
        "dedupe": st.sampled_from(["exact", None]),
        "order": st.sampled_from(["rank", "input", "document"]),
        "template": st.sampled_from(["plain", "xml"]),
        "notice": notices,
    },
)
words = st.lists(
    st.sampled_from(["tea", "green", "rye", "the", "a\n", "b.", "c\nd", "Tea"]), max_size=9
)
lists = chunk_lists(words.map(" ".join)) | chunk_lists()
questions = st.sampled_from(["green tea", "a b c d rye"]) | queries
units = st.sampled_from(["chunk", "sentence"])


def told(packing):
    """Return all that a packing says."""
    said = [packing.explain(i) for i in range(len(packing.kept) + packing.dropped_count)]
    return packing.to_dict(), packing.explain(), said


@compared
@given(query=questions, chunks=lists, budget=budgets, units=units, options=options)
def test_both_backends_agree(query, chunks, budget, units, options):
    """Packings are equal to the bit, and so is what they say."""
    answers = []
    for name in BACKENDS:
        with using(name):
            answers.append(told(pack(query, chunks, budget, units=units, **options)))
    assert answers[0] == answers[1]


@on_both
@given(query=questions, chunks=lists, budget=budgets, units=units, options=options)
def test_a_corpus_is_its_chunks(name, query, chunks, budget, units, options):
    """A corpus packs and says what the list of its chunks does, and fits."""
    with using(name):
        packer = Packer(budget, units=units, **options)
        packing = packer.pack(query, Corpus(chunks))
        assert told(packer.pack(query, chunks)) == told(packing)
        counter = get_counter(packer.counter)
        assert (counter.count(packing.text) if packing.text else 0) <= budget


@on_both
@given(query=questions, chunks=lists, units=units)
def test_what_is_out_of_scope(name, query, chunks, units):
    """Under BM25, which links nothing and knows no headings, the scores alone decide."""
    with using(name):
        _, out, packing = outcome(query, chunks, "bm25", units=units, dedupe=None)
    scores = {one.index: one.score for one in (*packing.kept, *packing.dropped)}
    best = sorted(scores.values(), reverse=True)[:3]
    total = 0.0
    for score in best:
        total += score
    least = 0.35 * (total / len(best))
    assert sorted(index for index, score in scores.items() if score < least) == out


@on_both
@given(query=questions, chunks=lists, budget=budgets)
def test_sentences_have_the_same_scope(name, query, chunks, budget):
    """Whether sentences or chunks are packed, the same chunks are out of scope."""
    with using(name):
        one, other = (
            pack(query, chunks, budget, ranking="lexical", min_score="auto", units=units)
            for units in ("chunk", "sentence")
        )
    assert [
        {each.index for each in packing.dropped if each.reason == "out_of_scope"}
        for packing in (one, other)
    ] == [{each.index for each in one.dropped if each.reason == "out_of_scope"}] * 2


# Errors, and what the packer is.

OTHERS = [
    *("keyword", "recency", "input", "score", "embedding", "hybrid"),
    *(Hybrid({"bm25": 1}), Hybrid({"bm25": 1, "score": 1}, bm25=Lexical()), Embedding()),
]


class Away:
    """An embedder that never answers."""

    def embed(self, texts):
        raise EmbeddingError(f"{len(texts)} texts are too many")


@pytest.mark.parametrize("ranking", OTHERS, ids=str)
def test_other_rankings(ranking):
    """No other ranking has figures that a share of the best scores was measured with."""
    name = ranking if isinstance(ranking, str) else type(ranking).__name__.lower()
    message = (
        f"min_score must be a number or None under ranking={name!r}, not 'auto': that is for "
        f"ranking='lexical' and ranking='bm25'"
    )
    with pytest.raises(InvalidArgumentError) as caught:
        Packer(9, ranking=ranking, min_score="auto")
    assert message == str(caught.value)


@pytest.mark.parametrize("fallback", ["bm25", Lexical()])
def test_fallbacks(fallback):
    """A ranking by vectors has no cut-off by words, whatever it falls back to."""
    ranking = Embedding(Away(), fallback=fallback)
    with pytest.raises(InvalidArgumentError, match="under ranking='embedding', not 'auto'"):
        Packer(9, ranking=ranking, min_score="auto")
    chunks = ["Green tea.", "Rye."]
    packing = Packer(20, ranking=ranking, min_score=0.9).pack("green tea", chunks)
    assert 0 == packing.dropped_count


@pytest.mark.parametrize(
    "preset", [presets.agentic_rag(9), presets.retrieval_service(9), presets.context_router(9)]
)
def test_presets_rank_otherwise(preset):
    """The rankings of presets take none; with one by words they do."""
    made = type(preset)
    values = {name: getattr(preset, name) for name in ("counter", "overflow", "dedupe")}
    with pytest.raises(InvalidArgumentError, match=rf"ranking='{preset.ranking}', not 'auto'"):
        made(9, **values, ranking=preset.ranking, min_score="auto")
    assert "auto" == made(9, **values, ranking="lexical", min_score="auto").min_score


def test_gates():
    """A gate ranks in its own way, which takes no cut-off."""
    with pytest.raises(InvalidArgumentError, match=r"^min_score must .* under ranking='input'"):
        replace(presets.context_gate(), min_score="auto")


@pytest.mark.parametrize(
    ("bad", "hint"),
    [("Auto", "; did you mean 'auto'?"), ("0.5", ""), ("", ""), ("x" * 99, "")],
)
def test_other_names(bad, hint):
    """Text is no number, and there is no other name."""
    with pytest.raises(InvalidArgumentError) as caught:
        Packer(9, min_score=bad)
    assert f"min_score must be a number, 'auto' or None, not {bad[:80]!r}{hint}" == str(
        caught.value
    )


class Text(str):
    """A str of its own kind."""

    __slots__ = ()


def test_the_packer_knows_it():
    """The option is a value of the packer, which is pickled with it."""
    packer = Packer(9, ranking="bm25", min_score=Text("auto"))
    assert ("auto", str) == (packer.min_score, type(packer.min_score))
    assert packer == pickle.loads(pickle.dumps(packer))
