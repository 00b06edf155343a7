"""The command line as a program: its streams, its status, and how it ends."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_cli_query import EXAMPLE, POLICY

import budgeteer
from budgeteer import InternalError
from budgeteer.cli import _streams, main

NEEDS_FILES = pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no /dev/full")


def process(*arguments, **options):
    """Run the program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "budgeteer", *arguments],
        capture_output=True, check=False, timeout=60, **options,
    )  # fmt: skip


def test_importing_it_is_light():
    """No package but our own is imported before it is needed."""
    code = (
        "import sys, budgeteer.cli as cli; cli.main(['--version']); "
        "sys.exit(bool({'yaml', 'numpy', 'pathspec', 'rich', 'shtab'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_an_interrupt_is_status_130(run, monkeypatch):
    """Ctrl-C ends it without a traceback."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_streams, "read", interrupted)
    assert (130, "", "") == run("count", "-")


@pytest.mark.parametrize("error", [InternalError("a defect"), ZeroDivisionError()])
def test_a_defect_is_not_hidden(monkeypatch, error):
    """What is no error of the input is raised, with its traceback."""

    def broken(*_):
        raise error

    monkeypatch.setattr(_streams, "read", broken)
    with pytest.raises(type(error)):
        main(["count", "-"])


class Stream:
    """A standard output whose bytes go where *write* puts them."""

    encoding = "utf-8"

    def __init__(self, write):
        self.buffer = self
        self.write = write

    def flush(self):
        pass


def test_output_that_is_taken_in_parts_goes_out_whole(monkeypatch):
    """An unbuffered stream may take less than it is given, or nothing for now."""
    taken = []

    def write(data):
        if len(taken) % 2:
            taken.append(b"")
            return None
        taken.append(bytes(data[:7]))
        return len(taken[-1])

    monkeypatch.setattr(sys, "stdout", Stream(write))
    assert 0 == main(["--version"])
    assert f"budgeteer {budgeteer.__version__}\n".encode() == b"".join(taken)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (
            OSError(errno.ENOSPC, "No space left"),
            2,
            "budgeteer: error: cannot write the output: No space left\n",
        ),
    ],
)
def test_a_failed_write_is_quiet_or_one_line(monkeypatch, capsys, error, status, message):
    """Nobody reading is no error worth a word; a full disk is."""

    def write(_):
        raise error

    monkeypatch.setattr(sys, "stdout", Stream(write))
    assert status == main(["--version"])
    assert message == capsys.readouterr().err


def test_closed_streams_are_one_line(monkeypatch, capsys):
    """A process started without standard streams does not fall over them."""
    monkeypatch.setattr(sys, "stdin", None)
    assert 2 == main(["count"])
    assert "budgeteer: error: standard input is closed\n" == capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert 2 == main(["--version"])
    expected = "budgeteer: error: cannot write the output: standard output is closed\n"
    assert expected == capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert 2 == main(["--version"])


# In a process of its own.


def test_the_module_runs():
    """``python -m budgeteer`` is the program; its output is UTF-8 wherever it runs."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("query", "-c", EXAMPLE, "-t", POLICY, env=environment)
    assert (0, b"") == (done.returncode, done.stderr)
    assert b"  [handbook] Remote Work Policy: score=17.02, tokens=64" in done.stdout
    arguments = ("pack", "--query", "", "--max-tokens", "9")
    done = process(*arguments, input='["Grün 茶"]'.encode(), env=environment)
    assert (0, "Grün 茶".encode(), b"") == (done.returncode, done.stdout, done.stderr)


def test_the_program_fails_with_one_line():
    """A failure is status 2, one line on standard error and nothing on standard output."""
    done = process("pack", "--query", "", "--max-tokens", "9", input=b'["tea", 5]')
    assert (2, b"") == (done.returncode, done.stdout)
    expected = (
        "budgeteer: error: standard input: chunks[1] must be a str or a JSON object, not int"
    )
    assert [expected] == done.stderr.decode().splitlines()


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_traceback(unbuffered):
    """Where the reader closes the pipe, the program ends quietly."""
    data = json.dumps(["tea " * 100_000]).encode()
    with subprocess.Popen(
        [sys.executable, "-m", "budgeteer", "pack", "--query", "", "--max-tokens", "1000000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as child:
        child.stdout.close()
        child.stdin.write(data)
        child.stdin.close()
        assert b"" == child.stderr.read()
        assert 141 == child.wait(60)


@NEEDS_FILES
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("pack", "-q", "tea", "--explain"), 0),
        (("pack", "-q", "tea", "-n", "0"), 1),
        (("count", "no such file"), 2),
    ],
)
def test_the_status_is_the_same_where_nobody_reads_errors(arguments, status):
    """What standard error cannot take is lost, and no reason for another status."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "budgeteer", *arguments],
            input=b'["tea"]', stdout=subprocess.PIPE, stderr=full, check=False, timeout=60,
        )  # fmt: skip
    assert (status, b"tea" * (status == 0)) == (done.returncode, done.stdout)


@NEEDS_FILES
def test_a_full_disk_is_one_line():
    """Output that cannot be written is an error, said once."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "budgeteer", "--version"],
            stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert 2 == done.returncode
    expected = b"budgeteer: error: cannot write the output: No space left on device"
    assert [expected] == done.stderr.splitlines()


@pytest.mark.skipif(os.name == "nt", reason="signals differ there")
def test_ctrl_c_ends_it_quietly():
    """An interrupt while it waits for input is status 130, without a traceback."""
    code = (
        "import signal, sys, budgeteer.cli as cli\n"
        "def once(*_):\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, once)\n"
        "sys.exit(cli.main(['count']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        child.stdin.write(b" " * 1_000_000)  # more than a pipe holds: it is reading
        child.stdin.flush()
        # One that comes between Python's look for signals and the read does not end the read.
        for _ in range(600):
            child.send_signal(signal.SIGINT)
            time.sleep(0.1)
            if child.poll() is not None:
                break
        assert 130 == child.wait(1)
        assert (b"", b"") == (child.stdout.read(), child.stderr.read())


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("BUDGETEER_BACKEND", "nativ", "must be 'native' or 'reference', not 'nativ'"),
        ("BUDGETEER_NUM_THREADS", "0", "must be a number from 1 on, not '0'"),
        ("BUDGETEER_COUNT_CACHE_MB", "x\n", "must be a number from 0 on, not 'x\\n'"),
    ],
)
def test_a_bad_variable_is_one_line(variable, value, message):
    """A variable that the backend refuses when it is loaded is an error like any other."""
    done = process("count", "-", input=b"tea", env={**os.environ, variable: value})
    assert (2, b"") == (done.returncode, done.stdout)
    assert [f"budgeteer: error: {variable} {message}"] == done.stderr.decode().splitlines()


def test_another_failed_import_is_not_hidden(monkeypatch):
    """A package that is broken keeps its traceback."""
    monkeypatch.setitem(sys.modules, "budgeteer.cli._main", None)
    with pytest.raises(ImportError):
        main(["--version"])
