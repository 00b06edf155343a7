"""
The gains and losses of packing sentences on questions with known evidence.

    python benches/eval_sentences.py FILE... [--budgets 128,256,512] [--max N]
    python benches/eval_sentences.py --smoke

FILE is JSONL like the evaluation data: records of ``query``, ``chunks``, ``gold_ids`` and, if
known, ``gold_sents`` and ``answers``; or a first line ``{"corpus": [...]}`` with the chunks of
all. A token is four characters, and each chunk counts 12 more.

"whole" is the share of gold chunks that are in the context whole, which packing sentences gives
up. "evidence" is the share of gold sentences in it, "answer" the share of questions with an answer
in it; both compare lowercase words in the text of the packing. An answer may stand in a chunk that
is not gold: "gold answer" counts only answers in kept gold chunks. After each mean of sentences is
its gain, and the 95 % interval of a paired bootstrap, with a star if that excludes 0.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_system import charged
from questions import answer_in, asked, evidence_in, folded, interval, shown

from budgeteer import Packer

MEASURES = ("whole", "evidence", "answer", "gold answer")


def measures(record: Mapping[str, Any], packer: Packer) -> dict[str, float]:
    """Return the measures of a packer for a question, as far as they are known."""
    packing = packer.pack(record["query"], record["chunks"])
    gold = set(record["gold_ids"])
    kept_gold = [kept for kept in packing.kept if kept.chunk["id"] in gold]
    context = folded(packing.text)
    of_gold = folded("\n".join(kept.text for kept in kept_gold))
    found = {
        "whole": sum(not kept.was_cut for kept in kept_gold) / len(gold),
        "evidence": evidence_in(record, context),
        "answer": answer_in(record, context),
        "gold answer": answer_in(record, of_gold),
    }
    return {name: share for name, share in found.items() if share is not None}


def change(units: str, pairs: list[tuple[float, float]]) -> str:
    """Return the gain of sentences with its interval, or nothing for chunks."""
    if units == "chunk":
        return ""
    return f" ({shown(*interval([one - other for one, other in pairs])).rstrip()})"


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--budgets", default="128,256,512")
    parser.add_argument("--max", type=int, help="the most questions of each file")
    parser.add_argument("--smoke", action="store_true", help="two questions: does it run?")
    arguments = parser.parse_args()
    for name, records in asked(arguments).items():
        print(f"\n{name}: {len(records)} questions")
        for budget in map(int, arguments.budgets.split(",")):
            rows = {}
            for units in ("chunk", "sentence"):
                packer = Packer(budget, counter=charged, units=units, dedupe=None)
                start = time.perf_counter()
                rows[units] = [measures(record, packer) for record in records]
                taken = (time.perf_counter() - start) / len(records)
                print(f"{budget:5} {units:9} {taken * 1e3:6.2f} ms", end="")
                for measure in MEASURES:
                    pairs = [
                        (row[measure], base[measure])
                        for row, base in zip(rows[units], rows["chunk"], strict=True)
                        if measure in row
                    ]
                    if pairs:
                        mean = math.fsum(one for one, _ in pairs) / len(pairs)
                        print(f"  {measure} {mean:.3f}{change(units, pairs)}", end="")
                print()


if __name__ == "__main__":
    main()
