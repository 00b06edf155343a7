"""``budgeteer pack``: chunks of JSON, in a number of tokens; or a file of requests."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from budgeteer._files import json_lines, parse_json
from budgeteer._pack.requests import MAX_WORKERS
from budgeteer.cli import _bulk
from budgeteer.cli._arguments import Commands, add_counter, add_query, examples, whole
from budgeteer.cli._packer import OUTPUTS, add_packer, answer_of, packer_of
from budgeteer.cli._requests import check_chunk
from budgeteer.cli._streams import STDIN, Answer, read, shown
from budgeteer.errors import InvalidArgumentError


def add(commands: Commands) -> None:
    """Add the command to the program."""
    pack = commands.add_parser(
        "pack",
        help="pack chunks given as JSON or JSON Lines, or a file of requests",
        description="Packs chunks, best first. Exit status 1 says that there are none, or that "
        "none fits; -o json\nis the document of a packing then too.\n\n"
        "With -o FILE the input has requests, each with its query and chunks, and FILE gets a row "
        "for each.\nAfter a stop, even a kill, the same command goes on. Exit status 2 says that "
        "rows have an error.",
        epilog=examples(
            'echo \'["Green tea.", "Coffee."]\' | budgeteer pack --query tea --max-tokens 4',
            "budgeteer pack --input requests.jsonl -n 2000 -m gpt-4o --workers 2 -o packed.jsonl",
        ),
    )
    pack.set_defaults(run=_run)
    add_query(pack, required=False)
    add_counter(pack)
    pack.add_argument(
        "--input",
        default=STDIN,
        metavar="FILE",
        help="a JSON array, or a string or object a line (default: standard input); with -o FILE "
        f"a file that ends in {_bulk.ENDINGS_LISTED}",
    )
    pack.add_argument(
        "--workers",
        type=_workers,
        metavar="N",
        help="with -o FILE: how many processes pack (default: 1)",
    )
    add_packer(pack, output=_bulk.Output(*OUTPUTS))


def _run(arguments: argparse.Namespace) -> Answer:
    if arguments.output not in OUTPUTS:
        return _bulk.run(arguments)
    if arguments.query is None:
        raise InvalidArgumentError("the following arguments are required: -q/--query/-t/--text")
    if arguments.workers is not None:
        raise InvalidArgumentError(
            "--workers does nothing with one answer: give --output FILE, or leave it out"
        )
    packer = packer_of(arguments)
    text = read(arguments.input)
    arguments.bar.stage("Packing")
    where = shown(arguments.input)
    chunks, lines = _chunks(text, where)
    try:
        packing = packer.pack(arguments.query, chunks)
    except InvalidArgumentError as error:
        raise _at_line(error, where, lines) from None
    return answer_of(arguments, packing, packer, where, has_places=False)


def _workers(value: str) -> int:
    return whole(value, f"a whole number from 1 to {MAX_WORKERS}")


def _at_line(
    error: InvalidArgumentError, where: str, lines: Sequence[int]
) -> InvalidArgumentError:
    """Return an error that names the line of a chunk: who wrote JSON lines counts no chunks."""
    found = re.match(r"chunks\[(\d+)\]", str(error))
    if not lines or found is None:
        return error
    line, problem = lines[int(found[1])], str(error)[found.end() :]
    # Of a field, or of the chunk itself.
    after = "" if problem.startswith(" ") else ": "
    return InvalidArgumentError(f"{where}: line {line}{after}{problem.removeprefix('.')}")


def _chunks(text: str, where: str) -> tuple[list[Any], list[int]]:
    """Return the chunks of a JSON array or of JSON lines, and of these the numbers."""
    numbers: list[int] = []
    try:
        if text.lstrip()[:1] == "[":
            items: list[Any] = parse_json(text)
            places = [f"chunks[{i}]" for i in range(len(items))]
        else:
            lines = list(json_lines(text))
            items = [item for _, item in lines]
            numbers = [n for n, _ in lines]
            places = [f"line {n}" for n in numbers]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}: {error}") from None
    for place, item in zip(places, items, strict=True):
        check_chunk(f"{where}: {place}", item)
    return items, numbers
