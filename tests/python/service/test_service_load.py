"""RetrievalService under load: every answer is the one that a request alone gets."""

import asyncio
import importlib.util
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from service_support import Fake, service_of

from budgeteer import get_counter
from budgeteer.service import LlmSettings, RetrievalService, _service
from budgeteer.service._asking import in_thread
from budgeteer.service._threads import Threads

BENCH = Path(__file__).parents[3] / "benches/load_service.py"


@pytest.mark.slow
def test_threads_and_tasks():
    """8 threads and 200 tasks, with swaps of the model between, get what one alone gets."""
    spec = importlib.util.spec_from_file_location("load_service", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    for seconds in (2.0, 8.0, 32.0):  # longer where the machine is slow
        figures = module.load(seconds)
        if figures["requests"] > 200:
            break

    assert figures["requests"] > 200
    assert figures["cut"] > 0
    assert figures["failed"] > 0
    assert figures["rejected"] > 0


@pytest.mark.parametrize(
    ("chunks", "is_apart"), [(4 * ["tea"], False), (4 * ["tea " * 80_000], True)]
)
def test_an_event_loop_is_not_held_by_few_long_chunks(chunks, is_apart, monkeypatch):
    """Packing more than about a million characters goes to a thread, however few the chunks."""
    apart = []

    def watched(threads, work):
        apart.append(work)
        return in_thread(threads, work)

    monkeypatch.setattr(_service, "in_thread", watched)
    found = asyncio.run(service_of(*chunks).aretrieve("tea"))

    assert 4 == len(found.packing.kept) + len(found.packing.dropped)
    assert is_apart == bool(apart)


def test_given_a_swap_when_a_request_is_under_way_then_it_keeps_its_model():
    """A request that began before a swap has the old window and encoding, to its end."""
    is_asked, may_go_on = threading.Event(), threading.Event()

    class Waiting(Fake):
        def retrieve(self, query, limit):
            is_asked.set()
            assert may_go_on.wait(30)
            return super().retrieve(query, limit)

    text = "日本のお茶" * 40
    service = RetrievalService(Waiting(text), LlmSettings(model="gpt-4", max_output_tokens=7))
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(service.retrieve, "q")
        assert is_asked.wait(30)
        service.settings = LlmSettings(model="gpt-4o", context_window=9_000)
        may_go_on.set()
        old, new = before.result(30), service.retrieve("q")

    assert ("gpt-4", 8_192, 7) == (old.model, old.tokens.context_window, old.tokens.output)
    assert ("gpt-4o", 9_000) == (new.model, new.tokens.context_window)
    for result, encoding in ((old, "cl100k_base"), (new, "o200k_base")):
        assert get_counter(encoding).count(text) == result.tokens.retrieved
    assert old.tokens.retrieved != new.tokens.retrieved


def test_stats_lose_nothing():
    """Figures that are read and reset by one thread while others add are told once each."""
    service = service_of("tea")
    told = []

    def work(_):
        service.retrieve("q")
        told.append(service.stats(reset=True))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(400)))
    told.append(service.stats())

    assert 400 == sum(stats.requests for stats in told) == sum(s.answered for s in told)


def test_given_up_calls_are_forgotten_while_all_threads_hang():
    """The requests of a backend that hangs for hours do not fill the memory."""
    threads, until = Threads(4), threading.Event()
    for _ in range(4):
        threads.submit(until.wait)
    waiting = [threads.submit(lambda: "done") for _ in range(3)]
    for _ in range(1_000):
        threads.submit(until.wait).cancel()
    assert len(threads._jobs) <= 16
    until.set()
    assert ["done"] * 3 == [future.result(10) for future in waiting]
