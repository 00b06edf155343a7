"""Processes that pack batches, and end with the process that started them however it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

from budgeteer import Packer
from budgeteer.cli._progress import without_interrupts
from budgeteer.cli._requests import Answerer, Answers, Batch
from budgeteer.errors import BudgeteerError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_AHEAD = 4
"""Batches for each worker that are read and not written yet."""


def answers(
    batches: Iterable[Batch], number: int, packer: Packer, source: str, output: str
) -> Generator[tuple[Batch, Answers], None, None]:
    """
    Yield the batches in their order, each with its answers.

    A worker has one batch at a time, so that neither side of a pipe waits for the other to read.

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
    busy: dict[Any, tuple[_Worker, int, Batch]] = {}
    done: dict[int, tuple[Batch, Answers]] = {}
    turn = 0
    try:
        while True:
            idle = [worker for worker in workers if worker.pipe not in busy]
            while len(busy) + len(done) < _AHEAD * number and (idle or len(workers) < number):
                place, batch = next(rest, (0, None))
                if batch is None:
                    break
                if not idle:
                    workers.append(_Worker(packer, source, output))
                    idle.append(workers[-1])
                worker = idle.pop()
                worker.begin(batch)
                busy[worker.pipe] = worker, place, batch
            if not busy:
                return
            for pipe in wait([*busy]):
                worker, place, batch = busy.pop(pipe)
                done[place] = batch, worker.answers(batch)
            while turn in done:
                yield done.pop(turn)
                turn += 1
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, and our end of its pipe."""

    def __init__(self, packer: Packer, source: str, output: str) -> None:
        # Not forked: the bar and native code have threads.
        from multiprocessing import get_context

        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(
            target=_run, args=(other, packer, source, output), daemon=True
        )
        with without_interrupts():  # it is our Ctrl-C, and we end it
            self._process.start()
        other.close()

    def begin(self, batch: Batch) -> None:
        try:
            self.pipe.send(batch)
        except OSError:
            raise self._gone(batch) from None

    def answers(self, batch: Batch) -> Answers:
        try:
            return self.pipe.recv()  # type: ignore[no-any-return]
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
    answer = Answerer(packer, source, output)
    try:
        while True:
            pipe.send(answer(pipe.recv()))
    except (EOFError, OSError):  # nobody waits for it
        return
