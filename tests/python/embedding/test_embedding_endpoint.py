"""Endpoints that misbehave: what comes back is right, or an EmbeddingError says what is wrong."""

import asyncio
import logging
import shutil
import ssl
import subprocess
import time

import embedding_server as server
import numpy as np
import pytest
from embedding_server import KEY, changed, literal, replaced, status

from budgeteer.embedding import EmbeddingError, OpenAIEmbedder, _transport

TEXTS = ["green tea", "black tea", "日本のお茶"]


@pytest.fixture(params=["sync", "async"])
def embed(request, monkeypatch):
    """Embed by an endpoint, in either way."""
    monkeypatch.setenv("EMBEDDING_KEY", KEY)

    def embed(endpoint, texts=TEXTS, **options):
        made = {"api_key_env": "EMBEDDING_KEY", "backoff": 0.001, **options}
        if endpoint is not None:
            made.setdefault("url", endpoint.url)
        with OpenAIEmbedder(**made) as embedder:
            if request.param == "sync":
                return embedder.embed(texts)
            return asyncio.run(embedder.aembed(texts))

    return embed


ODD_BUT_RIGHT = {
    "wrong order": changed(server.in_reverse),
    "base64": server.in_base64,
    "gzip": server.zipped,
    "in chunks": server.in_chunks,
    "without a length": server.to_the_end,
    "hangs up behind the answer": server.then_hang_up,
    "more fields": changed(lambda data, good: good.update(warning="slow", data=data)),
    "201": lambda handler, question: handler.say(
        server.json.dumps(server.answer(question)), 201, "text/plain"
    ),
}


@pytest.mark.parametrize("name", ODD_BUT_RIGHT)
def test_odd_but_right(endpoint, embed, name):
    """What the protocol allows is read, and needs one request."""
    endpoint.script.append(ODD_BUT_RIGHT[name])

    assert np.array_equal(server.expected(TEXTS), embed(endpoint))
    assert 1 == len(endpoint.questions)


PASSING = {
    "429": status(429),
    "429 with seconds": status(429, Retry_After="0"),
    "429 with parts of seconds": status(429, Retry_After="0.01"),
    "429 with a date gone by": status(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "429 with nonsense": status(429, Retry_After="soon\u00e9"),
    "429 with nothing": status(429, "", Retry_After=""),
    "408": status(408),
    "409": status(409),
    "500": status(500),
    "502 with a page": status(502, "<html>Bad gateway</html>", kind="text/html"),
    "503": status(503),
    "504": status(504, ""),
    "529": status(529),
    "cut JSON": server.cut,
    "fewer bytes than promised": server.short,
    "cut gzip": server.cut_gzip,
    "no gzip where it says so": lambda handler, _: handler.say("{}", Content_Encoding="gzip"),
    "not JSON": lambda handler, _: handler.say("oops"),
    "nothing": lambda handler, _: handler.say(""),
    "not UTF-8": lambda handler, _: handler.say(b'{"data": "\xff\xfe\xfd"}'),
    "nested without end": lambda handler, _: handler.say("[" * 200_000),
    "a page": lambda handler, _: handler.say("<html>Sign in</html>", kind="text/html"),
    "hangs up": lambda handler, _: handler.drop(),
    "resets": lambda handler, _: handler.drop(reset=True),
    "not HTTP": lambda handler, _: handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_passes(endpoint, embed, name):
    """What may pass is asked again, and the answer is right."""
    endpoint.script += [PASSING[name]] * 2

    assert np.array_equal(server.expected(TEXTS), embed(endpoint, timeout=5))
    assert 3 == len(endpoint.questions)


@pytest.mark.parametrize("name", PASSING)
def test_what_does_not_pass(endpoint, embed, name):
    """What does not pass is an error once it was tried often enough; it may be tried later."""
    endpoint.always = PASSING[name]
    with pytest.raises(EmbeddingError, match=r"\(tried 2 times\)") as caught:
        embed(endpoint, max_retries=1, timeout=5)

    assert 2 == len(endpoint.questions)
    assert caught.value.is_retryable
    number = name[:3]
    assert int(number) == caught.value.status if number.isdigit() else True


FINAL = {
    "400 with an error object": (status(400), "answered 400 (some_code)", 400),
    "401": (
        status(401, f'{{"error": {{"message": "wrong {KEY}", "code": "invalid_api_key"}}}}'),
        "answered 401 (invalid_api_key); see that EMBEDDING_KEY holds a valid key",
        401,
    ),
    "403 with the key as code": (
        status(403, f'{{"error": {{"code": "{KEY}"}}}}'),
        "answered 403; see that",
        403,
    ),
    "404 with a page": (status(404, "<html>"), "answered 404; see that url is the full", 404),
    "413": (status(413, "[]"), "answered 413; a smaller batch_size", 413),
    "429 of an empty account": (
        status(429, '{"error": {"type": "insufficient_quota", "code": null}}'),
        "answered 429 (insufficient_quota)",
        429,
    ),
    "501": (status(501), "answered 501", 501),
    "a code that is none": (status(400, '{"error": {"code": {"a": 1}}}'), "answered 400", 400),
    "an error that is text": (status(422, '{"error": "no"}'), "answered 422", 422),
    "301": (status(301, "", Location="/v2"), "answered 301: redirects are not followed", 301),
    "302": (status(302, "", Location="/v1/embeddings"), "answered 302: redirects", 302),
    "307": (status(307, "", Location="http://127.0.0.1:1/"), "answered 307: redirects", 307),
    "308": (status(308, ""), "answered 308: redirects are not followed", 308),
    "brotli": (
        lambda h, _: h.say("{}", Content_Encoding="br"),
        "encoding that was not asked",
        200,
    ),
    "a list": (lambda h, _: h.say("[]"), "answered JSON without a list 'data'", 200),
    "null": (lambda h, _: h.say("null"), "answered JSON without a list 'data'", 200),
    "an error with 200": (lambda h, _: h.say('{"error": "no"}'), "without a list 'data'", 200),
    "data as an object": (
        changed(lambda data, _: {"data": dict(enumerate(data))}),
        "answered JSON without a list 'data'",
        200,
    ),
    "too few": (changed(lambda data, _: data.pop()), "2 embeddings for 3 texts", 200),
    "too many": (changed(lambda data, _: data.append(data[0])), "4 embeddings for 3 texts", 200),
    "none": (changed(lambda data, _: data.clear()), "0 embeddings for 3 texts", 200),
    "an index twice": (replaced(1, "index"), "two embeddings of index 1", 200),
    "an index beyond": (replaced(3, "index"), "without an index from 0 to 2", 200),
    "a negative index": (replaced(-1, "index"), "without an index from 0 to 2", 200),
    "an index as text": (replaced("0", "index"), "without an index from 0 to 2", 200),
    "an index as truth": (replaced(False, "index"), "without an index from 0 to 2", 200),
    "an index as float": (replaced(0.0, "index"), "without an index from 0 to 2", 200),
    "no index": (changed(lambda data, _: {"data": [{}] * 3}), "without an index from 0", 200),
    "data of numbers": (changed(lambda data, _: {"data": [1, 2, 3]}), "without an index", 200),
    "no embedding": (replaced(None), "an embedding 0 that is neither a list of numbers", 200),
    "an embedding of text": (replaced(["1"] * 8), "an embedding 0 that is neither", 200),
    "an embedding of truths": (replaced([True] * 8), "an embedding 0 that is neither", 200),
    "an embedding of lists": (replaced([[1.0]] * 8), "an embedding 0 that is neither", 200),
    "an embedding with null": (replaced([None] * 8), "an embedding 0 that is neither", 200),
    "an embedding as object": (replaced({"0": 1.0}), "an embedding 0 that is neither", 200),
    "not base64": (replaced("*" * 8), "neither a list of numbers nor base64", 200),
    "base64 of half a float": (replaced("AAA="), "neither a list of numbers nor base64", 200),
    "base64 beyond ASCII": (replaced("\u00e9" * 8), "neither a list of numbers nor base64", 200),
    "base64 of NaN": (replaced("AADAfw=="), "an embedding 0 with NaN or infinity", 200),
    "NaN": (literal("NaN"), "an embedding 0 with NaN or infinity", 200),
    "infinity": (literal("-Infinity"), "an embedding 0 with NaN or infinity", 200),
    "beyond float64": (literal("1e999"), "an embedding 0 with NaN or infinity", 200),
    "beyond float32": (literal("1e39"), "an embedding 0 with NaN or infinity", 200),
    "a large whole number": (literal("9" * 400), "an embedding 0 with NaN or infinity", 200),
    "mixed dimensions": (replaced([1.0] * 7), "embeddings of 7 and of 8 dimensions", 200),
    "one without dimensions": (replaced([]), "embeddings of 0 and of 8 dimensions", 200),
    "no dimensions": (
        changed(lambda data, _: [item.update(embedding=[]) for item in data]),
        "embeddings of 0 dimensions",
        200,
    ),
    "huge": (
        server.huge,
        "answered more than 1000000 bytes, all that max_response_bytes allows",
        200,
    ),
    "a bomb": (
        server.bomb,
        "answered more than 1000000 bytes, all that max_response_bytes allows",
        200,
    ),
}


@pytest.mark.parametrize("name", FINAL)
def test_what_is_final(endpoint, embed, name):
    """What asking again does not mend is an error at once, and says what was answered."""
    endpoint.always, message, number = FINAL[name]
    with pytest.raises(EmbeddingError) as caught:
        embed(endpoint, max_response_bytes=1_000_000)

    assert f"the embedding endpoint {endpoint.url} answered " in str(caught.value)
    assert message in str(caught.value)
    assert (number, False) == (caught.value.status, caught.value.is_retryable)
    assert 1 == len(endpoint.questions)
    assert {"/v1/embeddings"} == {*endpoint.paths}


def test_the_code_of_an_error(endpoint, embed):
    """The error has the endpoint's code where it is a name, and never what may quote a key."""
    endpoint.always = FINAL["401"][0]
    with pytest.raises(EmbeddingError) as caught:
        embed(endpoint)
    assert "invalid_api_key" == caught.value.code

    endpoint.always = FINAL["403 with the key as code"][0]
    with pytest.raises(EmbeddingError) as caught:
        embed(endpoint)
    assert caught.value.code is None


@pytest.mark.parametrize("size", [7, 9])
def test_other_dimensions_than_asked_for(endpoint, embed, size):
    """Vectors of another size than asked for are an error."""
    endpoint.always = lambda handler, question: handler.say(
        server.json.dumps(server.answer(question, size))
    )
    message = f"embeddings of {size} dimensions where 8 were asked for"
    with pytest.raises(EmbeddingError, match=message):
        embed(endpoint, dimensions=8)


def test_other_dimensions_in_another_batch(endpoint, embed):
    """Vectors of several sizes in one call are an error."""
    endpoint.script.append(
        lambda handler, question: handler.say(server.json.dumps(server.answer(question, 9)))
    )
    with pytest.raises(EmbeddingError, match="of 8 and of 9 dimensions"):
        embed(endpoint, batch_size=2)


@pytest.mark.parametrize("slow", [server.slow_headers, server.slow_body, server.silent])
def test_one_deadline_for_a_request(endpoint, embed, slow):
    """A request has its time for all of its answer, however often a byte arrives."""
    endpoint.always = slow
    start = time.monotonic()
    with pytest.raises(EmbeddingError, match=r"did not answer within 0.3 s") as caught:
        embed(endpoint, timeout=0.3, max_retries=0)

    assert 0.25 < time.monotonic() - start < 2
    assert (None, True) == (caught.value.status, caught.value.is_retryable)


def test_one_deadline_for_a_call(endpoint, embed):
    """A call ends at its time, however many repetitions are left."""
    endpoint.always = server.silent
    start = time.monotonic()
    with pytest.raises(EmbeddingError, match="did not answer within"):
        embed(endpoint, timeout=0.2, total_timeout=0.5, max_retries=100)

    assert time.monotonic() - start < 2
    assert 2 <= len(endpoint.questions) <= 4


def test_no_time_is_left_for_the_rest(endpoint, embed):
    """Batches that are not sent when the call's time is over are an error that says so."""

    def slowly(handler, question):
        time.sleep(0.1)
        server.well(handler, question)

    endpoint.always = slowly
    texts = [f"text {i}" for i in range(100)]
    with pytest.raises(EmbeddingError, match=r"within 0\.[0-9]+ s") as caught:
        embed(endpoint, texts, batch_size=1, max_concurrency=1, total_timeout=0.35)

    assert caught.value.is_retryable
    assert len(endpoint.questions) <= 4


def test_nobody_listens(embed):
    """A port on which nobody listens is an error that may pass."""
    with server.Endpoint() as endpoint:
        pass
    with pytest.raises(EmbeddingError, match=r"cannot be reached \(ConnectError\)") as caught:
        embed(endpoint, max_retries=1)

    assert caught.value.is_retryable


def test_a_host_that_is_none(embed):
    """A host that no name can be is an error, whoever finds that out."""
    with pytest.raises(EmbeddingError, match=r"cannot be asked|cannot be reached") as caught:
        embed(None, url=f"https://{'a' * 70}.invalid/v1", max_retries=0)

    assert "Unicode" in str(caught.value) or caught.value.is_retryable


def test_another_protocol(endpoint, embed):
    """TLS to a port that speaks none is an error."""
    with pytest.raises(EmbeddingError, match=r"cannot be reached|broke off"):
        embed(endpoint, url=endpoint.url.replace("http:", "https:"), max_retries=0)


@pytest.fixture
def certificate(tmp_path):
    """A certificate for loopback, made for the test, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


def test_certificates(endpoint, embed, certificate, monkeypatch):
    """TLS to an unknown certificate is an error at once; ca_file makes it known, no variable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
    url = endpoint.url.replace("http:", "https:")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with pytest.raises(EmbeddingError, match="has a certificate that cannot be verif") as caught:
        embed(endpoint, url=url)
    assert not caught.value.is_retryable

    texts = [f"text {i}" * 2_000 for i in range(9)]
    vectors = embed(endpoint, texts, url=url, ca_file=certificate[0], batch_size=2)
    assert np.array_equal(server.expected(texts), vectors)

    endpoint.always = server.slow_body
    with pytest.raises(EmbeddingError, match="did not answer within"):
        embed(endpoint, url=url, ca_file=certificate[0], timeout=0.3, max_retries=0)


def test_a_closed_connection_is_opened_again(endpoint, monkeypatch):
    """A connection that the endpoint has closed between two calls costs no failure."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    endpoint.script.append(server.then_hang_up)
    with OpenAIEmbedder(url=endpoint.url, max_retries=0) as embedder:
        embedder.embed(["a"])
        time.sleep(0.1)
        assert np.array_equal(server.expected(["b"]), embedder.embed(["b"]))

    assert 2 == endpoint.connections


@pytest.mark.parametrize("value", ["0.4", "date"])
def test_retry_after_is_obeyed(endpoint, embed, value):
    """The call waits as long as it is asked to, by seconds or by a date."""
    start = time.monotonic()
    # A date has whole seconds: this one is from 0.5 to 1.5 seconds ahead.
    asked = value if value != "date" else server.http_date(1.5)
    endpoint.script.append(status(429, Retry_After=asked))
    embed(endpoint)

    assert 0.35 < time.monotonic() - start < 3


@pytest.mark.parametrize(("seconds", "total"), [(3600.0, None), (61.0, 90), (9.0, 8)])
def test_retry_after_beyond_the_end(endpoint, embed, seconds, total):
    """Where the wait would be more than a minute, or than the call may take, it fails at once."""
    endpoint.script.append(status(503, Retry_After=str(seconds)))
    start = time.monotonic()
    with pytest.raises(EmbeddingError, match="answered 503") as caught:
        embed(endpoint, total_timeout=total)

    assert time.monotonic() - start < 2
    assert (seconds, True) == (caught.value.retry_after, caught.value.is_retryable)


def test_waits_grow(endpoint, embed, caplog):
    """Each wait is from half to all of twice the one before; the log says so, and no more."""
    endpoint.script += [status(500)] * 3
    with caplog.at_level(logging.INFO, "budgeteer"):
        embed(endpoint, backoff=0.08)

    ours = [record for record in caplog.records if record.name == "budgeteer"]
    waits = [record.args[1] for record in ours]
    assert ["answered 500 (some_code)"] * 3 == [record.problem for record in ours]
    assert waits == [record.wait_seconds for record in ours]
    for i, wait in enumerate(waits):
        assert 0.04 * 2**i <= wait <= 0.08 * 2**i


def test_what_was_answered_is_kept(endpoint, embed, tmp_path):
    """A failure does not lose the batches that were answered before."""
    texts = [f"text {i}" for i in range(6)]
    endpoint.script += [server.well, server.well, status(400)]
    with pytest.raises(EmbeddingError):
        embed(endpoint, texts, batch_size=2, max_concurrency=1, cache_dir=tmp_path)
    assert np.array_equal(server.expected(texts), embed(endpoint, texts, cache_dir=tmp_path))

    assert texts[4:] == endpoint.inputs()[-1]


def test_what_is_read_beside_a_failure_is_kept(endpoint, embed, tmp_path, monkeypatch):
    """A failure does not lose the batches whose answers are read at that time."""
    texts = [f"text {i}" for i in range(3)]
    advance = _transport.advance

    def slow_advance(work, outcome):
        if b"embedding" in getattr(outcome, "body", b""):
            time.sleep(0.2)
        return advance(work, outcome)

    def behave(handler, question):
        if question["input"] == texts[1:2]:
            time.sleep(0.1)
            status(400)(handler, question)
        else:
            server.well(handler, question)

    endpoint.always = behave
    monkeypatch.setattr(_transport, "advance", slow_advance)
    monkeypatch.setattr(_transport, "_SMALL_BYTES", 0)  # without async all are read in threads
    with pytest.raises(EmbeddingError, match="answered 400"):
        embed(endpoint, texts, batch_size=1, cache_dir=tmp_path)
    endpoint.always = server.well
    embed(endpoint, texts, cache_dir=tmp_path)

    assert [texts[1:2]] == endpoint.inputs()[3:]


def test_the_first_failure_stops_the_rest(endpoint, embed):
    """A failure of one batch ends those under way, and no further one is sent."""
    endpoint.script.append(status(400))
    endpoint.always = server.silent
    start = time.monotonic()
    with pytest.raises(EmbeddingError, match="answered 400"):
        embed(endpoint, [f"text {i}" for i in range(50)], batch_size=1, max_concurrency=3)

    assert time.monotonic() - start < 2
    assert len(endpoint.questions) <= 4
