"""``budgeteer count``: the tokens of files, of folders and of standard input."""

from __future__ import annotations

import argparse

from budgeteer import TokenCounter, _validate
from budgeteer._files import one_line
from budgeteer._sources.folder import BINARY, passed_over, unread
from budgeteer.cli._arguments import (
    Commands,
    add_output,
    add_texts,
    examples,
    texts_of,
    whole,
)
from budgeteer.cli._streams import Answer, as_json

_ABOVE, _INCOMPLETE = 1, 2


def add(commands: Commands) -> None:
    """Add the command to the program."""
    count = commands.add_parser(
        "count",
        help="count the tokens of files, folders or standard input",
        description="Counts tokens. Exit status 1 says that there are more than --max, 2 that "
        "not every text could be counted,\nor that there is nothing to count. What is binary in "
        "a folder is passed over.",
        epilog=examples(
            "budgeteer count --max 8000 prompt.md docs",
            "cat prompt.md | budgeteer count -m gpt-4o",
        ),
    )
    count.set_defaults(run=_run)
    add_texts(count, "*", "a folder or a file (default: standard input)")
    count.add_argument("--max", type=whole, metavar="N", help="exit with status 1 above N tokens")
    add_output(count)


def _run(arguments: argparse.Namespace) -> Answer:
    counter: TokenCounter = arguments.counter
    limit = None if arguments.max is None else _validate.tokens("--max", arguments.max)
    counts: list[tuple[str, int]] = []
    skipped: list[tuple[str, str]] = []
    files, where = texts_of(arguments, "Counting files")
    for file in files:
        if file.text is None:
            skipped.append((file.name, file.problem))
        else:
            counts.append((file.name, counter.count(file.text)))
    total = sum(count for _, count in counts)
    lines, status = [], 0
    failed = [one for one in skipped if one[1] != BINARY or one[0] in arguments.paths]
    if binary := [one for one in skipped if one not in failed]:
        lines.append(f"budgeteer: warning: {passed_over(binary)}")
    if failed:
        lines.append(f"budgeteer: error: {unread(failed)}")
        status = _INCOMPLETE
    elif not counts:
        lines.append(f"budgeteer: error: there is nothing to count in {where}")
        status = _INCOMPLETE
    if limit is not None and total > limit:
        lines.append(f"budgeteer: {total} tokens are {total - limit} more than --max {limit}")
        status = _ABOVE
    said = "".join(f"{one_line(line)}\n" for line in lines)
    if arguments.output == "json":
        answer = {
            "total_tokens": total,
            "max_tokens": limit,
            "counter": counter.name,
            "is_exact": counter.is_exact,
            "files": [{"path": name, "tokens": count} for name, count in counts],
            "skipped": [{"path": name, "reason": problem} for name, problem in skipped],
        }
        return Answer(as_json(answer), said, status)
    if not arguments.paths:
        return Answer(f"{total}\n" if counts else "", said, status)
    if len(counts) > 1:
        counts.append(("total", total))
    return Answer("".join(f"{count}\t{one_line(name)}\n" for name, count in counts), said, status)
