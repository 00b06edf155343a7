"""Messages of providers and frameworks, read as one of OpenAI's chat or of Anthropic."""

import base64
from types import SimpleNamespace as Fields

import pytest

from budgeteer import (
    InvalidArgumentError,
    Layout,
    Section,
    fit_request,
    get_counter,
    trim_messages,
)
from budgeteer._messages.views import result_texts, view_of, with_results
from budgeteer.window import count_messages


class Keyed(dict):
    """Fields that are a mapping and no dict of Python's own."""


class Shown:
    """An object whose fields are in what it dumps alone."""

    def __init__(self, **fields):
        self._fields = fields

    def model_dump(self):
        return dict(self._fields)


def block(kind, **fields):
    return Fields(block_type=kind, **fields)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (block("text", text="Hi"), {"type": "text", "text": "Hi"}),
        (block("thinking", content="Hm"), {"type": "thinking", "thinking": "Hm"}),
        (block("thinking", content=None), {"type": "thinking", "thinking": ""}),
        (
            block("thinking", content="", additional_information={"signature": "AbC9"}),
            {"type": "thinking", "thinking": "", "signature": "AbC9"},
        ),
        (
            block("thinking", content="Hm", additional_information={"encrypted_content": "AbC9"}),
            {"type": "thinking", "thinking": "Hm", "thought_signature": "AbC9"},
        ),
        (
            block("tool_call", tool_call_id="a", tool_name="read", tool_kwargs={"path": "b"}),
            {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "b"}},
        ),
        (
            block("image", image=b"\x00\x01", detail="low"),
            {"type": "image", "source": {"data": "AAE="}, "detail": "low"},
        ),
        (
            block("image", image=None, url="http://a", detail=None),
            {"type": "image", "source": {"type": "url", "url": "http://a"}},
        ),
        (block("audio", audio="AAE="), {"type": "audio", "source": {"data": "AAE="}}),
        (block("document", data=b"\x00"), {"type": "document", "source": {"data": "AA=="}}),
        (block("cache", cache_control={}), {"type": "text", "text": ""}),
        (
            block("citable", title="T", source="a.md", content=[block("text", text="Hi")]),
            {
                "type": "citable",
                "title": "T",
                "source": "a.md",
                "content": [{"type": "text", "text": "Hi"}],
            },
        ),
        (
            block("citation", title="T", source="a.md", cited_content=block("text", text="Hi")),
            {
                "type": "citation",
                "title": "T",
                "source": "a.md",
                "content": [{"type": "text", "text": "Hi"}],
            },
        ),
    ],
)
def test_a_block_of_llamaindex(given, part):
    """Each kind of block is the part of Anthropic's that holds the same."""
    message = Fields(role=Fields(value="model"), blocks=[given], additional_kwargs={})

    assert ({"role": "assistant", "content": [part]}, "llamaindex") == view_of(message)


def test_calls_of_llamaindex_are_taken_once():
    """Calls beside the blocks are those of the blocks, where these have any."""
    use = block("tool_call", tool_call_id="a", tool_name="read", tool_kwargs={})
    beside = {"tool_calls": [{"id": "a"}], "name": "tea"}
    with_use = Fields(role="assistant", blocks=[use], additional_kwargs=beside)
    without = Fields(role="assistant", blocks=[], additional_kwargs=beside)

    assert {"role", "content", "name"} == {*view_of(with_use).fields}
    assert [{"id": "a"}] == view_of(without).fields["tool_calls"]


def langchain(**fields):
    given = {"type": "ai", "content": "", "response_metadata": {}, "additional_kwargs": {}}
    return Fields(**{**given, **fields})


def test_a_message_of_langchain():
    """Its name is sent; calls that its content has are not taken twice."""
    call = {"id": "a", "name": "read", "args": {"path": "b"}}
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "b"}}

    assert {"role": "assistant", "content": "Hi", "name": "tea"} == view_of(
        langchain(content="Hi", name="tea")
    ).fields
    assert "tool_calls" not in view_of(langchain(content=[use], tool_calls=[call])).fields
    made = view_of(langchain(tool_calls=[call])).fields["tool_calls"]
    assert [{"name": "read", "arguments": '{"path": "b"}'}] == [one["function"] for one in made]


@pytest.mark.parametrize(
    ("item", "view"),
    [
        (
            {"type": "computer_call_output", "call_id": "a", "output": {"url": "b"}},
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": [
                    {"type": "computer_call_output", "call_id": "a", "output": {"url": "b"}}
                ],
            },
        ),
        (
            {"type": "web_search_call", "call_id": "a", "status": None},
            {
                "role": "assistant",
                "content": [{"type": "web_search_call", "call_id": "a"}],
                "tool_calls": [{"id": "a"}],
            },
        ),
        (
            {"type": "web_search_call"},
            {"role": "assistant", "content": [{"type": "web_search_call"}], "tool_calls": []},
        ),
    ],
)
def test_an_item_of_another_kind(item, view):
    """What an item of OpenAI's Responses holds is a part, whatever its kind is."""
    assert (view, "item") == view_of(item)


PICTURE = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (512).to_bytes(4, "big") * 2 + b"\x00" * 20_000
).decode()


@pytest.mark.parametrize("wrap", [dict, Keyed, Shown])
def test_a_screenshot_costs_as_an_image(wrap):
    """Its data is not text of the prompt; one that is only named costs as the largest."""

    def cost(**output):
        shot = wrap(type="computer_screenshot", **output)
        item = wrap(type="computer_call_output", call_id="a", output=shot)
        found = count_messages([item], model="gpt-4o")
        return found - count_messages([wrap(role="tool", tool_call_id="a")], model="gpt-4o")

    assert 255 == cost(image_url=f"data:image/png;base64,{PICTURE}")
    assert 1445 == cost(file_id="f")
    checks = [{"id": "c", "code": "d", "message": "e"}]
    item = {
        "type": "computer_call_output",
        "call_id": "a",
        "output": {"type": "computer_screenshot"},
    }
    checked = count_messages([{**item, "acknowledged_safety_checks": checks}])
    assert 3 == checked - count_messages([item])


def test_a_generated_image_costs_as_an_image():
    """Its base64 is not text of the prompt, either."""
    item = {"type": "image_generation_call", "id": "i", "status": "completed"}
    drawn = {**item, "result": PICTURE}

    assert 255 == count_messages([drawn], model="gpt-4o") - count_messages([item], model="gpt-4o")
    assert PICTURE == drawn["result"]


@pytest.mark.parametrize("sealed", [b"seal" * 30, base64.b64encode(b"seal" * 30).decode()])
@pytest.mark.parametrize("key", ["thought_signature", "thoughtSignature"])
@pytest.mark.parametrize(
    "part", [{"text": "Tea."}, {"text": "So.", "thought": True}, {"functionCall": {"name": "f"}}]
)
def test_a_thought_signature_costs(part, key, sealed):
    """Google bills it as input; how much is not published, so it is an estimate."""
    plain = count_messages([{"role": "model", "parts": [part]}], model="gemini-3.1-pro")
    signed = [{"role": "model", "parts": [{**part, key: sealed}]}]
    found = count_messages(signed, model="gemini-3.1-pro")

    text = base64.b64encode(b"seal" * 30).decode()
    assert get_counter("gemini-3.1-pro").count(text) == found - plain
    assert plain.is_exact
    assert not found.is_exact
    request = {"contents": [{"role": "user", "parts": [{"text": "Tea?"}]}, *signed]}
    fitted = fit_request(request, model="gemini-3.1-pro")
    assert count_messages(request["contents"], model="gemini-3.1-pro") == fitted.total_tokens
    assert not fitted.report.is_exact


def test_a_part_of_gemini_of_another_kind():
    """It is counted as its fields, bytes as base64."""
    content = {"role": "model", "parts": [{"executable_code": {"code": "1"}, "seen": b"\x00"}]}

    assert [{"type": "part", "executable_code": {"code": "1"}, "seen": "AA=="}] == view_of(
        content
    ).fields["content"]


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"output": "tea"}, "tea"),
        ({"output": 3}, '{"output": 3}'),
        ({"tea": "green"}, '{"tea": "green"}'),
        ({}, ""),
    ],
)
def test_a_response_of_gemini(response, text):
    """One that is a text is that text, any other is its JSON; a new text replaces either."""
    content = {"role": "user", "parts": [{"function_response": {"response": response}}]}
    made = with_results(content, ["new"])

    assert [text] == result_texts(content)
    assert ["new"] == result_texts(made)
    assert {"response": response} == content["parts"][0]["function_response"]


def output(*parts, wrap=dict):
    return wrap(type="function_call_output", call_id="a", output=[*parts])


@pytest.mark.parametrize("wrap", [dict, Keyed, Shown])
def test_texts_of_a_result(wrap):
    """Strings and texts of parts are texts of a result; what has no text stays as it is."""
    image = {"type": "input_image", "image_url": "b"}
    message = output("one", {"type": "input_text", "text": "two"}, image, wrap=wrap)

    assert ["one", "two"] == result_texts(message)
    made = with_results(message, ["one", "2"])
    assert ["one", "2"] == result_texts(made)
    assert ["one", "two"] == result_texts(message)
    fields = made if isinstance(made, dict) else made.model_dump()
    assert fields["output"][2] is image
    assert with_results(message, ["one", "two"]) is message


def test_a_reference_to_an_item_is_refused():
    """Its tokens are the provider's to know, as those of a previous response are."""
    items = [{"role": "user", "content": "Hi."}, {"type": "item_reference", "id": "fc_1"}]
    for refused in (
        lambda: fit_request({"input": items}, context_window=99),
        lambda: count_messages(items),
        lambda: trim_messages(items, 99),
    ):
        with pytest.raises(InvalidArgumentError, match=r"^the item_reference 'fc_1' stands"):
            refused()


def test_reasoning_of_frameworks_that_only_its_provider_reads():
    """It is sent back, so it counts: of LangChain and LlamaIndex as of the provider's own."""
    seal = "AbC9+/xYz1" * 300
    of_openai = {"type": "reasoning", "summary": [], "encrypted_content": seal}
    signatures = {"a": seal}
    given = [
        langchain(additional_kwargs={"reasoning": of_openai}),
        langchain(additional_kwargs={"__gemini_function_call_thought_signatures__": signatures}),
    ]
    for key in ("signature", "encrypted_content"):
        sealed = block("thinking", content="", additional_information={key: seal})
        given.append(Fields(role="assistant", blocks=[sealed], additional_kwargs={}))
    least = get_counter("o200k_base").count(seal)
    assert [] == [message for message in given if count_messages([message]) < least]


@pytest.mark.parametrize("sealed", [b"seal" * 30, base64.b64encode(b"seal" * 30).decode()])
def test_thought_signatures_of_llamaindex_cost_once(sealed):
    """LlamaIndex has those of Google's answers beside its blocks, and some in these as well."""

    def cost(seals, **more):
        said = block("thinking", content="So.", additional_information=more)
        kwargs = {"thought_signatures": seals}
        message = Fields(role="assistant", blocks=[said], additional_kwargs=kwargs)
        return count_messages([message], model="gemini-3.1-pro")

    text = base64.b64encode(b"seal" * 30).decode()
    least = get_counter("gemini-3.1-pro").count(text)
    assert [least, least, least] == [
        cost([sealed]) - cost([]),
        cost([None], thought_signature=sealed) - cost([]),
        cost([sealed], thought_signature=sealed) - cost([]),
    ]


@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_a_thought_signature_in_a_block_of_langchain_costs(kind):
    """LangChain sends those of Google's answers back, beside a text as without one."""
    seal = base64.b64encode(b"seal" * 30).decode()
    told = {"model_provider": "google_genai"}
    plain = {"type": kind, kind: "So."}

    def cost(part, **fields):
        return count_messages([langchain(content=[part], **fields)], model="gemini-3.1-pro")

    signed = cost({**plain, "extras": {"signature": seal}})
    assert get_counter("gemini-3.1-pro").count(seal) == signed - cost(plain)
    assert cost(plain).is_exact
    assert not signed.is_exact
    beside = {**plain, "signature": seal}
    assert cost(plain) == cost(beside) == cost(beside, response_metadata={"model_provider": 3})
    assert (signed if kind == "thinking" else cost(plain)) == cost(beside, response_metadata=told)


def test_calls_of_langchain_that_could_not_be_read():
    """They are sent as calls too, with the arguments as they are; each is counted once."""
    calls = [{"id": "a", "name": "read", "args": {"path": "b"}}]
    broken = [{"id": "b", "name": "read", "args": '{"path": ', "error": "cut off"}]
    blocks = [{"type": "tool_call", **calls[0]}, {"type": "text", "text": "Hm"}]

    fields = view_of(langchain(tool_calls=calls, invalid_tool_calls=broken)).fields
    shown = [(call["id"], call["function"]["arguments"]) for call in fields["tool_calls"]]
    assert [("a", '{"path": "b"}'), ("b", '{"path": ')] == shown
    fields = view_of(langchain(content=blocks, tool_calls=calls)).fields
    assert [{"type": "text", "text": ""}, blocks[1]] == fields["content"]
    assert 1 == len(fields["tool_calls"])


def test_media_in_a_response_of_gemini():
    """They are parts of the result, whose text can be another one."""
    blob = {"inline_data": {"mime_type": "image/png", "data": b"\x00"}}
    response = {"name": "read", "response": {"output": "long"}, "parts": [blob]}
    message = {"role": "user", "parts": [{"function_response": response}]}

    [part] = view_of(message).fields["content"]
    medium = {"type": "image", "source": {"data": "AA==", "media_type": "image/png"}}
    assert [{"type": "text", "text": "long"}, medium] == part["content"]
    assert ["long"] == result_texts(message)
    [made] = with_results(message, ["short"])["parts"]
    assert {**response, "response": {"output": "short"}} == made["function_response"]


def test_odd_parts_of_frameworks():
    """What no framework makes is no error of Python's."""
    message = langchain(
        content=[{"type": ["x"]}], tool_calls=[{"id": "a", "name": "f", "args": {}}]
    )
    assert 1 == len(view_of(message).fields["tool_calls"])
    part = {"function_response": {"name": "read", "response": {}, "parts": 5}}
    with pytest.raises(
        InvalidArgumentError, match="parts of a function's response must be a list"
    ):
        view_of({"role": "user", "parts": [part]})


@pytest.mark.parametrize(("given", "kind"), [("tea " * 99, "str"), (["tea"] * 99, "list")])
def test_a_response_of_a_function_is_a_mapping(given, kind):
    """Another would count nothing; what Gemini refuses, and a gateway may send, is an error."""
    part = {"functionResponse": {"name": "read", "response": given}}
    said = rf"a function must be a mapping, such as \{{'output': ...\}}, not {kind}"
    with pytest.raises(InvalidArgumentError, match=said):
        view_of({"role": "user", "parts": [part]})


def test_a_response_that_a_function_has_not():
    """It counts as an empty one, and another text can stand in its place."""
    message = {"role": "user", "parts": [{"function_response": {"name": "read"}}]}
    call = {"role": "model", "parts": [{"function_call": {"name": "read"}}]}
    asked = {"role": "user", "parts": [{"text": "Now? " * 20}]}

    assert [""] == result_texts(message)
    [made] = with_results(message, ["new"])["parts"]
    assert {"name": "read", "response": {"output": "new"}} == made["function_response"]
    answered = [asked, call, message, {"role": "model", "parts": [{"text": "Yes."}]}, asked]
    trim_messages(answered, 60, keep_results=0)


@pytest.mark.parametrize("key", ["functionCall", "function_response", "inline_data"])
def test_what_a_part_of_gemini_holds_is_a_mapping(key):
    """Of anything else nothing would count."""
    contents = [{"role": "user", "parts": [{key: "tea " * 99}]}]
    with pytest.raises(InvalidArgumentError, match=f"the {key} of a part must be a mapping, not"):
        fit_request({"contents": contents}, context_window=20)


@pytest.mark.parametrize("part", [3, ["tea"], {"functionCall": "tea"}])
def test_an_error_about_a_part_of_gemini_names_its_message(part):
    """As an error about any other message does."""
    messages = [{"role": "user", "parts": [{"text": "Tea?"}]}, {"role": "model", "parts": [part]}]
    for refused in (count_messages, lambda messages: trim_messages(messages, 99)):
        with pytest.raises(InvalidArgumentError, match=r"^messages\[1\]: .*a part "):
            refused(messages)
    for place in (0, 1):
        with pytest.raises(InvalidArgumentError, match=rf"content\[{place}\]: .*a part "):
            Layout(99, [Section("history", messages[1 - place :])]).fit()


@pytest.mark.parametrize("value", [b"tea", object(), {"tea"}])
def test_a_value_of_a_response_is_of_jsons_types(value):
    """Another would count nothing; an object with fields counts as these."""
    part = {"function_response": {"name": "read", "response": {"rows": [value]}}}
    with pytest.raises(InvalidArgumentError, match="must be of JSON's types"):
        view_of({"role": "user", "parts": [part]})
    part["function_response"]["response"] = {"rows": [Shown(tea="green")]}
    assert ['{"rows": [{"tea": "green"}]}'] == result_texts({"role": "user", "parts": [part]})


def test_an_approval_stays_with_its_request():
    """Neither is kept without the other, whatever stands between them."""
    request = {"type": "mcp_approval_request", "id": "m1", "name": "read", "arguments": "{}"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "m1", "approve": True}
    items = [
        {"role": "user", "content": "Read it. " * 20},
        request,
        {"role": "user", "content": "Yes."},
        answer,
        {"role": "assistant", "content": "It started. " * 20},
        {"role": "user", "content": "And now?"},
    ]
    for limit in range(10, 300, 10):
        kept = [*trim_messages(items, limit)]
        assert (request in kept) == (answer in kept)
    assert request in kept


def test_an_output_of_another_name_counts():
    """What a program answered, and the tools that a search found, are not under output."""
    program = {"type": "program", "id": "p", "call_id": "a", "code": "f()", "fingerprint": "b"}
    answer = {"type": "program_output", "id": "q", "call_id": "a", "result": "tea " * 500}
    tool = {"type": "function", "name": "brew", "description": "Brew a tea. " * 100}
    search = {"type": "tool_search_call", "call_id": "b", "arguments": {"query": "tea"}}
    found = {"type": "tool_search_output", "call_id": "b", "tools": [tool]}

    assert count_messages([program, answer]) > 500
    assert count_messages([search, found]) > 400
    for items in ([program, answer], [search, found]):
        sent = [*items, {"role": "user", "content": "Hi"}]
        assert sent == trim_messages(sent, 2_000)
        assert sent[2:] == trim_messages(sent, 100)


def test_a_search_for_tools_by_the_provider_stays():
    """It has no id, and what it found is not the result of a call that is missing."""
    search = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}
    tool = {"type": "function", "name": "brew", "description": "Brew a tea."}
    found = {**search, "type": "tool_search_output", "tools": [tool]}
    items = [{"role": "user", "content": "Tea?"}, search, found]
    items += [{"role": "assistant", "content": "Yes. "}, {"role": "user", "content": "Which?"}]
    request = {"model": "gpt-5", "input": items}

    assert fit_request(request).request is request
    assert items == trim_messages(items, 1_000)
    for limit in range(10, 150, 5):
        kept = [*trim_messages(items, limit)]
        assert (search in kept) == (found in kept)
    assert found in kept


def test_code_of_gemini_by_itself_counts():
    """A part alone is a message whatever it holds, as Google's client takes it."""
    code = {"executable_code": {"code": "print(1)", "language": "PYTHON"}}
    ran = {"codeExecutionResult": {"output": "1 " * 50, "outcome": "OUTCOME_OK"}}
    for part in (code, ran):
        whole = {"role": "user", "parts": [part]}
        assert count_messages([whole]) == count_messages([part])
        assert fit_request({"model": "gemini-2.5-pro", "contents": [part]}).total_tokens
