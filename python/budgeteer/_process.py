"""
Resources to renew in a forked process, and threads to wait for before a process ends.

A forked process inherits locks that threads of its parent hold, and no thread there releases them.
At the end of a process, CPython before 3.14 ends daemon threads by unwinding their stacks, and a
thread in native code would crash the process.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

END_SECONDS = 1.0
"""The seconds that the end of a process waits for threads in native code."""

_IMPORT_SECONDS = 10.0
"""The seconds that a fork waits for an import."""


class Renewed(Protocol):
    """Has resources that a forked process must renew."""

    def _begin_anew(self) -> None:
        """Renew the resources that processes cannot share."""
        ...


class Worker(Protocol):
    """Has threads that may be in native code."""

    def wait_idle(self, seconds: float) -> None:
        """Wait at most *seconds* until all of them are idle."""
        ...


class ForkLock:
    """
    Makes a fork take *lock*, so that no process is forked amid what it guards.

    A fork waits at most *seconds*, and then goes on without it: what is guarded might need
    another lock that the fork holds. With *lock* it calls *then*.
    """

    def __init__(
        self,
        lock: threading.Lock | threading.RLock,
        seconds: float,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        self._lock = lock
        self._seconds = seconds
        self._then = then
        self._holder: int | None = None
        _fork_locks.add(self)

    def take(self) -> None:
        """Take the lock in the thread that forks."""
        if self._lock.acquire(timeout=self._seconds):
            self._holder = threading.get_ident()
            self._then()

    def let_go(self) -> None:
        """Release the lock if this thread took it, or, in a child, the one that it comes from."""
        if self._holder == threading.get_ident():
            self._holder = None
            self._lock.release()


class RenewedLock:
    """A lock that is free in a forked process, whoever held it: ``with lock.now``."""

    def __init__(self) -> None:
        self._begin_anew()
        renew(self)

    def _begin_anew(self) -> None:
        self.now = threading.Lock()


_owners: WeakSet[Renewed] = WeakSet()
_fork_locks: WeakSet[ForkLock] = WeakSet()
_workers: WeakSet[Worker] = WeakSet()
_is_ending = False

_importing = threading.RLock()
_import_at_fork = ForkLock(_importing, _IMPORT_SECONDS)

under_way = threading.local()
"""The state of one of our threads: the event ``given_up`` is set when nobody waits any more."""


def renew(owner: Renewed) -> None:
    """Renew *owner* in each forked process, before anything else runs there."""
    _owners.add(owner)


def call_in_child(function: Callable[[], object]) -> None:
    """Call *function* in each forked process."""
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=function)


def load_numpy() -> None:
    """Import numpy. A fork waits for that, as a child would wait for ever for half a module."""
    with _importing:
        import numpy  # noqa: F401, ICN001 - for those that import it next


def wait_for(worker: Worker) -> None:
    """Make the end of the process wait for *worker*."""
    if not _workers:
        atexit.unregister(_end)
        atexit.register(_end)
    _workers.add(worker)


def is_over() -> bool:
    """Return whether nobody waits for this thread: it was given up, or the process ends."""
    given_up = getattr(under_way, "given_up", None)
    if given_up is not None and given_up.is_set():
        return True
    return _is_ending and threading.current_thread() is not threading.main_thread()


def _take_all() -> None:
    for lock in list(_fork_locks):
        lock.take()


def _let_all_go() -> None:
    for lock in list(_fork_locks):
        lock.let_go()


def _renew_all() -> None:
    for owner in list(_owners):
        owner._begin_anew()  # noqa: SLF001 - for this module alone


def _end() -> None:
    global _is_ending  # noqa: PLW0603 - of the process
    _is_ending = True
    ends = time.monotonic() + END_SECONDS
    for worker in list(_workers):
        worker.wait_idle(ends - time.monotonic())


call_in_child(_renew_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_let_all_go, after_in_child=_let_all_go)
