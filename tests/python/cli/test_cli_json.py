"""The JSON of the commands that pack: it is the packing's document, and costs little."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from budgeteer.config import load

PLACE = ("id", "source", "title")
ROWS = [
    {"text": "Green tea.", "id": "a", "title": "Tea", "metadata": {"path": "t.md"}},
    {"text": "Green tea.", "id": "b"},
    {"text": "Rye bread " * 30, "id": "c"},
]
CONFIG = "budget: {max_tokens: 9}\nsources: [{type: jsonl, path: a.jsonl, name: rows}]"
CHUNKS = 100_000
SLACK = 3.0
"""How many times the time of the text the JSON may take, where other programs run too."""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path / "c.yaml"


def test_a_query_has_both_documents(run, config):
    """Each field of Packing.to_dict is there, and each chunk says which of the caller's it is."""
    answer = json.loads(run("query", "-c", config, "-q", "tea", "-o", "json")[1])
    packing = load(config).query("tea")
    expected = packing.to_dict()

    def bare(items, *names):
        return [{k: v for k, v in item.items() if k not in names} for item in items]

    assert expected["kept"] == bare(answer["kept"], *PLACE)
    assert expected["dropped"] == bare(answer["dropped"], *PLACE, "relevance_score")
    for name in {*expected} - {"kept", "dropped"}:
        assert expected[name] == answer[name]
    assert [("a", 0)] == [(chunk["id"], chunk["index"]) for chunk in answer["chunks"]]
    assert [("b", 1, "duplicate", 0), ("c", 2, "budget", None)] == [
        (left["id"], left["index"], left["reason"], left["duplicate_of"])
        for left in answer["dropped"]
    ]
    assert 2 == answer["dropped_count"]
    assert "Green tea." == answer["text"]


def test_ask_adds_the_place(run, tmp_path):
    """What it says of a chunk is the packing's, and its file."""
    (tmp_path / "a.txt").write_text("Green tea.")
    answer = json.loads(run("ask", tmp_path, "tea", "-o", "json")[1])
    kept = {
        "index": 0, "score": answer["kept"][0]["score"], "token_count": 3, "citation_tokens": 0,
        "span": [0, 10], "was_cut": False, "text": "Green tea.", "id": "a.txt:1",
        "source": "a.txt", "title": "",
    }  # fmt: skip
    assert {
        "text": "Green tea.", "total_tokens": 3, "budget_tokens": 8_000, "is_exact": True,
        "was_truncated": False, "fallback": None, "kept": [kept], "dropped": [],
    } == answer  # fmt: skip


def test_what_the_metadata_knows_is_shown(run, config):
    """Title, source and id are found where templates find them, in JSON and in text."""
    inner = {"id": "m", "source": "kitchen", "title": "Leaves"}
    rows = [{"text": "Green tea.", "metadata": inner}, {"text": "Rye " * 30, "metadata": inner}]
    config.with_name("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    answer = json.loads(run("query", "-c", config, "-q", "tea", "-o", "json")[1])
    for part in ("kept", "chunks", "dropped"):
        assert [("m", "Leaves")] == [(item["id"], item["title"]) for item in answer[part]]
    assert "\n  [rows] Leaves: score=" in run("query", "-c", config, "-q", "tea")[1]
    arguments = ("pack", "-q", "tea", "-n", 9, "--explain", "--dropped", "all")
    assert "\nChunk 1 (m) was dropped: " in run(*arguments, stdin=json.dumps(rows))[2]


def test_each_chunk_is_a_line(run):
    """So that grep, head and sed have something to go by."""
    arguments = ("pack", "-q", "tea", "-n", 3, "-o", "json")
    lines = run(*arguments, stdin='["tea", "bread\\nand butter", "milk"]')[1].splitlines()
    assert '  "text": "tea\\n\\nmilk",' == lines[1]
    (place,) = (i for i, line in enumerate(lines) if line == '  "dropped": [')
    assert 1 == json.loads(lines[place + 1])["index"]
    assert ["  ]", "}"] == lines[place + 2 :]


@pytest.mark.slow
@pytest.mark.parametrize("max_tokens", [2_000, 2_000_000])
def test_json_of_many_chunks_costs_little_more_than_text(tmp_path, max_tokens):
    """100,000 chunks through a pipe: the whole document, against the text alone."""
    draw = random.Random(1)
    words = [*(f"word{i}" for i in range(5_000)), *["tea"] * 50]
    path = tmp_path / "chunks.jsonl"
    with path.open("w") as file:
        for i in range(CHUNKS):
            file.write(json.dumps({"id": i, "text": " ".join(draw.choices(words, k=8))}) + "\n")
    best = {
        output: min(_seconds(path, output, max_tokens) for _ in range(2))
        for output in ("text", "json")
    }
    assert best["json"] < SLACK * best["text"], best


def _seconds(path: Path, output: str, max_tokens: int) -> float:
    """Return the processor's time for one run, which other programs change less than the clock."""
    arguments = ("pack", "-q", "tea word7", "-n", str(max_tokens), "-o", output)
    before, start = os.times(), time.perf_counter()
    with path.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "budgeteer", *arguments],
            stdin=stdin, capture_output=True, check=True, timeout=120,
        )  # fmt: skip
    after = os.times()
    if output == "json":
        answer = json.loads(done.stdout)
        assert CHUNKS == len(answer["kept"]) + len(answer["dropped"])
    spent = after.children_user - before.children_user
    return spent or time.perf_counter() - start
