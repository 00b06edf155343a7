"""apack: the event loop goes on while much is packed, and little is packed at once."""

import asyncio
import itertools
import threading
import time
from contextvars import ContextVar

import pytest

from budgeteer import Chunk, Corpus, Packer
from budgeteer.errors import InvalidArgumentError

SENTENCE = "The association published a journal of green tea and rye bread, volume {}. "


def batch(count, chars=800):
    """Return distinct texts of *count* chunks."""
    return [(f"{i} " + SENTENCE.format(i) * (chars // 70))[:chars] for i in range(count)]


@pytest.fixture
def hops(monkeypatch):
    """Return what was run in a thread."""
    found = []
    to_thread = asyncio.to_thread

    async def recorded(function):
        found.append(function)
        return await to_thread(function)

    monkeypatch.setattr(asyncio, "to_thread", recorded)
    return found


async def beside(packing):
    """Return when a task of the loop ran while *packing* was awaited, its start and its end."""
    beats = [time.perf_counter()]

    async def beat():
        while True:
            await asyncio.sleep(0.001)
            beats.append(time.perf_counter())

    task = asyncio.create_task(beat())
    await packing
    beats.append(time.perf_counter())
    task.cancel()
    return beats


KINDS = {"str": str, "dict": lambda text: {"text": text}, "Chunk": Chunk}


@pytest.mark.parametrize("kind", KINDS)
def test_the_loop_breathes(backend, kind):
    """While 20,000 chunks are packed, a task of the loop waits for some milliseconds at most."""
    is_native = backend.__name__ == "budgeteer._native"
    chunks = [KINDS[kind](text) for text in batch(20_000 if is_native else 2_000)]
    packer = Packer(8_000, template="tagged" if kind == "Chunk" else "plain")

    for _ in range(5):  # as other processes may hold the processors
        beats = asyncio.run(beside(packer.apack("green tea", chunks)))
        longest = max(b - a for a, b in itertools.pairwise(beats))
        if longest < 0.05:
            break

    assert len(beats) > 2
    assert longest < 0.25


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, lambda: batch(500)),
        ({}, list),
        ({}, lambda: Corpus(batch(2_000))),
        ({"counter": len}, lambda: ["tea"]),
        ({"units": "sentence"}, lambda: batch(20)),
    ],
    ids=["list", "empty", "corpus", "callable", "sentences"],
)
def test_little_is_packed_at_once(backend, hops, options, made):
    """Below about a millisecond's work no thread is asked."""
    chunks = made()
    packer = Packer(40 if options else 8_000, **options)

    packing = asyncio.run(packer.apack("tea", chunks))

    assert [] == hops
    assert packer.pack("tea", chunks).to_dict() == packing.to_dict()


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, lambda: batch(2_500, 400)),
        ({}, lambda: ["tea " * 500_000]),
        ({}, lambda: ["tea"] * 20_000),
        ({}, lambda: Corpus(["tea"] * 60_000)),
        ({"counter": len}, lambda: batch(20)),
        ({"units": "sentence"}, lambda: batch(500)),
    ],
    ids=["chunks", "one long", "many short", "corpus", "callable", "sentences"],
)
def test_much_is_packed_in_a_thread(hops, options, made):
    """From about a millisecond's work on a thread packs, and what it packs is the same."""
    chunks = made()
    packer = Packer(800, **options)

    packing = asyncio.run(packer.apack("tea", chunks))

    assert 1 == len(hops)
    assert packer.pack("tea", chunks).to_dict() == packing.to_dict()


def test_the_context_is_the_caller_s(backend):
    """What a thread packs, it packs in the caller's context."""
    where = ContextVar("where", default="lost")
    seen = set()

    def count(text):
        seen.add((where.get(), threading.current_thread() is threading.main_thread()))
        return len(text)

    async def main():
        where.set("here")
        await Packer(900, counter=count).apack("tea", batch(20))

    asyncio.run(main())

    assert {("here", False)} == seen


def test_cancelling(backend):
    """A cancelled call ends at once, and the caller's counter is not asked any more."""
    asked = []
    counting, go_on = threading.Event(), threading.Event()

    def count(text):
        asked.append(text)
        counting.set()
        assert go_on.wait(30)
        return len(text)

    async def main():
        task = asyncio.create_task(Packer(9_000, counter=count).apack("tea", batch(20)))
        await asyncio.to_thread(counting.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    asyncio.run(main())  # waits for the thread

    assert 1 == len(asked)


def test_what_a_caller_s_chunk_raises(backend):
    """An unreadable chunk is refused as by pack, and its own exception passes."""

    class Chunk:
        @property
        def text(self):
            raise OSError("disk")

    async def packed(chunks):
        return await Packer(9).apack("tea", chunks)

    with pytest.raises(OSError, match=r"^disk$"):
        asyncio.run(packed([Chunk()]))
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[0\] must be a str"):
        asyncio.run(packed([3]))
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[19999\] must be a str"):
        asyncio.run(packed(["tea"] * 19_999 + [3]))


def test_without_asyncio(backend):
    """Under another event loop the caller's thread packs."""
    packer = Packer(900)
    coroutine = packer.apack("tea", batch(3_000))

    with pytest.raises(StopIteration) as answer:
        coroutine.send(None)

    assert packer.pack("tea", batch(3_000)).to_dict() == answer.value.value.to_dict()


def test_a_counter_that_ends_an_iteration(backend):
    """Its StopIteration ends the call in a thread, too, as any does that leaves a coroutine."""
    left = iter(range(50))

    def counter(text):
        next(left)
        return len(text)

    async def main():
        return await asyncio.wait_for(Packer(100_000, counter=counter).apack("tea", batch(99)), 60)

    with pytest.raises(RuntimeError, match="coroutine raised StopIteration") as caught:
        asyncio.run(main())
    assert isinstance(caught.value.__cause__, StopIteration)
