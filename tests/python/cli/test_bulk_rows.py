"""The rows that `pack --input` writes of its requests, batch by batch."""

import json

import pytest

from budgeteer import Packer
from budgeteer.cli._requests import Answerer, Batch

TEA = {"query": "tea", "chunks": ["Green tea."]}


def rows(*requests, output=".jsonl", **options):
    """Return the rows of requests, each a value or a line, and how many failed."""
    lines = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in requests]
    data = b"\n".join(lines)
    answer = Answerer(Packer(9, **options), ".jsonl", output)(
        Batch(5, data, len(data), len(lines))
    )
    found = [json.loads(line) for line in answer.data.splitlines()]
    assert answer.requests == len(found)
    assert answer.failed == sum(row["error"] is not None for row in found)
    return found


def test_a_row_of_each_request():
    """Each request has its row in its place, with its id; blank lines have none."""
    first, second = rows({**TEA, "id": 7}, b"", b"  ", TEA)
    answer = {"text": "Green tea.", "total_tokens": 3, "kept": [0], "error": None}
    assert {"id": 7, **answer} == first
    assert answer == second


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (b"{", "line 6, column 2: invalid JSON: Expecting property name"),
        (b"\xff", "line 6: not UTF-8"),
        ([1], "a request must be a JSON object, not list"),
        ({**TEA, "chunks": "tea"}, "chunks must be a list, not str"),
        ({**TEA, "chunks": ["a", 3]}, "chunks[1] must be a str or a JSON object, not int"),
        ({**TEA, "id": 1.5}, "id must be a str or a whole number, not float"),
        ({**TEA, "id": True}, "id must be a str or a whole number, not bool"),
        ({"chunks": ["a"]}, "query must be a str, not None"),
        ({**TEA, "max_tokens": -1}, "max_tokens must be from 0 to"),
    ],
)
def test_a_request_that_fails(request_, error):
    """A request that cannot be packed has a row that names what is wrong, between the others."""
    good, bad, last = rows(TEA, request_, TEA)
    assert bad["error"].startswith(error)
    assert (None, None, None) == (bad["text"], bad["total_tokens"], bad["kept"])
    assert "Green tea." == good["text"] == last["text"]


def test_a_ranking_that_reads_no_query():
    """Where nothing reads a query, a request needs none."""
    (row,) = rows({"chunks": ["Green tea."]}, ranking="input")
    assert ("Green tea.", None) == (row["text"], row["error"])


def test_what_arrow_cannot_hold():
    """A lone surrogate in an id or a text is an error where the rows become Arrow's alone."""
    bad = {"query": "tea", "chunks": ["Tea \ud800"]}
    (row,) = rows(bad, output=".parquet")
    assert "the text has a lone surrogate, which Arrow cannot hold" == row["error"]
    (row,) = rows({**TEA, "id": "\ud800"}, output=".parquet")
    assert "id has a lone surrogate, which Arrow cannot hold" == row["error"]
    (row,) = rows(bad)
    assert (None, [0]) == (row["error"], row["kept"])


def test_what_python_cannot_hold():
    """A value of a table that cannot be read is the error of its row, and the others go on."""
    pa = pytest.importorskip("pyarrow")
    broken = pa.array([b"tea", b"caf\xe9", b"tea"]).cast(pa.string(), safe=False)
    dated = pa.list_(pa.struct([("text", pa.string()), ("mtime", pa.timestamp("s"))]))
    far = pa.array(
        [[{"text": "Green tea.", "mtime": year}] for year in (0, 0, 10**15)], type=dated
    )
    table = pa.table({"id": [7, 8, 9], "query": broken, "chunks": far})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)

    answer = Answerer(Packer(9), ".parquet", ".jsonl")(
        Batch(1, sink.getvalue().to_pybytes(), 3, 3)
    )

    good, bad, last = map(json.loads, answer.data.splitlines())
    assert [7, 8, 9] == [row["id"] for row in (good, bad, last)]
    assert ("Green tea.", None) == (good["text"], good["error"])
    assert "query is not UTF-8" == bad["error"]
    assert last["error"].startswith("chunks cannot be read: ")
    assert 2 == answer.failed
