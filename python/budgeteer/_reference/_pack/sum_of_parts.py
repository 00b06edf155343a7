"""Reference of the policy of ``presets.context_router``: the one that may overrun its budget."""

from collections.abc import Sequence
from functools import partial

from budgeteer._codes import BUDGET, STOP, TRUNCATE_END, WORDS
from budgeteer._reference._count.counter import count as count_tokens
from budgeteer._reference._pack.draft import Draft
from budgeteer._reference._pack.packer import MARKERS


def pack_sum_of_parts(
    draft: Draft, order: Sequence[int], budget: int, kind: int, ratio: float, overflow: int
) -> int:
    """
    Admit the chunks as theaios-context-router does, and return the sum of their tokens.

    Frames and separators are not counted, and no chunk is dropped as empty or as a duplicate. If
    *overflow* cuts, every chunk that does not fit is cut, and its marker comes on top.
    """
    count = partial(count_tokens, kind, ratio)
    used = 0
    rest = iter(order)
    for i in rest:
        left = budget - used
        if left <= 0:
            draft.outcome.drop(i, BUDGET)
            continue
        counted = count(draft.texts[i])
        if counted > left and overflow not in MARKERS:
            draft.outcome.drop(i, BUDGET, counted, left)
            if overflow == STOP:
                for behind in rest:
                    draft.outcome.drop(behind, BUDGET, 0, left)
            continue
        piece = draft.framed(i, counted)
        if counted > left:
            text = cut_text(kind, overflow, draft.texts[i], left)
            piece = draft.cut_to(piece, text, count(text))
        used += piece.tokens
        draft.outcome.kept.append(piece)
    return used


def cut_text(kind: int, overflow: int, text: str, max_tokens: int) -> str:
    """Cut *text*, with the marker on top of *max_tokens*; single spaces join words."""
    marker = MARKERS[overflow]
    parts: Sequence[str] = text.split() if kind == WORDS else text
    unit, glue = (1, " ") if kind == WORDS else (4, "")
    units = min(unit * max_tokens, len(parts))
    if overflow == TRUNCATE_END:
        return glue.join(parts[:units]) + marker
    head = units // 2
    tail = len(parts) - (units - head)
    return glue.join(parts[:head]) + marker + glue.join(parts[tail:])
