"""
presets.context_router: bit-identical to theaios-context-router 0.2.2.

The oracle is the installed package, run as its engine runs it: estimate, score, rank, trim.
"""

import random
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    NOT_STRIPPED,
    ODD_CHARACTERS,
    PUNCTUATION,
    VOCABULARY,
    WHITESPACE,
    budgets,
    compared,
    counters,
    exact_counters,
    formula_counters,
    long_texts,
    notices,
    on_both,
    orders,
    pure_counters,
    queries,
    templates,
    texts,
    using,
)
from support import chunk_lists as lists_of_any_chunks
from theaios.context_router import budget
from theaios.context_router.types import ContextChunk, ContextResponse

from budgeteer import (
    Corpus,
    InvalidArgumentError,
    _reference,
    get_counter,
    pack,
    presets,
)
from budgeteer._reference._rank import keywords as _keywords

ESTIMATORS = ["chars_div4", "words", "whitespace"]
RANKINGS = ["relevance", "recency", "manual"]
TRUNCATIONS = ["drop", "truncate_end", "truncate_middle"]

every_setting = pytest.mark.parametrize(
    ("estimator", "ranking", "truncation"),
    [(e, r, t) for e in ESTIMATORS for r in RANKINGS for t in TRUNCATIONS],
)

mtimes = (
    st.integers(-5, 5)
    | st.booleans()
    | st.sampled_from([0.0, -0.0, 2.5, 1e300, float("inf"), float("-inf"), "9", None, [1]])
)
metadata = st.just({}) | st.fixed_dictionaries({"mtime": mtimes})


@st.composite
def chunk_lists(draw):
    """Lists of the oracle's chunks."""
    size = draw(st.integers(0, 8))
    contents = texts | long_texts
    chunk = st.builds(
        ContextChunk,
        content=contents,
        source=st.just("docs"),
        title=st.just("") | texts,
        metadata=metadata,
    )
    return draw(st.lists(chunk, min_size=size, max_size=size))


def expected_response(
    query, chunks, *, max_tokens, reserve_tokens, estimator, ranking, truncation
):
    """Return the oracle's answer, the indices that it kept, and the scores of all."""
    scores = [budget.score_relevance(query, chunk) for chunk in chunks]
    entries = [
        ContextChunk(
            content=chunk.content,
            source=str(index),
            title=chunk.title,
            relevance_score=score,
            metadata=chunk.metadata,
        )
        for index, (chunk, score) in enumerate(zip(chunks, scores, strict=True))
    ]
    kept, was_truncated = budget.apply_budget(
        budget.rank_chunks(entries, ranking),
        max_tokens,
        truncation=truncation,
        reserve_tokens=reserve_tokens,
        estimator=estimator,
    )
    for chunk in kept:
        chunk.token_count = chunk.token_count or budget.estimate_tokens(chunk.content, estimator)
    response = ContextResponse(
        chunks=kept,
        total_tokens=sum(chunk.token_count for chunk in kept),
        was_truncated=was_truncated,
    )
    return response, [int(chunk.source) for chunk in kept], scores


def check(query, chunks, **settings):
    """Compare one packing with the oracle, to the bit."""
    response, kept, scores = expected_response(query, chunks, **settings)
    packing = presets.context_router(**settings).pack(query, chunks)

    assert kept == [chunk.index for chunk in packing.kept]
    assert [chunk.content for chunk in response.chunks] == [chunk.text for chunk in packing.kept]
    assert [chunk.token_count for chunk in response.chunks] == [
        chunk.token_count for chunk in packing.kept
    ]
    assert response.text == packing.text
    assert response.total_tokens == packing.total_tokens
    assert response.was_truncated == packing.was_truncated
    assert [scores[chunk.index].hex() for chunk in packing.kept] == [
        chunk.score.hex() for chunk in packing.kept
    ]
    assert [scores[chunk.index].hex() for chunk in packing.dropped] == [
        chunk.score.hex() for chunk in packing.dropped
    ]
    indices = [chunk.index for chunk in (*packing.kept, *packing.dropped)]
    assert list(range(len(chunks))) == sorted(indices)
    for chunk in packing.kept:
        assert chunk.text == packing.text[slice(*chunk.span)]


settings = st.fixed_dictionaries(
    {
        "max_tokens": st.integers(1, 60) | st.just(10**9),
        "reserve_tokens": st.just(0) | st.integers(0, 20),
        "ranking": st.sampled_from(RANKINGS),
        "truncation": st.sampled_from(TRUNCATIONS),
    }
)


@on_both
@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(query=queries, chunks=chunk_lists(), settings=settings)
def test_differential(name, estimator, query, chunks, settings):
    """Kept indices, texts, counts, scores, truncation and the joined text are the oracle's."""
    with using(name):
        check(query, chunks, estimator=estimator, **settings)


def random_chunks(rng):
    """Return a query and chunks out of words, odd characters and any assigned ones."""
    parts = VOCABULARY * 4 + WHITESPACE + PUNCTUATION + NOT_STRIPPED + ODD_CHARACTERS

    def text():
        drawn = rng.choices(parts, k=rng.choice([0, 1, 3, 10, 40]))
        glue = rng.choice(["", " ", " ", "\u3000"])
        anything = "".join(map(chr, rng.choices(range(0x11_0000), k=rng.choice([0, 0, 5]))))
        assigned = "".join(c for c in anything if unicodedata.category(c) != "Cn")
        return glue.join(drawn) + assigned

    chunks = [
        ContextChunk(
            text(),
            "docs",
            title=rng.choice(["", text()]),
            metadata=rng.choice([{}, {"mtime": rng.choice([0, 1, 1.0, True, -0.0, 7.5, "x"])}]),
        )
        for _ in range(rng.randrange(12))
    ]
    return text(), chunks


@on_both
@every_setting
def test_thousands(name, estimator, ranking, truncation):
    """The same holds over thousands of seeded inputs, whatever the profile."""
    rng = random.Random(f"{estimator} {ranking} {truncation}")
    with using(name):
        for _ in range(200):
            query, chunks = random_chunks(rng)
            check(
                query,
                chunks,
                max_tokens=rng.choice([1, 3, 10, 30, 100]),
                reserve_tokens=rng.choice([0, 0, 2, 50]),
                estimator=estimator,
                ranking=ranking,
                truncation=truncation,
            )


@on_both
def test_zero_token_empties_are_kept(name):
    """An empty text is kept at 0 tokens while there is room, and not once there is none."""
    with using(name):
        packing = presets.context_router(1, ranking="manual").pack("", ["", "tea", "", ""])

    assert [0, 1] == [kept.index for kept in packing.kept]
    assert "\n\ntea" == packing.text
    assert 1 == packing.total_tokens
    assert packing.was_truncated


@on_both
@pytest.mark.parametrize("reserve_tokens", [5, 6, 10**9])
def test_nothing_available(name, reserve_tokens):
    """Where the reserve takes all, nothing is kept, not even what is empty."""
    with using(name):
        packer = presets.context_router(5, reserve_tokens=reserve_tokens)

        assert not packer.pack("tea", []).was_truncated
        packing = packer.pack("tea", ["tea", ""])

    assert ("", 0, 2, True) == (
        packing.text,
        packing.total_tokens,
        packing.dropped_count,
        packing.was_truncated,
    )


@on_both
@pytest.mark.parametrize(
    ("estimator", "truncation", "text", "total_tokens"),
    [
        ("chars_div4", "truncate_end", "a" * 8 + " [...]", 4),
        ("chars_div4", "truncate_middle", "aaaa\n[...truncated...]\naaaa", 7),
        ("words", "truncate_end", "b b [...]", 3),
        ("words", "truncate_middle", "b\n[...truncated...]\nb", 3),
    ],
)
def test_the_marker_overruns(name, estimator, truncation, text, total_tokens):
    """The marker comes on top of the budget, as it does in the document's program."""
    chunk = "a" * 40 if estimator == "chars_div4" else "b\t b\n b b"
    packer = presets.context_router(2, estimator=estimator, truncation=truncation)
    with using(name):
        packing = packer.pack("", [chunk])
        check(
            "",
            [ContextChunk(chunk, "docs")],
            max_tokens=2,
            reserve_tokens=0,
            estimator=estimator,
            ranking="manual",
            truncation=truncation,
        )

    assert (text, total_tokens, 2) == (packing.text, packing.total_tokens, packing.budget_tokens)


@on_both
def test_the_joiners_overrun(name):
    """The blank lines between chunks are not counted: 100 tokens make a text of 150."""
    with using(name):
        packing = presets.context_router(100).pack("", ["aaaa"] * 100)
        counted = get_counter("chars_div4").count(packing.text)

    assert (100, 150, False) == (packing.total_tokens, counted, packing.was_truncated)


@on_both
def test_a_cut_may_be_longer_and_split_a_cluster(name):
    """A cut may be longer than its text and may split a grapheme cluster."""
    with using(name):
        packing = presets.context_router(1, truncation="truncate_end").pack("", ["abce\u0301"])

    assert "abce [...]" == packing.text


@on_both
def test_duplicates_are_kept(name):
    """The preset fixes every option: nothing is deduplicated."""
    with using(name):
        packing = presets.context_router(9).pack("", ["tea", "tea"])

    assert "tea\n\ntea" == packing.text


OVERFLOWS = ["skip", "stop", "truncate_end", "truncate_middle"]
own_counters = exact_counters | st.just("kimi-k2") | pure_counters
of_any = {
    "reserve_tokens": st.integers(0, 10),
    "ranking": st.sampled_from(["bm25", "keyword", "recency", "input", "score"]),
    "min_score": st.sampled_from([0.0, 0.5]),
    "order": orders,
    "template": templates,
    "notice": notices,
}
of_no_estimate = {
    "max_chunks": st.integers(0, 6),
    "dedupe": st.sampled_from(["exact", "near"]),
    "selection": st.just("coverage"),
}
overflows = st.sampled_from(OVERFLOWS)
changes = st.fixed_dictionaries(
    {"counter": counters | st.just("kimi-k2"), "overflow": overflows}, optional=of_any
) | st.fixed_dictionaries(
    {"counter": own_counters, "overflow": overflows}, optional={**of_any, **of_no_estimate}
)


@on_both
@given(
    query=queries,
    chunks=lists_of_any_chunks(texts | long_texts),
    max_tokens=st.integers(1, 60),
    counter=own_counters,
    overflow=st.sampled_from(OVERFLOWS),
)
def test_a_counter_that_is_no_estimate(name, query, chunks, max_tokens, counter, overflow):
    """With a counter of another kind the preset is a packer like any: its budget holds."""
    preset = replace(presets.context_router(max_tokens), counter=counter, overflow=overflow)
    with using(name):
        packing = preset.pack(query, chunks)
        counted = get_counter(counter).count(packing.text) if packing.kept else 0
        same = pack(
            query,
            chunks,
            max_tokens,
            counter=counter,
            overflow=overflow,
            ranking="keyword",
            dedupe=None,
        )

    assert counted == packing.total_tokens <= max_tokens
    assert same.to_dict() == packing.to_dict()


@on_both
@pytest.mark.parametrize(
    ("counter", "kept", "total_tokens"),
    [
        ("chars_div4", [0, 1, 2], 12),
        ("o200k_base", [0, 1], 8),
        ("claude-sonnet-4-5", [0, 1], 9),
        ("kimi-k2", [0, 1], 12),
        (lambda text: len(text.split()), [0, 1, 2], 10),
    ],
)
def test_counters_of_all_kinds(name, counter, kept, total_tokens):
    """An encoding, a model and a callable count the whole text, separators included."""
    chunks = ["Green tea is mild.", "Tea is.", "Rye bread is dark."]
    with using(name):
        packing = replace(presets.context_router(12), counter=counter).pack("", chunks)
        counted = get_counter(counter).count(packing.text)

    assert kept == [one.index for one in packing.kept]
    assert total_tokens == counted == packing.total_tokens


@on_both
@given(
    query=queries,
    chunks=lists_of_any_chunks(texts | long_texts),
    max_tokens=st.integers(1, 60),
    counter=formula_counters,
    overflow=st.sampled_from(OVERFLOWS),
)
def test_any_estimate_sums_the_parts(name, query, chunks, max_tokens, counter, overflow):
    """Under any estimate the total is the sum of the parts, and only a cut is over the budget."""
    preset = replace(presets.context_router(max_tokens), counter=counter, overflow=overflow)
    with using(name):
        packing = preset.pack(query, chunks)

    assert packing.total_tokens == sum(kept.token_count for kept in packing.kept)
    whole = [kept for kept in packing.kept if not kept.was_cut]
    assert sum(kept.token_count for kept in whole) <= max_tokens
    assert len(packing.kept) - len(whole) <= overflow.startswith("truncate")


@on_both
@pytest.mark.parametrize(
    ("overflow", "kept", "dropped"),
    [("skip", [0, 2, 3], [(1, 3, 1)]), ("stop", [0], [(1, 3, 1), (2, 0, 1), (3, 0, 1)])],
)
def test_stop(name, overflow, kept, dropped):
    """A copy that stops drops all behind the first that does not fit, empty texts too."""
    packer = replace(presets.context_router(2, ranking="manual"), overflow=overflow)
    with using(name):
        packing = packer.pack("", ["tea", "a long text", "", "rye"])

    assert kept == [one.index for one in packing.kept]
    assert dropped == [
        (one.index, one.needed_tokens, one.available_tokens) for one in packing.dropped
    ]


@on_both
def test_a_cut_repeats_nothing(name):
    """A cut to more than there is has each character once, whatever a token is."""
    packer = replace(
        presets.context_router(3, truncation="truncate_middle"), counter="chars_per_token:1"
    )
    with using(name):
        assert "ab\n[...truncated...]\ncd" == packer.pack("", ["abcd"]).text


@on_both
def test_what_stands_around_chunks_is_not_counted(name):
    """A template and an order are as everywhere, and count no more than separators do."""
    chunks = [
        {"text": "a < b", "source": "x"},
        {"text": "tea", "source": "y"},
        {"text": "rye", "source": "x"},
    ]
    packer = replace(presets.context_router(4), template="tagged", order="document")
    with using(name):
        packing = packer.pack("", chunks)

    expected = "[document:0] a < b\n[document:2] rye\n[document:1] tea"
    assert (expected, 4) == (packing.text, packing.total_tokens)


@compared
@given(
    query=queries,
    chunks=lists_of_any_chunks(texts | long_texts),
    max_tokens=st.integers(1, 60) | budgets.filter(bool),
    changed=changes,
)
def test_both_answer_alike(query, chunks, max_tokens, changed):
    """Whatever is changed in a copy of the preset, both backends answer the same."""
    packer = replace(presets.context_router(max_tokens), **changed)
    answers = []
    for name in ("reference", "native"):
        with using(name):
            answers += [packer.pack(query, made).to_dict() for made in (chunks, Corpus(chunks))]

    assert [answers[0]] * 4 == answers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_chunks": 3}, "max_chunks must be None .* by an estimate, not 3: a Packer takes it"),
        ({"dedupe": "exact"}, "dedupe must be None .* not 'exact'"),
        ({"selection": "coverage"}, "selection must be 'rank' .* not 'coverage'"),
        ({"dedupe": "near", "counter": "chars_per_token:3"}, "dedupe must be None .* not 'near'"),
    ],
)
def test_options_that_would_do_nothing(options, message):
    """What the original does not have is refused under an estimate; another counter takes it."""
    preset = presets.context_router()
    with pytest.raises(InvalidArgumentError, match=message):
        replace(preset, **options)

    assert replace(preset, **{**options, "counter": "o200k_base"}).pack("", ["tea"]).text


@on_both
def test_defaults(name):
    """The defaults are the document's."""
    packer = presets.context_router()

    with using(name):
        assert 8_000 == packer.pack("", []).budget_tokens
    assert packer == presets.context_router(
        8_000,
        reserve_tokens=0,
        estimator="chars_div4",
        ranking="relevance",
        truncation="drop",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be from 1"),
        ({"max_tokens": True}, "max_tokens must be an int, not bool"),
        ({"reserve_tokens": -1}, "reserve_tokens must be from 0"),
        ({"estimator": "word"}, "did you mean 'words'"),
        ({"ranking": "keyword"}, "ranking must be one of 'relevance', 'recency', 'manual'"),
        ({"ranking": "relevence"}, "did you mean 'relevance'"),
        ({"truncation": "skip"}, "truncation must be one of 'drop'"),
        ({"truncation": None}, "truncation must be one of .*, not None"),
    ],
)
def test_bad_argument(arguments, message):
    """A bad argument is refused in the document's own words."""
    with pytest.raises(InvalidArgumentError, match=message):
        presets.context_router(**arguments)


def test_stopwords():
    """The stopwords are those of the document's program: 96."""
    assert budget._STOPWORDS == _keywords.STOPWORDS
    assert 96 == len(_keywords.STOPWORDS)


@on_both
def test_stopwords_count_for_nothing(name):
    """No stopword is a keyword, in either backend."""
    with using(name) as backend:
        assert [] == backend.keywords(" ".join(sorted(budget._STOPWORDS)).upper())


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t ",
        "a",
        "abcd",
        "abcde",
        "a b",
        " a  b ",
        "\x1c",
        "a\x1fb",
        "a\u200bb",
        "\ud800",
    ],
)
def test_estimators(backend, estimator, text):
    """Estimates are 0 for the empty text, else at least 1, and the oracle's."""
    expected = budget.estimate_tokens(text, estimator)

    assert expected == get_counter(estimator).count(text)
    assert (expected == 0) == (text == "")


@on_both
def test_several_cuts(name):
    """Under an estimate of many characters for a token each chunk that is cut stands cut."""
    chunks = ["a " * 400, "b " * 400]
    with using(name):
        packer = presets.context_router(9, truncation="truncate_end", ranking="manual")
        packing = replace(packer, counter="chars_per_token:50").pack("", chunks)

    assert "a " * 18 + " [...]\n\n" == packing.text[:44]
    assert [kept.token_count for kept in packing.kept] == [1, 1]
    assert 82 == len(packing.text)


@on_both
def test_example_of_the_document(name):
    """The document's example scores 1.0, a third and 0.0."""
    chunks = [
        "## Office Hours\nThe office is open...",
        "## Remote Work Policy\nEmployees may work...",
        "## PTO Policy\nAll employees receive...",
    ]
    with using(name):
        packing = presets.context_router().pack("What is the remote work policy?", chunks)

    assert [(1, 1.0), (2, 1 / 3), (0, 0.0)] == [(kept.index, kept.score) for kept in packing.kept]


@given(texts | long_texts)
def test_the_reference_extracts_the_same_keywords(text):
    """The reference's keywords are the oracle's, each once."""
    keywords = _reference.keywords(text)

    assert budget._extract_keywords(text) == set(keywords)
    assert len(set(keywords)) == len(keywords)
