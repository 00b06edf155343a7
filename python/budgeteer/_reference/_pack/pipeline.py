"""Reference of ``rust/core/src/pipeline.rs``: the stages of a packer, in order."""

import math
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from budgeteer._codes import (
    BUDGET,
    CALLABLE,
    COVERAGE,
    EMBEDDING,
    HYBRID,
    INPUT,
    LEXICAL,
    OUT_OF_SCOPE,
    RECENCY,
    SCORE,
    SENTENCE,
    SUM_OF_PARTS,
)
from budgeteer._deadline import unwatched
from budgeteer._needs import HybridWire, needs_of
from budgeteer._reference._chunk.chunk import read
from budgeteer._reference._count import exact
from budgeteer._reference._count.counter import left, times, within
from budgeteer._reference._pack.corpus import Index
from budgeteer._reference._pack.draft import Draft
from budgeteer._reference._pack.extracts import Sentences
from budgeteer._reference._pack.gate import Gate
from budgeteer._reference._pack.measure import measure_of
from budgeteer._reference._pack.outcome import Outcome
from budgeteer._reference._pack.packer import Packer
from budgeteer._reference._pack.scope import Scope, scope_of
from budgeteer._reference._pack.selection import by_coverage
from budgeteer._reference._pack.sum_of_parts import pack_sum_of_parts
from budgeteer._reference._pack.template import Template
from budgeteer._reference._rank import lexical
from budgeteer._reference._rank.hybrid import fuse
from budgeteer._reference._rank.keywords import keywords
from budgeteer._reference._rank.score import overlap

LexicalOptions: TypeAlias = tuple[
    float, float, str | None, str | tuple[str, ...] | None, float, bool, bool, bool
]
Layout: TypeAlias = tuple[int, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Packed:
    """The outcome of a batch, as columns that ``budgeteer.Packing`` wraps."""

    text: str
    total_tokens: int
    kept: bytes
    kept_scores: bytes
    token_counts: bytes
    citation_tokens: bytes
    spans: bytes
    cut: int
    extracts: bytes
    scores: bytes
    signals: bytes
    least: float | None
    unseen: None
    dropped: bytes
    reasons: bytes
    needed: bytes
    available: bytes
    duplicates: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    The options of a packer, as codes of ``budgeteer._codes``: all that its calls share.

    Attributes:
        counter: The kind of counter; and the characters for each token if it counts by them, or
            what the counts of an encoding are multiplied by.
        ranking: The ranking; the options of the one by words; the weights of a hybrid one.
        min_score: A chunk that scores lower is out of scope; ``"auto"`` finds it from the scores.
        overflow: The overflow policy.
        max_chunks: The most chunks to keep.
        dedupe: The duplicates to drop.
        selection: The order of admission.
        order: The order of the kept chunks in the text.
        template: Style or format, separator, header and footer.
        notice: The text around the number of chunks left out.
        policy: The preset's policy, and the number of documents a gate considers.
        units: Whether chunks are packed, or sentences.

    """

    counter: tuple[int, float]
    ranking: tuple[int, LexicalOptions, HybridWire | None]
    min_score: float | str | None
    overflow: int
    max_chunks: int | None
    dedupe: int
    selection: int
    order: int
    template: Layout
    notice: tuple[str, ...] | None
    policy: tuple[int, int]
    units: int

    @staticmethod
    def text_chars(chunks: tuple[object, ...]) -> int:
        """Return the number of code points in the texts of *chunks*; 0 if one cannot be read."""
        texts, _ = read(chunks, with_titles=False)
        return sum(map(len, texts)) if isinstance(texts, list) else 0

    def pack(
        self,
        query: str,
        chunks: Sequence[object] | Index,
        budget: int,
        *,
        keys: bytes | None = None,
        previous: tuple[str, ...] = (),
        template: Layout | None = None,
        ask: Callable[[str, int], int] | None = None,
        tag: Callable[[int], tuple[str, str, str, str, float]] | None = None,
        write: Callable[[int], str] | None = None,
        cite: Callable[[int], int] | None = None,
        gate: tuple[tuple[str, ...], tuple[str, ...], bytes] | None = None,
        watch: Callable[[], None] | None = None,
        releases: bool = False,  # noqa: ARG002 - Python code releases the lock anyway
    ) -> Packed | tuple[int, int]:
        """Return the packing of *chunks*; or a code and the index of an unreadable one."""
        kind, ratio = self.counter
        ranking, by_words, hybrid = self.ranking
        options = lexical.Options(*by_words)
        _, max_docs = self.policy
        needs = needs_of(ranking, hybrid, self.selection)
        texts: list[str] | int
        titles: list[str] | int
        if isinstance(chunks, Index):
            texts, titles = chunks.texts, chunks.titles
        else:
            with_titles = needs.titles or self.units == SENTENCE
            texts, titles = read(chunks, with_titles and gate is None)
        if isinstance(texts, int) or isinstance(titles, int):
            return texts, titles  # type: ignore[return-value]  # both are numbers, or neither
        (look := watch or unwatched)()
        gated = None
        if gate is not None:
            gated = Gate(*gate, max_docs)
            query, titles, ranking = gated.question(texts, query), [""] * len(texts), INPUT

        key = list(memoryview(keys).cast("d")) if keys is not None else []
        pairs = list(zip(texts, titles, strict=True))
        scored = lexical.Scored(key)
        if ranking == LEXICAL or (hybrid is not None and hybrid[0] > 0):
            scored = lexical.score(query, pairs, options)
        elif ranking not in (SCORE, EMBEDDING, HYBRID):
            wanted = frozenset(keywords(query))
            scored = lexical.Scored([overlap(wanted, *pair) for pair in pairs])
        scores = scored.scores
        if ranking == HYBRID and hybrid is not None:
            scores = hybrid_scores(scores, len(pairs), key, hybrid)

        look()
        factor = ratio if exact.is_exact(kind) else 1.0
        budget = within(budget, factor)
        outcome = Outcome()
        scope = scope_of(self.min_score, scores, scored.signals)
        ranked = rank(ranking, scores, key, scope, outcome)
        if gated is not None:
            ranked = gated.rank(scores, ranked, outcome)
        if self.selection == COVERAGE:
            ranked = by_coverage(query, pairs, ranked, options.k1, options.b, options.words)
        layout = Template(*(template or self.template))
        extracts: dict[int, tuple[int, int]] = {}
        if self.units == SENTENCE:
            sentences = Sentences(
                query=query,
                pairs=pairs,
                scores=scores,
                order=ranked,
                out_of_scope=[index for index, _, _, _ in outcome.dropped],
                ranking=(ranking, options),
                counter=(kind, ratio, ask or _never),
                budget=budget,
                options=(self.overflow, self.max_chunks, self.dedupe),
                layout=(layout, self.order, previous, tag or _never),
                notice=self.notice,
            )
            draft, total, extracts = sentences.pack()
        else:
            draft = Draft(
                texts,
                layout,
                self.order,
                previous,
                self.notice,
                tag or _never,
                write or _never,
                outcome,
            )
            total = self._packed(draft, ranked, budget, ask or _never, cite, gated, look)
        _scale(draft, factor)
        return _columns(draft, times(total, factor), scores, scored.signals, scope, extracts)

    def _packed(
        self,
        draft: Draft,
        ranked: Sequence[int],
        budget: int,
        ask: Callable[[str, int], int],
        cite: Callable[[int], int] | None,
        gated: Gate | None,
        look: Callable[[], None],
    ) -> int:
        """Pack whole chunks in that order, and return the tokens of the text."""
        kind, ratio = self.counter
        if self._is_sum:
            return pack_sum_of_parts(draft, ranked, budget, kind, ratio, self.overflow)
        measure = measure_of(draft, budget, kind, ratio, ask)
        options = self.overflow, self.max_chunks, self.dedupe
        return Packer(draft, measure, budget, *options, cite, gated).pack(ranked, look)

    @property
    def _is_sum(self) -> bool:
        """Whether separators do not count. That may break the law, so only under estimates."""
        kind, _ = self.counter
        is_estimate = kind != CALLABLE and not exact.is_exact(kind)
        return self.policy[0] == SUM_OF_PARTS and is_estimate


def _scale(draft: Draft, factor: float) -> None:
    """Multiply the numbers of the outcome, in which no stage before has a factor."""
    outcome = draft.outcome
    for piece in outcome.kept:
        piece.tokens = times(piece.tokens, factor)
    outcome.dropped = [
        (index, BUDGET, times(needed, factor), left(available, factor))
        if reason == BUDGET
        else (index, reason, needed, available)
        for index, reason, needed, available in outcome.dropped
    ]


def _never(*_: object) -> Any:
    raise AssertionError("nobody is asked")  # pragma: no cover


def hybrid_scores(
    by_words: Sequence[float], count: int, keys: Sequence[float], hybrid: HybridWire
) -> list[float]:
    """Return the fused scores; *keys* has the cosines, then own scores, if they have a weight."""
    bm25, embedding, score, k = hybrid
    columns: list[tuple[float, Sequence[float]]] = []
    if bm25 > 0:
        columns.append((bm25, by_words))
    for weight in (embedding, score):
        if weight > 0:
            columns.append((weight, keys[:count]))
            keys = keys[count:]
    return fuse(count, columns, k)


def rank(
    ranking: int,
    scores: Sequence[float],
    key: Sequence[float],
    scope: Scope,
    outcome: Outcome,
) -> list[int]:
    """Return the indices of the chunks in scope, best first."""
    order = []
    for i, score in enumerate(scores):
        if scope.has(i, score):
            order.append(i)
        else:
            outcome.drop(i, OUT_OF_SCOPE)
    if ranking == INPUT:
        return order
    by = key if ranking == RECENCY else scores
    order.sort(key=lambda i: (math.isnan(by[i]), -by[i] if by[i] == by[i] else 0))
    return order


def _columns(
    draft: Draft,
    total: int,
    scores: Sequence[float],
    signals: Sequence[lexical.Signal],
    scope: Scope,
    extracts: dict[int, tuple[int, int]],
) -> Packed:
    spans = array("q")
    place = len(draft.template.header)
    kept = draft.in_text_order()
    cut = -1
    for nth, piece in enumerate(kept):
        place += len(piece.front)
        spans.extend((place, place + len(piece.text)))
        place += len(piece.text) + len(piece.back) + len(draft.template.separator)
        if piece.was_cut:
            cut = nth
    dropped = draft.outcome.dropped
    return Packed(
        text=draft.assembled(draft.tail()),
        total_tokens=total,
        kept=array("I", [piece.index for piece in kept]).tobytes(),
        kept_scores=array("d", [scores[piece.index] for piece in kept]).tobytes(),
        token_counts=array("q", [piece.tokens for piece in kept]).tobytes(),
        citation_tokens=array("q", [piece.citation for piece in kept]).tobytes(),
        spans=spans.tobytes(),
        cut=cut,
        extracts=array("I", [n for i, counts in extracts.items() for n in (i, *counts)]).tobytes(),
        scores=array("d", scores).tobytes(),
        signals=b"".join(struct.pack("=IIId", *signal) for signal in signals),
        least=scope.found,
        unseen=None,
        dropped=array("I", [index for index, _, _, _ in dropped]).tobytes(),
        reasons=bytes([reason for _, reason, _, _ in dropped]),
        needed=array("q", [needed for _, _, needed, _ in dropped]).tobytes(),
        available=array("q", [available for _, _, _, available in dropped]).tobytes(),
        duplicates=draft.outcome.duplicates,
    )
