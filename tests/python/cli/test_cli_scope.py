"""The cut-off that is found from the scores, on the command line."""

import json

import pytest

from budgeteer import pack

CHUNKS = ["Green tea is mild.", "Tea.", "Black tea is strong.", "Rye bread is dark."]


@pytest.mark.parametrize("ranking", ["lexical", "bm25"])
def test_pack_takes_it(run, ranking):
    """It does what it does in Python; what is explained says so."""
    arguments = ("--ranking", ranking, "--min-score", "auto", "--explain", "--dropped", 9)
    status, out, err = run("pack", "--query", "green tea", *arguments, stdin=json.dumps(CHUNKS))
    packing = pack("green tea", CHUNKS, 8_000, ranking=ranking, min_score="auto")
    assert (0, packing.text) == (status, out.rstrip("\n"))
    assert 0 < len(packing.kept) < len(CHUNKS)
    assert packing.explain() in err
    assert "the automatic min_score." in err


def test_pack_says_why_nothing_is_kept(run):
    """What has the best heading may have no text; all else is far below it."""
    chunks = [{"title": "Green silk road", "text": ""}] * 3 + [{"text": "A road."}]
    chunks += [{"text": f"Rye {count}."} for count in range(9)]
    arguments = ("--query", "green silk road", "--min-score", "auto", "--ranking", "lexical")
    status, out, err = run("pack", *arguments, stdin=json.dumps(chunks))
    assert (1, "") == (status, out)
    assert err == (
        "budgeteer: nothing with text in standard input scores enough for --min-score auto\n"
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand beside a folder of texts."""
    (tmp_path / "docs").mkdir()
    for name, text in enumerate(CHUNKS):
        (tmp_path / f"docs/{name}.txt").write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
def test_ask_takes_it(run):
    """It leaves out parts with words of the question that score far below the best."""
    arguments = ("ask", "docs", "mild green tea", "-o", "json")
    kept = [
        [chunk["text"] for chunk in json.loads(run(*arguments, *options)[1])["kept"]]
        for options in ((), ("--min-score", "auto"))
    ]
    assert [CHUNKS[:3], CHUNKS[:2]] == kept


@pytest.mark.usefixtures("folder")
def test_ask_finds_nothing(run):
    """Where no part has a word of the question, none is packed."""
    expected = (1, "", "budgeteer: nothing in docs has a word of the question\n")
    assert expected == run("ask", "docs", "silk", "--min-score", "auto")
    assert expected == run("ask", "docs", "silk")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["pack", "ask"])
def test_other_rankings(run, command):
    """The error is in the words of the command line."""
    given = {"pack": ("--query", "tea"), "ask": ("docs", "tea")}[command]
    answer = run(command, *given, "--ranking", "keyword", "--min-score", "auto", stdin="[]")
    message = "--min-score auto is for --ranking lexical or bm25, not keyword"
    assert (2, "") == answer[:2]
    assert message in answer[2]
