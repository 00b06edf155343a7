"""The laws of fitting a request, over random conversations in every provider's shape."""

import json
import re
from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from request_support import KEYS, PROVIDERS, TURNS, VALIDATORS, conversation, recount

from budgeteer import BudgetExhaustedError, fit_request, get_counter

of_each = pytest.mark.parametrize("provider", PROVIDERS)
COUNTERS = ("o200k_base", "words", "chars_div4")
RESULT = re.compile("tool_result|function_response")


@of_each
@settings(max_examples=60, deadline=None)
@given(turns=TURNS, share=st.floats(0, 1.1), name=st.sampled_from(COUNTERS))
def test_it_fits(provider, turns, share, name):
    """The request's own recount is the total, and at most the limit; every pair is valid."""
    counter = get_counter(name)
    request = conversation(provider, turns)
    before = deepcopy(request)
    window = int(recount(provider, request, counter.count) * share)
    try:
        fitted = fit_request(request, context_window=window, counter=counter)
    except BudgetExhaustedError as error:
        assert "the request does not fit: context_window" in str(error)  # noqa: PT017
        assert share < 1
        return
    finally:
        assert before == request
    counted = recount(provider, fitted.request, counter.count)
    assert counted == fitted.total_tokens <= window
    VALIDATORS[provider](fitted.request)
    sections = fitted.report.sections
    assert counted == sum(section.tokens for section in sections.values())
    assert recount(provider, request, counter.count) == sum(
        section.tokens_before for section in sections.values()
    )
    assert provider == fitted.report.provider
    if share >= 1:
        assert fitted.request is request


@of_each
@settings(max_examples=40, deadline=None)
@given(turns=TURNS, share=st.floats(0.2, 1.1))
def test_what_is_unchanged_is_the_callers(provider, turns, share):
    """What stays is the caller's object; fitting again, or another time, changes nothing."""
    request = conversation(provider, turns)
    key = KEYS[provider]
    count = get_counter("words").count
    window = int(recount(provider, request, count) * share)
    try:
        fitted = fit_request(request, context_window=window, counter="words")
    except BudgetExhaustedError:
        return
    changed = {change.place for change in fitted.report.changes}
    places = [f"{key}[{i}]" for i in range(len(request[key]))]
    stays = [
        item for item, place in zip(request[key], places, strict=True) if place not in changed
    ]
    ids = {id(item) for item in fitted.request[key]}
    assert all(id(item) in ids for item in stays)
    gone = {change.place for change in fitted.report.changes if change.action == "left_out"}
    assert len(fitted.request[key]) == len(request[key]) - len(gone)
    again = fit_request(fitted.request, context_window=window, counter="words")
    assert again.request is fitted.request
    assert again.report.changes == []
    other = fit_request(deepcopy(request), context_window=window, counter="words")
    assert (other.request, other.report) == (fitted.request, fitted.report)


@of_each
@settings(max_examples=40, deadline=None)
@given(turns=TURNS, share=st.floats(0.1, 1))
def test_the_newest_question_stays(provider, turns, share):
    """The instructions, the newest question and what follows last are in what is sent."""
    request = conversation(provider, turns)
    key = KEYS[provider]
    window = int(recount(provider, request, len) * share)
    try:
        fitted = fit_request(request, context_window=window, counter=len)
    except BudgetExhaustedError:
        return
    questions = [
        item
        for item in request[key]
        if item.get("role") == "user" and not RESULT.search(str(item))
    ]
    assert any(item is questions[-1] for item in fitted.request[key])
    if provider == "openai_chat":
        assert fitted.request[key][0] is request[key][0]


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
@settings(max_examples=40, deadline=None)
@given(turns=TURNS, share=st.floats(0.2, 1.1))
def test_a_result_without_its_call_changes_nothing_else(provider, turns, share):
    """Beside a question it is left out, and what is sent is what is sent without it."""
    request = conversation(provider, turns)
    key, of = KEYS[provider], {"anthropic": "content", "gemini": "parts"}[provider]
    window = int(recount(provider, request, len) * share)
    asking = [
        i
        for i, item in enumerate(request[key])
        if item["role"] == "user" and not RESULT.search(str(item))
    ]
    i = asking[-1]
    asked = request[key][i]
    parts = asked[of] if isinstance(asked[of], list) else [{"type": "text", "text": asked[of]}]
    request[key][i] = {**asked, of: parts}
    lost = {"type": "tool_result", "tool_use_id": "lost", "content": "12 degrees"}
    if provider == "gemini":
        lost = {"function_response": {"id": "lost", "name": "f", "response": {"output": "12"}}}
    with_it = {**request, key: [*request[key]]}
    with_it[key][i] = {**asked, of: [lost, *parts]}
    try:
        expected = fit_request(request, context_window=window, counter=len)
    except BudgetExhaustedError:
        with pytest.raises(BudgetExhaustedError):
            fit_request(with_it, context_window=window, counter=len)
        return
    fitted = fit_request(with_it, context_window=window, counter=len)
    assert expected.request == fitted.request
    assert expected.total_tokens == fitted.total_tokens
    VALIDATORS[provider](fitted.request)


@of_each
def test_order_of_sacrifice(provider):
    """Old results are masked, then large ones cut, then whole turns left out, oldest first."""
    turns = [
        ("one", [["old " * 300]], True),
        ("two", [["older " * 300]], True),
        ("three", [["new " * 900]], False),
    ]
    request = conversation(provider, turns)
    total = recount(provider, request, get_counter("words").count)
    seen = []
    for window in range(total, 350 + (346 if provider == "anthropic" else 0), -50):
        changes = fit_request(request, context_window=window, counter="words").report.changes
        seen.append(dict.fromkeys(("masked", "cut", "left_out"), 0))
        for change in changes:
            seen[-1][change.action] += 1
    assert {"masked": 0, "cut": 0, "left_out": 0} == seen[0]
    assert {"masked": 1, "cut": 0, "left_out": 0} in seen
    assert {"masked": 2, "cut": 1, "left_out": 0} in seen
    for before, after in pairwise(seen):
        assert before["masked"] + before["left_out"] <= after["masked"] + after["left_out"]
        assert before["cut"] <= after["cut"]
        if after["cut"]:
            assert after["masked"] + after["left_out"] >= 2


@of_each
def test_an_order_of_the_callers(provider):
    """What the order does not name is never sacrificed, and its first step comes first."""
    turns = [("one", [["old " * 300]], True), ("two", [["new " * 300]], False)]
    request = conversation(provider, turns)
    total = recount(provider, request, get_counter("words").count)
    fitted = fit_request(request, context_window=total - 1, counter="words", order=["history"])
    assert {"left_out"} == {change.action for change in fitted.report.changes}
    fitted = fit_request(
        request, context_window=total - 1, counter="words", order=["cut_results", "history"]
    )
    assert {"cut"} == {change.action for change in fitted.report.changes}
    with pytest.raises(BudgetExhaustedError):
        fit_request(request, context_window=total - 1, counter="words", order=["chunks"])


@of_each
def test_exhausted(provider):
    """Where nothing can fit the error has the arithmetic, which adds up."""
    request = conversation(provider, [("tea " * 50, [], False)])
    with pytest.raises(BudgetExhaustedError) as caught:
        fit_request(request, context_window=60, counter="words", max_output_tokens=20)
    text = str(caught.value)
    assert text.startswith("the request does not fit: context_window 60 - 20 for the answer - ")
    sums, result = text.partition(": ")[2].rsplit(" = ", 1)
    numbers = [int(part.split()[0]) for part in sums.removeprefix("context_window ").split(" - ")]
    assert numbers[0] - sum(numbers[1:]) == int(result) < 0


def test_rounds_of_one_turn():
    """In one long turn of an agent the oldest rounds are left out, never the newest."""
    rounds = [[f"result {i} " * 40] for i in range(30)]
    request = conversation("openai_chat", [("Go.", rounds, False)])
    fitted = fit_request(
        request, context_window=300, counter="words", order=["history", "cut_results"]
    )
    assert fitted.request["messages"][:2] == request["messages"][:2]
    assert fitted.request["messages"][-2:] == request["messages"][-2:]
    VALIDATORS["openai_chat"](fitted.request)
    assert all(change.action == "left_out" for change in fitted.report.changes)


def test_a_large_result_stays_what_it_is():
    """A result of JSON that is cut still parses, and all but the line on the rest are its rows."""
    rows = [{"id": i, "tea": "green" if i % 2 else "black"} for i in range(400)]
    request = conversation("openai_chat", [("What is there?", [[json.dumps(rows)]], False)])
    fitted = fit_request(request, context_window=400, counter="o200k_base")
    kept = json.loads(fitted.request["messages"][-1]["content"])

    assert ["cut"] == [change.action for change in fitted.report.changes]
    assert 10 < len(kept) < 400
    [line] = [row for row in kept if row not in rows]
    assert f"{401 - len(kept)} of 400 items left out" in line


@of_each
def test_what_answers_the_question_stays(provider):
    """Of a result that is cut, the row that the newest question asks for stays, wherever it is."""
    rows = [{"id": i, "tea": f"kind {i * 7}"} for i in range(400)]
    rows[213] = {"id": 213, "tea": "gyokuro"}
    turns = [("Which is oolong?", [], True), ("Where is gyokuro?", [[json.dumps(rows)]], False)]
    request = conversation(provider, turns)
    window = 900 + (346 if provider == "anthropic" else 0)
    fitted = fit_request(request, context_window=window, counter="o200k_base")

    assert ["cut"] == [change.action for change in fitted.report.changes]
    assert "gyokuro" in json.dumps(fitted.request[KEYS[provider]][-1])
    assert fit_request(fitted.request, context_window=window).request is fitted.request
