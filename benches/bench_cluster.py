"""
Queries a second per core by one process and by two, and what it costs to reach another process.

    python benches/bench_cluster.py [--rows N] [--corpus CHUNKS] [--rounds N]
                                    [--only cores|shards|frameworks]
    python benches/bench_cluster.py --smoke

- `lists`: rows of a table, each a query with 20 chunks of 800 characters of English documentation,
  packed into 1,024 tokens by `budgeteer.pack_table`. No count of a whole text is remembered.
- `corpus`: queries over one corpus, which each process opens from the same file.
- `boundary`: a batch of `lists` in Arrow's stream format to another process and its answer back
  through a pipe, without packing it.
- `shards`: a query over one corpus, beside a query over four with a quarter of its chunks each, of
  which each answers its best 100, and the packing of these 400.
- Ray Data, Spark and Daft, where installed: the shims over `lists`, jobs after the first one; and
  the same rows through each of them with a function that only returns the keys.

A process has one thread and one core. One process and two take turns, round by round; each has
the same number of rows. Figures are medians: rows a second by wall time, microseconds of `lists`,
`corpus` and `shards` by processor time. On a machine with other work the wall time of two is that
of the core that has more of it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
from texts import CHARS, fresh, real_text

os.environ["BUDGETEER_NUM_THREADS"] = "1"  # read at the import, here and in each process

from budgeteer import Corpus, Packer, get_counter, pack_table

CHUNKS = 20
BUDGET = 1_024
WORDS = 8
SHARDS = 4
BEST = 100
TEXT = real_text()
COUNTER = get_counter("o200k_base", cache=False)


def made(rows: int) -> pa.Table:
    """Return a table of that many queries with 20 chunks each, and a key."""
    texts = fresh(TEXT, rows * CHUNKS)
    ends = pa.array(range(0, rows * CHUNKS + 1, CHUNKS), pa.int64())
    lists = pa.LargeListArray.from_arrays(ends, pa.array(texts, pa.large_string()))
    queries = [" ".join(texts[i * CHUNKS + 7].split()[1 : WORDS + 1]) for i in range(rows)]
    return pa.table({"key": pa.array(range(rows), pa.int64()), "query": queries, "chunks": lists})


def to_bytes(table: pa.Table) -> bytes:
    """Return a table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def of_bytes(data: bytes) -> pa.Table:
    """Return the table that such bytes are, where they lie."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def worker(pipe: Connection, core: int, rows: int, path: str) -> None:
    """Do what the pipe asks for, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    table, corpus = made(rows), Corpus.open(path)
    answer = to_bytes(pa.table(pack_table(table, BUDGET, counter=COUNTER)))
    pipe.send("ready")
    while (task := pipe.recv()) is not None:
        if task == "batch":
            of_bytes(pipe.recv_bytes())
            pipe.send_bytes(answer)
            continue
        wall, work = time.perf_counter(), time.process_time()
        if task == "lists":
            pack_table(table, BUDGET, counter=COUNTER)
        else:
            pack_table(table, BUDGET, chunks=corpus, counter=COUNTER)
        pipe.send((time.perf_counter() - wall, time.process_time() - work))


@contextmanager
def workers(count: int, rows: int, path: str) -> Iterator[list[Connection]]:
    """Start that many processes, and end them."""
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    pipes, processes = [], []
    for i in range(count):
        ours, theirs = context.Pipe()
        core = cores[i % len(cores)]
        process = context.Process(target=worker, args=(theirs, core, rows, path), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        assert pipe.recv() == "ready"
    yield pipes
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()


def at_once(pipes: list[Connection], task: str) -> tuple[float, list[tuple[float, float]]]:
    """Give all processes a task. Return the time until the last is done, and their own times."""
    start = time.perf_counter()
    for pipe in pipes:
        pipe.send(task)
    times = [pipe.recv() for pipe in pipes]
    return time.perf_counter() - start, times


def show_cores(pipes: list[Connection], rows: int, rounds: int) -> None:
    """Let one process and two take turns."""
    for task in ("lists", "corpus"):
        walls: dict[int, list[float]] = {1: [], 2: []}
        works: dict[int, list[float]] = {1: [], 2: []}
        for nth in range(rounds):
            for count in (1, 2):
                some = pipes if count == 2 else [pipes[nth % 2]]
                wall, times = at_once(some, task)
                walls[count].append(wall)
                works[count] += [work for _, work in times]
        ratios = [2 * one / two for one, two in zip(walls[1], walls[2], strict=True)]
        used = 2 * statistics.median(works[1]) / statistics.median(works[2])
        for count in (1, 2):
            rate = rows / statistics.median(walls[count])
            work = 1e6 * statistics.median(works[count]) / rows
            print(
                f"{task:8} {count} of 2 cores {rate:9,.0f} rows a second and core; {work:9,.1f} us"
            )
        print(
            f"{task:8} two do {statistics.median(ratios):.2f} times as much as one, "
            f"{used:.2f} by processor time"
        )


def show_boundary(pipe: Connection, rows: int, rounds: int) -> None:
    """Measure the way to another process and back, and what packing takes beside it."""
    table = made(rows)
    size = table.nbytes / rows
    steps: dict[str, list[float]] = {"there and back": [], "packing": []}
    for _ in range(rounds):
        start = time.perf_counter()
        pipe.send("batch")
        pipe.send_bytes(to_bytes(table))
        answer = of_bytes(pipe.recv_bytes())
        steps["there and back"].append(time.perf_counter() - start)
        start = time.perf_counter()
        packed = pa.table(pack_table(table, BUDGET, counter=COUNTER))
        steps["packing"].append(time.perf_counter() - start)
        assert packed.equals(answer)
    back = answer.nbytes / rows
    crossing, packing = (1e6 * statistics.median(times) / rows for times in steps.values())
    share = statistics.median(there / pack for there, pack in zip(*steps.values(), strict=True))
    print(
        f"boundary {size:,.0f} bytes a row there, {back:,.0f} back: {crossing:.1f} us a row, "
        f"where packing takes {packing:.1f}: {100 * share:.1f} %"
    )


def show_shards(chunks: int, rounds: int) -> None:
    """Let one corpus and its shards take turns."""
    texts = fresh(TEXT, chunks)
    whole = Corpus(texts)
    parts = [Corpus(texts[first::SHARDS]) for first in range(SHARDS)]
    packer = Packer(BUDGET)
    steps: dict[str, list[float]] = {"one corpus": [], "a shard": [], "packing their best": []}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        done = work()
        steps[step].append(time.process_time() - start)
        return done

    for query in made(rounds)["query"].to_pylist():
        timed("one corpus", partial(packer.pack, query, whole))
        best = []
        for part in parts:
            best += timed("a shard", partial(part.retrieve, query, BEST))
        timed("packing their best", partial(packer.pack, query, best))
    print(f"{chunks:,} chunks in one corpus, and in {SHARDS} shards")
    for step, times in steps.items():
        print(f"shards   {step:18} {1e3 * statistics.median(times):8.2f} ms a query")


def show_processes(rows: int, chunks: int, rounds: int) -> None:
    """Measure one process and two, and the way to another."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "corpus")
        Corpus(fresh(TEXT, chunks)).save(path)
        size = Path(path).stat().st_size / chunks
        print(
            f"{rows} rows of {CHUNKS} chunks of {CHARS} characters. A corpus of {chunks:,} "
            f"chunks, {size:,.0f} bytes each"
        )
        with workers(2, rows, path) as pipes:
            show_cores(pipes, rows, rounds)
            show_boundary(pipes[0], rows, rounds)


Job = Callable[[], int]


@contextmanager
def ray_jobs(table: pa.Table) -> Iterator[tuple[Job, Job]]:
    """Yield a job that packs and one that only returns keys."""
    ray, shim = import_module("ray"), import_module("budgeteer.integrations.ray")
    import_module("ray.data")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    size = -(-len(table) // 8)
    parts = [table.slice(first, size) for first in range(0, len(table), size)]
    ds = ray.data.from_arrow(parts).materialize()

    def keys(batch: pa.Table) -> pa.Table:
        return batch.select(["key"])

    yield (
        lambda: len(shim.pack_dataset(ds, BUDGET, keep=["key"], counter=COUNTER).to_pandas()),
        lambda: len(ds.map_batches(keys, batch_format="pyarrow").to_pandas()),
    )
    ray.shutdown()


@contextmanager
def spark_jobs(table: pa.Table) -> Iterator[tuple[Job, Job]]:
    """Yield a job that packs and one that only returns keys."""
    sql, shim = import_module("pyspark.sql"), import_module("budgeteer.integrations.spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    frame = session.createDataFrame(table).repartition(8).cache()
    frame.count()

    def keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["key"])

    yield (
        lambda: len(shim.pack_dataframe(frame, BUDGET, keep=["key"], counter=COUNTER).toArrow()),
        lambda: len(frame.mapInArrow(keys, "key long").toArrow()),
    )
    session.stop()


@contextmanager
def daft_jobs(table: pa.Table) -> Iterator[tuple[Job, Job]]:
    """Yield a job that packs and one that only returns keys."""
    daft, shim = import_module("daft"), import_module("budgeteer.integrations.daft")
    frame = daft.from_arrow(table).collect()

    @daft.func.batch(return_dtype=daft.DataType.int64())
    def keys(key: Any, query: Any, chunks: Any) -> Any:
        del query, chunks
        return key

    yield (
        lambda: len(shim.pack_dataframe(frame, BUDGET, keep=["key"], counter=COUNTER).to_arrow()),
        lambda: len(frame.select(keys(frame["key"], frame["query"], frame["chunks"])).to_arrow()),
    )


FRAMEWORKS = {"ray": ray_jobs, "pyspark": spark_jobs, "daft": daft_jobs}


def show_framework(name: str, rows: int, rounds: int) -> None:
    """Let a framework's job, its way there and back, and one process take turns."""
    table = made(rows)
    with FRAMEWORKS[name](table) as (pack, only_keys):
        ways: dict[str, Job] = {
            "packs": pack,
            "only keys": only_keys,
            "one process packs": lambda: len(pack_table(table, BUDGET, counter=COUNTER)),
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for nth in range(rounds + 1):
            for way, job in ways.items():
                start = time.perf_counter()
                assert job() == rows
                if nth:  # the first job starts processes
                    times[way].append(time.perf_counter() - start)
    for way, seconds in times.items():
        spent = statistics.median(seconds)
        print(f"{name:8} {way:18} {spent:7.2f} s, {rows / spent:9,.0f} rows a second", flush=True)


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--corpus", type=int, default=50_000, help="chunks of the corpus")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["cores", "shards", "frameworks"])
    parser.add_argument("--smoke", action="store_true", help="run all once, with few rows")
    given = parser.parse_args()
    if given.smoke:
        given.rows, given.corpus, given.rounds = 40, 500, 1
    if given.only in (None, "cores"):
        show_processes(given.rows, given.corpus, given.rounds)
    if given.only in (None, "shards"):
        show_shards(given.corpus, 3 * given.rounds)
    for name in FRAMEWORKS if given.only in (None, "frameworks") else ():
        if find_spec(name) is None:
            print(f"{name} is left out: it is not installed")
        else:
            show_framework(name, 4 * given.rows, given.rounds)


if __name__ == "__main__":
    main()
