"""``budgeteer cut``: a text cut to a number of tokens."""

from __future__ import annotations

import argparse

from budgeteer import TokenCounter
from budgeteer._count.counter import KEEP
from budgeteer.cli._arguments import Commands, OneOf, add_texts, examples, whole
from budgeteer.cli._streams import line_end, read
from budgeteer.errors import InvalidArgumentError

_MARKER = " [...] "
"""Without one, the two ends of a text would read as one sentence that nobody wrote."""


def add(commands: Commands) -> None:
    """Add the command to the program."""
    cut = commands.add_parser(
        "cut",
        help="cut a text to a number of tokens",
        epilog=examples(
            "budgeteer cut -n 500 --keep both log.txt",
            "cat prompt.md | budgeteer cut -n 500 -m gpt-4o",
        ),
    )
    cut.set_defaults(run=_run)
    cut.add_argument(
        "-n",
        "--max-tokens",
        required=True,
        type=whole,
        metavar="N",
        help="at most N tokens stay, the marker among them",
    )
    checks = OneOf(*KEEP)
    cut.add_argument(
        "--keep",
        type=checks,
        default=KEEP[0],
        metavar=checks.metavar,
        help=f"which part stays (default: {KEEP[0]})",
    )
    cut.add_argument(
        "--marker",
        metavar="TEXT",
        help=f"put where something was cut out (default: {_MARKER!r} with --keep both, else '')",
    )
    add_texts(cut, "?", "default: standard input")


def _run(arguments: argparse.Namespace) -> str:
    counter: TokenCounter = arguments.counter
    text = read(arguments.path)
    marker: str | None = arguments.marker
    if marker is None:
        marker = _MARKER if arguments.keep == "both" else ""
    limit: int = arguments.max_tokens
    cut = counter.truncate(text, limit, keep=arguments.keep, marker=marker)
    if text and marker and not cut:
        raise InvalidArgumentError(
            f"the marker {marker!r} has {counter.count(marker)} tokens, and no text fits beside "
            f"it into the {limit} of -n: give a larger -n, or --marker ''"
        )
    return cut + line_end()
