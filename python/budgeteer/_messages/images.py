"""The tokens of an image, and the size of an image in a ``data:`` URL."""

from __future__ import annotations

import base64
import binascii
import re
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

Size: TypeAlias = tuple[int, int] | None
"""The width and height of an image, None if unknown."""

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

CLAUDE_PATCH, CLAUDE_AREA = 28, 750
CLAUDE_LIMITS = {"high": (2576, 4784), "standard": (1568, 1568)}
"""
The longest side in pixels, and the most patches, of an image for Claude, from Anthropic's guide to
vision (2026-06). The higher ones hold from Claude 4.7 on, and for names without a version.
"""

GEMINI_TILE, GEMINI_SMALL, GEMINI_MOST = 258, 384, 16
GEMINI_3 = 1120
"""Tokens of an image at the default resolution of Gemini 3: the guide to media resolution."""

_CLAUDE_VERSION = re.compile(r"claude-(?:[a-z]+-)?([0-9]{1,2})(?:[-.]([0-9]{1,2}))?(?![0-9])")
_HEADER_MAX = 1 << 20  # a JPEG's frame header comes after its metadata, never this far
_BEGINNING = 1 << 12  # characters of base64 that have the size of nearly all images
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def image_tokens(size: Size, detail: Detail, model: str) -> int:
    """
    Return the tokens of an image of *size* (width, height); for None, the most that any costs.

    A larger image is scaled down to 2048 by 2048 pixels, then to a short side of 768. Each tile of
    512 by 512 pixels that it touches costs tokens. Small models count patches of 32 by 32 pixels,
    whatever the detail, after scaling down to at most 1536 patches.

    Claude scales an image down to its longest side and most patches of 28 by 28 pixels. It costs
    these patches or its area by 750, the older rule, whichever is more. Gemini costs 258 for each
    tile, and Gemini 3 at most 1120.

    Examples:
        >>> image_tokens((1800, 2400), "high", "gpt-4.1-mini")  # 1452 patches
        2353
        >>> image_tokens((1024, 1024), "high", "gpt-4o"), image_tokens((2048, 4096), "high", "")
        (765, 1105)
        >>> image_tokens((4096, 8192), "low", "gpt-4o"), image_tokens(None, "auto", "gpt-4o")
        (85, 1445)
        >>> image_tokens((1000, 1000), "auto", "claude-sonnet-4-5")
        1334
        >>> image_tokens((960, 540), "auto", "gemini-2.5-pro")
        1548

    """
    name = model.rpartition("/")[2]
    if "claude" in name:
        return _claude(size, name)
    if "gemini" in name:
        return GEMINI_3 if "gemini-3" in name else GEMINI_TILE * _gemini_tiles(size)
    factor = next((factor for start, factor in PATCHED.items() if name.startswith(start)), None)
    if factor is not None:
        return ceil(factor * _patches(size))
    base, tile = next((cost for start, cost in COSTS.items() if name.startswith(start)), COST)
    return base if detail == "low" else base + tile * _tiles(size)


def _claude(size: Size, name: str) -> int:
    found = _CLAUDE_VERSION.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else (99, 0)
    side, patches = CLAUDE_LIMITS["high" if version >= (4, 7) else "standard"]
    most = ceil(Fraction(patches * CLAUDE_PATCH**2, CLAUDE_AREA))
    if size is None:
        return most
    width, height = size
    scale = min(Fraction(1), Fraction(side, max(size)))
    wide, high = (max(1, ceil(edge * scale)) for edge in (width, height))
    tokens = max(
        -(-wide // CLAUDE_PATCH) * -(-high // CLAUDE_PATCH),
        ceil(Fraction(wide * high, CLAUDE_AREA)),
    )
    return min(tokens, most)


def _gemini_tiles(size: Size) -> int:
    """Return the number of tiles; each has 2/3 of the short side, from 256 to 768 pixels."""
    if size is None:
        return GEMINI_MOST
    if max(size) <= GEMINI_SMALL:
        return 1
    tile = max(256, min(768, min(size) * 2 // 3))
    return -(-size[0] // tile) * -(-size[1] // tile)


def _tiles(size: Size) -> int:
    if size is None:
        return HIGHEST_TILES
    scale = min(Fraction(1), Fraction(SQUARE, max(size)))
    scale = min(scale, Fraction(SHORT_SIDE, min(size)))
    return ceil(size[0] * scale / TILE) * ceil(size[1] * scale / TILE)


def _patches(size: Size) -> int:
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


def size_of_url(url: str) -> Size:
    """Return the width and height of the image in a ``data:`` URL, None if unknown."""
    comma = url.find(",")
    head = url[: max(comma, 0)]
    if not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return size_of_base64(url[comma + 1 :])


def size_of_base64(data: str) -> Size:
    """Return the width and height of an image in base64, None if unknown."""
    if len(data) > _BEGINNING and len(data.rstrip("=")) % 4 != 1:  # no base64 leaves one over
        size = _decoded_size(data, _BEGINNING)
        if size is not None:
            return size
    return _decoded_size(data, _HEADER_MAX * 4 // 3)


def _decoded_size(data: str, most: int) -> Size:
    """Return the size that stands in the first *most* characters of base64."""
    image = from_base64(data, most)
    size = None if image is None else _size(image)
    return size if size is not None and min(size) > 0 else None


def from_base64(data: str, most: int) -> bytes | None:
    """
    Return the bytes of the first *most* characters of base64, None for what is none.

    The alphabet for URLs is read, too: it is what Google's client writes, and takes.
    """
    text = "".join(data[:most].split()).replace("-", "+").replace("_", "/").rstrip("=")
    if len(data) > most:
        text = text[: len(text) // 4 * 4]  # the rest of the last four was cut off
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None


def _size(image: bytes) -> Size:
    if image.startswith(b"\x89PNG\r\n\x1a\n") and image[12:16] == b"IHDR" and len(image) >= 24:
        return _big(image, 16, 4), _big(image, 20, 4)
    if image.startswith((b"GIF87a", b"GIF89a")) and len(image) >= 10:
        return _little(image, 6, 2), _little(image, 8, 2)
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP":
        return _webp(image)
    if image.startswith(b"\xff\xd8"):
        return _jpeg(image)
    return None


def _webp(image: bytes) -> Size:
    kind = image[12:16]
    if kind == b"VP8X" and len(image) >= 30:
        return _little(image, 24, 3) + 1, _little(image, 27, 3) + 1
    if kind == b"VP8L" and len(image) >= 25:
        bits = _little(image, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(image) >= 30:
        return _little(image, 26, 2) & 0x3FFF, _little(image, 28, 2) & 0x3FFF
    return None


def _jpeg(image: bytes) -> Size:
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
