"""What the tests of Ray, Spark and Daft share: a table, and its answer in one process."""

import logging
import os
import random
from pathlib import Path

import pyarrow as pa
import pytest
from canary_support import META, QUERY, TEXT, TITLE, TOKEN, told

from budgeteer import Corpus, get_counter, pack_table
from budgeteer.embedding import OpenAIEmbedder
from budgeteer.ranking import Embedding

WORDS = ["green", "tea", "is", "mild", "rye", "bread", "dark", "oats", "pale", "in", "old", "mill"]
BUDGET = 30
ROWS = 300


def made(rows=ROWS):
    """Return a table of queries, each with its key and its chunks; some cannot be packed."""
    chance = random.Random(7)

    def text(size):
        return " ".join(chance.choices(WORDS, k=size)) + "."

    def chunk(i):
        return {"text": text(chance.randint(1, 20)), "id": i, "score": chance.random()}

    return pa.table(
        {
            "key": pa.array(range(rows), pa.int64()),
            "query": [None if i % 50 == 3 else text(3) for i in range(rows)],
            "chunks": [[chunk(i) for i in range(chance.randint(0, 9))] for _ in range(rows)],
            "shelf": [f"shelf {i % 7}" for i in range(rows)],
        }
    )


TABLE = made()
OPTIONS = {
    "the default": {},
    "no query": {"query": None, "ranking": "score", "template": "tagged", "notice": True},
    "cut": {"overflow": "truncate_end", "counter": "words", "reserve_tokens": 5},
}

WRONG = [
    ({"max_tokens": -1}, "max_tokens must be from 0 to"),
    ({"ranking": "lexicle"}, "ranking must be one of"),
    ({"query": "qeury"}, "query must be the name of a column, not 'qeury'; did you mean 'query'?"),
    ({"chunks": "key"}, "the column 'key' of table must have lists of strings or structs"),
    ({"keep": ["kye"]}, "keep must have names of columns, not 'kye'; did you mean 'key'?"),
    ({"keep": "key"}, "keep must be a sequence of names, not str: put 'key' into a list"),
    ({"keep": ["key", "key"]}, "keep[1] must not be 'key' again"),
    ({"chunks": Corpus(["Tea."]), "query": None}, "query must be the name of a column, not None"),
]

wrong = pytest.mark.parametrize(
    ("options", "message"), WRONG, ids=[message[:30] for _, message in WRONG]
)
"""Runs a test with wrong arguments and the beginning of the error for each."""


def answers(table, **options):
    """Return the answer to each row in one process, by its key."""
    packed = pa.table(pack_table(table, BUDGET, **options)).to_pylist()
    return dict(zip(table["key"].to_pylist(), packed, strict=True))


def by_key(rows):
    """Return answers by their key, without it."""
    found = {row["key"]: {name: row[name] for name in row if name != "key"} for row in rows}
    assert len(rows) == len(found)
    return found


def check_law(rows, budget=BUDGET, counter="o200k_base"):
    """The law: each text that was packed fits, and has the tokens that its row says."""
    counter = get_counter(counter)
    texts = [row for row in rows if row["error"] is None]
    assert len(texts) > len(rows) / 2
    for row in texts:
        assert row["total_tokens"] == counter.count(row["text"]) <= budget


def noting_counter(folder):
    """Return a counter that leaves a file in a folder whenever a process restores it."""

    class Noting:
        def __call__(self, text):
            return len(text.split())

        def __reduce__(self):
            def restored(folder):
                with Path(folder, str(os.getpid())).open("a", encoding="utf-8") as file:
                    file.write("restored\n")
                return lambda text: len(text.split())

            return restored, (folder,)

    return Noting()


def restored_in(folder):
    """Return how often each process restored that counter, by process."""
    return {int(file.name): len(file.read_text("utf-8").splitlines()) for file in folder.iterdir()}


def saved(path, texts=("Green tea.", "Rye bread.", "Oats are pale.")):
    """Return a corpus that was opened from a file."""
    Corpus(list(texts)).save(path)
    return Corpus.open(path)


def telling_counter(path):
    """Return a counter; a process that has it writes to a file what this package logs."""

    def telling(path):
        logger = logging.getLogger("budgeteer")
        logger.addHandler(logging.FileHandler(path, encoding="utf-8"))
        logger.setLevel(logging.DEBUG)
        return lambda text: len(text.split())

    class Telling:
        def __init__(self):
            self._count = telling(path)

        def __call__(self, text):
            return self._count(text)

        def __reduce__(self):
            return telling, (path,)

    return Telling()


def check_canaries(pack, folder):
    """
    See that the errors of rows, and what processes log, show no text and no secret.

    *pack* packs a table and returns its rows; nothing answers where the embedder asks.
    """
    chunk = {"text": TEXT, "title": TITLE, "metadata": META}
    table = pa.table(
        {
            "key": [1, 2, 3],
            "query": [QUERY, None, QUERY],
            "chunks": [[chunk], [chunk], [chunk, {**chunk, "text": None}]],
        }
    )
    url = f"http://127.0.0.1:9/v1?token={TOKEN}"
    embedder = OpenAIEmbedder(url=url, api_key_env=None, max_retries=0, allow_insecure_http=True)
    logger, path = logging.getLogger("budgeteer"), folder / "log"
    before, level = [*logger.handlers], logger.level
    try:
        for fallback, fails in ((None, {1, 2, 3}), ("bm25", {2, 3})):
            ranking = Embedding(embedder, fallback=fallback)
            rows = pack(table, 40, counter=telling_counter(str(path)), ranking=ranking)
            errors = {row["key"]: row["error"] for row in rows if row["error"] is not None}
            assert fails == set(errors)
            assert [] == [error for error in errors.values() if told(error)]
        logged = path.read_text("utf-8")
        assert "ranking by bm25, as embedding failed: " in logged
        assert [] == told(logged)
    finally:
        logger.handlers[:] = before
        logger.setLevel(level)
