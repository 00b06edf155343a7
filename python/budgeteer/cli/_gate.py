"""The command ``budgeteer gate``."""

from __future__ import annotations

from typing import Any

from budgeteer._files import one_line
from budgeteer.cli._streams import as_json
from budgeteer.presets import gate_bundle

_SPELT = {"cap": "doc_cap"}
"""Reasons with other names in the gate's document."""


def gate(bundle: Any, output: str, **options: int) -> str:
    """Return the outcome of a bundle, as its packed text or as JSON."""
    packing = gate_bundle(bundle, **options)
    excluded = [
        (dropped.chunk["id"], _SPELT.get(dropped.reason, dropped.reason))
        for dropped in packing.dropped
    ]
    if output == "json":
        answer = {
            "text": packing.text,
            "total_tokens": packing.total_tokens,
            "budget_tokens": packing.budget_tokens,
            "admitted": [kept.chunk["id"] for kept in packing.kept],
            "excluded": [{"id": name, "reason": reason} for name, reason in excluded],
        }
        return as_json(answer)
    lines = [
        *([packing.text, ""] if packing.text else []),
        f"Admitted: {len(packing.kept)}  Excluded: {len(excluded)}",
        *(f"- {one_line(name)} ({reason})" for name, reason in excluded),
        "",
    ]
    return "\n".join(lines)
