"""``budgeteer query``: the sources of a configuration, packed for a query."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import nullcontext
from typing import Any

from budgeteer import Packing, config
from budgeteer._chunk.chunk import field_of
from budgeteer._files import one_line
from budgeteer._pack.options import REASONS
from budgeteer._pack.prepared import refuse_sticky
from budgeteer.cli._arguments import Commands, add_output, add_query, examples
from budgeteer.cli._document import (
    add_dropped,
    add_report,
    document_of,
    place_of,
    write_report,
    written,
)
from budgeteer.cli._packer import NOTHING
from budgeteer.cli._streams import Answer
from budgeteer.errors import InvalidArgumentError


def add(commands: Commands) -> None:
    """Add the command to the program."""
    query = commands.add_parser(
        "query",
        help="pack the sources of a configuration for a query",
        description="Packs the sources of a configuration for a query. Exit status 1 says that "
        "there is no text in them.",
        epilog=examples(
            'budgeteer query -c budgeteer.yaml -q "What is the remote work policy?"',
            'budgeteer query -c budgeteer.yaml -q "remote work" -o json > context.json',
        ),
    )
    query.set_defaults(run=_run)
    query.add_argument("-c", "--config", required=True, metavar="FILE", help="a YAML file")
    add_query(query)
    add_report(query)
    add_dropped(query, "-o json and --report")
    add_output(query)


def _run(arguments: argparse.Namespace) -> Answer:
    is_json = arguments.output == "json"
    if arguments.dropped is not None and not is_json and arguments.report is None:
        raise InvalidArgumentError("--dropped is for -o json and --report")
    loaded = config.load(arguments.config)
    refuse_sticky(loaded.packer, "in budgeteer query")
    with loaded.embedder or nullcontext():
        arguments.bar.stage("Reading")
        chunks = loaded.chunks(arguments.query)
        arguments.bar.stage("Packing" if loaded.embedder is None else "Embedding and packing")
        start = time.perf_counter()
        packing = loaded.packer.pack(arguments.query, chunks)
        elapsed_ms = round((time.perf_counter() - start) * 1000, 3)
        write_report(arguments, packing)
    text = _json(arguments, packing, elapsed_ms) if is_json else _report(packing)
    if {dropped.reason for dropped in packing.dropped} - {"empty"} or packing.kept:
        return Answer(text)
    # The report says why chunks were dropped; here there is none of which it could.
    why = f"budgeteer: there is no text in the sources of {arguments.config}"
    return Answer(text, f"{one_line(why)}\n", NOTHING)


def _json(arguments: argparse.Namespace, packing: Packing[Any], elapsed_ms: float) -> str:
    """Return the document of the command, and beside its fields those of `Packing.to_dict`."""
    document = document_of(arguments, packing, has_places=True)
    for item in document["dropped"]:
        item["relevance_score"] = _rounded(item["score"])
    answer = {
        "total_tokens": packing.total_tokens,
        "budget_tokens": packing.budget_tokens,
        "was_truncated": packing.was_truncated,
        "is_exact": packing.is_exact,
        "chunks": [
            {
                "content": kept.text,
                **place_of(kept.chunk),
                "path": _metadata(kept.chunk).get("path"),
                "relevance_score": _rounded(kept.score),
                "token_count": kept.token_count,
                "was_cut": kept.was_cut,
                "index": kept.index,
                "metadata": _metadata(kept.chunk),
            }
            for kept in packing.kept
        ],
        "dropped": document["dropped"],
        "dropped_count": packing.dropped_count,
        "elapsed_ms": elapsed_ms,
    }
    return written({**answer, **document})


def _report(packing: Packing[Any]) -> str:
    counted = "" if packing.is_exact else " (estimated)"
    reasons = Counter(dropped.reason for dropped in packing.dropped)
    details = ", ".join(f"{name}: {reasons[name]}" for name in REASONS if reasons[name])
    lines = [
        f"{packing.total_tokens} of {packing.budget_tokens} tokens{counted}: "
        f"{len(packing.kept)} kept, {packing.dropped_count} dropped"
        + (f" ({details})" if details else "")
    ]
    for kept in packing.kept:
        place = place_of(kept.chunk)
        title = place["title"] or place["id"] or "untitled"
        score = "none" if kept.score is None else f"{kept.score:.2f}"
        cut = ", cut" if kept.was_cut else ""
        lines.append(
            one_line(
                f"  [{place['source']}] {title}: score={score}, tokens={kept.token_count}{cut}"
            )
        )
    return "\n".join([*lines, *(["", packing.text] if packing.text else []), ""])


def _metadata(chunk: object) -> Any:
    """Return the metadata of a chunk, which may be any value in a caller's JSON."""
    metadata = field_of(chunk, "metadata")
    return metadata if isinstance(metadata, dict) else {}


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
