"""The order in which messages of a request may be left out: whole turns, then whole rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from budgeteer._request.read import Item


class History(NamedTuple):
    """
    The places of the messages of a request, by what may be left out.

    Attributes:
        orphans: Results whose calls are missing, which every provider refuses.
        groups: What is left out together, oldest first: the turns before the newest message of the
            user, then the rounds of calls and results behind it.
        newest: The newest round. Its results are never masked.
        rounds: All messages, in pieces that no call is separated from its results by.

    """

    orphans: list[int]
    groups: list[list[int]]
    newest: list[int]
    rounds: list[list[int]]


def history_of(items: Sequence[Item], joins_answers: bool) -> History:
    """
    Return what of a request may be left out, and in which order.

    The newest message of the user stays, with the beginning of its turn and the newest round.
    *joins_answers* keeps what the model said in one piece together, as Responses must have an
    item behind its reasoning.
    """
    orphans, reach = _reach(items, joins_answers)
    blocks = _blocks(items, reach, {*orphans})
    if not blocks:
        return History(orphans, [], [], [])
    asking = [b for b, block in enumerate(blocks) if any(items[i].asks for i in block)]
    starts = [b for b in asking if items[blocks[b][0]].asks and not items[blocks[b][0]].results]
    last = len(blocks) - 1
    question = asking[-1] if asking else last
    start = max((b for b in starts if b <= question), default=question)
    stays = {start, question, last}
    groups: list[list[int]] = []
    for b in range(start):
        if b in starts or not starts or b < starts[0]:
            groups.append([])
        groups[-1] += blocks[b]
    groups += [blocks[b] for b in range(start, last) if b not in stays]
    return History(orphans, groups, blocks[last], blocks)


def _reach(items: Sequence[Item], joins_answers: bool) -> tuple[list[int], list[int]]:
    """Return the results without a call, and the first message that each one needs."""
    orphans: list[int] = []
    reach = [*range(len(items))]
    calls: dict[str, int] = {}
    caller: int | None = None  # the call that results without an id belong to
    was_answer = False
    for i, item in enumerate(items):
        is_answer = not (item.is_user or item.is_system or item.results or item.section)
        if item.results:
            found = [caller if key is None else calls.get(key) for key in item.results]
            if None in found and not item.asks:
                orphans.append(i)
                continue
            reach[i] = min((call for call in found if call is not None), default=i)
        elif joins_answers and is_answer and was_answer:
            reach[i] = i - 1
        if item.calls:
            caller = i
            calls.update((key, i) for key in item.calls if key is not None)
        was_answer = is_answer
    return orphans, reach


def _blocks(items: Sequence[Item], reach: Sequence[int], gone: set[int]) -> list[list[int]]:
    """Return the messages in pieces that no call is separated from its results by."""
    blocks: list[list[int]] = []
    for i, item in enumerate(items):
        if i in gone or item.is_system or item.section is not None:
            continue
        block = [i]
        while blocks and reach[i] <= blocks[-1][-1]:
            block = blocks.pop() + block
        blocks.append(block)
    return blocks
