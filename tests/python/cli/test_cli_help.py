"""The help of the program: its examples run as they stand."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

COMMANDS = (
    "ask",
    "query",
    "pack",
    "compare",
    "gate",
    "count",
    "cut",
    "models",
    "inspect",
    "schema",
    "completion",
)
PACKING = '{"text": "", "total_tokens": 0, "budget_tokens": 9, "is_exact": true, "kept": [],'
PACKING += ' "dropped": []}'
FILES = {
    "docs/handbook.md": "# Remote work\n\nThe remote work policy asks for a VPN.\n",
    "src/counter.py": "def count(text):\n    # Here tokens are counted.\n",
    "README.md": "Lunch is at noon.\n",
    "prompt.md": "What is the remote work policy?\n",
    "log.txt": "A line of a log, and no word of it matters.\n" * 200,
    "requests.jsonl": '{"id": 7, "query": "tea", "chunks": ["Green tea.", "Coffee."]}\n',
    "chunks.jsonl": '"Green tea."\n"Coffee."\n',
    "messages.json": '[{"role": "user", "content": "What is the remote work policy?"}]',
    "bundle.json": '{"query": "tea", '
    '"artifacts": [{"id": "a", "kind": "doc", "content": "Green tea."}]}',
    "before.json": PACKING,
    "after.json": PACKING,
    "budgeteer.yaml": "budget: {max_tokens: 100}\n"
    "sources:\n  - {type: directory, path: docs, name: docs}\n",
}
"""What the examples are about."""


def examples(help_text):
    """Return the command lines at the end of a help text."""
    _, _, lines = help_text.partition("\nexamples:\n")
    return [line.strip() for line in lines.splitlines()]


@pytest.fixture
def shell(tmp_path):
    """Run a line in a shell that has the program, beside the files above."""
    if shutil.which("sh") is None:
        pytest.skip("has no shell")
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    program = f'budgeteer() {{ {shlex.quote(sys.executable)} -m budgeteer "$@"; }}\n'

    def shell(line):
        return subprocess.run(
            ["sh", "-c", program + line],
            capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80"},
        )  # fmt: skip

    return shell


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_help_ends_with_two_examples_that_run(run, shell, command):
    """Each is a whole line for a shell, and answers."""
    status, out, err = run(*command, "--help")
    assert (0, "") == (status, err)
    found = examples(out)
    assert 2 == len(found)
    for line in found:
        assert f"budgeteer {' '.join(command)}" in line
        done = shell(line)
        assert 0 == done.returncode, done.stderr
        assert done.stdout or "> " in line or " -o packed.jsonl" in line


def test_every_command_is_tried(run):
    """The list of commands above is that of the program."""
    help_text = run("--help")[1].partition("COMMAND\n")[2]
    listed = re.findall(r"^    (\w+)\b", help_text, re.MULTILINE)
    assert {*COMMANDS, "mcp"} == {*listed}  # `mcp` serves, and is tried with its package


def test_help_has_no_colours_in_a_pipe(shell):
    """What is read by a program has no escapes."""
    assert "\x1b" not in shell("budgeteer ask --help").stdout
