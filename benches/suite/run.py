"""What ``python -m benches`` does: runs sections, prints Markdown, writes JSON and charts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from texts import vocabulary

from suite import cost, count, pack, search, trim
from suite.charts import bars
from suite.fixed import TextError
from suite.pack import DifferentError
from suite.report import Options, Section, Table, environment

SECTIONS: dict[str, Section] = {
    "pack": pack.packing,
    "count": count.counting,
    "rank": search.ranking_lists,
    "corpus": search.corpus,
    "trim": trim.trimming,
    "stages": cost.stages,
    "growth": cost.growth,
    "latency": cost.latency,
    "first": cost.first,
    "memory": cost.memory,
    "recall": search.recall,
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, help="a section; may be given again"
    )
    parser.add_argument("--smoke", action="store_true", help="everything once, and small")
    parser.add_argument("--rounds", type=int, default=5, help="of each measurement, 1 or more")
    parser.add_argument(
        "--questions",
        type=Path,
        action="append",
        default=[],
        help="questions with known evidence, as eval_ranking.py reads them; may be given again",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--charts", type=Path, metavar="DIR", help="write charts as SVG")
    found = parser.parse_args(arguments)
    if found.rounds < 1:
        parser.error(f"--rounds is {found.rounds}; it must be 1 or more")
    if found.smoke and found.charts:
        parser.error("--charts draws what was measured: leave out --smoke")
    return found


def heading(ran: Mapping[str, Any]) -> str:
    """Return what a run was on, as Markdown."""
    left_out = ", ".join(ran["left_out"])
    versions = ", ".join(f"{name} {found}" for name, found in ran["versions"].items())
    return (
        f"{ran['made']}, Python {ran['python']}, {ran['processors']} processors"
        f" ({ran['processor']}), medians of {ran['rounds']} rounds.\n\n{versions}.\n"
        + (f"\nNot installed and left out: {left_out}.\n" if left_out else "")
    )


def column(table: Table, name: str) -> dict[str, Any]:
    """Return a column of a table by the first one."""
    at = table.columns.index(name)
    return {str(row[0]): row[at] for row in table.rows}


def grouped(table: Table, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the bars of some columns, as far as the table has them, by its first column."""
    columns = {name: column(table, name) for name in names if name in table.columns}
    labels = [str(row[0]) for row in table.rows]
    return {label: {name: of[label] for name, of in columns.items()} for label in labels}


def charts(tables: Mapping[str, Sequence[Table]]) -> dict[str, str]:
    """Return the charts of the sections that ran, by the name of their files."""
    found = {}
    times = next((one for one in tables.get("pack", ()) if one.title == pack.PEER_TITLE), None)
    if times is not None:
        eight = Table(times.title, times.columns, [row for row in times.rows if row[1] == 8])
        found["pack.svg"] = bars(
            "Packing 500 chunks of 800 characters for a query of 8 words in their language",
            "how many times as long theaios-context-router takes; default: exact counts",
            grouped(eight, ["keyword", "bm25", "default"]),
        )
    for table, name in zip(tables.get("count", ()), ("new", "repeated"), strict=False):
        found[f"count-{name}.svg"] = bars(
            f"Counting {name} texts of 800 characters with o200k_base, one thread",
            "MB a second: longer is faster",
            grouped(table, [count.OURS, "quicktok", "toktok", "gigatoken", "tiktoken"]),
        )
    if "growth" in tables:
        found["growth.svg"] = bars(
            "Packing English chunks of 800 characters, by how many there are",
            "nanoseconds a chunk: shorter is faster",
            grouped(tables["growth"][0], [*pack.RANKINGS]),
        )
    return found


def run(options: Options, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[Table]]]:
    """Run sections; return the whole report, and their tables."""
    ran = environment(options, os.cpu_count() or 1)
    print(heading(ran), flush=True)
    tables: dict[str, list[Table]] = {}
    for name in names:
        tables[name] = [*SECTIONS[name](options)]
        for table in tables[name]:
            print(table.markdown(), flush=True)
    sections = {name: [table.json() for table in each] for name, each in tables.items()}
    return {**ran, "sections": sections}, tables


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    asked = parsed(arguments)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabulary.cache_dir())
    options = Options(smoke=asked.smoke, rounds=asked.rounds, questions=asked.questions)
    names = asked.only or [
        name for name in SECTIONS if name != "recall" or asked.questions or asked.smoke
    ]
    if "recall" in names and not (asked.questions or asked.smoke):
        sys.exit("recall needs questions: give --questions FILE")
    try:
        report, tables = run(options, names)
    except (TextError, DifferentError) as error:
        sys.exit(str(error))
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if asked.charts:
        asked.charts.mkdir(parents=True, exist_ok=True)
        for name, picture in charts(tables).items():
            (asked.charts / name).write_text(picture, "utf-8")
