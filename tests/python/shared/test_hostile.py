"""Input that is made to be slow, or to tell the backends apart, is neither."""

import gc
import time

import pytest
from support import BACKENDS, on_both, using

from budgeteer import Packer, pack

on_native = pytest.mark.skipif("native" not in BACKENDS, reason="is about the native backend")


def seconds(work):
    """Return the time of the processor: other processes do not add to it."""
    start = time.process_time()
    work()
    return time.process_time() - start


@on_native
def test_a_keyword_that_repeats_itself():
    """A keyword with many places to compare at in one long word takes linear time."""
    n = 100_000
    assert seconds(lambda: pack("x-" * n + "x", ["x-" * 2 * n + "x"], 10)) < 0.5


@on_both
def test_many_duplicates_of_what_leaves(name):
    """What repeats a chunk that leaves is found in linear time."""

    def counter(text):
        return 9 if "[" in text else 1  # it fits, as long as it is not in the text

    chunks = ["abcd"] * 80_000
    with using(name):
        # Others slow the machine, none makes it fast: one of three is enough.
        tries = (
            seconds(lambda: pack("", chunks, 8, counter=counter, template="tagged"))
            for _ in range(3)
        )
        assert any(took < 2 for took in tries)
        packing = pack("", ["abcd"] * 3, 8, counter=counter, template="tagged")
    assert ["budget"] * 3 == [dropped.reason for dropped in packing.dropped]


@on_native
def test_a_type_for_each_chunk():
    """Chunks that each have a type of their own take linear time."""

    def took(count):
        chunks = [type("Own", (), {"text": "tea"})() for _ in range(count)]
        gc.collect()
        gc.disable()  # else it looks through all that other tests have left, in one of the two
        try:
            return seconds(lambda: pack("tea", chunks, 10))
        finally:
            gc.enable()

    # How long one takes is a matter of how many subclasses Mapping has in the process.
    # What is quadratic takes a hundred times as long.
    assert took(10_000) < 60 * max(0.02, took(1_000))


@on_native
def test_equal_texts_of_equal_prints():
    """Many kept texts that differ in few places are told apart in linear time."""
    filler = "x" * 333
    chunks = [f"{filler}{i:07}{filler}" for i in range(50_000)]
    packer = Packer(2**62, ranking="input", counter="chars_div4")
    assert seconds(lambda: packer.pack("", chunks)) < 2


@on_both
@pytest.mark.parametrize("overflow", ["truncate_end", "truncate_middle"])
def test_cuts_that_fail(name, overflow):
    """A callable is not asked again and again where nothing more can be cut."""
    asked = []

    def counter(text):
        asked.append(text)
        return len(text)

    with using(name):
        pack(
            "",
            ["y" * 100] + ["z" * 104] * 500,
            105,
            counter=counter,
            overflow=overflow,
            dedupe=None,
        )
    assert len(asked) < 501 + 40


@on_both
def test_title_of_a_str_subclass(name):
    """What a title redefines of str does not count."""

    class Silent(str):
        __slots__ = ()

        def __len__(self):
            return 0

    with using(name):
        chunks = [{"text": "green leaf", "title": Silent("tea")}, "rye"]
        by_keyword = pack("tea", chunks, 100, ranking="keyword")
        by_bm25 = pack("tea", chunks, 100, ranking="bm25")
    assert [1.0, 0.0] == [chunk.score for chunk in by_keyword.kept]
    assert by_bm25.kept[0].score > by_bm25.kept[1].score == 0.0
