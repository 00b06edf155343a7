"""The names of counters, and their meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from budgeteer._codes import (
    CALLABLE,
    CHARS_DIV4,
    CHARS_PER_TOKEN,
    CL100K,
    CLAUDE3,
    CLAUDE47,
    CLAUDE48,
    DEEPSEEK,
    FILE,
    GEMMA4,
    GLM4,
    HF,
    O200K,
    QWEN2,
    QWEN35,
    TEKKEN,
    TIKTOKEN,
    WORDS,
)
from budgeteer.errors import InvalidArgumentError

ENCODINGS = {
    "cl100k_base": CL100K,
    "o200k_base": O200K,
    "qwen2": QWEN2,
    "qwen3.5": QWEN35,
    "deepseek": DEEPSEEK,
    "glm4": GLM4,
    "tekken": TEKKEN,
    "gemma4": GEMMA4,
    "claude3": CLAUDE3,
    "claude4.7": CLAUDE47,
    "claude4.8": CLAUDE48,
}
"""The native encodings, and the reconstructions of others."""

Estimator: TypeAlias = Literal["chars_div4", "words", "whitespace"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)

NAMES = (
    *ENCODINGS,
    *("chars_div4", "words", "whitespace", "chars_per_token:X"),
    *("tiktoken:NAME", "file:PATH", "hf:PATH"),
)
"""The names that `get_counter` takes, apart from models."""

_ESTIMATES = {"chars_div4": CHARS_DIV4, "words": WORDS, "whitespace": WORDS}
_RATIO_MIN, _RATIO_MAX = 0.001, 1_000_000.0
_PREFIX = "chars_per_token:"


class Meaning(NamedTuple):
    """
    The meaning of a counter's name.

    Attributes:
        kind: One of the counters in `budgeteer._codes`, or a tokenizer that was read from a file.
        is_exact: Whether it counts as a tokenizer does.
        ratio: Characters for each token, if it counts by them; else what counts are multiplied by.
        function: The function that counts, if no backend does.

    """

    kind: Any
    is_exact: bool
    ratio: float = 1.0
    function: Callable[[str], int] | None = None


def meaning_of(name: str) -> Meaning | None:
    """
    Return the meaning of *name*, or None if it may be a model.

    Raises:
        InvalidArgumentError: The part after the colon is invalid.
        CounterError: A package or file that it needs is not installed or cannot be read.

    """
    for kinds in (ENCODINGS, _ESTIMATES):
        if name in kinds:
            return Meaning(kinds[name], kinds is ENCODINGS)
    if name.startswith(TIKTOKEN):
        from budgeteer import _external  # few programs need other packages

        return Meaning(CALLABLE, True, 1.0, _external.tiktoken_counter(name[len(TIKTOKEN) :]))
    if name.startswith((FILE, HF)):
        from budgeteer._count import files  # few programs have a tokenizer of their own

        found = files.tokenizer_of(name)
        return Meaning(CALLABLE, True, 1.0, found) if callable(found) else Meaning(found, True)
    if not name.startswith(_PREFIX):
        return None
    try:
        ratio = float(name.removeprefix(_PREFIX))
    except ValueError:
        ratio = float("nan")
    if _RATIO_MIN <= ratio <= _RATIO_MAX:
        return Meaning(CHARS_PER_TOKEN, False, ratio)
    raise InvalidArgumentError(
        f"counter {name[:80]!r} must have a number of characters from {_RATIO_MIN:g} to "
        f"{_RATIO_MAX:.0f} after the colon"
    )
