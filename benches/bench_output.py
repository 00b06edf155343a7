"""
Cutting the results of tools, of about a megabyte each, to a limit.

    python benches/bench_output.py [--rounds N] [--smoke]

Each case is cut to 2,000 tokens of o200k_base, on a fresh string each round, and beside it the
string is cut by `TokenCounter.truncate`, which neither reads nor keeps its shape. All are
interleaved; times are medians.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time

from budgeteer import fit_output, get_counter

MAX_TOKENS = 2_000
WORDS = ["alpha", "beta", "gamma", "tea", "green", "black", "request", "served", "timeout"]


def cases(size: int) -> dict[str, tuple[str, dict[str, str]]]:
    """Return a text of about *size* characters and its options, by name."""
    rng = random.Random(7)

    def words(count: int) -> str:
        return " ".join(rng.choices(WORDS, k=count))

    rows = [
        {"id": i, "name": words(2), "body": words(20), "score": rng.random()}
        for i in range(size // 190)
    ]
    levels = ["INFO"] * 50 + ["WARN", "ERROR"]
    log = "".join(
        f"2026-01-02 12:{i % 60:02}:00 {rng.choice(levels)} {words(8)} {rng.randrange(9**5)}\n"
        for i in range(size // 80)
    )
    diff = "".join(
        f"--- a/{i}.py\n+++ b/{i}.py\n@@ -1,2 +1,2 @@\n {words(9)}\n-{words(9)}\n+{words(9)}\n"
        for i in range(size // 220)
    )
    text = "\n\n".join(words(60) for _ in range(size // 350))
    return {
        "json": (json.dumps(rows), {}),
        "json, query": (json.dumps(rows), {"query": "green timeout"}),
        "table": (json.dumps(rows), {"kind": "table"}),
        "one long string": (json.dumps({"stdout": log}), {}),
        "log": (log, {}),
        "log, query": (log, {"query": "green timeout"}),
        "diff": (diff, {}),
        "text": (text, {}),
        "text, query": (text, {"query": "green timeout"}),
    }


def fresh(text: str) -> str:
    """Return a copy that nobody has seen."""
    return "".join((text[:1], text[1:]))


def measured(size: int, rounds: int) -> None:
    """Print the median times of all cases."""
    counter = get_counter("o200k_base", cache=False)
    made = cases(size)
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in made}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, (text, options) in made.items():
                copy = fresh(text)
                start = time.perf_counter()
                fitted = fit_output(copy, MAX_TOKENS, **options)  # type: ignore[arg-type]
                between = time.perf_counter()
                counter.truncate(copy, MAX_TOKENS, keep="both", marker="[...]")
                times[name][0].append(between - start)
                times[name][1].append(time.perf_counter() - between)
                if counter.count(fitted.text) != fitted.total_tokens or not fitted.was_cut:
                    raise AssertionError(name)
    finally:
        gc.enable()
    print(f"{'':16}{'characters':>12}{'fit_output':>14}{'truncate':>12}")
    for name, (ours, truncated) in times.items():
        print(
            f"{name:16}{len(made[name][0]):>12,}{statistics.median(ours) * 1e3:>11.1f} ms"
            f"{statistics.median(truncated) * 1e3:>9.1f} ms"
        )


def main() -> None:
    """Measure at the size asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--smoke", action="store_true", help="small and once")
    arguments = parser.parse_args()
    measured(50_000 if arguments.smoke else 1_000_000, 1 if arguments.smoke else arguments.rounds)


if __name__ == "__main__":
    main()
