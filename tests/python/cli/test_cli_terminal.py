"""The program at a terminal: colours, and a bar for what takes longer than a second."""

import json
import os
import select
import subprocess
import sys
import threading
import time

import embedding_server
import pytest
from support import ONLY_REFERENCE

pty = pytest.importorskip("pty", reason="has no terminals")

pytestmark = pytest.mark.skipif(ONLY_REFERENCE, reason="its processes count exactly, offline")

ESCAPE = b"\x1b"
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("NO_COLOR", "FORCE_COLOR", "TERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
}
TERMINAL = {**PLAIN, "TERM": "xterm-256color", "COLUMNS": "80"}


class Terminal:
    """The program with standard error, or all of its output, at a terminal of its own."""

    def __init__(self, *arguments, env=TERMINAL, code=None, stdout=subprocess.PIPE, stdin=None):
        self.end, end = pty.openpty()
        program = ["-m", "budgeteer"] if code is None else ["-c", code]
        self.process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=end if stdout is None else stdout, stderr=end, env=env,
        )  # fmt: skip
        os.close(end)
        self.seen = b""

    def wait_for(self, words):
        """Read until *words* have been seen."""
        while words not in self.seen:
            assert self._read(), self.seen

    def finish(self):
        """Return the status, what came to a pipe and what the terminal saw."""
        while self._read():
            pass
        out = self.process.stdout.read() if self.process.stdout else b""
        status = self.process.wait(60)
        if self.process.stdout:
            self.process.stdout.close()
        os.close(self.end)
        return status, out, self.seen

    def _read(self):
        if not select.select([self.end], [], [], 60)[0]:
            self.process.kill()
            pytest.fail(f"nothing came after {self.seen}")
        try:
            more = os.read(self.end, 65536)
        except OSError:  # the other end is closed
            return b""
        self.seen += more
        return more


@pytest.fixture
def pipe(tmp_path):
    """A file whose text comes when *write* is called, and not before."""
    path = tmp_path / "slow.txt"
    os.mkfifo(path)

    def write(text=b"Green tea is mild."):
        path.write_bytes(text)

    return path, write


# The bar.


@pytest.mark.parametrize(
    ("arguments", "stage", "answer"),
    [
        (["ask", "slow.txt", "tea"], b"Reading files", b"Green tea is mild."),
        (["count", "slow.txt"], b"Counting files", b"5\tslow.txt\n"),
    ],
)
def test_what_takes_long_has_a_bar(pipe, monkeypatch, arguments, stage, answer):
    """It is shown while the program waits for a file, and its line is erased at the end."""
    path, write = pipe
    monkeypatch.chdir(path.parent)
    terminal = Terminal(*arguments)
    terminal.wait_for(stage)
    assert terminal.process.poll() is None
    write()
    status, out, seen = terminal.finish()
    assert (0, answer) == (status, out)
    assert b"\x1b[2K" in seen.rpartition(stage)[2]


def test_the_bar_counts(pipe, tmp_path):
    """It says how many files have been read."""
    path, write = pipe
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("tea")
    files = [tmp_path / f"{i}.txt" for i in range(3)]
    terminal = Terminal("count", *files, path)
    terminal.wait_for(b"Counting files: 3")
    write()
    assert 0 == terminal.finish()[0]


def test_embedding_has_a_bar(tmp_path):
    """A query whose texts are embedded says so while the endpoint takes its time."""
    gate = threading.Event()

    def behave(handler, question):
        gate.wait(60)
        embedding_server.well(handler, question)

    with embedding_server.Endpoint() as endpoint:
        endpoint.always = behave
        settings = f"{{url: '{endpoint.url}', api_key_env: null, cache_dir: null}}"
        path = tmp_path / "c.yaml"
        path.write_text(
            f"budget: {{ranking: embedding, embedding: {settings}}}\n"
            "sources: [{type: inline, text: Green tea.}]"
        )
        terminal = Terminal("query", "-c", path, "-q", "tea")
        try:
            terminal.wait_for(b"Embedding and packing")
        finally:
            gate.set()
        status, out, _ = terminal.finish()
    assert 0 == status
    assert out.endswith(b"\n\nGreen tea.\n")


def test_what_is_quick_has_none(tmp_path):
    """Nothing is written to the terminal before the delay, which is a second, is over."""
    (tmp_path / "a.txt").write_text("Green tea.")
    code = (
        "import sys, budgeteer.cli as cli, budgeteer.cli._progress as progress\n"
        "assert progress._DELAY == 1; progress._DELAY = 60\n"  # what else runs may take longer
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    terminal = Terminal("ask", tmp_path, "tea", code=code)
    assert (0, b"Green tea.", b"") == terminal.finish()


def test_a_pipe_sees_no_bar(pipe):
    """However long it takes: neither of the streams has an escape code."""
    path, write = pipe
    for environment in (PLAIN, {**TERMINAL, "FORCE_COLOR": "1"}):
        with subprocess.Popen(
            [sys.executable, "-m", "budgeteer", "ask", path, "tea"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        ) as process:  # fmt: skip
            time.sleep(2.5)
            write()
            assert (b"Green tea is mild.", b"") == process.communicate(timeout=60)


def test_the_bar_needs_the_extra(pipe):
    """Without rich there is no bar, and no error."""
    path, write = pipe
    code = (
        "import sys; sys.modules['rich'] = None\n"
        "from budgeteer.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    terminal = Terminal("ask", path, "tea", code=code)
    time.sleep(2.5)
    write()
    assert (0, b"Green tea is mild.", b"") == terminal.finish()


def test_nobody_is_disturbed_at_the_keyboard():
    """Who types the text to count sees no bar between the lines."""
    end, other = pty.openpty()
    terminal = Terminal("count", stdin=other)
    os.close(other)
    time.sleep(2.5)
    os.write(end, b"green tea\n\x04")
    assert (0, b"3\n", b"") == terminal.finish()
    os.close(end)


def test_an_interrupt_takes_the_bar_away(pipe):
    """Ctrl-C is status 130, and the cursor is shown again."""
    path, _ = pipe
    terminal = Terminal("count", path)
    terminal.wait_for(b"Counting files")
    terminal.process.send_signal(2)
    status, out, seen = terminal.finish()
    assert (130, b"") == (status, out)
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")
    assert b"Traceback" not in seen


# Colours.


@pytest.mark.parametrize(
    ("variables", "has_colours"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
    ids=str,
)
def test_errors_have_colours_at_a_terminal(variables, has_colours):
    """The mark of an error alone; NO_COLOR goes before all else."""
    status, out, seen = Terminal("ask", "gone", "tea", env={**TERMINAL, **variables}).finish()
    assert (2, b"") == (status, out)
    mark = b"budgeteer: error:"
    expected = b"\x1b[1;31m" + mark + b"\x1b[0m" if has_colours else mark
    assert seen.startswith(expected + b" cannot read 'gone'")


def test_warnings_have_a_colour_of_their_own(tmp_path):
    """What is said beside an answer is not red."""
    (tmp_path / "a.txt").write_text("Green tea.")
    (tmp_path / "b.png").write_bytes(b"\0")
    status, out, seen = Terminal("ask", tmp_path, "tea").finish()
    assert (0, b"Green tea.") == (status, out)
    assert b"\x1b[1;33mbudgeteer: warning:\x1b[0m cannot read " in seen


@pytest.mark.parametrize("forced", [False, True])
def test_pipes_have_colours_if_asked_for(forced):
    """FORCE_COLOR is for those who read a pipe as a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "budgeteer", "ask", "gone", "tea"],
        capture_output=True, check=False, timeout=60,
        env={**PLAIN, "FORCE_COLOR": "1" if forced else ""},
    )  # fmt: skip
    assert forced == (ESCAPE in done.stderr)
    assert ESCAPE not in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["pack", "-q", "tea"]])
def test_no_color_is_for_all_output(arguments):
    """Whatever Python's argparse does at a terminal."""
    read, write = os.pipe()
    os.write(write, json.dumps(["tea"]).encode())
    os.close(write)
    env = {**TERMINAL, "NO_COLOR": "1"}
    status, _, seen = Terminal(*arguments, env=env, stdout=None, stdin=read).finish()
    os.close(read)
    assert 0 == status
    assert seen
    assert ESCAPE not in seen
