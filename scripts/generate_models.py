"""
Write the table of models: their windows, limits, encodings and providers.

    python scripts/generate_models.py model_prices_and_context_window_backup.json VERSION DATE
    python scripts/generate_models.py

The first argument is the file of that name in litellm's wheel (MIT) of that VERSION, downloaded on
DATE. The same file gives the same table. Without arguments the table stays, and only the Rust file
made from it is written: a crate contains only files of its own folder, and reads no JSON. The
rules for litellm's file:

- `CONTEXT` is the window of 15 models as a design document of this project states it. It wins.
- litellm's ``max_input_tokens`` is the whole window for some models and the window less the answer
  for others. Here the three numbers are separate. The provider decides, in `window`. OpenAI:
  272000 and 922000 are windows of 400000 and 1050000 less an answer of 128000; every other number
  is the window. Alibaba: it is the input alone; the window is the next power of two, or the next
  million above half a million. All others: it is the window.
- ``max_input_tokens`` is the input's own limit if the provider states one, else the window.
- ``max_output_tokens`` is null if litellm gives none, or one that is not below the window and so
  is no limit. Meta's is a host's limit, not the model's, and null too.
- The encoding is tiktoken's. A model whose tokenizer is not published has a factor over
  o200k_base, with its source in `CALIBRATIONS`; a null encoding means a tokenizer that is not
  native.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python/budgeteer/_count/models.json"
RUST = ROOT / "rust/core/src/window/models.rs"
sys.path.insert(0, str(ROOT / "python/budgeteer"))

# The file alone, so that the package need not be built.
from _models import ENCODING_OF_MODEL, ENCODING_OF_PREFIX, encoding_of  # noqa: E402

CONTEXT = {
    "gpt-4": 8192,
    "gpt-4-turbo": 128000,
    "gpt-4o": 128000,
    "gpt-3.5-turbo": 16385,
    "claude-3-opus": 200000,
    "claude-3-sonnet": 200000,
    "claude-3-haiku": 200000,
    "claude-3-5-sonnet": 200000,
    "llama3.2:3b": 128000,
    "llama3.1:70b": 128000,
    "deepseek-coder:6.7b": 16000,
    "qwen2.5:7b": 128000,
    "mistral:7b": 32768,
    "grok-3": 131072,
    "deepseek-chat": 64000,
}
"""The windows that the design document states."""

# Names as in litellm, after the prefix that each has there.
MODELS = {
    "openai": (
        "",
        (
            "gpt-3.5-turbo gpt-4 gpt-4-turbo gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o "
            "gpt-4o-mini gpt-4o-2024-05-13 gpt-5 gpt-5-chat gpt-5-mini gpt-5-nano gpt-5-pro "
            "gpt-5.1 gpt-5.1-chat-latest gpt-5.2 gpt-5.2-chat-latest gpt-5.2-pro "
            "gpt-5.3-chat-latest gpt-5.3-codex gpt-5.4 gpt-5.4-mini gpt-5.4-nano gpt-5.4-pro "
            "gpt-5.5 gpt-5.5-pro gpt-5.6 gpt-6-astra gpt-6-luna gpt-6-sol gpt-6.1-sol "
            "gpt-6.1-terra o1 o1-pro o3 o3-mini o3-pro o4-mini azure/gpt-4-32k "
            "azure/gpt-4.5-preview azure/o1-mini groq/openai/gpt-oss-20b "
            "groq/openai/gpt-oss-120b"
        ),
    ),
    "anthropic": (
        "",
        (
            "claude-haiku-4-5 claude-haiku-5-5 claude-opus-4-5 claude-opus-4-6 "
            "claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-opus-5-5 claude-sonnet-4-5 "
            "claude-sonnet-4-6 claude-sonnet-5 claude-sonnet-5-5 claude-fable-5 "
            "claude-mythos-5 claude-mythos-preview vertex_ai/claude-3-opus "
            "vertex_ai/claude-3-sonnet vertex_ai/claude-3-haiku vertex_ai/claude-3-5-sonnet "
            "vertex_ai/claude-3-5-haiku vercel_ai_gateway/anthropic/claude-3-7-sonnet "
            "vercel_ai_gateway/anthropic/claude-opus-4 "
            "vercel_ai_gateway/anthropic/claude-sonnet-4 "
            "databricks/databricks-claude-opus-4-1"
        ),
    ),
    "google": (
        "gemini/",
        (
            "gemini-2.5-flash gemini-2.5-flash-lite gemini-2.5-pro gemini-2.5-pro-preview-tts "
            "gemini-3-flash-preview gemini-3.1-flash-lite gemini-3.1-pro-preview "
            "gemini-3.5-flash gemini-3.5-flash-lite gemini-3.6-flash gemini-3.7-flash "
            "gemini-3.8-flash gemini-flash-latest gemini-flash-lite-latest gemini-pro-latest "
            "gemma-3-27b-it gemma-4-31b-it"
        ),
    ),
    "mistral": (
        "mistral/",
        (
            "codestral-2508 codestral-latest devstral-medium-latest devstral-small-latest "
            "magistral-medium-latest magistral-small-latest ministral-3b-latest "
            "ministral-8b-latest ministral-14b-latest mistral-large-3 mistral-large-4 "
            "mistral-large-2512 mistral-large-latest mistral-medium-3-5 mistral-medium-latest "
            "mistral-small-2603 mistral-small-latest open-mistral-nemo pixtral-large-latest "
            "mistral:7b"
        ),
    ),
    "meta": (
        "meta_llama/",
        (
            "Llama-3.3-70B-Instruct Llama-4-Maverick-17B-128E-Instruct-FP8 "
            "Llama-4-Scout-17B-16E-Instruct-FP8 llama3.2:3b llama3.1:70b"
        ),
    ),
    "deepseek": (
        "",
        (
            "deepseek-chat deepseek-flash deepseek-reasoner deepseek-v4-flash deepseek-v4-pro "
            "deepseek/deepseek-v3.2 deepseek-coder:6.7b"
        ),
    ),
    "xai": (
        "xai/",
        (
            "grok-3 grok-4.20 grok-4.3 grok-4.5 grok-4.6 grok-4.7 grok-code-fast-1 "
            "vercel_ai_gateway/xai/grok-4"
        ),
    ),
    "cohere": (
        "",
        (
            "command-a-03-2025 command-a-plus-05-2026 command-r-08-2024 "
            "command-r-plus-08-2024 command-r7b-12-2024"
        ),
    ),
    "alibaba": (
        "dashscope/",
        (
            "qwen-flash qwen-max qwen-plus qwen-plus-latest qwen-turbo qwen-turbo-latest "
            "qwen3-max qwen3-coder-flash qwen3-coder-plus qwen3.5-plus qwen3.7-max "
            "qwen3.7-plus qwen3.8-flash qwen3.8-max qwq-plus qwen2.5:7b"
        ),
    ),
    "amazon": (
        "amazon-nova/",
        ("nova-lite-v1 nova-micro-v1 nova-premier-v1 nova-pro-v1 amazon.nova-2-lite-v1:0"),
    ),
}

RENAMED = {
    "amazon.nova-2-lite-v1:0": "nova-2-lite-v1",
    "databricks-claude-opus-4-1": "claude-opus-4-1",
}

ALIASES = {
    "gpt-35-turbo": "gpt-3.5-turbo",
    "gpt-4-0125-preview": "gpt-4-turbo",
    "gpt-4-1106-preview": "gpt-4-turbo",
    "gpt-4-vision-preview": "gpt-4-turbo",
    "chatgpt-4o": "gpt-4o",
    "claude-3.5-sonnet": "claude-3-5-sonnet",
    "claude-3.5-haiku": "claude-3-5-haiku",
    "claude-3.7-sonnet": "claude-3-7-sonnet",
    "gemini-3.1-pro": "gemini-3.1-pro-preview",
    "gemini-3-flash": "gemini-3-flash-preview",
    "llama3.1:8b": "llama3.1:70b",
    "llama3.1:405b": "llama3.1:70b",
    "llama3.2:1b": "llama3.2:3b",
    "llama3.3:70b": "Llama-3.3-70B-Instruct",
    "llama3-1-8b": "llama3.1:70b",
    "llama3-1-70b": "llama3.1:70b",
    "llama3-1-405b": "llama3.1:70b",
    "llama3-3-70b": "Llama-3.3-70B-Instruct",
    "Llama-4-Maverick-17B-128E-Instruct": "Llama-4-Maverick-17B-128E-Instruct-FP8",
    "Llama-4-Scout-17B-16E-Instruct": "Llama-4-Scout-17B-16E-Instruct-FP8",
    "nova-lite": "nova-lite-v1",
    "nova-micro": "nova-micro-v1",
    "nova-premier": "nova-premier-v1",
    "nova-pro": "nova-pro-v1",
}
"""Other names, by which Ollama, Bedrock, Azure and OpenRouter know a model."""

PREFIXES = (
    "openai/ azure/ azure_ai/ github/ github_copilot/ anthropic/ google/ gemini/ "
    "vertex_ai/ mistral/ mistralai/ meta/ meta_llama/ meta-llama/ deepseek/ xai/ x-ai/ "
    "cohere/ cohere_chat/ dashscope/ alibaba/ qwen/ Qwen/ amazon/ amazon-nova/ bedrock/ "
    "bedrock_converse/ converse/ invoke/ ollama/ ollama_chat/ openrouter/ together_ai/ "
    "groq/ cerebras/ vercel_ai_gateway/ litellm_proxy/ models/ us. eu. apac. jp. global. "
    "anthropic. amazon. meta. mistral. cohere. openai. deepseek. xai. google. ft:"
)
"""The prefixes of providers, hosts and regions, which are ignored."""

CALIBRATIONS = {
    "claude": (1.18, "models before claude-opus-4-7: ingest issue 65, checked 2026-11"),
    "claude-4-7": (1.53, "claude-opus-4-7 and later: ingest issue 65, checked 2026-11"),
    "gemini": (1.1, "English, 5 to 10 % more: techcompare.app, checked 2026-11"),
    "openai": (1.0, "no tokenizer stated yet: that of the models before is assumed"),
}
"""Tokens for each token of o200k_base, by family, and the source of the figure."""

FORMER_CLAUDE = ("claude-3", "claude-opus-4", "claude-sonnet-4", "claude-haiku-4")
LATER_CLAUDE = ("claude-opus-4-7", "claude-opus-4-8")


def window(provider: str, known: int, output: int | None) -> tuple[int, int]:
    """Return the window and the input's own limit for litellm's max_input_tokens."""
    if provider == "openai" and known in (272_000, 922_000) and output == 128_000:
        return known + output, known
    if provider == "alibaba":
        if known > 500_000:
            return -(-known // 1_000_000) * 1_000_000, known
        return 1 << (known - 1).bit_length(), known
    return known, known


def counting(name: str, provider: str) -> tuple[str | None, str | None]:
    """Return the encoding, and the family of its factor, None if it is exact."""
    known = encoding_of(name)
    if known is not None:
        return known, None
    if provider == "openai":
        return "o200k_base", "openai"
    if provider == "anthropic":
        former = name.startswith(FORMER_CLAUDE) and not name.startswith(LATER_CLAUDE)
        return "o200k_base", "claude" if former else "claude-4-7"
    if name.startswith("gemini"):
        return "o200k_base", "gemini"
    return None, None


def rust(document: dict[str, Any]) -> str:
    """Return the tables of models and of tiktoken's names as a Rust file."""

    def literal(value: object) -> str:
        if value is None:
            return "None"
        if isinstance(value, str):
            return json.dumps(value)
        return str(value) if isinstance(value, float) else f"{value:_}"

    def optional(value: object) -> str:
        return literal(value) if value is None else f"Some({literal(value)})"

    def table(name: str, kind: str, doc: str, rows: list[str]) -> list[str]:
        return [
            *("", f"/// {doc}", "#[rustfmt::skip]"),
            f"pub(super) const {name}: &[{kind}] = &[",
            *(f"    {row}," for row in rows),
            "];",
        ]

    def pairs(mapping: dict[str, str], *, ordered: bool) -> list[str]:
        items = mapping.items() if ordered else sorted(mapping.items())
        return [f"({literal(key)}, {literal(value)})" for key, value in items]

    models = [
        f"Row({literal(name)}, {literal(model['context_window'])}, "
        f"{literal(model['max_input_tokens'])}, {optional(model['max_output_tokens'])}, "
        f"{optional(model['encoding'])}, {optional(model['calibration'])}, "
        f"{literal(model['provider'])}, {literal(model['source'])})"
        for name, model in sorted(document["models"].items())
    ]
    pair = "(&str, &str)"
    lines = [
        "//! The table of models: that of `models.json` of the Python package, and the",
        "//! names that tiktoken knows. Written by `scripts/generate_models.py`, which",
        "//! names the sources.",
        "",
        "use super::limits::Row;",
        *table("MODELS", "Row", "Sorted by name.", models),
        *table("ALIASES", pair, "Sorted.", pairs(document["aliases"], ordered=False)),
        *table(
            "PREFIXES",
            "&str",
            "The prefixes of names. The first one that matches is taken off.",
            [literal(prefix) for prefix in document["prefixes"]],
        ),
        *table(
            "ENCODING_OF_MODEL",
            pair,
            "The encoding that tiktoken counts with, by name, sorted.",
            pairs(ENCODING_OF_MODEL, ordered=False),
        ),
        *table(
            "ENCODING_OF_PREFIX",
            pair,
            "The encoding by the beginning of a name. The first one that matches decides.",
            pairs(ENCODING_OF_PREFIX, ordered=True),
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table, if arguments are given, and the Rust file made from it."""
    if sys.argv[1:]:
        TARGET.write_text(python(*sys.argv[1:]), encoding="utf-8")
    RUST.write_text(rust(json.loads(TARGET.read_text("utf-8"))), encoding="utf-8")


def python(path: str, version: str, date: str) -> str:
    """Return the table of models as a JSON file."""
    stated = json.loads(Path(path).read_text("utf-8"))
    models = {}
    for provider, (prefix, keys) in MODELS.items():
        for key in keys.split():
            entry = stated.get(prefix + key) or stated.get(key) or {}
            name = key.rpartition("/")[2]
            name = RENAMED.get(name, name)
            output = entry.get("max_output_tokens")
            total, own = window(provider, entry.get("max_input_tokens", 0), output)
            if name in CONTEXT:
                total = own = CONTEXT[name]
            if not total:
                raise SystemExit(f"litellm does not know {key}")
            encoding, family = counting(name, provider)
            models[name] = {
                "context_window": total,
                "max_input_tokens": own,
                "max_output_tokens": output if output and output < total else None,
                "encoding": encoding,
                "calibration": family and CALIBRATIONS[family][0],
                "provider": provider,
                "source": "document" if name in CONTEXT else "litellm",
            }
            if provider == "meta":
                models[name]["max_output_tokens"] = None
    head = {
        "sources": {
            "document": "the design 'RAG Context Budget System', 2026-11: the window",
            "litellm": f"litellm {version} (MIT), {date}; rules in scripts/generate_models.py",
        },
        "calibrations": {
            family: f"{factor} tokens for each of o200k_base; {source}"
            for family, (factor, source) in CALIBRATIONS.items()
        },
        "prefixes": PREFIXES.split(),
        "aliases": ALIASES,
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps(models[name])}" for name in sorted(models)
    )
    return "\n".join(["{", *lines, '  "models": {', rows, "  }", "}", ""])


if __name__ == "__main__":
    main()
