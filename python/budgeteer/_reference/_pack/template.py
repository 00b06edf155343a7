"""Reference of ``rust/core/src/assemble``: templates, escaping, and orders."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter

from budgeteer._codes import (
    BY_DOCUMENT,
    BY_EDGES,
    BY_INPUT,
    DEFAULT_KIND,
    FORMAT,
    JSON,
    LINE_ENDS,
    MARKDOWN,
    PLAIN,
    STICKY,
    TAGGED,
    WRITTEN,
    XML,
)

_AROUND = {
    PLAIN: ("\n\n", "", ""),
    TAGGED: ("\n", "", ""),
    MARKDOWN: ("\n\n", "", ""),
    XML: ("\n", "<documents>\n", "\n</documents>"),
    JSON: (",\n", "[", "]"),
}
"""The separator, header and footer of each style."""

_TAG_LINE = re.compile(
    rf"(?<=[{LINE_ENDS}])(?=\\*\[(?:notice\]|[^{LINE_ENDS}:]*:[^{LINE_ENDS}\]]*\]))"
)
_HEADING_LINE = re.compile(rf"(?:\A|(?<=[{LINE_ENDS}]))(?=\\*## \[)")
_XML_SPECIAL = re.compile(
    r"[&<]|(?<=\]\])>|[\x00-\x08\x0b\x0c\x0e-\x1f\r\ud800-\udfff\ufffe\uffff]"
)
_XML_ATTRIBUTE_SPECIAL = re.compile(r"[&<\"\x00-\x1f\ud800-\udfff\ufffe\uffff]")
_XML_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


@dataclass(frozen=True, slots=True)
class Tag:
    """The fields of a chunk that a template may show; the position is NaN if unknown."""

    kind: str
    id: str
    source: str
    title: str
    position: float


class Template:
    """The text around the chunks."""

    def __init__(self, style: int, layout: str, separator: str, header: str, footer: str) -> None:
        """Take arguments that the facade has checked."""
        self.style = style
        between, front, back = _AROUND.get(style, (separator, "", ""))
        self.separator = between
        self.header = header + front
        self.footer = back + footer
        self.slots = list(Formatter().parse(layout)) if style == FORMAT else []

    def around(self, tag: Tag, index: int) -> tuple[str, str]:
        """Return the frame of a chunk: the text before it and after it."""
        if self.style == TAGGED:
            return f"{_bracketed(tag)} ", ""
        if self.style == MARKDOWN:
            title = f" {_field(tag.title)}" if tag.title else ""
            source = f"\nSource: {_field(tag.source)}" if tag.source else ""
            return f"## {_bracketed(tag)}{title}{source}\n\n", ""
        if self.style == XML:
            fields = "".join(f' {name}="{_attribute(value)}"' for name, value in _named(tag))
            return f"<document{fields}>\n", "\n</document>"
        if self.style == JSON:
            fields = "".join(f'"{name}": "{_json(value)}", ' for name, value in _named(tag))
            return f'{{{fields}"text": "', '"}'
        if self.style == WRITTEN:
            return "", ""
        values = {"kind": tag.kind, "id": tag.id, "source": tag.source, "title": tag.title}
        values["index"] = str(index)
        front, back, is_behind = "", "", False
        for literal, name, _, _ in self.slots:
            written = literal + ("" if name in (None, "text") else values[name])
            if is_behind:
                back += written
            else:
                front += written
            is_behind = is_behind or name == "text"
        return front, back

    def escaped(self, text: str) -> str:
        """Return the escaped form of *text*."""
        if self.style == TAGGED:
            return _TAG_LINE.sub(r"\\", text)
        if self.style == MARKDOWN:
            return _HEADING_LINE.sub(r"\\", text)
        if self.style == XML:
            return _XML_SPECIAL.sub(_reference, text)
        return _json(text) if self.style == JSON else text

    def notice(self, pieces: Sequence[str], count: int) -> str:
        """Return the notice that *count* chunks were left out."""
        text = self.escaped(str(count).join(pieces))
        if self.style == TAGGED:
            return f"[notice] {text}"
        if self.style == MARKDOWN:
            return f"## [notice] {text}"
        if self.style == XML:
            return f"<notice>{text}</notice>"
        return f'{{"notice": "{text}"}}' if self.style == JSON else text


def _bracketed(tag: Tag) -> str:
    return f"[{_field(tag.kind, ':]')}:{_field(tag.id, ']')}]"


def _named(tag: Tag) -> list[tuple[str, str]]:
    """Return the fields that are written with their names."""
    fields = [] if tag.kind == DEFAULT_KIND else [("kind", tag.kind)]
    rest = (("source", tag.source), ("title", tag.title))
    return [*fields, ("id", tag.id), *(pair for pair in rest if pair[1])]


def _field(text: str, delimiters: str = "") -> str:
    """Return a field on one line, with a backslash before each delimiter."""

    def written(match: re.Match[str]) -> str:
        char = match[0]
        if char == "\\" or char in delimiters:
            return "\\" + char
        return {"\n": r"\n", "\r": r"\r"}.get(char) or rf"\u{ord(char):04X}"

    return re.sub(rf"[\\{re.escape(delimiters)}{LINE_ENDS}]", written, text)


def _attribute(text: str) -> str:
    return _XML_ATTRIBUTE_SPECIAL.sub(_reference, text)


def _reference(match: re.Match[str]) -> str:
    """Return the XML reference of a character."""
    char = match[0]
    if char in _XML_NAMED:
        return _XML_NAMED[char]
    return f"&#{ord(char)};" if char in "\t\n\r" else f"&#92;u{ord(char):04X}"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


@dataclass(slots=True)
class Piece:
    """A kept chunk and its frame."""

    index: int
    front: str
    text: str
    back: str
    tokens: int
    source: str = ""
    position: float = math.nan
    was_cut: bool = False
    citation: int = 0

    @property
    def rendered(self) -> str:
        """The chunk with its frame, as in the text."""
        return self.front + self.text + self.back


def arranged(
    order: int, kept: Sequence[Piece], previous: Sequence[str], template: Template
) -> list[Piece]:
    """Return the kept chunks in the order of the text."""
    if order == BY_INPUT:
        return sorted(kept, key=lambda piece: piece.index)
    if order == BY_DOCUMENT:
        firsts: dict[str, int] = {}
        for piece in kept:
            firsts[piece.source] = min(piece.index, firsts.get(piece.source, piece.index))
        return sorted(
            kept,
            key=lambda piece: (
                firsts[piece.source],
                math.isnan(piece.position),
                0.0 if math.isnan(piece.position) else piece.position,
                piece.index,
            ),
        )
    if order == BY_EDGES:
        return [*kept[::2], *reversed(kept[1::2])]
    if order == STICKY:
        return _after_previous(kept, previous, template)
    return [*kept]


def _after_previous(
    kept: Sequence[Piece], previous: Sequence[str], template: Template
) -> list[Piece]:
    """Return *kept* in the previous order up to the first missing chunk, then as given."""
    rest = [*kept]
    placed: list[Piece] = []
    link = template.header
    for before in previous:
        found = next((p for p in rest if link + p.front + p.text == before), None)
        if found is None:
            break
        rest.remove(found)
        placed.append(found)
        link = found.back + template.separator
    return placed + rest
