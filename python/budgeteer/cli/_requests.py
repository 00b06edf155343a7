"""Files of requests, in batches that do not depend on who packs them, and the rows of answers."""

from __future__ import annotations

import importlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, Protocol

from budgeteer import Packer, _validate
from budgeteer._files import decode, one_line, parse_json
from budgeteer._pack.packer import prepared_of
from budgeteer._table.table import ANSWERED, reads_query
from budgeteer.errors import (
    BudgeteerError,
    InternalError,
    InvalidArgumentError,
    MissingPackageError,
)

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
"""How the names of files of requests and of their answers end."""

_BATCH = 2**18
"""Bytes of requests in a batch: some ten milliseconds of packing."""
_ROWS = 1_000
_GROUP = 2**22
"""Bytes of answers in a row group."""
_LEVELS = {".jsonl.gz": 6, ".jsonl.zst": 3}
_INTS, _STRS = 1, 2
"""Whether ids are whole numbers of 64 bits, or else."""
_UNREADABLE = (ValueError, ArithmeticError)
"""What pyarrow raises at values that Python cannot hold: texts of other bytes, years to come."""
_READERS = ("pyarrow", "backports", "compression", "_zstd")
"""Packages that raise errors of their own at what they cannot read."""
_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Batch(NamedTuple):
    """
    Some requests.

    Attributes:
        first: The number of the first line, from 1 on, or of the first row.
        data: Whole lines of JSON, or a stream of Arrow.
        end: The place behind them: in bytes of lines, or in rows.
        lines: How many lines or rows they are.

    """

    first: int
    data: bytes
    end: int
    lines: int


class Answers(NamedTuple):
    """
    The rows of a batch.

    Attributes:
        data: As they stand in the output.
        requests: How many there are.
        failed: How many of them have an error.
        ids: Of which types their ids are.

    """

    data: bytes
    requests: int
    failed: int
    ids: int


class Source(Protocol):
    """An input that is open."""

    def share(self) -> float:
        """Return how much of it has been read, from 0 to 1."""
        ...

    def batches(self, place: int, line: int) -> Iterator[Batch]:
        """Yield the batches from a place behind one on; *line* is the number of the next line."""
        ...


def ending_of(path: str) -> str | None:
    """Return which of `ENDINGS` a name has."""
    return next((ending for ending in reversed(ENDINGS) if path.endswith(ending)), None)


def need(path: str) -> None:
    """Raise `MissingPackageError` if there is no package for a file of that name."""
    ending = ending_of(path)
    try:
        if ending == ".parquet":
            importlib.import_module("pyarrow.parquet")
        elif ending == ".jsonl.zst":
            _zstd()
    except ImportError as error:
        raise MissingPackageError(
            f"{path!r} needs pip install 'budgeteer[bulk]': {error}"
        ) from None


def _zstd() -> Any:
    """Return the module of Python 3.14, or its backport."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return importlib.import_module("backports.zstd")


@contextmanager
def opened(path: str, packer: Packer) -> Iterator[Source]:
    """Open a file of requests; it is an `InvalidArgumentError` where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - any str may be asked for
            yield _Rows(path, file, packer) if path.endswith(".parquet") else _Lines(path, file)
    except (EOFError, OSError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidArgumentError(f"cannot read {path!r}: {why}") from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _READERS:
            raise
        raise InvalidArgumentError(f"cannot read {path!r}: {error}") from None


class _Lines:
    """JSON, a request to a line."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._file, self._lines = file, file
        self._size = max(1, os.fstat(file.fileno()).st_size)
        if path.endswith(".gz"):
            gzip = importlib.import_module("gzip")
            self._lines = gzip.GzipFile(fileobj=file)
        elif path.endswith(".zst"):
            self._lines = _zstd().ZstdFile(file)

    def share(self) -> float:
        return self._file.tell() / self._size

    def batches(self, place: int, line: int) -> Iterator[Batch]:
        self._lines.seek(place)  # what is compressed is read until there
        while lines := self._lines.readlines(_BATCH):
            data = b"".join(lines)
            place += len(data)
            yield Batch(line, data, place, len(lines))
            line += len(lines)


class _Rows:
    """A table, a request to a row."""

    def __init__(self, path: str, file: IO[bytes], packer: Packer) -> None:
        parquet = importlib.import_module("pyarrow.parquet")
        # Not ahead: a row group may be as large as the file.
        self._table = parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BATCH)
        names = self._table.schema_arrow.names
        self._columns = [name for name in _FIELDS if name in names]
        for name in ("query", "chunks") if reads_query(prepared_of(packer)) else ("chunks",):
            if name not in names:
                listed = ", ".join(repr(name[:80]) for name in names[:20]) or "none"
                hint = _validate.did_you_mean(name, names)
                raise InvalidArgumentError(
                    f"{path!r} must have a column {name!r}{hint}; it has {listed}"
                )
        self._rows: int = max(1, self._table.metadata.num_rows)
        self._read = 0

    def share(self) -> float:
        return self._read / self._rows

    def batches(self, place: int, line: int) -> Iterator[Batch]:
        about = self._table.metadata
        for group in range(about.num_row_groups):
            rows = about.row_group(group).num_rows
            if self._read + rows <= place:
                self._read += rows
                continue
            size = about.row_group(group).total_byte_size
            most = max(1, min(_ROWS, _BATCH * rows // max(1, size)))
            # Of one group at a time, so that batches begin alike wherever reading begins.
            options = {"row_groups": [group], "columns": self._columns, "use_threads": False}
            for batch in self._table.iter_batches(most, **options):
                self._read += len(batch)
                if self._read > place:
                    yield Batch(line, _stream_of(batch), self._read, len(batch))
                    line += len(batch)


_FIELDS = ("id", "query", "chunks", "max_tokens")


def _stream_of(batch: Any) -> bytes:
    """Return rows of pyarrow as bytes that say their types."""
    arrow = importlib.import_module("pyarrow")
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


class Answerer:
    """Packs batches."""

    def __init__(self, packer: Packer, source: str, output: str) -> None:
        self._packer = packer
        self._needs_query = reads_query(prepared_of(packer))
        self._requests = _of_rows if source == ".parquet" else _of_lines
        self._is_arrow = output == ".parquet"
        self._compressed = compressor_of(output)

    def __call__(self, batch: Batch) -> Answers:
        rows, failed, ids = [], 0, 0
        for request in self._requests(batch):
            row, kind = self._row(request)
            failed += row["error"] is not None
            ids |= kind
            rows.append(f"{_encoded(row)}\n")
        data = "".join(rows).encode("utf-8", "backslashreplace")
        return Answers(self._compressed(data) if data else b"", len(rows), failed, ids)

    def _row(self, request: Any) -> tuple[dict[str, Any], int]:
        """Return the row of a request, and of which type its id is."""
        name: dict[str, Any] = {}
        kind = 0
        try:
            if isinstance(request, InvalidArgumentError):
                raise request
            if not isinstance(request, dict):
                found = _validate.type_name(request)
                raise InvalidArgumentError(f"a request must be a JSON object, not {found}")
            kind = _kind_of(_value(request, "id"), is_arrow=self._is_arrow)
            name = {"id": request["id"]} if kind else {}
            return {**name, **self._packed(request), "error": None}, kind
        except InternalError:
            raise
        except BudgeteerError as error:
            said = str(error).encode("utf-8", "backslashreplace").decode()
            return {**name, **dict.fromkeys(ANSWERED), "error": said}, kind

    def _packed(self, request: dict[str, Any]) -> dict[str, Any]:
        query, chunks = _value(request, "query"), _value(request, "chunks")
        if not isinstance(chunks, list):
            raise InvalidArgumentError(f"chunks must be a list, not {_validate.type_name(chunks)}")
        for i, chunk in enumerate(chunks):
            check_chunk(f"chunks[{i}]", chunk)
        if query is None and not self._needs_query:
            query = ""
        limit = _value(request, "max_tokens")
        packing = self._packer.pack(query, chunks, max_tokens=limit)
        if self._is_arrow:
            _refuse_surrogates("the text", packing.text)
        kept = [kept.index for kept in packing.kept]
        return {"text": packing.text, "total_tokens": packing.total_tokens, "kept": kept}


def _value(request: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, None if there is none; it may be why a table's cannot be read."""
    value = request.get(name)
    if isinstance(value, UnicodeDecodeError):
        raise InvalidArgumentError(f"{name} is not UTF-8")
    if isinstance(value, _UNREADABLE):
        raise InvalidArgumentError(f"{name} cannot be read: {one_line(str(value))}")
    return value


def check_chunk(place: str, chunk: object) -> None:
    """Refuse a value that is not a chunk in JSON."""
    if not isinstance(chunk, (str, dict)):
        found = _validate.type_name(chunk)
        raise InvalidArgumentError(f"{place} must be a str or a JSON object, not {found}")


def _kind_of(name: object, *, is_arrow: bool) -> int:
    if name is None:
        return 0
    if isinstance(name, bool) or not isinstance(name, (int, str)):
        found = _validate.type_name(name)
        raise InvalidArgumentError(f"id must be a str or a whole number, not {found}")
    if isinstance(name, str):
        if is_arrow:
            _refuse_surrogates("id", name)
        return _STRS
    return _INTS if -(2**63) <= name < 2**63 else _STRS


def _refuse_surrogates(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{what} has a lone surrogate, which Arrow cannot hold"
        ) from None


def _of_lines(batch: Batch) -> Iterator[Any]:
    """Yield the value of each line that is not blank, or why it has none."""
    for n, data in enumerate(batch.data.split(b"\n"), batch.first):
        try:
            line = decode(data, n)
            if line.strip():
                yield parse_json(line, n)
        except InvalidArgumentError as error:  # noqa: PERF203 - the others go on
            yield error


def _of_rows(batch: Batch) -> Iterator[Any]:
    """Yield the values of each row; one that Python cannot hold is why it has none."""
    arrow = importlib.import_module("pyarrow")
    table = arrow.ipc.open_stream(batch.data).read_all()
    columns = [*zip(table.column_names, map(_values_of, table.columns), strict=True)]
    for i in range(len(table)):
        yield {name: values[i] for name, values in columns}


def _values_of(column: Any) -> list[Any]:
    """Return the values of a column of pyarrow, an error for each that cannot be read."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except _UNREADABLE as error:
        if len(column) == 1:
            return [error]
    return [value for i in range(len(column)) for value in _values_of(column.slice(i, 1))]


def compressor_of(output: str) -> Callable[[bytes], bytes]:
    """Return what makes rows of JSON the bytes of an output; they may be put together."""
    if output == ".jsonl.gz":
        gzip = importlib.import_module("gzip")
        return lambda data: gzip.compress(data, _LEVELS[output], mtime=0)
    if output == ".jsonl.zst":
        zstd = _zstd()
        return lambda data: zstd.compress(data, _LEVELS[output])
    return bytes  # a table is made of the lines in the end


def write_table(lines: IO[bytes], table: IO[bytes], ids: int) -> Iterator[int]:
    """Write rows of JSON as a table, and yield how many bytes of them have been read."""
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    text, number = arrow.large_string(), arrow.int64()
    types = {"text": text, "total_tokens": number, "kept": arrow.list_(number), "error": text}
    if ids:
        types = {"id": number if ids == _INTS else text, **types}
    schema = arrow.schema(list(types.items()))
    with parquet.ParquetWriter(table, schema, compression="zstd") as writer:
        while group := lines.readlines(_GROUP):
            rows = [json.loads(line) for line in group]
            if ids & _STRS:
                for row in rows:
                    row["id"] = None if row.get("id") is None else str(row["id"])
            writer.write_table(arrow.Table.from_pylist(rows, schema))
            yield lines.tell()
