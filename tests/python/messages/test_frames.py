"""What chat templates write around messages: counted by family, by everything that counts them."""

import json
import re
from random import Random

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from budgeteer import (
    BudgetExhaustedError,
    Layout,
    Section,
    fit_request,
    get_counter,
)
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService
from budgeteer.window import ModelLimits, count_messages, negotiate, trim_messages

CHATML = (
    "{% for m in messages %}"
    "{% if m.role == 'tool' %}"
    "{% if loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls %}"
    '\n<tool_call>\n{"name": "{{ c.name }}", "arguments": {{ c.arguments }}}\n</tool_call>'
    "{% endfor %}<|im_end|>\n{% endif %}"
    "{% endfor %}<|im_start|>assistant\n"
)
TEMPLATES = {
    "qwen2.5-72b-instruct": (
        "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are Qwen, created by "
        "Alibaba Cloud. You are a helpful assistant.<|im_end|>\n{% endif %}" + CHATML
    ),
    "qwen3-8b": CHATML,
    "meta-llama/Llama-3.3-70B-Instruct": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
        "{% if messages[0].role == 'system' %}{{ messages[0].content | trim }}{% endif %}"
        "<|eot_id|>"
        "{% for m in (messages[1:] if messages[0].role == 'system' else messages) %}"
        "{% if m.tool_calls %}<|start_header_id|>assistant<|end_header_id|>\n\n"
        "{% for c in m.tool_calls %}"
        '{"name": "{{ c.name }}", "parameters": {{ c.arguments }}}'
        "{% endfor %}<|eot_id|>"
        "{% elif m.role == 'tool' %}<|start_header_id|>ipython<|end_header_id|>\n\n"
        '"{{ m.content }}"<|eot_id|>'
        "{% else %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}"
        "<|eot_id|>{% endif %}{% endfor %}<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "gemma-3-27b-it": (
        "<bos>{% for m in messages if m.role != 'system' %}<start_of_turn>"
        "{{ 'model' if m.role == 'assistant' else 'user' }}\n"
        "{% if loop.first and messages[0].role == 'system' %}{{ messages[0].content }}\n\n"
        "{% endif %}{{ m.content | trim }}<end_of_turn>\n{% endfor %}<start_of_turn>model\n"
    ),
    "gemma-4-31b-it": (
        "<bos>{% for m in messages %}{% if m.role == 'tool' %}"
        '<|tool_response>response:{{ m.of }}{value:<|"|>{{ m.content }}<|"|>}<tool_response|>'
        "{% else %}<|turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
        "{{ m.content | trim }}{% for c in m.tool_calls %}"
        "<|tool_call>call:{{ c.name }}{{ c.arguments }}<tool_call|>{% endfor %}"
        "<turn|>\n{% endif %}{% endfor %}<|turn>model\n"
    ),
    "mistral-large-2411": (
        "<s>{% for m in messages %}"
        "{% if m.role == 'system' %}[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]"
        "{% elif m.role == 'user' %}[INST]{{ m.content }}[/INST]"
        "{% elif m.role == 'tool' %}"
        "[TOOL_RESULTS]{{ m.tool_call_id }}[TOOL_CONTENT]{{ m.content }}[/TOOL_RESULTS]"
        "{% elif m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}"
        '{"name": "{{ c.name }}", "arguments": {{ c.arguments }}, "id": "{{ c.id }}"}'
        "{% if not loop.last %}, {% endif %}{% endfor %}]</s>"
        "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
    ),
    "mixtral-8x7b-instruct": (
        "<s>{% for m in messages if m.role != 'system' %}"
        "{% if m.role == 'user' %} [INST] "
        "{% if loop.first and messages[0].role == 'system' %}{{ messages[0].content }}\n\n"
        "{% endif %}{{ m.content }} [/INST]"
        "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
    ),
    "deepseek-chat": (
        "<|begin_of_sentence|>{% for m in messages %}"
        "{% if m.role == 'system' %}{{ m.content }}"
        "{% elif m.role == 'user' %}<|User|>{{ m.content }}"
        "{% elif m.role == 'tool' %}"
        "{% if loop.previtem.role != 'tool' %}<|tool_outputs_begin|>{% endif %}"
        "<|tool_output_begin|>{{ m.content }}<|tool_output_end|>"
        "{% if loop.last or loop.nextitem.role != 'tool' %}<|tool_outputs_end|>{% endif %}"
        "{% elif m.tool_calls %}<|Assistant|>{{ m.content }}<|tool_calls_begin|>"
        "{% for c in m.tool_calls %}<|tool_call_begin|>function<|tool_sep|>{{ c.name }}"
        "\n```json\n{{ c.arguments }}\n```<|tool_call_end|>"
        "{% if not loop.last %}\n{% endif %}{% endfor %}"
        "<|tool_calls_end|><|end_of_sentence|>"
        "{% else %}<|Assistant|>{{ m.content }}<|end_of_sentence|>{% endif %}"
        "{% endfor %}<|Assistant|><think>\n"
    ),
    "gpt-oss-120b": (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: medium\n\n# Valid "
        "channels: analysis, commentary, final. Channel must be included for every message."
        "<|end|>"
        "{% for m in messages %}"
        "{% if m.role == 'system' %}<|start|>developer<|message|># Instructions\n\n{{ m.content }}"
        "<|end|>"
        "{% elif m.role == 'tool' %}<|start|>functions.{{ m.of }} to=assistant<|channel|>"
        "commentary<|message|>{{ m.content }}<|end|>"
        "{% elif m.tool_calls %}{% for c in m.tool_calls %}"
        "<|start|>assistant to=functions.{{ c.name }}<|channel|>commentary json<|message|>"
        "{{ c.arguments }}<|call|>{% endfor %}"
        "{% elif m.role == 'assistant' %}"
        "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>"
        "{% else %}<|start|>user<|message|>{{ m.content }}<|end|>{% endif %}"
        "{% endfor %}<|start|>assistant"
    ),
}
"""What the templates of the families write for texts and tool calls, without tools declared."""

ONCE = {
    "meta-llama/Llama-3.3-70B-Instruct": (0, 5),
    "gemma-4-31b-it": (0, 0),
    "qwen2.5-72b-instruct": (0, "system"),
    "qwen3-8b": (4, 4),
}
"""
How much more is counted, without and with a system message, in conversations of any length.

Llama's header of the system message is written once. A system message stands in the place of the
one that Qwen2.5 has of its own. Qwen3 writes an empty thought before the reply only if it is not
to think.
"""
SLACK = {
    "gemma-3-27b-it": (0, 5),  # it joins the system message to the first other one
    "mistral-large-2411": (2, 0),
    "mixtral-8x7b-instruct": (8, 0),
    "deepseek-chat": (3, 2),
    "gpt-oss-120b": (2, 30),
}
"""How much more is counted at most, for each message and once, by the other families."""

SPECIAL = re.compile(
    r"<\|[A-Za-z_]+\|?>|<[a-z_]+\|>|</?(?:bos|s|start_of_turn|end_of_turn|think)>|"
    r'</?tool_(?:call|response)>|\[/?(?:SYSTEM_PROMPT|TOOL_RESULTS)\]|\[TOOL_[A-Z]+\]|<\|"\|>'
)
INST = re.compile(r"\[/?INST\]")
WORDS = [
    "tea",
    "The",
    "leaf",
    "grün",
    "茶",
    "🇳🇴",
    "12345",
    "a_b()",
    "{x}",
    ".",
    "one\ntwo",
    "\n\n",
]


def said(random):
    """Return words of a message."""
    return " ".join(random.choices(WORDS, k=random.randrange(1, 15))).strip() or "x"


def conversation(random, *, tools):
    """Return messages, of which some call tools and others have the results."""
    messages = [{"role": "system", "content": said(random)}] if random.random() < 0.5 else []
    for turn in range(random.randrange(6)):
        messages.append({"role": "user", "content": said(random)})
        for step in range(random.randrange(3) if tools else 0):
            name = random.choice(["now", "search", "get_weather_forecast"])
            given = {key: said(random) for key in random.sample(["q", "city", "path"], step)}
            call = {"name": name, "arguments": json.dumps(given, ensure_ascii=False)}
            key = f"{turn}{step}abcdefg"
            calls = [{"id": key, "type": "function", "function": call}]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": key, "content": said(random)})
        messages.append({"role": "assistant", "content": said(random)})
    return [*messages, {"role": "user", "content": said(random)}]


def rendered(model, messages, count):
    """Return the tokens of the text that the template of a family renders."""
    names, seen = {}, []
    for message in messages:
        calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]
        names.update({call["id"]: call["name"] for call in calls})
        seen.append({**message, "tool_calls": calls, "of": names.get(message.get("tool_call_id"))})
    template = ImmutableSandboxedEnvironment(keep_trailing_newline=True).from_string(
        TEMPLATES[model]
    )
    text = template.render(messages=seen)
    if "mixtral" not in model:  # its first tokenizer writes them as a text
        text = INST.sub("<|inst|>", text)
    special = SPECIAL.findall(text)
    return len(special) + sum(count(part) for part in SPECIAL.split(text) if part)


COUNTERS = ("o200k_base", "qwen3-8b", "gemma4")


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("model", TEMPLATES)
def test_texts_cost_what_the_template_renders(model, counter):
    """A conversation costs what its template writes: exactly, up to what is said here."""
    count = get_counter(counter).count
    own = "system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    for seed in range(30):
        messages = conversation(Random(seed), tools=False)
        tokens = rendered(model, messages, count)
        over = count_messages(messages, counter=counter, model=model) - tokens
        if model in ONCE:
            once = ONCE[model][messages[0]["role"] == "system"]
            assert over == (3 + count(own) if once == "system" else once)
        else:
            each, once = SLACK[model]
            assert 0 <= over <= each * len(messages) + once


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("model", [m for m in TEMPLATES if m[:7] not in ("gemma-3", "mixtral")])
def test_calls_cost_at_least_what_the_template_renders(model, counter):
    """Tool calls and their results never cost less than what their template writes."""
    count = get_counter(counter).count
    for seed in range(30):
        messages = conversation(Random(seed), tools=True)
        calls = sum("tool_calls" in message for message in messages)
        tokens = rendered(model, messages, count)
        counted = count_messages(messages, counter=counter, model=model)
        assert tokens <= counted <= tokens + 40 * calls + 8 * len(messages) + 40


def limits(model):
    """Return limits of that name, with room enough."""
    return ModelLimits(model, 10**6, 10**6, None, "o200k_base", None, None, True, "here")


MODELS = [*TEMPLATES, "gpt-4o", "gpt-3.5-turbo-0301", "claude-opus-4-8", "gemini-2.5-pro", "acme"]


@pytest.mark.parametrize("model", MODELS)
def test_one_answer_for_one_question(model):
    """Whatever counts messages for a model counts what `count_messages` does."""
    for seed in range(6):
        messages = conversation(Random(seed), tools=True)
        tokens = count_messages(messages, counter="o200k_base", model=model)
        request = {"model": model, "messages": messages}
        made = fit_request(request, context_window=10**6, counter="o200k_base")
        assert tokens == made.total_tokens
        section = Section("history", messages)
        for layout in (
            Layout(10**6, [section], counter="o200k_base", model=model),
            Layout(limits(model), [section], counter="o200k_base"),
        ):
            allocation = layout.fit()
            assert (tokens, messages) == (allocation.total_tokens, allocation.messages)
        found = negotiate(
            model=limits(model),
            messages=messages,
            system_tokens=0,
            counter="o200k_base",
            max_output_tokens=9,
        )
        assert tokens == found.input_token_count
        options = {"counter": "o200k_base", "model": model}
        assert messages == trim_messages(messages, tokens, **options)
        assert tokens == trim_messages(messages, tokens, **options).total_tokens
        for limit in range(tokens - 1, 0, -37):
            try:
                left = trim_messages(messages, limit, **options)
            except BudgetExhaustedError:
                break
            assert count_messages(left, **options) == left.total_tokens <= limit
            window = Layout(limit, [section], **options).fit()
            assert count_messages(window.messages, **options) == window.total_tokens <= limit


def test_the_rule_of_openai_stays():
    """OpenAI's models, Claude, Gemini and names nobody knows count by the rule of OpenAI."""
    messages = conversation(Random(3), tools=True)
    tokens = count_messages(messages, counter="o200k_base")
    for model in ("gpt-4o", "o3-mini", "claude-opus-4-8", "gemini-2.5-pro", "acme-7b", "grok-4"):
        assert tokens == count_messages(messages, counter="o200k_base", model=model)
    named = [{**message, "name": "Ada"} for message in messages]
    words = {"counter": "words", "model": "gpt-3.5-turbo-0301"}
    assert count_messages(messages, **words) == count_messages(named, **words)
    assert count_messages(messages, **words) - count_messages(messages, counter="words") == len(
        messages
    )


def test_opus_4_7_has_a_larger_frame():
    """A request of one text costs what was measured beside it: 11 tokens."""
    request = [{"role": "user", "content": "What is tea?"}]
    text = get_counter("claude4.7").count("What is tea?")
    for name in ("claude-opus-4-7", "anthropic/claude-opus-4.7"):
        assert text + 11 == count_messages(request, model=name)


def test_a_message_more_costs_one_message():
    """What stands around all messages is counted once; no messages cost nothing."""
    one = {"role": "user", "content": "What is tea?"}
    for model in MODELS:
        counts = [count_messages([one] * i, counter="o200k_base", model=model) for i in range(4)]
        assert 0 == counts[0]
        assert counts[3] - counts[2] == counts[2] - counts[1] < counts[1]


def test_is_exact():
    """A count is exact by the rule of OpenAI; a template may write less, and a name be unknown."""
    hello = [{"role": "user", "content": "Hello"}]
    for model in MODELS:
        is_exact = model not in TEMPLATES and model != "acme"
        counted = count_messages(hello, counter="o200k_base", model=model)
        assert (is_exact, True) == (
            counted.is_exact,
            count_messages([], counter="o200k_base", model=model).is_exact,
        )
        layout = Layout(999, [Section("query", "Hello")], counter="o200k_base", model=model)
        assert is_exact == layout.fit().is_exact


@pytest.mark.parametrize(
    ("model", "named"),
    [("llama-3.3-70b", "the start and the reply"), ("gpt-4o", "the reply")],
)
def test_errors_have_the_frame(model, named):
    """What does not fit is refused with figures that add up, the frame among them."""
    messages = [
        {"role": "system", "content": "Be brief. " * 9},
        {"role": "user", "content": "What is tea? " * 30},
    ]
    options = {"counter": "o200k_base", "model": model}
    for kept, limit in ((messages[:1], 20), (messages, 100)):
        least = count_messages(kept, **options)
        with pytest.raises(BudgetExhaustedError) as caught:
            trim_messages(messages, limit, **options)
        shown = str(caught.value)
        figures = [int(number) for number in re.findall(r"(\d+) for", shown)]
        assert f"{figures[-1]} for {named} = -{least - limit}" in shown
        assert least == sum(figures)
        assert figures[-1] == count_messages(messages[:1], **options) - (
            count_messages(messages[:1] * 2, **options) - count_messages(messages[:1], **options)
        )


def test_a_service_counts_the_frame():
    """The window of a service holds the frame of its model's family beside prompt and answer."""
    chunks = [f"Tea number {i} is green." for i in range(200)]
    settings = LlmSettings("llama-3.3-70b", context_window=600, max_output_tokens=100)
    result = RetrievalService(ChunkRetriever(chunks), settings, limit=200).retrieve("Which tea?")
    tokens = count_messages(result.messages, model="llama-3.3-70b")
    plain = count_messages(result.messages, counter=get_counter("llama-3.3-70b"))
    assert plain + 20 < tokens == result.tokens.input <= 500
