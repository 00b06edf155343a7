"""Reference of ``rust/core/src/near.rs``: when a text says nearly the same as another."""

from budgeteer._reference._terms import terms

SHINGLE = 5
"""So many terms make a shingle; all of them where a text has fewer."""

Shingles = frozenset[tuple[str, ...]]


def shingles(text: str) -> Shingles:
    """Return all runs of five terms of *text*."""
    found = terms(text)
    if len(found) < SHINGLE:
        return frozenset([tuple(found)] if found else [])
    return frozenset(zip(*(found[start:] for start in range(SHINGLE)), strict=False))


def is_near(new: Shingles, kept: Shingles) -> bool:
    """Return whether four fifths of what either has is in both, or all of *new* is in *kept*."""
    common = len(new & kept)
    return bool(new) and (5 * common >= 4 * len(new | kept) or common == len(new))
