"""
How late packings end after their deadlines.

    python benches/bench_deadline.py [--chunks N]

For each kind of packing: what the whole takes, and how many milliseconds after their deadlines
those ended that were stopped at seven places on the way.
"""

import argparse
import time

from budgeteer import Packer, PackingTimeoutError

QUERY = "Which tea is mild?"
TEXT = "Section {0}: green tea is mild, and rye bread is dark. " * 8
SHARES = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
KINDS = (
    {"ranking": "keyword"},
    {},
    {"dedupe": "near", "ranking": "input"},
    {"selection": "coverage"},
    {"units": "sentence"},
    {"counter": "words", "overflow": "truncate_end", "ranking": "input"},
)


def main() -> None:
    """Print a line for each kind of packing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    parser.add_argument("--chunks", type=int, default=60_000)
    chunks = [TEXT.format(i) for i in range(parser.parse_args().chunks)]
    for kind in KINDS:
        packer = Packer(2_000_000, **kind)
        began = time.perf_counter()
        packer.pack(QUERY, chunks)
        whole = time.perf_counter() - began
        late = []
        for share in SHARES:
            fresh = [f"{text}." for text in chunks]
            began = time.perf_counter()
            try:
                packer.pack(QUERY, fresh, deadline=share * whole)
            except PackingTimeoutError:
                late.append(1_000 * (time.perf_counter() - began - share * whole))
        name = ", ".join(f"{key}={value}" for key, value in kind.items()) or "the default"
        print(f"{name:60} {1_000 * whole:7.0f} ms; late by", *(f"{ms:.0f}" for ms in late))


if __name__ == "__main__":
    main()
