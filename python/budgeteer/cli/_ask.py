"""``budgeteer ask``: what folders and files say about a question, in a number of tokens."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from budgeteer import Chunk, Packing
from budgeteer._files import one_line
from budgeteer._sources.folder import text_files
from budgeteer._sources.pieces import pieces_of
from budgeteer.cli._arguments import Commands, add_texts, examples, globs_of
from budgeteer.cli._packer import add_packer, answer_of, packer_of
from budgeteer.cli._streams import Answer, unread
from budgeteer.errors import InvalidArgumentError

_BY_WORDS = ("bm25", "keyword")
_RANKINGS = (*_BY_WORDS, "recency", "input")
"""Files have no scores of their own."""
_SMALLEST, _LARGEST = 64, 400
"""Tokens that a chunk may have: half of the budget, within these bounds."""
_ABOVE_ZERO = math.ulp(0.0)
"""What shares no word with the query scores 0, and is not packed where words rank."""
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
    add_texts(ask, "+", "a folder or a file")
    ask.add_argument("query", metavar="QUERY", help="what the text is for")
    add_packer(ask, _RANKINGS)


def _run(arguments: argparse.Namespace) -> Answer:
    by_words = arguments.ranking in (None, *_BY_WORDS)
    packer = packer_of(arguments, min_score=_ABOVE_ZERO if by_words else None)
    chunks, problems = _chunks(arguments, packer.max_tokens - packer.reserve_tokens)
    arguments.bar.stage("Packing")
    packing = packer.pack(arguments.query, chunks)
    text, said = answer_of(arguments, packing, has_places=True)
    if problems:
        said = one_line(f"budgeteer: warning: {unread(problems)}") + "\n" + said
    if packing.kept:
        return Answer(text, said)
    reason = one_line(f"budgeteer: {_reason(packing, arguments)}")
    return Answer("", f"{said}{reason}\n", _NOTHING)


def _chunks(
    arguments: argparse.Namespace, budget: int
) -> tuple[list[Chunk], list[tuple[str, str]]]:
    """Return the pieces of all files, and of those that are not read why."""
    paths = arguments.paths
    for path in paths:
        if not path or not Path(path).exists():
            raise InvalidArgumentError(f"cannot read {path!r}: No such file or directory")
    is_one = len(paths) == 1 and Path(paths[0]).is_dir()
    limit = max(_SMALLEST, min(_LARGEST, budget // 2))
    chunks = []
    problems = []
    for file in arguments.bar.over("Reading files", text_files(paths, globs_of(arguments))):
        source = file.below if is_one else file.name
        if file.text is None:
            problems.append((file.name, file.problem))
            continue
        is_dated = arguments.ranking == "recency"
        metadata = {"mtime": Path(file.name).stat().st_mtime} if is_dated else None
        chunks += [
            Chunk(
                piece.text,
                id=f"{source}:{piece.line}",
                source=source,
                title=piece.title,
                metadata=metadata,
            )
            for piece in pieces_of(source, file.text, arguments.counter, limit)
        ]
    return chunks, problems


def _reason(packing: Packing[Any], arguments: argparse.Namespace) -> str:
    """Return why nothing is kept."""
    where = ", ".join(arguments.paths)
    reasons = {dropped.reason for dropped in packing.dropped} - {"empty"}
    if not reasons:
        return f"there is no text in {where}"
    least = arguments.min_score
    has_word = arguments.ranking in (None, *_BY_WORDS) and least is None
    if reasons == {"out_of_scope"}:
        if has_word:
            return f"nothing in {where} has a word of the question"
        return f"nothing in {where} scores {least!r} or more"
    if "budget" not in reasons:
        return "--max-chunks 0 keeps nothing"
    which = " that has a word of the question" if has_word else ""
    return f"nothing{which} fits into {packing.budget_tokens} tokens"
