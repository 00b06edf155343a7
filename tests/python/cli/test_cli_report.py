"""``--report`` and ``--explain``: what became of the chunks, in a page and at a terminal."""

import errno
import json
import os
import re

import pytest
from report_support import Page
from support import ONLY_REFERENCE

from budgeteer import pack

CHUNKS = ["Green tea.", "Rye bread.", "Green tea.", "Black tea is strong."]


@pytest.fixture
def page(tmp_path):
    """The page that a command has written."""
    path = tmp_path / "report.html"

    def page():
        text = path.read_text(encoding="utf-8")
        Page(text)
        return text

    page.path = path
    return page


def rows(text):
    return {int(index) for index in re.findall(r'<tr role="row" id="chunk-(\d+)"', text)}


def test_pack_writes_a_report(run, page):
    """The page is that of the packing; the answer is as it would be without."""
    arguments = ("pack", "-q", "tea", "-n", 8)
    stdin = json.dumps(CHUNKS)
    without = run(*arguments, stdin=stdin)
    assert without == run(*arguments, "--report", page.path, stdin=stdin)
    packing = pack("tea", CHUNKS, 8)
    assert packing.report() == page()


@pytest.mark.parametrize(("dropped", "listed"), [("none", 0), ("1", 1), ("all", 3)])
def test_dropped_says_how_many(run, page, dropped, listed):
    """``--dropped`` is for the report, too."""
    arguments = ("-n", 3, "--report", page.path, "--dropped", dropped)
    run("pack", "-q", "tea", *arguments, stdin=json.dumps(CHUNKS))
    assert 1 + listed == len(rows(page()))


def test_a_report_that_cannot_be_written_whole(run, page, monkeypatch):
    """A full disk leaves the page that was there, and no half of a new one."""
    arguments = ("pack", "-q", "tea", "-n", 8, "--report", page.path)

    def full(file):
        os.truncate(file, 50)
        raise OSError(errno.ENOSPC, "No space left on device")

    for before in ([], [page.path]):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            status, out, err = run(*arguments, stdin=json.dumps(CHUNKS))
        assert (2, "") == (status, out)
        assert f"budgeteer: error: cannot write {page.path}: No space left on device\n" == err
        assert before == [*page.path.parent.iterdir()]
        if before:
            assert pack("tea", CHUNKS, 8).report() == page()
        run(*arguments, stdin=json.dumps(CHUNKS))


@pytest.mark.skipif(os.name == "nt", reason="has no such links and modes")
def test_a_report_keeps_what_is_there(run, page, tmp_path):
    """A link stays a link, and a file has the mode that it had; a device is written to."""
    place = tmp_path / "kept.html"
    place.write_text("old")
    place.chmod(0o640)
    page.path.symlink_to(place)
    for path in (page.path, os.devnull):
        status, _, _ = run("pack", "-q", "tea", "--report", path, stdin=json.dumps(CHUNKS))
        assert 0 == status
    assert page.path.is_symlink()
    assert pack("tea", CHUNKS, 8_000).report() == page()
    assert 0o640 == place.stat().st_mode & 0o777
    assert [place, page.path] == sorted(tmp_path.iterdir())


def test_a_report_does_not_replace_the_input(refused, tmp_path, monkeypatch):
    """A file that was read is not lost, whichever command reads it and however it is named."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "chunks.json": json.dumps(CHUNKS),
        "tea.md": "Green tea.",
        "tea.yaml": "sources: [{type: inline, text: Green tea.}]",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for given, *arguments in (
        ("chunks.json", "pack", "-q", "tea", "--input", "chunks.json"),
        ("tea.md", "ask", "tea.md", "tea"),
        ("tea.yaml", "query", "-c", "tea.yaml", "-q", "tea"),
    ):
        error = refused(*arguments, "--report", tmp_path / given)
        assert f"--report must not be the input {given!r}: give another name" == error
        assert texts[given] == (tmp_path / given).read_text()


def test_nothing_is_packed(run, page):
    """Where nothing fits, the page says why."""
    status, _, _ = run("pack", "-q", "tea", "-n", 1, "--report", page.path, stdin='["Green tea."]')
    assert 1 == status
    assert "It needs" in page() or "it needs" in page()


def test_ask_and_query_write_reports(run, page, tmp_path):
    """The page names files and lines."""
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen tea is mild.\n")
    run("ask", tmp_path / "tea.md", "tea", "--report", page.path)
    assert "tea.md:1" in page()
    config = tmp_path / "c.yaml"
    config.write_text("sources: [{type: inline, text: Green tea., name: note}]")
    status, out, _ = run("query", "-c", config, "-q", "tea", "--report", page.path)
    assert 0 == status
    assert "Green tea." in out
    assert '<span class="soft">note' in page()


def test_a_report_that_cannot_be_written(refused, tmp_path):
    """A path that cannot be written is named, and nothing is answered."""
    said = refused("pack", "-q", "tea", "--report", tmp_path / "no" / "a.html", stdin='["Tea."]')
    assert f"cannot write {tmp_path / 'no' / 'a.html'}: No such file or directory" == said
    said = refused("pack", "-q", "tea", "--report", "-", stdin='["Tea."]')
    assert "--report must be a file, not standard output" == said


@pytest.mark.skipif(ONLY_REFERENCE, reason="its processes count exactly, offline")
class TestTerminal:
    """At a terminal ``--explain`` is a table; anywhere else it is plain lines."""

    @pytest.fixture
    def seen(self, tmp_path):
        pytest.importorskip("pty", reason="has no terminals")
        from test_cli_terminal import TERMINAL, Terminal

        file = tmp_path / "chunks.json"
        file.write_text(json.dumps([*CHUNKS, {"text": "Rye.", "id": "[red]\x1b[31m"}]))

        def seen(*arguments, code=None, **variables):
            terminal = Terminal(
                *("pack", "-q", "tea", "-n", 3, "--input", file, "--explain", *arguments),
                env={**TERMINAL, **variables},
                code=code,
            )
            status, out, seen = terminal.finish()
            assert (0, b"Green tea.") == (status, out)
            return seen.decode().replace("\r\n", "\n")

        return seen

    def test_a_table(self, seen):
        """It has a row for each chunk, in colours, and quotes no escape of a chunk."""
        found = seen()
        assert "Kept 1 of 5 chunks with 3 of 3 tokens." in found
        assert re.search(
            r"Rank +Chunk +Outcome +Score +Tokens +Why", re.sub("\x1b.*?m", "", found)
        )
        assert "\x1b[32mkept" in found
        assert "\x1b[31m\x1b" not in found.replace("\x1b[31mdropped\x1b", "")
        assert "[red]" in found

    def test_its_length(self, seen):
        """``--dropped`` says how many dropped chunks it lists; the rest is counted."""
        found = seen("--dropped", "1", NO_COLOR="1")
        assert 1 == found.count("dropped ")
        assert "3 more were dropped." in found
        assert "\x1b" not in found

    def test_without_rich(self, seen):
        """Without the extra it is as in a pipe."""
        code = (
            "import sys; sys.modules['rich'] = None\n"
            "from budgeteer.cli import main; sys.exit(main(sys.argv[1:]))"
        )
        found = seen("--dropped", "1", code=code)
        assert "Kept 1 of 5 chunks with 3 of 3 tokens." in found
        assert "Rank" not in found
        assert 1 == found.count(" was dropped: ")


def test_a_pipe_sees_plain_lines(run):
    """What is read by a program has no table."""
    _, _, err = run("pack", "-q", "tea", "-n", 3, "--explain", stdin=json.dumps(CHUNKS))
    assert pack("tea", CHUNKS, 3).explain() == err.rstrip("\n")
