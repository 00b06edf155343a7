"""What `scripts/mutants.py` found last: `tests/mutants.json`."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORD = json.loads((ROOT / "tests/mutants.json").read_text("utf-8"))


@pytest.mark.parametrize("file", RECORD)
def test_nine_of_ten_mutants_are_killed(file):
    """The tests of a mutated file find nine of ten changes, and each other has a reason."""
    found = RECORD[file]

    assert (ROOT / file).is_file()
    if file.endswith(".py"):
        assert all((ROOT / test).exists() for test in found["tests"])
    assert found["killed"] >= 0.9 * found["mutants"] > 0
    assert len(found["survivors"]) <= found["mutants"] - found["killed"]
    assert all(found["survivors"].values())
