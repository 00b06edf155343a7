"""RetrievalService when something is slow: deadlines, cancellation, threads and asyncio."""

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import time

import pytest
from service_support import SETTINGS, AsyncFake, AsyncSlow, Fake, both, service_of

from budgeteer import BudgeteerError
from budgeteer.service import (
    InputValidationError,
    LlmSettings,
    RetrievalError,
    RetrievalService,
    RetrievalTimeoutError,
)


class Slow(Fake):
    def __init__(self, *chunks, until=None):
        super().__init__(*chunks)
        self.until = until or threading.Event()

    def retrieve(self, query, limit):
        self.until.wait(20)
        return self.chunks


def test_given_a_slow_retriever_when_the_deadline_passes_then_a_typed_error():
    """The deadline holds though the retriever does not end, and names who was late."""
    slow = Slow("a")
    slow.name = "slow"
    service = RetrievalService([Fake("b"), slow], SETTINGS)
    start = time.monotonic()
    with pytest.raises(RetrievalTimeoutError) as caught:
        service.retrieve("q", timeout=0.05)
    with pytest.raises(RetrievalTimeoutError) as async_caught:
        asyncio.run(service.aretrieve("q", timeout=0.05))
    took = time.monotonic() - start
    slow.until.set()

    assert took < 5
    message = "the deadline of 0.05 seconds passed before slow answered"
    assert message == str(caught.value) == str(async_caught.value)
    assert isinstance(caught.value, TimeoutError)
    assert "slow" == caught.value.source
    assert 2 == service.stats().timed_out


def test_given_an_async_retriever_when_the_deadline_passes_then_it_is_cancelled():
    """A coroutine that is late is cancelled."""
    slow = AsyncSlow()
    with pytest.raises(RetrievalTimeoutError):
        asyncio.run(RetrievalService(slow, SETTINGS, timeout=0.05).aretrieve("q"))
    assert slow.was_cancelled


def test_given_a_slow_reranker_when_the_deadline_passes_then_it_is_named():
    """What retrieval took is taken off the reranker's time."""

    class Reranker:
        async def arerank(self, query, chunks):
            await asyncio.sleep(20)

        def rerank(self, query, chunks):
            time.sleep(0.3)
            return chunks

    service = service_of("a", reranker=Reranker(), timeout=0.05)
    with pytest.raises(RetrievalTimeoutError, match="before Reranker answered"):
        service.retrieve("q")
    with pytest.raises(RetrievalTimeoutError, match="before Reranker answered"):
        asyncio.run(service.aretrieve("q"))


def test_given_a_cancellation_then_the_retriever_is_cancelled_too():
    """Cancelling a request cancels its retrievers, and is counted."""
    slow = AsyncSlow()
    service = RetrievalService(slow, SETTINGS)

    async def main():
        task = asyncio.create_task(service.aretrieve("q"))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert slow.was_cancelled
    assert (1, 0) == (service.stats().cancelled, service.stats().failed)


def test_a_retriever_that_hangs_does_not_keep_the_process():
    """A process ends though a retriever whose deadline passed still hangs."""
    code = (
        "import time, budgeteer.service as s\n"
        "class Hangs:\n"
        "    def retrieve(self, query, limit): time.sleep(100)\n"
        "service = s.RetrievalService(Hangs(), s.LlmSettings(model='gpt-4o'), timeout=0.05)\n"
        "try: service.retrieve('q')\n"
        "except TimeoutError: print('late')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )

    assert ("late\n", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_threads_are_bounded():
    """However many retrievals hang, there are so many threads and no more."""
    from budgeteer.service._threads import Threads

    threads, until = Threads(4), threading.Event()
    before = threading.active_count()
    futures = [threads.submit(until.wait) for _ in range(50)]
    assert threading.active_count() - before <= 4
    until.set()
    assert [True] * 50 == [future.result(10) for future in futures]


def test_retrievers_that_hang_do_not_hold_the_service_up():
    """Though retrievers keep every thread they may have, long queries and batches are answered."""
    until = threading.Event()
    service = RetrievalService(AsyncFake(*["tea"] * 3_000), SETTINGS, limit=3_000)
    for _ in range(64):
        service._threads.submit(until.wait)
    try:
        result = asyncio.run(asyncio.wait_for(service.aretrieve("q"), 20))
        with pytest.raises(InputValidationError):
            asyncio.run(asyncio.wait_for(service.aretrieve("tea " * 50_000), 20))
    finally:
        until.set()

    assert 3_000 == len(result.packing.kept) + result.packing.dropped_count


def test_context_variables_reach_the_threads():
    """A retriever in a thread sees the caller's context, so that traces hang together."""
    variable = contextvars.ContextVar("variable", default="nothing")

    class Reads(Fake):
        def retrieve(self, query, limit):
            return [variable.get()]

    variable.set("seen")
    assert "seen" == both(RetrievalService(Reads(), SETTINGS)).packing.text


def test_async_ways():
    """Coroutines, asynchronous pages, rerankers and embedders are awaited."""

    class Pages(AsyncFake):
        takes_vector = True

        async def apages(self, query, *, vector):
            yield ["a", str(vector)]
            yield []
            raise AssertionError("nothing is asked for behind an empty page")

    class Coroutine:
        async def retrieve(self, query, limit):
            return ["c"]

    class Async:
        def rerank(self, query, chunks):
            raise AssertionError("arerank is there")

        async def arerank(self, query, chunks):
            return chunks[::-1]

        def embed_query(self, text):
            raise AssertionError("aembed_query is there")

        async def aembed_query(self, text):
            return [1.0]

    service = RetrievalService(
        [Pages(), Coroutine(), AsyncFake("d"), Fake("e")],
        SETTINGS,
        reranker=Async(),
        embedder=Async(),
    )
    result = asyncio.run(service.aretrieve("q"))

    assert "e\n\nd\n\nc\n\n[1.0]\n\na" == result.packing.text


def test_given_a_huge_query_under_asyncio_then_nothing_is_asked():
    """The budget comes first under asyncio too, for a query that is counted in a thread."""
    retriever = AsyncFake("a")
    with pytest.raises(InputValidationError):
        asyncio.run(RetrievalService(retriever, SETTINGS).aretrieve("tea " * 50_000))
    assert [] == retriever.asked


def test_what_never_ends_stops_when_nobody_waits():
    """A generator without an end does not go on behind its deadline."""
    went_on = threading.Event()

    class Endless(Fake):
        def retrieve(self, query, limit):
            try:
                while True:
                    yield "tea"
            finally:
                went_on.set()

    with pytest.raises(RetrievalTimeoutError):
        RetrievalService(Endless(), SETTINGS).retrieve("q", timeout=0.05)
    assert went_on.wait(10)


def test_pages_that_never_wait_end_at_the_deadline():
    """Asynchronous pages that come at once let the loop look at the clock."""

    class Pages(AsyncFake):
        async def apages(self, query):
            while True:
                yield [""]

    service = RetrievalService(Pages(), SETTINGS)
    start = time.perf_counter()
    with pytest.raises(RetrievalTimeoutError):
        asyncio.run(service.aretrieve("q", timeout=0.05))
    assert time.perf_counter() - start < 5


def test_a_retriever_that_is_cancelled_has_failed():
    """A cancellation that nobody asked for is no cancellation of the request."""

    class Cancelled(Fake):
        def retrieve(self, query, limit):
            raise asyncio.CancelledError

        async def aretrieve(self, query, limit):
            raise asyncio.CancelledError

    service = RetrievalService(Cancelled(), SETTINGS)
    with pytest.raises(RetrievalError, match="fake failed: CancelledError"):
        service.retrieve("q")
    with pytest.raises(RetrievalError, match="fake was cancelled"):
        asyncio.run(service.aretrieve("q"))
    assert (2, 0) == (service.stats().failed, service.stats().cancelled)


def test_a_callers_counter_does_not_hold_the_loop_up():
    """It may take any time, so that asyncio has it asked in a thread."""
    asked_in = set()

    def counter(text):
        asked_in.add(threading.current_thread())
        return len(text.split())

    service = service_of("tea", settings=LlmSettings(context_window=99, counter=counter))
    asked_in.clear()
    asyncio.run(service.aretrieve("q"))
    assert threading.main_thread() not in asked_in


@pytest.mark.parametrize("timeout", [1e10, 1e300])
def test_a_deadline_beyond_all_clocks(timeout):
    """It is as good as none."""
    service = service_of("tea")
    assert "tea" == service.retrieve("q", timeout=timeout).packing.text
    assert "tea" == asyncio.run(service.aretrieve("q", timeout=timeout)).packing.text


class FailsLate(AsyncFake):
    """Goes on after it was cancelled, for longer than is waited for it, and fails then."""

    async def aretrieve(self, query, limit):
        self.has_failed = asyncio.Event()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            await asyncio.sleep(0.7)
            self.has_failed.set()
            raise ValueError("of nobody") from None


@pytest.mark.parametrize("way", ["timeout", "cancelled", "cancelled twice"])
def test_what_fails_when_nobody_waits_is_not_reported(way):
    """The error of a coroutine that was given up is known: asyncio's log does not have it."""
    told = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        fails = FailsLate()
        timeout = 0.05 if way == "timeout" else None
        request = asyncio.ensure_future(
            RetrievalService(fails, SETTINGS).aretrieve("q", timeout=timeout)
        )
        for _ in range(way.count("cancelled") + way.count("twice")):
            await asyncio.sleep(0.05)
            request.cancel()
        await asyncio.wait([request])
        assert request.cancelled() or isinstance(request.exception(), RetrievalTimeoutError)
        await asyncio.wait_for(fails.has_failed.wait(), 20)
        del request
        await asyncio.sleep(0)
        gc.collect()  # asyncio tells of a task when it is let go of

    asyncio.run(main())
    assert [] == told


def test_without_asyncio_nothing_is_begun():
    """Under another library, such as trio, no loop of asyncio runs: the error says what to do."""
    retriever = AsyncFake("Tea.")
    service = RetrievalService([retriever, Fake("Rye.")], SETTINGS)
    with pytest.raises(BudgeteerError, match="aretrieve needs a running event loop of asyncio"):
        service.aretrieve("tea").send(None)  # as another library runs a coroutine
    assert [] == retriever.asked
    assert 0 == service.stats().requests
