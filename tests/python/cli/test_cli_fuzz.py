"""Any input of the commands that read JSON: answers that hold, or an error in one line."""

import contextlib
import io
import json
import sys
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from budgeteer import Packer, get_counter
from budgeteer.cli import main
from budgeteer.cli._requests import Answerer, Batch

COUNTER = get_counter("o200k_base")
KEYS = ("text", "title", "id", "source", "score", "mtime", "metadata", "position", "priority", "x")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["tea", "\ud800", "Green tea. " * 9, "\x00\u2028"])
)
VALUES = st.recursive(
    SCALARS,
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), values, max_size=3)
    ),
    max_leaves=8,
)
TEXTS = st.sampled_from(["Green tea.", "Rye bread is dark.", "tea", "", "\ud83c"]) | st.text(
    max_size=9
)
CHUNKS = st.lists(
    TEXTS
    | st.fixed_dictionaries(
        {"text": TEXTS}, optional={key: SCALARS | VALUES for key in KEYS if key != "text"}
    )
    | VALUES,
    max_size=5,
)
REQUESTS = st.fixed_dictionaries(
    {"query": TEXTS | VALUES, "chunks": CHUNKS | VALUES},
    optional={
        "id": st.integers() | VALUES,
        "max_tokens": st.integers(0, 40) | VALUES,
        "x": VALUES,
    },
)
"""Mostly what a request is, so that many get as far as packing."""


def line_of(value):
    return json.dumps(value).encode()


LINES = st.one_of(
    REQUESTS.map(line_of),
    VALUES.map(line_of),
    st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")),
    st.builds(lambda value, at: line_of(value)[:at], REQUESTS, st.integers(0, 60)),
)


@example([b"[" * 20_000], "rank")
@example([b'{"query": "tea", "chunks": ["tea"], "max_tokens": 1e400}'], "rank")
@example([b'{"query": "tea", "chunks": ["tea"], "query": 1}'], "rank")
@given(st.lists(LINES, max_size=4), st.sampled_from(["rank", "coverage"]))
def test_every_line_has_a_row(lines, selection):
    """Each line that is not blank has a row: a text within its budget, or an error of one line."""
    packer = Packer(12, selection=selection)
    data = b"\n".join(lines)
    found = Answerer(packer, ".jsonl", ".jsonl")(Batch(1, data, len(data), len(lines)))
    rows = [json.loads(row) for row in found.data.splitlines()]
    assert len(rows) == found.requests
    assert found.failed == sum(row["error"] is not None for row in rows)
    full = [line for line in lines if line.decode("utf-8", "replace").strip()]
    assert len(full) == found.requests
    for row, line in zip(rows, full, strict=True):
        assert {"text", "total_tokens", "kept", "error"} == row.keys() - {"id"}
        if row["error"] is not None:
            assert 1 == len(row["error"].splitlines())
            assert row["text"] is row["total_tokens"] is row["kept"] is None
            continue
        request = json.loads(line)
        limit = request.get("max_tokens")
        assert row["total_tokens"] <= (12 if limit is None else limit)
        assert not row["text"] or COUNTER.count(row["text"]) == row["total_tokens"]
        assert all(0 <= kept < len(request["chunks"]) for kept in row["kept"])
        assert request.get("id") == row.get("id")


def program(arguments, data):
    """Run the program with standard input; return status, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(arguments)
    finally:
        sys.stdin = before
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("output", ["json", "text"])
@given(CHUNKS.map(line_of) | st.lists(LINES, max_size=4).map(b"\n".join))
def test_chunks_are_packed_or_refused(output, data):
    """``pack`` answers with what fits, with nothing, or with one line of what is wrong."""
    status, out, err = program(["pack", "-q", "green tea", "-n", "9", "-o", output], data)
    if status == 2:
        assert "" == out
        assert err.startswith("budgeteer: error: ")
        assert 1 == len(err.splitlines())
        return
    assert status in {0, 1}
    written = json.loads(out)["text"] if output == "json" else out.removesuffix("\n")
    assert COUNTER.count(written) <= 9


@example(b"[" * 20_000, "json", 20)
@example(b'{"a": 1e999}', "auto", 2)
@given(
    VALUES.map(line_of) | st.binary(max_size=200) | st.text(max_size=120).map(str.encode),
    st.sampled_from(["auto", "text", "json", "table", "log", "diff"]),
    st.integers(0, 40),
)
def test_results_are_cut_or_refused(data, kind, limit):
    """``cut --kind`` leaves at most the limit, and JSON where it was JSON."""
    status, out, err = program(["cut", "-n", str(limit), "--kind", kind, "-m", "words"], data)
    if status:
        assert (2, "") == (status, out)
        assert 1 == len(err.splitlines())
        return
    assert len(out.split()) <= limit
    if kind == "json":
        json.loads(out)
