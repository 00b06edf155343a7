"""BM25: its formula, its terms, and that both backends give the same to the bit."""

import math
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    ODD_CHARACTERS,
    VOCABULARY,
    WHITESPACE,
    Liar,
    any_character,
    backend_named,
    compared,
    is_assigned,
    long_texts,
    queries,
    texts,
    using,
)

from budgeteer import InvalidArgumentError, Packer, ranking
from budgeteer._reference._rank.bm25 import ln
from budgeteer._reference._rank.terms import DEFAULT_WORDS, STOPWORDS, Terms, terms

ASSIGNED = [chr(code) for code in range(sys.maxunicode + 1) if is_assigned(chr(code))]
WORDS = ["tea", "green", "black", "x", "42", "th\u00e9", "\u7eff\u8336", "\uc548\ub155", "the"]


def scores(backend, query, items, titles=None, k1=1.2, b=0.75):
    """Return what a backend answers, as a list."""
    return (
        memoryview(backend.bm25_scores(query, items, titles, k1, b, DEFAULT_WORDS))
        .cast("d")
        .tolist()
    )


def both(*args):
    """Return the bytes that each backend answers."""
    return [
        bytes(backend_named(n).bm25_scores(*args, DEFAULT_WORDS)) for n in ("reference", "native")
    ]


@compared
@given(
    queries | long_texts | st.lists(st.sampled_from(WORDS)).map(" ".join),
    st.lists(texts | long_texts | st.lists(st.sampled_from(WORDS)).map(" ".join), max_size=6),
    st.none() | st.lists(texts, min_size=6, max_size=6),
    st.sampled_from([0.0, 1.2, 1e6]) | st.floats(0, 3),
    st.sampled_from([0.0, 0.75, 1.0]) | st.floats(0, 1),
)
def test_backends_agree(query, items, titles, k1, b):
    """Scores are equal to the bit, for every query, text, title and parameter."""
    reference, native = both(query, items, titles and titles[: len(items)], k1, b)

    assert reference == native


@compared
@given(st.text(any_character), st.lists(st.text(any_character), max_size=4))
def test_backends_agree_on_any_character(query, items):
    """Scores are equal to the bit for texts of any characters."""
    reference, native = both(query, [*items, query, query.upper()], None, 1.2, 0.75)

    assert reference == native


@compared
@pytest.mark.slow
def test_every_code_point():
    """Every assigned code point makes the same terms alone, in words, in pairs and with marks."""
    for start in range(0, len(ASSIGNED), 10):
        some = ASSIGNED[start : start + 10]
        items = [f"{c} x{c} {c}y \u8336{c} a{c}\u0301b \u0301{c} {c}{c}" for c in some]
        items += [c.upper() for c in some] + ["tea"]
        query = " ".join(f"{c} x{c} {c}y \u8336{c} a{c}\u0301b" for c in some)
        reference, native = both(query, items, None, 1.2, 0.75)
        assert (some, reference) == (some, native)


@compared
@given(st.integers(0, 2**32), st.integers(60, 400))
def test_long_queries(seed, size):
    """Scores for queries of hundreds of terms of all scripts are equal to the bit."""
    rng = random.Random(seed)
    stems = ["tea", "\u0447\u0430\u0439", "\u8336", "th\u00e9", "\u039f\u03a3"]
    words = [f"{rng.choice(stems)}{i}" for i in range(size)] + VOCABULARY + WHITESPACE
    items = [" ".join(rng.choices(words, k=rng.randrange(200))) for _ in range(4)]
    reference, native = both(" ".join(words), [*items, items[0].upper()], [*items, ""], 1.2, 0.75)

    assert reference == native


FILLERS = ["ab cd ", "k", "tea-te ", "\u00e9\u00e8 ", "\u8336\u7eff", "_'\u2019 ", "K\u212a "]


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("word", ["x", "te", "tea", "oolongteas", "caf\u00e9", "\u9ed1\u8336"])
def test_at_every_offset(backend, filler, word):
    """A term is counted wherever it stands, and not where it is glued to a word of its script."""
    fill = filler * 60
    items, expected = [], []
    for offset in range(150):
        before, after = fill[:offset], fill[offset:150]
        for left, right in [(" ", " "), ("'", "'s "), ("_", "_"), ("\u3002", "\u2019"), ("q", "")]:
            items.append(f"{before}{left}{word}{right}{after}")
            expected.append(Counter(terms(items[-1]))[word.lower()])
    counts = scores(backend, word, items, k1=1e6, b=0.0)
    unit = max(counts) / max(expected) if any(expected) else 1.0

    assert expected == [round(count / unit) for count in counts]


def by_the_book(query, items, k1, b):
    """Return the scores by the published formula, by other means than either backend."""
    counted = [Counter(terms(text)) for text in items]
    lengths = np.array([sum(counts.values()) for counts in counted], dtype=float)
    total = np.zeros(len(items))
    for term in Terms().of_query(query):
        f = np.array([counts[term] for counts in counted], dtype=float)
        n = np.count_nonzero(f)
        norm = k1 * (1 - b + b * lengths / max(lengths.mean(), 1e-9))
        held = f > 0
        idf = math.log(1 + (len(items) - n + 0.5) / (n + 0.5))
        total[held] += idf * (f[held] * (k1 + 1) / (f + norm)[held])
    return total


@given(
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=9),
    st.floats(0, 3),
    st.floats(0, 1),
)
def test_formula(query, items, k1, b):
    """The scores are those of the published formula."""
    actual = ranking.bm25_scores(query, items, k1=k1, b=b)

    assert by_the_book(query, items, k1, b) == pytest.approx(actual, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (1.5, 0.3), (0.4, 1.0)])
def test_oracle(backend, k1, b):
    """bm25s, given the same terms, gives the same scores."""
    rng = random.Random(7)
    words = [f"w{i}" for i in range(40)] + VOCABULARY
    items = [" ".join(rng.choices(words, k=rng.randrange(1, 60))) for _ in range(200)]
    oracle = bm25s.BM25(k1=k1, b=b, method="atire", idf_method="lucene", dtype="float64")
    oracle.index([terms(text) for text in items], show_progress=False)
    for query in ("w1 w2 green tea", "w3", "MOSCOW caf\u00e9 w4 w4", " ".join(words)):
        expected = oracle.get_scores(Terms().of_query(query))
        found = ranking.bm25_scores(query, items, k1=k1, b=b)

        assert expected == pytest.approx(found, rel=1e-12)


def test_ln():
    """The port is within a unit in the last place of the platform's logarithm."""
    rng = random.Random(3)
    for _ in range(20_000):
        x = 1 + 10 ** rng.uniform(-12, 12)
        assert abs(ln(x) - math.log(x)) <= math.ulp(math.log(x))
    for _ in range(20_000):  # near a power of two, where it takes a shorter way
        x = 2.0 ** rng.randrange(40) * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-15, -5))
        assert abs(ln(max(1.0, x)) - math.log(max(1.0, x))) <= math.ulp(math.log(max(1.0, x)))
    assert (0.0, math.log(2), math.log(1024)) == (ln(1.0), ln(2.0), ln(1024.0))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ("0x1.6a09bd6172adfp+0", "0x1.62e3bbe60bbfcp-2"),
        ("0x1.6a09b54f47842p+1", "0x1.0a2b013c53917p+0"),
        ("0x1.00002f1167f45p+0", "0x1.788b1d04eed37p-19"),
        ("0x1.00000f35a5e52p+0", "0x1.e6b4ae2eb5a34p-21"),
        ("0x1.00001bb91168fp+0", "0x1.bb90fe8a86097p-20"),
        ("0x1.6147aedc49712p+0", "0x1.49d0440133620p-2"),
        ("0x1.6147a38f19397p+0", "0x1.49d0233f2550ap-2"),
        ("0x1.6b852a9908cebp+0", "0x1.6712b9c42cec9p-2"),
        ("0x1.a50c7a7eb1129p+1", "0x1.30d2eaddc7835p+0"),
        ("0x1.6b8520c9284eep+0", "0x1.67129e2077c41p-2"),
    ],
)
def test_ln_to_the_bit(x, expected):
    """Where it goes from one way to another it still has the bits of fdlibm's, as Rust's must."""
    assert expected == ln(float.fromhex(x)).hex()


@compared
@pytest.mark.parametrize("size", [2, 3, 30, 500])
def test_each_frequency_weighs_the_same_on_both_backends(size):
    """The logarithm of every share of texts is the same to the last bit."""
    query = " ".join(f"t{number}" for number in range(size))
    # Text n has the terms up to n: no two terms are in equally many.
    items = [" ".join(f"t{number}" for number in range(n + 1)) for n in range(size)]
    reference, native = both(query, items, None, 1.2, 0.0)

    assert reference == native


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("E-mail, don't!", "e mail don t"),
        ("O\u2019Brien's x2 snake_case", "o brien s x2 snake case"),
        ("Cafe\u0301 \u212aelvin \u0130x", "cafe\u0301 kelvin i\u0307x"),
        ("\u039f\u0394\u039f\u03a3 \u03bf\u03b4\u03bf\u03c2", "\u03bf\u03b4\u03bf\u03c3 " * 2),
        ("\u0301x \u2764\ufe0f \ud800 \u2026", "x"),
        ("\u7eff\u8336\u5f88\u597d\u3002\u8336", "\u7eff\u8336 \u8336\u5f88 \u5f88\u597d \u8336"),
        ("iPhone\u624b\u673a15", "iphone \u624b\u673a 15"),
        ("\u304b\u3099\u304d", "\u304b\u3099 \u3099\u304d"),
        ("\uc11c\uc6b8\uc5d0\uc11c", "\uc11c\uc6b8 \uc6b8\uc5d0 \uc5d0\uc11c"),
        ("\u0e0a\u0e32", "\u0e0a\u0e32"),
        ("", ""),
    ],
)
def test_terms(backend, text, expected):
    """Words are runs of letters, digits and marks; scripts without spaces give pairs."""
    assert expected.split() == terms(text)
    for term in set(Terms().of_query(expected)) & set(expected.split()):
        found = scores(backend, term, [text, "other"])
        assert found[0] > found[1] == 0.0


def test_words_match_the_usual_pattern():
    """On English text the terms are what the usual pattern for words finds, whatever follows."""
    text = Path(re.__file__).read_text(encoding="utf-8")

    assert re.findall(r"[a-z0-9]+", text.lower()) == terms(text)
    assert [*terms(text), "th\u00e9"] == terms(f"{text} th\u00e9")


@pytest.mark.parametrize(
    "query", ["", " ", "the of", "What IS it, then?", "?!", "isn't", "\u0301"]
)
def test_query_without_terms(backend, query):
    """A query of nothing but stopwords scores 0.0 everywhere and leaves the input order."""
    items = ["the tea", query, "what is it"]

    assert [0.0] * 3 == scores(backend, query, items)
    kept = Packer(99, ranking="bm25").pack(query, ["rye", "the tea", "it"]).kept
    assert ["rye", "the tea", "it"] == [chunk.text for chunk in kept]


def test_stopwords(backend):
    """No stopword is a term of a query."""
    assert [0.0] * 2 == scores(backend, " ".join(STOPWORDS), [" ".join(STOPWORDS), "tea"])


@pytest.mark.parametrize(("chosen", "held"), [(None, True), (["tea"], True), ("english", False)])
def test_other_stopwords(backend, chosen, held):
    """What is no stopword of those asked for is a term."""
    the, tea = ranking.bm25_scores("the tea", ["the", "tea", "rye"], stopwords=chosen)[:2]

    assert held == (the > 0.0)
    assert (chosen == ["tea"]) == (tea == 0.0)


def test_titles(backend):
    """A title counts as a part of its text, whatever that has."""
    items, titles = ["tea", "", "rye", "the"], ["green", "green tea", "", "Tea"]
    together = [f"{text} {title}" for text, title in zip(items, titles, strict=True)]

    assert scores(backend, "green tea", together) == scores(backend, "green tea", items, titles)
    assert ranking.bm25_scores("tea", items, titles=titles)[1] > 0.0


def test_ties_keep_the_input_order(backend):
    """Equal texts score the same and come in the order of the input."""
    packer = Packer(99, dedupe=None, ranking="bm25")
    kept = packer.pack("tea", ["rye", "tea a", "tea b", "oat", "tea c"]).kept

    assert [1, 2, 4, 0, 3] == [chunk.index for chunk in kept]
    assert 1 == len({chunk.score for chunk in kept[:3]})


def test_rarer_terms_count_more(backend):
    """A term that fewer texts have counts more; one more of it counts less than the first."""
    once, twice, common = ranking.bm25_scores(
        "oolong tea", ["oolong x y", "oolong oolong y", "tea x y", "tea x z", "tea y z"]
    )[:3]

    assert common < once < twice < 2 * once


@pytest.mark.parametrize("chosen", ["bm25", "keyword"])
def test_packing_reports_the_score(backend, chosen):
    """A packing's scores are those of the function of its ranking, and min_score applies to it."""
    items = ["green tea", "tea tea tea", "rye", "green rye and oat"]
    by = {"bm25": ranking.bm25_scores, "keyword": ranking.keyword_scores}[chosen]
    expected = by("Green tea?", items).tolist()
    packing = Packer(99, ranking=chosen, min_score=expected[3]).pack("Green tea?", items)

    assert [chunk.score for chunk in packing.kept] == sorted(expected[:2] + expected[3:])[::-1]
    assert [("out_of_scope", 0.0)] == [(c.reason, c.score) for c in packing.dropped]


def test_str_subclass(backend):
    """Texts of a str subclass score by their characters, whatever their methods say."""
    assert ranking.bm25_scores("tea", [Liar("tea"), "loud"]).tolist()[1] == 0.0
    assert ranking.bm25_scores(Liar("tea"), ["tea", "loud"]).tolist()[0] > 0.0


@pytest.mark.parametrize("titles", [None, []])
def test_empty(backend, titles):
    """No texts have scores of shape (0,)."""
    found = ranking.bm25_scores("tea", [], titles=titles)

    assert ((0,), np.float64) == (found.shape, found.dtype)


@pytest.mark.parametrize(
    ("name", "bad", "shown"),
    [
        ("k1", -0.1, "from 0 to 1000000, not -0.1"),
        ("k1", 2_000_000, "from 0 to 1000000, not 2000000.0"),
        ("k1", math.inf, "from 0 to 1000000, not inf"),
        ("k1", math.nan, "a number, not NaN"),
        ("k1", "1.2", "a float, not str"),
        ("b", 1.01, "from 0 to 1, not 1.01"),
        ("b", None, "a float, not None"),
        ("b", True, "a float, not bool"),
    ],
)
def test_bad_parameters(backend, name, bad, shown):
    """A parameter out of range is named, with its value or type and what is allowed."""
    with pytest.raises(InvalidArgumentError, match=f"^{name} must be {re.escape(shown)}$"):
        ranking.bm25_scores("tea", ["tea"], **{name: bad})


@pytest.mark.parametrize("bad", [None, 3, b"x"])
def test_bad_text(backend, bad):
    """What is no str is named by argument, index and type, never by its text."""
    kind = "None" if bad is None else type(bad).__name__
    with pytest.raises(InvalidArgumentError, match=rf"^texts\[1\] must be a str, not {kind}$"):
        ranking.bm25_scores("tea", ["secret", bad])
    with pytest.raises(InvalidArgumentError, match=rf"^titles\[1\] must be a str, not {kind}$"):
        ranking.bm25_scores("tea", ["a", "b"], titles=["secret", bad])


@compared
@pytest.mark.slow
def test_large_batches():
    """Packings of thousands of chunks of all scripts are equal in every field."""
    rng = random.Random(5)
    parts = VOCABULARY * 3 + [c for c in ODD_CHARACTERS if all(map(is_assigned, c))] + WHITESPACE
    chunks = [
        {"text": " ".join(rng.choices(parts, k=rng.choice([0, 2, 10, 100]))), "title": title}
        for title in rng.choices(["", "Green tea", "\u7eff\u8336"], k=3_000)
    ]
    for query in ("green tea policy \u7eff\u8336", "caf\u00e9"):
        answers = []
        for name in ("reference", "native"):
            with using(name):
                packing = Packer(3_000, counter="words", ranking="bm25").pack(query, chunks)
            answers.append(packing.to_dict())

        assert answers[0] == answers[1]


def test_import_stays_light():
    """Neither bm25s nor anything else of the tests is imported by the package."""
    code = "import sys, budgeteer.ranking; sys.exit('bm25s' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
