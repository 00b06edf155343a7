"""``budgeteer cut``: a text cut to a number of tokens."""

from __future__ import annotations

import argparse

from budgeteer import TokenCounter
from budgeteer._count.counter import KEEP
from budgeteer.cli._arguments import Commands, OneOf, add_texts, examples
from budgeteer.cli._streams import line_end, read


def add(commands: Commands) -> None:
    """Add the command to the program."""
    cut = commands.add_parser(
        "cut",
        help="cut a text to a number of tokens",
        epilog=examples(
            "budgeteer cut -n 500 --keep both --marker ' [...] ' log.txt",
            "cat prompt.md | budgeteer cut -n 500 -m gpt-4o",
        ),
    )
    cut.set_defaults(run=_run)
    cut.add_argument(
        "-n",
        "--max-tokens",
        required=True,
        type=int,
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
        "--marker", default="", metavar="TEXT", help="put where something was cut out"
    )
    add_texts(cut, "?", "default: standard input")


def _run(arguments: argparse.Namespace) -> str:
    counter: TokenCounter = arguments.counter
    text = read(arguments.path)
    cut = counter.truncate(
        text, arguments.max_tokens, keep=arguments.keep, marker=arguments.marker
    )
    return cut + line_end()
