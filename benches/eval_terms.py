"""
The gains and losses of stemming and stopwords on questions with known evidence.

    python benches/eval_terms.py FILE... [--options NAME,...]

FILE is JSONL like the evaluation data: records of ``query``, ``chunks`` and ``gold_ids``, or a
first line ``{"corpus": [...]}`` with the chunks of all. R@B is the share of gold chunks in a
context of B tokens, at four characters each and 12 for each chunk. nDCG@10 is of the ranking, with
equal gain for each gold chunk. After each mean is its difference from the default, and how many
questions gain and lose.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from questions import records_of

from budgeteer import Packer
from budgeteer.ranking import Bm25

ENVELOPE = 12
BUDGETS = (256, 512)

OPTIONS = {
    "default": Bm25(),
    "english": Bm25(stemming="english"),
    "no stopwords": Bm25(stopwords=None),
    "english, no stopwords": Bm25(stemming="english", stopwords=None),
}


def measures(record: dict[str, Any], bm25: Bm25) -> dict[str, float]:
    """Return the measures of a packer by *bm25* for a question."""
    chunks, gold = record["chunks"], set(record["gold_ids"])
    packer = Packer(0, counter="chars_div4", dedupe=None, ranking=bm25)
    ranked = [
        chunk.chunk["id"]
        for chunk in packer.pack(record["query"], chunks).dropped
        if chunk.reason != "empty"
    ]
    gains = [1 / math.log2(place + 2) for place, name in enumerate(ranked[:10]) if name in gold]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(gold))))
    sizes = {chunk["id"]: max(1, -(-len(chunk["text"]) // 4)) + ENVELOPE for chunk in chunks}
    found = {"nDCG@10": math.fsum(gains) / ideal}
    for budget in BUDGETS:
        left, packed = budget, set()
        for name in ranked:
            if sizes[name] <= left:
                left -= sizes[name]
                packed.add(name)
        found[f"R@{budget}"] = len(packed & gold) / len(gold)
    return found


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--options", default=",".join(OPTIONS).replace(", ", "; "))
    arguments = parser.parse_args()
    chosen = [name.replace("; ", ", ") for name in arguments.options.split(",")]
    for path in arguments.files:
        records = [*records_of(path)]
        print(f"\n{path.name}: {len(records)} questions")
        default = [measures(record, OPTIONS["default"]) for record in records]
        for name in chosen:
            rows = [measures(record, OPTIONS[name]) for record in records]
            print(f"{name:24}", end="")
            for key in default[0]:
                mean = math.fsum(row[key] for row in rows) / len(rows)
                apart = [row[key] - base[key] for row, base in zip(rows, default, strict=True)]
                gained, lost = sum(x > 0 for x in apart), sum(x < 0 for x in apart)
                change = f"{math.fsum(apart) / len(rows):+.3f}, +{gained} -{lost}"
                print(f"{key:>9} {mean:.3f} ({change})", end="")
            print()


if __name__ == "__main__":
    main()
