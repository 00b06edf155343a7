"""The newest question and what follows it: how tool results are cut, and when that is refused."""

import time
from types import MappingProxyType

import pytest
from support import BACKENDS, using

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Layout,
    Section,
    trim_messages,
)
from budgeteer._messages.mask import MASK
from budgeteer._messages.turn import MARKER
from budgeteer.window import count_messages

QUESTION = {"role": "user", "content": "What does the log say?"}
LOG = "Started. " * 500 + "Failed."


def call(*ids):
    function = {"name": "read", "arguments": "{}"}
    calls = [{"id": key, "type": "function", "function": function} for key in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(key, content=LOG):
    return {"role": "tool", "tool_call_id": key, "content": content}


def use(*ids):
    uses = [{"type": "tool_use", "id": key, "name": "read", "input": {}} for key in ids]
    return {"role": "assistant", "content": uses}


def part(key, content=LOG):
    return {"type": "tool_result", "tool_use_id": key, "content": content}


def text(words):
    return {"type": "text", "text": words}


def only_text(message):
    """Return the one text of the tool results in a message."""
    content = message["content"]
    while not isinstance(content, str):
        found = [part for part in content if isinstance(part, str) or part["type"] != "image"]
        inner = found[0]
        content = inner if isinstance(inner, str) else inner.get("content", inner.get("text"))
    return content


SHAPES = {
    "openai": [call("a"), result("a")],
    "openai parts": [call("a"), result("a", [text(LOG)])],
    "openai text in a list": [call("a"), result("a", [LOG])],
    "function": [
        {"role": "assistant", "content": None, "function_call": {"name": "read"}},
        {"role": "function", "name": "read", "content": LOG},
    ],
    "anthropic": [use("a"), {"role": "user", "content": [part("a")]}],
    "anthropic parts": [use("a"), {"role": "user", "content": (part("a", [text(LOG)]),)}],
    "anthropic with an image": [
        use("a"),
        {
            "role": "user",
            "content": [
                part("a", [text(LOG), {"type": "image", "width": 1, "height": 1, "source": {}}])
            ],
        },
    ],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("system", [[], [{"role": "system", "content": "Be brief."}]])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_oversized_result(shape, system, backend):
    """The newest item is a tool result above the limit: its text is cut, and all else stays."""
    older = [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hello!"}]
    messages = [*older, QUESTION, *SHAPES[shape]]
    with using(backend):
        left = trim_messages([*system, *messages], 400)

        assert 395 <= count_messages(left) <= 400
    assert [*system, QUESTION, messages[3]] == left[:-1]
    assert all(a is b for a, b in zip(left, [*system, *messages[2:4]], strict=False))
    assert left[-1] is not messages[-1]
    assert type(left[-1]["content"]) is type(messages[-1]["content"])
    cut = only_text(left[-1])
    head, marker, tail = cut.partition(MARKER)
    assert (MARKER, LOG) == (marker, only_text(messages[-1]))
    assert LOG.startswith(head)
    assert LOG.endswith(tail)
    assert "Failed." in tail
    assert len(head) > 100


def test_only_the_longest_results_are_cut():
    """Parallel results share the room: short ones stay whole, the others get as much each."""
    texts = ["short", "word " * 40, "tea " * 1_000, "milk " * 2_000]
    messages = [QUESTION, call(*"abcd"), *map(result, "abcd", texts)]
    left = trim_messages(messages, 600, counter="words")

    assert all(a is b for a, b in zip(left[:4], messages, strict=False))
    counts = [len(message["content"].split()) for message in left[4:]]
    assert max(counts) - min(counts) <= 1
    assert 600 == count_messages(left, counter="words")


def test_what_a_short_cut_leaves_goes_to_the_next():
    """A cut that ends before its share leaves the rest to the longer texts."""
    texts = ["x" * 4_000, "tea " * 5_000]
    messages = [QUESTION, call("a", "b"), *map(result, "ab", texts)]
    left = trim_messages(messages, 500, counter="words")
    counts = [len(message["content"].split()) for message in left[2:]]

    assert (1, 500) == (counts[0], count_messages(left, counter="words"))


def test_several_results_in_one_message():
    """Anthropic's parallel results in one message are cut each on its own."""
    parts = [part("a", "short"), part("b", [text(LOG), text("more")]), text("Go on.")]
    messages = [QUESTION, use("a", "b"), {"role": "user", "content": parts}]
    left = trim_messages(messages, 200)

    assert count_messages(left) <= 200
    content = left[-1]["content"]
    assert all(content[i] is parts[i] for i in (0, 2))
    assert MARKER in content[1]["content"][0]["text"]
    assert content[1]["content"][1] is parts[1]["content"][1]


def test_the_question_is_more_than_results():
    """A message of the user that holds only tool results is no question, but belongs to one."""
    answer = {"role": "user", "content": [part("a", "12 degrees")]}
    messages = [QUESTION, use("a"), answer]
    whole = count_messages(messages)

    assert messages == trim_messages(messages, whole)
    with pytest.raises(BudgetExhaustedError, match=r"for messages\[0\] - "):
        trim_messages(messages, 20)
    more = [QUESTION, {"role": "assistant", "content": "Well."}, *messages]
    assert messages == trim_messages(more, whole)
    asked = {"role": "user", "content": [part("a", "12 degrees"), text("And now?")]}
    assert [use("a"), asked] == trim_messages([*more[:3], use("a"), asked], whole)


def test_a_turn_that_does_not_fit():
    """The error says what each part takes, so that the sum can be made."""
    messages = [
        {"role": "system", "content": "a b"},
        {"role": "user", "content": "c d e"},
        call("f"),
        result("f", "g " * 50),
    ]

    with pytest.raises(BudgetExhaustedError) as caught:
        trim_messages(messages, 26, counter="words")
    assert str(caught.value) == (
        "the newest message of the user and what follows it do not fit: max_tokens 26 - 6 for 1 "
        "system message - 7 for messages[1] - 13 for 2 other messages - 1 for 1 cut text of tool "
        "results - 3 for the reply = -4"
    )
    left = trim_messages(messages, 30, counter="words")
    assert (MARKER, 30) == (left[-1]["content"], count_messages(left, counter="words"))


def test_a_question_that_does_not_fit():
    """A text of the user is never cut: it is an error."""
    with pytest.raises(BudgetExhaustedError) as caught:
        trim_messages([{"role": "user", "content": "tea " * 100}], 50, counter="words")
    assert str(caught.value) == (
        "the newest message of the user and what follows it do not fit: max_tokens 50 - 104 for "
        "messages[0] - 3 for the reply = -57"
    )


def test_without_a_question():
    """Without a message of the user, the newest message stays with its call, or it is an error."""
    messages = [{"role": "assistant", "content": "Hello!"}, call("a"), result("a")]
    left = trim_messages(messages, 100)

    assert (messages[1], 100 - 5 < count_messages(left) <= 100) == (left[0], True)
    with pytest.raises(BudgetExhaustedError) as caught:
        trim_messages(messages, 9)
    assert "the newest message and what it belongs to do not fit: max_tokens 9 - " in str(
        caught.value
    )


def test_start_on_never_loses_the_question():
    """Where start_on would leave out the question, it is an error that says why."""
    asked = {"role": "user", "content": [part("a", "12"), text("And now?")]}

    with pytest.raises(InvalidArgumentError) as caught:
        trim_messages([use("a"), asked], 1_000, start_on="user")
    assert str(caught.value) == (
        "start_on 'user' would leave out messages[1], the newest message of the user: it, or what "
        "follows it, has the result of a call, and no message of the user is before that call"
    )
    messages = [QUESTION, use("a"), asked]
    assert messages == trim_messages(messages, 1_000, start_on="user")


def test_a_section_of_a_layout():
    """A history in a layout is trimmed by the same rule, and what is left out is reported."""
    system = {"role": "system", "content": "Be brief."}
    messages = [system, {"role": "user", "content": "Hello!"}, QUESTION, call("a"), result("a")]
    for window in range(60, 300, 40):
        allocation = Layout(window, [Section("history", messages)]).fit()
        assert trim_messages(messages, window) == allocation.messages
        assert count_messages(allocation.messages) == allocation.total_tokens <= window
        assert ["history"] == allocation.cut_sections
    least = count_messages([system, QUESTION, call("a"), result("a", MARKER)])
    assert 4 == len(Layout(least, [Section("history", messages)]).fit().messages)
    allocation = Layout(least - 1, [Section("history", messages)]).fit()
    assert ([system], ["history"]) == (allocation.messages, allocation.cut_sections)


def test_mappings_are_copied_in_their_own_type():
    """A dict's subclass stays one; a mapping that cannot be copied becomes a dict."""

    class Own(dict):
        """A dict of a caller's own."""

    own = Own(result("a"), extra="kept")
    left = trim_messages([QUESTION, call("a"), own], 100)
    assert (Own, "kept", LOG) == (type(left[-1]), left[-1]["extra"], own["content"])

    left = trim_messages([QUESTION, call("a"), MappingProxyType(result("a"))], 100)
    assert (dict, "a") == (type(left[-1]), left[-1]["tool_call_id"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "counter", ["o200k_base", "words", "chars_div4", "claude-3-opus", len, lambda text: 7]
)
def test_any_counter(counter, backend):
    """A cut holds under every counter, also one for which nothing is short."""
    messages = [QUESTION, call("a", "b"), result("a"), result("b", "日本 " * 900)]
    with using(backend):
        for limit in range(10, 300, 29):
            try:
                left = trim_messages(messages, limit, counter=counter)
            except BudgetExhaustedError:
                continue
            assert count_messages(left, counter=counter) <= limit
            assert len(messages) == len(left)


def test_many_results_take_time_in_proportion():
    """Each of 16,000 results is cut in its own message, without a look at all the others."""
    results = [m for i in range(16_000) for m in (call(f"{i}"), result(f"{i}", LOG[:90]))]
    messages = [QUESTION, *results]
    most = count_messages(messages, counter="chars_div4") - 5 * 16_000

    start = time.process_time()  # others may have the processor, too
    kept = trim_messages(messages, most, counter="chars_div4")

    assert time.process_time() - start < 6
    assert len(messages) == len(kept)
    assert all(MARKER in message["content"] for message in kept[2::2])


def test_a_mask_for_several_texts_in_a_turn_that_is_cut():
    """A result of two texts that is masked stays so, and the other result is cut."""
    history = [QUESTION, call("a"), result("a", [text("tea " * 100), text("black " * 100)]),
               call("b"), result("b", "green " * 500)]  # fmt: skip
    for previous in (None, []):
        left = trim_messages(history, 120, keep_results=1, previous=previous)
        assert (2, 4) == left.shortened
        assert MASK in str(left[2])
        assert MARKER in left[4]["content"]
        again = trim_messages(history, 110, keep_results=1, previous=left)
        assert left[2] == again[2]
        assert count_messages(again) <= 110


def cut_twice(result_of, text, limit):
    """Return what is left of a text that is cut a second time, for one more call; else None."""
    history = [QUESTION, *result_of("a", text)]
    try:
        sent = trim_messages(history, limit, previous=[], counter="o200k_base")
        history += result_of("b", "Done.")
        left = trim_messages(history, limit, previous=sent, counter="o200k_base")
    except BudgetExhaustedError:
        return None
    once, twice = only_text(sent[2]), only_text(left[2])
    return None if once in (text, twice) else twice


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "result_of",
    [
        lambda key, text: [call(key), result(key, text)],
        lambda key, text: [use(key), {"role": "user", "content": [part(key, text)]}],
    ],
    ids=["openai", "anthropic"],
)
def test_what_was_cut_is_cut_from_the_whole_text(result_of, backend):
    """
    The one marker stands between the beginning and the end of the text.

    A family is one cluster of 11 tokens: the part with it is empty, and the marker at one end.
    """
    family = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}\u200d\N{BOY}"
    seen = 0
    with using(backend):
        for text in (family * 3 + " tea" * 30, "tea " * 30 + family * 3):
            for limit in range(40, 150):
                cut = cut_twice(result_of, text, limit)
                if cut is None:
                    continue
                head, marker, tail = cut.partition(MARKER)
                seen += 1
                assert MARKER == marker
                assert text.startswith(head)
                assert text.endswith(tail)
    assert seen > 10
