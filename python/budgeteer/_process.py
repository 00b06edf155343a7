"""
What a forked process begins anew, and what is waited for before a process ends.

A forked process inherits locks as they are, also those that a thread of its parent holds, which is
not there to let go of them. And where a process ends, CPython before 3.14 ends the daemon threads
by unwinding their stacks: one that is in native code would take the process down with it.
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
"""So long the end of a process waits for threads that are in native code."""


class Renewed(Protocol):
    """Has something to begin anew."""

    def begin_anew(self) -> None:
        """Make what no other process may share."""
        ...


class Worker(Protocol):
    """Has threads that may be in native code."""

    def wait_idle(self, seconds: float) -> None:
        """Wait so long at most until none of them works."""
        ...


_owners: WeakSet[Renewed] = WeakSet()
_workers: WeakSet[Worker] = WeakSet()
_is_ending = False

under_way = threading.local()
"""What a thread of ours does: ``given_up`` is the event that is set when nobody waits any more."""


def renew(owner: Renewed) -> None:
    """Let *owner* begin anew in each process that is forked, before anything else runs there."""
    _owners.add(owner)


def call_in_child(function: Callable[[], object]) -> None:
    """Call *function* in each process that is forked."""
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=function)


def wait_for(worker: Worker) -> None:
    """Let the end of the process wait for *worker*."""
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


def _renew_all() -> None:
    for owner in list(_owners):
        owner.begin_anew()


def _end() -> None:
    global _is_ending  # noqa: PLW0603 - of the process
    _is_ending = True
    ends = time.monotonic() + END_SECONDS
    for worker in list(_workers):
        worker.wait_idle(ends - time.monotonic())


call_in_child(_renew_all)
