"""A chat template of Jinja: what it renders is what is counted, and it fits."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment
from request_support import PROVIDERS, TURNS, VALIDATORS, conversation

from budgeteer import (
    BudgetExhaustedError,
    CounterError,
    InvalidArgumentError,
    fit_request,
    get_counter,
)

CHATML = (
    "{% if tools %}<|im_start|>system\nTools: {{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<call>{{ call.function.name }} "
    "{{ call.function.arguments | tojson }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
UNEVEN = (  # each message is written longer the fewer there are
    "{% for message in messages %}{{ message.role }} {{ 'pad ' * (40 // loop.length) }}"
    "{{ message.content }}\n{% endfor %}"
)


def chat(provider, request):
    """Return a request as messages of OpenAI's chat, with texts alone."""
    if provider == "openai_chat":
        return [*map(flat_chat, request["messages"])]
    system = {"role": "system", "content": request.get("instructions", request.get("system"))}
    if provider == "gemini":
        system["content"] = request["config"]["system_instruction"]
    return [system, *(made for item in request[KEYS[provider]] for made in FLAT[provider](item))]


KEYS = {"openai_responses": "input", "anthropic": "messages", "gemini": "contents"}


def call(name, arguments):
    return {"function": {"name": name, "arguments": arguments}}


def flat_chat(item):
    calls = [
        call(made["function"]["name"], json.loads(made["function"]["arguments"]))
        for made in item.get("tool_calls", ())
    ]
    return {**item, "content": item["content"] or "", "tool_calls": calls}


def flat_responses(item):
    kind = item.get("type")
    if kind == "reasoning":
        return [{"role": "assistant", "content": ""}]
    if kind == "function_call":
        calls = [call(item["name"], json.loads(item["arguments"]))]
        return [{"role": "assistant", "content": "", "tool_calls": calls}]
    if kind == "function_call_output":
        return [{"role": "tool", "content": item["output"]}]
    return [{"role": item["role"], "content": item["content"][0]["text"]}]


def flat_anthropic(item):
    if isinstance(item["content"], str):
        return [item]
    kinds = [part["type"] for part in item["content"]]
    if kinds[0] == "tool_result":
        return [{"role": "tool", "content": part["content"]} for part in item["content"]]
    calls = [call(part["name"], part["input"]) for part in item["content"] if "input" in part]
    first = item["content"][0]
    return [{"role": item["role"], "content": first[first["type"]], "tool_calls": calls}]


def flat_gemini(item):
    role = "assistant" if item["role"] == "model" else "user"
    if "function_response" in item["parts"][0]:
        return [
            {"role": "tool", "content": part["function_response"]["response"]["output"]}
            for part in item["parts"]
        ]
    if "function_call" in item["parts"][0]:
        calls = [
            call(p["function_call"]["name"], p["function_call"]["args"]) for p in item["parts"]
        ]
        return [{"role": role, "content": "", "tool_calls": calls}]
    return [{"role": role, "content": item["parts"][0]["text"]}]


FLAT = {
    "openai_responses": flat_responses,
    "anthropic": flat_anthropic,
    "gemini": flat_gemini,
}


def rendered(template, provider, request):
    """Render by jinja2 alone, without tools."""
    world = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
    world.filters["tojson"] = json.dumps
    messages = chat(provider, request)
    return world.from_string(template).render(messages=messages, add_generation_prompt=True)


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=15, deadline=None)
@given(
    turns=TURNS, share=st.floats(0.1, 1.1), template=st.sampled_from([CHATML, UNEVEN]),
    name=st.sampled_from(["o200k_base", "words"]),
)  # fmt: skip
def test_what_is_rendered_fits(provider, turns, share, template, name):
    """The rendered text counts the total, which is at most the limit; twice changes nothing."""
    counter = get_counter(name)
    request = {
        key: value for key, value in conversation(provider, turns).items() if key != "tools"
    }
    if provider == "gemini":
        request["config"] = {"system_instruction": "Be brief."}
    window = int(counter.count(rendered(template, provider, request)) * share)
    options = {"context_window": window, "counter": counter, "template": template}
    try:
        fitted = fit_request(request, **options)
    except BudgetExhaustedError:
        assert share < 1
        return
    text = rendered(template, provider, fitted.request)
    assert counter.count(text) == fitted.total_tokens <= window
    sections = fitted.report.sections.values()
    assert fitted.total_tokens == sum(section.tokens for section in sections)
    VALIDATORS[provider](fitted.request)
    again = fit_request(fitted.request, **options)
    assert again.request is fitted.request
    assert again.total_tokens == fitted.total_tokens


def test_what_left_before_is_not_rendered():
    """After a previous request it fits where it does without, with the same figures before."""
    template = "{% for m in messages %}{{ m.role }} {{ m.content }} end {% endfor %}"
    messages = [
        {"role": role, "content": "tea " * 20} for _ in range(9) for role in ("user", "assistant")
    ]
    options = {"context_window": 100, "counter": "words", "template": template}
    first = fit_request({"messages": messages[:-1]}, **options)
    alone = fit_request({"messages": messages}, **options)

    again = fit_request({"messages": messages}, **options, previous=first)

    assert again.total_tokens <= 100
    before = [
        sum(section.tokens_before for section in fitted.report.sections.values())
        for fitted in (alone, again)
    ]
    assert [18 * 22] * 2 == before


@pytest.mark.parametrize("turns", [20, 60, 200])
@pytest.mark.parametrize("template", [CHATML, UNEVEN])
def test_frames_leave_with_their_messages(template, turns):
    """However long a history is, as much of it stays as there is room for."""
    roles = ("user", "assistant")
    messages = [{"role": role, "content": "tea " * 4} for _ in range(turns) for role in roles]
    messages.append({"role": "user", "content": "tea"})
    options = {"context_window": 150, "counter": "words", "template": template}
    fitted = fit_request({"messages": messages}, **options)
    assert 90 < fitted.total_tokens <= 150
    assert fitted.request["messages"] == messages[-len(fitted.request["messages"]) :]
    longer = fit_request({"messages": [*messages[:2], *messages]}, **options)
    assert len(longer.request["messages"]) == len(fitted.request["messages"])


def test_tools_are_rendered():
    """Tools cost what they add to the rendered text, and the figures are called bounds."""
    request = conversation("openai_chat", [("Go.", [], False)])
    made = fit_request(request, context_window=999, counter="words", template=CHATML)
    tools = made.report.sections["tools"]
    text = json.dumps(request["tools"])
    assert (
        get_counter("words").count(f"<|im_start|>system\nTools: {text}<|im_end|>") == tools.tokens
    )
    assert ("bound", "bound") == (tools.basis, made.report.sections["history"].basis)
    assert "the given chat template" in tools.source


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% if %}", "template is not valid: "),
        ("{{ raise_exception('Roles must alternate') }}", "refuses the request: Roles must alter"),
        ("{{ messages[9].content.x.y }}", "template refuses the request: "),
        ("{{ 1 + 'a' }}", "template cannot render the request: TypeError"),
        ("{{ ().__class__.__bases__ }}", "template refuses the request: "),
        (3, "template must be a str, not int"),
    ],
)
def test_refused(template, message):
    """A template that is not valid, refuses the request or reaches out is an error."""
    request = conversation("openai_chat", [("Go.", [], False)])
    with pytest.raises(InvalidArgumentError) as caught:
        fit_request(request, context_window=999, template=template)
    assert message in str(caught.value)


def test_without_jinja(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(CounterError) as caught:
        fit_request({"messages": []}, context_window=999, template="")
    assert str(caught.value) == "template needs jinja2: pip install 'budgeteer[templates]'"
