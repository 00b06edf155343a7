"""Ranking beside packages that search: lists, a corpus, and how much evidence they find."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from typing import Any

from bench_rank import run_bm25s, run_rank_bm25
from eval_ranking import PEERS, measures, rows_of
from questions import MADE, records_of
from timing import Case, Times, interleaved, one_slice, outcome

from budgeteer import Corpus, Packer, ranking
from suite.fixed import chunks_of, query_of, text_of
from suite.report import Options, Table, has

BEST = 10
MODULES = {
    "LangChain": "langchain_community",
    "LlamaIndex": "llama_index.retrievers.bm25",
    "Haystack": "haystack",
    "bm25s": "bm25s",
}
"""What the rankers of eval_ranking need."""
PLAIN = {"counter": "chars_div4", "dedupe": None}


def rankers() -> dict[str, Callable[[Sequence[str]], Any]]:
    """Return the rankers of other packages that are installed."""
    return {name: make for name, make in PEERS.items() if has(MODULES[name])}


def best_of(scores: Sequence[float]) -> list[int]:
    """Return the places of the highest scores, the best first."""
    return sorted(range(len(scores)), key=lambda at: -scores[at])[:BEST]


def ranking_lists(options: Options) -> Sequence[Table]:
    """Rank chunks that each package sees for the first time, in English."""
    query = query_of("English", 8)
    count = options.pick(500, 200)

    def make() -> list[str]:
        return chunks_of("English", count)

    def peer(index: Callable[[Sequence[str]], Any]) -> Callable[[list[str]], Any]:
        return one_slice(lambda texts: index(texts)(query)[:BEST])

    cases = {
        "BM25": Case(lambda texts: best_of(ranking.bm25_scores(query, texts)), make, 7),
        "default": Case(lambda texts: best_of(ranking.lexical_scores(query, texts)), make, 7),
        "keywords": Case(lambda texts: best_of(ranking.keyword_scores(query, texts)), make, 7),
    }
    words = "{}, the words found by a pattern"
    for module, run in {"bm25s": run_bm25s, "rank_bm25": run_rank_bm25}.items():
        if has(module):
            scored = functools.partial(run, query=query)
            ranked = functools.partial(lambda by, texts: best_of(by(texts)), scored)
            cases[words.format(module)] = Case(one_slice(ranked), make)
    cases |= {f"{name}, its own words": Case(peer(of), make) for name, of in rankers().items()}
    for case in cases.values():
        outcome(case)  # what it imports and compiles
    found = interleaved(cases, options.pick(options.rounds, 1))
    table = Table(
        f"Ranking {count} English chunks for a query of 8 words, index and all",
        ["ranker", "microseconds", "times as long as our BM25", f"of our best {BEST}"],
    )
    for name in cases:
        same = len({*found.results["BM25"]} & {*map(int, found.results[name])})
        ratio = found.ratio(name, "BM25")
        table.rows.append([name, found.median(name) * 1e6, ratio, str(same)])
    return [table]


def tantivy_search(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return tantivy's search for the best over *texts*, in memory."""
    tantivy = import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False)
    builder.add_unsigned_field("place", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(128_000_000, 1)
    for place, text in enumerate(texts):
        writer.add_document(tantivy.Document(text=text, place=place))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> list[int]:
        hits = searcher.search(index.parse_query(query, ["text"]), BEST).hits
        return [searcher.doc(at)["place"][0] for _, at in hits]

    return search


def bm25s_search(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return bm25s's search for the best over *texts*."""
    bm25s = import_module("bm25s")
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)

    def search(query: str) -> list[int]:
        words = bm25s.tokenize([query], show_progress=False)
        found, _ = index.retrieve(words, k=BEST, show_progress=False)
        return [int(place) for place in found[0]]

    return search


def corpus(options: Options) -> Sequence[Table]:
    """Find the best ten chunks of a corpus, in English."""
    table = Table(
        f"The best {BEST} of a corpus in English, for queries of 3 and 8 words: microseconds",
        ["chunks", "words", "BM25", "default", "tantivy", "bm25s", "same as tantivy", "as bm25s"],
    )
    packers = {
        "BM25": Packer(10**6, max_chunks=BEST, ranking="bm25", **PLAIN),
        "default": Packer(10**6, max_chunks=BEST, **PLAIN),
    }
    made = {"tantivy": tantivy_search, "bm25s": bm25s_search}
    for count in options.pick((10_000, 100_000), (1_000,)):
        texts = different(count)
        own = Corpus(texts)
        searches = {name: make(texts) for name, make in made.items() if has(name)}
        for words in (3, 8):
            query = query_of("English", words)
            cases = {
                name: Case(functools.partial(found_in, packer, own), lambda q=query: q, 15)
                for name, packer in packers.items()
            }
            cases |= {
                name: Case(search, lambda q=query: q, 15) for name, search in searches.items()
            }
            times = interleaved(cases, options.pick(options.rounds, 1))
            table.rows.append(
                [
                    f"{count:,}",
                    words,
                    *(microseconds(times, name) for name in [*packers, *made]),
                    *(same_best(times, name) for name in made),
                ]
            )
    table.notes.append(
        "Each splits words and drops frequent ones its own way, so the best are not all the same:"
        " the last columns say how many of ours by BM25 are."
    )
    return [table]


def found_in(packer: Packer, own: Corpus, query: str) -> list[int]:
    """Return the places of the chunks that are kept."""
    return [one.index for one in packer.pack(query, own).kept]


def microseconds(times: Times, name: str) -> float | None:
    """Return the time of a case, if it was measured."""
    return times.median(name) * 1e6 if name in times.seconds else None


def same_best(times: Times, name: str) -> str | None:
    """Return how many of our best by BM25 another found too, if it was measured."""
    if name not in times.results:
        return None
    return str(len({*times.results["BM25"]} & {*times.results[name]}))


def different(count: int, sentences: int = 8) -> list[str]:
    """Return as many chunks, none like another: sentences of English in many orders."""
    lines = re.findall(r"[^\n]{30,}", text_of("English"))
    size = len(lines)
    return [
        " ".join(
            lines[(at * 7919 + step * (at // size + 1) * 31) % size] for step in range(sentences)
        )
        + f" {at}"
        for at in range(count)
    ]


def recall(options: Options) -> Sequence[Table]:
    """Measure how much of the evidence gets into a budget, beside the time."""
    files: Mapping[str, list[Any]] = {path.name: [*records_of(path)] for path in options.questions}
    if options.smoke and not files:
        files = {"two made questions": MADE}
    tables = []
    budgets = options.pick((256, 512, 1024), (32,))
    for name, records in files.items():
        records = records[: options.pick(200, 10)]  # noqa: PLW2901
        table = Table(
            f"Evidence of {name} inside a budget: {len(records)} questions, each with its chunks",
            ["ranking", *(f"R@{budget}" for budget in budgets), "microseconds a question"],
        )
        rows = {by: rows_of(records, by, budgets) for by in ("keyword", "bm25", "lexical")}
        cases = {
            by: Case(asked(Packer(512, ranking=by, **PLAIN), records), tries=3) for by in rows
        }
        for peer, make in rankers().items():
            rows[peer], cases[peer] = rows_of_ranker(records, make, budgets)
        times = interleaved(cases, options.pick(3, 1))
        for by, each in rows.items():
            shares = (sum(row[f"R@{budget}"] for row in each) / len(each) for budget in budgets)
            table.rows.append([by, *shares, times.median(by) / len(records) * 1e6])
        table.notes.append("lexical is the default. The time of others is that of ranking alone.")
        tables.append(table)
    return tables


def asked(packer: Packer, records: Sequence[Mapping[str, Any]]) -> Callable[[Any], Any]:
    """Return the packing of every question."""
    return lambda _: [packer.pack(one["query"], one["chunks"]) for one in records]


def rows_of_ranker(
    records: Sequence[Mapping[str, Any]],
    make: Callable[[Sequence[str]], Any],
    budgets: Sequence[int],
) -> tuple[list[dict[str, float]], Case]:
    """Return what another ranker finds, and the case that times it, question by question."""

    def run(_: Any) -> Generator[None, None, list[Any]]:
        orders = []
        for record in records:
            rank = make([chunk["text"] for chunk in record["chunks"]])
            orders.append(rank(record["query"]))
            yield
        return orders

    case = Case(run)
    orders = outcome(case)
    pairs = zip(records, orders, strict=True)
    return [measures(record, order, budgets) for record, order in pairs], case
