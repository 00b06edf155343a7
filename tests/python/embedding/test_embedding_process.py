"""OpenAIEmbedder among threads, tasks and processes, and in one that lacks httpx."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import embedding_server as server
import numpy as np
import pytest
from test_embedding import slowly, with_options


def test_many_threads(endpoint, embedder, tmp_path):
    """Many threads share one embedder and its cache."""
    embedder = with_options(embedder, cache_dir=tmp_path, batch_size=3)
    texts = [f"text {i}" for i in range(40)]

    def work(i):
        some = texts[i % 7 : i % 7 + 20]
        return np.array_equal(server.expected(some), embedder.embed(some))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))
    embedder.close()


def test_many_tasks(endpoint, embedder, tmp_path):
    """Many tasks of a loop share one embedder; no thread is left behind."""
    embedder = with_options(embedder, cache_dir=tmp_path, batch_size=3)
    texts = [f"text {i}" for i in range(40)]
    before = threading.enumerate()

    async def work():
        async with embedder:
            return await asyncio.gather(
                *[embedder.aembed(texts[i % 7 : i % 7 + 20]) for i in range(20)]
            )

    for i, vectors in enumerate(asyncio.run(work())):
        assert np.array_equal(server.expected(texts[i % 7 : i % 7 + 20]), vectors)
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert not [thread for thread in started if "budgeteer" in thread.name]


def _in_child(embedder, queue):
    queue.put(embedder.embed(["a", "b"]).tobytes())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork(endpoint, embedder, tmp_path):
    """A forked process has its own connections and its own hold on the cache's file."""
    embedder = with_options(embedder, cache_dir=tmp_path)
    embedder.embed(["a"])
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=_in_child, args=(embedder, queue)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(20)
    embedder.embed(["a"])

    assert [0] * 3 == [child.exitcode for child in children]
    assert [server.expected(["a", "b"]).tobytes()] * 3 == [queue.get() for _ in children]
    assert ["a"] == endpoint.inputs()[0]
    assert {"b"} == {text for texts in endpoint.inputs()[1:] for text in texts}
    embedder.close()


FORK_AMID_WRITES = """
import os, sys, threading
from pathlib import Path
import numpy
from budgeteer.embedding._cache import Cache

vectors = numpy.ones((4, 8), "float32")

def keys(first):
    return [number.to_bytes(32, "little") for number in range(first, first + 4)]

def write(until, cache):
    first = 100
    while not until.is_set():
        cache.put(keys(first), vectors)
        first += 4

for nth in range(15):
    folder = Path(sys.argv[1], str(nth))
    cache, until = Cache(folder, 1 << 24), threading.Event()
    cache.put(keys(0), vectors)
    writing = threading.Thread(target=write, args=(until, cache))
    writing.start()
    until.wait(0.01)
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        own = Cache(folder, 1 << 24)
        own.put(keys(10), vectors)
        os.read(ready, 1)  # until the parent has closed its file
        own.put(keys(20), vectors)
        os._exit(4 - len(own.get(keys(0))))
    until.set()
    writing.join()
    cache.close()
    os.write(told, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [4, 4, 4] == [len(cache.get(keys(first))) for first in (0, 10, 20)], nth
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_amid_writes(tmp_path):
    """A child that is forked while the cache is written has the file, and nothing is lost."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_AMID_WRITES, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_close(endpoint, embedder, tmp_path):
    """close lets go of connections and file, twice as once; the next call opens them again."""
    embedder = with_options(embedder, cache_dir=tmp_path)
    embedder.close()
    for _ in range(2):
        embedder.embed(["a"])
        embedder.close()
        embedder.close()
    embedder.embed(["b"])
    embedder.close()

    assert 2 == endpoint.connections


def test_cancelling(endpoint, embedder):
    """A task that is cancelled ends at once."""
    endpoint.always = server.silent

    async def work():
        task = asyncio.create_task(with_options(embedder, batch_size=1).aembed(["a", "b", "c"]))
        for _ in range(6_000):  # at most half a minute
            if len(endpoint.questions) == 3:
                break
            await asyncio.sleep(0.005)
        task.cancel()
        start = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - start

    assert asyncio.run(work()) < 0.5
    assert 3 == len(endpoint.questions)


def test_the_loop_is_not_blocked(endpoint, embedder, tmp_path):
    """Other tasks run while a call waits for the endpoint."""
    endpoint.always = slowly

    async def work():
        embedder_ = with_options(embedder, cache_dir=tmp_path)
        task = asyncio.create_task(embedder_.aembed(["a"]))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        await task
        embedder_.close()
        return ticks

    assert asyncio.run(work()) >= 5


LONG = """
import signal, sys, traceback
from budgeteer.embedding import OpenAIEmbedder

signal.signal(signal.SIGINT, signal.default_int_handler)
embedder = OpenAIEmbedder(url=sys.argv[1], batch_size=1, timeout=60)
print("ready", flush=True)
try:
    embedder.embed(sys.argv[2:])
except KeyboardInterrupt as error:
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    told = error.__context__ is not None or any("httpcore" in file for file in files)
    sys.exit(8 if told else 7)
"""


@pytest.mark.parametrize("texts", [["a"], ["a", "b", "c"]])
def test_an_interrupt_stops_a_call(endpoint, embedder, texts):
    """Ctrl-C ends a call that waits for the endpoint, and with it the process."""
    endpoint.always = server.silent
    command = [sys.executable, "-c", LONG, endpoint.url, *texts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert b"ready" in process.stdout.readline()
        for _ in range(500):
            if len(endpoint.questions) == len(texts):
                break
            time.sleep(0.02)
        time.sleep(0.1)  # until it waits: a signal just before does not end the wait
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        status = process.wait(30)
        took = time.monotonic() - start
        said = process.stderr.read()

    assert (7, b"") == (status, said)
    assert took < 2


WITHOUT = """
import sys
sys.modules["httpx"] = None
import budgeteer.config
from budgeteer.embedding import EmbeddingError, OpenAIEmbedder
embedder = OpenAIEmbedder()
try:
    embedder.embed(["a"])
except EmbeddingError as error:
    print(error, error.__cause__)
"""


def test_without_httpx():
    """Without httpx an embedder can be made; using it is an error that says what to install."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True, timeout=60
    )

    expected = "embedding needs httpx: pip install 'budgeteer[embeddings]' None\n"
    assert (expected, "") == (done.stdout, done.stderr)


def test_the_import_is_light():
    """The module, an embedder and a configuration load neither httpx nor numpy."""
    code = (
        "import sys, budgeteer.config, budgeteer.embedding as e; e.OpenAIEmbedder()\n"
        "print([m for m in ('httpx', 'httpcore', 'anyio', 'asyncio', 'numpy', 'ssl', 'socket') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ("[]\n", "") == (done.stdout, done.stderr)
