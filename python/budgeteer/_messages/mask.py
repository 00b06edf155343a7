"""Tool results that stand in a history by a marker, so that their calls stay valid."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from budgeteer._messages.history import History
from budgeteer._messages.views import with_result

MASK = "[tool result left out]"
"""Stands for a tool result."""


def masked(message: Any) -> Any:
    """Return a copy of *message* with the marker for each result; itself if that is the same."""
    return with_result(message, MASK)


def maskable(
    history: History, keep_results: int, pinned: Container[int], messages: Sequence[Any]
) -> dict[int, Any]:
    """
    Return the messages whose results may be masked, by their places, as they are then.

    Those of the newest *keep_results* results may not, nor those to which the model has not
    replied, nor pinned messages.
    """
    made: dict[int, Any] = {}
    seen, is_answered = 0, False
    for i in reversed(history.others):
        is_answered |= i in history.replies
        count = history.results.get(i, 0)
        if count:
            if is_answered and seen >= keep_results and i not in pinned:
                mask = masked(messages[i])
                if mask is not messages[i]:
                    made[i] = mask
            seen += count
    return made
