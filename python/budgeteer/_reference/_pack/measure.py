"""
The cost of a chunk under an estimate, under an encoding, and under a caller's own counter.

Packing (``packer.py``) makes the same calls to all three in the same order. They differ in what
they know before the whole text is counted. Reference of the files below ``rust/core/src/pack``.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from budgeteer._codes import ASSEMBLED, BY_INPUT, CALLABLE, WORDS
from budgeteer._reference._count import exact
from budgeteer._reference._count.counter import measure as size_of
from budgeteer._reference._count.counter import tokens
from budgeteer._reference._count.truncate import Cut
from budgeteer._reference._pack.draft import Draft
from budgeteer._reference._pack.template import Piece


@dataclass(slots=True)
class Offer:
    """The chunk under consideration: its framed text, its cost, and the tokens left."""

    piece: Piece
    needed: int
    available: int

    @property
    def fits(self) -> bool:
        """Whether there is room for the chunk in the text."""
        return self.needed <= self.available


class Measure(ABC):
    """Counts the offered chunks, and keeps account of the spent tokens."""

    adds_up: ClassVar[bool] = False
    """Whether the text so far never counts more than `so_far`."""

    is_lazy: ClassVar[bool] = False
    """Whether counting stops when a chunk does not fit, without its full cost."""

    counts_words: bool = False
    """Whether words are what is counted: then no word is cut."""

    def __init__(self, draft: Draft, budget: int) -> None:
        """Begin with nothing spent."""
        self.draft = draft
        self.budget = budget

    @abstractmethod
    def available(self, room: int) -> int:
        """Return the tokens that are left; *room* as for `offer`."""

    @abstractmethod
    def offer(self, i: int, room: int, may_cut: bool) -> Offer:
        """
        Return the cost of chunk *i*; *room* is the budget less kept texts and citations.

        The frame of a chunk is made only if its text fits without one. An estimate, which measures
        it cheaply, also makes it if the chunk may be cut.
        """

    @abstractmethod
    def revise(self, offer: Offer) -> None:
        """Correct the figures of an offer after room was set aside."""

    @abstractmethod
    def set_aside(self, text: str) -> bool:
        """Set room aside for a notice; return False if there is none beside the best chunk."""

    @abstractmethod
    def give_back(self, text: str) -> None:
        """Take back the room that was set aside for a notice."""

    @abstractmethod
    def spend(self, offer: Offer) -> None:
        """Account for a chunk that is about to be kept whole."""

    @abstractmethod
    def cut_room(self, offer: Offer) -> int:
        """Return the most tokens that a cut may leave of the framed chunk."""

    @abstractmethod
    def longest(self, cut: Cut, whole: Piece, room: int) -> tuple[str, int] | None:
        """Return the longest text that a cut may leave within *room*, and its tokens."""

    @abstractmethod
    def spend_cut(self, piece: Piece, total: int) -> None:
        """Account for a cut chunk that is about to be kept; the text then counts *total*."""

    @abstractmethod
    def count(self, text: str) -> int:
        """Return the tokens of an assembled text."""

    def so_far(self) -> int:
        """Return an upper bound of the text so far; 0 if the measure does not add up."""
        return 0

    def take_back(self, piece: Piece) -> None:  # noqa: B027  # not needed to settle
        """Account for a chunk that has left."""

    def less(self, room: int, over: int, _is_escaped: bool) -> int:
        """Return a smaller *room*, after a cut whose text was *over* the budget by that number."""
        return room - over


class Estimate(Measure):
    """
    An estimate: tokens follow from a size, in code points or words, that adds up.

    The size of a text is at most the sum of its parts' sizes, so admitted chunks fit in any order.
    Tokens are rounded up once, for the whole text.
    """

    adds_up = True

    def __init__(self, draft: Draft, budget: int, kind: int, ratio: float) -> None:
        """Measure header and footer."""
        super().__init__(draft, budget)
        self.kind = kind
        self.ratio = ratio
        self.counts_words = kind == WORDS
        template = draft.template
        self.around = self.size(template.header) + self.size(template.footer)
        self.joined = 0
        """The size of the kept chunks with their separators."""

    def size(self, text: str) -> int:
        """Return the code points or words of *text*."""
        return size_of(self.kind, text)

    def total(self, size: int) -> int:
        """Return the tokens of a text of that size."""
        return tokens(self.kind, self.ratio, size)

    def joining(self, rendered: str) -> int:
        """Return the size of one more chunk, with a separator in front if it is not the first."""
        gap = self.size(self.draft.template.separator) if self.draft.outcome.kept else 0
        return gap + self.size(rendered)

    def so_far(self) -> int:
        """Return the tokens of the text so far; 0 for no text."""
        return self.total(self.around + self.joined) if self.draft.outcome.kept else 0

    def with_next(self, rendered: str) -> int:
        """Return the tokens of the text so far with one more chunk."""
        return self.total(self.around + self.joined + self.joining(rendered))

    def available(self, _room: int) -> int:
        """Return the budget less the text so far."""
        return self.budget - self.so_far()

    def offer(self, i: int, _room: int, may_cut: bool) -> Offer:
        """Return the tokens that chunk *i* adds to the text so far."""
        counted = self.total(self.size(self.draft.body(i)))
        offer = Offer(self.draft.bare(i, counted), 0, 0)
        self.revise(offer)
        if offer.fits or may_cut:
            offer.piece = self.draft.framed(i, counted)
            self.revise(offer)
        return offer

    def revise(self, offer: Offer) -> None:
        """Compute the offer again, as chunks may have left the text."""
        before = self.so_far()
        offer.needed = self.with_next(offer.piece.rendered) - before
        offer.available = self.budget - before

    def set_aside(self, text: str) -> bool:
        """Add the size of *text* to that of header and footer."""
        around = self.around + self.size(text)
        kept = self.draft.outcome.kept
        if kept and self.total(around + self.size(kept[0].rendered)) > self.budget:
            return False
        self.around = around
        return True

    def give_back(self, text: str) -> None:
        """Subtract the size of *text* again."""
        self.around -= self.size(text)

    def spend(self, offer: Offer) -> None:
        """Add the size of the chunk and of the separator in front of it."""
        self.joined += self.joining(offer.piece.rendered)

    def take_back(self, piece: Piece) -> None:
        """Subtract what `spend` added."""
        self.joined -= self.joining(piece.rendered)

    def cut_room(self, _offer: Offer) -> int:
        """Return the whole budget, as `longest` measures the whole text."""
        return self.budget

    def longest(self, cut: Cut, whole: Piece, room: int) -> tuple[str, int] | None:
        """Return the longest text with which the whole text is within the budget."""

        def total(text: str) -> int:
            return self.with_next(whole.front + self.draft.template.escaped(text) + whole.back)

        best = cut.longest(total, room)
        return best and (best[0], self.total(self.size(best[0])))

    def spend_cut(self, piece: Piece, _total: int) -> None:
        """Add the size of the cut chunk."""
        self.joined += self.joining(piece.rendered)

    def count(self, text: str) -> int:
        """Return the tokens of an assembled text."""
        return self.total(self.size(text))


class Exact(Measure):
    """
    An encoding: a part may count more or less at a seam than on its own.

    A chunk costs the count of its framed text by itself, plus the joint of one more separator
    after the chunk before it. Counts of parts do not add up to that of the text, and packing
    settles the difference at the end.
    """

    is_lazy = True

    def __init__(self, draft: Draft, budget: int, kind: int) -> None:
        """Count header and footer."""
        super().__init__(draft, budget)
        self.kind = kind
        self.around = self.count(draft.template.header) + self.count(draft.template.footer)
        self.used = self.around

    def count(self, text: str) -> int:
        """Return the tokens of *text*."""
        return exact.count(self.kind, text)

    def left(self) -> int:
        """Return the tokens that are left."""
        return max(0, self.budget - self.used)

    def available(self, room: int) -> int:
        """Return the tokens that are left, within *room*."""
        return min(room, self.left())

    def offer(self, i: int, room: int, _may_cut: bool) -> Offer:
        """Return the cost of chunk *i*, or one token more than is left if it does not fit."""
        available = self.available(room)
        counted = self.count(self.draft.body(i))
        if counted <= available:
            piece = self.draft.framed(i, counted)
            cost = self.cost(piece)
            if cost <= available and self.count(piece.text) <= available:
                return Offer(piece, cost, available)
        return Offer(self.draft.bare(i, counted), available + 1, available)

    def revise(self, offer: Offer) -> None:
        """Update the tokens left for a chunk that did not fit before."""
        offer.available = self.left()
        offer.needed = offer.available + 1

    def cost(self, piece: Piece) -> int:
        """Return the cost of *piece*, with one more separator if it is not the first."""
        cost = self.count(piece.rendered)
        if not self.draft.outcome.kept:
            return cost
        last = self.last()
        is_last = self.draft.order != BY_INPUT or piece.index >= last.index
        return cost + self.separator_behind(last if is_last else piece)

    def last(self) -> Piece:
        """Return the kept chunk after which one more separator is counted."""
        kept = self.draft.outcome.kept
        return max(kept, key=lambda p: p.index) if self.draft.order == BY_INPUT else kept[-1]

    def separator_behind(self, piece: Piece) -> int:
        """Return the joint of *piece* and a separator after it."""
        with_it = self.count(piece.rendered + self.draft.template.separator)
        return with_it - self.count(piece.rendered)

    def set_aside(self, text: str) -> bool:
        """Spend the count of the notice by itself."""
        kept = self.draft.outcome.kept
        counted = self.count(text)
        if kept and self.around + self.count(kept[0].rendered) + counted > self.budget:
            return False
        self.used += counted
        return True

    def give_back(self, text: str) -> None:
        """Take back what `set_aside` spent."""
        self.used -= self.count(text)

    def spend(self, offer: Offer) -> None:
        """Spend the cost of the chunk; its text's count stays in the process's cache."""
        self.used += offer.needed
        exact.count_till_limit(self.kind, self.draft.body(offer.piece.index), sys.maxsize)

    def cut_room(self, offer: Offer) -> int:
        """Return the tokens left after the frame and a separator."""
        offer.piece = whole = self.draft.framed(offer.piece.index, 0)
        room = offer.available - self.count(whole.front) - self.count(whole.back)
        return room - (self.separator_behind(self.last()) if self.draft.outcome.kept else 0)

    def longest(self, cut: Cut, _whole: Piece, room: int) -> tuple[str, int] | None:
        """Return a text that ends at the end of a token; escaping is counted afterwards."""
        return cut.longest_exact(self.kind, room)

    def spend_cut(self, piece: Piece, _total: int) -> None:
        """Spend the cost of the cut chunk."""
        self.used += self.cost(piece)

    def less(self, room: int, over: int, is_escaped: bool) -> int:
        """Return a smaller *room*, in proportion if escaping made the text longer."""
        return room * room // (room + over) if is_escaped else room - over


class Counted(Measure):
    """
    A caller's own counter: only its results are known.

    It is called once for each chunk considered, once for header and footer, and once for the
    notice; admission uses the sum of these counts. It may then return any count for the whole
    text, which packing settles at the end. To cut a chunk it is called for pieces of it.
    """

    def __init__(self, draft: Draft, budget: int, ask: Callable[[str, int], int]) -> None:
        """Call nothing yet, as there may be no chunk to pack."""
        super().__init__(draft, budget)
        self.ask = ask
        self.used: int | None = None
        self.notice: int | None = None
        """The tokens of the notice, once the counter was asked."""
        self.best = 0
        """The sum with the best chunk alone."""

    def count(self, text: str) -> int:
        """Return the tokens of a text that is not a chunk; an empty one is not counted."""
        return self.ask(text, ASSEMBLED) if text else 0

    def spent(self) -> int:
        """Return the sum so far; the first call counts header and footer."""
        if self.used is None:
            self.used = self.count(self.draft.template.header + self.draft.template.footer)
        return self.used

    def left(self) -> int:
        """Return the tokens left, by the sum."""
        return max(0, self.budget - self.spent())

    def available(self, _room: int) -> int:
        """Return the tokens left, by the sum."""
        return self.left()

    def offer(self, i: int, _room: int, _may_cut: bool) -> Offer:
        """
        Return the count of chunk *i*.

        Its frame and escapes are assumed to count the same per code point as the text; counting
        them would be one more call for each chunk.
        """
        available = self.left()
        counted = self.ask(self.draft.body(i), i)
        if counted > available:
            return Offer(self.draft.bare(i, counted), counted, available)
        piece = self.draft.framed(i, counted)
        needed = -(-counted * len(piece.rendered) // len(self.draft.body(i)))
        return Offer(piece, needed, available)

    def revise(self, offer: Offer) -> None:
        """Update the tokens left."""
        offer.available = self.left()

    def set_aside(self, text: str) -> bool:
        """Add the count of the notice."""
        used = self.spent()
        if self.notice is None:
            self.notice = self.count(text)
        if self.draft.outcome.kept and self.best + self.notice > self.budget:
            return False
        self.used = used + self.notice
        return True

    def give_back(self, _text: str) -> None:
        """Subtract the count of the notice."""
        self.used = self.spent() - (self.notice or 0)

    def spend(self, offer: Offer) -> None:
        """Add the assumed count of the chunk."""
        self.used = self.spent() + offer.needed
        if not self.draft.outcome.kept:
            self.best = self.used

    def cut_room(self, offer: Offer) -> int:
        """Return the budget less the text so far, the frame and the longest tail."""
        draft, template = self.draft, self.draft.template
        offer.piece = whole = draft.framed(offer.piece.index, 0)
        front = template.header
        if draft.outcome.kept:
            front = draft.assembled("") + template.separator
        return self.budget - self.count(front + whole.front + whole.back + draft.longest_tail())

    def longest(self, cut: Cut, whole: Piece, room: int) -> tuple[str, int] | None:
        """Return the longest text that counts at most *room* when escaped."""
        escaped = self.draft.template.escaped
        best = cut.longest(lambda text: self.ask(escaped(text), whole.index), room)
        if best is None or escaped(best[0]) == best[0]:
            return best
        return best[0], self.ask(best[0], whole.index)

    def spend_cut(self, _piece: Piece, total: int) -> None:
        """Continue from the count of the text, which is better than the sum."""
        self.used = total


def measure_of(
    draft: Draft, budget: int, kind: int, ratio: float, ask: Callable[[str, int], int]
) -> Measure:
    """Return the measure of a counter."""
    if kind == CALLABLE:
        return Counted(draft, budget, ask)
    if exact.is_exact(kind):
        return Exact(draft, budget, kind)
    return Estimate(draft, budget, kind, ratio)
