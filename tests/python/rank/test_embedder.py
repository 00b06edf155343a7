"""Embedders of packers: what they are asked, and what becomes of what they answer."""

import asyncio
import gc
import json
import pickle
import warnings
from dataclasses import replace

import embedding_server as server
import numpy as np
import pytest
from support import Liar

from budgeteer import Chunk, InvalidArgumentError, Packer, pack, ranking
from budgeteer.embedding import EmbeddingError, OpenAIEmbedder
from budgeteer.ranking import Embedding
from budgeteer.service import LlmSettings, RetrievalService

CHUNKS = ["Rye bread.", "Green tea.", "Coffee."]
WANTED = np.array([1, 0, 0], dtype=np.float32)
FOUND = np.array([[0, 2, 0], [3, 4, 0], [5, 0, 0]], dtype=np.float32)


class Table:
    """An embedder that knows a few words, asks nobody, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked.append(list(texts))
        words = ("tea", "bread", "coffee")
        rows = [[text.lower().count(word) for word in words] for text in texts]
        return np.array(rows, np.float32).reshape(-1, 3)


def test_embedder(backend):
    """What is not given is embedded: titles with their texts, and the query."""
    table = Table()
    packer = Packer(99, ranking=Embedding(table))
    chunks = [Chunk("Rye."), Chunk("Green.", title="Tea"), {"text": "Bread.", "title": ""}, ""]
    packing = packer.pack("tea?", chunks)

    assert [["Rye.", "Tea\nGreen.", "Bread.", ""], ["tea?"]] == table.asked
    assert ([1, 0, 2], [1.0, 0.0, 0.0]) == (
        [kept.index for kept in packing.kept],
        [kept.score for kept in packing.kept],
    )
    table.asked.clear()
    given = packer.pack("tea?", CHUNKS, vectors=np.eye(3, dtype=np.float32)[[1, 0, 2]])
    assert ([["tea?"]], 1) == (table.asked, given.kept[0].index)
    table.asked.clear()
    assert 2 == packer.pack("tea?", CHUNKS, vectors=(WANTED, FOUND)).kept[0].index
    assert [] == table.asked


@pytest.mark.parametrize(("query", "chunks"), [("", CHUNKS), ("tea", []), ("", [])])
def test_nothing_to_embed(backend, query, chunks):
    """For an empty query, or no chunks, nothing is asked and every score is 0."""
    table = Table()
    packing = Packer(99, ranking=Embedding(table)).pack(query, chunks)

    assert ([], [0.0] * len(chunks)) == (table.asked, [kept.score for kept in packing.kept])


def test_query_of_its_own(backend):
    """Where the embedder has a method for queries, that is asked."""

    class Both(Table):
        def embed_query(self, text):
            self.asked.append(text)
            return [0, 1, 0]

    both = Both()
    packing = Packer(99, ranking=Embedding(both)).pack("tea", CHUNKS)

    assert ([CHUNKS, "tea"], 0) == (both.asked, packing.kept[0].index)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "the embedder's vectors must be an array of float16, float32 or float64, not None"),
        (np.ones((2, 3)), "the embedder's vectors must have a row for each of 3 chunks, not 2"),
        (np.full((3, 3), np.nan), "the embedder's vectors must be finite"),
        (np.ones((3, 2)), "the embedder's vectors have 2 dimensions, that of the query 3"),
    ],
)
@pytest.mark.parametrize("fallback", [None, "bm25"])
def test_bad_embedder(backend, caplog, answer, message, fallback):
    """What an embedder answers is checked; it is an EmbeddingError, or BM25 stands in."""

    class Bad:
        def embed(self, texts):
            return answer if len(texts) == 3 else np.ones((1, 3))

    packer = Packer(99, ranking=Embedding(Bad(), fallback=fallback))
    if fallback is None:
        with pytest.raises(EmbeddingError, match=f"^{message}$"):
            packer.pack("tea", CHUNKS)
    else:
        assert "bm25" == packer.pack("tea", CHUNKS).fallback
        assert [f"ranking by bm25, as embedding failed: {message}"] == caplog.messages


def test_options_of_embedders(backend):
    """An embedder is what can embed; only beside one there is a fallback."""
    for bad in (3, "text-embedding-3-small"):
        found = f"^embedder must have a method embed, not {type(bad).__name__}$"
        with pytest.raises(InvalidArgumentError, match=found):
            Embedding(bad)
    with pytest.raises(InvalidArgumentError, match=r"^embedder must be an object .*class Table; "):
        Embedding(Table)
    with pytest.raises(InvalidArgumentError, match=r"^fallback must be None where there is no"):
        Embedding(fallback="bm25")
    for bad, shown in (("bm26", "'bm26'"), (3, "int"), (ranking.Hybrid(), "Hybrid")):
        message = f"^fallback must be 'lexical', 'bm25', a Lexical, a Bm25 or None, not {shown}$"
        with pytest.raises(InvalidArgumentError, match=message):
            Embedding(Table(), fallback=bad)


@pytest.fixture
def embedder(endpoint, tmp_path):
    with OpenAIEmbedder(
        url=endpoint.url, api_key_env=None, cache_dir=tmp_path, backoff=0.001, max_retries=0
    ) as embedder:
        yield embedder


def test_endpoint(backend, embedder, endpoint):
    """The first packing embeds all, the next one its query alone; async gives the same."""
    packer = Packer(99, ranking=Embedding(embedder))
    packing = packer.pack("green tea", CHUNKS)

    scores = ranking.cosine_scores(server.expected(["green tea"]), server.expected(CHUNKS))
    order = sorted(range(3), key=lambda i: -scores[i])
    assert [(i, scores[i]) for i in order] == [(k.index, k.score) for k in packing.kept]
    assert [CHUNKS, ["green tea"]] == [question["input"] for question in endpoint.questions]
    packer.pack("rye", CHUNKS)
    assert [["rye"]] == [question["input"] for question in endpoint.questions[2:]]

    later = asyncio.run(packer.apack("green tea", CHUNKS))
    assert packing.to_dict() == later.to_dict()


def resized(size):
    """A behaviour that answers vectors of *size* numbers."""
    return lambda handler, question: handler.say(json.dumps(server.answer(question, size)))


@pytest.mark.parametrize("ask", [Packer.pack, lambda *args: asyncio.run(Packer.apack(*args))])
@pytest.mark.parametrize("is_new", [False, True], ids=["same process", "new process"])
def test_another_size_than_the_cache_has(backend, embedder, endpoint, ask, is_new):
    """Where the model behind a URL changes its size, a call embeds anew what the cache has."""
    packer = Packer(99, ranking=Embedding(embedder))
    ask(packer, "green tea", CHUNKS)
    endpoint.always = resized(9)
    if is_new:
        packer = Packer(99, ranking=Embedding(replace(embedder)))
    for query in ("green tea", "rye"):
        packing = ask(packer, query, CHUNKS)
        scores = ranking.cosine_scores(server.expected([query], 9), server.expected(CHUNKS, 9))
        assert {*enumerate(scores)} == {(kept.index, kept.score) for kept in packing.kept}
    inputs = endpoint.inputs()
    assert [CHUNKS, ["green tea"], ["green tea"], CHUNKS, ["rye"]] == inputs


def test_fallback(backend, embedder, endpoint, caplog):
    """When the endpoint fails, BM25 stands in, without min_score, and the packing says so."""
    endpoint.always = server.status(500)
    packer = Packer(99, ranking=Embedding(embedder, fallback="bm25"), min_score=0.99)
    for packing in (packer.pack("tea", CHUNKS), asyncio.run(packer.apack("tea", CHUNKS))):
        expected = pack("tea", CHUNKS, 99)
        assert ("bm25", None) == (packing.fallback, expected.fallback)
        assert {**expected.to_dict(), "fallback": "bm25"} == packing.to_dict()
        assert "by bm25, as embedding failed) was kept" in packing.explain(0)
        assert "bm25" == pickle.loads(pickle.dumps(packing)).fallback
    assert 2 == len(caplog.records)

    strict = Packer(99, ranking=Embedding(embedder))
    with pytest.raises(EmbeddingError) as caught:
        strict.pack("tea", CHUNKS)
    assert 500 == caught.value.status
    with pytest.raises(EmbeddingError):
        asyncio.run(strict.apack("tea", CHUNKS))


def test_all_texts_empty(backend, embedder, endpoint):
    """Where no text is worth sending, nothing is sent, though no size is known."""
    local = OpenAIEmbedder("m", url=endpoint.url, api_key_env=None)
    packing = Packer(99, ranking=Embedding(local)).pack("tea", ["", ""])

    assert (["empty", "empty"], []) == ([d.reason for d in packing.dropped], endpoint.questions)


def test_no_numbers_for_texts(backend):
    """Vectors without a number, for texts that are not empty, are no vectors."""

    class Empty(Async):
        def embed(self, texts):
            return np.zeros((len(texts), 3 if len(texts) == 1 else 0), np.float32)

    packer = Packer(99, ranking=Embedding(Empty()))
    message = r"^the embedder's vectors must have the shape \(n, d\), not \(3, 0\)$"
    with pytest.raises(EmbeddingError, match=message):
        packer.pack("tea", CHUNKS)
    with pytest.raises(EmbeddingError, match=message):
        asyncio.run(packer.apack("tea", CHUNKS))


def test_async_without_async(backend):
    """An embedder without aembed cannot be asked by apack; nothing else needs one."""
    packer = Packer(99, ranking=Embedding(Table()))
    with pytest.raises(InvalidArgumentError, match=r"^embedder must have a method aembed, not Ta"):
        asyncio.run(packer.apack("tea", CHUNKS))
    packing = asyncio.run(packer.apack("tea", CHUNKS, vectors=(WANTED, FOUND)))
    assert 2 == packing.kept[0].index
    assert "tea" == asyncio.run(Packer(1).apack(Liar("tea"), ["tea"])).text


class Async(Table):
    """An embedder whose coroutines answer what its methods do; it has no way for queries alone."""

    async def aembed(self, texts):
        return self.embed(texts)


def test_an_embedder_without_a_way_for_queries(backend):
    """Where an embedder has no aembed_query, aembed embeds the query as a text, as embed does."""
    packer = Packer(99, ranking=Embedding(Async()))
    packing = asyncio.run(packer.apack("tea", CHUNKS))
    assert packer.pack("tea", CHUNKS).to_dict() == packing.to_dict()
    assert packing.kept[0].score > 0


def test_no_query_is_not_embedded(backend):
    """Without a query only the chunks are embedded, with and without async alike."""
    table = Async()
    packer = Packer(99, ranking=Embedding(table))
    packing = asyncio.run(packer.apack("", CHUNKS))
    assert packer.pack("", CHUNKS).to_dict() == packing.to_dict()
    assert [] == [texts for texts in table.asked if texts != CHUNKS]


def test_vectors_of_chunks_alone(backend):
    """apack with vectors of the chunks embeds the query, and nothing else, as pack does."""
    table = Async()
    packer = Packer(99, ranking=Embedding(table))
    vectors = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    packing = asyncio.run(packer.apack("tea", CHUNKS, vectors=vectors))
    assert [["tea"]] == table.asked
    assert packer.pack("tea", CHUNKS, vectors=vectors).to_dict() == packing.to_dict()


class Huge(Async):
    """An embedder whose vectors of queries hold a number that no float can."""

    def embed_query(self, text):
        return [10**400, 0, 0]

    async def aembed_query(self, text):
        return self.embed_query(text)


class Near:
    """A retriever that takes the query's vector."""

    takes_vector = True

    def retrieve(self, query, limit, *, vector):
        return CHUNKS


def test_a_number_that_is_no_float(backend, caplog):
    """A query's vector beyond the range of floats is an EmbeddingError, or BM25 stands in."""
    with pytest.raises(EmbeddingError, match=r"^the embedder's vector of the query must hold fin"):
        Packer(99, ranking=Embedding(Huge())).pack("tea", CHUNKS)
    packer = Packer(99, ranking=Embedding(Huge(), fallback="bm25"))
    assert "bm25" == packer.pack("tea", CHUNKS).fallback
    assert "bm25" == asyncio.run(packer.apack("tea", CHUNKS)).fallback
    service = RetrievalService(
        Near(), LlmSettings("gpt-4o"), embedder=packer.ranking.embedder, packer=packer
    )
    assert "bm25" == service.retrieve("tea").packing.fallback
    assert "bm25" == asyncio.run(service.aretrieve("tea")).packing.fallback


class Swapped(Table):
    """An embedder whose method is asynchronous, and whose coroutine is not."""

    async def embed(self, texts):
        return Table.embed(self, texts)

    def aembed(self, texts):
        return Table.embed(self, texts)


class SwappedQuery(Async):
    """The same of its methods for queries."""

    async def embed_query(self, text):
        return [1, 0, 0]

    def aembed_query(self, text):
        return [1, 0, 0]


@pytest.mark.parametrize(
    ("embedder", "name", "kind"),
    [(Swapped(), "embed", "ndarray"), (SwappedQuery(), "embed_query", "list")],
)
def test_methods_of_the_wrong_kind(backend, embedder, name, kind):
    """A method that must be awaited, or cannot be, is named, and no coroutine is left behind."""
    packer = Packer(99, ranking=Embedding(embedder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(EmbeddingError) as caught:
            packer.pack("tea", CHUNKS)
        assert str(caught.value) == (
            f"the embedder's {name} must answer vectors, not coroutine; asynchronous calls await "
            f"a method that is named a{name}"
        )
        with pytest.raises(EmbeddingError) as caught:
            asyncio.run(packer.apack("tea", CHUNKS))
        assert str(caught.value) == (
            f"the embedder's a{name} must be a coroutine function, async def, and answers {kind}"
        )
        gc.collect()
