"""What a report shows of a request that fits: its sections, and each change."""

from __future__ import annotations

from typing import Any

from budgeteer._report.parts import Change, Kind, Part, Report

_RESERVED = ("reasoning", "reply")
"""The sections that are kept free for the answer."""


def report_of(found: Any) -> Report:
    """Return what a report shows of a `budgeteer.RequestReport`."""
    parts = []
    for name, section in found.sections.items():
        kind: Kind = "reserve" if name in _RESERVED else "used"
        is_there = section.tokens or section.tokens_before
        note = f"{section.basis}: {section.source}" if is_there else ""
        words = name.replace("_", " ")
        parts.append(Part(words, section.tokens, kind, note, (section.tokens_before,)))
    taken = sum(part.tokens for part in parts)
    parts.append(Part("free", max(0, found.context_window - taken), "free", "", (0,)))
    total = sum(part.tokens for part in parts if part.kind == "used")
    changes = len(found.changes)
    made = f"{changes} change{'' if changes == 1 else 's'} made it fit"
    lead = f"The request has {total} of {found.max_input_tokens} tokens. "
    lead += f"{made}." if changes else "It fits as it is."
    return Report(
        title="What is in the request?",
        lead=lead,
        facts=[
            ("Provider", found.provider.replace("_", " ")),
            ("Window", f"{found.context_window} tokens"),
            ("Cached beginning", f"{found.stable_prefix_tokens} tokens"),
            ("Counted", "exactly" if found.is_exact else "not all exactly"),
        ],
        parts=parts,
        columns=("Before",),
        changes=[
            Change(of.place, of.action, of.reason, of.tokens_before, of.tokens)
            for of in found.changes
        ],
    )
