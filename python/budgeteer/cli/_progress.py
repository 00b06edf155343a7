"""A bar on standard error, at a terminal, for what takes more than a second."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_DELAY = 1.0
"""Seconds of work before the bar is shown."""


class Bar:
    """
    Says what is being done, and how many items of it.

    Of a long work it also says how many a second, and shows how much of it is done. Nothing is
    shown where standard error is not a terminal, before the first stage has begun, in the first
    second, or without rich.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_over = False
        self._shown: Any = None
        self._task: Any = None
        self._what, self._items, self._rated = "", 0, ""
        self._began = 0.0

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
        self._what, self._items, self._rated = what, 0, ""
        self._began = time.monotonic()
        if self._timer is None and sys.stderr is not None and sys.stderr.isatty():
            self._timer = threading.Timer(_DELAY, self._show)
            self._timer.daemon = True
            with without_interrupts():
                self._timer.start()
        self._tell()

    def over(self, what: str, items: Iterable[T]) -> Iterator[T]:
        """Yield the items of a stage, and count them."""
        self.stage(what)
        for item in items:
            yield item
            self._items += 1
            self._tell()

    def advance(self, items: int, share: float) -> None:
        """Count *items* more of a stage, of which *share* is done now, from 0 to 1."""
        self._items += items
        seconds = time.monotonic() - self._began
        self._rated = f" ({self._items / max(seconds, 1e-9):.0f}/s)" if self._items else ""
        self._tell(completed=share, total=1)

    def _tell(self, **done: float) -> None:
        if self._shown is not None:
            counted = f": {self._items}{self._rated}" if self._items else ""
            self._shown.update(self._task, description=f"{self._what}{counted}", **done)

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
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,  # the streams are main's
                redirect_stderr=False,
            )
            self._task = bar.add_task(self._what, total=None)
            self._shown = bar
            self._tell()
            bar.start()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """
    Start threads or processes that take no Ctrl-C, nor do those that they start.

    Where another thread takes the signal, a main thread that waits for a file goes on waiting.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
