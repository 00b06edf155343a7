"""
Loads a RetrievalService with threads and asyncio tasks, and checks every answer.

    .venv/bin/python benches/load_service.py --seconds 60

First, requests of many sizes are answered one by one. Then 8 threads and 200 asyncio tasks repeat
them at the same time while another thread swaps the model, and each answer must equal the earlier
one of its model. Prints requests per second, latencies and peak memory.
"""

import argparse
import asyncio
import itertools
import logging
import random
import resource
import threading
import time
from collections.abc import Iterator
from typing import Any

from budgeteer.service import (
    ChunkRetriever,
    InputValidationError,
    LlmSettings,
    RetrievalError,
    RetrievalService,
)

THREADS, TASKS = 8, 200
WORDS = [
    "green",
    "black",
    "tea",
    "rye",
    "bread",
    "remote",
    "work",
    "policy",
    "travel",
    "security",
    "holiday",
    "日本",
    "茶",
]
MODELS = (
    LlmSettings(model="gpt-4", context_window=2_048, max_output_tokens=256),
    LlmSettings(model="gpt-4o", context_window=16_000, max_output_tokens=1_000),
)
UNUSUAL = ["", "fail now", "tea " * 3_000, "茶" * 500, "tea " * 20_000]
"""Queries, some of which fail or fit no window."""


class Tickets:
    """An asynchronous retriever that is sometimes slow and fails for one query."""

    name = "tickets"

    def __init__(self, chunks: list[str]) -> None:
        self._chunks = chunks

    def retrieve(self, query: str, limit: int) -> list[str]:
        """Return the same chunks for the same query."""
        if query.startswith("fail"):
            raise ConnectionError("no such host")
        start = len(query) % len(self._chunks)
        return self._chunks[start : start + min(limit, 50)]

    async def aretrieve(self, query: str, limit: int) -> list[str]:
        """Return the same after a while."""
        await asyncio.sleep(len(query) % 3 / 1_000)
        return self.retrieve(query, limit)


def text(random_: random.Random, size: int) -> str:
    """Return a text of *size* words."""
    return " ".join(random_.choices(WORDS, k=size))


def service_of(settings: LlmSettings) -> RetrievalService:
    """Return a service over 2,000 chunks."""
    random_ = random.Random(1)
    chunks = [text(random_, 10 + i % 150) for i in range(2_000)]
    retrievers = [ChunkRetriever(chunks[:1_000]), Tickets(chunks[1_000:])]
    return RetrievalService(retrievers, settings, system_prompt="Answer from the context.")


def outcome(answer: Any) -> Any:
    """Return the outcome to compare: the whole answer, or class and message of an error."""
    if isinstance(answer, Exception):
        return type(answer).__name__, str(answer)
    return answer.model, answer.messages, answer.tokens, answer.packing.dropped_count


def ask(service: RetrievalService, query: str) -> Any:
    """Return the outcome of a request."""
    try:
        return outcome(service.retrieve(query))
    except (InputValidationError, RetrievalError) as error:
        return outcome(error)


async def aask(service: RetrievalService, query: str) -> Any:
    """Return the outcome of a request under asyncio."""
    try:
        return outcome(await service.aretrieve(query, timeout=60))
    except (InputValidationError, RetrievalError) as error:
        return outcome(error)


class Load:
    """The state that the threads and tasks of a load share."""

    def __init__(self, seconds: float) -> None:
        random_ = random.Random(2)
        self.queries = [f"{text(random_, 1 + i % 40)}?" for i in range(60)]
        self.queries += UNUSUAL
        alone = [service_of(settings) for settings in MODELS]
        self.expected = [{repr(ask(one, query)) for one in alone} for query in self.queries]
        self.service = service_of(MODELS[0])
        self.took: list[float] = []
        self.wrong: list[str] = []
        self._ends = time.monotonic() + seconds

    def goes_on(self) -> bool:
        """Return whether time is left and no check has failed."""
        return time.monotonic() < self._ends and not self.wrong

    def order(self, seed: int) -> Iterator[int]:
        """Yield the places of queries, in random order."""
        random_ = random.Random(seed)
        while self.goes_on():
            yield random_.randrange(len(self.queries))

    def check(self, i: int, start: float, found: Any) -> None:
        """Record an answer's latency, and whether it is an expected one."""
        self.took.append(time.perf_counter() - start)
        if repr(found) not in self.expected[i]:
            self.wrong.append(f"query {i}: {found[0]}")

    def thread(self, seed: int) -> None:
        """Send requests from a thread: the unusual ones first, so that a slow load has them."""
        unusual = range(len(self.queries) - len(UNUSUAL), len(self.queries))
        for i in itertools.chain(unusual, self.order(seed)):
            self.check(i, time.perf_counter(), ask(self.service, self.queries[i]))

    async def task(self, seed: int) -> None:
        """Send requests from a task."""
        for i in self.order(seed):
            self.check(i, time.perf_counter(), await aask(self.service, self.queries[i]))

    async def tasks(self, count: int) -> None:
        """Send requests from many tasks."""
        await asyncio.gather(*(self.task(1_000 + i) for i in range(count)))

    def swap(self) -> None:
        """Change the model over and over."""
        n = 0
        while self.goes_on():
            n += 1
            self.service.settings = MODELS[n % 2]
            time.sleep(0.002)


def load(seconds: float, threads: int = THREADS, tasks: int = TASKS) -> dict[str, float]:
    """Return figures of a load of *seconds*; raise if an answer is not as expected."""
    shared = Load(seconds)
    workers = [threading.Thread(target=shared.thread, args=(i,)) for i in range(threads)]
    workers.append(threading.Thread(target=shared.swap))
    start = time.monotonic()
    for worker in workers:
        worker.start()
    asyncio.run(shared.tasks(tasks))
    for worker in workers:
        worker.join()
    elapsed = time.monotonic() - start
    if shared.wrong:
        raise AssertionError("; ".join(shared.wrong[:5]))
    stats = shared.service.stats()
    ended = stats.answered + stats.rejected + stats.failed
    took = sorted(shared.took)
    if not stats.requests == ended == len(took):
        raise AssertionError(f"{stats.requests} requests, {ended} ended, {len(took)} seen")
    return {
        "requests": len(took),
        "per second": round(len(took) / elapsed),
        "p50 ms": round(took[len(took) // 2] * 1_000, 1),
        "p99 ms": round(took[len(took) * 99 // 100] * 1_000, 1),
        "cut": stats.cut,
        "rejected": stats.rejected,
        "failed": stats.failed,
        "max RSS MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


if __name__ == "__main__":
    logging.getLogger("budgeteer").setLevel(logging.ERROR)  # no warning for each cut
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seconds", type=float, default=60)
    for name, figure in load(parser.parse_args().seconds).items():
        print(f"{name:>12}  {figure}")
