"""What holds for every tool result, limit and counter."""

import json

from hypothesis import given
from hypothesis import strategies as st
from output_support import is_cut_of, is_fit_of, loads
from support import compared, counters, odd_texts, outcome, plain_texts, texts, using

from budgeteer import (
    BudgetExhaustedError,
    fit_output,
    fit_outputs,
    get_counter,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "tea", "green tea " * 9, "e\u0301" * 40, "\ud83d\ude00\n" * 20])
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=30,
)
records = st.integers(1, 4).flatmap(
    lambda size: st.lists(
        st.fixed_dictionaries({f"key{i}": scalars for i in range(size)}), max_size=12
    )
)
jsons = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent),
    values | records,
    st.booleans(),
    st.sampled_from([None, 1]),
) | st.sampled_from(
    [
        '[1e400,-0.0,1.0,10000000000000000000000,{"a":1,"a":2,"a":[3,4,5,6,7,8,9,10,11,12]}]',
        ' [ "\\ud83d\\ude00\\ud83d", "\\u00e9\\n\\/", {} , [ ] ] ',
        '{"a":{"b":{"c":{"d":[' + ",".join(map(str, range(60))) + "]}}}}",
    ]
)
log_lines = st.builds(
    "{} {} {}".format,
    st.sampled_from(["12:30:01", "2026-01-02 03:04:05,678", "  at", "\tat", "E  "]),
    st.sampled_from(["INFO", "ERROR", "WARN", "Traceback (most recent call last):", "DEBUG"]),
    plain_texts | st.integers(0, 99).map("request {}".format) | odd_texts,
)
json_lines = st.builds(
    '{{"{}":{},"msg":{}}}'.format,
    st.sampled_from(["level", "Severity", "lvl", "tea"]),
    st.sampled_from(['"info"', '"warn"', '"Error"', "50", ""]),
    (plain_texts | odd_texts | st.just("tea " * 60)).map(json.dumps),
)
build_lines = st.sampled_from(
    [
        "cc -Werror -c tea.c",
        "tea.c:3:5: error: no tea",
        "tea.ts(3,5): error TS1: no tea",
        "error[E0308]: no tea",
        "  3 | tea",
        "An error: no tea",
    ]
)
logs = st.lists(st.one_of(log_lines, json_lines) | build_lines, max_size=30).map(
    "\n".join
) | st.lists(json_lines | build_lines, max_size=9).map("\n".join)
lines = st.sampled_from(["tea\n", "-rye\n", "+rye\n", " ", "\n", "\\ No newline\n", "@@ x @@\n"])


@st.composite
def diffs(draw):
    """Texts like unified diffs: some of their hunks are not as long as they say."""
    parts = [draw(st.sampled_from(["", "commit 1\n\n    Tea.\n"]))]
    for i in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from([f"a{i}.py", "tea leaves.txt"]))
        parts.append(draw(st.sampled_from(["", f"diff --git a/{name} b/{name}\n"])))
        parts.append(draw(st.sampled_from(["", f"--- a/{name}\n+++ b/{name}\n"])))
        for _ in range(draw(st.integers(0, 3))):
            body = draw(
                st.lists(st.sampled_from([" tea\n", "-rye\n", "+oat\n", "\n"]), max_size=9)
            )
            old = sum(line[0] != "+" for line in body) + draw(st.sampled_from([0, 0, 1]))
            new = sum(line[0] != "-" for line in body)
            parts += [f"@@ -1,{old} +1,{new} @@ def tea\n", *body]
        parts += draw(st.lists(lines, max_size=2))
    return "".join(parts)


whole_texts = st.lists(texts, max_size=9).map("\n\n".join) | texts
kinds = st.sampled_from(["auto", "text", "json", "table", "log", "diff"])
anything = jsons | logs | diffs() | whole_texts
limits = st.integers(0, 80) | st.sampled_from([0, 10**9, 2**63 - 1])
queries = st.sampled_from([None, "", "tea", "green rye", "request 7"])
pointers = st.sampled_from([None, "/tmp/tea", '"\\\x01\u00e9'])


def spilling(pointer):
    return None if pointer is None else lambda _: pointer


@compared
@given(anything | values, limits, queries, kinds, counters, pointers)
def test_both_backends_answer_alike(value, limit, query, kind, counter, pointer):
    """The same text, figures and errors from both."""
    found = []
    for name in ("native", "reference"):
        with using(name):
            options = {"query": query, "kind": kind, "counter": counter}
            found.append(outcome(fit_output, value, limit, **options, spill=spilling(pointer)))

    assert found[0] == found[1]


@given(anything, limits, queries, counters, pointers)
def test_the_law(value, limit, query, counter, pointer):
    """What is counted anew is what was said, and at most the limit; twice changes nothing."""
    counting = get_counter(counter)
    try:
        fitted = fit_output(value, limit, query=query, counter=counter, spill=spilling(pointer))
    except BudgetExhaustedError:
        return

    assert fitted.total_tokens == (counting.count(fitted.text) if fitted.text else 0)
    assert fitted.total_tokens <= limit
    assert fitted.was_cut is (fitted.left_out > 0)
    for kind in ("auto", fitted.kind):
        again = fit_output(fitted.text, limit, query=query, kind=kind, counter=counter)
        assert (fitted.text, fitted.total_tokens, 0) == (
            again.text,
            again.total_tokens,
            again.left_out,
        )


@given(jsons | values, limits, queries, counters, pointers)
def test_json_stays_json(value, limit, query, counter, pointer):
    """It parses, has the same shape, and all that is in it was in the value."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        whole = loads(text)
    except ValueError:
        return
    try:
        fitted = fit_output(
            text, limit, query=query, kind="json", counter=counter, spill=spilling(pointer)
        )
    except BudgetExhaustedError:
        return
    found = loads(fitted.text)

    assert "json" == fitted.kind
    assert is_fit_of(found, whole)
    assert (found == whole) is not fitted.was_cut


@given(records, limits, counters)
def test_tables(rows, limit, counter):
    """A table has the columns of the records, and rows of their values, more than JSON would."""
    try:
        fitted = fit_output(rows, limit, kind="table", counter=counter)
        plain = fit_output(rows, limit, kind="json", counter=counter)
    except BudgetExhaustedError:  # by odd counters it may be one of them alone
        return
    if fitted.kind == "json":
        assert fitted == plain
        return
    found = dict(loads(fitted.text).pairs)
    whole = loads(json.dumps([[*row.values()] for row in rows], ensure_ascii=False))

    assert [*rows[0]] == found["columns"]
    assert is_cut_of(found["rows"], whole)
    assert plain.was_cut
    assert len(found["rows"]) >= len(loads(plain.text))


@given(st.lists(anything, max_size=5), limits, queries, counters)
def test_several_share_a_limit(items, limit, query, counter):
    """Together they stay within the limit, and what was not cut is whole."""
    try:
        fitted = fit_outputs(items, limit, query=query, counter=counter)
    except BudgetExhaustedError:
        return

    assert len(items) == len(fitted)
    assert sum(output.total_tokens for output in fitted) <= limit
    for item, output in zip(items, fitted, strict=True):
        if not output.was_cut and output.text != item:  # whitespace is no loss
            assert loads(output.text) == loads(item)
