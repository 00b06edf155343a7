"""Texts, logs and diffs: what stays, and how."""

import difflib
import json
import re
import shutil
import subprocess
import time

import pytest

from budgeteer import fit_output
from budgeteer._reference._count.graphemes import grapheme_boundaries

CUT_MARKER = re.compile(r"\[\.\.\. (\d+) characters left out(?:; .*)? \.\.\.\]")
MARKER = re.compile(r"\[\.\.\. (\d+) (?:similar lines?|lines? left out)(?:; .*)? \.\.\.\]\n?")


def test_texts(backend):
    """Both ends stay; with a query the paragraphs that answer it."""
    text = "".join(f"{i} green tea, " for i in range(400))
    fitted = fit_output(text, 60)
    head, marker, tail = fitted.text.split("\n")

    assert text.startswith(head)
    assert text.endswith(tail)
    assert f"[... {len(text) - len(head) - len(tail)} characters left out ...]" == marker
    assert abs(len(head) - len(tail)) <= 1
    assert 55 <= fitted.total_tokens <= 60

    paragraphs = [f"Paragraph {i} is about rye.\n\n" for i in range(90)]
    paragraphs[40] = "The needle is here.\nAnd here.\n \n\n"
    found = fit_output("".join(paragraphs), 50, query="needle").text
    assert paragraphs[40] in found
    assert "paragraphs left out ...]\n\n" in found
    assert found.startswith(paragraphs[0])
    found = fit_output("tea " * 500 + "\n\nneedle " + "rye " * 500, 60, query="needle").text
    assert "needle rye" in found


def is_log_of(cut, log):
    """Return whether the lines of *cut* are lines of *log*, and markers that count the others."""
    lines, at = log.splitlines(keepends=True), 0
    for line in cut.splitlines(keepends=True):
        marker = MARKER.fullmatch(line)
        if marker:
            at += int(marker[1])
        elif line == lines[at] or " characters left out" in line:
            at += 1
        else:
            return False
    return at == len(lines)


def test_logs(backend):
    """Errors with what follows them stay, then warnings and what is around; repeats fold."""
    lines = [f"12:30:{i % 60:02} INFO request {i} served in {i % 9} ms\n" for i in range(600)]
    lines[200] = "12:33:20 ERROR tea is cold\n"
    lines[201:203] = ["  at pot.py, line 7\n", "  at cup.py, line 9\n"]
    lines[400] = "12:36:40 WARN tea is warm\n"
    lines[500:503] = ["Traceback (most recent call last):\n", '  File "pot"\n', "ColdError: no\n"]
    log = "".join(lines)
    fitted = fit_output(log, 230)

    assert "log" == fitted.kind
    assert is_log_of(fitted.text, log)
    for i in (0, 1, 200, 201, 202, 400, 500, 501, 502, 598, 599):
        assert lines[i] in fitted.text, i
    assert re.search(r"\[\.\.\. \d+ similar lines \.\.\.\]\n", fitted.text)
    for limit in range(0, 200, 7):
        assert is_log_of(fit_output(log, limit).text, log) or not fit_output(log, limit).text


REQUESTS = [
    f"10:{i // 60:02}:{i % 60:02} INFO worker handled request {i} of customer c{i * 7 % 97}"
    for i in range(400)
]


@pytest.mark.parametrize("query", [None, "disk full"])
def test_an_error_comes_before_the_ends(backend, query):
    """It is whole where it fits beside two markers; the first and last lines come after it."""
    error = "10:03:20 ERROR disk full on /dev/sda1"
    log = "\n".join([*REQUESTS[:200], error, *REQUESTS[201:]])
    for limit in (100, 140, 200, 400):
        found = fit_output(log, limit, query=query, counter=len).text
        assert error in found.split("\n"), limit
        assert is_log_of(found, log), limit
        assert "characters left out" not in found, limit
    kept = fit_output(log, 400, query=query, counter=len).text.split("\n")
    assert [REQUESTS[0], REQUESTS[399]] == [kept[0], kept[-1]]


def test_an_error_comes_before_its_indented_lines(backend):
    """Also in the second half of a log, where the last lines are the nearer end."""
    inside = [f"  at pot {chr(97 + i)}.py" for i in range(9)]
    lines = [*REQUESTS[:300], "10:05 ERROR tea is cold", *inside, *REQUESTS[310:]]
    kept = fit_output("\n".join(lines), 120, counter=len).text.split("\n")

    assert ["10:05 ERROR tea is cold", *inside[:2]] == kept[1:4]


def test_the_best_line_is_whole_where_it_fits(backend):
    """Others get a part of what it leaves; where it does not fit, it loses its middle."""
    error = "12:30 ERROR " + "tea is cold " * 20
    lines = [f"12:3{i} INFO " + f"pot {chr(97 + i)} is warm " * 12 for i in range(9)]
    log = "\n".join([*lines[:5], error, *lines[5:]])

    assert error in fit_output(log, 340, counter=len).text.split("\n")
    found = fit_output(log, 240, counter=len).text
    assert "12:30 ERROR tea is" in found
    assert is_log_of(found, log)


@pytest.mark.parametrize("pointer", [None, "/tmp/tea", "/tmp" * 40])
def test_a_marker_is_shorter_than_what_it_saves(backend, pointer):
    """A line that is cut loses twice its marker or more; shorter lines stay or go."""
    lines = [f"12:30 INFO {'tea ' * size}{chr(97 + size % 26)}" for size in range(5, 120, 3)]
    log = "\n".join(lines)
    spill = None if pointer is None else lambda _: pointer
    cuts = 0
    for limit in range(0, 1200, 13):
        found = fit_output(log, limit, kind="log", counter=len, spill=spill).text
        for line in found.split("\n"):
            marker = CUT_MARKER.search(line)
            if marker:
                cuts += 1
                assert int(marker[1]) >= 2 * len(marker[0]), line
                assert len(line) - len(marker[0]) + 2 >= len(marker[0]), line
    assert cuts


def test_errors_that_repeat(backend):
    """They stay before lines that repeat, and the last of them early."""
    lines = [*REQUESTS]
    errors = [*range(10, 400, 20)]
    for i in errors:
        lines[i] = f"10:{i // 60:02}:{i % 60:02} ERROR disk full on /dev/sd{'abcd'[i // 20 % 4]}1"
    log = "\n".join(lines)

    kept = fit_output(log, 3000, counter=len).text.split("\n")
    assert all(lines[i] in kept for i in errors)
    kept = fit_output(log, 160, counter=len).text.split("\n")
    assert [lines[10], lines[390]] == [line for line in kept if line in lines]


def test_errors_that_repeat_take_turns_with_the_rest(backend):
    """Neither of them hides the other."""
    names = [a + b for a in ["tea", "rye", "oat", "hay", "fig"] for b in ["pot", "cup", "tin"]]
    lines = [f"12:30 ERROR try {i}" for i in range(900)]
    lines[30:900:60] = [f"12:30 INFO {name}" for name in names]
    for other in ("ERROR", "INFO"):
        log = "\n".join(lines)
        kept = fit_output(log, 800, counter=len).text
        found = [kept.count(level) for level in ("ERROR", "INFO")]
        assert min(found) >= 6, other
        lines = [f"12:30 INFO {name} {more}" for name in names for more in names]
        lines[30:200:9] = [f"12:30 ERROR try {i}" for i in range(30, 200, 9)]


def test_warnings_that_repeat(backend):
    """They stay before other lines that repeat, and after those that are new."""
    lines = [f"12:30 WARN pot {i}" if i % 9 == 4 else f"12:30 INFO cup {i}" for i in range(200)]
    lines[80] = "12:30 INFO tin"
    kept = fit_output("\n".join(lines), 600, counter=len).text

    assert kept.count("WARN") >= 6
    assert kept.count("INFO cup") <= 6
    assert "INFO tin" in kept


def test_of_similar_lines_the_best_answer_stays(backend):
    """It stands with the errors, though it is not the first."""
    kept = fit_output("\n".join(REQUESTS), 240, query="customer c42", counter=len).text
    assert "of customer c42\n" in kept


@pytest.mark.parametrize(
    ("line", "other", "are_similar"),
    [
        ("request 17", "request 4", True),
        ("at 0x7ffe12 of deadbeef", "at 0x1 of cafe", True),
        ("2026-01-02T03:04:05Z up", "2027-11-12T13:14:15Z up", True),
        ("tea", "rye", False),
        ("bad tea", "bed tea", False),
        ("tea", "tea ", False),
        ("tea", "tea", True),
    ],
)
def test_similar_lines(backend, line, other, are_similar):
    """Lines that differ in numbers, times and identifiers alone are similar."""
    behind = " of green tea" * 9
    others = [f"the {name}{behind}" for name in ("cup", "pot", "tin", "lid", "jug", "pan", "mug")]
    log = "\n".join(["one", "two", line + behind, *others, other + behind, "three", "four"])
    kept = fit_output(log, len(log) - 40, kind="log", counter=len).text.split("\n")

    assert line + behind in kept
    assert (other + behind in kept) is (not are_similar or other == line)
    assert (others[3] in kept) is are_similar


@pytest.mark.parametrize("filler", ["_", "é", "茶", "🍵"])
@pytest.mark.parametrize("sign", ["INFO", "12:30"])
def test_the_start_of_a_line_tells_that_it_is_of_a_log(backend, filler, sign):
    """Levels and times count that end within the first 64 characters."""

    def kind(before):
        line = f"{filler * before}{sign} {filler * 90}\n"
        return fit_output(line * 4, 1000, counter=len).kind

    last = 64 - len(sign)
    assert ["log", "log", "log", "text"] == [kind(n) for n in (0, 1, last, last + 1)]
    assert "log" == fit_output(f"{sign}\n" * 4, 8, counter=len).kind
    assert "text" == fit_output("1:30\n" * 4, 8, counter=len).kind
    assert "text" == fit_output("12:3" * 4 + "\n12:3\n:30\n30:", 8, counter=len).kind


def test_a_log_by_its_query(backend):
    """Lines that answer the query come before errors that do not."""
    lines = [f"12:30 ERROR pot {chr(97 + i)}{chr(98 + i)}x broke" for i in range(20)]
    lines += [f"12:31 INFO word{chr(97 + i)}x" for i in range(20)] + ["12:32 INFO needle found"]
    lines += [f"12:31 INFO other{chr(97 + i)}x" for i in range(20)]
    log = "\n".join(lines)

    assert "needle" in fit_output(log, 70, query="where is the needle?").text
    assert "needle" not in fit_output(log, 70).text


def test_long_lines(backend):
    """A line that would take more than a quarter loses its middle, between clusters."""
    line = "INFO " + "e\u0301" * 500
    log = f"ERROR one\n{line}\nERROR two\nINFO three\nINFO four"
    found = fit_output(log, 160, kind="log", counter=len).text
    cut = next(part for part in found.split("\n") if "characters left out" in part)
    head, _, tail = cut.partition(" [... ")

    assert "ERROR one" in found
    assert "ERROR two" in found
    assert len(head) in grapheme_boundaries(line)
    assert line.startswith(head)
    assert line.endswith(tail.partition("...] ")[2])


def objects(count, **others):
    """Return lines of JSON, all of one level."""
    return [
        json.dumps({"ts": f"10:{i:02}", "level": "info", "msg": f"no error {i}", **others})
        for i in range(count)
    ]


@pytest.mark.parametrize(
    "level",
    [
        '"level":"error"',
        '"Level" : "Fatal"',
        '"severity":"CRITICAL"',
        '"lvl":\t"err"',
        '"log.level":"crit"',
        '"severityText":"ERROR"',
    ],
)
def test_json_lines(backend, level):
    """They stay whole or go, and what they say of their level decides."""
    lines = objects(100)
    lines[40] = f'{{"ts":"10:40",{level},"msg":"the disk is full"}}'
    lines[70] = lines[70].replace('"info"', '"warn"')
    log = "\n".join(lines)
    for limit in (130, 240, 400, 800):
        fitted = fit_output(log, limit, counter=len)
        assert "log" == fitted.kind
        assert is_log_of(fitted.text, log)
        assert lines[40] in fitted.text.split("\n"), limit
        assert (lines[70] in fitted.text) is (limit > 130)


@pytest.mark.parametrize(
    ("level", "stays"),
    [
        (100, True),
        (50, True),
        (40, True),
        (39, False),
        (0, True),
        (3, True),
        (4, True),
        (5, False),
    ],
)
def test_levels_of_json_lines_that_are_numbers(backend, level, stays):
    """They are pino's, or below 10 those of syslog; a word of the message says nothing then."""
    other = 6 if level < 10 else 30
    lines = [f'{{"level":{other},"msg":"no error {i}"}}' for i in range(50)]
    lines[20] = f'{{"level":{level},"msg":"no error 20"}}'
    fitted = fit_output("\n".join(lines), 150, counter=len)

    assert stays == (lines[20] in fitted.text)


def test_a_cut_object_keeps_its_carriage_return(backend):
    """Lines end as they did."""
    text = '{"level":"error","m":"' + "x" * 400 + '"}\r\n{"a":1}\r\n'
    fitted = fit_output(text, 100, counter=len)

    assert fitted.was_cut
    assert all(line.endswith("\r\n") for line in fitted.text.splitlines(keepends=True)[:1])


def test_answers_and_errors_take_turns(backend):
    """An error without a word of the query stays beside the best answer."""
    lines = [f"12:30 INFO user {letter} login" for letter in "abcdefghijklmnopqrstuvwxyz"]
    lines[12] = "12:30 ERROR disk full"
    fitted = fit_output("\n".join(lines), 120, query="login", counter=len)

    assert lines[12] in fitted.text
    assert lines[0] in fitted.text


def test_a_long_object_among_json_lines(backend):
    """The best one is cut where it does not fit, and is still JSON; the others stay or go."""
    lines = objects(20, more="tea " * 60)
    lines[7] = json.dumps({"level": "error", "msg": "tea is cold " * 40, "rye": [*range(200)]})
    log = "\n".join(lines)
    for limit in (250, 400, 600):
        kept = fit_output(log, limit, counter=len, spill=lambda _: 'the "pot"').text.split("\n")
        found = [json.loads(line) for line in kept if line.startswith("{")]
        assert ["error"] == [line["level"] for line in found if line["level"] != "info"]
        assert all(line in lines for line in kept if '"info"' in line)
    broken = log.replace('"rye"', "rye")
    assert "characters left out" in fit_output(broken, 400, counter=len).text


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("src/tea.c:3:5: error: no tea", True),
        ("error[E0308]: mismatched types", True),
        ("E   assert tea == rye", True),
        ("12:30 [crit] no tea", True),
        ("TypeError: no tea", True),
        ("java.lang.IllegalStateException: no tea", True),
        ("npm ERR! no tea", True),
        ("cc -Werror -c tea.c", False),
        ("Compiling thiserror", False),
        ('{"level":"info","msg":"no error"}', False),
        ('{"msg":"level","error":"no tea"}', True),
        ('{"level":"tea"} error', True),
    ],
)
def test_what_is_an_error(backend, line, is_error):
    """By its words, and in an object of JSON by its level."""
    others = [f"building {chr(97 + i)}{chr(98 + i)}" for i in range(20)]
    log = "\n".join([*others[:10], line, *others[10:]])

    kept = fit_output(log, len(line) + 60, kind="log", counter=len).text.split("\n")
    assert (line in kept) is is_error


OLD = [f"line {i}\n" for i in range(200)]
NEW = [f"tea {i}\n" if i % 40 == 7 else line for i, line in enumerate(OLD)]
FILES = [
    f"diff --git a/{name} b/{name}\nindex 12..34 100644\n"
    + "".join(difflib.unified_diff(OLD, NEW, f"a/{name}", f"b/{name}"))
    for name in ("one.py", "two.py", "three words.py")
]
BINARY = "diff --git a/t.png b/t.png\nindex 1..2 100644\nBinary files a/t.png and b/t.png differ\n"
RENAME = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
DIFF = "commit 1234\n\n    Tea.\n\n" + FILES[0] + BINARY + FILES[1] + RENAME + FILES[2]


LONE = re.compile(r"diff |index |--- |Binary |similarity |rename |\[\.\.\. |commit|\n|    ")


def hunks_of(diff):
    """Return the hunks of a valid diff with the files that they are of; nothing else is in it."""
    hunks, name, lines = [], None, iter(diff.splitlines(keepends=True))
    for line in lines:
        if line.startswith("+++ "):
            name = line[4:]
        elif not line.startswith("@@ "):
            assert LONE.match(line)
        else:
            old, new = (int(size or 1) for size in re.findall(r"[-+]\d+(?:,(\d+))? ", line))
            hunk = [line]
            while old or new:
                hunk.append(next(lines))
                assert hunk[-1][0] in " +-"
                old -= hunk[-1][0] != "+"
                new -= hunk[-1][0] != "-"
            hunks.append((name, "".join(hunk)))
    return hunks


@pytest.mark.parametrize("limit", [60, 100, 200, 300, 500, 800])
def test_diffs(backend, tmp_path, limit):
    """Whole hunks stay, in order, below their headers; the files left out are named."""
    fitted = fit_output(DIFF, limit)
    whole, found = hunks_of(DIFF), hunks_of(fitted.text)
    places = [whole.index(hunk) for hunk in found]

    assert "diff" == fitted.kind
    assert places == sorted(places)
    assert fitted.was_cut
    for name, text in zip(("one.py", "two.py", "three words.py"), FILES, strict=True):
        header = text[: text.index("@@")]
        has_hunks = any(name in of for of, _ in found)
        assert (header in fitted.text) is has_hunks
        if limit >= 100:
            assert has_hunks or name in fitted.text.splitlines()[-1]
    if limit >= 200:
        assert BINARY in fitted.text
        assert RENAME in fitted.text
    if shutil.which("git") and found:
        done = subprocess.run(
            ["git", "apply", "--numstat", "-"],
            cwd=tmp_path,  # git leaves out what is not below a folder of a repository
            input=fitted.text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stderr
        changed = [line.split("\t") for line in done.stdout.splitlines()]
        added = sum(int(count) for count, _, _ in changed if count != "-")
        assert len(found) == added  # a line for each hunk


def test_hunks_by_a_query(backend):
    """The hunks that answer stay, with their files."""
    found = hunks_of(fit_output(DIFF, 250, query="tea 167 in two.py").text)

    assert 1 <= len(found) <= 3
    assert any("two.py" in name and "+tea 167" in hunk for name, hunk in found)


def test_left_out_hunks_are_counted(backend):
    """A line says how many hunks of a file are left out, and how many files."""
    found = fit_output(DIFF, 330).text

    assert re.search(
        r"^\[\.\.\. \d of 5 hunks of this file left out \.\.\.\]$", found, re.MULTILINE
    )
    assert re.search(r"^\[\.\.\. \d of 5 files left out: .*three words.py", found, re.MULTILINE)


NAMED = """diff --git a/my tea.bin b/my tea.bin
index 1..2 100644
Binary files a/my tea.bin and b/my tea.bin differ
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git "a/t\\303\\244 x.bin" "b/t\\303\\244 x.bin"
new file mode 100644
diff --git plain name plain name
old mode 100644
diff --git a/é k.sh b/é k.sh\r
old mode 100644
diff --git a/one two b/three four
copy from one two
copy to "three f\\303\\266ur"
diff --git a/two.py b/two.py
--- a/two.py
+++ b/two.py
@@ -1 +1 @@
-tea
+rye
"""


def test_files_without_lines_are_named(backend):
    """Their names are in the first line, or in those of a rename, also with spaces."""
    fitted = [fit_output(NAMED, limit, counter="chars_per_token:4").text for limit in (60, 80)]
    names = [
        r"new name.txt, t\303\244 x.bin, é k.sh and 2 more",
        r"t\303\244 x.bin, plain name, é k.sh, three f\303\266ur, two.py",
    ]
    said = [f"[... 5 of 7 files left out: {listed} ...]" for listed in names]
    assert said == [text.splitlines()[-1] for text in fitted]


def _seconds(value, **options):
    best = 9.0
    for _ in range(3):
        start = time.perf_counter()
        fit_output(value, 1_000, **options)
        best = min(best, time.perf_counter() - start)
    return best


HOSTILE = {
    "numbers": lambda n: "[" + ",".join(["1"] * (n // 2)) + "]",
    "nested": lambda n: "[" + ",".join(["[" * 100 + "1" + "]" * 100] * (n // 200)) + "]",
    "keys": lambda n: "{" + ",".join(f'"{i}":{i}' for i in range(n // 12)) + "}",
    "escapes": lambda n: '["' + "\\n" * (n // 2) + '"]',
    "combining": lambda n: "e" + "\u0301" * n,
    "cyrillic": lambda n: "слово " * (n // 6),
    "one word": lambda n: "x" * n,
    "lines": lambda n: "INFO\n" * (n // 5),
    "errors": lambda n: "ERROR at\n  x\n" * (n // 13),
    "objects": lambda n: '{"level" :  "info"}\n' * (n // 20),
    "one object": lambda n: '{"level":"error","tea":[' + '"level",' * (n // 8) + "1]}\n{}",
    "builds": lambda n: ": error: a/b\n" * (n // 13),
    "places": lambda n: "a\nb\nc\n" + "x: error" * (n // 8),
    "blank": lambda n: "\n" * n,
    "header": lambda n: "diff --git a/x b/x\n" + "--- \n" * (n // 5),
    "files": lambda n: "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n" * (n // 32),
    "open": lambda n: "[" * n,
    "quote": lambda n: '["' + "a" * n,
}


@pytest.mark.parametrize("query", [None, "tea 1 x"])
@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_nearly_linear(native, name, query):
    """A text of eight times the length takes less than half of what is quadratic."""
    small, large = (HOSTILE[name](size) for size in (50_000, 400_000))

    assert _seconds(large, query=query) < 30 * _seconds(small, query=query) + 0.1
