"""Packing: one table of cases, answered by both backends as the contract says."""

import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from support import END_MARKER, KNOWN_CLUSTERS, MIDDLE_MARKER, Liar

from budgeteer import BudgeteerError, Chunk, Packer, get_counter, pack
from budgeteer._pack.lazy import Lazy

FAMILY = KNOWN_CLUSTERS[1]
TALL = "a" + "\u0301" * 29
"""One grapheme cluster of 30 code points."""


@dataclass(frozen=True)
class Case:
    """
    A call and its answer; *dropped* holds index and reason in the order decided.

    Where the options name no counter, it is chars_div4.
    """

    name: str
    chunks: Sequence[object]
    max_tokens: int
    kept: list[int]
    text: str
    total_tokens: int
    query: str = ""
    dropped: list[tuple[int, str]] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)


def scored(*scores):
    return [{"text": f"text{i}", "score": score} for i, score in enumerate(scores)]


def modified(*mtimes):
    return [{"text": f"text{i}", "metadata": {"mtime": mtime}} for i, mtime in enumerate(mtimes)]


def joined(*places):
    return "\n\n".join(f"text{i}" for i in places)


A, B, C = "a" * 12, "b" * 40, "c" * 8
BUDGET, CAP, DUPLICATE, EMPTY, SCOPE = "budget", "cap", "duplicate", "empty", "out_of_scope"

CASES = [
    Case("no chunks", [], 5, [], "", 0, query="tea"),
    Case("all fit", ["tea pot", "rye bread"], 10, [0, 1], "tea pot\n\nrye bread", 5),
    Case("max_tokens=0", ["tea"], 0, [], "", 0, dropped=[(0, BUDGET)]),
    Case("max_tokens=10**9", [A, B], 10**9, [0, 1], f"{A}\n\n{B}", 14),
    Case("the separator counts", ["aaaa", "bbbb"], 2, [0], "aaaa", 1, dropped=[(1, BUDGET)]),
    # What does not fit.
    Case("skip", [A, B, C], 6, [0, 2], f"{A}\n\n{C}", 6, dropped=[(1, BUDGET)]),
    Case(
        "stop", [A, B, C], 6, [0], A, 3, dropped=[(1, BUDGET), (2, BUDGET)],
        options={"overflow": "stop"},
    ),
    Case(
        "truncate_end", [A, B, C], 6, [0, 1], f"{A}\n\nbbbb{END_MARKER}", 6,
        dropped=[(2, BUDGET)], options={"overflow": "truncate_end"},
    ),
    Case(
        "truncate_middle", ["0123456789" * 5], 10, [0],
        f"01234567890{MIDDLE_MARKER}0123456789", 10, options={"overflow": "truncate_middle"},
    ),
    Case(
        "only the first that does not fit is cut", [TALL * 3, "b" * 100, "c"], 15, [0, 2],
        f"{TALL}{END_MARKER}\n\nc", 10, dropped=[(1, BUDGET)],
        options={"overflow": "truncate_end"},
    ),
    Case(
        "a family stays whole", [FAMILY * 10], 6, [0], FAMILY * 2 + END_MARKER, 5,
        options={"overflow": "truncate_end"},
    ),
    Case(
        "not one grapheme fits", [TALL * 2], 5, [], "", 0, dropped=[(0, BUDGET)],
        options={"overflow": "truncate_end"},
    ),
    Case(
        "a cut is never longer", ["1234567"], 1, [], "", 0, dropped=[(0, BUDGET)],
        options={"overflow": "truncate_end"},
    ),
    Case(
        "a cut by words may be longer", ["a b c"], 2, [0], f"a{END_MARKER}", 2,
        options={"overflow": "truncate_end", "counter": "words"},
    ),
    Case(
        "a cut by words ends behind a word", ["one two  three\tfour five"], 3, [0],
        f"one two{END_MARKER}", 3, options={"overflow": "truncate_end", "counter": "words"},
    ),
    Case(
        "a cut by a callable", ["x" * 20], 10, [0], f"xxxx{END_MARKER}", 10,
        options={"overflow": "truncate_end", "counter": len},
    ),
    Case(
        "a cut in the middle by a callable", ["0123456789" * 5], 30, [0],
        f"012345{MIDDLE_MARKER}56789", 30,
        options={"overflow": "truncate_middle", "counter": len},
    ),
    # The budget.
    Case(
        "reserve", [A, B, C], 10, [0, 2], f"{A}\n\n{C}", 6, dropped=[(1, BUDGET)],
        options={"reserve_tokens": 4},
    ),
    Case(
        "reserve takes all", ["tea"], 5, [], "", 0, dropped=[(0, BUDGET)],
        options={"reserve_tokens": 9},
    ),
    # What is not considered.
    Case("empty", ["", "tea"], 5, [1], "tea", 1, dropped=[(0, EMPTY)]),
    Case("whitespace is text", ["   "], 5, [0], "   ", 1),
    Case("cap", ["a", "b"], 9, [0], "a", 1, dropped=[(1, CAP)], options={"max_chunks": 1}),
    Case("cap of 0", ["a"], 9, [], "", 0, dropped=[(0, CAP)], options={"max_chunks": 0}),
    Case(
        "duplicate", ["tea", "tea", "tea pot"], 9, [0, 2], "tea\n\ntea pot", 3,
        dropped=[(1, DUPLICATE)],
    ),
    Case(
        "dedupe=None", ["tea", "tea", "tea pot"], 9, [0, 1, 2], "tea\n\ntea\n\ntea pot", 5,
        options={"dedupe": None},
    ),
    Case(
        "equal to a dropped text is no duplicate", [B, B], 2, [], "", 0,
        dropped=[(0, BUDGET), (1, BUDGET)],
    ),
    Case(
        "min_score keeps what reaches it", ["green", "rye", "tea"], 9, [0, 2], "green\n\ntea", 3,
        query="green tea", dropped=[(1, SCOPE)], options={"min_score": 0.5},
    ),
    Case(
        "min_score under ranking input", ["rye", "tea"], 9, [1], "tea", 1, query="tea",
        dropped=[(0, SCOPE)], options={"min_score": 1, "ranking": "input"},
    ),
    Case("zero scores are packed", ["rye"], 9, [0], "rye", 1, query="tea"),
    # Ranking.
    Case(
        "keyword", ["Coffee.", "Green tea.", "tea"], 9, [1, 2, 0], "Green tea.\n\ntea\n\nCoffee.",
        6, query="green tea",
    ),
    Case(
        "a title counts for keywords", ["Tea", {"text": "Rye.", "title": "Green tea"}], 9, [1, 0],
        "Rye.\n\nTea", 3, query="green tea",
    ),
    Case("ties keep the input order", ["text0", "text1", "text2"], 9, [0, 1, 2], joined(0, 1, 2),
         5, query="tea"),
    Case(
        "recency", [*modified(1, 3.5, True, 2), "text4"], 9, [1, 3, 0, 2, 4],
        joined(1, 3, 0, 2, 4), 9, options={"ranking": "recency"},
    ),
    Case(
        "recency takes other types and none as 0", [*modified("9", None, -1, 1), "text4"], 9,
        [3, 0, 1, 4, 2], joined(3, 0, 1, 4, 2), 9, options={"ranking": "recency"},
    ),
    Case(
        "input", ["rye", "tea"], 9, [0, 1], "rye\n\ntea", 2, query="tea",
        options={"ranking": "input"},
    ),
    Case(
        "score", scored(0.5, None, 2, -1), 9, [2, 0, 3, 1], joined(2, 0, 3, 1), 7,
        options={"ranking": "score"},
    ),
    Case(
        "-0.0 counts as 0.0", scored(-0.0, 0.0, -0.0, 0), 9, [0, 1, 2, 3], joined(0, 1, 2, 3), 7,
        options={"ranking": "score"},
    ),
    Case(
        "infinite scores", scored(float("-inf"), 1, float("inf")), 9, [2, 1, 0],
        joined(2, 1, 0), 5, options={"ranking": "score"},
    ),
    Case(
        "no score is below every min_score", scored(None, -5), 9, [1], "text1", 2,
        dropped=[(0, SCOPE)], options={"ranking": "score", "min_score": -9},
    ),
    # Order and template.
    Case(
        "order=input", ["rye", "tea"], 9, [0, 1], "rye\n\ntea", 2, query="tea",
        options={"order": "input"},
    ),
    Case("order=rank", ["rye", "tea"], 9, [1, 0], "tea\n\nrye", 2, query="tea"),
    Case(
        "order=input still chooses by rank", ["rye bread", "tea"], 1, [1], "tea", 1, query="tea",
        dropped=[(0, BUDGET)], options={"order": "input"},
    ),
    Case(
        "tagged by default", ["Green tea.", "Rye."], 11, [0, 1],
        "[document:0] Green tea.\n[document:1] Rye.", 11, options={"template": "tagged"},
    ),
    Case(
        "tagged with kind and id",
        [{"text": "Green tea.", "id": "t1", "metadata": {"kind": "note"}}], 9, [0],
        "[note:t1] Green tea.", 5, options={"template": "tagged"},
    ),
    Case(
        "the label counts", ["aaaa"], 3, [], "", 0, dropped=[(0, BUDGET)],
        options={"template": "tagged"},
    ),
    # Counters.
    Case(
        "words", ["a b c", "d e", "f"], 4, [0, 2], "a b c\n\nf", 4, dropped=[(1, BUDGET)],
        options={"counter": "words"},
    ),
    Case(
        "whitespace", ["a b c", "d e", "\u3000"], 4, [0, 2], "a b c\n\n\u3000", 3,
        dropped=[(1, BUDGET)], options={"counter": "whitespace"},
    ),
    Case(
        "chars_per_token", ["abcde", "f", "g"], 3, [0], "abcde", 2,
        dropped=[(1, BUDGET), (2, BUDGET)], options={"counter": "chars_per_token:2.5"},
    ),
    Case("callable", ["abc", "de"], 7, [0, 1], "abc\n\nde", 7, options={"counter": len}),
    Case(
        "callable, over once assembled", ["abc", "de"], 6, [0], "abc", 3, dropped=[(1, BUDGET)],
        options={"counter": len},
    ),
    # Encodings: what is joined is counted as it is joined.
    *(
        Case(
            counter, ["Green tea.", "Rye bread.", "Coffee."], 8, [0, 1],
            "Green tea.\n\nRye bread.", 7, dropped=[(2, BUDGET)], options={"counter": counter},
        )
        for counter in ("o200k_base", "cl100k_base", "gpt-4o", "gpt-4", "tiktoken:o200k_base")
    ),
    Case(
        "a separator that costs nothing", ["Green tea.", "Rye bread."], 7, [0, 1],
        "Green tea.\n\nRye bread.", 7, options={"counter": "o200k_base"},
    ),
    Case(
        "blank lines that become one token", ["tea\n", "\nrye", "\n\nbread"], 8, [0, 1, 2],
        "tea\n\n\n\nrye\n\n\n\nbread", 6, options={"counter": "o200k_base"},
    ),
    Case(
        "a special token is text", ["<|endoftext|>"], 7, [0], "<|endoftext|>", 7,
        options={"counter": "o200k_base"},
    ),
    Case(
        "a cut by tokens", ["Green tea is mild, and black tea is strong."], 7, [0],
        f"Green tea is mild, and{END_MARKER}", 7,
        options={"counter": "o200k_base", "overflow": "truncate_end"},
    ),
    Case(
        "a cut in the middle by tokens", ["Green tea is mild, and black tea is strong. " * 3], 16,
        [0], f"Green tea is mild,{MIDDLE_MARKER} is strong. ", 15,
        options={"counter": "o200k_base", "overflow": "truncate_middle"},
    ),
    Case(
        "tagged under an encoding", ["Green tea.", "Rye."], 15, [0, 1],
        "[document:0] Green tea.\n[document:1] Rye.", 15,
        options={"counter": "o200k_base", "template": "tagged"},
    ),
    Case(
        "the label counts under an encoding", ["tea"], 5, [], "", 0, dropped=[(0, BUDGET)],
        options={"counter": "o200k_base", "template": "tagged"},
    ),
    Case("chunks that count nothing", ["a", "b"], 0, [0, 1], "a\n\nb", 0,
         options={"counter": lambda _: 0}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(backend, case):
    """Each backend answers each case of the table."""
    options = {"counter": "chars_div4", **case.options}
    packing = pack(case.query, case.chunks, case.max_tokens, **options)

    assert case.text == packing.text
    assert case.kept == [kept.index for kept in packing.kept]
    assert case.dropped == [(dropped.index, dropped.reason) for dropped in packing.dropped]
    assert case.total_tokens == packing.total_tokens
    assert len(case.dropped) == packing.dropped_count


class Pair(NamedTuple):
    """An object with .text."""

    text: str
    title: str = ""


@dataclass
class Document:
    """An object with .page_content, and metadata."""

    page_content: str
    metadata: dict


class Node:
    """An object with .content, which it computes."""

    def __init__(self, content):
        self._content = content

    @property
    def content(self):
        return self._content


class Slotted:
    """An object with slots, with .text before .content."""

    __slots__ = ("content", "text")

    def __init__(self, text, content):
        self.text, self.content = text, content


class FrozenMapping(Mapping):
    """A mapping that is no dict."""

    def __init__(self, **items):
        self._items = items

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)


OF_EVERY_TYPE = [
    "tea",
    Liar("tea"),
    Chunk("tea"),
    {"text": "tea"},
    {"content": "tea"},
    {"content": "not this", "text": "tea"},
    FrozenMapping(content="tea"),
    Pair("tea"),
    Document("tea", {}),
    Node("tea"),
    Slotted("tea", "not this"),
]


@pytest.mark.parametrize("chunk", OF_EVERY_TYPE, ids=lambda chunk: type(chunk).__name__)
@pytest.mark.parametrize("counter", ["chars_div4", "words", len])
def test_chunk_type(backend, chunk, counter):
    """A chunk of any type is packed by its text, and handed back as the caller's own object."""
    packing = pack("tea", ["rye", chunk], 8, counter=counter, ranking="keyword")

    assert "tea\n\nrye" == packing.text
    assert chunk is packing.kept[0].chunk
    assert "tea" == packing.kept[0].text
    assert str is type(packing.kept[0].text)
    assert 1.0 == packing.kept[0].score


def test_query_of_a_str_subclass(backend):
    """A query counts by its characters, whatever its methods say."""
    assert "tea\n\nloud" == pack(Liar("tea"), ["loud", "tea"], 9).text


def test_mixed_types(backend):
    """Chunks of all types may be mixed."""
    packing = pack("", OF_EVERY_TYPE, 99, dedupe=None)

    assert "\n\n".join(["tea"] * len(OF_EVERY_TYPE)) == packing.text


def test_dropped_text_of_every_type(backend):
    """What dropped chunks count is counted on the texts that packing looked at."""
    packing = pack("", OF_EVERY_TYPE, 0)

    assert len(OF_EVERY_TYPE) == packing.dropped_total_tokens


class Late:
    """An object whose instances differ in what they have."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


def test_attribute_is_decided_once_per_type(backend):
    """The attribute found on a type's first object is taken on all of them, everywhere."""
    chunks = [Late(content="a"), Late(content="bb", text="c" * 400)]

    assert "a\n\nbb" == pack("", chunks, 9).text
    assert 2 == pack("", chunks, 0).dropped_total_tokens


def test_kept_chunk(backend):
    """A kept chunk carries its figures; the span leaves out label and separator."""
    chunks = [Chunk("Rye bread.", id="r"), {"text": "Green tea.", "title": "Tea"}]
    packing = pack("tea", chunks, 20, ranking="keyword", template="tagged")
    kept = packing.kept[0]

    assert "[document:1] Green tea.\n[document:r] Rye bread." == packing.text
    assert (1, "Green tea.", 1.0, 3, 0, (13, 23), False) == (
        kept.index,
        kept.text,
        kept.score,
        kept.token_count,
        kept.citation_tokens,
        kept.span,
        kept.was_cut,
    )
    assert (37, 47) == packing.kept[1].span


def test_dropped_chunk(backend):
    """A dropped chunk carries what it needed and what was left."""
    packing = pack("", ["a" * 12, "b" * 40, "a" * 12], 6, counter="chars_div4")
    budget, duplicate = packing.dropped

    assert (1, "budget", 11, 3, None) == (
        budget.index,
        budget.reason,
        budget.needed_tokens,
        budget.available_tokens,
        budget.duplicate_of,
    )
    assert (2, "duplicate", 0) == (duplicate.index, duplicate.reason, duplicate.duplicate_of)


@pytest.mark.parametrize("counter", ["o200k_base", "cl100k_base"])
def test_needed_is_a_bound_under_an_encoding(backend, counter):
    """What an encoding did not count to its end needs more than was left, and explain says so."""
    packing = pack("", ["tea", "rye bread " * 50, "tea"], 5, counter=counter)
    dropped = packing.dropped[0]

    assert (1, "budget", 5, 4) == (
        dropped.index,
        dropped.reason,
        dropped.needed_tokens,
        dropped.available_tokens,
    )
    expected = "it needs at least 5 tokens, and 4 of 5 were left."
    for one in (packing, pickle.loads(pickle.dumps(packing))):
        assert f"Chunk 1 (score 0.00) was dropped: {expected}" == one.explain(1)
    for other in (len, "chars_div4", f"tiktoken:{counter}"):
        assert "at least" not in pack("", ["tea", "rye" * 50], 5, counter=other).explain(1)


@pytest.mark.parametrize("order", ["rank", "input"])
def test_no_separator_is_counted_behind_the_last(backend, order):
    """Under either order chunks fit that fill the budget just so."""
    for texts in (["tea"], ["Green tea", "rye"], ["rye", "Green tea", "x"]):
        whole = get_counter("o200k_base").count("\n\n".join(texts))
        packing = pack("Green", texts, whole, order=order)

        assert (whole, len(texts)) == (packing.total_tokens, len(packing.kept))


def test_a_chunk_that_cannot_fit_is_not_asked_for_its_label(backend):
    """A label is asked for when the text alone would fit, on either backend."""

    class Shy:
        def __init__(self, text):
            self.text = text

        @property
        def id(self):
            raise KeyError("mine")

    for text in ("tea " * 1000, "東京" * 50):
        packing = pack("", ["rye", Shy(text)], 10, template="tagged", counter="o200k_base")
        assert [1] == [dropped.index for dropped in packing.dropped]
    with pytest.raises(KeyError, match="mine"):
        pack("", ["rye", Shy("tea")], 50, template="tagged", counter="o200k_base")


def test_was_truncated(backend):
    """A packing says whether anything was dropped or cut."""
    assert not pack("", ["tea"], 1).was_truncated
    assert pack("", ["tea", ""], 1).was_truncated
    assert pack("", ["t" * 90], 9, overflow="truncate_end").was_truncated


def test_no_chunks_no_truncation(backend):
    """Without chunks nothing was truncated, whatever the budget."""
    assert not pack("tea", [], 0).was_truncated


def test_a_duplicate_of_what_left_is_none(backend):
    """What is a duplicate is a duplicate of a chunk that is in the text."""
    packing = pack("", ["aaaa", "bbbb", "bbbb"], 8, counter=len)

    assert [0] == [kept.index for kept in packing.kept]
    assert [] == [dropped.index for dropped in packing.dropped if dropped.reason == "duplicate"]


def test_explained_cap(backend):
    """The sentence about the cap names the cap, also when the assembled text was over."""
    packing = pack("", ["aaaa", "bbbb", "cccc"], 8, counter=len, max_chunks=2)

    assert "max_chunks was reached with 2 chunks kept" in packing.explain(2)


def test_explaining_each_of_many_chunks_takes_linear_time(backend):
    """A chunk is not searched for among all others."""
    chunks = [f"tea {i}" for i in range(40_000)]
    packing = pack("tea", chunks, 20_000, counter="words", ranking="input", max_chunks=9_000)
    start = time.process_time()
    said = [packing.explain(i) for i in range(len(chunks))]

    assert time.process_time() - start < 8  # half a second; a minute where each is searched for
    assert 9_000 == sum("was kept" in one for one in said)
    assert 31_000 == sum("max_chunks was reached" in one for one in said)


def test_zero_token_chunk_that_left_is_not_called_stopped(backend):
    """A chunk that left the assembled text was not reached too late; explain() says so."""
    packing = pack("", ["a", "b"], 10, counter=lambda text: 100 * ("\n" in text))

    assert [0] == [kept.index for kept in packing.kept]
    assert "stopped" not in packing.explain(1)


def test_max_tokens_of_a_call(backend):
    """max_tokens of a call replaces the packer's; the reserve still comes off."""
    packing = Packer(100, reserve_tokens=2).pack("", ["aaaa", "bbbb"], max_tokens=3)

    assert ("aaaa", 1) == (packing.text, packing.budget_tokens)


def test_pack_batch(backend):
    """pack_batch answers each request in order, as pack does."""
    packer = Packer(5)
    requests = [("tea", ["rye", "tea"]), {"query": "", "chunks": ["rye"], "max_tokens": 0}]

    assert ["tea\n\nrye", ""] == [packing.text for packing in packer.pack_batch(requests)]


def test_pickled_dropped_total_tokens(backend):
    """A pickled packing knows dropped_total_tokens if it was read before, else it says so."""
    packing = pack("", ["tea", "rye bread"], 1)
    with pytest.raises(BudgeteerError, match="dropped_total_tokens was not read"):
        _ = pickle.loads(pickle.dumps(packing)).dropped_total_tokens

    assert 3 == packing.dropped_total_tokens
    assert 3 == pickle.loads(pickle.dumps(packing)).dropped_total_tokens


def test_is_exact(backend):
    """A packing says when its counts are estimates."""
    for counter in ("chars_div4", "chars_per_token:1", "words", "whitespace"):
        assert not pack("", ["tea"], 1, counter=counter).is_exact
    for counter in ("o200k_base", "cl100k_base", "gpt-4o", "tiktoken:cl100k_base"):
        assert pack("", ["tea"], 3, counter=counter).is_exact
    assert pack("", ["tea"], 1).is_exact

    def bytes_of(text):
        return len(text.encode())

    assert not pack("", ["tea"], 3, counter=bytes_of).is_exact
    bytes_of.is_exact = True
    assert pack("", ["tea"], 3, counter=bytes_of).is_exact


def test_span_of_a_cut(backend):
    """The span of a cut chunk covers its text with the marker."""
    chunks = ["a" * 8, "b" * 90]
    kept = pack("", chunks, 8, overflow="truncate_end", counter="chars_div4").kept[1]

    assert (10, 32, True) == (*kept.span, kept.was_cut)
    assert kept.text.endswith(END_MARKER)


def test_shown_in_a_session(backend):
    """Whatever is packed, a session shows a line of it, and a few chunks and their number."""
    chunks = [f"{i} " + "tea " * (200 if i % 2 else 1) for i in range(10_000)]
    packing = pack("tea", chunks, 100)

    assert 0 < len(repr(packing)) < 100
    assert "\n" not in repr(packing)
    for shown in (packing.kept, packing.dropped):
        assert len(repr(shown)) < 1_000
        assert repr(shown).endswith(f", ... {len(shown)} in all]")
    assert repr(list(packing.kept[:3]))[1:-1] in repr(packing.kept)
    assert "[]" == repr(pack("", [], 1).kept)
    assert repr([packing.kept[0]]) == repr(pack("tea", chunks[:1], 100).kept).replace(
        repr(pack("tea", chunks[:1], 100).kept[0].score), repr(packing.kept[0].score)
    )


def test_a_slice_is_made_at_once():
    """Making each item of it by a call of its own took eight times as long."""
    made = []

    def make(start, stop):
        made.append((start, stop))
        return [*range(start, stop)]

    items = Lazy(9, make)
    for part in (slice(2, 6), slice(-3, None), slice(None), slice(5, 2), slice(1, 8, 3)):
        assert items[part] == [*range(9)][part]
    assert made == [(2, 6), (6, 9), (0, 9), (1, 2), (4, 5), (7, 8)]
