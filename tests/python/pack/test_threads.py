"""Threads and forks: a packer is shared, and a forked child packs too."""

import json
import os
import signal
import subprocess
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


LONGER = [text * 8 for text in batch(3, 5_000)]  # three million characters


@pytest.mark.parametrize("ranking", ["keyword", "bm25", "lexical"])
@pytest.mark.parametrize("chunks", [batch(3, 500), LONGER], ids=["short", "of milliseconds"])
def test_a_call_of_milliseconds_holds_the_lock(native, turns, chunks, ranking):
    """A call of up to some milliseconds is not delayed by busy threads."""
    call = begun(prepared_of(Packer(8_000, ranking=ranking)), "green tea policy", chunks)
    call.packed(8_000)
    time.sleep(0.2)  # another test may have packed in another thread

    for _ in range(20):
        before = turns[0]
        call.packed(8_000)
        assert before == turns[0]


@pytest.mark.parametrize(
    ("options", "times"), [({}, 10), ({"dedupe": "near"}, 1), ({"units": "sentence"}, 1)]
)
def test_a_longer_call_releases_the_lock(native, turns, options, times):
    """Other threads run during a call that may take longer than they may be kept waiting."""
    call = begun(prepared_of(Packer(8_000, **options)), "green tea policy", LONGER * times)

    before = turns[0]
    call.packed(8_000)
    assert before < turns[0]


def test_threads_with_such_calls_make_way(native, turns):
    """Where several threads have calls of milliseconds, each lets the others run."""
    call = begun(prepared_of(Packer(8_000)), "green tea policy", LONGER)

    had_turns = False
    with ThreadPoolExecutor(1) as pool:
        for _ in range(50):
            pool.submit(call.packed, 8_000).result(30)
            before = turns[0]
            call.packed(8_000)
            had_turns = had_turns or turns[0] > before

    assert had_turns


SHARED = """
import hashlib, json, sys, time
import budgeteer

words = "green tea rye bread coffee remote policy \\u8336 caf\\u00e9 teas".split()
alphabets = ["", "\u00e9t\u00e9 ", "\u7eff\u8336\u653f\u7b56 ", "\U0001f375 "]

def text(i):
    tail = " ".join(words[(i * 7 + k * k) % len(words)] for k in range(80 + i % 20))
    return f"Heading {i % 5000}\\n{alphabets[i % 4]}{i % 29_000} {tail}"

chunks = [{"text": text(i), "title": f"Green {i}" if i % 3 == 0 else ""} for i in range(30_000)]
found = hashlib.sha256()
budgeteer.Packer(10).pack("", ["tea"])
at_work = all_at_work = 0
for options in json.loads(sys.argv[1]):
    packer = budgeteer.Packer(3_000, **options)
    here, everywhere = time.thread_time(), time.process_time()
    packing = packer.pack("Is green tea remote? caf\u00e9 \u8336", chunks)
    at_work += time.thread_time() - here
    all_at_work += time.process_time() - everywhere
    dropped = [(d.index, d.reason, d.needed_tokens, d.score) for d in packing.dropped]
    kept = [(k.index, k.token_count, k.score) for k in packing.kept]
    found.update(repr((packing.text, packing.total_tokens, kept, dropped)).encode())
texts = [chunk["text"] for chunk in chunks]
from budgeteer.ranking import bm25_scores, keyword_scores, lexical_scores
for scores in (keyword_scores, bm25_scores, lexical_scores):
    found.update(repr(list(scores("green tea caf\u00e9 \u8336", texts))).encode())
print(json.dumps([found.hexdigest(), 1 - at_work / all_at_work]))
"""
SHARED_OPTIONS = [
    {"ranking": "keyword"},
    {"ranking": "keyword", "counter": "words", "dedupe": None},
    {"ranking": "bm25", "counter": "chars_div4"},
    {},
    {"ranking": "input", "counter": "words"},
    {"min_score": "auto", "max_chunks": 5},
]


def test_reading_is_shared_among_threads(native):
    """Several threads read a large batch, as many as are allowed, and find what one finds."""
    found, shares = [], []
    for threads in ("1", "2", "5"):
        command = [sys.executable, "-c", SHARED, json.dumps(SHARED_OPTIONS)]
        environment = {
            **os.environ,
            "BUDGETEER_BACKEND": "native",
            "BUDGETEER_NUM_THREADS": threads,
        }
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, check=True, timeout=120
        )
        digest, share = json.loads(done.stdout)
        found.append(digest)
        shares.append(share)

    assert [found[0]] * 3 == found
    # The share of the work that is done by other threads than the calling one.
    assert shares[0] < 0.02
    assert min(shares[1:]) > 0.15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # 3.12 on: forking beside threads
def test_fork_while_threads_read(native):
    """A child that is forked while several threads read can pack a large batch too."""
    chunks = [text * 8 for text in batch(2, 20_000)]
    packer = Packer(500)
    expected = packer.pack("green tea policy", chunks).text
    over = threading.Event()

    def work():
        while not over.is_set():
            packer.pack("green tea policy", chunks)

    worker = threading.Thread(target=work)
    worker.start()
    children = []
    try:
        for _ in range(5):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = int(expected != packer.pack("green tea policy", chunks).text)
                finally:
                    os._exit(status)
            children.append(child)
    finally:
        over.set()
        worker.join(60)

    assert [0] * 5 == [_status_of(child, limit=30) for child in children]


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
