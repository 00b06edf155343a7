"""
Reference of ``rust/binding/src/table.rs``: rows of a table, each a query and its chunks.

Arrow is read by pyarrow. Every value is copied, which the native backend does not do.
"""

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from budgeteer._codes import (
    BY_DOCUMENT,
    CHUNKS_COLUMN,
    COLUMN_TYPE,
    DEFAULT_KIND,
    HYBRID,
    INFINITE,
    NAN,
    NO_COLUMN,
    NO_TABLE,
    NOT_UTF8,
    NULL,
    PLAIN,
    PRODUCER,
    QUERY_COLUMN,
    SENTENCE,
    TEXT_KEYS,
)
from budgeteer._needs import needs_of
from budgeteer._reference._pack.pipeline import Packed, Plan
from budgeteer._reference._table.column import (
    BROKEN,
    NoCapsuleError,
    is_arrow,
    is_list,
    is_text,
    pyarrow,
    read_arrow,
    storage,
    stored,
    texts,
    type_name,
)

Refused: TypeAlias = tuple[int, str, str]
Bad: TypeAlias = tuple[int, int, str, int | None]
Wants: TypeAlias = tuple[bool, bool, bool, bool, bool, bool]

_LABELS = ("title", "source", "kind")
_NUMBERS = ("score", "position", "mtime")
_SHOWN = (*_LABELS, "id", "score", "position")
_MOST = 2**32
"""No corpus has more chunks."""


class _Refusal(Exception):  # noqa: N818 - it never leaves this module
    """Why a table cannot be read: a code, the column, and what was found."""


def _is_number(kind: Any) -> bool:
    types = pyarrow().types
    kind = stored(kind)
    return bool(
        types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_decimal128(kind)
        or types.is_null(kind)
    )


@dataclass(frozen=True)
class Chunk:
    """The fields of one chunk; whether it is null; and the name of its text's field."""

    fields: dict[str, Any]
    is_null: bool = False
    name: str = ""

    def object(self) -> Any:
        """Return the chunk as a packer takes it, and as a function of the caller's gets it."""
        text, mtime = self.fields["text"], self.fields.get("mtime")
        shown = {name: self.fields.get(name) for name in _SHOWN}
        found = {name: value for name, value in shown.items() if value not in (None, BROKEN)}
        if mtime is not None:
            found["metadata"] = {"mtime": mtime}
        # The text has its own name, which is what a function of the caller's asks for.
        return {self.name or "text": text, **found} if self.name or len(self.fields) > 1 else text


@dataclass(frozen=True)
class Row:
    """The query and the chunks of a row, and the numbers by which the chunks are known."""

    query: Any
    chunks: Sequence[Chunk] | None
    places: Sequence[int]


class Rows:
    """A table of queries and chunks."""

    def __init__(self, rows: list[Row], key: str | None, keys: Any) -> None:
        self._rows, self.key, self.keys = rows, key, keys

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, nth: int, wants: Wants) -> tuple[str, list[Any]] | Bad:
        """Return the query and the chunks; or a code, the column, the field and the chunk."""
        row = self._rows[nth]
        bad = _bad(row, wants)
        if bad is not None:
            return bad
        return row.query or "", [chunk.object() for chunk in row.chunks or ()]

    def answered(self, answers: list[tuple[str, int, bytes] | str]) -> "Columns":
        """Return the columns of answers: text, tokens and kept chunks of each, or an error."""
        pa = pyarrow()
        texts_, totals, kept, errors = [], [], [], []
        for row, answer in zip(self._rows, answers, strict=True):
            if isinstance(answer, str):
                text, total, indices, error = None, None, None, answer
            else:
                text, total, raw = answer
                indices = [row.places[i] for i in array("I", raw)]
                error = None
            texts_.append(text)
            totals.append(total)
            kept.append(indices)
            errors.append(error)
        item = pa.field("item", pa.int64(), nullable=False)
        columns = {
            "text": pa.array(texts_, pa.large_string()),
            "total_tokens": pa.array(totals, pa.int64()),
            "kept": pa.array(kept, pa.list_(item)),
            "error": pa.array(errors, pa.large_string()),
        }
        if self.key is not None:
            columns = {self.key: self.keys, **columns}
        return Columns(pa.table(columns))


class Columns:
    """The columns of all answers."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with the columns. They come in the types that they have."""
        del requested_schema
        return self._table.__arrow_c_stream__()

    def __arrow_c_schema__(self) -> object:
        """Return a capsule with the types of the columns."""
        return self._table.schema.__arrow_c_schema__()


def _bad(row: Row, wants: Wants) -> Bad | None:
    """Return why a row cannot be packed."""
    needs_query, titles, scores, finite, times, tags = wants
    if row.query is BROKEN:
        return NOT_UTF8, QUERY_COLUMN, "", None
    if needs_query and row.query is None:
        return NULL, QUERY_COLUMN, "", None
    if row.chunks is None:
        return NULL, CHUNKS_COLUMN, "", None
    for i, chunk in enumerate(row.chunks):
        place = row.places[i]
        if chunk.is_null:
            return NULL, CHUNKS_COLUMN, "", place
        fields = chunk.fields
        if fields["text"] is None or fields["text"] is BROKEN:
            code = NULL if fields["text"] is None else NOT_UTF8
            return code, CHUNKS_COLUMN, chunk.name, place
        if (titles or tags) and fields.get("title") is BROKEN:
            return NOT_UTF8, CHUNKS_COLUMN, "title", place
        for name, wanted in (("score", scores), ("mtime", times)):
            number = fields.get(name)
            if wanted and number is not None:
                if math.isnan(number):
                    return NAN, CHUNKS_COLUMN, name, place
                if name == "score" and finite and math.isinf(number):
                    return INFINITE, CHUNKS_COLUMN, name, place
        for name in ("id", "source", "kind"):
            if tags and fields.get(name) is BROKEN:
                return NOT_UTF8, CHUNKS_COLUMN, name, place
    return None


def read_rows(
    table: object, query: str | None, chunks: str | None, group_by: str | None
) -> Rows | Refused:
    """
    Read a table, which gives Arrow; or return a code, the column and what was found there.

    Without a column of chunks, rows have none.
    """
    try:
        return _rows(_parts(table), query, chunks, group_by)
    except _Refusal as refusal:
        code, column, found = refusal.args
        return code, column, found


def _parts(table: Any) -> Any:
    """Return the table as a chunked array of structs."""
    if not is_arrow(table):
        raise _Refusal(NO_TABLE, "", "")
    try:
        found = read_arrow(table)
    except NoCapsuleError:
        raise _Refusal(NO_TABLE, "", "") from None
    except MemoryError:
        raise
    except Exception as error:
        said = str(error).encode("utf-8", "backslashreplace").decode()
        raise _Refusal(PRODUCER, "", said) from error
    if not pyarrow().types.is_struct(found.type):
        raise _Refusal(NO_TABLE, "", type_name(found.type))
    return found


def _field(kind: Any, name: str) -> int:
    """Return the place of a column, the first where several have its name."""
    names = [kind.field(i).name for i in range(kind.num_fields)]
    if name not in names:
        raise _Refusal(NO_COLUMN, name, "\0".join(names))
    return names.index(name)


def _rows(table: Any, query: str | None, chunks: str | None, group_by: str | None) -> Rows:
    pa = pyarrow()
    kind = table.type
    queries: list[Any] = [None] * len(table)
    if query is not None:
        of_query = _field(kind, query)
        _checked(is_text, kind.field(of_query).type, query)
        queries = [text for part in table.chunks for text in _masked(part, of_query)]
    if chunks is None:
        return Rows([Row(q, (), range(_MOST)) for q in queries], None, None)
    at = _field(kind, chunks)
    if group_by is None:
        lists = _lists(table, kind.field(at).type, at, chunks)
        return Rows(
            [
                Row(q, found, range(len(found or ())))
                for q, found in zip(queries, lists, strict=True)
            ],
            None,
            None,
        )
    of_key = _field(kind, group_by)
    kind_of_chunks = kind.field(at).type
    taken = (chunks, query, group_by)
    items: list[Chunk] = []
    if pa.types.is_struct(kind_of_chunks):
        _check_fields(kind_of_chunks, chunks)
        for part in table.chunks:
            items.extend(_structs(part.field(at), chunks))
    else:
        _checked(is_text, kind_of_chunks, chunks)
        _check_labels(kind, "", taken)
        for part in table.chunks:
            columns = {"text": texts(part.field(at)), **_columns(part, "", taken)}
            items.extend(
                Chunk(dict(zip(columns, values, strict=True)))
                for values in zip(*columns.values(), strict=True)
            )
    of_keys = kind.field(of_key).type
    is_int = pa.types.is_integer(stored(of_keys))
    if not is_int:
        _checked(is_text, of_keys, group_by)
    keys = [key for part in table.chunks for key in _masked(part, of_key)]
    if any(key is BROKEN for key in keys):
        raise _Refusal(COLUMN_TYPE, group_by, "a text that is not UTF-8")
    groups: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    rows = [Row(queries[of[0]], [items[i] for i in of], of) for of in groups.values()]
    of_answer = pa.large_string()
    if is_int:
        of_answer = pa.uint64() if stored(of_keys) == pa.uint64() else pa.int64()
    return Rows(rows, group_by, pa.array([*groups], of_answer))


def _checked(is_right: Callable[[Any], bool], kind: Any, column: str) -> None:
    if not is_right(kind):
        raise _Refusal(COLUMN_TYPE, column, type_name(kind))


def _masked(part: Any, at: int) -> list[Any]:
    """Return the texts or numbers of a column, None where the row itself is null."""
    column = part.field(at)
    found = texts(column) if is_text(column.type) else storage(column).to_pylist()
    return [
        value if there else None
        for value, there in zip(found, part.is_valid().to_pylist(), strict=True)
    ]


def _lists(table: Any, kind: Any, at: int, chunks: str) -> Iterator[list[Chunk] | None]:
    """Yield the chunks of each row."""
    pa = pyarrow()
    if pa.types.is_null(stored(kind)):
        yield from [None] * len(table)
        return
    _checked(is_list, kind, chunks)
    if pa.types.is_struct(kind.value_type):
        _check_fields(kind.value_type, chunks)
    else:
        _checked(is_text, kind.value_type, f"{chunks}[]")
    for part in table.chunks:
        for there, found in zip(part.is_valid().to_pylist(), part.field(at), strict=True):
            if not there or not found.is_valid:
                yield None
            elif pa.types.is_struct(kind.value_type):
                yield list(_structs(found.values, chunks))
            else:
                yield [Chunk({"text": text}) for text in texts(found.values)]


def _check_fields(kind: Any, chunks: str) -> None:
    """Refuse structs without texts, or with fields of other types."""
    name = _text_name(kind, chunks)
    _checked(is_text, kind.field(_field(kind, name)).type, f"{chunks}[].{name}")
    _check_labels(kind, f"{chunks}[].", ())


def _text_name(kind: Any, chunks: str) -> str:
    names = [kind.field(i).name for i in range(kind.num_fields)]
    name = next((name for name in TEXT_KEYS if name in names), None)
    if name is None:
        raise _Refusal(NO_COLUMN, f"{chunks}[].text", "\0".join(names))
    return name


def _check_labels(kind: Any, prefix: str, taken: Sequence[str | None]) -> None:
    """Refuse the other fields of chunks if they have another type."""
    for i in range(kind.num_fields):
        name, found = kind.field(i).name, kind.field(i).type
        if name in taken:
            continue
        if name in _LABELS:
            _checked(is_text, found, prefix + name)
        elif name in _NUMBERS:
            _checked(_is_number, found, prefix + name)
        elif name == "id" and not pyarrow().types.is_integer(stored(found)):
            _checked(is_text, found, prefix + name)


def _structs(part: Any, chunks: str) -> Iterator[Chunk]:
    """Yield structs as chunks."""
    name = _text_name(part.type, chunks)
    columns = _columns(part, f"{chunks}[].", ())
    columns["text"] = texts(part.field(_field(part.type, name)))
    for i, there in enumerate(part.is_valid().to_pylist()):
        yield Chunk({key: column[i] for key, column in columns.items()}, not there, name)


def _columns(part: Any, prefix: str, taken: Sequence[str | None]) -> dict[str, list[Any]]:
    """Return the fields of chunks beside their texts."""
    _check_labels(part.type, prefix, taken)
    found: dict[str, list[Any]] = {}
    for i in range(part.type.num_fields):
        name, column = part.type.field(i).name, part.field(i)
        if name in taken:
            continue
        if name in _LABELS or (name == "id" and is_text(column.type)):
            found[name] = texts(column)
        elif name == "id":
            found[name] = storage(column).to_pylist()
        elif name in _NUMBERS:
            found[name] = [None if x is None else float(x) for x in storage(column).to_pylist()]
    return found


def pack_rows(
    plan: Plan, rows: Rows, budget: int, needs_query: bool, refuse: Callable[..., str]
) -> Columns:
    """Pack each row. *refuse* words the errors of rows that cannot be read."""
    ranking, _, hybrid = plan.ranking
    needs = needs_of(ranking, hybrid, plan.selection)
    tags = plan.template[0] != PLAIN or plan.order == BY_DOCUMENT
    titles = needs.titles or plan.units == SENTENCE
    wants = (needs_query, titles, needs.scores, ranking == HYBRID, needs.times, tags)
    answers: list[tuple[str, int, bytes] | str] = []
    for nth in range(len(rows)):
        row = rows._rows[nth]  # noqa: SLF001 - of this module
        bad = _bad(row, wants)
        if bad is not None:
            answers.append(refuse(*bad))
            continue
        chunks = row.chunks or ()
        keys = None
        if needs.scores or needs.times:
            name, missing = ("mtime", 0.0) if needs.times else ("score", math.nan)
            found = (chunk.fields.get(name) for chunk in chunks)
            keys = array("d", [missing if x is None else x for x in found]).tobytes()
        objects = tuple(chunk.object() for chunk in chunks)
        packed = plan.pack(row.query or "", objects, budget, keys=keys, tag=_tagger(chunks))
        assert isinstance(packed, Packed)  # noqa: S101 - every text was read before
        answers.append((packed.text, packed.total_tokens, packed.kept))
    return rows.answered(answers)


def _tagger(chunks: Sequence[Chunk]) -> Callable[[int], tuple[str, str, str, str, float]]:
    """Return a function that returns kind, id, source, title and position of a chunk."""

    def tag(i: int) -> tuple[str, str, str, str, float]:
        fields = chunks[i].fields
        kind, identifier, position = (fields.get(name) for name in ("kind", "id", "position"))
        return (
            DEFAULT_KIND if kind is None else kind,
            str(i if identifier is None else identifier),
            fields.get("source") or "",
            fields.get("title") or "",
            math.nan if position is None else position,
        )

    return tag
