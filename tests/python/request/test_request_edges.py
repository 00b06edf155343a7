"""Requests that few clients send: nothing to leave out, odd shapes, and no room at all."""

import json
from collections import deque
from types import MappingProxyType

import pytest

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Section,
    fit_request,
    trim_messages,
)
from budgeteer.window import count_messages, count_tools

QUESTION = {"role": "user", "content": "Green tea?"}
TOOL = {"type": "function", "function": {"name": "read", "parameters": {}}}
TURNS = (
    *[{"role": "user", "content": "tea " * 30}, {"role": "assistant", "content": "rye " * 30}] * 3,
    QUESTION,
)


class Model:
    """An object with fields, as pydantic's are."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def model_dump(self, **_):
        return dict(self.__dict__)


def fitted(request, window=10**4, **options):
    return fit_request(request, context_window=window, counter="words", **options)


def tokens(section, request):
    return fitted(request).report.sections[section].tokens


def chat(**options):
    return {"model": "gpt-4o", "messages": [QUESTION], **options}


def call(key):
    made = {"id": key, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(key, text):
    return {"role": "tool", "tool_call_id": key, "content": text}


def test_instructions_alone():
    """Where nothing is but instructions they stay, or do not fit."""
    request = {"messages": [{"role": "system", "content": "tea " * 20}]}
    assert fitted(request, 30).request is request
    with pytest.raises(BudgetExhaustedError, match="24 for the messages that must stay = -17"):
        fitted(request, 10)


def test_a_result_without_a_question():
    """A tool result is cut where no question says what of it matters."""
    made = fitted({"messages": [call("a"), result("a", "tea " * 900)]}, 60)
    assert 60 >= made.total_tokens > 40
    assert "characters left out" in made.request["messages"][1]["content"]


def test_a_text_after_an_item():
    """A model's text after a Responses item stays with it, as an item must with what follows."""
    thought = {"type": "reasoning", "id": "r", "summary": []}
    said = {"role": "assistant", "content": "Yes. " * 20}
    request = {"input": [QUESTION, thought, said, {"role": "user", "content": "And?"}]}
    left = [fitted(request, window).request["input"] for window in range(10, 50)]
    assert {1, 4} == {len(items) for items in left}


def test_tools_that_are_objects():
    """A tool counts the same whether it is a mapping or has an object in it."""
    same = {"type": "function", "function": Model(name="read", parameters={})}
    counts = [tokens("tools", chat(tools=[tool])) for tool in (TOOL, same)]
    assert 22 == counts[0] == counts[1]


@pytest.mark.parametrize(
    ("choice", "more"),
    [("auto", 0), ("none", 1), ({"type": "function", "function": {"name": "read"}}, 8), (7, 0)],
)
def test_a_choice_of_tools(choice, more):
    """A choice that is written for the model costs what OpenAI's bills have for it."""
    free, chosen = (chat(tools=[TOOL], **given) for given in ({}, {"tool_choice": choice}))
    assert tokens("tools", free) + more == tokens("tools", chosen)


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_what_google_runs_beside_declarations(key):
    """A tool of Gemini's may hold both, and both are counted."""
    declared = {key: [{"name": "read", "description": "Read a file"}]}
    search = {"googleSearch": {"excludeDomains": ["a.example"]}}

    def cost(*tools):
        return tokens("tools", {"contents": "Hi", "config": {"tools": tools}})

    both = cost({**declared, **search})
    assert both == cost(declared, search) > cost({**declared, "other": None}) + 1500
    code = {"codeExecution": {}}
    assert cost({**search, **code}) == cost(search, code) > cost(search) + 1500
    assert cost({**declared, **search, **code}) == cost(declared, search, code)


def test_a_schema_of_objects():
    """A part of a schema that is an object counts as its fields; what JSON has not is refused."""
    plain = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    same = {"type": "OBJECT", "properties": {"a": Model(type="STRING")}}
    counts = [
        tokens("schema", {"contents": "Hi", "config": {"response_schema": schema}})
        for schema in (plain, same)
    ]
    assert counts[0] == counts[1] > 0
    wrong = {"type": "json_schema", "json_schema": {"schema": {(1, 2): 3}}}
    with pytest.raises(InvalidArgumentError, match="schema of the answer must be of JSON's types"):
        fitted(chat(response_format=wrong))


def test_a_call_of_openais_older_kind_beside_a_list():
    """A list of parts beside it does not make the request Anthropic's."""
    said = [{"type": "text", "text": "I read it."}]
    older = {"role": "assistant", "content": said, "function_call": {"name": "read"}}
    answer = {"role": "function", "name": "read", "content": "tea"}
    assert "openai_chat" == fitted(chat(messages=[QUESTION, older, answer])).report.provider


def test_texts_around_a_result():
    """What a result holds beside its texts counts with the history, and is never cut."""
    parts = [
        {"type": "search_result", "source": "x y", "title": "z", "content": []},
        {"type": "text", "text": "tea " * 900},
    ]
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    request = {
        "messages": [
            QUESTION,
            {"role": "assistant", "content": [use]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": parts}],
            },
        ]
    }
    assert 900 == tokens("tool_results", request)
    made = fitted(request, 100)
    assert 100 >= made.total_tokens
    left = made.request["messages"][2]["content"][0]["content"]
    assert parts[0] is left[0]
    assert "characters left out" in left[1]["text"]


def test_a_section_beside_a_text():
    """A message with a text beside its section stays where no chunk fits."""
    section = Section("context", query="tea", chunks=["Green tea is mild."])
    text = {"type": "text", "text": "Green tea?"}
    request = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": section}, text]}]
    }
    assert "Green tea is mild." == fitted(request).request["messages"][0]["content"][0]["text"]
    (message,) = fitted(request, 11).request["messages"]
    assert [{"type": "text", "text": ""}, text] == message["content"]


def test_parts_of_gemini_in_a_row_are_one_message():
    """They stay and leave together, as Gemini's client sends them as one content."""
    call = {"function_call": {"name": "read", "args": {}}}
    answer = {"function_response": {"name": "read", "response": {"output": "tea"}}}
    old = [{"text": "tea " * 30}, call, call, answer, answer, {"text": "And rye?"}, "Or oat?"]
    new = ["rye " * 9, {"text": "Green tea?"}, "In a word."]
    contents = [*old, {"role": "model", "parts": [{"text": "Yes."}]}, *new]
    left = [
        fitted({"contents": contents}, window).request["contents"] for window in range(34, 110)
    ]
    assert {3, 11} == {len(items) for items in left}
    assert all(items[-3:] == new for items in left)
    with pytest.raises(BudgetExhaustedError):
        fitted({"contents": contents}, 20)
    texts = [{"text": text} for text in ("rye " * 9, "Green tea?")]
    with pytest.raises(BudgetExhaustedError):
        trim_messages(texts, 15, counter="words")


def test_a_call_of_gemini_by_itself_is_the_models():
    """It is no newer question than the one that it answers, which stays."""
    call = {"function_call": {"name": "read", "args": {}}}
    answer = {"function_response": {"name": "read", "response": {"output": "tea " * 90}}}
    question = {"role": "user", "parts": [{"text": "Green tea?"}]}
    older = {"role": "user", "parts": [{"text": "tea " * 30}]}
    contents = [older, {"role": "model", "parts": [{"text": "Yes."}]}, question]
    contents += [call, call, answer, answer]
    for window in (80, 100):
        assert question in fitted({"contents": contents}, window).request["contents"]
        assert question in trim_messages(contents, window, counter="words")


def test_a_content_of_gemini_with_one_part_beside_a_list():
    """A part that stands for the list of parts counts as that list, and can be cut and packed."""
    call = {"function_call": {"name": "read", "args": {}}}
    answer = {"function_response": {"name": "read", "response": {"output": "tea " * 90}}}
    section = Section("context", query="tea", chunks=["Green tea is mild."])
    parts = [{"text": "Green tea?"}, call, answer, {"text": section}]
    roles = ["user", "model", "user", "user"]

    def request(shown):
        contents = [
            {"role": role, "parts": shown(part)} for role, part in zip(roles, parts, strict=True)
        ]
        return {"contents": contents, "systemInstruction": {"parts": shown({"text": "tea " * 9})}}

    for window in (999, 80):
        one, listed = (fitted(request(shown), window) for shown in (dict, lambda part: [part]))
        assert listed.total_tokens == one.total_tokens
        assert [content["parts"][0] for content in listed.request["contents"]] == [
            content["parts"] for content in one.request["contents"]
        ]


@pytest.mark.parametrize("part", [3, None, b"tea", ["tea"], object()])
def test_what_is_no_part_of_gemini(part):
    """Nothing of it would be counted, so it is refused, by the name of its place."""
    answer = {"name": "read", "response": {"output": "tea"}, "parts": [part]}
    contents = [{"role": "user", "parts": [part]}, {"parts": [{"functionResponse": answer}]}]
    for content in contents:
        message = r"^contents\[1\]: a part must be a str or a mapping, not "
        with pytest.raises(InvalidArgumentError, match=message):
            fitted({"contents": ["Tea?", content]})
    for instruction in ([part, "Be brief."], {"parts": [part]}):
        message = r"^request's system_instruction: a part must be"
        with pytest.raises(InvalidArgumentError, match=message):
            fitted({"contents": "Tea?", "system_instruction": instruction})
    message = r"^request's system_instruction\[0\]\['text'\] must be a str, not int"
    with pytest.raises(InvalidArgumentError, match=message):
        fitted({"contents": "Tea?", "system_instruction": {"text": 3}})


@pytest.mark.parametrize("instruction", [3, True, 1.5, b"Be brief."])
def test_instructions_of_gemini_that_are_no_text(instruction):
    """They are refused: they would count as no text."""
    for request in (
        {"contents": "Tea?", "systemInstruction": instruction},
        {"contents": "Tea?", "config": {"system_instruction": instruction}},
    ):
        with pytest.raises(InvalidArgumentError, match=r"^request's system_instruction: a part"):
            fitted(request)


def test_a_section_in_a_part_of_gemini_by_itself():
    """Its chunks stand in the text of the part."""
    section = Section("context", query="tea", chunks=["Green tea is mild."])
    for contents in ([{"text": section}, "Green tea?"], [{"text": section}]):
        made = fitted({"contents": contents}).request["contents"]
        assert [{"text": "Green tea is mild."}, *contents[1:]] == made


def test_a_section_of_gemini_without_room():
    """The empty text that stays beside another one counts nothing: what is sent fits."""
    section = Section("context", query="tea", chunks=["Green tea is mild."])
    contents = [{"role": "user", "parts": [{"text": section}, {"text": "Green tea?"}]}]
    made = fitted({"contents": contents}, 9)
    assert [{"text": ""}, {"text": "Green tea?"}] == made.request["contents"][0]["parts"]
    assert count_messages(made.request["contents"], counter="words") == made.total_tokens


@pytest.mark.parametrize(
    "options",
    [{"top_k": 40}, {"thinking": {"type": "enabled"}}, {"system": None, "stop_sequences": None}],
)
@pytest.mark.parametrize("places", [slice(0, 1), slice(0, 3)])
def test_options_of_openais_relatives(options, places):
    """What servers of open models take beside OpenAI's options does not make it Anthropic's."""
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "tea"},
    ]
    request = {"messages": messages[places], "tools": [TOOL]}
    plain, given = fitted(request), fitted({**request, **options})
    assert "openai_chat" == given.report.provider
    assert plain.total_tokens == given.total_tokens


def test_the_shape_of_the_request_stays():
    """A tuple of messages stays one; a mapping that is no dict becomes one."""
    made = fitted({"messages": TURNS}, 60).request
    assert isinstance(made["messages"], tuple)
    assert QUESTION in made["messages"]
    frozen = MappingProxyType({"messages": TURNS, "n": 1})
    assert {"messages": made["messages"], "n": 1} == fitted(frozen, 60).request


def test_other_instructions_have_no_stable_prefix():
    """A cache finds nothing of a request whose instructions changed."""
    request = {"messages": TURNS, "system": "Be brief."}
    before = fitted(request, 90)
    assert fitted(request, 90, previous=before).report.stable_prefix_tokens > 0
    changed = fitted({**request, "system": "Be long."}, 90, previous=before)
    assert 0 == changed.report.stable_prefix_tokens


def test_a_template_that_never_fits():
    """A template that writes the more the less is left is given up, with the arithmetic."""
    template = "{% for m in messages %}{{ 'pad ' * (4000 // (messages | length)) }}{% endfor %}"
    with pytest.raises(BudgetExhaustedError, match="for instructions and frames"):
        fitted({"messages": TURNS}, 150, template=template)


def test_tools_of_a_template():
    """Tools of an open model count as their JSON, with the most that its template writes."""
    own, other = (tokens("tools", chat(tools=[TOOL], model=name)) for name in ("qwen3", "gpt-4o"))
    assert own > 200 > other


def test_tools_that_all_stay():
    """Where every tool is to be kept, none is left out, however little its section may take."""
    section = Section("tools", [TOOL], select="bm25", query="x", keep=["read"], max_tokens=5)
    made = fitted(chat(tools=section))
    assert [TOOL] == made.request["tools"]
    assert 22 == made.report.sections["tools"].tokens


def test_a_result_of_a_function_in_a_template():
    """A template may write the name and the id of a result."""
    template = (
        "{% for m in messages %}{{ m.name }} {{ m.tool_call_id }} {{ m.content }}{% endfor %}"
    )
    messages = [{"role": "tool", "tool_call_id": "a", "name": "read", "content": "12"}]
    made = fitted({"messages": [call("a"), *messages]}, template=template)
    # What is not there is written as nothing: "  " and "read a 12".
    assert 3 == made.total_tokens


def test_a_cut_that_says_nothing():
    """Where not even a marked JSON fits into a result's room, the marker alone stands for it."""
    messages = [QUESTION, call("a"), result("a", '{"a": "%s", "b": [1, 2]}' % ("tea " * 900))]
    left = set()
    for window in range(60, 200):
        try:
            made = fit_request({"messages": messages}, context_window=window, counter=len)
        except BudgetExhaustedError:
            continue
        assert window >= made.total_tokens
        left.add(made.request["messages"][2]["content"])
    assert "\n[...truncated...]\n" == min(left, key=len)
    assert len(left) > 9


def test_an_image_beside_the_question():
    """What stays of a result answers the texts of the question; its image is no text."""
    image = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    text = {"type": "text", "text": "Where is gyokuro?"}
    question = {"role": "user", "content": [image, text]}
    rows = [{"id": i, "tea": "gyokuro" if i == 213 else f"kind {i * 7}"} for i in range(400)]
    messages = [question, call("a"), result("a", json.dumps(rows))]
    alone = fitted({"messages": [question]}).total_tokens
    made = fitted({"messages": messages}, alone + 300)
    assert "cut" == made.report.changes[0].action
    assert "gyokuro" in made.request["messages"][2]["content"]
    assert question is made.request["messages"][0]


def test_chunks_give_way():
    """A section that was packed for what was free gets less once a larger frame needs room."""
    template = "{% for m in messages %}{{ 'pad ' * 20 }}{{ m.content }}{% endfor %}"
    chunks = ["Green tea is mild.", "Rye bread is sour."]
    section = Section("context", query="tea", chunks=chunks)
    request = {"messages": [{"role": "system", "content": section}, QUESTION]}
    texts = [
        [m["content"] for m in fitted(request, window, template=template).request["messages"]]
        for window in (42, 48, 54)
    ]
    assert [
        ["Green tea?"],
        [chunks[0], "Green tea?"],
        ["\n\n".join(chunks), "Green tea?"],
    ] == texts


def test_calls_of_bedrocks_converse_are_refused():
    """They are not read, so that a result could stay without its call; texts alone are read."""
    question = {"role": "user", "content": [{"text": "Which tea? " * 20}]}
    use = {"toolUse": {"toolUseId": "a", "name": "read", "input": {}}}
    result = {"toolResult": {"toolUseId": "a", "content": [{"text": "green"}]}}
    for number, role, part in ((1, "assistant", use), (2, "user", result)):
        items = [question, question, question]
        items[number] = {"role": role, "content": [{"text": "Yes."}, part]}
        with pytest.raises(InvalidArgumentError, match=rf"^messages\[{number}\] .* Converse"):
            fitted({"messages": items, "system": [{"text": "Be brief."}]})
    assert [QUESTION] == fitted({"messages": [question, QUESTION]}, 20).request["messages"]


TOOLS = [{**TOOL, "function": {**TOOL["function"], "name": f"read_{i}"}} for i in range(3)]


@pytest.mark.parametrize(
    ("choice", "tool"),
    [
        ({"type": "function", "function": {"name": "read_2"}}, TOOLS[2]),
        ({"type": "function", "name": "read_2"}, {"type": "function", **TOOLS[2]["function"]}),
        ({"type": "tool", "name": "read_2"}, {"name": "read_2", "input_schema": {}}),
        ({"type": "custom", "custom": {"name": "a"}}, {"type": "custom", "custom": {"name": "a"}}),
        ({"type": "web_search"}, {"type": "web_search"}),
    ],
)
def test_a_tool_that_must_be_called_stays(choice, tool):
    """Providers refuse a choice that names none of the tools."""
    tools = [TOOLS[0], TOOLS[1], tool]
    section = Section("tools", tools, select="bm25", query="read_0 read_0", max_tokens=1)
    made = fitted(chat(tools=section, tool_choice=choice), 5_000).request
    assert tool in made["tools"]
    assert choice == made["tool_choice"]


@pytest.mark.parametrize("make", [lambda one: {"custom": one}, lambda one: one])
def test_a_custom_tool_costs_what_it_shows(make):
    """The caller runs it: it is none of those that a provider has a price for."""
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a+/"}}
    one = {"name": "run", "description": "Run it.", "format": grammar}
    tool = {"type": "custom", **make(one)}
    made = fitted(chat(tools=[tool], messages=[QUESTION]), 900)
    assert 0 < made.report.sections["tools"].tokens < 2 * count_tools([tool])
    section = Section("tools", [tool, *TOOLS], select="bm25", query="read", keep=["run"])
    assert tool in fitted(chat(tools=section), 5_000).request["tools"]


@pytest.mark.parametrize(("tools", "window"), [([], 50), (TOOLS, 9)])
def test_no_tools_are_left(tools, window):
    """Providers refuse an empty list of tools, and a choice among none."""
    section = Section("tools", tools, select="bm25", query="tea")
    request = chat(tools=section, tool_choice="auto", parallel_tool_calls=False)
    made = fitted(request, window)
    assert chat() == made.request
    assert fitted(made.request, window).total_tokens == made.total_tokens
    assert len(tools) == len(made.report.changes)


@pytest.mark.parametrize("tools", [TOOLS, Section("tools", TOOLS, select="bm25", query="tea")])
def test_a_system_message_of_chunks_that_leaves(tools):
    """Tools take less beside a system message, so what they take is counted anew without it."""
    section = Section("context", query="tea", chunks=["Rye bread is dark. " * 9, "Green tea."])
    request = chat(tools=tools, messages=[{"role": "system", "content": section}, QUESTION])
    seen = set()
    for window in range(40, 120):
        try:
            made = fit_request(request, context_window=window, counter="o200k_base")
        except BudgetExhaustedError:
            continue
        again = fit_request(made.request, context_window=window, counter="o200k_base")
        assert again.request is made.request
        assert again.total_tokens == made.total_tokens <= window
        seen.add((len(made.request["messages"]), len(made.request["tools"])))
    assert {(1, 3), (2, 3)} <= seen


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (Section("a", query="tea", chunks=["Tea."], priority=1), "not priority, which is for"),
        (Section("a", query="tea", chunks=["Tea."], shrink=0), "not shrink, which is for a La"),
        (Section("a", query="tea", chunks=["Tea."], role="system"), "not role, which is for a"),
        (Section("a", fill=lambda room: "tea"), "not fill, which is for a Layout"),
        (Section("a", "Tea."), "not content, which is for a Layout"),
        (Section("a"), "messages[0] must be a section with query, chunks, packer, min_tokens"),
    ],
)
def test_sections_of_a_layout(section, message):
    """A request takes sections with chunks, and no option that it does not heed."""
    with pytest.raises(InvalidArgumentError) as caught:
        fitted(chat(messages=[{"role": "user", "content": section}, QUESTION]))
    assert message in str(caught.value)


def test_two_sections_in_a_message():
    """The second would have no place."""
    parts = [
        {"type": "text", "text": Section(name, query="tea", chunks=["Tea."])} for name in "ab"
    ]
    with pytest.raises(InvalidArgumentError, match=r"^messages\[0\] must have one section"):
        fitted(chat(messages=[{"role": "user", "content": parts}, QUESTION]))


def test_a_section_of_tools_has_no_weights():
    """It is as large as what must stay leaves room for."""
    tools = Section("tools", TOOLS, select="bm25", query="tea", grow=2)
    with pytest.raises(InvalidArgumentError, match="not grow, which is for a Layout"):
        fitted(chat(tools=tools))


CONTENT = {"role": "user", "parts": [{"text": "Green tea?"}]}
READ_ONCE = {
    "messages": ("messages", {"messages": [*TURNS]}),
    "tools": ("tools", chat(tools=[TOOL])),
    "input": ("input", {"input": [*TURNS]}),
    "system": ("system", chat(system=[{"type": "text", "text": "Be brief."}])),
    "contents": ("contents", {"contents": [CONTENT]}),
    "system_instruction": (
        "system_instruction",
        {"contents": [CONTENT], "system_instruction": ["Be brief."]},
    ),
}


@pytest.mark.parametrize("kind", [iter, lambda items: (item for item in items)])
@pytest.mark.parametrize("name", READ_ONCE)
@pytest.mark.parametrize("window", [60, 10**4])
def test_what_can_be_read_once(name, kind, window):
    """An iterator is read once: the result has a list of what it gave, and counts as the list."""
    key, request = READ_ONCE[name]
    given = {**request, key: kind(request[key])}
    whole, made = fitted(request, window), fitted(given, window)
    assert whole.request == made.request
    assert made.request is not given
    assert whole.report.to_dict() == made.report.to_dict()


def test_tools_of_a_config_that_can_be_read_once():
    """The tools in a configuration of Gemini's are read once as well, in a copy of it."""
    tool = {"functionDeclarations": [{"name": "read"}]}
    config = {"tools": iter([tool])}
    given = {"contents": "Hi", "config": config}
    made = fitted(given)
    assert {"contents": "Hi", "config": {"tools": [tool]}} == made.request
    assert given["config"] is config


def test_other_collections():
    """A collection that is neither a list nor a tuple becomes a list, which goes on later."""
    first = fitted({"messages": deque(TURNS)})
    assert [*TURNS] == first.request["messages"]
    more = [*TURNS, {"role": "assistant", "content": "Yes."}]
    assert more == fitted({"messages": deque(more)}, previous=first).request["messages"]
    with pytest.raises(InvalidArgumentError, match=r"request\['messages'\] must be a sequence"):
        fitted({"messages": {1, 2}})


def test_references_in_the_tools_of_gemini():
    """A definition counts wherever it is referred to, as clients write it for Gemini."""
    money = {"type": "object", "properties": {"amount": {"description": "How much it is"}}}
    names = ("price", "discount", "tax", "refund")

    def tool(value, **more):
        schema = {"type": "object", "properties": dict.fromkeys(names, value), **more}
        return {"type": "function", "function": {"name": "pay", "parameters": schema}}

    def tokens(tool, model="gemini-2.5-pro"):
        request = {"model": model, "messages": [QUESTION], "tools": [tool]}
        return fit_request(request, counter="words").report.sections["tools"].tokens

    def to(name):
        return {"$ref": f"#/$defs/{name}"}

    short = tool(to("Money"), **{"$defs": {"Money": money}})
    assert tokens(tool(money)) == tokens(short)
    # One that is larger than what it stands for, unknown, or within itself is no error.
    lone = tool(to("Money"), **{"$defs": {"Money": {}, "Rest": money}})
    assert tokens(lone) >= tokens(tool({}))
    assert tokens(tool(to("Other"))) == tokens(tool(to("Money")))
    tree = {"type": "object", "properties": {"left": to("Tree"), "right": to("Tree")}}
    assert tokens(tool(to("Tree"), **{"$defs": {"Tree": tree}})) > tokens(tool(tree)) / 2
    many = {f"D{i}": {"allOf": [to(f"D{i + 1}")] * 9} for i in range(60)}
    assert tokens(tool(to("D0"), **{"$defs": many})) > 0
    chain = {f"D{i}": {"items": to(f"D{i + 1}")} for i in range(900)}
    assert tokens(tool(to("D0"), **{"$defs": chain})) > 0


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "claude-3-sonnet-20240229"])
def test_tools_of_a_model_beside_the_request(model):
    """Tools count by the model that the caller names, as they do by that of the request."""
    schema = {"type": "object", "properties": {"kind": {"type": "string", "enum": ["green"]}}}
    tool = {"name": "brew", "input_schema": schema}
    if "gemini" in model:
        tool = {"type": "function", "function": {"name": "brew", "parameters": schema}}
    request = {"messages": [QUESTION], "tools": [tool]}
    named = fit_request({**request, "model": model}).report.sections["tools"]

    assert named == fit_request(request, model=model).report.sections["tools"]
    assert (
        named == fit_request({**request, "model": "house"}, model=model).report.sections["tools"]
    )
