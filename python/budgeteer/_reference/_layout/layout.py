"""
Reference of ``rust/core/src/layout.rs``.

Factors are integers in millionths, so that all shares of a round are fractions with the same
denominator. Everything is computed exactly in integers and rounded once, at the end.
"""

from dataclasses import dataclass

ONE = 1_000_000
"""A factor of 1, in millionths."""


@dataclass(frozen=True)
class Pull:
    """How a section moves from its basis: in proportion to *weight*, from *least* to *most*."""

    index: int
    weight: int
    least: int
    most: int


def resolve_layout(
    space: int,
    basis: list[int],
    grow: list[float],
    shrink: list[float],
    minimum: list[int],
    maximum: list[int],
    priority: list[int],
) -> tuple[list[int], list[int], int]:
    """Divide *space* tokens among sections: return sizes, dropped sections and free tokens."""
    maximum = [max(limits) for limits in zip(minimum, maximum, strict=True)]
    limits = zip(basis, minimum, maximum, strict=True)
    hypothetical = [min(max(size, low), high) for size, low, high in limits]

    # If the minimum sizes do not fit, drop the lowest priority first, and the last of equals.
    sections = range(len(basis))
    smallest = [minimum[i] if shrink[i] > 0 else hypothetical[i] for i in sections]
    needed = sum(smallest)
    dropped = []
    for i in sorted(sections, key=lambda i: (priority[i], -i)):
        if needed <= space:
            break
        needed -= smallest[i]
        dropped.append(i)

    sizes = list(hypothetical)
    for i in dropped:
        sizes[i] = 0
    total = sum(sizes)
    growing = total < space
    gone = set(dropped)
    pulls = []
    for i in sections:
        size, low, high = basis[i], minimum[i], maximum[i]
        if total == space or i in gone:
            continue
        if growing and size <= high and grow[i] > 0:
            pulls.append(Pull(i, millionths(grow[i]), max(low - size, 0), high - size))
        elif not growing and size >= low and shrink[i] > 0 and size > 0:
            weight = millionths(shrink[i]) * size
            pulls.append(Pull(i, weight, max(size - high, 0), size - low))
    if not growing:
        pulls.reverse()  # of equal remainders, the last section gives its token first

    amount = abs(space - total) + sum(pull.least for pull in pulls)
    for pull, moved in zip(pulls, divide(amount, pulls, partly=growing), strict=True):
        sizes[pull.index] = basis[pull.index] + (moved if growing else -moved)
    return sizes, dropped, space - sum(sizes)


def millionths(factor: float) -> int:
    """Return *factor*, which is 0 or from 0.000001 to 10000, in millionths."""
    return round(factor * ONE)


def divide(amount: int, pulls: list[Pull], *, partly: bool) -> list[int]:
    """
    Return the move of each pull: *amount* in proportion to the weights, within the limits.

    Each round divides the rest among the pulls that are not yet fixed. Then each move is clamped
    to its limits. If the clamped moves sum to more than the rest, those raised to their least are
    fixed; if they sum to less, those lowered to their most.

    *partly* says that factors which sum below 1 move only that part of *amount*.
    """
    moves = [0] * len(pulls)
    rest = amount
    active = list(range(len(pulls)))
    while active:
        # A share is given * weight / whole. It is at most amount * factor, a bound that matters
        # only for factors that sum below 1.
        given, whole = rest, sum(pulls[i].weight for i in active)
        if partly and amount * whole < rest * ONE:
            given, whole = amount, ONE
        low, high, within = [], [], []
        added = 0  # by clamping, times whole
        for i in active:
            share = given * pulls[i].weight
            if share < pulls[i].least * whole:
                low.append(i)
                moves[i] = pulls[i].least
            elif share > pulls[i].most * whole:
                high.append(i)
                moves[i] = pulls[i].most
            else:
                within.append(i)
                continue
            added += moves[i] * whole - share
        if added == 0:
            round_shares(within, [given * pull.weight for pull in pulls], whole, moves)
            break
        frozen = low if added > 0 else high
        rest -= sum(moves[i] for i in frozen)
        gone = set(frozen)
        active = [i for i in active if i not in gone]
    return moves


def round_shares(within: list[int], shares: list[int], whole: int, moves: list[int]) -> None:
    """
    Write *shares* to *moves* as whole tokens, whose sum is that of the shares, rounded.

    The shares with the largest remainders are rounded up, the first ones of equal remainders.
    """
    remainders = {}
    for i in within:
        moves[i], remainders[i] = divmod(shares[i], whole)
    over = (2 * sum(remainders.values()) + whole) // (2 * whole)
    for i in sorted(within, key=lambda i: -remainders[i])[:over]:
        moves[i] += 1
