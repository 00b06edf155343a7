"""``budgeteer ask``: what folders and files say about a question, in a number of tokens."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from budgeteer import Chunk, Packer, Packing, TokenCounter
from budgeteer._files import one_line
from budgeteer._pack.options import Style
from budgeteer._sources.folder import text_files
from budgeteer._sources.pieces import pieces_of
from budgeteer.cli._arguments import (
    DEFAULTS,
    Commands,
    add_counter,
    add_globs,
    add_output,
    examples,
)
from budgeteer.cli._streams import Answer, line_end, unread
from budgeteer.errors import InvalidArgumentError

_TEMPLATES: dict[str, Style] = {
    "text": "plain",
    "json": "plain",
    "markdown": "markdown",
    "xml": "xml",
}
_TOKENS = 8_000
_SMALLEST, _LARGEST = 64, 400
"""Tokens that a chunk may have: half of the budget, within these bounds."""
_ABOVE_ZERO = math.ulp(0.0)
"""What shares no word with the question scores 0, and is not packed."""
_NOTHING = 1


def add(commands: Commands) -> None:
    """Add the command to the program."""
    ask = commands.add_parser(
        "ask",
        help="pack what folders and files say about a question",
        description="Packs the parts of text files that share words with a question, best first. "
        "Exit status 1 says\nthat there are none, or that none fits.",
        epilog=examples(
            'budgeteer ask docs "What is the remote work policy?" -n 8000 -m gpt-4o',
            'budgeteer ask src README.md "Where are tokens counted?" -o xml --explain',
        ),
    )
    ask.set_defaults(run=_run)
    ask.add_argument("paths", nargs="+", metavar="PATH", help="a folder or a file")
    ask.add_argument("question", metavar="QUESTION", help="what the text is for")
    ask.add_argument(
        "-n",
        "--max-tokens",
        type=int,
        default=_TOKENS,
        metavar="N",
        help=f"the budget (default: {_TOKENS})",
    )
    add_counter(ask, DEFAULTS["counter"], "-m")
    add_globs(ask)
    ask.add_argument(
        "--explain", action="store_true", help="say on standard error what became of the parts"
    )
    add_output(ask, tuple(_TEMPLATES))


def _run(arguments: argparse.Namespace) -> Answer:
    counter: TokenCounter = arguments.counter
    packer = Packer(
        arguments.max_tokens,
        counter=counter,
        min_score=_ABOVE_ZERO,
        template=_TEMPLATES[arguments.output],
    )
    limit = max(_SMALLEST, min(_LARGEST, arguments.max_tokens // 2))
    chunks, problems = _chunks(arguments.paths, arguments.globs, counter, limit)
    packing = packer.pack(arguments.question, chunks)
    said = []
    if problems:
        said.append(one_line(f"budgeteer: warning: {unread(problems)}"))
    if arguments.explain:
        said.append(packing.explain())
    if not packing.kept:
        said.append(one_line(f"budgeteer: {_reason(packing, arguments.paths)}"))
        return Answer("", "\n".join([*said, ""]), _NOTHING)
    text = _json(packing) if arguments.output == "json" else packing.text + line_end()
    return Answer(text, "\n".join([*said, ""]) if said else "")


def _chunks(
    paths: list[str], globs: list[str], counter: TokenCounter, limit: int
) -> tuple[list[Chunk], list[tuple[str, str]]]:
    """Return the pieces of all files, and of those that are not read why."""
    for path in paths:
        if not path or not Path(path).exists():
            raise InvalidArgumentError(f"cannot read {path!r}: No such file or directory")
    is_one = len(paths) == 1 and Path(paths[0]).is_dir()
    chunks = []
    problems = []
    for file in text_files(paths, globs):
        source = file.below if is_one else file.name
        if file.text is None:
            problems.append((file.name, file.problem))
            continue
        chunks += [
            Chunk(piece.text, id=f"{source}:{piece.line}", source=source, title=piece.title)
            for piece in pieces_of(source, file.text, counter, limit)
        ]
    return chunks, problems


def _reason(packing: Packing[Any], paths: list[str]) -> str:
    """Return why nothing is kept."""
    where = ", ".join(paths)
    if not packing.dropped:
        return f"there is no text in {where}"
    if all(dropped.reason == "out_of_scope" for dropped in packing.dropped):
        return f"nothing in {where} has a word of the question"
    return f"nothing that has a word of the question fits into {packing.budget_tokens} tokens"


def _json(packing: Packing[Chunk]) -> str:
    """Return the packing as a document, with the place of each chunk."""
    answer = packing.to_dict()
    chunks = [*(kept.chunk for kept in packing.kept), *(left.chunk for left in packing.dropped)]
    for item, chunk in zip([*answer["kept"], *answer["dropped"]], chunks, strict=True):
        item |= {"id": chunk.id, "source": chunk.source, "title": chunk.title}
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"
