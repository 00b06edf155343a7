"""Questions with known evidence, what they measure, and how sure a difference is."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "MADE",
    "answer_in",
    "evidence_in",
    "folded",
    "interval",
    "ndcg",
    "records_of",
]

WORD = re.compile(r"[^\W_]+")
RESAMPLES = 2_000

MADE = [
    {
        "query": "Where was the author of The Winter Garden born?",
        "chunks": [
            {"id": "lyon", "text": "Lyon\nLyon is a city on the Rhone with old silk works."},
            {"id": "ada", "text": "Ada Moreau\nAda Moreau grew up in Lyon, where she was born."},
            {"id": "tea", "text": "Tea\nTea is picked in spring and dried."},
            {"id": "book", "text": "The Winter Garden\nA novel that Ada Moreau wrote in 1921."},
        ],
        "gold_ids": ["book", "ada"],
        "gold_sents": ["A novel that Ada Moreau wrote in 1921."],
        "answers": ["Lyon"],
    },
    {
        "query": "How many days of leave do workers get?",
        "chunks": [
            {"id": "leave", "text": "Leave\nEach worker gets 25 days in a year."},
            {"id": "lunch", "text": "Lunch\nLunch is from noon to one on all days."},
        ],
        "gold_ids": ["leave"],
        "answers": ["25"],
    },
]
"""Two questions, to see that an evaluation runs."""


def records_of(path: Path) -> Iterator[dict[str, Any]]:
    """
    Yield the records of a file of JSON Lines, each with its chunks.

    The chunks are in each record, or in a first line ``{"corpus": [...]}`` for all records.
    """
    corpus = None
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if "corpus" in record:
                corpus = record["corpus"]
            else:
                yield record if corpus is None else {**record, "chunks": corpus}


def folded(text: str) -> str:
    """Return the lowercase words of a text with a space around each, to look one up in another."""
    return f" {' '.join(WORD.findall(text.lower()))} "


def evidence_in(record: Mapping[str, Any], context: str) -> float | None:
    """Return the share of the gold sentences in a folded text; None if none are known."""
    sentences = record.get("gold_sents")
    if not sentences:
        return None
    return sum(folded(sentence) in context for sentence in sentences) / len(sentences)


def answer_in(record: Mapping[str, Any], context: str) -> float | None:
    """Return whether an answer stands in a folded text; None if none but yes or no is known."""
    answers = {folded(answer) for answer in record.get("answers", ())} - {" yes ", " no ", "  "}
    return float(any(answer in context for answer in answers)) if answers else None


def ndcg(ranked: Sequence[Any], gold: set[Any]) -> float:
    """Return the nDCG of the first ten, with equal gain for each gold one."""
    gain = sum(1 / math.log2(place + 2) for place, one in enumerate(ranked[:10]) if one in gold)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(gold))))


def asked(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Return the questions of the arguments ``files``, ``max`` and ``smoke``, by their names."""
    made = {"made questions": MADE} if arguments.smoke else {}
    read = {path.name: [*records_of(path)][: arguments.max] for path in arguments.files}
    return {**made, **read}


def shown(gain: float, low: float, high: float) -> str:
    """Return a gain with its interval, and a star if that excludes 0."""
    return f"{gain:+.3f} [{low:+.3f} {high:+.3f}]{'*' if low > 0 or high < 0 else ' '}"


def interval(apart: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of differences, and its 95 % interval by a paired bootstrap."""
    values = np.asarray(apart)
    rng = np.random.default_rng(0)
    # One resample at a time: all of them at once would take much memory.
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, (0.025, 0.975))
    return float(values.mean()), float(low), float(high)
