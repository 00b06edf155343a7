"""The tokens of each part of a request: frames, tools, schemas, reasoning, media, chunks."""

import base64
import json
import struct
import zlib

import pytest
from request_support import PROVIDERS, conversation

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Packer,
    Section,
    fit_request,
    get_counter,
)
from budgeteer.window import ModelLimits, count_messages, count_tools

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is tea?"},
    {"role": "assistant", "content": "A drink."},
    {"role": "user", "content": "Which?"},
]


def sections(request, **options):
    """Return the tokens of each section of a request that fits, without empty ones."""
    made = fit_request(request, context_window=10**7, **options)
    assert made.request is request
    found = made.report.sections
    total = sum(section.tokens for section in found.values())
    reserved = found["reasoning"].tokens + found["reply"].tokens
    assert total - reserved == made.total_tokens
    assert all(section.tokens == section.tokens_before for section in found.values())
    return {name: section.tokens for name, section in found.items() if section.tokens}


LLAMA = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
    "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nWhat is tea?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nA drink.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nWhich?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
QWEN = (
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is tea?<|im_end|>\n"
    "<|im_start|>assistant\nA drink.<|im_end|>\n<|im_start|>user\nWhich?<|im_end|>\n"
    "<|im_start|>assistant\n"
)
GEMMA = (
    "<bos><start_of_turn>user\nBe brief.\n\nWhat is tea?<end_of_turn>\n"
    "<start_of_turn>model\nA drink.<end_of_turn>\n<start_of_turn>user\nWhich?<end_of_turn>\n"
    "<start_of_turn>model\n"
)
MISTRAL = (
    "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]What is tea?[/INST]A drink.</s>"
    "[INST]Which?[/INST]"
)
DEEPSEEK = (
    "<｜begin▁of▁sentence｜>Be brief.<｜User｜>What is tea?<｜Assistant｜>A drink."
    "<｜end▁of▁sentence｜><｜User｜>Which?<｜Assistant｜><think>\n"
)
HARMONY = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    "Knowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: medium\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message."
    "<|end|><|start|>developer<|message|># Instructions\n\nBe brief.<|end|>"
    "<|start|>user<|message|>What is tea?<|end|>"
    "<|start|>assistant<|channel|>final<|message|>A drink.<|end|>"
    "<|start|>user<|message|>Which?<|end|><|start|>assistant"
)
SPECIAL = (
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|im_start|>", "<|im_end|>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<s>", "</s>"),
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]", "<think>"),
    *("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    *("<|start|>", "<|message|>", "<|channel|>", "<|end|>"),
)


@pytest.mark.parametrize(
    ("model", "rendered", "slack"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", LLAMA, 10),
        ("qwen2.5-72b-instruct", QWEN, 25),  # the words that stand in without instructions
        ("gemma-3-27b-it", GEMMA, 12),
        ("mistral-large-2411", MISTRAL, 12),
        ("deepseek-chat", DEEPSEEK, 16),
        ("gpt-oss-120b", HARMONY, 45),
    ],
)
def test_frames_bound_the_rendered_template(model, rendered, slack):
    """A family's frame is at least what its template writes, and at most a little more."""
    count = get_counter("o200k_base").count
    special = 0
    for token in SPECIAL:
        special += rendered.count(token)
        rendered = rendered.replace(token, "\0")
    tokens = special + sum(map(count, rendered.split("\0")))
    request = {"model": model, "messages": MESSAGES}
    made = fit_request(request, context_window=10**6, counter="o200k_base")
    assert tokens <= made.total_tokens <= tokens + slack
    assert "published rule" == made.report.sections["history"].basis
    assert "20" in made.report.sections["history"].source


def test_openais_rule():
    """OpenAI's models count as `count_messages` and `count_tools` do; others say it is theirs."""
    tool = {"type": "function", "function": {"name": "now", "description": "Say what time it is"}}
    request = {"model": "gpt-4o", "messages": MESSAGES, "tools": [tool]}
    tools = count_tools([tool], has_system_message=True)
    assert fit_request(request).total_tokens == count_messages(MESSAGES) + tools
    assert sections(request)["tools"] == tools
    found = fit_request({**request, "model": "claude-sonnet-4-5"}, counter="words").report
    assert "estimate" == found.sections["history"].basis
    assert "Anthropic publishes no rule" in found.sections["history"].source


def test_tools_of_anthropic():
    """They cost the published prompt, and their JSON; where a call is asked for, its own."""
    tool = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    base = {"model": "claude-opus-4-1", "messages": MESSAGES[1:], "max_tokens": 9}
    counted = get_counter("words").count(f"<function>{json.dumps(tool)}</function>")
    for choice, prompt in (({"type": "auto"}, 346), ({"type": "any"}, 313)):
        request = {**base, "tools": [tool], "tool_choice": choice}
        assert prompt + counted == sections(request, counter="words")["tools"]
    old = {**base, "model": "claude-3-haiku-20240307", "tools": [tool]}
    assert 340 + counted == sections(old, counter="words")["tools"]
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    assert 1500 < sections({**base, "tools": [search]}, counter="words")["tools"] < 2000


def test_schema():
    """The schema of a structured answer counts for every provider, and text formats do not."""
    schema = {"type": "object", "properties": {"tea": {"type": "string"}}}
    named = {"name": "answer", "schema": schema, "strict": True}
    least = get_counter("o200k_base").count(json.dumps(schema))
    options = {
        "openai_chat": {"response_format": {"type": "json_schema", "json_schema": named}},
        "openai_responses": {"text": {"format": {"type": "json_schema", **named}}},
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
    }
    for provider in PROVIDERS:
        request = conversation(provider, [("Go.", [], False)])
        if provider == "gemini":
            given = {**request, "config": {**request["config"], "response_schema": schema}}
        else:
            given = {**request, **options[provider]}
        before, after = (sections(r, counter="o200k_base") for r in (request, given))
        assert "schema" not in before
        assert least <= after["schema"] <= least + 40
    plain = {"messages": MESSAGES, "response_format": {"type": "json_object"}}
    assert "schema" not in sections(plain)


@pytest.mark.parametrize("key", ["messages", "input"])
def test_tools_of_a_gateway_to_gemini(key):
    """They are sent as declarations, and count as these at least."""
    fields = {f"p{i}": {"type": "string", "description": "Where it is"} for i in range(9)}
    declared = {"name": "read", "parameters": {"type": "object", "properties": fields}}
    tool = {"type": "function", **declared}
    if key == "messages":
        tool = {"type": "function", "function": declared}
    own = {"contents": "Go.", "tools": [{"functionDeclarations": [declared]}]}
    asked = {key: [{"role": "user", "content": "Go."}], "tools": [tool]}
    least, found, other = (
        sections({**request, "model": model})["tools"]
        for request, model in (
            (own, "gemini-3.1-pro"),
            (asked, "gemini-3.1-pro"),
            (asked, "gpt-4o"),
        )
    )
    assert other < least <= found <= least + 20


def test_schema_of_a_gateway_to_claude():
    """One in OpenAI's shape counts as well, and a format that is None hides no other."""
    schema = {"type": "object", "properties": {"tea": {"type": "string"}}}
    request = {"model": "claude-opus-5", "messages": MESSAGES}
    least = get_counter("o200k_base").count(json.dumps(schema))
    named = {"name": "answer", "schema": schema}
    for given in (
        {"response_format": {"type": "json_schema", "json_schema": named}},
        {"output_config": {"format": None}, "output_format": {"type": "json_schema", **named}},
    ):
        found = fit_request({**request, **given}, counter="o200k_base").report
        assert "anthropic" == found.provider
        assert least <= found.sections["schema"].tokens <= least + 40


def test_reasoning_shares_the_answer():
    """A budget for reasoning is a section of its own, within what is reserved for the answer."""
    request = {"messages": MESSAGES[1:], "max_tokens": 3000}
    thinking = {**request, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    assert 3000 == sections(request)["reply"]
    found = sections(thinking)
    assert (2000, 1000) == (found["reasoning"], found["reply"])
    both = fit_request(thinking, context_window=4000).report
    assert 1000 == both.max_input_tokens
    larger = {**thinking, "max_tokens": 1500}  # as interleaved thinking may have
    assert 2000 == fit_request(larger, context_window=4000).report.max_input_tokens
    assert "reply" not in sections({"messages": MESSAGES})
    assert 7 == sections({"input": "Go.", "max_output_tokens": 7})["reply"]
    assert 5 == sections({"input": "Go.", "max_output_tokens": 7}, max_output_tokens=5)["reply"]


def png(width, height):
    """Return a PNG with that header, in base64."""
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\0" * 9
    return base64.b64encode(data).decode()


def wav(seconds):
    """Return silence of 8000 bytes a second, in base64."""
    body = b"\0" * (8000 * seconds - 44)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16, 1, 1,
                       8000, 8000, 1, 8, b"data", len(body))  # fmt: skip
    return base64.b64encode(head + body).decode()


def pdf(pages, *, packed):
    """Return the objects of a PDF with that number of pages, in base64."""
    objects = b"<< /Type /Pages >> " + b"<< /Type /Page /Parent 1 0 R >> " * pages
    if packed:
        stream = zlib.compress(objects)
        objects = b"<< /Type /ObjStm /Length %d >> stream\r\n%s endstream" % (len(stream), stream)
    return base64.b64encode(b"%PDF-1.7 " + objects).decode()


def image_of(provider, data):
    """Return a message with an image as that provider takes it."""
    url = f"data:image/png;base64,{data}"
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {
        "openai_chat": {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": url}}],
        },
        "openai_responses": {
            "role": "user",
            "content": [{"type": "input_image", "image_url": url}],
        },
        "anthropic": {"role": "user", "content": [{"type": "image", "source": source}]},
        "gemini": {
            "role": "user",
            "parts": [{"inline_data": {"mime_type": "image/png", "data": base64.b64decode(data)}}],
        },
    }[provider]


@pytest.mark.parametrize(
    ("provider", "model", "size", "tokens"),
    [
        ("openai_chat", "gpt-4o", (1024, 1024), 765),
        ("openai_responses", "gpt-4o", (2048, 4096), 1105),
        ("anthropic", "claude-sonnet-4-5", (1000, 1000), 1334),
        ("anthropic", "claude-sonnet-4-5", (200, 200), 64),
        ("anthropic", "claude-sonnet-4-5", (3000, 2000), 1640),
        ("anthropic", "claude-opus-4-8", (2000, 1500), 4000),
        ("anthropic", "claude-opus-4-8", (8000, 8000), 5001),
        ("gemini", "gemini-2.5-pro", (384, 384), 258),
        ("gemini", "gemini-2.5-pro", (960, 540), 1548),
        ("gemini", "gemini-3-pro", (4000, 4000), 1120),
    ],
)
def test_images(provider, model, size, tokens):
    """An image costs what the maker's guide says, in the section of media."""
    key = {"openai_responses": "input", "gemini": "contents"}.get(provider, "messages")
    request = {"model": model, key: [image_of(provider, png(*size))]}
    made = fit_request(request, context_window=10**6, counter="words")
    media = made.report.sections["media"]
    assert (tokens, "published rule") == (media.tokens, media.basis)


@pytest.mark.parametrize(
    ("model", "part", "tokens", "basis"),
    [
        ("gpt-4o-audio", {"type": "input_audio", "input_audio": {"data": wav(30)}}, 300, "rule"),
        ("gemini-2.5-pro", {"type": "audio", "source": {"data": wav(30)}}, 960, "rule"),
        ("acme-7b", {"type": "input_audio", "input_audio": {"data": wav(30)}}, 20_004, "estimate"),
        ("gemini-2.5-pro", {"type": "document", "source": {"data": pdf(7, packed=True)}}, 1806,
         "rule"),
        ("claude-sonnet-4-5", {"type": "document", "source": {"data": pdf(3, packed=False)}},
         13_920, "bound"),
        ("gpt-4o", {"type": "file", "file": {"file_data": f"data:application/pdf;base64,"
         f"{pdf(2, packed=True)}"}}, 7530, "bound"),
        ("gpt-4o", {"type": "input_file", "file_id": "file_1"}, 5000, "estimate"),
        ("gpt-4o", {"type": "file", "file": {"file_id": "f1"}}, 5000, "estimate"),
        ("gemini-2.5-pro", {"type": "video", "source": {"url": "gs://a/b.mp4"}}, 5000, "estimate"),
        ("claude-sonnet-4-5", {"type": "document", "source": {"type": "url",
         "url": "https://a.example/b.pdf"}}, 5000, "estimate"),
        ("gpt-4o", {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}, 1445,
         "bound"),
    ],
)  # fmt: skip
def test_audio_and_files(model, part, tokens, basis):
    """Seconds of audio and pages of a PDF are read where they can be; else the report says so."""
    request = {"model": model, "messages": [{"role": "user", "content": [part]}]}
    media = fit_request(request, context_window=10**6, counter="words").report.sections["media"]
    assert (tokens, basis in media.basis) == (media.tokens, True)
    is_exact = count_messages(request["messages"], counter="o200k_base", model=model).is_exact
    assert is_exact == (basis == "rule")


CHUNKS = [f"Tea number {i} is green." for i in range(50)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_chunks_stand_in_a_text(provider):
    """A section in the place of a text is packed into what is left, after the history went."""
    request = conversation(provider, [("old " * 50, [], True), ("Which tea?", [], False)])
    key = {"openai_responses": "input", "gemini": "contents"}.get(provider, "messages")
    section = Section("context", query="tea", chunks=CHUNKS, max_tokens=100)
    part = {"text": section} if provider == "gemini" else {"type": "text", "text": section}
    inner = "parts" if provider == "gemini" else "content"
    spot = {"role": "user", inner: [{**part}, {**part, "text": "Answer from these."}]}
    items = [*request[key][:-1], spot, request[key][-1]]
    request = {**request, key: items}
    made = fit_request(request, context_window=10**5, counter="words")
    text = made.request[key][-2][inner][0]["text"]
    packing = Packer(100, counter="words").pack("tea", CHUNKS)
    assert (packing.text, packing.total_tokens) == (text, made.report.sections["chunks"].tokens)
    assert len(items) == len(made.request[key])
    most = made.total_tokens - 10
    fitted = fit_request(request, context_window=most, counter="words")
    assert text == fitted.request[key][-2][inner][0]["text"]
    assert len(fitted.request[key]) == len(items) - 2
    last = fitted.total_tokens - 30
    smaller = fit_request(request, context_window=last, counter="words")
    assert smaller.total_tokens <= last
    assert 0 < smaller.report.sections["chunks"].tokens < 100
    assert "no room for more chunks" == smaller.report.changes[-1].reason
    first = fit_request(request, context_window=most, counter="words", order=["chunks"])
    assert len(first.request[key]) == len(items)
    assert fit_request(smaller.request, context_window=last, counter="words").report.changes == []


def test_chunks_without_room():
    """A message that is only a section goes if no chunk fits; its packer and bounds hold."""
    section = Section("context", query="tea", chunks=CHUNKS, packer=Packer(12))
    messages = [{"role": "user", "content": section}, MESSAGES[-1]]
    request = {"messages": messages}
    made = fit_request(request, context_window=100, counter="words")
    assert 10 == made.report.sections["chunks"].tokens
    least = fit_request({"messages": messages[1:]}, context_window=100, counter="words")
    alone = fit_request(request, context_window=least.total_tokens, counter="words")
    assert [messages[1]] == alone.request["messages"]
    assert "no chunk fits" == alone.report.changes[0].reason


def test_a_result_without_its_call():
    """It is left out even of a request that fits, as every provider refuses it."""
    lost = {"role": "tool", "tool_call_id": "b", "content": "12"}
    made = fit_request({"messages": [lost, *MESSAGES]}, context_window=10**5)
    assert MESSAGES == made.request["messages"]
    assert ("messages[0]", "its call is missing") == (
        made.report.changes[0].place,
        made.report.changes[0].reason,
    )


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": "b", "content": "12"},
        {"role": "user", "content": Section("context", query="tea", chunks=["Tea."])},
    ],
)
def test_no_message_stays(message):
    """Then nothing stands around messages, as in a request without any."""
    made = fit_request({"messages": [message]}, context_window=8)
    assert ([], 0) == (made.request["messages"], made.total_tokens)
    assert 0 == fit_request(made.request, context_window=8).total_tokens
    assert 0 == count_messages(made.request["messages"])


@pytest.mark.parametrize("shape", ["anthropic", "gemini"])
def test_a_question_beside_a_result_without_its_call(shape):
    """The result is left out alone, once for all turns; the question stays."""
    lost = {"type": "tool_result", "tool_use_id": "b", "content": "12 degrees"}
    said, key = {"type": "text", "text": "And now?"}, "messages"
    if shape == "gemini":
        lost = {"function_response": {"name": "f", "response": {"output": "12 degrees"}}}
        said, key = {"text": "And now?"}, "contents"
    field = {"messages": "content", "contents": "parts"}[key]
    asked = {"role": "user", field: [lost, said]}
    kept = {"role": "user", field: [said]}
    made = fit_request({key: [asked]}, context_window=10**5)
    alone = fit_request({key: [kept]}, context_window=10**5)

    assert {key: [kept]} == made.request
    assert {key: [{"role": "user", field: [lost, said]}]} == {key: [asked]}
    assert alone.total_tokens == made.total_tokens
    [change] = made.report.changes
    assert (f"{key}[0]", "cut", "its call is missing") == (
        change.place,
        change.action,
        change.reason,
    )
    lost = made.report.sections["tool_results"]
    assert change.tokens_before - change.tokens == lost.tokens_before - lost.tokens > 0
    answer = {"role": {"messages": "assistant", "contents": "model"}[key], field: [said]}
    again = fit_request({key: [asked, answer, kept]}, context_window=10**5, previous=made)
    assert {key: [kept, answer, kept]} == again.request
    assert made.request[key][0] is again.request[key][0]
    [change] = again.report.changes
    assert "as in the previous request" == change.reason


def test_limits_of_a_model():
    """The model of the request gives the window, its input limit and the counter."""
    limits = ModelLimits("acme", 1000, 60, None, "words", None, None, True, "here")
    request = {"messages": MESSAGES, "max_tokens": 100}
    made = fit_request(request, model=limits)
    assert (1000, 60) == (made.report.context_window, made.report.max_input_tokens)
    with pytest.raises(BudgetExhaustedError, match="and the input may have 60"):
        fit_request({"messages": [{"role": "user", "content": "tea " * 70}]}, model=limits)
    assert 128_000 == fit_request({"model": "gpt-4o", "input": "Hi"}).report.context_window


@pytest.mark.parametrize(
    ("request_", "options", "message"),
    [
        ([], {}, "request must be a mapping of the keyword arguments that are sent, not list"),
        ({}, {}, "not none of them"),
        ({"messages": [], "input": ""}, {}, "not 'messages' and 'input'"),
        ({"messages": MESSAGES}, {"context_window": None}, "give model, context_window, or a"),
        ({"messages": [3]}, {}, "messages[0] must be a mapping, not int"),
        ({"input": [{"type": 3}]}, {}, "input[0]['role'] must be a str, not None"),
        ({"contents": [{"parts": [{"text": 3}]}]}, {}, "contents[0]['content'][0]['text'] must"),
        ({"input": "a", "previous_response_id": "b"}, {}, "only the provider has"),
        (
            {
                "messages": MESSAGES,
                "max_tokens": 9,
                "thread": {"type": "continue", "previous_message_id": "b"},
            },
            {},
            "request['thread'] goes on with messages that only the provider has",
        ),
        ({"contents": "a", "cachedContent": "b"}, {}, "only the provider has"),
        ({"contents": "a", "config": {"cached_content": "b"}}, {}, "only the provider has"),
        ({"contents": "a", "config": {"tools": [print]}}, {}, "give its declaration"),
        ({"messages": [], "tools": [7]}, {}, "request['tools'][0] must be a mapping, not int"),
        (
            {"messages": [], "tools": [], "functions": [{"name": "now"}]},
            {},
            "request must have only one of 'tools' and 'functions': one alone would be counted",
        ),
        (
            {"contents": "a", "system_instruction": "b", "config": {"system_instruction": "c"}},
            {},
            "only one of 'system_instruction' and 'system_instruction' in its config: ",
        ),
        (
            {"contents": "a", "tools": [{"functionDeclarations": 7}]},
            {},
            "request['tools'][0]['functionDeclarations'] must be a sequence, not int",
        ),
        ({"messages": [], "system": 3}, {}, "request['system'] must be a str, None or a list"),
        ({"input": "a", "instructions": [3]}, {}, "request['instructions'][0] must be a mapping"),
        ({"messages": [], "max_tokens": "9"}, {}, "must be an int, not str"),
        (
            {"contents": "a", "config": {"thinking_config": {"thinking_budget": "9"}}},
            {},
            "request's thinking_budget must be an int, not str",
        ),
        ({"messages": []}, {"order": ["tools"]}, "order[0] must be one of 'mask_results'"),
        ({"messages": []}, {"order": ["history", "history"]}, "order[1] repeats 'history'"),
        ({"messages": []}, {"max_output_tokens": -1}, "max_output_tokens must be from 0"),
        ({"messages": []}, {"context_window": 1.5}, "context_window must be an int, not float"),
    ],
)
def test_refused(request_, options, message):
    """A wrong argument or part of a request is named by its place."""
    with pytest.raises(InvalidArgumentError) as caught:
        fit_request(request_, **{"context_window": 99, "counter": "words", **options})
    assert message in str(caught.value)


def test_tools_are_selected():
    """A section in the place of tools keeps the best that fit, and those that must stay."""
    names = ("read_file", "send_mail", "weather", "make_invoice")
    tools = [
        {"type": "function", "function": {"name": name, "description": f"Do {name}. " * 9}}
        for name in names
    ]
    base = {"model": "gpt-4o", "messages": MESSAGES}
    for most in range(40, 220, 20):
        section = Section(
            *("tools", tools), select="bm25", query="the weather", keep=["send_mail"],
            max_tokens=most,
        )  # fmt: skip
        made = fit_request({**base, "tools": section})
        chosen = made.request["tools"]
        counted = count_tools(chosen, has_system_message=True)
        assert counted == made.report.sections["tools"].tokens
        least = count_tools(tools[1:2], has_system_message=True)
        assert counted <= max(most, least)
        assert tools[1] in chosen
        assert tools[2] in chosen or len(chosen) == 1
        gone = [f"tools[{i}]" for i, tool in enumerate(tools) if tool not in chosen]
        assert gone == [change.place for change in made.report.changes]
        again = fit_request(made.request)
        assert again.request is made.request
    section = Section("tools", tools, select="bm25", query="bill")
    request = {**base, "messages": MESSAGES[-1:], "tools": section}
    whole = fit_request(request).total_tokens
    narrow = fit_request(request, context_window=whole - 1)
    assert narrow.total_tokens < whole
    assert 0 < len(narrow.request["tools"]) < 4
    old = {**request, "messages": [*MESSAGES[1:3] * 9, MESSAGES[3]]}
    kept = fit_request(old, context_window=whole)
    assert 4 == len(kept.request["tools"])
    with pytest.raises(InvalidArgumentError, match="needs content and select"):
        fit_request({"contents": "a", "config": {"tools": section}}, context_window=99)


def test_the_weakest_of_media():
    """Media rest on the weakest of their figures, whatever comes after it."""
    image = image_of("openai_chat", png(64, 64))
    far = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    bound, guessed = (
        {"role": "user", "content": [part]} for part in (far, {"type": "file", "file_id": "f1"})
    )
    for turns, basis in (
        ([image], "published rule"),
        ([image, bound, image], "bound"),
        ([bound, guessed, bound, image], "estimate"),
    ):
        first = fit_request({"messages": turns}, context_window=10**6)
        again = fit_request({"messages": turns}, context_window=10**6, previous=first)
        assert [basis] * 2 == [made.report.sections["media"].basis for made in (first, again)]


def test_a_pdf_made_to_be_large():
    """Many streams that unpack to much are not all unpacked, and junk costs little."""
    stream = zlib.compress(b"/Type /Page " * 300_000)
    one = b"<< /Type /ObjStm >> stream\r\n" + stream + b" endstream "
    for body, most in ((one * 200, 5_000), (b"/ObjStm stream\n" * 50_000, 5_000)):
        data = base64.b64encode(b"%PDF-1.7 " + body).decode()
        part = {"type": "document", "source": {"data": data}}
        request = {"model": "acme-7b", "messages": [{"role": "user", "content": [part]}]}
        media = fit_request(request, context_window=10**9, counter="words").report.sections[
            "media"
        ]
        assert ("estimate", most) == (media.basis, media.tokens)


def test_base64_for_urls():
    """Media in the base64 that Google's client writes count as in the other alphabet."""
    pages = b"%PDF-1.7 " + b"<< /Type /Page /Title (\xfb\xef\xbe~~~???) >> " * 40
    speech = base64.b64decode(wav(9)) + b"\xff\xfe~?" * 99
    photo = b"\xff\xd8\xff\xef" + (999).to_bytes(2, "big") + b"\xfb\xef\xff" * 999
    photo = photo[:1003] + b"\xff\xc0\x00\x11\x08\x02\x1c\x03\xc0" + bytes(9)
    for mime, data in (("application/pdf", pages), ("audio/wav", speech), ("image/jpeg", photo)):
        plain, safe = base64.b64encode(data), base64.urlsafe_b64encode(data)
        assert plain != safe
        parts = (
            {"inline_data": {"mime_type": mime, "data": one.decode()}} for one in (plain, safe)
        )
        requests = ({"model": "gemini-2.5-pro", "contents": [{"parts": [part]}]} for part in parts)
        media, other = (fit_request(one).report.sections["media"] for one in requests)
        assert media == other
        assert "published rule" == media.basis
