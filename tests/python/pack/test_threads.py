"""Threads and forks: a packer is shared, and a forked child packs too."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import on_both, using

from budgeteer import Chunk, Packer
from budgeteer._pack.call import begun
from budgeteer._pack.packer import prepared_of

WORDS = ["green", "tea", "rye", "bread", "coffee", "remote", "policy", "\u8336", "caf\u00e9"]


def batch(seed, size):
    """Return distinct chunks, some of which a query about tea finds."""
    return [
        f"{seed} {i} " + " ".join(WORDS[(i * 7 + seed + k) % len(WORDS)] for k in range(12))
        for i in range(size)
    ]


PACKERS = [
    Packer(200),
    Packer(200, overflow="truncate_middle", order="input"),
    Packer(200, counter=len, template="tagged", overflow="truncate_end"),
    Packer(200, counter="words", ranking="input", dedupe=None),
]


@on_both
@pytest.mark.parametrize("packer", PACKERS, ids=["plain", "middle", "callable", "words"])
def test_eight_threads(name, packer):
    """Eight threads that share a packer get the results that one alone gets."""
    batches = [batch(seed, 60) for seed in range(32)]

    def work(chunks):
        return packer.pack("green tea policy", chunks).to_dict()

    with using(name):
        expected = list(map(work, batches))
        with ThreadPoolExecutor(8) as pool:
            assert expected == list(pool.map(work, batches))


@on_both
def test_threads_that_share_chunks(name):
    """Eight threads may pack the same chunks at once."""
    chunks = batch(0, 2_000)
    packer = Packer(500)
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait(30)
        return packer.pack("green tea policy", chunks).to_dict()

    with using(name), ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))

    assert [results[0]] * 8 == results


@on_both
def test_large_batch_beside_busy_threads(name):
    """A large batch is packed beside two busy threads."""
    chunks = batch(1, 100_000 if name == "native" else 3_000)
    stop = threading.Event()
    results = []

    def busy():
        while not stop.is_set():
            sum(range(1_000))

    def work():
        results.append(packer.pack("green tea policy", chunks))

    packer = Packer(500)
    with using(name):
        expected = packer.pack("green tea policy", chunks).to_dict()
        threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
        worker = threading.Thread(target=work, daemon=True)
        for thread in (*threads, worker):
            thread.start()
        worker.join(60)
        stop.set()
        for thread in threads:
            thread.join(60)

    assert not worker.is_alive()
    assert expected == results[0].to_dict()


@pytest.fixture
def turns():
    """Return what a thread counts that runs only while others have released the lock."""
    found = [0]
    over = threading.Event()

    def count():
        while not over.is_set():
            found[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    sys.setswitchinterval(1_000)  # no thread has to make way for another
    thread.start()
    yield found
    over.set()
    sys.setswitchinterval(interval)
    thread.join(30)


@pytest.mark.parametrize("options", [{}, {"template": "tagged"}, {"dedupe": "near"}])
def test_one_of_several_workers_releases_the_lock(native, turns, options):
    """A worker of a batch lets others run during work of some tenths of a millisecond."""
    packer = Packer(8_000, **options)
    chunks = [Chunk(text * 8) for text in batch(3, 500)]
    call = begun(prepared_of(packer), "green tea policy", chunks)
    call.releases = True

    had_turns = False
    for _ in range(500):
        before = turns[0]
        packed = call.packed(8_000)
        had_turns = turns[0] > before
        if had_turns:
            break

    assert had_turns
    call.releases = False
    assert call.packed(8_000).text == packed.text


def test_a_short_call_holds_the_lock(native, turns):
    """A call of some tenths of a millisecond is not delayed by busy threads."""
    call = begun(prepared_of(Packer(8_000)), "green tea policy", batch(3, 500))

    for _ in range(20):
        before = turns[0]
        call.packed(8_000)
        assert before == turns[0]


@on_both
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # 3.12 on: forking beside threads
@pytest.mark.parametrize("size", [50, 20_000])
def test_fork(name, size):
    """A child forked after a pack packs too, and ends."""
    chunks = batch(2, size if name == "native" else 50)
    packer = Packer(500)
    with using(name):
        expected = packer.pack("green tea policy", chunks).text
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = int(expected != packer.pack("green tea policy", chunks).text)
            finally:
                os._exit(status)

    assert 0 == _status_of(child, limit=30)


def _status_of(child, limit):
    """Return how *child* exited; end it where it does not within *limit* seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@on_both
def test_a_counter_that_packs(name):
    """A callable counter may pack by itself: no lock is held while it runs."""
    inner = Packer(5)

    def counter(text):
        inner.pack("tea", ["tea", "rye"])
        return len(text)

    with using(name):
        packing = Packer(20, counter=counter).pack("tea", ["tea", "rye"])

    assert "tea\n\nrye" == packing.text


@on_both
def test_a_counter_in_another_thread(name):
    """A callable counter may wait for another thread that packs."""
    packer = Packer(20)
    with using(name), ThreadPoolExecutor(1) as pool:

        def counter(text):
            return len(pool.submit(packer.pack, "tea", [text]).result(30).text)

        packing = Packer(20, counter=counter).pack("tea", ["tea", "rye"])

    assert "tea\n\nrye" == packing.text


@on_both
def test_nothing_is_leaked(name):
    """Packing keeps no reference to what it was given, once the packing is gone."""
    text = " ".join(["green tea"] * 3)
    chunks = [text] * 5
    packer = Packer(100, dedupe=None)
    with using(name):
        packer.pack("tea", chunks)
        before = sys.getrefcount(text)
        for _ in range(50):
            packer.pack("tea", chunks)

    assert before == sys.getrefcount(text)
