"""Trimming a conversation beside packages that trim one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

from bench_trim import MODEL, PEERS, Message, Ours, Trim, shapes
from timing import Case, interleaved, outcome

from budgeteer.window import count_messages
from suite.pack import DifferentError
from suite.report import Options, Table, has

WINDOW = 16_000
TURN = 400
"""The tokens of a turn, on average."""


def conversation(shape: str, count: int) -> list[Message]:
    """Return the first messages of a conversation."""
    found: list[Message] = []
    turns = shapes(TURN)[shape]
    while len(found) < count:
        for side in next(turns):
            found += side
    return found[:count]


def trimmed(make: Callable[[], Trim], window: int, history: list[Message]) -> list[Message]:
    """Return what a new trim leaves of a history."""
    return make()(history, window)


def trimming(options: Options) -> Sequence[Table]:
    """Trim conversations of 400 messages, whose texts were counted before."""
    peers = {name: make for name, (package, make) in PEERS.items() if has(package)}
    names = ["budgeteer", *PEERS]
    table = Table(
        f"Trimming 400 messages to {WINDOW:,} tokens: milliseconds, and the tokens that are left",
        ["conversation", *names, *(f"{name}, tokens" for name in names)],
    )
    count, window = options.pick((400, WINDOW), (60, 2_000))
    for shape in ("chat", "agent"):
        history = conversation(shape, count)

        makes = {"budgeteer": partial(Ours, stays=False), **peers}
        cases = {
            name: Case(partial(trimmed, make, window), partial(copy.deepcopy, history))
            for name, make in makes.items()
        }
        left = {name: count_messages(outcome(case), model=MODEL) for name, case in cases.items()}
        if left["budgeteer"] > window:
            raise DifferentError(f"trimming left {left['budgeteer']} tokens of {window}")
        times = interleaved(cases, options.pick(options.rounds, 1))
        took = [times.median(name) * 1e3 if name in cases else None for name in names]
        table.rows.append([shape, *took, *(left.get(name) for name in names)])
    table.notes.append(
        "langchain-core gets our count of each message, which is within its time; litellm counts"
        " its own way, and fills three quarters of the window."
    )
    return [table]
