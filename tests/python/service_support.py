"""What the tests of the service share: retrievers that count their calls, and settings."""

import hashlib

from budgeteer import get_counter
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
