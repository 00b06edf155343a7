"""
The cases of models, negotiations and messages that both languages answer alike.

    python tests/python/window_cases.py

writes `tests/cases/window.json` anew, with what Python answers. `test_window_cases.py` holds it
against Python, `tests/rust/window.rs` against Rust.
"""

import json
import tempfile
from pathlib import Path

from cases import write
from message_examples import CALLED, MEDIA, MESSAGES, MODELS, SAID, image

from budgeteer import BudgeteerError, _models, get_counter
from budgeteer._count import limits as _limits
from budgeteer.window import (
    count_messages,
    count_tools,
    load_models,
    model_limits,
    negotiate,
    retrieval_budget,
    safe_message_count,
)

FILE = Path(__file__).parents[1] / "cases/window.json"
TABLE = json.loads(Path(_limits.__file__).with_name("models.json").read_text("utf-8"))

ODD_NAMES = [
    *("", "-", "/", ":", "gpt", "GPT-4o", "gpt-4o ", "gpt-4.1-2025-04-14", "gpt-4.2", "gpt-45"),
    *("gpt-4:foo", "gpt-4@x", "gpt-4/x", "gpt-4_x", "x/gpt-4o", "openai/", "openai/openai/gpt-4o"),
    *("openrouter/openai/gpt-4o:free", "azure/gpt-35-turbo-16k", "ft:gpt-4o:acme::1", "ft:gpt-4x"),
    *(
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-opus-4-7-x",
        "gemini-9-ultra",
    ),
    *("us.eu.us.eu.us.eu.gpt-4o", "us.eu.us.eu.us.eu.us.gpt-4o", "models/gemini-2.5-pro@001"),
    *("gpt-5-unheard-of", "gpt-oss-7b", "o1-2", "o4-mini-x", "text-embedding-3-small", "gpt2-xl"),
    *(
        "gpt-4o" + "-x" * 90,
        "gpt-4o" + "-x" * 500,
        "y" * 199 + "-x",
        "gpt-4o-é",
        "日本-語",
        "é-gpt-4o",
    ),
    *(
        "my-gpt-4o-deployment",
        "azure/MY_GPT-4O_x",
        "notgpt-4o2",
        "x-gpt-4-gpt-4.1-mini-x",
        "x-o1-o3",
    ),
    *(
        "Qwen/Qwen3-32B",
        "eu.gpt-4.1",
        "a.b.c.o1.d",
        "gpt-4.1.2",
        "é-gpt-4o-é",
        "X-CLAUDE-OPUS-4_y",
    ),
    *("accounts/fireworks/models/llama-v3p1-70b-instruct", "my-ft:gpt-4o-x", "gpt-5-gpt-4.1-mini"),
    *(
        "gpt-4.5-x-claude-opus-4",
        "--gpt-4o--",
        "a-" * 98 + "gpt-4o",
        "a-" * 95 + "gpt-4o-b",
        "İ-GPT-4o",
    ),
    *("mistral:7b-instruct-q4_0", "llama3.2:3b", "llama3.2", "deepseek-coder:6.7b-base"),
    *(
        "GPT-4O",
        "OpenAI/Us.GPT-4o-mini",
        "helicone/gpt-4o",
        "a/B/GPT-4",
        "gpt-4-Turbo-x",
        "GPT-5-x",
    ),
    *("qwen3:8b", "Qwen/Qwen2.5-7B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3", "kimi-x"),
    *("mixtral:8x7b", "x/Ministral-9", "gemma2:9b", "codellama:13b", "Llama-2-7b", "notllama-3"),
    *("us.meta.llama3-2-3b-instruct-v1:0", "deepseek-r1:14b", "deepseek-coder-v9", "my_glm.4"),
    *("Qwen/Qwen3-8B", "deepseek-r1-distill-qwen-32b", "deepseek-r1-distill-llama-70b"),
    *("deepseek-r1:70b", "DeepSeek-R1:32b-q4", "glm-4.7-flash", "phi-4-mini", "phi-4-x"),
    *("deepseek-v3-0324", "glm-4.5-air-fp8", "gemma-4-27b", "gemma-40", "devstral-2", "qwen3.9-x"),
    *("my-llama3-qwen2", "qwen2-qwen2.5", "x.qwen3-8b", "us.meta.llama3-9", "mistral-nemo_x"),
    *("mistralai/other-3", "é" * 199 + "-qwen", "é" * 190 + "-qwen", "gpt-oss:20b", "\u212aimi-2"),
]

WEATHER = {
    "name": "weather",
    "description": "Say how the weather is",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "unit": {"type": "string", "enum": ["°C", "°F", 1, 1.5e-7, None, True]},
            "days": {"type": ["integer", "null"]},
            "at": {
                "type": "object",
                "description": "",
                "properties": {
                    "day": {"type": "array", "items": {"type": "number"}},
                    "all": {"type": "array"},
                    "deeper": {"type": "object", "properties": {"x": {"type": "boolean"}}},
                    "none": {"type": "object"},
                },
                "required": ["day"],
            },
        },
        "required": ["city", "unit"],
    },
}
TOOLS = {
    "none": [],
    "plain": [{"name": "now"}],
    "described": [{"name": "now", "description": "Say what time it is", "parameters": None}],
    "nested": [WEATHER],
    "openai": [{"type": "function", "function": WEATHER}, {"name": "now", "parameters": {}}],
    "anthropic": [{"name": "find", "input_schema": WEATHER["parameters"]}],
    "classes": [
        {
            "name": "send",
            "parameters": {
                "$defs": {"Place": {"type": "object", "properties": {"zip": {"type": "string"}}}},
                "type": "object",
                "properties": {"to": {"$ref": "#/$defs/Place"}},
            },
        },
        {"name": "either", "input_schema": {"anyOf": [{"type": "object"}], "$defs": {}}},
    ],
    "custom": [
        {"type": "custom", "name": "brew", "description": "Brew", "format": {"type": "text"}},
        {
            "type": "custom",
            "custom": {
                "name": "steep",
                "format": {"type": "grammar", "grammar": {"definition": "start: é", "a": 1}},
                "input_schema": None,
                "parameters": {"properties": {"minutes": {"type": "number"}}},
            },
        },
    ],
    "odd": [
        {
            "name": "odd",
            "parameters": {
                "properties": {
                    "ref": {"$ref": "#/a", "deep": {"b": [1, 2.0, 'é\n"', None, {}]}},
                    "true": True,
                    "enum": {"enum": []},
                    "mixed": {"type": ["array", "string", "date"], "items": {"type": "string"}},
                    "const": {"const": 1e16, "type": "date"},
                },
                "required": "ref",
            },
        }
    ],
}


BAD_MESSAGES = {
    "no object": 7,
    "no role": {"content": "x"},
    "a role that is none": {"role": 7},
    "a content that is none": {"role": "user", "content": 7},
    "a part whose type is none": {"role": "user", "content": [{"type": 7}]},
    "a part that is none": {"role": "user", "content": [None]},
    "a text that is none": {"role": "user", "content": [{"type": "text"}]},
    "an unknown detail": image(url="x", detail="some"),
    "no detail": image(url="x", detail=None),
    "a size of one side": image(url="x", width=7),
    "a size of nothing": image(url="x", width=7, height=0),
    "a result of a number": {"role": "user", "content": [{"type": "tool_result", "content": 7}]},
}
BAD_TOOLS = {
    "no object": 7,
    "no name": {"description": "x"},
    "a description that is none": {"name": "x", "description": 7},
    "a schema that is none": {"name": "x", "parameters": []},
    "properties that are none": {"name": "x", "parameters": {"properties": [7]}},
    "a function that is none": {"function": 7},
    "a custom tool that is none": {"custom": 7},
}
NEGOTIATIONS = [
    {"model": "llama3.2:3b", "messages": 5, "max_output_tokens": 3000},
    {"model": "gpt-3.5-turbo", "messages": 50, "max_output_tokens": 5000},
    {"model": "deepseek-coder:6.7b", "messages": 60, "max_output_tokens": 3000},
    {"model": "gpt-4", "messages": 10**9, "max_output_tokens": 10**12, "memories": 3},
    {"model": "gpt-4", "messages": 1, "max_output_tokens": 100},
    {"model": "gpt-4", "messages": 0, "max_output_tokens": 0, "min_output_tokens": 0},
    {"model": "gpt-5", "messages": 1100, "max_output_tokens": 1000, "safety_margin": "auto"},
    {"model": "gpt-4o", "messages": 3, "max_output_tokens": 90_000, "cap_output": True},
    {
        "model": "gpt-4o",
        "messages": 3,
        "max_output_tokens": 9,
        "min_output_tokens": 20_000,
        "cap_output": True,
    },
    {"model": "nobody", "messages": 3, "max_output_tokens": 900, "safety_margin": "auto"},
    *(
        {"model": "gpt-4o", "messages": 0, "system_tokens": 0, "max_output_tokens": 9, **given}
        for given in (
            {},
            {"memories": 1},
            {"memories": [{"content": "Likes tea."}]},
            {"counter": "chars_div4"},
            {"system_tokens": "Be brief."},
        )
    ),
    *(
        {
            "model": model,
            "messages": [],
            "system_tokens": 0,
            "max_output_tokens": 9,
            "safety_margin": "auto",
            "counter": "o200k_base",
        }
        for model in ("nobody", "my-gpt-4o-x", "gpt-4o-x")
    ),
    {"model": "gpt-4", "messages": SAID, "max_output_tokens": 900, "tokens_per_message": 7},
    *(
        {
            "model": "gpt-4o",
            "messages": messages,
            "max_output_tokens": 900,
            "counter": "o200k_base",
            **given,
        }
        for messages in (SAID, MESSAGES["hello"], MESSAGES["unknown parts"], [])
        for given in ({}, {"system_tokens": 7}, {"system_tokens": "Be brief."})
    ),
    {
        "model": "gpt-4o",
        "messages": SAID,
        "max_output_tokens": 900,
        "system_tokens": 0,
        "tools": TOOLS["openai"],
        "counter": "o200k_base",
    },
    {
        "model": "gpt-4",
        "messages": MESSAGES["hello"],
        "max_output_tokens": 900,
        "system_tokens": "Be brief.",
        "tools": TOOLS["nested"],
        "counter": "cl100k_base",
    },
    {
        "model": "gpt-4",
        "messages": 2,
        "max_output_tokens": 900,
        "system_tokens": "Be brief.",
        "tools": TOOLS["nested"],
    },
    *(
        {
            "model": "gpt-4o",
            "messages": [],
            "max_output_tokens": 900,
            "counter": counter,
            "memories": [
                {"content": "Likes green tea.", "importance": 0.61, "age_days": 7.0},
                {"content": "Old.", "importance": 0.9, "age_days": 7.1},
                {"content": "Dull.", "importance": 0.6},
                {"content": "Important, but very long, so that little fits.", "importance": 1},
                {"content": "Says nothing of itself."},
                {"content": "From the future.", "importance": 0.61, "age_days": -1},
            ],
            **options,
        }
        for counter in (None, "o200k_base", "words")
        for options in (
            {},
            {"max_memory_tokens": 12},
            {"min_importance": 0.5, "max_memory_age_days": 30.0, "max_memory_tokens": 9},
        )
    ),
]
SAFE_COUNTS = [
    {"model": "gpt-4"},
    {"model": "llama3.2:3b"},
    {"model": "gpt-5", "max_output_tokens": 0},
    {"model": "nobody", "safety_margin": "auto", "max_output_tokens": 8000},
    {"model": "gpt-4o", "tokens_per_message": 1, "system_tokens": "Be brief."},
]
BUDGETS = [
    {
        "context_window": 4096,
        "system_tokens": 200,
        "max_output_tokens": 500,
        "query_tokens": 50,
    },
    {"context_window": 1, "system_tokens": 0, "max_output_tokens": 0, "query_tokens": 0},
    {"context_window": 10, "system_tokens": 3, "max_output_tokens": 3, "query_tokens": 4},
    {"context_window": 10, "system_tokens": 3, "max_output_tokens": 3, "query_tokens": 50},
    {"context_window": 0, "system_tokens": 0, "max_output_tokens": 0, "query_tokens": 0},
]


def models():
    """Return what `model_limits` answers for names that are known, and for odd ones."""
    names = [*TABLE["models"], *TABLE["aliases"], *_models.MODELS]
    names += [f"{prefix}gpt-4o-mini" for prefix in TABLE["prefixes"]]
    names += [f"{name}-2026" for name in TABLE["models"]] + ODD_NAMES
    return [model_limits(name).to_dict() for name in dict.fromkeys(names)]


def counters():
    """Return what models count by, and whether that is exact."""
    names = [*TABLE["models"], *TABLE["aliases"], *_models.MODELS, *ODD_NAMES]
    text = "Hello, world! Green tea is mild: 緑茶 🍵, 12.50 € — def tea(): pass"
    answers = [(name, get_counter(model_limits(name))) for name in dict.fromkeys(names)]
    return [
        {
            "name": name,
            "text": text,
            "tokens": it.count(text),
            "is_exact": it.is_exact,
            "basis": it.basis,
        }
        for name, it in answers
    ]


LITELLM = {
    "sample_spec": {"max_tokens": "words", "mode": "one of"},
    "case-big": {"max_input_tokens": 9_000, "max_output_tokens": 900, "mode": "chat"},
    "case-old": {"max_tokens": 700, "litellm_provider": "acme", "x": {"y": 1}, "mode": None},
    "case-no-mode": {"max_tokens": 700, "max_input_tokens": None, "max_output_tokens": None},
    "case-embed": {"max_input_tokens": 500, "mode": "embedding", "max_output_tokens": 0},
    "case-rerank": {"max_input_tokens": 500, "mode": "rerank", "max_output_tokens": 500},
    "case-picture": {"max_input_tokens": 500, "mode": "image_generation"},
    "case-nothing": {"mode": "chat", "max_input_tokens": 0},
    "case-answer": {"mode": "chat", "max_tokens": 5, "max_output_tokens": 5},
    "case-text": {"max_tokens": "4096"},
    "case-texts": {"max_input_tokens": "4096", "max_output_tokens": "0100"},
    "case-llama-9": {"max_tokens": 5},
    "case-most": {"max_tokens": 2**53},
    "case-rules": {"a": 1},
    "case/gpt-4o": {"max_tokens": 5},
    "case-llama3.2:3b": {"max_tokens": 5, "litellm_provider": "case"},
    **{
        f"case-{provider}-{known}": {
            "max_input_tokens": known,
            "max_output_tokens": 128_000,
            "litellm_provider": provider,
        }
        for provider in ("openai", "azure", "dashscope", "other")
        for known in (272_000, 922_000, 30_720, 500_000, 997_952, 129_024)
    },
}
BAD_LITELLM = [
    {"case-bad": {"max_input_tokens": "many"}},
    {"case-bad": {"max_input_tokens": ""}},
    {"case-bad": {"max_input_tokens": "٣"}},
    {"case-bad": {"max_input_tokens": True}},
    {"case-bad": {"max_input_tokens": 2**53 + 1}},
    {"case-bad": {"max_input_tokens": "9" * 16}},
    {"case-bad": {"max_input_tokens": -9}},
    {"case-bad": {"max_tokens": 9.5}},
    {"case-bad": {"max_input_tokens": 9, "max_output_tokens": "3.5"}},
    {"case-bad": {"max_tokens": 9, "litellm_provider": 3}},
    {"case-bad": {"context_window": 9}},
    {},
]


def litellm():
    """Return what `load_models` reads of a file in litellm's form, and what it refuses."""

    def read(document):
        kept = _limits._own
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "case.json")
                path.write_text(json.dumps(document))
                return [{**it.to_dict(), "source": "registered"} for it in load_models(path)]
        except BudgeteerError:
            return None
        finally:
            _limits._own = kept

    return [{"document": case, "models": read(case)} for case in (LITELLM, *BAD_LITELLM)]


def _counted(items, counter, model):
    """Return a case of `count_messages`."""
    tokens = count_messages(items, counter=counter, model=model)
    return {
        "messages": items,
        "counter": counter,
        "model": model,
        "tokens": tokens,
        "is_exact": tokens.is_exact,
    }


def messages():
    """Return what `count_messages` answers."""
    return [
        _counted(items, counter, model)
        for items in MESSAGES.values()
        for counter, model in [
            ("o200k_base", None),
            ("cl100k_base", "gpt-3.5-turbo-0301"),
            ("words", "openai/gpt-4o-mini-2024-07-18"),
        ]
    ]


def frames():
    """Return what `count_messages` answers for models whose chat templates differ."""
    return [
        _counted(items, counter, model)
        for model in MODELS
        for items in (MESSAGES["none"], SAID, CALLED)
        for counter in ("o200k_base", "words")
    ]


def media():
    """Return what `count_messages` answers for audio and documents, by the rules of makers."""
    return [
        _counted([{"role": "user", "content": [part]}], "o200k_base", model)
        for model in ("gpt-4o-audio", "Gemini-2.5-pro", "gemini-3-pro", "claude-opus-4-8", "acme")
        for part in MEDIA
    ]


def tools():
    """Return what `count_tools` answers."""
    return [
        {
            "tools": items,
            "counter": counter,
            "has_system_message": has_system,
            "tool_choice": choice,
            "tokens": count_tools(
                items,
                counter=counter,
                has_system_message=has_system,
                tool_choice={"type": "tool", "name": "now"} if choice == "now" else choice,
            ),
        }
        for items in TOOLS.values()
        for counter in ("o200k_base", "chars_div4")
        for has_system, choice in [(False, "auto"), (True, "none"), (True, "now")]
    ]


def negotiations():
    """Return what `negotiate` answers."""
    return [{**case, "answer": negotiate(**case).to_dict()} for case in NEGOTIATIONS]


def safe_message_counts():
    """Return what `safe_message_count` answers."""
    return [{**case, "count": safe_message_count(**case)} for case in SAFE_COUNTS]


def retrieval_budgets():
    """Return what `retrieval_budget` answers, or its error."""

    def answer(case):
        try:
            return {"tokens": retrieval_budget(**case)}
        except BudgeteerError as error:
            return {"error": str(error)}

    return [{**case, **answer(case)} for case in BUDGETS]


def bad():
    """Return what is of no known shape."""
    return {"messages": list(BAD_MESSAGES.values()), "tools": list(BAD_TOOLS.values())}


KINDS = (
    models,
    counters,
    litellm,
    messages,
    frames,
    media,
    tools,
    negotiations,
    safe_message_counts,
    retrieval_budgets,
    bad,
)


if __name__ == "__main__":
    write(FILE, KINDS)
