"""The cache of embeddings: nothing is asked twice, nothing wrong is answered, nothing fails."""

import asyncio
import json
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import embedding_server as server
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from budgeteer.embedding import EmbeddingError, OpenAIEmbedder
from budgeteer.embedding._cache import FILE, MIN_BYTES, Cache, Keys

TEXTS = ["green tea", "black tea", "日本のお茶"]


@pytest.fixture
def embedder(endpoint, tmp_path):
    made = OpenAIEmbedder(url=endpoint.url, api_key_env=None, cache_dir=tmp_path / "a" / "cache")
    with made as embedder:
        yield embedder


def path_of(embedder):
    return Path(embedder.cache_dir, FILE)


def rows_of(embedder):
    embedder.close()
    with sqlite3.connect(path_of(embedder)) as connection:
        rows = connection.execute("SELECT id, key, vector, checksum FROM vectors").fetchall()
    connection.close()
    return rows


def change(embedder, statement, *values):
    embedder.close()
    with sqlite3.connect(path_of(embedder)) as connection:
        connection.execute(statement, values)
    connection.close()


def as_sent(endpoint, embedder, texts=TEXTS):
    """Embed, see that the vectors are right, and return what was asked for that."""
    before = len(endpoint.questions)
    assert np.array_equal(server.expected(texts), embedder.embed(texts))
    return sorted(text for inputs in endpoint.inputs()[before:] for text in inputs)


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_nothing_is_asked_twice(endpoint, embedder):
    """What was embedded once is in the cache, for this embedder and for others."""
    assert sorted(TEXTS) == as_sent(endpoint, embedder)
    assert [] == as_sent(endpoint, embedder)
    embedder.close()
    with replace(embedder, batch_size=1) as other:
        assert [] == as_sent(endpoint, other)
        assert ["new"] == as_sent(endpoint, other, ["new", *TEXTS])
        assert np.array_equal(server.expected(TEXTS), asyncio.run(other.aembed(TEXTS)))
    assert 2 == len(endpoint.questions)


def test_async_fills_it_too(endpoint, embedder):
    """What async embeds is in the cache."""
    asyncio.run(embedder.aembed(TEXTS))

    assert [] == as_sent(endpoint, embedder)


@pytest.mark.parametrize(
    "options", [{"model": "m"}, {"dimensions": 8}, {"url": "?v=2"}], ids=["model", "size", "url"]
)
def test_the_key_has_what_decides(endpoint, embedder, options):
    """Another model, size or URL is another entry."""
    as_sent(endpoint, embedder)
    if "url" in options:
        options = {"url": endpoint.url + options["url"]}
    with replace(embedder, **options) as other:
        assert sorted(TEXTS) == as_sent(endpoint, other)
        assert [] == as_sent(endpoint, other)


def test_the_key_has_the_whole_text(endpoint, embedder):
    """Texts that share all but their last character do not share a vector."""
    long = "tea " * 5_000
    texts = [long + end for end in "abc"]

    assert texts == as_sent(endpoint, embedder, texts)
    assert [] == as_sent(endpoint, embedder, texts)


def test_parts_of_keys_do_not_run_into_each_other():
    """A key tells where its parts end."""
    keys = {Keys(*parts)("x") for parts in [("ab", "c", 1), ("a", "bc", 1), ("a", "b", 1)]}
    keys |= {Keys("a", "b", None)("x"), Keys("a", "b", 1)("1x")}

    assert 5 == len(keys)
    assert {32} == {len(key) for key in keys}


def test_what_is_in_the_file(endpoint, embedder):
    """The file has float32 vectors and hashes; neither text nor URL."""
    as_sent(endpoint, embedder)
    rows = rows_of(embedder)

    assert sorted(server.expected([text]).tobytes() for text in TEXTS) == sorted(
        row[2] for row in rows
    )
    content = path_of(embedder).read_bytes()
    assert b"tea" not in content
    assert b"127.0.0.1" not in content


@pytest.mark.skipif(os.name == "nt", reason="about permissions of POSIX")
def test_permissions(endpoint, embedder):
    """The directory and its files are their owner's alone."""
    as_sent(endpoint, embedder)
    folder = Path(embedder.cache_dir)

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {FILE, f"{FILE}-wal", f"{FILE}-shm"} == {path.name for path in folder.iterdir()}
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


DAMAGE = {
    "a bit": ("vector = ?", lambda vector: bytes([vector[0] ^ 1]) + vector[1:]),
    "the length": ("vector = ?", lambda vector: vector[:-4]),
    "half a float": ("vector = ?", lambda vector: vector + b"x"),
    "nothing": ("vector = ?", lambda _: b""),
    "text": ("vector = ?", lambda _: "vector"),
    "a number": ("vector = ?", lambda _: 7),
    "the checksum": ("checksum = ?", lambda _: b"x" * 16),
    "another's vector": ("vector = ?", lambda _: np.ones(8, dtype=np.float32).tobytes()),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_row_is_embedded_again(endpoint, embedder, caplog, name):
    """A row that is not what was stored is asked for again, and said so; the others are not."""
    as_sent(endpoint, embedder)
    key = Keys(embedder.url, embedder.model, None)(TEXTS[1])
    [row] = [row for row in rows_of(embedder) if row[1] == key]
    setting, damage = DAMAGE[name]
    change(embedder, f"UPDATE vectors SET {setting} WHERE id = ?", damage(row[2]), row[0])

    assert [TEXTS[1]] == as_sent(endpoint, embedder)
    assert ["1 rows of the embedding cache are damaged; embedding again"] == warnings_of(caplog)
    assert [] == as_sent(endpoint, embedder)


def test_swapped_rows_are_embedded_again(endpoint, embedder):
    """A vector under another's key does not pass for that one's: the checksum has the key."""
    as_sent(endpoint, embedder)
    (a, _, vector, checksum), (b, *_), _ = rows_of(embedder)
    statement = "UPDATE vectors SET vector = ?, checksum = ? WHERE id = ?"
    change(embedder, statement, vector, checksum, b)

    assert a != b
    assert 1 == len(as_sent(endpoint, embedder))


CORRUPT = {
    "no database": lambda content: b"These are not the rows you are looking for. " * 99,
    "its header": lambda content: b"x" * 40 + content[40:],
    "its pages": lambda content: content[:100] + b"\xff" * (len(content) - 100),
    "its names": lambda content: content.replace(b"tablevectors", b"tablev\xf4ctors").replace(
        b"CREATE TABLE", b"CREATE TABLF"
    ),
    "its end": lambda content: content[: len(content) // 2],
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_file_is_set_aside(endpoint, embedder, caplog, name):
    """A corrupt file is renamed, that is said in the log, and a new one takes its place."""
    texts = [f"text {i}" for i in range(300)]
    as_sent(endpoint, embedder, texts)
    embedder.close()
    path = path_of(embedder)
    content = CORRUPT[name](path.read_bytes())
    path.write_bytes(content)

    assert texts[:9] == as_sent(endpoint, embedder, texts[:9])
    aside = path.with_name(FILE + ".corrupt")
    assert [f"the embedding cache {path} is corrupt; it is now {aside}"] == warnings_of(caplog)
    assert content[:1000] == aside.read_bytes()[:1000]
    assert [] == as_sent(endpoint, embedder, texts[:9])


def test_a_foreign_database_is_set_aside(endpoint, embedder):
    """A database that is none of ours is not written to."""
    path = path_of(embedder)
    path.parent.mkdir(parents=True)
    change(embedder, "CREATE TABLE vectors (name TEXT)")

    as_sent(endpoint, embedder)
    assert [] == as_sent(endpoint, embedder)
    assert path.with_name(FILE + ".corrupt").exists()


def test_an_empty_file(endpoint, embedder, caplog):
    """An empty file is a cache that holds nothing yet."""
    path_of(embedder).parent.mkdir(parents=True)
    path_of(embedder).touch()
    as_sent(endpoint, embedder)

    assert [] == as_sent(endpoint, embedder)
    assert [] == warnings_of(caplog)


def test_a_file_that_is_corrupted_while_it_is_open(endpoint, embedder):
    """Corruption under an open connection is met as any other, by all that have it open."""
    texts = [f"text {i}" for i in range(300)]
    with replace(embedder) as other:
        for one in (embedder, other):
            as_sent(endpoint, one, texts)
        change_all = path_of(embedder)
        other.close()
        embedder.close()
        content = change_all.read_bytes()
        change_all.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        for one in (embedder, other, embedder):
            as_sent(endpoint, one, texts)
        assert [] == as_sent(endpoint, other, texts)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed on Windows")
@pytest.mark.parametrize("what", ["file", "folder", "replaced"])
def test_a_file_that_is_removed_while_it_is_open(endpoint, embedder, caplog, what):
    """A cache that someone cleared is made anew: what is stored in it is found by others."""
    as_sent(endpoint, embedder)
    path = path_of(embedder)
    if what == "file":
        path.unlink()
    else:
        path.parent.rename(path.parent.with_name("old"))
    if what == "replaced":
        with replace(embedder) as other:
            as_sent(endpoint, other)
    assert ([] if what == "replaced" else sorted(TEXTS)) == as_sent(endpoint, embedder)
    assert ["rye bread"] == as_sent(endpoint, embedder, ["rye bread"])

    with replace(embedder) as other:
        assert [] == as_sent(endpoint, other, ["rye bread", *TEXTS])
    assert [] == warnings_of(caplog)


@pytest.mark.parametrize("what", ["a file", "a directory"])
def test_a_cache_that_cannot_be_used(endpoint, embedder, caplog, what):
    """Where there can be no cache, texts are embedded all the same, and the log says why not."""
    folder = Path(embedder.cache_dir)
    folder.parent.mkdir()
    if what == "a file":
        folder.write_text("in the way")
    else:
        path_of(embedder).mkdir(parents=True)
    for _ in range(2):
        assert sorted(TEXTS) == as_sent(endpoint, embedder)

    assert warnings_of(caplog)
    for record in caplog.records:
        path = str(path_of(embedder))
        assert (path, f"the embedding cache {path} cannot be used: {record.problem}") == (
            record.cache,
            record.getMessage(),
        )


def test_a_locked_file(endpoint, embedder, caplog, monkeypatch):
    """While another process keeps the file locked, texts are embedded all the same."""
    monkeypatch.setattr("budgeteer.embedding._cache._BUSY_SECONDS", 0.1)
    as_sent(endpoint, embedder)
    embedder.close()
    connection = sqlite3.connect(path_of(embedder), isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    as_sent(endpoint, embedder, ["new"])
    assert "cannot be used: database is locked" in warnings_of(caplog)[0]
    connection.execute("ROLLBACK")
    connection.close()

    assert ["new"] == as_sent(endpoint, embedder, ["new"])
    assert [] == as_sent(endpoint, embedder, ["new", *TEXTS])


@pytest.fixture
def locked(endpoint, embedder):
    """Lock the file of a cache that has TEXTS, by a statement, as another process does."""
    as_sent(endpoint, embedder)
    embedder.close()
    connection = sqlite3.connect(path_of(embedder), isolation_level=None)
    yield connection.execute
    connection.close()


def aembed(embedder, texts):
    return asyncio.run(embedder.aembed(texts))


@pytest.mark.parametrize("embed", [OpenAIEmbedder.embed, aembed])
def test_a_locked_file_and_the_end_of_a_call(endpoint, embedder, locked, embed):
    """A locked file is waited for no longer than the call may last, and a second at most."""
    locked("BEGIN EXCLUSIVE")
    for options, seconds in (({"total_timeout": 0.2}, 0.7), ({"batch_size": 1}, 2.5)):
        with replace(embedder, **options) as other:
            start = time.monotonic()
            with suppress(EmbeddingError):  # where nothing of the time is left
                assert np.array_equal(server.expected(TEXTS), embed(other, TEXTS))
            assert time.monotonic() - start < seconds


def test_a_cache_that_another_thread_uses(tmp_path):
    """A thread that uses the cache is waited for until the call's end, and no longer."""
    cache = Cache(tmp_path, MIN_BYTES)
    key = [bytes(32)]
    cache.put(key, np.ones((1, 4), dtype=np.float32))
    with cache._lock:
        assert {} == cache.get(key, time.monotonic() + 0.05)
    assert {*key} == {*cache.get(key, time.monotonic() + 0.05)}
    cache.close()


def test_a_file_that_is_written_to(endpoint, embedder, locked):
    """What a cache has is read while another process writes to it."""
    locked("BEGIN IMMEDIATE")
    assert [] == as_sent(endpoint, embedder)


def test_a_new_file_that_is_locked(endpoint, embedder, caplog, monkeypatch):
    """A new file that another process locks before it is a cache is waited for, and no longer."""
    monkeypatch.setattr("budgeteer.embedding._cache._BUSY_SECONDS", 0.2)
    path = path_of(embedder)
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    as_sent(endpoint, embedder)
    assert "cannot be used: database is locked" in warnings_of(caplog)[0]
    connection.execute("ROLLBACK")
    connection.close()

    assert sorted(TEXTS) == as_sent(endpoint, embedder)
    assert [] == as_sent(endpoint, embedder)


def test_a_row_that_cannot_be_written(endpoint, embedder, caplog):
    """Where another program refuses rows, texts are embedded all the same, and none is left."""
    as_sent(endpoint, embedder)
    refuse = "BEGIN SELECT RAISE(ABORT, 'no more rows'); END"
    change(embedder, f"CREATE TRIGGER full BEFORE INSERT ON vectors {refuse}")
    assert ["new"] == as_sent(endpoint, embedder, ["new"])
    assert "cannot be used: no more rows" in warnings_of(caplog)[0]
    change(embedder, "DROP TRIGGER full")
    assert ["new"] == as_sent(endpoint, embedder, ["new"])
    assert [] == as_sent(endpoint, embedder, ["new", *TEXTS])


def test_a_corrupt_file_that_cannot_be_renamed(endpoint, embedder, caplog, monkeypatch):
    """A corrupt file that stays in the way is no error, and the log says why it stays."""
    path = path_of(embedder)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"These are not the rows you are looking for. " * 99)

    def refuse(self, target):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    assert sorted(TEXTS) == as_sent(endpoint, embedder)
    assert f"the corrupt embedding cache {path} cannot be renamed: " in warnings_of(caplog)[0]


def test_a_corrupt_file_that_another_process_replaced(endpoint, embedder, caplog, monkeypatch):
    """A file that took the place of a corrupt one is used, and not renamed in its turn."""
    path = path_of(embedder)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"These are not the rows you are looking for. " * 99)
    close = Cache._close

    def replaced(cache):
        close(cache)
        if path.stat().st_size > 0 and path.read_bytes().startswith(b"These"):
            path.rename(path.with_name("elsewhere"))
            path.touch()

    monkeypatch.setattr(Cache, "_close", replaced)
    assert sorted(TEXTS) == as_sent(endpoint, embedder)
    assert [] == as_sent(endpoint, embedder)
    assert [] == warnings_of(caplog)
    assert not path.with_name(FILE + ".corrupt").exists()


def test_the_file_is_bounded(endpoint, embedder):
    """The file keeps to its size, and what was stored first leaves first."""
    small = replace(embedder, max_cache_bytes=MIN_BYTES, dimensions=512)
    texts = [f"text {i}" for i in range(600)]
    for start in range(0, 600, 50):
        small.embed(texts[start : start + 50])
    small.close()

    assert path_of(small).stat().st_size <= MIN_BYTES
    before = len(endpoint.questions)
    with small:
        small.embed(texts[-100:])
        assert before == len(endpoint.questions)
        small.embed(texts[:1])
        assert [texts[:1]] == endpoint.inputs()[before:]


def test_more_at_once_than_the_file_holds(tmp_path):
    """Storing more than fits keeps the file's size, and the end of what was stored."""
    cache = Cache(tmp_path, MIN_BYTES)
    keys = [i.to_bytes(32, "big") for i in range(700)]
    vectors = np.random.default_rng(1).random((700, 1_024)).astype(np.float32)
    cache.put(keys, vectors)
    found = cache.get(keys)
    cache.put([b"large" * 6], np.ones((1, 1 << 20), dtype=np.float32))
    cache.close()

    assert 100 < len(found) < 256
    assert set(keys[-100:]) <= set(found)
    assert path_of_folder(tmp_path).stat().st_size <= MIN_BYTES


def path_of_folder(folder):
    return Path(folder, FILE)


def test_another_size_than_before(endpoint, embedder):
    """Where the model behind a name changes its size, what is kept of the old one is replaced."""
    as_sent(endpoint, embedder)
    endpoint.always = lambda handler, question: handler.say(json.dumps(server.answer(question, 9)))
    vectors = embedder.embed(["new", *TEXTS])

    assert np.array_equal(server.expected(["new", *TEXTS], 9), vectors)
    before = len(endpoint.questions)
    embedder.embed([*TEXTS, "new"])
    assert before == len(endpoint.questions)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
            min_size=5,
            max_size=5,
        ),
        min_size=1,
        max_size=9,
    ),
    st.lists(st.text(min_size=1), min_size=9, max_size=9, unique=True),
)
def test_the_cache_returns_what_was_sent(endpoint, embedder, rows, texts):
    """What the cache answers is what the endpoint sent, bit for bit: -0.0 and subnormals too."""
    texts = texts[: len(rows)]
    given_ = {text.encode(): row for text, row in zip(texts, rows, strict=True)}

    def behave(handler, question):
        data = [
            {"index": i, "embedding": given_[text.encode()]}
            for i, text in enumerate(question["input"])
        ]
        handler.say(json.dumps({"data": data}))

    endpoint.always = behave
    path_of(embedder).unlink(missing_ok=True)
    first = embedder.embed(texts)
    embedder.close()
    before = len(endpoint.questions)
    second = embedder.embed(texts)
    embedder.close()

    assert before == len(endpoint.questions)
    assert np.array(rows, dtype=np.float32).tobytes() == first.tobytes() == second.tobytes()


def test_threads(endpoint, embedder):
    """Threads that store and look up at once lose nothing."""
    cache = Cache(Path(embedder.cache_dir), 1 << 24)
    start = threading.Barrier(6)

    def work(number):
        start.wait()
        for i in range(20):
            key = [(number * 100 + i).to_bytes(32, "big")]
            cache.put(key, np.full((1, 16), i, dtype=np.float32))
            assert i == cache.get(key)[key[0]][0]

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    keys = [(n * 100 + i).to_bytes(32, "big") for n in range(6) for i in range(20)]
    assert 120 == len(cache.get(keys))
    cache.close()


def test_opening_at_once(tmp_path):
    """Who opens a new file at the same time waits for the others, as SQLite itself does not."""
    with ThreadPoolExecutor(8) as pool:
        for attempt in range(40):
            caches = [Cache(tmp_path / str(attempt), 1 << 24) for _ in range(8)]
            barrier = threading.Barrier(8)

            def work(n, caches=caches, barrier=barrier):
                key = [n.to_bytes(32, "big")]
                barrier.wait(30)
                caches[n].put(key, np.ones((1, 4), dtype=np.float32))
                return len(caches[n].get(key))

            assert [1] * 8 == list(pool.map(work, range(8)))
            for cache in caches:
                cache.close()


WORK = """
import sys
from pathlib import Path
import numpy as np
from budgeteer.embedding._cache import Cache

number = int(sys.argv[2])
cache = Cache(Path(sys.argv[1]), 1 << 24)
for i in range(60):
    keys = [(n * 100 + i).to_bytes(32, "big") for n in (number, 9)]
    cache.put(keys, np.full((2, 16), i, dtype=np.float32))
    assert all(i == cache.get(keys)[key][0] for key in keys)
cache.close()
"""


def test_processes(tmp_path):
    """Processes that open, store and look up at once lose nothing and are told of nothing."""
    command = [sys.executable, "-W", "error", "-c", WORK, str(tmp_path / "new")]
    children = [
        subprocess.Popen([*command, str(i)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for i in range(4)
    ]
    said = [child.communicate(timeout=60)[0] for child in children]

    assert [(0, b"")] * 4 == [
        (child.returncode, text) for child, text in zip(children, said, strict=True)
    ]
    cache = Cache(tmp_path / "new", 1 << 24)
    keys = [(n * 100 + i).to_bytes(32, "big") for n in (*range(4), 9) for i in range(60)]
    assert 300 == len(cache.get(keys))
    cache.close()


def test_another_embedder_of_the_same_file(endpoint, embedder):
    """A process that ends takes no file from one that has it open twice, and no row is lost."""
    as_sent(endpoint, embedder)
    with replace(embedder, model="other") as other:
        as_sent(endpoint, other)
        folder = str(path_of(embedder).parent)
        subprocess.run([sys.executable, "-c", WORK, folder, "1"], check=True, timeout=60)
        as_sent(endpoint, embedder, ["rye bread"])

        key = Keys(embedder.url, embedder.model, None)("rye bread")
        code = "import sys, pathlib; from budgeteer.embedding._cache import Cache; "
        code += "keys = [bytes.fromhex(sys.argv[2])]; "
        code += "sys.exit(len(Cache(pathlib.Path(sys.argv[1]), 1 << 24).get(keys)) != 1)"
        subprocess.run([sys.executable, "-c", code, folder, key.hex()], check=True, timeout=60)
