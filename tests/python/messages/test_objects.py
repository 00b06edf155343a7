"""Objects of the APIs' packages, what is like a mapping, and parts of unknown types."""

import datetime as dt
import pickle

import pytest

from budgeteer import BudgetExhaustedError, InvalidArgumentError, trim_messages
from budgeteer._messages.turn import MARKER
from budgeteer.window import MessageCount, count_messages, count_tools, negotiate

CALLS = [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
QUESTION = {"role": "user", "content": "What does the log say?"}
LOG = "Started. " * 500 + "Failed."


def exact_words(text):
    """Count words as a tokenizer would."""
    return len(text.split())


exact_words.is_exact = True


class Keyed:
    """Like a mapping, but of no such class."""

    def __init__(self, **fields):
        self.fields = fields

    def keys(self):
        return self.fields.keys()

    def __getitem__(self, key):
        return self.fields[key]


class Dumped:
    """Like a model of pydantic, but of no such class."""

    def __init__(self, **fields):
        self.__dict__ = fields

    def model_dump(self):
        return {
            key: [part.model_dump() for part in value]
            if isinstance(value, list) and hasattr(value[0], "model_dump")
            else value
            for key, value in self.__dict__.items()
        }


class OnlyDumped:
    """Fields that are only in what it dumps, as those that a serializer names or computes."""

    def __init__(self, **fields):
        self._fields = fields

    def model_dump(self):
        return dict(self._fields)


class Aliased(OnlyDumped):
    """The same with attributes that are not what is dumped, and a copy that does not change it."""

    content, text, type, role = "short", "short", "none", "none"

    def model_copy(self, *, update):
        return type(self)(**self._fields)


class Copied(Dumped):
    """The same, with pydantic's way to copy it."""

    def model_copy(self, *, update):
        return type(self)(**{**self.__dict__, **update})


def models():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")

    return Model


def kinds():
    return {"keyed": lambda: Keyed, "dumped": lambda: Dumped, "only dumped": lambda: OnlyDumped,
            "aliased": lambda: Aliased, "copied": lambda: Copied, "pydantic": models}  # fmt: skip


@pytest.fixture(params=kinds())
def kind(request):
    """A class of objects that are messages and parts."""
    return kinds()[request.param]()


def test_they_count_as_their_fields(kind):
    """An object counts as the mapping of its fields, as a message, a part, or further inside."""
    call = {"role": "assistant", "content": None, "tool_calls": CALLS, "name": None}
    text, use = {"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "a"}
    image = {"type": "image_url", "image_url": {"url": "a", "width": 1, "height": 1}}
    for plain, objects in [
        (QUESTION, kind(**QUESTION)),
        (call, kind(**call)),
        (call, {**call, "tool_calls": [kind(**CALLS[0])]}),
        (
            {"role": "user", "content": [text, image, {**use, "input": {"b": [{}]}}]},
            {
                "role": "user",
                "content": [
                    kind(**text),
                    kind(**{**image, "image_url": kind(**image["image_url"])}),
                    kind(**use, input={"b": [kind()]}),
                ],
            },
        ),
    ]:
        if kind is Keyed or "tool_calls" not in plain:
            assert count_messages([plain]) == count_messages([objects])
        assert count_messages([plain], counter="words") == count_messages(
            [objects], counter="words"
        )


def test_they_are_trimmed(kind):
    """A result has the caller's objects, and keeps calls with their results."""
    call = kind(role="assistant", content=None, tool_calls=CALLS)
    answer = kind(role="tool", tool_call_id="a", content="12 degrees")
    messages = [kind(**QUESTION), call, answer, kind(role="user", content="And now?")]
    whole = count_messages(messages)

    for limit, kept in ((whole, messages), (whole - 1, messages[1:]), (20, messages[3:])):
        left = trim_messages(messages, limit)
        assert all(a is b for a, b in zip(left, kept, strict=True))
    orphan = kind(role="user", content=[kind(type="tool_result", tool_use_id="b", content="x")])
    assert messages[3:] == trim_messages([orphan, messages[3]], 100)
    assert [messages[3]] == trim_messages([answer, messages[3]], 100, start_on="user")


def inner(item):
    """Return the content or the text of a message or part, of a list that of its first part."""
    if isinstance(item, OnlyDumped):
        item = item.model_dump()
    is_keyed = isinstance(item, (dict, Keyed))
    found = [
        item[name] if is_keyed else getattr(item, name, None)
        for name in ("content", "text")
        if not is_keyed or name in item.keys()  # noqa: SIM118
    ]
    value = next(value for value in found if value is not None)
    return value[0] if isinstance(value, list) else value


def test_their_results_are_cut(kind):
    """What is cut is a copy in the same type; what cannot be copied becomes a dict."""
    call = kind(role="assistant", content=None, tool_calls=CALLS)
    text = kind(type="text", text=LOG)
    use = {"role": "assistant", "content": [kind(type="tool_use", id="a", input={})]}
    part = kind(type="tool_result", tool_use_id="a", content=[text])
    for messages in (
        [QUESTION, call, kind(role="tool", tool_call_id="a", content=LOG)],
        [QUESTION, call, kind(role="tool", tool_call_id="a", content=[text])],
        [QUESTION, use, {"role": "user", "content": [part]}],
    ):
        left = trim_messages(messages, 200)
        assert 195 <= count_messages(left) <= 200
        assert all(a is b for a, b in zip(left[:2], messages, strict=False))
        new, old = left[2], messages[2]
        while not isinstance(new, str):
            is_kept = type(old) is dict or (hasattr(old, "model_copy") and kind is not Aliased)
            assert type(new) is (type(old) if is_kept else dict)
            new, old = inner(new), inner(old)
        assert MARKER in new
        assert LOG == old


def test_they_are_negotiated(kind):
    """The window is divided with objects as with mappings."""
    system, asked = {"role": "system", "content": "Be brief."}, QUESTION
    options = {"model": "gpt-4o", "max_output_tokens": 100, "counter": "o200k_base"}
    found = negotiate(messages=[kind(**system), kind(**asked)], **options)

    assert found == negotiate(messages=[system, asked], **options)
    assert found.is_exact
    tool = {"name": "now", "description": "Say what time it is"}
    assert count_tools([tool]) == count_tools([kind(**tool)])


@pytest.mark.parametrize(
    "value", [QUESTION.items, dict, Dumped, object(), 3, b"x", Keyed, ["role"], {"role"}]
)
def test_what_is_no_message(value):
    """A class, and what has no fields, is refused."""
    with pytest.raises(InvalidArgumentError, match=r"messages\[0\] must be a mapping, not "):
        count_messages([value])
    with pytest.raises(InvalidArgumentError, match=r"messages\[0\] must be a mapping, not "):
        trim_messages([value], 9)


def test_an_object_without_fields():
    """The error says what an object must have."""
    with pytest.raises(InvalidArgumentError) as caught:
        count_messages([object()])
    assert str(caught.value) == (
        "messages[0] must be a mapping, not object; an object must have model_dump()"
    )


def test_what_json_does_not_have():
    """A value that JSON does not have is an error that names its place."""
    when = dt.datetime.now(tz=dt.timezone.utc)
    message = Dumped(role="user", content="x", when=when)

    with pytest.raises(InvalidArgumentError, match=r"messages\[0\]\['when'\] must be of JSON's"):
        count_messages([message])


@pytest.mark.parametrize(
    ("kind", "data", "tokens"),
    [
        ("input_audio", "e" * 7, 5_000),
        ("input_audio", "é" * 1_600_000, 100_003),
        ("video", "e e " * 7, 5_000),
        ("input_file", "e " * 7, 5_000),
        ("document", "e " * 7_000, 7_005),
        ("server_tool_use", "e " * 7, 12),
    ],
)
def test_unknown_parts_are_estimates(kind, data, tokens):
    """A part of an unknown type is an estimate that errs high and says so, not an error."""
    part = {"type": kind, "the data": data}
    message = {"role": "user", "content": [part]}
    count = count_messages([message], counter="words")

    assert tokens == count - 7
    assert not count.is_exact
    assert count_messages([{"role": "user", "content": [Keyed(**part)]}], counter="words") == count
    assert [message] == trim_messages([message], count, counter="words")
    with pytest.raises(BudgetExhaustedError):
        trim_messages([message], count - 1, counter="words")


@pytest.mark.parametrize(
    ("part", "tokens", "is_exact"),
    [
        ({"text": "a b c"}, 3, True),
        ({"type": None, "text": "a b c"}, 3, True),
        ({"text": 7}, 2, False),
        ({}, 1, False),
        ({"toolResult": {"content": [{"text": "a b"}]}}, 5, False),
        ({"document": {"name": "a"}}, 5_000, False),
        ({"image": {"a": "b"}}, 3, False),
        ({"tool_use": "a"}, 2, False),
        ({"inline_data": {"data": "a b"}}, 4, False),
    ],
)
def test_parts_without_a_type(part, tokens, is_exact):
    """A part without a type is a text if it has one, else an estimate by its keys."""
    message = {"role": "user", "content": [part]}
    count = count_messages([message], counter=exact_words)

    assert (tokens, is_exact) == (count - 7, count.is_exact)
    assert [message] == trim_messages([message], count, counter=exact_words)


def test_a_result_without_types_is_cut():
    """A text part without a type in a tool result is cut as one with a type."""
    call = {"role": "assistant", "content": None, "tool_calls": CALLS}
    messages = [QUESTION, call, {"role": "tool", "tool_call_id": "a", "content": [{"text": LOG}]}]
    left = trim_messages(messages, 200)

    assert 195 <= count_messages(left) <= 200
    assert MARKER in left[2]["content"][0]["text"]


def test_a_document_of_plain_text():
    """A document that has its text in itself counts as its texts, an estimate all the same."""
    source = {"type": "text", "media_type": "text/plain", "data": "tea " * 50}
    part = {"type": "document", "source": source, "title": "On tea"}
    count = count_messages([{"role": "user", "content": [part]}], counter="words")

    assert (7 + 50 + 2 + 3, False) == (count, count.is_exact)
    for other in ({**source, "type": "base64"}, {**source, "data": None}, None):
        part["source"] = other
        assert count_messages([{"role": "user", "content": [part]}], counter="words") == 5_007


def test_what_is_exact():
    """A count is exact if its counter is, and nothing in the messages was estimated."""

    def exact(part, **options):
        count = count_messages([{"role": "user", "content": [part]}], **options)
        other = negotiate(
            model=options.get("model", "gpt-4o"),
            messages=[{"role": "user", "content": [part]}],
            max_output_tokens=9,
            counter="o200k_base",
            system_tokens=0,
        )
        if "counter" not in options:
            assert count.is_exact == other.is_exact
        return count.is_exact

    image = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    sized = {**image, "width": 7, "height": 7}
    assert exact("x")
    assert exact(sized)
    assert exact({**image, "detail": "low"})
    assert not exact({**image, "detail": "low"}, model="o4-mini")
    assert not exact(image)
    assert not exact("x", counter="words")
    assert not exact({"type": "redacted_thinking", "data": "x"})
    assert count_messages([]).is_exact


def test_a_count_is_an_int():
    """What count_messages returns is an int in all other respects, also after pickling."""
    count = count_messages([{"role": "user", "content": [{"type": "video"}]}])
    again = pickle.loads(pickle.dumps(count))

    assert isinstance(count, int)
    assert (str(int(count)), MessageCount) == (repr(count), type(again))
    assert (again, again.is_exact) == (count, False)
    assert (MessageCount(3), True) == (3, MessageCount(3).is_exact)


def test_objects_of_openai():
    """What OpenAI's client answers is a message."""
    chat = pytest.importorskip("openai.types.chat")
    fields = {"role": "assistant", "content": None, "tool_calls": CALLS}
    call = chat.ChatCompletionMessage.model_validate(fields)
    messages = [QUESTION, call, {"role": "tool", "tool_call_id": "a", "content": LOG}]
    left = trim_messages(messages, 200)

    assert count_messages([fields]) == count_messages([call])
    assert (3, call, True) == (len(left), left[1], count_messages(left) <= 200)
    assert left[1] is call


def test_blocks_of_anthropic():
    """What Anthropic's client answers are parts of a message, those of the server too."""
    types = pytest.importorskip("anthropic.types")
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "log"}}
    text = {"type": "text", "text": "Let me see."}
    blocks = [types.TextBlock.model_validate(text), types.ToolUseBlock.model_validate(use)]
    result = {"role": "user", "content": [{**use, "type": "tool_result", "tool_use_id": "a"}]}
    result["content"][0]["content"] = LOG
    said = {"role": "assistant", "content": blocks}
    left = trim_messages([QUESTION, said, result], 200)

    assert count_messages([{**said, "content": [text, use]}]) == count_messages([said])
    assert (3, True, True) == (len(left), left[1] is said, count_messages(left) <= 200)
    searched = types.ServerToolUseBlock.model_validate(
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    )
    count = count_messages([{"role": "assistant", "content": [searched]}])
    assert (True, False) == (20 < count < 60, count.is_exact)
