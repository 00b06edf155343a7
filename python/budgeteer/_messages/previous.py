"""What was kept of a history last time: found again among the messages of today."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from budgeteer._messages.history import History, ties_of
from budgeteer._messages.mask import masked
from budgeteer._messages.messages import SYSTEM_ROLES
from budgeteer._messages.shapes import DEEPEST, RESULT_ROLES, fields_of
from budgeteer._messages.turn import MARKER
from budgeteer._messages.views import result_texts, viewed_fields, with_results

_MOST = 16
"""The most places that are tried for a message that stands at several."""


def found(
    messages: Sequence[Any],
    history: History,
    previous: Sequence[Any],
    pinned: Container[int],
) -> tuple[int | None, dict[int, Any]]:
    """
    Return where the kept messages begin, and those that were kept with less of a tool result.

    A message of *previous* is one of the others of *history* that is the same object, else the
    first with the same content, else the first of which it is a shortened form. What is in none
    of them is passed over. Pinned messages tell nothing of the beginning; where nothing else was
    kept, what is kept begins behind the last of them. None where nothing is found.
    """
    known = [item for item in previous if _role(item) not in SYSTEM_ROLES]
    places = _Places(messages, history.others)
    others = history.others
    at, begin, place, seen = 0, None, None, 0
    shortened: dict[int, Any] = {}
    for k, item in enumerate(known):
        if at == len(others):
            break
        if begin is None:
            may = [place for place in places.of(item) if place >= at]
            found_at = _best(known[k:], may, messages, others)
        elif _fits(item, messages[others[at]]):
            found_at = at
        else:
            found_at = next((place for place in places.of(item) if place > at), None)
        if found_at is None:
            continue
        place = others[found_at]
        if begin is None and place not in pinned:
            begin = place
        if not same(item, messages[place]):
            shortened[place] = item
        at, seen = found_at + 1, seen + 1
    if begin is None and place is not None and seen == len(known):
        begin = place + 1
    return begin, shortened


def _best(
    known: Sequence[Any], places: Sequence[int], messages: Sequence[Any], others: Sequence[int]
) -> int | None:
    """Return the first of *places* at which most of *known* follows."""
    if len(places) < 2:
        return places[0] if places else None
    best, most = None, 0
    for at in places[:_MOST]:
        length = 0
        for item, place in zip(known, others[at:], strict=False):
            if not _fits(item, messages[place]):
                break
            length += 1
        if length == len(known):
            return at
        if length > most:
            best, most = at, length
    return best


class _Places:
    """Finds a message among others: by identity, else by content, else by what it is short for."""

    __slots__ = ("_by_id", "_by_key", "_messages", "_others")

    def __init__(self, messages: Sequence[Any], others: Sequence[int]) -> None:
        self._messages, self._others = messages, others
        self._by_id: dict[int, list[int]] = defaultdict(list)
        for at, place in enumerate(others):
            self._by_id[id(messages[place])].append(at)
        self._by_key: dict[object, list[int]] | None = None

    def of(self, item: Any) -> list[int]:
        """Return where *item* is among the others, ascending: their numbers, not their places."""
        own = self._by_id.get(id(item))
        if own is not None:
            return own
        if self._by_key is None:  # most messages are the same objects
            self._by_key = defaultdict(list)
            for at, place in enumerate(self._others):
                self._by_key[_key(self._messages[place])].append(at)
        places = self._by_key.get(_key(item), ())
        equal = [at for at in places if same(item, self._messages[self._others[at]])]
        if equal:
            return equal
        return [at for at in places if is_shortened(item, self._messages[self._others[at]])]


def _role(item: Any) -> object:
    return viewed_fields(item).get("role")


def _key(item: Any) -> object:
    """Return what two messages have in common that are equal, or one short for the other."""
    fields = viewed_fields(item)
    role, content = fields.get("role"), fields.get("content")
    shown = role if type(role) is str else ""
    calls, results, _ = ties_of(shown, fields)
    if content and type(content) in (list, tuple):
        content = (fields_of(content[0]) or {}).get("text")
    own = content if type(content) is str and shown not in RESULT_ROLES else None
    return shown, own, *results, *calls


def _fits(item: Any, message: Any) -> bool:
    return item is message or same(item, message) or is_shortened(item, message)


def is_shortened(short: Any, whole: Any) -> bool:
    """Return whether *short* is *whole* with masked tool results, or with their texts cut."""
    cut = result_texts(short)
    for message in (masked(whole), whole):
        texts = result_texts(message)
        if (
            len(texts) == len(cut)
            and all(map(_is_cut, cut, texts))
            and same(short, with_results(message, cut))
        ):
            return True
    return False


def _is_cut(cut: str, text: str) -> bool:
    """Return whether *cut* is *text*, or a head and a tail of it around the marker."""
    if cut == text:
        return True
    head = _common(cut, text)
    tail = _common(cut[::-1], text[::-1])
    return cut.find(MARKER, max(0, len(cut) - tail - len(MARKER)), head + len(MARKER)) >= 0


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def same(one: Any, other: Any, depth: int = 0) -> bool:
    """
    Return whether two messages, or values in them, have the same content.

    An object is its fields, whose order does not matter; a list is a tuple with the same items.
    Numbers are the same if their types are, too.
    """
    if one is other:
        return True
    if isinstance(one, str):
        return isinstance(other, str) and str.__eq__(one, other)
    if one is None or isinstance(one, (bool, int, float)):
        return type(one) is type(other) and one == other
    return depth < DEEPEST and all(same(a, b, depth + 1) for a, b in _pairs(one, other))


def _pairs(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the items of two lists, or the fields of two mappings; else what is not the same."""
    if isinstance(one, (list, tuple)):
        if isinstance(other, (list, tuple)) and len(one) == len(other):
            return zip(one, other, strict=True)
        return iter([(None, 0)])
    fields, others = fields_of(one), fields_of(other)
    if fields is None or others is None or fields.keys() != others.keys():
        return iter([(None, 0)])
    return ((fields[key], others[key]) for key in fields)


def stable(kept: Iterable[Any], previous: Sequence[Any]) -> int:
    """Return how many of the leading messages of *kept* are those of *previous*."""
    count = 0
    for item, before in zip(kept, previous, strict=False):
        if item is not before and not same(item, before):
            break
        count += 1
    return count
