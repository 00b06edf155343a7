"""
Resources to renew in a forked process, and threads to wait for before a process ends.

A forked process inherits locks that threads of its parent hold, and no thread there releases them.
At the end of a process, CPython before 3.14 ends daemon threads by unwinding their stacks, and a
thread in native code would crash the process.
"""

from __future__ import annotations

import atexit
import importlib
import os
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Protocol
from weakref import WeakSet

END_SECONDS = 1.0
"""The seconds that the end of a process waits for threads in native code."""


class Renewed(Protocol):
    """Has resources that a forked process must renew."""

    def _begin_anew(self) -> None:
        """Renew the resources that processes cannot share."""
        ...


class Held(Protocol):
    """Has what no process may be forked amid."""

    def hold(self) -> None:
        """Bring it to an end, and let nothing new begin."""
        ...

    def let_go(self) -> None:
        """Let new work begin, in the thread that held it, of this process or of the forked one."""
        ...


class Worker(Protocol):
    """Has threads that may be in native code."""

    def wait_idle(self, seconds: float) -> None:
        """Wait at most *seconds* until all of them are idle."""
        ...


_owners: WeakSet[Renewed] = WeakSet()
_held: WeakSet[Held] = WeakSet()
_workers: WeakSet[Worker] = WeakSet()
_is_ending = False
_importing = threading.RLock()

under_way = threading.local()
"""The state of one of our threads: the event ``given_up`` is set when nobody waits any more."""


def renew(owner: Renewed) -> None:
    """Renew *owner* in each forked process, before anything else runs there."""
    _owners.add(owner)


def hold_at_fork(held: Held) -> None:
    """Hold *held* while a process is forked."""
    _held.add(held)


def call_in_child(function: Callable[[], object]) -> None:
    """Call *function* in each forked process."""
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=function)


def load(name: str) -> ModuleType:
    """Import a module. A fork waits for that, as a child would wait for ever for half of one."""
    with _importing:
        return importlib.import_module(name)


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


def _hold_all() -> None:
    _importing.acquire()
    for held in list(_held):
        held.hold()


def _let_all_go() -> None:
    for held in list(_held):
        held.let_go()
    _importing.release()


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
    os.register_at_fork(before=_hold_all, after_in_parent=_let_all_go, after_in_child=_let_all_go)
