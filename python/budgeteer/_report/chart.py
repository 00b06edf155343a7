"""Pictures: the window as a bar, and the budget curve, as SVG that needs no program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from budgeteer._report.parts import Part, Report
from budgeteer._report.words import flat, number, share

COLOURS = (
    *("#3b7dd8", "#c2650c", "#2a8a55", "#9a5fc0"),
    *("#0e858e", "#d0455b", "#94703a", "#6b7280"),
)
"""The colours of sections: each has a contrast of 3 or more with a light page and a dark one."""
_QUIET = "#80868f"
_WIDTH, _BAR = 720, 28
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 24, 44
_HEIGHT = 250
_TICKS = 5
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'


class Svg(str):
    """A picture as SVG, which a notebook shows."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def paints(parts: Sequence[Part]) -> Iterator[str]:
    """Yield how each section is filled: a colour, stripes for a reserve, nothing where free."""
    used = 0
    for part in parts:
        if part.kind == "used":
            yield f'fill="{COLOURS[used % len(COLOURS)]}"'
            used += 1
        elif part.kind == "reserve":
            yield f'fill="url(#stripes)" stroke="{_QUIET}"'
        else:
            yield f'fill="none" stroke="{_QUIET}"'


STRIPES = (
    '<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)">'
    f'<rect width="3" height="6" fill="{_QUIET}"/></pattern></defs>'
)


def said(parts: Sequence[Part]) -> str:
    """Return the sections of a window in words."""
    return ", ".join(f"{part.name} {number(part.tokens)}" for part in parts) or "nothing"


def bar(parts: Sequence[Part], y: float = 0, width: int = _WIDTH, height: int = _BAR) -> str:
    """Return the sections as parts of a bar: what has a token is seen."""
    given = [part for part in parts if part.tokens > 0]
    total = sum(part.tokens for part in given)
    gaps = 2 * max(0, len(given) - 1)
    least = min(3.0, (width - gaps) / max(1, len(given)))
    widths = [max(least, (width - gaps) * part.tokens / total) for part in given]
    over = sum(widths) + gaps - width
    if over > 0:  # narrow sections were widened; the widest gives
        widths[widths.index(max(widths))] -= over
    lines = []
    x = 0.0
    all_paints = dict(zip(map(id, parts), paints(parts), strict=True))
    for part, wide in zip(given, widths, strict=True):
        title = f"{part.name}: {number(part.tokens)} tokens, {share(part.tokens, total)}"
        lines.append(
            f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:g}" width="{max(1.0, wide - 1):.1f}" '
            f'height="{height - 1}" {all_paints[id(part)]}><title>{flat(title)}</title></rect>'
        )
        x += wide + 2
    return "".join(lines)


def window(parts: Sequence[Part]) -> str:
    """Return the window as a picture of its own, as wide as there is room."""
    return (
        f'<svg class="window" role="img" aria-label="{flat(said(parts))}" '
        f'viewBox="0 0 {_WIDTH} {_BAR}" width="100%" height="{_BAR}" preserveAspectRatio="none">'
        f"{STRIPES}{bar(parts)}</svg>"
    )


def swatch(paint: str) -> str:
    """Return a small square in the colour of a section."""
    return (
        '<svg class="swatch" aria-hidden="true" width="12" height="12">'
        f'<rect x="0.5" y="0.5" width="11" height="11" {paint}/></svg>'
    )


def curve(points: Sequence[Any], own: int, y: float = 0) -> str:
    """Return how many chunks each budget keeps, as a line of steps."""
    left, right = _LEFT, _WIDTH - _RIGHT
    top, bottom = y + _TOP, y + _HEIGHT - _BOTTOM
    wide = points[-1].max_tokens or 1
    most = max((point.kept_count for point in points), default=0) or 1

    def at_x(tokens: float) -> float:
        return left + (right - left) * tokens / wide

    def at_y(count: float) -> float:
        return bottom - (bottom - top) * count / most

    lines = []
    for tick in ticks(most):
        place = at_y(tick)
        lines.append(
            f'<line x1="{left}" x2="{right}" y1="{place:.1f}" y2="{place:.1f}" '
            f'stroke="{_QUIET}" stroke-opacity="0.35"/>'
        )
        lines.append(_text(left - 8, place + 4, number(tick), "end"))
    lines += [_text(at_x(tick), bottom + 18, number(tick), "middle") for tick in ticks(wide)]
    lines.append(_text((left + right) / 2, bottom + 38, "budget in tokens", "middle"))
    lines.append(_text(left, top - 10, "chunks kept", "start"))
    steps = [f"M{at_x(points[0].max_tokens):.1f} {at_y(points[0].kept_count):.1f}"]
    steps += [
        f"H{at_x(point.max_tokens):.1f}V{at_y(point.kept_count):.1f}" for point in points[1:]
    ]
    lines.append(
        f'<path d="{"".join(steps)}" fill="none" stroke="{COLOURS[0]}" stroke-width="2.5"/>'
    )
    mine = at_x(own)
    anchor = "end" if mine > (left + right) / 2 else "start"
    lines.append(
        f'<line x1="{mine:.1f}" x2="{mine:.1f}" y1="{top}" y2="{bottom}" stroke="currentColor" '
        'stroke-dasharray="4 4"/>'
    )
    lines.append(_text(mine + (-6 if anchor == "end" else 6), top - 10, "this packing", anchor))
    for point in points:
        title = (
            f"{number(point.max_tokens)} tokens: {number(point.kept_count)} chunks, "
            f"{number(point.total_tokens)} used"
        )
        lines.append(
            f'<circle cx="{at_x(point.max_tokens):.1f}" cy="{at_y(point.kept_count):.1f}" r="4" '
            f'fill="{COLOURS[0]}"><title>{title}</title></circle>'
        )
    return "".join(lines)


def curve_said(points: Sequence[Any], own: int) -> str:
    """Return a curve in words."""
    first, last = points[0], points[-1]
    mine = next(point for point in points if point.max_tokens == own)
    return (
        f"Chunks kept by budget: {number(first.kept_count)} at {number(first.max_tokens)} tokens, "
        f"{number(mine.kept_count)} at {number(own)}, the packing's own, "
        f"{number(last.kept_count)} at {number(last.max_tokens)}."
    )


def budget_curve(points: Sequence[Any], own: int) -> str:
    """Return a curve as a picture of its own."""
    return (
        f'<svg class="curve" role="img" aria-label="{curve_said(points, own)}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'fill="currentColor" {_FONT}>{curve(points, own)}</svg>'
    )


def ticks(most: float) -> list[int]:
    """Return about five round numbers from 0 to *most*."""
    rough = max(1.0, most / _TICKS)
    size = 10 ** math.floor(math.log10(rough))
    step = next(int(size * by) for by in (1, 2, 5, 10) if size * by >= rough)
    return [*range(0, int(most) + 1, step)]


def plot(report: Report) -> Svg:
    """Return a report's window and curve as one SVG document, for light and dark pages."""
    lines = [
        STRIPES,
        bar(report.parts, y=34),
        _text(0, 20, report.lead, "start"),
    ]
    y = 34.0 + _BAR + 22
    x = 0.0
    for part, paint in zip(report.parts, paints(report.parts), strict=True):
        words = f"{_short(part.name)} {number(part.tokens)}"
        wide = 30 + 7.6 * len(words)
        if x and x + wide > _WIDTH:
            x, y = 0.0, y + 22
        lines.append(f'<rect x="{x + 0.5:.1f}" y="{y - 10.5:g}" width="11" height="11" {paint}/>')
        lines.append(_text(x + 18, y, words, "start"))
        x += wide
    y += 14
    if report.curve:
        lines.append(curve(report.curve, report.own, y))
        y += _HEIGHT
    all_said = [said(report.parts)]
    if report.curve:
        all_said.append(curve_said(report.curve, report.own))
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="-8 0 {_WIDTH + 16} {y:g}" '
        f'width="{_WIDTH + 16}" height="{y:g}" class="budgeteer" fill="currentColor" {_FONT}>'
        f"<title>{flat(report.lead)}</title><desc>{flat('. '.join(all_said))}</desc>"
        "<style>.budgeteer{color:#1b1f24;background:#fff}"
        "@media(prefers-color-scheme:dark){.budgeteer{color:#e8eaed;background:#14171c}}</style>"
        f"{''.join(lines)}</svg>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}\u2026"


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{flat(words)}</text>'
