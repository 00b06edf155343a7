"""``budgeteer ask``: what folders and files say about a question, in a number of tokens."""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from budgeteer import Chunk
from budgeteer._files import one_line
from budgeteer._sources.folder import TextFile, passed_over
from budgeteer._sources.pieces import pieces_of
from budgeteer.cli._arguments import Commands, add_texts, examples, texts_of
from budgeteer.cli._packer import BY_WORDS, add_packer, answer_of, packer_of
from budgeteer.cli._streams import STDIN, Answer, shown
from budgeteer.errors import InvalidArgumentError

_RANKINGS = (*BY_WORDS, "recency", "input")
"""Files have no scores of their own."""
_LEAST, _SMALLEST, _LARGEST = 16, 64, 400
"""
Tokens that a chunk may have: half of the budget, from the second bound to the third.

Of a small budget it is two thirds, so that a chunk fits with its frame, down to the first bound.
Where there are no frames, a section of up to the second bound that fits is not split: its end has
its title, and would rank above the beginning, without which it says little.
"""
_ABOVE_ZERO = math.ulp(0.0)
"""What shares no word with the query and is not linked scores 0: not packed where words rank."""


def add(commands: Commands) -> None:
    """Add the command to the program."""
    ask = commands.add_parser(
        "ask",
        help="pack what folders and files say about a question",
        description="Packs the parts of text files that have to do with a question, best first. "
        "Exit status 1 says\nthat there are none, or that none fits; -o json is the document of "
        "a packing then too.",
        epilog=examples(
            'budgeteer ask docs "What is the remote work policy?" -n 8000 -m gpt-4o',
            'budgeteer ask src README.md "Where are tokens counted?" -o xml --explain',
        ),
    )
    ask.set_defaults(run=_run)
    add_texts(ask, "+", "a folder, a file, or - for standard input")
    ask.add_argument("query", metavar="QUERY", help="what the text is for")
    add_packer(ask, _RANKINGS, ("headings", "links"))


def _run(arguments: argparse.Namespace) -> Answer:
    by_words = arguments.ranking in (None, *BY_WORDS)
    defaults: dict[str, Any] = {"min_score": _ABOVE_ZERO if by_words else None}
    if arguments.ranking in (None, "lexical"):
        # Else a part without a word of the question could score.
        defaults["feedback"] = False
    packer = packer_of(arguments, **defaults)
    for path in arguments.paths:
        if path != STDIN and (not path or not Path(path).exists()):
            raise InvalidArgumentError(f"cannot read {path!r}: No such file or directory")
    files, where = texts_of(arguments, "Reading files")
    budget = packer.max_tokens - packer.reserve_tokens
    is_framed = packer.template != "plain" or packer.notice is not None
    limit = max(_LEAST, min(max(_SMALLEST, budget // 2), _LARGEST, budget * 2 // 3))
    whole = 0 if is_framed else min(_SMALLEST, budget)
    chunks, problems = _chunks(arguments, files, limit, whole)
    arguments.bar.stage("Packing")
    packing = packer.pack(arguments.query, chunks)
    if packer.min_score == "auto" and packing._least is None:  # noqa: SLF001 - nothing scores
        packer = replace(packer, min_score=_ABOVE_ZERO)
        packing = packer.pack(arguments.query, chunks)
    answer = answer_of(arguments, packing, packer, where)
    if problems:
        warning = one_line(f"budgeteer: warning: {passed_over(problems)}")
        answer = answer._replace(said=f"{warning}\n{answer.said}")
    return answer


def _chunks(
    arguments: argparse.Namespace, files: Iterable[TextFile], limit: int, whole: int
) -> tuple[list[Chunk], list[tuple[str, str]]]:
    """Return the pieces of all *files*, and of those that are not read why."""
    paths = arguments.paths
    is_one = len(paths) == 1 and paths != [STDIN] and Path(paths[0]).is_dir()
    chunks = []
    problems = []
    ids: Counter[str] = Counter()
    for file in files:
        source = file.below if is_one else file.name
        if file.text is None:
            problems.append((file.name, file.problem))
            continue
        is_dated = arguments.ranking == "recency"
        metadata = {"mtime": _mtime(file.name)} if is_dated else None
        for piece in pieces_of(source, file.text, arguments.counter, limit, whole):
            name = f"{source}:{piece.line}"
            ids[name] += 1
            if ids[name] > 1:  # another part of a long line, or a file named twice
                name = f"{name}.{ids[name]}"
            chunks.append(
                Chunk(piece.text, id=name, source=source, title=piece.title, metadata=metadata)
            )
    return chunks, problems


def _mtime(name: str) -> float:
    """Return when a file was last written; standard input is written now."""
    return time.time() if name == shown(STDIN) else Path(name).stat().st_mtime
