"""What is told to OpenTelemetry, and what never is."""

import asyncio
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from service_support import SETTINGS, Fake

from budgeteer import Corpus, Packer, _telemetry, pack, pack_table
from budgeteer.errors import CounterError, EmbeddingError, InvalidArgumentError
from budgeteer.ranking import Embedding
from budgeteer.service import LlmSettings, RetrievalError, RetrievalService

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from telemetry_support import (
    CHUNKS,
    SECRET,
    Broken,
    Reranker,
    Searched,
    Told,
    Vectors,
    failed_with,
)


def test_given_packing_when_traced_then_the_span_has_the_figures(backend, told):
    """A span has the figures of its packing; nothing of it is a text."""
    packer = Packer(12, reserve_tokens=1, overflow="truncate_end")
    packing = packer.pack("green tea", CHUNKS)

    span = told.only("budgeteer.pack")
    assert {
        "tokens.retrieved": packing.total_tokens,
        "tokens.budget_remaining": 11 - packing.total_tokens,
        "budgeteer.budget": 11,
        "budgeteer.kept": len(packing.kept),
        "budgeteer.dropped": packing.dropped_count,
        "budgeteer.truncated": True,
        "budgeteer.is_exact": True,
        "budgeteer.counter": "o200k_base",
        "budgeteer.ranking": "lexical",
    } == dict(span.attributes)
    assert 0 < packing.dropped_count
    assert trace.SpanKind.INTERNAL is span.kind
    assert trace.StatusCode.UNSET is span.status.status_code
    assert "budgeteer" == span.instrumentation_scope.name


@pytest.mark.parametrize("of", ["lists", "a function", "a corpus", "an embedder"])
def test_the_rows_of_a_table_have_no_span(backend, told, of):
    """A table is no packing, though its rows are packed one by one for a function or a corpus."""
    pa = pytest.importorskip("pyarrow")
    options = {
        "lists": {},
        "a function": {"counter": len},
        "a corpus": {"chunks": Corpus(["Tea."])},
        "an embedder": {"ranking": Embedding(Vectors())},
    }[of]
    table = pa.table({"query": ["tea"], "chunks": [["Tea."]]})
    packed = pa.table(pack_table(table, 9, **options))

    assert ["Tea."] == packed["text"].to_pylist()
    assert [] == told.named("budgeteer.pack")
    assert told.reader.get_metrics_data() is None


def test_packings_are_those_without_a_tracer(backend, monkeypatch):
    """Nobody packs otherwise because somebody looks."""
    batches = [[], CHUNKS, [{"text": "Tea."}, "", "Tea."], ["tea " * 40, {"content": "Rye."}]]

    def packed():
        return [Packer(20, notice=True).pack("tea", batch).to_dict() for batch in batches]

    plain = packed()
    Told(monkeypatch)
    assert plain == packed()


def test_nothing_is_counted_for_a_span(told, monkeypatch):
    """A caller's counter is asked as often as without a span, also with content captured."""
    asked = []

    def count(text):
        asked.append(text)
        return len(text)

    monkeypatch.setenv(_telemetry.CONTENT, "true")
    packing = Packer(40, counter=count).pack("tea", CHUNKS)
    observed = asked.copy()
    asked.clear()
    Packer(40, counter=count)._pack("tea", CHUNKS, None, None, None, None, releases=False)
    assert asked == observed
    assert "dropped_total_tokens" not in vars(packing)
    assert "count" == told.only("budgeteer.pack").attributes["budgeteer.counter"]


def test_histograms(told):
    """Durations are seconds and tokens tokens, with labels of few values."""
    Packer(9).pack("tea", CHUNKS)
    packing = Packer(9, ranking="keyword").pack("tea", CHUNKS)
    with pytest.raises(InvalidArgumentError):
        Packer(9).pack("tea", [3])

    data = told.reader.get_metrics_data().resource_metrics[0].scope_metrics[0]
    units = {metric.name: metric.unit for metric in data.metrics}
    assert {"budgeteer.pack.duration": "s", "budgeteer.pack.tokens": "{token}"} == units
    by_ranking = {"budgeteer.counter": "o200k_base", "budgeteer.ranking": "keyword"}
    assert (by_ranking, packing.total_tokens) in told.points("budgeteer.pack.tokens")
    durations = told.points("budgeteer.pack.duration")
    assert all(0 < seconds < 60 for _, seconds in durations)
    failed = {**by_ranking, "budgeteer.ranking": "lexical", "error.type": "InvalidArgumentError"}
    assert failed in [labels for labels, _ in durations]
    bounds = {metric.name: metric.data.data_points[0].explicit_bounds for metric in data.metrics}
    assert 1e-5 == bounds["budgeteer.pack.duration"][0]
    assert 4.0**12 == bounds["budgeteer.pack.tokens"][-1]


def test_the_names_of_counters(told, tmp_path):
    """A callable's name is cut, and no path of a file is told."""
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")

    def count(text):
        return len(text)

    count.__name__ = "x" * 9_000 + "\ud800"
    content = {
        "model": {"type": "WordLevel", "vocab": {"tea": 0, "?": 1}, "unk_token": "?"},
        "pre_tokenizer": {"type": "Whitespace"},
    }
    file = tmp_path / SECRET
    file.write_text(json.dumps(content), "utf-8")
    for counter in (count, f"hf:{file}", "chars_per_token:3"):
        Packer(9, counter=counter).pack("tea", CHUNKS)

    names = ["x" * 255, "hf", "chars_per_token:3"]
    spans = told.named("budgeteer.pack")
    assert names == [span.attributes["budgeteer.counter"] for span in spans]
    for histogram in ("budgeteer.pack.duration", "budgeteer.pack.tokens"):
        labels = [labels["budgeteer.counter"] for labels, _ in told.points(histogram)]
        assert sorted(names) == sorted(labels)
    assert SECRET not in told.everything()


def test_each_of_a_batch_has_a_span(told):
    """What pack_batch yields is observed one by one, and nothing stays open between."""
    for number, _ in enumerate(Packer(9).pack_batch([("tea", CHUNKS)] * 3), 1):
        assert number == len(told.named("budgeteer.pack"))
        assert not trace.get_current_span().is_recording()


def test_the_callers_span_is_the_parent(told):
    """Of threads and tasks at once each packing belongs to the span around it."""
    tracer = told.provider.get_tracer("program")

    def work(name):
        with tracer.start_as_current_span(name):
            pack("tea", CHUNKS, 9)

    async def awork(name):
        with tracer.start_as_current_span(name):
            await asyncio.sleep(0)
            await Packer(9).apack("tea", CHUNKS)

    async def all_at_once():
        await asyncio.gather(*(awork(f"task {i}") for i in range(50)))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, [f"thread {i}" for i in range(50)]))
    asyncio.run(all_at_once())
    spans = told.spans.get_finished_spans()
    parents = {span.context.span_id for span in spans if span.name != "budgeteer.pack"}
    found = [span.parent.span_id for span in spans if span.name == "budgeteer.pack"]
    assert (100, parents) == (len(found), set(found))


@pytest.mark.parametrize("is_async", [False, True])
def test_embedding_is_a_stage(backend, told, is_async):
    """What an embedder takes is a child, with its model; a fallback is told."""
    packer = Packer(9, ranking=Embedding(Vectors(), fallback="bm25"))

    def run():
        if is_async:
            asyncio.run(packer.apack("tea", CHUNKS))
        else:
            packer.pack("tea", CHUNKS)
        return told.named("budgeteer.pack")[-1], told.named("budgeteer.embed")[-1]

    packed, embedded = run()
    assert packed.context.span_id == embedded.parent.span_id
    figures = {"gen_ai.request.model": "text-embedding-3-small", "budgeteer.texts": 5}
    assert figures == dict(embedded.attributes)
    assert "budgeteer.fallback" not in packed.attributes

    packer.ranking.embedder.is_broken = True
    packed, embedded = run()
    assert failed_with(embedded, "EmbeddingError")
    assert "bm25" == packed.attributes["budgeteer.fallback"]
    assert trace.StatusCode.UNSET is packed.status.status_code


def of_secrets(told):
    """Do all that there is with texts that are secret."""
    chunks = [{"text": f"{SECRET} tea", "title": SECRET, "id": SECRET, "source": SECRET}] * 2

    def count(text):
        if "raise" in text:
            raise ValueError(text)
        return len(text)

    for options in ({}, {"counter": count}, {"template": "xml"}, {"overflow": "truncate_end"}):
        Packer(30, **options).pack(SECRET, chunks)
    with pytest.raises(ValueError, match="raise"):
        Packer(30, counter=count).pack(SECRET, [f"{SECRET} raise"])
    with pytest.raises(CounterError):
        Packer(30, counter=lambda _: -1).pack(SECRET, chunks)
    broken = Vectors()
    broken.is_broken, broken.api_key = True, SECRET
    with pytest.raises(EmbeddingError):
        Packer(30, ranking=Embedding(broken)).pack(SECRET, chunks)
    service = RetrievalService(
        [Fake(*chunks), Searched(*chunks)],
        SETTINGS,
        system_prompt=SECRET,
        reranker=Reranker(),
        embedder=Vectors(),
    )
    service.retrieve(SECRET)
    asyncio.run(service.aretrieve(SECRET))
    with pytest.raises(RetrievalError):
        RetrievalService(Broken(), SETTINGS).retrieve(SECRET)
    return told.everything()


def test_no_text_no_query_no_key_is_told(told):
    """Nothing of texts, titles, queries, prompts, keys and messages leaves the process."""
    everything = of_secrets(told)

    assert len(told.spans.get_finished_spans()) > 15
    assert SECRET not in everything


@pytest.mark.parametrize(
    ("value", "is_told"),
    [("true", True), ("SPAN_ONLY", True), (" span_and_event", True), ("TRUE", True)]
    + [(value, False) for value in ("", "false", "0", "NO_CONTENT", "EVENT_ONLY", "yes")],
)
def test_content_is_told_to_who_asks(told, monkeypatch, value, is_told):
    """The variable of OpenTelemetry's GenAI instrumentations has query and text told in spans."""
    monkeypatch.setenv(_telemetry.CONTENT, value)
    RetrievalService(Fake("Green tea."), SETTINGS).retrieve("Which tea?")

    packed = told.only("budgeteer.pack").attributes
    told_query = told.only("retrieval fake").attributes.get("gen_ai.retrieval.query.text")
    expected = ("Which tea?", "Green tea.", "Which tea?") if is_told else (None,) * 3
    assert expected == (packed.get("budgeteer.query"), packed.get("budgeteer.text"), told_query)
    assert "tea" not in told.reader.get_metrics_data().to_json()


def test_lone_surrogates_do_not_lose_a_batch(told, monkeypatch):
    """What UTF-8 cannot hold is replaced: an exporter would lose all that it sends with it."""
    monkeypatch.setenv(_telemetry.CONTENT, "true")
    retriever = Fake("tea \ud800")
    retriever.name = "s\udfff"
    RetrievalService(retriever, SETTINGS).retrieve("q\udc00")

    told.everything().encode()
    assert "tea ?" == told.only("budgeteer.pack").attributes["budgeteer.text"]
    assert told.only("retrieval s?")


def test_warnings_have_figures(caplog):
    """What is logged has its figures beside the message."""
    packer = Packer(9, ranking=Embedding(Vectors(), fallback="bm25"))
    packer.ranking.embedder.is_broken = True
    packer.pack(SECRET, CHUNKS)
    LlmSettings(model="nobody-knows-this")
    RetrievalService(Fake(*CHUNKS * 99), LlmSettings(context_window=400)).retrieve("tea")

    fallback, unknown, dropped = caplog.records
    assert {
        "fallback": "bm25",
        "chunks": 4,
        "http.status": None,
        "is_retryable": False,
    }.items() <= (vars(fallback).items())
    assert ("nobody-knows-this", 32_768) == (unknown.model, unknown.context_window)
    assert dropped.levelname == "WARNING"
    assert vars(dropped)["chunks.dropped"] > 300
    assert {"budgeteer"} == {record.name for record in caplog.records}


def test_results_stay_picklable(told):
    """A packing holds nothing of its span."""
    packing = pickle.loads(pickle.dumps(Packer(9).pack("tea", CHUNKS)))

    assert packing.total_tokens == told.only("budgeteer.pack").attributes["tokens.retrieved"]


def test_every_attribute_is_documented(told, monkeypatch):
    """The page on telemetry names each span, attribute and histogram that there is."""
    monkeypatch.setenv(_telemetry.CONTENT, "true")
    of_secrets(told)
    packer = Packer(9, ranking=Embedding(Vectors(), fallback="bm25"))
    packer.ranking.embedder.is_broken = True
    packer.pack("tea", CHUNKS)
    spans = told.spans.get_finished_spans()
    names = {span.name for span in spans if not span.name.startswith("retrieval ")}
    names |= {key for span in spans for key in span.attributes}
    data = json.loads(told.reader.get_metrics_data().to_json())
    found = data["resource_metrics"][0]["scope_metrics"][0]["metrics"]
    names |= {metric["name"] for metric in found}
    names |= {
        key for m in found for point in m["data"]["data_points"] for key in point["attributes"]
    }
    page = Path(__file__).parents[3].joinpath("docs/telemetry.md").read_text("utf-8")

    assert [] == sorted(name for name in names if f"`{name}`" not in page)
    assert "retrieval NAME" in page
    assert _telemetry.CONTENT in page
