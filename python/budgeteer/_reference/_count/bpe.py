"""Reference of ``rust/core/src/count/bpe.rs``: merges as they are defined, pair by pair."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from budgeteer._codes import DEEPSEEK, GEMMA4, GLM4, QWEN2, QWEN35, TEKKEN
from budgeteer.errors import CounterError

NAMES = {
    QWEN2: "qwen2",
    QWEN35: "qwen3.5",
    DEEPSEEK: "deepseek",
    GLM4: "glm4",
    TEKKEN: "tekken",
    GEMMA4: "gemma4",
}
"""The encodings that are merged here, and the files of their vocabularies."""

_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

PATTERNS = {
    QWEN2: [rf"{_CONTRACTIONS}|{_LETTERS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"],
    QWEN35: [
        (
            rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
        )
    ],
    DEEPSEEK: [
        r"\p{N}{1,3}",
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        (
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
            rf"|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
        ),
    ],
    GLM4: [rf"{_CONTRACTIONS}|{_LETTERS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"],
    TEKKEN: [
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
            rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
        )
    ],
}
"""The patterns that split a text, each the pieces of the one before; Gemma 4 has none."""


class Vocabulary(NamedTuple):
    """
    The vocabulary of an encoding.

    Attributes:
        tokens: The tokens by rank. The lowest 256 are single bytes.
        singles: The rank of each single byte.
        merges: What two tokens merge to.
        wholes: Tokens that no merge makes: a whole piece may be one.
        early: Tokens that merge before others do to their left part, and that part.

    """

    tokens: list[bytes]
    singles: dict[int, int]
    merges: dict[tuple[int, int], int]
    wholes: set[bytes]
    early: dict[int, int]


@cache
def vocabulary(kind: int) -> Vocabulary:
    """Return the vocabulary of an encoding."""
    packed = _packed(kind)
    heads, wholes, early = (int.from_bytes(packed[at : at + 4], "little") for at in (0, 4, 8))
    start = 12
    parts = zlib.decompress(packed[start : start + heads], -15)
    start += heads
    tokens, parts = [bytes([byte]) for byte in parts[:256]], parts[256:]
    singles = {token[0]: rank for rank, token in enumerate(tokens)}
    whole = zlib.decompress(packed[start : start + wholes], -15) if wholes else b""
    start += wholes
    first = [
        int.from_bytes(packed[at : at + 4], "little") for at in range(start, start + early, 4)
    ]
    tails = int.from_bytes(packed[start + early :], "little")
    bits = format(tails, "b")[::-1]
    at = 0

    def rank(head: int) -> int:
        nonlocal at
        length = max(0, (head >> 4) - 1)
        low = int(bits[at : at + length].ljust(length, "0")[::-1] or "0", 2)
        at += length
        return (head - (length << 4)) << length | low

    half = len(parts) // 2
    merges = {}
    for left_head, right_head in zip(parts[:half], parts[half:], strict=True):
        pair = rank(left_head), rank(right_head)
        merges[pair] = len(tokens)
        tokens.append(tokens[pair[0]] + tokens[pair[1]])
    found = set()
    while whole:
        length = int.from_bytes(whole[:2], "little")
        found.add(whole[2 : 2 + length])
        whole = whole[2 + length :]
    if kind == GEMMA4:  # runs merge first, and from the left
        found.update(token for token in tokens if len(token) > 1 and not token.strip(b" \n\t\r"))
    lefts = {token: left for (left, _), token in merges.items() if token in first}
    return Vocabulary(tokens, singles, merges, found, lefts)


def _packed(kind: int) -> bytes:
    """Return the data of a vocabulary, of the native module or the pure-Python wheel."""
    try:
        from budgeteer import _native
    except ImportError:
        file = Path(__file__).with_name("vocabularies") / f"{NAMES[kind]}.bin"
    else:
        return _native.packed_vocabulary(kind)
    try:
        return file.read_bytes()
    except OSError:
        raise CounterError("without the native module, there is no vocabulary") from None


def normalized(kind: int, text: str) -> str:
    """Return the text that is split and merged."""
    if kind in (QWEN2, QWEN35):
        return text if text.isascii() else str(_composer().normalize_str(text))
    return text.replace("\u2581", " ") if kind == GEMMA4 else text


@cache
def _composer() -> Any:
    try:
        from tokenizers import normalizers  # it composes by Unicode 9; Python's tables are newer
    except ImportError:
        raise CounterError("without the native backend, it is composed by tokenizers") from None
    return normalizers.NFC()


def starts_anew(kind: int, char: str) -> bool:
    """Return whether *char* is normalized alike whatever stands in front of it."""
    if kind not in (QWEN2, QWEN35):
        return True
    if "\ud800" <= char <= "\udfff":
        return True  # it is U+FFFD, or half of a character that composes with none
    is_stable = normalized(QWEN2, char) == char and not unicodedata.combining(char)
    return is_stable and char not in _second_parts()


@cache
def _second_parts() -> frozenset[str]:
    """Return the characters that compose with one in front of them."""
    found = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for char in map(chr, range(0x110000)):
        parts = unicodedata.decomposition(char).split()
        if len(parts) == 2 and "<" not in parts[0]:
            pair = "".join(chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", pair) == char:
                found.add(pair[1])
    return frozenset(found)


def sizes(kind: int, text: str) -> list[int]:
    """Return the number of bytes of each token of *text*, which is normalized."""
    known = vocabulary(kind)
    return [size for piece in split(kind, text) for size in merge(known, piece)]


@cache
def _compiled(kind: int) -> tuple[Any, ...]:
    try:
        import regex  # has the classes of Unicode; tiktoken needs it, too
    except ImportError:
        raise CounterError(
            f"without the native backend, {NAMES[kind]!r} is split by regex: pip install regex"
        ) from None
    return tuple(regex.compile(pattern) for pattern in PATTERNS[kind])


def split(kind: int, text: str) -> list[bytes]:
    """Return the pieces of *text* that are merged one by one."""
    if kind == GEMMA4:
        return list(_runs_apart(text))
    pieces = [text]
    for pattern in _compiled(kind):
        pieces = [part for piece in pieces for part in _matches_and_gaps(pattern, piece)]
    return [piece.encode() for piece in pieces if piece]


def _matches_and_gaps(pattern: Any, text: str) -> Iterator[str]:
    end = 0
    for match in pattern.finditer(text):
        yield text[end : match.start()]
        yield match[0]
        end = match.end()
    yield text[end:]


def _runs_apart(text: str) -> Iterator[bytes]:
    """Split as merging does first: runs of a space or line end; bytes of unknown characters."""
    tokens = _known_tokens(GEMMA4)
    at = start = 0
    while at < len(text):
        char, run = text[at], 1
        if char in " \n\t\r":
            while text[at + run : at + run + 1] == char and (char * (run + 1)).encode() in tokens:
                run += 1
        is_known = char.encode() in tokens
        if run > 1 or not is_known:
            if start < at:
                yield text[start:at].encode()
            if is_known:
                yield (char * run).encode()
            else:
                yield from (bytes([byte]) for byte in char.encode())
            start = at + run
        at += run
    if start < len(text):
        yield text[start:].encode()


@cache
def _known_tokens(kind: int) -> frozenset[bytes]:
    return frozenset(vocabulary(kind).tokens)


def merge(known: Vocabulary, piece: bytes) -> list[int]:
    """Merge the pair of lowest rank, the leftmost among equals, until no pair merges."""
    if piece in known.wholes:
        return [len(piece)]

    def order(token: int) -> int:
        return 2 * known.early[token] - 1 if token in known.early else 2 * token

    tokens = [known.singles[byte] for byte in piece]
    while True:
        found = [
            (order(merged), at, merged)
            for at, pair in enumerate(pairwise(tokens))
            if (merged := known.merges.get(pair)) is not None
        ]
        if not found:
            return [len(known.tokens[token]) for token in tokens]
        _, at, merged = min(found)
        tokens[at : at + 2] = [merged]
