"""The texts of the benchmarks: real text, cut into new strings at each call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from pydoc_data.topics import topics

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import vocabulary

__all__ = ["CHARS", "MAX_TOKENS", "QUERY", "SIZES", "fresh", "real_text", "vocabulary"]

QUERY = (
    "who was the first president of the association which published journal of psychotherapy "
    "integration"
)
MAX_TOKENS = 8_000
CHARS = 800
SIZES = (500, 5_000, 50_000)


def real_text(path: Path | None = None) -> str:
    """Return the text to cut chunks from."""
    if path is None:
        return "\n".join(topics.values())
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix != ".jsonl":
        return "\n".join(lines)
    records = [json.loads(line) for line in lines]
    chunks = [c for r in records for c in r.get("corpus", []) + r.get("chunks", [])]
    return "\n".join(chunk["text"] for chunk in chunks)


def fresh(text: str, count: int) -> list[str]:
    """Return *count* new strings from different places of a real text."""
    last = len(text) - CHARS
    starts = (i * 797 % last for i in range(count))
    return [text[start : start + CHARS] for start in starts]
