"""Reference of ``rust/core/src/count``: exact counts, and their cache."""

from __future__ import annotations

import hashlib
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from errno import ENOENT
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from budgeteer import _external
from budgeteer._codes import CL100K, CLAUDE3, CLAUDE48, FRESH, GEMMA4, O200K, QWEN2
from budgeteer._reference._count import bpe
from budgeteer.errors import CounterError

NAMES = {CL100K: "cl100k_base", O200K: "o200k_base"}
"""The encodings that tiktoken counts. The others are merged here."""


def _max_bytes() -> int:
    """Return what ``BUDGETEER_COUNT_CACHE_MB`` says, which `budgeteer._backend` has checked."""
    digits = os.environ.get("BUDGETEER_COUNT_CACHE_MB", "32").lstrip("0")[:20] or "0"
    return min(int(digits) << 20, 2**64 - 1)  # more is more memory than there is


MAX_BYTES = _max_bytes()
"""The most bytes of the cache of an encoding."""

ENTRY_BYTES = 200
"""The bytes of one count at most: a hash, an int and a place in a dict that is half empty."""

_MAX_ENTRIES = MAX_BYTES // ENTRY_BYTES // 2
"""The entries that each half of a cache may have."""

_KEY = os.urandom(16)


class Remembered:
    """
    The cache of counts of one encoding, by a keyed hash of each text.

    What is used moves to the young half. When that is full it becomes the old one, which is
    forgotten.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.clear()

    def clear(self) -> None:
        """Clear all counts and figures."""
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}
        self.hits = self.misses = 0

    def __len__(self) -> int:
        """Return the number of counts."""
        return len(self._young) + len(self._old)

    def get(self, text: str) -> int | None:
        """Return the count of *text*, or None if it is not in the cache."""
        key = _hash(text)
        count = self._young.get(key)
        if count is None:
            count = self._old.pop(key, None)
            if count is not None:
                self._put(key, count)
        if count is None:
            self.misses += 1
        else:
            self.hits += 1
        return count

    def put(self, text: str, count: int) -> None:
        """Store a count."""
        self._put(_hash(text), count)

    def _put(self, key: bytes, count: int) -> None:
        if len(self._young) >= _MAX_ENTRIES:
            self._old, self._young = self._young, {}
        self._young[key] = count


def _hash(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16, key=_KEY).digest()


REMEMBERED = {kind: Remembered() for kind in range(CL100K, CLAUDE48 + 1)}


class Tokenizer:
    """A tokenizer that was read from a file. The package tokenizers counts it."""

    def __init__(self, path: str, has_cache: bool) -> None:
        """
        Read the ``tokenizer.json`` at *path*, or in that directory.

        Its `normal` is an encoding that normalizes as it does, and `sizes` returns the number of
        bytes of each token of a text, which has no surrogates.
        """
        file = _external.tokenizer_json(path)
        if file is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        if not file.endswith(".json"):
            raise CounterError("without the native backend, only a tokenizer.json is read")
        self.path, self.has_cache = path, has_cache
        self.remembered = Remembered()
        self.normal, self.sizes = _read(file, Path(file).stat().st_mtime_ns)

    def fresh(self) -> Tokenizer:
        """Return the same tokenizer, which counts without a cache."""
        return Tokenizer(self.path, has_cache=False)

    def made_with(self) -> tuple[str, bool]:
        """Return the arguments that it was made with."""
        return self.path, self.has_cache

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of what was read once, and has a cache as this."""
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self.sizes is other.sizes and self.has_cache == other.has_cache

    def __hash__(self) -> int:
        """Return the same for equal ones."""
        return hash(self.sizes)


def _ask_native(file: str) -> None:
    """Refuse what the native module refuses, where there is one: it says what it cannot count."""
    try:
        from budgeteer import _native
    except ImportError:
        return
    _native.Tokenizer(file, True)


@lru_cache(maxsize=4)  # as many as `budgeteer._count.files` keeps
def _read(file: str, _: int) -> tuple[int, Callable[[str], list[int]]]:
    """Read a tokenizer. Its added tokens are plain text, as native code does."""
    try:
        from tokenizers import Tokenizer as Read  # an extra, and slow to load
    except ImportError:
        raise CounterError("without the native backend, it is counted by tokenizers") from None
    content = Path(file).read_bytes()
    try:
        document = json.loads(content)
        model = document["model"]
        kind = model.get("type", "BPE")
        document.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
        model["dropout"] = None
        has_bytes = "ByteLevel" in json.dumps(document.get("pre_tokenizer"))
        tokenizer = Read.from_str(json.dumps(document))
    except Exception:  # noqa: BLE001 - tokenizers raises no other, and it may quote the file
        raise CounterError("the file is no tokenizer.json") from None
    _ask_native(file)
    if kind != "BPE":
        raise CounterError(f"the model {kind}")
    is_composed = '"NFC"' in json.dumps(document.get("normalizer"))
    normal = QWEN2 if is_composed else CL100K if has_bytes else GEMMA4

    def size(token: str) -> int:
        if has_bytes:
            return len(token)
        is_byte = len(token) == len("<0x00>") and token.startswith("<0x")
        return 1 if is_byte else len(token.replace("\u2581", " ").encode())

    def sizes(text: str) -> list[int]:
        return list(map(size, tokenizer.encode(text, add_special_tokens=False).tokens))

    return normal, sizes


def is_exact(kind: Any) -> bool:
    """Return whether *kind* counts as a tokenizer does."""
    return isinstance(kind, Tokenizer) or kind & ~FRESH in REMEMBERED


def remembered(kind: Any) -> Remembered:
    """Return the cache of *kind*."""
    return kind.remembered if isinstance(kind, Tokenizer) else REMEMBERED[kind & ~FRESH]


def _is_fresh(kind: Any) -> bool:
    if not MAX_BYTES:
        return True
    return not kind.has_cache if isinstance(kind, Tokenizer) else bool(kind & FRESH)


@cache
def counter(kind: int) -> Any:
    """Return tiktoken's counter of the encoding."""
    name = NAMES[kind & ~FRESH]
    try:
        return _external.tiktoken_counter(name)
    except CounterError as error:
        # The rest of its message does not help: a native counter was requested.
        reason = str(error).partition(";")[0]
        raise CounterError(
            f"without the native backend, {name!r} is counted by tiktoken: {reason}"
        ) from None


def normalized(kind: Any, text: str) -> str:
    """Return the text that is split and merged, without surrogates."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return bpe.normalized(_normal(kind), whole)


def _normal(kind: Any) -> int:
    """Return an encoding that normalizes as *kind* does."""
    return kind.normal if isinstance(kind, Tokenizer) else kind & ~FRESH


def sizes(kind: Any, text: str) -> list[int]:
    """Return the number of bytes of each token of *text*, as it is normalized."""
    if not isinstance(kind, Tokenizer) and kind & ~FRESH in NAMES:
        encoding = counter(kind).encoding
        tokens = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
        return [len(token) for token in tokens]
    normal = normalized(kind, text)
    return kind.sizes(normal) if isinstance(kind, Tokenizer) else bpe.sizes(kind & ~FRESH, normal)


def has_tokens(kind: Any) -> bool:
    """Return whether it is known which tokens a text has; of Claude only their number is."""
    return isinstance(kind, Tokenizer) or kind & ~FRESH < CLAUDE3


def count(kind: Any, text: str) -> int:
    """Count the tokens of *text*, without the cache."""
    return len(sizes(kind, text)) if has_tokens(kind) else _reconstructed(kind | FRESH, text)


def _reconstructed(kind: int, text: str) -> int:
    """Count for Claude. The reference of that is the project ctok, which needs Python 3.12."""
    try:
        from budgeteer import _native  # for its data: nothing else has them
    except ImportError:
        raise CounterError("without the native module, nothing counts for Claude") from None
    return _native.count(kind, 1.0, text)


def count_till_limit(kind: Any, text: str, limit: int) -> int | None:
    """Return the number of tokens of *text* if it is at most *limit*."""
    if _is_fresh(kind) or len(text.encode("utf-8", "surrogatepass")) // 64 > limit:
        found = count(kind, text)
        return found if found <= limit else None
    cache = remembered(kind)
    known = cache.get(text)
    if known is None:
        known = count(kind, text)
        if known <= limit:
            cache.put(text, known)
    return known if known <= limit else None


class Tokens:
    """The tokens of a text, and their ends."""

    def __init__(self, kind: Any, text: str) -> None:
        """Encode *text*."""
        normal = len(normalized(kind, text).encode())
        ends = [0, *accumulate(sizes(kind, text))]
        prefix = ends[-1] - normal  # a space that the tokenizer puts in front
        self.ends = [max(0, end - prefix) for end in ends]
        # Bytes up to each code point, as tiktoken reads a str: a surrogate pair is one character
        # of four bytes, a lone surrogate is U+FFFD, of three bytes.
        self.points, self.places = list(range(len(text) + 1)), [0]
        before = ""
        for char in text:
            if "\ud800" <= before <= "\udbff" and "\udc00" <= char <= "\udfff":
                size = 1
            else:
                size = len(char.encode("utf-8", "surrogatepass"))
            self.places.append(self.places[-1] + size)
            before = char
        self.is_shorter = normal != self.places[-1]
        if self.is_shorter:  # as it is normalized: the places where nothing composes
            starts = [at for at in range(1, len(text)) if self._is_start(kind, text, at)]
            self.points, self.places = [0], [0]
            for at in [*starts, len(text)]:
                part = normalized(kind, text[self.points[-1] : at])
                self.points.append(at)
                self.places.append(self.places[-1] + len(part.encode()))

    @staticmethod
    def _is_start(kind: Any, text: str, at: int) -> bool:
        """Return whether the text may be normalized in two parts there."""
        is_low = "\udc00" <= text[at] <= "\udfff" and "\ud800" <= text[at - 1] <= "\udbff"
        return not is_low and bpe.starts_anew(_normal(kind), text[at])

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ends) - 1

    def head(self, tokens: int) -> int:
        """Return the last code point that the first *tokens* tokens reach."""
        return self._last(self.ends[min(tokens, len(self))])

    def tail(self, tokens: int) -> int:
        """Return the first code point after all but the last *tokens* tokens."""
        end = self.ends[max(0, len(self) - tokens)]
        return self._last(end) if self.is_shorter else self.points[bisect_left(self.places, end)]

    def _last(self, end: int) -> int:
        return self.points[bisect_right(self.places, end) - 1]
