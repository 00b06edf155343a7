"""
CPU time of `fit_request`: 200 messages, 30 tools and 100 chunks, warm, by what is cut.

Each is fitted alone, and then as an agent does turn after turn, with what was returned before.

Run: python benches/bench_request.py [--smoke]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from budgeteer import Section, fit_request

MESSAGES, TOOLS, CHUNKS, RUNS = 200, 30, 100, 200
SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank, number {}. "


def request(with_chunks: bool) -> dict[str, Any]:
    """Return a request of an agent: each fourth message has a call, the next its result."""
    messages: list[Any] = [{"role": "system", "content": "Answer from the context."}]
    if with_chunks:
        chunks = [SENTENCE.format(i) * 8 for i in range(CHUNKS)]
        section = Section("context", query="fox river", chunks=chunks, max_tokens=4_000)
        messages.append({"role": "user", "content": section})
    while len(messages) < MESSAGES:
        i = len(messages)
        call = {
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": "read_file", "arguments": f'{{"path": "src/{i}.py"}}'},
        }
        messages += [
            {"role": "user", "content": SENTENCE.format(i) * 3},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{i}", "content": SENTENCE.format(i) * 30},
            {"role": "assistant", "content": SENTENCE.format(i) * 5},
        ]
    messages = [*messages[: MESSAGES - 1], {"role": "user", "content": "And now?"}]
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{i}",
                "description": SENTENCE.format(i),
                "parameters": {
                    "type": "object",
                    "properties": {
                        name: {"type": "string", "description": f"The {name} to use."}
                        for name in ("path", "pattern", "limit")
                    },
                    "required": ["path"],
                },
            },
        }
        for i in range(TOOLS)
    ]
    return {"model": "gpt-4o", "messages": messages, "tools": tools, "max_tokens": 1_000}


def main() -> None:
    """Print the median and the 95th percentile in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="run each case a few times only")
    runs = 5 if parser.parse_args().smoke else RUNS
    for with_chunks in (False, True):
        given = request(with_chunks)
        for window in (128_000, 40_000, 16_000):
            alone = fit_request(given, context_window=window)
            before = fit_request(given, context_window=window, previous=alone)
            for name, previous in (("alone", None), ("previous", before)):
                times = []
                for _ in range(runs):
                    start = time.process_time()
                    fitted = fit_request(given, context_window=window, previous=previous)
                    times.append((time.process_time() - start) * 1e3)
                p95 = statistics.quantiles(times, n=20)[-1]
                print(
                    f"{'with' if with_chunks else 'no'} chunks, window {window:>7,}, {name:8}: "
                    f"{statistics.median(times):.2f} ms, p95 {p95:.2f}, best {min(times):.2f}; "
                    f"{fitted.total_tokens} tokens, {len(fitted.report.changes)} changes"
                )


if __name__ == "__main__":
    main()
