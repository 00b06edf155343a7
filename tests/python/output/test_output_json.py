"""JSON and tables: what stays, and how."""

import json

import pytest
from output_support import is_cut_of, loads

from budgeteer import fit_output

ROWS = [{"id": i, "name": f"tea number {i}", "green": i % 7 == 0} for i in range(50)]


def test_both_ends_of_an_array(backend):
    """Without a query the first and the last rows stay, whole, with one string between."""
    fitted = fit_output(ROWS, 120)
    found = json.loads(fitted.text)
    gap = [i for i, row in enumerate(found) if isinstance(row, str)]

    assert [len(found) // 2] == gap or [(len(found) - 1) // 2] == gap
    assert f"[... {51 - len(found)} of 50 items left out ...]" == found[gap[0]]
    assert ROWS[: gap[0]] + ROWS[len(ROWS) - len(found) + gap[0] + 1 :] == [
        row for row in found if isinstance(row, dict)
    ]
    assert 100 < fitted.total_tokens <= 120


def test_the_better_of_two_rows(backend):
    """Of two items the one that answers the query stays; without a query, the first."""
    rows = ["rye bread " * 4, "green tea " * 4]
    kept = [fit_output(rows, 80, query=query, counter=len).text for query in (None, "tea")]

    assert ["rye" in text for text in kept] == [True, False]
    assert ["tea" in text for text in kept] == [False, True]


def test_the_best_rows(backend):
    """With a query its rows stay, in the order of the input, and read with their escapes."""
    rows = [{"id": i, "text": "black"} for i in range(60)]
    rows[41]["text"] = "thé\nvert"
    rows[17]["text"] = "vert"
    for value in (rows, json.dumps(rows), json.dumps(rows, ensure_ascii=False)):
        found = json.loads(fit_output(value, 80, query="thé vert").text)
        kept = [row for row in found if isinstance(row, dict)]

        assert rows[17] in kept
        assert rows[41] in kept
        assert kept == sorted(kept, key=lambda row: row["id"])


def test_rows_up_to_a_quarter_stay_whole(backend):
    """A row that takes more has its long strings cut; the others are rows of the input."""
    rows = [{"id": 0, "text": "tea " * 900}, *({"id": i, "text": "rye"} for i in range(1, 9))]
    found = json.loads(fit_output(rows, 200, query="tea rye").text)

    assert rows[1:] == found[1:]
    assert {"id", "text"} == {*found[0]}
    assert " characters left out ...]" in found[0]["text"]
    assert is_cut_of(found[0]["text"], rows[0]["text"])


def test_objects_keep_their_keys(backend):
    """All keys stay as long as there is room; values share it, the small ones whole."""
    value = {
        "name": "tea",
        "text": "green " * 500,
        "list": [*range(500)],
        "in": {"a": 1, "b": [2]},
    }
    found = json.loads(fit_output(value, 80).text)

    assert [*value] == [*found]
    assert ("tea", value["in"]) == (found["name"], found["in"])
    assert 3 < len(found["list"])
    assert 60 < len(found["text"])
    assert is_cut_of(loads(json.dumps(found)), loads(json.dumps(value)))

    value = {f"key {i}": i for i in range(300)}
    found = json.loads(fit_output(value, 60).text)
    marker = found.pop("...")
    assert [*value.items()][: len(found)] == [*found.items()]
    assert f"[... {300 - len(found)} of 300 keys left out ...]" == marker
    found = json.loads(fit_output({"map": value}, 60).text)
    assert ["map"] == [*found]
    assert "..." in found["map"]
    assert "key 77" in json.loads(fit_output(value, 60, query="77").text)


def test_nothing_is_written_otherwise(backend):
    """Numbers, escapes and members that are there twice stay as they are."""
    value = '{"a":1e400,"a":-0.0,"b":"\\u00e9\\/","c":100000000000000000000001,"d":"%s"}'
    value %= "tea " * 200
    fitted = fit_output(value, 70)

    assert value[: value.index("tea")] == fitted.text[: value.index("tea")]
    assert fitted.was_cut


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "cluster", ["e\u0301\u0323", "\U0001f1e9\U0001f1ea", '"', "\\", "\n", "\ud800"]
)
def test_strings_are_cut_between_clusters(backend, cluster, ascii_only):
    """Neither an escape nor a cluster is split, at any limit."""
    whole = "tea " + cluster * 80
    value = json.dumps([whole], ensure_ascii=ascii_only)
    for limit in range(45, 150):
        found = loads(fit_output(value, limit, counter=len).text)
        assert is_cut_of(found, [whole])


def test_tables(backend):
    """Records become a table where more of them fit so, and only then."""
    fitted = fit_output(ROWS, 300, kind="table")
    found = json.loads(fitted.text)
    plain = fit_output(ROWS, 300, kind="json")

    assert ("table", ["columns", "rows"]) == (fitted.kind, [*found])
    assert ["id", "name", "green"] == found["columns"]
    assert len(found["rows"]) > len(json.loads(plain.text))
    rows = [row for row in found["rows"] if isinstance(row, list)]
    assert all([*ROWS[row[0]].values()] == row for row in rows)
    assert f"{50 - len(rows)} of 50 items left out" in fitted.text
    total = fit_output(ROWS, 10**6).total_tokens
    whole = fit_output(ROWS, total - 1, kind="table")
    assert ("table", False) == (whole.kind, whole.was_cut)
    assert [[*row.values()] for row in ROWS] == json.loads(whole.text)["rows"]
    assert 0.8 * total > whole.total_tokens
    assert "json" == fit_output(ROWS, 10**6, kind="table").kind
    assert "json" == fit_output(ROWS, 300).kind


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1] * 99},
        [1] * 99,
        [[1, 2]] * 99,
        [["tea", "rye"], 1] * 60,
        [{}] * 99,
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}] * 30,
        [{"a": 1, "b": 2}, {"a": 2}] * 30,
        [{"a": "tea " * 99}],
        "[" + ",".join(['{"a":1,"a":2}'] * 60) + "]",
    ],
)
def test_no_tables(backend, value):
    """What is no array of records with the same keys is cut as JSON."""
    assert fit_output(value, 30, kind="table") == fit_output(value, 30, kind="json")
    assert fit_output(value, 30).was_cut
