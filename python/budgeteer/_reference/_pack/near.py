"""Reference of ``rust/core/src/near.rs``: when a text nearly repeats another."""

from collections.abc import Sequence

from budgeteer._reference._rank.terms import terms

SHINGLE = 5
"""The number of terms in a shingle; a text with fewer terms is one shingle."""

MOST_KEPT = 4096
"""How many kept texts a text is compared with: the first ones, which are the best."""

Shingles = frozenset[tuple[str, ...]]


def shingles(text: str) -> Shingles:
    """Return all runs of five terms of *text*."""
    found = terms(text)
    starts = range(max(1, len(found) - SHINGLE + 1) if found else 0)
    return frozenset(tuple(found[start : start + SHINGLE]) for start in starts)


def find(new: Shingles, kept: Sequence[Shingles]) -> int | None:
    """
    Return the place of the first of *kept* that *new* resembles, or else is contained in.

    Only the first 4,096 are looked at. Texts resemble each other if at least four fifths of their
    shingles are in both.
    """
    kept = kept[:MOST_KEPT]
    if not new:
        return None
    for place, old in enumerate(kept):
        if 5 * len(new & old) >= 4 * len(new | old):
            return place
    return next((place for place, old in enumerate(kept) if new <= old), None)
