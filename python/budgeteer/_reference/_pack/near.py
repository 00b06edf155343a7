"""Reference of ``rust/core/src/near.rs``: when a text says nearly the same as another."""

from collections.abc import Sequence

from budgeteer._reference._rank.terms import terms

SHINGLE = 5
"""So many terms make a shingle; all of them where a text has fewer."""

Shingles = frozenset[tuple[str, ...]]


def shingles(text: str) -> Shingles:
    """Return all runs of five terms of *text*."""
    found = terms(text)
    if len(found) < SHINGLE:
        return frozenset([tuple(found)] if found else [])
    return frozenset(zip(*(found[start:] for start in range(SHINGLE)), strict=False))


def find(new: Shingles, kept: Sequence[Shingles]) -> int | None:
    """
    Return the place of the first of *kept* that *new* resembles, or else is a part of.

    Texts resemble each other where four fifths of the shingles that either has are in both.
    """
    if not new:
        return None
    for place, old in enumerate(kept):
        if 5 * len(new & old) >= 4 * len(new | old):
            return place
    return next((place for place, old in enumerate(kept) if new <= old), None)
