"""Texts as HTML: what a text holds is shown, and never understood."""

from __future__ import annotations

import re
from html import escape

_ODD = re.compile(
    r"\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ufff9-\ufffb"
    r"\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
"""What a page cannot hold, does not show, or would let change the order of other characters."""


def shown(text: str) -> str:
    """Return *text* as HTML in which every character can be seen, but for spaces and line ends."""
    return _ODD.sub(_named, escape(text))


def flat(text: str) -> str:
    """Return *text* as `shown` does, without markup: for attributes and pictures."""
    return _ODD.sub(_name, escape(text))


def _named(found: re.Match[str]) -> str:
    name = _name(found)
    return name if name == "\n" else f'<span class="odd">{name}</span>'


def _name(found: re.Match[str]) -> str:
    odd = found[0]
    if odd == "\r\n":
        return "\n"
    return f"U+{ord(odd):04X}"


def number(value: float) -> str:
    """Return a whole number with separators of thousands."""
    return f"{value:,}"


def counted(tokens: int | None, is_least: bool) -> str:
    """Return a number of tokens, or of at least these; a dash where it is not known."""
    if tokens is None:
        return "\u2013"
    return f"\u2265 {number(tokens)}" if is_least else number(tokens)


def scored(score: float | None) -> str:
    """Return a score; a dash where there is none."""
    return "\u2013" if score is None else f"{score:.2f}"


def share(tokens: int, total: int) -> str:
    """Return how much of *total* some tokens are, in percent."""
    return f"{100 * tokens / total:.1f} %" if total else "\u2013"
