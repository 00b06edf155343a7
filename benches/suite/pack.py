"""Packing 500 chunks: in every language, with short and long queries, beside others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any

from texts import MAX_TOKENS
from timing import Case, interleaved, one_slice, outcome, sliced

import budgeteer
from budgeteer import Packer, Packing, _native, _reference
from budgeteer._pack import prepared
from suite.fixed import LENGTHS, SOURCES, chunks_of, query_of
from suite.report import Options, Table, has

COUNT = 500
PACKED = "o200k_base"
RANKINGS = {
    "keyword": {"ranking": "keyword", "counter": "chars_div4"},
    "bm25": {"ranking": "bm25", "counter": "chars_div4"},
    "default": {"counter": PACKED},
}
"""The options of each packer. The default ranking counts exactly, as it does for most users."""


PEER_TITLE = "How many times as long theaios-context-router takes"


class DifferentError(Exception):
    """Two that should answer alike do not."""


def packer_on(backend: Any, **options: Any) -> Packer:
    """Return a packer into 8,000 tokens on a backend."""
    before, prepared.backend = prepared.backend, backend
    try:
        return Packer(MAX_TOKENS, **options)
    finally:
        prepared.backend = before


def everything_of(packing: Packing) -> Any:
    """Return all that a packing tells."""
    return (
        packing.text,
        packing.total_tokens,
        [(one.index, one.score, one.token_count) for one in packing.kept],
        [(one.index, one.score, one.reason) for one in packing.dropped],
    )


def check_alike(name: str, query: str, chunks: Sequence[str], options: dict[str, Any]) -> None:
    """Raise if both backends do not answer alike."""
    native, reference = (
        everything_of(packer_on(backend, **options).pack(query, chunks))
        for backend in (_native, _reference)
    )
    if native != reference:
        raise DifferentError(f"{name}: native and reference differ for {query!r} with {options}")


def fetched(texts: Sequence[str]) -> list[Any]:
    """Return the chunks that theaios-context-router has before it scores them."""
    chunk = import_module("theaios.context_router.types").ContextChunk
    return [chunk(content=text, source=str(at)) for at, text in enumerate(texts)]


def theaios(query: str) -> Callable[[list[Any]], Generator[None, None, Any]]:
    """Return theaios-context-router's packing of chunks that are fetched, in slices."""
    budget = import_module("theaios.context_router.budget")

    def run(chunks: list[Any]) -> Generator[None, None, Any]:
        for part in sliced(chunks):
            for chunk in part:
                chunk.token_count = budget.estimate_tokens(chunk.content)
                chunk.relevance_score = budget.score_relevance(query, chunk)
            yield
        ranked = budget.rank_chunks(chunks, "relevance")
        kept, _ = budget.apply_budget(ranked, MAX_TOKENS)
        return [(int(chunk.source), chunk.relevance_score) for chunk in kept]

    return run


def cases_of(name: str, words: int, *, reference: bool) -> dict[str, Case]:
    """Return the cases of a text and a query."""
    query = query_of(name, words)
    exact = budgeteer.get_counter(PACKED)

    def make() -> list[str]:
        return chunks_of(name, COUNT)

    def make_uncounted() -> list[str]:
        exact.clear_cache()
        return make()

    def run(backend: Any, ranking: str) -> Callable[[Any], Any]:
        packer = packer_on(backend, **RANKINGS[ranking])
        return lambda chunks: packer.pack(query, chunks)

    cases = {ranking: Case(run(_native, ranking), make) for ranking in RANKINGS}
    cases["default, new"] = Case(run(_native, "default"), make_uncounted)
    if reference:
        for ranking in RANKINGS:
            cases[f"reference, {ranking}"] = Case(one_slice(run(_reference, ranking)), make)
    if has("theaios.context_router"):
        cases["theaios"] = Case(theaios(query), lambda: fetched(make()))
    return cases


def same_kept(name: str, cases: dict[str, Case]) -> str:
    """Return how many chunks that theaios keeps have another score by it than by ours, if any."""
    found = outcome(cases["keyword"])
    ours = {one.index: one.score for one in [*found.kept, *found.dropped]}
    kept = outcome(cases["theaios"])
    apart = sum(abs(ours[at] - score) > 1e-9 for at, score in kept)
    return f"{name}: {apart} of {len(kept)}" if apart else ""


def packing(options: Options) -> Sequence[Table]:
    """Measure each text with queries of each length."""
    lengths = options.pick(LENGTHS, (8,))
    names = options.pick([*SOURCES], ["English", "Chinese", "emoji"])
    kinds = [*RANKINGS, "default, new"]
    long = ["theaios", *(f"reference, {ranking}" for ranking in RANKINGS)]
    took = Table(
        f"Packing {COUNT} chunks of 800 characters into {MAX_TOKENS:,} tokens: ns a chunk",
        ["text", "words", *kinds, *long],
    )
    times = Table(PEER_TITLE, ["text", "words", *kinds])
    apart = []
    for name in names:
        for words in lengths:
            for ranking in RANKINGS.values():
                check_alike(name, query_of(name, words), chunks_of(name, COUNT), ranking)
            cases = cases_of(name, words, reference=words == 8)
            found = interleaved(cases, options.pick(options.rounds, 1))
            each = {case: found.median(case) / COUNT * 1e9 for case in cases}
            took.rows.append([name, words, *(each.get(case) for case in [*kinds, *long])])
            if "theaios" in cases:
                ratios = (found.ratio("theaios", kind) for kind in kinds)
                times.rows.append([name, words, *ratios])
                if note := same_kept(f"{name}, {words} words", cases):
                    apart.append(note)
    took.notes.append(
        "keyword and bm25 count four characters as a token, as theaios does; the default counts"
        f" exactly, for {PACKED}, texts that were counted before, or new ones. Native and"
        " reference gave the same packing in every row."
    )
    if apart:
        times.notes.append(
            "theaios scores some chunks that it keeps otherwise than ours: " + "; ".join(apart)
        )
    elif times.rows:
        times.notes.append("theaios gave each chunk that it kept the score of ours by keywords.")
    return [took, *([times] if times.rows else []), *beside(options, names, lengths)]


def beside(options: Options, names: Sequence[str], lengths: Sequence[int]) -> Sequence[Table]:
    """Measure each text beside English, and each length of a query beside 8 words."""
    cases = {
        (name, words, kind): Case(case.run, case.make, options.pick(7, 1))
        for name in names
        for words in lengths
        for kind, case in cases_of(name, words, reference=False).items()
        if kind in RANKINGS
    }
    found = interleaved(cases, options.pick(options.rounds, 1))
    tables = []
    for title, other in (
        ("How many times as long a text takes as English", lambda _, words: ("English", words)),
        ("How many times as long a query takes as one of 8 words", lambda name, _: (name, 8)),
    ):
        table = Table(title, ["text", "words", *RANKINGS])
        for name in names:
            for words in lengths:
                of = other(name, words)
                if of != (name, words):
                    ratios = (found.ratio((name, words, by), (*of, by)) for by in RANKINGS)
                    table.rows.append([name, words, *ratios])
        tables += [table] if table.rows else []
    return tables
