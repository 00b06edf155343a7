"""
Packing by several threads, in one call and in many, and packing beside busy threads.

    python benches/bench_threads.py [--rounds N] [--before DIRECTORY] [--cases reading,beside,many]

- `reading`: one call with 5,000 to 100,000 chunks, with one thread and with as many as there are
  processors.
- `beside`: one call with 500 or 5,000 chunks while no thread, or four, run Python code; and how
  late a thread wakes that sleeps for a millisecond at a time while another packs.
- `many`: calls by one to eight threads that pack at once.

Each build and number of threads has a process of its own, as the number is read once. The
processes take turns, call by call, and wait meanwhile, so that a noisy machine slows all of them
alike. Every call gets fresh strings. Figures are medians of wall time and of the processor time of
all threads. DIRECTORY holds another build of the package, `budgeteer`, to compare with.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from texts import MAX_TOKENS, QUERY, fresh, real_text

import budgeteer
from budgeteer import Packer, Packing

HERE = Path(__file__).resolve()
SIZES = (5_000, 10_000, 20_000, 50_000, 100_000)
RANKINGS: tuple[Literal["keyword", "bm25", "lexical"], ...] = ("keyword", "bm25", "lexical")
BUSY = 4
TEXT = real_text()
PACKERS: dict[str, Packer] = {ranking: Packer(MAX_TOKENS, ranking=ranking) for ranking in RANKINGS}


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Let *count* threads run Python code meanwhile."""
    over = threading.Event()

    def run() -> None:
        number = 0
        while not over.is_set():
            number += 1

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextmanager
def sleeper(gaps: list[float]) -> Iterator[None]:
    """Let a thread sleep for a millisecond at a time, and note how late it wakes."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            start = time.perf_counter()
            time.sleep(0.001)
            gaps.append(time.perf_counter() - start - 0.001)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def one(ranking: str, size: int) -> tuple[float, float, Packing[str]]:
    """Pack once. Return the wall time, the processor time of all threads, and the packing."""
    chunks = fresh(TEXT, size)
    wall, cpu = time.perf_counter(), time.process_time()
    packing = PACKERS[ranking].pack(QUERY, chunks)
    return time.perf_counter() - wall, time.process_time() - cpu, packing


def time_reading(ranking: str, size: int) -> list[float]:
    """Return the times of a call and a number of its result."""
    wall, cpu, packing = one(ranking, size)
    scores = [chunk.score for chunk in packing.kept]
    return [wall, cpu, hash((packing.text, packing.total_tokens, *scores))]


def time_beside(ranking: str, size: int, threads: int) -> list[list[float]]:
    """Return the times of calls beside busy threads; beside none, how late a sleeper wakes too."""
    with busy(threads):
        walls = [one(ranking, size)[0] for _ in range(40_000 // size + 4)]
    gaps: list[float] = []
    if threads == 0:
        with sleeper(gaps):
            for _ in range(20_000 // size):
                one(ranking, size)
    return [walls, gaps]


def time_many(ranking: str, size: int, threads: int) -> list[float]:
    """Return the wall time and the processor time of a call where threads pack at once."""
    batches = [fresh(TEXT, size) for _ in range(threads)]
    calls = 200_000 // size // threads
    start = threading.Barrier(threads + 1)

    def run(chunks: list[str]) -> None:
        start.wait()
        for _ in range(calls):
            PACKERS[ranking].pack(QUERY, chunks)

    workers = [threading.Thread(target=run, args=(chunks,)) for chunks in batches]
    for worker in workers:
        worker.start()
    start.wait()
    wall, cpu = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.join()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return [wall / calls / threads, cpu / calls / threads]


def work() -> None:
    """Time what each line of the input asks for; write a line of JSON for each."""
    cases: dict[str, Callable[..., Any]] = {
        "reading": time_reading,
        "beside": time_beside,
        "many": time_many,
    }
    gc.disable()
    for ranking in RANKINGS:
        one(ranking, 500)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(cases[name](*arguments)), flush=True)
        gc.collect()


class Process:
    """A process that times calls when it is asked to."""

    def __init__(self, build: Path, threads: int | None = None) -> None:
        """Start it with the package in the directory *build*."""
        environment = {**os.environ, "PYTHONPATH": str(build), "PYTHONHASHSEED": "0"}
        if threads is not None:
            environment["BUDGETEER_NUM_THREADS"] = str(threads)
        pipe = subprocess.PIPE
        command = [sys.executable, str(HERE), "--work"]
        self._process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, text=True
        )

    def ask(self, *question: Any) -> Any:
        """Have something timed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def show(name: str, *figures: tuple[str, float, str]) -> None:
    """Print a line."""
    print(f"{name:<28}" + "  ".join(f"{what} {value:8.2f}{unit}" for what, value, unit in figures))


def reading(processes: dict[str, Process], rounds: int) -> None:
    """Print the times of one call."""
    for ranking in RANKINGS:
        for size in SIZES:
            found: dict[str, list[list[float]]] = {name: [] for name in processes}
            for turn in range(rounds):
                names = list(processes)
                for name in names if turn % 2 else reversed(names):
                    found[name].append(processes[name].ask("reading", ranking, size))
            answers = {row[2] for rows in found.values() for row in rows}
            assert len(answers) == 1, "all give the same answer"
            first = statistics.median(row[0] for row in next(iter(found.values())))
            for name, rows in found.items():
                wall, cpu = (statistics.median(row[i] for row in rows) for i in (0, 1))
                show(
                    f"{ranking} {size} {name}",
                    ("wall", 1e3 * wall, " ms"),
                    ("processor", 1e3 * cpu, " ms"),
                    ("faster", first / wall, "x"),
                )


def beside(processes: dict[str, Process], rounds: int) -> None:
    """Print the times of a call beside busy threads, and how long it keeps others waiting."""
    for ranking in ("keyword", "lexical"):
        for size in (500, 5_000):
            idle: dict[str, list[float]] = {name: [] for name in processes}
            loaded: dict[str, list[float]] = {name: [] for name in processes}
            late: dict[str, list[float]] = {name: [] for name in processes}
            for _ in range(rounds):
                for name, process in processes.items():
                    walls, gaps = process.ask("beside", ranking, size, 0)
                    idle[name] += walls
                    late[name] += gaps
                    loaded[name] += process.ask("beside", ranking, size, BUSY)[0]
            for name in processes:
                alone, among = statistics.median(idle[name]), statistics.median(loaded[name])
                tail = statistics.quantiles(loaded[name], n=10)[-1]
                gap = statistics.quantiles(late[name], n=10)[-1]
                show(
                    f"{ranking} {size} {name}",
                    ("idle", 1e3 * alone, " ms"),
                    ("beside", 1e3 * among, " ms"),
                    ("p90", 1e3 * tail, " ms"),
                    ("mean", 1e3 * statistics.mean(loaded[name]), " ms"),
                    ("ratio", among / alone, "x"),
                    ("others late, p90", 1e3 * gap, " ms"),
                )


def many(processes: dict[str, Process], rounds: int) -> None:
    """Print how many calls several threads do in a second."""
    for ranking in ("keyword", "lexical"):
        for size in (500, 5_000):
            for threads in (1, 2, 4, 8):
                found: dict[str, list[list[float]]] = {name: [] for name in processes}
                for _ in range(rounds):
                    for name, process in processes.items():
                        found[name].append(process.ask("many", ranking, size, threads))
                for name, rows in found.items():
                    wall, cpu = (statistics.median(row[i] for row in rows) for i in (0, 1))
                    show(
                        f"{ranking} {size} by {threads}, {name}",
                        ("calls a second", 1 / wall, ""),
                        ("processor", 1e3 * cpu, " ms a call"),
                    )


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--before", type=Path, help="a directory with another build")
    parser.add_argument("--cases", default="reading,beside,many")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return
    here = Path(budgeteer.__file__).parents[1]
    before = {} if options.before is None else {"before": Process(options.before)}
    processes = before | {"one thread": Process(here, 1), "all": Process(here)}
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    default = {name: process for name, process in processes.items() if name != "one thread"}
    cases = {
        "reading": partial(reading, processes),
        "beside": partial(beside, default),
        "many": partial(many, default),
    }
    for case in options.cases.split(","):
        print(f"\n{case}")
        cases[case](options.rounds)
    for process in processes.values():
        process.end()


if __name__ == "__main__":
    main()
