"""Deadlines of packings: what they stop, how soon, and what they leave as it is."""

import asyncio
import contextlib
import math
import os
import threading
import time

import numpy as np
import pytest
from support import sharing_texts

from budgeteer import (
    Corpus,
    InvalidArgumentError,
    Packer,
    PackingTimeoutError,
    Prompt,
    presets,
)
from budgeteer.ranking import Embedding

QUERY = "Which tea is mild?"
SOON = 0.05
"""The seconds within which a packing ends after its deadline."""

PASSED = 1e-9
TEXT = "Section {}: green tea is mild, and rye bread is dark. "

needs_native = pytest.mark.skipif(
    os.environ.get("BUDGETEER_BACKEND") == "reference", reason="is about the native backend"
)


def texts(count, times=15):
    """Return that many chunks, none like another."""
    return [TEXT.format(i) * times for i in range(count)]


@pytest.mark.parametrize(
    ("deadline", "message"),
    [
        (0, "deadline must be a number of seconds above 0, not 0"),
        (-1.5, "deadline must be a number of seconds above 0, not -1.5"),
        (math.inf, "deadline must be a number of seconds above 0, not inf"),
        (math.nan, "deadline must be a number, not NaN"),
        ("1", "deadline must be a float, not str"),
        (True, "deadline must be a float, not bool"),
    ],
)
def test_only_seconds_above_0_are_taken(backend, deadline, message):
    """A deadline that is no number above 0 is refused, and the message says what is allowed."""
    with pytest.raises(InvalidArgumentError) as refused:
        Packer(9).pack("tea", ["Green tea."], deadline=deadline)
    assert message == str(refused.value)
    with pytest.raises(InvalidArgumentError):
        asyncio.run(Packer(9).apack("tea", ["Green tea."], deadline=deadline))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ranking": "keyword"},
        {"ranking": "input", "counter": "words"},
        {"dedupe": "near"},
        {"selection": "coverage"},
        {"units": "sentence"},
        {"counter": len},
        {"template": Prompt("\n".join)},
    ],
    ids=lambda options: " ".join(options) or "default",
)
@pytest.mark.parametrize("is_corpus", [False, True])
def test_a_deadline_that_has_passed_ends_the_call(backend, options, is_corpus):
    """Whatever the options, no packing comes out after the deadline; one before it is the same."""
    packer = Packer(60, **options)
    chunks = Corpus(texts(4)) if is_corpus else texts(4)
    with pytest.raises(PackingTimeoutError) as late:
        packer.pack(QUERY, chunks, deadline=PASSED)
    assert "the deadline of 1e-09 seconds passed before the chunks were packed" == str(late.value)
    assert isinstance(late.value, TimeoutError)
    with pytest.raises(PackingTimeoutError):
        asyncio.run(packer.apack(QUERY, chunks, deadline=PASSED))
    expected = packer.pack(QUERY, chunks)
    packing = packer.pack(QUERY, chunks, deadline=600)
    assert expected.to_dict() == packing.to_dict()


def test_a_packing_forgets_its_deadline(backend):
    """What is asked of a packing later has no deadline."""
    packing = Packer(60).pack(QUERY, texts(4), deadline=0.5)
    time.sleep(0.5)
    assert packing.whatif(30).total_tokens <= 30
    assert packing.budget_curve()


def test_a_deadline_is_a_request_s_own(backend):
    """In a batch of requests only the one that is late fails."""
    requests = [
        {"query": "tea", "chunks": ["Green tea."], "deadline": PASSED},
        {"query": "bread", "chunks": ["Rye bread."], "deadline": 600},
    ]
    late, packing = Packer(9).pack_batch(requests, on_error="yield")
    assert isinstance(late, PackingTimeoutError)
    assert "Rye bread." == packing.text


def test_a_counter_is_not_asked_after_the_deadline(backend):
    """A slow function of the caller's ends the call late by one answer, not by all of them."""
    asked = []

    def slow(text):
        asked.append(text)
        time.sleep(0.02)
        return len(text)

    with pytest.raises(PackingTimeoutError):
        Packer(10**6, counter=slow).pack(QUERY, texts(200, 1), deadline=0.5)
    assert 1 <= len(asked) <= 40


def test_the_last_answer_of_a_counter_may_be_late(backend):
    """No packing comes out after the deadline, even if only its own text is counted then."""

    def slow(text):
        if "\n\n" in text:
            time.sleep(0.3)
        return len(text)

    packer = Packer(10**6, counter=slow)
    with pytest.raises(PackingTimeoutError):
        packer.pack(QUERY, texts(2, 1), deadline=0.2)
    with pytest.raises(PackingTimeoutError):
        asyncio.run(packer.apack(QUERY, texts(2, 1), deadline=0.2))


@pytest.mark.parametrize("template", ["markdown", "json", "xml", "tagged"])
def test_what_a_template_writes_is_counted_before_the_deadline(backend, template):
    """The count of a long text in a template takes long, and no packing comes out after it."""
    text = "".join(map(chr, range(0x4E00, 0x9000))) * 12
    with pytest.raises(PackingTimeoutError):
        Packer(10**9, ranking="input", template=template).pack(QUERY, [text], deadline=0.001)


class Ready:
    """An embedder that takes no time."""

    def embed(self, texts):
        return np.ones((len(texts), 2), dtype=np.float32)


class Told:
    """A chunk of a type of the caller's, one field of which takes its time."""

    text = "Green tea is mild."
    title = "Tea"
    metadata = None
    score = 0.5


def slow_chunks(name, read):
    """Return chunks whose field *name* takes a tenth of a millisecond, and is noted in *read*."""

    def field(_):
        read.append(time.perf_counter())
        time.sleep(1e-4)
        return getattr(Told, name)

    kind = type("Slowly", (Told,), {name: property(field)})
    return [kind() for _ in range(8_000)]


@pytest.mark.parametrize(
    ("name", "packer"),
    [
        ("score", Packer(10**6, ranking="score")),
        ("metadata", Packer(10**6, ranking="recency")),
        ("metadata", Packer(10**6, ranking="input", template="tagged", dedupe=None)),
        ("metadata", Packer(10**6, template=Prompt(len), ranking="recency")),
        ("metadata", presets.context_gate(10**6)),
        ("metadata", presets.agentic_rag(10**6)),
        ("title", Packer(10**6, ranking=Embedding(Ready()))),
    ],
)
def test_no_more_fields_are_read_after_the_deadline(backend, name, packer):
    """Whatever is read of many chunks, in Python too, ends soon after the deadline."""
    read = []
    chunks = slow_chunks(name, read)
    began = time.perf_counter()
    with pytest.raises(PackingTimeoutError):
        packer.pack(QUERY, chunks, deadline=0.2)
    late = [at for at in read if at > began + 0.2]
    assert len(late) <= 5 * 256  # five fields of the chunks between two looks


@needs_native
@pytest.mark.parametrize(
    "options",
    [
        {"ranking": "keyword"},
        {},
        {"dedupe": "near", "ranking": "input"},
        {"selection": "coverage"},
        {"units": "sentence"},
        {"counter": "words", "overflow": "truncate_end", "ranking": "input"},
    ],
    ids=lambda options: " ".join(options) or "default",
)
def test_native_code_stops_soon(native, options):
    """A packing of many chunks ends soon after its deadline, wherever it is then."""
    packer = Packer(2_000_000, **options)
    # Words are counted so fast that it takes more of them to be late at all.
    chunks = texts(60_000, 24) if "counter" in options else texts(30_000, 8)
    whole = 600.0
    for end in "!?;":  # the best of three: other processes make it slow, none makes it fast
        fresh = [f"{text}{end}" for text in chunks]
        began = time.perf_counter()
        packer.pack(QUERY, fresh)
        whole = min(whole, time.perf_counter() - began)
    over = []
    for share in (0.2, 0.5, 0.8):
        fresh = [f"{text}." for text in chunks]
        began = time.perf_counter()
        try:
            packer.pack(QUERY, fresh, deadline=share * whole)
        except PackingTimeoutError:
            over.append(time.perf_counter() - began - share * whole)
    assert over
    assert sorted(over)[len(over) // 2] <= 4 * SOON  # four times, for a busy machine


@needs_native
def test_a_cancelled_packing_stops(native):
    """A thread whose task was cancelled stops packing, although nobody waits for it."""
    chunks, others = sharing_texts(15_000), threading.active_count()
    packer = Packer(10**9, counter="words", ranking="input", dedupe="near")

    async def cancel():
        packing = asyncio.create_task(packer.apack(QUERY, chunks))
        await asyncio.sleep(0.05)
        packing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await packing
        return time.perf_counter()

    cancelled = asyncio.run(cancel())  # which waits for its threads
    assert time.perf_counter() - cancelled <= 10 * SOON
    assert threading.active_count() <= others


class Slow:
    """An embedder that takes longer than there is."""

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked.append(texts)
        time.sleep(0.2)
        return np.ones((len(texts), 2), dtype=np.float32)

    async def aembed(self, texts):
        return self.embed(texts)


@pytest.mark.parametrize(("deadline", "calls"), [(PASSED, 0), (0.1, 1), (600, 2)])
@pytest.mark.parametrize("is_async", [False, True])
def test_an_embedder_is_not_asked_after_the_deadline(backend, deadline, calls, is_async):
    """No other call of it begins; chunks are embedded before the query."""
    embedder = Slow()
    packer = Packer(9, ranking=Embedding(embedder))
    with contextlib.suppress(PackingTimeoutError):
        if is_async:
            asyncio.run(packer.apack(QUERY, ["Green tea."], deadline=deadline))
        else:
            packer.pack(QUERY, ["Green tea."], deadline=deadline)
    assert calls == len(embedder.asked)
