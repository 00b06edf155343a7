"""
The cases of tool results that both languages answer alike.

    python tests/python/output_cases.py

writes `tests/cases/output.json` anew, with what Python answers. `test_output_cases.py` holds it
against Python, `tests/rust/output.rs` against Rust.
"""

import difflib
import json
from functools import partial
from pathlib import Path
from random import Random

from cases import write

from budgeteer import BudgeteerError, fit_output, fit_outputs

FILE = Path(__file__).parents[1] / "cases/output.json"
WORDS = ["tea", "grün", "日本", "🇳🇴", "e\u0301a", "green", "timeout", 'a"b', "c\\d", "line\n"]
COUNTERS = ["o200k_base", "chars_div4", "words"]


def _words(random, most):
    return " ".join(random.choices(WORDS, k=random.randrange(1, most)))


def _json(random):
    """Return JSON as a tool might write it."""
    rows = [
        {"id": i, "name": _words(random, 3), "body": _words(random, 30), "score": random.random()}
        for i in range(random.randrange(1, 20))
    ]
    value = random.choice(
        [
            rows,
            {"rows": rows, "text": _words(random, 200), "next": None},
            {_words(random, 2): i for i in range(40)},
            _words(random, 60),
            [*range(200)],
        ]
    )
    return json.dumps(
        value, ensure_ascii=random.random() < 0.5, indent=random.choice([None, None, 2])
    )


def _log(random):
    """Return the lines of a log."""
    lines = []
    for i in range(random.randrange(4, 60)):
        level = random.choice(["INFO", "INFO", "INFO", "WARN", "ERROR"])
        said = random.choice([f"request {i} served", _words(random, 6).replace("\n", " ")])
        lines.append(f"2026-01-02 12:{i:02}:00 {level} {said}")
        if level == "ERROR":
            lines.append(f"  at tea.py, line {i}")
    return "\n".join(lines)


def _diff(random):
    """Return a unified diff of some files."""
    parts = []
    for i in range(random.randrange(1, 5)):
        old = [f"{_words(random, 4)}".replace("\n", " ") + "\n" for _ in range(40)]
        new = [line if random.random() < 0.85 else f"{i} {line}" for line in old]
        parts += difflib.unified_diff(old, new, f"a/{i}.py", f"b/{i}.py")
    return "".join(parts)


def _git(random):
    """Return a diff as git and others write it, or as somebody broke it."""
    parts = [random.choice(["", "", "commit 1\n\n    Say why\n\n", "\n"])]
    for name in random.sample(["tea.py", "a b.md", "rye/é.txt", "x"], random.randrange(1, 4)):
        old, new = random.choice([f"a/{name}", "/dev/null"]), random.choice([f"b/{name}", "c"])
        new = random.choice([new, new, "/dev/null"])
        pair = f"--- {old}{random.choice(['', '', chr(9) + '2026-01-02'])}\n+++ {new}\n"
        quoted = f'"a/{name}" "b/{name}"'
        names = random.choice([f"a/{name} b/{name}", quoted, f"{name} {name}", f"i/{name} w/c d"])
        first = random.choice([f"diff --git {names}\n", f"diff {name} {new}\n", ""])
        said = random.choice(["", "index 1..2 100644\n", "rename from a\nrename to b b\n"])
        parts += [first, said, random.choice([pair, pair, pair, f"--- {old}\n", ""])]
        for _ in range(random.randrange(4)):
            signs = random.choices(["-", "+", " "], k=random.randrange(6))
            lines = [f"{sign}{random.choice(WORDS[:6])}\n" for sign in signs]
            sizes = [sum(sign != other for sign in signs) for other in "+-"]
            counts = [
                random.choice([f"1,{size}", f"1,{size}", "7", f"1,{size + 1}", "2,0"])
                for size in sizes
            ]
            parts += [f"@@ -{counts[0]} +{counts[1]} @@{random.choice(['', ' def tea():'])}\n"]
            parts += lines
            parts += [random.choice(["", "", "\\ No newline at end of file\n", "\n", "garbage\n"])]
    made = "".join(parts)
    return random.choice([made, made, made.replace("\n", "\r\n"), made.rstrip("\n")])


def _text(random):
    """Return paragraphs."""
    return "\n\n".join(_words(random, 40) for _ in range(random.randrange(1, 9)))


def outputs():
    """Return single results of tools, and what is left of them."""
    random = Random(19)
    cases = []
    for i in range(160):
        make = (_json, _log, _diff, _text)[i % 4]
        case = {
            "value": make(random),
            "max_tokens": random.choice([0, 1, 5, 15, 30, 60, 120, 300]),
            "kind": random.choice(["auto", "auto", "table" if make is _json else "text"]),
            "query": random.choice([None, None, "green timeout"]),
            "counter": random.choice(COUNTERS),
        }
        pointer = random.choice([None, None, '/tmp/"tea"'])
        cases.append(_answered(fit_output, case, pointer))
    return cases


def _value(random, depth=0):
    """Return a JSON value of any shape."""
    if depth > 3 or random.random() < 0.3:
        return random.choice([None, True, -0.5, 7, 10**30, "", _words(random, 12), "\u2028\x07"])
    count = random.choice([0, 1, 2, 5, 12])
    if random.random() < 0.5:
        return [_value(random, depth + 1) for _ in range(count)]
    return {_words(random, 3): _value(random, depth + 1) for _ in range(count)}


def _odd_json(random):
    """Return JSON of any shape, spaced and escaped in one way or another."""
    value = _value(random)
    if random.random() < 0.3:  # rows of a table, some without a cell
        names = ["id", _words(random, 2), "tea"]
        value = [
            {name: _value(random, 3) for name in names if random.random() < 0.9}
            for _ in range(random.choice([1, 3, 30]))
        ]
    made = json.dumps(
        value,
        ensure_ascii=random.random() < 0.5,
        indent=random.choice([None, None, 1]),
        separators=random.choice([None, (",", ":"), (" ,\n", "\t: ")]),
    )
    return random.choice(["", "", " ", "\n"]) + made + random.choice(["", "", "\n"])


def _odd_log(random):
    """Return lines that repeat, belong together, or are empty."""
    starts = ["2026-01-02T12:00:00Z ", "12:30 ", "[7] ", "Jan 2 12:00:00 host ", ""]
    start, lines = random.choice(starts), []
    for i in range(random.choice([1, 4, 20, 60])):
        level = random.choice(["INFO", "info", "ERROR", "error:", "WARNING", "FATAL", "panic", ""])
        said = random.choice([f"request {i} took {i * 7} ms", "again", _words(random, 5)])
        lines.append(f"{start}{level} {said}".replace("\n", " "))
        lines += random.choice([[], [], [""], ["\tat tea.rye(tea.py:7)", "\tat x"], ["  File x"]])
        lines += [lines[-1]] * random.choice([0, 0, 1, 4])
    return random.choice(["\n", "\n", "\r\n"]).join(lines) + random.choice(["", "\n"])


def shapes():
    """Return JSON, logs and texts of many shapes, and what is left of them."""
    random = Random(22)
    cases = []
    for i in range(450):
        make = (_odd_json, _odd_log, _text)[i % 3]
        kind = ("json", "log", "text")[i % 3]
        case = {
            "value": make(random),
            "max_tokens": random.choice([0, 1, 3, 8, 20, 40, 90]),
            "kind": random.choice(["auto", kind, "table" if kind == "json" else kind]),
            "query": random.choice([None, "green timeout"]),
            "counter": random.choice(["chars_div4", "chars_div4", "words"]),
        }
        pointer = random.choice([None, None, "/tea", "/tea" * 40])
        cases.append(_answered(fit_output, case, pointer))
    return cases


def _object(random):
    """Return a line of JSON as a logger might write it, or broken."""
    key = random.choice(["level", "Severity", "lvl", "log.level", "levels"])
    row = {key: random.choice(["info", "info", "warn", "ERROR", "tea", 7])}
    row["msg"] = random.choice(["no error", f"pot {random.randrange(99)}", _words(random, 40)])
    row["rye"] = [*range(random.choice([0, 2, 60]))]
    made = json.dumps(row, ensure_ascii=False, separators=random.choice([None, (" , ", " : ")]))
    return random.choice([made, made, made, made.replace('"rye"', "rye"), f" {made}\t"])


def _build(random):
    """Return a line of a build, or one that says what is wrong with it."""
    name = f"src/{random.choice(WORDS[:6])}{random.randrange(99)}"
    return random.choice(
        [
            *[f"cc -Werror -c {name}.c"] * 9,
            f"{name}.c:3:5: error: no tea",
            f"{name}.c:3:5: warning: no rye",
            f"{name}.ts(3,5): error TS1: no tea",
            f"ld: fatal error: no {name}",
            f"error[E0308]: no {name}",
            f"FAILED {name}::tea",
            f"an error: {name}",
            "  3 | tea",
        ]
    )


def logs():
    """Return JSON Lines, outputs of builds and errors that repeat, and what is left of them."""
    random = Random(23)
    cases = []
    for i in range(300):
        make = (_object, _build)[i % 2]
        lines = [make(random) for _ in range(random.choice([1, 2, 6, 40, 90]))]
        for _ in range(random.choice([0, 0, 12])):
            said = random.choice(["ERROR", "INFO", "WARN"])
            lines[random.randrange(len(lines))] = f"12:30 {said} pot {random.randrange(9)}"
        case = {
            "value": random.choice(["\n", "\n", "\r\n"]).join(lines),
            "max_tokens": random.choice([5, 20, 40, 90, 200]),
            "kind": random.choice(["auto", "auto", "log"]),
            "query": random.choice([None, None, "green pot 7"]),
            "counter": random.choice(["chars_div4", "chars_div4", "words"]),
        }
        pointer = random.choice([None, None, "/tea", '"\\tea' * 20])
        cases.append(_answered(fit_output, case, pointer))
    return cases


def _lines(make, random):
    """Return some lines, each made by a function."""
    return "\n".join(make(random) for _ in range(random.choice([1, 2, 6, 30])))


SEEDS = (378, 460, 653, 1278, 1953, 2154, 2214, 2528, 2575, 2885, 3102, 3326)
"""Of thousands, those whose cases tell apart what no other case here does."""


def drawn(seed):
    """Return a case of any kind, counted by characters, so that one more or less shows."""
    random = Random(seed)
    makes = [_json, _log, _diff, _text, _odd_json, _odd_log, _git]
    makes += [partial(_lines, _object), partial(_lines, _build)]
    value = random.choice(makes)(random)
    case = {
        "value": value,
        "max_tokens": random.randrange(random.choice([60, 300, 2 * len(value) + 1])),
        "kind": random.choice(["auto", "auto", "auto", "text", "log"]),
        "query": random.choice([None, None, "green timeout", "pot 7"]),
        "counter": "chars_per_token:1",
    }
    pointer = random.choice([None, None, "/tea", '"\\tea' * 20, "/t" * 40])
    return _answered(fit_output, case, pointer)


def characters():
    """Return results of any kind, and what is left of them in a number of characters."""
    return [drawn(seed) for seed in SEEDS]


def diffs():
    """Return diffs of many shapes, and what is left of them."""
    random = Random(21)
    cases = []
    for _ in range(400):
        case = {
            "value": _git(random),
            "max_tokens": random.choice([0, 8, 20, 30, 40, 60, 90]),
            "kind": random.choice(["auto", "diff"]),
            "query": random.choice([None, "green timeout", "rye"]),
            "counter": "chars_div4",
        }
        cases.append(_answered(fit_output, case, None))
    return cases


def shared():
    """Return results that share a limit."""
    random = Random(20)
    cases = []
    for _ in range(20):
        case = {
            "value": [random.choice([_json, _log, _diff, _text])(random) for _ in range(4)],
            "max_tokens": random.choice([10, 60, 200, 1000]),
            "kind": "auto",
            "query": None,
            "counter": random.choice(COUNTERS),
        }
        cases.append(_answered(fit_outputs, case, None))
    return cases


def refused():
    """Return what is refused."""
    cases = []
    for value, kind, limit in [
        ("[1, 2", "json", 9),
        ("[1 2]", "table", 9),
        ('{"a" 1}', "json", 9),
        ("[NaN]", "json", 9),
        ("[01]", "json", 9),
        ('["\t"]', "json", 9),
        ("grün [", "json", 9),
        ("[" * 129 + "]" * 129, "json", 9),
        ("tea", "diff", 9),
        ("[1,2,3]", "json", 0),
        ('"tea"', "json", 0),
        ("12345678", "json", 1),
    ]:
        case = {"value": value, "max_tokens": limit, "kind": kind, "query": None}
        case["counter"] = "o200k_base"
        cases.append(_answered(fit_output, case, None))
    return cases


def _answered(function, case, pointer):
    """Return a case with what is answered, or the kind of the error."""
    return {**case, "pointer": pointer, **_answer(function, case, pointer)}


def _answer(function, case, pointer):
    options = {name: case[name] for name in ("kind", "query", "counter")}
    spill = None if pointer is None else lambda _: pointer
    try:
        fitted = function(case["value"], case["max_tokens"], **options, spill=spill)
    except BudgeteerError as error:
        return {"error": type(error).__name__}
    found = [
        {
            "text": output.text,
            "total_tokens": output.total_tokens,
            "left_out": output.left_out,
            "kind": output.kind,
            "pointer": output.pointer,
        }
        for output in (fitted if isinstance(fitted, list) else [fitted])
    ]
    return {"fitted": found}


KINDS = (outputs, diffs, shapes, logs, characters, shared, refused)


if __name__ == "__main__":
    write(FILE, KINDS)
