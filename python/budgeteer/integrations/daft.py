"""Daft: the rows of a data frame, each a query, packed where Daft runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from budgeteer._pack.state import Indexed
from budgeteer._table.table import ANSWERED
from budgeteer.integrations._columns import Columns, given
from budgeteer.integrations._missing import missing

try:
    import daft
    import pyarrow as pa
    from daft import DataFrame, DataType, Series
    from daft.pickle import dumps
except ImportError as _error:
    raise missing(__name__, _error) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from budgeteer._pack.packer import Options

__all__ = ["pack_dataframe"]

_TYPES = (
    DataType.string(),
    DataType.int64(),
    DataType.list(DataType.int64()),
    DataType.string(),
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
    Pack each row of *df*, a query and its chunks, by `budgeteer.pack_table` in a batch function.

    The law: ``total_tokens`` is what the counter answers for exactly ``text``, and at most the
    budget. Nothing runs before the frame is asked for. Columns that are kept are not copied.

    Args:
        df: A data frame with a row for each query.
        max_tokens: The most tokens of each text, from 0 on.
        query: The name of the column of queries. None if nothing reads them.
        chunks: The name of the column of chunks: lists of strings, or of structs, as for
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
        >>> import daft
        >>> from budgeteer.integrations.daft import pack_dataframe
        >>> df = daft.from_pydict({"id": [7], "query": ["tea"], "chunks": [["Rye.", "Tea."]]})
        >>> pack_dataframe(df, 2, keep=["id"]).to_pylist()
        [{'id': 7, 'text': 'Tea.', 'total_tokens': 2, 'kept': [1], 'error': None}]

    """
    given("df", df, "select", "a data frame of Daft")
    work = Columns(max_tokens, query, chunks, keep, options)
    work.over(df.schema().to_pyarrow_schema(), dumps)
    answer = DataType.struct(dict(zip(ANSWERED, _TYPES, strict=True)))

    def packed(*columns: Series) -> pa.StructArray:
        table = pa.table([column.to_arrow() for column in columns], work.read)
        return work.answer(table).to_struct_array().combine_chunks()

    made = daft.func.batch(return_dtype=answer, unnest=True)(packed)
    return df.select(*work.kept(df.column_names), made(*(df[name] for name in work.read)))
