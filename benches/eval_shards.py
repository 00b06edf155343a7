"""
What becomes of a corpus that is cut into shards, whose best chunks are merged and packed.

    python benches/eval_shards.py FILE... [--shards 4] [--best 100] [--budget 1024] [--max N]
    python benches/eval_shards.py --smoke

FILE is JSON Lines as for `eval_ranking.py`; the chunks of all its records make one pool. The pool
is one corpus, or is dealt to shards in turns, or cut into them as it stands. Each shard answers
its best chunks with their scores. They are merged in two ways, under the rankings by words also
with the merged statistics of the shards:

    by score     the best of all shards by the scores that the shards gave them
    ranked again all of them, by the same ranking as one list

    one          share of the gold chunks in the text of the one corpus
    shards       in that of the shards, and what that gains with the 95 % interval of a paired
                 bootstrap; a star if that excludes 0
    shared       share of the chunks kept from the one corpus that are kept from the shards, too
    ranks        share of the questions whose best ten chunks are the same, in the same order
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from questions import asked, interval, shown

from budgeteer import Corpus, Packer, Packing
from budgeteer.ranking import Bm25, Lexical, Statistics

RANKINGS = {"lexical": Lexical(), "bm25": Bm25(), "keyword": "keyword"}
LIMIT = 1_000_000_000
"""The budget of such a packer."""


def dealt(count: int, shards: int) -> list[list[int]]:
    """Return the places of each shard, dealt in turns."""
    return [[*range(first, count, shards)] for first in range(shards)]


def cut(count: int, shards: int) -> list[list[int]]:
    """Return the places of each shard, in pieces."""
    size = math.ceil(count / shards)
    return [[*range(first, min(first + size, count))] for first in range(0, count, size)]


def found_in(
    query: str, choosing: Packer, shards: Sequence[tuple[Corpus[Any], Sequence[int]]]
) -> list[tuple[float, int]]:
    """Return score and place of the best chunks of each shard, the best of all first."""
    found = []
    for corpus, places in shards:
        kept = choosing.pack(query, corpus).kept
        found += [(-one.score, places[one.index]) for one in kept]
    return [(-score, place) for score, place in sorted(found)]


def compared(
    records: Sequence[Mapping[str, Any]],
    pool: Sequence[Mapping[str, Any]],
    shards: Sequence[Sequence[int]],
    ranking: Any,
    arguments: argparse.Namespace,
) -> tuple[list[float], dict[str, list[tuple[float, float, float]]]]:
    """Return the recall of one corpus, and recall, shared chunks and equal ranks of each way."""
    whole = Corpus(pool)
    parts = [(Corpus([pool[place] for place in places]), places) for places in shards]
    rankings = {"": ranking}
    if not isinstance(ranking, str):
        words = {"stemming": ranking.stemming, "stopwords": ranking.stopwords}
        statistics = Statistics.merged(corpus.statistics(**words) for corpus, _ in parts)
        rankings[" with statistics"] = replace(ranking, statistics=statistics)
    packer = Packer(arguments.budget, ranking=ranking)
    best_of_all = chooser(ranking, arguments)
    ones: list[float] = []
    ways: dict[str, list[tuple[float, float, float]]] = {}
    for record in records:
        query, gold = record["query"], set(record["gold_ids"])
        first = [one.chunk["id"] for one in best_of_all.pack(query, whole).kept[:10]]
        kept = ids(packer.pack(query, whole))
        ones.append(len(gold & kept) / len(gold))
        for name, by in rankings.items():
            choosing = chooser(by, arguments)
            found = found_in(query, choosing, parts)
            best = [{**pool[place], "score": score} for score, place in found[: arguments.best]]
            candidates = [pool[place] for place in sorted(place for _, place in found)]
            ten = [one.chunk["id"] for one in choosing.pack(query, candidates).kept[:10]]
            scored = replace(packer, ranking="score").pack(query, best)
            again = replace(packer, ranking=by).pack(query, candidates)
            for way, other, order in (
                ("by score", scored, ids_of(best[:10])),
                ("ranked again", again, ten),
            ):
                too = ids(other)
                shared = len(kept & too) / len(kept) if kept else 1.0
                row = len(gold & too) / len(gold), shared, float(first == order)
                ways.setdefault(way + name, []).append(row)
    return ones, ways


def chooser(ranking: Any, arguments: argparse.Namespace) -> Packer:
    """Return the packer of the best chunks, whatever their size."""
    return Packer(
        LIMIT, counter="chars_div4", ranking=ranking, max_chunks=arguments.best, dedupe=None
    )


def ids(packing: Packing[Any]) -> set[str]:
    """Return the ids of the kept chunks."""
    return {one.chunk["id"] for one in packing.kept}


def ids_of(chunks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of chunks."""
    return [chunk["id"] for chunk in chunks]


def report(name: str, records: Sequence[Mapping[str, Any]], arguments: argparse.Namespace) -> None:
    """Print the tables of a file."""
    pool = [*{chunk["id"]: chunk for record in records for chunk in record["chunks"]}.values()]
    print(f"\n{name}: {len(records)} questions, {len(pool)} chunks, {arguments.shards} shards")
    print(f"{'':46}{'one':>6}{'shards':>8}{'gain':>24}{'shared':>9}{'ranks':>8}")
    for how, deal in {"dealt": dealt, "cut": cut}.items():
        for ranking, by in RANKINGS.items():
            shards = deal(len(pool), arguments.shards)
            ones, ways = compared(records, pool, shards, by, arguments)
            for way, rows in ways.items():
                recall, shared, ranks = zip(*rows, strict=True)
                gain = shown(*interval([b - a for a, b in zip(ones, recall, strict=True)]))
                one, found, both, same = map(fmean, (ones, recall, shared, ranks))
                print(
                    f"{how + ', ' + ranking + ', ' + way:46}{one:6.3f}{found:8.3f}{gain:>24}"
                    f"{both:9.3f}{same:8.3f}",
                    flush=True,
                )


def main() -> None:
    """Print the tables of each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--best", type=int, default=100, help="how many a shard answers")
    parser.add_argument("--budget", type=int, default=1024, help="tokens of o200k_base")
    parser.add_argument("--max", type=int, help="the most questions of each file")
    parser.add_argument("--smoke", action="store_true", help="two questions: does it run?")
    arguments = parser.parse_args()
    for name, records in asked(arguments).items():
        report(name, records, arguments)


if __name__ == "__main__":
    main()
