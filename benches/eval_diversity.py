"""
The gains and losses of dedupe="near" and selection="coverage": budgeted recall.

    python benches/eval_diversity.py FILE... [--max N] [--odd] [--budgets 256,512,1024]
                                    [--skip-time | --smoke]

A FILE is JSON Lines: a first line ``{"corpus": [...]}`` with the chunks that all queries share, or
``"chunks"`` in each record; a record has ``query``, ``gold_ids`` and, if known, ``gold_sents`` and
``answers``. Each file is packed in three ways: as it is; cut into windows of 40 words that overlap
by half; and with near-duplicates (up to two words changed) of three chunks in ten, anywhere.

    R@B    share of the gold documents with some text in B tokens Ev@B   share of the gold
    sentences, or whether an answer, stands in the text nDCG   of the order of admission, at 10
    documents, if everything fits

Tokens are characters divided by four, and each chunk is charged 12 more. After each figure
is its difference from ``rank``, with a star if the 95 % interval of a paired bootstrap excludes 0.
Times are medians over real texts, counted by o200k_base. The formula of coverage was chosen among
others on the even queries of HotpotQA, NQ (of the first 240) and Cranfield: ``--odd`` leaves these
out.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_system import charged
from questions import answer_in, evidence_in, folded, interval, ndcg, records_of
from texts import QUERY, fresh, real_text

from budgeteer import Packer

OPTIONS: dict[str, dict[str, Any]] = {
    "rank": {},
    "near": {"dedupe": "near"},
    "coverage": {"selection": "coverage"},
}
WINDOW, STEP = 40, 20
REPEATED = 0.3
PLENTY = 10**9

Rows = list[dict[str, float]]


def as_is(chunks: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the chunks, each its own source."""
    return [{"source": chunk["id"], "text": chunk["text"]} for chunk in chunks]


def windows(chunks: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return windows of each text that overlap by half."""
    found = []
    for chunk in chunks:
        words = chunk["text"].split()
        for start in range(0, max(1, len(words) - STEP), STEP):
            text = " ".join(words[start : start + WINDOW])
            found.append({"source": chunk["id"], "text": text})
    return found


def repeated(chunks: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the chunks, and copies of some with up to two words changed."""
    rng = random.Random(0)
    found = as_is(chunks)
    for chunk in rng.sample(found, round(REPEATED * len(found))):
        words = chunk["text"].split(" ")
        for _ in range(2):
            words[rng.randrange(len(words))] = rng.choice(words)
        found.append({"source": chunk["source"], "text": " ".join(words)})
    rng.shuffle(found)
    return found


VARIANTS = {"as they are": as_is, "windows": windows, "repeated": repeated}


def evidence(record: Mapping[str, Any], text: str) -> float | None:
    """Return the share of the evidence that stands in *text*; None if none is known."""
    context = folded(text)
    share = evidence_in(record, context)
    return answer_in(record, context) if share is None else share


def measured(
    record: Mapping[str, Any],
    chunks: Sequence[Mapping[str, str]],
    budgets: Sequence[int],
    options: Mapping[str, Any],
) -> dict[str, float]:
    """Return the figures of one query."""
    gold = set(record["gold_ids"])
    row = {}
    for budget in budgets:
        packing = Packer(budget, counter=charged, **options).pack(record["query"], chunks)
        inside = gold.intersection(kept.chunk["source"] for kept in packing.kept)
        row[f"R@{budget}"] = len(inside) / len(gold)
        share = evidence(record, packing.text)
        if share is not None:
            row[f"Ev@{budget}"] = share
    packing = Packer(PLENTY, counter="chars_div4", **options).pack(record["query"], chunks)
    # Each document at its first occurrence.
    sources = dict.fromkeys(kept.chunk["source"] for kept in packing.kept)
    row["nDCG"] = ndcg([*sources], gold)
    return row


def mean(rows: Rows, name: str) -> float:
    """Return the mean of a column over the rows that have it."""
    return statistics.fmean(row[name] for row in rows if name in row)


def difference(rows: Rows, base: Rows, name: str) -> str:
    """Return the difference of means, and a star if it is significant."""
    pairs = zip(rows, base, strict=True)
    apart = [row[name] - other[name] for row, other in pairs if name in row]
    gain, low, high = interval(apart)
    return f"{gain:+.3f}{'*' if low > 0 or high < 0 else ' '}"


def report(path: Path, budgets: Sequence[int], queries: slice) -> None:
    """Print the tables of one file."""
    records = list(records_of(path))[queries]
    for variant, derive in VARIANTS.items():
        made: dict[int, list[dict[str, str]]] = {}
        for record in records:
            if id(record["chunks"]) not in made:
                made[id(record["chunks"])] = derive(record["chunks"])
        count = len(made[id(records[0]["chunks"])])
        print(f"\n{path.stem}, {variant}: {len(records)} queries, {count} chunks")
        tables = {
            name: [
                measured(record, made[id(record["chunks"])], budgets, options)
                for record in records
            ]
            for name, options in OPTIONS.items()
        }
        base = tables["rank"]
        columns = list(dict.fromkeys(name for row in base for name in row))
        print(f"{'':10}" + "".join(f"{name:>14}" for name in columns))
        for option, rows in tables.items():
            cells = (
                f"{mean(rows, name):.3f}"
                + ("" if rows is base else f" {difference(rows, base, name)}")
                for name in columns
            )
            print(f"{option:10}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def report_times(sizes: Sequence[int], budget: int = 2_000) -> None:
    """Print the time of each option."""
    text = real_text()
    print(f"\nmilliseconds, chunks of 800 characters, {budget} tokens")
    print(f"{'':10}" + "".join(f"{size:>14}" for size in sizes))
    times: dict[tuple[str, int], list[float]] = {}
    for size in sizes:
        for _ in range(max(5, 20_000 // size)):
            for name, options in OPTIONS.items():
                packer = Packer(budget, **options)
                chunks = fresh(text, size)
                start = time.perf_counter()
                packer.pack(QUERY, chunks)
                times.setdefault((name, size), []).append(time.perf_counter() - start)
    for name in OPTIONS:
        cells = (statistics.median(times[name, size]) * 1e3 for size in sizes)
        print(f"{name:10}" + "".join(f"{cell:14.3f}" for cell in cells))


def report_near(count: int) -> None:
    """Print the time of many chunks, 3 in 10 of which are near-duplicates."""
    rng = random.Random(0)
    words = real_text().split()
    chunks: list[str] = []
    while len(chunks) < count:
        if chunks and rng.random() < REPEATED:
            copy = rng.choice(chunks[-1_000:]).split(" ")
            copy[rng.randrange(len(copy))] = rng.choice(words)
            chunks.append(" ".join(copy))
        else:
            chunks.append(" ".join(rng.choices(words, k=160))[:800])
    print(f"\nseconds of the processor, {count} chunks of 800 characters, 3 in 10 near-duplicates")
    print(f"{'':10}{'tokens':>14}{'exact':>14}{'near':>14}{'duplicates':>14}")
    for budget in (8_000, 1_000_000, PLENTY):
        times: dict[str, list[float]] = {"exact": [], "near": []}
        for _ in range(3):
            for dedupe, taken in times.items():
                packer = Packer(budget, counter="chars_div4", dedupe=dedupe)
                start = time.process_time()
                packing = packer.pack(QUERY, chunks)
                taken.append(time.process_time() - start)
        dropped = sum(chunk.reason == "duplicate" for chunk in packing.dropped)
        medians = "".join(f"{statistics.median(taken):14.3f}" for taken in times.values())
        print(f"{'':10}{budget:>14}{medians}{dropped:>14}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--budgets", default="256,512,1024")
    parser.add_argument("--max", type=int, help="the most queries of each file")
    parser.add_argument("--odd", action="store_true", help="only every second of these")
    parser.add_argument("--skip-time", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="small times, to see that all works")
    arguments = parser.parse_args()
    budgets = [int(budget) for budget in arguments.budgets.split(",")]
    for path in arguments.files:
        report(path, budgets, slice(int(arguments.odd), arguments.max, 1 + int(arguments.odd)))
    if not arguments.skip_time:
        report_times((500,) if arguments.smoke else (500, 5_000))
        report_near(2_000 if arguments.smoke else 100_000)


if __name__ == "__main__":
    main()
