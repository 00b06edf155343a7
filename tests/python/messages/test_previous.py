"""Trimming turn after turn: the beginning stays the same between cuts, and the laws hold."""

import copy
import itertools
import json
import pickle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_rules import SYSTEM, anthropic, openai
from support import BACKENDS, Recorder, counters, odd_texts, using
from turns import agent, calls, chat, result, said, same_objects, used, uses, words

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Layout,
    Section,
    get_counter,
    trim_messages,
)
from budgeteer._messages.mask import MASK
from budgeteer._messages.turn import MARKER
from budgeteer.window import Trimmed, count_messages

LOG = "Started. " * 300 + "Failed."


def is_prefix(before, after):
    return len(before) <= len(after) and all(
        a is b for a, b in zip(before, after[: len(before)], strict=True)
    )


texts = st.integers(1, 40).map(words) | odd_texts


@st.composite
def conversations(draw, shape):
    """Draw the turns of a conversation that is valid for an API, each a list of what is new."""
    turns, number = [], 0
    for _ in range(draw(st.integers(1, 8))):
        turn = [said("user", draw(texts))]
        for _ in range(draw(st.integers(0, 3))):
            keys = [f"c{number + i}" for i in range(draw(st.integers(1, 3)))]
            number += len(keys)
            answers = [(key, draw(texts)) for key in keys]
            if shape == "openai":
                turn += [calls(*keys), *(result(*answer) for answer in answers)]
            else:
                turn += [uses(*keys), used(answers)]
        turns.append(turn)
        if draw(st.booleans()):
            turns.append([])  # asked again with nothing new
        turns[-1].append(said("assistant", draw(texts)))
    if draw(st.booleans()):
        turns[0].insert(0, said("system", "Be brief."))
    return turns


options = st.fixed_dictionaries(
    {},
    optional={
        "step": st.floats(0.01, 0.99),
        "keep_results": st.integers(0, 4),
        "start_on": st.just("user"),
        "pins": st.sets(st.integers(0, 5), max_size=2),
    },
)


def asked(turns):
    """Yield the history each time that the model is asked."""
    history = []
    for turn in turns:
        for message in turn:
            if message["role"] == "assistant":
                yield history
            history.append(message)
    yield history


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
@given(data=st.data())
def test_the_laws(shape, data):
    """
    What is kept fits by another count, is valid, has what must stay, and stays while it can.

    The messages are the caller's objects unless they are shortened. The same call again changes
    nothing.
    """
    limit, counter = data.draw(st.integers(20, 300)), data.draw(counters)
    rules = {"counter": counter, **data.draw(options)}
    pins = rules.pop("pins", set())
    check = openai if shape == "openai" else anthropic
    sent, seen = [], 0
    with using(data.draw(st.sampled_from(BACKENDS))):
        for history in asked(data.draw(conversations(shape))):
            pinned = {pin for pin in pins if pin < len(history)}
            before = copy.deepcopy(history)
            try:
                left = trim_messages(history, limit, previous=sent, pins=pinned, **rules)
            except BudgetExhaustedError:
                continue
            finally:
                assert before == history
            assert count_messages(left, counter=counter) == left.total_tokens <= limit
            assert check(left) is None
            assert_kept(history, left, pinned, rules.get("start_on"))
            longer = [*sent, *history[seen:]]
            if not pinned and count_messages(longer, counter=counter) <= limit:
                assert same_objects(longer, left)
            again = trim_messages(history, limit, previous=left, pins=pinned, **rules)
            assert same_objects(left, again)
            assert again.stable_prefix_tokens == max(0, again.total_tokens - 3)
            assert same_objects(left, trim_messages(left, limit, previous=left, counter=counter))
            sent, seen = left, len(history)


def assert_kept(history, left, pinned, start_on):
    """Check that the caller's own messages are there, and those that must stay."""
    places = [i for i in range(len(history)) if i not in left.left_out]
    assert len(places) == len(left)
    for i, message in zip(places, left, strict=True):
        assert (message is history[i]) == (i not in left.shortened)
        if message is not history[i]:
            assert same_but_results(message, history[i])
    question = max(i for i, m in enumerate(history) if m["role"] == "user" and not is_result(m))
    must = {i for i, m in enumerate(history) if m["role"] in SYSTEM}
    assert must | pinned | {*range(question, len(history))} <= {*places}
    assert not pinned & {*left.shortened}
    first = next(m["role"] for m in left if m["role"] not in SYSTEM)
    assert start_on in (None, first)


def is_result(message):
    content = message["content"]
    return isinstance(content, list) and all(part["type"] == "tool_result" for part in content)


def same_but_results(short, whole):
    """Return whether two messages differ in their results only, each masked or cut."""
    if whole["role"] == "tool":
        pairs = [(short, whole)]
    else:
        pairs = list(zip(short["content"], whole["content"], strict=True))
        assert {**short, "content": None} == {**whole, "content": None}
    for made, own in pairs:
        assert {**made, "content": None} == {**own, "content": None}
        cut, text = made["content"], own["content"]
        head, marker, tail = cut.partition(MARKER)
        assert cut in (text, MASK) or (
            marker and any(t.startswith(head) and t.endswith(tail) for t in (text, MASK))
        )
    return True


@pytest.mark.parametrize("share", [0.015, 0.05])
@pytest.mark.parametrize("kind", ["chat", "agent", "anthropic"])
def test_the_bar(kind, share):
    """
    The prefix changes in few of the trimmed turns, and little of the window is unused.

    With turns of 1.5 % of the window: in one of eight at most, with 15 % unused at most. What is
    unused is about the size of a turn by twice the share of changes.
    """
    random, window = Random(5), 8_000
    mean = share * window
    history, sent = [said("system", "Be brief.")], []
    trimmed = changed = unused = 0
    for i in range(round(4 / share)):
        size = round(mean * random.lognormvariate(-0.32, 0.8)) + 1
        if kind == "chat" or i % 7 == 0:
            history.append(said("user", words(max(1, size // 3), f"user{i}")))
        elif kind == "agent":
            history += [calls(f"c{i}"), result(f"c{i}", words(size, f"log{i}"))]
        else:
            history += [uses(f"c{i}"), used([(f"c{i}", words(size, f"log{i}"))])]
        left = trim_messages(history, window, previous=sent, counter="words")
        if left.left_out:
            trimmed += 1
            changed += not same_objects(sent, left[: len(sent)])
            unused += 1 - left.total_tokens / window
        sent = left
        if kind == "chat" or i % 7 == 6:
            history.append(said("assistant", words(size * 2 // 3 + 1, f"assistant{i}")))
    rate, rest = changed / trimmed, unused / trimmed
    assert trimmed > 2.5 / share
    if share == 0.015:
        assert rate <= 1 / 8
        assert rest <= 0.15
    assert rest <= 1.5 * share / (2 * rate) + share


def test_without_previous_it_is_as_before():
    """Without previous and step each turn keeps what fits, so that every prefix changes."""
    history = chat(30)
    left = [trim_messages(history[:i], 200, counter="words") for i in range(40, 60)]

    assert all(count_messages(one, counter="words") > 150 for one in left)
    assert not any(is_prefix(a, b) for a, b in itertools.pairwise(left))
    assert {0} == {one.stable_prefix_tokens for one in left}


def test_a_step_frees_its_share():
    """A cut leaves at most the rest of the window, and as much of it as fits."""
    history = chat(50)
    for step in (0.1, 0.5, 0.9):
        for previous in (None, []):
            left = trim_messages(history, 1_000, step=step, previous=previous, counter="words")
            most = 1_000 - int(step * 1_000)
            assert most - 25 < left.total_tokens <= most
    assert trim_messages(history, 5_000, step=0.5, counter="words") == history


def test_a_step_never_takes_the_newest_turn():
    """Where the question takes more than what is left, it stays alone."""
    history = [*chat(5), said("user", words(80))]
    left = trim_messages(history, 100, step=0.9, counter="words")

    assert [history[-1]] == left


def test_messages_are_found_by_content():
    """A history that is read anew each time has the same result as one that is kept."""
    history, sent, stored = chat(1), [], []
    for i in range(1, 40):
        sent = trim_messages(history, 400, previous=sent, counter="words")
        copied = json.loads(json.dumps(history))
        read = trim_messages(copied, 400, previous=stored, counter="words")
        assert (sent, sent.stable_prefix_tokens) == (read, read.stable_prefix_tokens)
        assert all(any(a is b for b in copied) for a in read)
        stored = json.loads(json.dumps(read))
        history += chat(1, start=i)


def test_repeated_messages_are_told_apart():
    """Messages that are equal, or the same object, are found where the others around them are."""
    yes = said("user", "Go on.")
    history, sent, old = [], [], 0
    for i in range(60):
        history += [yes, said("assistant", words(20, f"part{i}"))]
        sent = trim_messages(history, 300, previous=sent, counter="words", step=0.4)
        new = len(sent.left_out)
        assert new in (old, new)
        assert new == old or sent.total_tokens <= 180
        old = new


def test_a_history_that_is_replaced_by_what_was_kept():
    """The returned list may be the history of the next turn: it has the same result."""
    history, own, sent = chat(1), chat(1), []
    for i in range(1, 40):
        sent = trim_messages(history, 400, previous=sent, counter="words")
        own = trim_messages(own, 400, previous=own, counter="words")
        assert sent == own
        history, own = history + chat(1, start=i), own + chat(1, start=i)


def test_what_is_not_found_is_passed_over():
    """Messages that were sent beside the history say nothing of where it begins."""
    history = chat(30)
    sent = trim_messages(history[:40], 300, previous=[], counter="words")
    more = [said("system", "Today is Monday."), said("user", "Some context."), *sent]
    plain = trim_messages(history[:41], 300, previous=sent, counter="words")
    left = trim_messages(history[:41], 300, previous=more, counter="words")

    assert (plain, 0) == (left, left.stable_prefix_tokens)
    assert is_prefix(sent, plain)
    assert plain.stable_prefix_tokens == sent.total_tokens - 3
    other = trim_messages(chat(9, start=90), 300, previous=sent, counter="words")
    assert 0 == other.stable_prefix_tokens


def test_a_changed_message_ends_the_stable_prefix():
    """The tokens before a message that was changed, and no others, are stable."""
    history = chat(4)
    sent = trim_messages(history, 500, previous=[], counter="words")
    changed = [*history[:3], said("assistant", "No."), *history[4:], said("user", "And?")]
    left = trim_messages(changed, 500, previous=sent, counter="words")

    assert changed == left
    assert left.stable_prefix_tokens == count_messages(history[:3], counter="words") - 3


def test_numbers_of_other_types_are_other_content():
    """1, 1.0 and True are other content, as they are other text in a prompt."""
    for one, other in itertools.permutations((1, 1.0, True), 2):
        sent = [{"role": "user", "content": "a", "extra": [one]}]
        left = trim_messages([{"role": "user", "content": "a", "extra": [other]}], 99,
                             previous=sent)  # fmt: skip
        assert 0 == left.stable_prefix_tokens


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_results_of_one_long_turn_are_cut_ahead(shape):
    """A question with ever more results is cut so that the next results only add."""
    history, sent, changed = [], [], 0
    for new in agent(60, shape=shape):
        history += new
        before, sent = sent, trim_messages(history, 1_500, previous=sent, counter="words")
        changed += not is_prefix(before, sent)
        assert (openai if shape == "openai" else anthropic)(sent) is None
        assert not sent.left_out
    assert 1 <= changed <= 12
    assert sent.shortened


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_old_results_are_masked_first(shape):
    """Old results are masked, the oldest first, before a message leaves; the newest are whole."""
    history = [message for new in agent(12, shape=shape) for message in new]
    every = count_messages(history, counter="words")
    left = trim_messages(history, every - 1, keep_results=3, counter="words")

    assert ((), (2,)) == (left.left_out, left.shortened)
    assert MASK in json.dumps(left[2])
    least = trim_messages(history, every - 9 * 54, keep_results=3, counter="words")
    assert tuple(range(2, 20, 2)) == least.shortened
    assert same_objects(least[20:], history[20:])
    less = trim_messages(history, every - 9 * 54, keep_results=20, counter="words")
    assert MASK not in json.dumps(less)


def test_masks_stay():
    """A masked result stays masked in the next turns, and its message the same object."""
    history, sent, masked = [], [], {}
    for new in agent(40):
        history += new
        sent = trim_messages(history, 900, previous=sent, keep_results=2, counter="words")
        for message in sent:
            if message["content"] == MASK:
                key = message["tool_call_id"]
                assert masked.setdefault(key, message) == message
        assert {*masked} <= {m.get("tool_call_id") for m in sent if m["content"] == MASK}
        assert all(m["content"] != MASK for m in sent[-4:])
    assert len(masked) > 20


def test_results_without_a_reply_are_never_masked():
    """keep_results=0 keeps what the model has not seen; those before its reply may be masked."""
    history = [
        said("user", "Compare them."),
        calls("a"),
        result("a", words(50)),
        calls("b", "c"),
        result("b", words(50)),
        result("c", words(50)),
    ]
    left = trim_messages(history, 150, keep_results=0, counter="words")

    assert (2,) == left.shortened
    with_reply = [*history, said("assistant", "The same."), said("user", "Sure?")]
    left = trim_messages(with_reply, 85, keep_results=0, counter="words")
    assert ((), (2, 4, 5)) == (left.left_out, left.shortened)


def test_a_result_that_is_smaller_than_the_marker_stays():
    """A marker never takes more than what it stands for."""
    history = [said("user", "Add."), calls("a"), result("a", "3"), said("assistant", words(30)),
               said("user", words(30))]  # fmt: skip
    every = count_messages(history, counter="words")
    left = trim_messages(history, every - 1, keep_results=0, counter="words")

    assert () == left.shortened


@pytest.mark.parametrize(
    ("given_options", "message"),
    [
        ({"step": 0}, "step must be above 0 and below 1, not 0.0"),
        ({"step": 1.0}, "step must be above 0 and below 1, not 1.0"),
        ({"step": float("nan")}, "step must be a number, not NaN"),
        ({"step": True}, "step must be a float, not bool"),
        ({"step": "0.5"}, "step must be a float, not str"),
        ({"keep_results": -1}, "keep_results must be from 0 to"),
        ({"keep_results": True}, "keep_results must be an int, not bool"),
        ({"previous": "hello"}, "previous must be a sequence, not str"),
        ({"previous": ["hello"]}, "previous[0] must be a mapping, not str"),
        ({"pins": "cache"}, "pins must be one of 'cache_control', not 'cache'"),
        ({"pins": 3}, "pins must be a collection of places, a function or 'cache_control', not i"),
        ({"pins": [True]}, "pins must have ints, the places of messages, not bool; a function"),
        ({"pins": [9]}, "pins must have places from 0 to 1, those of the messages, not 9"),
        ({"pins": [-1]}, "pins must have places from 0 to 1, those of the messages, not -1"),
    ],
)  # fmt: skip
def test_refused(given_options, message):
    """A wrong option is named, with what is allowed."""
    with pytest.raises(InvalidArgumentError) as caught:
        trim_messages(chat(1), 99, **given_options)

    assert message in str(caught.value)


def test_it_is_a_list():
    """What is returned is a list in every respect, and keeps its figures when it is copied."""
    history = chat(30)
    left = trim_messages(history, 200, previous=[], counter="words")
    figures = ("total_tokens", "stable_prefix_tokens", "left_out", "shortened")

    assert isinstance(left, list)
    assert left == [*left]
    assert repr([*left]) == repr(left)
    assert json.loads(json.dumps(left)) == left
    for other in (pickle.loads(pickle.dumps(left)), copy.copy(left), copy.deepcopy(left)):
        assert (Trimmed, left) == (type(other), other)
        assert all(getattr(left, name) == getattr(other, name) for name in figures)
    assert type(left[1:]) is list
    assert tuple(range(len(history) - len(left))) == left.left_out


def test_each_text_is_counted_once_a_turn():
    """While nothing is cut, no text is counted twice, and nothing of what left."""
    history, sent = chat(40), []
    sent = trim_messages(history, 400, previous=sent, counter="words")
    recorder = Recorder(lambda text: len(text.split()), [])
    history.append(said("user", "And?"))
    left = trim_messages(history, 400, previous=sent, counter=recorder)

    assert is_prefix(sent, left)
    expected = [*(message["content"] for message in left), *{m["role"] for m in left}]
    assert sorted(expected) == sorted(recorder.asked)


def test_a_message_is_counted_once_in_its_life():
    """Turn after turn only what is new is counted, as long as the counter is the same."""
    recorder = Recorder(lambda text: len(text.split()), [])
    counter, history, sent = get_counter(recorder), [], []
    for new in agent(8):
        history += new
        sent = trim_messages(history, 10_000, previous=sent, counter=counter)
    texts = [text for text in recorder.asked if text.startswith("log")]
    assert len(texts) == len({*texts}) == 8
    recorder.asked.clear()
    trim_messages(history, 10_000, previous=sent, counter=counter)
    assert not {*recorder.asked} & {*texts}
    trim_messages(history, 10_000, previous=[*sent], counter=counter)
    assert {*texts} <= {*recorder.asked}


def test_a_message_that_was_changed_is_counted_anew():
    """A message may be changed in place, at any depth: its new content is what counts."""
    history = [said("user", "a"), calls("x"), result("x", [{"type": "text", "text": "b"}])]
    sent = trim_messages(history, 500, previous=[], counter="words")
    for change in (
        lambda: history[2]["content"][0].update(text=words(30)),
        lambda: history[1]["tool_calls"][0]["function"].update(arguments=words(20)),
        lambda: history[0].update(name="Ada"),
        lambda: history[1]["tool_calls"].append(history[1]["tool_calls"][0]),
        lambda: history[0].update(extra=1),
    ):
        change()
        before, sent = sent, trim_messages(history, 500, previous=sent, counter="words")
        assert count_messages(sent, counter="words") == sent.total_tokens > before.total_tokens


def test_another_counter_counts_anew():
    """What one counter counted is of no use to another, or for another model."""
    history = chat(3)
    sent = trim_messages(history, 500, previous=[], counter="words")
    for rules in ({"counter": "o200k_base"}, {"model": "gpt-3.5-turbo-0301"}, {"counter": len}):
        left = trim_messages(history, 5_000, previous=sent, **rules)
        assert count_messages(history, **rules) == left.total_tokens


def test_a_section_of_a_layout():
    """A section keeps its beginning by the messages of the last prompt, as trimming does."""
    history, prompt, sent = chat(1), [], []
    for i in range(1, 30):
        sent = trim_messages(history, 303, previous=sent, counter="words")
        sections = [
            Section("system", "Be brief.", shrink=0, priority=1),
            Section("history", history, previous=prompt, max_tokens=300),
        ]
        allocation = Layout(600, sections, counter="words").fit()
        assert sent == allocation.messages[1:]
        assert bool(sent.left_out) == (["history"] == allocation.cut_sections)
        prompt = allocation.messages
        history = [*history, *chat(1, start=i)]
    long = [message for new in agent(12) for message in new]
    section = Section("history", long, keep_results=1, step=0.5)
    allocation = Layout(600, [section], counter="words").fit()
    assert allocation.total_tokens <= 303
    assert MASK in json.dumps(allocation.messages)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": "a text", "previous": []}, "previous is for a section whose content is"),
        ({"tokens": 9, "step": 0.5}, "step is for a section whose content is messages"),
        ({"fill": str, "keep_results": 2}, "keep_results is for a section whose content is mess"),
        ({"content": chat(1), "step": 2}, "step must be above 0 and below 1, not 2.0"),
        ({"content": chat(1), "previous": [3]}, "previous[0] must be a mapping, not int"),
    ],
)
def test_refused_sections(fields, message):
    """What trims messages is refused for a section that has none."""
    with pytest.raises(InvalidArgumentError) as caught:
        Section("a", **fields)

    assert message in str(caught.value)
