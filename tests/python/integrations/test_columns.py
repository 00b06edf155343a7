"""What the processes of a cluster run, without a cluster."""

import pickle
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")

import cluster
import pyarrow as pa
from support import ONLY_REFERENCE

from budgeteer.errors import InvalidArgumentError
from budgeteer.integrations._columns import Columns


def test_a_batch_and_a_table():
    """A batch is answered as a table is; columns that stay keep their types and names."""
    work = Columns(cluster.BUDGET, "query", "chunks", None, {})

    whole = work(cluster.TABLE)
    parts = [work(batch) for batch in cluster.TABLE.to_batches(max_chunksize=70)]

    assert whole.combine_chunks().equals(pa.concat_tables(parts).combine_chunks())
    kept = cluster.TABLE.drop_columns("chunks")
    assert kept.schema == whole.select(kept.column_names).schema
    cluster.check_law(whole.to_pylist())


def test_restored_once():
    """However often a job is unpickled, a process has it once; and another job is another."""
    work = Columns(cluster.BUDGET, "query", "chunks", ["key"], {})
    first, second = pickle.loads(pickle.dumps(work)), pickle.loads(pickle.dumps(work))
    other = pickle.loads(pickle.dumps(Columns(cluster.BUDGET, "query", "chunks", ["key"], {})))

    assert first is second
    assert first is not other
    assert work(cluster.TABLE).equals(first(cluster.TABLE))
    assert pickle.dumps(first) == pickle.dumps(work)


@pytest.mark.skipif(ONLY_REFERENCE, reason="files of corpora are native")
def test_a_corpus_is_sent_as_its_path(tmp_path, monkeypatch):
    """Another process opens the corpus from its file; what is sent has no text of it."""
    monkeypatch.setenv("BUDGETEER_BACKEND", "native")
    corpus = cluster.saved(tmp_path / "corpus")
    work = Columns(cluster.BUDGET, "query", corpus, ["key"], {})
    data = pickle.dumps(work)
    table = pa.table({"key": [1, 2], "query": ["tea", "rye"]})
    program = (
        "import pickle, sys, pyarrow as pa\n"
        "work = pickle.loads(sys.stdin.buffer.read())\n"
        "print(work(pa.table({'key': [1, 2], 'query': ['tea', 'rye']})).to_pylist())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], input=data, capture_output=True, check=True, timeout=60
    )

    assert b"Rye bread" not in data
    assert f"{work(table).to_pylist()}\n" == done.stdout.decode()


def test_names_that_are_no_sequence():
    """What is kept is a sequence of names."""
    for keep, message in (
        ("key", r"^keep must be a sequence of names, not str: put 'key' into a list$"),
        (["key", 3], r"^keep\[1\] must be a str, not int$"),
        (["key", "key"], r"^keep\[1\] must not be 'key' again$"),
        (3, r"^keep must be a sequence, not int$"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            Columns(9, "query", "chunks", keep, {})
