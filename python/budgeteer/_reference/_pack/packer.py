"""
Reference of ``rust/core/src/pack.rs``: admission of the ranked chunks.

The chunks are considered one after another, best first. Each is checked in this order: is it
empty, is it beyond a cap, is it a duplicate of a kept chunk, does it fit into the budget? (Out of
scope was decided before, when the chunks were ranked.) The first check that fails is the reason
for dropping the chunk. The measure decides what a chunk costs: see ``measure.py``. At the end the
whole text is counted, and settled if it is over the budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from budgeteer._codes import (
    BOTH,
    BUDGET,
    CAP,
    DUPLICATE,
    EMPTY,
    NEAR,
    REPEATS,
    START,
    STOP,
    TRUNCATE_END,
    TRUNCATE_MIDDLE,
)
from budgeteer._deadline import unwatched
from budgeteer._reference._count.truncate import Cut
from budgeteer._reference._pack import near
from budgeteer._reference._pack.draft import Draft
from budgeteer._reference._pack.gate import Gate
from budgeteer._reference._pack.measure import Measure, Offer
from budgeteer._reference._pack.outcome import Left, Outcome
from budgeteer._reference._pack.template import Piece

MARKERS = {TRUNCATE_END: " [...]", TRUNCATE_MIDDLE: "\n[...truncated...]\n"}
"""The marker in place of the part of a text that was cut out."""

CUT_TRIES = 8
"""The most tries to cut a chunk, each shorter than the last."""

SINGLE_TRIES = 8
"""The number of times that one chunk leaves a text that is over the budget."""

SHARE_TRIES = 8
"""The number of times after that when the chunks that make up the excess leave."""

MOST = 2**63 - 1
"""The highest figure."""


@dataclass(slots=True)
class Packer:
    """Admits the chunks of one call."""

    draft: Draft
    measure: Measure
    budget: int
    overflow: int
    max_chunks: int | None
    dedupe: int
    cite: Callable[[int], int] | None
    """Returns the tokens of a chunk's citation; None if chunks are not cited."""
    gate: Gate | None

    may_cut: bool = False
    """Whether the next chunk that does not fit is cut; only one is."""
    stopped_at: int | None = None
    """The tokens left when ``overflow="stop"`` ended admission; None while it goes on."""
    cited: int = 0
    """The tokens of the kept texts and their citations, each counted by itself."""
    documents: int = 0
    """The number of documents that a gate has considered."""
    kept_texts: dict[str, int] = field(default_factory=dict)
    """The kept chunk for each text."""
    kept_shingles: list[near.Shingles] = field(default_factory=list)
    """The shingles of each kept text, if near-duplicates are dropped."""

    @property
    def outcome(self) -> Outcome:
        return self.draft.outcome

    def pack(self, order: Sequence[int], look: Callable[[], None] = unwatched) -> int:
        """
        Admit the chunks in that order, and return the tokens of the text.

        *look* is called before each; what it raises ends the call.
        """
        # A cited chunk stands whole or not at all.
        self.may_cut = self.overflow in MARKERS
        for place, i in enumerate(order, 1):
            look()
            if self.is_refused(i):
                continue
            if self.stopped_at is not None:
                self.outcome.drop(i, BUDGET, 0, self.stopped_at)
            else:
                self.admit(i, len(order) - place)
        # The last chunk may be the first that was left out. What adds up needs no settling, if the
        # notice has room; under other measures settling finds out.
        if self.measure.adds_up and self.outcome.kept and self.wants_notice():
            self.make_room_for_notice()
        return self.settle()

    # The checks that need no counting.

    def is_refused(self, i: int) -> bool:
        """Drop chunk *i* if it is empty, beyond a cap or a duplicate of a kept chunk."""
        text = self.draft.texts[i]
        if not text:
            self.outcome.drop(i, EMPTY)
        elif self.is_beyond_gate(i) or self.is_beyond_cap():
            self.outcome.drop(i, CAP)
        elif self.dedupe != REPEATS and text in self.kept_texts:
            self.drop_duplicate(i, self.kept_texts[text])
        else:
            return False
        return True

    def is_beyond_gate(self, i: int) -> bool:
        """Return whether *i* is beyond the gate's cap; each call with a document counts it."""
        if self.gate is None or not self.gate.is_document(i):
            return False
        self.documents += 1
        return self.documents > self.gate.max_docs

    def is_beyond_cap(self) -> bool:
        """Return whether the cap on kept chunks is reached."""
        return self.max_chunks is not None and len(self.outcome.kept) >= self.max_chunks

    def drop_duplicate(self, i: int, original: int) -> None:
        self.outcome.duplicates[i] = original
        self.outcome.drop(i, DUPLICATE)

    # The budget.

    def admit(self, i: int, behind: int) -> None:
        """
        Keep chunk *i* whole or cut, or drop it; *behind* is how many follow.

        It is kept whole if there is room for it with its frame, and for its citation if chunks are
        cited. The first chunk that does not fit is cut, if *overflow* says so.
        """
        if self.outcome.kept and self.wants_notice():
            self.make_room_for_notice()
        if self.draft.is_written and not self.write(i):
            return
        offer = self.measure.offer(i, self.room_for_citation(), self.may_cut)
        is_compared = self.draft.is_written  # before it was written
        if not is_compared and self.drop_near_duplicate(offer):
            return
        # A cut fills the budget, so later chunks are likely to be left out.
        if not offer.fits and self.may_cut and self.wants_notice(behind):
            self.make_room_for_notice()
            self.measure.revise(offer)
        if offer.fits and self.reserve_citation(offer):
            self.measure.spend(offer)
            self.keep(offer.piece)
        elif not (self.may_cut and self.keep_cut(offer)):
            self.drop_over(i, offer.needed, offer.available)

    def drop_over(self, i: int, needed: int, available: int) -> None:
        """Drop chunk *i*, which does not fit."""
        self.outcome.drop(i, BUDGET, needed, available)
        if self.overflow == STOP:
            self.stopped_at = available

    def write(self, i: int) -> bool:
        """
        Have the caller's function write chunk *i*; return False if it is dropped instead.

        It is asked while a token is left, and not for near duplicates. A chunk for which it writes
        nothing is dropped.
        """
        if self.measure.available(self.room_for_citation()) == 0:
            self.drop_over(i, 1, 0)
            return False
        if self.dedupe == NEAR and self.is_near_duplicate(i):
            return False
        self.draft.written[i] = self.draft.write(i)
        if not self.draft.written[i]:
            self.outcome.drop(i, EMPTY)
        return bool(self.draft.written[i])

    def drop_near_duplicate(self, offer: Offer) -> bool:
        """
        Drop the chunk if it nearly repeats a kept one, and return whether it did.

        This check is slow. It is skipped for a chunk that is dropped for the budget in any case:
        one that does not fit, unless it would be cut or would end admission.
        """
        may_matter = offer.fits or self.may_cut or self.overflow == STOP
        return self.dedupe == NEAR and may_matter and self.is_near_duplicate(offer.piece.index)

    def is_near_duplicate(self, i: int) -> bool:
        """Drop chunk *i* if it nearly repeats a kept one, and return whether it did."""
        place = near.find(near.shingles(self.draft.texts[i]), self.kept_shingles)
        if place is None:
            return False
        self.drop_duplicate(i, self.outcome.kept[place].index)
        return True

    def room_for_citation(self) -> int:
        """Return the budget less the kept texts and their citations."""
        return self.budget - self.cited

    def reserve_citation(self, offer: Offer) -> bool:
        """
        Set room aside for the citation of a chunk that fits; return whether there was enough.

        Texts and citations are counted by themselves, and all of them must fit into the budget. If
        they do not, the offer states what they need, if its measure reports that.
        """
        if self.cite is None:
            return True
        piece, room = offer.piece, self.room_for_citation()
        needed = piece.tokens
        if needed <= room:
            piece.citation = self.cite(piece.index)
            needed += piece.citation
        if needed <= room:
            self.cited += needed
            return True
        if self.measure.is_lazy:
            offer.needed = offer.available + 1
        else:
            offer.needed, offer.available = min(needed, MOST), room
        return False

    def keep(self, piece: Piece) -> None:
        """Add a chunk to the text; its whole text counts as kept even if it was cut."""
        text = self.draft.texts[piece.index]
        self.kept_texts[text] = piece.index
        if self.dedupe == NEAR:
            self.kept_shingles.append(near.shingles(text))
        self.outcome.kept.append(piece)

    def take_out(self) -> Piece:
        """Remove the kept chunk of lowest rank from the text."""
        piece = self.outcome.kept.pop()
        self.measure.take_back(piece)
        if self.cite is not None:
            self.cited -= piece.tokens + piece.citation
        self.kept_texts.pop(self.draft.texts[piece.index], None)
        if self.dedupe == NEAR:
            self.kept_shingles.pop()
        return piece

    # Cutting.

    def keep_cut(self, offer: Offer) -> bool:
        """
        Cut a chunk that does not fit and keep the rest; return False if nothing is left.

        Where the notice leaves no room for the first chunk, it yields, and the cut is made anew.
        One chunk is cut in a call at most: no other is tried, even if nothing of this one is kept.
        """
        self.may_cut = False
        if self.try_cut(offer):
            return True
        if self.outcome.kept or not self.draft.has_room_for_notice:
            return False
        self.draft.has_room_for_notice = False
        self.measure.give_back(self.draft.longest_notice())
        self.measure.revise(offer)
        self.draft.notice_yields = self.try_cut(offer)
        return self.draft.notice_yields

    def try_cut(self, offer: Offer) -> bool:
        """
        Keep what a cut leaves of a chunk; return False if nothing is left.

        A cut is the longest piece that the room for it holds. It is kept only if the whole text,
        with the longest notice, is then within the budget; if not, a shorter one is tried.
        """
        room = self.measure.cut_room(offer)
        whole = offer.piece
        sides = START if self.overflow == TRUNCATE_END else BOTH
        cut = Cut(
            self.draft.texts[whole.index],
            sides,
            MARKERS[self.overflow],
            words=self.measure.counts_words,
        )
        for _ in range(CUT_TRIES):
            found = self.measure.longest(cut, whole, room) if room > 0 else None
            if found is None:
                return False
            piece = self.draft.cut_to(whole, *found)
            total = self.measure.count(self.draft.assembled_with(piece))
            if total <= self.budget:
                self.measure.spend_cut(piece, total)
                self.keep(piece)
                return True
            is_escaped = piece.text != found[0]
            room = self.measure.less(room, total - self.budget, is_escaped)
        return False

    # The notice.

    def wants_notice(self, behind: int = 0) -> bool:
        """Return whether a notice needs room now: chunks were left out, or *behind* may be."""
        draft = self.draft
        if draft.notice_pieces is None or draft.has_room_for_notice or draft.notice_yields:
            return False
        return behind > 0 or bool(self.outcome.dropped)

    def make_room_for_notice(self) -> None:
        """
        Set room aside for the notice, once, with the highest number it may name.

        The best chunk stays: where there is no room for both, there is no notice. While the text
        so far is over the budget with it, the kept chunks of lowest rank leave. Only a measure
        that adds up knows that by now; else it is found when the text is settled.
        """
        if not self.measure.set_aside(self.draft.longest_notice()):
            self.draft.notice_yields = True
            return
        self.draft.has_room_for_notice = True
        left: Left = {}
        total = self.measure.so_far()
        while total > self.budget:
            piece = self.take_out()
            others = self.measure.so_far()
            self.drop_kept(piece, total - others, total, left)
            total = others
        self.outcome.drop_repeated(left)

    # Settling.

    def settle(self) -> int:
        """
        Count the whole text, and return the count once it is within the budget.

        While it is over, the kept chunks of lowest rank leave, and it is counted again. Nothing
        comes in for them. The notice leaves before the best chunk does. Under a measure that adds
        up the first count is within the budget.
        """
        kept = self.outcome.kept
        tries = 0
        while kept:
            total = self.measure.count(self.draft.assembled(self.draft.tail()))
            if total <= self.budget:
                return total
            if self.draft.has_notice():
                if self.wants_notice():
                    self.make_room_for_notice()
                if len(kept) == 1:
                    self.draft.notice_yields = True
                if self.draft.notice_yields:
                    continue
            left: Left = {}
            for _ in range(self.leaving(tries, total)):
                piece = self.take_out()
                self.drop_kept(piece, piece.tokens, total, left)
            self.outcome.drop_repeated(left)
            tries += 1
        return 0

    def leaving(self, tries: int, total: int) -> int:
        """
        Return how many chunks leave a text of *total* tokens.

        At first one. Later the number of chunks that makes up the excess, but at most half of
        them; each chunk is taken to have its share of the whole text, separators included. At
        last, or if the chunks count 0 by themselves, half of them.
        """
        counts = [piece.tokens for piece in reversed(self.outcome.kept)]
        excess = (total - self.budget) * sum(counts)
        if tries < SINGLE_TRIES:
            return 1
        half = max(1, len(counts) // 2)
        if tries >= SINGLE_TRIES + SHARE_TRIES or not excess:
            return half
        sums = enumerate(accumulate(counts), 1)
        return min(half, next(n for n, weight in sums if weight * total >= excess))

    def drop_kept(self, piece: Piece, added: int, total: int, left: Left) -> None:
        """Drop a kept chunk that *added* that number of tokens to a text of *total*."""
        left[piece.index] = max(1, added), max(0, self.budget - max(0, total - added))
        self.outcome.drop(piece.index, BUDGET, *left[piece.index])
