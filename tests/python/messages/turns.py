"""Conversations that the tests of trimming are about."""

import operator


def said(role, text):
    return {"role": role, "content": text}


def words(count, first="tea"):
    return " ".join([first, *["tea"] * (count - 1)])


def calls(*keys):
    function = {"name": "read", "arguments": "{}"}
    made = [{"id": key, "type": "function", "function": function} for key in keys]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(key, text):
    return {"role": "tool", "tool_call_id": key, "content": text}


def uses(*keys):
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": key, "name": "read", "input": {}} for key in keys],
    }


def used(results, text=None):
    parts = [
        {"type": "tool_result", "tool_use_id": key, "content": content} for key, content in results
    ]
    return {"role": "user", "content": parts + ([{"type": "text", "text": text}] if text else [])}


def chat(turns, size=20, start=0):
    """Return questions and answers, each different and of *size* words."""
    return [
        said(role, words(size, f"{role}{i}"))
        for i in range(start, start + turns)
        for role in ("user", "assistant")
    ]


def agent(rounds, size=60, shape="openai"):
    """Return a question and rounds of a call and its result, each a list of what is new."""
    yield [said("user", "What does the log say?")]
    for i in range(rounds):
        if shape == "openai":
            yield [calls(f"c{i}"), result(f"c{i}", words(size, f"log{i}"))]
        else:
            yield [uses(f"c{i}"), used([(f"c{i}", words(size, f"log{i}"))])]


def same_objects(one, other):
    return len(one) == len(other) and all(map(operator.is_, one, other))
