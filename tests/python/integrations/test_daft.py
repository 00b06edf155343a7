"""Daft: what its engine packs is what one call packs."""

import pytest

pytest.importorskip("daft")
pytest.importorskip("pyarrow")

import cluster
import daft
from daft import col
from support import ONLY_REFERENCE

from budgeteer import Corpus
from budgeteer.errors import BudgeteerError, InvalidArgumentError
from budgeteer.integrations.daft import pack_dataframe

pytestmark = pytest.mark.filterwarnings("ignore")  # of Daft's own

ANSWER = ["text", "total_tokens", "kept", "error"]


@pytest.fixture(scope="module")
def df():
    return daft.from_arrow(cluster.TABLE).collect()


@pytest.mark.parametrize("options", cluster.OPTIONS.values(), ids=cluster.OPTIONS)
def test_the_same_as_one_process(df, options):
    """Each row has the answer of one call beside its key, and its text fits."""
    packed = pack_dataframe(df, cluster.BUDGET, keep=["key"], **options).to_pylist()

    assert cluster.answers(cluster.TABLE, **options) == cluster.by_key(packed)
    cluster.check_law(packed, counter=options.get("counter", "o200k_base"))


def test_columns_that_stay(df):
    """All columns but the chunks stay, or those that are named."""
    packed = pack_dataframe(df, cluster.BUDGET)

    assert ["key", "query", "shelf", *ANSWER] == packed.column_names
    assert {row["key"]: row["shelf"] for row in packed.to_pylist()} == {
        i: f"shelf {i % 7}" for i in range(cluster.ROWS)
    }
    named = pack_dataframe(df, cluster.BUDGET, keep=["shelf", "chunks"])
    assert ["shelf", "chunks", *ANSWER] == named.column_names
    assert cluster.ROWS == named.count_rows()


@pytest.mark.skipif(ONLY_REFERENCE, reason="files of corpora are native")
def test_a_corpus_from_a_file(df, tmp_path):
    """Queries over a corpus are packed as in one call; a new file is a new corpus."""
    for texts in (("Green tea.", "Rye bread."), ("Old tea.", "Mild tea.", "Oats.")):
        corpus = cluster.saved(tmp_path / "corpus", texts)
        expected = cluster.answers(cluster.TABLE, chunks=corpus)

        packed = pack_dataframe(df, cluster.BUDGET, chunks=corpus, keep=["key"])

        assert expected == cluster.by_key(packed.to_pylist())


def test_resume_by_key(df, tmp_path):
    """Only rows whose keys have no answer yet are packed again; then all are there once."""
    path = str(tmp_path / "answers")
    pack_dataframe(df.where(col("key") < 120), cluster.BUDGET, keep=["key"]).write_parquet(path)

    rest = df.join(daft.read_parquet(f"{path}/*.parquet"), on="key", how="anti")
    assert cluster.ROWS - 120 == rest.count_rows()
    pack_dataframe(rest, cluster.BUDGET, keep=["key"]).write_parquet(path)

    packed = daft.read_parquet(f"{path}/*.parquet").to_pylist()
    assert cluster.answers(cluster.TABLE) == cluster.by_key(packed)


def test_no_data_frame():
    """What is no data frame is refused by its name."""
    with pytest.raises(InvalidArgumentError, match="df must be a data frame of Daft, not int"):
        pack_dataframe(3, 9)


@cluster.wrong
def test_wrong_arguments_are_refused_at_once(df, options, message):
    """What is wrong is an error of the call, before anything runs."""
    with pytest.raises(InvalidArgumentError) as raised:
        pack_dataframe(df, **{"max_tokens": cluster.BUDGET, **options})

    assert str(raised.value).startswith(message)


def test_a_column_of_the_answer_in_the_table():
    """A column that stays cannot have the name of one of the answer."""
    df = daft.from_pydict({"text": ["x"], "query": ["tea"], "chunks": [["Tea."]]})
    with pytest.raises(InvalidArgumentError, match=r"^the column 'text' has the name of a"):
        pack_dataframe(df, 9)

    expected = [{"text": "Tea.", "total_tokens": 2, "kept": [0], "error": None}]
    assert expected == pack_dataframe(df, 9, keep=[]).to_pylist()


def test_a_corpus_in_memory(df):
    """A corpus that no file has cannot reach another process, and the call says so."""
    with pytest.raises(BudgeteerError, match="save it, open that"):
        pack_dataframe(df, 9, chunks=Corpus(["Tea."]))


def test_nothing_is_told(tmp_path):
    """Errors of rows and logs show no text, and no secret of an embedder."""

    def packed(table, *arguments, **options):
        return pack_dataframe(daft.from_arrow(table), *arguments, **options).to_pylist()

    cluster.check_canaries(packed, tmp_path)


def test_no_rows(df):
    """A frame without rows gives one without rows."""
    assert [] == pack_dataframe(df.where(col("key") < 0), 9).to_pylist()
