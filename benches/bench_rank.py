"""
BM25 and the lexical ranking beside keyword overlap, bm25s and rank_bm25, interleaved in one run.

    python benches/bench_rank.py [--sizes 500,5000,50000] [--rounds N] [--texts FILE] [--smoke]

Each case answers one query over candidates that it sees for the first time, as after a retriever:
a package with an index builds it and queries it once. Every call gets fresh strings: see
`timing.py`. Only the ratios of one run are meaningful. The text is the language reference
that ships with Python, or that of FILE (JSONL like the evaluation data, or plain text). The peers,
of the group `bench`, are left out if they are not installed. They get the words of each text by
the pattern ``[a-z0-9]+``, in lowercase; finding these is part of their time, as it is of ours.

Under pytest the cases run with pytest-benchmark:
``pytest benches/bench_rank.py --benchmark-enable``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from texts import CHARS, MAX_TOKENS, QUERY, SIZES, fresh, real_text
from timing import Case, interleaved, one_slice

from budgeteer import Packer, _reference, ranking

WORD = re.compile("[a-z0-9]+")


def words(text: str) -> list[str]:
    """Return the words of a text that the peers get."""
    return WORD.findall(text.lower())


def run_reference(texts: list[str]) -> Any:
    """Score by the pure-Python implementation."""
    return _reference.bm25_scores(QUERY, texts, None, 1.2, 0.75, (None, "english"))


def run_bm25s(texts: list[str], query: str = QUERY) -> Any:
    """Build an index of bm25s and query it once."""
    bm25s = importlib.import_module("bm25s")
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    index.index([words(text) for text in texts], show_progress=False)
    return index.get_scores(words(query))


def run_rank_bm25(texts: list[str], query: str = QUERY) -> Any:
    """Build an index of rank_bm25 and query it once."""
    rank_bm25 = importlib.import_module("rank_bm25")
    index = rank_bm25.BM25Okapi([words(text) for text in texts], k1=1.2, b=0.75)
    return index.get_scores(words(query))


def packed(by: str) -> Callable[[list[str]], Any]:
    """Return a function that scores, ranks, counts and packs in one call."""
    packer = Packer(MAX_TOKENS, counter="chars_div4", ranking=by)
    return lambda texts: packer.pack(QUERY, texts)


CASES: dict[str, Callable[[list[str]], Any]] = {
    "bm25_scores": lambda texts: ranking.bm25_scores(QUERY, texts),
    "lexical_scores": lambda texts: ranking.lexical_scores(QUERY, texts),
    "keyword_scores": lambda texts: ranking.keyword_scores(QUERY, texts),
    "pack, lexical": packed("lexical"),
    "pack, bm25": packed("bm25"),
    "pack, keyword": packed("keyword"),
    "reference": run_reference,
}
PEERS = {"bm25s": run_bm25s, "rank_bm25": run_rank_bm25}
CASES |= {name: run for name, run in PEERS.items() if importlib.util.find_spec(name)}
SLOW = {"reference", *PEERS}
OURS_PER_ROUND = {500: 20, 5_000: 5}


def cases_of(text: str, count: int) -> dict[str, Case]:
    """Return the cases at one size."""
    return {
        name: Case(
            one_slice(run) if name in SLOW else run,
            lambda: fresh(text, count),
            OURS_PER_ROUND.get(count, 1),
        )
        for name, run in CASES.items()
    }


@pytest.mark.parametrize("count", SIZES[:2])
@pytest.mark.parametrize("name", CASES)
def test_rank(benchmark: Any, name: str, count: int) -> None:
    """One case at one size, on fresh strings each round."""
    text = real_text()
    rounds = 2 if name in SLOW else max(2, 10_000 // count)
    benchmark.group = f"rank {count}"
    benchmark.pedantic(CASES[name], setup=lambda: ((fresh(text, count),), {}), rounds=rounds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=0, help="0: by the size")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--smoke", action="store_true", help="once, at the smallest size")
    arguments = parser.parse_args()
    text = real_text(arguments.texts)
    sample = fresh(text, 5_000)
    wide = sum(not chunk.isascii() for chunk in sample) / len(sample)
    print(f"Python {sys.version.split()[0]}, {wide:.0%} of the chunks not ASCII")
    for name in PEERS.keys() - CASES.keys():
        print(f"{name} is not installed and left out")
    sizes = [SIZES[0]] if arguments.smoke else map(int, arguments.sizes.split(","))
    for count in sizes:
        rounds = 1 if arguments.smoke else arguments.rounds or max(3, 10_000 // count)
        times = interleaved(cases_of(text, count), rounds)
        print(f"\n{count} candidates of {CHARS} characters, {rounds} rounds")
        print(f"{'':16}{'ms':>10}{'ns each':>10}{'to bm25_scores':>16}")
        for name in CASES:
            seconds, ratio = times.median(name), times.ratio(name, "bm25_scores")
            print(f"{name:16}{seconds * 1e3:10.3f}{seconds / count * 1e9:10.0f}{ratio:15.2f}x")


if __name__ == "__main__":
    main()
