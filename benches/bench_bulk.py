"""
Packs files of requests: how fast by one and several workers, and in how much memory.

Each request has 20 chunks of 400 characters of real text. ``budgeteer pack --output FILE`` runs in
a process of its own; its figures are requests a second, from the first to the last, and the
processor time of a request: in the process that reads and writes, and in its workers. Beside it,
`Packer.pack_batch` packs the same lines by threads of one process. Memory is the peak of the
largest process for that file, and for one ten times as long.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from texts import real_text

from budgeteer import Packer

CHARS = 400
CHUNKS = 20
BUDGET = 500
PROC = Path("/proc")
CODE = """
import json, resource, sys, time
from budgeteer.cli import main
if __name__ == "__main__":
    start = time.perf_counter()
    status = main(sys.argv[1:])
    wall = time.perf_counter() - start
    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps([wall, *(used.ru_utime + used.ru_stime for used in times)]))
    sys.exit(status)
"""


def requests(number: int) -> Iterator[dict[str, Any]]:
    """Yield requests."""
    text = real_text()
    last = len(text) - CHARS
    for i in range(number):
        places = [(i * CHUNKS + j) * 797 % last for j in range(CHUNKS)]
        chunks = [{"id": j, "text": text[at : at + CHARS]} for j, at in enumerate(places)]
        yield {
            "id": i,
            "query": " ".join(chunks[i % CHUNKS]["text"].split()[:6]),
            "chunks": chunks,
        }


def write(path: Path, number: int) -> None:
    """Write a file of requests, as its name says."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(list(requests(number))), path)
        return
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        for request in requests(number):
            file.write(f"{json.dumps(request)}\n".encode())


def packed(source: Path, output: Path, workers: int) -> tuple[list[float], int]:
    """Pack a file; return seconds, processor times and the most kilobytes of a process."""
    arguments = ["pack", "--input", source, "-n", BUDGET, "--workers", workers, "-o", output]
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        while child.poll() is None:
            most = max(most, *map(peak_of, [child.pid, *children_of(child.pid)]))
            time.sleep(0.01)
        assert child.stdout is not None
        assert child.returncode == 0
        return json.loads(child.stdout.read()), most


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started; none where that is not known."""
    try:
        return [int(n) for n in Path(PROC, f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def peak_of(pid: int) -> int:
    """Return the most kilobytes that a process had; 0 where that is not known."""
    try:
        lines = Path(PROC, f"{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def show_threads(source: Path, number: int, threads: int) -> None:
    """Pack the lines by threads of this process."""
    packer = Packer(BUDGET)

    def found() -> Iterator[tuple[str, list[Any]]]:
        with source.open("rb") as file:
            for line in file:
                request = json.loads(line)
                yield request["query"], request["chunks"]

    wall, work = time.perf_counter(), time.process_time()
    for packing in packer.pack_batch(found(), workers=threads):
        json.dumps([packing.text, [kept.index for kept in packing.kept]])
    wall, work = time.perf_counter() - wall, time.process_time() - work
    print(
        f"threads {threads}: {number / wall:7,.0f} requests a second; "
        f"{1e6 * work / number:5.0f} us of processor time a request"
    )


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="run all once, with few requests")
    given = parser.parse_args()
    if given.smoke:
        given.requests, given.rounds = 100, 1
    number = given.requests
    with tempfile.TemporaryDirectory() as folder:
        one, ten = Path(folder, "one.jsonl"), Path(folder, "ten.jsonl")
        write(one, number)
        write(ten, number * 10)
        size = ten.stat().st_size / 1e6
        print(f"{number * 10} requests, {size:.0f} MB; {os.cpu_count()} processors")
        for _ in range(given.rounds):
            for workers in (1, 2):
                show_threads(one, number, workers)
                (wall, main_time, work), _ = packed(ten, Path(folder, "out.jsonl"), workers)
                print(
                    f"workers {workers}: {number * 10 / wall:7,.0f} requests a second; "
                    f"{1e5 * main_time / number:5.0f} us of processor time a request in the "
                    f"process that reads and writes, {1e5 * work / number:5.0f} in workers"
                )
        for ending in ("jsonl", "jsonl.gz", "parquet"):
            peaks = []
            for name, times in (("one", 1), ("ten", 10)):
                path = Path(folder, f"{name}.{ending}")
                write(path, number * times)
                peaks.append(packed(path, Path(folder, f"out.{ending}"), 1)[1] / 1e3)
                path.unlink()
            print(f"{ending}: {peaks[0]:.0f} MB, and {peaks[1]:.0f} MB for ten times as many")


if __name__ == "__main__":
    main()
