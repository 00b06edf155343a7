"""
Extended grapheme clusters, as Unicode Standard Annex 29 defines them.

The counterpart of the crate `unicode-segmentation`, which the native backend uses.
"""

from bisect import bisect_right

from budgeteer._reference._count.grapheme_table import RANGES

_ZWJ, _ZWNJ = 0x200D, 0x200C
_BREAKING = frozenset({"Control", "CR", "LF"})
_HANGUL_BEFORE = {
    "L": frozenset({"L", "V", "LV", "LVT"}),
    "LV": frozenset({"V", "T"}),
    "V": frozenset({"V", "T"}),
    "LVT": frozenset({"T"}),
    "T": frozenset({"T"}),
}


def _table() -> tuple[list[int], list[tuple[int, str]]]:
    """Return the first code points of all ranges, and the last ones with the property."""
    rows = []
    for name, ranges in RANGES.items():
        if name != "Linker":
            for item in ranges.split():
                first, _, last = item.partition("-")
                rows.append((int(first, 16), int(last or first, 16), name))
    rows.sort()
    return [first for first, _, _ in rows], [(last, name) for _, last, name in rows]


_FIRSTS, _LASTS = _table()
_LINKERS = frozenset(int(item, 16) for item in RANGES["Linker"].split())
_SINGLES = {0x0A: "LF", 0x0D: "CR", _ZWJ: "ZWJ"}


def _property(code: int) -> str:
    """Return the value of Grapheme_Cluster_Break that the rules use."""
    if 0x20 <= code <= 0x7E:
        return "Any"
    if code in _SINGLES:
        return _SINGLES[code]
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    if 0xD800 <= code <= 0xDFFF:
        return "Control"
    place = bisect_right(_FIRSTS, code) - 1
    if place >= 0 and code <= _LASTS[place][0]:
        return _LASTS[place][1]
    return "Any"


def grapheme_boundaries(text: str) -> list[int]:
    """Return the places, in code points from 0 to ``len(text)``, where a grapheme cluster ends."""
    boundaries = [0]
    before = ""
    flags = 0  # regional indicators in a row up to here
    emoji = ""  # "base" after a pictograph and Extend, "joined" after those and one ZWJ
    conjunct = linked = False  # after a consonant only Extend and Linker; at least one Linker
    for place, character in enumerate(text):
        code = ord(character)
        after = _property(code)
        if place and _breaks(before, after, flags, emoji == "joined", conjunct and linked):
            boundaries.append(place)
        flags = flags + 1 if after == "Regional_Indicator" else 0
        if after == "Extended_Pictographic":
            emoji = "base"
        elif emoji == "base" and after == "ZWJ":
            emoji = "joined"
        elif emoji != "base" or after != "Extend":
            emoji = ""
        if after == "InCB_Consonant":
            conjunct, linked = True, False
        elif code in _LINKERS:
            linked = True
        elif after not in ("Extend", "ZWJ") or code == _ZWNJ:
            conjunct = linked = False
        before = after
    if text:
        boundaries.append(len(text))
    return boundaries


def _breaks(before: str, after: str, flags: int, emoji: bool, conjunct: bool) -> bool:
    if before == "CR" and after == "LF":  # GB3
        return False
    if before in _BREAKING or after in _BREAKING:  # GB4, GB5
        return True
    if (
        after in _HANGUL_BEFORE.get(before, ())  # GB6 to GB8
        or after in ("Extend", "ZWJ", "SpacingMark")  # GB9, GB9a
        or before == "Prepend"  # GB9b
    ):
        return False
    if after == "InCB_Consonant":  # GB9c
        return not conjunct
    if before == "ZWJ" and after == "Extended_Pictographic":  # GB11
        return not emoji
    if before == after == "Regional_Indicator":  # GB12, GB13
        return flags % 2 == 0
    return True
