"""A sequence whose items are made on access."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar, overload

V = TypeVar("V")

_SHOWN = 3
"""The number of chunks that a session shows, and of characters of each."""
_SHOWN_CHARS = 200


def _short(shown: str) -> str:
    """Return *shown*, or its beginning and its end where it is long."""
    if len(shown) <= _SHOWN_CHARS:
        return shown
    half = (_SHOWN_CHARS - 5) // 2
    return f"{shown[:half]} ... {shown[-half:]}"


_BLOCK = 1_024
"""The number of items that are made together: the first need not wait for all."""


class Lazy(Sequence[V]):
    """A sequence whose items are made on access, from one place to another."""

    __slots__ = ("_length", "_make")

    def __init__(self, length: int, make: Callable[[int, int], list[V]]) -> None:
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[V]:
        make, length = self._make, self._length
        starts = range(0, length, _BLOCK)
        return chain.from_iterable(make(i, min(i + _BLOCK, length)) for i in starts)

    @overload
    def __getitem__(self, position: int) -> V: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[V]: ...
    def __getitem__(self, position: int | slice) -> V | Sequence[V]:
        places = range(self._length)[position]
        if isinstance(places, range):
            if places and places.step == 1:  # together, as when all are read
                return self._make(places.start, places.stop)
            return [self._make(place, place + 1)[0] for place in places]
        return self._make(places, places + 1)[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the first items, each in one short line, and how many there are."""
        shown = [_short(repr(item)) for item in self._make(0, min(self._length, _SHOWN))]
        if self._length > _SHOWN:
            shown.append(f"... {self._length} in all")
        return f"[{', '.join(shown)}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)
