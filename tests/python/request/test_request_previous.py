"""Fitting turn after turn: what went stays gone, so that the beginning only grows."""

import operator
import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from request_support import KEYS, PROVIDERS, TURNS, VALIDATORS, conversation, recount
from support import Recorder

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Section,
    fit_request,
    get_counter,
)
from budgeteer.integrations._requests import ALIKE, Fitter
from budgeteer.window import count_messages

COUNT = get_counter("words").count


def common(before, after):
    """Return how many leading items are the same objects."""
    same = 0
    for a, b in zip(before, after, strict=False):
        if a is not b:
            break
        same += 1
    return same


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_beginning_changes_in_few_turns(provider):
    """Turns of 1.5 % of the room change it in one of eight at most; under 15 % is unused."""
    key, window = KEYS[provider], 4_000
    turns = [(f"question {i} " * 5, [[f"result {i} " * 12]], True) for i in range(300)]
    whole = conversation(provider, turns)
    one, two = (len(conversation(provider, turns[:n])[key]) for n in (1, 2))
    sizes = range(one, len(whole[key]) + 1, two - one)
    previous, used, changed, trimmed = None, [], 0, 0
    for size in sizes:
        request = {**whole, key: whole[key][:size]}
        fitted = fit_request(request, context_window=window, counter="words", previous=previous)
        assert recount(provider, fitted.request, COUNT) == fitted.total_tokens <= window
        VALIDATORS[provider](fitted.request)
        if fitted.report.changes:
            before, after = previous.request[key], fitted.request[key]
            trimmed += 1
            changed += common(before, after) < len(before)
            used.append(fitted.total_tokens / window)
        previous = fitted
    assert trimmed > 150
    assert changed <= trimmed / 8
    assert 1 - sum(used) / len(used) <= 0.15


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=30, deadline=None)
@given(turns=TURNS, more=TURNS, share=st.floats(0.2, 1), step=st.sampled_from([None, 0, 0.5]))
def test_laws_hold_after_a_previous_request(provider, turns, more, share, step):
    """It fits, is valid and counts right; where it fits as it went, only new items are added."""
    key = KEYS[provider]
    whole = conversation(provider, [*turns, *more])
    first = {**whole, key: whole[key][: len(conversation(provider, turns)[key])]}
    window = int(recount(provider, first, COUNT) * share)
    options = {"counter": "words", "step": step}
    try:
        previous = fit_request(first, context_window=window, **options)
        fitted = fit_request(whole, context_window=window + 80, previous=previous, **options)
    except BudgetExhaustedError:
        return
    assert recount(provider, fitted.request, COUNT) == fitted.total_tokens <= window + 80
    VALIDATORS[provider](fitted.request)
    sections = fitted.report.sections.values()
    assert recount(provider, whole, COUNT) == sum(s.tokens_before for s in sections)
    known = {id(item) for item in (*whole[key], *previous.request[key])}
    for change in fitted.report.changes:
        if change.reason == "as in the previous request" and change.action != "left_out":
            assert change.tokens < change.tokens_before
    items = fitted.request[key]
    if {"as in the previous request"} >= {c.reason for c in fitted.report.changes}:
        assert all(id(item) in known for item in items)
        assert common(previous.request[key], items) == len(previous.request[key])
    kept = common(previous.request[key], items)
    stable = {**fitted.request, key: items[:kept]}
    assert fitted.report.stable_prefix_tokens >= recount(provider, stable, COUNT) - 3
    again = fit_request(whole, context_window=window + 80, previous=fitted, **options)
    assert again.total_tokens <= window + 80
    if step == 0:
        assert (again.request[key], again.total_tokens) == (items, fitted.total_tokens)


def test_step_keeps_room():
    """A share of the room stays free once something must go; nothing goes while all fits."""
    turns = [(f"question {i} " * 10, [], True) for i in range(40)]
    request = conversation("openai_chat", turns)
    total = recount("openai_chat", request, COUNT)
    frees = []
    for step in (0, 0.25, 0.5):
        fitted = fit_request(request, context_window=total - 1, counter="words", step=step)
        frees.append(1 - fitted.total_tokens / (total - 1))
        assert fit_request(request, context_window=total, counter="words", step=step).request is (
            request
        )
    assert all(after > before + 0.15 for before, after in pairwise(frees))
    assert frees[0] < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"previous": {"messages": []}}, "previous must be what fit_request returned, not dict"),
        ({"step": 1}, "step must be from 0 to 0.9, not 1.0"),
        ({"step": "a"}, "step must be a float, not str"),
    ],
)
def test_refused(options, message):
    """A previous request of another kind, and a step out of range, are errors."""
    with pytest.raises(InvalidArgumentError) as caught:
        fit_request({"messages": []}, context_window=9, **options)
    assert message in str(caught.value)


def test_another_conversation():
    """A previous request of other messages changes nothing."""
    turns = [("tea " * 30, [["result " * 50]], True), ("coffee", [], False)]
    other = conversation(
        "openai_chat", [("cocoa " * 30, [["milk " * 90]], True), ("a", [], False)]
    )
    request = conversation("openai_chat", turns)
    previous = fit_request(other, context_window=150, counter="words")
    assert previous.report.changes
    alone = fit_request(request, context_window=120, counter="words")
    assert fit_request(
        request, context_window=120, counter="words", previous=previous, step=0
    ).request == (alone.request)


def agent(number, size, questions):
    """Yield the messages of an agent, a list for each turn: a call and its result."""
    for i in range(number):
        call = {
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": "read", "arguments": '{"path": "a"}'},
        }
        asked = [{"role": "user", "content": f"What says {i}?"}] if i % questions == 0 else []
        result = f"line {i} " * (size // 2)
        yield [
            *asked,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{i}", "content": result},
        ]


@pytest.mark.parametrize("questions", [1, 6, 1_000])
def test_the_bar_of_fifty_turns(questions):
    """
    Over 50 trimmed turns of 1.5 % the beginning changes in one of eight at most.

    At most 15 % of the window is unused on average, and the report says how much of it is stable:
    all that was sent before, where the beginning stays.
    """
    window, history, previous = 4_000, [], None
    unused, changed = [], 0
    for turn in agent(130, 38, questions):
        history += turn
        request = {"messages": [{"role": "system", "content": "Be brief."}, *history]}
        options = {"context_window": window, "counter": "words"}
        fitted = fit_request(request, previous=previous, **options)
        sent = fitted.request["messages"]
        if fitted.report.changes and len(unused) < 50:
            before = previous.request["messages"]
            kept = common(before[1:], sent[1:]) + 1
            changed += kept < len(before)
            unused.append(1 - fitted.total_tokens / window)
            stable = count_messages(sent[:kept], counter="words") - 3
            assert fitted.report.stable_prefix_tokens == stable
            if kept == len(before):
                assert stable == previous.total_tokens - 3
        previous = fitted
    assert len(unused) == 50
    assert changed <= 50 / 8
    assert sum(unused) / 50 <= 0.15


def test_a_message_is_counted_once_in_its_life():
    """Turn after turn only what is new is counted, as long as counter and model are the same."""
    recorder = Recorder(lambda text: len(text.split()), [])
    counter, messages, previous = get_counter(recorder), [], None
    for i, turn in enumerate(agent(8, 40, 2)):
        messages += turn
        request = {"messages": messages}
        recorder.asked.clear()
        fitted = fit_request(request, context_window=9_000, counter=counter, previous=previous)
        seen = [text for text in recorder.asked if text.startswith("line")]
        assert len(seen) == (1 if i != 1 else 2)  # without previous nothing is remembered
        alone = fit_request(request, context_window=9_000, counter="words")
        assert fitted.total_tokens == alone.total_tokens
        assert fitted.report.sections["history"].tokens == alone.report.sections["history"].tokens
        previous = fitted
    for options in ({"counter": "o200k_base"}, {"model": "gpt-3.5-turbo-0301"}):
        other = fit_request(request, context_window=9_000, previous=previous, **options)
        alone = fit_request(request, context_window=9_000, **options)
        assert other.total_tokens == alone.total_tokens


def test_a_message_that_was_changed_is_counted_anew():
    """A message may be changed in place, at any depth: its new content is what counts."""
    messages = [turn for new in agent(3, 40, 1) for turn in new]
    request = {"messages": messages}
    options = {"context_window": 9_000, "counter": "words"}
    previous = fit_request(request, **options, previous=fit_request(request, **options))
    for change in (
        lambda: messages[0].update(content="tea " * 30),
        lambda: messages[1]["tool_calls"][0]["function"].update(arguments="tea " * 20),
        lambda: messages[2].update(content=[{"type": "text", "text": "tea " * 90}]),
        lambda: messages[2]["content"][0].update(text="tea " * 120),
        lambda: messages[3].update(name="Ada"),
        lambda: messages[1].update(tool_calls=None),
    ):
        change()
        fitted = fit_request(request, previous=previous, **options)
        alone = fit_request(request, **options)
        assert fitted.total_tokens == alone.total_tokens
        assert len(fitted.request["messages"]) == len(alone.request["messages"])
        previous = fitted


def test_arguments_in_another_order_are_counted_anew():
    """Equal arguments of a call are another text where their order is another, as from a store."""

    def count(text):
        return len(text.rpartition(":")[0] or text)  # the last field by its name alone

    arguments = {"path": "tea.txt", "mode": "r"}
    use = {"type": "tool_use", "id": "x", "name": "read", "input": arguments}
    request = {"messages": [said("tea"), {"role": "assistant", "content": [use]}]}
    options, previous = {"context_window": 900, "counter": count}, None
    for _ in range(2):
        previous = fit_request(request, previous=previous, **options)
    use["input"] = dict(reversed(arguments.items()))
    fitted = fit_request(request, previous=previous, **options)

    assert fitted.total_tokens == fit_request(request, **options).total_tokens
    assert fitted.total_tokens != previous.total_tokens


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("system", "messages"),
        ("instructions", "input"),
        ("system_instruction", "contents"),
        ("systemInstruction", "contents"),
        ("config", "contents"),
    ],
)
def test_other_instructions_are_another_beginning(name, key):
    """Where the instructions changed, a provider's cache has nothing of the request."""

    def request(instructions, count):
        content = {"parts": [{"text": "tea"}]} if key == "contents" else {"content": "tea"}
        given = {"system_instruction": instructions} if name == "config" else instructions
        return {name: given, key: [{"role": "user", **content}] * count}

    before = fit_request(request("Be brief.", 1), context_window=900)
    for instructions, is_same in (("Be brief.", True), ("Be polite.", False)):
        fitted = fit_request(request(instructions, 2), context_window=900, previous=before)
        assert (fitted.report.stable_prefix_tokens > 0) is is_same


def test_a_request_that_became_shorter():
    """Messages that went, and others in their places, are counted as they are."""
    messages = [{"role": "user", "content": f"question {i} " * (i + 1)} for i in range(9)]
    options, previous = {"context_window": 9_000, "counter": "words"}, None
    for start, end in ((0, 9), (0, 9), (0, 4), (0, 9), (2, 9), (3, 5), (0, 7)):
        request = {"messages": messages[start:end]}
        fitted = fit_request(request, previous=previous, **options)
        assert fitted.total_tokens == fit_request(request, **options).total_tokens
        assert all(map(operator.is_, fitted.request["messages"], request["messages"]))
        messages[6] = {"role": "user", "content": "tea " * end}
        messages[5]["content"] += " tea"
        previous = fitted


def test_a_result_without_its_call_in_a_turn_that_left():
    """The turn stays away whole: no result of it comes back, whose call would be missing."""
    messages = [
        {"role": "user", "content": "tea " * 30},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": key, "content": "green"}
                for key in ("a", "lost")
            ],
        },
        {"role": "assistant", "content": "Green."},
        {"role": "user", "content": "And now?"},
    ]
    request = {"messages": messages}
    options = {"context_window": 40, "counter": "words"}
    first = fit_request(request, **options)
    assert messages[4:] == first.request["messages"]

    again = fit_request(request, **options, previous=first)

    assert first.request == again.request
    changes = [(change.place, change.reason) for change in again.report.changes]
    assert [(f"messages[{i}]", "as in the previous request") for i in range(4)] == changes
    assert first.report.sections == again.report.sections


def test_it_can_be_pickled():
    """A copy in another process is a previous request as well, without what was counted."""
    messages = [turn for new in agent(30, 40, 3) for turn in new]
    options = {"context_window": 900, "counter": lambda text: len(text.split())}
    first = fit_request({"messages": messages}, **options)
    previous = fit_request({"messages": messages}, **options, previous=first)
    copied = pickle.loads(pickle.dumps(previous))
    assert copied == previous
    messages = [*messages, {"role": "user", "content": "And?"}]
    one, other = (
        fit_request({"messages": messages}, **options, previous=given)
        for given in (previous, copied)
    )
    assert one.request == other.request
    assert one.report == other.report


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_conversation_that_fits_is_whole(provider):
    """What left a conversation is missed in one that began alike only if that does not fit."""
    key = KEYS[provider]
    turns = [(f"question {i} " * 90, [], True) for i in range(9)]
    whole = conversation(provider, turns)
    window = recount(provider, whole, COUNT) * 2 // 3
    previous = fit_request(whole, context_window=window, counter="words")
    assert len(previous.request[key]) < len(whole[key])
    options = {"context_window": window, "counter": "words", "previous": previous}

    other = conversation(provider, [turns[0], ("another question", [], True)])
    assert fit_request(other, **options).request is other
    shorter = conversation(provider, turns[:2])
    assert fit_request(shorter, **options).request is shorter
    longer = conversation(provider, [*turns[:-1], ("another question " * 90, [], True)])
    fitted = fit_request(longer, **options)
    assert recount(provider, fitted.request, COUNT) == fitted.total_tokens <= window
    assert "as in the previous request" in {change.reason for change in fitted.report.changes}


def test_conversations_that_begin_alike_are_told_apart():
    """Each goes on with what was sent for it, and none loses what left another one."""
    fitter = Fitter("gpt-4o", 400, 0, "words")
    shots = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]
    long, sent = [*shots], []
    for i in range(9):
        long.append({"role": "user", "content": f"A{i} " * 90})
        request = {"messages": [*long]}
        fitted = fitter(request)
        assert fitted.request == fit_request(request, model="gpt-4o", context_window=400,
            counter="words", previous=sent[-1] if sent else None).request  # fmt: skip
        sent.append(fitted)
        long.append({"role": "assistant", "content": "ok"})
        short = [*shots, {"role": "user", "content": f"B{i}"}]
        assert fitter({"messages": short}).request["messages"] is short
        assert shots[:1] == fitter({"messages": shots[:1]}).request["messages"]
    assert len(sent[-1].request["messages"]) < len(long) - 1


def test_those_that_begin_alike_are_few():
    """A conversation that never goes on takes the place of its own, not of all others."""
    fitter = Fitter("gpt-4o", 4_000, 0, "words")
    other = [{"role": "user", "content": "Which tea?"}]
    fitter({"messages": other})
    for i in range(99):
        fitter({"messages": [{"role": "user", "content": "Hello"}, said(f"B{i}")]})
        fitter({"messages": [{"role": "system", "content": f"It is {i}."}, *other]})
    assert ALIKE + 1 == len(fitter._sent)


def said(text):
    return {"role": "user", "content": text}


@pytest.mark.parametrize("is_last", [True, False])
def test_chunks_that_move_keep_the_beginning(is_last):
    """Where chunks were another message is in the next turn: what left stays away all the same."""
    history, previous, stable = [], None, []
    for i in range(20):
        chunks = [f"Chunk {n} " * 20 for n in range(40)]
        section = Section("chunks", query="chunk", chunks=chunks, max_tokens=600)
        question = said(f"Question {i} " + "tea " * 48)
        asked = [question, {"role": "user", "content": section}]
        messages = [*history, *(asked if is_last else asked[::-1])]
        fitted = fit_request({"messages": messages}, context_window=1_000, counter="words",
            previous=previous)  # fmt: skip
        assert fitted.total_tokens <= 1_000
        stable.append(fitted.report.stable_prefix_tokens)
        previous = fitted
        history += [question, {"role": "assistant", "content": f"Answer {i}"}]
    assert sum(tokens > 0 for tokens in stable[8:]) >= 6
