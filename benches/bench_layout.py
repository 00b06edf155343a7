"""
Fitting a whole prompt beside litellm and langchain-core, interleaved in one run.

    python benches/bench_layout.py [--rounds N] [--smoke]

The prompt has a system message, 10 tools, a history of 50 messages, 500 chunks of 800 characters
and a question, in a window of 16,000 tokens of which 1,000 are for the answer, counted exactly as
gpt-4o does. The text is the language reference that ships with Python. The others use their own
functions where they have one, and the rest is written as their users write it: litellm trims the
history and counts the tools and each chunk; langchain-core trims the history with tiktoken as
counter, which also counts the tools and chunks. Both pack the chunks in Python, by shared words,
without counting the whole prompt. A package that is not installed is left out.

Every call gets fresh strings, as CPython caches data of a str. Times are processor times, medians;
only ratios within one run are meaningful. "cleared" has an empty cache of counts, as for new
texts.

Under pytest the same cases run with pytest-benchmark:
``pytest benches/bench_layout.py --benchmark-enable``.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pydoc_data.topics import topics
from typing import Any

import pytest
from texts import vocabulary

from budgeteer import Layout, Packer, Section, get_counter, trim_messages
from budgeteer.window import count_messages, count_tools

WINDOW, ANSWER, HISTORY = 16_000, 1_000, 4_000
CHUNKS, CHARS, MESSAGES, TOOLS = 500, 800, 50, 10
MODEL = "gpt-4o"
QUERY = "which exception does the parser raise for an invalid argument in the configuration file"
SYSTEM = "Answer from the context. If the answer is not in the context, say that you do not know."


@dataclass
class Prompt:
    """The parts of a prompt, in new strings."""

    system: str
    tools: list[dict[str, Any]]
    history: list[dict[str, Any]]
    chunks: list[str]
    query: str


def prompt() -> Prompt:
    """Return the parts of a prompt: the same texts each time, as new strings."""
    text = "\n".join(topics.values())
    last = len(text) - CHARS

    def piece(i: int, size: int) -> str:
        start = i * 797 % last
        return text[start : start + size]

    def tool(i: int) -> dict[str, Any]:
        fields = {
            f"field_{k}": {"type": "string", "description": piece(40_000 + 9 * i + k, 60)}
            for k in range(4)
        }
        schema = {"type": "object", "properties": fields, "required": ["field_0"]}
        function = {"name": f"tool_{i}", "description": piece(i, 120), "parameters": schema}
        return {"type": "function", "function": function}

    return Prompt(
        system=SYSTEM[:1] + SYSTEM[1:],
        tools=[tool(i) for i in range(TOOLS)],
        history=[
            {
                "role": ("user", "assistant")[i % 2],
                "content": piece(20_000 + i, 100 + 37 * i % 900),
            }
            for i in range(MESSAGES)
        ],
        chunks=[piece(i, CHARS) for i in range(CHUNKS)],
        query=QUERY[:1] + QUERY[1:],
    )


PACKER = Packer(WINDOW, counter=MODEL)


def ours(parts: Prompt) -> int:
    """Fit the prompt; the result fits as a whole."""
    allocation = Layout(
        WINDOW,
        [
            Section("system", parts.system, shrink=0, priority=2),
            Section("tools", parts.tools, priority=1),
            Section("history", parts.history, max_tokens=HISTORY),
            Section(
                "context",
                fill=lambda n: PACKER.pack(parts.query, parts.chunks, max_tokens=n),
                grow=1,
            ),
            Section("query", parts.query, shrink=0, priority=2),
            Section("answer", tokens=ANSWER, shrink=0, priority=2),
        ],
        model=MODEL,
    ).fit()
    return allocation.total_tokens


def cleared(parts: Prompt) -> int:
    """Fit a prompt with an empty cache of counts."""
    get_counter(MODEL).clear_cache()
    return ours(parts)


def packed(
    parts: Prompt, history: list[dict[str, Any]], room: int, count: Callable[[str], int]
) -> list[dict[str, Any]]:
    """Return messages with the chunks that share most words with the query and fit into *room*."""
    words = set(re.findall(r"\w+", parts.query.lower()))
    scores = [-len(words & set(re.findall(r"\w+", chunk.lower()))) for chunk in parts.chunks]
    kept = []
    for i in sorted(range(len(scores)), key=scores.__getitem__):
        tokens = count(parts.chunks[i])
        if tokens <= room:
            room -= tokens
            kept.append(parts.chunks[i])
    return [
        {"role": "system", "content": parts.system},
        *history,
        {"role": "user", "content": "\n\n".join(kept)},
        {"role": "user", "content": parts.query},
    ]


def use_vocabularies() -> None:
    """Let tiktoken find its vocabularies without a network, as the tests do."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabulary.cache_dir())


def litellm_run() -> Callable[[Prompt], int]:
    """Fit with litellm's functions."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it uses the network
    litellm = importlib.import_module("litellm")
    trim = importlib.import_module("litellm.utils").trim_messages

    def run(parts: Prompt) -> int:
        history = trim(list(parts.history), MODEL, max_tokens=HISTORY)
        fixed = [{"role": "system", "content": parts.system}, *history]
        fixed.append({"role": "user", "content": parts.query})
        taken = litellm.token_counter(model=MODEL, messages=fixed, tools=parts.tools)

        def count(text: str) -> int:
            return int(litellm.token_counter(model=MODEL, text=text))

        messages = packed(parts, history, WINDOW - ANSWER - taken, count)
        return int(litellm.token_counter(model=MODEL, messages=messages, tools=parts.tools))

    return run


def langchain_run() -> Callable[[Prompt], int]:
    """Fit with langchain-core's trim_messages, which takes a counter."""
    core = importlib.import_module("langchain_core.messages")
    use_vocabularies()
    encode = importlib.import_module("tiktoken").encoding_for_model(MODEL).encode_ordinary
    json = importlib.import_module("json")

    def count(text: str) -> int:
        return len(encode(text))

    def count_all(messages: list[Any]) -> int:
        return 3 + sum(3 + count(message.type) + count(message.content) for message in messages)

    def run(parts: Prompt) -> int:
        left = core.trim_messages(
            parts.history, max_tokens=HISTORY, token_counter=count_all, strategy="last"
        )
        history = core.convert_to_openai_messages(left)
        tools = sum(count(json.dumps(tool)) for tool in parts.tools)
        taken = count_all(left) + tools + count(parts.system) + count(parts.query) + 12
        messages = packed(parts, history, WINDOW - ANSWER - taken, count)
        return count_all(core.convert_to_messages(messages)) + tools

    return run


def has(name: str) -> bool:
    """Return whether a package is installed."""
    return importlib.util.find_spec(name) is not None


PEERS: dict[str, tuple[tuple[str, ...], Callable[[], Callable[[Prompt], int]]]] = {
    "litellm": (("litellm",), litellm_run),
    "langchain-core": (("langchain_core", "tiktoken"), langchain_run),
}


def cases() -> dict[str, Callable[[Prompt], int]]:
    """Return the cases to measure."""
    found = {"budgeteer": ours, "budgeteer, cleared": cleared}
    for name, (needed, make) in PEERS.items():
        if all(map(has, needed)):
            found[name] = make()
        else:
            print(f"{name} is not installed: left out", file=sys.stderr)
    return found


def steps(parts: Prompt) -> dict[str, Callable[[], object]]:
    """Return the steps of a fit, each on its own."""
    counter = get_counter(MODEL)
    return {
        "count 50 messages": lambda: count_messages(parts.history, counter=counter),
        "trim 50 messages": lambda: trim_messages(parts.history, HISTORY, counter=counter),
        "count 10 tools": lambda: count_tools(parts.tools, counter=counter),
        "pack 500 chunks": lambda: PACKER.pack(parts.query, parts.chunks, max_tokens=10_000),
    }


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measured(rounds: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return the times and the count of each case, and check that the prompt fits."""
    runs = cases()
    times: dict[str, list[float]] = {name: [] for name in (*runs, *steps(prompt()))}
    totals: dict[str, int] = {}
    for name, run in runs.items():
        totals[name] = run(prompt())
    if not totals["budgeteer"] <= WINDOW - ANSWER:
        raise SystemExit(f"the prompt takes {totals['budgeteer']} tokens")
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in runs.items():
                # Quick cases get more tries, as they are noisier.
                for _ in range(10 if run is ours or run is cleared else 1):
                    if run is ours:
                        ours(prompt())  # after "cleared" and the peers: fills the cache again
                    parts = prompt()
                    times[name].append(seconds(lambda run=run, parts=parts: run(parts)))  # type: ignore[misc]
            for name, work in steps(prompt()).items():
                times[name].append(seconds(work))
            gc.collect()
    finally:
        gc.enable()
    return times, totals


@pytest.mark.parametrize("name", ["budgeteer", "budgeteer, cleared", *PEERS])
def test_layout(benchmark: Any, name: str) -> None:
    """One case, on fresh strings each round."""
    if name in PEERS and not all(map(has, PEERS[name][0])):
        pytest.skip(f"{name} is not installed")
    run = PEERS[name][1]() if name in PEERS else {"budgeteer": ours}.get(name, cleared)
    run(prompt())
    benchmark.group = f"{MESSAGES} messages, {TOOLS} tools, {CHUNKS} chunks"
    benchmark.pedantic(run, setup=lambda: ((prompt(),), {}), rounds=2 if name in PEERS else 20)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--smoke", action="store_true", help="once: does it run?")
    arguments = parser.parse_args()
    times, totals = measured(1 if arguments.smoke else arguments.rounds)
    print(f"Python {sys.version.split()[0]}: {MESSAGES} messages, {TOOLS} tools, {CHUNKS} chunks")
    print(f"{'':22}{'ms':>10}{'budgeteer is':>14}{'tokens':>10}")
    base = statistics.median(times["budgeteer"])
    for name, values in times.items():
        median = statistics.median(values)
        ratio = f"{median / base:.1f}x" if name in totals else ""
        print(f"{name:22}{median * 1e3:10.3f}{ratio:>14}{totals.get(name, ''):>10}")


if __name__ == "__main__":
    main()
