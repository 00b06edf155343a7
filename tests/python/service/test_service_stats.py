"""ServiceStats: what a service tells of its requests."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from service_support import COUNT, service_of, text_of

from budgeteer import InvalidArgumentError, Packer
from budgeteer.service import InputValidationError, LlmSettings, ServiceStats
from budgeteer.service._stats import Packed, Recorder, bucket


def test_stats():
    """The stats say how often the budget cut, how much, and what a larger one would have kept."""
    settings = LlmSettings(model="gpt-4", context_window=1000, max_output_tokens=0)
    service = service_of(*[text_of(300)] * 5, settings=settings)
    kept = service.retrieve("q").packing
    service.retrieve("q")
    with pytest.raises(InputValidationError):
        service.retrieve(text_of(2_000))
    stats = service.stats()

    assert (3, 2, 1, 2) == (stats.requests, stats.answered, stats.rejected, stats.cut)
    assert (2 * len(kept.kept), 2 * kept.total_tokens) == (
        stats.kept_chunks,
        stats.retrieved_tokens,
    )
    assert (4, 1200, True) == (stats.dropped_chunks, stats.dropped_tokens, stats.is_dropped_exact)
    [needed] = stats.next_budgets
    [everything] = stats.full_budgets
    assert everything == stats.budget_for(0.5) == stats.budget_for(1.0)
    assert 1.0 == stats.cut_rate

    # The figures are true: such a budget keeps that much.
    for budget, count in ((needed, 4), (everything, 5)):
        wide = service_of(*[text_of(300)] * 5, packer=Packer(budget, ranking="input", dedupe=None))
        assert count == len(wide.retrieve("q").packing.kept)

    assert stats == service.stats(reset=True)
    assert 0 == service.stats().requests
    assert service.stats().budget_for(0.5) is None
    assert stats.to_dict()["cut_rate"] == 1.0


def test_stats_of_many_chunks_are_a_sample():
    """Of thousands of dropped chunks some are counted, and stand for the others."""
    chunks = [text_of(10 + i % 7) for i in range(5_000)]
    service = service_of(*chunks, limit=5_000)
    packing = service.retrieve("q").packing
    stats = service.stats()

    assert not stats.is_dropped_exact
    assert stats.dropped_tokens == pytest.approx(packing.dropped_total_tokens, rel=0.1)


def test_the_memory_of_stats_is_bounded():
    """However different the requests, there are some hundred buckets."""
    recorder = Recorder()
    for tokens in range(1, 50_000):
        recorder.end("answered", Packed({}, tokens, tokens, is_exact=True))
        assert tokens <= bucket(tokens) <= tokens * 1.125 + 1
    assert len(recorder.stats(reset=False).full_budgets) < 130


@pytest.mark.parametrize("units", ["chunk", "sentence"])
def test_what_is_cut_is_told(units, caplog):
    """An answer that has a chunk in part is one that the budget cut, and the log says so."""
    text = " ".join(f"Sentence {n} is about green tea." for n in range(40))
    packer = Packer(100, ranking="input", overflow="truncate_end", units=units)
    service = service_of(text, packer=packer)
    with caplog.at_level(logging.DEBUG, logger="budgeteer"):
        packing = service.retrieve("tea").packing
    stats = service.stats()

    [kept] = packing.kept
    assert kept.was_cut
    assert [] == packing.dropped
    [record] = caplog.records
    assert logging.WARNING == record.levelno
    assert "Token budget exceeded: cut 1 chunk" == record.getMessage()
    assert (1, 0) == (vars(record)["chunks.cut"], vars(record)["chunks.dropped"])
    assert (1, 1, 1, 0) == (stats.cut, stats.kept_chunks, stats.cut_chunks, stats.dropped_chunks)
    assert COUNT(text) - kept.token_count == stats.dropped_tokens
    assert stats.is_dropped_exact
    assert [bucket(COUNT(text))] == [*stats.next_budgets] == [*stats.full_budgets]
    assert stats.next_budgets == stats.full_budgets


def test_what_is_cut_before_what_is_dropped():
    """The next budget makes the chunk whole that was cut, the full one has all."""
    chunks = [text_of(60), text_of(90), text_of(30), text_of(40)]
    packer = Packer(100, ranking="input", overflow="truncate_end", dedupe=None)
    service = service_of(*chunks, packer=packer)
    packing = service.retrieve("q").packing
    stats = service.stats()

    assert [60, 90 - stats.dropped_tokens + 70] == [kept.token_count for kept in packing.kept]
    assert (1, 1, 2) == (stats.cut, stats.cut_chunks, stats.dropped_chunks)
    [needed] = stats.next_budgets
    [everything] = stats.full_budgets
    for budget, count in ((needed, 2), (everything, 4)):
        wide = service_of(*chunks, packer=Packer(budget, ranking="input", dedupe=None))
        assert count == len(wide.retrieve("q").packing.kept)


def test_long_chunks_are_not_counted_to_their_end():
    """What a dropped chunk has beyond 4,096 tokens is not counted, and the stats say so."""
    service = service_of(text_of(60), text_of(9_000), packer=Packer(100, overflow="stop"))
    service.retrieve("q")
    stats = service.stats()

    assert (4_096, False) == (stats.dropped_tokens, stats.is_dropped_exact)


def test_figures_that_cannot_be_had_do_not_cost_the_answer():
    """A counter that fails at what was dropped fails no request."""
    long = "tea " * 90

    def counter(text):
        if text == long:
            raise RuntimeError("no")
        return len(text.split())

    settings = LlmSettings(context_window=60, max_output_tokens=0, counter=counter)
    packer = Packer(1, ranking="input", overflow="stop", counter=counter)
    service = service_of("one two", long, settings=settings, packer=packer)

    assert "" == service.retrieve("q").packing.text
    assert (1, 1, 0) == tuple(
        getattr(service.stats(), name) for name in ("requests", "answered", "cut")
    )


def test_a_snapshot_has_whole_requests():
    """No answer is cut before it is answered, whenever one looks."""
    service = service_of(*[text_of(300)] * 5, packer=Packer(700, dedupe=None))
    is_over = threading.Event()

    def look():
        seen = []
        while not is_over.is_set():
            stats = service.stats()
            seen.append((stats.answered, stats.cut, stats.kept_chunks, sum(stats.next_budgets)))
        return seen

    with ThreadPoolExecutor(3) as pool:
        looking = pool.submit(look)
        list(pool.map(lambda _: service.retrieve("q"), range(300)))
        is_over.set()
    kept = service.stats().kept_chunks // 300

    assert 300 == service.stats().cut
    for answered, cut, chunks, _ in looking.result():
        assert answered == cut == chunks // kept


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_of_answers_is_from_0_to_1(share):
    """Any other is refused."""
    with pytest.raises(InvalidArgumentError, match="share must be"):
        ServiceStats(full_budgets={1024: 1}).budget_for(share)


@pytest.mark.parametrize("answers", [100, 20, 7, 3])
def test_a_share_is_not_rounded_up(answers):
    """A budget that kept everything whole for exactly that share of the answers is enough."""
    for whole in range(1, answers):
        stats = ServiceStats(full_budgets={16: whole, 1024: answers - whole})
        assert 16 == stats.budget_for(whole / answers)
        assert 1024 == stats.budget_for(min(1.0, whole / answers + 1e-9))


@pytest.mark.parametrize("reset", ["no", 1, None])
def test_nothing_but_a_bool_resets(reset):
    """Anything else is refused, and loses no figure."""
    service = service_of("green tea")
    service.retrieve("tea")
    with pytest.raises(InvalidArgumentError, match="reset must be a bool"):
        service.stats(reset=reset)
    assert 1 == service.stats().answered
