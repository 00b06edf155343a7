"""
Identity: the native backend answers what the reference answers, on every input.

Code points that the running Python does not assign are left out: there the tables differ.
"""

import copy
import functools
import random
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    NOT_STRIPPED,
    ODD_CHARACTERS,
    PUNCTUATION,
    VOCABULARY,
    WHITESPACE,
    Pure,
    Recorder,
    any_character,
    backend_named,
    budgets,
    chunk_lists,
    compared,
    counters,
    exact_counters,
    is_assigned,
    long_texts,
    meeting_texts,
    odd_texts,
    options,
    outcome,
    pure_counters,
    queries,
    texts,
    using,
)

from budgeteer import _codes, get_counter, pack
from budgeteer._reference._pack import near, pipeline
from budgeteer._reference._rank import lexical
from budgeteer._reference._rank.score import overlap
from budgeteer._reference._rank.terms import terms

GRAPHEME_ALPHABET = [
    "a", "\x00", "\r", "\n", "\u0301", "\u200d", "\u200c", "\u00a9", "\U0001f600", "\U0001f3fd",
    "\u0915", "\u0924", "\u094d", "\u09cd", "\u1100", "\u1161", "\u11a8", "\uac00", "\uac01",
    "\u0600", "\U0001f1e6", "\u0903", "\u0e33", "\ud800", "\u4e00", "\u1b44", "\u1039",
]  # fmt: skip
"""At least one character of each value that the rules of grapheme clusters distinguish."""

ENCODINGS = [_codes.O200K, _codes.CL100K]
KINDS = [_codes.CHARS_DIV4, _codes.WORDS, _codes.CHARS_PER_TOKEN, *ENCODINGS]
kinds = st.sampled_from([*KINDS, *(kind | _codes.FRESH for kind in ENCODINGS)])
ratios = st.sampled_from([0.001, 0.1, 0.3, 1.0, 2.5, 3.7, 4.0, 1e6]) | st.floats(0.001, 1e6)

ASSIGNED = [chr(code) for code in range(sys.maxunicode + 1) if is_assigned(chr(code))]


def plain(value):
    """Return *value* with every buffer as bytes and every sequence as a list."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def both(function, *args):
    """Return what each backend's *function* answers or raises: first the reference's."""
    reference, native = (
        plain(outcome(getattr(backend_named(name), function), *args))
        for name in ("reference", "native")
    )
    return reference, native


@compared
@given(kinds, ratios, texts | long_texts | st.text(any_character))
def test_count(kind, ratio, text):
    """Counts of a text are equal."""
    expected, actual = both("count", kind, ratio, text)

    assert expected == actual


@compared
@given(kinds, ratios, texts | long_texts, st.integers(0, 40) | st.sampled_from([0, 2**63 - 1]))
def test_count_till_limit(kind, ratio, text, limit):
    """Counts up to a limit, or that there are more, are equal."""
    expected, actual = both("count_till_limit", kind, ratio, text, limit)

    assert expected == actual


@compared
@given(kinds, ratios, st.lists(texts | st.sampled_from([None, 3, b"x"]) | texts, max_size=6))
def test_count_batch(kind, ratio, items):
    """Counts of a batch, or the index of what is no str, are equal."""
    for batch in (items, tuple(items)):
        expected, actual = both("count_batch", kind, ratio, batch)

        assert expected == actual


@compared
@given(texts | long_texts | st.text(any_character))
def test_keywords(text):
    """Keywords, in their order, are equal."""
    expected, actual = both("keywords", text)

    assert expected == actual


@compared
@given(st.lists(st.sampled_from(GRAPHEME_ALPHABET), max_size=30).map("".join) | odd_texts)
def test_grapheme_boundaries(text):
    """Grapheme cluster boundaries are equal."""
    expected, actual = both("grapheme_boundaries", text)

    assert expected == actual


@compared
@given(
    queries | long_texts,
    st.lists(texts | long_texts, min_size=1, max_size=5),
    st.none() | st.lists(texts | st.none(), min_size=5, max_size=5),
)
def test_keyword_scores(query, items, titles):
    """Scores, or the code and index of what is no str, are equal."""
    if titles is not None:
        titles = titles[: len(items)]
    expected, actual = both("keyword_scores", query, items, titles)

    assert expected == actual


@compared
@given(
    st.tuples(kinds | st.just(_codes.CALLABLE), ratios),
    pure_counters,
    texts | long_texts,
    st.integers(0, 40),
    st.tuples(
        st.sampled_from([_codes.START, _codes.END, _codes.BOTH]),
        st.sampled_from(
            [
                *("", " [...]", "\u2026", "\n[...truncated...]\n", "\u0301", "\ud83d", "\ude00"),
                *(" ", "\n", "'s", "/", "1", "x" * 9),
            ]
        ),
    ),
)
def test_truncate(kind, counter, text, max_tokens, cut):
    """Cuts are equal, and so is what a callable is asked on the way."""
    answers = []
    for name in ("reference", "native"):
        asked = []
        result = backend_named(name).truncate(
            *kind, asking(counter, asked), text, max_tokens, *cut
        )
        answers.append((result, asked))

    assert answers[0] == answers[1]


def asking(counter, asked):
    """Return what a backend asks in place of a callable counter; *asked* remembers."""

    def ask(text, chunk):
        asked.append((text, chunk))
        return counter(text)

    return ask


BAD_CHUNKS = [
    None,
    3,
    b"tea",
    {},
    {"text": None},
    {"content": b"tea"},
    {"text": "tea", "title": 3},
    {"text": "tea", "score": float("nan")},
    {"text": "tea", "score": "high"},
    {"text": "tea", "metadata": {"mtime": float("nan")}},
    {"text": "tea", "metadata": {"mtime": 10**400}},
    SimpleNamespace(),
    SimpleNamespace(text=3),
    SimpleNamespace(content="tea", title=b"x"),
    SimpleNamespace(page_content="tea", score=True),
]


@compared
@given(
    st.tuples(queries, chunk_lists(), budgets),
    counters | st.sampled_from([Pure("falling", -3), Pure("odd", -1), Pure("constant", 2**70)]),
    options,
    st.none() | st.tuples(st.integers(0, 9), st.sampled_from(BAD_CHUNKS)),
)
def test_pack(call, counter, chosen, bad):
    """Packings are equal in every field, and so are errors and what a callable is asked."""
    query, chunks, max_tokens = call
    if bad is not None:
        chunks.insert(*bad)
    answers = []
    for name in ("reference", "native"):
        recorder = Recorder(counter, []) if callable(counter) else counter
        with using(name):
            packing = outcome(pack, query, chunks, max_tokens, counter=recorder, **chosen)
        if not isinstance(packing, tuple):
            packing = packing.to_dict()
        answers.append((packing, getattr(recorder, "asked", [])))

    assert answers[0] == answers[1]


@compared
@given(
    queries,
    chunk_lists(meeting_texts | texts),
    st.integers(0, 60),
    exact_counters.flatmap(lambda name: st.sampled_from([name, get_counter(name, cache=False)])),
    options,
)
def test_exact_pack(query, chunks, max_tokens, counter, chosen):
    """Packings under an encoding are equal in every field, whatever meets at the seams."""
    answers = []
    for name in ("reference", "native"):
        with using(name):
            packing = pack(query, chunks, max_tokens, counter=counter, **chosen)
            answers.append((packing.to_dict(), packing.dropped_total_tokens))

    assert answers[0] == answers[1]


@compared
@given(chunk_lists(long_texts | texts, max_size=4), st.integers(1, 40), counters, options)
def test_cutting_pack(chunks, max_tokens, counter, chosen):
    """Packings with cuts are equal in every field."""
    for overflow in ("truncate_end", "truncate_middle"):
        answers = []
        for name in ("reference", "native"):
            with using(name):
                call = {**chosen, "overflow": overflow, "counter": counter}
                answers.append(pack("green tea", chunks, max_tokens, **call).to_dict())

        assert answers[0] == answers[1]


@compared
@pytest.mark.slow
def test_keywords_of_every_code_point():
    """Every assigned code point means the same inside, behind and before a word."""
    reference, native = (backend_named(name).keywords for name in ("reference", "native"))

    different = [
        hex(ord(c))
        for c in ASSIGNED
        if reference(f"a{c}b x{c} {c}y") != native(f"a{c}b x{c} {c}y")
    ]
    assert [] == different


@compared
@pytest.mark.slow
def test_scores_of_every_code_point():
    """Every assigned code point scores the same as a word's part, edge and neighbour."""
    query = "yy zz tea"
    items = [f"{c}yy zz{c} te{c}a" for c in ASSIGNED]
    queried = [c for c in ASSIGNED if c.lower() != c or ord(c) < 0x3000]

    expected, actual = both("keyword_scores", query, items, None)
    assert expected == actual
    for c in queried:
        args = (f"x{c}x {c}y y{c}", [f"X{c}X", f"x{c.lower()}x {c}Y,", c], None)
        expected, actual = both("keyword_scores", *args)
        assert (c, expected) == (c, actual)


@compared
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_every_code_point(kind):
    """Every assigned code point counts the same."""
    items = [f"a{c}b {c}" for c in ASSIGNED] + ASSIGNED
    expected, actual = both("count_batch", kind, 2.5, items)

    assert expected == actual


@compared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [("a", "a"), ("\u0915\u094d", "\u0915"), ("\U0001f600", "\u200d\U0001f600")],
)
def test_grapheme_boundaries_of_every_code_point(before, after):
    """Every assigned code point joins and breaks the same."""
    reference, native = (
        backend_named(name).grapheme_boundaries for name in ("reference", "native")
    )

    different = [
        hex(ord(c))
        for c in ASSIGNED
        if reference(f"{before}{c}{after}") != native(f"{before}{c}{after}")
    ]
    assert [] == different


@compared
@pytest.mark.parametrize("following", [*WHITESPACE, *ODD_CHARACTERS, *PUNCTUATION, *NOT_STRIPPED])
def test_final_sigma(following):
    """A capital sigma lowers to final or medial sigma as Python decides from its context."""
    sigma = "\u03a3"
    items = [
        f"{before}{inner}{sigma}{following}{after}"
        for before in ("", "\u0391", "a", "1", "'", "\u0345", "\u03b1\u00ad\u0301")
        for inner in ("", "\u0301", "\u00ad", "'")
        for after in ("", "\u0391", "b", "\u0301\u0391", "'\u0391", " \u0391")
    ]
    for item in items:
        expected, actual = both("keywords", item)
        assert (item, expected) == (item, actual)
    for query in ("\u03b1\u03c3", "\u03b1\u03c2", items[7], items[30]):
        expected, actual = both("keyword_scores", query, items, None)
        assert expected == actual


FILLERS = ["ab cd ", "k", "keywor ", "\u00e9\u00e8 ", "\u8336 ", ". - ", "K\u212a "]


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize(
    "word", ["keyword", "kw", "\u043a\u043b\u044e\u0447", "caf\u00e9", "\u7eff\u8336"]
)
def test_keyword_at_every_offset(backend, filler, word):
    """A keyword is found wherever it stands, and not where it is glued to a letter."""
    fill = filler * 60
    edges = ["x", "\u00e9", "_", "1", "\u0436"]
    items, expected = [], []
    for offset in range(201):
        before, after = fill[:offset], fill[offset:200]
        for found in (f"{word}", f"({word.upper()}),", f"'{word}'."):
            items.append(f"{before} {found} {after}")
            expected.append(1.0)
        for edge in edges:
            items += [f"{before} {edge}{word} {after}", f"{before} {word}{edge} {after}"]
            expected += [0.0, 0.0]
        items += [f"{before} {word[:-1]} {after}", f"{before} {word[0]}-{word[1:]} {after}"]
        expected += [0.0, 0.0]

    scores = memoryview(backend.keyword_scores(word, items, None)).cast("d").tolist()
    wrong = [item for item, a, b in zip(items, expected, scores, strict=True) if a != b]
    assert [] == wrong


@pytest.mark.parametrize("many", [1, 2, 63, 64, 65, 129, 301, 1000])
def test_many_keywords(backend, many):
    """The score is the share of the query's keywords, however many there are."""
    words = [f"word{i}" for i in range(many)]
    items = [" ".join(words[:found]) for found in range(0, many + 1, 7)]
    expected = [len(item.split()) / many for item in items]

    scores = memoryview(backend.keyword_scores(" ".join(words * 2), items, None)).cast("d")
    assert expected == scores.tolist()


@compared
@given(
    st.integers(60, 400),
    st.lists(st.sampled_from(VOCABULARY + WHITESPACE), max_size=40),
    st.randoms(use_true_random=False),
)
def test_queries_of_many_odd_keywords(size, words, random):
    """Scores of queries with hundreds of keywords of all scripts are equal."""
    stems = ["tea", "\u0447\u0430\u0439", "\u03c4\u03c3\u03ac\u03b9", "\u8336", "th\u00e9"]
    query = [f"{random.choice(stems)}{i}" for i in range(size)] + words
    items = [" ".join(random.sample(query, random.randrange(size))) for _ in range(3)]
    items += [item.upper() for item in items]
    expected, actual = both("keyword_scores", " ".join(query), items, items[::-1])

    assert expected == actual


def large_batch(seed, size):
    """Return chunks of words of all scripts, a third of them repeated, some empty or long."""
    rng = random.Random(seed)
    parts = VOCABULARY * 3 + [c for c in ODD_CHARACTERS if all(map(is_assigned, c))] + WHITESPACE
    chunks = []
    for index in range(size):
        text = " ".join(rng.choices(parts, k=rng.choice([0, 2, 10, 100])))
        if chunks and rng.random() < 1 / 3:
            text = rng.choice(chunks)["text"]
        chunks.append(
            {
                "text": text,
                "title": rng.choice(["", "Green tea"]),
                "score": rng.choice([None, 0.0, -0.0, rng.random(), index]),
                "metadata": {"mtime": rng.randrange(9)},
            }
        )
    return chunks


@pytest.fixture
def _scored_once(monkeypatch):
    """The reference scores the same query and texts once, and finds the terms of a text once."""
    scored = functools.cache(lexical.score)
    monkeypatch.setattr(
        lexical,
        "score",
        lambda query, pairs, options: copy.deepcopy(scored(query, tuple(pairs), options)),
    )
    monkeypatch.setattr(pipeline, "overlap", functools.cache(overlap))
    monkeypatch.setattr(near, "terms", functools.cache(terms))


@compared
@pytest.mark.slow
@pytest.mark.usefixtures("_scored_once")
@pytest.mark.parametrize("chosen", ["bm25", "keyword", "recency", "input", "score"])
@pytest.mark.parametrize("overflow", ["skip", "stop", "truncate_end", "truncate_middle"])
def test_large_batches(chosen, overflow):
    """Packings of thousands of chunks are equal in every field."""
    chunks = large_batch(f"{chosen} {overflow}", 3_000)
    for counter in ("words", "o200k_base", Pure("bytes", 1)):
        for max_tokens in (300, 10_000):
            for dedupe in ("exact", "near", None):
                answers = []
                for name in ("reference", "native"):
                    with using(name):
                        packing = pack(
                            "green tea policy \u8336",
                            chunks,
                            max_tokens,
                            counter=counter,
                            ranking=chosen,
                            overflow=overflow,
                            dedupe=dedupe,
                        )
                    answers.append(packing.to_dict())

                assert answers[0] == answers[1]


@pytest.mark.slow
@pytest.mark.parametrize("filler", ["ab cd ", "\u00e9\u00e8 ", "\u8336\u8336 ", "\U0001f600 "])
def test_keyword_at_the_end_of_a_long_text(backend, filler):
    """A keyword at the very end or start of a text of a million characters is found."""
    long = filler * 170_000
    items = [f"{long}keyword", f"keyword {long}", long, f"{long}keywordx", f"xkeyword {long}"]

    scores = memoryview(backend.keyword_scores("keyword", items, None)).cast("d")
    assert [1.0, 1.0, 0.0, 0.0, 0.0] == scores.tolist()
