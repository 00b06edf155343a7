"""``budgeteer count``: the tokens of files, of folders and of standard input."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from budgeteer import TokenCounter, _validate
from budgeteer._files import one_line
from budgeteer._sources.folder import TextFile, text_files
from budgeteer.cli._arguments import Commands, add_output, add_texts, examples, globs_of
from budgeteer.cli._streams import STDIN, Answer, read, shown, unread

_ABOVE, _INCOMPLETE = 1, 2


def add(commands: Commands) -> None:
    """Add the command to the program."""
    count = commands.add_parser(
        "count",
        help="count the tokens of files, folders or standard input",
        description="Counts tokens. Exit status 1 says that there are more than --max, 2 that "
        "not everything could be counted.",
        epilog=examples(
            "budgeteer count --max 8000 prompt.md docs",
            "cat prompt.md | budgeteer count -m gpt-4o",
        ),
    )
    count.set_defaults(run=_run)
    add_texts(count, "*", "a folder or a file (default: standard input)")
    count.add_argument("--max", type=int, metavar="N", help="exit with status 1 above N tokens")
    add_output(count)


def _run(arguments: argparse.Namespace) -> Answer:
    counter: TokenCounter = arguments.counter
    limit = None if arguments.max is None else _validate.tokens("--max", arguments.max)
    counts: list[tuple[str, int]] = []
    skipped: list[tuple[str, str]] = []
    paths = arguments.paths or [STDIN]
    files = _files(paths, globs_of(arguments))
    if STDIN not in paths:  # somebody may be typing it
        files = arguments.bar.over("Counting files", files)
    for file in files:
        if file.text is None:
            skipped.append((file.name, file.problem))
        else:
            counts.append((file.name, counter.count(file.text)))
    total = sum(count for _, count in counts)
    lines, status = [], 0
    if skipped:
        lines.append(f"budgeteer: error: {unread(skipped)}")
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
        return Answer(json.dumps(answer, indent=2, ensure_ascii=False) + "\n", said, status)
    if not arguments.paths:
        return Answer(f"{total}\n", said, status)
    if len(counts) > 1 or not (counts or skipped):
        counts.append(("total", total))
    return Answer("".join(f"{count}\t{one_line(name)}\n" for name, count in counts), said, status)


def _files(paths: list[str], globs: list[str]) -> Iterator[TextFile]:
    """Yield the files of *paths*, standard input for ``-``."""
    for path in paths:
        if path == STDIN:
            yield TextFile(shown(STDIN), STDIN, read(STDIN))
        else:
            yield from text_files([path], globs)
