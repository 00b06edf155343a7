"""Counting, new texts and repeated ones, beside the packages that others count with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from bench_count import ENCODINGS, Run, gigatoken_run, make_folder, tiktoken_run
from timing import Case, in_process, interleaved, one_slice

import budgeteer
from suite.fixed import SOURCES, pieces_of
from suite.report import Options, Table, has

OURS, REMEMBERED = "budgeteer", "budgeteer, whole texts remembered"
MOST = 200
"""The most chunks of a text, so that each is counted new in a short time."""


def ours(encoding: str, cache: bool) -> Run:
    """Count with budgeteer."""
    count = budgeteer.get_counter(encoding, cache=cache).count
    return lambda texts: sum(map(count, texts))


def toktok_run(encoding: str) -> Run:
    """Count with toktok."""
    count = import_module("toktok").batch_count
    return lambda texts: int(sum(count(texts, encoding)))


def quicktok_run(encoding: str) -> Run:
    """Count with quicktok."""
    count = import_module("quicktok").get_encoding(encoding).count
    return lambda texts: sum(map(count, texts))


def langchain_run(encoding: str) -> Run:
    """Count with the length function of LangChain's splitters."""
    module = import_module("langchain_text_splitters")
    splitter = module.CharacterTextSplitter.from_tiktoken_encoder(encoding)
    count = splitter._length_function  # noqa: SLF001
    return lambda texts: sum(map(count, texts))


def llama_index_run(encoding: str) -> Run:
    """Count with LlamaIndex's TokenCounter, over tiktoken."""
    encode = import_module("tiktoken").get_encoding(encoding).encode
    counter = import_module("llama_index.core.utilities.token_counting").TokenCounter(encode)
    return lambda texts: sum(map(counter.get_string_tokens, texts))


def haystack_run(encoding: str) -> Run:
    """Count with Haystack's TiktokenCounter, each text as a message."""
    counter = import_module("haystack.token_counters").TiktokenCounter(encoding)
    message = import_module("haystack.dataclasses").ChatMessage.from_user
    return lambda texts: sum(counter.count([message(text)]) for text in texts)


def litellm_run(encoding: str) -> Run:
    """Count with litellm."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it asks the network otherwise
    count = import_module("litellm").token_counter
    model = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}[encoding]
    return lambda texts: sum(count(model=model, text=text) for text in texts)


PEERS: dict[str, tuple[str, Callable[[str], Run]]] = {
    "toktok": ("toktok", toktok_run),
    "quicktok": ("quicktok", quicktok_run),
    "LangChain": ("langchain_text_splitters", langchain_run),
    "LlamaIndex": ("llama_index.core", llama_index_run),
    "Haystack": ("haystack", haystack_run),
    "litellm": ("litellm", litellm_run),
}
COUNTERS = [OURS, REMEMBERED, "tiktoken", "gigatoken", *PEERS]


def runs(encoding: str, folder: Path, warming: Sequence[str]) -> dict[str, Run]:
    """Return the counters that are installed, each with its vocabulary loaded and warm."""
    found: dict[str, Run] = {OURS: ours(encoding, False), REMEMBERED: ours(encoding, True)}
    found["tiktoken"] = tiktoken_run(encoding, folder)  # says where the vocabularies are
    if has("gigatoken"):
        found["gigatoken"] = gigatoken_run(encoding, folder)
    found |= {name: make(encoding) for name, (module, make) in PEERS.items() if has(module)}
    for run in found.values():
        run([*warming])
    return found


def counted(encoding: str, name: str, most: int, rounds: int) -> dict[str, Any]:
    """
    Return what each counter found in a text, its seconds for the new text, and in each round.

    It is for a process of its own, as no counter forgets the pieces of a text.
    """
    texts = pieces_of(name, most)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_folder(folder)

        def make() -> list[str]:
            return [(text + " ")[:-1] for text in texts]

        # Another text first: some load as they go.
        found = runs(encoding, folder, pieces_of("code" if name != "code" else "French", 40))
        cases = {of: Case(one_slice(run), make) for of, run in found.items()}
        # Both of ours remember the same pieces of texts, so only one can count them new.
        once = {of: case for of, case in cases.items() if of != REMEMBERED}
        new, repeated = interleaved(once, 1), interleaved(cases, 1 + rounds)
    return {
        "new": new.seconds,
        "repeated": {of: seconds[1:] for of, seconds in repeated.seconds.items()},
        "totals": repeated.results,
    }


def counting(options: Options) -> Sequence[Table]:
    """Count each text in a new process, more than once."""
    tables = []
    os.environ |= {"RAYON_NUM_THREADS": "1", "BUDGETEER_NUM_THREADS": "1"}
    names = options.pick([*SOURCES], ["English", "Chinese"])
    for encoding in options.pick(ENCODINGS[::-1], ("o200k_base",)):
        speeds: dict[str, dict[str, dict[str, float]]] = {"new": {}, "repeated": {}}
        apart = []
        for name in names:
            processes = [
                in_process("suite.count", "counted", encoding, name, MOST, 3)
                for _ in range(options.pick(options.rounds, 1))
            ]
            size = sum(len(text.encode()) for text in pieces_of(name, MOST)) / 1e6
            totals = processes[0]["totals"]
            for of, total in totals.items():
                if total != totals["tiktoken"]:
                    apart.append(f"{of}, {name}: {total - totals['tiktoken']:+,}")
            for which, own in speeds.items():
                own[name] = {
                    of: size / median(one for found in processes for one in found[which][of])
                    for of in processes[0][which]
                }
        for which, own in speeds.items():
            counters = [of for of in COUNTERS if of in own[names[0]]]
            table = Table(
                f"Counting {which} texts of 800 characters, `{encoding}`, one thread: MB/s",
                ["text", *counters],
                [[name, *(own[name][of] for of in counters)] for name in names],
            )
            table.notes.append(
                "Tokens more than tiktoken: " + "; ".join(apart)
                if apart
                else "All count as many tokens as tiktoken."
            )
            tables.append(table)
    return tables
