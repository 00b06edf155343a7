"""Messages that few clients send: each counts, is trimmed, or is refused by its place."""

from types import SimpleNamespace

import numpy as np
import pytest

from budgeteer import InvalidArgumentError, fit_request, trim_messages
from budgeteer.window import count_messages, count_tools

QUESTION = {"role": "user", "content": "Go."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ],
}


def count(*messages):
    return count_messages(messages, counter="words")


def use(given):
    part = {"type": "tool_use", "id": "a", "name": "read", "input": given}
    return {"role": "assistant", "content": [part]}


def result(content):
    return {"role": "tool", "tool_call_id": "a", "content": content}


def test_null_counts_nothing():
    """An argument that is null counts as an empty text does."""
    assert count(use({"path": None})) == count(use({"path": ""}))


def test_a_type_of_another_framework():
    """A chat message with a type of its own is a chat message, and its type is counted."""
    message = {"role": "user", "content": "green tea"}
    assert count(message) + 1 == count({**message, "type": "human"})


def test_arguments_that_are_not_json():
    """Arguments of a framework's call that JSON cannot hold are refused."""
    args = {}
    args["path"] = args
    message = SimpleNamespace(
        type="ai", content="", response_metadata={}, additional_kwargs={},
        tool_calls=[{"id": "a", "name": "read", "args": args}],
    )  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="of JSON's types, and not nested too deeply"):
        count(message)


def test_base64_that_is_none():
    """A document whose base64 is damaged counts as one that nobody can read."""

    def document(data):
        source = {"type": "base64", "media_type": "application/pdf", "data": data}
        return {"role": "user", "content": [{"type": "document", "source": source}]}

    assert count(document("aGk=")) == count(document("aaaaa")) == count(document("é"))


@pytest.mark.parametrize("content", [None, ["green", "tea"]])
def test_a_result_of_plain_texts(content):
    """A result without a text, or with texts that are no parts, is kept as it is."""
    messages = [QUESTION, CALL, result(content)]
    assert messages == trim_messages(messages, 60, counter="words")
    request = {"messages": messages}
    assert fit_request(request, context_window=60, counter="words").request is request


def test_a_result_of_anthropics_in_an_output():
    """It is left out where its call is missing, and the output that it is in stays."""
    call = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
    lost = {"type": "tool_result", "tool_use_id": "lost", "content": "tea"}
    said = {"type": "input_text", "text": "rye"}
    output = {"type": "function_call_output", "call_id": "a", "output": [lost, said]}
    left = trim_messages([QUESTION, call, output], 60, counter="words")
    assert [QUESTION, call, {**output, "output": [said]}] == left


def test_a_text_of_a_list_is_cut():
    """A text that is an item of a result's list is cut in its place."""
    messages = [QUESTION, CALL, result(["tea " * 300, "end"])]
    trimmed = trim_messages(messages, 60, counter="words")
    fitted = fit_request({"messages": messages}, context_window=60, counter="words")
    for left in (trimmed, fitted.request["messages"]):
        (cut, end) = left[2]["content"]
        assert "end" == end
        assert cut.startswith("tea tea")
        assert count(*left) <= 60


def test_texts_beside_a_result_are_no_results():
    """A text in a list of the user's is kept as it is, beside a result that is cut."""
    given = {"type": "tool_result", "tool_use_id": "a", "content": "tea " * 300}
    answer = {"role": "user", "content": ["green " * 20, given]}
    messages = [QUESTION, use({}), answer]
    fitted = fit_request({"messages": messages}, context_window=80, counter="words")
    text, left = fitted.request["messages"][2]["content"]
    assert answer["content"][0] is text
    assert "characters left out" in left["content"]


def test_a_text_after_an_item():
    """A model's plain text after an item of Responses is never kept without it."""
    thought = {"type": "reasoning", "id": "r", "summary": []}
    said = {"role": "assistant", "content": "Yes."}
    messages = [QUESTION, thought, said, {"role": "user", "content": "And?"}]
    left = [trim_messages(messages, limit, counter="words") for limit in range(8, 32)]
    assert {1, 3, 4} == {len(items) for items in left}
    assert all((thought in items) == (said in items) for items in left)


class Odd:
    """An object with fields whose comparison has no truth value, as that of numpy's arrays."""

    def model_dump(self, **_):
        return {"b": "rye rye"}

    def __eq__(self, other):
        raise ValueError("the truth value is ambiguous")

    __hash__ = None


class Same(dict):
    """Equal to a dict, and of another type."""


@pytest.mark.parametrize(
    ("before", "after"), [({"a": "tea"}, {"a": Odd()}), ({"a": 1, "b": "tea"}, Same(a=1, b="tea"))]
)
def test_a_field_that_becomes_an_object(before, after):
    """What was remembered of a message whose fields cannot be compared is counted anew."""
    messages = [QUESTION, use(before), *({"role": "user", "content": "tea " * 9},) * 6]
    trimmed = trim_messages(messages, 200, counter="words")
    request = {"messages": messages}
    fitted = fit_request(request, context_window=200, counter="words")
    # From the second call of a conversation on, messages are remembered.
    fitted = fit_request(request, context_window=200, counter="words", previous=fitted)
    messages[1]["content"][0]["input"] = after
    options = {"counter": "words", "previous": trimmed}
    assert count(*messages) == trim_messages(messages, 200, **options).total_tokens
    options["previous"] = fitted
    again = fit_request(request, context_window=200, **options)
    assert count(*messages) == again.total_tokens


def test_more_results_are_shortened_later():
    """A result that is cut in a later turn is remembered beside those cut before."""
    messages, sent = [QUESTION], None
    for i in range(4):
        call = {**CALL, "tool_calls": [{**CALL["tool_calls"][0], "id": f"{i}"}]}
        messages += [call, {"role": "tool", "tool_call_id": f"{i}", "content": "tea " * 90}]
        sent = trim_messages(messages, 150 + 40 * i, counter="words", previous=sent)
        assert count(*sent) == sent.total_tokens <= 150 + 40 * i


ARRAY = np.arange(2)


@pytest.mark.parametrize(
    ("tool", "named"),
    [
        ({"description": ARRAY}, r"tools\[0\]\['description'\] must be a str, not ndarray"),
        (
            {"parameters": {"properties": ARRAY}},
            r"\['properties'\] must be a mapping, not ndarray",
        ),
        (
            {"parameters": {"properties": {"a": {"type": "array", "items": ARRAY}}}},
            r"\['a'\] must be of JSON's types",
        ),
        ({"parameters": {"$defs": ARRAY}}, r"\['parameters'\] must be of JSON's types"),
    ],
)
def test_arrays_in_a_tool(tool, named):
    """An array has no truth value; the error says where it is."""
    with pytest.raises(InvalidArgumentError, match=named):
        count_tools([{"name": "brew", **tool}], counter="words")


def test_an_array_for_the_width_of_an_image():
    """Likewise, where a number must be."""
    image = {"type": "image", "source": {"type": "url", "url": "http://a/b.png"}, "width": ARRAY}
    with pytest.raises(InvalidArgumentError, match=r"\['width'\] must be .*, not ndarray"):
        count({"role": "user", "content": [image]})
