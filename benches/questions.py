"""Questions with known evidence, for the evaluations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["records_of"]


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
