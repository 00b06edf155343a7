"""Trims a history that a framework reads before it adds the next question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgeteer._messages.history import History, ties_of
from budgeteer._messages.shapes import RESULT_ROLES
from budgeteer._messages.trim import M, Trimmed, trim_messages
from budgeteer._messages.views import viewed_fields
from budgeteer.errors import BudgetExhaustedError


def trimmed_history(messages: Sequence[M], max_tokens: int, **options: Any) -> Trimmed[M]:
    """
    Return what `trim_messages` does, or the system messages where an answered turn does not fit.

    Nothing waits for an answer there: the question comes next. An error would end the conversation
    for ever, as that turn stays the newest one.
    """
    try:
        return trim_messages(messages, max_tokens, **options)
    except BudgetExhaustedError:
        history = History.read("messages", messages)
        if not _is_answered(messages, history):
            raise
    return trim_messages([messages[i] for i in history.system], max_tokens, **options)


def _is_answered(messages: Sequence[Any], history: History) -> bool:
    """Return whether the newest turn ends with a reply, and each call in it has its result."""
    waiting: list[str | None] = []
    is_reply = False
    for i in history.others:
        if i < (history.question or 0):
            continue
        fields = viewed_fields(messages[i])
        role = fields.get("role") or ""
        calls, results, _ = ties_of(role, fields)
        waiting = [key for key in waiting if key not in results] + calls
        # An item of reasoning has no content: what follows it is still to come.
        is_reply = role not in ("user", *RESULT_ROLES) and "content" in fields
    return is_reply and not waiting
