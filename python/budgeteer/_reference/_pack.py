"""Reference of ``rust/core/src/pack.rs``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any

from budgeteer._codes import (
    ASSEMBLED,
    BOTH,
    BUDGET,
    BY_DOCUMENT,
    BY_INPUT,
    CAP,
    DUPLICATE,
    EMPTY,
    NEAR,
    PLAIN,
    REPEATS,
    START,
    STOP,
    TRUNCATE_END,
    TRUNCATE_MIDDLE,
    WORDS,
)
from budgeteer._reference import _exact, _gate, _near
from budgeteer._reference._assemble import Piece, Tag, Template, arranged
from budgeteer._reference._count import count as count_tokens
from budgeteer._reference._count import measure, tokens
from budgeteer._reference._outcome import Outcome
from budgeteer._reference._truncate import Cut

MARKERS = {TRUNCATE_END: " [...]", TRUNCATE_MIDDLE: "\n[...truncated...]\n"}
SINGLE_TRIES = 8
"""So many chunks leave an over-full text one by one."""

SHARE_TRIES = 8
"""So many times after that as many as weigh what is too much; then half of the rest at a time."""

CUT_TRIES = 8
"""So many times a cut is made shorter where the assembled text is still over."""


@dataclass(slots=True)
class Packer:
    """Admits chunks in rank order."""

    texts: Sequence[str]
    budget: int
    kind: int
    ratio: float
    ask: Callable[[str, int], int]
    overflow: int
    max_chunks: int | None
    dedupe: int
    order: int
    previous: Sequence[str]
    template: Template
    pieces_of_notice: Sequence[str] | None
    tag: Callable[[int], tuple[str, str, str, str, float]]
    outcome: Outcome
    cite: Callable[[int], int] | None
    gate: _gate.Gate | None
    seen: dict[str, int] = field(default_factory=dict)
    shingles: list[_near.Shingles] = field(default_factory=list)
    """Of the kept texts, where those that nearly repeat one are dropped."""
    rest: int = 0
    may_cut: bool = False
    has_notice: bool = False
    around: int = 0
    joined: int = 0
    parts: int = 0
    """Kept texts and their citations, each counted by itself."""
    considered_docs: int = 0

    def is_beyond_gate(self, i: int) -> bool:
        """Return whether *i* is a document that a gate considers no more, counting documents."""
        if self.gate is None or not self.gate.is_document(i):
            return False
        self.considered_docs += 1
        return self.considered_docs > self.gate.max_docs

    def is_beyond_cap(self) -> bool:
        return self.max_chunks is not None and len(self.outcome.kept) >= self.max_chunks

    def cited(self, i: int, tokens: int, needed: int, available: int) -> int | tuple[int, int]:
        """Return what citing chunk *i* costs; else what it would need, and what is left."""
        if needed > available:
            return needed, available
        if self.cite is None:
            return 0
        room = self.budget - self.parts
        if tokens > room:
            return tokens, room
        citation = self.cite(i)
        if tokens + citation > room:
            return min(tokens + citation, 2**63 - 1), room
        self.parts += tokens + citation
        return citation

    def considered(self, order: Sequence[int]) -> Any:
        """Yield what is neither empty, beyond the cap nor a duplicate, and drop the rest."""
        self.rest = len(order)
        for i in order:
            self.rest -= 1
            if not self.texts[i]:
                self.outcome.drop(i, EMPTY)
            elif self.is_beyond_gate(i) or self.is_beyond_cap():
                self.outcome.drop(i, CAP)
            elif self.dedupe != REPEATS and self.texts[i] in self.seen:
                self.drop_duplicate(i, self.seen[self.texts[i]])
            else:
                yield i

    def drop_duplicate(self, i: int, original: int) -> None:
        self.outcome.duplicates[i] = original
        self.outcome.drop(i, DUPLICATE)

    def is_near(self, i: int, fits: bool) -> bool:
        """
        Return whether chunk *i* nearly repeats a kept one, after dropping it.

        That is not asked where it does not fit, unless it would be cut or be the end.
        """
        if self.dedupe != NEAR or not (fits or self.may_cut or self.overflow == STOP):
            return False
        place = _near.find(_near.shingles(self.texts[i]), self.shingles)
        if place is not None:
            self.drop_duplicate(i, self.outcome.kept[place].index)
        return place is not None

    def stop(self, rest: Any, available: int) -> None:
        """Drop everything behind the chunk that did not fit, without counting it."""
        for i in rest:
            self.outcome.drop(i, BUDGET, 0, available)

    def keep(self, piece: Piece) -> None:
        self.seen[self.texts[piece.index]] = piece.index
        if self.dedupe == NEAR:
            self.shingles.append(_near.shingles(self.texts[piece.index]))
        self.outcome.kept.append(piece)

    def take_out(self) -> Piece:
        """Remove the kept chunk of lowest rank."""
        piece = self.outcome.kept.pop()
        self.parts -= piece.tokens + piece.citation if self.cite is not None else 0
        self.seen.pop(self.texts[piece.index], None)
        if self.dedupe == NEAR:
            self.shingles.pop()
        return piece

    @property
    def is_framed(self) -> bool:
        """Whether it matters what a chunk says of itself."""
        return self.template.style != PLAIN or self.order == BY_DOCUMENT

    @property
    def is_bare(self) -> bool:
        """Whether there is nothing in the text but chunks and separators."""
        template = self.template
        around = template.header or template.footer or self.pieces_of_notice is not None
        return not (self.is_framed or around)

    def framed(self, i: int) -> Piece:
        """Return chunk *i* as it would stand in the text, uncounted."""
        if not self.is_framed:
            return Piece(i, "", self.texts[i], "", 0)
        tag = Tag(*self.tag(i))
        front, back = self.template.around(tag, i)
        text = self.template.escaped(self.texts[i])
        return Piece(i, front, text, back, 0, tag.source, tag.position)

    def wants_notice(self, rest: int = 0) -> bool:
        """Return whether it is time to set room aside for the notice."""
        wanted = self.pieces_of_notice is not None and not self.has_notice
        return wanted and (rest > 0 or bool(self.outcome.dropped))

    def notice(self, count: int) -> str:
        """Return separator and notice, if there is one to be."""
        if self.pieces_of_notice is None:
            return ""
        return self.template.separator + self.template.notice(self.pieces_of_notice, count)

    def set_notice(self) -> str:
        """Return the longest notice there may be, from now on with room for it."""
        self.has_notice = True
        return self.notice(len(self.texts))

    def tail(self) -> str:
        """Return what stands behind the last chunk."""
        count = len(self.outcome.dropped)
        return (self.notice(count) if count else "") + self.template.footer

    def longest_tail(self) -> str:
        """Return the most that may stand behind the last chunk."""
        notice = self.notice(len(self.texts)) if self.has_notice and self.texts else ""
        return notice + self.template.footer

    def pack_formula(self, order: Sequence[int]) -> int:
        """Admit what fits beside everything before it; the sum bounds the measure of all."""
        kept = self.outcome.kept
        template = self.template
        total = partial(tokens, self.kind, self.ratio)
        size_of = partial(measure, self.kind)
        gap = size_of(template.separator)
        self.around = size_of(template.header) + size_of(template.footer)
        self.may_cut = self.overflow in MARKERS and self.cite is None

        before = 0
        rest = self.considered(order)
        for i in rest:
            if self.wants_notice():
                before = self.make_room()
            size = whole = size_of(self.texts[i])
            start = self.around + (self.joined + gap if kept else 0)
            needed = total(start + size) - before
            piece = Piece(i, "", self.texts[i], "", 0)
            if not self.is_bare and (needed <= self.budget - before or self.may_cut):
                piece = self.framed(i)
                whole = size_of(piece.rendered)
                needed = total(start + whole) - before
            if self.is_near(i, needed <= self.budget - before):
                continue
            if needed > self.budget - before and self.may_cut and self.wants_notice(self.rest):
                before = self.make_room()
                start = self.around + (self.joined + gap if kept else 0)
                needed = total(start + whole) - before
            cited = self.cited(i, total(size), needed, self.budget - before)
            if isinstance(cited, int):
                piece.tokens, piece.citation = total(size), cited
                self.keep(piece)
            elif self.may_cut and self.cut_formula(piece, start):
                whole = size_of(kept[-1].rendered)
            else:
                self.outcome.drop(i, BUDGET, *cited)
                if self.overflow == STOP:
                    self.stop(rest, cited[1])
                continue
            self.joined = start + whole - self.around
            before = total(start + whole)
        if self.wants_notice():
            self.make_room()
        return total(size_of(self.assembled(self.tail()))) if kept else 0

    def make_room(self) -> int:
        """Set room aside for the notice, for which some may leave; return the tokens so far."""
        kept = self.outcome.kept
        size_of = partial(measure, self.kind)
        self.around += size_of(self.set_notice())
        left: dict[int, tuple[int, int]] = {}
        total = self.tokens_so_far()
        while total > self.budget:
            piece = self.take_out()
            self.joined -= size_of(piece.rendered)
            self.joined -= size_of(self.template.separator) if kept else 0
            others = self.tokens_so_far()
            self.drop_kept(piece, total - others, total, left)
            total = others
        self.outcome.drop_repeated(left)
        return total

    def tokens_so_far(self) -> int:
        if not self.outcome.kept:
            return 0
        return tokens(self.kind, self.ratio, self.around + self.joined)

    def drop_kept(
        self, piece: Piece, added: int, total: int, left: dict[int, tuple[int, int]]
    ) -> None:
        """Drop what was kept and *added* so many tokens to a text of *total*."""
        left[piece.index] = max(1, added), max(0, self.budget - max(0, total - added))
        self.outcome.drop(piece.index, BUDGET, *left[piece.index])

    def cut_formula(self, piece: Piece, start: int) -> bool:
        """Cut a chunk so that the text fits, and keep it; False: no cut."""
        self.may_cut = False

        def total(text: str) -> int:
            rendered = piece.front + self.template.escaped(text) + piece.back
            return tokens(self.kind, self.ratio, start + measure(self.kind, rendered))

        best = self.cut(piece.index).longest(total, self.budget)
        if best is None:
            return False
        counted = tokens(self.kind, self.ratio, measure(self.kind, best[0]))
        self.keep(self.cut_to(piece, best[0], counted))
        return True

    def cut_to(self, piece: Piece, text: str, counted: int) -> Piece:
        """Return the piece with what a cut left of it, which counts so much."""
        return replace(piece, text=self.template.escaped(text), tokens=counted, was_cut=True)

    def cut(self, i: int) -> Cut:
        keep = START if self.overflow == TRUNCATE_END else BOTH
        return Cut(self.texts[i], keep, MARKERS[self.overflow])

    def pack_callable(self, order: Sequence[int]) -> int:
        """Admit by the sum of the counts; then count the text, and take out while it is over."""
        used: int | None = None
        self.may_cut = self.overflow in MARKERS and self.cite is None
        rest = self.considered(order)
        for i in rest:
            if used is None:
                used = self.ask_around(self.template.header + self.template.footer)
            if self.wants_notice():
                used += self.ask_around(self.set_notice())
            needed = counted = self.ask(self.texts[i], i)
            available = max(0, self.budget - used)
            piece = Piece(i, "", self.texts[i], "", 0)
            if needed <= available:
                piece = self.framed(i)
                needed = self.with_frame(counted, piece)
            if self.is_near(i, needed <= available):
                continue
            if needed > available and self.may_cut and self.wants_notice(self.rest):
                used += self.ask_around(self.set_notice())
                available = max(0, self.budget - used)
            cited = self.cited(i, counted, needed, available)
            if isinstance(cited, int):
                used += needed
                piece.tokens, piece.citation = counted, cited
                self.keep(piece)
                continue
            if self.may_cut:
                self.may_cut = False
                cut_used = self.cut_callable(i)
                if cut_used is not None:
                    used = cut_used
                    continue
            self.outcome.drop(i, BUDGET, *cited)
            if self.overflow == STOP:
                self.stop(rest, cited[1])
        return self.settle(lambda: self.ask(self.assembled(self.tail()), ASSEMBLED))

    def with_frame(self, counted: int, piece: Piece) -> int:
        """Return the tokens of a chunk and what stands around it, as if all counted alike."""
        if self.template.style == PLAIN:
            return counted
        return -(-counted * len(piece.rendered) // len(self.texts[piece.index]))

    def ask_around(self, text: str) -> int:
        return self.ask(text, ASSEMBLED) if text else 0

    def pack_exact(self, order: Sequence[int]) -> int:
        """Admit by what each costs with separators between them; then settle as for a callable."""
        count = partial(_exact.count, self.kind)
        used = 0
        around = count(self.template.header) + count(self.template.footer)
        self.may_cut = self.overflow in MARKERS and self.cite is None
        rest = self.considered(order)
        for i in rest:
            if self.wants_notice():
                around += count(self.set_notice())
            available = max(0, max(0, self.budget - used) - around)
            if self.cite is not None:
                available = min(available, self.budget - self.parts)
            fitting = self.fit_exact(i, available)
            if self.is_near(i, fitting is not None):
                continue
            cost = None if fitting is None else self.keep_exact(*fitting, available)
            if cost is None and self.may_cut:
                self.may_cut = False
                if self.wants_notice(self.rest):
                    around += count(self.set_notice())
                    available = max(0, max(0, self.budget - used) - around)
                cost = self.cut_exact(i, available)
            if cost is not None:
                used += cost
                continue
            # How much more it needs nobody has counted.
            self.outcome.drop(i, BUDGET, available + 1, available)
            if self.overflow == STOP:
                self.stop(rest, available)
        return self.settle(lambda: count(self.assembled(self.tail())))

    def fit_exact(self, i: int, available: int) -> tuple[Piece, int] | None:
        """Return chunk *i* as it stands in the text and what it costs; None: it does not fit."""
        counted = _exact.count(self.kind, self.texts[i])
        if counted > available:
            return None
        piece = self.framed(i)
        piece.tokens = counted
        cost = self.cost(piece)
        if _exact.count(self.kind, piece.text) > available or cost > available:
            return None
        return piece, cost

    def keep_exact(self, piece: Piece, cost: int, available: int) -> int | None:
        """Keep what fits, unless its citation does not, and return what it costs."""
        cited = self.cited(piece.index, piece.tokens, cost, available)
        if not isinstance(cited, int):
            return None
        piece.citation = cited
        count_tokens(self.kind, self.ratio, self.texts[piece.index])  # to be remembered
        self.keep(piece)
        return cost

    def cost(self, piece: Piece) -> int:
        """Return what *piece* costs in the text, and one more separator if it is not the first."""
        kept = self.outcome.kept
        cost = _exact.count(self.kind, piece.rendered)
        if not kept:
            return cost
        last = self.last()
        if self.order == BY_INPUT and piece.index < last.index:
            return cost + self.separator_behind(piece)
        return cost + self.separator_behind(last)

    def last(self) -> Piece:
        """Return the kept chunk that a separator is reckoned to stand behind."""
        kept = self.outcome.kept
        return max(kept, key=lambda p: p.index) if self.order == BY_INPUT else kept[-1]

    def separator_behind(self, piece: Piece) -> int:
        """Return what a separator adds to the count of *piece*."""
        with_it = _exact.count(self.kind, piece.rendered + self.template.separator)
        return with_it - _exact.count(self.kind, piece.rendered)

    def cut_exact(self, i: int, available: int) -> int | None:
        """Cut chunk *i* so that the text fits, and return what it costs; None: no cut."""
        count = partial(_exact.count, self.kind)
        whole = self.framed(i)
        room = available - count(whole.front) - count(whole.back)
        if self.outcome.kept:
            room -= self.separator_behind(self.last())
        cut = self.cut(i)
        for _ in range(CUT_TRIES):
            best = cut.longest_exact(self.kind, room) if room > 0 else None
            if best is None:
                return None
            piece = self.cut_to(whole, *best)
            cost = self.cost(piece)
            self.keep(piece)
            over = count(self.assembled(self.longest_tail())) - self.budget
            if over <= 0:
                return cost
            self.take_out()
            room = room * room // (room + over) if piece.text != best[0] else room - over
        return None

    def cut_callable(self, i: int) -> int | None:
        """Cut chunk *i* so that the assembled text fits, and return its count; None: no cut."""
        ask, template = self.ask, self.template
        whole = self.framed(i)
        kept = self.outcome.kept
        front = self.assembled("") + template.separator if kept else template.header
        around = self.ask_around(front + whole.front + whole.back + self.longest_tail())
        room = self.budget - around
        cut = self.cut(i)
        for _ in range(CUT_TRIES):
            best = (
                cut.longest(lambda piece: ask(template.escaped(piece), i), room)
                if room > 0
                else None
            )
            if best is None:
                return None
            piece = self.cut_to(whole, *best)
            if piece.text != best[0]:
                piece.tokens = ask(best[0], i)
            self.keep(piece)
            total = ask(self.assembled(self.longest_tail()), ASSEMBLED)
            if total <= self.budget:
                return total
            self.take_out()
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
            left: dict[int, tuple[int, int]] = {}
            for _ in range(self.leaving(tries, total)):
                piece = self.take_out()
                self.drop_kept(piece, piece.tokens, total, left)
            self.outcome.drop_repeated(left)
            tries += 1
        return 0

    def leaving(self, tries: int, total: int) -> int:
        """Return how many leave a text of *total* tokens; each weighs its share, half at most."""
        counts = [piece.tokens for piece in reversed(self.outcome.kept)]
        excess = (total - self.budget) * sum(counts)
        if tries < SINGLE_TRIES:
            return 1
        half = max(1, len(counts) // 2)
        if tries >= SINGLE_TRIES + SHARE_TRIES or not excess:
            return half
        weights = enumerate(accumulate(counts), 1)
        return min(half, next(n for n, weight in weights if weight * total >= excess))

    def pack_sum_of_parts(self, order: Sequence[int]) -> int:
        """Admit as theaios-context-router does: see ``presets.context_router``."""
        count = partial(count_tokens, self.kind, self.ratio)
        used = 0
        for place, i in enumerate(order):
            left = self.budget - used
            if left <= 0:
                self.stop(order[place:], 0)
                break
            counted = count(self.texts[i])
            if counted > left and self.overflow not in MARKERS:
                self.outcome.drop(i, BUDGET, counted, left)
                if self.overflow == STOP:
                    self.stop(order[place + 1 :], left)
                    break
                continue
            piece = self.framed(i)
            piece.tokens = counted
            if counted > left:
                text = cut_sum_of_parts(self.kind, self.overflow, self.texts[i], left)
                piece = self.cut_to(piece, text, count(text))
            used += piece.tokens
            self.outcome.kept.append(piece)
        return used

    def in_text_order(self) -> list[Piece]:
        return arranged(self.order, self.outcome.kept, self.previous, self.template)

    def assembled(self, tail: str) -> str:
        """Return the text, with *tail* behind the last chunk."""
        if not self.outcome.kept:
            return ""
        pieces = (piece.rendered for piece in self.in_text_order())
        return self.template.header + self.template.separator.join(pieces) + tail


def cut_sum_of_parts(kind: int, overflow: int, text: str, max_tokens: int) -> str:
    """Cut *text*, the marker on top of *max_tokens*; words are joined by single spaces."""
    marker = MARKERS[overflow]
    parts: Sequence[str] = text.split() if kind == WORDS else text
    unit, glue = (1, " ") if kind == WORDS else (4, "")
    units = min(unit * max_tokens, len(parts))
    if overflow == TRUNCATE_END:
        return glue.join(parts[:units]) + marker
    head = units // 2
    tail = len(parts) - (units - head)
    return glue.join(parts[:head]) + marker + glue.join(parts[tail:])
