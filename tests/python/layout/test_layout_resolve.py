"""Dividing a window among sections: flexbox for tokens, exactly."""

from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, ONLY_REFERENCE, backend_named

MOST = 2**63 - 1
"""The largest figure, and no maximum."""


class Flex(NamedTuple):
    """A section as the backends take it, one column each."""

    basis: int = 0
    grow: float = 0.0
    shrink: float = 1.0
    minimum: int = 0
    maximum: int = MOST
    priority: int = 0

    @property
    def clamped_basis(self):
        return max(self.minimum, min(self.basis, self.maximum))

    @property
    def least(self):
        return self.minimum if self.shrink > 0 else self.clamped_basis

    @property
    def most(self):
        return max(self.minimum, self.maximum)


sizes = st.integers(0, 30) | st.integers(0, 3_000) | st.integers(0, MOST)
factors = (
    st.sampled_from([0.0, 1.0, 1.0, 2.0, 0.1, 0.3, 0.25, 1 / 3])
    | st.sampled_from([10_000.0, 9_999.9999995, 1e-6, 1.5e-6, 2.5e-6, -0.0])
    | st.floats(1e-6, 10.0)
    | st.floats(1e-6, 10_000.0)
)
flexes = st.builds(
    Flex,
    basis=sizes,
    grow=factors,
    shrink=factors,
    minimum=st.just(0) | sizes,
    maximum=st.just(MOST) | sizes,
    priority=st.integers(-2, 2) | st.sampled_from([-(2**63), MOST]),
)
layouts = st.lists(flexes, max_size=8) | st.lists(flexes, min_size=1, max_size=2).flatmap(
    lambda few: st.lists(st.sampled_from(few), max_size=8)
)


def resolve(name, space, sections):
    """Return sizes, dropped sections and free tokens as the backend called *name* has them."""
    columns = [list(column) for column in zip(*sections, strict=True)] or [[]] * 6
    return backend_named(name).resolve_layout(space, *columns)


def exactly(factor):
    """Return what a factor is read as: the nearest millionth, of two the even one."""
    return round(Fraction(factor * 1_000_000)) / Fraction(1_000_000)


def real_sizes(space, sections):
    """
    Return the sizes in real numbers, sections that all fit given; by levels instead of freezing.

    What a section moves from its basis is the level times its weight, within limits. The level
    is where the moves sum to what there is to move, and no higher than that where it grows.
    """
    clamped = [section.clamped_basis for section in sections]
    growing = sum(clamped) < space
    pulls = {}
    for i, (basis, grow, shrink, minimum, _, _) in enumerate(sections):
        most = sections[i].most
        if growing and grow > 0 and basis <= most:
            pulls[i] = (exactly(grow), max(minimum - basis, 0), most - basis)
        elif not growing and shrink > 0 and basis > 0 and basis >= minimum:
            pulls[i] = (exactly(shrink) * basis, max(basis - most, 0), basis - minimum)
    amount = abs(space - sum(clamped)) + sum(least for _, least, _ in pulls.values())

    def moves(level):
        return {i: max(least, min(level * w, most)) for i, (w, least, most) in pulls.items()}

    bends = {Fraction(limit) / w for w, *limits in pulls.values() for limit in limits}
    below = Fraction(0)
    for level in sorted(bends):
        moved = sum(moves(level).values())
        if moved > amount:
            before = sum(moves(below).values())
            below += (level - below) * Fraction(amount - before) / (moved - before)
            break
        below = level
    level = min(below, amount) if growing else below
    moved = moves(level)
    return [
        (sections[i].basis + (moved[i] if growing else -moved[i])) if i in moved else size
        for i, size in enumerate(clamped)
    ]


@pytest.mark.skipif(ONLY_REFERENCE, reason="BUDGETEER_BACKEND=reference was asked for")
@given(sizes, layouts)
def test_identity(space, sections):
    """Both backends divide every window alike."""
    expected, actual = (resolve(name, space, sections) for name in ("reference", "native"))

    assert expected == actual


@pytest.mark.skipif(ONLY_REFERENCE, reason="BUDGETEER_BACKEND=reference was asked for")
@given(
    sizes,
    st.lists(flexes, min_size=1, max_size=12).flatmap(
        lambda few: st.lists(st.sampled_from(few), min_size=50, max_size=200)
    ),
)
def test_identity_of_many_sections(space, sections):
    """Both backends divide among hundreds of sections alike."""
    expected, actual = (resolve(name, space, sections) for name in ("reference", "native"))

    assert expected == actual


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, sections=layouts)
def test_nothing_is_lost(name, space, sections):
    """The sizes and what is free sum to the space."""
    tokens, _, free = resolve(name, space, sections)

    assert space == sum(tokens) + free
    assert free >= 0


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, sections=layouts)
def test_limits_hold(name, space, sections):
    """What is in is within its limits, and what is dropped is 0."""
    tokens, dropped, _ = resolve(name, space, sections)

    for i, section in enumerate(sections):
        if i in dropped:
            assert tokens[i] == 0
        else:
            assert section.least <= tokens[i] <= section.most


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, sections=layouts)
def test_no_more_are_dropped_than_must(name, space, sections):
    """Sections go by priority, then last first, until the smallest sizes fit."""
    _, dropped, _ = resolve(name, space, sections)
    order = sorted(range(len(sections)), key=lambda i: (sections[i].priority, -i))

    assert dropped == order[: len(dropped)]
    needed = [sum(sections[i].least for i in order[count:]) for count in range(len(order) + 1)]
    assert needed[len(dropped)] <= space
    assert all(more > space for more in needed[: len(dropped)])


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, more=st.integers(1, 3) | sizes, sections=layouts)
def test_growth_takes_only_what_is_rounded(name, space, more, sections):
    """While the same are in, more space takes at most a token from any, and no free one."""
    before, dropped, free = resolve(name, space, sections)
    after, still_dropped, more_free = resolve(name, min(space + more, MOST), sections)

    assert still_dropped == dropped[: len(still_dropped)]
    if dropped == still_dropped:
        assert all(old <= new + 1 for old, new in zip(before, after, strict=True))
        assert free <= more_free


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, sections=layouts)
def test_sizes_are_the_real_ones_rounded(name, space, sections):
    """Each size is less than a token from the real one, and their sum less than a half."""
    tokens, dropped, _ = resolve(name, space, sections)
    kept = [i for i in range(len(sections)) if i not in dropped]
    real = real_sizes(space, [sections[i] for i in kept])

    assert all(abs(tokens[i] - size) < 1 for i, size in zip(kept, real, strict=True))
    assert sum(tokens) == (2 * sum(real) + 1) // 2


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, sections=layouts, data=st.data())
def test_order_hardly_matters(name, space, sections, data):
    """In another order sections of different priorities get the same, but for a token."""
    sections = [section._replace(priority=i) for i, section in enumerate(sections)]
    shuffled = data.draw(st.permutations(sections))
    tokens, _, free = resolve(name, space, sections)
    others, _, other_free = resolve(name, space, shuffled)

    assert free == other_free
    for section, size in zip(shuffled, others, strict=True):
        assert abs(tokens[section.priority] - size) <= 1


@pytest.mark.parametrize("name", BACKENDS)
@given(space=sizes, section=flexes, many=st.integers(1, 8))
def test_equals_are_equal(name, space, section, many):
    """Equal sections differ by a token at most, and the first has it; but the last are dropped."""
    tokens, dropped, _ = resolve(name, space, [section] * many)
    kept = tokens[: many - len(dropped)]

    assert dropped == list(range(len(kept), many))[::-1]
    assert kept == sorted(kept, reverse=True)
    assert not kept or kept[0] - kept[-1] <= 1


EXAMPLES = {
    "no sections": (7, [], ([], [], 7)),
    "the basis": (30, [Flex(10), Flex(20)], ([10, 20], [], 0)),
    "nothing grows": (50, [Flex(10), Flex(20)], ([10, 20], [], 20)),
    "a quarter and three quarters": (
        400,
        [Flex(100, 1.0), Flex(100, 3.0), Flex(100)],
        ([125, 175, 100], [], 0),
    ),
    "2.5 and 7.5, the first is rounded up": (
        310,
        [Flex(100, 1.0), Flex(100, 3.0), Flex(100)],
        ([103, 107, 100], [], 0),
    ),
    "3.33 thrice, the first is rounded up": (10, [Flex(grow=1.0)] * 3, ([4, 3, 3], [], 0)),
    "shrinking by factor times basis": (
        250,
        [Flex(300), Flex(100, shrink=3.0), Flex(50, shrink=0.0)],
        ([200, 0, 50], [], 0),
    ),
    "30.5 are lacking twice, the last gives more": (
        139,
        [Flex(100), Flex(100)],
        ([70, 69], [], 0),
    ),
    "what a maximum leaves goes to others": (
        100,
        [Flex(grow=1.0, maximum=10), Flex(grow=1.0), Flex(grow=2.0)],
        ([10, 30, 60], [], 0),
    ),
    "what a minimum takes comes from others": (
        100,
        [Flex(grow=1.0, maximum=10), Flex(grow=1.0, minimum=50), Flex(grow=2.0)],
        ([10, 50, 40], [], 0),
    ),
    "a minimum above the maximum wins": (
        100,
        [Flex(grow=1.0, minimum=20, maximum=10), Flex(grow=1.0)],
        ([20, 80], [], 0),
    ),
    "grow factors below 1 leave the rest": (
        1_000,
        [Flex(grow=0.25), Flex(grow=0.5)],
        ([250, 500], [], 250),
    ),
    "the nearest whole number of tokens": (
        1_000,
        [Flex(grow=1 / 3), Flex(grow=1 / 3), Flex(grow=1 / 3)],  # they sum to 0.999999
        ([334, 333, 333], [], 0),
    ),
    "factors are read as decimals": (
        10**9,
        [Flex(grow=0.7), Flex(grow=0.2), Flex(grow=0.1)],  # these floats sum to less than 1
        ([7 * 10**8, 2 * 10**8, 10**8], [], 0),
    ),
    "shrink factors below 1 count as 1": (
        100,
        [Flex(100, shrink=0.25), Flex(100, shrink=0.25)],
        ([50, 50], [], 0),
    ),
    "the lowest priority goes first, then the last of equals": (
        250,
        [
            Flex(minimum=100, grow=1.0, priority=1),
            Flex(minimum=100, grow=1.0, priority=2),
            Flex(minimum=100, grow=1.0, priority=1),
            Flex(minimum=100, grow=1.0, priority=0),
        ],
        ([125, 125, 0, 0], [3, 2], 0),
    ),
    "a basis that does not shrink is a minimum": (
        150,
        [Flex(100, shrink=0.0), Flex(100, shrink=0.0)],
        ([100, 0], [1], 50),
    ),
    "its maximum bounds it": (
        150,
        [Flex(100, shrink=0.0), Flex(100, shrink=0.0, maximum=50)],
        ([100, 50], [], 0),
    ),
    "all are dropped": (5, [Flex(minimum=6), Flex(minimum=7)], ([0, 0], [1, 0], 5)),
    "the largest factor and the smallest": (
        10**11 + 10**7 + 10,
        [Flex(grow=10_000.0), Flex(grow=1e-6), Flex(grow=1.0)],
        ([10**11, 10, 10**7], [], 0),
    ),
    "the largest figures": (
        MOST,
        [Flex(MOST), Flex(MOST), Flex(MOST, shrink=2.0)],  # a half, a half and all are lacking
        ([MOST - MOST // 2, MOST // 2, 0], [], 0),
    ),
}


@pytest.mark.parametrize("case", EXAMPLES)
@pytest.mark.parametrize("name", BACKENDS)
def test_examples(name, case):
    """Worked figures."""
    space, sections, expected = EXAMPLES[case]

    assert expected == resolve(name, space, sections)
