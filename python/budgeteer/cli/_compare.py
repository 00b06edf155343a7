"""``budgeteer compare``: what changed between two packings."""

from __future__ import annotations

import argparse

from budgeteer import compare
from budgeteer.cli._arguments import Commands, OneOf, add_output, examples
from budgeteer.cli._streams import STDIN, Answer, as_json, json_of, shown
from budgeteer.errors import InvalidArgumentError


def add(commands: Commands) -> None:
    """Add the command to the program."""
    parser = commands.add_parser(
        "compare",
        help="say what changed between two packings",
        description="Compares two packings, written by -o json of ask, pack or query. Exit status "
        "1 says that they\ndiffer.",
        epilog=examples(
            "budgeteer compare before.json after.json",
            "budgeteer compare before.json after.json -o html > changes.html",
        ),
    )
    parser.set_defaults(run=_run)
    parser.add_argument("before", metavar="BEFORE", help="a file, or - for standard input")
    parser.add_argument("after", metavar="AFTER", help="the other file")
    add_output(parser, OneOf("text", "json", "html"))


def _run(arguments: argparse.Namespace) -> Answer:
    names = (arguments.before, arguments.after)
    if names == (STDIN, STDIN):
        raise InvalidArgumentError("only one of BEFORE and AFTER may be standard input")
    documents = [json_of(name) for name in names]
    try:
        found = compare(*documents)
    except InvalidArgumentError as error:
        which, _, problem = str(error).partition(" ")
        name = arguments.before if which == "before" else arguments.after
        for said in ("a Packing or what Packing.to_dict returns", "what Packing.to_dict returns"):
            problem = problem.replace(said, "a packing that -o json wrote")
        raise InvalidArgumentError(f"{shown(name)} {problem}") from None
    if arguments.output == "json":
        text = as_json(found.to_dict())
    elif arguments.output == "html":
        text = found.to_html()
    else:
        text = found.explain() + "\n"
    return Answer(text, status=0 if found.is_same else 1)
