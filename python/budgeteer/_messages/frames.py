"""The tokens that a model's chat template writes around messages, by the family of the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, get_args

Rule: TypeAlias = Literal["published rule", "measured", "bound", "estimate"]
"""
What a number of tokens rests on beside its counter.

A maker's rule, bills and counts of others, a figure that is not exceeded, or a relative's rule and
other guesses that err high. The later ones say less.
"""
_RULES: tuple[Rule, ...] = get_args(Rule)


def weakest(rules: Iterable[Rule]) -> Rule:
    """Return what a sum rests on whose parts rest on these."""
    return max(rules, key=_RULES.index)


class Frame(NamedTuple):
    """
    What stands around the messages of one family of models.

    A special token counts 1, and so does a line end that stands between two of them.

    Attributes:
        basis: What these figures rest on.
        source: Where they are from, with a date.
        special: The special tokens and line ends of each message.
        text: The other text of each message, apart from its role and content.
        has_role: Whether the role is written out, rather than being one of the special tokens.
        per_name: The tokens of a ``name`` beside its text.
        per_call: The tokens of a tool call beside the texts in it.
        per_result: The tokens of a tool result beside those of a message.
        start: The special tokens before the first message.
        prelude: The text that the template writes before the first message, whatever it is.
        reply: The special tokens that prime the reply.
        reply_text: The text that primes it.
        is_exact: Whether a message takes exactly this, as far as is known, and not less at times.

    """

    basis: Rule
    source: str
    special: int = 3
    text: str = ""
    has_role: bool = True
    per_name: int = 1
    per_call: int = 0
    per_result: int = 0
    start: int = 0
    prelude: str = ""
    reply: int = 3
    reply_text: str = ""
    is_exact: bool = False

    @property
    def around_name(self) -> str:
        """What an error calls the tokens that are not of a message."""
        return "the start and the reply" if self.start else "the reply"


OPENAI = Frame(
    *("published rule", "OpenAI cookbook, how to count tokens with tiktoken, 2024-07"),
    is_exact=True,
)
_UNKNOWN = OPENAI._replace(
    basis="estimate", source="no rule is known here: OpenAI's, 2024-07", is_exact=False
)

_OTHERS = {
    name: OPENAI._replace(basis="estimate", source=f"{maker} publishes no rule: OpenAI's, 2024-07")
    for name, maker in (("claude", "Anthropic"), ("gemini", "Google"))
}
_OPUS_4_7 = _OTHERS["claude"]._replace(
    basis="measured",
    source="ctok 1.3.0 (PyPI): 11 tokens around a message, 2026-11",
    start=4,
    is_exact=False,
)
_QWEN = Frame(
    *("published rule", "chat template of Qwen2.5 and Qwen3 (Hugging Face), 2025-04"),
    special=4,
    per_call=13,
    per_result=4,
    start=3,
    prelude="system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
    reply=1,
    reply_text="assistant\n",
)
_QWEN3 = _QWEN._replace(start=0, prelude="", reply=5)  # an empty thought, where it is not to think
_LLAMA3 = Frame(
    *("published rule", "chat template of Llama 3.1 to 3.3 (Hugging Face), 2024-12"),
    special=3,
    text="\n\n",
    per_call=10,
    per_result=5,
    start=4,
    prelude="system\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
    reply=2,
    reply_text="assistant\n\n",
)
_MISTRAL = Frame(
    *("published rule", "mistral-common, tokenizers v1 to v13, 2025-06"),
    special=3,  # [TOOL_RESULTS], [TOOL_CONTENT] and its end; a message of the user has two
    has_role=False,
    per_call=16,
    per_result=10,
    start=1,
    reply=0,
)
_MISTRAL_OLD = _MISTRAL._replace(special=8)  # tokenizer v1 has no special tokens for [INST]
_GEMMA = Frame(
    *("published rule", "chat template of Gemma 2 to 4 (Hugging Face), 2026-04"),
    special=4,
    per_call=8,
    per_result=5,
    start=1,
    reply=1,
    reply_text="model\n",
)
_DEEPSEEK = Frame(
    *("published rule", "chat template of DeepSeek V3 and R1 (Hugging Face), 2025-08"),
    special=2,
    text="\n\n",
    has_role=False,
    per_call=11,
    per_result=3,
    start=1,
    reply=2,
    reply_text="\n",
)
_HARMONY = Frame(
    *("published rule", "OpenAI harmony response format, 2025-08"),
    special=4,  # <|start|>, <|channel|>, <|message|> and <|end|>
    text="final",
    per_call=10,  # and what is said beside it is a message of its own
    per_result=11,
    start=3,
    prelude=(
        "systemYou are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every "
        "message.\nCalls to these tools must go to the commentary channel: 'functions'."
        "# Instructions\n\n"  # before the first message of the system
    ),
    reply=1,
    reply_text="assistant",
)

_FAMILIES = {
    "opus-4-7": _OPUS_4_7,
    "opus-4.7": _OPUS_4_7,
    **_OTHERS,
    "gpt-oss": _HARMONY,
    "deepseek": _DEEPSEEK,  # first, as what is distilled from it has its template
    "qwen3": _QWEN3,
    "qwen-3": _QWEN3,
    "qwen": _QWEN,
    "qwq": _QWEN3,
    "llama3": _LLAMA3,
    "llama-3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "mixtral": _MISTRAL_OLD,
    "mistral-7b": _MISTRAL_OLD,
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "codestral": _MISTRAL,
    "devstral": _MISTRAL,
    "magistral": _MISTRAL,
    "pixtral": _MISTRAL,
    "gemma": _GEMMA,
}
_OPENAIS = ("gpt", "o1", "o3", "o4", "chatgpt", "codex")


def frame_of(model: str) -> Frame:
    r"""
    Return the frame of a model by its name.

    Examples:
        >>> frame_of("meta-llama/Llama-3.3-70B-Instruct").reply_text
        'assistant\n\n'
        >>> frame_of("gpt-4o").basis, frame_of("acme-7b").basis
        ('published rule', 'estimate')

    """
    name = model.rpartition("/")[2].lower().removeprefix("ft:")
    for part, frame in _FAMILIES.items():
        if part in name:
            return frame
    return OPENAI if not name or name.startswith(_OPENAIS) else _UNKNOWN
