"""Endpoints that mean harm: nothing of a call is kept busy, filled up or given away by them."""

import socket
import threading
import time
from dataclasses import replace

import embedding_server as server
import pytest
from embedding_server import KEY

from budgeteer.embedding import EmbeddingError


def raw(*parts):
    """An answer of these bytes, without a word of ours, and then the end."""

    def behave(handler, _):
        handler.close_connection = True
        for part in parts:
            handler.wfile.write(part)

    return behave


def endless(start, part):
    """An answer that never ends."""

    def behave(handler, _):
        handler.close_connection = True
        handler.wfile.write(start)
        while not handler.server.over.is_set():
            handler.wfile.write(part)

    return behave


OK = b"HTTP/1.1 200 OK\r\n"
HOSTILE = {
    "endless chunks": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\n    \r\n"),
    "endless without a length": endless(OK + b"\r\n", b" " * 4096),
    "endless headers": endless(OK, b"X-Tea: green\r\n"),
    "one endless header": endless(OK + b"X-Tea: ", b"x" * 4096),
    "an endless status": endless(b"HTTP/1.1 200 ", b"x" * 4096),
    "endless extensions of a chunk": endless(
        OK + b"Transfer-Encoding: chunked\r\n\r\n4;", b"x" * 4096
    ),
    "endless interim answers": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "two lengths": raw(OK, b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    "a negative length": raw(OK, b"Content-Length: -1\r\n\r\n{}"),
    "a length beyond all": raw(OK, b"Content-Length: " + b"9" * 99 + b"\r\n\r\n{}"),
    "a chunk beyond all": raw(OK, b"Transfer-Encoding: chunked\r\n\r\n", b"f" * 15 + b"\r\n{}"),
    "a chunk that is none": raw(OK, b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n"),
    "a header in several lines": raw(OK, b"X: a\r\n\r b\r\n\r\n{}"),
    "half of JSON": raw(OK, b'\r\n{"data": [{"index": 0, "embedding": [0.1,'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_an_error(endpoint, embedder, name):
    """What is endless or contradicts itself is an error within the time of the call."""
    endpoint.always = HOSTILE[name]
    embedder = replace(embedder, timeout=2, total_timeout=3, max_retries=1)
    embedder = replace(embedder, max_response_bytes=100_000)
    start = time.monotonic()
    with embedder, pytest.raises(EmbeddingError) as caught:
        embedder.embed(["a secret text"])

    assert time.monotonic() - start < 6
    assert KEY not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
def test_the_key_does_not_follow_a_redirect(endpoint, embedder, status):
    """A host that a redirect names is not connected to, so it gets neither key nor text."""
    with server.Endpoint() as other:
        endpoint.always = server.status(status, "", Location=other.url)
        with pytest.raises(EmbeddingError):
            embedder.embed(["a secret text"])

        assert 0 == other.connections
        assert [] == other.headers


def test_a_handshake_that_never_ends(embedder):
    """An endpoint that accepts a connection and says nothing of TLS is given up in time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept = []
        thread = threading.Thread(target=lambda: kept.append(listener.accept()), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1/embeddings"
        start = time.monotonic()
        with (
            replace(embedder, url=url, timeout=0.5, max_retries=0) as given,
            pytest.raises(EmbeddingError),
        ):
            given.embed(["tea"])
        assert time.monotonic() - start < 3
        thread.join(10)
        kept[0][0].close()
