"""Reference of ``rust/core/src/output/lines.rs``: a text by its paragraphs or lines."""

from contextlib import suppress
from dataclasses import dataclass

from budgeteer._reference._output.cut import Clusters, without_middle
from budgeteer._reference._output.scan import NotJsonError, scan
from budgeteer._reference._output.share import (
    MOST_ROWS,
    Markers,
    characters,
    number,
    ranked,
    scores_of,
    share,
)
from budgeteer._reference._output.tree import Draft, Tree

CUT_FROM = 3
"""A line of a log is cut if it is as long as this many of its markers, else it stays or goes."""

CUT_TO = 2
"""A line that is cut keeps this many: its marker, and as much of its own."""

BLANK = " \t\r\n\v\f"


@dataclass(frozen=True, slots=True)
class Unit:
    """A line or a paragraph, with the line ends behind it."""

    start: int
    body: int
    """Where its text ends, and line ends begin."""
    end: int


class Lines:
    """A text in units, and the order in which they stay."""

    bare = ""

    def __init__(
        self,
        text: str,
        units: list[Unit],
        order: list[int],
        name: str,
        masks: list[str] | None = None,
    ) -> None:
        """Take the units of *text*, the best first in *order*; equal *masks* are similar."""
        self.text = text
        self.size = len(text)
        self.units = units
        self.order = order
        self.name = name
        self.masks = masks
        self.is_log = masks is not None and len(units) > 1
        self.behind = "\n\n" if name == "paragraph" else "\n"
        self.around = "\n" if name == "paragraph" else " "
        self._clusters: dict[int, Clusters] = {}
        markers = Markers(None)
        self.sizes = [unit.end - unit.start for unit in units]
        self.least = [self._least(unit, markers) for unit in units]
        self.least_of_best = self.least[order[0]] if order else 0
        if self.is_log:  # JSON among its lines stays whole, but for the best one
            for i, unit in enumerate(units):
                if is_object(text[unit.start : unit.body]):
                    self.least[i] = self.sizes[i]
        self._trees: dict[int, Tree | None] = {}

    def _least(self, unit: Unit, markers: Markers) -> int:
        """Return the least that a unit may get, if it gets any."""
        size, ends = unit.body - unit.start, unit.end - unit.body
        marker = len(markers.show(characters(size)))
        if not self.is_log:
            return min(size, marker) + ends
        return (size if size < CUT_FROM * marker else CUT_TO * marker) + ends

    def render(self, room: int, pointer: str | None) -> Draft:
        """Return a text of about *room* code points."""
        markers = Markers(pointer)
        count = len(self.units)
        if count == 1:
            got = [max(1, room)]
        else:
            room -= len(markers.show(self.said(0, count))) + len(self.behind)
            cap = max(0, room) // min(count, MOST_ROWS)
            best, least = self.order[0], self.least
            if self.is_log:
                # The best is whole before others get a part; if it does not fit, it gets half.
                least, size = [*least], self.sizes[best]
                least[best] = size if size <= room else max(self.least_of_best, room // 2)
            got = share(self.sizes, least, self.order, room, cap)
        parts, left_out, at = [], 0, 0
        while at < count:
            if got[at]:
                text, lost = self.unit(at, got[at], markers)
                parts.append(text)
                left_out += lost
                at += 1
                continue
            start = at
            while at < count and not got[at]:
                at += 1
            lost = sum(self.sizes[start:at])
            said = self.said(start, at)
            behind = self.behind if at < count else ""
            if lost <= len(markers.show(said)) + len(behind):
                parts.append(self.text[self.units[start].start : self.units[at - 1].end])
            else:
                parts.append(markers.write(said) + behind)
                left_out += lost
        return Draft("".join(parts), left_out)

    def unit(self, at: int, room: int, markers: Markers) -> tuple[str, int]:
        """Return a unit, without its middle where it has no room for it, and what it lost."""
        unit = self.units[at]
        body = self.text[unit.start : unit.body]
        is_whole = self.sizes[at] <= room
        room -= unit.end - unit.body
        if self.is_log:
            # A marker is never longer than what it saves, the pointer included.
            marker = len(markers.show(characters(len(body))))
            is_whole = is_whole or len(body) < max(room + marker, CUT_FROM * marker)
            room = max(room, CUT_TO * marker)
        else:
            is_whole = is_whole or self.sizes[at] == self.least[at]
        if is_whole:
            return self.text[unit.start : unit.end], 0
        tree = self.tree(at, body) if self.is_log else None
        if tree is not None:
            draft = tree.render(room, markers.pointer)
            markers.pointer = None if draft.left_out else markers.pointer
            behind = "\r" if body.endswith("\r") else ""
            return draft.text + behind + self.text[unit.body : unit.end], draft.left_out
        if at not in self._clusters:
            self._clusters[at] = Clusters(body, escaped=False)
        text, lost = without_middle(body, self._clusters[at], room, markers, self.around)
        return text + self.text[unit.body : unit.end], lost

    def tree(self, at: int, body: str) -> Tree | None:
        """Return a line that is an object of JSON, to be cut as one; None for others."""
        if at not in self._trees:
            self._trees[at] = None
            if is_object(body):
                with suppress(NotJsonError):
                    compact, root = scan(body)
                    self._trees[at] = Tree(compact, root, None, root)
        return self._trees[at]

    def said(self, start: int, end: int) -> str:
        """Return what a marker says of the units from *start* to *end*."""
        if self.masks is not None and start > 0:
            mask = self.masks[start - 1]
            if all(self.masks[i] == mask for i in range(start, end)):
                return f"{end - start} similar {'line' if end - start == 1 else 'lines'}"
        return f"{number(end - start, self.name)} left out"


def text_of(text: str, query: str | None) -> Lines:
    """Return a text as one unit, or by a query as its paragraphs."""
    if query is None:
        return Lines(text, [Unit(0, len(text), len(text))], [0], "paragraph")
    units: list[Unit] = []
    start = body = end = 0
    for line in split(text):
        is_blank = not text[line.start : line.body].strip(BLANK)
        if not is_blank and end > body + 1 and body > start:
            units.append(Unit(start, body, end))
            start = end
        if not is_blank:
            body = line.body
        end = line.end
    units.append(Unit(start, max(start, body), end))
    texts = [text[unit.start : unit.end] for unit in units]
    return Lines(text, units, ranked(scores_of(query, texts)), "paragraph")


def split(text: str) -> list[Unit]:
    """Return the lines of a text; each ends behind its line feed."""
    units, start = [], 0
    while start < len(text):
        found = text.find("\n", start)
        body, end = (len(text), len(text)) if found < 0 else (found, found + 1)
        units.append(Unit(start, body, end))
        start = end
    return units


def is_object(line: str) -> bool:
    """Return whether a line begins and ends as an object of JSON."""
    line = line.strip(BLANK)
    return line.endswith("}") and line[:1] == "{" and line[1:].lstrip(BLANK)[:1] in ('"', "}")
