"""A calibration whose corrections decide what is sent next: it converges, and never amplifies."""

import math
from random import Random

import pytest

from budgeteer import Calibration, Correction

MODEL = "chars_div4"


def loop(bill, rounds, *, is_fed, budgets=(500, 2_000, 8_000, 32_000), texts=1):
    """
    Return the corrections of as many rounds: fill a budget, send, learn from the bill.

    *is_fed* takes the corrected counts for raw ones, as a naive calibration does.
    """
    random, calibration = Random(18), Calibration()
    made, over = [], 0
    for _ in range(rounds):
        correction = calibration.correction(MODEL) or Correction(1.0, 0, 0)
        counter = calibration.counter(MODEL)
        room = max(1, random.choice(budgets) - correction.frame_tokens)
        sizes = [max(1, int(room / correction.scale / texts))] * texts
        billed = bill(sum(sizes), random)
        over += bool(made) and billed > correction.bound(sum(sizes))
        counted = sum(math.ceil(correction.scale * size) for size in sizes)
        if is_fed:
            calibration.observe(counted, billed, model=MODEL)
        else:
            counter.observe(counted, billed)
        made.append(correction)
    return made, over / rounds


DRIFTS = {
    "above": (lambda n, random: 300 + int(n * random.uniform(1.3, 1.4)), 1.38, 1.41),
    "far above": (lambda n, random: 50 + int(n * random.uniform(2.8, 3)), 2.95, 3.01),
    "below": (lambda n, random: 20 + int(n * random.uniform(0.4, 0.5)), 0.48, 0.51),
    "none": (lambda n, random: n + random.choice([7, 11, 30]), 1, 1),
}


@pytest.mark.parametrize(
    ("drift", "texts", "rounds"),
    [("above", 1, 10_000), *((drift, texts, 1_500) for drift in DRIFTS for texts in (1, 8))],
)
def test_the_loop_converges(drift, texts, rounds):
    """Learning 10,000 times from what its own corrections sent stays at the drift there is."""
    bill, low, high = DRIFTS[drift]
    made, over = loop(bill, rounds, is_fed=False, texts=texts)
    settled = [correction.scale for correction in made[500:]]

    assert low * (0.98 if texts > 1 else 1) <= min(settled)
    assert max(settled) <= high
    assert over <= 0.03


def test_a_loop_that_is_fed_its_corrections_does_not():
    """The simulation sees the mistake: fed with corrected counts, half of the bounds break."""
    bill, low, _ = DRIFTS["above"]
    made, over = loop(bill, 1_000, is_fed=True)

    assert min(correction.scale for correction in made[500:]) < low - 0.1
    assert over > 0.3


def test_the_loop_converges_at_one_budget():
    """A frame that is taken for scale, for want of sizes, settles where the bill is the budget."""
    made, over = loop(lambda n, _: 3_000 + n, 10_000, is_fed=False, budgets=(8_000,))

    assert 1 == len({correction.scale for correction in made[100:]})
    assert 7_900 <= 3_000 + int(8_000 / made[-1].scale) <= 8_000
    assert over <= 0.01
