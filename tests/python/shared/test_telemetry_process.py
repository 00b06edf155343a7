"""What a process is told of packings, however OpenTelemetry comes to it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert ("", 0) == (done.stderr, done.returncode)
    return done.stdout.split()


def test_without_opentelemetry():
    """Nothing imports it, and nothing misses it where it cannot be imported."""
    code = """
import asyncio
from budgeteer import Packer
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService
service = RetrievalService(ChunkRetriever(["tea"]), LlmSettings(model="gpt-4"))
print(Packer(3).pack("tea", ["tea"]).text, service.retrieve("tea").packing.text)
print(asyncio.run(Packer(3).apack("tea", ["tea"])).text)
print(sum(name.startswith("opentelemetry") for name in sys.modules))
"""
    assert ["tea", "tea", "tea", "0"] == run("import sys" + code)
    blocked = "import sys; sys.modules['opentelemetry'] = None" + code
    assert ["tea", "tea", "tea", "1"] == run(blocked)
    assert ["tea", "tea", "tea", "1"] == run(blocked, OTEL_PYTHON_TRACER_PROVIDER="sdk")


SETTING = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
"""


def test_a_provider_that_is_set_later():
    """A program may set its provider whenever it likes: spans appear from then on."""
    code = f"""
import budgeteer
budgeteer.pack("tea", ["tea"], 3)
{SETTING}
budgeteer.pack("tea", ["tea"], 3)
trace.set_tracer_provider(provider)
budgeteer.pack("tea", ["tea"], 3)
print(len(exporter.get_finished_spans()))
"""
    assert ["1"] == run(code)


def test_a_disabled_sdk():
    """OTEL_SDK_DISABLED leaves nobody to tell."""
    code = f"""
{SETTING}
trace.set_tracer_provider(provider)
from budgeteer import _telemetry
print(_telemetry.observer())
"""
    assert ["None"] == run(code, OTEL_SDK_DISABLED="true")


def test_a_provider_of_the_environment():
    """A provider that only the environment names is loaded, as OpenTelemetry would."""
    code = "from budgeteer import _telemetry; print(_telemetry.observer() is not None)"

    assert ["False"] == run(code)
    assert ["True"] == run(code, OTEL_PYTHON_TRACER_PROVIDER="sdk_tracer_provider")
    assert ["True"] == run(code, OTEL_PYTHON_METER_PROVIDER="sdk_meter_provider")


def test_a_provider_that_cannot_be_loaded():
    """A wrong name in the environment costs no packing."""
    code = (
        "import budgeteer, logging; logging.disable()\n"
        "print(budgeteer.pack('tea', ['tea'], 3).text, budgeteer._telemetry.observer())"
    )

    assert ["tea", "None"] == run(code, OTEL_PYTHON_TRACER_PROVIDER="nobody")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_process(tmp_path):
    """A process that was forked after packing packs, and tells what it does."""
    code = f"""
import os, budgeteer
{SETTING}
trace.set_tracer_provider(provider)
budgeteer.pack("tea", ["tea"], 3)
child = os.fork()
budgeteer.pack("tea", ["tea"], 3)
if not child:
    os._exit(len(exporter.get_finished_spans()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(exporter.get_finished_spans()))
"""
    assert ["2", "2"] == run(code)
