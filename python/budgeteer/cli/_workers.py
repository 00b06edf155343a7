"""Processes that pack batches, and end with the process that started them however it ends."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from budgeteer import Packer
from budgeteer.cli._progress import without_interrupts
from budgeteer.cli._requests import Answerer, Answers, Batch
from budgeteer.errors import BudgeteerError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_AHEAD = 4
"""Batches for each worker that are read and not written yet."""
_GIVEN = 2
"""Batches that a worker has: one waits while the other is packed."""


def answers(
    batches: Iterable[Batch], number: int, packer: Packer, source: str, output: str
) -> Generator[tuple[Batch, Answers], None, None]:
    """
    Yield the batches in their order, each with its answers.

    Args:
        batches: What is packed; it is read as far ahead as the workers need.
        number: How many workers there are at most.
        packer: What packs.
        source: The ending of the input.
        output: The ending of the output.

    """
    from multiprocessing.connection import wait

    rest = enumerate(batches)
    workers: list[_Worker] = []
    done: dict[int, tuple[Batch, Answers]] = {}
    turn, read = 0, 0
    following = next(rest, None)

    def free() -> _Worker | None:
        """Return the worker that has the least to do, a new one if all have something."""
        least = min(workers, key=lambda worker: len(worker.given), default=None)
        if len(workers) < number and (least is None or least.given):
            least = _Worker(packer, source, output)
            workers.append(least)
        return None if least is None or len(least.given) == _GIVEN else least

    try:
        while True:
            while following and read - turn < _AHEAD * number and (worker := free()):
                worker.begin(*following)
                read += 1
                following = next(rest, None)
            busy = {worker.pipe: worker for worker in workers if worker.given}
            if not busy:
                return
            for pipe in wait([*busy]):
                place, batch, rows = busy[pipe].answered()  # type: ignore[index]
                done[place] = batch, rows
            while turn in done:
                yield done.pop(turn)
                turn += 1
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, our end of its pipe, and what it was given and has not answered."""

    def __init__(self, packer: Packer, source: str, output: str) -> None:
        # Not forked: the bar and native code have threads.
        from multiprocessing import get_context, resource_tracker

        context = get_context("spawn")
        self.given: deque[tuple[int, Batch]] = deque()
        self.pipe, other = context.Pipe()
        self._process = context.Process(
            target=_run, args=(other, packer, source, output), daemon=True
        )
        if sys.platform != "win32":  # its start lets Ctrl-C through again, and comes first
            resource_tracker.ensure_running()
        try:
            with without_interrupts():  # it is our Ctrl-C, and we end it
                self._process.start()
        except OSError as error:
            raise BudgeteerError(
                f"cannot start a worker: {error.strerror}; give fewer --workers"
            ) from None
        other.close()

    def begin(self, place: int, batch: Batch) -> None:
        self.given.append((place, batch))
        try:
            self.pipe.send(batch)
        except OSError:
            raise self._gone(self.given[0][1]) from None

    def answered(self) -> tuple[int, Batch, Answers]:
        place, batch = self.given.popleft()
        try:
            return place, batch, self.pipe.recv()
        except (EOFError, OSError):
            raise self._gone(batch) from None

    def end(self) -> None:
        self._process.kill()  # it has nothing to lose
        self._process.join()
        self.pipe.close()

    def _gone(self, batch: Batch) -> BudgeteerError:
        self._process.join(1)
        code = self._process.exitcode or 0
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        last = batch.first + batch.lines - 1
        return BudgeteerError(
            f"a worker ended {how} at the requests {batch.first} to {last} of the input: it may "
            f"have had too little memory; the same command goes on"
        )


def _run(pipe: Connection[Any, Any], packer: Packer, source: str, output: str) -> None:
    """Answer batches until the other end of the pipe is closed."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    given: SimpleQueue[Batch | None] = SimpleQueue()
    # The pipe is read whatever else is done: else both ends could wait for the other to read.
    Thread(target=_read, args=(pipe, given), daemon=True).start()
    answer = Answerer(packer, source, output)
    with suppress(OSError):  # nobody waits for it
        while (batch := given.get()) is not None:
            pipe.send(answer(batch))


def _read(pipe: Connection[Any, Any], given: SimpleQueue[Batch | None]) -> None:
    with suppress(EOFError, OSError):
        while True:
            given.put(pipe.recv())
    given.put(None)
