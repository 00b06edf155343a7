"""
Packing from a corpus: the time to query, build, change, save and open it, and its memory.

    python benches/bench_corpus.py [--sizes 5000,100000,1000000] [--rounds N] [--texts FILE]

At the smallest size, queries are compared with clean Python as people write it: split, count,
score by BM25, sort, and count with tiktoken until the budget is full, over texts that were
tokenized beforehand, and over texts that were not. Times are processor times, medians; only ratios
within one run are meaningful. Memory is the growth of the process by building, without the texts:
the postings and the data of each chunk, a useful figure only at large sizes; and the growth by the
first queries, caches and the tables of an encoding included. Of a file it is the growth by opening
it, and that by the first query, both with the pages of the file that were read.

Under pytest the smallest case runs once: ``pytest benches/bench_corpus.py``.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import math
import os
import re
import statistics
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tiktoken
from texts import CHARS, MAX_TOKENS, QUERY, fresh, real_text, vocabulary

from budgeteer import Chunk, Corpus, Packer

QUERIES = (
    QUERY,
    "how are default parameter values of a function evaluated",
    "unicode surrogate escape error handler",
)
PACKER = Packer(MAX_TOKENS)


def resident() -> int:
    """Return the resident bytes of the process; 0 if the system does not tell."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # return freed memory to the system
        trim(0)
    return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def seconds(work: Callable[[], Any], rounds: int) -> float:
    """Return the median processor time."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return re.findall(r"\w+", text.lower())


def clean_python(query: str, texts: list[str], counted: list[Counter[str]] | None) -> str:
    """Pack as people write it."""
    if counted is None:
        counted = [Counter(words(text)) for text in texts]
    os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabulary.cache_dir())
    encoding = tiktoken.get_encoding("o200k_base")
    lengths = [sum(counts.values()) for counts in counted]
    average = sum(lengths) / len(lengths)
    scores = [0.0] * len(texts)
    for term in dict.fromkeys(words(query)):
        having = sum(term in counts for counts in counted)
        idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for i, counts in enumerate(counted):
            if term in counts:
                norm = 1.2 * (0.25 + 0.75 * lengths[i] / average)
                scores[i] += idf * counts[term] * 2.2 / (counts[term] + norm)
    kept: list[str] = []
    used = 0
    for i in sorted(range(len(texts)), key=lambda i: -scores[i]):
        tokens = len(encoding.encode_ordinary(texts[i])) + 1
        if used + tokens <= MAX_TOKENS:
            kept.append(texts[i])
            used += tokens
    return "\n\n".join(kept)


def postings(path: Path) -> int:
    """Return the bytes of the postings of words in a file: its third to fifth section."""
    with path.open("rb") as file:
        return sum(struct.unpack_from("<5Q", file.read(80), 40)[2:])


def changes(texts: list[str]) -> dict[str, float]:
    """Return what removing and replacing five chunks takes, after the ids were read once."""
    corpus = Corpus(Chunk(text, id=str(i)) for i, text in enumerate(texts))
    corpus.replace([Chunk("", id="0")])
    step = len(texts) // 5
    new = [Chunk(texts[i], id=str(i + 2)) for i in range(0, 5 * step, step)]
    gone = [str(i + 1) for i in range(0, 5 * step, step)]
    return {
        "replace 5, ms": 1e3 * seconds(lambda: corpus.replace(new), 1),
        "remove 5, ms": 1e3 * seconds(lambda: corpus.remove(gone), 1),
    }


def measure(text: str, count: int, rounds: int, *, with_python: bool) -> dict[str, float]:
    """Return the figures at one size, by name."""
    Corpus(fresh(text, 100))  # loads the tables of characters
    texts = fresh(text, count)
    before = resident()
    start = time.process_time()
    corpus = Corpus(texts)
    figures = {"build, s": time.process_time() - start}
    built = resident() - before
    start = time.process_time()
    for query in QUERIES:
        PACKER.pack(query, corpus)
    figures["first queries, ms each"] = (time.process_time() - start) / len(QUERIES) * 1e3
    each = [seconds(partial(PACKER.pack, query, corpus), rounds) for query in QUERIES]
    figures["query, ms"] = statistics.mean(each) * 1e3
    figures["dropped looked at, ms"] = 1e3 * seconds(
        lambda: PACKER.pack(QUERIES[0], corpus).dropped[0], 3
    )
    figures["and by queries, bytes a chunk"] = (resident() - before - built) / count
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        figures["save, s"] = seconds(lambda: corpus.save(path), 1)
        figures["file, bytes a chunk"] = path.stat().st_size / count
        figures["postings, bytes a chunk"] = postings(path) / count
        figures["memory beside, bytes a chunk"] = (
            built / count - figures["postings, bytes a chunk"]
        )
        figures["open, s"] = seconds(lambda: Corpus.open(path), rounds)
        before = resident()
        opened = Corpus.open(path)
        figures["opened, bytes a chunk"] = (resident() - before) / count
        before = resident()
        start = time.process_time()
        PACKER.pack(QUERIES[0], opened)
        figures["first query of the file, ms"] = (time.process_time() - start) * 1e3
        figures["and by it, bytes a chunk"] = (resident() - before) / count
        each = [seconds(partial(PACKER.pack, query, opened), rounds) for query in QUERIES]
        figures["query of the file, ms"] = statistics.mean(each) * 1e3
        del opened
    figures |= changes(texts)
    if with_python:
        counted = [Counter(words(text)) for text in texts]
        figures["Python, ms"] = 1e3 * seconds(lambda: clean_python(QUERIES[0], texts, None), 1)
        figures["Python, tokenized, ms"] = 1e3 * seconds(
            lambda: clean_python(QUERIES[0], texts, counted), 1
        )
    return figures


def test_corpus() -> None:
    """The smallest case runs."""
    figures = measure(real_text(), 300, 1, with_python=True)

    assert all(value >= 0 for name, value in figures.items() if "bytes" not in name)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default="5000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--texts", type=Path)
    arguments = parser.parse_args()
    text = real_text(arguments.texts)
    for nth, count in enumerate(map(int, arguments.sizes.split(","))):
        print(f"\n{count} chunks of {CHARS} characters")
        figures = measure(text, count, arguments.rounds, with_python=nth == 0)
        for name, value in figures.items():
            print(f"{name:30}{value:12.3f}")
        for name in ("Python, ms", "Python, tokenized, ms"):
            if name in figures:
                times = figures[name] / figures["query, ms"]
                print(f"{name[:-4]} takes {times:.0f} times a query")


if __name__ == "__main__":
    main()
