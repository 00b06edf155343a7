"""The key, and the texts, are in no log, error, pickle or repr of an embedder."""

import asyncio
import logging
import os
import pickle
import traceback
from dataclasses import replace

import embedding_server as server
import pytest
from embedding_server import KEY

from budgeteer.embedding import EmbeddingError


def reachable(value, depth=6, seen=None):
    """Yield all strings that hang on *value*, through attributes, items and frames' variables."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth < 0 or isinstance(value, (type, type(os))):
        return
    seen.add(id(value))
    if isinstance(value, (str, bytes, bytearray)):
        yield bytes(value, "utf-8", "replace") if isinstance(value, str) else bytes(value)
        return
    parts = []
    if isinstance(value, dict):
        parts += [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts += value
    if isinstance(value, BaseException):
        parts += [value.args, value.__cause__, value.__context__, vars(value), repr(value)]
        for frame, _ in traceback.walk_tb(value.__traceback__):
            if "budgeteer" in frame.f_code.co_filename.rpartition("python/")[2]:
                parts.append(dict(frame.f_locals))
            elif "httpx" in frame.f_code.co_filename or "httpcore" in frame.f_code.co_filename:
                parts.append(KEY)  # such frames are what must not be there
    names = {*getattr(value, "__dict__", {})} | {
        name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())
    }
    parts += [getattr(value, name, None) for name in names]
    for part in parts:
        yield from reachable(part, depth - 1, seen)


TROUBLE = {
    "401": server.status(401, f'{{"error": {{"message": "{KEY}", "code": "{KEY}"}}}}'),
    "400": server.status(400, KEY),
    "cut": server.cut,
    "hangs up": lambda handler, _: handler.drop(),
    "resets": lambda handler, _: handler.drop(reset=True),
    "silent": server.silent,
    "redirect": server.status(302, "", Location=f"http://127.0.0.1/?{KEY}"),
    "not HTTP": lambda handler, _: handler.wfile.write(KEY.encode() + b"\r\n\r\n"),
}


@pytest.mark.parametrize("name", TROUBLE)
@pytest.mark.parametrize("texts", [["a secret text"], ["a secret text", "b"]])
def test_the_key_and_the_texts_are_never_told(endpoint, embedder, caplog, name, texts):
    """Neither log nor error, nor what hangs on it, has the key; log and message have no text."""
    endpoint.always = TROUBLE[name]
    embedder = replace(embedder, timeout=0.15, max_retries=1, batch_size=1)
    caplog.set_level(logging.DEBUG)
    for call in (embedder.embed, lambda texts: asyncio.run(embedder.aembed(texts))):
        with pytest.raises(EmbeddingError) as caught:
            call(texts)
        told = "".join(traceback.format_exception(caught.value)) + repr(embedder)
        assert KEY not in told
        assert "secret" not in str(caught.value)
        assert not [part for part in reachable(caught.value) if KEY.encode() in part]
        assert KEY.encode() not in pickle.dumps(caught.value)
    own = [record.getMessage() for record in caplog.records if record.name == "budgeteer"]
    assert not [message for message in own if KEY in message or "secret" in message]
    # What the endpoint itself puts into a status line or a header, httpcore logs.
    others = [record.getMessage() for record in caplog.records if f"Bearer {KEY}" in str(record)]
    assert [] == others
    embedder.close()


@pytest.mark.parametrize("texts", [["a"], ["a", "b", "c"]])
def test_cancelling_does_not_tell_the_key(endpoint, embedder, texts):
    """What hangs on a cancellation has no key either."""
    endpoint.always = server.silent

    async def work():
        task = asyncio.create_task(replace(embedder, batch_size=1).aembed(texts))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    assert not [part for part in reachable(asyncio.run(work())) if KEY.encode() in part]


def test_the_search_for_keys_finds_them():
    """What the test above searches with finds a key in a variable of a frame, and in a context."""

    def fail():
        key = {"a": [KEY]}
        raise ValueError(len(key))

    fail.__code__ = fail.__code__.replace(co_filename="python/budgeteer/x.py")
    with pytest.raises(ValueError, match="1") as caught:
        fail()
    assert [part for part in reachable(caught.value) if KEY.encode() in part]


def test_the_key_is_kept_nowhere(embedder):
    """Neither pickle nor repr nor any attribute has the key, after it was sent."""
    embedder.embed(["a"])

    assert KEY.encode() not in pickle.dumps(embedder)
    assert KEY not in repr(embedder)
    assert not [part for part in reachable(embedder, 12) if KEY.encode() in part]
