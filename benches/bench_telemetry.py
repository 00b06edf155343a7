"""
The cost of telemetry, on and off, interleaved in one run.

    python benches/bench_telemetry.py [--rounds N] [--smoke]

Packing is timed with and without the look for an observer, in turns: without OpenTelemetry
imported, with its API imported and no provider set, and with an SDK that records spans, histograms
or both. These calls have no chunks, since the difference would vanish in the time of 500 chunks.
Packing 500 chunks is timed in the same run, by the default options and by the cheapest, and the
overhead is shown as a share of it. Times are medians over rounds of many calls.

``--smoke`` checks that without a provider the overhead is at most 2 % of the cheapest packing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider, sampling
from texts import MAX_TOKENS, QUERY, fresh, real_text

from budgeteer import Packer

SIZE = 500
CALLS = 500
PACKERS = {
    "default": Packer(MAX_TOKENS),
    "cheapest": Packer(MAX_TOKENS, counter="chars_div4", ranking="keyword"),
}
METRICS: Any = sys.modules["opentelemetry.metrics._internal"]
NAMES = [trace.__name__, METRICS.__name__]


@contextmanager
def providers(tracers: Any, meters: Any, *, is_imported: bool = True) -> Iterator[None]:
    """Set both providers for a while, by private names; or hide OpenTelemetry."""
    modules = {name: sys.modules[name] for name in NAMES}
    trace._TRACER_PROVIDER, METRICS._METER_PROVIDER = tracers, meters  # noqa: SLF001
    if not is_imported:
        for name in NAMES:
            del sys.modules[name]
    try:
        yield
    finally:
        sys.modules.update(modules)
        trace._TRACER_PROVIDER = METRICS._METER_PROVIDER = None  # noqa: SLF001


def cases() -> dict[str, dict[str, Any]]:
    """Return the settings of each case, by its name."""
    sampled_out = TracerProvider(sampler=sampling.ALWAYS_OFF)
    meters = MeterProvider([InMemoryMetricReader()])
    return {
        "not imported": {"tracers": None, "meters": None, "is_imported": False},
        "API, no provider": {"tracers": None, "meters": None},
        "SDK, sampled out": {"tracers": sampled_out, "meters": None},
        "SDK, histograms": {"tracers": None, "meters": meters},
        "SDK, spans": {"tracers": TracerProvider(), "meters": None},
        "SDK, both": {"tracers": TracerProvider(), "meters": meters},
    }


def timed(work: Callable[[], Any], calls: int) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def overheads(rounds: int) -> dict[str, float]:
    """Return the seconds that each case adds to a call."""
    packer = PACKERS["cheapest"]
    all_cases = cases()
    found: dict[str, list[float]] = {name: [] for name in all_cases}
    for _ in range(rounds):
        for name, options in all_cases.items():
            with providers(**options):
                packer.pack("", ())  # looks the observer up once
                bare = timed(
                    lambda: packer._pack("", (), None, None, None, None, releases=False),  # noqa: SLF001
                    CALLS,
                )
                found[name].append(timed(lambda: packer.pack("", ()), CALLS) - bare)
    return {name: statistics.median(values) for name, values in found.items()}


def packings(rounds: int) -> dict[str, float]:
    """Return the seconds of packing new strings."""
    text = real_text()
    found: dict[str, list[float]] = {name: [] for name in PACKERS}
    for _ in range(rounds):
        for name, packer in PACKERS.items():
            chunks = fresh(text, SIZE)
            found[name].append(timed(lambda p=packer, c=chunks: p.pack(QUERY, c), 1))
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    rounds = 11 if arguments.smoke else arguments.rounds
    whole = packings(rounds)
    shown = ", ".join(f"{name} {seconds * 1e6:.0f} us" for name, seconds in whole.items())
    print(f"{SIZE} chunks: {shown}\n")
    print(f"{'':20}{'us a call':>10}" + "".join(f"{f'of {name}':>14}" for name in whole))
    added = overheads(rounds)
    for name, seconds in added.items():
        shares = "".join(f"{seconds / one:14.2%}" for one in whole.values())
        print(f"{name:20}{seconds * 1e6:10.2f}{shares}")
    if arguments.smoke:
        unobserved = max(added["not imported"], added["API, no provider"])
        return int(unobserved > 0.02 * min(whole.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
