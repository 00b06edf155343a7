"""``budgeteer cut``: a text, or the result of a tool, cut to a number of tokens."""

from __future__ import annotations

import argparse

from budgeteer import TokenCounter
from budgeteer._count.counter import KEEP
from budgeteer._output.output import KINDS, fit_output
from budgeteer.cli._arguments import Commands, OneOf, add_texts, examples, whole
from budgeteer.cli._streams import line_end, read, shown
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

_MARKER = " [...] "
"""Without one, the two ends of a text would read as one sentence that nobody wrote."""


def add(commands: Commands) -> None:
    """Add the command to the program."""
    cut = commands.add_parser(
        "cut",
        help="cut a text, or the result of a tool, to a number of tokens",
        epilog=examples(
            "budgeteer cut -n 500 --keep both log.txt",
            "cat log.txt | budgeteer cut -n 500 --kind log -m gpt-4o",
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
        metavar=checks.metavar,
        help=f"which part stays (default: {KEEP[0]})",
    )
    cut.add_argument(
        "--marker",
        metavar="TEXT",
        help=f"put where something was cut out (default: {_MARKER!r} with --keep both, else '')",
    )
    kinds = OneOf(*KINDS)
    cut.add_argument(
        "--kind",
        type=kinds,
        metavar=kinds.metavar,
        help="cut the result of a tool so that it stays valid, and say in it what was left out; "
        "auto: what its content says (default: any text, without looking at it)",
    )
    cut.add_argument(
        "--query", metavar="TEXT", help="with --kind: the parts that answer it stay first"
    )
    add_texts(cut, "?", "default: standard input")


def _run(arguments: argparse.Namespace) -> str:
    counter: TokenCounter = arguments.counter
    limit: int = arguments.max_tokens
    marker: str | None = arguments.marker
    if arguments.kind is not None:
        for option in ("keep", "marker"):
            if getattr(arguments, option) is not None:
                raise InvalidArgumentError(
                    f"--{option} does nothing with --kind, which decides what stays: leave one out"
                )
        return _result(arguments, read(arguments.path)) + line_end()
    if arguments.query is not None:
        raise InvalidArgumentError("--query does nothing without --kind: give --kind auto")
    text = read(arguments.path)
    keep = arguments.keep or KEEP[0]
    if marker is None:
        marker = _MARKER if keep == "both" else ""
    cut = counter.truncate(text, limit, keep=keep, marker=marker)
    if text and marker and not cut:
        raise InvalidArgumentError(
            f"the marker {marker!r} has {counter.count(marker)} tokens, and no text fits beside "
            f"it into the {limit} of -n: give a larger -n, or --marker ''"
        )
    return cut + line_end()


def _result(arguments: argparse.Namespace, value: str) -> str:
    """Return the result of a tool, cut; what is wrong is named as it is here."""
    limit, kind, query = arguments.max_tokens, arguments.kind, arguments.query
    try:
        cut = fit_output(value, limit, query=query, kind=kind, counter=arguments.counter).text
    except (InvalidArgumentError, BudgetExhaustedError) as error:
        name, message = shown(arguments.path), str(error)
        if message.startswith("value "):
            message = f"{name}{message.removeprefix('value')}"
        message = message.replace(
            "nothing of value fits: max_tokens", f"nothing of {name} fits: -n"
        )
        message = message.replace("kind 'text' takes any str", "--kind text takes any text")
        message = message.replace("as a str, kind 'text' takes it", "--kind text takes it")
        raise type(error)(message) from None
    if value and not cut:
        raise InvalidArgumentError(
            f"no text fits beside the line that counts what is left out into the {limit} of -n: "
            "give a larger -n"
        )
    return cut
