"""Backends, Hypothesis profiles, markers and fixtures of the whole suite."""

import contextlib
import io
import logging
import os
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# For what tests share, under every import mode.
sys.path.extend(
    str(path)
    for path in (Path(__file__).parent, *Path(__file__).parent.iterdir())
    if path.is_dir()
)

import embedding_server
import vocabulary as vocabularies
from support import BACKENDS, FACADES, using

# No test finds the tokenizers of the machine that it runs on.
os.environ.pop("BUDGETEER_TOKENIZERS", None)
os.environ["HF_HUB_CACHE"] = os.devnull

settings.register_profile("default", max_examples=100, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("release", max_examples=400, deadline=None)
settings.register_profile("thorough", max_examples=5_000, deadline=None)
settings.register_profile(  # for scripts/mutants.py, which asks only whether a test fails
    "mutants",
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


def pytest_configure(config):
    """Register the markers, for strict ones."""
    config.addinivalue_line("markers", "slow: takes seconds")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes():
    """Write the folder of vocabularies before there are processes that look for it."""
    vocabularies.cache_dir()


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Run the test on each backend; the value is the backend's module."""
    with using(request.param) as module:
        yield module


@pytest.fixture
def native():
    """Run the test on the native backend; the value is its module."""
    with using("native") as module:
        yield module


@pytest.fixture(scope="session", autouse=True)
def _programs_are_not_measured():
    """Coverage is of the tests' processes: a program that they start must stay small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_START", raising=False)
        yield


@pytest.fixture(autouse=True)
def _same_backend_behind():
    """No test leaves another backend behind than it found."""
    before = [module.backend for module in FACADES]
    yield
    assert before == [module.backend for module in FACADES]


@pytest.fixture(scope="session", autouse=True)
def vocabulary():
    """
    tiktoken finds its two large vocabularies without a network; the value is their folder.

    The reference counts with tiktoken, and Packer's default is exact.
    """
    folder = vocabularies.cache_dir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def configured(tmp_path):
    """Write files and a configuration beside them, and load it."""

    jsonschema = pytest.importorskip("jsonschema")
    from budgeteer.config import document_of, json_schema, load

    schema = json_schema()
    embedders = contextlib.ExitStack()

    def configured(text, **files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path = tmp_path / "budgeteer.yaml"
        path.write_text(text, encoding="utf-8")
        config = load(path)
        jsonschema.validate(document_of(text), schema)  # what is read, the schema takes
        if config.embedder is not None:
            embedders.callback(config.embedder.close)
        return config

    with embedders:
        yield configured


@pytest.fixture
def endpoint():
    """An embedding endpoint on loopback."""
    with embedding_server.Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def embedder(endpoint, monkeypatch):
    """An embedder of that endpoint, with a key."""
    from budgeteer.embedding import OpenAIEmbedder

    monkeypatch.setenv("OPENAI_API_KEY", embedding_server.KEY)
    with OpenAIEmbedder(url=endpoint.url, backoff=0.001) as embedder:
        yield embedder


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


class Stdin:
    """Standard input that holds some bytes."""

    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line with some input; return status, output and errors."""

    from budgeteer.cli import main

    def run(*arguments, stdin=None):
        if stdin is not None:
            data = stdin if isinstance(stdin, bytes) else stdin.encode()
            monkeypatch.setattr(sys, "stdin", Stdin(data))
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def refused(run):
    """Run what must fail; return the message, which is one line, with nothing written."""

    def refused(*arguments, stdin=None):
        status, out, err = run(*arguments, stdin=stdin)
        assert (2, "") == (status, out)
        assert err.startswith("budgeteer: error: ")
        assert err.endswith("\n")
        assert 1 == len(err.splitlines())
        return err.removeprefix("budgeteer: error: ").removesuffix("\n")

    return refused
