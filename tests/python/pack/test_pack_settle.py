"""Packing: what leaves a text that is over the budget once it is assembled."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import Pure, Recorder, compared, on_both, orders, templates, using

from budgeteer import Chunk, Packer, get_counter, pack

SINGLE_TRIES = SHARE_TRIES = 8


def too_many(most, answer=10**6):
    """Return a counter of words that answers *answer* for more than *most* paragraphs."""
    return lambda text: answer if text.count("\n\n") >= most else len(text.split())


def heavy_joints(per_joint):
    """Return a counter of words that each blank line costs more."""
    return lambda text: len(text.split()) + per_joint * text.count("\n\n")


odd_counters = st.one_of(
    st.builds(
        Pure,
        st.sampled_from(["chars", "words", "joints", "hash", "falling", "only_joined", "odd"]),
        st.sampled_from([1, 3, 40, 10**6, 2**55]),
    ),
    st.builds(too_many, st.integers(1, 40), st.sampled_from([200, 10**6, 2**63 - 1])),
    st.builds(heavy_joints, st.integers(0, 40)),
)
many_texts = st.lists(
    st.integers(0, 12).map(lambda n: " ".join(["tea"] * n) or "x"), min_size=2, max_size=90
)


@st.composite
def settled(draw):
    """Return texts, a budget into which they go by their sum, or nearly, and a counter."""
    counter = draw(odd_counters)
    texts = draw(many_texts)
    room = sum(map(counter, texts[: draw(st.sampled_from([90, 45, 20]))]))
    max_tokens = draw(st.just(room + draw(st.integers(0, 3))) | st.integers(0, 200))
    return texts, min(max_tokens, 2**63 - 1), counter


def small_chunks(count):
    """Return chunks of about 15 tokens, best first."""
    return [Chunk(f"{i}{' tea' * 14}", score=1 / (1 + i)) for i in range(count)]


@on_both
@pytest.mark.parametrize("overflow", ["skip", "stop"])
@pytest.mark.parametrize("template", ["plain", "tagged", "xml"])
@pytest.mark.parametrize("of", ["a callable", "a calibrated model", "heavy joints"])
def test_many_small_chunks_fill_the_budget(name, of, template, overflow):
    """Where the joints of many small chunks are too much, less than two chunks stay free."""
    exact = get_counter("o200k_base")
    counter = {
        "a callable": exact.count,
        "a calibrated model": "kimi-k2",
        "heavy joints": lambda text: len(text.split()) + 9 * text.count("\n"),
    }[of]
    packer = Packer(7_688, counter=counter, ranking="score", template=template, overflow=overflow)
    with using(name):
        packing = packer.pack("", small_chunks(500))
        counted = get_counter(counter).count(packing.text)

    assert counted == packing.total_tokens <= 7_688
    assert [*range(len(packing.kept))] == [kept.index for kept in packing.kept]
    assert 7_688 - packing.total_tokens < 2 * packing.total_tokens / len(packing.kept)


@on_both
@given(call=settled())
@example(call=(["tea"] * 90, 89, too_many(5)))
@example(call=(["tea"] * 90, 90, too_many(5, 180)))
@example(call=(["tea"] * 90, 200, too_many(1, 201)))
@example(call=(["tea"] * 90, 90, heavy_joints(1)))
@example(call=([("tea " * n).strip() for n in range(1, 40)], 780, heavy_joints(9)))
@example(call=(["tea"] * 90, 0, Pure("only_joined", 5)))
def test_how_many_leave(name, call):
    """
    One chunk leaves at a time for 8 tries, then what weighs the excess for 8 tries, then half.

    A chunk weighs its share of the whole text, and half of them leave at most; where all count
    nothing, half leave.
    """
    texts, max_tokens, counter = call
    recorder = Recorder(counter, [])
    with using(name):
        packing = Packer(
            max_tokens, counter=recorder, ranking="input", dedupe=None, overflow="stop"
        ).pack("", texts)

    counts = []
    used = 0
    for text in texts:
        if used + counter(text) > max_tokens:
            break
        used += counter(text)
        counts.append(counter(text))
    is_stopped = len(counts) < len(texts)
    asked = [*texts[: len(counts) + is_stopped]]
    for attempt in range(10**6):
        if not counts:
            break
        asked.append("\n\n".join(texts[: len(counts)]))
        total = counter(asked[-1])
        if total <= max_tokens:
            break
        half = leaving = max(1, len(counts) // 2)
        if attempt < SINGLE_TRIES:
            leaving = 1
        elif attempt < SINGLE_TRIES + SHARE_TRIES and sum(counts) > 0:
            too_much = Fraction(total - max_tokens, total)
            leaving = 1
            while Fraction(sum(counts[-leaving:]), sum(counts)) < too_much:
                leaving += 1
            leaving = min(leaving, half)
        del counts[-leaving:]

    assert len(counts) == len(packing.kept)
    assert asked == recorder.asked


@on_both
@given(call=settled())
@example(call=(["x"] * 90, 0, Pure("only_joined", 5)))
@example(call=(["tea"] * 90, 200, too_many(1, 201)))
def test_how_often_the_text_is_assembled(name, call):
    """However a counter answers, the text is assembled 16 times and log2 of the rest at most."""
    texts, max_tokens, counter = call
    recorder = Recorder(counter, [])
    with using(name):
        packing = pack("", texts, max_tokens, counter=recorder, dedupe=None)

    assert packing.total_tokens <= max_tokens
    tries = SINGLE_TRIES + SHARE_TRIES + len(texts).bit_length() + 1
    assert len(recorder.asked) <= len(texts) + tries


@on_both
def test_a_counter_that_only_says_too_much_leaves_something(name):
    """One that answers a huge number for long texts does not make everything leave."""
    with using(name):
        packing = pack("", ["tea"] * 90, 90, counter=too_many(40), dedupe=None)

    assert 20 <= len(packing.kept) <= 40


@on_both
def test_half_leave_where_chunks_count_nothing(name):
    """After 8 tries half of the rest leaves at a time, and the bound holds."""
    recorder = Recorder(Pure("only_joined", 5), [])
    with using(name):
        packing = pack("", [str(i) for i in range(64)], 4, counter=recorder)

    assert [0] == [kept.index for kept in packing.kept]
    assert 64 + 15 >= len(recorder.asked)
    assert [63, 62, 61] == [dropped.index for dropped in packing.dropped][:3]


@on_both
def test_what_left_says_why(name):
    """What leaves together has the figures of one total; what repeated it goes with it."""
    chunks = [*(f"tea {i}" for i in range(40)), "tea 39", "tea 0"]
    with using(name):
        packing = pack("", chunks, 80, counter=heavy_joints(1), ranking="input")

    # 40 chunks of 2 tokens, 3 with the joint: 95 tokens once 8 have left, 15 too many of them.
    assert 27 - 1 == len(packing.kept)
    dropped = {one.index: one for one in packing.dropped}
    assert {*range(26, 40), 40, 41} == {*dropped}
    assert ("budget", 2, 0) == (
        dropped[40].reason,
        dropped[40].needed_tokens,
        dropped[40].available_tokens,
    )
    assert ("duplicate", 0) == (dropped[41].reason, dropped[41].duplicate_of)


@compared
@given(
    call=settled(),
    named=st.sampled_from([None, None, "claude-sonnet-4-5", "o200k_base"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "overflow": st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
            "dedupe": st.sampled_from(["exact", "near", None]),
            "template": templates,
            "order": orders,
            "notice": st.just(True),
        },
    ),
)
def test_both_settle_alike(call, named, options):
    """Both backends ask the same questions and give the same answer."""
    texts, max_tokens, counter = call
    answers = []
    for name in ("reference", "native"):
        recorder = Recorder(counter, [])
        with using(name):
            packing = pack("", texts, max_tokens, counter=named or recorder, **options)
        answers.append((packing.to_dict(), recorder.asked))

    assert answers[0] == answers[1]
