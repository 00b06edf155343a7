"""Reference of ``rust/core/src/pipeline.rs`` and ``rust/core/src/pack.rs``."""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from budgeteer._codes import (
    ASSEMBLED,
    BOTH,
    BUDGET,
    CALLABLE,
    CAP,
    DUPLICATE,
    EMPTY,
    INPUT,
    OUT_OF_SCOPE,
    RECENCY,
    SCORE,
    SKIP,
    START,
    STOP,
    TRUNCATE_END,
    TRUNCATE_MIDDLE,
    WORDS,
)
from budgeteer._reference import _exact
from budgeteer._reference._chunk import read
from budgeteer._reference._count import count as count_tokens
from budgeteer._reference._count import measure, tokens
from budgeteer._reference._keywords import keywords
from budgeteer._reference._score import overlap
from budgeteer._reference._truncate import Cut

MARKERS = {TRUNCATE_END: " [...]", TRUNCATE_MIDDLE: "\n[...truncated...]\n"}
SINGLE_TRIES = 8
"""So many chunks leave an over-full text one by one; after that, half of the rest at a time."""

CUT_TRIES = 8
"""So many times a cut is made shorter where the assembled text is still over."""


@dataclass(slots=True)
class Piece:
    """A chunk that is in, with what stands in front of it."""

    index: int
    label: str
    text: str
    tokens: int
    was_cut: bool = False


@dataclass(slots=True)
class Outcome:
    """What became of the chunks."""

    kept: list[Piece] = field(default_factory=list)
    dropped: list[tuple[int, int, int, int]] = field(default_factory=list)
    duplicates: dict[int, int] = field(default_factory=dict)

    def drop(self, index: int, reason: int, needed: int = 0, available: int = 0) -> None:
        self.dropped.append((index, reason, needed, available))

    def drop_repeated(self, left: dict[int, tuple[int, int]]) -> None:
        """Let what repeated a chunk that left go for the same reason; *left* has the figures."""
        for place, (index, reason, _, _) in enumerate(self.dropped):
            if reason == DUPLICATE and self.duplicates[index] in left:
                self.dropped[place] = (index, BUDGET, *left[self.duplicates.pop(index)])


def pack(
    query: str,
    chunks: Sequence[object],
    budget: int,
    kind: int,
    ratio: float,
    ask: Callable[[str, int], int] | None,
    ranking: int,
    keys: bytes | None,
    min_score: float | None,
    overflow: int,
    max_chunks: int | None,
    dedupe: bool,
    input_order: bool,
    separator: str,
    label: Callable[[int], str] | None,
    sum_of_parts: bool,
) -> tuple[Any, ...]:
    """Pack, and return the columns of a packing; or a code and the index of a bad chunk."""
    texts, titles = read(chunks, ranking != SCORE)
    if isinstance(texts, int) or isinstance(titles, int):
        return texts, titles

    key = list(memoryview(keys).cast("d")) if keys is not None else []
    if ranking == SCORE:
        scores = key
    else:
        wanted = frozenset(keywords(query))
        scores = [overlap(wanted, *pair) for pair in zip(texts, titles, strict=True)]

    outcome = Outcome()
    order = rank(ranking, scores, key, min_score, outcome)
    packer = _Packer(
        texts, budget, kind, ratio, ask or _never, overflow, max_chunks, dedupe, input_order,
        separator, label, outcome,
    )  # fmt: skip
    if sum_of_parts:
        total = packer.pack_sum_of_parts(order)
    elif kind == CALLABLE:
        total = packer.pack_callable(order)
    elif _exact.is_exact(kind):
        total = packer.pack_exact(order)
    else:
        total = packer.pack_formula(order)
    return _columns(packer, total, scores)


def _never(_text: str, _index: int) -> int:
    raise AssertionError("only a callable is asked")  # pragma: no cover


def rank(
    ranking: int,
    scores: Sequence[float],
    key: Sequence[float],
    min_score: float | None,
    outcome: Outcome,
) -> list[int]:
    """Return the indices, best first; what scores below *min_score* is out of scope."""
    order = []
    for i, score in enumerate(scores):
        # A chunk without a score of its own (NaN) ranks and filters as the lowest there is.
        if min_score is not None and (-math.inf if math.isnan(score) else score) < min_score:
            outcome.drop(i, OUT_OF_SCOPE)
        else:
            order.append(i)
    if ranking == INPUT:
        return order
    by = key if ranking in (RECENCY, SCORE) else scores
    order.sort(key=lambda i: (math.isnan(by[i]), -by[i] if by[i] == by[i] else 0))
    return order


@dataclass(slots=True)
class _Packer:
    """Admits chunks in rank order."""

    texts: Sequence[str]
    budget: int
    kind: int
    ratio: float
    ask: Callable[[str, int], int]
    overflow: int
    max_chunks: int | None
    dedupe: bool
    input_order: bool
    separator: str
    label: Callable[[int], str] | None
    outcome: Outcome
    may_cut: bool = False

    def considered(self, order: Sequence[int]) -> Any:
        """Yield what is neither empty, beyond the cap nor a duplicate, and drop the rest."""
        seen: dict[str, int] = {}
        placed = 0
        kept = self.outcome.kept
        for i in order:
            for piece in kept[placed:]:
                seen.setdefault(self.texts[piece.index], piece.index)
            placed = len(kept)
            if not self.texts[i]:
                self.outcome.drop(i, EMPTY)
            elif self.max_chunks is not None and len(kept) >= self.max_chunks:
                self.outcome.drop(i, CAP)
            elif self.dedupe and self.texts[i] in seen:
                self.outcome.duplicates[i] = seen[self.texts[i]]
                self.outcome.drop(i, DUPLICATE)
            else:
                yield i

    def stop(self, rest: Any, available: int) -> None:
        """Drop everything behind the chunk that did not fit, without counting it."""
        for i in rest:
            self.outcome.drop(i, BUDGET, 0, available)

    def label_of(self, i: int) -> str:
        return "" if self.label is None else self.label(i)

    def pack_formula(self, order: Sequence[int]) -> int:
        """Admit what fits beside everything before it; measures of joined texts add up."""
        kept = self.outcome.kept
        kind, ratio = self.kind, self.ratio
        used = 0
        total = partial(tokens, kind, ratio)
        gap = measure(kind, self.separator)
        self.may_cut = self.overflow in MARKERS

        rest = self.considered(order)
        for i in rest:
            before = total(used) if kept else 0
            size = measure(kind, self.texts[i])
            start = used + gap if kept else 0
            needed = total(start + size) - before
            label = ""
            if needed <= self.budget - before or self.may_cut:
                label = self.label_of(i)
                start += measure(kind, label)
                needed = total(start + size) - before
            if needed <= self.budget - before:
                used = start + size
                kept.append(Piece(i, label, self.texts[i], total(size)))
                continue
            if self.may_cut:
                self.may_cut = False
                room = partial(self.total_behind, start)
                best = self.cut(i).longest(room, self.budget)
                if best is not None:
                    size = measure(kind, best[0])
                    used = start + size
                    kept.append(Piece(i, label, best[0], total(size), was_cut=True))
                    continue
            self.outcome.drop(i, BUDGET, needed, self.budget - before)
            if self.overflow == STOP:
                self.stop(rest, self.budget - before)
        return total(used) if kept else 0

    def total_behind(self, start: int, piece: str) -> int:
        """Return the tokens of the whole text with *piece* behind what measures *start*."""
        return tokens(self.kind, self.ratio, start + measure(self.kind, piece))

    def cut(self, i: int) -> Cut:
        keep = START if self.overflow == TRUNCATE_END else BOTH
        return Cut(self.texts[i], keep, MARKERS[self.overflow])

    def pack_callable(self, order: Sequence[int]) -> int:
        """Admit by the sum of the counts; then count the text, and take out while it is over."""
        kept = self.outcome.kept
        used = 0
        self.may_cut = self.overflow in MARKERS
        rest = self.considered(order)
        for i in rest:
            needed = self.ask(self.texts[i], i)
            available = max(0, self.budget - used)
            if needed <= available:
                used += needed
                kept.append(Piece(i, self.label_of(i), self.texts[i], needed))
                continue
            if self.may_cut:
                self.may_cut = False
                cut_used = self.cut_callable(i)
                if cut_used is not None:
                    used = cut_used
                    continue
            self.outcome.drop(i, BUDGET, needed, available)
            if self.overflow == STOP:
                self.stop(rest, available)
        return self.settle(self.ask_assembled)

    def ask_assembled(self) -> int:
        return self.ask(self.assembled(), ASSEMBLED)

    def pack_exact(self, order: Sequence[int]) -> int:
        """Admit by what each costs with separators between them; then settle as for a callable."""
        kept = self.outcome.kept
        used = 0
        self.may_cut = self.overflow in MARKERS
        rest = self.considered(order)
        for i in rest:
            available = max(0, self.budget - used)
            tokens = _exact.count(self.kind, self.texts[i])
            cost = None
            if tokens <= available:
                piece = Piece(i, self.label_of(i), self.texts[i], tokens)
                cost = self.cost(piece)
                if cost <= available:
                    count_tokens(self.kind, self.ratio, self.texts[i])  # to be remembered
                    kept.append(piece)
                else:
                    cost = None
            if cost is None and self.may_cut:
                self.may_cut = False
                cost = self.cut_exact(i, available)
            if cost is not None:
                used += cost
                continue
            # How much more it needs nobody has counted.
            self.outcome.drop(i, BUDGET, available + 1, available)
            if self.overflow == STOP:
                self.stop(rest, available)
        return self.settle(self.count_assembled)

    def cost(self, piece: Piece) -> int:
        """Return what *piece* costs in the text, and one more separator if it is not the first."""
        rendered = piece.label + piece.text
        cost = _exact.count(self.kind, rendered)
        if not self.outcome.kept:
            return cost
        last = self.in_text_order()[-1]
        if self.input_order and piece.index < last.index:
            return _exact.count(self.kind, rendered + self.separator)
        return cost + self.separator_behind(last)

    def separator_behind(self, piece: Piece) -> int:
        """Return what a separator adds to the count of *piece*."""
        rendered = piece.label + piece.text
        with_it = _exact.count(self.kind, rendered + self.separator)
        return with_it - _exact.count(self.kind, rendered)

    def count_assembled(self) -> int:
        return _exact.count(self.kind, self.assembled())

    def cut_exact(self, i: int, available: int) -> int | None:
        """Cut chunk *i* so that the text fits, and return what it costs; None: no cut."""
        kept = self.outcome.kept
        label = self.label_of(i)
        room = available - (_exact.count(self.kind, label) if label else 0)
        if kept:
            room -= self.separator_behind(self.in_text_order()[-1])
        cut = self.cut(i)
        for _ in range(CUT_TRIES):
            best = cut.longest_exact(self.kind, room) if room > 0 else None
            if best is None:
                return None
            piece = Piece(i, label, *best, was_cut=True)
            cost = self.cost(piece)
            kept.append(piece)
            total = self.count_assembled()
            if total <= self.budget:
                return cost
            kept.pop()
            room -= total - self.budget
        return None

    def cut_callable(self, i: int) -> int | None:
        """Cut chunk *i* so that the assembled text fits, and return its count; None: no cut."""
        ask = self.ask
        label = self.label_of(i)
        front = (self.assembled() + self.separator if self.outcome.kept else "") + label
        room = self.budget - (ask(front, ASSEMBLED) if front else 0)
        cut = self.cut(i)
        for _ in range(CUT_TRIES):
            best = cut.longest(lambda piece: ask(piece, i), room) if room > 0 else None
            if best is None:
                return None
            self.outcome.kept.append(Piece(i, label, *best, was_cut=True))
            total = ask(self.assembled(), ASSEMBLED)
            if total <= self.budget:
                return total
            self.outcome.kept.pop()
            room -= total - self.budget
        return None

    def settle(self, count_assembled: Callable[[], int]) -> int:
        """Count the assembled text; while it is over, the lowest-ranked kept chunks leave."""
        kept = self.outcome.kept
        tries = 0
        while kept:
            total = count_assembled()
            if total <= self.budget:
                return total
            left = {}
            for _ in range(1 if tries < SINGLE_TRIES else max(1, len(kept) // 2)):
                piece = kept.pop()
                available = max(0, self.budget - max(0, total - piece.tokens))
                left[piece.index] = max(1, piece.tokens), available
                self.outcome.drop(piece.index, BUDGET, *left[piece.index])
            self.outcome.drop_repeated(left)
            tries += 1
        return 0

    def pack_sum_of_parts(self, order: Sequence[int]) -> int:
        """Admit as theaios-context-router does: see ``presets.context_router``."""
        kept = self.outcome.kept
        used = 0
        for place, i in enumerate(order):
            text = self.texts[i]
            left = self.budget - used
            if left <= 0:
                self.stop(order[place:], 0)
                break
            needed = count_tokens(self.kind, self.ratio, text)
            if needed <= left:
                used += needed
                kept.append(Piece(i, "", text, needed))
            elif self.overflow == SKIP:
                self.outcome.drop(i, BUDGET, needed, left)
            else:
                text = cut_sum_of_parts(self.kind, self.overflow, text, left)
                counted = count_tokens(self.kind, self.ratio, text)
                used += counted
                kept.append(Piece(i, "", text, counted, was_cut=True))
        return used

    def in_text_order(self) -> list[Piece]:
        kept = self.outcome.kept
        return sorted(kept, key=lambda piece: piece.index) if self.input_order else kept

    def assembled(self) -> str:
        return self.separator.join(piece.label + piece.text for piece in self.in_text_order())


def cut_sum_of_parts(kind: int, overflow: int, text: str, max_tokens: int) -> str:
    """Cut *text*, the marker on top of *max_tokens*; words are joined by single spaces."""
    marker = MARKERS[overflow]
    parts: Sequence[str] = text.split() if kind == WORDS else text
    unit, glue = (1, " ") if kind == WORDS else (4, "")
    if overflow == TRUNCATE_END:
        return glue.join(parts[: unit * max_tokens]) + marker
    head = unit * max_tokens // 2
    tail = unit * max_tokens - head
    return glue.join(parts[:head]) + marker + glue.join(parts[-tail:])


def _columns(packer: _Packer, total: int, scores: Sequence[float]) -> tuple[Any, ...]:
    """Return the packing as the columns that ``budgeteer._packing.Packing`` wraps."""
    spans = array("q")
    place = 0
    kept = packer.in_text_order()
    cut = -1
    for nth, piece in enumerate(kept):
        place += len(piece.label)
        spans.extend((place, place + len(piece.text)))
        place += len(piece.text) + len(packer.separator)
        if piece.was_cut:
            cut = nth
    dropped = packer.outcome.dropped
    return (
        packer.assembled(),
        total,
        array("I", [piece.index for piece in kept]).tobytes(),
        array("q", [piece.tokens for piece in kept]).tobytes(),
        spans.tobytes(),
        cut,
        array("d", scores).tobytes(),
        array("I", [index for index, _, _, _ in dropped]).tobytes(),
        bytes([reason for _, reason, _, _ in dropped]),
        array("q", [needed for _, _, needed, _ in dropped]).tobytes(),
        array("q", [available for _, _, _, available in dropped]).tobytes(),
        packer.outcome.duplicates,
    )
