"""Cutting where words are counted: no word is cut, no room is left; and at every limit alike."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import MIDDLE_MARKER, WHITESPACE, compared, on_both, using
from test_count import keeps, markers

from budgeteer import Layout, Packer, Section, get_counter

WORDS = [
    "Tea",
    "is",
    "steamed",
    "rolled",
    "and",
    "dried",
    "before",
    "anybody",
    "drinks",
    "a",
    "single",
    "cup",
    "of",
    "it",
]

spaced_texts = st.lists(
    st.sampled_from([*WORDS, "a", "b", "e\u0301", "\u0301", "\u0600", "日本語", "🇷🇸🇮🇴", "\ud800"])
    | st.sampled_from([" ", "  ", "\n", "\r\n", *WHITESPACE]),
    max_size=40,
).map("".join)
ascii_texts = st.text("ab \n\r", max_size=40)
cuts = st.fixed_dictionaries({"keep": keeps, "marker": markers | st.just(" ")})


def best_count(text, limit, places, keep, marker):
    """Return the highest count within the limit of any piece of whole words."""
    n, words = len(text), Counter(text.split())
    best = 0
    for head in places if keep != "end" else [0]:
        for tail in places if keep != "start" else [n]:
            is_piece = head <= tail and (head > 0 or tail < n)
            if not is_piece or text[:head].isspace() or text[tail:].isspace():
                continue
            parts = [text[:head], marker, text[tail:]]
            joined = "".join(parts)
            if joined.split() != [word for part in parts for word in part.split()]:
                continue  # a word runs on
            if Counter(text[:head].split()) + Counter(text[tail:].split()) - words:
                continue  # a word is cut
            if text[:head].split() + text[head:tail].split() + text[tail:].split() != text.split():
                continue
            count = max(1, len(joined.split()))
            if count <= limit:
                best = max(best, count)
    return best


@on_both
@given(text=spaced_texts | ascii_texts, limit=st.integers(0, 12), cut=cuts)
@example(text="a bbb c d eeeeeeee f", limit=5, cut={"keep": "both", "marker": " [...]"})
def test_no_word_is_cut_and_no_room_left(name, text, limit, cut):
    """What stays is whole words and the marker, as many as any such piece could have."""
    keep, marker = cut["keep"], cut["marker"]
    with using(name) as backend:
        counter = get_counter("words")
        result = counter.truncate(text, limit, **cut)
        places = backend.grapheme_boundaries(text)
    if counter.count(text) <= limit:
        assert text == result
        return

    assert not Counter(result.split()) - Counter(text.split()) - Counter(marker.split())
    assert best_count(text, limit, places, keep, marker) == counter.count(result)


@on_both
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=4, max_size=60),
    data=st.data(),
    keep=keeps,
    marker=st.sampled_from([" [...]", MIDDLE_MARKER, "\u2026"]),
)
def test_the_limit_is_reached(name, words, data, keep, marker):
    """The count of what stays is the limit, however short the words that go."""
    limit = data.draw(st.integers(2, len(words) - 1))
    with using(name):
        result = get_counter("words").truncate(" ".join(words), limit, keep=keep, marker=marker)

    assert limit == len(result.split())
    kept = [word for word in result.split() if word != marker.strip()]
    assert limit - 1 == len(kept)
    if keep == "both":
        head, tail = (part.split() for part in result.split(marker.strip()))
        assert words[: len(head)] == head
        assert words[len(words) - len(tail) :] == tail
        assert len(head) - len(tail) in (0, 1)


@compared
@given(text=spaced_texts | ascii_texts, limit=st.integers(0, 12), cut=cuts)
def test_backends_agree(text, limit, cut):
    """Both backends cut at the same place."""
    answers = []
    for name in ("native", "reference"):
        with using(name):
            answers.append(get_counter("words").truncate(text, limit, **cut))

    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("keep", "marker", "expected"),
    [
        ("start", "", "Green tea is"),
        ("start", " [...]", "Green tea [...]"),
        ("start", "...", "Green tea ..."),
        ("end", "... ", "... not oxidised."),
        ("end", "...", "... not oxidised."),
        ("both", "", "Green tea oxidised."),
        ("both", " [...]", "Green [...] oxidised."),
        ("both", "\n[...]\n", "Green\n[...]\noxidised."),
    ],
)
def test_examples(backend, keep, marker, expected):
    """The whitespace at a cut stays only where a word would otherwise run on."""
    text = "Green tea is not oxidised."

    assert expected == get_counter("words").truncate(text, 3, keep=keep, marker=marker)


@pytest.mark.parametrize("template", ["plain", "tagged", "markdown", "xml", "json"])
@pytest.mark.parametrize(
    ("overflow", "marker"), [("truncate_end", "[...]"), ("truncate_middle", "[...truncated...]")]
)
def test_a_packed_chunk(backend, template, overflow, marker):
    """A packer fills its budget with whole words, in every template."""
    text = " ".join(f"{word}{i}" for i in range(20) for word in WORDS)
    for budget in range(24, 60, 5):
        packer = Packer(budget, counter="words", overflow=overflow, template=template)
        packing = packer.pack("tea", [text])

        # What JSON writes around a text joins its words; the sum of the parts is a bound.
        least = budget - 2 if template == "json" else budget
        assert least <= packing.total_tokens <= budget
        shown = packing.kept[0].text.split()
        assert marker in shown
        assert set(shown) - {marker} <= set(text.split())


@on_both
@given(
    numbers=st.lists(st.integers(0, 10**6), min_size=4, max_size=80, unique=True),
    data=st.data(),
    overflow=st.sampled_from(["truncate_end", "truncate_middle"]),
    chunks_in_front=st.integers(0, 2),
)
@example(
    numbers=[*range(10)], data=None, overflow="truncate_middle", chunks_in_front=0
)  # the nine words of the budget are shorter than the marker
def test_a_packed_chunk_fills_the_budget(name, numbers, data, overflow, chunks_in_front):
    """A packer leaves no room beside a chunk of distinct words that it cuts."""
    words = [f"{number:x}" for number in numbers]
    size = len(words) - 1 if data is None else data.draw(st.integers(3, len(words) - 1))
    chunks = [f"chunk {i}" for i in range(chunks_in_front)] + [" ".join(words)]
    budget = 2 * chunks_in_front + size
    with using(name):
        packer = Packer(budget, counter="words", overflow=overflow, ranking="input")
        packing = packer.pack("", chunks)

    assert budget == packing.total_tokens
    shown = [word for word in packing.kept[-1].text.split() if not word.startswith("[...")]
    assert size - 1 == len(shown)
    head = len(shown) if overflow == "truncate_end" else len(shown) - len(shown) // 2
    assert words[:head] + words[len(words) - (len(shown) - head) :] == shown


def test_a_section(backend):
    """A text of a layout is cut between words."""
    section = Section("context", "Green tea is not oxidised.", grow=1)
    layout = Layout(10, [section], counter="words")
    [message] = layout.fit().messages

    assert message["content"] in {"Green tea", "Green tea is", "Green tea is not"}
    assert 10 == layout.fit().total_tokens


CUT = "Tea  is steamed,\n\u4e00\u4e8ce\u0301\u0301 rolled and dried \U0001f1f7\U0001f1f8.\r\n"


@compared
@pytest.mark.parametrize("marker", ["", " [...] ", "x", "\u0301"])
@pytest.mark.parametrize("keep", ["start", "end", "both"])
@pytest.mark.parametrize("text", [CUT, CUT * 9, "e" + "\u0301" * 40, " tea"], ids=range(4))
def test_both_backends_cut_alike_at_every_limit(text, keep, marker):
    """From nothing to all, under estimates, encodings and a counter of one's own."""
    for counter in ("words", "whitespace", "chars_div4", "o200k_base", "qwen3.5", len):
        for limit in range(0, len(text) + 2, 1 + len(text) // 60):
            found = []
            for name in ("native", "reference"):
                with using(name):
                    counting = get_counter(counter)
                    found.append(counting.truncate(text, limit, keep=keep, marker=marker))
            assert found[0] == found[1], (counter, limit)
