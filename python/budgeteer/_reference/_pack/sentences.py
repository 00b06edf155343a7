"""Reference of ``rust/core/src/sentences.rs``: where sentences start and end."""

import unicodedata

LINE_ENDS = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")

WIDE_ENDS = frozenset("\u3002\uff01\uff0e\uff1f\uff61")
"""Characters that end a sentence without a space after them."""

ENDS = WIDE_ENDS | frozenset(".!?\u061f\u06d4\u0964\u0965\u2026\u203c\u203d\u2047\u2048\u2049")

CLOSERS = frozenset("\"')]}\u00bb\u2019\u201d\u203a\u3009\u300b\u300d\u300f\u3011\uff09")
"""Closing characters that belong to the sentence before them."""

ABBREVIATIONS = frozenset(
    "al approx apr art aug av bd bros bzw ca capt cf cmdr co col corp dec dept dr ed eds est feb "
    "fig figs ft gen gov hl hon inc jan jr jul jun lt ltd maj mar mlle mme mr mrs ms mt no nos "
    "nov nr oct pp pres prof rep rev sen sep sept sgt sr st vol vols vs".split()
)
"""Abbreviations: a full stop after one does not end a sentence."""

MAX_WORD = 8
"""The most code points of a word to look up before a full stop."""


def sentence_spans(text: str) -> list[int]:
    """Return the start and end of each sentence of *text*, without outer spaces, in one list."""
    spans: list[int] = []
    start = place = 0
    while place < len(text):
        character = text[place]
        place += 1
        if character in LINE_ENDS:
            place, breaks = _end_of_lines(text, place - 1)
            if breaks > 1 or _may_start(text, place):
                start = _close(text, start, place, spans)
        elif character in ENDS:
            first, is_wide = place - 1, character in WIDE_ENDS
            while place < len(text) and text[place] in ENDS:
                is_wide = is_wide or text[place] in WIDE_ENDS
                place += 1
            is_stop = character == "." and place == first + 1
            end = place
            while place < len(text) and text[place] in CLOSERS:
                place += 1
            behind = place
            while behind < len(text) and text[behind].isspace() and text[behind] not in LINE_ENDS:
                behind += 1
            if (
                (behind > place or is_wide)
                and _may_start(text, behind)
                and not (is_stop and place == end and _is_abbreviated(text, start, first))
            ):
                start = _close(text, start, place, spans)
    _close(text, start, len(text), spans)
    return spans


def _end_of_lines(text: str, place: int) -> tuple[int, int]:
    """Return the end of the spaces that start at *place*, and the number of line ends in them."""
    breaks = 0
    while place < len(text) and text[place].isspace():
        is_second = text[place] == "\n" and text[place - 1 : place] == "\r"
        breaks += text[place] in LINE_ENDS and not is_second
        place += 1
    return place, breaks


def _may_start(text: str, place: int) -> bool:
    """Return whether a sentence may start there: with any character but a lowercase letter."""
    return place >= len(text) or unicodedata.category(text[place]) != "Ll"


def _is_abbreviated(text: str, start: int, end: int) -> bool:
    """Return whether the word ending there takes a full stop: Dr, e.g, an initial, item number."""
    word = ""
    for character in reversed(text[max(start, end - MAX_WORD) : end]):
        if character != "." and unicodedata.category(character)[0] not in "LN":
            break
        word = character + word
    if any(unicodedata.category(character)[0] == "N" for character in word):
        while text[start].isspace():
            start += 1
        return start == end - len(word)  # an item number starts the sentence
    return len(word) == 1 or "." in word or word.lower() in ABBREVIATIONS


def _close(text: str, start: int, end: int, spans: list[int]) -> int:
    """Add the span from *start* to *end*, without outer spaces, and return *end*."""
    first, last = start, end
    while first < last and text[first].isspace():
        first += 1
    while last > first and text[last - 1].isspace():
        last -= 1
    if first < last:
        spans += [first, last]
    return end
