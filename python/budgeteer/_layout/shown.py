"""What a report shows of an allocation: the tokens of each section."""

from __future__ import annotations

from typing import Any

from budgeteer._report.parts import Kind, Part, Report


def report_of(allocation: Any) -> Report:
    """Return what a report shows of *allocation*."""
    dropped, cut = allocation.dropped_sections, allocation.cut_sections
    parts = []
    for name, tokens in allocation.tokens.items():
        used = allocation.used_tokens[name]
        note = "dropped" if name in dropped else "cut" if name in cut else ""
        kind: Kind = "used" if used or note else "reserve"
        parts.append(Part(name, tokens, kind, note, (used,)))
    parts.append(Part("free", allocation.free_tokens, "free", "", (0,)))
    lead = f"The prompt has {allocation.total_tokens} tokens."
    lead += f" Cut: {', '.join(cut)}." if cut else ""
    lead += f" Dropped, as the minimum sizes do not fit: {', '.join(dropped)}." if dropped else ""
    return Report(
        title="What is in the window?",
        lead=lead,
        facts=[
            ("Counted", "exactly" if allocation.is_exact else "by an estimate"),
            ("Messages", str(len(allocation.messages))),
            ("Tools", str(len(allocation.tools))),
        ],
        parts=parts,
        columns=("In the prompt",),
    )
