"""Fixtures of this room."""

import logging

import pytest

from budgeteer import _telemetry


@pytest.fixture
def told(monkeypatch):
    """What a program is told that has set providers, and has not asked for texts."""
    from telemetry_support import Told  # needs opentelemetry-sdk

    monkeypatch.delenv(_telemetry.CONTENT, raising=False)
    return Told(monkeypatch)


@pytest.fixture
def log(caplog):
    """What is logged, with what hangs on the records."""
    caplog.set_level(logging.DEBUG)

    def log():
        records = [record for record in caplog.records if record.name.startswith("budgeteer")]
        return "\n".join(f"{record.getMessage()} {vars(record)!r}" for record in records)

    return log


@pytest.fixture
def spans(monkeypatch):
    """All that would leave the process by OpenTelemetry."""
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
    from telemetry_support import Told

    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    told = Told(monkeypatch)

    def spans():
        data = told.reader.get_metrics_data()
        spans = [span.to_json() for span in told.spans.get_finished_spans()]
        return "".join(spans) + (data.to_json() if data else "")

    return spans
