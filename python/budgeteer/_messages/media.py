"""The tokens of images, documents, audio and files: by published rules, or at most this much."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from math import ceil
from typing import Any

from budgeteer import _validate
from budgeteer._messages.frames import Rule
from budgeteer._messages.images import (
    DETAILS,
    Size,
    from_base64,
    image_tokens,
    size_of_base64,
    size_of_url,
)
from budgeteer._messages.shapes import fields_of

IMAGES = ("image_url", "input_image", "image")
TIMED = ("audio", "video")
PAGED = ("document", "file")

LEAST = 5000
"""
The fewest tokens of a part of unknown type that names audio, a video, a file or a document, as it
may only refer to its content: about two dense pages of a PDF, or eight minutes of speech.
"""

CHARS_PER_TOKEN = 16
"""
Of base64 that is 12 bytes. Speech at the lowest usual rate, 750 bytes a second, then counts 62
tokens a second, and the models that say take 10 to 32. Of video they take at most 290 tokens a
second, which has 12,500 bytes at a low rate.
"""

_AUDIO = {"gemini": 32, "gpt": 10}
"""Tokens of a second of audio, by a part of the model's name: the guides of Google and OpenAI."""

_PAGES = {"gemini-3": 560, "gemini": 258}
"""Tokens of a page of a PDF: Google's guides to documents and media resolution, 2025-11."""

_PAGE_TEXT = 3000
"""
The most tokens of the text of a page, which other makers take beside its image: Anthropic's guide
to PDF says 1500 to 3000.
"""

_PAGE = (1275, 1650)  # pixels of a letter page at 150 dots per inch
_PDF_MOST, _STREAM_MOST = 1 << 26, 1 << 22  # bytes that are looked at
_IS_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_STREAM = re.compile(rb"/ObjStm\b.{0,200}?stream\r?\n", re.DOTALL)


def image_cost(where: str, part: Mapping[str, Any], model: str) -> tuple[int, Rule]:
    """
    Return the tokens of an image, a bound where its size is not known.

    OpenAI has image_url and input_image, Anthropic image.
    """
    inner = part.get("source") if part["type"] == "image" else part.get("image_url")
    fields = fields_of(inner) or {}
    given = part.get("detail", fields.get("detail", "auto"))
    detail = _validate.choice(f"{where}['detail']", given, DETAILS)
    sides = [part.get(key, fields.get(key)) for key in ("width", "height")]
    size: Size
    if any(side is not None for side in sides):
        width, height = (
            _validate.tokens(f"{where}[{key!r}]", number, minimum=1)
            for key, number in zip(("width", "height"), sides, strict=True)
        )
        size = width, height
    elif isinstance(fields.get("data"), str):
        size = size_of_base64(fields["data"])
    else:
        url = fields.get("url", inner)
        size = size_of_url(url) if isinstance(url, str) else None
    tokens = image_tokens(size, detail, model)
    is_known = size is not None or tokens == image_tokens((1, 1), detail, model)
    return tokens, "published rule" if is_known else "bound"


def file_cost(named: str, part: Mapping[str, Any], model: str) -> tuple[int, Rule] | None:
    """
    Return the tokens of audio or a PDF whose length is in its data; None for anything else.

    *named* is what says its kind.
    """
    data = _data_of(part) if any(word in named for word in (*TIMED, *PAGED)) else None
    if data is None:
        return None
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        seconds = _seconds(data)
        rate = next((rate for name, rate in _AUDIO.items() if name in model.lower()), None)
        if seconds is not None and rate is not None:
            return ceil(seconds * rate), "published rule"
        return None
    pages = pdf_pages(data) if data.startswith(b"%PDF") else None
    if pages is None:
        return None
    each = next((each for name, each in _PAGES.items() if name in model.lower()), None)
    if each is not None:
        return pages * each, "published rule"
    return pages * (_PAGE_TEXT + image_tokens(_PAGE, "high", model)), "bound"


def _data_of(part: Mapping[str, Any]) -> bytes | None:
    """Return the bytes that a part has in base64, None if it only refers to them."""
    places = (part, *(fields_of(value) or {} for value in part.values()))
    for fields in places:
        for key in ("data", "file_data"):
            text = fields.get(key)
            if isinstance(text, str) and text:
                text = text.partition(",")[2] if text.startswith("data:") else text
                return from_base64(text, _PDF_MOST * 4 // 3)
    return None


def _seconds(wave: bytes) -> float | None:
    """Return the length of a WAV file in seconds, None if it has no usual header."""
    if wave[12:16] != b"fmt " or len(wave) < 44:
        return None
    rate = int.from_bytes(wave[28:32], "little")
    return len(wave) / rate if rate else None


def pdf_pages(pdf: bytes) -> int | None:
    """
    Return the number of pages of a PDF, None if none is found or too much is packed in it.

    Objects that are compressed together are looked into; an encrypted file shows none.
    """
    pages, left = len(_IS_PAGE.findall(pdf)), _PDF_MOST
    whole = memoryview(pdf)
    for found in _STREAM.finditer(pdf):
        if left <= 0:  # made to be large: what is left may have any number of pages
            return None
        try:
            plain = zlib.decompressobj().decompress(whole[found.end() :], _STREAM_MOST)
        except zlib.error:
            continue
        left -= len(plain)
        pages += len(_IS_PAGE.findall(plain))
    return pages or None
