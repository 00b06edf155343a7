"""
Decides what of a history is kept.

While what was kept last time and the new messages fit, that is kept. Where they do not, a cut
makes room for several turns at once, so that the beginning stays the same until the next cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, TypeAlias

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._messages.history import History, StartOn
from budgeteer._messages.mask import maskable, masked
from budgeteer._messages.memory import Memory
from budgeteer._messages.messages import MessageCosts
from budgeteer._messages.previous import found
from budgeteer._messages.shapes import mapping
from budgeteer._messages.turn import Turn
from budgeteer.errors import InvalidArgumentError

LEAST_STEP, MOST_STEP = 8, 2
"""A step that we choose is from an eighth of the window to half of the room in it."""

Masked: TypeAlias = tuple[Any, int]
"""A message whose results are masked, and its tokens."""


@dataclass(frozen=True, slots=True)
class Rules:
    """
    How a history is kept.

    Attributes:
        previous: What was kept last time; None to keep as much as fits each time.
        step: The share of the window that a cut frees; None chooses it by the sizes of the turns,
            or frees nothing without *previous*.
        keep_results: How many of the newest tool results are never masked; None masks none.
        pins: The places of messages that stay as they are.
        start_on: Whose message must come first.

    """

    previous: Sequence[Any] | None = None
    step: float | None = None
    keep_results: int | None = None
    pins: Collection[int] = ()
    start_on: StartOn | None = None

    @property
    def is_ahead(self) -> bool:
        """Whether a cut makes room for more than this turn."""
        return self.previous is not None or self.step is not None

    @classmethod
    def of(
        cls,
        previous: Any,
        step: Any,
        keep_results: Any,
        pins: Collection[int] = (),
        start_on: StartOn | None = None,
    ) -> Rules:
        """Return the rules of these options, which are checked."""
        if previous is not None:
            previous = _validate.batch("previous", previous)
            for i, item in enumerate(previous):
                if type(item) is not dict:
                    mapping(f"previous[{i}]", item)
        if step is not None:
            step = _validate.number("step", step)
            if not 0 < step < 1:
                raise InvalidArgumentError(f"step must be above 0 and below 1, not {step!r}")
        if keep_results is not None:
            keep_results = _validate.tokens("keep_results", keep_results)
        return cls(previous, step, keep_results, pins, start_on)


@dataclass(slots=True)
class Kept:
    """
    What is kept of the messages that are not the system's.

    Attributes:
        messages: Those of the messages that are not as they were given, by their places.
        tokens: The tokens of each.
        pinned: The number of pinned messages before the newest turn, and their tokens.
        turn: The newest turn where its tool results had to be cut, else None. Nothing fits if it
            misses tokens.

    """

    messages: dict[int, Any] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)
    pinned: tuple[int, int] = (0, 0)
    turn: Turn | None = None


class Keeper:
    """Keeps what fits of the messages of a history."""

    __slots__ = (
        *("_begin", "_cost", "_costs", "_counter", "_given", "_history", "_known", "_latest"),
        *("_messages", "_outside", "_over", "_pinned", "_rules", "_short", "_starts", "_where"),
    )

    def __init__(
        self,
        where: str,
        messages: Sequence[Any],
        history: History,
        rules: Rules,
        costs: MessageCosts,
        counter: TokenCounter,
        cost: Callable[[int, Any, int], int | None],
        memory: Memory | None = None,
    ) -> None:
        """
        Read what is known before anything is counted; *where* names the messages in an error.

        *cost* takes a place, the message to count there, and the tokens left. It returns the
        tokens of the message, and may return None if they exceed these. *memory* is what is known
        of the call that returned ``rules.previous``, where nothing has changed since.
        """
        self._where, self._given, self._history, self._rules = where, messages, history, rules
        self._costs, self._counter, self._cost = costs, counter, cost
        self._known: dict[int, int] = {}
        self._over: dict[int, int] = {}  # what a message exceeds whose tokens are not known
        self._starts = history.starts(rules.start_on)
        self._latest = history.turn(where, self._starts, rules.start_on)
        self._pinned = {*history.pinned(where, rules.pins, self._starts, rules.start_on)}
        self._outside = {i: 0 for i in sorted(self._pinned) if i < self._latest[0]}
        if self._outside and rules.start_on is not None:  # the first of them is a user's
            first = min(self._outside)
            more = (start for start in history.starts() if start > first)
            self._starts = [*(start for start in self._starts if start <= first), *more]
        begin: int | None = None
        short: Mapping[int, Any] = {}
        if rules.previous:
            if memory is None:
                begin, short = found(messages, history, rules.previous, self._pinned)
            else:
                kept = memory.tokens.keys() - {*history.system}
                begin = min(kept - self._pinned, default=max(kept, default=-1) + 1)
                short = memory.shortened
                self._known.update(memory.tokens)
            if rules.pins:
                self._known.clear()
                short = {i: item for i, item in short.items() if i not in rules.pins}
            if short:
                messages = [*messages]
                for i, item in short.items():
                    messages[i] = item
        self._messages, self._short = messages, short
        self._begin = self._starts[0] if self._starts else 0
        if begin is not None and self._latest:
            at = bisect_left(self._starts, min(begin, self._latest[0]))
            self._begin = self._starts[at]

    def keep(self, limit: int, room: int) -> Kept:
        """Return what is kept in *room* tokens of a window of *limit*."""
        kept = Kept()
        if not self._latest:
            return kept
        for i in self._outside:
            self._outside[i] = self._costs.of(f"{self._where}[{i}]", self._messages[i])
        kept.pinned = len(self._outside), sum(self._outside.values())
        room -= kept.pinned[1]
        seen = self._whole(room) or self._history.newest(room, self._size, self._begin)
        if _reaches(seen, self._begin):
            return self._of(kept, seen, {})
        masks: Mapping[int, Masked] = {}
        if self._rules.keep_results is not None:
            masks = self._masks(self._rules.keep_results)
        aim = room - self._step(limit, room, seen) if self._rules.is_ahead else room
        return self._cut(kept, room, aim, masks)

    def _whole(self, room: int) -> list[tuple[int, int]]:
        """Return all from the beginning on, the newest first, if most is known and it fits."""
        if self._outside:
            return []
        others = self._history.others
        places = others[bisect_left(others, self._begin) :][::-1]
        left = room
        for i in places:
            if i in self._known:
                break
            tokens = self._size(i, left)
            if tokens is None or tokens > left:
                return []
            left -= tokens
        known, most = self._known, max(room, 0) + 1
        sizes = [known.get(i, most) for i in places]
        return [*zip(places, sizes, strict=True)] if sum(sizes) <= room else []

    def _size(self, i: int, left: int) -> int | None:
        """Return the tokens of a message, as it was kept; 0 for one that is counted apart."""
        if i in self._outside:
            return 0
        tokens = self._known.get(i)
        if tokens is None:
            if left <= self._over.get(i, -1):
                return None
            tokens = self._cost(i, self._messages[i], left)
            if tokens is None:
                self._over[i] = left
            else:
                self._known[i] = tokens
        return tokens

    def _masks(self, keep_results: int) -> Mapping[int, Masked]:
        """Return the messages that are smaller with masked results, and their tokens then."""
        made: dict[int, Masked] = {}
        may = maskable(self._history, keep_results, self._rules.pins, self._messages)
        for i, mask in may.items():
            if i >= self._begin:
                tokens = self._costs.of(f"{self._where}[{i}]", mask)
                size = self._size(i, tokens)
                if size is None or size > tokens:
                    made[i] = mask, tokens
        return made

    def _step(self, limit: int, room: int, seen: Iterable[tuple[int, int]]) -> int:
        """
        Return how many tokens a cut frees.

        With turns of t tokens in a window of w, a step of s changes the beginning in t / s of the
        turns and leaves s / 2w of the window unused on average. Both shares are the same, and
        their sum is least, where s is the root of 2tw. The model replies once in a turn.
        """
        if self._rules.step is not None:
            return int(self._rules.step * limit)
        tokens = replies = 0
        for i, size in seen:
            if i in self._history.results and masked(self._messages[i]) is self._messages[i]:
                break  # what is masked says less of the size of a turn
            tokens += size
            replies += i in self._history.replies
        root = isqrt(2 * (tokens // max(1, replies)) * limit)
        return min(max(root, limit // LEAST_STEP), max(0, room) // MOST_STEP)

    def _cut(self, kept: Kept, room: int, aim: int, masks: Mapping[int, Masked]) -> Kept:
        """Keep what fits into *aim* tokens; the newest turn, if that fits into *room*."""

        def size(i: int, left: int) -> int | None:
            return masks[i][1] if i in masks else self._size(i, left)

        newest, first = self._history.newest, self._latest[0]
        chosen = newest(aim, size, self._begin)
        if not _reaches(chosen, first):
            chosen = newest(room, size, first)
            if not _reaches(chosen, first):
                return self._cut_turn(kept, room, aim, masks)
        start = self._starts[bisect_left(self._starts, chosen[-1][0])]
        while chosen[-1][0] < start:
            chosen.pop()
        made = {i: mask for i, (mask, _) in masks.items()}
        left = aim - sum(tokens for _, tokens in chosen)
        for at, (i, tokens) in enumerate(chosen):
            if i in made:
                whole = self._size(i, tokens + left) if left > 0 else None
                if whole is None or whole > tokens + left:
                    break
                left -= whole - tokens
                chosen[at] = i, whole
                del made[i]
        return self._of(kept, chosen, made)

    def _cut_turn(self, kept: Kept, room: int, aim: int, masks: Mapping[int, Masked]) -> Kept:
        """Keep the newest turn only, with its tool results cut."""
        items = [masks[i][0] if i in masks else item for i, item in enumerate(self._messages)]
        args = (self._where, items, self._given, self._latest, self._costs, self._counter, room)
        kept.turn = turn = Turn(*args, self._rules.pins)
        if turn.missing > 0:
            return kept
        # Where the turn takes more than what is aimed at, half of what can be freed is.
        made, tokens = turn.cut(max(aim, room + turn.missing // 2))
        return self._of(kept, tokens.items(), made)

    def _of(self, kept: Kept, chosen: Iterable[tuple[int, int]], made: Mapping[int, Any]) -> Kept:
        kept.tokens = {**dict(chosen), **self._outside}
        kept.messages = {
            i: item for i, item in (*self._short.items(), *made.items()) if i in kept.tokens
        }
        return kept


def _reaches(chosen: Sequence[tuple[int, int]], place: int) -> bool:
    """Return whether messages, the newest first, go back to a place."""
    return bool(chosen) and chosen[-1][0] <= place
