"""How the providers of OpenTelemetry are found, whichever of them there are."""

import sys

import pytest
from service_support import SETTINGS, Fake

from budgeteer import Packer, _telemetry
from budgeteer.service import RetrievalService

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import metrics, trace
from opentelemetry.metrics import _internal as meters
from opentelemetry.sdk.trace import sampling
from telemetry_support import CHUNKS, Told


def test_sampled_out(monkeypatch):
    """What is not sampled is measured all the same, and is still the parent of what is inside."""
    told = Told(monkeypatch, sampling.ALWAYS_OFF)
    seen = []

    class Looking(Fake):
        def retrieve(self, query, limit):
            seen.append(trace.get_current_span().get_span_context())
            return super().retrieve(query, limit)

    RetrievalService(Looking("Tea."), SETTINGS).retrieve("tea")
    assert () == told.spans.get_finished_spans()
    assert seen[0].is_valid
    assert not seen[0].trace_flags.sampled
    assert 1 == len(told.points("budgeteer.pack.duration"))


@pytest.mark.parametrize("signal", ["traces", "metrics"])
def test_one_signal_alone(told, monkeypatch, signal):
    """Either provider may be missing."""
    if signal == "traces":
        monkeypatch.setattr(meters, "_METER_PROVIDER", None)
    else:
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    RetrievalService(Fake("Tea."), SETTINGS).retrieve("tea")

    assert (3 if signal == "traces" else 0) == len(told.spans.get_finished_spans())
    if signal == "metrics":
        assert 1 == len(told.points("budgeteer.retrieve.duration"))


def test_no_provider(monkeypatch):
    """Without a provider nobody is told, whether OpenTelemetry is there or not."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(meters, "_METER_PROVIDER", None)
    assert _telemetry.observer() is None
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", trace.NoOpTracerProvider())
    monkeypatch.setattr(meters, "_METER_PROVIDER", metrics.NoOpMeterProvider())
    assert _telemetry.observer() is None
    for name in ("opentelemetry.trace", "opentelemetry.metrics._internal"):
        monkeypatch.delitem(sys.modules, name)
    assert _telemetry.observer() is None


def test_the_names_that_are_looked_at():
    """OpenTelemetry still keeps its providers where they are looked for."""
    for module, variable, getter in (_telemetry._TRACE, _telemetry._METRICS):
        assert {variable, getter} <= {*vars(sys.modules[module])}


def test_another_version_of_the_api(told, monkeypatch):
    """Where the providers are kept elsewhere they are asked for; advice may be unknown."""
    tracer = told.provider.get_tracer("budgeteer")

    class Tracers:
        def get_tracer(self, name, version=None):
            return tracer

    class Meter:
        def create_histogram(self, name, unit="", description=""):
            return self

        def record(self, value, labels):
            recorded.append(value)

    class Meters:
        def get_meter(self, name, version=None):
            return Meter()

    recorded = []
    for module, variable, getter, provider in (
        (trace, "_TRACER_PROVIDER", "get_tracer_provider", Tracers()),
        (meters, "_METER_PROVIDER", "get_meter_provider", Meters()),
    ):
        monkeypatch.delattr(module, variable)
        monkeypatch.setattr(module, getter, lambda provider=provider: provider)
    packing = Packer(9).pack("tea", CHUNKS)
    assert told.only("budgeteer.pack")
    assert packing.total_tokens in recorded
    # As it is while another thread imports it.
    monkeypatch.delattr(trace, "get_tracer_provider")
    monkeypatch.delattr(meters, "get_meter_provider")
    assert _telemetry.observer() is None
