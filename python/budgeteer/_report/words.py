"""Texts as HTML: what a text holds is shown, and never understood."""

from __future__ import annotations

import re
from html import escape

_ODD = re.compile(
    r"\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b"
    r"\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff"
    r"\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    r"|[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}|[\u200c\u200d]{2,}"
    r"|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
"""
What a page cannot hold, does not show, or would let change the order of other characters.

One variation selector belongs to the character before it, and one joiner may follow it; more of
them hide a text.
"""


def shown(text: str) -> str:
    """Return *text* as HTML in which every character can be seen, but for spaces and line ends."""
    return _ODD.sub(_named, escape(text))


def flat(text: str) -> str:
    """Return *text* as `shown` does, without markup: for attributes and pictures."""
    return _ODD.sub(_name, escape(text))


def _named(found: re.Match[str]) -> str:
    if found[0] == "\r\n":
        return "\n"
    return "".join(f'<span class="odd">{_code(one)}</span>' for one in found[0])


def _name(found: re.Match[str]) -> str:
    return "\n" if found[0] == "\r\n" else "".join(map(_code, found[0]))


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


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
