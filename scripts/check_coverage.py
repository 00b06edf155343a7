"""
Refuse where the tests leave more than 2 of 100 branches of the facade, or of its statements, out.

    COVERAGE_PROCESS_START=pyproject.toml COVERAGE_FILE="$PWD/target/coverage/data" pytest
    COVERAGE_FILE="$PWD/target/coverage/data" python scripts/check_coverage.py

The first line measures in every process of pytest, by what coverage installs for that, and in no
program that a test starts. What is measured, `pyproject.toml` says. A run of all tests is meant,
on both backends.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

LEAST = 98


def main() -> None:
    """Print what is left out, file by file, and both shares."""
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "--quiet"], check=True)
    found = Path(os.environ["COVERAGE_FILE"]).with_name("coverage.json")
    subprocess.run([*coverage, "report"], check=True)
    subprocess.run([*coverage, "json", "--quiet", "-o", str(found)], check=True)
    totals = json.loads(found.read_text("utf-8"))["totals"]
    shares = {
        "branches": totals["covered_branches"] / totals["num_branches"] * 100,
        "statements": totals["covered_lines"] / totals["num_statements"] * 100,
    }
    print(*(f"{name}: {share:.2f} %" for name, share in shares.items()), sep="\n")
    sys.exit(min(shares.values()) < LEAST)


if __name__ == "__main__":
    main()
