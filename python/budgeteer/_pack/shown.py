"""What a report shows of a packing: sections of its budget, a row for each chunk, its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from budgeteer._chunk.chunk import id_of, label_of, packed_texts, shown_label
from budgeteer._codes import INPUT, RECENCY
from budgeteer._pack.curve import Again, BudgetPoint
from budgeteer._pack.explain import summary, why, why_kept
from budgeteer._report.parts import Part, Piece, Report, Row, Written

SHOWN = 4_000
"""The most characters that are shown of a dropped text, and of what was cut out of a kept one."""
BETWEEN = " \u00b7 "
"""What stands between the parts of a chunk's name."""
_MIDDLE, _SENTENCES, _END = "\n[...truncated...]\n", " [...] ", " [...]"
"""The markers: of a middle that was cut out, of sentences, and of an end."""


def report_of(packing: Any, dropped: int, curve: Sequence[BudgetPoint] = ()) -> Report:
    """
    Return what a report shows.

    Args:
        packing: The packing; one that was pickled has no texts of dropped chunks.
        dropped: The most dropped chunks to list.
        curve: The points of its curve.

    """
    again: Again | None = packing._again
    rows = _rows(packing, again, dropped)
    kept = len(packing._kept)
    return Report(
        title="Why is this chunk in the context?",
        lead=" ".join(summary(packing).splitlines()),
        facts=facts_of(packing),
        parts=parts_of(packing),
        rows=rows,
        unlisted=kept + packing._dropped_count - len(rows),
        curve=curve,
        own=again.max_tokens if again is not None else 0,
        text=_text(packing),
    )


def facts_of(packing: Any) -> list[tuple[str, str]]:
    """Return pairs of a term and what it is in a packing, as far as that is known."""
    again: Again | None = packing._again
    facts = []
    if again is not None:
        prepared = again.call.prepared
        facts += [
            ("Question", again.call.query or "(empty)"),
            ("Counter", prepared.counter.name),
            ("Ranking", prepared.ranking.name),
        ]
    if packing.fallback is not None:
        facts.append(("Fallback", f"{packing.fallback}, as embedding failed"))
    facts.append(("Counted", "exactly" if packing.is_exact else "by an estimate"))
    return facts


def parts_of(packing: Any) -> list[Part]:
    """Return the sections of the tokens that a packer was given."""
    total, budget = packing.total_tokens, packing.budget_tokens
    chunks = min(total, sum(packing._counts))
    cited = sum(packing._citations) if packing._is_citing else 0
    parts = [Part("chunks", chunks)]
    if total > chunks:
        parts.append(Part("around the chunks", total - chunks, note="template and notice"))
    if cited:
        parts.append(Part("citations", cited, note="set aside, not in the text"))
    parts.append(Part("free", max(0, budget - total - cited), "free"))
    if packing._reserve_tokens:
        parts.append(Part("reserve", packing._reserve_tokens, "reserve", "kept free"))
    return parts


def _rows(packing: Any, again: Again | None, dropped: int) -> list[Row]:
    """Return the kept chunks, and the best of the dropped ones, by rank."""
    place_of = {index: place for place, index in enumerate(packing._kept)}
    dropped_at = {index: place for place, index in enumerate(packing._dropped)}
    rows = []
    unlisted = max(0, len(dropped_at) - dropped)
    order = _order(packing, again)
    left_out = set(islice((i for i in reversed(order) if i in dropped_at), unlisted))
    text_of = None if again is None else packed_texts(packing._chunks)
    for rank, index in enumerate(order, 1):
        if index in left_out:
            continue
        if index in place_of:
            rows.append(_kept_row(packing, rank, place_of[index], text_of))
        else:
            rows.append(_dropped_row(packing, rank, dropped_at[index], text_of))
    return rows


def _order(packing: Any, again: Again | None) -> list[int]:
    """Return the indices by rank; by score where the ranking is not known any more."""
    keys = packing._scores
    code = None if again is None else again.call.prepared.ranking.code
    if code == INPUT:
        return [*range(len(keys))]
    if code == RECENCY and again is not None:
        keys = memoryview(again.call.keys()).cast("d")
    ranked = [(math.isnan(key), -key, index) for index, key in enumerate(keys)]
    ranked.sort(key=lambda item: (item[0], 0 if item[0] else item[1], item[2]))
    return [index for _, _, index in ranked]


def _kept_row(packing: Any, rank: int, place: int, text_of: Callable[[int], str] | None) -> Row:
    (kept,) = packing._kept_chunks(place, place + 1)
    pieces, more = [Piece(kept.text)], 0
    if kept.was_cut and text_of is not None:
        pieces, more = cut_pieces(text_of(kept.index), kept.text)
    return Row(
        rank=rank,
        index=kept.index,
        name=name_of(kept.chunk),
        score=kept.score,
        tokens=kept.token_count,
        state="cut" if kept.was_cut else "kept",
        reason="",
        why=why_kept(packing, place),
        text=tuple(pieces),
        more=more,
    )


def _dropped_row(packing: Any, rank: int, place: int, text_of: Callable[[int], str] | None) -> Row:
    (dropped,) = packing._dropped_chunks(place, place + 1)
    text = "" if text_of is None else text_of(dropped.index)
    return Row(
        rank=rank,
        index=dropped.index,
        name=name_of(dropped.chunk),
        score=dropped.score,
        tokens=dropped.needed_tokens if dropped.reason == "budget" else None,
        is_least=packing._is_needed_a_bound,
        state="dropped",
        reason=dropped.reason,
        why=why(packing, dropped),
        text=(Piece(text[:SHOWN]),),
        more=max(0, len(text) - SHOWN),
    )


def name_of(chunk: object) -> str:
    """Return what its owner calls a chunk: source, id and title, each once."""
    if chunk is None or isinstance(chunk, str):
        return ""
    found = (label_of(chunk, "source"), id_of(chunk), label_of(chunk, "title"))
    names: list[str] = []
    for name in map(shown_label, found):
        if name and not any(name in other for other in names):
            names = [other for other in names if other not in name] + [name]
    return BETWEEN.join(names)


def cut_pieces(whole: str, kept: str) -> tuple[list[Piece], int]:
    """
    Return the pieces of a cut text, and how many characters of it are not shown.

    What was cut out stands between the pieces that were kept, behind the marker. A text may have
    what looks like a marker. Where the pieces cannot be found in *whole*, *kept* is the only one.
    """
    gap, parts = _parts(whole, kept)
    pieces: list[Piece] = []
    at = more = 0
    for nth, part in enumerate(parts):
        is_end = nth and gap == _MIDDLE
        place = len(whole) - len(part) if is_end else whole.find(part, at)
        if place < at:
            return [Piece(kept)], 0
        if nth:
            pieces.append(Piece(gap))
        if not nth or whole[at:place] != gap:  # else it is the text's own
            more += _cut_out(pieces, whole[at:place])
        pieces.append(Piece(part))
        at = place + len(part)
    more += _cut_out(pieces, whole[at:])
    return [piece for piece in pieces if piece.text], more


def _parts(whole: str, kept: str) -> tuple[str, list[str]]:
    """Return the marker in *kept* that is not part of *whole*, and what stands around it."""
    if whole.startswith(kept):
        return "", [kept]
    if kept.endswith(_END) and whole.startswith(kept[: -len(_END)]):
        return _END, [kept[: -len(_END)], ""]
    at = kept.find(_MIDDLE)
    while at >= 0:
        head, tail = kept[:at], kept[at + len(_MIDDLE) :]
        if whole.startswith(head) and whole.endswith(tail):
            return _MIDDLE, [head, tail]
        at = kept.find(_MIDDLE, at + 1)
    return _SENTENCES, kept.split(_SENTENCES)


def _cut_out(pieces: list[Piece], text: str) -> int:
    pieces.append(Piece(text[:SHOWN], is_gone=True))
    return max(0, len(text) - SHOWN)


def _text(packing: Any) -> list[Written]:
    """Return the text in pieces: each kept chunk, and what stands between them."""
    pieces = []
    at = 0
    for place, index in enumerate(packing._kept):
        span = packing._span(place)
        if span is None or span[0] < at:
            continue
        pieces += [
            Written(packing.text[at : span[0]], None),
            Written(packing.text[slice(*span)], index),
        ]
        at = span[1]
    pieces.append(Written(packing.text[at:], None))
    return [piece for piece in pieces if piece.text or piece.index is not None]
