"""Messages that stay whatever is trimmed: pins, and breakpoints of a cache."""

import copy

import pytest
from provider_rules import openai
from turns import calls, chat, result, said, same_objects, words

from budgeteer import BudgetExhaustedError, InvalidArgumentError, trim_messages
from budgeteer.window import count_messages


def test_pins_stay():
    """Pinned messages stay whole with their calls and results, wherever they are."""
    history = [*chat(3), calls("a", "b"), result("a", words(30)), result("b", "x"), *chat(20)]
    for pins in ({7}, lambda message: message.get("tool_call_id") == "a", [6, 8]):
        left = trim_messages(history, 300, pins=pins, previous=[], counter="words")
        assert same_objects(left[:3], history[6:9])
        assert openai(left) is None
        assert 3 < len(left) < 20
    left = trim_messages(history, 300, pins={7}, start_on="user", counter="words")
    assert same_objects(left[:5], history[4:9])
    pinned = count_messages(history[6:9], counter="words") - 3
    with pytest.raises(BudgetExhaustedError) as caught:
        trim_messages(history, 60, pins={7}, counter="words")
    assert str(caught.value) == (
        "the newest message of the user and what follows it do not fit: max_tokens 60 - "
        f"{pinned} for 3 pinned messages - 24 for messages[47] - 24 for 1 other message - 3 for "
        f"the reply = {60 - pinned - 51}"
    )


def test_cache_breakpoints_stay():
    """Messages with a breakpoint in Anthropic's shape stay, also those whose part has it."""
    mark = {"type": "ephemeral"}
    parts = [{"type": "text", "text": words(9), "cache_control": mark}]
    history = [said("user", parts), *chat(20), {**said("user", "a"), "cache_control": mark},
               *chat(20)]  # fmt: skip
    left = trim_messages(history, 200, pins="cache_control", counter="words")

    assert left[0] is history[0]
    assert left[1] is history[41]
    assert trim_messages(history, 200, counter="words")[0] is not history[0]


@pytest.mark.parametrize("is_copied", [False, True])
def test_what_left_before_pins_does_not_come_back(is_copied):
    """Where all that was kept is pinned, what was left out before it stays out."""
    history = chat(3)
    pins, last = {4, 5}, history[-1]["content"]
    sent = trim_messages(history, 60, pins=pins, previous=[], counter="words")
    assert history[4:] == sent
    if is_copied:
        sent = copy.deepcopy(sent)
    left = trim_messages(history, 150, pins=pins, previous=sent, counter="words")
    assert history[4:] == left
    history.append(said("user", last))
    left = trim_messages(history, 180, pins=pins, previous=sent, counter="words")
    assert history[4:] == left


def test_what_was_edited_before_pins_stays():
    """An edited message is not one that was left out."""
    history = chat(2)
    sent = trim_messages(history[:3], 500, pins=[2], previous=[], counter="words")
    edited = [said("user", "Edited."), said("assistant", "So is this."), *history[2:]]

    assert edited == trim_messages(edited, 500, pins=[2], previous=sent, counter="words")


def test_pinned_results_are_not_cut():
    """A pinned result of the newest turn stays whole, and the others share the rest."""
    history = [said("user", "Compare."), calls("a", "b"), result("a", words(90)),
               result("b", words(90))]  # fmt: skip
    left = trim_messages(history, 150, pins=[2], counter="words")

    assert (3,) == left.shortened
    assert count_messages(left, counter="words") <= 150


def test_pins_that_start_on_would_leave_out():
    """A pinned message with no message of the user before it is refused with start_on."""
    history = [said("assistant", "Hello!"), *chat(2)]
    with pytest.raises(InvalidArgumentError) as caught:
        trim_messages(history, 99, pins=[0], start_on="user")

    assert str(caught.value) == (
        "start_on 'user' would leave out messages[0], which is pinned: no message of the user is "
        "before it and what it belongs to"
    )


def test_a_pin_without_messages():
    """There is no range of places to name."""
    with pytest.raises(
        InvalidArgumentError, match=r"^pins must have no places .* messages, not 0$"
    ):
        trim_messages([], 99, pins=[0])
    assert [] == trim_messages([], 99, pins=[])
