"""What trimming remembers of a list that it returned counts only while nothing has changed."""

from unittest import mock

from support import Recorder

from budgeteer import get_counter, trim_messages
from budgeteer._messages import memory
from budgeteer.window import count_messages


def said(role, text):
    return {"role": role, "content": text}


def count_order(text):
    """Count the characters before the last colon: another count for fields in another order."""
    return len(text.rpartition(":")[0] or text)


def test_a_number_of_another_type_is_counted_anew():
    """1, 1.0 and True are equal, and other texts in a prompt."""
    given = {"a": 1}
    use = {"type": "tool_use", "id": "x", "name": "read", "input": given}
    history = [said("user", "a"), {"role": "assistant", "content": [use]}]
    sent = trim_messages(history, 500, previous=[], counter=len)
    for value in (True, 1.0, 1, [1], [True], None, float("nan")):
        given["a"] = value
        sent = trim_messages(history, 500, previous=sent, counter=len)
        assert count_messages(sent, counter=len) == sent.total_tokens


def test_fields_in_another_order_are_counted_anew():
    """Equal arguments of a call are another text where their order is another, as from a store."""
    given = {"path": "tea.txt", "mode": "r"}
    use = {"type": "tool_use", "id": "x", "name": "read", "input": given}
    item = {"type": "web_search_call", "id": "x", "status": "completed", "query": "tea"}
    other_use = {**use, "input": dict(reversed(given.items()))}
    for message, other in (
        ({"role": "assistant", "content": [use]}, {"role": "assistant", "content": [other_use]}),
        (item, dict(reversed(item.items()))),
    ):
        history = [said("user", "a"), message]
        sent = trim_messages(history, 500, previous=[], counter=count_order)
        history[1] = other
        again = trim_messages(history, 500, previous=sent, counter=count_order)
        assert again.total_tokens == count_messages(again, counter=count_order)
        assert again.total_tokens != sent.total_tokens


def test_what_cannot_be_compared_is_counted_anew():
    """A message that may hide a change is counted each time, and its neighbours are not."""

    class Odd(dict):
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

    recorder = Recorder(len, [])
    counter = get_counter(recorder)
    history = [said("user", "one"), Odd(said("assistant", "two")), said("user", "three")]
    sent = trim_messages(history, 500, previous=[], counter=counter)
    recorder.asked.clear()
    sent = trim_messages(history, 500, previous=sent, counter=counter)
    assert ["two"] == [text for text in recorder.asked if text in ("one", "two", "three")]
    history[1]["content"] = "two or more"
    left = trim_messages(history, 500, previous=sent, counter=counter)
    assert count_messages(left, counter=len) == left.total_tokens > sent.total_tokens


def test_what_was_returned_may_be_changed():
    """A list that was changed by its owner, or whose cut message was, is not trusted."""
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    history = [
        said("user", "Go."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "tea " * 300},
    ]
    for change in (
        lambda sent: sent[2].update(content="coffee " * 90),
        lambda sent: sent.append(said("assistant", "Done. " * 50)),
        lambda sent: sent.pop(),
        lambda sent: sent.__setitem__(0, said("user", "Stop. " * 20)),
    ):
        sent = trim_messages(history, 100, previous=[], counter="words")
        assert sent.shortened == (2,)
        change(sent)
        left = trim_messages(history, 100, previous=sent, counter="words")
        assert count_messages(left, counter="words") == left.total_tokens <= 100
        assert [message["role"] for message in left] == ["user", "assistant", "tool"]
        assert "coffee" not in left[2]["content"]
        assert left[0] is history[0]


def test_what_was_shortened_before_is_not_read_again():
    """A turn reads the messages that are new; those masked in an earlier one are known."""
    history, sent, read = [], [], []
    for i in range(40):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        history.append(said("user", f"What is in file {i}?"))
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"c{i}", "content": "green tea " * 20})
        history.append(said("assistant", "Tea."))
        with mock.patch.object(memory, "_copied", wraps=memory._copied) as copied:
            sent = trim_messages(
                history, 2_600, previous=sent, counter=len, keep_results=1, step=0.05
            )
        seen = {id(call.args[0]) for call in copied.call_args_list}
        read.append(sum(id(message) in seen for message in [*history, *sent]))
        assert sent.total_tokens == count_messages(sent, counter=len)

    assert len(sent.shortened) > 15
    assert max(read[-10:]) <= 12


def test_what_is_odd_is_counted_anew():
    """A change of keys of other types, or of what is nested deeply, is not looked for."""
    deep = []
    for _ in range(memory._DEEPEST + 5):
        deep = [deep]
    for odd in ({1: "a"}, deep):
        use = {"type": "tool_use", "id": "x", "name": "read", "input": {"a": odd}}
        history = [said("user", "a"), {"role": "assistant", "content": [use]}]
        sent = trim_messages(history, 5_000, previous=[], counter=len)
        again = trim_messages(history, 5_000, previous=sent, counter=len)

        assert count_messages(again, counter=len) == again.total_tokens == sent.total_tokens
        assert memory.Contents(history).same(history) == [True, False]
