"""What the tests of the service share: retrievers that count their calls, and settings."""

import asyncio
import hashlib

from budgeteer import BudgeteerError, get_counter
from budgeteer.service import LlmSettings, RetrievalService

COUNT = get_counter("cl100k_base").count
SETTINGS = LlmSettings(model="gpt-4", context_window=4096, max_output_tokens=500)
"""The document's window."""


def text_of(tokens, word=" tea"):
    """Return a text of exactly so many tokens."""
    text = "tea" + word * (tokens - 1)
    assert tokens == COUNT(text)
    return text


class Fake:
    """A retriever that answers what it is told, and remembers what it was asked."""

    name = "fake"

    def __init__(self, *chunks):
        self.chunks = list(chunks)
        self.asked = []

    def retrieve(self, query, limit):
        self.asked.append((query, limit))
        return self.chunks[:limit]


class AsyncFake(Fake):
    """The same, for asyncio alone."""

    retrieve = None

    async def aretrieve(self, query, limit):
        self.asked.append((query, limit))
        return self.chunks[:limit]


class Embedder:
    """Turns texts into vectors by their hash; counts its calls."""

    def __init__(self, size=8):
        self.size = size
        self.asked = []

    def embed_query(self, text):
        self.asked.append(text)
        return self.vector(text)

    def embed(self, texts):
        return [self.vector(text) for text in texts]

    def vector(self, text):
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        return [byte / 255 + 0.01 for byte in digest[: self.size]]


def service_of(*chunks, settings=SETTINGS, **options):
    return RetrievalService(Fake(*chunks), settings, **options)


class AsyncSlow(AsyncFake):
    """One that takes its time, and remembers whether it was cancelled."""

    was_cancelled = False

    async def aretrieve(self, query, limit):
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


def both(service, query="q"):
    """Answer by each way, as a result or an error; they must agree."""
    outcomes = []
    for way in (
        lambda: service.retrieve(query),
        lambda: service.retrieve(query, timeout=30),
        lambda: asyncio.run(service.aretrieve(query)),
    ):
        try:
            outcomes.append(way())
        except BudgeteerError as error:  # noqa: PERF203
            outcomes.append(error)
    assert len({type(outcome) for outcome in outcomes}) == 1
    if isinstance(outcomes[0], Exception):
        assert len({str(outcome) for outcome in outcomes}) == 1
    else:
        assert outcomes[0].to_dict() == outcomes[1].to_dict() == outcomes[2].to_dict()
    return outcomes[0]
