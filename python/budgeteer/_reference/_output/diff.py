"""Reference of ``rust/core/src/output/diff.rs``: the hunks of a unified diff."""

import re
from dataclasses import dataclass, field

from budgeteer._reference._output.lines import Unit, split
from budgeteer._reference._output.share import Markers, number, scores_of
from budgeteer._reference._output.tree import Draft

NAMES_SHARE = 4
"""The names of files that are left out get at most a quarter of the room."""

_HUNK = re.compile(r"@@ -[0-9]{1,9}(?:,([0-9]{1,9}))? \+[0-9]{1,9}(?:,([0-9]{1,9}))? @@")


@dataclass(slots=True)
class File:
    """A file of a diff: where its header stands, and its hunks, as places in the text."""

    start: int
    end: int
    """Where the header ends."""
    name: str = ""
    is_named: bool = False
    """Whether its header has the two lines that name it."""
    hunks: list[tuple[int, int]] = field(default_factory=list)


class Diff:
    """A diff, and the order in which its hunks stay."""

    bare = ""

    def __init__(self, text: str, first: int, files: list[File], query: str | None) -> None:
        """Take the files of *text*; what is before *first* is of none."""
        self.text = text
        self.size = len(text)
        self.first = first
        self.files = files
        self.units: list[tuple[int, int, int]] = []
        """A file, and where one of its hunks starts and ends; a header alone has no size."""
        for at, file in enumerate(files):
            hunks = file.hunks or [(file.end, file.end)]
            self.units += [(at, start, end) for start, end in hunks]
        texts = [f"{files[at].name} {text[start:end]}" for at, start, end in self.units]
        scores = scores_of(query, texts)
        tiers = [int(start < end) for _, start, end in self.units]
        self.order = sorted(range(len(tiers)), key=lambda i: (tiers[i], -scores[i], i))

    def render(self, room: int, pointer: str | None) -> Draft:
        """Return a text of about *room* code points, without its line of left out files."""
        markers = Markers(pointer)
        names_room = room // NAMES_SHARE
        parts = []
        left_out = 0
        if self.first <= room:
            parts.append(self.text[: self.first])
            room -= self.first
        else:
            left_out += self.first
        stays = [False] * len(self.units)
        has_header = [False] * len(self.files)
        for i in self.order:
            at, start, end = self.units[i]
            file = self.files[at]
            cost = end - start + (0 if has_header[at] else file.end - file.start)
            if cost <= room:
                room -= cost
                stays[i] = has_header[at] = True
        gone: list[str] = []
        i = 0
        for at, file in enumerate(self.files):
            of_file = range(i, i + max(1, len(file.hunks)))
            i = of_file.stop
            if not has_header[at]:
                gone.append(file.name)
                left_out += self.units[i - 1][2] - file.start
                continue
            parts.append(self.text[file.start : file.end])
            missing = 0
            for unit in of_file:
                _, start, end = self.units[unit]
                if not stays[unit]:
                    missing += 1
                    left_out += end - start
                elif start < end:  # else a header stands alone
                    parts.append(self.text[start:end])
            if missing:
                said = f"{missing} of {number(len(file.hunks), 'hunk')} of this file left out"
                parts.append(self.line(parts, markers.write(said)))
        if gone:
            said = f"{len(gone)} of {number(len(self.files), 'file')} left out"
            names = listed(gone, names_room)
            parts.append(self.line(parts, markers.write(said + names)))
        elif self.first and parts[:1] != [self.text[: self.first]]:
            parts.append(self.line(parts, markers.write("the lines before the diff left out")))
        return Draft("".join(parts), left_out)

    @staticmethod
    def line(parts: list[str], marker: str) -> str:
        """Return a marker as a line of its own."""
        is_inside = bool(parts) and bool(parts[-1]) and not parts[-1].endswith("\n")
        return ("\n" if is_inside else "") + marker + "\n"


def listed(names: list[str], room: int) -> str:
    """Return as many of *names* as there is room for, and how many more there are."""
    shown: list[str] = []
    for name in names:
        room -= len(name) + 2
        if room < 0:
            break
        shown.append(name)
    more = len(names) - len(shown)
    if not shown:
        return ""
    return ": " + ", ".join(shown) + (f" and {more} more" if more else "")


def diff_of(text: str, query: str | None) -> Diff | None:
    """Return a diff; None if *text* is not one."""
    lines = split(text)
    files: list[File] = []
    at = 0
    while at < len(lines):
        line = text[lines[at].start : lines[at].body]
        file = files[-1] if files else None
        hunk = _HUNK.match(line)
        if file is not None and hunk is not None:
            behind = end_of_hunk(text, lines, at + 1, hunk)
            file.hunks.append((lines[at].start, lines[behind - 1].end))
            at = behind
            continue
        has_pair = line.startswith("--- ") and at + 1 < len(lines)
        has_pair = has_pair and text.startswith("+++ ", lines[at + 1].start)
        is_new = file is None or bool(file.hunks) or file.is_named
        if line.startswith("diff ") or (has_pair and is_new):
            file = File(lines[at].start, lines[at].start, first_name(line))
            files.append(file)
        if file is None:
            at += 1
            continue
        if has_pair:
            file.name = name_of(line, text[lines[at + 1].start : lines[at + 1].body])
            file.is_named = True
            at += 1
        name = renamed(line)
        if name is not None and not file.hunks and not file.is_named:
            file.name = name
        if file.hunks:
            file.hunks[-1] = (file.hunks[-1][0], lines[at].end)
        else:
            file.end = lines[at].end
        at += 1
    if not any(file.hunks or text.startswith("diff ", file.start) for file in files):
        return None
    return Diff(text, files[0].start, files, query)


def end_of_hunk(text: str, lines: list[Unit], at: int, hunk: re.Match[str]) -> int:
    """Return the line behind a hunk whose first line is *at*."""
    old, new = (1 if size is None else int(size) for size in hunk.groups())
    while at < len(lines):
        first = text[lines[at].start : lines[at].body][:1]
        if first == "\\":
            at += 1
            continue
        if (old <= 0 and new <= 0) or first not in ("", " ", "\r", "-", "+"):
            break
        old -= first != "+"
        new -= first != "-"
        at += 1
    return at


def first_name(line: str) -> str:
    """Return the name of a file by the first line of its header."""
    if not line.startswith("diff "):
        return ""
    line = line.rstrip("\r")
    names = line.removeprefix("diff --git ")
    if names != line:
        start = names.rfind(' "')
        if start >= 0 and names.endswith('"'):
            return without("b/", names[start + 1 :])
        # A name may have spaces: of a file that was not renamed it is there twice.
        half = len(names) // 2
        old, space, new = names[:half], names[half : half + 1], names[half + 1 :]
        if space == " " and old == new:
            return new
        has_letters = old[1:2] == new[1:2] == "/" and (old[0] + new[0]).isascii()
        if space == " " and has_letters and old[2:] == new[2:]:
            return new[2:]
    return without("b/", line.rpartition(" ")[2])


def renamed(line: str) -> str | None:
    """Return the name of a file that the line says it was renamed to, or copied."""
    for prefix in ("rename to ", "copy to "):
        if line.startswith(prefix):
            return without("", line.removeprefix(prefix).rstrip("\r"))
    return None


def name_of(old: str, new: str) -> str:
    """Return the name of a file by the two lines that name it."""
    name = new[4:].partition("\t")[0].rstrip("\r")
    if name == "/dev/null":
        return without("a/", old[4:].partition("\t")[0].rstrip("\r"))
    return without("b/", name)


def without(prefix: str, name: str) -> str:
    """Return a name without its quotes, and without a prefix."""
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    return name.removeprefix(prefix)
