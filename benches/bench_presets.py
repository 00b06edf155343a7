"""
The presets, natively and beside the pure-Python reference, interleaved in one run.

    python benches/bench_presets.py [--sizes 500,5000] [--rounds N] [--smoke]

Every call gets new strings and chunks: see `timing.py`. Only the ratios of one run are
meaningful. The text is the language reference that ships with Python.

Under pytest the same cases run with pytest-benchmark:
``pytest benches/bench_presets.py --benchmark-enable``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from texts import CHARS, real_text, vocabulary
from timing import Case, interleaved

from budgeteer import Chunk, Packer, _native, _reference
from budgeteer._count import counter
from budgeteer._pack import prepared
from budgeteer.presets import (
    agentic_rag,
    context_gate,
    context_router,
    estimate_citation_tokens,
    retrieval_service,
    sources_footer,
)

QUERY = "How does the import statement find a module?"
SIZES = (500, 5_000)
BACKENDS = {"native": _native, "reference": _reference}
TEXT = real_text()


def chunks_of(count: int) -> list[Chunk]:
    """Return *count* chunks of new strings, with all fields that a preset may read."""
    last = len(TEXT) - CHARS
    return [
        Chunk(
            TEXT[i * 797 % last :][:CHARS] if i else QUERY,
            id=f"chunk-{i}",
            source=f"https://docs.example/{i % 40}",
            title=f"Section {i}",
            score=i * 7919 % count / count,
            metadata={
                "kind": "message" if i == 0 else "document",
                "authority": "user" if i == 0 else "tool",
                "priority": i * 31 % 10,
                "page": i,
            },
        )
        for i in range(count)
    ]


def packing(packer: Packer) -> Callable[[list[Chunk]], int]:
    """Return a function that packs chunks."""
    return lambda chunks: packer.pack(QUERY, chunks).total_tokens


def footer(chunks: list[Chunk]) -> int:
    """Pack, and name the sources."""
    return len(sources_footer(agentic_rag().pack(QUERY, chunks)))


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Prepare packers for a backend, and make counters call it."""
    prepared.backend = counter.backend = BACKENDS[backend]
    try:
        yield
    finally:
        prepared.backend = counter.backend = _native


def cases_on(backend: str) -> dict[str, Callable[[list[Chunk]], int]]:
    """Return the cases, with packers prepared for a backend."""
    with using(backend):
        return {
            "agentic_rag": packing(agentic_rag()),
            "agentic_rag, o200k": packing(agentic_rag(counter="o200k_base")),
            "agentic_rag and footer": footer,
            "estimate_citation_tokens": estimate_citation_tokens,
            "retrieval_service": packing(retrieval_service(8_000)),
            "context_gate": packing(context_gate(8_000, max_docs=50)),
            "context_router": packing(context_router()),
            "(Packer, chars_div4)": packing(Packer(8_000, counter="chars_div4")),
        }


CASES = {backend: cases_on(backend) for backend in BACKENDS}


def run(case: str, backend: str, chunks: list[Chunk]) -> int:
    """Run one case on a backend."""
    with using(backend):
        return CASES[backend][case](chunks)


def timed_cases(count: int) -> dict[tuple[str, str], Case]:
    """Return each case on each backend."""
    return {
        (case, backend): Case(partial(run, case, backend), lambda: chunks_of(count))
        for backend in BACKENDS
        for case in CASES[backend]
    }


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES["native"])
def test_presets(benchmark: Any, case: str, backend: str, count: int) -> None:
    """One case on one backend at one size, on fresh chunks each round."""
    benchmark.group = f"{case} {count}"
    benchmark.pedantic(run, setup=lambda: ((case, backend, chunks_of(count)), {}), rounds=3)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--smoke", action="store_true", help="once, and 500 chunks only")
    arguments = parser.parse_args()
    sizes = [SIZES[0]] if arguments.smoke else list(map(int, arguments.sizes.split(",")))
    rounds = 1 if arguments.smoke else arguments.rounds
    os.environ["TIKTOKEN_CACHE_DIR"] = str(
        vocabulary.cache_dir()
    )  # the reference counts with tiktoken
    print(f"Python {sys.version.split()[0]}")
    for count in sizes:
        times = interleaved(timed_cases(count), rounds)
        print(f"\n{count} chunks of {CHARS} characters, {rounds} rounds")
        print(f"{'':26}{'native ms':>12}{'reference ms':>14}{'ratio':>8}")
        for case in CASES["native"]:
            native, reference = times.median((case, "native")), times.median((case, "reference"))
            print(
                f"{case:26}{native * 1e3:12.3f}{reference * 1e3:14.1f}{reference / native:7.1f}x"
            )


if __name__ == "__main__":
    main()
