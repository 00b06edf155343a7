"""OpenAIEmbedder: what it asks and what it answers."""

import asyncio
import copy
import io
import pickle
import time
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import embedding_server as server
import numpy as np
import pytest
from embedding_server import KEY

import budgeteer
from budgeteer import InvalidArgumentError, embedding
from budgeteer.embedding import EmbeddingError, OpenAIEmbedder


def with_options(embedder, **options):
    return replace(embedder, **options)


def both(embedder, texts):
    """Embed in both ways; see that they agree."""
    sync = embedder.embed(texts)
    other = asyncio.run(embedder.aembed(texts))
    embedder.close()

    assert (sync.dtype, sync.shape) == (other.dtype, other.shape)
    assert sync.tobytes() == other.tobytes()
    return sync


def test_vectors(embedder):
    """The vectors are float32, in the order of the texts, as the endpoint gave them."""
    texts = ["green tea", "black tea", " ", "日本のお茶", "<|endoftext|>", "\x00", "\U0001f375"]
    vectors = both(embedder, texts)

    assert (np.float32, (7, 8)) == (vectors.dtype, vectors.shape)
    assert server.expected(texts).tobytes() == vectors.tobytes()
    assert vectors.flags.c_contiguous
    assert vectors.flags.writeable


def test_the_question(endpoint, embedder):
    """The question is that of the protocol, and has nothing else in it."""
    with_options(embedder, model="m", dimensions=5).embed(("a", "b"))

    expected = {"input": ["a", "b"], "model": "m", "encoding_format": "float", "dimensions": 5}
    assert [expected] == endpoint.questions
    headers = {name.lower(): value for name, value in endpoint.headers[0].items()}
    assert f"Bearer {KEY}" == headers["authorization"]
    assert "application/json" == headers["content-type"]
    assert "budgeteer" == headers["user-agent"]


def test_the_query_of_the_url(endpoint, embedder):
    """A URL is used whole, with its query."""
    with_options(embedder, url=endpoint.url + "?api-version=2&x=%20").embed(["a"])

    assert ["/v1/embeddings?api-version=2&x=%20"] == endpoint.paths


def test_a_query(endpoint, embedder, tmp_path):
    """A query's vector is one row, and is asked for each time."""
    cached = with_options(embedder, cache_dir=tmp_path)
    for _ in range(2):
        assert np.array_equal(server.expected(["tea"])[0], cached.embed_query("tea"))
        assert np.array_equal(server.expected(["tea"])[0], asyncio.run(cached.aembed_query("tea")))
    cached.close()

    assert [["tea"]] * 4 == endpoint.inputs()


def test_the_next_query_embeds_the_query_only(endpoint, embedder, tmp_path):
    """The first query embeds all chunks, the next ones nothing but the query."""
    chunks = [f"chunk {i}" for i in range(300)]
    for number, query in enumerate(["what", "who", "where"]):
        with with_options(embedder, cache_dir=tmp_path) as cached:
            assert np.array_equal(server.expected(chunks), cached.embed(chunks))
            cached.embed_query(query)

        assert 3 + 1 + number == len(endpoint.questions)
        assert [query] == endpoint.inputs()[-1]


def test_nothing_to_send(endpoint, embedder):
    """No texts, and empty ones, need no request and no key."""
    keyless = with_options(embedder, api_key_env="NO_SUCH_VARIABLE")
    assert (0, 1_536) == both(keyless, []).shape
    assert (0, 0) == both(with_options(keyless, model="m"), []).shape
    assert (0, 9) == both(with_options(keyless, model="m", dimensions=9), iter(())).shape
    assert np.array_equal(np.zeros((2, 1_536)), both(keyless, ["", ""]))

    assert [] == endpoint.questions


def test_empty_texts(endpoint, embedder):
    """An empty text is zeros among the others, and is not sent."""
    vectors = both(embedder, ["", "a", "", "b"])

    assert np.array_equal(np.zeros((2, 8)), vectors[[0, 2]])
    assert np.array_equal(server.expected(["a", "b"]), vectors[[1, 3]])
    assert [["a", "b"]] * 2 == endpoint.inputs()


def test_a_text_that_comes_twice(endpoint, embedder):
    """A text that comes twice is sent once."""
    texts = ["a", "b", "a", "a", "c", "b"]

    assert np.array_equal(server.expected(texts), both(embedder, texts))
    assert [["a", "b", "c"]] * 2 == endpoint.inputs()


def test_lone_surrogates(endpoint, embedder):
    """A lone surrogate is sent as U+FFFD, two that make a pair as their character."""
    both(embedder, ["a\ud800b", "\ud83c\udf75", "\udc00\ud800"])

    assert ["a\ufffdb", "\U0001f375", "\ufffd\ufffd"] == endpoint.inputs()[0]


def test_batches_by_number(endpoint, embedder):
    """No request has more texts than batch_size, and together they have all."""
    texts = [f"text {i}" for i in range(50)]
    vectors = both(with_options(embedder, batch_size=7), texts)

    assert np.array_equal(server.expected(texts), vectors)
    assert [1, 1] + [7] * 14 == sorted(map(len, endpoint.inputs()))


def test_batches_by_bytes(endpoint, embedder):
    """No request has more bytes than max_batch_bytes, but for one text that has."""
    texts = ["é" * 40 + str(i) for i in range(10)] + ["x" * 500] + ["y" * 60]
    both(with_options(embedder, max_batch_bytes=200), texts)

    sizes = [sum(len(text.encode()) for text in texts) for texts in endpoint.inputs()]
    assert sorted([*[162] * 5, 500, 60] * 2) == sorted(sizes)


def slowly(handler, question):
    time.sleep(0.1)
    server.well(handler, question)


def test_a_few_requests_at_once(endpoint, embedder):
    """As many requests are under way as max_concurrency says, and no more."""
    endpoint.always = slowly
    texts = [f"text {i}" for i in range(9)]
    few = with_options(embedder, batch_size=1, max_concurrency=3)
    for embed in (few.embed, lambda texts: asyncio.run(few.aembed(texts))):
        endpoint.most = 0
        assert np.array_equal(server.expected(texts), embed(texts))
        assert 3 == endpoint.most


def test_connections_are_kept(endpoint, embedder):
    """Calls from threads, and those within ``async with``, use connections again."""
    for i in range(5):
        embedder.embed([str(i)])
    assert 1 == endpoint.connections

    async def work():
        async with embedder, embedder:
            for i in range(5):
                await embedder.aembed([str(i)])

    asyncio.run(work())
    assert 2 == endpoint.connections


def test_cookies_are_not_kept(endpoint, embedder):
    """A cookie of the endpoint is never sent back."""
    endpoint.script.append(server.status(500, Set_Cookie="a=b; Path=/"))
    embedder.embed(["a"])

    assert 2 == len(endpoint.headers)
    assert not [name for headers in endpoint.headers for name in headers if name == "Cookie"]


def test_proxies_are_ignored(endpoint, embedder, monkeypatch):
    """Nothing but the URL is contacted, whatever the environment says of proxies."""
    with server.Endpoint() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        both(embedder, ["a"])
        assert [] == proxy.questions

    assert 2 == len(endpoint.questions)


def test_long_texts(endpoint, embedder):
    """A text above the model's limit is an error that names it, before anything is sent."""
    texts = ["a", "tea" + " tea" * 8_190, "tea " * 8_200]
    for call in (embedder.embed, lambda texts: asyncio.run(embedder.aembed(texts))):
        with pytest.raises(EmbeddingError, match=r"^texts\[2\] has more than the 8191 ") as caught:
            call(texts)
        assert 2 == caught.value.index
        assert "tea" not in str(caught.value)
        assert str(caught.value).endswith("; the option truncate cuts it")
    assert [] == endpoint.questions

    with pytest.raises(EmbeddingError, match=r"^text has more than the 3 tokens"):
        with_options(embedder, model="m", max_input_tokens=3).embed_query("one two three four")
    both(with_options(embedder, model="m"), texts)


def test_long_texts_cut(endpoint, embedder, caplog):
    """On request a text above the limit is cut to it; the log says so of a query."""
    embedder = with_options(embedder, max_input_tokens=3, truncate=True)
    both(embedder, ["one two three four", "one"])
    assert ["one two three", "one"] == endpoint.inputs()[0]
    assert [] == caplog.records

    endpoint.questions.clear()
    with embedder:
        embedder.embed_query("one two three")
        embedder.embed_query("one two three four")
        asyncio.run(embedder.aembed_query("one two three four"))
    assert [["one two three"]] * 3 == endpoint.inputs()
    expected = (3, embedder.model)
    ours = [record for record in caplog.records if record.name == "budgeteer"]
    assert [expected] * 2 == [(record.max_input_tokens, record.model) for record in ours]


def test_no_key_is_sent(endpoint, embedder):
    """api_key_env=None sends no key, not even one that is there."""
    both(with_options(embedder, api_key_env=None), ["a"])

    assert not [1 for headers in endpoint.headers for name in headers if "auth" in name.lower()]


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_no_key_is_there(endpoint, embedder, monkeypatch, value):
    """Without the key nothing is sent, and the error names the variable."""
    monkeypatch.delenv("OPENAI_API_KEY")
    if value is not None:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    for call in (embedder.embed, lambda texts: asyncio.run(embedder.aembed(texts))):
        with pytest.raises(
            EmbeddingError, match=r"^the environment variable OPENAI_API_KEY is not set; it must"
        ):
            call(["a"])
    assert [] == endpoint.questions


@pytest.mark.parametrize("value", ["sk-\u00e9", "sk-a\nX-Other: b", "sk a"])
def test_a_key_that_no_header_carries(endpoint, embedder, monkeypatch, value):
    """A key that would change the request is refused, unquoted."""
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(
        EmbeddingError,
        match=r"^the environment variable OPENAI_API_KEY must hold "
        r"printable ASCII without spaces$",
    ):
        embedder.embed(["a"])
    assert [] == endpoint.questions


def test_the_key_is_read_at_each_call(endpoint, embedder, monkeypatch):
    """A key that is changed in the environment holds from the next call on; its edges are cut."""
    embedder.embed(["a"])
    monkeypatch.setenv("OPENAI_API_KEY", " other\r\n")
    embedder.embed(["a"])

    assert [f"Bearer {KEY}", "Bearer other"] == [h["Authorization"] for h in endpoint.headers]


def test_pickle_and_copies(embedder, tmp_path):
    """A copy has the options and its own connections; embedders are equal by their options."""
    embedder = with_options(embedder, cache_dir=tmp_path, dimensions=4)
    embedder.embed(["a"])
    for other in (
        pickle.loads(pickle.dumps(embedder)),
        copy.copy(embedder),
        copy.deepcopy(embedder),
    ):
        assert (embedder, hash(embedder)) == (other, hash(other))
        assert {} == other._processes
        assert np.array_equal(server.expected(["a"], 4), other.embed(["a"]))
        other.close()
    embedder.close()

    assert embedder != with_options(embedder, dimensions=5)


def test_pickled_error():
    """An error survives pickling with all that it says."""
    error = EmbeddingError("m", status=429, code="c", is_retryable=True, retry_after=1.5, index=3)
    other = pickle.loads(pickle.dumps(error))

    assert (str(error), vars(error)) == (str(other), vars(other))
    assert isinstance(error, budgeteer.BudgeteerError)


def test_frozen(embedder):
    """An embedder is immutable."""
    with pytest.raises(FrozenInstanceError):
        embedder.url = "https://elsewhere.example"


def test_repr(tmp_path):
    """repr says what differs from the defaults, and no query of the URL."""
    embedder = OpenAIEmbedder(
        "m", url="https://e.example:1/v1?key=abc", cache_dir=tmp_path, batch_size=2
    )

    expected = f"'m', url='https://e.example:1/v1', cache_dir={str(tmp_path)!r}, batch_size=2"
    assert f"OpenAIEmbedder({expected})" == repr(embedder)


BAD = [
    ({"model": ""}, "model must be a name in printable characters"),
    ({"model": 1}, "model must be a str, not int"),
    ({"model": "a\nb"}, "model must be a name in printable characters"),
    ({"url": None}, "url must be a str, not None"),
    *(
        ({"url": url}, "url must be the full http or https URL of the endpoint, in ASCII")
        for url in [
            "",
            "api.openai.com/v1",
            "ftp://a/b",
            "file:///etc/passwd",
            "https://",
            "http:a",
            "https://a:b/c",
            "https://a/ b",
            "https://a/#b",
            "https://\u00e9.example/",
            "https://[::1/",
            "https://a:99999/",
            "https://a\n/",
            "unix:///x",
        ]
    ),
    ({"url": "https://u:p@a.example/"}, "url must hold neither a user nor a password"),
    ({"url": "https://u@a.example/"}, "url must hold neither a user nor a password"),
    *(
        ({"url": url}, "url must be https where a key is sent to another machine; ")
        for url in [
            "http://a.example/v1",
            "http://10.0.0.1/",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://[fe80::1]/",
            "http://0.0.0.0/",
        ]
    ),
    ({"api_key_env": KEY}, "api_key_env must be the name of an environment variable"),
    ({"api_key_env": ""}, "api_key_env must be the name of an environment variable"),
    ({"api_key_env": b"K"}, "api_key_env must be a str, not bytes"),
    ({"cache_dir": 1}, "cache_dir must be a str or a path, not int"),
    ({"cache_dir": ""}, "cache_dir must be a path, neither empty nor with a null"),
    ({"cache_dir": "a\0"}, "cache_dir must be a path, neither empty nor with a null"),
    ({"ca_file": b"x"}, "ca_file must be a str or a path, not bytes"),
    ({"dimensions": 0}, "dimensions must be from 1 to 65536, not 0"),
    ({"dimensions": 1.0}, "dimensions must be an int, not float"),
    ({"batch_size": 2049}, "batch_size must be from 1 to 2048, not 2049"),
    ({"batch_size": None}, "batch_size must be an int, not None"),
    ({"max_batch_bytes": True}, "max_batch_bytes must be an int, not bool"),
    ({"max_concurrency": 0}, "max_concurrency must be from 1 to 64, not 0"),
    ({"max_retries": -1}, "max_retries must be from 0 to 100, not -1"),
    ({"max_cache_bytes": 9}, "max_cache_bytes must be from 1048576 to"),
    ({"max_response_bytes": 10**99}, "max_response_bytes must be from 1 to"),
    ({"timeout": 0}, "timeout must be from 0.001 to 86400 seconds, not 0"),
    ({"timeout": float("nan")}, "timeout must be a number, not NaN"),
    ({"timeout": None}, "timeout must be a float, not None"),
    ({"connect_timeout": float("inf")}, "connect_timeout must be from 0.001 to 86400 seconds"),
    ({"total_timeout": "1"}, "total_timeout must be a float, not str"),
    ({"backoff": -1}, "backoff must be from 0 to 86400 seconds, not -1"),
    ({"truncate": 1}, "truncate must be a bool, not int"),
    ({"allow_insecure_http": "no"}, "allow_insecure_http must be a bool, not str"),
    ({"model": "m", "truncate": True}, "truncate needs max_input_tokens: the limit of this model"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options(options, message):
    """A bad option is an error that names it and what is allowed, and quotes no key."""
    with pytest.raises(InvalidArgumentError) as caught:
        OpenAIEmbedder(**options)

    assert str(caught.value).startswith(message)
    assert KEY not in str(caught.value)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://localhost:11434/v1/embeddings"},
        {"url": "http://127.9.9.9/"},
        {"url": "http://[::1]:8080/v1"},
        {"url": "http://a.localhost/"},
        {"url": "http://a.example/", "api_key_env": None},
        {"url": "http://a.example/", "allow_insecure_http": True},
        {"url": "HTTPS://a.example"},
        {"cache_dir": Path("a"), "ca_file": "b"},
        {"timeout": 1, "max_retries": np.int64(2), "truncate": np.bool_(True)},
    ],
)
def test_good_options(options):
    """What is safe, and what is allowed expressly, is taken."""
    OpenAIEmbedder(**options)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("text", "texts must be a sequence, not str"),
        (None, "texts must be a sequence, not None"),
        ({"a": 1}, "texts must be a sequence, not dict"),
        (["a", None], r"texts\[1\] must be a str, not None"),
        ([b"a"], r"texts\[0\] must be a str, not bytes"),
    ],
)
def test_bad_texts(endpoint, embedder, texts, message):
    """What is no sequence of texts is an error, before anything is sent."""
    for call in (embedder.embed, lambda texts: asyncio.run(embedder.aembed(texts))):
        with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
            call(texts)
    with pytest.raises(InvalidArgumentError, match=r"^text must be a str, not int$"):
        embedder.embed_query(1)
    assert [] == endpoint.questions


def test_certificates_that_cannot_be_read(embedder, tmp_path):
    """A ca_file that is none is an error that names it."""
    path = tmp_path / "ca.pem"
    for _ in range(2):
        with pytest.raises(EmbeddingError, match=r"^ca_file '.*ca.pem' cannot be read as cert"):
            with_options(embedder, ca_file=str(path)).embed(["a"])
        path.write_text("no certificate")


def test_public():
    """The module says what is public."""
    assert ["Embedder", "EmbeddingError", "OpenAIEmbedder"] == embedding.__all__
    assert budgeteer.errors.EmbeddingError is EmbeddingError


def test_subclasses_of_str(endpoint, embedder):
    """A text of a subclass of str counts as its characters."""

    class Text(str):
        __slots__ = ()

        def encode(self, *_):
            raise io.UnsupportedOperation

    both(embedder, [Text("a")])
    assert [["a"]] * 2 == endpoint.inputs()
