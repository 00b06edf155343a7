"""A packing as JSON: the document of `Packing.to_dict`, of which every chunk is a line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budgeteer import Packing
from budgeteer._chunk.chunk import known_field, label_of
from budgeteer._files import write_whole
from budgeteer.cli._arguments import NONE, Parser
from budgeteer.cli._streams import NO_NAME, STDIN, escaped
from budgeteer.errors import InvalidArgumentError

_ALL = "all"
_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def add_dropped(parser: Parser, shown_by: str) -> None:
    """Add the number of dropped chunks that are listed."""
    parser.add_argument(
        "--dropped",
        type=_limit,
        metavar=f"N|{NONE}|{_ALL}",
        help=f"for {shown_by}: how many dropped chunks are listed",
    )


def add_report(parser: Parser) -> None:
    """Add the file of the report."""
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write a page to FILE, as HTML, that shows what became of each chunk, and why",
    )


def write_report(arguments: argparse.Namespace, packing: Packing[Any]) -> None:
    """Write the report, if one is wanted; ``--dropped`` says how many dropped chunks it lists."""
    if arguments.report is None:
        return
    if arguments.report == STDIN:
        raise InvalidArgumentError("--report must be a file, not standard output")
    arguments.bar.stage("Writing the report")
    most = {} if arguments.dropped is None else {"dropped": arguments.dropped}
    try:
        _refuse_input(arguments)
        write_whole(arguments.report, packing.report(**most).encode())
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot write {arguments.report or NO_NAME}: {error.strerror or error}"
        ) from None


def _refuse_input(arguments: argparse.Namespace) -> None:
    """Refuse a report in the place of a file that was read, which would be lost."""
    place = Path(arguments.report)
    if not place.is_file():
        return
    read = (getattr(arguments, "input", None), getattr(arguments, "config", None))
    for name in (*read, *getattr(arguments, "paths", ())):
        if name and name != STDIN and place.samefile(name):
            raise InvalidArgumentError(
                f"--report must not be the input {name!r}: give another name"
            )


def _limit(value: str) -> int:
    if value in (NONE, _ALL):
        return 0 if value == NONE else sys.maxsize
    if value.isascii() and value.isdigit():
        return min(int(value[:20]), sys.maxsize)
    raise argparse.ArgumentTypeError(
        f"must be a number from 0 on, {NONE!r} or {_ALL!r}, not {value[:80]!r}"
    )


def document_of(
    arguments: argparse.Namespace, packing: Packing[Any], *, has_places: bool
) -> dict[str, Any]:
    """
    Return a packing as plain data, of which ``--dropped`` may leave dropped chunks out.

    Args:
        arguments: Those of the command.
        packing: What was packed.
        has_places: Whether to say where each chunk comes from.

    """
    document = packing.to_dict()
    if arguments.dropped is not None:
        del document["dropped"][arguments.dropped :]
        document["dropped_count"] = packing.dropped_count
    if has_places:
        for item, kept in zip(document["kept"], packing.kept, strict=True):
            item.update(place_of(kept.chunk))
        for item, dropped in zip(document["dropped"], packing.dropped, strict=False):
            item.update(place_of(dropped.chunk))
    return document


def place_of(chunk: object) -> dict[str, Any]:
    """Return where a chunk comes from."""
    return {
        "id": known_field(chunk, "id"),
        "source": label_of(chunk, "source"),
        "title": label_of(chunk, "title"),
    }


def written(document: Mapping[str, Any]) -> str:
    """Return the JSON of a document whose lists may be long: an item a line."""
    lines = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            text = "[\n    " + ",\n    ".join(map(_encoded, value)) + "\n  ]"
        else:
            text = _encoded(value)
        lines.append(f"  {_encoded(name)}: {text}")
    return escaped("{\n" + ",\n".join(lines) + "\n}\n")
