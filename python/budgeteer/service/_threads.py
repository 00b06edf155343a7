"""Daemon threads for blocking calls, so that a deadline holds even if they do not end."""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from budgeteer._process import renew, under_way, wait_for

_IDLE_SECONDS = 10.0
_LOOK_SECONDS = 0.002


class Threads:
    """
    Runs calls on at most *most* threads, which end after some idle seconds.

    ``concurrent.futures.ThreadPoolExecutor`` waits for its threads when the process ends, so a
    call that hangs would keep the process alive. These threads do not. A call that never ends
    keeps its thread, and further calls wait for a free one. If *is_waited_for*, the end of the
    process waits a moment for running calls.
    """

    def __init__(self, most: int, *, is_waited_for: bool = False) -> None:
        self._most = most
        self._begin_anew()
        renew(self)
        if is_waited_for:
            wait_for(self)

    def _begin_anew(self) -> None:
        """Forget the threads of another process."""
        self._condition = threading.Condition()
        self._jobs: deque[tuple[Future[Any], Callable[[], Any], threading.Event | None]] = deque()
        self._alive = self._idle = 0
        self._many = self._most  # with this many calls waiting, look for those given up

    def submit(
        self, function: Callable[[], Any], given_up: threading.Event | None = None
    ) -> Future[Any]:
        """
        Return a future for the result of *function*, run in the caller's context.

        Set *given_up* when nobody waits for it any more.
        """
        future: Future[Any] = Future()
        context = contextvars.copy_context()
        with self._condition:
            if len(self._jobs) >= self._many:
                self._forget_cancelled()
            self._jobs.append((future, lambda: context.run(function), given_up))
            if self._idle < len(self._jobs) and self._alive < self._most:
                self._start()
            else:
                self._condition.notify()
        return future

    def wait_idle(self, seconds: float) -> None:
        """Start no further call, and wait at most *seconds* until none runs."""
        ends = time.monotonic() + seconds
        with self._condition:
            self._jobs.clear()
        while self._idle < self._alive and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)

    def _forget_cancelled(self) -> None:
        """Let go of calls that nobody waits for: while all threads hang, none takes them."""
        self._jobs = deque(job for job in self._jobs if not job[0].cancelled())
        self._many = self._most + 2 * len(self._jobs)

    def _start(self) -> None:
        """Start a thread for the last job; take the job back if there is no thread at all."""
        thread = threading.Thread(target=self._work, name="budgeteer-service", daemon=True)
        self._alive += 1
        try:
            thread.start()
        except RuntimeError:  # the system allows no more threads just now
            self._alive -= 1
            if not self._alive:
                self._jobs.pop()
                raise

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._jobs:
                    self._idle += 1
                    is_told = self._condition.wait(_IDLE_SECONDS)
                    self._idle -= 1
                    if not is_told and not self._jobs:
                        self._alive -= 1
                        return
                future, function, under_way.given_up = self._jobs.popleft()
            _run(future, function)
            under_way.given_up = None
            del future, function  # an idle thread keeps nothing alive


def _run(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = function()
    except StopIteration as error:  # a coroutine given it would wait for ever
        told = RuntimeError("a call in a thread raised StopIteration")
        told.__cause__ = error
        future.set_exception(told)
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        future.set_exception(error)
    else:
        future.set_result(answer)
