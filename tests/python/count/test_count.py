"""Counting: names, estimates, batches, limits and cuts."""

import math
import pickle
from enum import Enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    EXACT,
    FORMULAS,
    Liar,
    Pure,
    Recorder,
    counters,
    formula_counters,
    long_texts,
    on_both,
    texts,
    using,
)

from budgeteer import CounterError, InvalidArgumentError, TokenCounter, get_counter


def expected_count(counter, text):
    """Return what the document's formulas give, by themselves."""
    if not text:
        return 0
    if counter in ("words", "whitespace"):
        return max(1, len(text.split()))
    ratio = 4.0 if counter == "chars_div4" else float(counter.partition(":")[2])
    return max(1, math.ceil(len(text) / ratio))


@on_both
@pytest.mark.parametrize("part", ["\u09df.com ", "\u09df\n \n"])
def test_long_text_of_letters_that_decompose(name, part):
    """Qwen's NFC makes a letter and a mark of one letter: where a long text is split heeds it."""
    with using(name):
        counter = get_counter("qwen2", cache=False)

        assert counter.count(part * 5_000) == 5_000 * counter.count(part)


@on_both
@pytest.mark.parametrize("sign", ["\u30fb", "\u30a0", "\u309b"])
def test_signs_of_kana_before_line_ends(name, sign):
    """DeepSeek's patterns split behind a sign of kana: line ends and spaces are a piece."""
    with using(name):
        counter = get_counter("deepseek", cache=False)

        assert counter.count(f"{sign}\n \n") == counter.count(sign) + counter.count("\n \n")


@on_both
@given(counter=formula_counters, text=texts | long_texts)
def test_formula(name, counter, text):
    """Each estimate is its formula: 0 for the empty text, else at least 1."""
    with using(name):
        assert expected_count(counter, text) == get_counter(counter).count(text)


@on_both
@given(counter=counters, items=st.lists(texts, max_size=8))
def test_count_batch(name, counter, items):
    """A batch counts what its texts count, as int64 of shape (n,)."""
    with using(name):
        counter = get_counter(counter)
        counts = counter.count_batch(items)
        expected = [counter.count(item) for item in items]

    assert expected == counts.tolist()
    assert np.int64 == counts.dtype
    assert (len(items),) == counts.shape


@pytest.mark.parametrize("counter", [*FORMULAS, *EXACT, len])
@pytest.mark.parametrize("empty", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_empty_batch(backend, counter, empty):
    """An empty batch has shape (0,)."""
    counts = get_counter(counter).count_batch(empty)

    assert ((0,), np.int64) == (counts.shape, counts.dtype)


def test_batch_of_any_sequence(backend):
    """A batch may be a list, a tuple, a generator or an array of str."""
    counter = get_counter("words")

    for items in (
        ["a b", "c"],
        ("a b", "c"),
        (text for text in ["a b", "c"]),
        np.array(["a b", "c"]),
    ):
        assert [2, 1] == counter.count_batch(items).tolist()


@pytest.mark.parametrize("counter", [*FORMULAS, *EXACT, len])
@pytest.mark.parametrize("bad", [None, 3, b"x", ["x"], 1.5, True])
def test_batch_with_a_bad_text(backend, counter, bad):
    """What is no str in a batch is named by its index and type."""
    with pytest.raises(InvalidArgumentError, match=r"^texts\[2\] must be a str, not") as caught:
        get_counter(counter).count_batch(["a", "secret", bad, None])

    assert "secret" not in str(caught.value)
    assert str(caught.value).endswith("None" if bad is None else type(bad).__name__)


@pytest.mark.parametrize("bad", ["text", b"text", {"a": 1}, None, 3, bytearray(b"x")])
def test_no_batch(backend, bad):
    """A lone text, a mapping and what has no items are no batch."""
    with pytest.raises(InvalidArgumentError, match=r"^texts must be a sequence, not"):
        get_counter("words").count_batch(bad)


@pytest.mark.parametrize("counter", [*FORMULAS, *EXACT, len])
@pytest.mark.parametrize("bad", [None, 3, b"x", ["x"], True])
def test_count_of_no_text(backend, counter, bad):
    """count and its kin take a str, nothing else."""
    counter = get_counter(counter)
    for call in (
        lambda: counter.count(bad),
        lambda: counter.count_till_limit(bad, 3),
        lambda: counter.truncate(bad, 3),
    ):
        with pytest.raises(InvalidArgumentError, match=r"^text must be a str, not"):
            call()


class Named(str, Enum):
    """A str whose str() is another text."""

    TEA = "tea"


@pytest.mark.parametrize("counter", ["chars_div4", "words", "chars_per_token:1", *EXACT])
def test_str_subclass(backend, counter):
    """A str subclass counts as its characters, alone and in a batch."""
    counter = get_counter(counter)

    for text in (Named.TEA, Liar("tea")):
        assert counter.count("tea") == counter.count(text)
        assert [counter.count("tea")] == counter.count_batch([text]).tolist()


@pytest.mark.parametrize("argument", ["text", "marker"])
@pytest.mark.parametrize("counter", ["chars_div4", *EXACT])
def test_str_subclass_is_cut(backend, counter, argument):
    """A text or marker of a str subclass is cut by its characters."""
    call = {"text": "tea" * 9, "marker": ".."}
    expected = get_counter(counter).truncate(call["text"], 3, marker=call["marker"])
    call[argument] = Liar(call[argument])
    cut = get_counter(counter).truncate(call["text"], 3, marker=call["marker"])

    assert (expected, str) == (cut, type(cut))
    assert "tea" == cut[:3]
    assert ".." == cut[-2:]


@on_both
@given(counter=counters, text=texts, limit=st.integers(0, 30) | st.just(2**63 - 1))
def test_count_till_limit(name, counter, text, limit):
    """count_till_limit is the count if it is at most the limit, else None."""
    with using(name):
        counter = get_counter(counter)
        count = counter.count(text)

        assert (count if count <= limit else None) == counter.count_till_limit(text, limit)


@pytest.mark.parametrize("bad", [-1, 1.0, None, "3", True, 2**63, float("nan")])
def test_bad_limit(backend, bad):
    """A limit is an int from 0 on."""
    with pytest.raises(InvalidArgumentError, match=r"^limit must be"):
        get_counter("words").count_till_limit("text", bad)


markers = st.sampled_from(["", " [...]", "\u2026", "\n[...truncated...]\n", "xxxxxxxxxxxxxxxx"])
keeps = st.sampled_from(["start", "end", "both"])


@on_both
@given(
    counter=counters,
    text=texts | long_texts,
    max_tokens=st.integers(0, 40),
    cut=st.fixed_dictionaries({"keep": keeps, "marker": markers}),
)
def test_truncate(name, counter, text, max_tokens, cut):
    """A cut fits; what fits is not cut; a cut is whole clusters and the marker."""
    with using(name) as backend:
        counter = get_counter(counter)
        result = counter.truncate(text, max_tokens, **cut)
        fits = counter.count(text) <= max_tokens
        counted = counter.count(result) if result else 0
        places = backend.grapheme_boundaries(text)

    assert counted <= max_tokens
    if fits:
        assert text == result
        return
    # The words that go may be shorter than the marker.
    assert len(result) <= len(text) or counter.name in ("words", "whitespace")
    if result:
        heads = places if cut["keep"] != "end" else [0]
        tails = places if cut["keep"] != "start" else [len(text)]
        kept = len(result) - len(cut["marker"])
        assert result in {
            text[:head] + cut["marker"] + text[tail:]
            for head in heads
            for tail in tails
            if head + len(text) - tail == kept
        }


@on_both
@given(
    counter=st.sampled_from([name for name in FORMULAS if name not in ("words", "whitespace")]),
    text=st.text("abc de", min_size=1, max_size=60),
    max_tokens=st.integers(0, 20),
    cut=st.fixed_dictionaries({"keep": keeps, "marker": markers}),
)
def test_truncate_keeps_all_it_can(name, counter, text, max_tokens, cut):
    """Of the pieces of a text of single characters, the longest that fits stays."""
    expected = ""
    with using(name):
        counter = get_counter(counter)
        result = counter.truncate(text, max_tokens, **cut)
        if counter.count(text) <= max_tokens:
            return
        for size in range(1, len(text) - len(cut["marker"]) + 1):
            head = {"start": size, "end": 0}.get(cut["keep"], size - size // 2)
            piece = text[:head] + cut["marker"] + text[len(text) - (size - head) :]
            if counter.count(piece) <= max_tokens:
                expected = piece

    assert expected == result


@pytest.mark.parametrize(
    ("keep", "marker", "expected"),
    [
        ("start", "", "01234567"),
        ("end", "", "89abcdef"),
        ("both", "", "0123cdef"),
        ("start", " [...]", "01 [...]"),
        ("end", "[...] ", "[...] ef"),
        ("both", "[...]", "01[...]f"),
    ],
)
@pytest.mark.parametrize("counter", ["chars_div4", Pure("chars", 1)], ids=["formula", "callable"])
def test_truncated(backend, counter, keep, marker, expected):
    """A cut keeps start, end or both, the marker inside the limit."""
    limit = 2 if counter == "chars_div4" else 8

    assert expected == get_counter(counter).truncate(
        "0123456789abcdef", limit, keep=keep, marker=marker
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must be from 0"),
        ({"max_tokens": 1.5}, "max_tokens must be an int, not float"),
        ({"keep": "middle"}, "keep must be one of 'start', 'end', 'both', not 'middle'"),
        ({"keep": "strat"}, "did you mean 'start'"),
        ({"keep": None}, "keep must be one of .*, not None"),
        ({"marker": None}, "marker must be a str, not None"),
        ({"marker": b"..."}, "marker must be a str, not bytes"),
    ],
)
def test_bad_cut(backend, arguments, message):
    """A bad argument of truncate is named."""
    call = {"max_tokens": 3, **arguments}
    with pytest.raises(InvalidArgumentError, match=message):
        get_counter("words").truncate("text", call.pop("max_tokens"), **call)


@pytest.mark.parametrize("name", ["chars_div4", "words", "whitespace", "chars_per_token:2.5"])
def test_names(name):
    """A counter is had by its name and says it; no formula is exact."""
    counter = get_counter(name)

    assert isinstance(counter, TokenCounter)
    assert (name, False) == (counter.name, counter.is_exact)
    assert counter == get_counter(name)
    assert counter is get_counter(counter)


class Tokenizer:
    """A tokenizer of a caller's own."""

    def __init__(self, is_exact):
        self.is_exact = is_exact

    def __call__(self, text):
        return len(text)


@pytest.mark.parametrize(
    ("function", "is_exact"),
    [
        (len, False), (lambda text: len(text) // 4, False), (Tokenizer(False), False),
        (Tokenizer(True), True), (Tokenizer("yes"), False), (Tokenizer(1), False),
    ],
)  # fmt: skip
def test_a_callable_is_exact_if_it_says_so(function, is_exact):
    """A caller's own function is exact only by an attribute is_exact that is True."""
    assert get_counter(function).is_exact is is_exact


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("cache", [True, False])
def test_encodings(name, cache):
    """An encoding is had by its name and says it; it is exact, cache or not."""
    counter = get_counter(name, cache=cache)

    assert (name, True) == (counter.name, counter.is_exact)
    assert counter == get_counter(name, cache=cache)
    assert counter != get_counter(name, cache=not cache)
    assert counter is get_counter(counter)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("ft:gpt-4o:acme", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("ft:gpt-4:acme", "cl100k_base"),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_models(model, name, cache):
    """A model's counter is that of its encoding."""
    assert get_counter(name, cache=cache) == get_counter(model, cache=cache)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("chars_div_4", "chars_div4"),
        ("word", "words"),
        ("white_space", "whitespace"),
        ("o200k", "o200k_base"),
        ("CL100K_BASE", "cl100k_base"),
        ("gpt4o", "gpt-4o"),
    ],
)
def test_near_miss(name, near):
    """An unknown name is answered by the names there are, and the nearest."""
    with pytest.raises(InvalidArgumentError, match=f"did you mean '{near}'") as caught:
        get_counter(name)

    for known in (*EXACT, "chars_div4", "words", "whitespace", "chars_per_token:X", "gpt-4o"):
        assert repr(known) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "x" * 10_000, "\ud800", "Words", " words", "chars_per_token"]
)
def test_unknown_name(name):
    """An unknown name is refused, briefly."""
    with pytest.raises(InvalidArgumentError, match="counter must be one of") as caught:
        get_counter(name)

    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("bad", [None, 4, b"words", ["words"], 1.5, True])
def test_no_counter(bad):
    """A counter is a name or a callable."""
    with pytest.raises(InvalidArgumentError, match="counter must be a name or a callable"):
        get_counter(bad)


@pytest.mark.parametrize(
    "ratio",
    ["0", "-1", "nan", "inf", "-inf", "x", "", "1e400", "0.0009", "1000001", "2,5", "\u0664x"],
)
def test_bad_ratio(ratio):
    """A ratio is a number from 0.001 to 1000000."""
    with pytest.raises(InvalidArgumentError, match="chars_per_token"):
        get_counter(f"chars_per_token:{ratio}")


@pytest.mark.parametrize("ratio", ["0.001", "1000000", "1", "4.0", "1e3"])
def test_extreme_ratio(backend, ratio):
    """The extremes of the ratio count, too."""
    counter = get_counter(f"chars_per_token:{ratio}")

    assert math.ceil(7 / float(ratio)) == counter.count("x" * 7)


@pytest.mark.parametrize("bad", [None, 0, 1, "yes"])
def test_bad_cache(bad):
    """cache is a bool."""
    with pytest.raises(InvalidArgumentError, match="cache must be a bool"):
        get_counter("words", cache=bad)


@pytest.mark.parametrize("counter", ["words", *EXACT])
def test_cache(backend, counter):
    """cache changes no count."""
    for cache in (True, False, True):
        assert 2 == get_counter(counter, cache=cache).count("a b")


@pytest.mark.parametrize("counter", EXACT)
def test_cache_info(backend, counter):
    """A text is a miss once and a hit from then on; its figures can be forgotten."""
    counter = get_counter(counter)
    counter.clear_cache()
    assert (0, 0, 0, 0, 0.0) == (*counter.cache_info()[:4], counter.cache_info().hit_rate)
    counter.count("green tea")
    counter.count_batch(["green tea", "rye", "green tea"])
    counter.count_till_limit("rye", 3)
    info = counter.cache_info()

    assert (3, 2, 2, 0.6) == (info.hits, info.misses, info.entries, info.hit_rate)
    assert 0 < info.bytes < info.max_bytes == 32 << 20
    counter.clear_cache()
    assert (0, 0, 0, 0) == counter.cache_info()[:4]


@pytest.mark.parametrize("counter", EXACT)
def test_a_counter_without_a_cache(backend, counter):
    """cache=False neither looks at what is remembered nor adds to it."""
    remembering, fresh = get_counter(counter), get_counter(counter, cache=False)
    remembering.clear_cache()
    assert 2 == remembering.count("green tea")
    before = remembering.cache_info()
    assert [2, 2] == fresh.count_batch(["green tea", "rye"]).tolist()
    assert ("green", None) == (fresh.truncate("green tea", 1), fresh.count_till_limit("rye", 0))

    assert before == remembering.cache_info() == fresh.cache_info()
    assert fresh == get_counter(remembering, cache=False)


@pytest.mark.parametrize("counter", [*FORMULAS, len, "tiktoken:o200k_base"])
def test_cache_info_of_what_remembers_nothing(backend, counter):
    """A counter that is no native encoding remembers nothing, and says so."""
    counter = get_counter(counter)
    counter.count("green tea")
    counter.clear_cache()

    assert ((0, 0, 0, 0, 0), 0.0) == (counter.cache_info(), counter.cache_info().hit_rate)


@pytest.mark.parametrize("counter", [*FORMULAS, *EXACT, "gpt-4o", Pure("bytes", 1), len])
def test_pickle(backend, counter):
    """A counter comes back from pickling equal, and counts alike."""
    counter = get_counter(counter)
    again = pickle.loads(pickle.dumps(counter))

    assert counter == again
    assert counter.count("caf\u00e9 noir") == again.count("caf\u00e9 noir")


@pytest.mark.parametrize("answer", [3, np.int64(3), np.uint8(3)])
def test_callable(backend, answer):
    """A callable's int passes, a numpy one as an int."""
    counter = get_counter(lambda _: answer)
    count = counter.count("text")

    assert (3, int) == (count, type(count))


@pytest.mark.parametrize("bad", [-1, 1.5, None, "3", True, 2**64, np.float64(1), np.bool_(True)])
def test_bad_answer(backend, bad):
    """A callable that answers no int from 0 on is a CounterError, which quotes no text."""
    counter = get_counter(lambda text: bad if text == "secret" else 1)
    for call in (
        lambda: counter.count("secret"),
        lambda: counter.truncate("secret", 3),
        lambda: counter.count_till_limit("secret", 3),
    ):
        with pytest.raises(CounterError, match="a text") as caught:
            call()
        assert "secret" not in str(caught.value)


def test_bad_answer_in_a_batch(backend):
    """A bad answer in a batch names the text by the argument and index of the call."""
    counter = get_counter(lambda text: 1 - 2 * (text == "secret"))
    with pytest.raises(CounterError, match=r"texts\[1\]"):
        counter.count_batch(["a", "secret"])


def test_exception_of_a_callable(backend):
    """A callable's own exception passes unchanged."""
    error = LookupError("mine")

    def counter(_):
        raise error

    for call in (
        lambda: get_counter(counter).count("a"),
        lambda: get_counter(counter).count_batch(["a"]),
        lambda: get_counter(counter).truncate("a", 1),
    ):
        with pytest.raises(LookupError) as caught:
            call()
        assert error is caught.value


def test_truncate_asks_few_times(backend):
    """Cutting by a callable bisects."""
    recorder = Recorder(len, [])
    get_counter(recorder).truncate("x" * 100_000, 5_000, marker="...")

    assert len(recorder.asked) <= 20
