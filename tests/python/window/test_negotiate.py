"""Negotiation: the document's examples, its guarantees, and what it counts for real."""

import json
import logging
import pickle
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgeteer import BudgetExhaustedError, InvalidArgumentError, get_counter
from budgeteer.window import (
    count_messages,
    count_tools,
    model_limits,
    negotiate,
    register_model,
    safe_message_count,
)

TIME = "a datetime, ISO 8601 text or seconds since 1970"
NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)


def create_messages(number):
    return [{"role": "user", "content": f"Message {i}"} for i in range(number)]


def figures(found):
    return (
        found.input_token_count,
        found.available_tokens,
        found.adjusted_max_output_tokens,
        found.was_reduced,
        found.overflows_window,
    )


# The document's examples and the tests that it names.


@pytest.mark.parametrize(
    ("model", "messages", "requested", "expected"),
    [
        ("llama3.2:3b", 5, 3000, (1750, 126150, 3000, False, False)),
        ("gpt-3.5-turbo", 50, 5000, (13000, 3285, 3285, True, False)),
        ("deepseek-coder:6.7b", 60, 3000, (15500, 400, 500, True, True)),
    ],
    ids=["small conversation", "large conversation", "floor enforced"],
)
def test_worked_examples(model, messages, requested, expected):
    """Seed 001: its three examples, by number of messages and by messages."""
    for given_messages in (messages, create_messages(messages)):
        found = negotiate(model=model, messages=given_messages, max_output_tokens=requested)
        assert expected == figures(found)
        assert (messages, 0, 100) == (found.message_count, found.memory_count, found.safety_margin)
        assert requested == found.requested_max_output_tokens


def test_flexbox_example():
    """Seed 001: a window of 128K with 12K of input has 115K for the answer."""
    found = negotiate(model="llama3.2:3b", messages=46, max_output_tokens=5000)

    assert (12000, 115900, 5000) == figures(found)[:3]


def test_should_not_reduce_max_tokens_when_plenty_of_space():
    """Seed 001: a small conversation gets what it asks for."""
    found = negotiate(model="llama3.2:3b", messages=create_messages(5), max_output_tokens=3000)

    assert 3000 == found.adjusted_max_output_tokens


def test_should_reduce_max_tokens_when_context_is_full():
    """Seed 001: a large conversation gets less."""
    found = negotiate(model="gpt-3.5-turbo", messages=create_messages(50), max_output_tokens=5000)

    assert found.adjusted_max_output_tokens < 5000


def test_should_enforce_minimum_500_tokens():
    """Seed 001: a massive conversation still gets the floor, and says that it overflows."""
    found = negotiate(
        model="deepseek-coder:6.7b", messages=create_messages(100), max_output_tokens=3000
    )

    assert 500 == found.adjusted_max_output_tokens
    assert found.overflows_window


def test_should_build_context_with_adjusted_budget_for_large_conversations():
    """Seed 001: 50 messages reduce 5000 tokens, and the input is above 10000."""
    found = negotiate(model="gpt-3.5-turbo", messages=create_messages(50), max_output_tokens=5000)

    assert found.adjusted_max_output_tokens < 5000
    assert found.input_token_count > 10000


def test_unknown_models_fall_back():
    """An unknown model has 32768 tokens."""
    found = negotiate(model="no-such-model", messages=4, max_output_tokens=40_000)

    assert (32_768, 31_168) == (found.context_window, found.adjusted_max_output_tokens)


@pytest.mark.parametrize(
    ("model", "is_exact"), [("gpt-4o", True), ("my-gpt-4o-x", False), ("nobody-knows", False)]
)
def test_a_guessed_window_is_not_exact(model, is_exact):
    """A negotiation about a model that is not known is no exact one, whatever counted."""
    found = negotiate(
        model=model, messages=[], max_output_tokens=9, system_tokens=0, counter="o200k_base"
    )

    assert is_exact == found.is_exact


# Its guarantees.


@given(
    st.integers(1, 300_000), st.integers(0, 500), st.integers(0, 10**6), st.integers(0, 5_000),
    st.integers(0, 1_000), st.integers(0, 2_000), st.integers(0, 500),
)  # fmt: skip
def test_the_documents_formula(window, messages, requested, system, margin, floor, per_message):
    """max(floor, min(requested, window - input - margin)), and an overrun is never silent."""
    limits = register_model("formula", context_window=window)
    options = {
        "model": limits,
        "messages": messages,
        "max_output_tokens": requested,
        "system_tokens": system,
        "safety_margin": margin,
        "min_output_tokens": floor,
        "tokens_per_message": per_message,
    }
    found = negotiate(**options)
    taken = messages * per_message + system
    adjusted = max(floor, min(requested, window - taken - margin))

    assert (taken, window - taken - margin, adjusted) == figures(found)[:3]
    assert found.was_reduced == (adjusted < requested)
    assert found.overflows_window == (taken + adjusted + margin > window)
    if found.overflows_window:
        with pytest.raises(BudgetExhaustedError):
            negotiate(**options, strict=True)
    else:
        assert found == negotiate(**options, strict=True)


def test_a_request_below_the_floor_is_raised():
    """It is raised to the floor, and that is no reduction."""
    found = negotiate(model="gpt-4o", messages=1, max_output_tokens=10)

    assert (500, False, False) == figures(found)[2:]
    least = negotiate(model="gpt-4o", messages=1, max_output_tokens=10, min_output_tokens=0)
    assert 10 == least.adjusted_max_output_tokens


def test_strict_has_the_arithmetic():
    """Strict raises with every number of the third example."""
    with pytest.raises(BudgetExhaustedError) as caught:
        negotiate(model="deepseek-coder:6.7b", messages=60, max_output_tokens=3000, strict=True)

    assert str(caught.value) == (
        "model 'deepseek-coder:6.7b' has a window of 16000 tokens (16000 of input): 15500 of "
        "input (15000 messages + 500 system + 0 memories + 0 tools) + 500 of output + 100 of "
        "margin = 16100"
    )


def test_the_inputs_own_limit():
    """An input that the window holds but the model does not take overflows."""
    found = negotiate(model="gpt-5", messages=1100, max_output_tokens=1000)

    assert (275_500, True) == (found.input_token_count, found.overflows_window)
    assert found.available_tokens > 100_000


def test_flags_of_numpy():
    """A bool of numpy's is one, as it is for every other function."""
    options = {"model": "gpt-3.5-turbo", "messages": 1, "max_output_tokens": 9000}
    for flag in (True, False):
        own = negotiate(**options, cap_output=flag, strict=flag)
        assert own == negotiate(**options, cap_output=np.bool_(flag), strict=np.bool_(flag))
    assert model_limits("gpt-4o") == model_limits("gpt-4o", strict=np.bool_(True))
    known = replace(model_limits("gpt-4o"), known=np.bool_(True)).known
    assert known is True
    tools = [TOOL]
    assert count_tools(tools, has_system_message=np.bool_(True)) == count_tools(
        tools, has_system_message=True
    )


def test_capping_the_answer():
    """cap_output bounds the answer by the model's own limit; the document does not."""
    free = negotiate(model="gpt-4o", messages=1, max_output_tokens=50_000)
    capped = negotiate(model="gpt-4o", messages=1, max_output_tokens=50_000, cap_output=True)

    assert (50_000, False) == (free.adjusted_max_output_tokens, free.was_reduced)
    assert (16_384, True) == (capped.adjusted_max_output_tokens, capped.was_reduced)


def test_capping_the_floor():
    """No floor lifts an answer above what the model writes, which its provider would refuse."""
    found = negotiate(
        model="gpt-4o",
        messages=1,
        max_output_tokens=9,
        min_output_tokens=20_000,
        cap_output=True,
    )

    assert (16_384, False) == (found.adjusted_max_output_tokens, found.was_reduced)


# Its future enhancements.


def test_actual_token_counting():
    """Future enhancement 1: messages are counted by the counter."""
    messages = create_messages(50)
    found = negotiate(
        model="gpt-3.5-turbo", messages=messages, max_output_tokens=5000, counter="cl100k_base"
    )

    assert count_messages(messages, model="gpt-3.5-turbo") + 500 == found.input_token_count
    assert (5000, False, False) == (
        found.adjusted_max_output_tokens, found.was_reduced, found.is_exact,
    )  # fmt: skip
    old = negotiate(
        model="gpt-3.5-turbo-0301", messages=messages, max_output_tokens=1, counter="cl100k_base"
    )
    assert found.input_token_count + 50 == old.input_token_count


def test_memory_budget():
    """Future enhancement 2: memories are part of the input."""
    found = negotiate(
        model="gpt-4", messages=1, max_output_tokens=500, memories=["x" * 400, "y" * 4]
    )

    assert (101, 2, (0, 1)) == (found.memory_tokens, found.memory_count, found.memory_indices)
    assert 851 == found.input_token_count


def test_a_guessed_system_prompt_is_not_exact():
    """Where nobody says what the system prompt takes, 500 tokens are a guess, and say so."""
    options = {"model": "gpt-4o", "max_output_tokens": 900, "counter": "gpt-4o"}
    asked = [{"role": "user", "content": "Hello, world!"}]
    guessed = negotiate(messages=asked, **options)

    assert (500, 511, False) == (
        guessed.system_tokens, guessed.input_token_count, guessed.is_exact,
    )  # fmt: skip
    for system_tokens in (0, 7, "Be brief."):
        assert negotiate(messages=asked, system_tokens=system_tokens, **options).is_exact


def test_a_system_message_of_any_shape_is_one():
    """An object of a framework is asked for its role, as it is when it is counted."""
    options = {"model": "gpt-4o", "max_output_tokens": 900, "counter": "gpt-4o"}
    asked = {"role": "user", "content": "Hello, world!"}
    system = {"role": "system", "content": "Be brief."}
    fields = {"content": "Be brief.", "additional_kwargs": {}, "response_metadata": {}}
    langchain = SimpleNamespace(type="system", model_dump=fields.copy, **fields)
    found = negotiate(messages=[langchain, asked], **options)

    assert negotiate(messages=[system, asked], **options) == found
    assert (0, True) == (found.system_tokens, found.is_exact)


@pytest.mark.parametrize("counter", [None, "gpt-4o"])
def test_messages_that_can_be_read_once(counter):
    """An iterator of messages counts as its list, its system message and number included."""
    options = {"model": "gpt-4o", "max_output_tokens": 900, "counter": counter}
    system = {"role": "system", "content": "Be brief."}
    for messages in ([system, *create_messages(2)], create_messages(2), []):
        whole = negotiate(messages=messages, tools=[TOOL], memories=["a"], **options)
        once = negotiate(
            messages=iter(messages), tools=iter([TOOL]), memories=iter(["a"]), **options
        )
        assert whole == once


TOOL = {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("options", "is_exact"),
    [
        ({}, True),
        ({"memories": 0}, True),
        ({"counter": "chars_div4"}, True),  # which has nothing to count
        ({"counter": "gpt-4o"}, True),
        ({"system_tokens": "Be brief."}, False),
        ({"system_tokens": "Be brief.", "counter": "gpt-4o"}, True),
        ({"system_tokens": "Be brief.", "counter": "chars_div4"}, False),
        ({"system_tokens": None}, False),
        ({"messages": 1}, False),
        ({"messages": 1, "counter": "gpt-4o"}, False),
        ({"memories": 1}, False),
        ({"memories": ["Likes tea."]}, False),
        ({"memories": ["Likes tea."], "counter": "gpt-4o"}, True),
        ({"tools": [TOOL]}, False),
        ({"tools": [TOOL], "counter": "gpt-4o"}, True),
        ({"model": "nobody-knows"}, False),
    ],
)
def test_what_is_stated_is_exact(options, is_exact):
    """Without messages and with a stated prompt nothing is guessed, and nothing counted."""
    given = {"model": "gpt-4o", "messages": 0, "system_tokens": 0, "max_output_tokens": 900}

    assert is_exact == negotiate(**given | options).is_exact


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("counter", [None, "gpt-4o"])
def test_a_system_message_is_charged_once(role, counter):
    """A system message among the messages is counted there, and nowhere else."""
    said = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "Hello, world!"}]
    options = {"model": "gpt-4o", "messages": said, "max_output_tokens": 900, "counter": counter}
    found = negotiate(**options)

    assert found == negotiate(**options, system_tokens=0)
    expected = 500 if counter is None else count_messages(said, model="gpt-4o")
    assert (0, expected) == (found.system_tokens, found.input_token_count)
    assert (counter is not None) == found.is_exact


def test_tool_schema_budget():
    """Future enhancement 3: tool schemas are part of the input."""
    tools = [TOOL]
    found = negotiate(
        model="gpt-4o", messages=1, max_output_tokens=500, tools=tools, counter="gpt-4o"
    )
    expected = count_tools(tools, model="gpt-4o", has_system_message=True)

    assert (expected, 750 + expected) == (found.tool_tokens, found.input_token_count)
    bare = negotiate(
        model="gpt-4o", messages=0, max_output_tokens=500, system_tokens=0, tools=tools
    )
    assert count_tools(tools, counter="chars_div4") == bare.tool_tokens


@pytest.mark.parametrize(("model", "margin"), [("gpt-4o", 50), ("no-such-model", 200)])
def test_dynamic_safety_margin(model, margin):
    """Future enhancement 4: 50 for a model that is known, 200 otherwise."""
    found = negotiate(model=model, messages=1, max_output_tokens=500, safety_margin="auto")

    assert margin == found.safety_margin


@pytest.mark.parametrize(
    ("memory", "chosen"),
    [
        ({"importance": 0.6}, False),
        ({"importance": 0.61}, True),
        ({"importance": 1}, True),
        ({"importance": 0.9, "age_days": 7}, True),
        ({"importance": 0.9, "age_days": 7.01}, False),
        ({"importance": 0.9, "created_at": NOW - timedelta(days=7)}, True),
        ({"importance": 0.9, "created_at": NOW - timedelta(days=7, seconds=1)}, False),
        ({"importance": 0.9, "timestamp": (NOW - timedelta(days=8)).isoformat()}, False),
        ({"createdAt": NOW - timedelta(days=7)}, True),
        ({"createdAt": (NOW - timedelta(days=8)).isoformat()}, False),
        ({"createdAt": "2026-01-01T00:00:00.000Z"}, False),
        ({"timestamp": "2026-11-20T00:00:00Z"}, True),
        ({"timestamp": NOW.timestamp() - 8 * 86_400}, False),
        ({"timestamp": datetime(2026, 11, 14)}, True),  # noqa: DTZ001 - taken for UTC
        ({"timestamp": np.datetime64("2026-11-14", "ns")}, True),
        ({"timestamp": np.datetime64("2026-11-13", "ns")}, False),
        ({"importance": None}, True),
        ({"importance": pd.NA, "age_days": pd.NA, "created_at": pd.NaT}, True),
        ({"created_at": np.datetime64("NaT", "ns")}, True),
        ({"created_at": pd.NaT, "timestamp": pd.Timestamp("2025-11-21", tz="UTC")}, False),
        ({"created_at": pd.Timestamp("2026-11-20")}, True),
        ({}, True),
    ],
)
def test_memories_are_chosen(memory, chosen):
    """Seed 001: importance above 0.6 and at most 7 days old."""
    found = negotiate(
        model="gpt-4o",
        messages=0,
        max_output_tokens=500,
        memories=[{"content": "four", **memory}],
        now=NOW,
    )

    assert (chosen, chosen) == (found.memory_count, found.memory_tokens)


def test_both_limits_of_memories_can_be_set():
    """Other thresholds choose others; a budget keeps the most important that fit."""
    memories = [
        {"text": "a" * 40, "importance": 0.5, "age_days": 9},
        {"text": "b" * 40, "importance": 0.9, "age_days": 1},
        {"text": "c" * 20, "importance": 0.7, "age_days": 1},
    ]

    def indices(**options):
        found = negotiate(
            model="gpt-4o", messages=0, max_output_tokens=500, memories=memories, **options
        )
        return found.memory_indices, found.memory_tokens

    assert ((1, 2), 15) == indices()
    assert ((1, 2), 15) == indices(min_importance=0.4)
    assert ((0, 1, 2), 25) == indices(min_importance=0.4, max_memory_age_days=9)
    assert ((1,), 10) == indices(max_memory_tokens=14)
    assert ((2,), 5) == indices(max_memory_tokens=9)
    assert ((), 0) == indices(max_memory_tokens=0)


def test_a_text_stands_for_the_system_prompt():
    """A text is counted, by chars_div4 where no counter is given."""
    prompt = "Answer briefly, and in English."
    options = {"model": "gpt-4o", "messages": 0, "max_output_tokens": 500}

    assert 8 == negotiate(**options, system_tokens=prompt).system_tokens
    exact = negotiate(**options, system_tokens=prompt, counter="gpt-4o").system_tokens
    assert get_counter("gpt-4o").count(prompt) == exact


# Dimension 1.


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("gpt-4", {}, 18),  # (8192 - 3000 - 500 - 100) // 250
        ("gpt-3.5-turbo", {}, 51),
        ("llama3.2:3b", {}, 497),
        ("gpt-4", {"max_output_tokens": 8000}, 1),
        ("gpt-4", {"tokens_per_message": 1}, 4592),
        ("gpt-4", {"safety_margin": "auto", "system_tokens": 0}, 20),
        ("gpt-5", {}, 1086),  # the input has a limit of its own
    ],
)
def test_safe_message_count(model, options, expected):
    """Seed 001: how many messages leave room for all else, at least one."""
    assert expected == safe_message_count(model=model, **options)


@given(
    st.sampled_from(["gpt-4", "gpt-4o", "gpt-5", "qwen3-max", "mistral:7b"]),
    st.integers(0, 9_000),
    st.integers(1, 2_000),
)
def test_the_two_dimensions_agree(model, output, per_message):
    """So many messages do not reduce the answer, and one more does or overflows."""
    options = {
        "model": model,
        "max_output_tokens": output,
        "tokens_per_message": per_message,
    }
    number = safe_message_count(**options)
    if number > 1:
        found = negotiate(messages=number, min_output_tokens=0, **options)
        assert not found.was_reduced
        assert not found.overflows_window
        more = negotiate(messages=number + 1, min_output_tokens=0, **options)
        assert more.was_reduced or more.overflows_window


# Logging, data, errors.


def test_it_is_logged(caplog):
    """Seed 001: one record has all the figures; REDUCED is a warning."""
    with caplog.at_level(logging.INFO, "budgeteer"):
        negotiate(model="llama3.2:3b", messages=50, max_output_tokens=3000)
        negotiate(model="gpt-3.5-turbo", messages=50, max_output_tokens=5000)

    kept, reduced = caplog.records
    assert ("budgeteer", "INFO", "WARNING") == (kept.name, kept.levelname, reduced.levelname)
    assert kept.getMessage() == (
        "two-dimensional budget for 'llama3.2:3b': context window 128000, input 13000 (estimated) "
        "(50 messages + 500 system + 0 memories + 0 tools), margin 100, available for completion "
        "114900, requested maximum 3000, adjusted maximum 3000"
    )
    assert reduced.getMessage().endswith(
        "available for completion 3285, requested maximum 5000, adjusted maximum 3285 REDUCED"
    )


def test_no_text_is_logged(caplog):
    """Neither messages nor memories nor prompts reach the log."""
    secret = "hunter2"
    with caplog.at_level(logging.DEBUG, "budgeteer"):
        negotiate(
            model="gpt-4",
            messages=[{"role": "user", "content": secret}],
            max_output_tokens=9000,
            system_tokens=secret,
            memories=[secret],
            counter="words",
        )

    assert secret not in caplog.text


def test_it_is_data():
    """It cannot be changed, pickles, and is JSON as a mapping."""
    found = negotiate(model="gpt-4", messages=1, max_output_tokens=600, memories=["a"])

    assert found == pickle.loads(pickle.dumps(found))
    assert [0] == json.loads(json.dumps(found.to_dict()))["memory_indices"]
    with pytest.raises(AttributeError):
        found.model = "x"
    assert found == negotiate(
        model=model_limits("gpt-4"), messages=1, max_output_tokens=600, memories=["a"]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 3}, "model must be a str, not int"),
        ({"messages": "x"}, "messages must be an int, their number, or a sequence, not str"),
        ({"messages": -1}, "messages must be from 0 to"),
        ({"messages": ["x"]}, "messages[0] must be a mapping, not str"),
        ({"messages": True}, "messages must be an int, their number, or a sequence, not bool"),
        ({"messages": 2.0}, "messages must be an int, their number, or a sequence, not float"),
        ({"messages": {1}}, "messages must be a sequence, not set, whose order differs"),
        ({"memories": 2.0}, "memories must be an int, their number, or a sequence, not float"),
        ({"max_output_tokens": -1}, "max_output_tokens must be from 0 to"),
        ({"max_output_tokens": 1.0}, "max_output_tokens must be an int, not float"),
        ({"system_tokens": 1.0}, "system_tokens must be an int or a str, not float"),
        ({"system_tokens": -1}, "system_tokens must be from 0 to"),
        ({"safety_margin": "atuo"},
         "safety_margin must be an int or 'auto', not 'atuo'; did you mean 'auto'?"),
        ({"safety_margin": -1}, "safety_margin must be from 0 to"),
        ({"safety_margin": None}, "safety_margin must be an int or 'auto', not None"),
        ({"min_output_tokens": "x"}, "min_output_tokens must be an int, not str"),
        ({"tokens_per_message": None}, "tokens_per_message must be an int, not None"),
        ({"counter": "wrods"}, "did you mean 'words'?"),
        ({"memories": "x"}, "memories must be an int, their number, or a sequence, not str"),
        ({"memories": [3]}, "memories[0] must be a str or a mapping, not int"),
        ({"memories": [{}]}, "memories[0]['text'] must be a str, not None"),
        ({"memories": [{"text": "a", "importance": "x"}]},
         "memories[0]['importance'] must be a float, not str"),
        ({"memories": [{"text": "a", "age_days": float("nan")}]},
         "memories[0]['age_days'] must be a number, not NaN"),
        ({"memories": [{"text": "a", "created_at": "soon"}]},
         f"memories[0]['created_at'] must be {TIME}; the text is not of that form"),
        *(
            ({"memories": [{"text": "a", "created_at": value}]},
             f"memories[0]['created_at'] must be {TIME}, not {type(value).__name__}")
            for value in (np.timedelta64(1, "s"), date(2025, 11, 21), True)
        ),
        ({"memories": [{"text": "a", "age_days": np.timedelta64(1, "D")}]},
         "memories[0]['age_days'] must be a float, not timedelta64"),
        ({"now": pd.NaT}, f"now must be {TIME}, not NaTType"),
        ({"min_importance": None}, "min_importance must be a float, not None"),
        ({"max_memory_age_days": "x"}, "max_memory_age_days must be a float, not str"),
        ({"max_memory_tokens": -1}, "max_memory_tokens must be from 0 to"),
        ({"tools": [3]}, "tools[0] must be a mapping, not int"),
        ({"now": "later"}, f"now must be {TIME}; the text is not of that form"),
        ({"strict": 1}, "strict must be a bool, not int"),
        ({"cap_output": None}, "cap_output must be a bool, not None"),
    ],
)  # fmt: skip
def test_refused(options, message):
    """A wrong argument is named, with what was found and what is allowed."""
    with pytest.raises(InvalidArgumentError) as caught:
        negotiate(**{"model": "gpt-4", "messages": 1, "max_output_tokens": 500, **options})

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens_per_message": 0}, "tokens_per_message must be from 1 to"),
        ({"max_output_tokens": -1}, "max_output_tokens must be from 0 to"),
        ({"system_tokens": []}, "system_tokens must be an int or a str, not list"),
        ({"safety_margin": None}, "safety_margin must be an int or 'auto', not None"),
    ],
)
def test_refused_for_the_safe_count(options, message):
    """Likewise for the first dimension."""
    with pytest.raises(InvalidArgumentError, match=message):
        safe_message_count(model="gpt-4", **options)
