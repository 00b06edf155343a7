"""Charts as SVG, without a script: bars in groups, readable on a light and a dark page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from suite.report import shown

COLOURS = {"light": ["#0969da", "#8250df", "#1a7f37", "#bc4c00", "#bf3989", "#59636e"]}
COLOURS["dark"] = ["#4493f8", "#ab7df8", "#3fb950", "#db6d28", "#db61a2", "#9198a1"]

LEFT, SCALE, BAR, GAP, TOP = 110, 440, 13, 12, 74
"""Where the bars begin, the length of the longest, their height, what is between two groups, and
where the first is, all in pixels."""


def style(count: int) -> str:
    """Return the style of a chart of *count* series, for light and dark pages."""
    light, dark = (
        "".join(
            f".s{place} {{ fill: {colour} }} "
            for place, colour in enumerate(COLOURS[page][:count])
        )
        for page in ("light", "dark")
    )
    return (
        "<style>text { font: 12px system-ui, sans-serif; fill: #1f2328 } "
        f".quiet {{ fill: #59636e }} .back {{ fill: #ffffff }} {light}"
        "@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .quiet { fill: #9198a1 } "
        f".back {{ fill: #0d1117 }} {dark}}}</style>"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{of_kind} text-anchor="{anchor}">{escape(words)}</text>'


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, float | None]]) -> str:
    """
    Return a chart: a group of bars for each label, a bar for each series of it.

    A value of None has no bar. There is room for six series.

    Raises:
        ValueError: There is no bar to draw, or there are too many series.

    """
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [one for group in groups.values() for one in group.values() if one is not None]
    if not values or len(series) > len(COLOURS["light"]):
        raise ValueError(f"{title!r}: {len(values)} bars of {len(series)} series cannot be drawn")
    most = max(values) or 1.0
    lines, y, x = [text(12, 22, title), text(12, 40, unit, "quiet")], TOP, 12.0
    for place, name in enumerate(series):
        lines += [f'<rect x="{x:g}" y="50" width="10" height="10" class="s{place}"/>']
        lines += [text(x + 14, 59, name, "quiet")]
        x += 34 + 7 * len(name)
    for label, group in groups.items():
        lines.append(text(LEFT - 10, y + BAR * len(group) / 2 + 4, label, "", "end"))
        for name, value in group.items():
            width = SCALE * (value or 0.0) / most
            lines.append(
                f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 2}" rx="1"'
                f' class="s{series.index(name)}"/>'
            )
            lines.append(text(LEFT + width + 6, y + BAR - 3, shown(value), "quiet"))
            y += BAR
        y += GAP
    wide = max(LEFT + SCALE + 70, int(x))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{y}"'
        f' viewBox="0 0 {wide} {y}" role="img" aria-label="{escape(title)}">'
    )
    back = f'<rect width="{wide}" height="{y}" class="back"/>'
    return "\n".join([head, style(len(series)), back, *lines, "</svg>\n"])
