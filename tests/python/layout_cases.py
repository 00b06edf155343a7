"""
The cases of layouts and trimming that both languages answer alike.

    python tests/python/layout_cases.py

writes `tests/cases/layout.json` anew, with what Python answers. `test_layout_cases.py` holds it
against Python, `tests/rust/prompt.rs` against Rust.
"""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

from cases import write

from budgeteer import BudgeteerError, Layout, Section
from budgeteer.window import count_messages, model_limits, trim_messages

FILE = Path(__file__).parents[1] / "cases/layout.json"

TOOLS = [
    {"name": "now", "description": "Say what time it is"},
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
    {"name": "find", "input_schema": {"properties": {"query": {"enum": ["a", "b"]}}}},
]
WORDS = ["tea", "grün", "日本", "🇳🇴", "e\u0301a", "x"]
FAMILY = "👨‍👩‍👧‍👦"
CLUSTERS = "👩‍🚀🇳🇴e\u0301 " * 9
SIZES = [(1800, 2400), (1, 1), (4096, 4096), (100_000, 1), (1, 100_000), (3000, 31), (1568, 1024)]
SIZES += [(200, 200), (384, 385), (960, 540), (2577, 2576), (1567, 1569), (2**32 - 1, 9)]
FAMILIES = ["llama-3.3-70b", "qwen3-8b", "mistral-large", "gpt-oss-20b", "acme-7b"]
RULED = [
    *("claude-sonnet-4-5-20250929", "anthropic/claude-opus-4-8", "claude-3-5-sonnet-20241022"),
    *("claude-latest", "gemini-2.5-pro", "google/gemini-3-pro"),
]
PATCHED = ["gpt-4.1-mini", "openai/gpt-5-nano-2025-08-07", "o4-mini", "gpt-5"]


def _call(*ids):
    function = {"name": "weather", "arguments": "{}"}
    calls = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _history(random):
    """Return messages, some of them calls, some results, with and without the other."""
    made = []
    for _ in range(random.randrange(12)):
        words = " ".join(random.choices(WORDS, k=random.randrange(14)))
        ids = [random.choice("abc") for _ in range(random.randrange(1, 3))]
        one = random.choice(ids)
        results = [{"type": "tool_result", "tool_use_id": id_, "content": words} for id_ in ids]
        uses = [{"type": "tool_use", "id": id_, "name": "f", "input": {}} for id_ in ids]
        made.append(
            random.choice(
                [
                    {"role": "system", "content": words[:9]},
                    {"role": "user", "content": words},
                    {"role": "user", "content": words, "name": "Ada"},
                    {"role": "assistant", "content": words},
                    _call(*ids),
                    _call(*ids),
                    {"role": "tool", "tool_call_id": one, "content": words},
                    {"role": "tool", "tool_call_id": one, "content": words},
                    {"role": "tool", "content": words},
                    {"role": "assistant", "content": uses},
                    {"role": "user", "content": results},
                    {"role": "assistant", "content": None, "function_call": {"name": "f"}},
                    {"role": "function", "name": "f", "content": words},
                ]
            )
        )
    return made


def _turn(random):
    """Return messages that end with a question and its tool results, some of them long."""
    count = random.randrange(1, 4)
    ids, texts = "abc"[:count], []
    for _ in ids:
        words = random.choices(WORDS, k=random.choice([2, 30, 150]))
        texts.append(" ".join(words))
    parts = [[{"type": "text", "text": text}] * random.choice([1, 1, 2]) for text in texts]
    contents = [random.choice([text, part]) for text, part in zip(texts, parts, strict=True)]
    uses = [{"type": "tool_use", "id": id_, "name": "f", "input": {}} for id_ in ids]
    results = [
        {"type": "tool_result", "tool_use_id": id_, "content": content}
        for id_, content in zip(ids, contents, strict=True)
    ]
    openai = [
        {"role": "tool", "tool_call_id": id_, "content": content}
        for id_, content in zip(ids, contents, strict=True)
    ]
    asked = {"role": "user", "content": "What do they say?"}
    more = [{"type": "text", "text": "And now?"}] if random.random() < 0.3 else []
    return random.choice(
        [
            [asked, _call(*ids), *openai],
            [asked, {"role": "assistant", "content": uses}, {"role": "user", "content": results}],
            [{"role": "assistant", "content": uses}, {"role": "user", "content": results + more}],
        ]
    )


def _section(random, name):
    """Return a section as JSON has it."""
    section = {"name": name}
    kind = random.randrange(6)
    if kind == 0:
        section["tokens"] = random.randrange(60)
    elif kind == 1:
        section["content"] = random.choice(["", "tea " * random.randrange(60), CLUSTERS])
    elif kind == 2:
        section["content"] = _history(random)
        if random.random() < 0.3:
            section["content"] += _turn(random)
        section |= _rules(random, section["content"])
    elif kind == 3:
        section["content"] = TOOLS[: random.randrange(1, 4)]
    elif kind == 4:
        section["fill"] = {"words": random.randrange(80), "over": int(random.random() < 0.05)}
    else:
        section["fill"] = {"messages": [{"role": "user", "content": "What is green tea?"}]}
    if kind in (1, 4) and random.random() < 0.3:
        section["role"] = random.choice(["system", "developer", "user", "assistant"])
    for key, values in {
        "basis": [0, 7, 40, 200],
        "grow": [0.5, 1.0, 3.0],
        "shrink": [0.0, 0.25, 2.0],
        "min_tokens": [5, 30],
        "max_tokens": [30, 60],
        "priority": [-1, 1, 2],
    }.items():
        if random.random() < 0.3:
            section[key] = random.choice(values)
    return section


def _rules(random, messages):
    """Return options of trimming: what was kept of a part of the messages, and how to cut."""
    rules = {}
    if random.random() < 0.5:
        part = messages[: random.randrange(len(messages) + 1)]
        limit = random.randrange(20, 200)
        rules["previous"] = _copied(_left(part, limit, counter="words"))
    if random.random() < 0.3:
        rules["step"] = random.choice([0.1, 0.3, 0.75])
    if random.random() < 0.4:
        rules["keep_results"] = random.randrange(3)
    return rules


def _left(messages, limit, **options):
    """Return what is left of messages, or none where that is refused."""
    try:
        return trim_messages(messages, limit, **options)
    except BudgeteerError:
        return []


def _copied(messages):
    """Return the same messages as other objects, as a program has them that stores them."""
    return json.loads(json.dumps(messages))


def _layouts():
    random = Random(7)
    for _ in range(160):
        names = random.sample(["system", "user", "assistant", "chunks", "tools", "answer"], 4)
        window = random.choice([0, 9, 40, 90, 150, 300, 1000])
        case = {
            "context_window": window,
            "max_input_tokens": random.choice([None, None, window * 2 // 3]),
            "gap": random.choice([0, 0, 5]),
            "counter": random.choice(["words", "o200k_base", "chars_per_token:2.5"]),
            "model": random.choice([None, None, "gpt-3.5-turbo-0301", *FAMILIES]),
            "sections": [_section(random, name) for name in names[: random.randrange(1, 5)]],
        }
        yield case


def _filled(fill):
    def answer(max_tokens):
        if "messages" in fill:
            return fill["messages"]
        return " ".join(["a"] * (min(fill["words"], max_tokens) + fill["over"]))

    return answer


def _fit(case):
    sections = []
    for fields in case["sections"]:
        fill = {"fill": _filled(fields["fill"])} if "fill" in fields else {}
        sections.append(Section(**{**fields, **fill}))
    window = case["context_window"]
    if case["max_input_tokens"] is not None:
        limits = {"context_window": window, "max_input_tokens": case["max_input_tokens"]}
        window = replace(model_limits("gpt-4"), **limits)
    options = {key: case[key] for key in ("gap", "counter", "model")}
    return Layout(window, sections, **options).fit()


def layouts():
    """Return what layouts are fitted to, or that they are refused."""

    def answer(case):
        try:
            fitted = _fit(case)
        except BudgeteerError as error:
            return {"error": type(error).__name__}
        names = ("tokens", "used_tokens", "free_tokens", "dropped_sections", "cut_sections")
        more = ("messages", "tools", "total_tokens", "is_exact")
        return {name: getattr(fitted, name) for name in (*names, *more)}

    return [{**case, "answer": answer(case)} for case in _layouts()]


def trims():
    """Return which messages `trim_messages` keeps and cuts, or that it refuses."""
    random = Random(11)
    cases = []
    for i in range(240):
        case = {
            "messages": _history(random) + (_turn(random) if i % 3 == 0 else []),
            "max_tokens": random.randrange(130),
            "counter": random.choice(["words", "o200k_base", "chars_per_token:2.5"]),
            "model": random.choice([None, "gpt-3.5-turbo-0301", *FAMILIES]),
            "start_on": random.choice([None, "user"]),
        }
        cases.append({**case, **_trimmed(case)})
    return cases


def _trimmed(case):
    """Return what is left of the messages of a case, and its figures."""
    try:
        left = trim_messages(**case)
    except BudgeteerError as error:
        return {"error": str(error)}
    own = [id(message) for message in case["messages"]]
    return {
        "kept": [own.index(id(message)) for message in left if id(message) in own],
        "cut": [message for message in left if id(message) not in own],
        "total_tokens": left.total_tokens,
        "stable_prefix_tokens": left.stable_prefix_tokens,
    }


def turns():
    """Return what `trim_messages` keeps of conversations that grow, turn after turn."""
    random = Random(13)
    cases = []
    for _ in range(60):
        history, previous = _history(random), []
        options = {
            "max_tokens": random.randrange(60, 260),
            "counter": random.choice(["words", "o200k_base"]),
            "start_on": random.choice([None, None, None, "user"]),
            "step": random.choice([None, None, 0.1, 0.4, 0.9]),
            "keep_results": random.choice([None, 0, 1, 3]),
        }
        pins = random.sample(range(8), random.choice([0, 0, 1, 2]))
        for _ in range(8):
            history += _history(random)[:4] if random.random() < 0.5 else _turn(random)
            case = {
                **options,
                "messages": [*history],
                "previous": previous,
                "pins": [pin for pin in pins if pin < len(history)],
            }
            cases.append({**case, **_trimmed(case)})
            if "error" not in cases[-1]:
                previous = _copied(trim_messages(**case))
            elif random.random() < 0.5:
                history = history[:9]
    return [*cases, *_cut_twice(), *_pinned_alone()]


def _cut_twice():
    """Yield results that a second cut would hit in the marker of the first."""
    for text in (FAMILY * 3 + " tea" * 30, "tea " * 30 + FAMILY * 3):
        for limit in range(60, 90, 3):
            history = [{"role": "user", "content": "Tea?"}]
            case = {"max_tokens": limit, "counter": "o200k_base", "previous": []}
            for id_, result in (("a", text), ("b", "tea")):
                history += [_call(id_), {"role": "tool", "tool_call_id": id_, "content": result}]
                case = {**case, "messages": [*history]}
                yield {**case, **_trimmed(case)}
                if "error" in _trimmed(case):
                    break
                case["previous"] = _copied(trim_messages(**case))


def _pinned_alone():
    """Yield a history of which only pinned messages were kept, the same and an edited one."""
    history = [{"role": "user", "content": f"tea {i}"} for i in range(4)]
    edited = [{"role": "user", "content": "tea, edited"}, *history[1:]]
    for messages in (history, edited, history[:3]):
        for previous in (history[2:3], history[1:3], edited[:1] + history[2:3]):
            case = {"messages": messages, "max_tokens": 99, "counter": "words", "pins": [2]}
            case["previous"] = _copied(previous)
            yield {**case, **_trimmed(case)}


def images():
    """Return what images cost models that count patches, and by the rules of other makers."""
    return [
        {
            "model": model,
            "size": size,
            "tokens": count_messages(
                [{"role": "", "content": [{"type": "input_image", **_sides(size)}]}],
                counter="words",
                model=model,
            ),
        }
        for model in [*PATCHED, *RULED]
        for size in [*SIZES, None]
    ]


def _sides(size):
    return {} if size is None else {"width": size[0], "height": size[1]}


def _round(random):
    """Return messages with calls that the provider runs, and their answers here or later."""
    text = {"type": "text", "text": "tea " * random.choice([1, 20])}
    run = {"type": random.choice(["server_tool_use", "mcp_tool_use"]), "id": "s", "name": "g"}
    run["input"] = {"query": "tea"}
    found = {"type": random.choice(["web_search_tool_result", "mcp_tool_result"])}
    found |= {"tool_use_id": random.choice(["s", "s", "t"]), "content": []}
    caller = random.choice(
        [{"type": "direct"}, {"type": "code", "tool_id": "s"}, {"caller_id": "s"}]
    )
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": caller}
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "tea " * random.choice([1, 30]),
    }
    made = [{"role": "user", "content": "Which tea?"}]
    for _ in range(random.randrange(1, 5)):
        parts = random.sample([text, run, found, use], random.randrange(1, 4))
        made.append({"role": random.choice(["assistant"] * 4 + ["user"]), "content": parts})
        if use in parts:
            made.append({"role": "user", "content": [result]})
    return made


def rounds():
    """Return which messages `trim_messages` keeps of rounds that the provider has a part in."""
    random = Random(31)
    cases = []
    for _ in range(120):
        case = {
            "messages": [m for _ in range(random.randrange(1, 4)) for m in _round(random)],
            "max_tokens": random.randrange(10, 160),
            "counter": "words",
            "model": None,
            "start_on": random.choice([None, None, "user"]),
        }
        cases.append({**case, **_trimmed(case)})
    return cases


KINDS = (layouts, trims, turns, images, rounds)


if __name__ == "__main__":
    write(FILE, KINDS)
