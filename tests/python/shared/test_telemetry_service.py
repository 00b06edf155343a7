"""What is told to OpenTelemetry of the requests of a service."""

import asyncio

import pytest
from service_support import SETTINGS, AsyncFake, Fake

from budgeteer import Packer
from budgeteer.service import (
    InputValidationError,
    RetrievalError,
    RetrievalService,
    RetrievalTimeoutError,
)

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from telemetry_support import (
    CHUNKS,
    SECRET,
    Broken,
    Reranker,
    Searched,
    Vectors,
    failed_with,
)


def tree(told):
    """Return the name of each span behind that of its parent, where it has one."""
    spans = told.spans.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans}
    parents = [names[span.parent.span_id] if span.parent else "" for span in spans]
    return sorted(zip(parents, (span.name for span in spans), strict=True))


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("is_async", [False, True])
def test_given_request_when_traced_then_each_stage_is_a_child(told, is_async, timeout):
    """A request is a span, with a child for each stage, in whatever thread that runs."""
    retrievers = [Searched(*CHUNKS), AsyncFake("Tea.") if is_async else Fake("Tea.")]
    service = RetrievalService(
        *(retrievers, SETTINGS),
        system_prompt="Answer.",
        reranker=Reranker(),
        embedder=Vectors(),
        timeout=timeout,
    )
    result = asyncio.run(service.aretrieve("tea")) if is_async else service.retrieve("tea")

    stages = ["budgeteer.embed", "budgeteer.pack", "budgeteer.rerank"]
    stages += ["retrieval fake", "retrieval searched"]
    children = [("budgeteer.retrieve", stage) for stage in stages]
    assert [("", "budgeteer.retrieve"), *children] == tree(told)
    tokens = result.tokens
    four = {
        "tokens.system": tokens.system,
        "tokens.query": tokens.query,
        "tokens.retrieved": tokens.retrieved,
        "tokens.budget_remaining": tokens.remaining,
    }
    figures = {
        "budgeteer.kept": 5,
        "budgeteer.dropped": 0,
        "budgeteer.truncated": False,
        "budgeteer.is_exact": True,
    }
    assert {
        **four,
        **figures,
        "budgeteer.budget": tokens.budget,
        "budgeteer.model": "gpt-4",
        "budgeteer.context_window": 4096,
        "budgeteer.prompt_tokens": tokens.input,
    } == dict(told.only("budgeteer.retrieve").attributes)
    packed = dict(told.only("budgeteer.pack").attributes)
    assert {**four, **figures, **packed} == packed
    retrieved = told.only("retrieval searched")
    assert trace.SpanKind.CLIENT is retrieved.kind
    assert {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "searched",
        "budgeteer.chunks": 4,
    } == dict(retrieved.attributes)
    reranked = {"budgeteer.reranker": "by length", "budgeteer.chunks": 5}
    assert reranked == dict(told.only("budgeteer.rerank").attributes)
    found = told.points("budgeteer.retrieve.tokens")
    assert {f"tokens.{point['budgeteer.token.type']}": count for point, count in found} == four
    assert {"gpt-4"} == {point["budgeteer.model"] for point, _ in found}
    assert [{}] == [labels for labels, _ in told.points("budgeteer.retrieve.duration")]


def test_a_smaller_bound_of_the_packer_is_the_budget(told, caplog):
    """Spans, the histogram and the warning say by what the chunks were bounded."""
    packer = Packer(30, reserve_tokens=2, counter="words")
    service = RetrievalService(Fake(*[f"tea {n}" for n in range(50)]), SETTINGS, packer=packer)
    result = service.retrieve("tea")

    left = 28 - result.packing.total_tokens
    for span in map(told.only, ("budgeteer.pack", "budgeteer.retrieve")):
        figures = span.attributes["budgeteer.budget"], span.attributes["tokens.budget_remaining"]
        assert (28, left) == figures
    counted = {
        labels["budgeteer.token.type"]: count
        for labels, count in told.points("budgeteer.retrieve.tokens")
    }
    assert left == counted["budget_remaining"]
    [warning] = caplog.records
    figures = vars(warning)
    assert (28, left) == (figures["tokens.budget"], figures["tokens.budget_remaining"])
    assert result.tokens.budget > 28  # a result's figures are the window's


def test_what_fails_says_its_type(told):
    """A failed stage tells the type of what was raised, the request that of what it raises."""
    service = RetrievalService(Broken(), SETTINGS)
    with pytest.raises(RetrievalError):
        service.retrieve(SECRET)
    with pytest.raises(InputValidationError):
        RetrievalService(Fake(), SETTINGS).retrieve("tea " * 9_000)
    with pytest.raises(RetrievalError, match="cannot be packed"):
        RetrievalService(Fake(object()), SETTINGS).retrieve("tea")

    assert failed_with(told.named("retrieval fake")[0], "ConnectionError")
    retrieved = told.named("budgeteer.retrieve")
    types = ["RetrievalError", "InputValidationError", "RetrievalError"]
    assert all(map(failed_with, retrieved, types))
    for span, query_tokens in zip(retrieved, (2, 9_000, 1), strict=True):  # known to each of them
        assert {
            "tokens.system": 0,
            "tokens.query": pytest.approx(query_tokens, abs=1),
            "budgeteer.model": "gpt-4",
            "budgeteer.context_window": 4096,
        }.items() <= dict(span.attributes).items()
    labels = [labels for labels, _ in told.points("budgeteer.retrieve.duration")]
    assert {*types} == {label["error.type"] for label in labels}
    # What looks for the culprit is no packing that anybody asked for.
    assert 1 == len(told.named("budgeteer.pack"))


def test_a_deadline_and_a_cancellation(told):
    """What passes its deadline has failed; what is cancelled is no error, and both end."""
    service = RetrievalService(Slow(), SETTINGS)
    with pytest.raises(RetrievalTimeoutError):
        asyncio.run(service.aretrieve("tea", timeout=0.05))

    async def cancelled():
        task = asyncio.create_task(service.aretrieve("tea"))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    late, gone = told.named("budgeteer.retrieve")
    assert failed_with(late, "RetrievalTimeoutError")
    for span in (gone, *told.named("retrieval fake")):
        assert "error.type" not in span.attributes
        assert trace.StatusCode.UNSET is span.status.status_code
    durations = [labels for labels, _ in told.points("budgeteer.retrieve.duration")]
    assert durations in ([{}, FAILED_LATE], [FAILED_LATE, {}])


FAILED_LATE = {"error.type": "RetrievalTimeoutError"}


class Slow(AsyncFake):
    async def aretrieve(self, query, limit):
        await asyncio.sleep(60)
