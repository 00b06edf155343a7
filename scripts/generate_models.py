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
- How a model counts is what tiktoken says, or else `FAMILIES`: by the model's own encoding, or by
  that of a relative and a factor. `COUNTING` has the factors with their sources.
- `UNKNOWN_WINDOW` and the way "other" are what a name gets that is not known at all.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python/budgeteer/_count/models.json"
RUST = ROOT / "rust/core/src/window/models.rs"
sys.path.insert(0, str(ROOT / "python"))

# The files alone, so that the package need not be built.
from budgeteer._count import litellm as litellm_rules  # noqa: E402
from budgeteer._count import model_names  # noqa: E402
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

MEASURED = "never too low on 501 languages, English texts and Python code, measured 2026-11-22"
COUNTING = {
    "llama-3": ("cl100k_base", 1.0, f"Llama 3 of splintr-rs 0.22.0; {MEASURED}"),
    "llama-4": ("cl100k_base", 1.25, "not measured: as Kimi K2, of a like size; 2026-11-22"),
    "llama-2": ("cl100k_base", 1.85, f"Llama 2 of splintr-rs 0.22.0; {MEASURED}"),
    "kimi-k2": ("cl100k_base", 1.25, f"Kimi K2 and K3 of splintr-vocab-kimi 1.0.0; {MEASURED}"),
    "gemma-3": ("gemma4", 1.0, f"Gemma 3 of splintr-rs 0.22.0; {MEASURED}"),
    "gemma-2": ("glm4", 1.6, f"Gemma 2 of splintr-rs 0.22.0; {MEASURED}"),
    "mistral-v3": (
        "cl100k_base",
        2.05,
        f"32k SentencePiece V1 and V3 of mistral-common 1.13.0; {MEASURED}",
    ),
    "qwen?": (
        "cl100k_base",
        1.75,
        f"Qwen 2 and 3.5, of which the name says neither; {MEASURED}",
    ),
    "glm-5": (
        "glm4",
        1.05,
        "not measured: its 154,820 tokens extend the 151,329 of GLM 4; 2026-11-22",
    ),
    "phi-4": ("cl100k_base", 1.0, f"Phi 4 of splintr-rs 0.22.0; {MEASURED}"),
    "other": (
        "cl100k_base",
        2.05,
        f"the most of every vocabulary that was measured; {MEASURED}",
    ),
}
"""
The ways to count that are estimates: an encoding, tokens for each of its tokens, and the source.

Besides these, an encoding's name counts by it exactly. A name with "?" is the same as a guess: if
it has no factor, that is 1.0, which marks counts as estimates. The rule which of the two it is:

- Sure is a model whose vocabulary was compared, or that its maker's own package names with it:
  mistral-common for Mistral, google-genai for Gemini.
- A guess is any other model that is believed to have it: closed ones, newer ones than those that
  were compared, names that end in "latest", and tunings by others.
- Where a name does not say which of its maker's vocabularies it is, the factor errs high on all.

A file of its family counts for a model only if it is sure.

The measured factors come from the Universal Declaration of Human Rights in 501 languages, whole
and in pieces of 1,000 characters; 15,450 English passages and questions (Natural Questions,
HotpotQA, Cranfield, CACM), some of two words; and 1,758 files of Python's standard library. A
factor is the least step of 0.05 at which no count of these, rounded up, is too low. The base is
the encoding that costs least so: the first 100,000 tokens of Llama 3 and all of Phi 4 are those of
cl100k_base, and all pieces of Gemma 3 but unused ones are those of Gemma 4. Over o200k_base the
same took 7.3 for Llama 3, 3.1 for Kimi and 6.8 for Mistral V3.
"""

FAMILIES = {
    "qwen": "qwen?",
    "qwen1": "qwen2?",
    **dict.fromkeys(("qwen2", "qwen-2", "qwen2.5", "qwen-2.5", "qwen3", "qwen-3"), "qwen2"),
    **dict.fromkeys(("qwen2.5-max", "qwen3-max", "qwq", "qvq", "kimi-dev"), "qwen2?"),
    **dict.fromkeys(("qwen3-coder-plus", "qwen3-coder-flash"), "qwen2?"),
    **dict.fromkeys(("qwen3-vl-plus", "qwen3-vl-flash"), "qwen2?"),
    **dict.fromkeys(("qwen3.5", "qwen-3.5", "qwen3.6", "qwen-3.6"), "qwen3.5"),
    **dict.fromkeys(("qwen3.", "qwen-3.", "qwen3.5-plus", "qwen3.5-flash"), "qwen3.5?"),
    **dict.fromkeys(("qwen3.5-max", "qwen3.6-plus", "qwen3.6-flash", "qwen3.6-max"), "qwen3.5?"),
    "llama": "other",
    **dict.fromkeys(("llama2", "llama-2", "llama-v2", "codellama", "phi3", "phi-3"), "llama-2"),
    **dict.fromkeys(("llama3", "llama3.1", "llama3.2", "llama3.3", "llama-v3"), "llama-3"),
    **dict.fromkeys(("llama-3", "llama-3.1", "llama-3.2", "llama-3.3"), "llama-3"),
    **dict.fromkeys(("meta-llama-3", "meta-llama-3.1"), "llama-3"),
    **dict.fromkeys(("llama4", "llama-4", "llama-v4"), "llama-4"),
    **dict.fromkeys(("mistral", "codestral", "pixtral-large"), "mistral-v3?"),
    **dict.fromkeys(("mistral:7b", "mistral-7b", "mixtral", "codestral-22b"), "mistral-v3"),
    **dict.fromkeys(("open-mistral-nemo", "mistral-nemo"), "tekken"),
    **dict.fromkeys(("ministral-8b-2410", "pixtral-12b"), "tekken"),
    **dict.fromkeys(("ministral", "magistral", "devstral", "voxtral", "pixtral"), "tekken?"),
    **dict.fromkeys(("mistral-nemotron", "codestral-2508", "codestral-latest"), "tekken?"),
    **dict.fromkeys(("mistral-small-latest", "mistral-small3", "mistral-small-3"), "tekken?"),
    **dict.fromkeys(("mistral-small-24b", "mistral-small:24b", "mistral-small-4"), "tekken?"),
    **dict.fromkeys(("mistral-small-25", "mistral-small-26"), "tekken?"),
    **dict.fromkeys(("mistral-medium-latest", "mistral-medium-3", "mistral-medium-25"), "tekken?"),
    **dict.fromkeys(("mistral-large-latest", "mistral-large-3", "mistral-large-4"), "tekken?"),
    "mistral-large-25": "tekken?",
    **dict.fromkeys(("gemma2", "gemma-2", "gemma-7b", "gemini-1.5"), "gemma-2"),
    **dict.fromkeys(("gemma", "gemini-1"), "gemma-2?"),
    **dict.fromkeys(("gemma3", "gemma-3", "gemini-2.0", "gemini-2.5"), "gemma-3"),
    **dict.fromkeys(("gemini-3-pro-preview", "gemini-3-flash-preview"), "gemma-3"),
    **dict.fromkeys(("gemini-2", "gemini-3-"), "gemma-3?"),
    **dict.fromkeys(("gemma4", "gemma-4"), "gemma4"),
    **dict.fromkeys(("gemini-3.1-pro", "gemini-3.1-flash-lite", "gemini-3.5-flash"), "gemma4"),
    **dict.fromkeys(("gemini", "gemini-3.5-flash-lite"), "gemma4?"),
    "claude": "claude4.8?",
    **dict.fromkeys(("claude-2", "claude-instant"), "other"),
    "kimi": "kimi-k2?",
    **dict.fromkeys(("kimi-k2", "kimi-k3"), "kimi-k2"),
    "deepseek": "deepseek?",
    **dict.fromkeys(("deepseek-chat", "deepseek-reasoner", "deepseek-r1"), "deepseek"),
    **dict.fromkeys(("deepseek-v3", "deepseek-v3.1", "deepseek-v3.2", "deepseek-v4"), "deepseek"),
    **dict.fromkeys(("deepseek-r1-distill", "deepseek-r1:8b"), "qwen?"),
    **dict.fromkeys(("deepseek-r1-distill-qwen", "deepseek-r1-0528-qwen3"), "qwen2?"),
    **dict.fromkeys(("deepseek-r1:1.5b", "deepseek-r1:7b", "deepseek-r1:14b"), "qwen2?"),
    "deepseek-r1:32b": "qwen2?",
    **dict.fromkeys(("deepseek-r1-distill-llama", "deepseek-r1:70b"), "llama-3"),
    **dict.fromkeys(("deepseek-coder", "deepseek-llm", "deepseek-math"), "other"),
    **dict.fromkeys(("deepseek-moe", "deepseek-vl", "deepseek-v2", "chatglm"), "other"),
    "glm": "glm-5?",
    **dict.fromkeys(("glm-4.5", "glm-4.6", "glm-4-9b", "glm4:9b"), "glm4"),
    **dict.fromkeys(("glm4", "glm-4", "glm-4.7"), "glm4?"),
    **dict.fromkeys(("glm-4.7-flash", "glm-5"), "glm-5"),
    **dict.fromkeys(("phi4", "phi-4"), "phi-4"),
    **dict.fromkeys(("phi4-mini", "phi-4-mini", "phi-4-multimodal"), "o200k_base?"),
}
"""
The way to count of a family of names; `model_names.families` says how the family is found.

Also of a model of the table, where it is longer than the model's own name: a distilled or smaller
model may have another vocabulary. mistral-common names mistral-large-2411 and pixtral-large-2411
with SentencePiece. Models of 8 billion parameters that were distilled from DeepSeek R1 have the
vocabulary of Llama 3 or of Qwen 3, by their date; so for them the factor covers both.
"""

UNKNOWN_WINDOW = 32_768
"""
The window of a name that is not known: the smallest in this table of a chat model that its maker
serves today (qwen-max; also Mistral 7B). Less is right for models of 2023 and for Phi 4 alone, and
wastes most of any other's window. More overflows the smallest.
"""

FORMER_CLAUDE = ("claude-3", "claude-opus-4", "claude-sonnet-4", "claude-haiku-4")
LATER_CLAUDE = ("claude-opus-4-7", "claude-opus-4-8")


def counting_of(name: str, provider: str) -> str:
    """Return the way to count of a model of the table."""
    known = encoding_of(name)
    if known is not None:
        return known
    if provider == "anthropic":
        if name.startswith("claude-opus-4-7"):
            return "claude4.7"
        former = name.startswith(FORMER_CLAUDE) and not name.startswith(LATER_CLAUDE)
        return "claude3" if former else "claude4.8"
    if provider == "openai":
        return "o200k_base?"
    found = model_names.families(name, FAMILIES, ())
    if len({FAMILIES[family] for family, _ in found}) != 1:
        return "other"
    [(family, is_whole)] = found
    way = FAMILIES[family]
    return way if is_whole or way.endswith("?") or way in COUNTING else f"{way}?"


def ways(used: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return the ways to count that are used: the encoding, the factor if any, and its source."""
    found = {}
    for way in sorted({*used}):
        sure = way.removesuffix("?")
        encoding, factor, source = COUNTING.get(way) or COUNTING.get(sure, (sure, None, None))
        if way.endswith("?") and way not in COUNTING:
            factor = factor or 1.0
            source = f"believed to count as {sure}" + (f": {source}" if source else "")
        found[way] = {"encoding": encoding, "calibration": factor, "source": source}
    return found


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

    def table(name: str, kind: str, doc: str, rows: list[str], feature: str = "") -> list[str]:
        return [
            *("", f"/// {doc}", "#[rustfmt::skip]"),
            *([f'#[cfg(feature = "{feature}")]'] if feature else []),
            f"pub(super) const {name}: &[{kind}] = &[",
            *(f"    {row}," for row in rows),
            "];",
        ]

    def pairs(mapping: dict[str, str], *, ordered: bool) -> list[str]:
        items = mapping.items() if ordered else sorted(mapping.items())
        return [f"({literal(key)}, {literal(value)})" for key, value in items]

    ways = [*document["counting"]]
    models = [
        f"Row({literal(name)}, {literal(model['context_window'])}, "
        f"{literal(model['max_input_tokens'])}, {optional(model['max_output_tokens'])}, "
        f"{ways.index(model['counting'])}, "
        f"{literal(model['provider'])}, {literal(model['source'])})"
        for name, model in sorted(document["models"].items())
    ]
    pair, unknown = "(&str, &str)", document["unknown"]
    window, other = literal(unknown["context_window"]), ways.index(unknown["counting"])
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
            "WAYS",
            "(&str, Option<f64>)",
            "The ways to count: encodings, and factors if the encoding is another one's.",
            [
                f"({literal(way['encoding'])}, {optional(way['calibration'])})"
                for way in document["counting"].values()
            ],
        ),
        *table(
            "WAY_NAMES",
            "&str",
            "The names of the ways to count. One that is only believed ends in `?`.",
            [literal(name) for name in document["counting"]],
            feature="files",
        ),
        *table(
            "FAMILIES",
            "(&str, usize)",
            "The way to count of a name, by what a part of it starts with.",
            [f"({literal(key)}, {ways.index(way)})" for key, way in document["families"].items()],
        ),
        "",
        "/// The window of a model that is not known, and its way to count.",
        f"pub(super) const UNKNOWN: (usize, usize) = ({window}, {other});",
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
            is_limit = output and output < fields["context_window"] and provider != "meta"
            models[name] = {
                "context_window": fields["context_window"],
                "max_input_tokens": fields["max_input_tokens"],
                "max_output_tokens": output if is_limit else None,
                "counting": counting_of(name, provider),
                "provider": provider,
                "source": "document" if name in CONTEXT else source,
            }
    used = ["other", *FAMILIES.values(), *(model["counting"] for model in models.values())]
    head = {
        "sources": {
            "document": "the design 'RAG Context Budget System', 2026-11: the window",
            source: f"{litellm_rules.FILE} of litellm {version} (MIT), {date}, SHA-256 "
            f"{hashlib.sha256(content).hexdigest()}; rules in scripts/generate_models.py",
        },
        "counting": ways(used),
        "unknown": {"context_window": UNKNOWN_WINDOW, "counting": "other"},
        "families": FAMILIES,
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
