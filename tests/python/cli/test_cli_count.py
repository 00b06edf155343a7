"""``budgeteer count`` with a limit and of folders, and ``budgeteer cut``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import budgeteer

WORDS = ("count", "--counter", "words")


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """Stand beside a folder with two texts, an image and a text in Latin-1."""
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.md").write_text("one two three")
    (folder / "deep" / "a.txt").write_text("four five")
    (folder / "tea.png").write_bytes(b"\x89PNG\r\n\0\0")
    (folder / "z.txt").write_bytes(b"Gr\xfcn")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("docs/b.md", "-m", "words", "docs/deep/a.txt"),
        ("docs/b.md", "-mwords", "-o", "text", "docs/deep/a.txt"),
        ("docs/b.md", "--counter=words", "--", "docs/deep/a.txt"),
        ("--max", "9", "docs/b.md", "--counter", "words", "docs/deep/a.txt"),
    ],
)
def test_an_option_between_the_paths(run, docs, arguments):
    """Options stand anywhere among the paths."""
    expected = "3\tdocs/b.md\n2\tdocs/deep/a.txt\n5\ttotal\n"
    assert (0, expected, "") == run("count", *arguments)


@pytest.mark.parametrize("last", [["-m"], ["-o"], ["-m", "-o", "json"], ["-m", "--", "z.txt"]])
def test_a_value_that_is_missing(refused, docs, last):
    """An option takes no path for its value, wherever the paths stand."""
    name = {"-m": "-m/--counter", "-o": "-o/--output"}[last[0]]
    error = f"argument {name}: expected one argument"
    assert error == refused("count", "docs/b.md", *last)
    assert error == refused("count", "docs/b.md", "--max", "9", "docs/z.txt", *last)


# The gate.


def test_up_to_the_limit_is_status_0(run):
    """As many tokens as --max are no error, and nothing is said."""
    assert (0, "3\n", "") == run(*WORDS, "--max", 3, stdin="a b c")


def test_above_the_limit_is_status_1(run):
    """One token more is: the count goes out all the same, and one line says by how much."""
    expected = "budgeteer: 5 tokens are 2 more than --max 3\n"
    assert (1, "5\n", expected) == run(*WORDS, "--max", 3, stdin="a b c d e")


def test_the_limit_is_for_the_sum(run, docs):
    """No file alone is above it, but all together."""
    arguments = ("--max", 4, "docs/b.md", "docs/deep/a.txt")
    status, out, err = run(*WORDS, *arguments)
    assert (1, "budgeteer: 5 tokens are 1 more than --max 4\n") == (status, err)
    assert "3\tdocs/b.md\n2\tdocs/deep/a.txt\n5\ttotal\n" == out


def test_the_gate_in_a_process_of_its_own():
    """A shell sees the status."""
    command = [sys.executable, "-m", "budgeteer", "count", "--max", "1"]
    done = subprocess.run(
        command, input=b"green tea", capture_output=True, check=False, timeout=60
    )
    assert (1, b"2\n") == (done.returncode, done.stdout.replace(b"\r", b""))
    assert [b"budgeteer: 2 tokens are 1 more than --max 1"] == done.stderr.splitlines()


@pytest.mark.parametrize("limit", ["-1", "x", "1.5"])
def test_a_limit_that_is_none_is_refused(refused, limit):
    """It is a number from 0 on, and is looked at before any input."""
    assert "--max" in refused("count", "--max", limit)


# What can be counted, and what not.


def test_a_folder_is_counted_file_by_file(run, docs):
    """Its files come in the order of their paths; a text that is not read is status 2."""
    status, out, err = run(*WORDS, "docs")
    assert "3\tdocs/b.md\n2\tdocs/deep/a.txt\n5\ttotal\n" == out
    expected = (
        "budgeteer: warning: cannot read docs/tea.png: binary\n"
        "budgeteer: error: cannot read docs/z.txt: line 1: not UTF-8\n"
    )
    assert (2, expected) == (status, err)


@pytest.mark.parametrize(("limit", "status"), [(5, 0), (4, 1)])
def test_a_gate_passes_over_an_image_of_a_folder(run, docs, limit, status):
    """It is no text, so nothing is missing in the count; where it is named itself it is."""
    (docs / "z.txt").unlink()
    counts = "3\tdocs/b.md\n2\tdocs/deep/a.txt\n5\ttotal\n"
    warning = "budgeteer: warning: cannot read docs/tea.png: binary\n"
    above = "budgeteer: 5 tokens are 1 more than --max 4\n" if status else ""
    assert (status, counts, warning + above) == run(*WORDS, "--max", limit, "docs")
    named, _, said = run(*WORDS, "docs", "docs/tea.png")
    assert 2 == named
    assert said.startswith("budgeteer: error: cannot read docs/tea.png: binary")


def test_a_folder_of_images_alone_has_nothing_to_count(run, docs):
    """A gate that saw no text does not pass."""
    status, out, err = run(*WORDS, "docs", "-g", "*.png")
    assert (2, "") == (status, out)
    assert err.endswith(
        "\nbudgeteer: error: there is nothing to count in docs for --glob '*.png'\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [("count",), ("count", "docs/b.md"), ("count", "-", ""), ("ask", "docs/b.md", "a")],
)
def test_a_glob_without_a_folder_is_refused(refused, docs, arguments):
    """It would choose from nothing: a file that is named is read, whatever the glob."""
    message = refused(*arguments, "-g", "*.md", stdin="tea")
    assert "--glob is for the files of folders, and no PATH is a folder" == message


def test_a_glob_chooses_from_a_folder(run, docs):
    """What is not chosen is not looked at, so that the status is 0."""
    expected = "3\tdocs/b.md\n2\tdocs/deep/a.txt\n5\ttotal\n"
    assert (0, expected, "") == run(*WORDS, "docs", "--glob", "!*.png", "-g", "!/z.txt")
    assert (0, "3\tdocs/b.md\n", "") == run(*WORDS, "docs", "-g", "*.md")


@pytest.mark.parametrize(
    ("name", "problem"),
    [("gone", "No such file or directory"), ("tea.png", "binary"), ("z.txt", "line 1: not UTF-8")],
)
def test_what_cannot_be_counted_is_named_beside_the_rest(run, docs, name, problem):
    """One bad file costs no other its count; the status says that the sum is not all."""
    expected = f"budgeteer: error: cannot read docs/{name}: {problem}\n"
    assert (2, "3\tdocs/b.md\n", expected) == run(*WORDS, "docs/b.md", f"docs/{name}")
    assert (2, "", expected) == run(*WORDS, f"docs/{name}")


def test_standard_input_that_is_no_text(run, docs):
    """Standard input that cannot be read is named as a file is, beside the rest."""
    expected = "budgeteer: error: cannot read standard input: line 2: not UTF-8\n"
    arguments = (*WORDS, "docs/b.md", "-")
    assert (2, "3\tdocs/b.md\n", expected) == run(*arguments, stdin=b"tea\n\xff")
    assert (2, "", expected) == run(*WORDS, stdin=b"tea\n\xff")


def test_an_empty_path_is_no_folder(run, docs):
    """A variable that a script forgot to set does not count the folder where it stands."""
    expected = "budgeteer: error: cannot read '': No such file or directory\n"
    assert (2, "", expected) == run("count", "")
    assert (2, "3\tdocs/b.md\n", expected) == run(*WORDS, "", "docs/b.md")


def test_above_the_limit_goes_before_incomplete(run, docs):
    """Where the part that was counted is too much already, that is the status."""
    status, out, err = run(*WORDS, "--max", 1, "docs")
    assert (1, 3) == (status, len(err.splitlines()))
    assert out.endswith("5\ttotal\n")


def test_many_that_cannot_be_counted_are_one_line(run, docs):
    """The first of them have a name, two where they are passed over; JSON has all."""
    for i in range(30):
        (docs / f"{i:02}.png").write_bytes(b"\0")
        (docs / f"{i:02}.txt").write_bytes(b"\xff")
    _, out, err = run(*WORDS, "docs", "-o", "json")
    warning, error = err.splitlines()
    assert warning.endswith("cannot read docs/00.png: binary; docs/01.png: binary; and 29 more")
    assert error.endswith("docs/19.txt: line 1: not UTF-8; and 11 more")
    assert 62 == len(json.loads(out)["skipped"])


@pytest.mark.parametrize("options", [(), ("--max", 3)])
def test_nothing_to_count_is_no_pass(refused, docs, options):
    """A gate that was pointed at no file says so, with the folder and the globs."""
    (docs / "none").mkdir()
    assert "there is nothing to count in docs/none" == refused("count", *options, "docs/none")
    expected = "there is nothing to count in docs, docs/deep for --glob '*.zzz' --glob '!a'"
    arguments = ("docs", "docs/deep", "-g", "*.zzz", "-g", "!a")
    assert expected == refused("count", *options, *arguments)


def test_nothing_to_count_is_json_all_the_same(run, docs):
    """The document has no files, and the status is that of the error."""
    status, out, err = run("count", "docs", "-g", "*.zzz", "-o", "json")
    assert (2, "budgeteer: error: there is nothing to count in docs for --glob '*.zzz'\n") == (
        status,
        err,
    )
    assert (0, []) == (json.loads(out)["total_tokens"], json.loads(out)["files"])


def test_an_empty_file_has_no_tokens(run, tmp_path):
    """It is an answer."""
    (tmp_path / "a.txt").write_text("")
    assert (0, f"0\t{tmp_path / 'a.txt'}\n", "") == run("count", "--max", 0, tmp_path)


def test_count_answers_in_json(run, docs):
    """The document has the sum, the limit, and each file."""
    status, out, _ = run("count", "--max", 100, "-o", "json", "docs")
    counter = budgeteer.get_counter("o200k_base")
    counts = [counter.count("one two three"), counter.count("four five")]
    assert 2 == status
    assert {
        "total_tokens": sum(counts),
        "max_tokens": 100,
        "counter": "o200k_base",
        "is_exact": True,
        "files": [
            {"path": "docs/b.md", "tokens": counts[0]},
            {"path": "docs/deep/a.txt", "tokens": counts[1]},
        ],
        "skipped": [
            {"path": "docs/tea.png", "reason": "binary"},
            {"path": "docs/z.txt", "reason": "line 1: not UTF-8"},
        ],
    } == json.loads(out)
    answer = json.loads(run(*WORDS, "-o", "json", stdin="a b")[1])
    assert (2, None, False) == (answer["total_tokens"], answer["max_tokens"], answer["is_exact"])
    assert [{"path": "standard input", "tokens": 2}] == answer["files"]


def test_standard_input_is_read_once(refused):
    """Named twice it would be empty the second time."""
    for command in ("count",), ("ask", "-", "-", "tea"):
        arguments = command if len(command) > 1 else (*command, "-", "-")
        assert "only one PATH may be standard input" == refused(*arguments, stdin="tea")


# cut


@pytest.mark.parametrize("keep", ["start", "end", "both"])
@pytest.mark.parametrize("counter", ["o200k_base", "gpt-4", "words"])
def test_cut_is_truncate(run, keep, counter):
    """The answer is what the counter's truncate returns, and fits."""
    text = "Green tea is mild. Black tea is strong. " * 20
    arguments = ("cut", "-n", 20, "--keep", keep, "-m", counter, "--marker", " [...] ")
    status, out, err = run(*arguments, stdin=text)
    found = budgeteer.get_counter(counter)
    assert (0, "") == (status, err)
    assert found.truncate(text, 20, keep=keep, marker=" [...] ") == out
    assert " [...] " in out
    assert found.count(out) <= 20


def test_cut_keeps_the_start_of_a_file(run, tmp_path):
    """Without options but the number, the start stays, as Packer's default counts."""
    path = tmp_path / "a.txt"
    path.write_text("Green tea is mild.")
    assert (0, "Green tea", "") == run("cut", "-n", 2, path)
    assert (0, "Green tea is mild.", "") == run("cut", "--max-tokens", 20, path)
    assert (0, "", "") == run("cut", "-n", 0, path)


def test_cut_marks_what_is_missing_in_the_middle(run):
    """Two ends never read as a sentence that nobody wrote, unless that is asked for."""
    text = "Green tea is mild, black tea is strong."
    arguments = ("cut", "-n", 7, "--keep", "both")
    assert (0, "Green tea is [...]  strong.", "") == run(*arguments, stdin=text)
    assert (0, "Green tea is/ is strong.", "") == run(*arguments, "--marker", "/", stdin=text)
    assert (0, "Green tea is mild is strong.", "") == run(*arguments, "--marker", "", stdin=text)
    for keep in ("start", "end"):
        out = run("cut", "-n", 4, "--keep", keep, stdin=text)[1]
        assert out in text


@pytest.mark.parametrize("limit", [0, 1, 2])
@pytest.mark.parametrize("keep", ["start", "end", "both"])
def test_a_marker_that_leaves_no_text_is_refused(run, refused, limit, keep):
    """An empty answer would be taken for an empty text; one that fits needs no marker."""
    arguments = ("cut", "-n", limit, "--keep", keep, "--marker", " [...] ")
    expected = (
        "the marker ' [...] ' has 2 tokens, and no text fits beside it into the "
        f"{limit} of -n: give a larger -n, or --marker ''"
    )
    assert expected == refused(*arguments, stdin="Green tea is mild.")
    assert (0, "", "") == run(*arguments, stdin="")
    assert (0, "tea", "") == run("cut", "-n", 1, "--keep", "both", stdin="tea")


def test_cut_ends_the_line_at_a_terminal(run, monkeypatch):
    """As with pack, only a person gets a line end."""
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert "tea\n" == run("cut", "-n", 5, stdin="tea")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "-1"], "max_tokens must be from 0 to "),
        (
            ["-n", "x"],
            f"argument -n/--max-tokens: must be a whole number from 0 to {2**63 - 1}, not 'x'",
        ),
        (["-n", "5", "--keep", "strat"], "argument --keep: must be one of 'start', 'end', 'both'"),
        (["-n", "5", "-m", "wrods"], "argument -m/--counter: counter must be one of "),
        (["-n", "5", str(Path("no", "such"))], "cannot read "),
    ],
)
def test_cut_refuses(refused, arguments, message):
    """An error is one line."""
    assert message in refused("cut", *arguments, stdin="tea")
