"""What a notebook shows of a negotiation: the window, divided."""

from __future__ import annotations

from typing import Any

from budgeteer._report.parts import Part, Report


def report_of(found: Any) -> Report:
    """Return what is shown of a `budgeteer.window.Negotiation`."""
    apart = found.system_tokens + found.memory_tokens + found.tool_tokens
    parts = [
        Part("system", found.system_tokens),
        Part("tools", found.tool_tokens),
        Part("memories", found.memory_tokens),
        Part("messages", max(0, found.input_token_count - apart)),
        Part("margin", found.safety_margin, "reserve"),
        Part("answer", found.adjusted_max_output_tokens, "reserve"),
    ]
    free = found.context_window - sum(part.tokens for part in parts)
    answer = f"The answer may have {found.adjusted_max_output_tokens} tokens"
    if found.was_reduced:
        answer += f" of the {found.requested_max_output_tokens} requested"
    over = " Input, answer and margin exceed the window." if found.overflows_window else ""
    return Report(
        title=found.model,
        lead=f"{found.model}: {answer[0].lower()}{answer[1:]}.{over}",
        parts=[*parts, Part("free", max(0, free), "free")],
    )
