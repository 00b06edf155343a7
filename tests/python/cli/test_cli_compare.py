"""``budgeteer compare``."""

import json

import pytest

from budgeteer import compare, pack
from budgeteer.cli import main

CHUNKS = ["Green tea.", "Rye bread.", "Black tea."]


@pytest.fixture
def files(tmp_path):
    """Return two files with packings, by the command line's own hand."""
    chunks = tmp_path / "chunks.json"
    chunks.write_text(json.dumps(CHUNKS), encoding="utf-8")
    return chunks, tmp_path / "a.json", tmp_path / "b.json"


def packed(capsys, chunks, file, limit, *more):
    """Write a packing to a file."""
    arguments = ["pack", "--query", "tea", "--max-tokens", str(limit), "--input", str(chunks)]
    main([*arguments, "-o", "json", *more])
    file.write_text(capsys.readouterr().out, encoding="utf-8")


def test_it_says_what_changed(files, capsys):
    """It answers as `compare` does, in each form, and the status says whether they differ."""
    chunks, one, two = files
    packed(capsys, chunks, one, 4)
    packed(capsys, chunks, two, 8)
    expected = compare(pack("tea", CHUNKS, 4).to_dict(), pack("tea", CHUNKS, 8).to_dict())

    assert 1 == main(["compare", str(one), str(two)])
    assert f"{expected.explain()}\n" == capsys.readouterr().out
    assert 1 == main(["compare", str(one), str(two), "-o", "json"])
    assert expected.to_dict() == json.loads(capsys.readouterr().out)
    assert 1 == main(["compare", str(one), str(two), "-o", "html"])
    assert expected.to_html() == capsys.readouterr().out
    assert 0 == main(["compare", str(one), str(one)])
    assert "Nothing changed.\n" == capsys.readouterr().out


def test_errors(files, capsys, tmp_path):
    """An error names the file and what to do."""
    chunks, one, two = files
    packed(capsys, chunks, one, 4)
    packed(capsys, chunks, two, 4, "--dropped", "1")
    other = tmp_path / "other.json"
    other.write_text("[]", encoding="utf-8")
    odd = tmp_path / "odd.json"
    odd.write_bytes(b"\xff")

    for arguments, says in (
        ([one, two], f"{two} lists 1 of 2 dropped chunks: write it without --dropped"),
        ([other, one], f"{other} must be a packing that -o json wrote, not list"),
        ([one, tmp_path / "none"], "none"),
        ([one, odd], f"budgeteer: error: {odd}: line 1: not UTF-8"),
        (["-", "-"], "only one of BEFORE and AFTER may be standard input"),
    ):
        assert 2 == main(["compare", *map(str, arguments)])
        error = capsys.readouterr().err
        assert error.startswith("budgeteer: error: ")
        assert says in error


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        (
            "kept",
            {"id": [1]},
            "kept[0].id must be a str or a number of at most 128 bits, not list",
        ),
        ("kept", {"token_count": "7"}, "kept[0].token_count must be an int, not str"),
        ("dropped", {"reason": 5}, "dropped[0].reason must be a str, not int"),
        ("dropped", {"index": 0}, "dropped[0].index must not be that of kept[0], 0"),
        (None, {"budget_tokens": None}, "budget_tokens must be an int, not None"),
        (None, {"text": None}, "text must be a str, not None"),
        (None, {"kept": {}}, "kept must be a sequence, not dict"),
        (None, {"dropped_count": "1"}, "dropped_count must be an int, not str"),
    ],
)
def test_a_wrong_document(part, change, says, tmp_path, capsys):
    """A file that holds no packing is an error with its place, which says not that they differ."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    document = pack("tea", CHUNKS, 4).to_dict()
    good.write_text(json.dumps(document), encoding="utf-8")
    (document if part is None else document[part][0]).update(change)
    bad.write_text(json.dumps(document), encoding="utf-8")

    for names in ((good, bad), (bad, good)):
        assert 2 == main(["compare", *map(str, names)])
        out, error = capsys.readouterr()
        assert "" == out
        assert f"error: {bad} must be a packing that -o json wrote: {says}" in error


def test_a_name_forges_no_line(tmp_path, capsys):
    """What a terminal would obey is escaped."""
    files = tmp_path / "a.json", tmp_path / "b.json"
    for file, limit in zip(files, (0, 9), strict=True):
        document = pack("tea", ["tea"], limit).to_dict()
        for item in [*document["kept"], *document["dropped"]]:
            item["source"] = "a\x1b[2J\nNothing changed.\ud800"
        file.write_text(json.dumps(document), encoding="utf-8")

    assert 1 == main(["compare", *map(str, files)])
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert "Nothing changed." not in lines
    assert lines[-1].startswith(
        r"Chunk 0 (a\x1b[2J\nNothing changed.\ud800): dropped (budget) -> "
    )
