"""``budgeteer completion``: its scripts are read by a shell, and complete."""

import shutil
import subprocess
import sys

import pytest

BASH = """
source script.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
$(complete -p budgeteer | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def completed(run, tmp_path):
    """Complete the last of some words, in a bash that has read the script."""
    if shutil.which("bash") is None:
        pytest.skip("has no bash")
    status, out, err = run("completion", "bash")
    assert (0, "") == (status, err)
    (tmp_path / "script.bash").write_text(out)
    (tmp_path / "chunks.jsonl").write_text("")

    def completed(*words):
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", "budgeteer", *words],
            capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
        )  # fmt: skip
        assert (0, "") == (done.returncode, done.stderr)
        return done.stdout.split()

    return completed


def test_bash_completes_commands(completed):
    """A letter is enough for those that begin with it; without one there are all."""
    assert {"compare", "completion", "count", "cut"} == {*completed("c")}
    assert {"ask", "pack", "query", "models"} < {*completed("")}


def test_bash_completes_options(completed):
    """Each command has its own."""
    assert ["--max-tokens", "--max-chunks"] == completed("ask", "--max")
    assert ["--max"] == completed("count", "--max")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pack", "--overflow", "truncate_e"], ["truncate_end"]),
        (["ask", "--ranking", ""], ["lexical", "bm25", "keyword", "recency", "input"]),
        (["count", "-m", "o200"], ["o200k_base"]),
        (["cut", "--counter", "gpt-4o-m"], ["gpt-4o-mini"]),
        (["completion", "b"], ["bash"]),
        (["pack", "--input", "chu"], ["chunks.jsonl"]),
        (["pack", "-o", "mark"], ["markdown"]),
        (["pack", "-o", "chu"], ["chunks.jsonl"]),
        (["count", "chu"], ["chunks.jsonl"]),
        (["pack", "--notice", "--un"], ["--units"]),
    ],
    ids=str,
)
def test_bash_completes_values(completed, words, expected):
    """Choices, counters and models, and files where files are meant."""
    assert expected == completed(*words)


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script(run, tmp_path, shell):
    """It names the commands, and is read without an error where the shell is there."""
    status, out, err = run("completion", shell)
    assert (0, "") == (status, err)
    assert all(command in out for command in ("ask", "completion", "inspect"))
    if shell == "zsh" and shutil.which("zsh") is not None:
        (tmp_path / "_budgeteer").write_text(out)
        subprocess.run(["zsh", "-n", tmp_path / "_budgeteer"], check=True, timeout=60)


def test_the_shell_is_one_of_some(refused):
    """Another is refused, with a hint."""
    said = refused("completion", "bsh")
    assert "must be one of 'bash', 'zsh', 'tcsh', not 'bsh'; did you mean 'bash'?" in said


def test_completion_needs_the_extra(refused, monkeypatch):
    """Without shtab the message says what to install."""
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "completion needs shtab: pip install 'budgeteer[cli]'" == refused("completion", "bash")
