"""``budgeteer pack``: chunks of JSON, in a number of tokens."""

from __future__ import annotations

import argparse
from typing import Any

from budgeteer import _validate
from budgeteer._files import json_lines, parse_json
from budgeteer.cli._arguments import Commands, add_counter, add_query, examples
from budgeteer.cli._packer import add_packer, answer_of, packer_of
from budgeteer.cli._streams import STDIN, Answer, read, shown
from budgeteer.errors import InvalidArgumentError


def add(commands: Commands) -> None:
    """Add the command to the program."""
    pack = commands.add_parser(
        "pack",
        help="pack chunks given as JSON or JSON Lines",
        description="Packs chunks, best first. Exit status 1 says that there are none, or that "
        "none fits; -o json\nis the document of a packing then too.",
        epilog=examples(
            'echo \'["Green tea.", "Coffee."]\' | budgeteer pack --query tea --max-tokens 4',
            "budgeteer pack -q tea -n 2000 -m gpt-4o --input chunks.jsonl -o xml",
        ),
    )
    pack.set_defaults(run=_run)
    add_query(pack)
    add_counter(pack)
    pack.add_argument(
        "--input",
        default=STDIN,
        metavar="FILE",
        help="a JSON array, or a string or object a line (default: standard input)",
    )
    add_packer(pack)


def _run(arguments: argparse.Namespace) -> Answer:
    packer = packer_of(arguments)
    text = read(arguments.input)
    arguments.bar.stage("Packing")
    where = shown(arguments.input)
    packing = packer.pack(arguments.query, _chunks(text, where))
    return answer_of(arguments, packing, packer, where, has_places=False)


def _chunks(text: str, where: str) -> list[Any]:
    """Return the chunks of a JSON array or of JSON lines."""
    try:
        if text.lstrip()[:1] == "[":
            items: list[Any] = parse_json(text)
            places = [f"chunks[{i}]" for i in range(len(items))]
        else:
            lines = list(json_lines(text))
            items = [item for _, item in lines]
            places = [f"line {n}" for n, _ in lines]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}: {error}") from None
    for place, item in zip(places, items, strict=True):
        if not isinstance(item, (str, dict)):
            found = _validate.type_name(item)
            raise InvalidArgumentError(
                f"{where}: {place} must be a str or a JSON object, not {found}"
            )
    return items
