"""A comparison of two packings as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from budgeteer._report.page import document, head
from budgeteer._report.words import number, shown

Label: TypeAlias = Callable[[Any], str]
Outcome: TypeAlias = Callable[[str | None, int | None], str]


def difference(comparison: Any, label: Label, outcome: Outcome) -> str:
    """Return the HTML of a comparison; two functions word a chunk and its outcome."""
    lead = "Nothing changed."
    if not comparison.is_same:
        figures, chunks = len(comparison.figures), len(comparison.chunks)
        lead = f"{_counted(figures, 'figure')} and {_counted(chunks, 'chunk')} changed."
        if comparison.is_reordered:
            lead += " Chunks that both texts have stand in another order."
        elif not (figures or chunks):
            lead = "Only the text changed."
    return document("What changed?", lead, (), [*tables(comparison, label, outcome)])


def tables(comparison: Any, label: Label, outcome: Outcome) -> Iterator[str]:
    """Yield the tables of a comparison, as far as they have rows."""
    if comparison.figures:
        rows = [
            (shown(one.name), shown(_said(one.before)), shown(_said(one.after)))
            for one in comparison.figures
        ]
        yield from _table("figures", "Figures and options", "Figure", rows)
    if comparison.chunks:
        rows = [
            (
                f"Chunk {shown(label(one))}",
                shown(outcome(one.before, one.tokens_before)),
                shown(outcome(one.after, one.tokens_after)),
            )
            for one in comparison.chunks
        ]
        yield from _table("chunks", f"Chunks, matched by {comparison.matched_by}", "Chunk", rows)


def _table(
    name: str, title: str, first: str, rows: Sequence[tuple[str, str, str]]
) -> Iterator[str]:
    yield f'<section aria-labelledby="changed-{name}">\n'
    yield f'<h2 id="changed-{name}">{title}</h2>\n'
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
    yield f'<table class="figures">{head(first, [("Before", False), ("After", False)])}'
    for label, before, after in rows:
        yield f'<tr><th scope="row">{label}</th><td>{before}</td><td>{after}</td></tr>'
    yield "</tbody></table></div>\n</section>\n"


def _said(value: int | str) -> str:
    return number(value) if isinstance(value, int) else value


def _counted(count: int, what: str) -> str:
    return f"{number(count)} {what}" + ("" if count == 1 else "s")
