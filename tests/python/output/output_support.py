"""What the tests of tool results share: JSON with its spelling, and what may be cut from it."""

import json
import re
from dataclasses import dataclass

from budgeteer._reference._count.graphemes import grapheme_boundaries

POINTED = r"(?:; the whole: .+)?"
ITEMS = re.compile(rf"\[\.\.\. (\d+) of (\d+) items? left out{POINTED} \.\.\.\]")
KEYS = re.compile(rf"\[\.\.\. (\d+) of (\d+) keys? left out{POINTED} \.\.\.\]")
CHARACTERS = re.compile(rf"\[\.\.\. (\d+) characters? left out{POINTED} \.\.\.\]")


@dataclass(frozen=True)
class Members:
    """The members of an object, in order, with duplicates."""

    pairs: tuple


@dataclass(frozen=True)
class Number:
    """A number as it is written."""

    written: str


def loads(text):
    """Read JSON; numbers keep their spelling and objects all their members."""
    return json.loads(
        text,
        parse_float=Number,
        parse_int=Number,
        object_pairs_hook=lambda pairs: Members(tuple(pairs)),
    )


def is_cut_of(cut, whole):
    """Return whether *cut* is what may stay of *whole*: same shape, every part one of its own."""
    if cut == whole:
        return True
    if isinstance(whole, str) and isinstance(cut, str):
        return is_string_of(cut, whole)
    if isinstance(whole, list) and isinstance(cut, list):
        return are_parts_of(cut, whole, ITEMS.fullmatch)
    if isinstance(whole, Members) and isinstance(cut, Members):
        return are_parts_of(
            cut.pairs, whole.pairs, lambda pair: pair[0] == "..." and KEYS.fullmatch(pair[1])
        )
    if isinstance(whole, tuple) and isinstance(cut, tuple):  # a member
        return cut[0] == whole[0] and is_cut_of(cut[1], whole[1])
    return False


def is_fit_of(cut, whole):
    """Return whether *cut* is what may stay of a whole value: its smallest text, at least."""
    is_smallest = cut in ("", [], Members(())) and type(cut) is type(whole)
    return is_smallest or is_cut_of(cut, whole)


def is_string_of(cut, whole):
    """Return whether a string is both ends of another, which are whole clusters."""
    boundaries = grapheme_boundaries(whole)
    return any(
        whole.startswith(cut[: found.start()])
        and whole.endswith(cut[found.end() :])
        and len(whole) - len(cut) + len(found[0]) == int(found[1])
        and found.start() in boundaries
        and len(whole) - len(cut) + found.end() in boundaries
        for found in CHARACTERS.finditer(cut)
    )


def are_parts_of(cut, whole, is_marker):
    """Return whether parts are some of others in their order, with one marker that says so."""
    at, kept, markers = 0, 0, []
    for part in cut:
        places = (i for i in range(at, len(whole)) if is_cut_of(part, whole[i]))
        place = next(places, None)
        if place is not None:
            at, kept = place + 1, kept + 1
            continue
        text = part if isinstance(part, (str, tuple)) else ""
        marker = is_marker(text) if text else None
        if not marker:
            return False
        markers.append(marker)
    said = [(int(marker[1]), int(marker[2])) for marker in markers]
    if kept == len(whole):
        return said == []
    return said == [(len(whole) - kept, len(whole))]
