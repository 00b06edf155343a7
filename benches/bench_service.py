"""
What a service costs beside packing: 500 chunks of 800 characters into the window of a model.

    python benches/bench_service.py [--rounds N]

Each retriever returns chunks that exist already, so nothing is searched. `ChunkRetriever` searches
all of them for the query's keywords, so it is also compared with packing by keywords, which
searches as well. The runs are interleaved, and processor times are the best of all rounds;
only ratios within one run are meaningful.

Under pytest a few rounds run once: ``pytest benches/bench_service.py``.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from texts import fresh, real_text

from budgeteer import Chunk, Packer, get_counter
from budgeteer.presets import retrieval_service
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService

QUERY = "how are default parameter values of a function evaluated"
SETTINGS = LlmSettings(model="gpt-4o", context_window=16_000, max_output_tokens=1_000)
SYSTEM = "Answer from the context."
CHUNKS = 500
KINDS = {
    "same": "the same chunks",
    "fresh": "fresh strings",
    "new": "new texts",
}
"""What is packed: objects packed before, equal texts in new strings, or texts never counted."""


class Ready:
    """Returns chunks that exist already."""

    def __init__(self, chunks: list[Any]) -> None:
        self._chunks = chunks

    def retrieve(self, query: str, limit: int) -> list[Any]:  # noqa: ARG002
        """Return them."""
        return self._chunks


class Held:
    """Passes requests on, so that a service that has run before gets another retriever."""

    retriever: Any

    def retrieve(self, query: str, limit: int) -> Any:
        """Return what the retriever returns."""
        return self.retriever.retrieve(query, limit)


class Backwards:
    """A reranker that returns the same objects in another order."""

    def rerank(self, query: str, chunks: list[Any]) -> list[Any]:  # noqa: ARG002
        """Return them in reverse."""
        return chunks[::-1]


def ready() -> list[Chunk]:
    """Return chunks with all fields and a score, the best first."""
    return [
        Chunk(
            text,
            id=str(i),
            source=f"page {i % 20}",
            title=f"Section {i}",
            score=1 - i / 1_000,
            metadata={"position": i},
        )
        for i, text in enumerate(fresh(real_text(), CHUNKS))
    ]


def mappings(chunks: list[Chunk]) -> list[Any]:
    """Return the chunks as dicts."""
    return [{name: getattr(chunk, name) for name in chunk.__slots__} for chunk in chunks]


def objects(chunks: list[Chunk]) -> list[Any]:
    """Return the chunks as objects of another class."""
    return [SimpleNamespace(**fields) for fields in mappings(chunks)]


def jobs() -> dict[str, Job]:
    """Return what is compared."""
    by_score = retrieval_service(1)
    by_input = dataclasses.replace(by_score, ranking="input")
    by_words = dataclasses.replace(by_score, ranking="keyword")
    return {
        "chunks": Job(list, Ready, by_score),
        "mappings": Job(mappings, Ready, by_score),
        "objects": Job(objects, Ready, by_score),
        "chunks, reranked": Job(list, Ready, by_input, Backwards()),
        "ChunkRetriever": Job(list, ChunkRetriever, by_words),
    }


class Job:
    """A service, and the packing of the same chunks alone, with the same budget."""

    def __init__(
        self,
        converted: Callable[[list[Chunk]], list[Any]],
        retriever: Callable[[list[Any]], Any],
        packer: Packer,
        reranker: Any = None,
    ) -> None:
        self._converted = converted
        self._retriever = retriever
        self._reranker = reranker
        self._held = Held()
        self._service = RetrievalService(
            self._held, SETTINGS, system_prompt=SYSTEM, reranker=reranker
        )
        tokens = self.service(ready())().tokens
        most = tokens.budget - tokens.overhead
        self._packer = dataclasses.replace(packer, counter="o200k_base", max_tokens=most)

    def service(self, chunks: list[Chunk]) -> Callable[[], Any]:
        """Return the request."""
        self._held.retriever = self._retriever(self._converted(chunks))
        return lambda: self._service.retrieve(QUERY)

    def packing(self, chunks: list[Chunk]) -> Callable[[], Any]:
        """Return the packing."""
        given = self._converted(chunks)
        if self._reranker is not None:
            given = self._reranker.rerank(QUERY, given)
        return lambda: self._packer.pack(QUERY, given)


def measure(rounds: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the seconds of each service and of its packing alone, by kind of texts."""
    level = logging.getLogger("budgeteer").level
    logging.getLogger("budgeteer").setLevel(logging.ERROR)  # printing is not what is measured
    try:
        return {kind: _measured(rounds, kind) for kind in KINDS}
    finally:
        logging.getLogger("budgeteer").setLevel(level)


def _measured(rounds: int, kind: str) -> dict[str, tuple[float, float]]:
    compared = jobs()
    counter = get_counter("o200k_base")
    same = ready()
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in compared}
    for _ in range(rounds):
        for name, job in compared.items():
            for made, found in zip((job.service, job.packing), times[name], strict=True):
                work = made(same if kind == "same" else ready())
                if kind == "new":
                    counter.clear_cache()
                start = time.process_time()
                work()
                found.append(time.process_time() - start)
    return {name: (min(service), min(packing)) for name, (service, packing) in times.items()}


def test_service() -> None:
    """It runs."""
    found = measure(2)

    assert all(
        seconds > 0 for kind in found.values() for pair in kind.values() for seconds in pair
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=60)
    found = measure(parser.parse_args().rounds)
    for kind, what in KINDS.items():
        print(f"\n{what:24}{'service, ms':>14}{'packing, ms':>14}{'ratio':>8}")
        for name, (service, packing) in found[kind].items():
            figures = f"{service * 1e3:14.3f}{packing * 1e3:14.3f}{service / packing:8.2f}"
            print(f"  {name:22}{figures}")


if __name__ == "__main__":
    main()
