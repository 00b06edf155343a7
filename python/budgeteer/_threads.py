"""Daemon threads for calls that block, so that a deadline holds though they do not end."""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_IDLE_SECONDS = 10.0


class Threads:
    """
    Runs calls on at most *most* threads, which end when they have been idle for some seconds.

    ``concurrent.futures.ThreadPoolExecutor`` waits for its threads when the process ends: a call
    that hangs would keep it from ending. These do not. A call that never ends keeps its thread,
    so that *most* bounds how many there can be; the others wait their turn.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._condition = threading.Condition()
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._alive = self._idle = 0

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Return the future of what *function* answers in the context of the caller."""
        if self._pid != os.getpid():  # a fork has the bookkeeping, and not the threads
            self._begin()
        future: Future[Any] = Future()
        context = contextvars.copy_context()
        with self._condition:
            self._jobs.append((future, lambda: context.run(function)))
            if self._idle < len(self._jobs) and self._alive < self._most:
                self._alive += 1
                threading.Thread(target=self._work, name="budgeteer-service", daemon=True).start()
            else:
                self._condition.notify()
        return future

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
                future, function = self._jobs.popleft()
            _run(future, function)
            del future, function  # an idle thread keeps nothing alive


def _run(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = function()
    except BaseException as error:  # noqa: BLE001 - whoever waits raises it
        future.set_exception(error)
    else:
        future.set_result(answer)
