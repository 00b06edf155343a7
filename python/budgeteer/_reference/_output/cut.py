"""Reference of ``rust/core/src/output/cut.rs``: one string without its middle."""

from bisect import bisect_left, bisect_right

from budgeteer._reference._count.graphemes import grapheme_boundaries
from budgeteer._reference._output.share import Markers, characters


class Clusters:
    """Where the grapheme clusters of a string end: in the string as written, and as read."""

    def __init__(self, text: str, *, escaped: bool) -> None:
        """Find the places; an *escaped* text stands between the quotes of JSON."""
        if not escaped or "\\" not in text:
            self.written: list[int] = grapheme_boundaries(text)
            self.read = self.written
            return
        chars, starts = [], []
        for char, start in unescaped(text):
            chars.append(char)
            starts.append(start)
        starts.append(len(text))
        self.read = grapheme_boundaries("".join(chars))
        self.written = [starts[at] for at in self.read]


def unescaped(text: str) -> list[tuple[str, int]]:
    """Return the characters of a JSON string between its quotes, and where each is written."""
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        char, size = text[at], 1
        if char == "\\":
            char, size = _escape(text, at)
            if "\ud800" <= char <= "\udbff" and text[at + 6 : at + 8] == "\\u":
                low = _escape(text, at + 6)[0]
                if "\udc00" <= low <= "\udfff":
                    code = 0x10000 + ((ord(char) & 0x3FF) << 10) + (ord(low) & 0x3FF)
                    char, size = chr(code), 12
        found.append((char, at))
        at += size
    return found


def _escape(text: str, at: int) -> tuple[str, int]:
    """Return what the escape at *at* means, and its length."""
    kind = text[at + 1]
    if kind == "u":
        return chr(int(text[at + 2 : at + 6], 16)), 6
    return {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}.get(kind, kind), 2


def plain(text: str) -> str:
    """Return a piece of JSON with its escapes read, for its words."""
    return text if "\\" not in text else "".join(char for char, _ in unescaped(text))


def without_middle(
    text: str, clusters: Clusters, room: int, markers: Markers, around: str = ""
) -> tuple[str, int]:
    """
    Return a string of at most *room* code points if the marker fits at all, and what it lost.

    The start gets the odd one. *around* stands on both sides of the marker.
    """
    size = len(text)
    marker = markers.show(characters(size))
    room -= len(marker) + 2 * len(around)
    head, tail = 0, size
    if room > 0:
        written = clusters.written
        of_head = bisect_right(written, room - room // 2) - 1
        of_tail = bisect_left(written, size - room // 2)
        head, tail = written[of_head], written[of_tail]
        count = clusters.read[of_tail] - clusters.read[of_head]
    else:
        count = clusters.read[-1]
    before = around if head > 0 else ""
    behind = around if tail < size else ""
    marker = markers.write(characters(count))
    return text[:head] + before + marker + behind + text[tail:], tail - head
