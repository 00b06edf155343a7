"""Which files of a folder the commands read, and into which pieces they split them."""

import errno
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgeteer import get_counter
from budgeteer._sources.folder import text_files
from budgeteer._sources.pieces import pieces_of

O200K = get_counter("o200k_base")
TREE = (
    *("x.txt", "keep.log", "a.log", "build", "dir/keep.txt", "dir/z.txt", "dir/sub/x.txt"),
    *("sub/x.txt", "sub/keep.log", "a/z.txt", "a/b/c/z.txt", "#f.txt", "!x", "d2/build/y.txt"),
    *("d2/dir/sub/q.txt", "foo.txt"),
)


def write(root, **files):
    """Write texts under *root*; in names ``__`` is a slash and ``_`` a dot."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(*paths, globs=()):
    return [file.below for file in text_files([str(path) for path in paths], globs)]


# Ignore rules.


@pytest.mark.skipif(shutil.which("git") is None, reason="has no git")
@pytest.mark.parametrize(
    "rules",
    [
        *("*.log\n!keep.log\n", "/build\n", "build/\n", "dir/**\n!dir/keep.txt\n", "**/sub\n"),
        *("dir/*\n!dir/sub/\n", "sub/\n!sub/x.txt\n", "a/**/z.txt\n", "*\n!*/\n!*.txt\n"),
        *("# c\n\\#f.txt\n", "*.tx[t]\r\n", "dir/sub\n", " \n\\!x\n", "x.txt \n", "/**\n!/dir/\n"),
        *("dir/**\n!dir/sub/\n", "**\n!x.txt\n", "sub/**/x.txt\n", "*.txt\n!dir/\n", "foo*\n\n"),
    ],
)
def test_ignore_files_mean_what_git_says(tmp_path, rules):
    """The files are those that git lists as neither hidden nor ignored."""
    for name in TREE:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_bytes(rules.encode())
    listed = subprocess.check_output(
        ["git", "-c", "core.excludesFile=", "ls-files", "-oz", "--exclude-standard"],
        text=True,
        cwd=tmp_path,
    )
    expected = {name for name in listed.split("\0") if name and not name.startswith(".")}
    assert expected == {*names(tmp_path)}


def test_ignore_files_below_and_above(tmp_path):
    """The nearest file that has a pattern decides, up to the root of the repository."""
    write(tmp_path, _gitignore="*.txt\n")
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    write(
        repository,
        _gitignore="*.log\n/docs/out\n", docs___gitignore="!a.log\n*.tmp\n",
        docs__a_log="a", docs__b_log="b", docs__c_txt="c", docs__d_tmp="d", docs__out__e_txt="e",
    )  # fmt: skip
    assert ["a.log", "c.txt"] == names(repository / "docs")
    assert ["docs/a.log", "docs/c.txt"] == names(repository)
    assert ["e.txt"] == names(repository / "docs" / "out"), "it was asked for by name"


def test_hidden_and_version_control(tmp_path):
    """Hidden files and folders are left out, unless they are what is named."""
    write(tmp_path, a_md="a", _env="b", _git__config="c", CVS__Root="d", x__CVS="e")
    (tmp_path / ".svn").mkdir()
    assert ["a.md", "x/CVS"] == names(tmp_path)
    assert [".env", "config"] == names(tmp_path / ".env", tmp_path / ".git")


def test_globs(tmp_path):
    """Some alone choose, those with ``!`` leave out, and the last that matches decides."""
    write(tmp_path, a_md="a", b_txt="b", deep__c_md="c", deep__d_txt="d")
    assert ["a.md", "deep/c.md"] == names(tmp_path, globs=["*.md"])
    assert ["a.md", "b.txt"] == names(tmp_path, globs=["!deep/"])
    assert ["a.md"] == names(tmp_path, globs=["*.md", "!deep"])
    assert ["b.txt"] == names(tmp_path / "b.txt", globs=["*.md"]), "it was named itself"


def test_the_order_is_that_of_code_points(tmp_path):
    """By the parts of the paths, whatever the file system says first."""
    write(tmp_path, b_md="1", B_md="2", a__z_md="3", a_md="4", aa_md="5")
    assert ["B.md", "a/z.md", "a.md", "aa.md", "b.md"] == names(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_links(tmp_path):
    """Those to files are followed, those to folders are not; what is no file is left out."""
    write(tmp_path, a__x_md="x")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link.md").symlink_to(tmp_path / "a" / "x.md")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    assert ["a/x.md", "link.md"] == names(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_a_link_that_cannot_be_followed(tmp_path):
    """It is named, and the files beside it are read."""
    write(tmp_path, a_md="tea")
    (tmp_path / "ring.md").symlink_to(tmp_path / "ring.md")
    first, second = text_files([str(tmp_path)])
    assert ("tea", "") == (first.text, first.problem)
    assert (None, os.strerror(errno.ELOOP)) == (second.text, second.problem)


def test_a_byte_order_mark_is_no_text(tmp_path):
    """It is taken off; UTF-16 counts as binary, as it has zero bytes."""
    (tmp_path / "a.md").write_bytes("\ufefftea".encode())
    (tmp_path / "b.md").write_bytes("tea".encode("utf-16"))
    first, second = text_files([str(tmp_path)])
    assert ("tea", "") == (first.text, first.problem)
    assert (None, "binary") == (second.text, second.problem)


# Pieces.


def titles(text):
    return [(piece.line, piece.title) for piece in pieces_of("a.md", text, O200K, 1000)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\n# A\nx\n###### B\ny\n", [(1, ""), (2, "A"), (4, "A > B")]),
        ("# A\nx\n## B\nx\n### C\nx", [(1, "A"), (3, "A > B"), (5, "A > B > C")]),
        ("# A\nx\n### C\nx\n## D\nx\n# E\nx", [(1, "A"), (3, "A > C"), (5, "A > D"), (7, "E")]),
        ("A\n=\nx\n\nB\nb\n---\ny", [(1, "A"), (5, "A > B b")]),
        ("# A ##\nx\n## C#\ny\n#no\n####### no\n    # no", [(1, "A"), (3, "A > C#")]),
        ("# A\n## B\nx\n# C\n# D\ny", [(1, "A > B"), (4, "C"), (5, "D")]),
        ("# A\n```sh\n# no\n~~~\n```\n~~~ x\n# no\n```\n~~~\n# B\nx", [(1, "A"), (10, "B")]),
        ("# A\n```x``` no fence\n# B\nx", [(1, "A"), (3, "B")]),
        ("# A\n- ```sh\n  # no\n  ```\n# B\nx", [(1, "A"), (5, "B")]),
        ("# A\n<!-- x\n# no\n-->\n# B\nx <!-- y\n# C\nz", [(1, "A"), (5, "B"), (7, "C")]),
        ("# A\n<!-- # no -->\n<pre>\n# no\n</pre>\n# B\nx", [(1, "A"), (6, "B")]),
        ("---\ntitle: x\n---\n# A\nx", [(1, ""), (4, "A")]),
        ("x\n\n- a\n---\n> b\n---\n<div>\n---\n\n---\n\n| a\n---", [(1, "")]),
        ("# A\r\nx\r\n# B\r\ny", [(1, "A"), (3, "B")]),
        ("#\nx\n## B\ny", [(1, ""), (3, "B")]),
        ("", []),
    ],
)  # fmt: skip
def test_markdown_is_split_at_its_headings(text, expected):
    """Of every level, outside code, comments and metadata; the title is the path of headings."""
    assert expected == titles(text)


def test_only_markdown_has_headings():
    """In other files a line with a hash is a line."""
    assert [(1, "")] == [piece[:2] for piece in pieces_of("a.py", "# A\nx\n# B\n", O200K, 99)]


LINES = st.lists(
    st.sampled_from(
        [
            "# A",
            "## B",
            "",
            "tea",
            "Green tea is mild.",
            "```",
            "---",
            "  x",
            "- a",
            "\u7eff\u8336",
        ]
    )
    | st.text(max_size=60),
    max_size=40,
)


@given(LINES, st.sampled_from(["a.md", "a.txt"]), st.integers(1, 40))
def test_pieces_are_the_whole_text(lines, name, limit):
    """In order, nothing lost but whitespace, each where its line says."""
    text = "\n".join(lines)
    pieces = [*pieces_of(name, text, O200K, limit)]
    assert "".join(text.split()) == "".join("".join(piece.text for piece in pieces).split())
    found = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for piece in pieces:
        assert piece.text.split("\n")[0].strip() in found[piece.line - 1]
    assert [piece.line for piece in pieces] == sorted(piece.line for piece in pieces)


def test_a_section_up_to_a_size_is_whole():
    """However small the pieces of longer ones are."""
    text = "# A\none\n\ntwo\n# B\n" + "three\n\n" * 9
    counter = get_counter(lambda text: len(text.split()))
    found = [piece.text for piece in pieces_of("a.md", text, counter, 3, 4)]
    assert "# A\none\n\ntwo" == found[0]
    assert all(counter.count(piece) <= 3 for piece in found[1:])
    assert 4 == counter.count(found[0]) > counter.count(found[1])
    split = [piece.text for piece in pieces_of("a.md", text, counter, 3)]
    assert "# A\none" == split[0]
    assert found[1:] == split[2:]


@pytest.mark.parametrize("limit", [10, 50, 400])
def test_pieces_end_where_paragraphs_do(limit):
    """Where a paragraph fits in half of the limit and more, no other is cut open for the rest."""
    paragraphs = [f"Paragraph {i}.\n{'Tea is mild. ' * (i % 4)}\nEnd." for i in range(200)]
    pieces = [*pieces_of("a.txt", "\n\n".join(paragraphs), O200K, limit)]
    assert all(O200K.count(piece.text) <= limit + 2 for piece in pieces)
    if limit > 50:
        assert all(piece.text.endswith("End.") for piece in pieces)


@pytest.mark.parametrize(
    "line", ["Green tea is mild. " * 2_000, "\u7eff\u8336\u3002" * 2_000, "x" * 20_000]
)
def test_a_long_line_is_split(line):
    """At the ends of sentences where there are any; a line without them too."""
    pieces = [piece.text for piece in pieces_of("a.txt", line, O200K, 100)]
    assert all(0 < O200K.count(piece) <= 100 for piece in pieces)
    if line[0] != "x":
        assert all(piece[-1] in ".\u3002" for piece in pieces)
    assert "".join(line.split()) == "".join("".join(pieces).split())


@pytest.mark.parametrize("line", ["e" + "\u0301" * 30_000, "\u200d" * 30_000])
@pytest.mark.parametrize("limit", [1, 20, 100])
@pytest.mark.timeout(20)
def test_one_endless_character_is_split(line, limit):
    """What a reader takes for one character is cut only where it is larger than a piece."""
    pieces = [piece.text for piece in pieces_of("a.txt", line, O200K, limit)]
    assert "".join(pieces) == line
    assert all(O200K.count(piece) <= limit for piece in pieces if len(piece) > 1)
    assert len(pieces) <= 1 + 4 * O200K.count(line) // limit


@pytest.mark.parametrize(
    "line", ["# " + " " * 100_000 + "x", "`" * 100_000, "- " * 50_000, "#" * 100_000, "=" * 99_999]
)
@pytest.mark.timeout(20)
def test_hostile_markdown_takes_no_time(line):
    """No pattern looks at a line more than a few times."""
    assert [*pieces_of("a.md", f"text\n{line}\n", get_counter("chars_div4"), 1000)]
