"""Reference of ``rust/core/src/output/share.rs``: who gets how much of the room."""

from collections.abc import Sequence

from budgeteer._reference._rank.bm25 import K1, B, score

MOST_ROWS = 4
"""Up to a quarter of the room, a row that stays stays whole."""


class Markers:
    """The lines that say what was left out. The first that is written has the pointer."""

    def __init__(self, pointer: str | None) -> None:
        """Take the pointer to the whole, or None."""
        self.pointer = pointer

    def show(self, what: str) -> str:
        """Return the marker that would be written next."""
        if self.pointer is None:
            return f"[... {what} ...]"
        return f"[... {what}; the whole: {self.pointer} ...]"

    def write(self, what: str) -> str:
        """Return the marker to write."""
        marker = self.show(what)
        self.pointer = None
        return marker


def number(count: int, name: str) -> str:
    """Return the count with its name, singular or plural."""
    return f"{count} {name}{'' if count == 1 else 's'}"


def characters(count: int) -> str:
    """Return what a marker says of characters."""
    return f"{number(count, 'character')} left out"


def place_from_ends(i: int, count: int) -> int:
    """Return the rank of place *i* where the first comes first, then the last, then the second."""
    return min(2 * i, 2 * (count - 1 - i) + 1)


def scores_of(query: str | None, texts: Sequence[str]) -> list[float]:
    """Return how well each text answers the query; zeros without one."""
    if query is None or len(texts) < 2:
        return [0.0] * len(texts)
    return score(query, [(text, "") for text in texts], K1, B)


def ranked(scores: Sequence[float]) -> list[int]:
    """Return the places by falling score, then from both ends inwards."""
    count = len(scores)
    return sorted(range(count), key=lambda i: (-scores[i], place_from_ends(i, count)))


def share(
    sizes: Sequence[int],
    least: Sequence[int],
    order: Sequence[int],
    room: int,
    cap: int,
    *,
    stops: bool = False,
) -> list[int]:
    """
    Return how much of *room* each part gets; 0 for one that is left out.

    In *order*, each part is taken for which there still is room, at its own size or at *cap*,
    whichever is smaller, but at no less than its *least*. With *stops*, none is taken after the
    first that has no room once another has. What is left then goes to all of them by max-min
    fairness: the smaller are whole before a larger one gets more.
    """
    taken, left = [], room
    for i in order:
        cost = min(sizes[i], max(cap, least[i]))
        if cost <= left:
            left -= cost
            taken.append(i)
        elif stops and taken:
            break
    level = water_level([(sizes[i], least[i]) for i in taken], room)
    got = [0] * len(sizes)
    for i in taken:
        got[i] = min(sizes[i], max(level, least[i]))
    return got


def water_level(parts: Sequence[tuple[int, int]], room: int) -> int:
    """Return the most that each part may get, so that all together stay within *room*."""
    low, high = 0, max((size for size, _ in parts), default=0)
    while low < high:
        level = (low + high + 1) // 2
        if sum(min(size, max(level, least)) for size, least in parts) <= room:
            low = level
        else:
            high = level - 1
    return low
