"""The order in which messages of a request may be left out: whole turns, then whole rounds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from budgeteer._messages.history import History


class Order(NamedTuple):
    """
    The places of the messages of a request, by what may be left out.

    Attributes:
        groups: What is left out together, oldest first: the turns before the newest message of the
            user, then the rounds of calls and results behind it.
        optional: The places in these.
        newest: The newest round. Its results are never masked.

    """

    groups: list[list[int]]
    optional: frozenset[int]
    newest: list[int]


def order_of(history: History) -> Order:
    """
    Return what of a request may be left out, and in which order.

    The newest message of the user stays, with the beginning of its turn and the newest round.
    """
    others, begins = history.others, history.starts()
    if not begins:
        return Order([], frozenset(), [])
    edges = [*(bisect_left(others, place) for place in begins), len(others)]
    last = len(begins) - 1
    asking = [bisect_right(begins, question) - 1 for question in history.questions]
    turns = [
        b
        for b, question in zip(asking, history.questions, strict=True)
        if begins[b] == question and question not in history.results
    ]
    question = asking[-1] if asking else last
    start = turns[bisect_right(turns, question) - 1] if turns else question
    first = [*range(turns[0] if turns else start), *(b for b in turns if b < start)]
    groups = [
        others[edges[a] : edges[b]] for a, b in zip(first, [*first[1:], start], strict=False)
    ]
    rounds = (b for b in range(start + 1, last) if b != question)
    groups += [others[edges[b] : edges[b + 1]] for b in rounds]
    optional = frozenset([i for group in groups for i in group])
    return Order(groups, optional, others[edges[last] :])
