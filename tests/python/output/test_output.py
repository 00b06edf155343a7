"""What is asked of a tool result: its kind, its limit, its counter, its pointer."""

import dataclasses
import json
import pickle
import re

import pytest
from support import Liar, Recorder

import budgeteer
from budgeteer import (
    BudgetExhaustedError,
    CounterError,
    FittedOutput,
    InvalidArgumentError,
    fit_output,
    fit_outputs,
    get_counter,
)

JSON = '{"tea": ["green", "black"]}'
DIFF = "--- a/tea.py\n+++ b/tea.py\n@@ -1 +1 @@\n-green\n+black\n"
LOG = "".join(f"12:30:{i:02} INFO request {i} served\n" for i in range(30))
BUILD = "".join(f"cc -c src/tea{i}.c\n" for i in range(9))
TEXT = "Green tea is not oxidised.\n" * 20


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (JSON, "json"),
        (f"\n\t {JSON}\r\n", "json"),
        ("[]", "json"),
        ({"tea": 1}, "json"),
        ([1, 2], "json"),
        ((1, 2), "json"),
        (None, "json"),
        (True, "json"),
        (1.5, "json"),
        ('"tea"', "text"),
        ("12", "text"),
        (JSON + ",", "text"),
        ("{tea}", "text"),
        ("[" * 129 + "]" * 129, "text"),
        (DIFF, "diff"),
        (f"diff --git a/x b/x\n{DIFF}", "diff"),
        ("diff --git a/tea.png b/tea.png\nBinary files a/tea.png and b/tea.png differ\n", "diff"),
        (f"commit 12\n\n    Tea.\n\n{DIFF}", "diff"),
        (f"{TEXT}{DIFF}", "text"),
        ("--- a\n+++ b\nno hunk\n", "text"),
        ("- tea\n- rye\n@@ -1 +1 @@\n", "text"),
        (LOG, "log"),
        ("INFO\n" * 4, "log"),
        ("INFO\n" * 3, "text"),
        ("INFO\ntea\n" * 3 + "\n" * 9, "log"),
        ("INFO\ntea\n" * 3 + "tea\n", "text"),
        ("INFOS\n" * 9, "text"),
        ('{"tea": 1}\n{"rye": {}}\r\n\n', "log"),
        ('{"tea": 1}\n{"rye": {}}\nbye', "text"),
        ('{"tea": 1}\n{"rye": [\n1]}\n', "text"),
        ("{{ range .Teas }}\n{{ .Name }}\n{{ end }}\n", "text"),
        (f"{BUILD}src/tea.c:3:5: error: no tea\n", "log"),
        (f"{BUILD}src/tea.c:3:5: fatal error: no tea\n", "log"),
        (f"{BUILD}src/tea.ts(3,5): error TS2304: no tea\n", "log"),
        (f"{BUILD}clang: error: linker command failed\n", "log"),
        (f"{BUILD}error[E0308]: mismatched types\n", "log"),
        (f"{BUILD}ERROR no tea\n", "log"),
        (f"{BUILD}FAILED tests/test_tea.py::test_pot\n", "log"),
        (f"{BUILD}Traceback (most recent call last):\n", "log"),
        (f"## Errors\n{BUILD}error: no tea\n", "text"),
        (f"```\n{BUILD}error: no tea\n```\n", "text"),
        (f"| a | b |\n{BUILD}error: no tea\n", "text"),
        (BUILD, "text"),
        (f"{BUILD}An error: no tea\nsrc/tea.c: errors\n", "text"),
        (TEXT + "error: the tea is cold\n", "text"),
        (f"{TEXT}Traceback (most recent call last):\n", "text"),
        (TEXT, "text"),
        ("", "text"),
    ],
)
def test_the_content_decides(backend, value, kind):
    """Which kind a value is, where none is given."""
    assert kind == fit_output(value, 10**6).kind


def test_what_fits_is_returned_as_it_is(backend):
    """A str is not even written otherwise; other values are compact JSON."""
    for value in (JSON, DIFF, LOG, TEXT, "", "[1, 2]"):
        fitted = fit_output(value, 10**6)
        assert (value, 0, False, None) == (
            fitted.text,
            fitted.left_out,
            fitted.was_cut,
            fitted.pointer,
        )
    value = {"grün": [1, 2.50, None, True, "a\nb"], 7: ()}
    assert '{"grün":[1,2.5,null,true,"a\\nb"],"7":[]}' == fit_output(value, 99).text


def test_whitespace_goes_before_values(backend):
    """JSON that fits without the whitespace between its tokens is whole."""
    value = '[ 1,\n {"a" : "b c" } ]'
    compact = '[1,{"a":"b c"}]'
    fitted = fit_output(value, len(compact), counter=len)

    assert (compact, False) == (fitted.text, fitted.was_cut)
    assert fit_output(value, len(compact) - 1, counter=len).was_cut


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (JSON[:-1], "json", "must be JSON for kind 'json', and is not from character 26 on"),
        ("tea", "table", "must be JSON for kind 'table', and is not from character 0 on"),
        ("", "json", "must be JSON for kind 'json', not the empty text"),
        ("grün [1]", "json", "is not from character 0 on: kind 'text' takes any str"),
        ('["grün",]', "json", "is not from character 8 on"),
        ("[1] 2", "json", "is not from character 4 on"),
        ("[NaN]", "json", "is not from character 1 on"),
        ("[Infinity]", "json", "is not from character 1 on"),
        ("[01]", "json", "is not from character 2 on"),
        ('["\n"]', "json", "is not from character 1 on"),
        ('["\\x"]', "json", "is not from character 1 on"),
        ('["\\u12g4"]', "json", "is not from character 1 on"),
        ('{"a":1,}', "json", "is not from character 7 on"),
        ("{1:2}", "json", "is not from character 1 on"),
        ("[" * 100_000, "json", "must be nested at most 128 deep to be cut as JSON"),
        ('{"a":' * 129, "table", "must be nested at most 128 deep"),
        (TEXT, "diff", "must be a unified diff for kind 'diff', and has no header of a file"),
        ([1], "text", "must be a str for kind 'text', not list: kind 'json' takes any value"),
        (None, "log", "must be a str for kind 'log', not None"),
        (1, "diff", "must be a str for kind 'diff', not int"),
        (b"tea", "auto", "must be a str or a value that can be written as JSON: bytes cannot"),
        ([float("nan")], "auto", "must be a str or a value that can be written as JSON: "),
        ({(1, 2): 3}, "json", "must be a str or a value that can be written as JSON: keys must"),
    ],
)
def test_a_value_that_is_not_of_its_kind(backend, value, kind, message):
    """An error says so, and which value it is, even where it would fit."""
    for limit in (0, 10**9):
        with pytest.raises(InvalidArgumentError, match=r"^value ") as one:
            fit_output(value, limit, kind=kind)
        assert message in str(one.value)
    with pytest.raises(InvalidArgumentError, match=r"^values\[1\] ") as several:
        fit_outputs(["[]" if kind != "diff" else DIFF, value], 99, kind=kind)
    assert message in str(several.value)


def test_what_is_nested_too_deep(backend):
    """A value of 129 levels is refused, however it is given; one of 128 is cut."""
    deep = []
    for _ in range(128):
        deep = [deep]
    for value in (deep, [[deep]] * 2):
        with pytest.raises(InvalidArgumentError, match="at most 128 deep"):
            fit_output(value, 9)
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidArgumentError, match="at most 128 deep"):
        fit_output(deep, 9)
    circle = []
    circle.append(circle)
    with pytest.raises(InvalidArgumentError, match="can be written as JSON"):
        fit_output(circle, 9)

    text = "[" * 128 + ",".join(map(str, range(99))) + "]" * 128
    assert "of 99 items left out" in fit_output(text, 300, counter=len).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must be from 0 to"),
        ({"max_tokens": 1.5}, "max_tokens must be an int, not float"),
        ({"query": 7}, "query must be a str, not int"),
        ({"kind": "jsn"}, "kind must be one of 'auto', 'text', 'json', 'table', 'log', 'diff'"),
        ({"kind": None}, "kind must be one of"),
        ({"spill": "/tmp"}, "spill must be a callable or None, not str"),
        ({"spill": lambda text: None}, "spill must return one line of text, not None"),
        ({"spill": lambda text: ""}, "spill must return one line of text, not the empty text"),
        ({"spill": lambda text: "a\u2028b"}, "spill must return one line of text, not more lines"),
    ],
)
def test_bad_options(backend, options, message):
    """A wrong option is named, with what is allowed."""
    options = {"max_tokens": 9, **options}
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        fit_output(TEXT, **options)
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        fit_outputs([TEXT], **options)


@pytest.mark.parametrize(
    ("value", "limit", "smallest", "needed"),
    [
        ("[1,2,3,4]", 2, "[]", 3),
        ('{"a":[1,2,3]}', 2, "{}", 3),
        ('"green tea"', 2, '""', 3),
        ("12345", 3, "12345", 5),
        ("true", 3, "true", 4),
    ],
)
def test_the_smallest_texts(backend, value, limit, smallest, needed):
    """What is left at last, and the arithmetic where that does not fit either."""

    def counter(text):
        return len(text) + (len(smallest) == 2)

    with pytest.raises(BudgetExhaustedError) as error:
        fit_output(value, limit, kind="json", counter=counter)
    assert (
        f"nothing of value fits: max_tokens {limit} - {needed} for its smallest text = "
        f"{limit - needed}"
    ) == str(error.value)
    assert smallest == fit_output(value, needed, kind="json", counter=counter).text


@pytest.mark.parametrize("value", [TEXT, LOG, DIFF])
def test_there_is_always_a_text(backend, value):
    """Of a text, a log and a diff nothing may be left, which is not counted."""
    fitted = fit_output(value, 0, counter=lambda text: 1 + len(text))

    assert ("", 0, len(value)) == (fitted.text, fitted.total_tokens, fitted.left_out)


def test_spilling(backend):
    """The whole text is given once where something is left out, and the first marker points."""
    for value in (JSON, DIFF, LOG, TEXT):
        spilled = []

        def spill(text, spilled=spilled):
            spilled.append(text)
            return 'see "tea.txt"'

        assert fit_output(value, 10**6, spill=spill).pointer is None
        assert [] == spilled
        long = f"[{', '.join([value] * 40)}]" if value is JSON else value * 9
        fitted = fit_output(long, 45, spill=spill)
        shown = json.dumps('see "tea.txt"')[1:-1] if value is JSON else 'see "tea.txt"'
        assert f"; the whole: {shown} ...]" in fitted.text
        assert [long] == spilled
        assert 'see "tea.txt"' == fitted.pointer
        assert 1 == fitted.text.count("tea.txt")
    fitted = fit_output(TEXT, 1, spill=lambda text: "tea.txt")
    assert ("", "tea.txt") == (fitted.text, fitted.pointer)


@pytest.mark.parametrize("value", ["abc " * 100, LOG, DIFF * 9, [1] * 200])
def test_a_line_that_does_not_fit_costs_no_content(backend, value):
    """The plain marker stands for it, and only the figure has the line."""
    line = "see " + "/folder" * 30
    plain, fitted = fit_output(value, 30), fit_output(value, 30, spill=lambda _: line)

    assert plain.text
    assert dataclasses.replace(plain, pointer=line) == fitted


def test_a_spill_that_fails(backend):
    """Its own exception is the caller's."""

    def spill(text):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fit_output(TEXT, 9, spill=spill)


def test_counters(backend):
    """A callable is asked a few times; a model has its counter; a wrong answer is an error."""
    recorder = Recorder(lambda text: len(text.split()), [])
    fitted = fit_output("tea " * 100_000, 50, counter=recorder)

    assert fitted.total_tokens <= 50
    assert len(recorder.asked) < 40
    assert "" not in recorder.asked
    assert fit_output(TEXT, 30, counter="gpt-4") == fit_output(TEXT, 30, counter="cl100k_base")
    assert fit_output(TEXT, 30) == fit_output(TEXT, 30, counter="o200k_base")
    with pytest.raises(CounterError, match="must answer an int from 0 on for a text, not str"):
        fit_output(TEXT, 9, counter=lambda text: "three")
    with pytest.raises(ZeroDivisionError):
        fit_output(TEXT, 9, counter=lambda text: 1 // 0)


def test_a_str_that_lies(backend):
    """A subclass's own methods are ignored."""
    assert fit_output(Liar(TEXT), 20) == fit_output(TEXT, 20)
    assert fit_output(TEXT, 20, query=Liar("tea")) == fit_output(TEXT, 20, query="tea")


def test_objects_in_values(backend):
    """An object is written with its fields, as in messages."""

    class Tea:
        def model_dump(self):
            return {"name": "green", "grams": 7}

    assert '[{"name":"green","grams":7}]' == fit_output([Tea()], 99).text


def test_the_result(backend):
    """It is frozen, compared by value, and pickles."""
    fitted = fit_output(TEXT, 20)

    assert fitted == pickle.loads(pickle.dumps(fitted))
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.text = ""
    assert FittedOutput is budgeteer.FittedOutput
    assert "budgeteer" == FittedOutput.__module__


def test_small_results_are_whole_before_large_ones_get_more(backend):
    """Max-min fairness: what a small one leaves goes to the others, evenly."""
    texts = ["tea " * 300, "rye " * 10, "oat " * 300, "hay " * 60]
    fitted = fit_outputs(texts, 300, counter="words")

    assert [10, 60] == [fitted[1].total_tokens, fitted[3].total_tokens]
    assert [texts[1], texts[3]] == [fitted[1].text, fitted[3].text]
    assert all(110 <= fitted[i].total_tokens <= 120 for i in (0, 2))
    assert 300 >= sum(output.total_tokens for output in fitted)
    assert [] == fit_outputs([], 0)
    assert texts == [output.text for output in fit_outputs(texts, 670, counter="words")]
    with pytest.raises(BudgetExhaustedError, match=r"^nothing of values\[1\] fits: max_tokens 0 "):
        fit_outputs([TEXT, [1, 2, 3]], 0)


def test_nothing_is_remembered_of_what_was_tried(native):
    """Texts that are tried once take no place in the cache of counts."""
    counter = get_counter("o200k_base")
    counter.clear_cache()
    fit_output([{"id": i} for i in range(2_000)], 300)

    assert 0 == counter.cache_info().entries
