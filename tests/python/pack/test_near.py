"""Near-duplicates: what is dropped, on both backends, by the definition and in every packing."""

import pickle
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    Pure,
    budgets,
    compared,
    counters,
    notices,
    odd_texts,
    on_both,
    orders,
    outcome,
    templates,
    text_of,
    texts,
    using,
)

from budgeteer import Corpus, Packer, Template, pack

TWENTY = " ".join(f"word{i}" for i in range(20))
FIFTY = " ".join(f"word{i}" for i in range(50))


def changed(text, *places):
    """Return *text* with other words at those places."""
    words = text.split()
    for place in places:
        words[place] = f"other{place}"
    return " ".join(words)


@pytest.mark.parametrize(
    ("kept", "new", "is_near"),
    [
        # What separates words, and the case, do not matter.
        ("Green tea.", "green TEA!", True),
        ("Green tea.", "tea green", False),
        ("Green tea.", "Green tea is mild.", False),
        ("a b c d", "a b c d", True),
        ("a b c d e", "a-b_c\nD/E", True),
        ("\u7eff\u8336\u5f88\u597d\u559d", "\u7eff\u8336\u5f88\u597d\u559d\u3002", True),
        # 46 shingles: a word in the middle is in five, the first in one.
        (FIFTY, changed(FIFTY, 25), True),  # 41 of 51 are in both
        (FIFTY, changed(FIFTY, 0), True),
        (FIFTY, changed(FIFTY, 20, 30), False),  # 36 of 56
        (FIFTY, changed(FIFTY, 20, 21), False),  # 40 of 52
        (FIFTY, f"more {changed(FIFTY, 25)}", False),  # 41 of 52
        # 16 shingles: 16 of 20 are four fifths, 16 of 21 are not.
        (TWENTY, f"{TWENTY} a b c d", True),
        (TWENTY, f"{TWENTY} a b c d e", False),
        # A part of a kept text is nothing new; a kept part does not make it so.
        (FIFTY, " ".join(FIFTY.split()[10:30]), True),
        (" ".join(FIFTY.split()[10:30]), FIFTY, False),
        (FIFTY, " ".join(FIFTY.split()[10:14]), False),  # a shingle of its own: four words
        (FIFTY, " ".join(FIFTY.split()[10:15]), True),
        # Nothing to compare.
        ("...", "!!!", False),
        ("...", "...", True),
        ("tea", "...", False),
    ],
)
@pytest.mark.parametrize("name", BACKENDS)
def test_what_is_near(name, kept, new, is_near):
    """Four fifths of all shingles of five words are in both, or all of the chunk's in the kept."""
    with using(name):
        packing = pack("", [kept, new], 10**6, ranking="input", dedupe="near")

    dropped = [(d.index, d.reason, d.duplicate_of) for d in packing.dropped]
    assert ([(1, "duplicate", 0)] if is_near else []) == dropped


def shingles(text):
    """Return the runs of five words of a text of ASCII, of all words where there are fewer."""
    words = re.findall("[a-z0-9]+", text.lower())
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))} if words else set()


def expected_duplicates(chunks):
    """Return each duplicate and the kept text that it repeats, where everything fits."""
    kept, duplicates = [], {}
    for i, text in enumerate(chunks):
        new = shingles(text)
        old = {k: shingles(chunks[k]) for k in kept if new}
        repeated = [
            *(k for k in kept if chunks[k] == text),
            *(k for k in old if len(new & old[k]) / len(new | old[k]) >= 0.8),
            *(k for k in old if new <= old[k]),
        ]
        if repeated:
            duplicates[i] = repeated[0]
        else:
            kept.append(i)
    return duplicates


words = st.sampled_from(["green", "tea", "Tea", "is", "mild,", "rye", "x1", "\t", "--"])
originals = st.lists(st.lists(words, min_size=1, max_size=40), min_size=1, max_size=3)
edits = st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(0, 3))


@st.composite
def repetitive(draw):
    """Draw texts of which many are others with a few words changed, left out or added."""
    found = draw(originals)
    for which, at, how in draw(st.lists(edits, max_size=6)):
        text = list(found[which % len(found)])
        place = at % (len(text) + 1)
        if how == 0:
            text[place : place + 1] = ["oolong"]
        elif how == 1:
            text.insert(place, "oolong")
        elif how == 2:
            text = text[place:] or text
        found.append(text)
    return [" ".join(text) for text in found]


@on_both
@given(repetitive())
def test_near_is_what_the_definition_says(name, chunks):
    """Where all fits, duplicates are those of the definition, computed plainly."""
    with using(name):
        packing = pack("", chunks, 10**6, counter="words", ranking="input", dedupe="near")

    assert expected_duplicates(chunks) == {d.index: d.duplicate_of for d in packing.dropped}


near_options = st.fixed_dictionaries(
    {"dedupe": st.just("near")},
    optional={
        "ranking": st.sampled_from(["bm25", "keyword", "recency", "input", "score"]),
        "overflow": st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
        "max_chunks": st.none() | st.integers(0, 6),
        "order": orders,
        "template": templates,
        "notice": notices,
    },
)
near_chunks = st.one_of(
    repetitive(),
    st.lists(odd_texts | texts, min_size=1, max_size=3).map(lambda t: t + [x + "!" for x in t]),
)
FIVE = [TWENTY, f"{TWENTY} more", "tea", "Tea.", f"{TWENTY} a b c d"]


@compared
@given(st.sampled_from(["green tea", "rye", ""]), near_chunks, budgets, counters, near_options)
@example("", FIVE, 30, "words", {"dedupe": "near", "overflow": "stop"})
@example("", FIVE, 12, "o200k_base", {"dedupe": "near", "overflow": "truncate_end"})
@example("", ["aaaa", "AAAA", "bbbb", "BBBB", "bbbb."], 8, Pure("chars", 1), {"dedupe": "near"})
def test_identity(query, chunks, max_tokens, counter, options):
    """Both backends answer alike, for a list and for a corpus, under every option."""
    answers = []
    for name in BACKENDS:
        with using(name):
            answers.append(outcome(pack, query, chunks, max_tokens, counter=counter, **options))
            corpus = Corpus(chunks)
            answers.append(outcome(pack, query, corpus, max_tokens, counter=counter, **options))
    told = [a if isinstance(a, tuple) else (a.to_dict(), a.total_tokens) for a in answers]

    assert [told[0]] * len(told) == told


@on_both
@given(near_chunks, budgets, counters, near_options)
def test_a_duplicate_names_what_is_kept(name, chunks, max_tokens, counter, options):
    """duplicate_of is a kept chunk, and what was kept does not repeat any other by the text."""
    with using(name):
        packing = pack("tea", chunks, max_tokens, counter=counter, **options)

    kept = {kept.index for kept in packing.kept}
    for dropped in packing.dropped:
        assert (dropped.duplicate_of is not None) is (dropped.reason == "duplicate")
        assert dropped.duplicate_of is None or dropped.duplicate_of in kept
    assert len({text_of(chunks[i]) for i in kept}) == len(kept)


@pytest.mark.parametrize("counter", ["o200k_base", "words", len], ids=["o200k", "words", "own"])
@pytest.mark.parametrize("overflow", ["skip", "stop", "truncate_end"])
def test_what_does_not_fit_is_not_compared(backend, counter, overflow):
    """Under skip it is the budget's; where it would be cut or be the end it is a duplicate."""
    room = {"o200k_base": 45, "words": 22}.get(counter, 150)
    chunks = [TWENTY, f"{TWENTY} more", "tea"]
    packer = Packer(room, counter=counter, ranking="input", overflow=overflow, dedupe="near")
    packing = packer.pack("", chunks)

    assert [0, 2] == [kept.index for kept in packing.kept]
    expected = "budget" if overflow == "skip" else "duplicate"
    assert [expected] == [dropped.reason for dropped in packing.dropped]


def test_what_repeats_one_that_left_goes_too(backend):
    """A chunk that nearly repeats one that leaves for a notice goes for the budget as well."""
    chunks = ["Green tea is mild.", "Black tea is strong.", "black tea is strong"]
    packer = Packer(8, counter="words", ranking="input", dedupe="near", notice="{count} left out")
    packing = packer.pack("", chunks)

    assert [0] == [kept.index for kept in packing.kept]
    assert {1: "budget", 2: "budget"} == {d.index: d.reason for d in packing.dropped}
    assert all(d.duplicate_of is None for d in packing.dropped)


def test_a_cut_text_is_repeated_by_its_whole(backend):
    """What nearly repeats the whole text of the cut chunk is a duplicate of it."""
    packer = Packer(
        12, counter="words", ranking="input", dedupe="near", overflow="truncate_end",
        template=Template("{text}", separator=" | "),
    )  # fmt: skip
    packing = packer.pack("", [TWENTY, "tea", TWENTY.upper()])

    assert packing.kept[0].was_cut
    assert {(1, "budget"), (2, "budget")} == {(d.index, d.reason) for d in packing.dropped}


def test_explained(backend):
    """The sentence says that it is near, pickled too."""
    packing = pack("", ["Green tea.", "green tea"], 9, dedupe="near")
    expected = (
        "Chunk 1 (score 0.00) was dropped: its text repeats, or nearly, that of chunk 0, "
        "which is kept."
    )
    assert expected == packing.explain(1) == pickle.loads(pickle.dumps(packing)).explain(1)


def test_batches(backend):
    """pack_batch drops them as pack does, each request by itself."""
    packer = Packer(40, dedupe="near")
    packings = list(packer.pack_batch([("", ["tea", "Tea!"]), ("", ["Tea!", "tea"])]))
    assert [["tea"], ["Tea!"]] == [[kept.text for kept in p.kept] for p in packings]


@compared
@pytest.mark.slow
def test_much_in_common_takes_no_longer(native):
    """Text that all chunks share, and texts with one word changed, are compared quickly."""
    shared = " ".join(f"common{i}" for i in range(60))
    half = [f"{shared} {' '.join(f'own{i}x{k}' for k in range(40))}" for i in range(4_000)]
    start = time.process_time()
    packing = pack("", half, 10**9, counter="words", dedupe="near")
    assert len(half) == len(packing.kept)
    same = [changed(FIFTY, i % 50) + f" {i}" for i in range(4_000)]
    packing = pack("", same, 10**9, counter="words", ranking="input", dedupe="near")
    assert 0 < len(packing.kept) < len(same)
    assert time.process_time() - start < 10


def test_the_best_4096_are_compared_with(backend):
    """A chunk that nearly repeats the 4,096th kept one is dropped, and of the next one kept."""
    chunks = [f"tea {i}" for i in range(4_097)]
    near_last, near_beyond = "TEA 4095", "TEA 4096"
    packer = Packer(10**6, counter="words", ranking="input", dedupe="near")
    packing = packer.pack("", [*chunks, near_last, near_beyond])
    assert [near_last] == [drop.chunk for drop in packing.dropped]
    assert 4095 == packing.dropped[0].duplicate_of
    assert near_beyond == packing.kept[-1].chunk
