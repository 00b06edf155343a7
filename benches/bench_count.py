"""
Exact counting beside tiktoken and gigatoken, interleaved in one run.

`bench_families.py` has the other tokenizers, beside more packages.

    python benches/bench_count.py [--rounds N] [--chunks N] [--smoke]

The chunks have 800 characters each, from the files of Python and of installed packages: prose,
code and data, in every script found there. The files differ between machines.

A process cannot clear its cache of pretokens. So each measurement has a fresh process, with the
vocabulary loaded by one short text; a round is one process for each, in turn, and the first pass
over the chunks is the cold one. Every pass gets fresh strings, as CPython caches data of a str.
Times are processor times, which other programs disturb little, except those of several threads.
They are medians over the rounds, and a ratio is the median of the rounds' ratios; times of
different runs do not compare.

gigatoken, of the group `bench`, is left out if it is not installed.

Under pytest the warm cases run with pytest-benchmark:
``pytest benches/bench_count.py --benchmark-enable``.
"""

from __future__ import annotations

import argparse
import functools
import gc
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from texts import vocabulary

import budgeteer
from budgeteer import Packer

QUERY = "which exception does the parser raise for an invalid argument in the configuration file"
ENCODINGS = ("cl100k_base", "o200k_base")
PACKED = "o200k_base"
CHARS = 800
PACK = 500
MAX_TOKENS = 8_000
LIMIT = 64
HOSTILE = 1_000_000
PARALLEL = 20_000

HAS_GIGATOKEN = importlib.util.find_spec("gigatoken") is not None

PROSE = {".md", ".txt", ".rst", "METADATA", "LICENSE"}
KINDS = {**dict.fromkeys(PROSE, "prose"), ".py": "code", ".json": "data"}

Run = Callable[[list[str]], int]
"""Counts texts one after another, and returns the sum, which is the same for all counters."""


# The chunks


def cut(text: str) -> list[str]:
    """Return the whole chunks of a text."""
    return [text[at : at + CHARS] for at in range(0, len(text) - CHARS + 1, CHARS)]


def shuffled(chunks: list[str]) -> list[str]:
    """Return the chunks, each once, in an order that is the same in every run."""
    return sorted(set(chunks), key=lambda chunk: hashlib.blake2b(chunk.encode()).digest())


@functools.cache
def real_chunks(count: int, of_a_file: int = 20) -> tuple[str, ...]:
    """
    Return *count* different chunks of installed files, well mixed.

    No file except the language reference gives more than *of_a_file* of them. A third each is
    prose, code and data, and a fifth is not ASCII, as far as there are enough.
    """
    found: dict[str, list[str]] = {
        "prose": cut("\n".join(topics.values())),
        "code": [],
        "data": [],
    }
    standard, installed = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    for root in (standard, installed):
        for path in sorted(root.rglob("*")):
            kind = KINDS.get(path.suffix) or KINDS.get(path.name)
            inside = path.relative_to(root).parts
            if kind is None or inside[0] == "site-packages" or not path.is_file():
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            found[kind] += shuffled(cut(text))[:of_a_file]
    mixed = [
        chunk
        for chunks in itertools.zip_longest(*map(shuffled, found.values()))
        for chunk in chunks
        if chunk is not None
    ]
    mixed = list(dict.fromkeys(mixed))
    wide = [chunk for chunk in mixed if not chunk.isascii()][: count // 5]
    chosen = wide + [chunk for chunk in mixed if chunk.isascii()][: count - len(wide)]
    if len(chosen) < count:
        raise SystemExit(f"only {len(chosen)} chunks are installed here")
    return tuple(shuffled(chosen))


def fresh(chunks: Sequence[str]) -> list[str]:
    """Return the same texts as new strings."""
    whole = "".join(chunks)
    return [whole[at : at + CHARS] for at in range(0, len(whole), CHARS)]


def scripts(chunks: Sequence[str]) -> str:
    """Return the scripts of letters beyond ASCII, each with its number of chunks."""
    names = Counter(
        name
        for chunk in chunks
        for name in {
            unicodedata.name(char, "?").split()[0]
            for char in set(chunk)
            if char.isalpha() and not char.isascii()
        }
    )
    return ", ".join(f"{name} {count}" for name, count in names.most_common(12) if count > 1)


# The counters


def make_folder(folder: Path) -> None:
    """Put both vocabularies where gigatoken finds them by name, and tiktoken in its cache."""
    for encoding, name in zip(ENCODINGS, vocabulary.FILES, strict=True):
        shutil.copy(vocabulary.cache_dir() / name, folder / name)
        shutil.copy(vocabulary.cache_dir() / name, folder / f"{encoding}.tiktoken")


def tiktoken_run(encoding: str, folder: Path) -> Run:
    """Count with tiktoken."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    encode = importlib.import_module("tiktoken").get_encoding(encoding).encode_ordinary
    return lambda texts: sum(map(len, map(encode, texts)))


def gigatoken_run(encoding: str, folder: Path) -> Run:
    """Count with gigatoken."""
    tokenizer = importlib.import_module("gigatoken").Tokenizer
    encode = tokenizer.from_tiktoken(folder / f"{encoding}.tiktoken").encode
    return lambda texts: sum(map(len, map(encode, texts)))


def ours(how: str, *, cache: bool) -> Callable[[str, Path], Run]:
    """Count with a method of budgeteer."""

    def run(encoding: str, _: Path) -> Run:
        counter = budgeteer.get_counter(encoding, cache=cache)
        ways: dict[str, Run] = {
            "count": lambda texts: sum(map(counter.count, texts)),
            "count_batch": lambda texts: int(counter.count_batch(texts).sum()),
            # No sum, as most texts are not counted to their end.
            "count_till_limit": lambda texts: sum(
                map(bool, map(counter.count_till_limit, texts, itertools.repeat(LIMIT)))
            ),
        }
        return ways[how]

    return run


COUNTERS: dict[str, Callable[[str, Path], Run]] = {
    "tiktoken": tiktoken_run,
    "gigatoken": gigatoken_run,
    "count": ours("count", cache=False),
    "count_batch": ours("count_batch", cache=False),
    "count, cached": ours("count", cache=True),
    "count_batch, cached": ours("count_batch", cache=True),
    f"count_till_limit({LIMIT})": ours("count_till_limit", cache=False),
    f"count_till_limit({LIMIT}), not yet cached": ours("count_till_limit", cache=True),
}
if not HAS_GIGATOKEN:
    del COUNTERS["gigatoken"]
TILL_LIMIT = f"count_till_limit({LIMIT})"
CACHED = [name for name in COUNTERS if name.endswith(", cached")]
NOT_YET = [name for name in COUNTERS if name.endswith("not yet cached")]
COLD = [name for name in COUNTERS if name not in {*CACHED, *NOT_YET}]


def pack_with_tiktoken(count: Callable[[str], Any], texts: list[str]) -> int:
    """Pack as without this library: count everything, then take the best that fit."""
    wanted = set(QUERY.lower().split())
    counts = [len(count(text)) for text in texts]
    scores = [len(wanted.intersection(text.lower().split())) for text in texts]
    kept, total = [], 0
    for index in sorted(range(len(texts)), key=lambda index: -scores[index]):
        if total + counts[index] <= MAX_TOKENS:
            total += counts[index]
            kept.append(texts[index])
    return len("\n\n".join(kept))


# Measurements of a fresh process


def seconds(work: Callable[[Any], Any], argument: Any) -> float:
    """Return the processor time."""
    start = time.process_time()
    work(argument)
    return time.process_time() - start


def cold(chunks: Sequence[str], folder: Path, encoding: str, name: str) -> Any:
    """Return the times of the first count and of the first pass, and the sum of its counts."""
    importlib.import_module(name if name in ("tiktoken", "gigatoken") else "numpy")
    start = time.process_time()
    run = COUNTERS[name](encoding, folder)
    run(["Hello, world"])
    first = time.process_time() - start
    texts = fresh(chunks)
    start = time.process_time()
    total = run(texts)
    return first, time.process_time() - start, total


def warm(chunks: Sequence[str], folder: Path, encoding: str, sweeps: int) -> Any:
    """Return the median time of each counter in a process that has counted all texts before."""
    runs = {name: make(encoding, folder) for name, make in COUNTERS.items()}
    for run in runs.values():
        run(fresh(chunks))
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(sweeps):
        for name, run in runs.items():
            # Quick cases get more tries, as they are noisier.
            for _ in range(1 if name == "tiktoken" else 5):
                if name in NOT_YET:
                    budgeteer.get_counter(encoding).clear_cache()
                elif name in CACHED:
                    run(fresh(chunks))
                times[name].append(seconds(run, fresh(chunks)))
    return {name: statistics.median(values) for name, values in times.items()}


def packing(chunks: Sequence[str], folder: Path, start: int) -> Any:
    """Return the time of the first packing of a process, and median times of later ones."""
    packer = Packer(MAX_TOKENS, counter=PACKED, ranking="keyword")
    counter = budgeteer.get_counter(PACKED)
    tiktoken_run(PACKED, folder)(["Hello, world"])
    encode = importlib.import_module("tiktoken").get_encoding(PACKED).encode_ordinary
    counter.count("Hello, world")
    batches = [chunks[at : at + PACK] for at in range(0, len(chunks) - PACK + 1, PACK)]

    def pack(texts: list[str]) -> None:
        packer.pack(QUERY, texts)

    def baseline(texts: list[str]) -> None:
        pack_with_tiktoken(encode, texts)

    first = seconds(pack, fresh(batches[start % len(batches)]))
    times: dict[str, list[float]] = {"tiktoken": [], "cleared": [], "cached": []}
    for batch in batches:
        pack(fresh(batch))  # the process has seen these texts
        times["tiktoken"].append(seconds(baseline, fresh(batch)))
        for _ in range(5):
            counter.clear_cache()
            times["cleared"].append(seconds(pack, fresh(batch)))
        for _ in range(5):
            times["cached"].append(seconds(pack, fresh(batch)))
    return {"first": first, **{name: statistics.median(values) for name, values in times.items()}}


def parallel(chunks: Sequence[str], _: Path, encoding: str, count: int) -> Any:
    """Return the time of a large batch by the clock, and of all processors."""
    run = COUNTERS["count_batch"](encoding, Path())
    many = list(itertools.islice(itertools.cycle(chunks), count))
    run(fresh(many))
    times, spent = [], []
    for _ in range(5):
        texts = fresh(many)
        start = time.perf_counter()
        spent.append(seconds(run, texts))
        times.append(time.perf_counter() - start)
    return statistics.median(times), statistics.median(spent)


def hostile_texts(size: int) -> dict[str, str]:
    """Return texts with no place to split, or with nothing else."""
    choose = random.Random(1).choices
    han = [chr(code) for code in range(0x4E00, 0x9FA6)]
    return {
        "equal characters": "a" * size,
        "random letters": "".join(choose("abcdefghijklmnopqrstuvwxyz", k=size)),
        "CJK": "".join(choose(han, k=size)),
        "whitespace": " " * size,
    }


def hostile(_: Sequence[str], __: Path, encoding: str, size: int) -> Any:
    """Return the median times of each text, and of a tenth of it."""
    count = budgeteer.get_counter(encoding, cache=False).count
    count("Hello, world")
    times: dict[str, tuple[float, float]] = {}
    for name, text in hostile_texts(size).items():
        tries = [
            (seconds(count, text[:-1] + text[-1]), seconds(count, text[: size // 10]))
            for _ in range(3)
        ]
        whole, tenth = zip(*tries, strict=True)
        times[name] = statistics.median(whole), statistics.median(tenth)
    return times


SECTIONS = {section.__name__: section for section in (cold, warm, packing, parallel, hostile)}


# Rounds of processes


class Times:
    """The times of several rounds."""

    def __init__(self) -> None:
        self.times: dict[tuple[Any, ...], list[float]] = {}

    def add(self, *key: Any, time: float) -> None:
        """Add a time under *key*."""
        self.times.setdefault(key, []).append(time)

    def median(self, *key: Any) -> float:
        """Return the median time."""
        return statistics.median(self.times[key])

    def ratio(self, over: tuple[Any, ...], under: tuple[Any, ...]) -> float:
        """Return the median of the rounds' ratios."""
        pairs = zip(self.times[over], self.times[under], strict=True)
        return statistics.median(a / b for a, b in pairs)


class Rounds(Times):
    """The measurements of fresh processes in each round."""

    def __init__(self, folder: Path, *, small: bool) -> None:
        super().__init__()
        self.folder = folder
        self.sweeps = 1 if small else 2
        self.parallel = PARALLEL // 4 if small else PARALLEL
        self.hostile = HOSTILE // 10 if small else HOSTILE
        self.totals: dict[str, dict[str, int]] = {}

    def process(self, section: str, *arguments: Any, threads: int = 1) -> Any:
        """Return the result of a section in a process of its own."""
        command = [sys.executable, __file__, "--section", json.dumps([section, *arguments])]
        command += ["--folder", str(self.folder)]
        environment = {**os.environ, "BUDGETEER_NUM_THREADS": str(threads)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def measure(self) -> None:
        """Measure everything once."""
        at = len(self.times.get(("packing", "first"), ()))
        for encoding in ENCODINGS:
            totals = self.totals[encoding] = {}
            for name in COLD:
                first, time, total = self.process("cold", encoding, name)
                self.add("first", encoding, name, time=first)
                self.add("cold", encoding, name, time=time)
                totals[name] = total
            if not totals["tiktoken"] == totals["count"] == totals["count_batch"]:
                raise SystemExit(f"counts differ: {totals}")
            for name, time in self.process("warm", encoding, self.sweeps).items():
                self.add("warm", encoding, name, time=time)
            for threads in (1, 2):
                time, spent = self.process("parallel", encoding, self.parallel, threads=threads)
                self.add("parallel", encoding, threads, time=time)
                self.add("spent", encoding, threads, time=spent)
            for name, (whole, tenth) in self.process("hostile", encoding, self.hostile).items():
                self.add("hostile", encoding, name, time=whole)
                self.add("tenth", encoding, name, time=tenth)
        for name, time in self.process("packing", at).items():
            self.add("packing", name, time=time)


def targets(heat: str, encoding: str, name: str) -> tuple[int, int] | tuple[int] | tuple[()]:
    """Return how many times faster than tiktoken and gigatoken a counter should be."""
    if name in ("tiktoken", "gigatoken"):
        return ()
    if name in CACHED:
        return (100,)
    if name.startswith("count_till_limit"):
        return (20,)
    if heat == "cold":
        return (8, 1)
    return (20 if encoding == "cl100k_base" else 15, 1)


def report(rounds: Rounds, count: int) -> None:
    """Print the tables."""
    others = ["tiktoken", "gigatoken"] if HAS_GIGATOKEN else ["tiktoken"]
    heads = "".join(f"{other + ' is':>14}" for other in others)
    for encoding in ENCODINGS:
        print(f"\n{encoding}, one thread\n{'':46}{'ns/chunk':>10}{heads}   at least")
        for heat in ("cold", "warm"):
            for name in COLD if heat == "cold" else COUNTERS:
                times = rounds.median(heat, encoding, name)
                ratios = (
                    rounds.ratio((heat, encoding, other), (heat, encoding, name))
                    for other in others
                )
                wanted = targets(heat, encoding, name)[: len(others)]
                line = (
                    f"{heat + ' ' + name:46}{times / count * 1e9:10.0f}"
                    + "".join(
                        f"{ratio:13.1f}x" if ratio >= 10 else f"{ratio:13.2f}x" for ratio in ratios
                    )
                    + "   "
                    + " ".join(f"{want}x" for want in wanted)
                )
                print(line.rstrip())
        totals = rounds.totals[encoding]
        if totals.get("gigatoken", totals["tiktoken"]) != totals["tiktoken"]:
            print(f"gigatoken counts {totals['gigatoken']} tokens, the others {totals['count']}")

    title = f"{PACK} chunks into {MAX_TOKENS} tokens of {PACKED}"
    print(f"\n{title:46}{'ms':>10}{'tiktoken is':>14}   at least")
    labels = {
        "tiktoken": ("tiktoken and plain Python", ""),
        "first": ("first packing of a process, vocabulary loaded", ""),
        "cleared": ("cache cleared", "50x"),
        "cached": ("cached", ""),
    }
    for name, (label, want) in labels.items():
        ratio = rounds.ratio(("packing", "tiktoken"), ("packing", name))
        line = f"{label:46}{rounds.median('packing', name) * 1e3:10.3f}{ratio:13.1f}x   {want}"
        print(line.rstrip())

    print(f"\n{'first count of a process':46}{'CPU ms':>10}{'tiktoken is':>14}   at most")
    for encoding, want in zip(ENCODINGS, (60, 100), strict=True):
        time = rounds.median("first", encoding, "count")
        ratio = rounds.ratio(("first", encoding, "tiktoken"), ("first", encoding, "count"))
        print(f"{encoding:46}{time * 1e3:10.1f}{ratio:13.1f}x   {want} ms")

    title = f"count_batch of {rounds.parallel} chunks, warm"
    print(
        f"\n{title:46}{'1 thread, ms':>14}{'2 threads, ms':>14}{'faster':>8}{'CPUs':>6}{'work':>7}"
    )
    for encoding in ENCODINGS:
        one, two = (rounds.median("parallel", encoding, threads) * 1e3 for threads in (1, 2))
        ratio = rounds.ratio(("parallel", encoding, 1), ("parallel", encoding, 2))
        spent = rounds.ratio(("spent", encoding, 2), ("spent", encoding, 1))
        had = rounds.ratio(("spent", encoding, 2), ("parallel", encoding, 2))
        print(f"{encoding:46}{one:14.2f}{two:14.2f}{ratio:7.2f}x{had:6.2f}{spent:6.2f}x")
    print("CPUs: how many the 2 threads really had; work: what they spent beside 1 thread")

    title = f"{rounds.hostile} characters"
    print(f"\n{title:46}{'ms':>10}{'ns/char':>14}{'a tenth is':>14}")
    for encoding in ENCODINGS:
        for name in hostile_texts(1):
            whole = rounds.median("hostile", encoding, name)
            ratio = rounds.ratio(("hostile", encoding, name), ("tenth", encoding, name))
            print(
                f"{encoding + ', ' + name:46}{whole * 1e3:10.2f}"
                f"{whole / rounds.hostile * 1e9:14.1f}{'1/' + format(ratio, '.1f'):>14}"
            )


# pytest-benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """Return a folder with the vocabularies."""
    path: Path = tmp_path_factory.mktemp("vocabularies")
    make_folder(path)
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", COUNTERS)
def test_count(benchmark: Any, monkeypatch: Any, folder: Path, name: str, encoding: str) -> None:
    """One counter, warm, on fresh strings each round."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))  # undone at the end
    chunks = real_chunks(PACK)
    run = COUNTERS[name](encoding, folder)
    run(fresh(chunks))

    def setup() -> tuple[tuple[list[str]], dict[str, Any]]:
        if name in NOT_YET:
            budgeteer.get_counter(encoding).clear_cache()
        return (fresh(chunks),), {}

    benchmark.group = f"{encoding}, {PACK} chunks"
    benchmark.pedantic(run, setup=setup, rounds=5 if name == "tiktoken" else 20)


@pytest.mark.parametrize("name", ["tiktoken", "cleared", "cached"])
def test_pack(benchmark: Any, monkeypatch: Any, folder: Path, name: str) -> None:
    """Pack into exact tokens, on fresh strings each round."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    chunks = real_chunks(PACK)
    encode = importlib.import_module("tiktoken").get_encoding(PACKED).encode_ordinary
    packer = Packer(MAX_TOKENS, counter=PACKED, ranking="keyword")
    packer.pack(QUERY, fresh(chunks))

    def pack(texts: list[str]) -> int:
        return packer.pack(QUERY, texts).total_tokens

    def setup() -> tuple[tuple[list[str]], dict[str, Any]]:
        if name == "cleared":
            budgeteer.get_counter(PACKED).clear_cache()
        return (fresh(chunks),), {}

    run = functools.partial(pack_with_tiktoken, encode) if name == "tiktoken" else pack
    benchmark.group = f"pack {PACK} chunks into {MAX_TOKENS} tokens"
    benchmark.pedantic(run, setup=setup, rounds=5 if name == "tiktoken" else 20)


def main() -> None:
    """Print the tables, or the result of one section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--chunks", type=int, default=5_000, help=f"from {PACK} on")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    parser.add_argument("--section", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.section:
        name, *rest = arguments.section
        chunks = json.loads((arguments.folder / "chunks.json").read_text(encoding="ascii"))
        gc.collect()
        gc.disable()
        print(json.dumps(SECTIONS[name](chunks, arguments.folder, *rest)))
        return

    count = PACK if arguments.smoke else max(PACK, arguments.chunks)
    amount = 1 if arguments.smoke else arguments.rounds
    chunks = real_chunks(count)
    wide = sum(not chunk.isascii() for chunk in chunks) / count
    print(
        f"Python {sys.version.split()[0]}, {count} chunks of {CHARS} characters, {amount} rounds"
    )
    print(f"{wide:.0%} of the chunks not ASCII; chunks with letters of {scripts(chunks)}")
    if not HAS_GIGATOKEN:
        print("gigatoken is not installed: left out")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_folder(folder)
        (folder / "chunks.json").write_text(json.dumps(chunks), encoding="ascii")
        rounds = Rounds(folder, small=arguments.smoke)
        for _ in range(amount):
            rounds.measure()
        report(rounds, count)


if __name__ == "__main__":
    main()
