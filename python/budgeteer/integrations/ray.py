"""Ray Data: the rows of a dataset, each a query, packed by the processes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from budgeteer._pack.state import Indexed
from budgeteer.integrations._columns import Columns, given
from budgeteer.integrations._missing import missing

try:
    import pyarrow as pa
    from ray import cloudpickle
    from ray.data import Dataset
except ImportError as _error:
    raise missing(__name__, _error) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from budgeteer._pack.packer import Options

__all__ = ["pack_dataset"]


def pack_dataset(
    ds: Dataset,
    max_tokens: int,
    *,
    query: str | None = "query",
    chunks: str | Indexed[Any] = "chunks",
    keep: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Dataset:
    """
    Pack each row of *ds*, a query and its chunks, by `budgeteer.pack_table` over Arrow blocks.

    The law: ``total_tokens`` is what the counter answers for exactly ``text``, and at most the
    budget. Nothing runs before the dataset is asked for. Blocks, processors and memory are those
    of ``ds``: ``ds.repartition`` makes more blocks.

    Args:
        ds: A dataset with a row for each query.
        max_tokens: The most tokens of each text, from 0 on.
        query: The name of the column of queries. None if nothing reads them.
        chunks: The name of the column of chunks, as for `pack_table`. Or a `Corpus` that was
            opened from a file, at a path that each node has: a process opens it once.
        keep: The columns that stay beside the answer's, such as a key. None keeps all but
            *chunks*.
        **options: The options of `Packer`.

    Returns:
        A dataset of the columns kept, and then ``text``, ``total_tokens``, ``kept`` and
        ``error``, as those of a `PackedTable`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, or contradicts
            another. So does a column that is missing or has a wrong type: where the dataset knows
            its columns before it runs, at once, else from the run.
        BudgeteerError: The corpus was not opened from a file.

    Examples:
        >>> import ray.data
        >>> from budgeteer.integrations.ray import pack_dataset
        >>> ds = ray.data.from_items([{"id": 7, "query": "tea", "chunks": ["Rye.", "Tea."]}])
        >>> pack_dataset(ds, 2, keep=["id"]).take_all()
        [{'id': 7, 'text': 'Tea.', 'total_tokens': 2, 'kept': [1], 'error': None}]
        >>> ray.shutdown()

    """
    given("ds", ds, "map_batches", "a dataset of Ray Data")
    work = Columns(max_tokens, query, chunks, keep, options)
    schema = getattr(ds.schema(fetch_if_missing=False), "base_schema", None)
    work.over(schema if isinstance(schema, pa.Schema) else None, cloudpickle.dumps)
    return ds.map_batches(work, batch_format="pyarrow")
