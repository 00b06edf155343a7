"""Reference of ``rust/core/src/count.rs``."""

from array import array
from collections.abc import Sequence
from math import ceil

from budgeteer._codes import CHARS_DIV4, WORDS


def measure(kind: int, text: str) -> int:
    """Return what adds up when texts are joined by whitespace: code points, or words."""
    return len(text.split()) if kind == WORDS else len(text)


def tokens(kind: int, ratio: float, measured: int) -> int:
    """Return the tokens of a text that is not empty, from its measure."""
    if kind == WORDS:
        return max(1, measured)
    if kind == CHARS_DIV4:
        return (measured + 3) // 4
    return ceil(measured / ratio)


def count(kind: int, ratio: float, text: str) -> int:
    """Count the tokens of *text*."""
    text = str.__str__(text)  # what a subclass redefines does not count
    return tokens(kind, ratio, measure(kind, text)) if text else 0


def count_batch(kind: int, ratio: float, texts: Sequence[object]) -> bytearray | int:
    """Count each of *texts*, as int64; or return the index of the first that is no str."""
    counts = array("q")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            return i
        counts.append(count(kind, ratio, text))
    return bytearray(counts.tobytes())
