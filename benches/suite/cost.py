"""What a call costs: its stages, growth, single calls, the first call, and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

from texts import MAX_TOKENS
from timing import Case, finished, in_process, interleaved, peak_bytes, percentile, without_gc

import budgeteer
from budgeteer import Packer, _native, ranking
from suite.fixed import chunks_of, query_of, text_of
from suite.pack import COUNT, PACKED, RANKINGS, fetched, packer_on, theaios
from suite.report import Options, Table, has

WORDS = 8
"""The words of the query in these sections."""


def read_once(texts: Sequence[str]) -> int:
    """Look at every character once, in native code: the floor of all that reads texts."""
    return sum(text.find("\0") for text in texts)


def stages(options: Options) -> Sequence[Table]:
    """Measure the stages of a call by themselves, beside reading each text once."""
    table = Table(
        f"The stages of packing {COUNT} chunks: nanoseconds a chunk, and times reading it once",
        ["stage", "English", "times the floor", "Chinese", "times its floor"],
    )
    columns = []
    for name in ("English", "Chinese"):
        query = query_of(name, WORDS)
        counting = budgeteer.get_counter(PACKED, cache=False)
        remembering = budgeteer.get_counter(PACKED)
        given = Packer(MAX_TOKENS, ranking="input", counter="chars_div4")
        runs: dict[str, Callable[[Any], Any]] = {
            "the floor: every character read once": read_once,
            "scores by keywords": partial(ranking.keyword_scores, query),
            "scores by BM25": partial(ranking.bm25_scores, query),
            "scores of the default": partial(ranking.lexical_scores, query),
            f"counts, `{PACKED}`, seen before": counting.count_batch,
            "the same, whole texts remembered": remembering.count_batch,
            "packed as given, by an estimate": partial(given.pack, query),
        }
        for by, packing in RANKINGS.items():
            runs[f"packed, {by}"] = partial(packer_on(_native, **packing).pack, query)
        cases = {
            of: Case(run, partial(chunks_of, name, COUNT), options.pick(15, 3))
            for of, run in runs.items()
        }
        times = interleaved(cases, options.pick(options.rounds, 1))
        floor = next(iter(cases))
        columns.append([[times.median(of) / COUNT * 1e9, times.ratio(of, floor)] for of in cases])
    table.rows = [
        [of, *english, *chinese] for of, english, chinese in zip(cases, *columns, strict=True)
    ]
    return [table]


def growth(options: Options) -> Sequence[Table]:
    """Measure how the time grows with the number of chunks, in English."""
    query = query_of("English", WORDS)
    table = Table(
        "Growth: nanoseconds a chunk of English, by the number of chunks",
        ["chunks", *RANKINGS, "theaios", "theaios takes, beside keyword"],
    )
    for count in options.pick((500, 5_000, 50_000, 100_000), (500, 2_000)):
        make = partial(chunks_of, "English", count)
        cases = {
            by: Case(partial(packer_on(_native, **packing).pack, query), make)
            for by, packing in RANKINGS.items()
        }
        if has("theaios.context_router"):
            cases["theaios"] = Case(theaios(query), partial(made_for_theaios, count))
        rounds = options.rounds if count < 50_000 else 1
        times = interleaved(cases, options.pick(rounds, 1))
        each = [times.median(of) / count * 1e9 for of in cases]
        ratio = times.ratio("theaios", "keyword") if "theaios" in cases else None
        table.rows.append([f"{count:,}", *each, *[None] * (4 - len(each)), ratio])
    table.notes.append("The default counts exactly, texts that were counted before.")
    return [table]


def made_for_theaios(count: int) -> list[Any]:
    """Return English chunks that theaios-context-router has fetched."""
    return fetched(chunks_of("English", count))


def latency(options: Options) -> Sequence[Table]:
    """Measure single calls with 200 budgets, over the same chunks."""
    table = Table(
        "Single calls over 200 budgets, counted exactly, English: microseconds of processor time",
        ["chunks", "ranking", "p50", "p99", "p99.9", "p99 by p50"],
    )
    for count in options.pick((500, 5_000), (500,)):
        chunks = chunks_of("English", count)
        for by in ("keyword", "lexical"):
            packers = [
                Packer(MAX_TOKENS + 7 * step, ranking=by, counter=PACKED) for step in range(200)
            ]
            query = query_of("English", WORDS)
            for packer in packers[:: options.pick(1, 50)]:
                packer.pack(query, chunks)
            calls = []
            with without_gc():
                for _ in range(options.pick(5, 1)):
                    for packer in packers:
                        start = time.process_time_ns()
                        packer.pack(query, chunks)
                        calls.append((time.process_time_ns() - start) / 1e3)
            found = [percentile(calls, share) for share in (0.5, 0.99, 0.999)]
            table.rows.append([f"{count:,}", by, *found, found[1] / found[0]])
    table.notes.append("lexical is the default ranking.")
    return [table]


def first_call(of: str) -> float:
    """Return the processor seconds of a new process for importing and the first call."""
    chunks = chunks_of("English", COUNT)
    query = query_of("English", WORDS)
    start = time.process_time()
    if of == "theaios":
        finished(theaios(query)(fetched(chunks)))
    elif of == "tiktoken":
        encode = import_module("tiktoken").get_encoding(PACKED).encode_ordinary
        sum(len(encode(text)) for text in chunks)
    else:
        packer_on(_native, **RANKINGS[of]).pack(query, chunks)
    return time.process_time() - start


def first(options: Options) -> Sequence[Table]:
    """Measure the first call of a process, each in a process of its own, in turns."""
    names = [*RANKINGS]
    names += [
        of
        for of, module in {"theaios": "theaios.context_router", "tiktoken": "tiktoken"}.items()
        if has(module)
    ]
    rounds = [
        {of: in_process("suite.cost", "first_call", of) for of in names}
        for _ in range(options.pick(7, 1))
    ]
    table = Table(
        f"The first call of a process, {COUNT} English chunks: milliseconds of processor time",
        ["call", "milliseconds"],
        [[of, median(one[of] for one in rounds) * 1e3] for of in names],
    )
    table.notes.append(
        "budgeteer is imported before: its time has its tables, preparing and the call. The time"
        " of the others has their import. tiktoken only counts."
    )
    return [table]


def memory_of(of: str, count: int) -> float | None:
    """Return the peak bytes for a chunk of 100 characters, the result included."""
    text = text_of("English")
    texts = [text[at % 9_000 : at % 9_000 + 100] for at in range(count)]
    query = query_of("English", WORDS)
    if of == "theaios":
        steps = theaios(query)

        def run(given: list[str]) -> Any:
            return finished(steps(fetched(given)))
    else:
        packer = packer_on(_native, **RANKINGS[of])

        def run(given: list[str]) -> Any:
            return packer.pack(query, given)

    run(texts[:1000])
    peak = peak_bytes(lambda: run(texts))
    return None if peak is None else peak / count


def memory(options: Options) -> Sequence[Table]:
    """Measure the peak memory of a packing, each in a process of its own."""
    names = [*RANKINGS, *(["theaios"] if has("theaios.context_router") else [])]
    count = options.pick(300_000, 20_000)
    table = Table(
        f"Peak memory of packing {count:,} chunks of 100 characters, beside their texts",
        ["call", "bytes a chunk"],
        [[of, in_process("suite.cost", "memory_of", of, count)] for of in names],
    )
    return [table]
