"""Spark: what a local cluster packs is what one process packs."""

import os
import shutil
import sys

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pandas")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

import cluster
from pyspark.sql import SparkSession
from pyspark.sql.functions import collect_list, sort_array
from support import ONLY_REFERENCE

from budgeteer import Corpus
from budgeteer.errors import BudgeteerError, InvalidArgumentError
from budgeteer.integrations.spark import pack_dataframe

pytestmark = pytest.mark.filterwarnings("ignore")  # of Spark's own

ANSWER = ["text", "total_tokens", "kept", "error"]


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "2")
        session = builder.config(
            "spark.sql.execution.arrow.maxRecordsPerBatch", "20"
        ).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(cluster.TABLE).repartition(4).cache()


def rows_of(packed):
    return [row.asDict(recursive=True) for row in packed.collect()]


@pytest.mark.parametrize("options", cluster.OPTIONS.values(), ids=cluster.OPTIONS)
def test_the_same_as_one_process(df, options):
    """Each row has the answer of one process beside its key, and its text fits."""
    packed = rows_of(pack_dataframe(df, cluster.BUDGET, keep=["key"], **options))

    assert cluster.answers(cluster.TABLE, **options) == cluster.by_key(packed)
    cluster.check_law(packed, counter=options.get("counter", "o200k_base"))


def test_columns_that_stay(df):
    """All columns but the chunks stay, or those that are named, with their types."""
    packed = pack_dataframe(df, cluster.BUDGET)

    assert ["key", "query", "shelf", *ANSWER] == packed.columns
    assert df.schema["shelf"] == packed.schema["shelf"]
    assert {row["key"]: row["shelf"] for row in rows_of(packed)} == {
        i: f"shelf {i % 7}" for i in range(cluster.ROWS)
    }
    named = pack_dataframe(df, cluster.BUDGET, keep=["shelf", "chunks"])
    assert ["shelf", "chunks", *ANSWER] == named.columns
    assert cluster.ROWS == named.count()


def test_prepared_once_a_process(df, tmp_path):
    """A process restores options once, however many tasks it does; each job does so anew."""
    counter = cluster.noting_counter(str(tmp_path))
    for job in (1, 2):
        pack_dataframe(df, cluster.BUDGET, counter=counter).collect()
        restored = cluster.restored_in(tmp_path)
        restored.pop(os.getpid(), None)

        assert 1 <= len(restored) <= 2 * job
        assert sum(restored.values()) <= 2 * job


@pytest.mark.skipif(ONLY_REFERENCE, reason="files of corpora are native")
def test_a_corpus_from_a_file(df, tmp_path):
    """Queries over a corpus are packed as in one process; a new file is a new corpus."""
    for texts in (("Green tea.", "Rye bread."), ("Old tea.", "Mild tea.", "Oats.")):
        corpus = cluster.saved(tmp_path / "corpus", texts)
        expected = cluster.answers(cluster.TABLE, chunks=corpus)

        packed = pack_dataframe(df, cluster.BUDGET, chunks=corpus, keep=["key"])

        assert expected == cluster.by_key(rows_of(packed))


def test_resume_by_key(spark, df, tmp_path):
    """Only rows whose keys have no answer yet are packed again; then all are there once."""
    path = str(tmp_path / "answers")
    pack_dataframe(df.where("key < 120"), cluster.BUDGET, keep=["key"]).write.parquet(path)

    rest = df.join(spark.read.parquet(path), "key", "left_anti")
    assert cluster.ROWS - 120 == rest.count()
    pack_dataframe(rest, cluster.BUDGET, keep=["key"]).write.parquet(path, mode="append")

    packed = rows_of(spark.read.parquet(path))
    assert cluster.answers(cluster.TABLE) == cluster.by_key(packed)


def test_a_long_table(spark):
    """A long table is gathered by Spark, and then has a row for each query."""
    rows = [(7, "tea", "Rye."), (3, "rye", "Rye."), (7, "tea", "Tea.")]
    long = spark.createDataFrame(rows, ["key", "query", "text"])
    gathered = long.groupBy("key", "query").agg(sort_array(collect_list("text")).alias("chunks"))

    packed = rows_of(pack_dataframe(gathered, 3, keep=["key"]))

    assert {3: "Rye.", 7: "Tea."} == {row["key"]: row["text"] for row in packed}


def test_no_data_frame():
    """What is no data frame is refused by its name."""
    with pytest.raises(InvalidArgumentError, match="df must be a data frame of Spark, not int"):
        pack_dataframe(3, 9)


@cluster.wrong
def test_wrong_arguments_are_refused_at_once(df, options, message):
    """What is wrong is an error of the call, before anything runs."""
    with pytest.raises(InvalidArgumentError) as raised:
        pack_dataframe(df, **{"max_tokens": cluster.BUDGET, **options})

    assert str(raised.value).startswith(message)


def test_a_column_of_the_answer_in_the_table(spark):
    """A column that stays cannot have the name of one of the answer."""
    df = spark.createDataFrame([("x", "tea", ["Tea."])], ["text", "query", "chunks"])
    with pytest.raises(InvalidArgumentError, match=r"^the column 'text' has the name of a"):
        pack_dataframe(df, 9)

    expected = [{"text": "Tea.", "total_tokens": 2, "kept": [0], "error": None}]
    assert expected == rows_of(pack_dataframe(df, 9, keep=[]))
    renamed = df.withColumnRenamed("text", "Text")  # which is the same for Spark
    with pytest.raises(InvalidArgumentError, match=r"^the column 'Text' has the name of a"):
        pack_dataframe(renamed, 9)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert ["x"] == [row["Text"] for row in pack_dataframe(renamed, 9).collect()]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_two_columns_of_one_name(spark):
    """They can be in the table, as after a join, and neither can be kept."""
    df = spark.createDataFrame([(1, "tea", ["Tea."])], ["key", "query", "chunks"])
    other = spark.createDataFrame([(1, 5)], ["key", "weight"])
    joined = df.join(other, df.key == other.key)
    for options in ({}, {"keep": ["key"]}):
        with pytest.raises(InvalidArgumentError, match=r"^the table has several columns 'key'"):
            pack_dataframe(joined, 9, **options)
    [row] = rows_of(pack_dataframe(joined, 9, keep=["weight"]))
    assert (5, "Tea.") == (row["weight"], row["text"])


def test_names_with_dots_and_backticks(spark):
    """A name is a name, though it could be read as a way into a struct."""
    df = spark.createDataFrame([(1, "tea", ["Tea."])], ["a.b`c", "the.query", "chunks"])
    [row] = rows_of(pack_dataframe(df, 9, query="the.query", keep=["a.b`c"]))
    assert (1, "Tea.") == (row["a.b`c"], row["text"])


def test_times(spark):
    """Times of every kind can be in the table and in structs of chunks."""
    df = spark.sql(
        "select 1 as key, 'tea' as query, timestamp '2026-11-27 10:00:00' as at, "
        "interval 1 month as age, map('a', timestamp '2026-11-27 10:00:00') as seen, "
        "array(struct('Tea.' as text, timestamp '2026-11-27 10:00:00' as at)) as chunks"
    )
    [row] = rows_of(pack_dataframe(df, 9, keep=["key", "at"]))
    assert (df.select("at").first()["at"], "Tea.") == (row["at"], row["text"])
    with pytest.raises(InvalidArgumentError, match="'at' of table must have strings, not time"):
        pack_dataframe(df, 9, query="at")


def test_a_corpus_in_memory(df):
    """A corpus that no file has cannot reach another process, and the call says so."""
    with pytest.raises(BudgeteerError, match="save it, open that"):
        pack_dataframe(df, 9, chunks=Corpus(["Tea."]))


def test_no_rows(df):
    """A frame without rows gives one without rows."""
    assert [] == rows_of(pack_dataframe(df.where("key < 0"), 9))


def test_nothing_is_told(spark, tmp_path):
    """Errors of rows and logs of processes show no text, and no secret of an embedder."""

    def packed(table, *arguments, **options):
        return rows_of(pack_dataframe(spark.createDataFrame(table), *arguments, **options))

    cluster.check_canaries(packed, tmp_path)
