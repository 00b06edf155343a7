"""The tokens of an image, and the size of an image in a ``data:`` URL."""

from __future__ import annotations

import base64
import binascii
from fractions import Fraction
from math import ceil, isqrt
from typing import Literal, TypeAlias, get_args

Detail: TypeAlias = Literal["auto", "low", "high", "original"]
DETAILS: tuple[Detail, ...] = get_args(Detail)

SQUARE, SHORT_SIDE, TILE = 2048, 768, 512
HIGHEST_TILES = 8
"""The most tiles of an image: after fitting it has at most 2048 by 768 pixels."""

COSTS = {"gpt-4o-mini": (2833, 5667)}
"""Tokens of an image and of each tile, by the beginning of a model's name."""

COST = (85, 170)
"""Tokens of an image and of each tile for every other model."""

PATCH, HIGHEST_PATCHES = 32, 1536
PATCHED = {
    "gpt-4.1-mini": Fraction("1.62"),
    "gpt-4.1-nano": Fraction("2.46"),
    "gpt-5-mini": Fraction("1.62"),
    "gpt-5-nano": Fraction("2.46"),
    "o4-mini": Fraction("1.72"),
}
"""
Tokens of each patch, by the beginning of a model's name, for models that count patches instead of
tiles: from OpenAI's guide to images. gpt-5-mini and gpt-5-nano were measured to take less (1.2 and
1.5 in March 2026).
"""

_HEADER_MAX = 1 << 20  # a JPEG's frame header comes after its metadata, never this far
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def image_tokens(size: tuple[int, int] | None, detail: Detail, model: str) -> int:
    """
    Return the tokens of an image of *size* (width, height); for None, the most that any costs.

    A larger image is scaled down to 2048 by 2048 pixels, then to a short side of 768. Each tile of
    512 by 512 pixels that it touches costs tokens. Small models count patches of 32 by 32 pixels,
    whatever the detail, after scaling down to at most 1536 patches.

    Examples:
        >>> image_tokens((1800, 2400), "high", "gpt-4.1-mini")  # 1452 patches
        2353
        >>> image_tokens((1024, 1024), "high", "gpt-4o"), image_tokens((2048, 4096), "high", "")
        (765, 1105)
        >>> image_tokens((4096, 8192), "low", "gpt-4o"), image_tokens(None, "auto", "gpt-4o")
        (85, 1445)

    """
    name = model.rpartition("/")[2]
    factor = next((factor for start, factor in PATCHED.items() if name.startswith(start)), None)
    if factor is not None:
        return ceil(factor * _patches(size))
    base, tile = next((cost for start, cost in COSTS.items() if name.startswith(start)), COST)
    return base if detail == "low" else base + tile * _tiles(size)


def _tiles(size: tuple[int, int] | None) -> int:
    if size is None:
        return HIGHEST_TILES
    scale = min(Fraction(1), Fraction(SQUARE, max(size)))
    scale = min(scale, Fraction(SHORT_SIDE, min(size)))
    return ceil(size[0] * scale / TILE) * ceil(size[1] * scale / TILE)


def _patches(size: tuple[int, int] | None) -> int:
    if size is None:
        return HIGHEST_PATCHES
    width, height = size
    patches = -(-width // PATCH) * -(-height // PATCH)
    if patches <= HIGHEST_PATCHES:
        return patches
    # It is scaled to that number of patches, then down once more until the side that shrinks more
    # is a whole number of patches; the other side is rounded up.
    columns = isqrt(HIGHEST_PATCHES * width // height)
    rows = isqrt(HIGHEST_PATCHES * height // width)
    if columns * height <= rows * width:
        rows = -(-columns * height // width)
    else:
        columns = -(-rows * width // height)
    return min(columns * rows, HIGHEST_PATCHES) or HIGHEST_PATCHES  # a side may round to 0


def size_of_url(url: str) -> tuple[int, int] | None:
    """Return the width and height of the image in a ``data:`` URL, None if unknown."""
    head, comma, data = url[: _HEADER_MAX * 4 // 3].partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return size_of_base64(data)


def size_of_base64(data: str) -> tuple[int, int] | None:
    """Return the width and height of an image in base64, None if unknown."""
    data = "".join(data[: _HEADER_MAX * 4 // 3].split()).rstrip("=")
    try:
        image = base64.b64decode(data + "=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        return None
    size = _size(image)
    return size if size is not None and min(size) > 0 else None


def _size(image: bytes) -> tuple[int, int] | None:
    if image.startswith(b"\x89PNG\r\n\x1a\n") and image[12:16] == b"IHDR" and len(image) >= 24:
        return _big(image, 16, 4), _big(image, 20, 4)
    if image.startswith((b"GIF87a", b"GIF89a")) and len(image) >= 10:
        return _little(image, 6, 2), _little(image, 8, 2)
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP":
        return _webp(image)
    if image.startswith(b"\xff\xd8"):
        return _jpeg(image)
    return None


def _webp(image: bytes) -> tuple[int, int] | None:
    kind = image[12:16]
    if kind == b"VP8X" and len(image) >= 30:
        return _little(image, 24, 3) + 1, _little(image, 27, 3) + 1
    if kind == b"VP8L" and len(image) >= 25:
        bits = _little(image, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(image) >= 30:
        return _little(image, 26, 2) & 0x3FFF, _little(image, 28, 2) & 0x3FFF
    return None


def _jpeg(image: bytes) -> tuple[int, int] | None:
    """Return the size in the first frame header, which follows other segments."""
    at = 2
    while at + 9 <= len(image) and image[at] == 0xFF:
        marker = image[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _JPEG_FRAMES:
            return _big(image, at + 7, 2), _big(image, at + 5, 2)
        else:
            at += 2 + _big(image, at + 2, 2)
    return None


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
