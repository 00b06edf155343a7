"""What the tests of requests share: conversations in every provider's shape, and their rules."""

import json

from hypothesis import strategies as st

from budgeteer.window import count_tools

PROVIDERS = ("openai_chat", "openai_responses", "anthropic", "gemini")

TOOL = {
    "name": "read",
    "description": "Read a file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}

WORDS = ("tea", "Tee", "茶", "\ud800", "e\u0301", "<|endoftext|>", '{"a": 1}', "\x00", " \n ")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
RESULTS = st.one_of(TEXTS, st.builds(lambda text, n: text * n, TEXTS, st.integers(1, 40)))
ROUNDS = st.lists(st.lists(RESULTS, min_size=1, max_size=3), max_size=4)
TURNS = st.lists(st.tuples(TEXTS, ROUNDS, st.booleans()), min_size=1, max_size=6)


def conversation(provider, turns, system="Be brief."):
    """Return a request with these turns: a question, rounds of results, and maybe an answer."""
    make = MAKERS[provider]
    items, number = [], 0
    for question, rounds, is_answered in turns:
        items += make("question", question)
        for results in rounds:
            ids = [f"call_{number + i}" for i in range(len(results))]
            number += len(ids)
            items += make("round", (ids, results))
        if is_answered:
            items += make("answer", "Yes.")
    return FRAMES[provider](items, system)


def chat_items(kind, value):
    if kind == "question":
        return [{"role": "user", "content": value}]
    if kind == "answer":
        return [{"role": "assistant", "content": value}]
    calls = [
        {"id": key, "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
        for key in value[0]
    ]
    results = [
        {"role": "tool", "tool_call_id": key, "content": text}
        for key, text in zip(*value, strict=True)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def responses_items(kind, value):
    if kind == "question":
        return [{"role": "user", "content": [{"type": "input_text", "text": value}]}]
    if kind == "answer":
        part = {"type": "output_text", "text": value, "annotations": []}
        return [{"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    calls = [
        {"type": "function_call", "call_id": key, "name": "read", "arguments": '{"path": "a"}'}
        for key in value[0]
    ]
    outputs = [
        {"type": "function_call_output", "call_id": key, "output": text}
        for key, text in zip(*value, strict=True)
    ]
    return [thought, *calls, *outputs]


def anthropic_items(kind, value):
    if kind == "question":
        return [{"role": "user", "content": value}]
    if kind == "answer":
        return [{"role": "assistant", "content": [{"type": "text", "text": value}]}]
    uses = [
        {"type": "tool_use", "id": key, "name": "read", "input": {"path": "a"}} for key in value[0]
    ]
    results = [
        {"type": "tool_result", "tool_use_id": key, "content": text}
        for key, text in zip(*value, strict=True)
    ]
    thought = {"type": "thinking", "thinking": "So.", "signature": "abc"}
    return [
        {"role": "assistant", "content": [thought, *uses]},
        {"role": "user", "content": results},
    ]


def gemini_items(kind, value):
    if kind == "question":
        return [{"role": "user", "parts": [{"text": value}]}]
    if kind == "answer":
        return [{"role": "model", "parts": [{"text": value}]}]
    calls = [{"function_call": {"name": "read", "args": {"path": "a"}}} for _ in value[0]]
    answers = [
        {"function_response": {"name": "read", "response": {"output": text}}} for text in value[1]
    ]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]


MAKERS = {
    "openai_chat": chat_items,
    "openai_responses": responses_items,
    "anthropic": anthropic_items,
    "gemini": gemini_items,
}
FRAMES = {
    "openai_chat": lambda items, system: {
        "messages": [{"role": "system", "content": system}, *items],
        "tools": [{"type": "function", "function": TOOL}],
    },
    "openai_responses": lambda items, system: {
        "instructions": system,
        "input": items,
        "tools": [{"type": "function", **TOOL}],
    },
    "anthropic": lambda items, system: {
        "system": system,
        "messages": items,
        "tools": [
            {"name": "read", "description": "Read a file", "input_schema": TOOL["parameters"]}
        ],
    },
    "gemini": lambda items, system: {
        "contents": items,
        "config": {"system_instruction": system, "tools": [{"function_declarations": [TOOL]}]},
    },
}
KEYS = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}


def recount(provider, request, count):
    """Return the tokens of a request of `conversation`, from the rules alone."""
    total, items = 3, request[KEYS[provider]]
    for item in items:
        role, texts = RECOUNTS[provider](item)
        total += 3 + count(role) + sum(map(count, texts))
    if provider == "openai_chat":
        tools = [TOOL]
        return total + count_tools(tools, counter=count, has_system_message=True)
    system = request.get("instructions", request.get("system"))
    system = request["config"]["system_instruction"] if system is None else system
    total += 3 + count("system") + count(system)
    if provider == "openai_responses":
        return total + count_tools([TOOL], counter=count, has_system_message=True)
    tools = request.get("tools") or request["config"]["tools"][0]["function_declarations"]
    total += count("".join(f"<function>{json.dumps(tool)}</function>\n" for tool in tools))
    return total + (346 if provider == "anthropic" else 0)


def chat_texts(item):
    texts = [item["content"] or ""]
    for call in item.get("tool_calls", ()):
        texts += [call["id"], call["type"], *call["function"].values()]
    return item["role"], [*texts, item.get("tool_call_id", "")]


def responses_texts(item):
    if item.get("type") == "reasoning":
        return "assistant", [item["encrypted_content"]]
    if item.get("type") == "function_call":
        return "assistant", [item["call_id"], "function", item["name"], item["arguments"]]
    if item.get("type") == "function_call_output":
        return "tool", [item["call_id"], item["output"]]
    return item["role"], [part["text"] for part in item["content"]]


def anthropic_texts(item):
    if isinstance(item["content"], str):
        return item["role"], [item["content"]]
    texts = []
    for part in item["content"]:
        if part["type"] == "tool_use":
            texts += [part["id"], part["name"], json.dumps(part["input"])]
        elif part["type"] == "tool_result":
            texts += [part["tool_use_id"], part["content"]]
        else:
            texts.append(part[part["type"]])
    return item["role"], texts


def gemini_texts(item):
    texts = []
    for part in item["parts"]:
        call, answer = part.get("function_call"), part.get("function_response")
        if call:
            texts += [call["name"], json.dumps(call["args"])]
        elif answer:
            texts.append(answer["response"]["output"])
        else:
            texts.append(part["text"])
    return "assistant" if item["role"] == "model" else item["role"], texts


RECOUNTS = {
    "openai_chat": chat_texts,
    "openai_responses": responses_texts,
    "anthropic": anthropic_texts,
    "gemini": gemini_texts,
}


def valid_chat(request):
    """Each call is answered right behind its message, and nothing else is an answer."""
    waiting = set()
    for message in request["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    assert not waiting


def valid_responses(request):
    """Each call has one output behind it, and reasoning has an item of the model behind it."""
    calls, items = [], request["input"]
    for i, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            calls.append(item["call_id"])
        elif kind == "function_call_output":
            calls.remove(item["call_id"])
        elif kind == "reasoning":
            after = items[i + 1]
            assert after.get("type") == "function_call" or after["role"] == "assistant"
    assert not calls


def valid_anthropic(request):
    """The user begins; each use has its result in the next message, and there only."""
    messages = request["messages"]
    assert messages[0]["role"] == "user"
    before = set()
    for message in messages:
        parts = message["content"] if isinstance(message["content"], list) else []
        results = {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
        assert before == results
        before = {part["id"] for part in parts if part["type"] == "tool_use"}
    assert not before


def valid_gemini(request):
    """The user begins; behind a content with calls is one that answers as many."""
    contents = request["contents"]
    assert contents[0]["role"] == "user"
    before = 0
    for content in contents:
        answers = sum("function_response" in part for part in content["parts"])
        assert before == answers
        before = sum("function_call" in part for part in content["parts"])
    assert not before


VALIDATORS = {
    "openai_chat": valid_chat,
    "openai_responses": valid_responses,
    "anthropic": valid_anthropic,
    "gemini": valid_gemini,
}
