"""Spark: the rows of a data frame, each a query, packed by the processes of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from budgeteer._pack.state import Indexed
from budgeteer.integrations._columns import Columns, given
from budgeteer.integrations._missing import missing

try:
    import pyarrow as pa
    from pyspark import cloudpickle
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import (
        ArrayType,
        DataType,
        DayTimeIntervalType,
        LongType,
        MapType,
        StringType,
        StructField,
        StructType,
        TimestampNTZType,
        TimestampType,
        YearMonthIntervalType,
    )
except ImportError as _error:
    raise missing(__name__, _error) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from budgeteer._pack.packer import Options

__all__ = ["pack_dataframe"]

_ANSWER = (
    StructField("text", StringType()),
    StructField("total_tokens", LongType()),
    StructField("kept", ArrayType(LongType(), containsNull=False)),
    StructField("error", StringType()),
)


def pack_dataframe(
    df: DataFrame,
    max_tokens: int,
    *,
    query: str | None = "query",
    chunks: str | Indexed[Any] = "chunks",
    keep: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Pack each row of *df*, a query and its chunks, by `budgeteer.pack_table` in ``mapInArrow``.

    The law: ``total_tokens`` is what the counter answers for exactly ``text``, and at most the
    budget. Nothing runs before the frame is asked for. How many rows are packed at a time is
    Spark's ``spark.sql.execution.arrow.maxRecordsPerBatch``.

    Args:
        df: A data frame with a row for each query.
        max_tokens: The most tokens of each text, from 0 on.
        query: The name of the column of queries. None if nothing reads them.
        chunks: The name of the column of chunks: arrays of strings, or of structs, as for
            `pack_table`. Or a `Corpus` that was opened from a file, at a path that each node has:
            a process opens it once.
        keep: The columns that stay beside the answer's, such as a key. None keeps all but
            *chunks*.
        **options: The options of `Packer`.

    Returns:
        A data frame of the columns kept, and then ``text``, ``total_tokens``, ``kept`` and
        ``error``, as those of a `PackedTable`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, or contradicts
            another; a column is missing or has a wrong type.
        BudgeteerError: The corpus was not opened from a file.

    Examples:
        >>> from pyspark.sql import SparkSession
        >>> from budgeteer.integrations.spark import pack_dataframe
        >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
        >>> rows = [(7, "tea", ["Rye.", "Tea."])]
        >>> df = spark.createDataFrame(rows, ["id", "query", "chunks"])
        >>> pack_dataframe(df, 2, keep=["id"]).collect()
        [Row(id=7, text='Tea.', total_tokens=2, kept=[1], error=None)]
        >>> spark.stop()

    """
    given("df", df, "mapInArrow", "a data frame of Spark")
    work = Columns(max_tokens, query, chunks, keep, options)
    # Names that differ in case alone are one for Spark, unless it is told to mind it.
    work.minds_case = df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    work.over(to_arrow_schema(_checked(df.schema)), cloudpickle.dumps)
    kept = work.kept(df.columns)
    schema = StructType([*(df.schema[name] for name in kept), *_ANSWER])
    # No other columns go to Python: of these two may have one name. They go by numbers, as Spark
    # takes a dot in a name for a way into a struct.
    names = [*dict.fromkeys([*kept, *work.read])]
    df = df.select(*(f"`{name.replace('`', '``')}`" for name in names))
    df = df.toDF(*(f"c{i}" for i in range(len(names))))

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            fields = zip(batch.schema, names, strict=True)
            named = pa.schema([field.with_name(name) for field, name in fields])
            table = pa.RecordBatch.from_arrays(batch.columns, schema=named)
            yield from work(table).to_batches()

    return df.mapInArrow(packed, schema)


def _checked(kind: Any) -> Any:
    """
    Return a type in which other times stand for those that no schema of Arrow is made of.

    Spark wants a time zone for the one and has nothing for the other, while none of them is read.
    """
    if isinstance(kind, StructType):
        return StructType([StructField(item.name, _checked(item.dataType)) for item in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_checked(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_checked(kind.keyType), _checked(kind.valueType))
    other: dict[type[DataType], DataType] = {
        TimestampType: TimestampNTZType(),
        YearMonthIntervalType: DayTimeIntervalType(),
    }
    return other.get(type(kind), kind)
