"""
The cost of importing, beside asyncio, in fresh processes of one run, in turns.

    python benches/bench_import.py [--rounds 15] [--smoke]

Quote the median of the rounds' ratios: times of starting processes are noisy.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

STATEMENTS = (
    "import asyncio",
    "import budgeteer",
    "from budgeteer import pack",
    "from budgeteer import Layout",
    "from budgeteer.service import RetrievalService",
)
CODE = """
import time
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""


def seconds(statement: str, folder: str) -> float:
    """Return the time of a fresh process for *statement*, with its bytecode in *folder*."""
    command = [sys.executable, "-c", CODE.format(statement)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return float(subprocess.check_output(command, text=True, env=environment))


def measured(rounds: int) -> list[list[float]]:
    """Return the seconds of each statement in each round."""
    with tempfile.TemporaryDirectory() as folder:
        for statement in STATEMENTS:  # compiled once, as installing does
            seconds(statement, folder)
        return [[seconds(statement, folder) for statement in STATEMENTS] for _ in range(rounds)]


def main() -> None:
    """Measure, and fail if the import is not light."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=15, help="how often each is imported")
    parser.add_argument("--smoke", action="store_true", help="few rounds")
    arguments = parser.parse_args()
    rounds = 5 if arguments.smoke else arguments.rounds
    times = measured(rounds)
    for place, statement in enumerate(STATEMENTS):
        median = statistics.median(row[place] for row in times)
        ratio = statistics.median(row[place] / row[0] for row in times)
        print(f"{median * 1e3:8.1f} ms  {ratio:5.2f} of asyncio  {statement}")
    ratio = statistics.median(row[1] / row[0] for row in times)
    if ratio > 0.5:
        raise SystemExit(f"import budgeteer takes {ratio:.2f} of import asyncio, above a half")


if __name__ == "__main__":
    main()
