"""
Timing that a busy machine disturbs little: cases take turns within milliseconds.

A case whose work is long is a generator, which yields after each slice of it. Between two slices
every short case runs once, whole, on strings made for that call, as CPython caches data of a str.
Times are processor times, which other programs disturb little. The time of a short case in a
round is the median of its calls, that of a long one the sum of its slices, and a ratio is the
median of the rounds' ratios.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SLICES = 42
"""Into how many slices a long work is cut: 12 of 500 chunks are a slice."""


@dataclass(frozen=True)
class Case:
    """Work that is timed. It gets what *make* returns, which is not timed."""

    run: Callable[[Any], Any]
    """Returns a result; or a generator function, which yields between slices, and returns it."""
    make: Callable[[], Any] = lambda: None
    tries: int = 1
    """The fewest calls in a round, of a case that is not sliced."""


@dataclass
class Times:
    """The seconds of each case in each round, and what it returned last."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """Return the median time of a case."""
        return statistics.median(self.seconds[name])

    def ratio(self, over: str, under: str) -> float:
        """Return how many times as long one takes as the other: the median of the rounds."""
        pairs = zip(self.seconds[over], self.seconds[under], strict=True)
        return statistics.median(a / b for a, b in pairs)


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """Keep the collector of garbage away."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def sliced(items: Sequence[Any], most: int = SLICES) -> Iterator[Sequence[Any]]:
    """Yield the items in at most *most* slices, of 12 at least."""
    step = max(12, math.ceil(len(items) / most))
    return (items[at : at + step] for at in range(0, len(items), step))


def one_slice(run: Callable[[Any], Any]) -> Callable[[Any], Generator[None, None, Any]]:
    """Return a long case of a work that cannot be sliced."""

    def once(given: Any) -> Generator[None, None, Any]:
        return run(given)
        yield  # makes it a generator, and is never reached

    return once


def finished(steps: Generator[Any, None, Any]) -> Any:
    """Return what a generator returns at its end."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


def outcome(case: Case) -> Any:
    """Return what a case returns."""
    found = case.run(case.make())
    return finished(found) if inspect.isgenerator(found) else found


def interleaved(
    cases: Mapping[str, Case], rounds: int, clock: Callable[[], int] = time.process_time_ns
) -> Times:
    """Time every case in each round, in turns; *clock* tells nanoseconds."""
    times = Times({name: [] for name in cases})
    long = {name for name, case in cases.items() if inspect.isgeneratorfunction(case.run)}
    with without_gc():
        for _ in range(rounds):
            spent: dict[str, list[int]] = {name: [] for name in cases}
            steps = {name: cases[name].run(cases[name].make()) for name in cases if name in long}
            waiting = dict.fromkeys(cases)
            for turn in itertools.count():
                # Each is the first of a turn as often as the others.
                order = [*waiting]
                order = order[turn % len(order) :] + order[: turn % len(order)]
                for name in order:
                    if name in steps:
                        start = clock()
                        try:
                            next(steps[name])
                        except StopIteration as end:
                            spent[name].append(clock() - start)
                            times.results[name] = end.value
                            del waiting[name]
                        else:
                            spent[name].append(clock() - start)
                        continue
                    given = cases[name].make()
                    start = clock()
                    times.results[name] = cases[name].run(given)
                    spent[name].append(clock() - start)
                    del given
                short = [name for name in waiting if name not in long]
                if len(short) == len(waiting) and all(
                    len(spent[name]) >= cases[name].tries for name in short
                ):
                    break
            for name, taken in spent.items():
                value = sum(taken) if name in long else statistics.median(taken)
                times.seconds[name].append(value / 1e9)
    return times


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def peak_bytes(work: Callable[[], Any]) -> int | None:
    """Return by how much the memory grows at the most; None where the system does not tell."""
    clear, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not clear.exists():
        return None
    gc.collect()
    clear.write_text("5", encoding="ascii")  # resets the peak
    before = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    kept = work()
    peak = int(status.read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) * 1024
    del kept
    return peak - before * os.sysconf("SC_PAGE_SIZE")


def in_process(module: str, function: str, *arguments: Any) -> Any:
    """Return what a function of a module of the benchmarks returns in a new process."""
    code = (
        "import importlib, json, sys; sys.path.insert(0, sys.argv[1]);"
        "module, function, *rest = json.loads(sys.argv[2]);"
        "print(json.dumps(getattr(importlib.import_module(module), function)(*rest)))"
    )
    asked = json.dumps([module, function, *arguments])
    command = [sys.executable, "-c", code, str(Path(__file__).parent), asked]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
