"""Reference of ``rust/core/src/pipeline.rs``."""

import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from budgeteer._codes import (
    BM25,
    CALLABLE,
    COVERAGE,
    EMBEDDING,
    HYBRID,
    INPUT,
    OUT_OF_SCOPE,
    RECENCY,
    SCORE,
)
from budgeteer._reference import _bm25, _exact, _gate, _selection
from budgeteer._reference._assemble import Template
from budgeteer._reference._chunk import read
from budgeteer._reference._corpus import Index
from budgeteer._reference._draft import Draft
from budgeteer._reference._hybrid import fuse
from budgeteer._reference._keywords import keywords
from budgeteer._reference._measure import measure_of
from budgeteer._reference._outcome import Outcome
from budgeteer._reference._pack import Packer
from budgeteer._reference._score import overlap
from budgeteer._reference._sum_of_parts import pack_sum_of_parts
from budgeteer._reference._terms import Words


def pack(
    query: str,
    chunks: Sequence[object] | Index,
    budget: int,
    kind: int,
    ratio: float,
    ask: Callable[[str, int], int] | None,
    ranking: int,
    keys: bytes | None,
    min_score: float | None,
    overflow: int,
    max_chunks: int | None,
    dedupe: int,
    selection: int,
    order: int,
    previous: tuple[str, ...],
    template: tuple[int, str, str, str, str],
    notice: tuple[str, ...] | None,
    tag: Callable[[int], tuple[str, str, str, str, float]],
    sum_of_parts: bool,
    cite: Callable[[int], int] | None,
    gate: tuple[tuple[str, ...], tuple[str, ...], bytes, int] | None,
    hybrid: tuple[float, float, float, float | None] | None,
    words: Words,
) -> tuple[Any, ...]:
    """Pack, and return the columns of a packing; or a code and the index of a bad chunk."""
    ranks_words = ranking not in (SCORE, EMBEDDING) and (hybrid is None or hybrid[0] > 0)
    ranks_words = ranks_words or selection == COVERAGE
    texts: list[str] | int
    titles: list[str] | int
    if isinstance(chunks, Index):
        texts, titles = chunks.texts, chunks.titles
    else:
        texts, titles = read(chunks, ranks_words and gate is None)
    if isinstance(texts, int) or isinstance(titles, int):
        return texts, titles
    gated = None
    if gate is not None:
        gated = _gate.Gate(*gate)
        query, titles = gated.question(texts, query), [""] * len(texts)

    key = list(memoryview(keys).cast("d")) if keys is not None else []
    pairs = list(zip(texts, titles, strict=True))
    if ranking in (SCORE, EMBEDDING) and gated is None:
        scores = key
    elif ranking == BM25 and gated is None:
        scores = _bm25.score(query, pairs, _bm25.K1, _bm25.B, words)
    elif ranking == HYBRID and hybrid is not None:
        scores = hybrid_scores(query, pairs, key, words, *hybrid)
    else:
        wanted = frozenset(keywords(query))
        scores = [overlap(wanted, *pair) for pair in pairs]

    # It breaks the law, and so holds for estimates only.
    sum_of_parts = sum_of_parts and kind != CALLABLE and not _exact.is_exact(kind)
    outcome = Outcome()
    ranked = rank(ranking, scores, key, min_score, outcome)
    if gated is not None:
        ranked = gated.rank(scores, ranked, outcome)
    if selection == COVERAGE and not sum_of_parts:
        ranked = _selection.by_coverage(query, pairs, ranked, words)
    draft = Draft(texts, Template(*template), order, previous, notice, tag, outcome)
    if sum_of_parts:
        total = pack_sum_of_parts(draft, ranked, budget, kind, ratio, overflow)
    else:
        measure = measure_of(draft, budget, kind, ratio, ask or _never)
        packer = Packer(draft, measure, budget, overflow, max_chunks, dedupe, cite, gated)
        total = packer.pack(ranked)
    return _columns(draft, total, scores)


def _never(_text: str, _index: int) -> int:
    raise AssertionError("only a callable is asked")  # pragma: no cover


def hybrid_scores(
    query: str,
    pairs: Sequence[tuple[str, str]],
    keys: Sequence[float],
    words: Words,
    bm25: float,
    embedding: float,
    score: float,
    k: float | None,
) -> list[float]:
    """Return one score of several; *keys* has the cosines, then the scores, where they weigh."""
    columns: list[tuple[float, Sequence[float]]] = []
    if bm25 > 0:
        columns.append((bm25, _bm25.score(query, pairs, _bm25.K1, _bm25.B, words)))
    for weight in (embedding, score):
        if weight > 0:
            columns.append((weight, keys[: len(pairs)]))
            keys = keys[len(pairs) :]
    return fuse(len(pairs), columns, k)


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
    by = key if ranking == RECENCY else scores
    order.sort(key=lambda i: (math.isnan(by[i]), -by[i] if by[i] == by[i] else 0))
    return order


def _columns(draft: Draft, total: int, scores: Sequence[float]) -> tuple[Any, ...]:
    """Return the packing as the columns that ``budgeteer._packing.Packing`` wraps."""
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
    return (
        draft.assembled(draft.tail()),
        total,
        array("I", [piece.index for piece in kept]).tobytes(),
        (
            array("q", [piece.tokens for piece in kept]).tobytes(),
            array("q", [piece.citation for piece in kept]).tobytes(),
        ),
        spans.tobytes(),
        cut,
        array("d", scores).tobytes(),
        array("I", [index for index, _, _, _ in dropped]).tobytes(),
        bytes([reason for _, reason, _, _ in dropped]),
        array("q", [needed for _, _, needed, _ in dropped]).tobytes(),
        array("q", [available for _, _, _, available in dropped]).tobytes(),
        draft.outcome.duplicates,
    )
