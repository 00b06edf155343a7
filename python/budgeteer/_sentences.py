"""
Sentences of the best chunks, for budgets into which few whole chunks go.

What is chosen is packed like any chunks: a chunk of which some sentences are chosen has these for
its text. So whatever a packing promises holds, and nothing here counts but by packing.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from budgeteer import _chunk
from budgeteer._backend import backend
from budgeteer._codes import (
    BY_RANK,
    CHARS_DIV4,
    DUPLICATE,
    EXACT,
    PLAIN,
    RANK,
    REPEATS,
    SCORE,
    SKIP,
)

if TYPE_CHECKING:
    from budgeteer._call import Call
    from budgeteer._pack import Packer

BUDGETS = 4
"""The best chunks are split that together have so many times the tokens of the budget."""

MAX_CHUNKS = 256
"""So many chunks are split at most."""

MAX_SENTENCES = 4_096
"""A chunk with which there would be more sentences is not split."""

TRIES = 32
"""Behind the first sentence that does not fit, so many are tried one by one."""

GAP = " [...] "
"""Stands for sentences that were left out between two others."""

K1, B = 1.2, 0.75


@dataclass(slots=True)
class Extract:
    """A chunk that was split into sentences."""

    index: int
    text: str
    spans: list[int]

    @property
    def sentences(self) -> int:
        """How many sentences the chunk has."""
        return len(self.spans) // 2

    def sentence(self, number: int) -> str:
        """Return a sentence."""
        return self.text[self.spans[2 * number] : self.spans[2 * number + 1]]

    def extract(self, chosen: Sequence[int]) -> str:
        """Return the sentences in their order, as they stand in the text where none is between."""
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
    """One call of a packer that packs sentences."""

    packer: Packer
    call: Call
    ranking: int
    keys: bytes | None
    scores: memoryview[float] = field(init=False)
    order: list[int] = field(init=False)
    """All chunks, best first."""

    split: list[Extract] = field(init=False)
    counted: dict[str, int] = field(init=False, default_factory=dict)
    """What the caller's own counter answered before, for it is asked for many sentences again."""

    def pack(self) -> tuple[tuple[Any, ...], dict[int, tuple[int, int]]]:
        """Return what a backend answers, and how many of how many sentences of a chunk are in."""
        refused = self._rank()
        if refused is not None:
            return refused, {}
        self.split = self._split()
        chosen = self._choose()
        while True:
            extracts = self._extracts(chosen)
            result = self._pack_with(extracts, [*extracts])
            kept = {*_kept(result)}
            if not any(i in extracts and reason != DUPLICATE for i, reason in _dropped(result)):
                break
            chosen.pop()  # a notice of more digits took its room
        # What was cut for the room that was left would take more of it in front of others.
        cut = [_kept(result)[result[5]]] if result[5] >= 0 else []
        ranked = [i for i in self.order if i in kept and i not in cut] + cut
        if ranked != [i for i in extracts if i in kept]:  # others had room behind them
            result = self._pack_with(extracts, ranked)
            kept = {*_kept(result)}
        sizes = Counter(place for place, _ in chosen)
        counts = {
            split.index: (sizes[place], split.sentences)
            for place, split in enumerate(self.split)
            if split.index in kept and 0 < sizes[place] < split.sentences
        }
        return (*result[:6], self.scores.tobytes(), *result[7:]), counts

    def _rank(self) -> tuple[Any, ...] | None:
        """Set scores and order; or return what a backend answers for a bad chunk."""
        call = self.call
        # Nothing fits, so that everything is dropped in its turn.
        result = backend.pack(
            call.query,
            call.items if call.state is None else call.state.index,
            *(0, CHARS_DIV4, 4.0, None, self.ranking, self.keys, None, SKIP, None, REPEATS, RANK),
            *(BY_RANK, (), (PLAIN, "", "", "", ""), None, _chunk.tagger(()), False, None, None),
            self.packer._hybrid if call.fallback is None else None,
            self.packer._words,
        )
        if len(result) == 2:
            return result  # type: ignore[no-any-return]
        self.scores = memoryview(result[6]).cast("B").cast("d")
        dropped = result[7] if result[7] is not None else result[6].columns()[0]
        self.order = memoryview(dropped).cast("I").tolist()
        return None

    def _is_out_of_scope(self, i: int) -> bool:
        lowest = self.packer.min_score
        if lowest is None or self.call.fallback is not None:
            return False
        return (-math.inf if math.isnan(self.scores[i]) else self.scores[i]) < lowest

    def _split(self) -> list[Extract]:
        """Split the best chunks, as many as overfill the budget."""
        packer, text_of = self.packer, _chunk.texts_of(self.call.items)
        split: list[Extract] = []
        seen: set[str] = set()
        tokens = sentences = 0
        for i in self.order:
            if len(split) == MAX_CHUNKS or tokens >= BUDGETS * self.call.budget:
                break
            text = text_of(i)
            is_repeated = packer.dedupe is not None and text in seen
            if not text or is_repeated or self._is_out_of_scope(i):
                continue
            seen.add(text)
            extract = Extract(i, text, backend.sentence_spans(text))
            if sentences + extract.sentences <= MAX_SENTENCES:
                tokens += packer._counter.count_chunk(text, i)
                sentences += extract.sentences
                split.append(extract)
        return split

    def _choose(self) -> list[tuple[int, int]]:
        """Return the best sentences that fit, each by the place of its chunk and its number."""
        ranked = self._ranked()
        if self.packer.dedupe is not None:
            firsts: dict[str, tuple[int, int]] = {}
            for place, number in ranked:
                firsts.setdefault(self.split[place].sentence(number), (place, number))
            if len(firsts) < len(ranked) and self._fits(ranked):
                return ranked  # whole chunks, whatever they repeat
            ranked = [*firsts.values()]
        # So many of the best fit, and one more does not.
        fit, over = 0, 1
        while over <= len(ranked) and self._fits(ranked[:over]):
            fit, over = over, 2 * over
        over = min(over, len(ranked) + 1)
        while over - fit > 1:
            middle = (fit + over) // 2
            if self._fits(ranked[:middle]):
                fit = middle
            else:
                over = middle
        chosen = ranked[:fit]
        for sentence in ranked[fit + 1 : fit + 1 + TRIES]:
            if self._fits([*chosen, sentence]):
                chosen.append(sentence)
        return chosen

    def _ranked(self) -> list[tuple[int, int]]:
        """
        Return the sentences, best first.

        A sentence counts its share of the highest score by BM25 over all of them, title included,
        and the reciprocal of its chunk's place.
        """
        sentences = [
            (place, number)
            for place, split in enumerate(self.split)
            for number in range(split.sentences)
        ]
        texts = [self.split[place].sentence(number) for place, number in sentences]
        titles = [_title(self.call.items[split.index]) for split in self.split]
        found = backend.bm25_scores(
            self.call.query,
            texts,
            [titles[place] for place, _ in sentences],
            *(K1, B, self.packer._words),
        )
        scores = memoryview(found).cast("d").tolist()
        highest = max(scores, default=0.0)
        values = [
            (score / highest if highest > 0.0 else 0.0) + 1.0 / (1.0 + place)
            for (place, _), score in zip(sentences, scores, strict=True)
        ]
        return [sentences[at] for at in sorted(range(len(values)), key=lambda at: -values[at])]

    def _fits(self, sentences: Sequence[tuple[int, int]]) -> bool:
        """Return whether all of these are kept when nothing else is packed."""
        extracts = self._extracts(sentences)
        indices = sorted(extracts)
        ranks = {i: len(extracts) - rank for rank, i in enumerate(extracts)}
        keys = array("d", [float(ranks[i]) for i in indices])
        # No str, of which a backend would know without asking which place it has.
        chunks: list[object] = [{"text": extracts[i]} for i in indices]
        if len(indices) < len(self.call.items) and self.packer._notice is not None:
            # One that is left out, so that there is room for the notice.
            chunks.append({"text": "out of scope"})
            keys.append(-1.0)
        # Nothing is cut: what is cut fits whatever it has. More sentences may tell two apart.
        result = self._answer(chunks, keys.tobytes(), "skip", indices, dedupe=False)
        return len(_kept(result)) == len(indices)

    def _extracts(self, sentences: Sequence[tuple[int, int]]) -> dict[int, str]:
        """Return what these make of each chunk that they are of, best chunk first."""
        chosen: dict[int, list[int]] = {}
        for place, number in sorted(sentences):
            chosen.setdefault(place, []).append(number)
        return {
            self.split[place].index: self.split[place].extract(numbers)
            for place, numbers in chosen.items()
        }

    def _pack_with(self, extracts: dict[int, str], first: Sequence[int]) -> tuple[Any, ...]:
        """Pack all chunks, some of them with other texts, *first* before all others."""
        items = self.call.items
        texts = dict(extracts)
        if self.packer.dedupe is not None:
            # What repeats a chunk repeats what is chosen of it.
            text_of = _chunk.texts_of(items)
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
        ranked = [*first, *(i for i in self.order if i not in leading)]
        for place, i in enumerate(ranked):
            keys[i] = -1.0 if self._is_out_of_scope(i) else float(len(ranked) - place)
        return self._answer(chunks, keys.tobytes(), self.packer.overflow)

    def _answer(
        self,
        chunks: list[object],
        keys: bytes,
        overflow: str,
        indices: Sequence[int] | None = None,
        *,
        dedupe: bool = True,
    ) -> tuple[Any, ...]:
        """Return what a backend answers for *chunks*, of which *indices* are the real places."""
        packer, call = self.packer, self.call
        tag = _chunk.tagger(call.items)

        def ask(text: str, i: int) -> int:
            if text not in self.counted:
                self.counted[text] = packer._counter._ask(text, i)
            return self.counted[text]

        def real(function: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
            if indices is None:
                return function
            if first:
                return lambda j: function(indices[j])
            return lambda text, j: function(text, j if j < 0 else indices[j])

        return packer._answer(
            call,
            tuple(chunks),
            SCORE,
            keys,
            0.0,  # below which is out of scope
            overflow,
            dedupe=EXACT if dedupe and packer.dedupe is not None else REPEATS,
            ask=real(ask, first=False),
            tag=real(tag, first=True),
        )


def _kept(result: tuple[Any, ...]) -> memoryview:
    return memoryview(result[2]).cast("I")


def _dropped(result: tuple[Any, ...]) -> Iterator[tuple[int, int]]:
    """Yield each dropped chunk and the reason."""
    return zip(memoryview(result[7]).cast("I"), result[8], strict=True)


def _title(chunk: object) -> str:
    title = _chunk.field(chunk, "title")
    return str.__str__(title) if isinstance(title, str) else ""
