"""QdrantRetriever: the embedded collection, in memory and in a folder."""

import asyncio
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import embedding_server
import pytest
from service_support import SETTINGS, Embedder, Fake

from budgeteer import Chunk, InvalidArgumentError
from budgeteer.service import (
    LlmSettings,
    QdrantRetriever,
    RetrievalError,
    RetrievalService,
    Retriever,
)

qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
models = qdrant.models


class Axis(Embedder):
    """Embeds "chunk 30" as the angle that 30 stands for: near numbers are near."""

    def vector(self, text):
        from math import cos, sin

        number = int("".join(c for c in text if c.isdigit()) or 0) / 1_000
        return [cos(number), sin(number)]


@pytest.fixture
def retriever():
    retriever = QdrantRetriever("docs", embedder=Axis(), page_size=4)
    retriever.add([Chunk(f"chunk {i}", id=str(i), title=f"t{i}", source="s") for i in range(200)])
    yield retriever
    retriever.close()


def test_the_nearest_come_first(retriever):
    """The nearest chunks come back as they were put in, with a score that falls."""
    found = retriever.retrieve("chunk 0", 5)

    assert [f"chunk {i}" for i in range(5)] == [chunk.text for chunk in found]
    assert ("0", "t0", "s") == (found[0].id, found[0].title, found[0].source)
    scores = [chunk.score for chunk in found]
    assert sorted(scores, reverse=True) == scores
    assert isinstance(retriever, Retriever)
    assert [] == retriever.retrieve("chunk 0", 0)


def test_pages_grow(retriever):
    """Pages double, nothing comes twice, and the collection's end ends them."""
    pages = [[chunk.text for chunk in page] for page in retriever.pages("chunk 0")]

    assert [4, 8, 16, 32, 64, 76] == [len(page) for page in pages]
    assert [f"chunk {i}" for i in range(200)] == [text for page in pages for text in page]


def test_pages_that_bring_nothing_new_end(retriever, monkeypatch):
    """A server that repeats itself is not asked for ever."""
    once = retriever._nearest(retriever._vector("chunk 0", None), 4, 0)
    monkeypatch.setattr(retriever, "_nearest", lambda *_: once)

    assert [4] == [len(page) for page in retriever.pages("chunk 0")]


@pytest.mark.parametrize(("window", "most"), [(300, 124), (100_000, 200)])
def test_given_a_budget_when_retrieving_then_pages_are_read_until_it_is_full(
    window, most, retriever, monkeypatch
):
    """The service reads as many points as its budget can hold, and not all of them."""
    seen = []
    nearest = retriever._nearest

    def counted(*arguments):
        seen.extend(nearest(*arguments))
        return nearest(*arguments)

    monkeypatch.setattr(retriever, "_nearest", counted)
    settings = LlmSettings(model="gpt-4", context_window=window, max_output_tokens=0)
    result = RetrievalService(retriever, settings).retrieve("chunk 0")

    assert len(result.packing.kept) <= len(seen) <= most
    assert [f"chunk {i}" for i in range(len(result.packing.kept))] == [
        kept.text for kept in result.packing.kept
    ]
    assert (window > 300) == (len(result.packing.kept) == 200)


def test_given_huge_query_when_retrieving_then_qdrant_is_not_asked():
    """Neither the collection nor the embedder is asked where nothing is left."""
    embedder = Axis()
    retriever = QdrantRetriever("docs", embedder=embedder)
    with pytest.raises(ValueError, match="nothing is left for retrieval"):
        RetrievalService(retriever, SETTINGS).retrieve("tea " * 9_000)
    assert [] == embedder.asked
    assert retriever._client is None


def test_a_folder_stays(tmp_path):
    """A collection in a folder is there again; adding the same twice changes nothing."""
    for _ in range(2):
        retriever = QdrantRetriever("docs", embedder=Axis(), path=tmp_path / "store")
        retriever.add(["chunk 1", {"content": "chunk 2"}])
        found = retriever.retrieve("chunk 1", 9)
        retriever.close()
        assert ["chunk 1", "chunk 2"] == [chunk.text for chunk in found]


def test_the_vector_of_the_service():
    """Without an embedder of its own the retriever takes the service's vector."""
    embedder = Axis()
    retriever = QdrantRetriever("docs")
    retriever.add(["chunk 1", "chunk 9"], vectors=embedder.embed(["chunk 1", "chunk 9"]))
    service = RetrievalService([retriever, Fake("a")], SETTINGS, embedder=embedder)

    assert "chunk 9\n\nchunk 1\n\na" == service.retrieve("chunk 8").packing.text
    assert ["chunk 8"] == embedder.asked
    same = asyncio.run(service.aretrieve("chunk 8", timeout=30))
    assert "chunk 9\n\nchunk 1\n\na" == same.packing.text
    with pytest.raises(InvalidArgumentError, match="an embedder or a vector is required"):
        retriever.retrieve("chunk 8", 1)


@pytest.mark.parametrize("distance", ["COSINE", "DOT", "EUCLID", "MANHATTAN"])
def test_higher_scores_are_nearer(distance):
    """Where the collection measures a distance, the score is its negative."""
    client = qdrant.QdrantClient(":memory:")
    vectors = models.VectorParams(size=2, distance=models.Distance[distance])
    client.create_collection("docs", vectors_config={"v": vectors})
    points = [
        models.PointStruct(id=i, vector={"v": [1.0, i / 10]}, payload={"text": str(i)})
        for i in (2, 0, 1)
    ]
    client.upsert("docs", points)
    retriever = QdrantRetriever("docs", client=client, vector_name="v")
    query = [1.0, -0.2] if distance != "DOT" else [1.0, -1.0]

    scores = [(c.text, c.score) for c in retriever.retrieve("", 3, vector=query)]

    assert ["0", "1", "2"] == [text for text, _ in sorted(scores, key=lambda pair: -pair[1])]


def test_payloads():
    """Payloads of other programs are mapped, by name, by path, or by a function."""
    client = qdrant.QdrantClient(":memory:")
    client.create_collection(
        "docs", vectors_config=models.VectorParams(size=1, distance=models.Distance.DOT)
    )
    payload = {"page_content": "Tea.", "metadata": {"title": "T", "n": 1}, "extra": 2}
    client.upsert("docs", [models.PointStruct(id=3, vector=[1.0], payload=payload)])

    def first(**options):
        return QdrantRetriever("docs", client=client, **options).retrieve("", 1, vector=[1.0])[0]

    assert Chunk("Tea.", id="3", score=1.0, metadata={"title": "T", "n": 1}) == first()
    found = first(fields={"title": "metadata.title", "source": "extra", "id": "metadata.n"})
    assert ("T", "2", "1") == (found.title, found.source, found.id)
    assert "3 1.0" == first(to_chunk=lambda payload, identifier, score: f"{identifier} {score}")
    with pytest.raises(InvalidArgumentError, match=r"the point '3' must have a str under 'a\.b'"):
        first(fields={"text": "a.b"})
    assert [None] == [c.score for c in QdrantRetriever("docs", client=client).read(5)]


def test_given_a_point_without_a_text_then_the_error_names_the_retriever():
    """A chunk without a text is a typed error of the service."""
    client = qdrant.QdrantClient(":memory:")
    client.create_collection(
        "docs", vectors_config=models.VectorParams(size=1, distance=models.Distance.DOT)
    )
    client.upsert("docs", [models.PointStruct(id=3, vector=[1.0], payload={"secret": "x"})])
    retriever = QdrantRetriever("docs", client=client, embedder=Embedder(1))
    with pytest.raises(
        RetrievalError, match=r"qdrant:docs failed: the point '3' must have"
    ) as caught:
        RetrievalService(retriever, SETTINGS).retrieve("q")
    assert "secret" not in str(caught.value)


def test_given_no_collection_then_the_error_names_the_retriever():
    """A collection that is not there, or a server that does not answer, is a typed error."""
    with pytest.raises(
        RetrievalError, match=r"qdrant:nope failed: the collection 'nope' does not"
    ):
        RetrievalService(QdrantRetriever("nope", embedder=Embedder()), SETTINGS).retrieve("q")
    away = QdrantRetriever(
        "docs", embedder=Embedder(), url="http://127.0.0.1:9", timeout=1, name="away"
    )
    with pytest.raises(RetrievalError, match="away failed: ResponseHandlingException"):
        RetrievalService(away, SETTINGS).retrieve("q")
    away.close()


def test_threads_share_a_retriever(retriever):
    """Eight threads that read and write get what one alone gets."""
    expected = [c.text for c in retriever.retrieve("chunk 50", 20)]

    def work(i):
        retriever.add([f"chunk {500 + i}"])
        return [c.text for c in retriever.retrieve("chunk 50", 20)]

    with ThreadPoolExecutor(8) as pool:
        assert [expected] * 32 == list(pool.map(work, range(32)))


def test_reading_all(retriever):
    """All of a collection can be read, up to a limit."""
    assert 200 == len(retriever.read(10_000)) == len({c.text for c in retriever.read(200)})
    assert 7 == len(retriever.read(7))


class AsyncClient:
    """Asks as an AsyncQdrantClient does."""

    async def query_points(self):
        raise AssertionError("never asked")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collection": 3}, "collection must be a str, not int"),
        ({"path": "a", "url": "b"}, "only one of path, url and client can be given"),
        ({"collection": ""}, "collection must not be empty"),
        ({"url": ""}, "url must not be empty"),
        ({"api_key_env": "", "url": "b"}, "api_key_env must not be empty"),
        ({"path": ""}, "path must be the name of a file, not empty"),
        ({"path": 3}, "path must be a str or a path, not int"),
        ({"url": 3}, "url must be a str, not int"),
        ({"api_key_env": "KEY"}, "api_key_env needs a url to go with"),
        ({"embedder": 3}, "embedder must have embed_query, and int has not"),
        ({"to_chunk": 3}, "to_chunk must be callable, not int"),
        ({"to_chunk": print, "fields": {}}, "only one of fields and to_chunk can be given"),
        ({"fields": []}, "fields must be a mapping, not list"),
        ({"client": 3}, "client must be a QdrantClient or None, not int"),
        ({"client": AsyncClient()}, "client must be a QdrantClient, not the asynchronous Async"),
        ({"fields": {"txt": "a"}}, "a key of fields must be one of"),
        ({"fields": {"text": 3}}, r"fields\['text'\] must be a str, not int"),
        ({"page_size": 0}, "page_size must be from 1 to"),
        ({"timeout": 5}, "timeout needs a url to go with"),
        ({"timeout": 5, "path": "a"}, "timeout needs a url to go with"),
        ({"timeout": 0, "url": "b"}, "timeout must be from 1 to"),
        ({"vector_name": 3}, "vector_name must be a str, not int"),
        ({"name": 3}, "name must be a str, not int"),
    ],
)
def test_bad_arguments(options, message):
    """A wrong argument is named."""
    with pytest.raises(InvalidArgumentError, match=message):
        QdrantRetriever(**{"collection": "docs", **options})


def test_bad_additions():
    """Chunks without vectors, or with too few, are refused."""
    with pytest.raises(InvalidArgumentError, match="vectors are required without an embedder"):
        QdrantRetriever("docs").add(["a"])
    with pytest.raises(InvalidArgumentError, match="one for each of 2 chunks, not 1"):
        QdrantRetriever("docs").add(["a", "b"], vectors=[[1.0]])
    for wrong in (3, ["a"], None):
        with pytest.raises(InvalidArgumentError, match="a vector must be a sequence of floats"):
            QdrantRetriever("docs").add(["a"], vectors=[wrong])


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (3, "vectors must be a sequence of vectors, not int"),
        ([[1.0, 0.0], [1.0]], r"vectors\[1\] must have 2 floats, as vectors\[0\] has, not 1"),
        ([[], []], r"vectors\[0\] must have floats, not 0"),
        ([[1.0], [math.nan]], r"vectors\[1\] must have finite numbers alone"),
        ([[1.0], [10**400]], "a vector must be a sequence of floats, not list"),
    ],
)
def test_vectors_that_are_none(vectors, message):
    """Vectors that no collection can hold are refused before there is a collection."""
    retriever = QdrantRetriever("docs")
    with pytest.raises(InvalidArgumentError, match=message):
        retriever.add(["a", "b"], vectors=vectors)
    with pytest.raises(InvalidArgumentError, match="the collection 'docs' does not exist"):
        retriever.read(1)


def test_no_additions():
    """No chunks make no collection."""
    retriever = QdrantRetriever("docs", embedder=Axis())
    retriever.add([])
    with pytest.raises(InvalidArgumentError, match="the collection 'docs' does not exist"):
        retriever.retrieve("tea", 1)


def test_without_the_package(monkeypatch):
    """Without qdrant-client the error says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RetrievalError, match=r"pip install 'budgeteer\[qdrant\]'"):
        QdrantRetriever("docs")


def test_the_key_is_no_secret_told(monkeypatch):
    """The key is read when it is needed, and stands in no repr."""
    monkeypatch.setenv("KEY", "secret")
    retriever = QdrantRetriever("docs", url="http://127.0.0.1:9", api_key_env="KEY")

    assert "secret" not in str(vars(retriever))
    assert "qdrant_client" in sys.modules


@pytest.mark.parametrize("value", [None, " "])
@pytest.mark.parametrize(
    ("name", "named"),
    [("NO_KEY", "variable NO_KEY"), ("sk-1234", "variable of api_key_env")],
)
def test_a_key_that_is_not_set(name, named, value, monkeypatch):
    """A server is not asked without the key that it was said to need."""
    monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv(name, value)
    retriever = QdrantRetriever("docs", url="http://127.0.0.1:9", api_key_env=name)

    expected = f"^qdrant:docs: the environment {named} is not set; it must hold the key$"
    with pytest.raises(RetrievalError, match=expected):
        retriever.read(1)


ENTRY = "{type: qdrant, collection: docs, path: store, name: vectors"


@pytest.fixture
def store(tmp_path):
    retriever = QdrantRetriever("docs", embedder=Axis(), path=tmp_path / "store")
    retriever.add([Chunk(f"chunk {i} about tea", source="s" if i == 7 else "") for i in range(30)])
    retriever.close()


@pytest.mark.usefixtures("store")
def test_a_source_of_a_configuration(configured):
    """A configuration packs a collection beside files; without embedding all of it is read."""
    config = configured(
        f"sources: [{ENTRY}}}, {{type: inline, text: More about tea., priority: 1}}]"
    )

    chunks = config.chunks()
    assert "More about tea." == chunks[0].text
    assert {f"chunk {i} about tea" for i in range(30)} == {chunk.text for chunk in chunks[1:]}
    assert {"vectors", "s"} == {chunk.source for chunk in chunks[1:]}
    assert 31 == len(config.query("tea").kept)
    assert 5 == len(configured(f"sources: [{ENTRY}, limit: 5}}]").chunks())


@pytest.mark.usefixtures("store")
def test_the_command_line_asks_for_the_nearest(configured, monkeypatch, capsys):
    """With embedding the nearest are read, nearest first; the settings reach the embedder."""
    from budgeteer.cli import main
    from budgeteer.embedding import OpenAIEmbedder

    got = []

    def embed_query(self, query):
        got.append(self)
        return Axis().embed_query(query)

    monkeypatch.setattr(OpenAIEmbedder, "embed_query", embed_query)
    embedding = "embedding: {model: m, url: 'http://127.0.0.1:9', api_key_env: null}"
    config = configured(
        f"budget: {{ranking: manual, max_tokens: 12}}\nsources: [{ENTRY}, limit: 3, {embedding}}}]"
    )

    assert 0 == main(["query", "-c", str(config.path), "-t", "chunk 9", "-o", "json"])

    import json

    answer = json.loads(capsys.readouterr().out)
    assert "chunk 9 about tea" == answer["chunks"][0]["content"]
    assert 3 == len(answer["chunks"]) + len(answer["dropped"])
    assert [OpenAIEmbedder("m", url="http://127.0.0.1:9", api_key_env=None)] == got


@pytest.fixture
def embedded(tmp_path, endpoint):
    """A collection that was made with the vectors of an endpoint."""
    from budgeteer.embedding import OpenAIEmbedder

    with OpenAIEmbedder(url=endpoint.url, api_key_env=None) as embedder:
        retriever = QdrantRetriever("docs", embedder=embedder, path=tmp_path / "store")
        retriever.add([f"chunk {i}" for i in range(30)])
        retriever.close()
    endpoint.questions.clear()
    return f"{{url: '{endpoint.url}', api_key_env: null, cache_dir: null}}"


@pytest.mark.usefixtures("embedded")
def test_the_budgets_embedding_finds_the_nearest(configured, embedded, endpoint, capsys):
    """Without embedding of its own a collection is searched by that of the budget."""
    from budgeteer.cli import main

    budget = f"budget: {{ranking: manual, max_tokens: 12, embedding: {embedded}}}"
    config = configured(f"{budget}\nsources: [{ENTRY}, limit: 3}}]")
    assert "chunk 9" == config.chunks("chunk 9")[0].text
    assert 3 == len(config.chunks("chunk 9"))
    assert [["chunk 9"]] * 2 == endpoint.inputs()
    assert 0 == main(["query", "-c", str(config.path), "-t", "chunk 7"])
    assert "chunk 7" in capsys.readouterr().out

    # Its own goes first; null, no query and an empty one read what is there.
    endpoint.questions.clear()
    own = embedded.replace(", cache_dir: null", ", model: own")
    assert (
        "chunk 9"
        == configured(f"{budget}\nsources: [{ENTRY}, embedding: {own}}}]")
        .chunks("chunk 9")[0]
        .text
    )
    assert ["own"] == [question["model"] for question in endpoint.questions]
    whole = configured(f"{budget}\nsources: [{ENTRY}, embedding: null}}]")
    assert 30 == len(whole.chunks("chunk 9"))
    assert 3 == len(config.chunks()) == len(config.chunks(""))
    assert 1 == len(endpoint.questions)


@pytest.mark.usefixtures("embedded")
def test_the_budgets_endpoint_fails(configured, embedded, endpoint):
    """It is asked whatever the ranking, and its error is a ConfigError; null keeps it out."""
    from budgeteer.config import ConfigError

    budget = f"budget: {{ranking: manual, embedding: {embedded}}}"
    endpoint.script.append(embedding_server.status(401))
    config = configured(f"{budget}\nsources: [{ENTRY}}}]")
    with pytest.raises(ConfigError, match="401"):
        config.query("chunk 9")
    config.embedder.close()
    assert [["chunk 9"]] == endpoint.inputs()

    whole = configured(f"{budget}\nsources: [{ENTRY}, embedding: null}}]")
    assert "chunk 9" in whole.query("chunk 9").text
    whole.embedder.close()
    assert 1 == len(endpoint.questions)


@pytest.mark.usefixtures("store")
def test_another_size_of_vectors(configured, endpoint):
    """A collection that was made with another embedding is an error that names it."""
    from budgeteer.config import ConfigError

    said = f"{{url: '{endpoint.url}', api_key_env: null, cache_dir: null}}"
    config = configured(f"budget: {{embedding: {said}}}\nsources: [{ENTRY}}}]")
    with pytest.raises(ConfigError, match="vectors failed: "):
        config.chunks("chunk 9")
    config.embedder.close()


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{type: qdrant}", "sources[0].collection is required"),
        ("{type: qdrant, collection: a}", "sources[0] must have a path or a url, and not both"),
        (ENTRY + ", url: b}", "sources[0] must have a path or a url, and not both"),
        (ENTRY + ", api_key_env: b}", "sources[0].api_key_env needs a url to go with"),
        (ENTRY + ", limit: 0}", "sources[0].limit must be from 1 to"),
        (ENTRY + ", fields: {txt: b}}", "sources[0].fields.txt is not a known key"),
        (ENTRY + ", fields: {text: 3}}", "sources[0].fields.text must be a str, not int"),
        (ENTRY + ", embedding: {modle: b}}", "sources[0].embedding.modle is not a known key"),
        (ENTRY + ", embedding: {model: 3}}", "sources[0].embedding.model must be a str"),
        (
            ENTRY + ", embedding: {batch_size: 3}}",
            "sources[0].embedding.batch_size is not a",
        ),
        (
            ENTRY + ", embedding: {url: 'http://e.example'}}",
            "api_key_env: null sends none, allow_insecure_http: true allows it",
        ),
        ("{type: qdrant, collection: a, path: nope}", "sources[0].path: "),
        ("{type: qdrant, collection: '', path: store}", "sources[0].collection must not be empty"),
        ("{type: qdrant, collection: a, url: ''}", "sources[0].url must not be empty"),
    ],
)
def test_bad_sources(entry, message, configured):
    """An entry that says what it must not is a ConfigError that names the key."""
    from budgeteer.config import ConfigError

    with pytest.raises(ConfigError) as caught:
        configured(f"sources: [{entry}]")
    assert message in str(caught.value)


@pytest.mark.usefixtures("store")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # qdrant-client leaves its lock file open
)
def test_a_source_that_fails(configured, tmp_path):
    """A collection that is not there, or is open elsewhere, is a ConfigError."""
    from budgeteer.config import ConfigError

    config = configured("sources: [{type: qdrant, collection: nope, path: store}]")
    with pytest.raises(ConfigError, match="nope failed: the collection 'nope' does not exist"):
        config.chunks()
    holder = QdrantRetriever("docs", embedder=Axis(), path=tmp_path / "store")
    holder.retrieve("chunk 1", 1)
    with pytest.raises(ConfigError, match="cannot be opened; another process may have it open"):
        config.chunks()
    holder.close()
