"""The order in which messages of a request may be left out: whole turns, then whole rounds."""

from __future__ import annotations

from bisect import bisect_right
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
        rounds: All messages, in pieces that no call is separated from its results by.

    """

    groups: list[list[int]]
    optional: frozenset[int]
    newest: list[int]
    rounds: list[list[int]]


def order_of(history: History) -> Order:
    """
    Return what of a request may be left out, and in which order.

    The newest message of the user stays, with the beginning of its turn and the newest round.
    """
    blocks = history.blocks()
    if not blocks:
        return Order([], frozenset(), [], [])
    begins = [block[0] for block in blocks]
    last = len(blocks) - 1
    asking = [bisect_right(begins, question) - 1 for question in history.questions]
    starts = [
        b
        for b, question in zip(asking, history.questions, strict=True)
        if begins[b] == question and question not in history.results
    ]
    question = asking[-1] if asking else last
    start = starts[bisect_right(starts, question) - 1] if starts else question
    stays = {start, question, last}
    turns = {*starts}
    groups: list[list[int]] = []
    for b in range(start):
        if b in turns or not starts or b < starts[0]:
            groups.append([])
        groups[-1] += blocks[b]
    groups += [blocks[b] for b in range(start, last) if b not in stays]
    optional = frozenset(i for group in groups for i in group)
    return Order(groups, optional, blocks[last], blocks)
