"""Text files as pieces: Markdown by its headings, all else by size, at the ends of paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from budgeteer._count.counter import TokenCounter
from budgeteer._sources.sources import heading

_MARKDOWN = (".md", ".markdown", ".mdx")
_FENCE = re.compile(r"( {0,3}(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})(.*)")
_CLOSING = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*$")
_RAW = re.compile(r" {0,3}<(?:!--|(?:script|pre|style|textarea)(?=[\s>]|$))", re.IGNORECASE)
_RAW_END = re.compile(r"-->|</(?:script|pre|style|textarea)>", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r"\t| {4}| {0,3}(?:>|<|[-*+](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|\|)")
_SENTENCE = re.compile(r"[.!?][\"')\]]*\s|[\u3002\uff01\uff1f]")
_WINDOW = 8
"""Characters of a line that are looked at for each token of a piece: most tokens have fewer."""


class Piece(NamedTuple):
    r"""
    A part of a file.

    Attributes:
        line: The number of its first line, from 1 on.
        title: The headings above it, ``Guide > Install``; empty where there are none.
        text: Its text, with line ends as ``\n``.

    """

    line: int
    title: str
    text: str


def pieces_of(
    name: str, text: str, counter: TokenCounter, limit: int, whole: int = 0
) -> Iterator[Piece]:
    r"""
    Yield the pieces of a file, in the order of the text.

    Markdown, as the file's name says it, is split at its headings, and each section by size like
    any other text. Together the pieces are the whole text but for whitespace between them.

    Args:
        name: The file's name.
        text: What it holds.
        counter: Measures pieces. What a piece counts is taken to be the sum of its lines.
        limit: The most tokens of a piece, from 1 on, by that sum.
        whole: A section of at most this number of tokens, by that sum, is not split at all.

    Examples:
        >>> from budgeteer import get_counter
        >>> text = "# Tea\n\n## Green\nMild.\n\n## Black\nStrong.\n"
        >>> for piece in pieces_of("tea.md", text, get_counter("o200k_base"), 100):
        ...     print(piece)
        Piece(line=1, title='Tea > Green', text='# Tea\n\n## Green\nMild.')
        Piece(line=6, title='Tea > Black', text='## Black\nStrong.')

    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = _sections(lines) if name.lower().endswith(_MARKDOWN) else [(0, "")]
    counts = counter.count_batch([line + "\n" for line in lines]).tolist()
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    for (start, title), end in zip(starts, ends, strict=True):
        total = sum(counts[start:end])
        most = total if limit < total <= whole else limit
        for first, piece in _by_size(lines[start:end], counts[start:end], counter, most):
            yield Piece(start + first + 1, title, piece)


def _sections(lines: list[str]) -> list[tuple[int, str]]:
    """
    Return where each section starts, and its headings.

    A section that is a heading alone starts the one below that heading.
    """
    found: list[tuple[int, str]] = [(0, "")]
    above: list[tuple[int, str]] = []
    before, last = 0, 0  # the level of the last heading, and the line behind it
    for start, end, level, title in _headings(lines):
        has_text = any(line.strip() for line in lines[last:start])
        above = [(outer, text) for outer, text in above if outer < level]
        above.append((level, title))
        path = " > ".join(text for _, text in above if text)
        if has_text or level <= before:
            found.append((start, path))
        else:
            found[-1] = (found[-1][0], path)
        before, last = level, end
    return found


def _headings(lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield of each heading its first line, the line behind it, its level and its text."""
    paragraph: int | None = None
    is_other = False  # a block that no underline makes a heading
    for i, line in _prose(lines):
        if not line.strip():
            paragraph, is_other = None, False
        elif mark := _HEADING.match(line):
            yield i, i + 1, len(mark[1]), heading(line[mark.end() :])
            paragraph, is_other = None, False
        elif paragraph is not None and (mark := _UNDERLINE.match(line)):
            title = " ".join(part.strip() for part in lines[paragraph:i])
            yield paragraph, i + 1, 1 if mark[1][0] == "=" else 2, title
            paragraph = None
        elif paragraph is None and not is_other:
            is_other = bool(_NO_PARAGRAPH.match(line) or _UNDERLINE.match(line))
            paragraph = None if is_other else i


def _prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines; those of code, comments and the like as empty ones."""
    fence, width, is_raw = "", 0, False
    for i in range(_front_matter(lines), len(lines)):
        line, shown = lines[i], ""
        if fence:
            mark = _CLOSING.match(line)
            if mark and mark[2].startswith(fence) and len(mark[1].expandtabs(4)) <= width + 3:
                fence = ""
        elif is_raw:
            is_raw = not _RAW_END.search(line)
        elif (mark := _FENCE.match(line)) and ("`" not in mark[2] or "`" not in mark[3]):
            fence, width = mark[2], len(mark[1].expandtabs(4))
        elif mark := _RAW.match(line):
            is_raw = not _RAW_END.search(line, mark.end())
        else:
            shown = line
        yield i, shown


def _front_matter(lines: list[str]) -> int:
    """Return how many lines of metadata stand in front of a Markdown text."""
    if lines[0].rstrip() == "---":
        for i, line in enumerate(lines[1:], 1):
            if line.rstrip() in ("---", "..."):
                return i + 1
    return 0


def _by_size(
    lines: list[str], counts: list[int], counter: TokenCounter, limit: int
) -> Iterator[tuple[int, str]]:
    """Yield first line and text of pieces that count at most *limit*."""
    sums = [0, *accumulate(counts)]
    first = 0
    while first < len(lines):
        if not lines[first].strip():
            first += 1
        elif counts[first] > limit:
            for part in _parts(lines[first], counter, limit):
                yield first, part
            first += 1
        else:
            end = first + 1
            paragraph = 0  # where the last one ended
            while end < len(lines) and sums[end + 1] - sums[first] <= limit:
                if not lines[end].strip() and lines[end - 1].strip():
                    paragraph = end
                end += 1
            is_rest = end == len(lines)
            is_whole = is_rest or not lines[end].strip()
            if not is_whole and 2 * (sums[paragraph] - sums[first]) >= limit:
                end = paragraph
            yield first, "\n".join(lines[first:end]).rstrip("\n")
            first = end


def _parts(line: str, counter: TokenCounter, limit: int) -> Iterator[str]:
    """
    Yield parts of a long line: up to the end of a sentence or else of a word.

    A character that combines more than fits, as endless accents do, is cut between code points.
    """
    start = 0
    while start < len(line):
        window = line[start : start + _WINDOW * limit]
        part = counter.truncate(window, limit) or _beginning(window, counter, limit)
        if start + len(part) < len(line):
            half = len(part) // 2
            ends = [mark.end() for mark in _SENTENCE.finditer(part, half)]
            space = max(part.rfind(" ", half), part.rfind("\t", half))
            cut = ends[-1] if ends else space + 1
            part = part[:cut] if cut > 0 else part
        start += len(part)
        if part.strip():
            yield part.strip()


def _beginning(window: str, counter: TokenCounter, limit: int) -> str:
    """Return a beginning that counts at most *limit*, or the first code point."""
    end = len(window)
    while end > 1 and counter.count_till_limit(window[:end], limit) is None:
        end //= 2
    return window[:end]
