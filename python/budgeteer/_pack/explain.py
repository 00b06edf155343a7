"""What became of the chunks of a packing, and why, in words."""

from __future__ import annotations

from typing import Any

from budgeteer._codes import FEEDBACK, HEADING, LINK, WRITTEN
from budgeteer._pack.options import REASONS

_SIGNALS = {
    HEADING: "for its heading",
    LINK: "linked from chunk {} by its heading",
    FEEDBACK: "for words of chunk {}, the best",
}


def sentence(packing: Any, index: int) -> str:
    """Return what happened to chunk *index*, which there is."""
    score = packing._score(index)
    how = "" if packing.fallback is None else f" by {packing.fallback}, as embedding failed"
    who = f"Chunk {index} ({'no score' if score is None else f'score {score:.2f}'}{how})"
    # Looked up, not searched for: all of many chunks may be explained, one by one.
    place = packing._kept_places.get(index)
    if place is not None:
        return f"{who} {why_kept(packing, place)}"
    place = packing._dropped_places[index]
    (dropped,) = packing._dropped_chunks(place, place + 1)
    return f"{who} was dropped: {why(packing, dropped)}"


def why_kept(packing: Any, place: int) -> str:
    """Return what happened to the kept chunk at *place* of the text."""
    index, span = packing._kept[place], packing._span(place)
    where = "at a place that only the prompt knows"
    if span is not None:
        where = f"characters {span[0]} to {span[1]} of the text"
    verb = "was cut to" if place == packing._cut else "was kept with"
    if index in packing._extracts:
        some, all_of_them = packing._extracts[index]
        verb = f"was cut to {some} of {all_of_them} sentences with"
    cited = f" and {packing._citations[place]} for its citation" if packing._is_citing else ""
    tokens = counted(packing._counts[place])
    return f"{verb} {tokens}{cited}, {where}.{_why_scored(packing, index)}"


def summary(packing: Any) -> str:
    """Return a few lines on all chunks."""
    kept, dropped = len(packing._kept), packing._dropped_count
    of_all = f"{kept} of {counted(kept + dropped, 'chunk')}"
    lines = [f"Kept {of_all} with {packing.total_tokens} of {counted(packing.budget_tokens)}."]
    if cut := len(packing._cut_places()):
        lines.append(f"Cut {cut} of them.")
    if dropped:
        counts = [(packing._reasons.count(code), name) for code, name in enumerate(REASONS)]
        shown = ", ".join(f"{count} {name}" for count, name in counts if count)
        lines.append(f"Dropped {dropped}: {shown}.")
    return "\n".join(lines)


def why(packing: Any, dropped: Any) -> str:
    """Return why a chunk was dropped, and what its score is made of."""
    return f"{why_dropped(packing, dropped)}.{_why_scored(packing, dropped.index)}"


def _why_scored(packing: Any, index: int) -> str:
    """Return a sentence on what a score has besides that of the query's words in the text."""
    parts = [
        f"{added:.2f} {_SIGNALS[kind].format(other)}"
        for kind, other, added in packing._signals_of.get(index, ())
    ]
    return f" Part of its score by words: {', '.join(parts)}." if parts else ""


def why_dropped(packing: Any, dropped: Any) -> str:
    """Return why a chunk was dropped, without an end of the sentence."""
    if dropped.reason == "out_of_scope":
        return _why_out_of_scope(packing, dropped.score)
    if dropped.reason == "empty":
        also = ", or what the template writes for it" if packing._style == WRITTEN else ""
        return f"its text is empty{also}"
    if dropped.reason == "cap":
        considered, most = packing._max_docs, packing._max_chunks
        if considered is not None and (most is None or len(packing.kept) < most):
            return f"{counted(considered, 'document')} had been considered before it"
        return f"max_chunks was reached with {counted(most or 0, 'chunk')} kept"
    if dropped.reason == "duplicate":
        how = "repeats, or nearly," if packing._is_near else "equals"
        return f"its text {how} that of chunk {dropped.duplicate_of}, which is kept"
    return _why_no_room(packing, dropped)


def _why_out_of_scope(packing: Any, score: float | None) -> str:
    if packing._max_docs is not None and not score:
        return "it shares no keyword with the question"
    if packing._least is not None:
        return f"its score is below {packing._least:.2f}, the automatic min_score"
    return "its score is below min_score"


def _why_no_room(packing: Any, dropped: Any) -> str:
    if dropped.needed_tokens <= dropped.available_tokens:
        return "packing had stopped before its turn came"
    at_least = "at least " if packing._is_needed_a_bound else ""
    cited = "with its citation " if packing._is_citing else ""
    return (
        f"{cited}it needs {at_least}{counted(dropped.needed_tokens)}, and "
        f"{dropped.available_tokens} of {packing.budget_tokens} were left"
    )


def counted(number: int, noun: str = "token") -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
