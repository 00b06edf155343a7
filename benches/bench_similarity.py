"""
Cosines and packing by vectors beside numpy, interleaved in one run.

    python benches/bench_similarity.py [--sizes 500,50000] [--dimensions 1536] [--rounds N]

Times are medians, and only their ratios within one run are meaningful. numpy's float32 product
runs on BLAS, which adds up in float32 and in an order of its own; ours adds up in float64, in the
same order on every machine, and also computes the norms. numpy is shown with a product alone, for
normalised vectors, and with the norms computed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from timing import Case, interleaved

from budgeteer import Packer, ranking

Array = np.ndarray[Any, np.dtype[np.float32]]


def made(count: int, dimensions: int) -> tuple[Array, Array]:
    """Return the vectors of a query and of chunks, the same each time."""
    generator = np.random.default_rng(7)
    wanted = generator.standard_normal(dimensions, dtype=np.float32)
    return wanted, generator.standard_normal((count, dimensions), dtype=np.float32)


def by_numpy(wanted: Array, found: Array) -> Any:
    """Return cosines as people write them."""
    return (found @ wanted) / (np.linalg.norm(found, axis=1) * np.linalg.norm(wanted))


def by_product(wanted: Array, found: Array) -> Any:
    """Return cosines of normalised vectors."""
    return found @ wanted


def exactly_by_numpy(wanted: Array, found: Array) -> Any:
    """Return cosines in float64, as ours are."""
    wide = found.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide) * np.vdot(wanted, wanted))
    return (wide @ wanted.astype(np.float64)) / norms


def packed(ranking_name: str) -> Callable[[Array, Array], Any]:
    """Return a function that packs short texts by vectors, and also by words under hybrid."""
    packer = Packer(2_000, ranking=ranking_name, counter="chars_div4")
    texts: dict[int, tuple[str, ...]] = {}

    def pack(wanted: Array, found: Array) -> Any:
        chunks = texts.setdefault(
            len(found), tuple(f"Chunk {i} is about green tea." for i in range(len(found)))
        )
        return packer.pack("green tea", chunks, vectors=(wanted, found)).total_tokens

    return pack


CASES: dict[str, Callable[[Array, Array], Any]] = {
    "cosine_scores": ranking.cosine_scores,
    "numpy, float32": by_numpy,
    "numpy, product alone": by_product,
    "numpy, float64": exactly_by_numpy,
    "pack, embedding": packed("embedding"),
    "pack, hybrid": packed("hybrid"),
}


@pytest.mark.parametrize("count", [500])
@pytest.mark.parametrize("name", CASES)
def test_similarity(benchmark: Any, name: str, count: int) -> None:
    """One case at one size."""
    benchmark.group = f"similarity {count}"
    benchmark(CASES[name], *made(count, 1_536))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default="500,50000")
    parser.add_argument("--dimensions", type=int, default=1_536)
    parser.add_argument("--rounds", type=int, default=0, help="0: by the size")
    arguments = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}")
    for count in map(int, arguments.sizes.split(",")):
        rounds = arguments.rounds or max(5, 100_000 // count)
        vectors = made(count, arguments.dimensions)
        cases = {
            name: Case(lambda given, run=run: run(*given), lambda given=vectors: given)
            for name, run in CASES.items()
        }
        times = interleaved(cases, rounds, time.perf_counter_ns)  # numpy has threads
        print(f"\n{count} vectors of {arguments.dimensions} numbers, {rounds} rounds")
        print(f"{'':22}{'ms':>10}{'GB/s':>8}{'beside ours':>13}")
        for name in CASES:
            seconds = times.median(name)
            rate = count * arguments.dimensions * 4 / seconds / 1e9
            ratio = times.ratio(name, "cosine_scores")
            print(f"{name:22}{seconds * 1e3:10.3f}{rate:8.1f}{ratio:12.2f}x")


if __name__ == "__main__":
    main()
