"""
The tokens that ``min_score="auto"`` saves, and the evidence that it costs.

    python benches/eval_cut_off.py FILE... [--pool FILE...] [--budgets 1024,4096]
                                   [--shares 0.35] [--max N]
    python benches/eval_cut_off.py --smoke

FILE and tokens are as for ``eval_ranking.py``; of a file behind ``--pool`` all chunks are one
pool. "tokens" and "recall" are of what fills the budget without a cut-off; in brackets is the 95 %
interval of a paired bootstrap. "filled" is the recall without a cut-off. ``--shares`` are other
cut-offs, for comparison: a share of the mean of the three best scores, without an exception.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from eval_ranking import cost_of, pooled, taken
from questions import MADE, interval, records_of

from budgeteer import Corpus, Packer

BEST = 3
AUTO = "auto"
ALL = "all"


def orders_of(query: str, chunks: Corpus[Any], shares: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of the chunks in scope under each cut-off, best first."""
    packer = Packer(0, counter="chars_div4", dedupe=None, ranking="lexical")
    dropped = packer.pack(query, chunks).dropped  # nothing fits
    scores = {one.index: one.score or 0.0 for one in dropped}
    best = sorted(scores.values(), reverse=True)[:BEST]
    orders = {ALL: [*scores]}
    for share in shares:
        least = float(share) * sum(best) / len(best)
        orders[share] = [index for index, score in scores.items() if score >= least]
    packer = Packer(0, counter="chars_div4", dedupe=None, ranking="lexical", min_score=AUTO)
    dropped = packer.pack(query, chunks).dropped
    orders[AUTO] = [one.index for one in dropped if one.reason != "out_of_scope"]
    return orders


Row = dict[tuple[int, str], tuple[int, float]]
"""The tokens and the recall of a question for each budget and cut-off."""


def rows_of(
    records: Sequence[Mapping[str, Any]], budgets: Sequence[int], shares: Sequence[str]
) -> list[Row]:
    """Return a row for each question."""
    rows = []
    chunks, corpus = None, Corpus([])
    for record in records:
        if chunks is not record["chunks"]:  # a shared pool is indexed once
            chunks = record["chunks"]
            corpus = Corpus(chunks)
        gold = set(record["gold_ids"])
        row: Row = {}
        for name, order in orders_of(record["query"], corpus, shares).items():
            for budget in budgets:
                context = taken(chunks, order, budget)
                inside = gold.intersection(chunk["id"] for chunk in context)
                tokens = sum(cost_of(chunk["text"]) for chunk in context)
                row[budget, name] = tokens, len(inside) / len(gold)
        rows.append(row)
    return rows


def ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """Return the sum of the first of each pair as a share of that of the second, and how sure."""
    mean = np.mean([whole for _, whole in pairs])
    share, low, high = interval([1 + (part - whole) / mean for part, whole in pairs])
    return f"{share:.1%} [{low:.1%} {high:.1%}]"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--pool", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--budgets", default="1024,4096")
    parser.add_argument("--shares", default="0.35")
    parser.add_argument("--max", type=int, help="the most questions of each file")
    parser.add_argument("--smoke", action="store_true", help="two questions: does it run?")
    arguments = parser.parse_args()
    budgets = [int(budget) for budget in arguments.budgets.split(",")]
    shares = arguments.shares.split(",")
    asked: dict[str, Sequence[Mapping[str, Any]]] = {"made": MADE} if arguments.smoke else {}
    for path in arguments.files:
        asked[path.stem] = [*records_of(path)][: arguments.max]
    for path in arguments.pool:
        asked[f"{path.stem} pool"] = pooled([*records_of(path)])[: arguments.max]
    print(f"{'':15}{'questions':>10}{'budget':>8}  {'cut-off':8}{'tokens':26}{'recall':28}filled")
    for name, records in asked.items():
        rows = rows_of(records, budgets, shares)
        for budget in budgets:
            filled = np.mean([row[budget, ALL][1] for row in rows])
            for cut_off in (AUTO, *shares):
                tokens, recall = (
                    ratio([(row[budget, cut_off][at], row[budget, ALL][at]) for row in rows])
                    for at in (0, 1)
                )
                print(
                    f"{name:15}{len(rows):10}{budget:8}  {cut_off:8}{tokens:26}{recall:28}"
                    f"{filled:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
