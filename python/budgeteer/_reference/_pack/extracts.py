"""
Reference of ``rust/core/src/pipeline/sentences.rs``: packing sentences of the best chunks.

Chosen sentences are packed like chunks: they become the text of their chunk, its extract. So every
promise of a packing holds. How many sentences fit is found from the tokens that a few tries add up
to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from budgeteer._codes import CALLABLE, DUPLICATE, LEXICAL, OUT_OF_SCOPE, REPEATS, STOP
from budgeteer._reference._count.counter import count as count_of
from budgeteer._reference._count.exact import is_exact
from budgeteer._reference._pack.draft import Draft
from budgeteer._reference._pack.measure import measure_of
from budgeteer._reference._pack.outcome import Outcome
from budgeteer._reference._pack.packer import Packer
from budgeteer._reference._pack.sentences import sentence_spans
from budgeteer._reference._pack.template import Template
from budgeteer._reference._rank import lexical

BUDGETS = 4
"""The chunks that are split have together at most this multiple of the budget."""

MAX_CHUNKS = 128
"""The most chunks that are split."""

MAX_SENTENCES = 4_096
"""The most sentences; a chunk that would exceed them is not split."""

TRIES = 32
"""The number of sentences that are tried one by one after the first that does not fit."""

SLACK = 2
"""A joint of whole chunks makes up for at most this many tokens that they count too much."""

GUESSES = 8
"""The number of tries found from the tokens so far; those after that halve what is left."""

GAP = " [...] "
"""Replaces the sentences left out between two others."""


@dataclass(slots=True)
class Split:
    """A chunk that was split into sentences."""

    index: int
    text: str
    spans: list[int]

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return len(self.spans) // 2

    def sentence(self, number: int) -> str:
        """Return a sentence."""
        return self.text[self.spans[2 * number] : self.spans[2 * number + 1]]

    def extract(self, chosen: Sequence[int]) -> str:
        """Return the chosen sentences in their order; neighbours keep the text between them."""
        if len(chosen) == self.sentences:
            return self.text
        parts: list[str] = []
        before = -2
        for number in sorted(chosen):
            if number == before + 1:
                parts.append(self.text[self.spans[2 * number - 1] : self.spans[2 * number]])
            elif parts:
                parts.append(GAP)
            parts.append(self.sentence(number))
            before = number
        return "".join(parts)


@dataclass(slots=True, kw_only=True)
class Sentences:
    """
    One call that packs sentences.

    Attributes:
        query: The query.
        pairs: Text and title of each chunk.
        scores: The scores of the chunks.
        order: The chunks in scope, best first.
        out_of_scope: The others.
        ranking: The code of the ranking, and its options by words.
        counter: The kind of counter, its ratio, and the caller's own.
        budget: The tokens of the budget, before any factor.
        options: Overflow, maximum of chunks, and duplicates to drop.
        layout: Template, order and previous packing; what tells of a chunk.
        notice: The text around the number of chunks left out.

    """

    query: str
    pairs: Sequence[tuple[str, str]]
    scores: Sequence[float]
    order: Sequence[int]
    out_of_scope: Sequence[int]
    ranking: tuple[int, lexical.Options]
    counter: tuple[int, float, Callable[[str, int], int]]
    budget: int
    options: tuple[int, int | None, int]
    layout: tuple[Template, int, Sequence[str], Callable[[int], tuple[str, str, str, str, float]]]
    notice: Sequence[str] | None
    split: list[Split] = field(default_factory=list)
    tokens: int = 0
    """The tokens of the chunks that were split."""

    may_yield: bool = False
    """Whether the best sentence by itself leaves no room for the notice."""

    left: int = 0
    """The tokens that the sentences found to fit last leave."""

    kept: dict[int, int] = field(default_factory=dict)
    """The tokens of the extracts found to fit last."""

    counted: dict[str, int] = field(default_factory=dict)
    """What the caller's own counter returned, as sentences are counted again and again."""

    @property
    def is_deduping(self) -> bool:
        """Whether duplicates are dropped."""
        return self.options[2] != REPEATS

    def pack(self) -> tuple[Draft, int, dict[int, tuple[int, int]]]:
        """Return the text, its tokens, and of each extract how many sentences are in."""
        self.left = self.budget
        self.split_best()
        draft, total, chosen = self.fill(self.choose())
        counts: dict[int, tuple[int, int]] = {}
        for place, split in enumerate(self.split):
            size = sum(place == other for other, _ in chosen)
            if 0 < size < split.sentences:
                for i, (text, _) in enumerate(self.pairs):
                    if i == split.index or (self.is_deduping and text == split.text):
                        counts[i] = size, split.sentences
        kept = sorted(piece.index for piece in draft.outcome.kept)
        return draft, total, {i: counts[i] for i in kept if i in counts}

    def ask(self, text: str, i: int) -> int:
        if text not in self.counted:
            self.counted[text] = self.counter[2](text, i)
        return self.counted[text]

    def count(self, text: str, i: int) -> int:
        """Return the tokens of *text*, of chunk *i*."""
        kind, ratio, _ = self.counter
        if kind == CALLABLE:
            return self.ask(text, i)
        return count_of(kind, 1.0 if is_exact(kind) else ratio, text)

    def split_best(self) -> None:
        """Split the best chunks until they overfill the budget."""
        seen: set[str] = set()
        sentences = 0
        for i in self.order:
            if len(self.split) == MAX_CHUNKS or self.tokens >= BUDGETS * self.budget:
                break
            text = self.pairs[i][0]
            if not text or (self.is_deduping and text in seen):
                continue
            seen.add(text)
            split = Split(i, text, sentence_spans(text))
            if sentences + split.sentences <= MAX_SENTENCES:
                sentences += split.sentences
                self.split.append(split)
                self.tokens += self.count(text, i)

    def choose(self) -> list[tuple[int, int]]:
        """Return the best sentences that fit, each as the place of its chunk and its number."""
        ranked = self.ranked()
        if self.is_deduping:
            firsts: dict[str, tuple[int, int]] = {}
            for place, number in ranked:
                firsts.setdefault(self.split[place].sentence(number), (place, number))
            may_fit = self.tokens <= self.budget + SLACK * len(self.split)
            if len(firsts) < len(ranked) and may_fit and self.fits(ranked):
                return ranked  # whole chunks, duplicates included
            ranked = [*firsts.values()]
        fit = self.most(ranked)
        tries = ranked[fit + 1 : fit + 1 + TRIES]
        # Those that fit by the tokens of their chunks mostly do together.
        chosen, left, tokens = ranked[:fit], self.left, dict(self.kept)
        for sentence in tries:
            more = self.needed(chosen, sentence, tokens)
            if 0 < left >= more:
                i = self.split[sentence[0]].index
                is_new = all(place != sentence[0] for place, _ in chosen)
                tokens[i] = (0 if is_new else tokens[i]) + more
                left = max(0, left - more - is_new)
                chosen.append(sentence)
        if len(chosen) == fit or self.fits(chosen):
            return chosen
        chosen = ranked[:fit]
        self.fits(chosen)  # for its figures
        for sentence in tries:
            is_tried = 0 < self.left >= self.needed(chosen, sentence, self.kept)
            if is_tried and self.fits([*chosen, sentence]):
                chosen.append(sentence)
        return chosen

    def most(self, ranked: Sequence[tuple[int, int]]) -> int:
        """Return how many of the best fit, if not one more does."""
        spans = (self.split[place].spans[2 * number :][:2] for place, number in ranked)
        sums = list(accumulate(end - start + 1 for start, end in spans))
        chars = sum(len(split.text) for split in self.split)

        def expected(fit: int) -> int:
            """Return the number of sentences to expect in what *fit* of them leave."""
            behind = sums[fit - 1] if fit else 0
            return bisect_right(sums, behind + self.left * chars // max(1, self.tokens))

        # Invariant: the best *fit* sentences fit, and the best *over* do not.
        fit, over = 0, len(ranked) + 1
        if self.notice is not None and over > 1:
            if self.fits(ranked[:1]):
                fit = 1
            else:
                over = 1
        following = expected(fit)
        tries = misses = 0
        while over - fit > 1:
            following = min(max(following, fit + 1), over - 1)
            if following == fit + 1:
                more = self.needed(ranked[:fit], ranked[fit], self.kept)
                if not 0 < self.left >= more:
                    over = following
                    continue
            if self.fits(ranked[:following]):
                fit = following
                following = expected(fit)
            else:
                over = following
                misses += 1
                step = max(1, (over << misses) // 32)
                following = (fit + over) // 2 if fit else max(0, over - step)
            tries += 1
            if tries >= GUESSES:
                following = (fit + over) // 2
        return fit

    def ranked(self) -> list[tuple[int, int]]:
        """
        Return the sentences, best first.

        The value of a sentence is its share of the highest score over all of them, plus that of
        its chunk. It is scored by words as the ranking says, but without headings, links and
        feedback, which find no more evidence here. The words of the chunk's heading count in every
        sentence, but not once more in the line that is the heading.

        The order of the operations is part of the result.
        """
        sentences: list[tuple[int, int]] = []
        pairs: list[tuple[str, str]] = []
        for place, split in enumerate(self.split):
            title = self.pairs[split.index][1]
            heading = lexical.heading(split.text, title)
            for number in range(split.sentences):
                sentences.append((place, number))
                has_it = number == 0 and not title
                pairs.append((split.sentence(number), "" if has_it else heading))
        options = self.ranking[1]._replace(
            headings=False, links=False, feedback=False, statistics=None
        )
        scores = lexical.score(self.query, pairs, options).scores
        highest = max(scores, default=0.0)
        shares = self.shares()
        values = [
            (score / highest if highest > 0.0 else 0.0) + shares[place]
            for (place, _), score in zip(sentences, scores, strict=True)
        ]
        return [sentences[at] for at in sorted(range(len(values)), key=lambda at: -values[at])]

    def shares(self) -> list[float]:
        """
        Return what each chunk that was split adds to its sentences.

        Under a ranking by words it is twice the share of the highest score, under any other the
        reciprocal of the chunk's place. The scores that callers bring may be below 0 or missing,
        cosines have no zero that says that there is nothing, and times and the input order are no
        scores. The shares of keyword overlaps find less evidence than places, those of hybrid
        scores no more.
        """
        if self.ranking[0] != LEXICAL:
            return [1.0 / (1.0 + place) for place in range(len(self.split))]
        scores = [self.scores[split.index] for split in self.split]
        highest = max(scores, default=0.0)
        return [2.0 * (score / highest) if highest > 0.0 else 0.0 for score in scores]

    def extracts(self, sentences: Sequence[tuple[int, int]]) -> dict[int, str]:
        """Return the extract of each chunk that these sentences are from, best chunk first."""
        chosen: dict[int, list[int]] = {}
        for place, number in sorted(sentences):
            chosen.setdefault(place, []).append(number)
        return {
            self.split[place].index: self.split[place].extract(numbers)
            for place, numbers in chosen.items()
        }

    def needed(
        self, chosen: Sequence[tuple[int, int]], sentence: tuple[int, int], tokens: dict[int, int]
    ) -> int:
        """Return how many tokens its chunk counts more with one more sentence."""
        place, number = sentence
        split = self.split[place]
        numbers = [other for where, other in chosen if where == place]
        before = tokens[split.index] if numbers else 0
        return max(0, self.count(split.extract([*numbers, number]), split.index) - before)

    def fits(self, sentences: Sequence[tuple[int, int]]) -> bool:
        """
        Return whether all of these are kept when nothing else is packed, with room for the notice.

        That yields to the best sentence only. Nothing is cut, as a cut chunk always fits.
        Duplicates stay, as further sentences may tell two chunks apart.
        """
        extracts = self.extracts(sentences)
        is_left_out = len(extracts) < len(self.pairs) and self.notice is not None
        draft, total = self.packed(
            extracts, [*extracts], [0] if is_left_out else [], STOP, REPEATS, self.notice
        )
        kept = draft.outcome.kept
        if len(sentences) == 1:
            self.may_yield = draft.notice_yields
        fits = len(kept) == len(extracts) and (self.may_yield or not draft.notice_yields)
        if fits:
            self.left = max(0, self.budget - total)
            self.kept = {piece.index: piece.tokens for piece in kept}
        return fits

    def fill(self, chosen: list[tuple[int, int]]) -> tuple[Draft, int, list[tuple[int, int]]]:
        """Pack the chosen sentences, and whole chunks into what is left."""
        while True:
            extracts = self.extracts(chosen)
            texts = {**extracts, **self.repeated(extracts)}
            draft, total = self.all_packed(texts, [*extracts], self.notice)
            outcome = draft.outcome
            kept = {piece.index for piece in outcome.kept}
            is_short = any(i in extracts and why != DUPLICATE for i, why, _, _ in outcome.dropped)
            may_yield = self.may_yield or len(chosen) <= 1
            if not is_short and (may_yield or not draft.notice_yields):
                break
            chosen.pop()  # a notice with more digits took its room
        # A chunk cut to fit the rest of the budget would take more of it ahead of others.
        cut = [piece.index for piece in outcome.kept if piece.was_cut]
        by_rank = [i for i in self.order if i in kept and i not in cut] + cut
        if by_rank != [i for i in extracts if i in kept]:  # later chunks had room
            # A notice that yielded to the best sentence would not do so behind another chunk.
            notice = None if draft.notice_yields else self.notice
            draft, total = self.all_packed(texts, by_rank, notice)
        return draft, total, chosen

    def repeated(self, extracts: dict[int, str]) -> dict[int, str]:
        """Return the extract of each duplicate of a chunk: a duplicate of its extract."""
        if not self.is_deduping:
            return {}
        known = {split.text: extracts.get(split.index) for split in self.split}
        found = ((i, known.get(self.pairs[i][0])) for i in self.order)
        return {i: extract for i, extract in found if extract is not None}

    def all_packed(
        self, texts: dict[int, str], first: Sequence[int], notice: Sequence[str] | None
    ) -> tuple[Draft, int]:
        """Pack all chunks, some with these texts, *first* before all others."""
        leading = set(first)
        order = [*first, *(i for i in self.order if i not in leading)]
        overflow, _, dedupe = self.options
        return self.packed(texts, order, self.out_of_scope, overflow, dedupe, notice)

    def packed(
        self,
        texts: dict[int, str],
        order: Sequence[int],
        out_of_scope: Sequence[int],
        overflow: int,
        dedupe: int,
        notice: Sequence[str] | None,
    ) -> tuple[Draft, int]:
        """Pack chunks in that order, some with these texts."""
        template, arrangement, previous, tag = self.layout
        outcome = Outcome()
        for i in out_of_scope:
            outcome.drop(i, OUT_OF_SCOPE)
        bodies = [texts.get(i, text) for i, (text, _) in enumerate(self.pairs)]
        draft = Draft(bodies, template, arrangement, previous, notice, tag, _never, outcome)
        kind, ratio, _ = self.counter
        measure = measure_of(draft, self.budget, kind, ratio, self.ask)
        packer = Packer(draft, measure, self.budget, overflow, self.options[1], dedupe, None, None)
        return draft, packer.pack(order)


def _never(_: int) -> str:
    raise AssertionError("sentences are packed by no function")  # pragma: no cover
