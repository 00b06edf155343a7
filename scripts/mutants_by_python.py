"""
Ask the tests of Python of mutants of the core, in which the extension module was built.

pytest collects the tests once, with this file as its plugin, and forks a process for each
question. So nothing is imported twice, and no test sees what another has left behind.
"""

import ctypes
import gc
import os
import re
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

CONNECTION = "MUTANTS_CONNECTION"
"""The environment's variable with the number of what the two processes speak through."""

ROOMS = ("count", "layout", "messages", "output", "pack", "rank", "request", "table", "window")
"""The tests that are asked, by their folder: those of what the core does."""

REFERENCE = r"[\[-]reference[\]-]"
"""What is in the name of a test that runs on the other backend."""


class Question(NamedTuple):
    """Which tests to run, with which mutant, up to how many seconds."""

    tests: list[str]
    mutant: int
    seconds: float


class Answer(NamedTuple):
    """The test that failed, whether it took too long, and the processor's seconds of all."""

    failed: str | None
    is_late: bool
    seconds: float


class Suite:
    """The tests of a checkout, collected once."""

    def __init__(self, checkout: Path, reached: Path, environment: dict[str, str]) -> None:
        self._reached = reached
        self._connection, other = Pipe()
        with other:
            told = {
                "PYTHONPATH": os.pathsep.join(
                    [str(checkout / "python"), str(Path(__file__).parent)]
                ),
                "HYPOTHESIS_PROFILE": "mutants",
                "MUTANTS_REACHED": str(reached),
                CONNECTION: str(other.fileno()),
            }
            command = [sys.executable, "-m", "pytest", "-q", "--numprocesses=0", "-m", "not slow"]
            command += [f"tests/python/{name}" for name in ROOMS]
            self._process = subprocess.Popen(
                [*command, "-p", "no:cacheprovider", "-p", Path(__file__).stem, "--timeout=0"],
                cwd=checkout,
                env={**environment, **told},
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        try:
            self.tests: list[str] = self._connection.recv()
        except EOFError:
            sys.exit(f"pytest ended with status {self._process.wait()}: {' '.join(command)}")

    def ask(self, question: Question) -> Answer:
        """Run tests until one fails."""
        self._connection.send(question)
        return self._connection.recv()

    def look(self, test: str) -> tuple[float, set[int]] | None:
        """Return how long a test takes, and the places that it reaches; None if it fails."""
        self._reached.write_bytes(b"")
        answer = self.ask(Question([test], 0, 30))
        if answer.failed or answer.is_late:
            return None
        return answer.seconds, {int(one) for one in self._reached.read_text("ascii").split()}

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.wait()


def bound() -> None:
    """Give this process and its programs 6 GiB of memory each, 256 MiB of a file, and no core."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def pytest_runtestloop(session) -> bool:  # noqa: ANN001
    """Answer questions instead of running the tests."""
    from budgeteer import _native  # noqa: PLC0415, for it is only in the process of the tests

    switch = ctypes.CDLL(_native.__file__)
    items = {item.nodeid: item for item in session.items if not re.search(REFERENCE, item.nodeid)}
    gc.freeze()  # so that the processes share what is there
    connection = Connection(int(os.environ[CONNECTION]))
    connection.send([*items])
    with suppress(EOFError):
        while True:
            question = connection.recv()
            output, its_output = os.pipe()
            child = os.fork()
            if child == 0:
                connection.close()
                _run(question, items, switch, its_output)
            os.close(its_output)
            connection.send(_answer(child, output, question.seconds))
            os.close(output)
    return True


class Failures:
    """Whether a test has failed, its setup and what it leaves behind included."""

    are_there = False

    def pytest_runtest_logreport(self, report) -> None:  # noqa: ANN001
        """Look at what a test did."""
        self.are_there |= report.failed


def _run(question: Question, items: dict, switch: ctypes.CDLL, output: int) -> None:
    """Run the tests of a question in this process, and end it."""
    status = 1
    try:
        os.setsid()
        bound()
        os.environ["MUTANT"] = str(question.mutant)
        switch.switch_on(question.mutant)
        failures = Failures()
        config = items[question.tests[0]].config
        config.pluginmanager.register(failures)
        tests = [items[name] for name in question.tests]
        # Behind the last nothing is torn down: the process ends.
        for item, following in pairwise([*tests, tests[-1]]):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failures.are_there:
                os.write(output, item.nodeid.encode())
                break
        else:
            status = 0
    finally:
        os._exit(status)


def _answer(child: int, output: int, seconds: float) -> Answer:
    """Wait for a process, and return what it found."""
    descriptor = os.pidfd_open(child)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    is_late = not poll.poll(seconds * 1000)
    os.close(descriptor)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # with what it started
    _, status, used = os.wait4(child, 0)
    failed = ""
    if not is_late and status:
        os.set_blocking(output, False)
        with suppress(BlockingIOError):
            failed = os.read(output, 1 << 16).decode()
        failed = failed or "a process"
    return Answer(failed or None, is_late, used.ru_utime + used.ru_stime)
