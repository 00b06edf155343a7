"""RetrievalService where the packer ranks by embeddings: who is asked, when, and what may fail."""

import asyncio
import threading
import time

import numpy as np
import pytest
from service_support import SETTINGS, Embedder, Fake, service_of, text_of

from budgeteer import InvalidArgumentError, Packer
from budgeteer.embedding import EmbeddingError
from budgeteer.ranking import Embedding, Hybrid
from budgeteer.service import LlmSettings, RetrievalError, RetrievalService, RetrievalTimeoutError

CHUNKS = ["rye bread", "green tea", "black tea"]


class Vectors(Embedder):
    """An embedder that packers take; remembers the thread that asked."""

    def embed(self, texts):
        self.asked.append(list(texts))
        self.thread = threading.current_thread()
        return np.array(super().embed(texts), "float32")

    def embed_query(self, text):
        return np.array(super().embed_query(text), "float32")


class AsyncVectors(Vectors):
    """The same, for asyncio too."""

    async def aembed(self, texts):
        await asyncio.sleep(0)
        return self.embed(texts)

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return self.embed_query(text)


def by_embedding(embedder=None, tokens=100, fallback=None, **options):
    return Packer(tokens, ranking=Embedding(embedder, fallback=fallback), **options)


def answers(service, query="green tea", **options):
    """Return the answer, which asyncio has too."""
    result = service.retrieve(query, **options)
    assert result.messages == asyncio.run(service.aretrieve(query, **options)).messages
    return result


@pytest.mark.parametrize("kind", [Vectors, AsyncVectors])
def test_the_packers_embedder(kind):
    """It ranks as the packer does on its own."""
    packer = by_embedding(kind())
    service = service_of(*CHUNKS, packer=packer)

    expected = packer.pack("green tea", CHUNKS)
    packing = answers(service).packing

    assert expected.text == packing.text
    assert [kept.score for kept in expected.kept] == [kept.score for kept in packing.kept]


def test_the_services_embedder_stands_in():
    """A packer without an embedder has the service's, and the query is embedded once."""

    class Searching(Fake):
        takes_vector = True

        def retrieve(self, query, limit, *, vector):
            self.vector = vector
            return super().retrieve(query, limit)

    embedder, retriever = Vectors(), Searching(*CHUNKS)
    service = RetrievalService(retriever, SETTINGS, packer=by_embedding(), embedder=embedder)
    packing = service.retrieve("green tea").packing

    assert ["green tea", CHUNKS] == embedder.asked
    assert embedder.vector("green tea") == pytest.approx(retriever.vector.tolist())
    assert by_embedding(Vectors()).pack("green tea", CHUNKS).text == packing.text
    # One of its own is asked itself.
    own = Vectors(size=4)
    service = RetrievalService(retriever, SETTINGS, packer=by_embedding(own), embedder=embedder)
    service.retrieve("green tea")
    assert [CHUNKS, "green tea"] == own.asked


def test_no_embedder():
    """A packer that ranks by vectors which nobody makes is refused when the service is made."""
    with pytest.raises(InvalidArgumentError, match="embedder is required: packer ranks by vec"):
        service_of("tea", packer=by_embedding())
    with pytest.raises(InvalidArgumentError, match="embedder is required: packer ranks by vec"):
        service_of("tea", packer=Packer(9, ranking=Hybrid({"embedding": 1})))
    service_of("tea", packer=Packer(9, ranking=Hybrid({"embedding": 0, "bm25": 1})))


def test_chunks_are_embedded_once():
    """However often a packing is made smaller until its messages fit."""

    def builder(prompt, context, query):
        return [{"role": "user", "content": context + query + context}]

    settings = LlmSettings(model="gpt-4", context_window=400, max_output_tokens=100)
    embedder = Vectors()
    chunks = [text_of(30), text_of(31), text_of(32), text_of(100), text_of(101)]
    service = service_of(
        *chunks,
        settings=settings,
        packer=by_embedding(embedder, 9_000),
        message_builder=builder,
    )
    result = service.retrieve("green tea")

    assert result.packing.kept
    assert result.packing.dropped
    assert [chunks, "green tea"] == embedder.asked


@pytest.mark.parametrize("kind", [Vectors, AsyncVectors])
def test_the_deadline_holds(kind):
    """A slow embedder of the packer's is late as any other component."""

    class Slow(kind):
        def embed(self, texts):
            time.sleep(0.5)
            return super().embed(texts)

        async def aembed(self, texts):
            await asyncio.sleep(0.5)
            return super().embed(texts)

    service = service_of(*CHUNKS, packer=by_embedding(Slow()), timeout=0.05)
    start = time.perf_counter()

    for retrieve in (service.retrieve, lambda query: asyncio.run(service.aretrieve(query))):
        with pytest.raises(RetrievalTimeoutError, match="Slow") as caught:
            retrieve("tea")
        assert "Slow" == caught.value.source
    assert time.perf_counter() - start < 0.5
    assert 2 == service.stats().timed_out


def test_the_event_loop_is_not_held_up():
    """An embedder without coroutines is asked in a thread."""
    embedder = Vectors()
    service = service_of(*CHUNKS, packer=by_embedding(embedder))

    asyncio.run(service.aretrieve("tea"))
    assert embedder.thread is not threading.main_thread()
    service.retrieve("tea")
    assert embedder.thread is threading.main_thread()


@pytest.mark.parametrize("kind", [Vectors, AsyncVectors])
@pytest.mark.parametrize("error", [EmbeddingError("the endpoint is busy"), OSError("key=secret")])
def test_an_embedder_that_fails(kind, error):
    """It is named; its own error is the cause, and is quoted where it is ours."""

    class Broken(kind):
        def embed(self, texts):
            raise error

    service = service_of(*CHUNKS, packer=by_embedding(Broken()))
    for retrieve in (service.retrieve, lambda query: asyncio.run(service.aretrieve(query))):
        with pytest.raises(RetrievalError) as caught:
            retrieve("tea")
        assert "Broken" == caught.value.source
        assert error is caught.value.__cause__
        shown = "the endpoint is busy" if isinstance(error, EmbeddingError) else "OSError"
        assert f"Broken failed: {shown}" == str(caught.value)
    assert 2 == service.stats().failed


@pytest.mark.parametrize("kind", [Vectors, AsyncVectors])
def test_a_fallback(kind):
    """A packer with a fallback ranks by it where the embedder fails."""

    class Broken(kind):
        def embed(self, texts):
            raise EmbeddingError("the endpoint is busy")

    service = service_of(*CHUNKS, packer=by_embedding(Broken(), fallback="bm25"))
    packing = answers(service).packing

    assert "bm25" == packing.fallback
    assert [1, 2, 0] == [kept.index for kept in packing.kept]


def test_a_chunk_without_a_text_names_the_retriever():
    """What cannot be embedded is the fault of who answered it."""
    service = RetrievalService(
        [Fake("tea"), Fake({"content": 3})], SETTINGS, packer=by_embedding(Vectors())
    )
    with pytest.raises(RetrievalError, match="fake answered what cannot be packed") as caught:
        service.retrieve("tea")
    assert "fake" == caught.value.source


def test_nothing_to_embed():
    """Without chunks nobody is asked."""
    embedder = Vectors()
    assert "" == answers(service_of(packer=by_embedding(embedder))).packing.text
    assert [] == embedder.asked
