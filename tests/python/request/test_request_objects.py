"""Objects of the APIs' packages and of frameworks, masked and cut in their own types."""

import warnings
from enum import Enum

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage
from pydantic import BaseModel, TypeAdapter

from budgeteer import fit_request
from budgeteer.errors import InvalidArgumentError
from budgeteer.window import count_messages

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what these packages import
    from anthropic.types import Message as AnthropicMessage
    from google.genai import types as genai
    from langchain_core.messages import (
        AIMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )

LONG = "a line of the log " * 200
CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path": "b"}'}}


def fitted(request, window, **options):
    """Fit by words, and check that fitting again changes nothing."""
    made = fit_request(request, context_window=window, counter="words", **options)
    again = fit_request(made.request, context_window=window, counter="words", **options)
    assert again.request is made.request
    assert again.total_tokens == made.total_tokens <= window
    return made


def test_openai_chat():
    """A message as the client answers it is kept, and counts as its mapping does."""
    answer = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": None, "tool_calls": [CALL]}
    )
    messages = [
        {"role": "user", "content": "Go."},
        answer,
        {"role": "tool", "tool_call_id": "a", "content": LONG},
    ]
    made = fitted({"messages": messages}, 60)
    assert made.request["messages"][1] is answer
    assert LONG[:6] == made.request["messages"][2]["content"][:6]
    assert "characters left out ...]" in made.request["messages"][2]["content"]
    assert messages[2]["content"] == LONG


def test_openai_responses():
    """Items as the client answers them pair by their call_id; an output is cut where it is."""
    call = ResponseFunctionToolCall(
        type="function_call", call_id="a", name="read", arguments='{"path": "b"}'
    )
    said = ResponseOutputMessage.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        }
    )
    output = {"type": "function_call_output", "call_id": "a", "output": LONG}
    shot = {
        "type": "function_call_output",
        "call_id": "b",
        "output": [{"type": "input_text", "text": LONG}],
    }
    other = {**call.model_dump(), "call_id": "b"}
    items = [{"role": "user", "content": "Go."}, said, call, other, output, shot]
    made = fitted({"input": items, "instructions": "Be brief."}, 80)
    assert [True] * 4 == [a is b for a, b in zip(made.request["input"], items, strict=True)][:4]
    assert "characters left out ...]" in made.request["input"][4]["output"]
    assert "characters left out ...]" in made.request["input"][5]["output"][0]["text"]
    items = [*items, {"role": "user", "content": "And now?"}]
    made = fitted({"input": items}, 90)
    assert "[tool result left out]" == made.request["input"][4]["output"]
    plain = [{"role": "user", "content": "Go."}, "and on"]
    assert fitted({"input": plain[:1]}, 9).total_tokens == fitted({"input": "Go."}, 9).total_tokens


def test_anthropic():
    """A message as the client answers it goes back as it is; its other fields cost nothing."""
    content = [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "b"}}]
    answer = AnthropicMessage.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": LONG}],
        "cache_control": {"type": "ephemeral"},
    }
    messages = [{"role": "user", "content": "Go."}, answer, {"role": "user", "content": [result]}]
    request = {"system": "Be brief.", "messages": messages, "max_tokens": 10}
    made = fitted(request, 70)
    assert "anthropic" == made.report.provider
    assert made.request["messages"][1] is answer
    cut = made.request["messages"][2]["content"][0]
    assert "characters left out ...]" in cut["content"][0]["text"]
    assert {"type": "ephemeral"} == cut["cache_control"]
    plain = {"role": "assistant", "content": content}
    assert count_messages([plain]) == count_messages([answer])


def test_gemini():
    """Contents of google-genai and their mappings count and are cut alike."""
    contents = [
        genai.Content(role="user", parts=[genai.Part(text="Go.")]),
        genai.Content(
            role="model", parts=[genai.Part(function_call={"name": "read", "args": {"path": "b"}})]
        ),
        genai.Content(
            role="user",
            parts=[genai.Part(function_response={"name": "read", "response": {"result": LONG}})],
        ),
    ]
    config = genai.GenerateContentConfig(
        system_instruction="Be brief.",
        max_output_tokens=10,
        thinking_config={"thinking_budget": 4},
    )
    made = fitted({"contents": contents, "config": config}, 70)
    assert "gemini" == made.report.provider
    assert (4, 6) == tuple(made.report.sections[key].tokens for key in ("reasoning", "reply"))
    last = made.request["contents"][2]
    assert isinstance(last, genai.Content)
    assert "characters left out ...]" in last.parts[0].function_response.response["result"]
    assert LONG == contents[2].parts[0].function_response.response["result"]
    camel = [content.model_dump(exclude_none=True, by_alias=True) for content in contents]
    rest = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 10, "thinkingConfig": {"thinkingBudget": 4}},
    }
    plain = fitted({"contents": camel, **rest}, 70)
    assert plain.total_tokens == made.total_tokens
    answer = plain.request["contents"][2]["parts"][0]["functionResponse"]["response"]
    assert answer == last.parts[0].function_response.response
    objects = [genai.Part(text="Go."), "Now."]
    assert 2 == len(fitted({"contents": objects}, 60).request["contents"])
    structured = {"name": "read", "response": {"rows": [{"text": LONG}], "n": 1}}
    contents[2] = genai.Content(role="user", parts=[genai.Part(function_response=structured)])
    cut = fitted({"contents": contents}, 60).request["contents"][2]
    assert ["output"] == [*cut.parts[0].function_response.response]


@pytest.mark.parametrize("shape", ["tool", "declaration", "mixed", "config"])
def test_declarations_of_google_count_as_what_its_client_sends(shape):
    """It leaves out what is None, which is most of what its objects have."""
    fields = {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "OBJECT", "properties": {"place": {"type": "STRING"}}},
    }
    declared = genai.FunctionDeclaration(**fields)
    tool = genai.Tool(function_declarations=[declared])
    config = genai.GenerateContentConfig(
        tools=[tool], response_schema=genai.Schema(**fields["parameters"])
    )
    given = {
        "tool": {"tools": [tool]},
        "declaration": {"tools": [declared]},
        "mixed": {"tools": [{"function_declarations": [declared]}]},
        "config": config,
    }[shape]
    plain = {"tools": [{"function_declarations": [declared.model_dump(exclude_none=True)]}]}
    if shape == "config":
        plain["response_schema"] = config.response_schema.model_dump(exclude_none=True)

    def tokens(config):
        made = fit_request({"contents": "Hi.", "config": config}, model="gemini-2.5-pro")
        return [made.report.sections[key].tokens for key in ("tools", "schema")]

    assert tokens(plain) == tokens(given)
    assert 0 < tokens(given)[0] < 100


@pytest.mark.parametrize("media", ["image/png", "application/pdf", "video/mp4"])
def test_a_file_that_was_uploaded_to_google(media):
    """Google's client takes what an upload returned for a part, which counts as its file."""
    uri = "https://generativelanguage.googleapis.com/v1beta/files/a"
    file = genai.File(name="files/a", uri=uri, mime_type=media, size_bytes=9)
    part = genai.Part(file_data=genai.FileData(file_uri=uri, mime_type=media))

    def count(**fields):
        return fit_request(fields, model="gemini-3.1-pro", context_window=20_000).total_tokens

    asked = {"contents": [file, "What is in it?"]}
    assert count(contents=[part, "What is in it?"]) == count(**asked) > 1000
    assert fit_request(asked, context_window=20_000).request is asked
    for given in ([file, "Be brief."], file):
        plain = [part, "Be brief."] if given is not file else part
        config = {"system_instruction": given}
        told = count(contents="Go.", config=config)
        assert count(contents="Go.", config={"system_instruction": plain}) == told > 1000


class Dish(BaseModel):
    """A dish and what it takes."""

    name: str
    steps: list[str]


class Kind(Enum):
    """What a dish is."""

    SOUP = "soup"
    CAKE = "cake"


SCHEMAS = {
    "a list": (list[Dish], ["name", "steps", "items"]),
    "one of two": (Dish | None, ["name", "steps", "null"]),
    "an enum": (Kind, ["soup", "cake"]),
}


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("wrap", [dict, genai.GenerateContentConfig])
def test_a_type_for_the_answer_of_gemini(kind, wrap):
    """Google's client sends the whole schema of such a type, so all of it counts."""
    given, words = SCHEMAS[kind]
    config = wrap(response_schema=given)

    plain = {"response_schema": TypeAdapter(given).json_schema()}
    assert all(word in str(plain) for word in words)
    counts = [
        fit_request({"contents": "Go.", "config": found}, context_window=999).total_tokens
        for found in (config, plain)
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"response_schema": list["Nothing"]}, "schema of the answer must be one that pydantic"),  # noqa: F821
        ({"response_schema": 3}, "must be a mapping or a type, not int"),
        ({"responseJsonSchema": {}, "response_schema": {}}, "only one of 'responseJsonSchema'"),
    ],
)
def test_a_schema_that_says_nothing(config, message):
    """It is refused, as it would not be counted."""
    with pytest.raises(InvalidArgumentError, match=message):
        fit_request({"contents": "Go.", "config": config}, context_window=999)


def test_langchain():
    """Messages of LangChain count as OpenAI's, and a result is cut in its own type."""
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("Go."),
        AIMessage("", tool_calls=[{"name": "read", "args": {"path": "b"}, "id": "a"}]),
        ToolMessage(LONG, tool_call_id="a"),
    ]
    plain = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": LONG, "tool_call_id": "a"},
    ]
    assert count_messages(plain) == count_messages(messages)
    made = fitted({"messages": messages}, 70)
    assert [True] * 3 == [a is b for a, b in zip(made.request["messages"], messages, strict=True)][
        :3
    ]
    assert isinstance(made.request["messages"][3], ToolMessage)
    assert "characters left out ...]" in made.request["messages"][3].content
    assert made.total_tokens == fitted({"messages": plain}, 70).total_tokens
    left = fitted({"messages": [*messages, AIMessage("Done."), HumanMessage("More?")]}, 75)
    assert "[tool result left out]" == left.request["messages"][3].content


def test_llamaindex():
    """Messages of LlamaIndex are read by their blocks, and cut in their own type."""
    pytest.importorskip("llama_index.core", reason="its 60 packages are too many for the group")
    from llama_index.core.llms import ChatMessage, TextBlock

    messages = [
        ChatMessage(role="user", content="Go."),
        ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [CALL]}),
        ChatMessage(role="tool", content=LONG, additional_kwargs={"tool_call_id": "a"}),
    ]
    plain = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": LONG, "tool_call_id": "a"},
    ]
    assert count_messages(plain) == count_messages(messages)
    made = fitted({"messages": messages}, 60)
    assert made.request["messages"][0] is messages[0]
    last = made.request["messages"][2]
    assert isinstance(last, ChatMessage)
    assert isinstance(last.blocks[0], TextBlock)
    assert "characters left out ...]" in last.content
    assert LONG == messages[2].content
