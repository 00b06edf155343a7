"""Trimming a chat history: what stays, what belongs together, and what is counted."""

import copy
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, Recorder, compared, counters, odd_texts, using

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    get_counter,
    trim_messages,
    window,
)
from budgeteer._messages.turn import MARKER
from budgeteer.window import count_messages

SYSTEM_ROLES = ("system", "developer")


def call(*ids):
    functions = [
        {"id": key, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for key in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": functions}


def result(key, text="12 degrees"):
    return {"role": "tool", "tool_call_id": key, "content": text}


def use(*ids):
    parts = [{"type": "tool_use", "id": key, "name": "f", "input": {}} for key in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, *parts]}


def used(*ids, text=None, result_text="12"):
    parts = [{"type": "tool_result", "tool_use_id": key, "content": result_text} for key in ids]
    return {"role": "user", "content": parts + ([{"type": "text", "text": text}] if text else [])}


def said(role, text="tea " * 5):
    return {"role": role, "content": text}


def ids_of_calls(message):
    calls = [item["id"] for item in message.get("tool_calls", ())]
    return calls + [part["id"] for part in parts_of(message, "tool_use")]


def ids_of_results(message):
    own = [message["tool_call_id"]] if message["role"] == "tool" else []
    return own + [part["tool_use_id"] for part in parts_of(message, "tool_result")]


def parts_of(message, kind):
    content = message["content"] if isinstance(message["content"], list) else []
    return [part for part in content if part["type"] == kind]


def complete(messages):
    """Return *messages* without the results whose calls are missing."""
    known, made = set(), []
    for message in messages:
        if message["role"] not in SYSTEM_ROLES:
            if message["role"] == "tool" and message["tool_call_id"] not in known:
                continue
            lost = [p for p in parts_of(message, "tool_result") if p["tool_use_id"] not in known]
            if lost:
                parts = [part for part in message["content"] if part not in lost]
                if not parts:
                    continue
                message = {**message, "content": parts}  # noqa: PLW2901 - it is that message
            known.update(ids_of_calls(message))
        made.append(message)
    return made


def suffixes(messages):
    """Return every list that may be left of *messages*, the longest first, by brute force."""
    known, whole = {}, []
    for i, message in enumerate(messages):
        answers = all(key in known for key in ids_of_results(message))
        if answers and message["role"] not in SYSTEM_ROLES:
            whole.append(i)
            known.update((key, i) for key in ids_of_calls(message))
    for start in range(len(whole) + 1):
        kept, torn, seen = set(whole[start:]), False, {}
        for i in whole:
            torn |= i in kept and any(seen[key] not in kept for key in ids_of_results(messages[i]))
            seen.update((key, i) for key in ids_of_calls(messages[i]))
        if not torn:
            yield [
                message
                for i, message in enumerate(messages)
                if i in kept or message["role"] in SYSTEM_ROLES
            ]


def turn_of(messages):
    """Return what must stay of *messages*: the shortest list with the question, by brute force."""
    lists = [*suffixes(messages)]
    asked = [m for m in lists[0] if m["role"] == "user" and not is_only_results(m)]
    lists = [kept for kept in lists if not asked or among(asked[-1], kept)]
    others = [[m for m in kept if m["role"] not in SYSTEM_ROLES] for kept in lists]
    return min((kept for kept in others if kept), key=len, default=[])


def is_only_results(message):
    parts = message["content"]
    return isinstance(parts, list) and all(part["type"] == "tool_result" for part in parts)


def among(message, messages):
    return any(message is other for other in messages)


def texts_of_results(message):
    """Return the texts of the tool results in a message."""
    if message["role"] == "tool":
        content = message["content"]
        return [content] if isinstance(content, str) else [part["text"] for part in content]
    return [
        text
        for part in parts_of(message, "tool_result")
        for text in texts_of_results({"role": "tool", "content": part["content"]})
    ]


def replaced(message, old, new):
    """Return the message as JSON would have it with one text for another."""
    return json.loads(json.dumps(message).replace(json.dumps(old), json.dumps(new)))


keys = st.sampled_from("abc")
long_texts = st.integers(1, 60).map("tea ".__mul__) | odd_texts
histories = st.lists(
    st.builds(said, st.sampled_from(["system", "developer", "user", "assistant"]), odd_texts)
    | st.lists(keys, min_size=1, max_size=3, unique=True).map(lambda ids: call(*ids))
    | st.lists(keys, min_size=1, max_size=3, unique=True).map(lambda ids: use(*ids))
    | st.builds(result, keys, long_texts)
    | st.builds(lambda key, text: result(key, [{"type": "text", "text": text}]), keys, long_texts)
    | st.lists(keys, min_size=1, max_size=2).map(lambda ids: used(*ids))
    | st.builds(lambda key, text: used(key, text=text), keys, st.sampled_from([None, "Go on."]))
    | st.builds(lambda key, text: used(key, result_text=text), keys, long_texts)
    | st.builds(lambda role, name: {"role": role, "name": name}, st.just("user"), odd_texts).map(
        lambda message: {**message, "content": "x"}
    ),
    max_size=10,
)


turns = st.lists(long_texts, min_size=1, max_size=3).flatmap(
    lambda texts: st.sampled_from(
        [
            [said("user"), call(*"xyz"[: len(texts)]), *map(result, "xyz", texts)],
            [said("user"), use("x"), used("x", result_text=texts[0])],
            [use("x"), used("x", result_text=texts[0], text="Go on.")],
        ]
    )
)
"""Ends of a history with a question and its tool results."""

ending = st.builds(list.__add__, histories, turns)


@given(histories, st.integers(0, 200), counters, st.sampled_from(BACKENDS))
def test_what_is_left(messages, limit, counter, name):
    """It is the longest that may be left and fits, if that has the question and what follows."""
    given = complete(messages)
    turn = turn_of(given)
    with using(name):
        allowed = [
            kept
            for kept in suffixes(given)
            if count_messages(kept, counter=counter) <= limit
            and all(among(message, kept) for message in turn)
        ]
        try:
            left = trim_messages(messages, limit, counter=counter)
        except BudgetExhaustedError:
            assert not allowed
            return

        assert count_messages(left, counter=counter) <= limit
        if allowed:
            assert allowed[0] == left
            pairs = zip(allowed[0], left, strict=True)
            assert all(kept is a or not among(kept, messages) for kept, a in pairs)


@given(histories | ending, st.integers(0, 200), counters, st.sampled_from(BACKENDS))
def test_what_is_cut(messages, limit, counter, name):
    """Only texts of tool results differ, the longest; the rest are the caller's objects."""
    given = complete(messages)
    turn = turn_of(given)
    system = [message for message in messages if message["role"] in SYSTEM_ROLES]
    needed = [m for m in given if among(m, system) or among(m, turn)]
    with using(name):
        count = get_counter(counter).count
        before = copy.deepcopy(messages)
        try:
            left = trim_messages(messages, limit, counter=counter)
        except BudgetExhaustedError:
            short = copy.deepcopy(needed)
            for message in short:
                for text in texts_of_results(message):
                    if count(text) > count(MARKER):
                        message.update(replaced(message, text, MARKER))
            assert count_messages(short, counter=counter) > limit
            return
        finally:
            assert before == messages
        if all(message in given for message in left):
            return

        assert len(needed) == len(left)
        kept, cut = [], []
        unused = 0  # at most, by the cuts; a longer text may have it
        for was, now in zip(needed, left, strict=True):
            whole = now
            for old, new in zip(texts_of_results(was), texts_of_results(now), strict=True):
                (kept if old == new else cut).append(count(old))
                unused += max(0, count(old) - count(new))
                if old != new:
                    head, marker, tail = new.partition(MARKER)
                    assert marker
                    assert old.startswith(head)
                    assert old.endswith(tail)
                    # The marker may be longer than the words that it stands for.
                    size = count if counter in ("words", "whitespace") else len
                    assert not head + tail or size(new) <= size(old)
                    whole = replaced(whole, new, old)
            assert json.dumps(was) == json.dumps(whole)  # two surrogates are read as one
        assert cut
        assert max(kept, default=0) <= min(cut) + unused
        assert count_messages(needed, counter=counter) > limit


@given(histories | ending, st.integers(0, 150), st.sampled_from(["o200k_base", "words"]))
def test_more_room_keeps_more(messages, limit, counter):
    """What is left with less room is left with more, and no tool result is shorter."""
    try:
        less = trim_messages(messages, limit, counter=counter)
    except BudgetExhaustedError:
        return
    more = trim_messages(messages, limit + 20, counter=counter)

    whole = {id(message) for message in less if among(message, messages)}
    assert whole <= {*map(id, more)}
    assert len(less) <= len(more)


@compared
@given(histories | ending, st.integers(0, 200), counters)
def test_both_backends_trim_alike(messages, limit, counter):
    """Native and reference leave the same, errors included."""
    answers = []
    for name in BACKENDS:
        with using(name):
            try:
                answers.append(trim_messages(messages, limit, counter=counter))
            except BudgetExhaustedError as error:
                answers.append(str(error))

    assert answers[0] == answers[1]


def chars(counter_calls):
    return sum(map(len, counter_calls))


@pytest.mark.parametrize("limit", [10**6, 2_000, 300, 100])
def test_each_text_is_counted_once(limit):
    """No text is handed to the counter twice, and of older messages one at most."""
    messages = [said(("user", "assistant")[i % 2], f"{i} " + "tea " * 40) for i in range(200)]
    recorder = Recorder(lambda text: len(text.split()), [])
    left = trim_messages(messages, limit, counter=recorder)

    looked_at = messages[-len(left) - 1 :]
    texts = [message["content"] for message in looked_at]
    assert sorted([*texts, *{m["role"] for m in looked_at}]) == sorted(recorder.asked)
    if len(left) == len(messages):
        whole = sum(len(m["content"]) for m in messages) + len("assistantuser")
        assert 1.0 == chars(recorder.asked) / whole


def test_a_long_message_is_not_counted_to_its_end():
    """Where a text cannot fit, a native encoding stops; nothing older is looked at."""
    counted = []
    messages = [said("user", "older"), said("assistant", "tea " * 10**6), said("user", "x y")]
    assert messages[2:] == trim_messages(messages, 50)

    trim_messages(messages, 50, counter=lambda text: counted.append(text) or len(text.split()))
    assert "older" not in counted


def test_parallel_calls_are_one():
    """An assistant's three calls and their results stay or go together."""
    messages = [
        said("user", "How warm is it?"),
        call("a", "b", "c"),
        *map(result, "abc"),
        said("assistant", "12 degrees everywhere."),
        said("user", "And tomorrow?"),
    ]
    tail = count_messages(messages[1:])

    assert messages[1:] == trim_messages(messages, tail)
    assert messages[5:] == trim_messages(messages, tail - 1)


@pytest.mark.parametrize(
    "pair",
    [
        [call("a"), result("a")],
        [use("a", "b"), used("a", "b", text="Go on.")],
        [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
         {"role": "function", "name": "f", "content": "12"}],
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
         {"role": "tool", "content": "12"}],
        [call("a"), said("system", "Be brief."), result("a")],
        [call("a"), said("assistant", "One moment."), result("a")],
    ],
    ids=["openai", "anthropic", "function", "without ids", "system between", "text between"],
)  # fmt: skip
def test_a_call_and_its_result(pair):
    """A result is never without its call, in any shape."""
    messages = [said("user"), *pair, said("user", "And now?")]
    whole = count_messages(messages[1:])
    system = [message for message in messages if message["role"] == "system"]

    assert messages[1:] == trim_messages(messages, whole)
    assert [*system, messages[-1]] == trim_messages(messages, whole - 1)


@pytest.mark.parametrize(
    "orphan",
    [result("z"), used("z"), {"role": "function", "name": "f", "content": "12"},
     {"role": "tool", "content": "12"}],
    ids=["openai", "anthropic", "function", "without an id"],
)  # fmt: skip
def test_orphans_are_left_out(orphan):
    """A result whose call is missing is left out, as the APIs refuse it; and not counted."""
    messages = [orphan, said("user", "And now?")]

    assert messages[1:] == trim_messages(messages, 1_000)
    assert messages[1:] == trim_messages(messages, count_messages(messages[1:]))


@pytest.mark.parametrize("keeps", [{}, {"previous": []}], ids=["alone", "with previous"])
def test_a_question_beside_an_orphan_stays(keeps):
    """Only the result whose call is missing is left out of a message that holds more."""
    asked = used("z", text="Go on.")
    kept = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    trimmed = trim_messages([said("user"), asked], 1_000, **keeps)

    assert [said("user"), kept] == trimmed
    assert (count_messages(trimmed), (), (1,)) == (
        trimmed.total_tokens,
        trimmed.left_out,
        trimmed.shortened,
    )
    assert used("z", text="Go on.") == asked
    assert [kept] == trim_messages([said("user"), asked], count_messages([kept]))
    both = {"role": "user", "content": [*used("z")["content"], *used("a")["content"]]}
    messages = [said("user"), use("a"), both, said("assistant"), said("user")]
    trimmed = trim_messages(messages, 1_000)
    assert [*messages[:2], used("a"), *messages[3:]] == trimmed


def test_a_question_beside_an_orphan_is_what_was_kept():
    """It is found again in the next turn, and stays the same object."""
    messages = [said("user"), said("assistant"), used("z", text="Go on.")]
    sent = trim_messages(messages, 1_000, previous=[])
    messages = [*messages, said("assistant"), said("user", "And now?")]
    again = trim_messages(messages, 1_000, previous=sent)

    assert sent[2] is again[2]
    assert sent.total_tokens - 3 == again.stable_prefix_tokens
    found = trim_messages(messages, 1_000, previous=json.loads(json.dumps(sent)))
    assert (again, again.stable_prefix_tokens) == (found, found.stable_prefix_tokens)
    messages[2] = said("user", "Go on, please.")
    assert messages == trim_messages(messages, 1_000, previous=sent)


def test_a_pending_call_stays():
    """A call whose results are yet to come stays."""
    messages = [said("user"), call("a", "b"), result("a")]

    assert messages == trim_messages(messages, 1_000)
    messages = [*messages, said("user", "Go on.")]
    assert messages[1:] == trim_messages(messages, count_messages(messages) - 1)
    assert messages[3:] == trim_messages(messages, count_messages(messages[1:]) - 1)


def test_an_id_that_is_used_again():
    """A result belongs to the last call before it."""
    messages = [call("a"), result("a"), call("a"), result("a"), said("user")]

    assert messages[2:] == trim_messages(messages, count_messages(messages[2:]))


def test_system_messages_stay():
    """System and developer messages stay in their places, wherever they are."""
    messages = [
        said("system", "a"),
        said("user", "b " * 50),
        said("developer", "c"),
        said("user", "d"),
    ]

    assert ["a", "c", "d"] == [m["content"] for m in trim_messages(messages, 30)]


def test_system_messages_that_do_not_fit():
    """They are never lost silently: the error has the arithmetic."""
    messages = [said("system", "a b c"), said("system", "d")]

    with pytest.raises(BudgetExhaustedError) as caught:
        trim_messages(messages, 14, counter="words")
    assert str(caught.value) == (
        "the system messages do not fit: max_tokens 14 - 12 for 2 system messages - 3 for the "
        "reply = -1"
    )
    assert messages == trim_messages(messages, 15, counter="words")


def test_nothing_is_left_of_nothing():
    """No messages are left of none, and of results without a call, in no room."""
    assert [] == trim_messages([], 0)
    assert [] == trim_messages([result("z")], 0)


def test_start_on():
    """start_on="user" leaves out what stands in front of the first message of the user."""
    messages = [
        said("system", "a"),
        call("x"),
        result("x"),
        said("assistant", "b"),
        said("user", "c"),
        said("assistant", "d"),
    ]

    assert messages == trim_messages(messages, 1_000)
    assert [messages[0], *messages[4:]] == trim_messages(messages, 1_000, start_on="user")
    assert [] == trim_messages([said("assistant")], 1_000, start_on="user")
    answer = [said("user"), use("x"), used("x", text="Go on."), said("assistant")]
    less = count_messages(answer) - 1
    assert answer == trim_messages(answer, less + 1, start_on="user")
    with pytest.raises(BudgetExhaustedError):
        trim_messages(answer, less, start_on="user")


def test_models_have_their_own_costs():
    """A model's costs and encoding apply as for count_messages."""
    messages = [said("user", "a"), said("user", "b")]
    for model, counter in itertools.product([None, "gpt-3.5-turbo-0301"], ["words", None]):
        tokens = count_messages(messages, model=model, counter=counter)
        assert messages == trim_messages(messages, tokens, model=model, counter=counter)
        assert messages[1:] == trim_messages(messages, tokens - 1, model=model, counter=counter)
    assert trim_messages is window.trim_messages
    assert messages == trim_messages(messages, 100, counter=get_counter("gpt-4o"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hello", 9), "messages must be a sequence, not str"),
        ((said("user"), 9), "messages must be a sequence, not dict"),
        ((["hello"], 9), "messages[0] must be a mapping, not str"),
        (([said("user"), {}], 9), "messages[1]['role'] must be a str, not None"),
        (([{"role": 3}], 9), "messages[0]['role'] must be a str, not int"),
        (([said("user", 3)], 99),
         "messages[0]['content'] must be a str, None or a list of parts, not int"),
        (([], -1), "max_tokens must be from 0 to"),
        (([], 1.0), "max_tokens must be an int, not float"),
        (([], None), "max_tokens must be an int, not None"),
    ],
)  # fmt: skip
def test_refused(arguments, message):
    """A wrong argument or message is named, by its place."""
    with pytest.raises(InvalidArgumentError) as caught:
        trim_messages(*arguments)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counter": "wrods"}, "did you mean 'words'"),
        ({"counter": 3}, "counter must be a name or a callable"),
        ({"model": 3}, "model must be a str, not int"),
        ({"start_on": "system"}, "start_on must be one of 'user', not 'system'"),
        ({"start_on": True}, "start_on must be one of 'user', not bool"),
    ],
)
def test_refused_options(options, message):
    """A wrong option is named."""
    with pytest.raises(InvalidArgumentError) as caught:
        trim_messages([], 9, **options)

    assert message in str(caught.value)


def test_any_sequence_and_mapping():
    """Messages may be any iterable of mappings; nothing is changed."""
    from types import MappingProxyType

    messages = [MappingProxyType(said("user", "a")), MappingProxyType(said("user", "b"))]

    assert messages == trim_messages(tuple(messages), 99)
    assert messages == trim_messages(iter(messages), 99)
