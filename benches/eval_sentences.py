"""
The gains and losses of packing sentences on questions with known evidence.

    python benches/eval_sentences.py FILE... [--budgets 128,256,512] [--max N]

FILE is JSONL like the evaluation data: records of ``query``, ``chunks``, ``gold_ids`` and, if
known, ``gold_sents`` and ``answers``; or a first line ``{"corpus": [...]}`` with the chunks of
all. The ranking is the default one. A token is four characters, and each chunk counts 12 more.

"whole" is the share of gold chunks that are in the context whole, which packing sentences gives
up. "evidence" is the share of gold sentences in it, "answer" the share of questions with an answer
in it; both compare lowercase words in the text of the packing. An answer may stand in a chunk that
is not gold: "gold answer" counts only answers in kept gold chunks. After each mean of sentences is
how many questions gain and lose.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from questions import records_of

from budgeteer import Packer

ENVELOPE = 12
SEPARATOR = "\n\n"
WORD = re.compile(r"[^\W_]+")
MEASURES = ("whole", "evidence", "answer", "gold answer")


def count(text: str) -> int:
    """Count a chunk with its envelope, and an assembled text with all of them."""
    return sum(max(1, -(-len(part) // 4)) + ENVELOPE for part in text.split(SEPARATOR))


def words(text: str) -> str:
    """Return the words of a text, with a space around each."""
    return f" {' '.join(WORD.findall(text.lower()))} "


def measures(record: Mapping[str, Any], packer: Packer) -> dict[str, float]:
    """Return the measures of a packer for a question, as far as they are known."""
    packing = packer.pack(record["query"], record["chunks"])
    gold = set(record["gold_ids"])
    kept_gold = [kept for kept in packing.kept if kept.chunk["id"] in gold]
    found = {"whole": sum(not kept.was_cut for kept in kept_gold) / len(gold)}
    context = words(packing.text)
    if record.get("gold_sents"):
        inside = sum(words(sentence) in context for sentence in record["gold_sents"])
        found["evidence"] = inside / len(record["gold_sents"])
    answers = {words(answer) for answer in record.get("answers", ())} - {" yes ", " no ", "  "}
    if answers:
        of_gold = words(" ".join(kept.text for kept in kept_gold))
        found["answer"] = float(any(answer in context for answer in answers))
        found["gold answer"] = float(any(answer in of_gold for answer in answers))
    return found


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--budgets", default="128,256,512")
    parser.add_argument("--max", type=int, help="the most questions of each file")
    arguments = parser.parse_args()
    for path in arguments.files:
        records = [*records_of(path)][: arguments.max]
        print(f"\n{path.name}: {len(records)} questions")
        for budget in map(int, arguments.budgets.split(",")):
            rows = {}
            for units in ("chunk", "sentence"):
                packer = Packer(budget, counter=count, units=units, dedupe=None)
                start = time.perf_counter()
                rows[units] = [measures(record, packer) for record in records]
                taken = (time.perf_counter() - start) / len(records)
                print(f"{budget:5} {units:9} {taken * 1e3:6.2f} ms", end="")
                for name in MEASURES:
                    pairs = [
                        (row[name], base[name])
                        for row, base in zip(rows[units], rows["chunk"], strict=True)
                        if name in row
                    ]
                    if pairs:
                        mean = math.fsum(one for one, _ in pairs) / len(pairs)
                        gained, lost = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
                        change = "" if units == "chunk" else f" (+{gained} -{lost})"
                        print(f"  {name} {mean:.3f}{change}", end="")
                print()


if __name__ == "__main__":
    main()
