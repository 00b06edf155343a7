"""
Packs tables: how much memory that takes beside the table, and how fast rows are.

The memory is the peak of the process while it packs a million strings, less what it had with the
table already made. The answer is in it, whose size stands beside it. The speed is that of
`budgeteer.pack_table` against a loop in Python that packs the same rows one by one, as lists of
strings that pyarrow makes, and against that loop with its lists made before. They take turns.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from texts import real_text

from budgeteer import Packer, get_counter, pack_table

CHARS = 200
CHUNKS = 20
BUDGET = 128
MEGA = 1_000_000
STATUS = Path("/proc/self/status")


def made(rows: int, view: bool = False) -> pa.Table:
    """Return a table of that many rows, of 20 chunks of 200 characters each."""
    text = real_text()
    last = len(text) - CHARS
    strings = [text[at : at + CHARS] for at in (i * 797 % last for i in range(rows * CHUNKS))]
    items = pa.array(strings, pa.string_view() if view else pa.large_string())
    ends = pa.array(range(0, rows * CHUNKS + 1, CHUNKS), pa.int64())
    queries = [" ".join(strings[i * CHUNKS].split()[:6]) for i in range(rows)]
    return pa.table({"query": queries, "chunks": pa.LargeListArray.from_arrays(ends, items)})


def memory(field: str) -> int:
    """Return a figure of this process's memory, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def peak(run: Callable[[], Any]) -> tuple[int, Any]:
    """Return by how much the process grew at most while *run* ran, and its result."""
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    result = run()
    return memory("VmHWM") - before, result


def warm() -> None:
    """Load what the first call loads."""
    pack_table(made(1), BUDGET)
    get_counter("o200k_base").count_batch(made(1)["chunks"].combine_chunks().values)


def show_memory(what: str, strings: int) -> None:
    """Measure in this process, which did nothing before."""
    warm()
    table = made(strings // CHUNKS)
    pa.default_memory_pool().release_unused()
    size = table.nbytes
    if what == "count_batch":
        column = table["chunks"].combine_chunks().values
        counter = get_counter("o200k_base")
        grown, counts = peak(lambda: counter.count_batch(column))
        answer = counts.nbytes
    else:
        grown, packed = peak(lambda: pack_table(table, BUDGET))
        answer = pa.table(packed).nbytes
    print(
        f"{what:12} {strings:9,} strings, {size / MEGA:6.1f} MB: the peak is "
        f"{grown / MEGA:6.1f} MB higher; the answer has {answer / MEGA:.1f} MB"
    )


def show_speed(rows: int, rounds: int) -> None:
    """Let the ways to pack take turns."""
    packer = Packer(BUDGET)
    table = made(rows)
    lists = table.to_pylist()

    def by_loop() -> list[str]:
        return [packer.pack(row["query"], row["chunks"]).text for row in table.to_pylist()]

    def by_lists() -> list[str]:
        return [packer.pack(row["query"], row["chunks"]).text for row in lists]

    def by_table() -> Any:
        return pack_table(table, BUDGET)

    ways = {"pack_table": by_table, "a loop": by_loop, "a loop over lists": by_lists}
    assert pa.table(by_table())["text"].to_pylist() == by_loop()
    walls: dict[str, list[float]] = {name: [] for name in ways}
    works: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            get_counter("o200k_base").clear_cache()
            wall, work = time.perf_counter(), time.process_time()
            run()
            walls[name].append(time.perf_counter() - wall)
            works[name].append(time.process_time() - work)
    for name in ways:
        wall, work = statistics.median(walls[name]), statistics.median(works[name])
        print(
            f"{name:18} {rows / wall:9,.0f} rows a second; {1e6 * work / rows:7.1f} us of "
            f"processor time a row"
        )


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strings", type=int, default=MEGA)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="run all once, with few rows")
    parser.add_argument("--memory", choices=["pack_table", "count_batch"], help="for a process")
    given = parser.parse_args()
    if given.smoke:
        given.strings, given.rows, given.rounds = 2_000, 100, 1
    if given.memory:
        show_memory(given.memory, given.strings)
        return
    if STATUS.exists():
        for what in ("pack_table", "count_batch"):
            arguments = [f"--strings={given.strings}", f"--memory={what}"]
            subprocess.run([sys.executable, __file__, *arguments], check=True)
    show_speed(given.rows, given.rounds)


if __name__ == "__main__":
    main()
