"""
budgeteer as a system under evaluation, by rank() and pack().

For programs that measure budgeted recall: the share of the gold evidence inside the packed
context. ``rank(query, chunks)`` returns the ids of all chunks, best first;
``pack(query, chunks, budget)`` those that go into the context. A chunk is a mapping with ``id``
and ``text``. All options are the defaults, except the counter: it is the evaluation's own,
characters divided by four, and each chunk costs ENVELOPE more tokens for its surroundings in a
prompt.

    rank(query, chunks) -> list of ids          pack(query, chunks, budget) -> list of ids
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from budgeteer import Packer

ENVELOPE = 12
CHARS_PER_TOKEN = 4
SEPARATOR = "\n\n"
"""The separator between two chunks; a chunk that contains it costs a little more."""

RANKER = Packer(0, counter="chars_div4", dedupe=None)
"""Nothing fits, and chunks are dropped for the budget in ranked order."""


def charged(text: str) -> int:
    """Count a chunk with its envelope, and an assembled text with all of them."""
    parts = text.split(SEPARATOR)
    return sum(max(1, -(-len(part) // CHARS_PER_TOKEN)) + ENVELOPE for part in parts)


def ranked(packer: Packer, query: str, chunks: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of all chunks, best first, by a packer into 0 tokens; empty ones last."""
    dropped = sorted(packer.pack(query, chunks).dropped, key=lambda one: one.reason == "empty")
    return [one.index for one in dropped]


def rank(query: str, chunks: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the ids of all chunks, best first; empty ones last."""
    return [chunks[index]["id"] for index in ranked(RANKER, query, chunks)]


def pack(query: str, chunks: Sequence[Mapping[str, Any]], budget: int) -> list[Any]:
    """Return the ids of the chunks in the context, each counted with its envelope."""
    packing = Packer(budget, counter=charged, dedupe=None).pack(query, chunks)
    return [kept.chunk["id"] for kept in packing.kept]
