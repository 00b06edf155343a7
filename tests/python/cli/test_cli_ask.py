"""``budgeteer ask``: a question, a folder, and what of it fits."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import budgeteer
from budgeteer import Chunk, Packer
from budgeteer.ranking import Lexical

QUESTION = "What is the remote work policy?"
GUIDE = """\
Welcome.

# Handbook

## Remote work

The remote work policy asks for a VPN.

## Lunch

Lunch is at noon.
"""


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """Stand beside a folder of texts."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "notes.txt").write_text("Our policy on tea.\n\nTea is free.\n")
    monkeypatch.chdir(tmp_path)
    return folder


# The context.


def test_ask_prints_the_context(run, docs):
    """Without a configuration: what shares words with the question, best first, and no more."""
    expected = (
        "# Handbook\n\n## Remote work\n\nThe remote work policy asks for a VPN.\n\n"
        "Our policy on tea.\n\nTea is free."
    )
    assert (0, expected, "") == run("ask", "docs", QUESTION)


@pytest.mark.parametrize("output", ["text", "markdown", "xml"])
@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4"])
def test_ask_packs_as_packer_does(run, docs, output, name):
    """The chunks are those of the files, with path, line and headings; the law holds."""
    chunks = [
        Chunk("Welcome.", id="guide.md:1", source="guide.md"),
        Chunk(
            "# Handbook\n\n## Remote work\n\nThe remote work policy asks for a VPN.",
            id="guide.md:3", source="guide.md", title="Handbook > Remote work",
        ),
        Chunk(
            "## Lunch\n\nLunch is at noon.",
            id="guide.md:9", source="guide.md", title="Handbook > Lunch",
        ),
        Chunk(
            "Our policy on tea.\n\nTea is free.", id="notes.txt:1", source="notes.txt"
        ),
    ]  # fmt: skip
    template = "plain" if output == "text" else output
    for budget in (30, 60, 8_000):
        options = {"template": template, "min_score": 1e-300, "ranking": Lexical(feedback=False)}
        packer = Packer(budget, counter=name, **options)
        expected = packer.pack(QUESTION, chunks)
        status, out, _ = run("ask", "docs", QUESTION, "-n", budget, "-m", name, "-o", output)
        assert expected.text == out
        assert status == (not expected.kept)
        assert budgeteer.get_counter(name).count(out) <= budget


def test_feedback_is_on_request(run, docs):
    """It brings in what shares no word with the question: here a heading of the best part."""
    plain = run("ask", "docs", QUESTION)[1]
    assert plain == run("ask", "docs", QUESTION, "--no-feedback")[1]
    assert "Lunch" not in plain
    assert (
        f"{plain}\n\n## Lunch\n\nLunch is at noon."
        == run("ask", "docs", QUESTION, "--feedback")[1]
    )


def test_ask_answers_in_json(run, docs):
    """The document is that of the packing; each chunk has its place."""
    status, out, err = run("ask", "docs", QUESTION, "-o", "json", "-n", 100)
    assert (0, "") == (status, err)
    answer = json.loads(out)
    assert {"text", "total_tokens", "budget_tokens", "is_exact", "kept"} < {*answer}
    assert (100, True) == (answer["budget_tokens"], answer["is_exact"])
    assert run("ask", "docs", QUESTION)[1] == answer["text"]
    assert [
        ("guide.md:3", "guide.md", "Handbook > Remote work"), ("notes.txt:1", "notes.txt", "")
    ] == [(kept["id"], kept["source"], kept["title"]) for kept in answer["kept"]]  # fmt: skip
    assert {("guide.md:1", "out_of_scope"), ("guide.md:9", "out_of_scope")} == {
        (dropped["id"], dropped["reason"]) for dropped in answer["dropped"]
    }


def test_ask_explains(run, docs):
    """What became of the parts goes to standard error, the context stays as it is."""
    _, out, err = run("ask", "docs", QUESTION, "--explain")
    assert run("ask", "docs", QUESTION)[1] == out
    lines = err.splitlines()
    assert lines[0].startswith("Kept 2 of 4 chunks with ")
    assert "Dropped 2: 2 out_of_scope." == lines[1]


def test_ask_ends_the_line_at_a_terminal(run, docs, monkeypatch):
    """A person at a terminal gets the prompt back on a line of its own."""
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert run("ask", "docs", "tea")[1].endswith("Tea is free.\n")


def test_the_order_of_the_arguments_is_free(run, docs):
    """Options stand before, between or behind."""
    expected = run("ask", "docs", QUESTION, "-n", 30)
    assert expected == run("ask", "-n", 30, "docs", QUESTION)
    assert expected == run("ask", "docs", "-n", 30, QUESTION)


def test_several_paths_are_told_apart(run, docs, tmp_path):
    """Where more than a folder is named, sources begin with what was named."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "guide.md").write_text("A policy of others.")
    _, out, _ = run("ask", "docs", "other", "docs/notes.txt", "policy", "-o", "json")
    found = {kept["source"] for kept in json.loads(out)["kept"]}
    assert {"docs/guide.md", "docs/notes.txt", "other/guide.md"} == found
    _, out, _ = run("ask", "docs/notes.txt", "tea", "-o", "json")
    assert ["docs/notes.txt:1"] == [kept["id"] for kept in json.loads(out)["kept"]]


def test_large_files_are_split(run, docs):
    """A chunk has the line at which it starts, and fits beside others."""
    lines = [f"Line {i} says nothing.\n" for i in range(1, 1001)]
    lines[700] = "The secret is a teapot.\n"
    (docs / "long.log").write_text("".join(lines))
    _, out, _ = run("ask", "docs", "Where is the teapot?", "-n", 500, "-o", "json")
    (kept,) = json.loads(out)["kept"]
    assert kept["token_count"] <= 250
    source, _, line = kept["id"].partition(":")
    first = lines.index(kept["text"].split("\n")[0] + "\n")
    assert ("long.log", first + 1) == (source, int(line))
    assert "teapot" in kept["text"]


@pytest.mark.parametrize("budget", [20, 30, 40, 63, 80, 127])
@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4", "words"])
def test_a_small_budget_holds_a_part(run, docs, budget, name):
    """Parts are as small as the budget asks for, so that prose has some that fit."""
    sentence = "Every office has a kettle, and the green tea beside it is free for all. "
    (docs / "long.txt").write_text(sentence * 40)
    lines = [f"{line}\n" for line in [sentence.strip()] * 40]
    (docs / "lines.txt").write_text("".join(lines))
    for file in ("long.txt", "lines.txt"):
        status, out, err = run("ask", f"docs/{file}", "green tea", "-n", budget, "-m", name)
        assert (0, "") == (status, err)
        assert "green tea" in out
        assert budgeteer.get_counter(name).count(out) <= budget


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_small_section_that_fits_is_not_split(run, output):
    """Its end, cut off under the same title, would rank above the beginning that it ends."""
    folder = Path(__file__).parents[3] / "examples" / "handbook"
    for budget in (48, 60, 64):
        arguments = ("ask", folder, "When is the office open?", "-n", budget, "-o", output)
        _, out, _ = run(*arguments)
        text = json.loads(out)["text"] if output == "json" else out
        assert text.startswith("## Office Hours\n\nThe office is open from 7:00 to 20:00, Monday ")
        assert "17:00;\nafter that your badge opens the side entrance." in text


@pytest.mark.parametrize("output", ["json", "xml"])
def test_ids_of_a_long_line_are_unique(run, docs, output):
    """Its first part has the number of the line, those that follow count on."""
    (docs / "long.txt").write_text("Tea.\n" + "The tea is green. " * 100)
    options = ("--dedupe", "none", "--order", "document", "-n", 600, "-o", output)
    _, out, _ = run("ask", "docs/long.txt", "docs/notes.txt", "tea", *options)
    if output == "json":
        answer = json.loads(out)
        found = [chunk["id"] for part in ("kept", "dropped") for chunk in answer[part]]
    else:
        found = re.findall(r'<document id="(.*?)"', out)
    assert len(found) >= 3
    assert len({*found}) == len(found)
    assert {"docs/long.txt:2", "docs/long.txt:2.2", "docs/notes.txt:1"} <= {*found}


def test_a_file_named_twice_has_ids_of_its_own(run, docs):
    """Its second copy is dropped, and can be told from the first."""
    _, out, _ = run("ask", "docs/notes.txt", "docs/notes.txt", "tea", "-o", "json")
    answer = json.loads(out)
    assert ["docs/notes.txt:1"] == [kept["id"] for kept in answer["kept"]]
    assert ["docs/notes.txt:1.2"] == [dropped["id"] for dropped in answer["dropped"]]


def test_ask_reads_standard_input(run, docs):
    """As count does, beside files or alone."""
    text = "# Beverages\n\nGreen tea is free.\n"
    status, out, err = run("ask", "-", "tea", "-o", "json", stdin=text)
    assert (0, "") == (status, err)
    (kept,) = json.loads(out)["kept"]
    assert ("standard input:1", "standard input") == (kept["id"], kept["source"])
    assert text.strip() == kept["text"]
    out = run("ask", "docs", "-", "tea", "--ranking", "recency", "-o", "json", stdin=text)[1]
    sources = [kept["source"] for kept in json.loads(out)["kept"]]
    assert {"standard input", "docs/notes.txt", "docs/guide.md"} == {*sources}
    assert "standard input" == sources[0]
    expected = "budgeteer: nothing in standard input has a word of the question\n"
    assert (1, "", expected) == run("ask", "-", "zebra", stdin=text)


# Nothing to print.


def test_nothing_matches(run, docs):
    """Text without a word of the question is status 1, and nothing on standard output."""
    expected = "budgeteer: nothing in docs has a word of the question\n"
    assert (1, "", expected) == run("ask", "docs", "zebra")
    for output in ("markdown", "xml"):
        assert (1, "", expected) == run("ask", "docs", "zebra", "-o", output)


@pytest.mark.parametrize(
    ("folder", "arguments"), [("docs", ("zebra",)), ("docs", ("tea", "-n", 1)), ("none", ("tea",))]
)
def test_json_stays_json_where_nothing_is_found(run, docs, folder, arguments):
    """A script that reads the output gets the document of an empty packing, and the status."""
    Path("none").mkdir()
    expected = run("ask", folder, *arguments)
    status, out, err = run("ask", folder, *arguments, "-o", "json")
    assert (1, "", err) == expected
    assert 1 == status
    answer = json.loads(out)
    assert ("", 0, []) == (answer["text"], answer["total_tokens"], answer["kept"])
    assert (folder == "docs") == bool(answer["dropped"])


@pytest.mark.parametrize(
    ("question", "options", "reason"),
    [
        ("the of and", (), "the question has no word but stopwords; --stopwords none counts them"),
        ("der die", ("--stopwords", "german"), "the question has no word but stopwords; "),
        ("zebra " * 9_000, (), "nothing in docs has a word of the question"),
        ("the of zebra", (), "nothing in docs has a word of the question"),
        ("der die", (), "nothing in docs has a word of the question"),
        ("the of", ("--ranking", "keyword"), "the question has no word to look for"),
        ("", (), "the question has no word to look for"),
        ("", ("--stopwords", "none"), "the question has no word to look for"),
        ("?!", (), "the question has no word to look for"),
    ],
)
def test_a_question_without_words_is_the_reason(run, docs, question, options, reason):
    """Where nothing could match, that is not said of the folder."""
    status, out, err = run("ask", "docs", question, *options)
    assert (1, "") == (status, out)
    assert err.startswith(f"budgeteer: {reason}")


def test_stopwords_none_is_a_remedy(run, docs):
    """As the reason says."""
    assert 1 == run("ask", "docs", "is the")[0]
    assert 0 == run("ask", "docs", "is the", "--stopwords", "none")[0]


def test_a_glob_that_chooses_nothing_is_named(run, docs):
    """The folder has text, and the glob none of it."""
    expected = "budgeteer: there is no text in docs for --glob '*.zzz'\n"
    assert (1, "", expected) == run("ask", "docs", "tea", "-g", "*.zzz")


def test_no_text_at_all(run, tmp_path):
    """An empty folder says so."""
    expected = f"budgeteer: there is no text in {tmp_path}\n"
    assert (1, "", expected) == run("ask", tmp_path, "tea")


def test_nothing_fits(run, docs):
    """What matches and is too large is another reason."""
    expected = (
        "budgeteer: nothing that has a word of the question fits into 3 tokens; a larger -n has "
        "room, and --overflow truncate_end cuts to fit\n"
    )
    assert (1, "", expected) == run("ask", "docs", QUESTION, "-n", 3)
    _, _, err = run("ask", "docs", QUESTION, "-n", 3, "--explain")
    assert err.startswith("Kept 0 of 5 chunks ")
    assert err.endswith("\n" + expected)
    assert 0 == run("ask", "docs", QUESTION, "-n", 3, "--overflow", "truncate_end")[0]


def test_no_remedy_is_named_that_was_taken(run, tmp_path):
    """Of a text that cannot be cut any shorter."""
    (tmp_path / "a.txt").write_text("tea")
    options = ("-n", 0, "--overflow", "truncate_middle")
    assert run("ask", tmp_path, "tea", *options)[2].endswith("; a larger -n has room\n")


# What is not read.


def test_what_is_no_text_is_one_warning(run, docs):
    """Binary files and other encodings are named, never packed, and no failure."""
    (docs / "tea.png").write_bytes(b"tea tea\0")
    (docs / "alt.txt").write_bytes("Gr\u00fcner tea".encode("latin-1"))
    status, out, err = run("ask", "docs", "tea")
    expected = (
        "budgeteer: warning: cannot read docs/alt.txt: line 1: not UTF-8; docs/tea.png: binary\n"
    )
    assert (0, expected) == (status, err)
    assert "\ufffd" not in out
    assert "Gr" not in out
    (docs / "zen.png").write_bytes(b"\0")
    assert expected[:-1] + "; and 1 more\n" == run("ask", "docs", "tea")[2], "two have a name"
    (docs / "zen.png").unlink()
    (docs / "notes.txt").unlink()
    (docs / "guide.md").unlink()
    expected += "budgeteer: there is no text in docs\n"
    assert (1, "", expected) == run("ask", "docs", "tea")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["docs/gone", "tea"], "cannot read 'docs/gone': No such file or directory"),
        (["", "tea"], "cannot read '': No such file or directory"),
        (["docs", "tea", "-n", "-1"], "max_tokens must be from 0 to "),
        (["docs", "tea", "-o", "yaml"], "argument -o/--output: must be one of 'text', 'json', "),
        (["docs", "tea", "-m", "gtp-4o"], "argument -m/--counter: counter must be one of "),
        (["docs"], "the following arguments are required: QUERY"),
    ],
)
def test_ask_refuses(refused, docs, arguments, message):
    """An error is one line and status 2."""
    assert refused("ask", *arguments).startswith(message)


def test_ignore_files_need_the_extra(refused, docs, monkeypatch):
    """Without pathspec the message says what to install; a folder without rules works."""
    monkeypatch.setitem(sys.modules, "pathspec", None)
    expected = "reading .gitignore and globs needs pathspec: pip install 'budgeteer[cli]'"
    assert expected == refused("ask", "docs", "tea", "-g", "*.md")
    (docs / ".gitignore").write_text("*.log\n")
    assert expected == refused("ask", "docs", "tea")


def test_a_folder_without_rules_needs_no_extra(run, docs, monkeypatch):
    """pathspec is imported where there are rules, and not before."""
    monkeypatch.setitem(sys.modules, "pathspec", None)
    assert 0 == run("ask", "docs", "tea")[0]


def test_the_program(docs):
    """In a process of its own, bytes are UTF-8 and the same on every run."""
    (docs / "gr\u00fcn.md").write_text("# Gr\u00fcn\n\nGr\u00fcner tea.", encoding="utf-8")
    command = [sys.executable, "-m", "budgeteer", "ask", "docs", "tea", "-o", "xml"]
    first, second = (
        subprocess.run(command, capture_output=True, check=False, timeout=60) for _ in range(2)
    )
    assert (0, b"") == (first.returncode, first.stderr)
    assert first.stdout == second.stdout
    assert 'title="Gr\u00fcn"' in first.stdout.decode()


def test_the_handbook_of_the_examples(run):
    """The folder that ships with the package answers its own question."""
    folder = Path(__file__).parents[3] / "examples" / "handbook"
    status, out, err = run("ask", folder, QUESTION, "-n", 200, "-m", "gpt-4o")
    assert (0, "") == (status, err)
    assert "emote" in out
    assert budgeteer.get_counter("gpt-4o").count(out) <= 200
