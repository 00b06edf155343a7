"""Counts of texts are remembered for the process, within bounds."""

import random

import pytest
from support import ONLY_REFERENCE

from budgeteer import get_counter

pytest.importorskip("tiktoken")
import oracle
from oracle import ENCODINGS

pytestmark = [
    pytest.mark.skipif(ONLY_REFERENCE, reason="the reference counts with tiktoken itself"),
    pytest.mark.usefixtures("vocabulary", "native"),
]


@pytest.fixture(params=ENCODINGS)
def counter(request):
    """A counter that remembers, and remembers nothing yet."""
    counter = get_counter(request.param)
    counter.clear_cache()
    yield counter
    counter.clear_cache()


TEXT = "A text that is long enough to be worth remembering, whatever the limit. " * 8


def test_cache(counter):
    """The second count of a text is remembered, and the figures say so."""
    assert (0, 0, 0, 0, 0.0) == (*counter.cache_info()[:4], counter.cache_info().hit_rate)

    first = counter.count(TEXT)
    info = counter.cache_info()
    assert (0, 1, 1) == info[:3]
    assert 0 < info.bytes <= info.max_bytes

    assert first == counter.count("".join(TEXT.partition(" ")))  # an equal str, not the same
    assert (1, 1, 1) == counter.cache_info()[:3]
    assert 0.5 == counter.cache_info().hit_rate

    assert [first] * 3 == counter.count_batch([TEXT] * 3).tolist()
    assert (4, 1, 1) == counter.cache_info()[:3]

    counter.clear_cache()
    assert (0, 0, 0, 0) == counter.cache_info()[:4]
    assert first == counter.count(TEXT)


def test_no_cache(counter):
    """A counter that remembers nothing touches no figure."""
    counter.count(TEXT)
    before = counter.cache_info()
    fresh = get_counter(counter.name, cache=False)
    for text in (TEXT, TEXT + "other"):
        fresh.count(text)
        fresh.count_batch([text] * 3)
        fresh.count_till_limit(text, 3)
        fresh.count_till_limit(text, 3_000)
        fresh.truncate(text, 3, marker=" [...]")

    assert before == counter.cache_info()


def test_encodings_remember_apart():
    """What one encoding remembers is nothing to the other."""
    text = "\u0928\u092e\u0938\u094d\u0924\u0947 " * 40
    for name in (*ENCODINGS, *reversed(ENCODINGS)):
        assert oracle.expected_counts(name, [text]) == [get_counter(name).count(text)]


def test_cache_is_bounded(counter):
    """However many texts are counted, no more is remembered than there is room for."""
    texts = [f"{i} {i * 7} {i % 13}" + " tea" * 20 for i in range(200_000)]
    for start in range(0, len(texts), 50_000):
        counter.count_batch(texts[start : start + 50_000])
        info = counter.cache_info()
        assert info.bytes <= info.max_bytes <= 32 * 2**20 + 4096
        assert info.entries <= start + 50_000  # fewer where two threads were in each other's way
    some = random.Random(8).sample(texts, 2_000)
    assert oracle.expected_counts(counter.name, some) == counter.count_batch(some).tolist()


def test_a_limit_is_not_remembered_as_a_count(counter):
    """A count that stopped at a limit is not taken for a count."""
    (count,) = oracle.expected_counts(counter.name, [TEXT])
    for limit in (0, 1, count - 1, count, count - 1):
        assert (count if count <= limit else None) == counter.count_till_limit(TEXT, limit)
    assert count == counter.count(TEXT)
    for limit in (count - 1, count):
        assert (count if count <= limit else None) == counter.count_till_limit(TEXT, limit)


def test_a_text_above_a_limit_is_remembered(counter):
    """That a count exceeds a limit is remembered: below it, nothing is counted again."""
    (count,) = oracle.expected_counts(counter.name, [TEXT])
    limit = count // 2
    assert counter.count_till_limit(TEXT, limit) is None
    assert (0, 1, 1) == counter.cache_info()[:3]
    for below in (limit, limit - 1):
        assert counter.count_till_limit(TEXT, below) is None
    assert (2, 1, 1) == counter.cache_info()[:3]

    assert counter.count_till_limit(TEXT, limit + 1) is None  # counted to its end
    assert (2, 2, 1) == counter.cache_info()[:3]
    for known in (limit, limit + 2, count - 1):
        assert counter.count_till_limit(TEXT, known) is None
    assert count == counter.count_till_limit(TEXT, count) == counter.count(TEXT)
    assert (7, 2, 1) == counter.cache_info()[:3]


def test_texts_that_look_alike(counter):
    """Texts of the same bytes in memory, or the same UTF-8 when lossy, are told apart."""
    like = ["\u6100", "a\0", "\0a", "a", "\ud800" * 300, "\ufffd" * 300, "?" * 300]
    like += ["\u6161" * 300, "a" * 600, "aa\0\0" * 150, "a\0" * 300, "\u6161" * 150 + "\0" * 300]
    expected = oracle.expected_counts(counter.name, like)
    for order in (range(len(like)), reversed(range(len(like)))):
        for i in order:
            assert expected[i] == counter.count(like[i])
    assert expected == counter.count_batch(like).tolist()
