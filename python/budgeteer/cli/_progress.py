"""A bar on standard error, at a terminal, for what takes more than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_DELAY = 1.0
"""Seconds of work before the bar is shown."""


class Bar:
    """
    Says what is being done, and how many items of it.

    Nothing is shown where standard error is not a terminal, before the first stage has begun, in
    the first second, or without rich.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_over = False
        self._shown: Any = None
        self._task: Any = None
        self._what, self._items = "", 0

    def close(self) -> None:
        """Take the bar away."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown.stop()

    def stage(self, what: str) -> None:
        """Begin the next stage of the work."""
        self._what, self._items = what, 0
        if self._timer is None and sys.stderr is not None and sys.stderr.isatty():
            self._timer = threading.Timer(_DELAY, self._show)
            self._timer.daemon = True
            self._timer.start()
        self._tell()

    def over(self, what: str, items: Iterable[T]) -> Iterator[T]:
        """Yield the items of a stage, and count them."""
        self.stage(what)
        for item in items:
            yield item
            self._items += 1
            self._tell()

    def _tell(self) -> None:
        if self._shown is not None:
            self._shown.update(self._task, description=self._what, completed=self._items)

    def _show(self) -> None:
        with self._lock:
            if self._is_over:
                return
            try:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
            except ImportError:
                return
            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,  # the streams are main's
                redirect_stderr=False,
            )
            self._task = bar.add_task(self._what, total=None, completed=self._items)
            bar.start()
            self._shown = bar
