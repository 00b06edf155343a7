"""What `scripts/mutants.py` found last: `tests/mutants.json`."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORD = json.loads((ROOT / "tests/mutants.json").read_text("utf-8"))


@pytest.mark.parametrize("file", RECORD)
def test_files_and_their_tests_are_there(file):
    """What is mutated exists, and so do the files of tests that it is given."""
    assert (ROOT / file).is_file()
    tests = [one for one in RECORD[file]["tests"] if one.endswith(".py")]
    assert all((ROOT / test).is_file() for test in tests)


@pytest.mark.parametrize("file", [file for file, found in RECORD.items() if "mutants" in found])
def test_nine_of_ten_mutants_are_killed(file):
    """The tests of a file that was mutated find nine of ten changes; each other has a reason."""
    found = RECORD[file]

    assert found["killed"] >= 0.9 * found["mutants"] > 0
    assert len(found["survivors"]) <= found["mutants"] - found["killed"]
    assert all(found["survivors"].values())
