"""Reference of ``rust/core/src/score.rs``."""

from array import array
from collections.abc import Sequence

from budgeteer._codes import TEXT_TYPE, TITLE_TYPE
from budgeteer._reference._rank.keywords import keywords


def overlap(wanted: frozenset[str], text: str, title: str) -> float:
    """Return the share of *wanted* that *text* or *title* contains."""
    if not wanted:
        return 0.0
    found = keywords(text)
    if not found:
        return 0.0  # even if the title matches
    return len(wanted & {*found, *keywords(title)}) / len(wanted)


def keyword_scores(
    query: str, texts: Sequence[object], titles: Sequence[object] | None
) -> bytearray | tuple[int, int]:
    """Score each text as float64; or return a code and the index of an item that is not a str."""
    wanted = frozenset(keywords(query))
    scores = array("d")
    for i, text in enumerate(texts):
        title = "" if titles is None else titles[i]
        if not isinstance(text, str):
            return TEXT_TYPE, i
        if not isinstance(title, str):
            return TITLE_TYPE, i
        scores.append(overlap(wanted, str.__str__(text), str.__str__(title)))
    return bytearray(scores.tobytes())
