"""The evidence that the default ranking puts into a budget: no less than was measured."""

from pathlib import Path

import numpy as np
import pytest
from eval_ranking import measures
from eval_system import RANKER, pack, rank, ranked
from questions import MADE, interval, records_of
from support import ONLY_REFERENCE

from budgeteer.ranking import lexical_scores

DATA = Path(__file__).parents[4] / "shared" / "eval" / "given"
BUDGETS = 256, 512, 1024
SLACK = 0.005
"""By how much a figure may be below the one that was measured."""

FLOORS = {
    "hotpot": {"R@256": 0.760, "R@512": 0.950, "R@1024": 0.990, "nDCG@10": 0.943},
    "hotpot500": {"R@256": 0.709, "R@512": 0.922, "R@1024": 0.977, "nDCG@10": 0.934},
    "nq": {"R@256": 0.845, "R@512": 0.923, "R@1024": 0.950, "nDCG@10": 0.889},
    "cranfield": {"nDCG@10": 0.446},
    "cacm": {"nDCG@10": 0.496},
}
"""The figures measured on all questions of each file."""


def records(name):
    """Return the questions of a file, or skip the test."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the questions are not in this repository")
    return [*records_of(path)]


def scored(record):
    """Return the order of a question's chunks by their scores, in less time than a packer."""
    texts = [chunk["text"] for chunk in record["chunks"]]
    return np.argsort(-lexical_scores(record["query"], texts), kind="stable").tolist()


@pytest.mark.slow
@pytest.mark.skipif(ONLY_REFERENCE, reason="takes minutes, and both backends rank the same")
@pytest.mark.parametrize("name", FLOORS)
def test_floors(name):
    """The default ranking finds what it found when it was chosen."""
    asked = records(name)
    assert all(
        scored(record) == ranked(RANKER, record["query"], record["chunks"])
        for record in asked[:10]
    )
    rows = [measures(record, scored(record), BUDGETS) for record in asked]
    means = {measure: sum(row[measure] for row in rows) / len(rows) for measure in FLOORS[name]}
    below = {
        measure: (mean, FLOORS[name][measure])
        for measure, mean in means.items()
        if mean < FLOORS[name][measure] - SLACK
    }
    assert not below


@pytest.mark.parametrize("record", MADE, ids=["author", "leave"])
def test_packs_as_measured(record):
    """What is measured of a ranking is what the packer does with its own."""
    query, chunks = record["query"], record["chunks"]
    order = ranked(RANKER, query, chunks)
    assert rank(query, chunks) == [chunks[index]["id"] for index in order]
    for budget in range(15, 120, 5):
        row = measures(record, order, (budget,))
        packed = pack(query, chunks, budget)
        inside = set(record["gold_ids"]).intersection(packed)
        assert row[f"R@{budget}"] == len(inside) / len(record["gold_ids"])
        assert not packed or row[f"distractors@{budget}"] == 1 - len(inside) / len(packed)


def test_interval():
    """The mean is inside its interval, which excludes 0 for a clear difference only."""
    gain, low, high = interval([1.0, 0.5] * 50)
    assert low < gain == 0.75 < high
    assert low > 0
    _, low, high = interval([1.0, -1.0] * 50)
    assert low < 0 < high
