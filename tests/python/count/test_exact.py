"""The exact counters count what tiktoken counts, for every text."""

import itertools
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import EXACT, KNOWN_CLUSTERS, ONLY_REFERENCE, Liar, long_texts

from budgeteer import get_counter

pytest.importorskip("tiktoken")
import oracle
from oracle import ENCODINGS, assert_equal, real_texts

pytestmark = [
    pytest.mark.skipif(ONLY_REFERENCE, reason="the reference counts with tiktoken itself"),
    pytest.mark.usefixtures("vocabulary", "native"),
]
each = pytest.mark.parametrize("name", ENCODINGS)


# The same counts.


@pytest.mark.slow
def test_files():
    """Files of this machine count alike, whole and cut anywhere."""
    rng = random.Random(1)
    for text in oracle.texts_of_the_machine(rng, seconds=4):
        assert_equal([text, *oracle.windows(rng, text, 30)])


def test_samples():
    """Samples of code and of languages count alike from each place to each other."""
    for sample in oracle.SAMPLES:
        assert_equal(
            sample[start:end] for start, end in itertools.combinations(range(len(sample) + 1), 2)
        )


def test_long_text():
    """A text of megabytes, of all kinds at once, counts alike."""
    make = oracle.RandomTexts(2, real_texts())
    assert_equal(["".join(make() for _ in range(5_000))])
    assert_equal(["".join(make().encode("ascii", "ignore").decode() for _ in range(5_000))])


@pytest.mark.parametrize("longest", [0xFF, 0xFFFF, oracle.LAST_CODE_POINT])
def test_scripts(longest):
    """Words of every script count alike, in str of each width."""
    rng = random.Random(3)
    for characters in oracle.scripts():
        letters = [c for c in characters if ord(c) <= longest]
        if letters:
            words = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(60)]
            assert_equal([" ".join(words), *words, "".join(words), "\n".join(words).title()])


@pytest.mark.parametrize("alphabet", oracle.EXHAUSTIVE, ids=ascii)
def test_every_short_text(alphabet):
    """Every text of up to five characters that matter counts alike."""
    assert_equal(oracle.short_texts(alphabet, 5), every=64)


@pytest.mark.parametrize("texts", [oracle.contractions, oracle.digits, oracle.whitespace])
def test_odd(texts):
    """Contractions, digits and whitespace of all kinds count alike in every company."""
    assert_equal(texts())


def test_fragments():
    """What is odd counts alike beside all that is odd."""
    assert_equal(map("".join, itertools.product(oracle.FRAGMENTS, repeat=2)))


@pytest.mark.slow
def test_every_code_point():
    """Each code point that is assigned counts alike beside letters, a space and itself."""
    # And one of eight that are not: oracle.py has time for all of them.
    kinds = [unicodedata.category(chr(code)) for code in range(oracle.LAST_CODE_POINT + 1)]
    assigned = [code for code, kind in enumerate(kinds) if kind not in ("Cn", "Co")]
    others = [code for code, kind in enumerate(kinds) if kind in ("Cn", "Co")][::8]
    texts = oracle.code_points(assigned + others, 4)
    while group := list(itertools.islice(texts, 20_000)):
        assert_equal(group, every=200)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widener", "fillers"),
    [
        (oracle.WIDENERS[0], oracle.FILLERS),
        (oracle.WIDENERS[1], ("x", "word ", "!", " ", "\n")),
        (oracle.WIDENERS[2], ("x", "word ", "!")),
        (oracle.WIDENERS[3], ("x", "word ", "7")),
    ],
    ids=["ASCII", "Latin-1", "UCS-2", "UCS-4"],
)
def test_block_edges(widener, fillers):
    """What is odd counts alike at each offset of a text, ASCII or nearly."""
    for offset in (*range(71), *range(126, 131)):
        assert_equal(oracle.embedded([offset], fillers, [widener]), every=32)


def test_runs():
    """Runs of one character count alike wherever they start and end."""
    assert_equal(oracle.runs(range(67), [1, 2, 3, 4, 31, 32, 63, 64, 65, 127, 128, 129]))


@pytest.mark.parametrize("size", [256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536])
def test_seams(size):
    """What is odd counts alike around the places where a buffer may end."""
    step = max(3, size // 512)
    around = range(-4, 4)
    assert_equal(oracle.seams(size, around, oracle.SNIPPETS[::step]), every=8)


@pytest.mark.parametrize(
    "alphabet",
    ["\u4e2d\u6587\u7684", "\u3042\u30a2", "\uac00\ub098", "\u0e01\u0e32", "\u0430"],
    ids=ascii,
)
def test_long_without_whitespace(alphabet):
    """Long texts of two bytes a character, without any whitespace, count alike."""
    rng = random.Random(5)
    first = ord(alphabet[0])
    near = alphabet + "".join(map(chr, range(first, first + 40)))
    for size in (4_095, 4_096, 4_097, 10_001, 30_000):
        assert_equal(
            [
                alphabet * (size // len(alphabet)),
                "".join(rng.choices(near, k=size)),
                "".join(rng.choices(near + "\u3002\uff0c", k=size)),
                "".join(rng.choices(near, k=size)) + "\U0001f600",
            ],
            every=1,
        )


@each
def test_every_token(name):
    """Each token of both vocabularies counts alike as a text, and so do some together."""
    assert_equal(oracle.tokens(name))
    assert_equal(oracle.pairs_of_tokens(random.Random(6), name, 30_000))


def test_special_tokens():
    """What spells a special token counts as plain text."""
    texts = [*oracle.SPECIAL, *map("".join, itertools.product(oracle.SPECIAL, repeat=2))]
    assert_equal([before + text + after for text in texts for before in ("", " ", "a", "<|", "\n")
                  for after in ("", " ", "|>", "\n")])  # fmt: skip
    for name in ENCODINGS:
        specials = oracle.reference(name).special_tokens_set
        assert_equal(specials, every=1)
        assert all(get_counter(name).count(special) > 1 for special in specials)


def test_surrogates():
    """Lone surrogates and pairs of them count alike in every order."""
    parts = ("\ud800", "\ud83d", "\udbff", "\udc00", "\ude00", "\udfff", "\ufffd", "a", " ", "\n",
             "\ufeff", "\U0001f600", "\u4e2d")  # fmt: skip
    assert_equal(oracle.short_texts(parts, 4))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "part", ["a11\U0001d7d8111", "1\U0001d7d81", "1\U00010400 ", "\U0001d7d8"]
)
def test_pairs_of_surrogates_where_a_long_text_is_split(name, part):
    """A pair counts as the character it stands for, wherever a window of a long text ends."""
    units = memoryview(part.encode("utf-16-le")).cast("H")
    pair = "".join(map(chr, units))
    counter = get_counter(name, cache=False)
    for before in ("", "a", "ab", "abc"):
        text, like = before + pair * 5_000, before + part * 5_000
        assert counter.count(like) == counter.count(text)
        for keep in ("start", "end", "both"):
            assert counter.count(counter.truncate(text, 6_000, keep=keep)) <= 6_000


@pytest.mark.parametrize("name", [*ENCODINGS, "gpt-4o", "gpt-4"])
def test_empty(name):
    """The empty text has no tokens."""
    counter = get_counter(name)

    assert (0, 0) == (counter.count(""), counter.count_till_limit("", 0))
    assert "" == counter.truncate("", 0)
    assert [0, 0] == counter.count_batch(["", ""]).tolist()


@each
def test_str_subclass(name):
    """A str subclass counts as its characters."""
    for cache in (True, False):
        counter = get_counter(name, cache=cache)
        assert 1 == counter.count(Liar("tea"))
        assert [1, 1] == counter.count_batch([Liar("tea"), "tea"]).tolist()


def test_random_texts():
    """Random texts of all kinds count alike in every way there is."""
    make = oracle.RandomTexts(0, real_texts())
    assert_equal((make() for _ in range(20_000)), every=4)


every_character = st.characters(categories=None, exclude_categories=[])
everything = (
    st.text(every_character)
    | st.text(st.sampled_from("".join(oracle.EXHAUSTIVE)), max_size=60)
    | st.lists(st.sampled_from(oracle.FRAGMENTS), max_size=16).map("".join)
    | st.builds(
        lambda text, times, more: text * times + more,
        st.sampled_from(oracle.FRAGMENTS),
        st.integers(0, 200),
        st.text(every_character, max_size=9),
    )
)


@pytest.mark.slow
@settings(max_examples=max(5_000, settings().max_examples))
@given(text=everything)
def test_any_text(text):
    """Any text counts alike, in every way there is."""
    for name in ENCODINGS:
        assert not oracle.differences(name, [text], every=1)


# Batches, limits and cuts.


@each
def test_batch(name):
    """A batch counts what its texts count, in their order, however large it is."""
    texts = real_texts()
    for cache in (True, False):
        counter = get_counter(name, cache=cache)
        expected = [counter.count(text) for text in texts]
        assert oracle.expected_counts(name, texts) == expected
        assert expected == counter.count_batch(texts).tolist()
        assert expected == counter.count_batch(tuple(texts)).tolist()
        assert expected[0] == counter.count_batch(texts[:1])[0]
        assert expected[:50] == counter.count_batch(text for text in texts[:50]).tolist()
        assert [1, 2] == counter.count_batch(np.array(["tea", "green tea"])).tolist()


@each
def test_limits(name):
    """count_till_limit is the count if it is at most the limit, at every limit."""
    texts = [text for text in real_texts() if len(text) < 200][:40]
    for cache, text in itertools.product((True, False), [*texts, *oracle.SAMPLES, "x", " " * 300]):
        counter = get_counter(name, cache=cache)
        (count,) = oracle.expected_counts(name, [text])
        for limit in (*range(count + 3), 10**6, 2**31, 2**32, 2**63 - 1):
            assert (count if count <= limit else None) == counter.count_till_limit(text, limit)


@each
def test_limits_of_long_texts(name):
    """A limit holds to the token in a long text."""
    counter = get_counter(name, cache=False)
    for text in ("word " * 50_000, "\u4e2d\u6587" * 20_000, "\n" * 30_000, "a1 !\u00e9" * 10_000):
        (count,) = oracle.expected_counts(name, [text])
        for limit in (0, 1, count // 2, count - 1):
            assert counter.count_till_limit(text, limit) is None
        for limit in (count, count + 1, 2 * count):
            assert count == counter.count_till_limit(text, limit)


cuts = st.fixed_dictionaries(
    {
        "keep": st.sampled_from(["start", "end", "both"]),
        "marker": st.sampled_from(["", " [...]", "\u2026", "\n[...truncated...]\n", "x" * 40])
        | st.text(every_character, max_size=5),
    }
)


@each
@given(
    text=everything | long_texts | st.sampled_from(oracle.SAMPLES),
    max_tokens=st.integers(0, 60),
    cut=cuts,
    cache=st.booleans(),
)
@settings(max_examples=max(400, settings().max_examples))
def test_truncate(name, text, max_tokens, cut, cache):
    """A cut fits, as tiktoken counts; what fits is not cut; a cut is whole clusters."""
    result = get_counter(name, cache=cache).truncate(text, max_tokens, **cut)
    count, counted = oracle.expected_counts(name, [text, result])

    assert counted <= max_tokens
    if count <= max_tokens:
        assert text == result
        return
    assert len(result) <= len(text)
    if result:
        places = boundaries(text)
        heads = places if cut["keep"] != "end" else [0]
        tails = places if cut["keep"] != "start" else [len(text)]
        kept = len(result) - len(cut["marker"])
        assert result in {
            text[:head] + cut["marker"] + text[tail:]
            for head in heads
            for tail in tails
            if head + len(text) - tail == kept
        }


def boundaries(text):
    from budgeteer import _native

    return _native.grapheme_boundaries(text)


@each
@pytest.mark.parametrize("keep", ["start", "end", "both"])
@pytest.mark.parametrize("marker", ["", " [...]"])
def test_truncate_uses_what_it_is_given(name, keep, marker):
    """A cut of ordinary text stays at most a few tokens below what it may take."""
    counter = get_counter(name)
    for text in (sample * 20 for sample in oracle.SAMPLES):
        longest = max(oracle.expected_counts(name, KNOWN_CLUSTERS))
        for max_tokens in (20, 21, 22, 50, 100, 101):
            result = counter.truncate(text, max_tokens, keep=keep, marker=marker)
            (counted,) = oracle.expected_counts(name, [result])
            assert max_tokens - longest <= counted <= max_tokens


@each
@pytest.mark.parametrize("keep", ["start", "end", "both"])
def test_truncate_to_nothing(name, keep):
    """Of no tokens nothing is left, and no room beside the marker leaves nothing."""
    counter = get_counter(name)

    assert counter.truncate("tea", 0, keep=keep) == ""
    assert counter.truncate("tea" * 9, 0, keep=keep, marker="...") == ""
    assert counter.truncate("green tea", 1, keep=keep, marker=" [...] [...]") == ""
    assert counter.truncate("tea", 1, keep=keep, marker=" [...] [...]") == "tea"
