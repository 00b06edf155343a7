"""What became of the chunks: a table at a terminal, plain lines anywhere else."""

from __future__ import annotations

import io
import shutil
import sys
from itertools import islice
from typing import Any

from budgeteer import DroppedChunk, Packing
from budgeteer._chunk.chunk import id_of
from budgeteer._files import one_line
from budgeteer._pack.explain import why
from budgeteer._pack.shown import report_of
from budgeteer._report.words import counted, number, scored
from budgeteer.cli._streams import has_colours

_LISTED = 10
"""The dropped chunks that a table lists where nobody says how many."""
_STYLES = {"kept": "green", "cut": "yellow", "dropped": "red"}


def explained(packing: Packing[Any], dropped: int | None) -> list[str]:
    """
    Return lines for standard error, which is a terminal or not.

    Args:
        packing: What was packed.
        dropped: How many dropped chunks are listed; None for none in plain lines, and for the best
            ten in a table.

    """
    lines = [packing.explain()]
    if sys.stderr is not None and sys.stderr.isatty():
        try:
            return [*lines, _table(packing, _LISTED if dropped is None else dropped)]
        except ImportError:  # without rich it is as in a pipe
            pass
    return [*lines, *(_line(packing, item) for item in islice(packing.dropped, dropped or 0))]


def _line(packing: Packing[Any], dropped: DroppedChunk[Any]) -> str:
    reason = why(packing, dropped)  # explain() looks each chunk up again
    name = id_of(dropped.chunk)
    shown = "" if name is None else f" ({name})"
    return one_line(f"Chunk {dropped.index}{shown} was dropped: {reason}")


def _table(packing: Packing[Any], dropped: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, justify in (
        *(("Rank", "right"), ("Chunk", "left"), ("Outcome", "left"), ("Score", "right")),
        *(("Tokens", "right"), ("Why", "left")),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]  # one of those
    report = report_of(packing, dropped)
    for row in report.rows or ():
        name = f"{row.index} {row.name}".rstrip()
        table.add_row(
            *(number(row.rank), Text(one_line(name)), Text(row.state, _STYLES[row.state])),
            *(scored(row.score), counted(row.tokens, row.is_least), Text(one_line(row.why))),
        )
    out = io.StringIO()
    Console(
        file=out,
        width=shutil.get_terminal_size().columns,
        force_terminal=has_colours(sys.stderr),
        no_color=not has_colours(sys.stderr),
        highlight=False,
    ).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    if report.unlisted:
        lines.append(f"{number(report.unlisted)} more were dropped.")
    return "\n".join(lines)
