"""Counting messages, images and tools: the published rules, and every shape they come in."""

import base64
import json
import struct
from contextlib import suppress

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from budgeteer import InvalidArgumentError, get_counter
from budgeteer._messages.images import size_of_base64, size_of_url
from budgeteer._messages.tools import render_tools
from budgeteer.window import count_messages, count_tools, model_limits

HELLO = {"role": "user", "content": "hello"}
TEXTS = st.text(max_size=30)


def published(messages, encoding, per_message=3, per_name=1):
    """Return what OpenAI's own example counts."""
    total = 3
    for message in messages:
        total += per_message
        for key, value in message.items():
            total += len(encoding.encode_ordinary(value))
            if key == "name":
                total += per_name
    return total


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "user"]), "content": TEXTS},
            optional={"name": TEXTS},
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["gpt-4", "gpt-4o"]),
)
def test_the_published_rule(messages, model):
    """Messages count as OpenAI's example counts them, by model or by counter."""
    encoding = tiktoken.encoding_for_model(model)
    expected = published(messages, encoding)

    assert expected == count_messages(messages, model=model)
    assert expected == count_messages(messages, counter=encoding.name)
    assert published(messages, tiktoken.get_encoding("cl100k_base"), 4, -1) == count_messages(
        messages, model="gpt-3.5-turbo-0301"
    )


def test_the_example_of_the_rule():
    """The six messages of OpenAI's own notebook are 129 tokens for gpt-4, 127 for 0301."""
    system = (
        "You are a helpful, pattern-following assistant that translates corporate jargon into "
        "plain English."
    )
    told = [
        ("example_user", "New synergies will help drive top-line growth."),
        ("example_assistant", "Things working well together will increase revenue."),
        (
            "example_user",
            (
                "Let's circle back when we have more bandwidth to touch base on opportunities "
                "for increased leverage."
            ),
        ),
        (
            "example_assistant",
            "Let's talk later when we're less busy about how to do better.",
        ),
    ]
    user = "This late pivot means we don't have time to boil the ocean for the client deliverable."
    messages = [
        {"role": "system", "content": system},
        *({"role": "system", "name": name, "content": text} for name, text in told),
        {"role": "user", "content": user},
    ]

    assert 129 == count_messages(messages, model="gpt-4")
    assert 127 == count_messages(messages, model="gpt-3.5-turbo-0301")
    assert 124 == count_messages(messages, model="gpt-4o")


def test_nothing_counts_nothing():
    """No messages prime no reply, and no tools have no frame."""
    assert (0, 0) == (count_messages([]), count_tools([], tool_choice="none"))


def test_special_tokens_are_text():
    """What spells a special token counts as the text that it is."""
    spelt = count_messages([{"role": "user", "content": "<|im_start|>"}])

    assert spelt > count_messages([{"role": "user", "content": "x"}]) + 3


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
        }
    ],
}


def test_tool_calls_count():
    """Every text of a tool call counts, and of its answer."""
    counter = get_counter("o200k_base")
    texts = ["assistant", "call_1", "function", "weather", '{"city": "Paris"}']

    assert 6 + sum(map(counter.count, texts)) == count_messages([CALL])
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "12 degrees"}
    texts = ["tool", "call_1", "12 degrees"]
    assert 6 + sum(map(counter.count, texts)) == count_messages([answer])


def test_anthropics_shapes():
    """Parts of text, tool use, tool result and thinking count by their texts."""
    messages = [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a b", "signature": "x " * 100},
                {"type": "text", "text": "c d", "cache_control": {"type": "ephemeral"}},
                {"type": "tool_use", "id": "e", "name": "f", "input": {"g": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "e", "content": "h i"},
                {
                    "type": "tool_result",
                    "tool_use_id": "e",
                    "content": [{"type": "text", "text": "j"}],
                },
                "k",
            ],
        },
    ]

    # 3 for each message, 3 for the reply, and 1 + 2 + 2 + (1 + 1 + 2), 1 + 3 + 2 + 1 words
    assert 9 + 9 + 7 == count_messages(messages, counter="words")


def test_a_thought_whose_text_was_omitted():
    """Its signature has all of it and counts; beside a text it is a seal, which does not."""

    def cost(**thought):
        message = {"role": "assistant", "content": [{"type": "thinking", **thought}]}
        return count_messages([message])

    sealed = get_counter("o200k_base").count("abcd" * 9)
    assert sealed == cost(thinking="", signature="abcd" * 9) - cost(thinking="", signature="")
    assert cost(thinking="ab", signature="abcd") == cost(thinking="ab")
    assert cost(thinking="").is_exact
    assert not cost(thinking="", signature="abcd").is_exact


def image_part(url, **fields):
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def cost(part, model="gpt-4o"):
    return count_messages([{"role": "user", "content": [part]}], model=model) - 7


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        *((1024, 1024, 765), (2048, 4096, 1105), (4096, 8192, 1105)),  # OpenAI's examples
        *((512, 512, 255), (1, 1, 255), (513, 512, 425), (768, 768, 765)),
        *((2048, 768, 1445), (10**6, 1, 765), (10**9, 10**9, 765), (1920, 1080, 1105)),
    ],
)
def test_tiles(width, height, tokens):
    """An image costs 85 and 170 a tile, after fitting 2048 and the short side 768."""
    assert tokens == cost(image_part("https://a.example/a.png", width=width, height=height))
    assert tokens == cost(
        {"type": "input_image", "image_url": "a.png", "width": height, "height": width}
    )


def test_detail_and_unknown_sizes():
    """Low detail is 85; an image of unknown size costs what the largest does."""
    url = "https://a.example/a.png"

    assert 85 == cost(image_part(url, detail="low"))
    assert 1445 == cost(image_part(url)) == cost(image_part(url, detail="high"))
    assert 1445 == cost(image_part("data:image/png;base64,????"))
    assert (2833, 48169) == (
        cost(image_part(url, detail="low"), "gpt-4o-mini"),
        cost(image_part(url), "openai/gpt-4o-mini-2024-07-18"),
    )
    assert 2833 + 4 * 5667 == cost(image_part(url, width=1024, height=1024), "gpt-4o-mini")


@pytest.mark.parametrize(
    ("width", "height", "patches"),
    [
        *((1024, 1024, 1024), (1800, 2400, 1452), (2400, 1800, 1452)),  # OpenAI's examples
        *((32, 32, 1), (33, 32, 2), (1, 1, 1), (1024, 1536, 1536), (10**6, 1, 1536)),
        *((10**9, 10**9, 39 * 39), (1920, 1080, 52 * 29)),
    ],
)
@pytest.mark.parametrize(
    ("model", "factor"),
    [("gpt-4.1-mini", 162), ("openai/gpt-4.1-nano-2025-04-14", 246), ("o4-mini", 172)],
)
def test_patches(width, height, patches, model, factor):
    """Small models count patches of 32 pixels, 1536 at most, times their factor, rounded up."""
    part = image_part("a", width=width, height=height, detail="low")

    assert -(-patches * factor // 100) == cost(part, model)
    assert -(-1536 * factor // 100) == cost(image_part("a"), model)


@given(
    st.integers(1, 10_000),
    st.integers(1, 10_000),
    st.sampled_from(["gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "gpt-5-nano"]),
)
def test_no_image_costs_more_than_an_unknown_one(width, height, model):
    """The value for an unknown size is an upper bound."""
    known = cost(image_part("a", width=width, height=height), model)

    assert 0 < known <= cost(image_part("a"), model)


def png(width, height):
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def jpeg(width, height, metadata=100):
    segment = b"\xff\xe1" + struct.pack(">H", metadata + 2) + b"\xff\xc0" * (metadata // 2)
    frame = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + b"\3"
    return b"\xff\xd8" + segment + b"\xff" + frame


def webp(kind, width, height):
    body = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little"),
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }[kind]
    return b"RIFF\0\0\0\0WEBP" + kind + bytes(4) + body


IMAGES = {
    "png": png(640, 480),
    "gif": gif(640, 480),
    "jpeg": jpeg(640, 480),
    "jpeg with much metadata": jpeg(640, 480, 60_000),
    "webp": webp(b"VP8 ", 640, 480),
    "webp lossless": webp(b"VP8L", 640, 480),
    "webp extended": webp(b"VP8X", 640, 480),
}


@pytest.mark.parametrize("name", IMAGES)
def test_sizes_of_headers(name):
    """The size is read from the header of each format, however OpenAI or Anthropic wrap it."""
    data = base64.b64encode(IMAGES[name]).decode()

    assert (640, 480) == size_of_url(f"data:image/x;base64,{data}") == size_of_base64(data)
    assert 425 == cost(image_part(f"data:image/x;base64,{data}"))
    source = {"type": "base64", "media_type": "image/x", "data": data}
    assert 425 == cost({"type": "image", "source": source})


@given(st.sampled_from(sorted(IMAGES)), st.integers(0, 200), st.binary(max_size=20))
def test_broken_images(name, size, rest):
    """A header that is cut off or garbled gives a size or None, never an error."""
    data = base64.b64encode(IMAGES[name][:size] + rest).decode()
    found = size_of_base64(data)

    assert found is None or min(found) > 0


@pytest.mark.parametrize("more", [2_999, 3_000, 3_001, 1 << 20, 1_500_000])
@pytest.mark.parametrize("width", [0, 76])
@pytest.mark.parametrize("kind", ["png", "jpeg", "pjpeg"])
def test_sizes_of_large_images(kind, width, more):
    """The size is known wherever the part that is read ends."""
    data = base64.b64encode(png(640, 480) + bytes(more)).decode()
    if width:
        data = "\n".join(data[i : i + width] for i in range(0, len(data), width))
    assert (640, 480) == size_of_url(f"data:image/{kind};base64,{data}") == size_of_base64(data)


def test_only_the_beginning_of_an_image_is_decoded(monkeypatch):
    """A megabyte of each image took milliseconds, and a history has many."""
    decoded = []

    def decode(text):
        decoded.append(len(text))
        return b64decode(text)

    b64decode = base64.b64decode
    monkeypatch.setattr("base64.b64decode", decode)
    for image in IMAGES.values():
        size_of_base64(base64.b64encode(image + bytes(1 << 21)).decode())
    assert sum(decoded) < 2_000_000  # the metadata of one are longer


@pytest.mark.parametrize(
    "image", [b"BM", webp(b"VP8 ", 640, 480)[:-1], jpeg(640, 480)[:-9], b"\xff\xd8" + bytes(9)]
)
def test_images_without_a_size(image):
    """Another format, and a header that ends before the size, give None."""
    assert size_of_base64(base64.b64encode(image).decode()) is None


@given(st.text(max_size=50))
def test_any_url(text):
    """Any text is answered."""
    size_of_url(text)
    size_of_url("data:;base64," + text)


WEATHER = {
    "name": "get_weather",
    "description": "Say the weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "unit": {"type": "string", "enum": ["c", "f"]},
            "days": {"type": "integer"},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "tags": {"type": "array"}},
                "required": ["lat"],
            },
            "names": {"type": "array", "items": {"type": ["string", "null"]}},
            "other": {"anyOf": [{"type": "string"}]},
        },
        "required": ["city"],
    },
}


def test_tools_are_rendered_as_typescript():
    """Descriptions, optional keys, enums, objects and arrays stand as the model has them."""
    assert render_tools("tools", [WEATHER, {"name": "now"}]).splitlines() == [
        "namespace functions {",
        "",
        "// Say the weather",
        "type get_weather = (_: {",
        "// Where",
        "city: string,",
        'unit?: "c" | "f",',
        "days?: number,",
        "place?: {",
        "  lat: number,",
        "  tags?: any[],",
        "},",
        "names?: string | null[],",
        'other?: {"anyOf": [{"type": "string"}]},',
        "}) => any;",
        "",
        "type now = () => any;",
        "",
        "} // namespace functions",
    ]


def test_definitions_of_a_tool_are_rendered():
    """What a schema defines for its fields, or instead of them, counts as its JSON."""
    place = {"type": "object", "properties": {"zip": {"description": "Of the house"}}}
    field = {"to": {"$ref": "#/$defs/Place"}}
    send = {"name": "send", "parameters": {"$defs": {"Place": place}, "properties": field}}
    either = {"name": "either", "parameters": {"anyOf": [place], "$defs": {}}}
    assert render_tools("tools", [send, either]).splitlines()[2:-1] == [
        "type send = (_: {",
        'to?: {"$ref": "#/$defs/Place"},',
        json.dumps({"$defs": {"Place": place}}),
        "}) => any;",
        "",
        "type either = (_: {",
        json.dumps({"anyOf": [place]}),
        "}) => any;",
        "",
    ]


@pytest.mark.parametrize(
    ("description", "properties", "tokens"),
    [
        (None, {}, 31),
        ("Do a foo", {}, 36),
    ],
)
def test_measured_tools(description, properties, tokens):
    """What the API was measured to answer for a message and a function under cl100k_base."""
    tool = {"name": "foo", "parameters": {"type": "object", "properties": properties}}
    if description:
        tool["description"] = description

    counted = count_messages([HELLO], model="gpt-4") + count_tools([tool], model="gpt-4")
    assert tokens == counted


@pytest.mark.parametrize(
    ("properties", "tokens"),
    [
        ({"foo": {"type": "string"}}, 49),
        ({"foo": {"type": "string"}, "bar": {"type": "number", "description": "A number"}}, 57),
    ],
)
def test_measured_properties(properties, tokens):
    """Likewise for a function with parameters."""
    tool = {
        "name": "bing_bong",
        "description": "Do a bing bong",
        "parameters": {"type": "object", "properties": properties},
    }

    assert tokens == count_messages([HELLO], model="gpt-4") + count_tools([tool], model="gpt-4")


def test_every_shape_of_a_tool_counts_alike():
    """With and without function around it, and as Anthropic has it."""
    anthropic = {"name": WEATHER["name"], "description": WEATHER["description"]}
    anthropic["input_schema"] = WEATHER["parameters"]
    shapes = [WEATHER, {"type": "function", "function": WEATHER}, anthropic]

    assert 1 == len({count_tools([shape]) for shape in shapes})


def test_the_frame_of_tools():
    """9 more, 4 less with a system message, 1 for none, 7 and the name for a named one."""
    text = render_tools("tools", [WEATHER])
    plain = count_tools([WEATHER])

    assert plain == get_counter("o200k_base").count(text) + 9
    assert plain - 4 == count_tools([WEATHER], has_system_message=True)
    assert plain + 1 == count_tools([WEATHER], tool_choice="none")
    for choice in ("auto", "required", "any", {"type": "auto"}):
        assert plain == count_tools([WEATHER], tool_choice=choice)
    named = plain + 7 + get_counter("o200k_base").count("get_weather")
    for choice in (
        {"type": "function", "function": {"name": "get_weather"}},
        {"type": "tool", "name": "get_weather"},
    ):
        assert named == count_tools([WEATHER], tool_choice=choice)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ("hello", "messages must be a sequence, not str"),
        (HELLO, "messages must be a sequence, not dict"),
        (["hello"], "messages[0] must be a mapping, not str"),
        ([HELLO, {}], "messages[1]['role'] must be a str, not None"),
        ([{"role": 3}], "messages[0]['role'] must be a str, not int"),
        ([{"role": "user", "content": 3}],
         "messages[0]['content'] must be a str, None or a list of parts, not int"),
        ([{"role": "user", "content": [3]}],
         "messages[0]['content'][0] must be a mapping, not int"),
        ([{"role": "user", "content": [{"type": 7, "text": "a"}]}],
         "messages[0]['content'][0]['type'] must be a str, not int"),
        ([{"role": "user", "content": [{"type": []}]}],
         "messages[0]['content'][0]['type'] must be a str, not list"),
        ([{"role": "user", "content": [{"type": "video", "x": object()}]}],
         "messages[0]['content'][0] must be of JSON's types, not dict"),
        ([{"role": "user", "content": [{"type": "text"}]}],
         "messages[0]['content'][0]['text'] must be a str, not None"),
        ([{"role": "user", "content": [image_part("a", width=0, height=1)]}],
         "messages[0]['content'][0]['width'] must be from 1 to"),
        ([{"role": "user", "content": [image_part("a", width=3)]}],
         "messages[0]['content'][0]['height'] must be an int, not None"),
        ([{"role": "user", "content": [image_part("a", detail="lo")]}],
         "['detail'] must be one of 'auto', 'low', 'high', 'original', not 'lo'"),
        ([{"role": "user", "x": object()}],
         "messages[0]['x'] must be of JSON's types, not object"),
    ],
)  # fmt: skip
def test_refused_messages(messages, message):
    """A wrong message is named by its place; its text is not quoted."""
    with pytest.raises(InvalidArgumentError) as caught:
        count_messages(messages)

    assert message in str(caught.value)


def test_repeated_types_of_a_schema_are_shown_once():
    """Each repetition would double the text, at each of a hundred levels; a list is no type."""
    schema = {"type": "string"}
    for _ in range(45):
        schema = {"type": ["array", "null", "array"], "items": schema}
    listed = {"type": [["array", "array"]], "items": {"type": "string"}}
    tool = {"name": "a", "parameters": {"properties": {"b": schema, "c": listed}}}
    shown = render_tools("tools", [tool]).splitlines()
    assert f"b?: string{'[] | null' * 45}," in shown
    assert """c?: {"type": ["array", "array"], "items": {"type": "string"}},""" in shown


def test_results_in_results_are_nested_to_a_bound():
    """A hundred are read, as in Rust; one more is an error, not the end of the stack."""

    def message(depth):
        content = "tea"
        for _ in range(depth):
            content = [{"type": "tool_result", "tool_use_id": "a", "content": content}]
        return {"role": "user", "content": content}

    assert count_messages([message(100)]) > 100
    for depth in (101, 5_000):
        with pytest.raises(InvalidArgumentError, match="nested deeper than 100") as caught:
            count_messages([message(depth)])
        assert str(caught.value).startswith("messages[0]['content'][0]['content']")


def nested(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return {"name": "deep", "parameters": schema}


@pytest.mark.parametrize(
    ("tools", "options", "message"),
    [
        ("x", {}, "tools must be a sequence, not str"),
        ([3], {}, "tools[0] must be a mapping, not int"),
        ([{}], {}, "tools[0]['name'] must be a str, not None"),
        ([{"function": 3}], {}, "tools[0]['function'] must be a mapping, not int"),
        ([{"name": "a", "parameters": 3}], {}, "tools[0]['parameters'] must be a mapping"),
        ([{"name": "a", "parameters": {"properties": [1]}}], {},
         "tools[0]['parameters']['properties'] must be a mapping, not list"),
        ([nested(200)], {}, "is nested deeper than 100"),
        ([], {"tool_choice": "non"}, "did you mean 'none'?"),
        ([], {"tool_choice": {}}, "tool_choice['name'] must be a str, not None"),
        ([], {"has_system_message": 1}, "has_system_message must be a bool, not int"),
    ],
)  # fmt: skip
def test_refused_tools(tools, options, message):
    """A wrong tool is named by its place."""
    with pytest.raises(InvalidArgumentError) as caught:
        count_tools(tools, **options)

    assert message in str(caught.value)


def test_what_contains_itself():
    """A message or schema that contains itself is an error, not an overflow."""
    loop = {"type": "object"}
    loop["properties"] = {"a": loop}
    items = []
    items.append(items)
    for call in (
        lambda: count_tools([{"name": "a", "parameters": loop}]),
        lambda: count_messages([{"role": "user", "extra": items}]),
        lambda: count_tools([{"name": "a", "parameters": {"properties": {"b": {"enum": items}}}}]),
    ):
        with pytest.raises(InvalidArgumentError):
            call()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_counted_or_refused(value):
    """Whatever JSON a message or schema holds, the answer is a count or an error that is ours."""
    for call in (
        lambda: count_messages([{"role": "user", "content": value}]),
        lambda: count_messages([{"role": "user", "content": "", "extra": value}]),
        lambda: count_tools([{"name": "a", "parameters": {"properties": {"b": value}}}]),
        lambda: count_tools([value]),
    ):
        with suppress(InvalidArgumentError):
            assert call() > 0


def test_models_count_for_themselves():
    """A model that is not native takes a relative's tokens; a counter given goes before."""
    kimi = count_messages([HELLO] * 50, model="kimi-k2")

    assert kimi > count_messages([HELLO] * 50, counter="o200k_base")
    by_words = count_messages([HELLO] * 50, model="llama3.2:3b", counter="words")
    assert 49 * 6 == by_words - count_messages([HELLO], model="llama3.2:3b", counter="words")
    assert kimi == count_messages([HELLO] * 50, model=model_limits("kimi-k2"))
    llama = count_messages([HELLO] * 50, model="llama3.2:3b")
    assert llama == count_messages([HELLO] * 50, model="llama3.2:3b", counter="cl100k_base") < kimi
    assert kimi < count_messages([HELLO] * 50, model="nobody-knows")
    with pytest.raises(InvalidArgumentError, match="model must be a str, not int"):
        count_messages([HELLO], model=3)
