"""
Sentences of the best chunks, for budgets that hold few whole chunks.

Chosen sentences are packed like chunks: they become the text of their chunk. So every promise of a
packing holds, and this module counts only by packing.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from budgeteer._backend import backend
from budgeteer._chunk.chunk import label_of, tagger, texts_of
from budgeteer._codes import DUPLICATE, LEXICAL, OUT_OF_SCOPE, REPEATS

if TYPE_CHECKING:
    from budgeteer._pack.call import Call
    from budgeteer._pack.prepared import Prepared

BUDGETS = 4
"""The chunks that are split have together at most this multiple of the budget."""

MAX_CHUNKS = 256
"""The most chunks that are split."""

MAX_SENTENCES = 4_096
"""The most sentences; a chunk that would exceed them is not split."""

TRIES = 32
"""The number of sentences that are tried one by one after the first that does not fit."""

GAP = " [...] "
"""Replaces the sentences left out between two others."""


@dataclass(slots=True)
class Extract:
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


@dataclass(slots=True)
class Sentences:
    """
    One call that packs sentences.

    Attributes:
        call: The call.
        budget: The tokens of the budget.

    """

    call: Call
    budget: int
    prepared: Prepared = field(init=False)
    scores: memoryview[float] = field(init=False)
    signals: bytes = field(init=False)
    order: list[int] = field(init=False)
    """All chunks: those out of scope, then the others, best first."""

    out_of_scope: set[int] = field(init=False)
    least: float | None = field(init=False)
    """The score from which on chunks are in scope, if it was found from the scores."""

    split: list[Extract] = field(init=False)
    may_yield: bool = field(init=False, default=False)
    """Whether the best sentence by itself leaves no room for the notice."""

    counted: dict[str, int] = field(init=False, default_factory=dict)
    """The counts that the caller's own counter returned, as many sentences are counted again."""

    def __post_init__(self) -> None:
        self.prepared = self.call.prepared

    @property
    def is_deduping(self) -> bool:
        """Whether duplicates are dropped."""
        return self.prepared.dedupe != REPEATS

    def pack(self) -> tuple[Any, dict[int, tuple[int, int]]]:
        """Return a backend's answer, and for each chunk how many of its sentences are in."""
        refused = self._rank()
        if refused is not None:
            return refused, {}
        self.split = self._split()
        chosen = self._choose()
        while True:
            extracts = self._extracts(chosen)
            packed = self._pack_with(extracts, [*extracts])
            kept = {*_kept(packed)}
            is_short = any(i in extracts and reason != DUPLICATE for i, reason in _dropped(packed))
            may_yield = self.may_yield or len(chosen) <= 1
            if not is_short and (may_yield or not packed.notice_yields):
                break
            chosen.pop()  # a notice with more digits took its room
        # A chunk cut to fit the rest of the budget would take more of it ahead of others.
        cut = [_kept(packed)[packed.cut]] if packed.cut >= 0 else []
        by_rank = [i for i in self.order if i in kept and i not in cut] + cut
        if by_rank != [i for i in extracts if i in kept]:  # later chunks had room
            # A notice that yielded to the best sentence would not do so behind another chunk.
            packed = self._pack_with(extracts, by_rank, is_quiet=packed.notice_yields)
            kept = {*_kept(packed)}
        sizes = Counter(place for place, _ in chosen)
        counts = {
            split.index: (sizes[place], split.sentences)
            for place, split in enumerate(self.split)
            if split.index in kept and 0 < sizes[place] < split.sentences
        }
        return _Scored(packed, self.scores.tobytes(), self.signals, self.least), counts

    def _rank(self) -> tuple[int, int] | None:
        """Set scores and order; or return a backend's answer for a bad chunk."""
        call, ranks = self.call, self.prepared.steps[0]
        # Nothing fits, so every chunk is dropped, in ranked order.
        chunks = call.items if call.state is None else call.state.index
        packed = ranks.plan.pack(call.query, chunks, 0, keys=call.keys(), tag=tagger(()))
        if isinstance(packed, tuple):
            return packed
        scores = packed.scores if packed.unseen is None else packed.unseen
        self.scores = memoryview(scores).cast("B").cast("d")
        self.signals = packed.signals if packed.unseen is None else packed.unseen.signals()
        columns = (packed.dropped, packed.reasons)
        dropped, reasons, *_ = columns if packed.unseen is None else packed.unseen.columns()
        self.order = memoryview(dropped).cast("I").tolist()
        self.out_of_scope = {*self.order[: reasons.count(OUT_OF_SCOPE)]}
        self.least = packed.least
        return None

    def _is_out_of_scope(self, i: int) -> bool:
        return i in self.out_of_scope

    def _split(self) -> list[Extract]:
        """Split the best chunks until they overfill the budget."""
        counter, text_of = self.prepared.counter, texts_of(self.call.items)
        split: list[Extract] = []
        seen: set[str] = set()
        tokens = sentences = 0
        for i in self.order:
            if len(split) == MAX_CHUNKS or tokens >= BUDGETS * self.budget:
                break
            text = text_of(i)
            is_repeated = self.is_deduping and text in seen
            if not text or is_repeated or self._is_out_of_scope(i):
                continue
            seen.add(text)
            extract = Extract(i, text, backend.sentence_spans(text))
            if sentences + extract.sentences <= MAX_SENTENCES:
                tokens += counter._count_chunk(text, i)
                sentences += extract.sentences
                split.append(extract)
        return split

    def _choose(self) -> list[tuple[int, int]]:
        """Return the best sentences that fit, each as the place of its chunk and its number."""
        found = self._ranked()
        if self.is_deduping:
            firsts: dict[str, tuple[int, int]] = {}
            for place, number in found:
                firsts.setdefault(self.split[place].sentence(number), (place, number))
            if len(firsts) < len(found) and self._fits(found):
                return found  # whole chunks, duplicates included
            found = [*firsts.values()]
        # Invariant: the best *fit* sentences fit, and one more does not.
        fit, over = 0, 1
        while over <= len(found) and self._fits(found[:over]):
            fit, over = over, 2 * over
        over = min(over, len(found) + 1)
        while over - fit > 1:
            middle = (fit + over) // 2
            if self._fits(found[:middle]):
                fit = middle
            else:
                over = middle
        chosen = found[:fit]
        for sentence in found[fit + 1 : fit + 1 + TRIES]:
            if self._fits([*chosen, sentence]):
                chosen.append(sentence)
        return chosen

    def _ranked(self) -> list[tuple[int, int]]:
        """
        Return the sentences, best first.

        The value of a sentence is its share of the highest score over all of them, plus that of
        its chunk. It is scored by words as the ranking says, but without headings, links and
        feedback, which find no more evidence here. The words of the chunk's heading count in every
        sentence, but not once more in the line that is the heading.

        The order of the operations is part of the result.
        """
        sentences: list[tuple[int, int]] = []
        texts: list[str] = []
        headings: list[str] = []
        for place, split in enumerate(self.split):
            title = _title(self.call.items[split.index])
            heading = backend.heading(split.text, title)
            for number in range(split.sentences):
                sentences.append((place, number))
                texts.append(split.sentence(number))
                headings.append("" if number == 0 and not title else heading)
        options = (*self.prepared.ranking.by_words._wire[:5], False, False, False)
        found = backend.lexical_scores(self.call.query, texts, headings, options)
        scores = memoryview(found).cast("d").tolist()
        highest = max(scores, default=0.0)
        shares = self._shares()
        values = [
            (score / highest if highest > 0.0 else 0.0) + shares[place]
            for (place, _), score in zip(sentences, scores, strict=True)
        ]
        return [sentences[at] for at in sorted(range(len(values)), key=lambda at: -values[at])]

    def _shares(self) -> list[float]:
        """
        Return what each chunk that was split adds to its sentences.

        Under a ranking by words it is twice the share of the highest score, under any other the
        reciprocal of the chunk's place. The scores that callers bring may be below 0 or missing,
        cosines have no zero that says that there is nothing, and times and the input order are no
        scores. The shares of keyword overlaps find less evidence than places, those of hybrid
        scores no more.
        """
        if self.prepared.ranking.code != LEXICAL:
            return [1.0 / (1.0 + place) for place in range(len(self.split))]
        scores = [self.scores[split.index] for split in self.split]
        highest = max(scores, default=0.0)
        return [2.0 * (score / highest) if highest > 0.0 else 0.0 for score in scores]

    def _fits(self, sentences: Sequence[tuple[int, int]]) -> bool:
        """
        Return whether all of these are kept when nothing else is packed, with room for the notice.

        That yields to the best sentence only.
        """
        extracts = self._extracts(sentences)
        indices = sorted(extracts)
        ranks = {i: len(extracts) - rank for rank, i in enumerate(extracts)}
        keys = array("d", [float(ranks[i]) for i in indices])
        # Mappings, as a backend would not ask for the real place of a str.
        chunks: list[object] = [{"text": extracts[i]} for i in indices]
        if len(indices) < len(self.call.items) and self.prepared.notice is not None:
            # One chunk that is left out, so that the notice takes its room.
            chunks.append({"text": "out of scope"})
            keys.append(-1.0)
        packed = self._packed(self.prepared.steps[1], chunks, keys.tobytes(), indices)
        if len(sentences) == 1:
            self.may_yield = packed.notice_yields
        is_all = len(_kept(packed)) == len(indices)
        return is_all and (self.may_yield or not packed.notice_yields)

    def _extracts(self, sentences: Sequence[tuple[int, int]]) -> dict[int, str]:
        """Return the extract of each chunk that these sentences are from, best chunk first."""
        chosen: dict[int, list[int]] = {}
        for place, number in sorted(sentences):
            chosen.setdefault(place, []).append(number)
        return {
            self.split[place].index: self.split[place].extract(numbers)
            for place, numbers in chosen.items()
        }

    def _pack_with(
        self, extracts: dict[int, str], first: Sequence[int], *, is_quiet: bool = False
    ) -> Any:
        """
        Pack all chunks, some with the texts of *extracts*, *first* before all others.

        With *is_quiet* there is no notice.
        """
        items = self.call.items
        texts = dict(extracts)
        if self.is_deduping:
            # A duplicate of a chunk is one of its extract.
            text_of = texts_of(items)
            known = {split.text: extracts.get(split.index) for split in self.split}
            for i in self.order:
                extract = known.get(text_of(i))
                if extract is not None:
                    texts[i] = extract
        chunks = list(items)
        for i, text in texts.items():
            chunks[i] = text if isinstance(items[i], str) else {"text": text}
        keys = array("d", [0.0]) * len(chunks)
        leading = set(first)
        by_rank = [*first, *(i for i in self.order if i not in leading)]
        for place, i in enumerate(by_rank):
            keys[i] = -1.0 if self._is_out_of_scope(i) else float(len(by_rank) - place)
        return self._packed(self.prepared.steps[3 if is_quiet else 2], chunks, keys.tobytes())

    def _packed(
        self,
        prepared: Prepared,
        chunks: list[object],
        keys: bytes,
        indices: Sequence[int] | None = None,
    ) -> Any:
        """Return a backend's answer for *chunks*, whose places in the input are *indices*."""
        call, counter = self.call, prepared.counter

        def ask(text: str, i: int) -> int:
            if text not in self.counted:
                self.counted[text] = counter._ask(text, i)
            return self.counted[text]

        def real(function: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
            if indices is None:
                return function
            if first:
                return lambda j: function(indices[j])
            return lambda text, j: function(text, j if j < 0 else indices[j])

        is_own = counter._function is not None
        return prepared.plan.pack(
            call.query,
            tuple(chunks),
            self.budget,
            keys=keys,
            previous=call.links,
            template=call.template(),
            ask=real(ask, first=False) if is_own else None,
            tag=real(tagger(call.items), first=True),
        )


class _Scored:
    """A backend's answer, with the scores of whole chunks."""

    def __init__(self, packed: Any, scores: bytes, signals: bytes, least: float | None) -> None:
        self._packed = packed
        self.scores, self.signals, self.least = scores, signals, least
        self.unseen = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packed, name)


def _kept(packed: Any) -> memoryview:
    return memoryview(packed.kept).cast("I")


def _dropped(packed: Any) -> Iterator[tuple[int, int]]:
    """Yield each dropped chunk and the reason."""
    return zip(memoryview(packed.dropped).cast("I"), packed.reasons, strict=True)


def _title(chunk: object) -> str:
    title = label_of(chunk, "title")
    return str.__str__(title) if isinstance(title, str) else ""
