"""
The tokens that a cut-off by score saves, and the evidence that it costs.

    python benches/eval_cut_off.py FILE... [--shares 0.3,0.35,0.4] [--budget 4096] [--max N]
                                   [--pool]
    python benches/eval_cut_off.py --smoke

FILE, ``--pool`` and tokens are as for ``eval_ranking.py``. A chunk goes into the context only if
its score is at least a share of the mean of the three best. "tokens" and "recall" are of what
fills the budget without a cut-off. In brackets is the 95 % interval of recall by a paired
bootstrap.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from eval_ranking import cost_of, pooled, taken
from questions import MADE, interval, records_of

from budgeteer.ranking import lexical_scores

BEST = 3


def packed(record: Mapping[str, Any], budget: int, shares: list[float]) -> list[tuple[int, float]]:
    """Return the tokens and the recall of a question for each share."""
    chunks, gold = record["chunks"], set(record["gold_ids"])
    scores = lexical_scores(record["query"], [chunk["text"] for chunk in chunks])
    order = np.argsort(-scores, kind="stable")
    mean = scores[order[:BEST]].mean()
    found = []
    for share in shares:
        context = taken(chunks, [i for i in order if scores[i] >= share * mean], budget)
        inside = gold.intersection(chunk["id"] for chunk in context)
        tokens = sum(cost_of(chunk["text"]) for chunk in context)
        found.append((tokens, len(inside) / len(gold)))
    return found


def main() -> None:
    """Print a line for each file and share."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--shares", default="0.3,0.35,0.4")
    parser.add_argument("--budget", type=int, default=4096)
    parser.add_argument("--max", type=int, help="the most questions of each file")
    parser.add_argument("--pool", action="store_true", help="one pool of all chunks of a file")
    parser.add_argument("--smoke", action="store_true", help="two questions: does it run?")
    arguments = parser.parse_args()
    shares = [float(share) for share in arguments.shares.split(",")]
    made = {"made questions": MADE} if arguments.smoke else {}
    read = {path.name: [*records_of(path)][: arguments.max] for path in arguments.files}
    for name, records in {**made, **read}.items():
        asked = pooled(records) if arguments.pool else records
        print(f"\n{name}: {len(asked)} questions, {len(asked[0]['chunks'])} chunks")
        rows = [packed(record, arguments.budget, [0.0, *shares]) for record in asked]
        all_tokens = sum(row[0][0] for row in rows)
        all_recall = math.fsum(row[0][1] for row in rows) / len(rows)
        for place, share in enumerate(shares, start=1):
            tokens = sum(row[place][0] for row in rows) / all_tokens
            kept = interval([1 + (row[place][1] - row[0][1]) / all_recall for row in rows])
            recall = "{:.1%} [{:.1%} {:.1%}]".format(*kept)
            print(f"{share:5} tokens {tokens:.1%}  recall {recall} of {all_recall:.3f}")


if __name__ == "__main__":
    main()
