"""Ray Data: what a local cluster packs is what one process packs."""

import os

import pytest

pytest.importorskip("ray")
pytest.importorskip("pyarrow")

import cluster
import pyarrow as pa
import ray
from support import ONLY_REFERENCE

from budgeteer import Corpus
from budgeteer.errors import BudgeteerError, InvalidArgumentError
from budgeteer.integrations.ray import pack_dataset

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own


@pytest.fixture(scope="module", autouse=True)
def _ray():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield
    ray.shutdown()


def dataset(table=cluster.TABLE, blocks=4):
    size = -(-len(table) // blocks)
    return ray.data.from_arrow([table.slice(at, size) for at in range(0, len(table), size)])


@pytest.mark.parametrize("options", cluster.OPTIONS.values(), ids=cluster.OPTIONS)
def test_the_same_as_one_process(options):
    """Each row has the answer of one process beside its key, and its text fits."""
    packed = pack_dataset(dataset(), cluster.BUDGET, keep=["key"], **options).take_all()

    assert cluster.answers(cluster.TABLE, **options) == cluster.by_key(packed)
    cluster.check_law(packed, counter=options.get("counter", "o200k_base"))


def test_columns_that_stay():
    """All columns but the chunks stay, or those that are named; Ray knows the new ones."""
    ds = pack_dataset(dataset(), cluster.BUDGET)
    answer = ["text", "total_tokens", "kept", "error"]

    assert ["key", "query", "shelf", *answer] == ds.schema().names
    assert {row["key"]: row["shelf"] for row in ds.take_all()} == {
        i: f"shelf {i % 7}" for i in range(cluster.ROWS)
    }
    named = pack_dataset(dataset(), cluster.BUDGET, keep=["shelf", "chunks"])
    assert ["shelf", "chunks", *answer] == named.schema().names


def test_prepared_once_a_process(tmp_path):
    """A process restores options once, however many blocks it packs; each job does so anew."""
    counter = cluster.noting_counter(str(tmp_path))
    for job in (1, 2):
        pack_dataset(dataset(), cluster.BUDGET, counter=counter).materialize()
        restored = cluster.restored_in(tmp_path)
        restored.pop(os.getpid(), None)

        assert 1 <= len(restored) <= 2 * job
        assert sum(restored.values()) <= 2 * job


@pytest.mark.skipif(ONLY_REFERENCE, reason="files of corpora are native")
def test_a_corpus_from_a_file(tmp_path):
    """Queries over a corpus are packed as in one process; a new file is a new corpus."""
    for texts in (("Green tea.", "Rye bread."), ("Old tea.", "Mild tea.", "Oats.")):
        corpus = cluster.saved(tmp_path / "corpus", texts)
        expected = cluster.answers(cluster.TABLE, chunks=corpus)

        packed = pack_dataset(dataset(), cluster.BUDGET, chunks=corpus, keep=["key"])

        assert expected == cluster.by_key(packed.take_all())


def test_resume_by_key():
    """Only rows whose keys have no answer yet are packed again; then all are there once."""
    done = pack_dataset(dataset().limit(120), cluster.BUDGET, keep=["key"]).materialize()
    rest = dataset().join(done.select_columns(["key"]), "left_anti", 1, on=("key",))
    more = pack_dataset(rest, cluster.BUDGET, keep=["key"])

    packed = [*done.take_all(), *more.take_all()]
    assert cluster.answers(cluster.TABLE) == cluster.by_key(packed)


def test_no_dataset():
    """What is no dataset is refused by its name."""
    with pytest.raises(InvalidArgumentError, match="ds must be a dataset of Ray Data, not int"):
        pack_dataset(3, 9)


@cluster.wrong
def test_wrong_arguments_are_refused_at_once(options, message):
    """What is wrong is an error of the call, before anything runs."""
    with pytest.raises(InvalidArgumentError) as raised:
        pack_dataset(dataset(), **{"max_tokens": cluster.BUDGET, **options})

    assert str(raised.value).startswith(message)


def test_a_column_of_the_answer_in_the_table():
    """A column that stays cannot have the name of one of the answer."""
    table = pa.table({"text": ["x"], "query": ["tea"], "chunks": [["Tea."]]})
    with pytest.raises(InvalidArgumentError, match=r"^the column 'text' has the name of a"):
        pack_dataset(dataset(table, 1), 9)

    assert [{"text": "Tea.", "total_tokens": 2, "kept": [0], "error": None}] == pack_dataset(
        dataset(table, 1), 9, keep=[]
    ).take_all()


def test_a_corpus_in_memory():
    """A corpus that no file has cannot reach another process, and the call says so."""
    with pytest.raises(BudgeteerError, match="save it, open that"):
        pack_dataset(dataset(), 9, chunks=Corpus(["Tea."]))


def test_nothing_is_told(tmp_path):
    """Errors of rows and logs of processes show no text, and no secret of an embedder."""

    def packed(table, *arguments, **options):
        return pack_dataset(dataset(table, 2), *arguments, **options).take_all()

    cluster.check_canaries(packed, tmp_path)


def test_a_schema_that_is_not_known_yet():
    """Where columns are known only when the dataset runs, the run tells what is wrong."""
    lazy = dataset().map_batches(lambda batch: batch, batch_format="pyarrow")
    assert lazy.schema(fetch_if_missing=False) is None

    packed = pack_dataset(lazy, cluster.BUDGET, keep=["key"])
    assert cluster.answers(cluster.TABLE) == cluster.by_key(packed.take_all())
    with pytest.raises(Exception, match="did you mean 'query'"):
        pack_dataset(lazy, cluster.BUDGET, query="qeury").take_all()
