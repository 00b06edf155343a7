"""The cases of tool results that both languages answer alike."""

import json

import output_cases
import pytest
from support import compared, outcome, using

from budgeteer import fit_output

CASES = json.loads(output_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", output_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What `tests/cases/output.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == json.loads(json.dumps(kind()))


HUNK = "@@ -1,2 +1,2 @@\n-{0} tea\n+{0} rye\n green\n"
EVERY = {
    "diff": "commit 1\n\n"
    + "".join(f"--- a/{n}.py\n+++ b/{n}.py\n" + HUNK.format(n) * 2 for n in ("a", "bc", "d"))
    + "diff --git a/e b/f\nrename from e\nrename to f\n",
    "log": "".join(
        f"12:30:0{i} {level} request {i} of tea\n"
        for i, level in enumerate(
            ["INFO", "INFO", "INFO", "ERROR", "INFO", "INFO", "WARN", "INFO"]
        )
    )
    + "12:31 INFO green rye\n\n12:32 INFO bread\n",
    "text": "Green tea.\nIt is mild.\n\nRye bread is dark, and it keeps.\n \n\nCoffee.\n\nTea.",
    "json": '{"tea":["green, far from here","black",3,[1,2,3]],"rye":{"a":1,"bc":"\\n\\u00e9"}}',
    "table": json.dumps([{"id": i, "name": "tea " * i, "rye": [i]} for i in range(6)]),
}
"""A text of each kind."""


@compared
@pytest.mark.parametrize("query", [None, "black tea"])
@pytest.mark.parametrize("kind", EVERY)
def test_both_backends_answer_alike_at_every_limit(kind, query):
    """From no code point to all, with and without a query."""
    options = {"kind": kind, "query": query, "counter": len}
    for limit in range(len(EVERY[kind]) + 2):
        found = []
        for name in ("native", "reference"):
            with using(name):
                found.append(outcome(fit_output, EVERY[kind], limit, **options))
        assert found[0] == found[1], limit


ROW = '"tea":"' + "green and black, " * 7
NEARLY_OBJECTS = [
    f'{{{ROW}"}}\n',
    f'{{ {ROW}","rye":[1,2]}}\r\n',
    f'\u3000{{{ROW}"}}\n',
    f'{{\u3000{ROW}"}}\n',
    f"{{{ROW}\n",
    f'tea {ROW}"}}\n',
    f'{{tea {ROW}"}}\n',
    f'\v{{{ROW}"}}\f\n',
    "{" + " " * 120 + "}\n",
]
"""Lines of a log, of which some are objects of JSON, and are cut as such."""
LENGTHS = [
    f"{size} ERROR ".ljust(size, "=") + "\n" for size in (63, 64, 65, 80, 95, 96, 97, 99, 100, 101)
]
"""Lines about as long as two and three of the markers that would stand in them."""
GIT = [
    *("a/tea b/tea", "i/green tea w/green tea", "a/x y b/x z", "tea tea", "é/tea b/tea"),
    *('"a/t\\303\\251" "b/t\\303\\251"', 'a/tea "b/q\\"uote"', '"a b" "c d"', ' "tea"', '"'),
    *("a/tea b/tea\r", "1/tea 2/rye", "ab/tea cd/tea", "a/tea", "a b/tea x", "ab cd", ""),
]
"""What stands behind ``diff --git`` where files are renamed, quoted, or have other letters."""
RENAMES = ["copy to green tea\n", 'rename to "q\\"uote"\r\n', 'rename to "\n', "copy to\n"]
HEADERS = [
    "--- a/tea\t2026-11-27\n+++ b/rye\t2026-11-27\n",
    "--- a/tea\r\n+++ /dev/null\r\n",
    '--- /dev/null\n+++ "b/gr\\303\\251en"\n',
    "--- tea\n+++ rye \n",
]
DIFFS = {
    "names": "".join(f"diff --git {name}\nold mode 100644\nnew mode 100755\n" for name in GIT),
    "renames": "".join(f"diff --git a/x b/y\n{line}" for line in RENAMES),
    "hunks": "From: tea\n\n" * 5
    + "".join(f"{header}@@ -1,3 +1,3 @@\n-tea\n+rye\n\n\r\n\\ No newline\n" for header in HEADERS)
    + "@@ -1 +1 @@\n-tea\n+rye\n+more\n@@ -1,0 +1,2 @@\n+tea\n+rye\n-tea\n",
}
ERRORS = [f"12:30:0{i} ERROR tea {i}\n" for i in range(len(NEARLY_OBJECTS))]
WIDE = {
    "objects": ("log", "".join(["12:30 ERROR tea\n", *NEARLY_OBJECTS, "12:31 INFO rye\n"])),
    "errors": ("log", "".join(map("".join, zip(ERRORS, NEARLY_OBJECTS, strict=True)))),
    "rows": ("log", "".join(NEARLY_OBJECTS).replace("green", "ERROR") + '[" ERROR tea\n'),
    "best": ("log", "".join([*NEARLY_OBJECTS, '{"level":"error",' + ROW + '"}\n'])),
    "lengths": ("log", "".join([*LENGTHS, "12:31 ERROR " + "of black tea " * 9])),
    "an object": ("text", NEARLY_OBJECTS[0]),
    "blank": ("text", "Green tea.\n\u3000\nRye.\n \v\nBlack tea is strong.\n\x1c\nTea.\n\n\n"),
    "nothing": ("log", ""),
    **{name: ("diff", text) for name, text in DIFFS.items()},
    "one row": ("json", json.dumps([{"tea": "black " * 20, "rye": ["dark " * 9, 7]}])),
    "one string": ("json", json.dumps([["green and black " * 9]])),
    "strings": ("json", json.dumps(["=" * size for size in range(30, 48)])),
    "arrays": ("json", json.dumps([[i, "tea " * i, {"rye": [i] * i}] for i in range(9)])),
    "keys": ("json", json.dumps({f"tea {i}": ["black " * i, {"é": i}] for i in range(12)})),
    "two records": ("table", json.dumps([{"id": i, "tea": "black " * 9} for i in (1, 2)])),
    "records": ("table", json.dumps([{f"tea {n}": i for n in range(9)} for i in range(9)])),
    "other keys": ("table", json.dumps([{"a": 1, "b": 2}, {"a": 1, "c": 2}, {"a": 3}])),
    "two short records": ("table", json.dumps([{"black tea": i, "green tea": i} for i in (1, 2)])),
    "keys twice": ("table", json.dumps([{"black": i, "Black": i} for i in range(9)]).lower()),
    "no keys": ("table", "[{},{},{}]"),
    "no array": ("table", json.dumps({f"{i}": {"black tea": i} for i in range(9)})),
}
"""Texts of a kind each, as odd as they come."""


@compared
@pytest.mark.parametrize(("query", "pointer"), [(None, '/tmp/é"'), ("rye 7", None)])
@pytest.mark.parametrize("name", WIDE)
def test_both_backends_answer_alike_on_odd_texts(name, pointer, query):
    """Lines that are nearly objects, too long or blank; arrays, objects and tables."""
    kind, text = WIDE[name]
    spill = None if pointer is None else lambda _: pointer
    options = {"kind": kind, "query": query, "counter": len, "spill": spill}
    for limit in range(0, len(text) + 2, 1 + len(text) // 250):
        found = []
        for backend in ("native", "reference"):
            with using(backend):
                found.append(outcome(fit_output, text, limit, **options))
        assert found[0] == found[1], limit
