"""Reference of ``rust/core/src/count``: tiktoken's counts, and their cache."""

from bisect import bisect_left, bisect_right
from functools import cache
from itertools import accumulate
from typing import Any

from budgeteer._codes import CL100K, FRESH, O200K
from budgeteer._external import tiktoken_counter
from budgeteer.errors import CounterError

NAMES = {CL100K: "cl100k_base", O200K: "o200k_base"}

MAX_BYTES = 32 << 20
"""The most bytes of the cache of an encoding."""

ENTRY_BYTES = 50
"""About the bytes of one count in the native backend's cache."""


class Remembered:
    """The cache of counts of one encoding; the least recently used is dropped first."""

    def __init__(self) -> None:
        """Start empty."""
        self.clear()

    def clear(self) -> None:
        """Clear all counts and figures."""
        self.counts: dict[str, int] = {}
        self.hits = self.misses = 0

    def get(self, text: str) -> int | None:
        """Return the count of *text*, or None if it is not in the cache."""
        count = self.counts.pop(text, None)
        if count is None:
            self.misses += 1
        else:
            self.hits += 1
            self.counts[text] = count
        return count

    def put(self, text: str, count: int) -> None:
        """Store a count."""
        self.counts[text] = count
        if len(self.counts) * ENTRY_BYTES > MAX_BYTES:
            del self.counts[next(iter(self.counts))]


REMEMBERED = {kind: Remembered() for kind in NAMES}


def is_exact(kind: int) -> bool:
    """Return whether *kind* is an encoding."""
    return kind & ~FRESH in NAMES


@cache
def counter(kind: int) -> Any:
    """Return tiktoken's counter of the encoding."""
    name = NAMES[kind & ~FRESH]
    try:
        return tiktoken_counter(name)
    except CounterError as error:
        # The rest of its message does not help: a native counter was requested.
        reason = str(error).partition(";")[0]
        raise CounterError(
            f"without the native backend, {name!r} is counted by tiktoken: {reason}"
        ) from None


def count(kind: int, text: str) -> int:
    """Count the tokens of *text*, without the cache."""
    return int(counter(kind)(text))


def count_till_limit(kind: int, text: str, limit: int) -> int | None:
    """Return the number of tokens of *text* if it is at most *limit*."""
    if kind & FRESH or len(text.encode("utf-8", "surrogatepass")) // 64 > limit:
        found = count(kind, text)
        return found if found <= limit else None
    remembered = REMEMBERED[kind]
    known = remembered.get(text)
    if known is None:
        known = count(kind, text)
        if known <= limit:
            remembered.put(text, known)
    return known if known <= limit else None


class Tokens:
    """The tokens of a text, and their ends."""

    def __init__(self, kind: int, text: str) -> None:
        """Encode *text*."""
        encoding = counter(kind).encoding
        parts = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
        self.ends = [0, *accumulate(map(len, parts))]
        # Bytes up to each code point, as tiktoken reads a str: a surrogate pair is one character
        # of four bytes, a lone surrogate is U+FFFD, of three bytes.
        self.places = [0]
        before = ""
        for char in text:
            if "\ud800" <= before <= "\udbff" and "\udc00" <= char <= "\udfff":
                size = 1
            else:
                size = len(char.encode("utf-8", "surrogatepass"))
            self.places.append(self.places[-1] + size)
            before = char

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ends) - 1

    def head(self, tokens: int) -> int:
        """Return the last code point that the first *tokens* tokens reach."""
        return bisect_right(self.places, self.ends[min(tokens, len(self))]) - 1

    def tail(self, tokens: int) -> int:
        """Return the first code point after all but the last *tokens* tokens."""
        return bisect_left(self.places, self.ends[max(0, len(self) - tokens)])
