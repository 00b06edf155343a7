"""Layouts: dividing a window among the sections of a prompt, and the prompt that comes of it."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support import Recorder

from budgeteer import (
    Allocation,
    InvalidArgumentError,
    Layout,
    Packer,
    Section,
)
from budgeteer.window import count_messages, count_tools, model_limits, register_model

LIMITS = model_limits("gpt-4")
HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is green tea?"},
    {"role": "assistant", "content": "Tea whose leaves are not oxidised. " * 4},
    {"role": "user", "content": "And black tea?"},
]
WEATHER = {
    "name": "weather",
    "description": "Say how the weather is",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
NOW = {"type": "function", "function": {"name": "now", "description": "Say what time it is"}}


def tool(name, text):
    return {"name": name, "description": text}


def counted(layout, allocation):
    named = None if isinstance(layout.context_window, int) else layout.context_window
    options = {"counter": layout.counter, "model": layout.model or named}
    has_system = any(message["role"] == "system" for message in allocation.messages)
    return count_messages(allocation.messages, **options) + count_tools(
        allocation.tools, has_system_message=has_system, **options
    )


def whole_prompt(window=2_000, **options):
    chunks = [f"Green tea number {i} is steamed and then rolled." for i in range(500)]
    packer = Packer(window)
    return Layout(
        window,
        [
            Section("system", "Answer from the context.", shrink=0, priority=9),
            Section("tools", [WEATHER, NOW], priority=1),
            Section("history", HISTORY[1:], max_tokens=40, priority=2),
            Section(
                "context",
                fill=lambda n: packer.pack("green tea", chunks, max_tokens=n),
                grow=1,
            ),
            Section("query", "What is green tea?", role="user", shrink=0, priority=9),
            Section("answer", tokens=500, min_tokens=100, priority=5),
        ],
        gap=50,
        **options,
    )


def test_a_whole_prompt(backend):
    """System, tools, history, chunks, query and answer share the window in one call."""
    layout = whole_prompt()
    allocation = layout.fit()
    tokens = allocation.tokens

    assert isinstance(allocation, Allocation)
    assert 500 == tokens["answer"]
    assert 40 == tokens["history"]
    assert count_tools([WEATHER, NOW]) == tokens["tools"]
    assert 2_000 == sum(tokens.values()) + 50 + 3
    assert [WEATHER, NOW] == allocation.tools
    assert ["system", "user", "user", "user"] == [m["role"] for m in allocation.messages]
    assert allocation.messages[1] is HISTORY[3]
    assert ["history"] == allocation.cut_sections
    assert [] == allocation.dropped_sections
    # of the chunks' share less than one chunk is left, and the system message saves 4 of the tools
    assert allocation.total_tokens == counted(layout, allocation)
    assert 1_400 < allocation.total_tokens <= 2_000 - 50 - 500 - 4
    assert allocation.used_tokens["system"] == tokens["system"]
    assert allocation.is_exact


def test_sections_go_by_priority(backend):
    """A smaller window drops the lowest priority first, and the result says so."""
    small = whole_prompt(220).fit()
    assert [] == small.dropped_sections
    assert {"answer", "context"} == {name for name in small.tokens if small.tokens[name] < 104} - {
        "system", "query", "history", "tools"
    }  # fmt: skip

    smaller = whole_prompt(190).fit()
    assert ["context", "tools"] == smaller.dropped_sections
    assert 0 == smaller.tokens["context"] == smaller.tokens["tools"]
    assert [] == smaller.tools

    tiny = whole_prompt(60).fit()
    assert ["context", "tools", "history", "answer", "query", "system"] == tiny.dropped_sections
    assert ([], [], 0) == (tiny.messages, tiny.tools, tiny.total_tokens)


def test_reserved_tokens_need_no_messages():
    """Where nothing can be sent, no reply is primed: the figures are those of flexbox."""
    sections = [
        Section("a", tokens=100, grow=1),
        Section("b", tokens=100, grow=3),
        Section("c", basis=100),
    ]
    allocation = Layout(400, sections).fit()

    assert {"a": 125, "b": 175, "c": 100} == allocation.tokens
    assert (0, 0) == (allocation.free_tokens, allocation.total_tokens)
    assert {"a": 0, "b": 0, "c": 0} == allocation.used_tokens
    assert {"a": 97, "b": 97, "c": 96} == Layout(300, sections, gap=10).fit().tokens


@pytest.mark.parametrize(
    ("name", "role", "expected"),
    [
        ("system", None, "system"),
        ("developer", None, "developer"),
        ("assistant", None, "assistant"),
        ("context", None, "user"),
        ("System", None, "user"),
        ("context", "system", "system"),
        ("system", "user", "user"),
    ],
)
def test_roles(name, role, expected):
    """A text has the role that is given, or that its section is called, else user."""
    for section in (
        Section(name, "tea", role=role),
        Section(name, fill=lambda _: "tea", basis=9, role=role),
    ):
        [message] = Layout(99, [section]).fit().messages
        assert {"role": expected, "content": "tea"} == message


def test_messages_are_the_callers_own():
    """Messages are passed on as they are, in order; a system message in them stays."""
    allocation = Layout(1_000, [Section("history", HISTORY)]).fit()

    assert all(a is b for a, b in zip(allocation.messages, HISTORY, strict=True))
    assert count_messages(HISTORY) == allocation.tokens["history"] + 3 == allocation.total_tokens

    allocation = Layout(30, [Section("history", HISTORY)]).fit()
    assert [HISTORY[0], HISTORY[3]] == allocation.messages
    assert ["history"] == allocation.cut_sections


def test_system_messages_are_a_minimum():
    """A history does not shrink below its system messages: it is dropped, and that is said."""
    least = count_messages(HISTORY[:1])

    assert [HISTORY[0]] == Layout(least, [Section("history", HISTORY)]).fit().messages
    dropped = Layout(least - 1, [Section("history", HISTORY)]).fit()
    assert (["history"], []) == (dropped.dropped_sections, dropped.messages)
    bounded = Layout(99, [Section("history", HISTORY, max_tokens=least - 4)]).fit()
    assert (["history"], []) == (bounded.cut_sections, bounded.messages)


def test_calls_and_results_stay_together():
    """A history is trimmed as trim_messages does."""
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]},
        {"role": "tool", "tool_call_id": "a", "content": "12"},
    ]
    tokens = count_messages([*pair, HISTORY[3]])
    section = Section("history", [HISTORY[1], *pair, HISTORY[3]])

    assert [*pair, HISTORY[3]] == Layout(tokens, [section]).fit().messages
    assert [HISTORY[3]] == Layout(tokens - 1, [section]).fit().messages
    assert [HISTORY[3]] == Layout(99, [Section("history", [pair[1], HISTORY[3]])]).fit().messages


def test_tools_are_in_or_out():
    """Tools do not shrink: they are in as a whole, or dropped."""
    tokens = count_tools([WEATHER, NOW])
    section = Section("tools", [WEATHER, NOW])

    allocation = Layout(tokens, [section]).fit()
    assert ([WEATHER, NOW], tokens) == (allocation.tools, allocation.total_tokens)
    allocation = Layout(tokens - 1, [section]).fit()
    assert ([], ["tools"], []) == (
        allocation.tools,
        allocation.dropped_sections,
        allocation.cut_sections,
    )


@pytest.mark.parametrize("limit", ["max_tokens", "basis"])
def test_the_first_tools(limit):
    """Told to take less than they count, the first tools stay that fit."""
    many = [tool(f"tool_{i}", "Do this or that. " * (i + 1)) for i in range(9)]
    for kept in range(9):
        size = count_tools(many[:kept]) if kept else 0
        allocation = Layout(5_000, [Section("tools", many, **{limit: size + 3})]).fit()
        assert many[:kept] == allocation.tools
        assert ["tools"] == allocation.cut_sections
        assert size == allocation.total_tokens == allocation.used_tokens["tools"]


def test_many_sections_of_tools():
    """Tools of several sections are sent, and counted, together; the least wanted go first."""
    sections = [Section("core", [WEATHER], priority=1), Section("more", [NOW])]
    both = count_tools([WEATHER]) + count_tools([NOW])

    allocation = Layout(both, sections).fit()
    assert [WEATHER, NOW] == allocation.tools
    assert count_tools([WEATHER, NOW]) == allocation.total_tokens <= both
    assert ["more"] == Layout(both - 1, sections).fit().dropped_sections


def test_tools_that_count_more_together():
    """A counter that counts tools higher together than apart costs the least wanted section."""

    def counter(text):
        return 10 + 100 * (text.count("type ") > 1)

    sections = [Section("core", [WEATHER], priority=1), Section("more", [NOW], grow=1)]
    allocation = Layout(60, sections, counter=counter).fit()

    assert [WEATHER] == allocation.tools
    assert ["more"] == allocation.dropped_sections
    assert {"core": 19, "more": 0} == allocation.tokens
    assert (41, 19) == (allocation.free_tokens, allocation.total_tokens)


def test_each_text_is_counted_once():
    """What is sent whole is handed to the counter once, and nothing else is."""
    recorder = Recorder(lambda text: len(text.split()), [])
    sections = [
        Section("system", "one two"),
        Section("history", HISTORY[1:]),
        Section("tools", [WEATHER]),
        Section("context", fill=lambda _: "three four", grow=1),
        Section("query", "five six"),
    ]
    allocation = Layout(500, sections, counter=recorder).fit()

    texts = [message["content"] for message in allocation.messages]
    others = [text for text in recorder.asked if text not in texts]
    assert sorted([*texts, *others]) == sorted(recorder.asked)
    assert {"system", "user", "assistant"} == {text for text in others if "namespace" not in text}
    assert 4 == len(others)


def test_a_model_for_a_window():
    """A model gives its window and counter, and bounds the prompt by its input limit."""
    layout = Layout("gpt-4", [Section("system", "日本のお茶", grow=1)])
    assert model_limits("gpt-4").context_window == layout.fit().tokens["system"] + 3
    assert count_messages(layout.fit().messages, model="gpt-4") == layout.fit().total_tokens

    limits = register_model("thin-3", context_window=1_000, max_input_tokens=300)
    sections = [
        Section("answer", tokens=100, grow=1),
        Section("system", "tea " * 500),
        Section("query", "tea " * 50, shrink=0, priority=1),
        Section("more", "tea", min_tokens=300, priority=-1),
    ]
    allocation = Layout(limits, sections, gap=7, counter="words").fit()
    assert {"answer": 132, "system": 236, "query": 54, "more": 0} == allocation.tokens
    assert (293, ["more"]) == (allocation.total_tokens, allocation.dropped_sections)
    assert 568 == allocation.free_tokens
    assert 300 < Layout(1_000, sections, gap=7, counter="words").fit().total_tokens


def test_what_is_dropped_for_the_window_stays_dropped():
    """The model's limit of input brings no section back."""
    limits = replace(LIMITS, context_window=103, max_input_tokens=88)
    sections = [
        Section("low", "tea", min_tokens=50, priority=0),
        Section("answer", tokens=80, shrink=0, priority=1),
        Section("high", "tea " * 200, basis=90, min_tokens=30, priority=2),
    ]
    allocation = Layout(limits, sections, counter="words").fit()

    assert {"low": 0, "answer": 0, "high": 85} == allocation.tokens
    assert ["low", "answer"] == allocation.dropped_sections


def test_an_own_counter_and_model():
    """A counter goes before the model's; a model's costs apply to an int as well."""
    section = [Section("system", "a b")]

    assert 5 + 4 == Layout(99, section, counter="words", model="gpt-4").fit().total_tokens
    assert (
        5 + 5
        == Layout(99, section, counter="words", model="gpt-3.5-turbo-0301").fit().total_tokens
    )
    assert not Layout(99, section, counter="words").fit().is_exact
    assert not Layout("llama3.2:3b", section).fit().is_exact


def test_nothing():
    """No sections, no content and no window are no errors."""
    assert 7 == Layout(7, []).fit().free_tokens
    empty = Layout(7, [Section("system", ""), Section("history", []), Section("x")]).fit()
    assert ([], 0, {"system": 0, "history": 0, "x": 0}) == (
        empty.messages,
        empty.total_tokens,
        empty.tokens,
    )
    over = Layout(7, [Section("a", tokens=5, shrink=0)], gap=9).fit()
    assert ({"a": 0}, 0, ["a"]) == (over.tokens, over.free_tokens, over.dropped_sections)


def test_a_layout_does_not_change():
    """A layout keeps the sections and messages that it was made of; results are apart."""
    history, sections = list(HISTORY), []
    sections.append(Section("history", history))
    layout = Layout(500, sections)
    first = layout.fit()
    history.clear()
    sections.clear()
    first.messages.clear()
    first.tokens.clear()

    assert HISTORY == layout.fit().messages
    with pytest.raises(AttributeError):
        layout.gap = 3
    with pytest.raises(AttributeError):
        layout.sections[0].grow = 3


def test_pickle_and_threads():
    """Layouts can be pickled, and fitted by many threads."""
    layout = Layout(300, [Section("history", HISTORY, grow=1), Section("answer", tokens=100)])
    expected = layout.fit()

    assert expected == pickle.loads(pickle.dumps(layout)).fit()
    assert expected == pickle.loads(pickle.dumps(expected))
    with ThreadPoolExecutor(4) as pool:
        assert [expected] * 40 == list(pool.map(lambda _: layout.fit(), range(40)))
    json.dumps(expected.messages)


def test_no_text_in_reprs():
    """No repr shows what a prompt says."""
    layout = Layout(99, [Section("system", "hunter2"), Section("tools", [tool("f", "hunter2")])])

    allocation = layout.fit()

    for shown in (layout, layout.sections, allocation, allocation.to_dict()):
        assert "hunter2" not in repr(shown)


def test_to_dict():
    """The figures are plain data, apart from the allocation's own."""
    allocation = Layout(20, [Section("a", "tea " * 50), Section("b", min_tokens=99)]).fit()
    data = allocation.to_dict()

    assert data == json.loads(json.dumps(data))
    assert {*data} == {*Allocation.__dataclass_fields__} - {"messages", "tools"}
    assert all(data[name] == getattr(allocation, name) for name in data)
    assert (["b"], ["a"]) == (data["dropped_sections"], data["cut_sections"])


TOKENS = ("tokens", "basis", "min_tokens", "max_tokens")


@pytest.mark.parametrize("option", TOKENS)
@pytest.mark.parametrize("bad", ["3", True, 1.0, [3]], ids=repr)
def test_no_number_of_tokens(option, bad):
    """A number of tokens is an int."""
    with pytest.raises(InvalidArgumentError, match=rf"^{option} must be an int, not "):
        Section("a", **{option: bad})


@pytest.mark.parametrize("option", TOKENS)
@pytest.mark.parametrize("bad", [-1, 2**63, -(10**40)])
def test_tokens_out_of_range(option, bad):
    """A number of tokens is from 0 to 2**63 - 1."""
    with pytest.raises(InvalidArgumentError, match=rf"^{option} must be from 0 to"):
        Section("a", **{option: bad})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name must be a str, not int"),
        ({"name": ""}, "name must not be empty"),
        ({"content": 3}, "content must be a str, messages or tools, not int"),
        ({"content": b"tea"}, "content must be a str, messages or tools, not bytes"),
        ({"content": {"role": "user"}}, "content must be a str, messages or tools, not dict"),
        ({"content": ["tea"]}, "content[0] must be a mapping, not str"),
        ({"content": [WEATHER, 3]}, "content[1] must be a mapping, not int"),
        ({"fill": "tea"}, "fill must be a callable that takes max_tokens, not str"),
        ({"content": "tea", "tokens": 3}, "not both content and tokens"),
        ({"content": "tea", "fill": len}, "not both content and fill"),
        ({"tokens": 3, "fill": len}, "not both tokens and fill"),
        ({"min_tokens": 3, "max_tokens": 2}, "min_tokens must be at most the max_tokens 2, not 3"),
        ({"grow": "1"}, "grow must be a float, not str"),
        ({"grow": True}, "grow must be a float, not bool"),
        ({"grow": float("nan")}, "grow must be a number, not NaN"),
        ({"grow": -1}, "grow must be 0 or from 0.000001 to 10000, not -1.0"),
        ({"grow": 10_000.5}, "grow must be 0 or from 0.000001 to 10000, not 10000.5"),
        ({"shrink": 9e-7}, "shrink must be 0 or from 0.000001 to 10000, not 9e-07"),
        ({"shrink": float("inf")}, "shrink must be 0 or from 0.000001 to 10000, not inf"),
        ({"shrink": None}, "shrink must be a float, not None"),
        ({"priority": 1.0}, "priority must be an int, not float"),
        ({"priority": 2**63}, "priority must be from -9223372036854775808 to"),
        ({"content": "tea", "role": "usr"}, "did you mean 'user'?"),
        ({"content": "tea", "role": 3}, "role must be one of"),
        ({"tokens": 3, "role": "user"}, "role is for a text, for chunks, or for a fill"),
        ({"content": HISTORY, "role": "user"}, "role is for a text, for chunks, or for a fill"),
    ],
    ids=str,
)
def test_bad_sections(arguments, message):
    """Each wrong argument is named, with what was found and what is allowed."""
    with pytest.raises(InvalidArgumentError) as caught:
        Section(**{"name": "a", **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"context_window": -1}, "context_window must be from 0 to"),
        ({"context_window": 1.5}, "context_window must be an int, the name of a model or its"),
        ({"context_window": None}, "or its limits, not None"),
        ({"context_window": True}, "or its limits, not bool"),
        ({"sections": Section("a")}, "sections must be a sequence, not Section"),
        ({"sections": {"a": 3}}, "sections must be a sequence, not dict"),
        ({"sections": ["a"]}, "sections[0] must be a Section, not str"),
        ({"sections": [Section("a"), Section("a")]},
         "sections[1] has the name 'a' of another section"),
        ({"gap": -1}, "gap must be from 0 to"),
        ({"gap": 1.0}, "gap must be an int, not float"),
        ({"counter": "wrods"}, "did you mean 'words'"),
        ({"model": 3}, "model must be a str, not int"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_layouts(arguments, message):
    """Each wrong argument is named, with what was found and what is allowed."""
    with pytest.raises(InvalidArgumentError) as caught:
        Layout(**{"context_window": 99, "sections": [], **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"role": "user"}, {}], "section 'a': content[1]['role'] must be a str, not None"),
        ([{"role": "user", "content": 3}], "section 'a': content[0]['content'] must be a str, "),
        ([{}], "section 'a': content[0]['name'] must be a str, not None"),
        ([{"name": "f", "parameters": 3}],
         "section 'a': content[0]['parameters'] must be a mapping, not int"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_contents(content, message):
    """A wrong message or tool is named by its section and place."""
    with pytest.raises(InvalidArgumentError) as caught:
        Layout(99, [Section("a", content)]).fit()
    assert message in str(caught.value)


class Dumped:
    """A message like those of the APIs' packages."""

    def __init__(self, **fields):
        """Keep the fields."""
        self.fields = fields

    def model_dump(self):
        """Return the fields."""
        return self.fields


def test_messages_of_other_types():
    """Objects with ``model_dump()`` are messages and tools, and come back as they are."""
    said = Dumped(role="user", content="tea")
    tool = Dumped(name="brew", description="", parameters={"type": "object", "properties": {}})
    allocation = Layout(500, [Section("history", [said]), Section("tools", [tool])]).fit()
    assert said is allocation.messages[0]
    assert tool is allocation.tools[0]
    assert allocation.is_exact
    assert allocation.total_tokens == count_messages([said]) + count_tools([tool])


def test_estimated_parts_are_not_exact():
    """An allocation is exact only where no part of its messages was estimated."""
    audio = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "aa"}}]}
    for section in (
        Section("history", [audio]),
        Section("history", fill=lambda _: [audio], grow=1),
    ):
        assert not Layout(50_000, [section]).fit().is_exact


@pytest.mark.parametrize(
    "first",
    [
        {"parts": [{"text": "What is tea?"}]},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "reasoning", "summary": []},
        SimpleNamespace(
            type="human", name="bob", content="What is tea?", additional_kwargs={},
            response_metadata={}, model_dump=dict,
        ),
    ],
    ids=["gemini", "call", "reasoning", "langchain"],
)  # fmt: skip
def test_messages_of_any_shape_are_no_tools(first):
    """What has a role only in its view is a message, too."""
    messages = [first, {"role": "user", "content": "Green tea?"}]
    allocation = Layout(500, [Section("history", messages)]).fit()

    assert ([], messages) == (allocation.tools, allocation.messages)
    assert count_messages(messages) == allocation.total_tokens


def test_a_result_without_its_call_is_said_to_be_cut():
    """It is left out, however much room there is."""
    lost = {"role": "tool", "tool_call_id": "a", "content": "12"}
    history = [lost, {"role": "user", "content": "Green tea?"}]
    allocation = Layout(500, [Section("history", history)]).fit()

    assert (history[1:], ["history"]) == (allocation.messages, allocation.cut_sections)
