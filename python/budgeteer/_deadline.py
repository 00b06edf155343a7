"""Deadlines, and what looks at them while a call is under way."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from budgeteer import _process, _validate
from budgeteer.errors import BudgeteerError, InvalidArgumentError

Watch: TypeAlias = Callable[[], None]
"""Called while a call is under way; what it raises ends the call."""


T = TypeVar("T")

LOOK_EVERY = 256
"""The chunks of which something is read between two looks."""


def unwatched() -> None:
    """Watch nothing."""


def watched(items: Iterable[T], watch: Watch | None) -> Iterable[T]:
    """Return *items*, of which every 256th asks *watch*, as reading very many takes long."""
    return items if watch is None else _watched(items, watch)


def _watched(items: Iterable[T], watch: Watch) -> Iterator[T]:
    for i, item in enumerate(items):
        if i % LOOK_EVERY == 0:
            watch()
        yield item


class Deadline:
    """The deadline of a call, if it has one."""

    __slots__ = ("_ends", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._ends = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Return the seconds left, at least 0, or None if there is no deadline."""
        if self._ends is None:
            return None
        return min(max(0.0, self._ends - time.monotonic()), threading.TIMEOUT_MAX)

    @property
    def late_packing(self) -> str:
        """What an error says of a packing that was not done in time."""
        seconds = self.seconds or 0
        return f"the deadline of {seconds:g} seconds passed before the chunks were packed"

    def watch(self, late: Callable[[], Exception]) -> Watch:
        """
        Return a function that raises once nobody waits for the call any more.

        It raises what *late* returns when the deadline has passed, and an error of its own in a
        thread that was given up.
        """

        def look() -> None:
            if _process.is_over():
                raise BudgeteerError("nothing is packed any more: nobody waits for it")
            if self._ends is not None and time.monotonic() >= self._ends:
                raise late()

        return look


def seconds_of(name: str, value: object) -> float | None:
    """
    Return a number of seconds, or None.

    Raises:
        InvalidArgumentError: *value* is neither None nor a number above 0; names it *name*.

    """
    if value is None:
        return None
    seconds = _validate.number(name, value)
    if not 0 < seconds < math.inf:
        raise InvalidArgumentError(f"{name} must be a number of seconds above 0, not {seconds:g}")
    return seconds
