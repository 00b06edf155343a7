"""What a notebook shows of a result: a sentence, the window as a bar, and its sections."""

from __future__ import annotations

from budgeteer._report.chart import paints, swatch, window
from budgeteer._report.parts import Report
from budgeteer._report.words import counted, number, scored, shown

_ROWS = 10
"""The most chunks that are shown: the best."""


def small(report: Report) -> str:
    """Return a piece of HTML without styles or scripts of its own."""
    inline = 'style="display:inline-block;margin-right:1em"'
    legend = "".join(
        f"<span {inline}>{_inline(swatch(paint))} {shown(part.name)} {number(part.tokens)}</span>"
        for part, paint in zip(report.parts, paints(report.parts), strict=True)
        if part.tokens or part.kind == "free"
    )
    return (
        f'<div style="max-width:60em"><p><strong>{shown(report.lead)}</strong></p>'
        f"{window(report.parts)}<p>{legend}</p>{_rows(report)}</div>"
    )


def _inline(svg: str) -> str:
    return svg.replace("<svg ", '<svg style="display:inline" ', 1)


def _rows(report: Report) -> str:
    if not report.rows:
        return ""
    rows = "".join(
        f"<tr><td>{row.index}</td><td>{shown(row.name)}</td><td>{row.state}</td>"
        f"<td>{scored(row.score)}</td><td>{counted(row.tokens, row.is_least)}</td>"
        f'<td style="text-align:left;min-width:24em">{shown(row.why)}</td></tr>'
        for row in report.rows[:_ROWS]
    )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("Chunk", "Name", "Outcome", "Score", "Tokens", "Why")
    )
    more = len(report.rows) + report.unlisted - _ROWS
    rest = f"<p>{number(more)} more chunks.</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"
