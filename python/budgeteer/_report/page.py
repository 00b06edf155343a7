"""A report as one HTML file, which needs no network and, to be read, no program."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from budgeteer._report.chart import budget_curve, paints, swatch, window
from budgeteer._report.parts import Piece, Report, Row
from budgeteer._report.words import counted, flat, number, scored, share, shown

_HERE = Path(__file__)
_FIRST = 100
"""The characters of a text that stand in place of all of it until somebody opens it."""
_LISTED = 40
"""The most chunks that a line of the budget curve names."""
_LONG = 30
"""The characters of a note above which it wants more room than a narrow page has."""
_NUMBER = ' class="number"'
_STATES = (("kept", "kept whole"), ("cut", "cut"), ("dropped", "dropped"))


def page(report: Report) -> str:
    """Return the HTML of a report."""
    body = [*_window(report), *_changes(report), *_chunks(report), *_curve(report), *_text(report)]
    has_rows = bool(report.rows)
    return document(report.title, report.lead, report.facts, body, has_rows=has_rows)


def document(
    title: str,
    lead: str,
    facts: Sequence[tuple[str, str]],
    body: Sequence[str],
    *,
    has_rows: bool = False,
) -> str:
    """Return a page around *body*; *has_rows* says whether it has chunks to search."""
    style, script = (
        _HERE.with_suffix(suffix).read_text(encoding="utf-8") for suffix in (".css", ".js")
    )
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            # Nothing is loaded, and no other script or style is understood.
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            f"<title>{flat(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n",
            '<a class="skip" href="#chunks">Skip to the chunks</a>\n' if has_rows else "",
            f"<header>\n<h1>{shown(title)}</h1>\n",
            f'<p class="lead">{shown(lead)}</p>\n',
            *_facts(facts),
            *(_places(body) if has_rows else ()),
            "</header>\n<main>\n",
            *body,
            "</main>\n<footer>Written by budgeteer. This file loads nothing.</footer>\n",
            f"<script>{script}</script>\n" if has_rows else "",
            "</body>\n</html>\n",
        ]
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _facts(facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not facts:
        return
    yield "<dl>"
    for term, value in facts:
        yield f"<dt>{shown(term)}</dt><dd>{shown(value)}</dd>"
    yield "</dl>\n"


def _places(body: Sequence[str]) -> Iterator[str]:
    """Yield links to the headings of *body*: between two of them may stand thousands of rows."""
    found = (re.search(r'<h2 id="([^"]+)">([^<]+)</h2>', line) for line in body)
    links = "".join(f'<a href="#{match[1]}">{match[2]}</a>' for match in found if match)
    yield f'<nav class="places" aria-label="On this page">{links}</nav>\n'


def _window(report: Report) -> Iterator[str]:
    parts = report.parts
    total = sum(part.tokens for part in parts)
    yield '<section aria-labelledby="window">\n<h2 id="window">The window</h2>\n'
    yield window(parts)
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Sections of the window">'
    yield f'<table class="figures"><caption>{number(total)} tokens by section</caption>'
    columns = [(name, True) for name in ("Tokens", "Share", *report.columns)]
    has_notes = any(part.note for part in parts)
    if has_notes:
        columns.append(("Note", False))
    yield head("Section", columns)
    for part, paint in zip(parts, paints(parts), strict=True):
        yield f'<tr><th scope="row">{swatch(paint)}{shown(part.name)}</th>'
        yield f'{_cell(part.tokens)}<td class="number">{share(part.tokens, total)}</td>'
        yield from map(_cell, part.others)
        if has_notes:
            long = ' class="long"' if len(part.note) > _LONG else ""
            yield f"<td{long}>{shown(part.note)}</td>"
        yield "</tr>"
    yield "</tbody></table></div>\n</section>\n"


def head(first: str, columns: Sequence[tuple[str, bool]]) -> str:
    """Return the head of a table; the bools say which columns hold numbers."""
    cells = "".join(
        f'<th scope="col"{_NUMBER if is_number else ""}>{shown(name)}</th>'
        for name, is_number in columns
    )
    return f'<thead><tr><th scope="col">{first}</th>{cells}</tr></thead><tbody>'


def _cell(value: int) -> str:
    return f"<td{_NUMBER}>{number(value)}</td>"


def _changes(report: Report) -> Iterator[str]:
    if report.changes is None:
        return
    yield '<section aria-labelledby="changes">\n<h2 id="changes">What was changed</h2>\n'
    if not report.changes:
        yield "<p>Nothing: the request fits as it is.</p>\n</section>\n"
        return
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Changes">'
    yield '<table class="figures">'
    columns = [("Action", False), ("Why", False), ("Before", True), ("Now", True)]
    yield head("Place", columns)
    for change in report.changes:
        yield (
            f'<tr><th scope="row">{shown(change.place)}</th>'
            f"<td>{shown(change.action.replace('_', ' '))}</td><td>{shown(change.reason)}</td>"
            f"{_cell(change.before)}{_cell(change.tokens)}</tr>"
        )
    yield "</tbody></table></div>\n</section>\n"


def _chunks(report: Report) -> Iterator[str]:
    rows = report.rows
    if rows is None:
        return
    yield '<section aria-labelledby="chunks-title" id="chunks">\n'
    yield '<h2 id="chunks-title">The chunks, best first</h2>\n'
    if not rows:
        yield "<p>There are none.</p>\n</section>\n"
        return
    yield from _search(rows)
    listed = {row.index for row in rows}
    yield '<table role="table"><caption>Each chunk with what became of it, in rank order</caption>'
    yield '<thead role="rowgroup"><tr role="row">'
    for name, kind in (
        *(("Rank", "rank"), ("Chunk", ""), ("Outcome", "state"), ("Score", "number")),
        *(("Tokens", "number"), ("Why", "why"), ("Text", "text")),
    ):
        yield f'<th role="columnheader" scope="col" class="{kind}">{name}</th>'
    yield '</tr></thead>\n<tbody role="rowgroup">\n'
    for row in rows:
        yield _row(row, listed)
    yield "</tbody></table>\n"
    if report.unlisted:
        yield (
            f'<p class="soft">{number(report.unlisted)} more dropped chunks, of lower rank, are '
            "not listed here.</p>\n"
        )
    yield "</section>\n"


def _search(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the controls, which a program shows: without one they would do nothing."""
    states: Counter[str] = Counter(row.state for row in rows)
    reasons = Counter(row.reason for row in rows if row.reason)
    yield '<form class="search" role="search" hidden>'
    yield '<div><label for="words">Search in names, texts and reasons</label>'
    yield '<input id="words" type="search" autocomplete="off" spellcheck="false"></div>'
    yield '<div><label for="state">Show</label><select id="state"><option value="">all</option>'
    for state, words in _STATES:
        if states[state]:
            yield f'<option value="{state}">{words} ({number(states[state])})</option>'
    for reason, count in sorted(reasons.items()):
        yield f'<option value="{reason}">dropped: {reason.replace("_", " ")} ({number(count)})'
        yield "</option>"
    yield '</select></div><button type="reset">Show all</button>'
    yield '<output for="words state" aria-live="polite"></output></form>\n'


def _row(row: Row, listed: set[int]) -> str:
    name = f' <span class="soft">{shown(row.name)}</span>' if row.name else ""
    tokens = counted(row.tokens, row.is_least)
    return (
        f'<tr role="row" id="chunk-{row.index}" class="{row.state}" data-state="{row.state}" '
        f'data-reason="{row.reason}"><td role="cell" class="rank">{number(row.rank)}</td>'
        f'<th role="rowheader" scope="row">Chunk {row.index}{name}</th>'
        f'<td role="cell" class="state">{row.state}</td>'
        f'<td role="cell" class="number" data-label="score">{scored(row.score)}</td>'
        f'<td role="cell" class="number" data-label="tokens">{tokens}</td>'
        f'<td role="cell" class="why">{_linked(row, listed)}</td>'
        f'<td role="cell" class="text">{_body(row)}</td></tr>\n'
    )


def _linked(row: Row, listed: set[int]) -> str:
    """Return why, with a link for each other chunk that it names."""

    def link(found: re.Match[str]) -> str:
        index = int(found[1])
        is_there = index in listed and index != row.index
        return f'<a href="#chunk-{index}">{found[0]}</a>' if is_there else found[0]

    return re.sub(r"\bchunk (\d+)", link, shown(row.why))


def _body(row: Row) -> str:
    if not any(piece.text for piece in row.text):
        return '<span class="soft">no text</span>' if row.reason == "empty" else ""
    body = f"<pre>{''.join(map(_piece, row.text))}</pre>"
    if row.more:
        body += f'<p class="soft">and {number(row.more)} more characters</p>'
    whole = "".join(piece.text for piece in row.text)
    if row.state != "dropped":
        return f"<details open><summary>Text</summary>{body}</details>"
    first = " ".join(whole[: 2 * _FIRST].split())
    if len(whole) <= _FIRST and first == whole:
        return shown(whole)
    return f"<details><summary>{shown(first[:_FIRST])} \u2026</summary>{body}</details>"


def _piece(piece: Piece) -> str:
    if not piece.is_gone:
        return shown(piece.text)
    label = '<span class="hidden-label">left out: </span>'
    return f"<del>{label}{shown(piece.text)}</del>"


def _curve(report: Report) -> Iterator[str]:
    points = report.curve
    if not points:
        return
    listed = {row.index for row in report.rows or ()}
    yield '<section aria-labelledby="budgets">\n<h2 id="budgets">Other budgets</h2>\n'
    yield '<div class="scroll" tabindex="0" role="region" aria-label="The budget curve">'
    yield f"{budget_curve(points, report.own)}</div>\n"
    yield "<details><summary>What each budget adds, in figures</summary>"
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Figures of the curve">'
    yield '<table class="figures">'
    columns = [("Tokens used", True), ("Chunks", True), ("Sum of scores", True)]
    yield head("Budget", [*columns, ("More than in the line above", False)])
    for point in points:
        own = " (this packing)" if point.max_tokens == report.own else ""
        yield (
            f'<tr><th scope="row">{number(point.max_tokens)}{own}</th>{_cell(point.total_tokens)}'
            f"{_cell(point.kept_count)}<td{_NUMBER}>{scored(point.score)}</td>"
            f"<td>{_difference(point, listed)}</td></tr>"
        )
    yield "</tbody></table></div></details>\n</section>\n"


def _difference(point: Any, listed: set[int]) -> str:
    said = [
        f"{sign}{_named(indices, listed)}"
        for sign, indices in (("", point.admitted), ("without ", point.left))
        if indices
    ]
    return ", ".join(said) or "\u2013"


def _named(indices: Sequence[int], listed: set[int]) -> str:
    links = ", ".join(
        f'<a href="#chunk-{index}">{index}</a>' if index in listed else str(index)
        for index in indices[:_LISTED]
    )
    more = len(indices) - _LISTED
    return f"{links} and {number(more)} more" if more > 0 else links


def _text(report: Report) -> Iterator[str]:
    if report.text is None:
        return
    listed = {row.index for row in report.rows or ()}
    yield '<section aria-labelledby="text">\n<h2 id="text">The text, as it is sent</h2>\n'
    if not report.text:
        yield "<p>It is empty.</p>\n</section>\n"
        return
    yield "<details><summary>Show it, with the number of each chunk in front</summary><pre>"
    for piece in report.text:
        text, index = shown(piece.text), piece.index
        if index is None:
            yield text
        else:
            link = f'<a href="#chunk-{index}">{index}</a>' if index in listed else str(index)
            yield f"<mark>{link}{text}</mark>"
    yield "</pre></details>\n</section>\n"
