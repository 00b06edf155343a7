"""Reference of ``rust/core/src/count.rs``."""

from array import array
from collections.abc import Sequence
from math import ceil
from typing import Any

from budgeteer._codes import CHARS_DIV4, WORDS
from budgeteer._reference._chunk.chunk import read
from budgeteer._reference._count import exact as _exact


def measure(kind: Any, text: str) -> int:
    """Return the size that adds up when whitespace joins texts: code points, or words."""
    return len(text.split()) if kind == WORDS else len(text)


def tokens(kind: Any, ratio: float, measured: int) -> int:
    """Return the tokens of a text that is not empty, from its size."""
    if kind == WORDS:
        return max(1, measured)
    if kind == CHARS_DIV4:
        return (measured + 3) // 4
    return ceil(measured / ratio)


def times(count: int, factor: float) -> int:
    """Return *count* times *factor*, rounded up."""
    return count if factor == 1 else ceil(count * factor)


def within(limit: int, factor: float) -> int:
    """Return the largest count that is at most *limit* times *factor*."""
    if factor == 1:
        return limit
    limit = min(limit, 2**52)  # no text has more tokens, and floats are still exact
    most = 2**62  # also of a tiny factor
    count = min(int(limit / factor), most)
    while times(count, factor) > limit:
        count -= 1
    while count < most and times(count + 1, factor) <= limit:
        count += 1
    return count


def left(count: int, factor: float) -> int:
    """Return the tokens that are left where *count* are, rounded down."""
    return count if factor == 1 else int(count * factor)


def count(kind: Any, ratio: float, text: str) -> int:
    """Count the tokens of *text*; of an encoding, times *ratio*."""
    return count_till_limit(kind, ratio, text, 2**63 - 1) or 0


def count_around(kind: Any, ratio: float, text: str, start: int, end: int, tokens: int) -> int:  # noqa: ARG001
    """Count *text*, of which the characters from *start* to *end* count *tokens*."""
    return count(kind, ratio, text)


def count_till_limit(kind: Any, ratio: float, text: str, limit: int) -> int | None:
    """Count the tokens of *text*, or return None if there are more than *limit*."""
    text = str.__str__(text)  # a subclass's own methods are ignored
    if _exact.is_exact(kind):
        found = _exact.count_till_limit(kind, text, within(limit, ratio))
        return None if found is None else times(found, ratio)
    counted = tokens(kind, ratio, measure(kind, text)) if text else 0
    return counted if counted <= limit else None


def count_chunks(
    kind: Any, ratio: float, chunks: Sequence[Any], limits: Sequence[int]
) -> list[int | None]:
    """Count the text of each chunk, which can be read; None for more than its limit."""
    texts, _ = read(chunks, with_titles=False)
    if isinstance(texts, int):
        raise TypeError("a chunk has no text any more")
    pairs = zip(texts, limits, strict=True)
    return [count_till_limit(kind, ratio, text, limit) for text, limit in pairs]


def count_batch(kind: Any, ratio: float, texts: Sequence[object]) -> bytearray | int:
    """Count each of *texts* as int64; or return the index of the first that is not a str."""
    counts = array("q")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            return i
        counts.append(count(kind, ratio, text))
    return bytearray(counts.tobytes())


def cache_info(kind: Any) -> tuple[int, int, int, int, int]:
    """Return the hits, misses, entries, bytes and most bytes of the cache."""
    remembered = _exact.remembered(kind)
    entries = len(remembered)
    size = entries * _exact.ENTRY_BYTES
    return remembered.hits, remembered.misses, entries, size, _exact.MAX_BYTES


def clear_cache(kind: Any) -> None:
    """Clear the cache."""
    _exact.remembered(kind).clear()
