"""
What each part of the default ranking brings into the budget, and what other rankers do.

    python benches/eval_ranking.py FILE... [--budgets 256,512,1024] [--max N] [--pool]
                                   [--skip-peers]
    python benches/eval_ranking.py --smoke

FILE is JSON Lines: records of ``query``, ``chunks``, ``gold_ids`` and, if known, ``gold_sents``
and ``answers``; or a first line ``{"corpus": [...]}`` with the chunks of all. ``--pool`` makes one
pool of the chunks of all records. Chunks are packed best first, and one that does not fit is
skipped. A token is four characters, and each chunk costs 12 more.

    R            share of the gold chunks in the context
    nDCG@10      of the ranking, with equal gain for each gold chunk
    evidence     share of the gold sentences that stand in the context
    answer       share of the questions with an answer in the context, as a run of words
    distractors  share of the chunks in the context that are not gold: less is better

Behind each mean is its gain over BM25 and the 95 % interval of a paired bootstrap, with a star if
that excludes 0. In the rows of other packages' rankers, with their own defaults, it is the gain of
``lexical`` over them. A package that is not installed is left out.
"""

from __future__ import annotations

import argparse
import functools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from eval_system import charged, ranked
from questions import answer_in, asked, evidence_in, folded, interval, ndcg, shown

from budgeteer import Packer
from budgeteer.ranking import Bm25, Lexical

RANKINGS: dict[str, Any] = {
    "bm25": Bm25(),
    "keyword": "keyword",
    "bm25, stems": Bm25(stemming="english"),
    "lexical": Lexical(),
    "no stems": Lexical(stemming=None),
    "no stopwords": Lexical(stopwords=None),
    "no headings": Lexical(headings=False),
    "no links": Lexical(links=False),
    "no feedback": Lexical(feedback=False),
    "no repetitions": Lexical(k3=0),
}
"""The rankings; under ``lexical``, those with one part off."""

cost_of = functools.cache(charged)

Ranker = Callable[[str], Sequence[int]]
"""Returns the indices of chunks, best first, for a query."""


def of_bm25s(texts: Sequence[str]) -> Ranker:
    """Return bm25s over *texts*."""
    bm25s = import_module("bm25s")
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)

    def rank(query: str) -> list[int]:
        words = bm25s.tokenize([query], show_progress=False)
        found, _ = index.retrieve(words, k=len(texts), show_progress=False)
        return [int(place) for place in found[0]]

    return rank


def of_langchain(texts: Sequence[str]) -> Ranker:
    """Return LangChain's BM25Retriever over *texts*."""
    retriever = import_module("langchain_community.retrievers").BM25Retriever.from_texts(
        texts, metadatas=[{"place": place} for place in range(len(texts))], k=len(texts)
    )
    return lambda query: [found.metadata["place"] for found in retriever.invoke(query)]


def of_llama_index(texts: Sequence[str]) -> Ranker:
    """Return LlamaIndex's BM25Retriever over *texts*."""
    node = import_module("llama_index.core.schema").TextNode
    retriever = import_module("llama_index.retrievers.bm25").BM25Retriever.from_defaults(
        nodes=[node(text=text, id_=str(place)) for place, text in enumerate(texts)],
        similarity_top_k=len(texts),
    )
    return lambda query: [int(found.node.node_id) for found in retriever.retrieve(query)]


def of_haystack(texts: Sequence[str]) -> Ranker:
    """Return Haystack's BM25 in memory over *texts*."""
    document = import_module("haystack").Document
    module = import_module("haystack.document_stores.in_memory")
    store = module.InMemoryDocumentStore()
    store.write_documents(
        [document(id=str(place), content=text) for place, text in enumerate(texts)]
    )
    return lambda query: [int(found.id) for found in store.bm25_retrieval(query, top_k=len(texts))]


PEERS = {
    "LangChain": of_langchain,
    "LlamaIndex": of_llama_index,
    "Haystack": of_haystack,
    "bm25s": of_bm25s,
}


def taken(
    chunks: Sequence[Mapping[str, Any]], order: Sequence[int], budget: int
) -> list[Mapping[str, Any]]:
    """Return the chunks that go into the budget, in that order; what does not fit is skipped."""
    packed = []
    for place in order:
        cost = cost_of(chunks[place]["text"])
        if cost <= budget:
            budget -= cost
            packed.append(chunks[place])
    return packed


def measures(
    record: Mapping[str, Any], order: Sequence[int], budgets: Sequence[int]
) -> dict[str, float]:
    """Return what a question measures of a ranking, as far as its evidence is known."""
    chunks, gold = record["chunks"], set(record["gold_ids"])
    row = {"nDCG@10": ndcg([chunks[place]["id"] for place in order[:10]], gold)}
    for budget in budgets:
        packed = taken(chunks, order, budget)
        inside = gold.intersection(chunk["id"] for chunk in packed)
        context = folded("\n".join(chunk["text"] for chunk in packed))
        row[f"R@{budget}"] = len(inside) / len(gold)
        for name, share in (
            ("evidence", evidence_in(record, context)),
            ("answer", answer_in(record, context)),
            ("distractors", 1 - len(inside) / len(packed) if packed else None),
        ):
            if share is not None:
                row[f"{name}@{budget}"] = share
    return row


def pooled(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records with the chunks of all, each once."""
    pool = {chunk["id"]: chunk for record in records for chunk in record["chunks"]}
    chunks = list(pool.values())
    return [{**record, "chunks": chunks} for record in records]


def rows_of(
    records: Sequence[Mapping[str, Any]], ranking: Any, budgets: Sequence[int]
) -> list[dict[str, float]]:
    """Return the measures of a ranking for each question."""
    packer = Packer(0, counter="chars_div4", dedupe=None, ranking=ranking)
    return [
        measures(record, ranked(packer, record["query"], record["chunks"]), budgets)
        for record in records
    ]


def rows_of_peer(
    records: Sequence[Mapping[str, Any]],
    name: str,
    make: Callable[[Sequence[str]], Ranker],
    budgets: Sequence[int],
) -> list[dict[str, float]]:
    """Return the measures of another ranker, none if it is not installed."""
    rows = []
    chunks, rank = None, None
    try:
        for record in records:
            if rank is None or chunks is not record["chunks"]:  # a shared pool is indexed once
                chunks = record["chunks"]
                rank = make([chunk["text"] for chunk in chunks])
            rows.append(measures(record, rank(record["query"]), budgets))
    except ImportError as error:
        print(f"{name} is left out: {error}")
    return rows


def cell(
    rows: Sequence[Mapping[str, float]], name: str, pairs: Sequence[tuple[float, float]]
) -> str:
    """Return a mean and, if there are pairs, the gain of the first of each over the second."""
    known = [row[name] for row in rows if name in row]
    mean = math.fsum(known) / len(known)
    if not pairs:
        return f"{mean:6.3f}"
    return f"{mean:6.3f} {shown(*interval([one - other for one, other in pairs]))}"


def report(
    tables: Mapping[str, Sequence[Mapping[str, float]]],
    peers: Mapping[str, Sequence[Mapping[str, float]]],
    budgets: Sequence[int],
) -> None:
    """Print a table for each measure."""
    known = {name for rows in tables.values() for row in rows for name in row}
    for measure in ("R", "evidence", "answer", "distractors", "nDCG@10"):
        names = [f"{measure}@{budget}" for budget in budgets]
        names = [measure] if measure in known else [name for name in names if name in known]
        if not names:
            continue
        print(f"\n{'':15}" + "".join(f"{name:^33}" for name in names))
        for ranker, rows in {**tables, **peers}.items():
            cells = []
            for name in names:
                ones, others = (
                    (tables["lexical"], rows) if ranker in peers else (rows, tables["bm25"])
                )
                pairs = [  # none for BM25 and itself
                    (one[name], other[name])
                    for one, other in zip(ones, others, strict=True)
                    if name in one and name in other and one is not other
                ]
                cells.append(cell(rows, name, pairs))
            print(f"{ranker:15}" + "".join(f"{text:33}" for text in cells).rstrip())


def main() -> None:
    """Print the tables of each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--budgets", help="256,512,1024 if not given")
    parser.add_argument("--max", type=int, help="the most questions of each file")
    parser.add_argument("--pool", action="store_true", help="one pool of all chunks of a file")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="two questions: does it run?")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # of other packages, once for each list
    usual = "32,64" if arguments.smoke else "256,512,1024"
    budgets = [int(budget) for budget in (arguments.budgets or usual).split(",")]
    for name, records in asked(arguments).items():
        whole = pooled(records) if arguments.pool else records
        print(f"\n{name}: {len(whole)} questions, {len(whole[0]['chunks'])} chunks", flush=True)
        tables = {each: rows_of(whole, ranking, budgets) for each, ranking in RANKINGS.items()}
        peers = {
            peer: rows
            for peer, make in ({} if arguments.skip_peers else PEERS).items()
            if (rows := rows_of_peer(whole, peer, make, budgets))
        }
        report(tables, peers, budgets)


if __name__ == "__main__":
    main()
