"""
Packing beside the pure-Python reference and theaios-context-router, interleaved in one run.

    python benches/bench_pack.py [--sizes 500,5000,50000] [--rounds N] [--texts FILE]

Every call gets fresh strings, and between two calls of ours stands a slice of theaios's work: see
`timing.py`. Only the ratios of one run are meaningful. The text is the language reference that
ships with Python, or that of FILE (JSONL like the evaluation data, or plain text). Batches of
requests are packed by one thread and by two, on fresh strings and on the same ones, with exact
counts. The same chunks are packed into 200 budgets, which tells how much the time depends on what
is left of the budget. A task of the event loop that wakes each millisecond tells how long `apack`
holds it.

Under pytest the same cases run with pytest-benchmark:
``pytest benches/bench_pack.py --benchmark-enable``.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from suite.pack import fetched, packer_on, theaios
from texts import CHARS, MAX_TOKENS, QUERY, SIZES, fresh, real_text
from timing import Case, finished, interleaved, one_slice, peak_bytes

import budgeteer
from budgeteer import Packer, _native, _reference


@dataclass
class Document:
    """A caller's own type."""

    text: str


def run_ours(packer: Packer, chunks: Sequence[Any]) -> int:
    """Pack."""
    return packer.pack(QUERY, chunks).total_tokens


def as_is(texts: list[str]) -> list[Any]:
    """Return the strings themselves."""
    return texts


OURS = {"counter": "chars_div4", "ranking": "keyword"}
NATIVE = partial(run_ours, packer_on(_native, **OURS))
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[list[str]], list[Any]]]] = {
    "native": (NATIVE, as_is),
    "native, dicts": (NATIVE, lambda texts: [{"text": text} for text in texts]),
    "native, dataclasses": (NATIVE, lambda texts: [Document(text) for text in texts]),
    "native, Chunk": (NATIVE, lambda texts: [budgeteer.Chunk(text) for text in texts]),
    "reference": (one_slice(partial(run_ours, packer_on(_reference, **OURS))), as_is),
    "theaios": (theaios(QUERY), fetched),
}


def cases_of(text: str, count: int) -> dict[str, Case]:
    """Return the cases at one size."""
    return {
        name: Case(run, partial(lambda make: make(fresh(text, count)), make))
        for name, (run, make) in CASES.items()
    }


def median_beside(text: str, threads: int, calls: int = 400) -> float:
    """Return the median time of packing 500 chunks beside *threads* busy Python threads."""
    over = threading.Event()

    def busy() -> None:
        n = 0
        while not over.is_set():
            n += 1

    workers = [threading.Thread(target=busy) for _ in range(threads)]
    for worker in workers:
        worker.start()
    times = []
    try:
        for _ in range(calls):
            chunks = fresh(text, 500)
            start = time.perf_counter()
            NATIVE(chunks)
            times.append(time.perf_counter() - start)
    finally:
        over.set()
        for worker in workers:
            worker.join()
    return statistics.median(times)


def batch_seconds(text: str, count: int, rounds: int) -> dict[tuple[str, int], list[float]]:
    """Return the times of packing *count* requests of 500 chunks, by strings and workers."""
    packer = Packer(MAX_TOKENS)
    same = fresh(text, 500 * count)
    found: dict[tuple[str, int], list[float]] = {}
    list(packer.pack_batch([(QUERY, same[:500])] * 4, workers=2))
    for turn in range(rounds):
        for strings in ("fresh", "repeated"):
            for workers in (1, 2) if turn % 2 else (2, 1):
                chunks = fresh(text[turn + workers :], 500 * count) if strings == "fresh" else same
                requests = [(QUERY, chunks[i : i + 500]) for i in range(0, len(chunks), 500)]
                start = time.perf_counter()
                for _ in packer.pack_batch(requests, workers=workers):
                    pass
                found.setdefault((strings, workers), []).append(time.perf_counter() - start)
    return found


def budget_seconds(text: str, count: int, rounds: int = 3, budgets: int = 200) -> list[float]:
    """
    Return the times of packing the same *count* chunks into *budgets* budgets, sorted.

    With exact counts, and the lowest of *rounds* for each budget. What is left of the budget
    differs from one to the next, and so does the number of chunks that may still fit.
    """
    chunks = fresh(text, count)
    packers = [Packer(MAX_TOKENS + 7 * step, counter="o200k_base") for step in range(budgets)]
    times = [float("inf")] * budgets
    for _ in range(rounds):
        for at, packer in enumerate(packers):
            start = time.perf_counter()
            packer.pack(QUERY, chunks)
            times[at] = min(times[at], time.perf_counter() - start)
    return sorted(times)


async def longest_hold(text: str, count: int) -> float:
    """Return the longest time for which a task of the loop waits while `apack` is awaited."""
    gaps = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            gaps.append(time.perf_counter() - last)
            last += gaps[-1]

    chunks = fresh(text, count)
    task = asyncio.create_task(beat())
    await asyncio.sleep(0.01)
    gaps.clear()
    await Packer(MAX_TOKENS).apack(QUERY, chunks)
    await asyncio.sleep(0.005)
    task.cancel()
    return max(gaps)


def memory_per_chunk(text: str, count: int = 1_000_000, chars: int = 100) -> float | None:
    """Return the peak bytes per chunk of packing, the result included."""
    chunks = tuple(text[i % 9_000 : i % 9_000 + chars] for i in range(count))
    NATIVE(chunks[:1000])
    peak = peak_bytes(lambda: NATIVE(chunks))
    return None if peak is None else peak / count


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_pack(benchmark: Any, name: str, count: int) -> None:
    """One case at one size, on fresh strings each round."""
    run, make = CASES[name]
    text = real_text()
    rounds = max(2, 10_000 // count) if name.startswith("native") else 2
    benchmark.group = f"pack {count}"
    if not name.startswith("native"):
        run = partial(lambda steps, chunks: finished(steps(chunks)), run)
    benchmark.pedantic(run, setup=lambda: ((make(fresh(text, count)),), {}), rounds=rounds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=0, help="0: by the size")
    parser.add_argument("--requests", type=int, default=200, help="in a batch")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--skip-memory", action="store_true")
    arguments = parser.parse_args()
    text = real_text(arguments.texts)
    sample = fresh(text, 5_000)
    wide = sum(not chunk.isascii() for chunk in sample) / len(sample)
    print(f"Python {sys.version.split()[0]}, {wide:.0%} of the chunks not ASCII")
    for count in map(int, arguments.sizes.split(",")):
        rounds = arguments.rounds or max(5, 15_000 // count)
        times = interleaved(cases_of(text, count), rounds)
        print(f"\n{count} chunks of {CHARS} characters, {rounds} rounds")
        print(f"{'':22}{'ms':>10}{'ns/chunk':>10}{'theaios is':>12}{'reference is':>14}")
        for name in CASES:
            seconds = times.median(name)
            print(
                f"{name:22}{seconds * 1e3:10.3f}{seconds / count * 1e9:10.0f}"
                f"{times.ratio('theaios', name):11.1f}x{times.ratio('reference', name):13.1f}x"
            )
    print()
    for count in (500, 5_000):
        each = budget_seconds(text, count)
        p50, p99 = each[len(each) // 2], each[len(each) * 99 // 100]
        print(
            f"{count} chunks, {len(each)} budgets: p50 {p50 * 1e3:.3f} ms, p99 {p99 * 1e3:.3f} ms"
            f" ({p99 / p50:.2f} times)"
        )
    idle, beside = median_beside(text, 0), median_beside(text, 4)
    print(
        f"\n500 chunks, p50: idle {idle * 1e3:.3f} ms, beside 4 busy threads {beside * 1e3:.3f} ms"
        f" ({beside / idle:.2f} times)"
    )
    print(f"\n{arguments.requests} requests of 500 chunks, two workers beside one")
    batches = batch_seconds(text, arguments.requests, max(3, arguments.rounds))
    for strings in ("fresh", "repeated"):
        one, two = batches[strings, 1], batches[strings, 2]
        ratios = sorted(a / b for a, b in zip(one, two, strict=True))
        print(
            f"{strings:22}{statistics.median(one) / arguments.requests * 1e3:10.3f} ms a request,"
            f" {statistics.median(ratios):.2f} times as fast (from {ratios[0]:.2f} to"
            f" {ratios[-1]:.2f})"
        )
    holds = sorted(asyncio.run(longest_hold(text, 20_000)) for _ in range(5))
    print(
        f"apack of 20,000 chunks holds the event loop for {holds[2] * 1e3:.1f} ms at most"
        f" (from {holds[0] * 1e3:.1f} to {holds[-1] * 1e3:.1f})"
    )
    if not arguments.skip_memory and (memory := memory_per_chunk(text)) is not None:
        print(f"peak memory at 1,000,000 chunks: {memory:.1f} bytes per chunk, result included")


if __name__ == "__main__":
    main()
