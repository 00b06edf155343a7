"""What fails of OpenTelemetry costs a span, and nothing else."""

import asyncio
import logging

import numpy as np
import pytest
from service_support import SETTINGS, AsyncFake, Embedder, Fake

from budgeteer import Packer
from budgeteer.errors import InvalidArgumentError
from budgeteer.ranking import Embedding
from budgeteer.service import InputValidationError, RetrievalError, RetrievalService

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import context, trace
from opentelemetry.metrics import _internal as meters
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

SECRET = "XYZZY"
OWN = trace.NonRecordingSpan(
    trace.SpanContext(
        1, 2, is_remote=False, trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED)
    )
)
"""The program's own span, which is the current one around each test."""
CHUNKS = ["Green tea is mild.", "Rye bread is dark.", "Coffee is roasted."]


def fail(*_, **__):
    raise RuntimeError(SECRET)


class Histogram:
    record = fail


class Meters:
    """A provider of meters of which one call fails."""

    def __init__(self, failing):
        self.failing = failing
        if failing == "create_histogram":
            self.create_histogram = fail

    def get_meter(self, *_):
        if self.failing == "get_meter":
            fail()
        return self

    def create_histogram(self, *_, **__):
        return Histogram()


class Tracers:
    """A provider of tracers of which one call fails, or one of each of its spans."""

    def __init__(self, failing):
        self.failing = failing
        self.provider = TracerProvider(shutdown_on_exit=False)

    def get_tracer(self, *options):
        if self.failing == "get_tracer":
            fail()
        self.tracer = self.provider.get_tracer(*options)
        return self

    def start_span(self, *arguments, **options):
        span = self.tracer.start_span(*arguments, **options)
        setattr(span, self.failing, fail)
        return span


def processed(failing):
    """Return a provider whose processor fails when spans start, or end."""
    processor = SpanProcessor()
    setattr(processor, failing, fail)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


TRACERS = {
    **{name: lambda name=name: processed(name) for name in ("on_start", "on_end")},
    **{
        name: lambda name=name: Tracers(name)
        for name in ("get_tracer", "is_recording", "set_attributes", "set_status", "end")
    },
}
METERS = ("get_meter", "create_histogram", "record")


@pytest.fixture(params=[*TRACERS, *METERS, "attach", "detach", "getters"])
def broken(request, monkeypatch):
    """Have one call into OpenTelemetry fail, and see that the current span stays the program's."""
    failing = request.param
    attach, detach = context.attach, context.detach
    tracers = TRACERS.get(failing, lambda: TracerProvider(shutdown_on_exit=False))()
    meter = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracers)
    monkeypatch.setattr(meters, "_METER_PROVIDER", Meters(failing) if failing in METERS else meter)
    if failing == "attach":
        monkeypatch.setattr(context, "attach", fail)
    if failing == "detach":
        monkeypatch.setattr(context, "detach", lambda token: (detach(token), fail()))
    if failing == "getters":
        monkeypatch.delattr(trace, "_TRACER_PROVIDER")
        monkeypatch.delattr(meters, "_METER_PROVIDER")
        monkeypatch.setattr(trace, "get_tracer_provider", fail)
        monkeypatch.setattr(meters, "get_meter_provider", fail)
    token = attach(trace.set_span_in_context(OWN))
    yield failing
    is_kept = trace.get_current_span() is OWN
    detach(token)
    assert is_kept


def unobserved(work):
    """Return what *work* answers where nobody is told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", None, raising=False)
        patch.setattr(meters, "_METER_PROVIDER", None, raising=False)
        return work()


def both(service, query):
    """Return what a service answers, and what under asyncio, or raises."""

    async def asked():
        try:
            return await service.aretrieve(query)
        finally:
            assert trace.get_current_span() is OWN

    def answer(ask):
        try:
            return ask().packing.to_dict()
        except Exception as error:  # noqa: BLE001 - compared
            return type(error), str(error), type(error.__cause__), error.__context__

    return [answer(lambda: service.retrieve(query)), answer(lambda: asyncio.run(asked()))]


class Vectors(Embedder):
    """An embedder that nobody can ask for its model."""

    model = property(fail)

    def embed(self, texts):
        return np.array(super().embed(texts), dtype="float32")


class Reranker:
    def rerank(self, query, chunks):
        return chunks[::-1]


class Searched(Fake):
    takes_vector = True

    def retrieve(self, query, limit, *, vector):
        return super().retrieve(query, limit)


class Broken(Fake):
    def retrieve(self, query, limit):
        raise ConnectionError(query)


def test_packing(broken):
    """Packings are those that nobody observes, one by one and under asyncio."""
    for options in ({}, {"ranking": Embedding(Vectors())}):
        packer = Packer(9, **options)
        plain = unobserved(lambda packer=packer: packer.pack("tea", CHUNKS))
        for _ in range(2):
            assert plain.to_dict() == packer.pack("tea", CHUNKS).to_dict()
    assert plain.text == next(packer.pack_batch([("tea", CHUNKS)])).text
    assert "" != asyncio.run(Packer(9).apack("tea", CHUNKS)).text
    with pytest.raises(InvalidArgumentError, match="chunks"):
        Packer(9).pack("tea", [3])


@pytest.mark.parametrize("timeout", [None, 60])
def test_service(broken, timeout):
    """A service answers as it does unobserved, with each of its stages."""
    service = RetrievalService(
        *([Searched(*CHUNKS), Fake("Tea.")], SETTINGS),
        reranker=Reranker(),
        embedder=Vectors(),
        timeout=timeout,
    )
    plain = unobserved(lambda: both(service, "tea"))

    assert [dict, dict] == [type(answer) for answer in plain]
    assert plain == both(service, "tea")
    assert 4 == service.stats().answered


@pytest.mark.parametrize(
    ("retriever", "query", "error"),
    [
        (Broken(), "tea", RetrievalError),
        (Fake(object()), "tea", RetrievalError),
        (Fake(), "tea " * 9_000, InputValidationError),
    ],
    ids=["retriever", "chunks", "query"],
)
def test_errors(broken, retriever, query, error):
    """Who asks gets the error that there was, with its own cause, not another."""
    service = RetrievalService(retriever, SETTINGS)
    plain = unobserved(lambda: both(service, query))
    told = both(service, query)

    assert [error] * 2 == [found[0] for found in told]
    assert [found[:3] for found in plain] == [found[:3] for found in told]
    assert not any(isinstance(found[3], RuntimeError) for found in told)


def test_cancellation(broken):
    """A task that was cancelled says so."""

    class Slow(AsyncFake):
        async def aretrieve(self, query, limit):
            await asyncio.sleep(60)

    async def cancelled():
        task = asyncio.create_task(RetrievalService(Slow(), SETTINGS).aretrieve("tea"))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())


def test_what_fails_is_logged_by_its_type(broken, caplog):
    """One debug line for each call that failed, without the message."""
    caplog.set_level(logging.DEBUG, logger="budgeteer")
    with pytest.raises(InvalidArgumentError):
        Packer(9).pack("tea", [3])

    lines = [record for record in caplog.records if record.name == "budgeteer"]
    assert {"telemetry failed: RuntimeError"} == {record.getMessage() for record in lines}
    assert SECRET not in caplog.text


@pytest.mark.parametrize("stop", [KeyboardInterrupt, asyncio.CancelledError])
def test_what_stops_a_program_passes(monkeypatch, stop):
    """Only errors are kept away."""

    def interrupt(*_, **__):
        raise stop

    provider = processed("on_start")
    provider._active_span_processor.on_start = interrupt
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    with pytest.raises(stop):
        Packer(9).pack("tea", CHUNKS)
