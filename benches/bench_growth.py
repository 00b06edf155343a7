"""
How a corpus grows: the time to build, open and query it, and its memory, from size to size.

    python benches/bench_growth.py [--sizes 10000,100000,1000000] [--sentences N] [--smoke]

Each size has a process of its own. The chunks are sentences of the suite's English, none like
another: 8 sentences have 690 characters, 1 has 90. Times are processor times, the best of several.
Memory is what the process gained by it, with the pages of the file that were read and without the
texts that the caller holds. A query is packed into 6,000 tokens; then, with the default ranking,
into each of 200 budgets from 500 to 12,000, of which the median and the 99th percentile are told.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from bench_corpus import resident
from suite.fixed import query_of
from suite.search import different
from timing import in_process

from budgeteer import Corpus, Packer

ROUNDS = 15
MAX_TOKENS = 6_000
BUDGETS = 200
PACKERS = {
    "default": Packer(MAX_TOKENS),
    "bm25": Packer(MAX_TOKENS, ranking="bm25"),
    "keyword": Packer(MAX_TOKENS, ranking="keyword"),
    "10 by bm25": Packer(MAX_TOKENS, ranking="bm25", max_chunks=10),
}


def best(work: Callable[[], Any], rounds: int) -> float:
    """Return the least processor time, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def built(path: str, count: int, sentences: int) -> dict[str, float]:
    """Build and save a corpus, and return what that takes."""
    texts = different(count, sentences)
    Corpus(texts[:10])  # loads the tables of characters
    before = resident()
    start = time.process_time()
    corpus = Corpus(texts)
    figures = {"build, s": time.process_time() - start}
    figures["built, MB"] = (resident() - before) / 1e6
    start = time.process_time()
    corpus.save(path)
    figures["save, s"] = time.process_time() - start
    figures["file, MB"] = Path(path).stat().st_size / 1e6
    return figures


def opened(path: str, rounds: int) -> dict[str, float]:
    """Open a corpus and query it, and return what that takes."""
    PACKERS["default"].pack("tea", ["tea"])  # loads the encoding
    before = resident()
    figures = {"open, ms": best(lambda: Corpus.open(path), rounds)}
    corpus = Corpus.open(path)
    figures["opened, MB"] = (resident() - before) / 1e6
    queries = [query_of("English", words) for words in (3, 8)]
    start = time.process_time()
    PACKERS["default"].pack(queries[0], corpus)
    figures["first query, ms"] = (time.process_time() - start) * 1e3
    for name, packer in PACKERS.items():
        times = [best(lambda q=query, p=packer: p.pack(q, corpus), rounds) for query in queries]
        figures[f"{name}, ms"] = sum(times) / len(times)
    figures["then, MB"] = (resident() - before) / 1e6
    packers = [Packer(budget) for budget in Random(1).choices(range(500, 12_001), k=BUDGETS)]
    over = [[best(lambda q=q, p=p: p.pack(q, corpus), 3) for p in packers] for q in queries]
    for percent in (50, 99):
        times = [sorted(times)[len(times) * percent // 100] for times in over]
        figures[f"default, p{percent}, ms"] = sum(times) / len(times)
    return figures


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--sentences", type=int, default=8)
    parser.add_argument("--smoke", action="store_true", help="one small size, once")
    arguments = parser.parse_args()
    sizes = [300] if arguments.smoke else [int(size) for size in arguments.sizes.split(",")]
    rounds = 1 if arguments.smoke else ROUNDS
    for nth, count in enumerate(sizes):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "corpus")
            figures = in_process("bench_growth", "built", path, count, arguments.sentences)
            figures |= in_process("bench_growth", "opened", path, rounds)
        if nth == 0:
            print("| chunks |", " | ".join(figures), "|")
            print("|---" * (1 + len(figures)) + "|")
        print(
            f"| {count:,} |",
            " | ".join(f"{value:.3g}" for value in figures.values()),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
