"""The commands ``budgeteer models`` and ``budgeteer inspect``."""

from __future__ import annotations

import logging
from typing import Any

from budgeteer._count.limits import ModelLimits, list_models, model_limits
from budgeteer._files import one_line
from budgeteer._log import log
from budgeteer.cli._streams import as_json
from budgeteer.window._negotiation import Negotiation, negotiate


def models(name: str | None, output: str) -> str:
    """Return the known models, or the named one, as text or JSON."""
    _keep_quiet()
    found = list_models() if name is None else [model_limits(name)]
    if output == "json":
        items = [limits.to_dict() for limits in found]
        return as_json(items if name is None else items[0])
    return "".join(_line(limits) + "\n" for limits in found)


def inspect(output: str, **arguments: Any) -> str:
    """Return how a window was divided, as text or as the JSON of its document."""
    _keep_quiet()
    negotiation = negotiate(**arguments)
    if output == "json":
        return as_json(
            {
                "metadata": {
                    "adjustedMaxTokens": negotiation.adjusted_max_output_tokens,
                    "inputTokenCount": negotiation.input_token_count,
                    "messageCount": negotiation.message_count,
                    "memoryCount": negotiation.memory_count,
                }
            }
        )
    return _report(negotiation)


def _keep_quiet() -> None:
    """Keep log records off standard error; the answer holds the same."""
    if not log().handlers:
        log().addHandler(logging.NullHandler())


def _line(limits: ModelLimits) -> str:
    if limits.calibration is None:
        counting = one_line(limits.encoding or "no native encoding")
    else:
        counting = one_line(f"{limits.encoding} * {limits.calibration:g}")
    cells = [
        one_line(limits.name),
        f"window={limits.context_window}",
        f"input={limits.max_input_tokens}",
        "output=" + ("any" if limits.max_output_tokens is None else str(limits.max_output_tokens)),
        counting,
        one_line(limits.provider or "unknown provider"),
        one_line(limits.source) if limits.known else "not known",
    ]
    return "\t".join(cells)


def _report(found: Negotiation) -> str:
    counted = "" if found.is_exact else " (estimated)"
    parts = [f"{found.message_count} messages", f"{found.system_tokens} system"]
    if found.memory_count:
        parts.append(f"{found.memory_tokens} in {found.memory_count} memories")
    if found.tool_tokens:
        parts.append(f"{found.tool_tokens} tools")
    known = "" if model_limits(found.model).known else " (the model is not known)"
    mark = " (REDUCED)" if found.was_reduced else ""
    lines = [
        f"Two-dimensional budget for {found.model}:",
        f"  Context Window: {found.context_window} tokens{known}",
        f"  Input Tokens{counted}: {found.input_token_count} ({' + '.join(parts)})",
        f"  Safety Margin: {found.safety_margin}",
        f"  Available for Completion: {found.available_tokens}",
        f"  Requested maxTokens: {found.requested_max_output_tokens}",
        f"  Adjusted maxTokens: {found.adjusted_max_output_tokens}{mark}",
    ]
    if found.overflows_window:
        lines.append("  The window overflows: input, answer and margin are more than it takes.")
    return "".join(one_line(line) + "\n" for line in lines)
