"""Tables of what was before and what is after, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from budgeteer._report.page import head
from budgeteer._report.words import shown


class Changes(NamedTuple):
    """
    A table: what it is of, before and after.

    Attributes:
        name: Names it in the page.
        title: Its heading.
        first: The heading of its first column.
        rows: What changed, and what it was before and is after.

    """

    name: str
    title: str
    first: str
    rows: Sequence[tuple[str, str, str]]


def tables(found: Iterable[Changes]) -> Iterator[str]:
    """Yield the HTML of the tables that have rows."""
    for name, title, first, rows in found:
        if not rows:
            continue
        yield f'<section aria-labelledby="changed-{name}">\n'
        yield f'<h2 id="changed-{name}">{title}</h2>\n'
        yield f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        yield f'<table class="figures">{head(first, [("Before", False), ("After", False)])}'
        for label, before, after in rows:
            yield f'<tr><th scope="row">{shown(label)}</th>'
            yield f"<td>{shown(before)}</td><td>{shown(after)}</td></tr>"
        yield "</tbody></table></div>\n</section>\n"
