"""RetrievalService in processes that fork, that signals interrupt, and that end."""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from service_support import Fake, service_of

from budgeteer.service import LlmSettings, RetrievalTimeoutError
from budgeteer.service._threads import Threads

COMMON = """
import asyncio, os, signal, sys, threading
from budgeteer.service import LlmSettings, RetrievalService

class Fake:
    def __init__(self, *chunks):
        self.chunks = chunks
    def retrieve(self, query, limit):
        return self.chunks
"""


def run(code, timeout=120):
    """Run *code* in a process of its own, which must end well, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMON + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@needs_fork
def test_a_fork_while_threads_are_at_work():
    """A child may use the service, whatever the threads of its parent were about to do."""
    code = """
    sys.setswitchinterval(1e-6)
    service = RetrievalService(Fake("tea", "rye"), LlmSettings(model="gpt-4o"))

    def work():
        while True:
            service.retrieve("q")

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    service.retrieve("q", timeout=9)
    failed = 0
    for _ in range(30):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            answers = []
            ask = lambda: answers.append(service.retrieve("q", timeout=9))
            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(len(answers) != 4 or not service.stats().requests)
        failed += os.waitpid(child, 0)[1] != 0
    print(failed, flush=True)
    os._exit(0)
    """
    assert "0\n" == run(code)


@needs_fork
def test_a_copy_in_a_forked_process():
    """A copy in a child changes its settings, though a thread of the parent was about to."""
    code = """
    import copy
    other = copy.copy(RetrievalService(Fake("tea"), LlmSettings(model="gpt-4o")))
    is_held, is_over = threading.Event(), threading.Event()

    def hold():
        with other._changing:
            is_held.set()
            is_over.wait()

    threading.Thread(target=hold).start()
    is_held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        other.settings = LlmSettings(model="gpt-4")
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    is_over.set()
    """
    assert "0\n" == run(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no such signals")
def test_the_stats_in_a_handler_of_signals():
    """They may be asked wherever a signal comes."""
    code = """
    sys.setswitchinterval(1e-6)
    service = RetrievalService(Fake("tea", "rye"), LlmSettings(model="gpt-4o"))
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(service.stats().requests))
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    for _ in range(3_000):
        service.retrieve("q")
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(len(seen) > 10, seen == sorted(seen), service.stats().answered)
    """
    assert "True True 3000\n" == run(code)


@pytest.mark.parametrize("counter", ["claude-opus-4-5", "cl100k_base", "len"])
def test_the_end_while_a_thread_packs(counter):
    """A process ends well while a thread of a service is in the middle of a packing."""
    code = f"""
    counter = {counter if counter == "len" else repr(counter)}
    chunks = ["green tea %d " % i * 60 for i in range(20_000)]
    settings = LlmSettings(context_window=10**9, counter=counter)
    service = RetrievalService(Fake(*chunks), settings)

    async def main():
        task = asyncio.create_task(service.aretrieve("tea"))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    print("ended")
    """
    for _ in range(5):
        assert "ended\n" == run(code)


def test_a_thread_that_cannot_be_started(monkeypatch):
    """The caller is told, and later calls get their threads."""
    threads = Threads(2)

    def start(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        for _ in range(5):
            with pytest.raises(RuntimeError, match="can't start"):
                threads.submit(lambda: None)

    assert [1, 2, 3] == [threads.submit(lambda n=n: n).result(10) for n in (1, 2, 3)]


def test_a_call_that_raises_stop_iteration_is_told():
    """No future of asyncio takes one: whoever awaits would wait for ever."""
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        Threads(1).submit(lambda: next(iter(()))).result(10)
    assert isinstance(caught.value.__cause__, StopIteration)


def test_a_packing_that_was_given_up_asks_its_counter_no_more():
    """So that cancelled requests do not hold up those that come later."""
    asked = []

    def counter(text):
        asked.append(text)
        time.sleep(0.005)
        return len(text.split())

    settings = LlmSettings(context_window=10**6, max_output_tokens=0, counter=counter)
    service = service_of(*[f"tea {n}" for n in range(400)], settings=settings)

    async def main():
        tasks = [asyncio.create_task(service.aretrieve("q")) for _ in range(6)]
        await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        before = len(asked)
        await asyncio.sleep(0.3)
        return before, len(asked) - before

    before, after = asyncio.run(main())
    assert before > 20
    assert after <= 6  # what was under way
    assert 6 == service.stats().cancelled


def test_no_thread_is_free():
    """Where others hold all threads, nobody is blamed who was never asked."""
    may_go_on = threading.Event()

    class Hanging(Fake):
        def retrieve(self, query, limit):
            may_go_on.wait(20)
            return []

    service = service_of("tea")
    service._threads._most = 2
    hanging = Hanging()
    try:
        for _ in range(2):
            service._threads.submit(lambda: hanging.retrieve("q", 1))
        with pytest.raises(RetrievalTimeoutError) as caught:
            service.retrieve("q", timeout=0.05)
    finally:
        may_go_on.set()
    assert "before a thread was free to ask fake" in str(caught.value)
