"""
Assembling 500 chunks with every template, beside scoring them.

    python benches/bench_assemble.py [--chunks N] [--rounds N] [--all]

A case's own time, for admission and assembly, is that of a packing less that with
``max_chunks=0``, which reads, scores and ranks all chunks and keeps none. A template's cost is its
time beyond ``plain``, as a share of the same. All cases are interleaved in one run on fresh
strings. Times are medians, and only their ratios are meaningful. The budget is the 8,000 tokens of
the other benchmarks; with ``--all`` every chunk is kept.

Under pytest the same cases run with pytest-benchmark:
``pytest benches/bench_assemble.py --benchmark-enable``.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import pytest
from texts import MAX_TOKENS, QUERY, fresh, real_text
from timing import Case, interleaved

from budgeteer import Packer, Template

PLENTY = 10**9
TEXT = real_text()
TEMPLATES: dict[str, str | Template] = {
    "plain": "plain",
    "tagged": "tagged",
    "markdown": "markdown",
    "xml": "xml",
    "json": "json",
    "format string": Template("<{kind} {id}>\n{text}", separator="\n"),
}


def packers(max_tokens: int) -> dict[str, Packer]:
    """Return a packer for each case."""
    options: dict[str, Any] = {"counter": "chars_div4", "ranking": "keyword"}
    cases = {
        name: Packer(max_tokens, template=template, **options)
        for name, template in TEMPLATES.items()
    }
    cases["tagged, notice"] = Packer(max_tokens, template="tagged", notice=True, **options)
    cases["tagged, edges"] = Packer(max_tokens, template="tagged", order="edges", **options)
    cases["tagged, document"] = Packer(max_tokens, template="tagged", order="document", **options)
    cases["nothing kept"] = Packer(max_tokens, max_chunks=0, **options)
    return cases


@pytest.mark.parametrize("name", packers(1))
def test_assemble(benchmark: Any, name: str) -> None:
    """One case, on fresh strings each round."""
    packer = packers(MAX_TOKENS)[name]
    benchmark.group = "assemble 500"
    benchmark.pedantic(packer.pack, setup=lambda: ((QUERY, fresh(TEXT, 500)), {}), rounds=50)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--chunks", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--all", action="store_true", help="keep every chunk")
    arguments = parser.parse_args()
    budget = PLENTY if arguments.all else MAX_TOKENS
    cases = {
        name: Case(partial(packer.pack, QUERY), lambda: fresh(TEXT, arguments.chunks))
        for name, packer in packers(budget).items()
    }
    times = interleaved(cases, arguments.rounds)
    nothing, plain = times.median("nothing kept"), times.median("plain")
    print(f"{arguments.chunks} chunks, {arguments.rounds} rounds")
    print(f"{'':22}{'us':>10}{'beyond scoring':>16}{'beyond plain':>14}")
    for name in cases:
        seconds = times.median(name)
        beyond = (seconds - plain) / nothing
        print(f"{name:22}{seconds * 1e6:10.1f}{seconds / nothing - 1:15.1%}{beyond:14.1%}")


if __name__ == "__main__":
    main()
