"""However deep an input is nested, what comes back is an answer or a typed error."""

import importlib.util

import pytest
from support import on_both, using

from budgeteer import (
    BudgeteerError,
    Chunk,
    Corpus,
    Packer,
    compare,
    fit_output,
    fit_request,
    pack,
    parse_context,
    trim_messages,
)

DEPTH = 1_000_000
needs_yaml = pytest.mark.skipif(importlib.util.find_spec("yaml") is None, reason="needs PyYAML")


def nested(key=None, depth=DEPTH // 10):
    """A value in that many lists, or in that many mappings below a key."""
    value = "tea"
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


def schema(depth=DEPTH // 10):
    value = {"type": "string"}
    for _ in range(depth):
        value = {"type": "object", "properties": {"a": value}}
    return value


@pytest.fixture(scope="module")
def deep():
    """Values that are nested deep, by their names."""
    return {"lists": nested(), "mappings": nested("a"), "schema": schema(), "any": nested("anyOf")}


def answered(work):
    """Whether *work* answers; where not, the error is one of this library."""
    try:
        work()
    except BudgeteerError:
        return False
    return True


@on_both
@pytest.mark.parametrize("kind", ["auto", "json", "table", "text", "log", "diff"])
@pytest.mark.parametrize("start", ["[", '{"a":', "[{}, [", '"\\u005b'], ids=repr)
def test_texts_of_tools(name, kind, start):
    """A result of a tool of a million brackets is cut as text, or refused as JSON."""
    with using(name):
        text = start * (DEPTH // len(start))
        is_answered = answered(lambda: fit_output(text, 100, kind=kind, counter="chars_div4"))
    assert (kind in ("auto", "text", "log")) == is_answered


VALUES = {
    "output": lambda value: fit_output(value, 100),
    "rows": lambda value: fit_output([{"a": value}] * 3, 100, kind="table"),
    "metadata": lambda value: pack("tea", [Chunk("tea", metadata={"a": value})], 9).to_dict(),
    "saved": lambda value: Corpus([Chunk("tea", metadata={"a": value})]).save("never"),
    "as JSON": lambda value: pack(
        "tea", [Chunk("tea", metadata={"a": value})], 99, template="json"
    ),
    "chunks": lambda value: pack("tea", value, 9),
    "requests": lambda value: [*Packer(9).pack_batch(value)],
    "compared": lambda value: compare({"kept": value}, {"kept": []}),
}


@pytest.mark.parametrize("what", ["lists", "mappings"])
@pytest.mark.parametrize("name", VALUES)
def test_values(deep, name, what, tmp_path, monkeypatch):
    """A value in a hundred thousand lists or mappings is taken or refused."""
    monkeypatch.chdir(tmp_path)
    answered(lambda: VALUES[name](deep[what]))


def messages_with(value):
    """Messages of every provider that have *value* where they may have any."""
    call = {"name": "f", "arguments": value}
    return [
        [{"role": "user", "content": value}],
        [{"role": "user", "content": [{"type": "text", "text": value}]}],
        [{"role": "user", "content": "tea", "note": value}],
        [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": value}]}],
        [{"role": "user", "content": [{"type": "tool_result", "content": value}]}],
        [{"role": "user", "parts": [{"function_response": {"name": "f", "response": value}}]}],
        [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": value}}]}],
        [{"type": "function_call", "call_id": "1", **call}],
        [{"type": "function_call_output", "call_id": "1", "output": value}],
    ]


@pytest.mark.parametrize("what", ["lists", "mappings"])
def test_messages(deep, what):
    """A message with such a value anywhere is counted or refused."""
    for messages in messages_with(deep[what]):
        answered(lambda messages=messages: trim_messages(messages, 100, model="gpt-4o"))


@pytest.mark.parametrize("what", ["lists", "mappings"])
def test_requests(deep, what):
    """A request whose messages have such a value is fitted or refused."""
    for messages in messages_with(deep[what]):
        key = "contents" if "parts" in messages[0] else "input" if "type" in messages[0] else ""
        request = {"model": "gpt-4o", key or "messages": messages}
        answered(lambda request=request: fit_request(request, context_window=1_000))


FORMATS = {
    "chat": lambda schema: {
        "messages": [],
        "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
    },
    "responses": lambda schema: {
        "input": "tea",
        "text": {"format": {"type": "json_schema", "schema": schema}},
    },
    "anthropic": lambda schema: {
        "messages": [],
        "max_tokens": 9,
        "output_format": {"type": "json_schema", "schema": schema},
    },
    "gemini": lambda schema: {"contents": [], "config": {"response_schema": schema}},
    "a tool": lambda schema: {
        "messages": [],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
    },
    "a tool of Anthropic's": lambda schema: {
        "messages": [],
        "max_tokens": 9,
        "tools": [{"name": "f", "input_schema": schema}],
    },
}


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "deepseek-chat"])
@pytest.mark.parametrize("name", FORMATS)
def test_schemas(deep, name, model):
    """A schema of an answer or of a tool that is nested so deep is counted or refused."""
    for what in ("schema", "any"):
        request = {"model": model, **FORMATS[name](deep[what])}
        answered(lambda request=request: fit_request(request, context_window=1_000))


@pytest.mark.parametrize("style", ["xml", "json", "tagged", "markdown"])
def test_contexts(style):
    """A context that is no packing's is refused, however deep it seems to be."""
    for part in ("<documents>", "[", '{"a":', "```"):
        answered(lambda part=part: parse_context(part * DEPTH, template=style))


@needs_yaml
@pytest.mark.parametrize("start", ["budget: [", "- ", "? ", "{a: ", "!!set {"])
def test_configurations(start, tmp_path):
    """A configuration nested a hundred thousand deep is refused."""
    from budgeteer.config import load

    path = tmp_path / "budgeteer.yaml"
    path.write_text(start + start[-1] * (DEPTH // 10), encoding="utf-8")
    assert not answered(lambda: load(path))
