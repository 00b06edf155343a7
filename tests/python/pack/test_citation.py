"""Citations: what seed 000 fixes, on both backends."""

import copy
import datetime as dt
import json
import math
import pickle
import threading
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from uuid import UUID

import numpy as np
import pytest
from support import Liar, Pure, Recorder, options_of

from budgeteer import (
    BudgeteerError,
    Chunk,
    CounterError,
    InvalidArgumentError,
    Packer,
    get_counter,
    pack,
    presets,
)
from budgeteer._codes import CITE, NO_POLICY
from budgeteer.presets import (
    Citation,
    agentic_rag,
    citations,
    estimate_citation_tokens,
    retrieval_service,
    sources_footer,
)

SENTENCE = "Retrieval brings chunks, and chunks bring tokens that somebody pays for. "


def ranked(count, chars=(200, 400, 1_200)):
    """Return *count* chunks, the best first, of sizes that take turns."""
    return [
        Chunk(
            (SENTENCE * 40)[: chars[i % len(chars)]],
            id=f"https://docs.example/{i}",
            source=f"provider-{i % 3}",
            score=1 - i / count,
            metadata={"page": i, "hops": ["graph", "vector"]},
        )
        for i in range(count)
    ]


def envelope_tokens(chunk):
    """Return what the document's envelope costs, by its formula."""
    extras = ""
    if chunk.metadata:
        extras = json.dumps(
            chunk.metadata, ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
    return math.ceil((len(chunk.source) + len(chunk.id or "") + len(extras) + 3) / 4)


def greedy(chunks, budget):
    """Return what step 3 of the document's flow keeps."""
    order = sorted(range(len(chunks)), key=lambda i: -chunks[i].score)
    used, kept = 0, []
    for i in order:
        needed = math.ceil(len(chunks[i].text) / 4) + envelope_tokens(chunks[i])
        if used + needed <= budget:
            used += needed
            kept.append(i)
    return kept


def test_constants_of_the_document():
    """The three constants are public, and the defaults."""
    assert 8_000 == presets.DEFAULT_TOKEN_BUDGET
    assert 4 == presets.APPROX_CHARS_PER_TOKEN
    assert 64 == presets.DEFAULT_CITATION_SAFETY_BUFFER_TOKENS
    assert agentic_rag() == agentic_rag(8_000, buffer_tokens=64, counter="chars_div4")


def test_every_option_is_fixed():
    """The presets say each option of Packer, so that changed defaults change none."""
    fixed = {"min_score": None, "max_chunks": None, "dedupe": None, "order": "rank"}
    fixed |= {"selection": "rank", "units": "chunk", "max_tokens": 9}
    citing = agentic_rag(9, buffer_tokens=4, counter="words")
    assert {
        **fixed,
        "reserve_tokens": 4,
        "counter": "words",
        "ranking": "score",
        "overflow": "skip",
        "template": "plain",
        "notice": "Chunks left out: {count}.",
    } == options_of(citing)
    assert (CITE, 0) == citing._policy
    assert {
        **fixed,
        "reserve_tokens": 0,
        "counter": "o200k_base",
        "ranking": "score",
        "overflow": "stop",
        "template": "plain",
        "notice": None,
    } == options_of(retrieval_service(9))
    assert (NO_POLICY, 0) == retrieval_service(9)._policy


@pytest.mark.parametrize("budget", [300, 1_000, 8_000])
@pytest.mark.parametrize("count", [5, 500], ids=["small", "large"])
def test_budget_is_respected(backend, count, budget):
    """Small and large inputs: admitted tokens, citations and buffer stay within the budget."""
    packing = agentic_rag(budget).pack("", ranked(count))

    admitted = sum(kept.token_count for kept in packing.kept)
    envelope = sum(kept.citation_tokens for kept in packing.kept)
    assert admitted + 64 + envelope <= budget
    assert packing.total_tokens <= budget - 64
    assert estimate_citation_tokens([kept.chunk for kept in packing.kept]) == envelope


@pytest.mark.parametrize("count", [5, 500], ids=["small", "large"])
def test_admission_is_the_documents_greedy_fill(backend, count):
    """Highest rank first, what does not fit is skipped, and the same order gives the same."""
    chunks = ranked(count)
    for budget in (64, 100, 400, 2_000, 8_000):
        packing = agentic_rag(budget).pack("", chunks)
        assert greedy(chunks, budget - 64) == [kept.index for kept in packing.kept]
        assert packing.to_dict() == agentic_rag(budget).pack("", chunks).to_dict()


@pytest.mark.parametrize("count", [5, 500], ids=["small", "large"])
def test_dropped_chunks_are_reported(backend, count):
    """dropped_count and dropped_total_tokens are exact."""
    chunks = ranked(count)
    packing = agentic_rag(500).pack("", chunks)

    kept = {kept.index for kept in packing.kept}
    dropped = [chunk for i, chunk in enumerate(chunks) if i not in kept]
    assert len(dropped) == packing.dropped_count > 0
    assert sum(math.ceil(len(c.text) / 4) for c in dropped) == packing.dropped_total_tokens
    assert all(dropped.needed_tokens > dropped.available_tokens for dropped in packing.dropped)


def test_scores_are_preserved(backend):
    """The rerank score is on every chunk; those without one come last, in input order."""
    chunks = [Chunk("a", score=0.5), Chunk("b"), Chunk("c", score=0.75), Chunk("d")]
    packing = agentic_rag(100).pack("", chunks)

    assert ["c", "a", "b", "d"] == [kept.text for kept in packing.kept]
    assert [0.75, 0.5, None, None] == [kept.score for kept in packing.kept]


def test_citations_stay_whole(backend):
    """A chunk whose citation does not fit is dropped whole, and a smaller one still enters."""
    heavy = Chunk("x" * 40, id="heavy", source="s" * 100, score=1)
    light = Chunk("y" * 40, id="light", source="s", score=0)
    packing = agentic_rag(84, counter="chars_div4").pack("", [heavy, light])

    assert [light] == [kept.chunk for kept in packing.kept]
    (dropped,) = packing.dropped
    assert ("budget", 10 + 27, 20) == (
        dropped.reason,
        dropped.needed_tokens,
        dropped.available_tokens,
    )
    assert (
        "Chunk 0 (score 1.00) was dropped: with its citation it needs at least 37 tokens, and "
        "20 of 20 were left."
    ) == packing.explain(0)
    assert (
        "Chunk 1 (score 0.00) was kept with 10 tokens and 3 for its citation, characters 0 to 40 "
        "of the text."
    ) == packing.explain(1)


def test_budget_of_a_call_loses_the_buffer_too(backend):
    """max_tokens may be had for a call, and the buffer comes off it."""
    packer = agentic_rag(8_000)
    packing = packer.pack("", ranked(500), max_tokens=1_000)

    assert 1_000 - 64 == packing.budget_tokens
    assert packing.to_dict() == agentic_rag(1_000).pack("", ranked(500)).to_dict()
    assert "" == packer.pack("", ranked(5), max_tokens=64).text
    assert "" == packer.pack("", ranked(5), max_tokens=0).text


@pytest.mark.parametrize("counter", ["o200k_base", "qwen3.5", "claude4.8"])
def test_counter_is_replaceable(backend, counter):
    """Texts and citations are counted by the packer's counter."""
    chunks = ranked(50)
    packing = agentic_rag(2_000, counter=counter).pack("", chunks)

    count = get_counter(counter).count
    for kept in packing.kept:
        assert count(kept.text) == kept.token_count
        assert estimate_citation_tokens([kept.chunk], counter=counter) == kept.citation_tokens
    assert count(packing.text) == packing.total_tokens
    assert packing.kept


def test_nothing_is_cut():
    """A cited chunk is whole, so a copy that would cut is refused."""
    for overflow in ("truncate_end", "truncate_middle"):
        with pytest.raises(InvalidArgumentError) as caught:
            replace(agentic_rag(100), overflow=overflow)
        assert str(caught.value) == (
            "overflow must be 'skip' or 'stop' in an agentic_rag, whose chunks enter whole, not "
            f"{overflow!r}: a Packer takes it"
        )


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (Chunk("text"), 1),
        ("text", 1),
        (Chunk("text", source="1234", id="56789"), 3),
        (Chunk("text", source="1234", id="56789", metadata={}), 3),
        (Chunk("text", source="1234", id="5678", metadata={"b": 1, "a": "é"}), 7),
        ({"text": "text", "source": "1234", "id": 56789}, 3),
        ({"content": "text", "source": None, "id": None, "metadata": None}, 1),
        (SimpleNamespace(page_content="text", metadata={"source": "x"}), 5),
        (Chunk("text", source=Liar("1234"), id=Liar("56789")), 3),
    ],
)
def test_envelope(backend, chunk, expected):
    """ceil((source + id + JSON + separator) / 4), nothing for empty metadata, for any chunk."""
    assert expected == estimate_citation_tokens([chunk])
    assert 3 * expected == estimate_citation_tokens(iter([chunk] * 3))
    assert expected == agentic_rag().pack("", [chunk]).kept[0].citation_tokens


def test_envelope_of_nothing(backend):
    """No chunks cost nothing."""
    assert 0 == estimate_citation_tokens([])


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"at": dt.date(2026, 5, 6)}, '{"at":"2026-05-06"}'),
        (
            {"at": dt.datetime(2026, 5, 6, 7, 8, tzinfo=dt.timezone.utc)},
            '{"at":"2026-05-06T07:08:00+00:00"}',
        ),
        ({"at": dt.time(7, 8)}, '{"at":"07:08:00"}'),
        (
            {"n": np.int64(3), "x": np.float32(0.5), "y": np.float64(0.25)},
            '{"n":3,"x":0.5,"y":0.25}',
        ),
        ({"b": np.bool_(True), "s": np.str_("é")}, '{"b":true,"s":"é"}'),
        ({"at": np.datetime64("2026-05-06")}, '{"at":"2026-05-06"}'),
        (MappingProxyType({"a": MappingProxyType({"b": (1, None)})}), '{"a":{"b":[1,null]}}'),
        ({3: "x", 1: True}, '{"1":true,"3":"x"}'),
        ({"a": "\ud800"}, '{"a":"\ud800"}'),
    ],
)
def test_metadata_that_is_rendered(backend, metadata, shown):
    """Dates, times, numpy's scalars and mappings of any kind have a defined rendering."""
    chunk = Chunk("text", metadata=metadata)

    assert math.ceil((len(shown) + 3) / 4) == estimate_citation_tokens([chunk])
    asked = []
    agentic_rag(9_000, counter=Recorder(Pure("chars", 1), asked)).pack("", [chunk])
    assert f" {shown}; " == asked[1]


CHUNK = (
    "a str, a mapping with 'text', 'content' or 'page_content', or an object with .text, "
    ".page_content or .content"
)


def cycle():
    """Return a list that contains itself."""
    items = []
    items.append(items)
    return items


def deep():
    """Return a list that is nested more deeply than Python recurses."""
    items = []
    for _ in range(100_000):
        items = [items]
    return items


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: {"a": math.nan}, "a number beyond what JSON can hold"),
        (lambda: {"a": [math.inf]}, "a number beyond what JSON can hold"),
        (lambda: {"a": np.float32("nan")}, "a number beyond what JSON can hold"),
        (lambda: {"a": 10**5_000}, "a number beyond what JSON can hold"),
        (lambda: {"a": b"secret"}, "bytes"),
        (lambda: {"a": {"secret"}}, "set"),
        (lambda: {"a": object()}, "object"),
        (lambda: {"a": np.array([1])}, "ndarray"),
        (lambda: {"a": np.longdouble(1)}, "longdouble"),
        (lambda: {"a": np.bytes_(b"x")}, "bytes"),
        (lambda: {"a": 1j}, "complex"),
        (lambda: {"a": cycle()}, "a cycle"),
        (lambda: {"a": deep()}, "what is nested too deeply"),
        (lambda: {("a", "b"): 1}, "keys that JSON cannot hold or that cannot be sorted"),
        (lambda: {"a": 1, 2: 3}, "keys that JSON cannot hold or that cannot be sorted"),
    ],
)
def test_metadata_that_json_cannot_hold(backend, make, found):
    """An error names the chunk and the type, never the content, wherever it is noticed."""
    chunks = [Chunk("fine"), Chunk("text", metadata=make())]
    expected = f"chunks[1].metadata must be what JSON can hold, not {found}"

    with pytest.raises(InvalidArgumentError) as error:
        estimate_citation_tokens(chunks)
    assert expected == str(error.value)
    for counter in ("chars_div4", "o200k_base", len):
        with pytest.raises(InvalidArgumentError) as error:
            agentic_rag(counter=counter).pack("", chunks)
        assert expected == str(error.value)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ("text", "chunks must be a sequence, not str: put it into a list"),
        (None, "chunks must be a sequence, not None"),
        ([Chunk("x"), 3], f"chunks[1] must be {CHUNK}, not int"),
        ([{"text": "x", "source": 3}], "chunks[0].source must be a str, not int"),
        ([{"text": "x", "id": 3.5}], "chunks[0].id must be a str, an int or a UUID, not float"),
        ([{"text": "x", "id": True}], "chunks[0].id must be a str, an int or a UUID, not bool"),
        ([{"text": "x", "metadata": [1]}], "chunks[0].metadata must be a mapping, not list"),
    ],
)  # fmt: skip
def test_bad_chunks(backend, chunks, message):
    """What cannot be cited is an error that names the argument."""
    for function in (estimate_citation_tokens, lambda chunks: agentic_rag().pack("", chunks)):
        with pytest.raises(InvalidArgumentError) as error:
            function(chunks)
        assert message == str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agentic_rag(-1), "max_tokens must be from 0 to 9223372036854775807, not -1"),
        (lambda: agentic_rag("8000"), "max_tokens must be an int, not str"),
        (
            lambda: agentic_rag(buffer_tokens=-1),
            "buffer_tokens must be from 0 to 9223372036854775807, not -1",
        ),
        (lambda: agentic_rag(buffer_tokens=None), "buffer_tokens must be an int, not None"),
        (
            lambda: agentic_rag(counter=3),
            "counter must be a name or a callable that takes a str, not int",
        ),
        (
            lambda: estimate_citation_tokens([], counter=None),
            "counter must be a name or a callable that takes a str, not None",
        ),
        (lambda: retrieval_service(None), "max_tokens must be an int, not None"),
        (lambda: citations([]), "packing must be a Packing, not list"),
        (lambda: sources_footer(None), "packing must be a Packing, not None"),
    ],
)
def test_bad_arguments(call, message):
    """A bad argument is an error that names it."""
    with pytest.raises(InvalidArgumentError) as error:
        call()
    assert message == str(error.value)


def test_counters_that_answer_no_count(backend):
    """A callable that counts a citation wrongly is an error that names the chunk."""

    def broken(text):
        return -1 if "; " in text else 1

    message = r"the counter must answer an int from 0 on for chunks\[1\], not -1"
    with pytest.raises(
        CounterError, match=message.replace("[1]", "[0]").replace(r"\[1\]", r"\[0\]")
    ):
        agentic_rag(counter=broken).pack("", [Chunk("x", source="s")])
    with pytest.raises(CounterError, match=message):
        estimate_citation_tokens(
            ["a", Chunk("x", source="s")], counter=lambda text: -1 if "s" in text else 1
        )


def test_a_callable_is_asked_once_more_for_what_fits(backend):
    """A text is counted once, its citation where the text fits, and the whole at the end."""
    asked = []
    counter = Recorder(Pure("chars", 1), asked)
    packer = agentic_rag(10, buffer_tokens=0, counter=counter, notice=None)
    packing = packer.pack("", [Chunk("tea", id="1"), Chunk("far too long to fit", id="2")])

    assert ["tea", " 1; ", "far too long to fit", "tea"] == asked
    assert [4] == [kept.citation_tokens for kept in packing.kept]


def test_citations(backend):
    """Exactly the sources that survived, each with its span in the text."""
    chunks = [
        Chunk("Green tea.", id="1", source="tea.md", score=0.1),
        Chunk("x" * 900, id="2", source="long.md", score=0.5),
        Chunk("Rye.", source="rye.md", score=0.9),
        {"text": "No source.", "id": 7},
        SimpleNamespace(page_content="Elsewhere.", metadata={"source": "web"}),
        "Nameless.",
    ]
    packing = agentic_rag(110).pack("", chunks)
    cited = citations(packing)

    assert [
        Citation(2, "rye.md", None, (0, 4)),
        Citation(0, "tea.md", "1", (6, 16)),
        Citation(3, "", "7", (18, 28)),
        Citation(4, "web", None, (30, 40)),
        Citation(5, "", None, (42, 51)),
    ] == cited
    assert [kept.text for kept in packing.kept] == [packing.text[slice(*c.span)] for c in cited]
    assert "Sources: rye.md; tea.md 1; 7; web" == sources_footer(packing)
    assert "" == sources_footer(agentic_rag(64).pack("", chunks))


def test_ids_of_databases(backend):
    """A UUID is an id."""
    uuid = UUID("12345678123456781234567812345678")
    packing = agentic_rag().pack("", [{"text": "tea", "id": uuid}])

    assert str(uuid) == citations(packing)[0].id


def test_sources_are_named_once(backend):
    """Chunks of the same source and id are named once in the footer."""
    chunks = [Chunk(text, source="tea.md") for text in ("a", "b", "c")]

    assert "Sources: tea.md" == sources_footer(agentic_rag().pack("", chunks))


@pytest.mark.parametrize("source", ["a\nb", "a\r\n\u2028 b", "\x1ca\x85b\u3000"])
def test_a_name_is_one_line(backend, source):
    """Whitespace in a name is a single space."""
    packing = agentic_rag().pack("", [Chunk("x", source=source)])

    assert "Sources: a b" == sources_footer(packing)


def test_a_name_is_one_name(backend):
    """What separates names in a footer does not in a name."""
    chunks = [Chunk("x", source="a; b", id=";"), Chunk("y", source="c;")]

    footer = sources_footer(agentic_rag().pack("", chunks))
    assert ["a, b ;", "c;"] == footer.removeprefix("Sources: ").split("; ")


def test_a_footer_without_room(backend):
    """Where too little is set aside for all names, the footer says how many are left out."""
    chunks = [Chunk(f"text {i}", source=f"source number {i}") for i in range(9)]
    packing = Packer(30, reserve_tokens=15, counter="chars_div4", template="tagged").pack(
        "", chunks, max_tokens=90
    )

    footer = sources_footer(packing)
    assert "Sources: source number 0; source number 1; and 7 more" == footer
    assert "" == sources_footer(pack("", chunks, 50))


def test_pickled(backend):
    """A pickled packer packs alike; a pickled packing keeps its figures, and says what is gone."""
    packer = pickle.loads(pickle.dumps(agentic_rag(200)))
    assert agentic_rag(200) == packer == copy.deepcopy(packer)
    packing = packer.pack("", ranked(5))
    assert agentic_rag(200).pack("", ranked(5)).to_dict() == packing.to_dict()
    loaded = pickle.loads(pickle.dumps(packing))

    assert packing.to_dict() == loaded.to_dict()
    assert packing.explain(0) == loaded.explain(0)
    for function in (citations, sources_footer):
        with pytest.raises(BudgeteerError, match="a pickled packing has no sources"):
            function(loaded)


def test_frozen():
    """A preset's packer cannot be changed."""
    with pytest.raises(AttributeError):
        agentic_rag().max_tokens = 3


def test_threads(backend):
    """Many threads share a packer."""
    packer, chunks, found = agentic_rag(1_000), ranked(100), []
    expected = packer.pack("", chunks).to_dict()
    workers = [
        threading.Thread(target=lambda: found.append(packer.pack("", chunks).to_dict()))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [expected] * 8 == found


def test_retrieval_service_stops(backend):
    """Seed 003: only the top N chunks that fit, though a smaller one behind would."""
    sizes = [300, 400, 250, 350, 50]
    chunks = [Chunk("tea " * (size - 1), score=1 - i / 10) for i, size in enumerate(sizes)]
    packing = retrieval_service(1_000).pack("", chunks)

    kept = [kept.index for kept in packing.kept]
    assert [0, 1, 2] == kept
    assert ["budget", "budget"] == [dropped.reason for dropped in packing.dropped]
    assert packing.total_tokens <= 1_000
