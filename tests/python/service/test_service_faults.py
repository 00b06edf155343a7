"""RetrievalService when something fails, is slow, or answers oddly; and under asyncio."""

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from service_support import SETTINGS, AsyncFake, Embedder, Fake, service_of

from budgeteer import BudgeteerError, Chunk, CounterError, InvalidArgumentError, Packer
from budgeteer.presets import context_router
from budgeteer.service import (
    InputValidationError,
    LlmSettings,
    RetrievalError,
    RetrievalService,
    RetrievalTimeoutError,
)


class Failing(Fake):
    def retrieve(self, query, limit):
        raise OSError("https://user:secret@vectors.example")


class Slow(Fake):
    def __init__(self, *chunks, until=None):
        super().__init__(*chunks)
        self.until = until or threading.Event()

    def retrieve(self, query, limit):
        self.until.wait(20)
        return self.chunks


class AsyncSlow(AsyncFake):
    was_cancelled = False

    async def aretrieve(self, query, limit):
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


def both(service, query="q"):
    """Answer by each way, as a result or an error; they must agree."""
    outcomes = []
    for way in (
        lambda: service.retrieve(query),
        lambda: service.retrieve(query, timeout=30),
        lambda: asyncio.run(service.aretrieve(query)),
    ):
        try:
            outcomes.append(way())
        except BudgeteerError as error:  # noqa: PERF203
            outcomes.append(error)
    assert len({type(outcome) for outcome in outcomes}) == 1
    if isinstance(outcomes[0], Exception):
        assert len({str(outcome) for outcome in outcomes}) == 1
    else:
        assert outcomes[0].to_dict() == outcomes[1].to_dict() == outcomes[2].to_dict()
    return outcomes[0]


def test_given_a_retriever_that_raises_when_retrieving_then_the_error_names_it():
    """The error names the retriever, keeps the cause, and tells no secret."""
    error = both(RetrievalService([Fake("a"), Failing()], SETTINGS))

    assert (RetrievalError, "fake") == (type(error), error.source)
    assert "fake failed: OSError" == str(error)
    assert isinstance(error.__cause__, OSError)


def test_given_an_async_retriever_that_raises_when_retrieving_then_the_error_names_it():
    """So does that of a coroutine; the other retriever is cancelled."""

    class Broken(AsyncFake):
        name = "broken"

        async def aretrieve(self, query, limit):
            raise KeyError("x")

    slow = AsyncSlow()
    with pytest.raises(RetrievalError, match="broken failed: KeyError") as caught:
        asyncio.run(RetrievalService([slow, Broken()], SETTINGS).aretrieve("q"))
    assert isinstance(caught.value.__cause__, KeyError)
    assert slow.was_cancelled


def test_given_several_that_raise_then_the_first_is_named():
    """Of several errors that of the first retriever is raised."""

    class Named(Failing):
        def __init__(self, name):
            super().__init__()
            self.name = name

    error = both(RetrievalService([Fake(), Named("one"), Named("two")], SETTINGS))

    assert "one" == error.source


@pytest.mark.parametrize(
    "found", [None, 3, "text", b"bytes", {"text": "one"}, {"one"}, frozenset()]
)
def test_given_an_answer_that_is_no_sequence_then_the_error_names_the_retriever(found):
    """An answer that is no batch of chunks is an error."""

    class Odd(Fake):
        def retrieve(self, query, limit):
            return found

    error = both(RetrievalService(Odd(), SETTINGS))

    assert RetrievalError is type(error)
    assert "fake must answer a sequence of chunks, not " in str(error)
    is_set = isinstance(found, (set, frozenset))
    assert is_set == ("whose order differs between processes: answer a list" in str(error))


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"title": "no text"}, r"chunks\[1\] must have a key 'text', 'content' or 'page_content'"),
        (3, r"chunks\[1\] must be a str, a mapping with 'text', 'content' or 'page_content', or"),
        ({"text": None}, r"chunks\[1\].text must be a str, not None"),
        ({"text": "a", "score": float("nan")}, r"chunks\[1\].score must be a number, not NaN"),
    ],
)
def test_given_a_chunk_without_a_text_then_the_error_names_retriever_and_place(chunk, message):
    """A chunk that cannot be packed is the retriever's fault, and its place there is named."""
    bad = Fake({"text": "a", "score": 1.0}, chunk)
    bad.name = "bad"
    error = both(RetrievalService([Fake({"text": "b", "score": 1}), bad], SETTINGS))

    assert (RetrievalError, "bad") == (type(error), error.source)
    with pytest.raises(RetrievalError, match=f"bad answered what cannot be packed: {message}"):
        raise error


def test_given_a_packer_that_an_estimate_would_not_do_then_the_retriever_is_blamed():
    """What is wrong with a chunk is found by the caller's packer, whatever counter it needs."""
    bad = Fake({"title": "no text"})
    bad.name = "bad"
    packer = replace(context_router(), counter="o200k_base", max_chunks=3)
    error = both(RetrievalService(bad, SETTINGS, packer=packer))

    assert (RetrievalError, "bad") == (type(error), error.source)


def test_given_pages_with_a_chunk_without_a_text_then_the_error_names_the_retriever():
    """So it is where chunks come in pages."""

    class Paged(Fake):
        def pages(self, query):
            yield [{"text": "a"}]
            yield [object()]

    error = both(RetrievalService(Paged(), SETTINGS))

    assert (RetrievalError, "fake") == (type(error), error.source)


@pytest.mark.parametrize(
    "answer", [None, "text", 3, lambda chunks: chunks[5]], ids=["None", "text", "int", "raises"]
)
def test_given_a_reranker_that_fails_then_the_error_names_it(answer):
    """A reranker's failure is an error that names it."""

    class Reranker:
        def rerank(self, query, chunks):
            return answer(chunks) if callable(answer) else answer

    error = both(service_of("a", reranker=Reranker()))

    assert (RetrievalError, "Reranker") == (type(error), error.source)


def test_given_an_embedder_that_fails_then_the_error_names_it():
    """An embedder's failure is an error that names it."""

    class Broken(Embedder):
        def embed_query(self, text):
            raise RuntimeError(text)

    retriever = Fake("a")
    retriever.takes_vector = True
    error = both(RetrievalService(retriever, SETTINGS, embedder=Broken()))

    assert ("Broken failed: RuntimeError", []) == (str(error), retriever.asked)


def test_given_duplicates_then_the_packer_decides():
    """The document keeps them; a packer with dedupe drops them."""
    from budgeteer import Packer

    chunks = ["tea", "tea", "rye"]

    assert "tea\n\ntea\n\nrye" == both(service_of(*chunks)).packing.text
    packing = both(service_of(*chunks, packer=Packer(99, ranking="input"))).packing
    assert "tea\n\nrye" == packing.text


def test_given_empty_texts_then_they_are_dropped_as_empty_or_cost_nothing():
    """An empty text is no error."""
    packing = both(service_of("", "tea", "")).packing

    assert "tea" == packing.text
    assert ["empty"] * 2 == [dropped.reason for dropped in packing.dropped]


def test_given_nothing_then_the_packing_is_empty():
    """Nothing found is a packing without text."""
    assert "" == both(service_of()).packing.text


@pytest.mark.slow
def test_given_100_000_chunks_then_the_top_fit():
    """A hundred thousand chunks are packed, and the figures add up."""
    chunks = [Chunk(f"{i} green tea", score=float(i % 1_000)) for i in range(100_000)]
    result = both(service_of(*chunks, limit=100_000))

    assert 100_000 == len(result.packing.kept) + result.packing.dropped_count
    assert 999.0 == result.packing.kept[0].score
    assert result.tokens.input + result.tokens.output <= 4096


def test_given_more_chunks_than_the_limit_then_a_generator_is_read_whole():
    """What a retriever answers is packed, however it is held."""

    class Generator(Fake):
        def retrieve(self, query, limit):
            yield from ["a", "b"]

    assert "a\n\nb" == both(RetrievalService(Generator(), SETTINGS)).packing.text


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


def test_a_counter_that_fails():
    """What a caller's counter raises passes as it is."""

    def counter(text):
        return -1 if text == "bad" else len(text)

    class Paged(Fake):
        def pages(self, query):
            yield self.chunks

    settings = LlmSettings(context_window=900, counter=counter)
    assert isinstance(both(RetrievalService(Fake("bad"), settings)), CounterError)
    assert isinstance(both(RetrievalService(Paged("bad"), settings)), CounterError)


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


def test_a_counter_that_fails_is_not_the_retrievers_fault():
    """What a counter raises passes unchanged, with pages too; a retriever's own does not."""

    class Paged(Fake):
        def pages(self, query):
            yield ["tea", "bad"]

    def counter(text):
        if "bad" in text:
            raise ZeroDivisionError("the counter's own")
        return len(text.split())

    settings = LlmSettings(context_window=99, max_output_tokens=0, counter=counter)
    for retriever in (Paged(), Fake("tea", "bad")):
        with pytest.raises(ZeroDivisionError, match="the counter's own"):
            RetrievalService(retriever, settings).retrieve("q")

    class Counting(Fake):
        def retrieve(self, query, limit):
            raise CounterError("of a packer of its own")

    with pytest.raises(RetrievalError, match="fake failed: of a packer of its own"):
        RetrievalService(Counting(), SETTINGS).retrieve("q")


def test_a_chunk_that_raises_when_it_is_read_names_the_retriever():
    """What a property of a chunk raises is its cause, and is not quoted."""

    class Row:
        @property
        def text(self):
            raise OSError("postgres://user:secret@host")

    for retriever in (Fake(Row()), Fake("tea", Row())):
        with pytest.raises(RetrievalError) as caught:
            RetrievalService(retriever, SETTINGS).retrieve("q")
        assert "fake answered what cannot be packed: OSError" == str(caught.value)
        assert isinstance(caught.value.__cause__, OSError)


def test_components_that_are_coroutines_under_other_names():
    """``async def rerank`` and ``async def embed_query`` are awaited, and told apart without."""

    class Reversing:
        async def rerank(self, query, chunks):
            return chunks[::-1]

    class Searching(Fake):
        takes_vector = True

        def retrieve(self, query, limit, *, vector):
            return super().retrieve(query, limit)

    class Embedding:
        async def embed_query(self, text):
            return [1.0]

    service = service_of("a", "b", reranker=Reversing())
    assert "b\n\na" == asyncio.run(service.aretrieve("q")).packing.text
    with pytest.raises(RetrievalError, match="Reversing must answer a sequence of chunks, not c"):
        service.retrieve("q")
    service = RetrievalService(Searching("a"), SETTINGS, embedder=Embedding())
    assert "a" == asyncio.run(service.aretrieve("q")).packing.text
    with pytest.raises(RetrievalError, match="Embedding must answer a vector, not coroutine"):
        service.retrieve("q")


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


def test_messages_of_a_builder():
    """They may be of any sequence, and what is wrong with them names the builder."""

    def generated(prompt, context, query):
        yield {"role": "user", "content": context + query}

    assert (
        "teaq" == service_of("tea", message_builder=generated).retrieve("q").messages[0]["content"]
    )
    for answer, message in [
        ("tea", "the messages of message_builder must be a sequence, not str"),
        ([{"content": "tea"}], "message_builder: messages[0]"),
    ]:
        with pytest.raises(InvalidArgumentError) as caught:
            service_of("tea", message_builder=lambda *_, answer=answer: answer).retrieve("q")
        assert str(caught.value).startswith(message)


def test_a_counter_that_changes_its_mind():
    """Messages that are over whatever is left out of them are an error, and no answer."""
    more = 0

    class Changing(Fake):
        def retrieve(self, query, limit):
            nonlocal more
            more = 500
            return super().retrieve(query, limit)

    def counter(text):
        return len(text) + more

    settings = LlmSettings(context_window=100, max_output_tokens=0, counter=counter)
    with pytest.raises(InvalidArgumentError, match=r"count \d+ tokens without a context, and 100"):
        RetrievalService(Changing("tea", "rye"), settings).retrieve("q")


@pytest.mark.parametrize("timeout", [1e10, 1e300])
def test_a_deadline_beyond_all_clocks(timeout):
    """It is as good as none."""
    service = service_of("tea")
    assert "tea" == service.retrieve("q", timeout=timeout).packing.text
    assert "tea" == asyncio.run(service.aretrieve("q", timeout=timeout)).packing.text


def test_a_packer_without_room_is_refused_before_anyone_is_asked():
    """A reserve that takes all of it is what leaves nothing."""
    retriever = Fake("tea")
    packer = Packer(1_000, reserve_tokens=1_000)
    with pytest.raises(InputValidationError) as caught:
        RetrievalService(retriever, SETTINGS, packer=packer).retrieve("q")
    assert "nothing is left for retrieval: max_tokens 1000 - reserve_tokens 1000 = 0" == str(
        caught.value
    )
    assert [] == retriever.asked
