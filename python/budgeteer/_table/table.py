"""Tables: each row is a query and its chunks, and the answer is a table again."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._codes import (
    BY_DOCUMENT,
    COLUMN_TYPE,
    COVERAGE,
    HYBRID,
    INFINITE,
    INPUT,
    NAN,
    NO_COLUMN,
    NO_TABLE,
    NOT_UTF8,
    NULL,
    PLAIN,
    QUERY_COLUMN,
    RECENCY,
)
from budgeteer._copies import Unpickled
from budgeteer._pack.packer import Packer, begin, finish, prepared_of
from budgeteer._pack.packing import Packing
from budgeteer._pack.prepared import Prepared, refuse_sticky
from budgeteer._pack.state import Indexed
from budgeteer._public import public
from budgeteer.errors import BudgeteerError, CorpusError, InternalError, InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from budgeteer._pack.packer import Options

ANSWERED = ("text", "total_tokens", "kept", "error")
"""The columns of an answer."""

_NUMBERS = ("score", "position", "mtime")


@public("budgeteer")
class PackedTable(Unpickled):
    """
    The answers to the rows of a table, as columns. Made by `pack_table`.

    It has the Arrow PyCapsule interface: ``pyarrow.table(packed)``, ``polars.DataFrame(packed)``,
    ``pandas.DataFrame.from_arrow(packed)`` and DuckDB, by the name of the variable, read it.

    ================  ===============  =========================================================
    ``text``          large_string     the context of the row
    ``total_tokens``  int64            the count of exactly that text
    ``kept``          list of int64    the chunks in it, in their order there: their places in the
                                       row's list or in the corpus from 0 on, or their rows in a
                                       long table
    ``error``         large_string     why the row could not be packed; else null
    ================  ===============  =========================================================

    Where there is an error, the other three are null. Under ``group_by`` the column of keys comes
    first.

    Examples:
        >>> import pyarrow
        >>> from budgeteer import pack_table
        >>> table = pyarrow.table({"query": ["tea"], "chunks": [["Bread.", "Green tea."]]})
        >>> packed = pack_table(table, 4)
        >>> packed
        PackedTable(rows=1, columns=['text', 'total_tokens', 'kept', 'error'])
        >>> pyarrow.table(packed)["text"].to_pylist()
        ['Green tea.']

    """

    __slots__ = ("_columns", "_names")

    _instead = "pickle what reads it, as pyarrow.table(packed)"

    def __init__(self, columns: Any, names: tuple[str, ...]) -> None:
        """Wrap the columns of a backend; made by `pack_table`."""
        self._columns = columns
        self._names = names

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._columns)

    def __repr__(self) -> str:
        """Show the number of rows, and the columns."""
        return f"PackedTable(rows={len(self)}, columns={[*self._names]})"

    def __copy__(self) -> PackedTable:
        """Return the table itself, which never changes."""
        return self

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the columns as a capsule, in their own types."""
        return self._columns.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the types of the columns as a capsule."""
        return self._columns.__arrow_c_schema__()


def pack_table(
    table: Any,
    max_tokens: int,
    *,
    query: str | None = "query",
    chunks: str | Indexed[Any] = "chunks",
    group_by: str | None = None,
    **options: Unpack[Options],
) -> PackedTable:
    """
    Pack each row of *table*: a query and its chunks.

    The answer has a row for each, in the same order. Strings are read where the table has them,
    the interpreter's lock is released, and many rows are packed by several threads, unless a
    function of the caller's is asked: a counter, a template, a prompt or an embedder.

    Args:
        table: Any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``: a data frame of
            Polars or pandas (with pyarrow installed), a relation of DuckDB, a table, batch or
            reader of pyarrow. A reader is read to its end.
        max_tokens: The most tokens of each text, from 0 on.
        query: The name of the column of queries. None if nothing reads them, as under
            ``ranking="score"``.
        chunks: The name of the column of chunks: lists of strings, or of structs with ``text``,
            ``content`` or ``page_content``. Of other fields these are read: ``title``, ``source``,
            ``kind`` (strings), ``id`` (strings or whole numbers), ``score``, ``position`` and
            ``mtime`` (numbers). Or a `Corpus`: each row is a query over it, packed in the
            caller's thread.
        group_by: None, or the name of a column of strings or whole numbers: the table is a long
            one, in which each row is one chunk. Rows with the same key make one query, wherever
            they stand; groups come in the order of their first rows, and so do chunks. The query
            of a group is that of its first row. *chunks* names a column of strings, beside which
            the table's columns with the names above are read, or one of structs.
        **options: The options of `Packer`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range; there is no such
            column, or it has a wrong type. What is wrong with a single row is in its ``error``.
        CorpusError: The file of the corpus is damaged.

    Examples:
        >>> import pyarrow
        >>> rows = [{"text": "Bread.", "score": 0.2}, {"text": "Tea.", "score": 0.9}]
        >>> table = pyarrow.table({"query": ["tea", None], "chunks": [rows, rows]})
        >>> packed = pyarrow.table(pack_table(table, 8, ranking="score", max_chunks=1))
        >>> packed["text"].to_pylist(), packed["kept"].to_pylist()
        (['Tea.', 'Tea.'], [[1], [1]])
        >>> pyarrow.table(pack_table(table, 8))["error"].to_pylist()
        [None, "query is null, and ranking='lexical' needs one"]
        >>> long = {"key": [7, 3, 7], "query": ["tea"] * 3, "text": ["Tea.", "Rye.", "Teas."]}
        >>> packed = pack_table(pyarrow.table(long), 9, chunks="text", group_by="key")
        >>> pyarrow.table(packed).select(["key", "kept"]).to_pylist()
        [{'key': 7, 'kept': [0, 2]}, {'key': 3, 'kept': [1]}]
        >>> from budgeteer import Corpus
        >>> packed = pack_table(table, 3, chunks=Corpus(["Bread.", "Green tea."]))
        >>> pyarrow.table(packed)["text"].to_pylist()
        ['Green tea.', None]

    """
    return TablePacker(max_tokens, query, chunks, group_by, options).pack(table)


class TablePacker:
    """Packs tables as `pack_table` does, whose arguments are checked when it is made."""

    def __init__(
        self,
        max_tokens: int,
        query: str | None,
        chunks: str | Indexed[Any],
        group_by: str | None,
        options: Any,
    ) -> None:
        packer = Packer(max_tokens, **options)
        if query is not None:
            query = _name("query", query)
        corpus = column = None
        if isinstance(chunks, Indexed):
            corpus = chunks
        elif isinstance(chunks, str):
            column = _name("chunks", chunks)
        else:
            raise InvalidArgumentError(
                f"chunks must be a str, the name of a column, or a Corpus, not "
                f"{_validate.type_name(chunks)}"
            )
        if group_by is not None:
            group_by = _name("group_by", group_by)
        _check(prepared_of(packer), query, group_by, corpus)
        refuse_sticky(packer, "in pack_table")
        self._packer = packer
        self._corpus = corpus
        self._names = query, column, group_by

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(name for name in self._names if name is not None)

    def pack(self, table: Any) -> PackedTable:
        """
        Pack each row of a table.

        Raises:
            InvalidArgumentError: There is no such column, or it has a wrong type.
            CorpusError: The file of the corpus is damaged.

        """
        packer, prepared = self._packer, prepared_of(self._packer)
        query, chunks, group_by = self._names
        rows = backend.read_rows(table, query, chunks, group_by)
        if isinstance(rows, tuple):
            raise _refusal(table, self._names, *rows)

        def refuse(code: int, column: int, field: str, place: int | None) -> str:
            """Word the error of a row."""
            is_query = column == QUERY_COLUMN
            where = f"{query if is_query else chunks}"
            where += ("" if place is None else f"[{place}]") + (field and f".{field}")
            if code == NULL:
                needed = f", and ranking={prepared.ranking.name!r} needs one" if is_query else ""
                return f"{where} is null{needed}"
            return where + {
                NOT_UTF8: " is not UTF-8",
                NAN: " must be a number, not NaN",
                INFINITE: " must be finite under ranking='hybrid'",
            }.get(code, " has offsets that lead out of its data")

        needs_query = reads_query(prepared)
        if self._corpus is None and _asks_nobody(prepared):
            budget = max(0, packer.max_tokens - packer.reserve_tokens)
            columns = backend.pack_rows(prepared.plan, rows, budget, needs_query, refuse)
        else:
            answers = _answers(packer, rows, needs_query, refuse, self._corpus)
            columns = rows.answered(answers)
        return PackedTable(columns, ANSWERED if group_by is None else (group_by, *ANSWERED))


def _name(argument: str, value: object) -> str:
    """Return the name of a column, of which Arrow's are UTF-8."""
    name = _validate.text(argument, value)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{argument} must be the name of a column, without lone surrogates, not {name[:80]!r}"
        ) from None
    return name


def _check(
    prepared: Prepared, query: str | None, group_by: str | None, corpus: Indexed[Any] | None
) -> None:
    """Refuse what no table can be packed with."""
    if prepared.needs.cosines and prepared.ranking.embedder is None:
        raise InvalidArgumentError(
            f"ranking must have an embedder in pack_table, to which no vectors are given: "
            f"ranking={prepared.ranking.name!r} has none"
        )
    if query is None and reads_query(prepared):
        raise InvalidArgumentError(
            f"query must be the name of a column, not None: ranking={prepared.ranking.name!r} or "
            f"another option reads it"
        )
    if corpus is not None:
        if query is None:
            raise InvalidArgumentError(
                "query must be the name of a column, not None, where chunks is a Corpus: without "
                "one all rows have the same answer, that of Packer.pack"
            )
        if group_by is not None:
            raise InvalidArgumentError(
                "group_by must be None where chunks is a Corpus: each row is a query over it, "
                "and no row is a chunk"
            )
    if group_by in ANSWERED:
        raise InvalidArgumentError(
            f"group_by must not be {group_by!r}, the name of a column of the answer: rename it in "
            f"the table"
        )


def reads_query(prepared: Prepared) -> bool:
    """Return whether the answer depends on the query."""
    needs = prepared.needs
    if prepared.selection == COVERAGE or prepared.units == "sentence":
        return True
    if prepared.ranking.code in (RECENCY, INPUT):
        return prepared.min_score is not None
    return needs.terms or needs.keywords or needs.cosines


def _asks_nobody(prepared: Prepared) -> bool:
    """Return whether the backend can pack all rows by itself."""
    template = prepared.template
    return (
        prepared.ask is None
        and prepared.prompt is None
        and prepared.ranking.embedder is None
        and template.nonce is False
        and not callable(template.format)
    )


def _answers(
    packer: Packer,
    rows: Any,
    needs_query: bool,
    refuse: Callable[..., str],
    corpus: Indexed[Any] | None,
) -> list[tuple[str, int, bytes] | str]:
    """Pack row by row. Return text, tokens and indices of each, or its error."""
    prepared = prepared_of(packer)
    needs = prepared.needs
    is_plain = prepared.template._style == PLAIN  # noqa: SLF001 - a part of the options
    tags = not is_plain or prepared.order == BY_DOCUMENT
    titles = needs.titles or prepared.units == "sentence"
    wants = (
        *(needs_query, titles, needs.scores, prepared.ranking.code == HYBRID),
        *(needs.times, tags),
    )
    answers: list[tuple[str, int, bytes] | str] = []
    for nth in range(len(rows)):
        found = rows.row(nth, wants)
        if len(found) == 4:
            answers.append(refuse(*found))
        else:
            query, chunks = found
            answers.append(_answer(packer, query, chunks if corpus is None else corpus))
    return answers


def _answer(
    packer: Packer, query: str, chunks: list[Any] | Indexed[Any]
) -> tuple[str, int, bytes] | str:
    try:
        call = begin(packer, query, chunks)  # not `pack`: a table has no span for each row
        if call.is_missing_vectors:
            call.embed()
        packing = finish(call, packer.max_tokens, packer.reserve_tokens)
    except (CorpusError, InternalError):  # of all rows
        raise
    except BudgeteerError as error:
        return str(error).encode("utf-8", "replace").decode()
    except Exception as error:  # noqa: BLE001 - a caller's own, which may quote a text
        return f"a function of the caller's raised {type(error).__name__}"
    try:
        packing.text.encode()
    except UnicodeEncodeError:
        return "the text has a lone surrogate, which Arrow cannot hold"
    return packing.text, packing.total_tokens, _indices(packing)


def _indices(packing: Packing[Any]) -> bytes:
    return array("I", [kept.index for kept in packing.kept]).tobytes()


def _refusal(
    table: object,
    names: tuple[str | None, str | None, str | None],
    code: int,
    column: str,
    found: str,
) -> InvalidArgumentError:
    """Return the error for a table that a backend could not read."""
    query, chunks, group_by = names
    if code == NO_TABLE:
        what = f"a column of type {found}" if found else _validate.type_name(table)
        return InvalidArgumentError(
            f"table must be a table that gives Arrow, as those of Polars, pandas, DuckDB and "
            f"pyarrow do, not {what}"
        )
    if code == NO_COLUMN:
        fields = found.split("\0") if found else []
        listed = ", ".join(repr(name[:80]) for name in fields[:20]) or "none"
        if chunks is not None and column == f"{chunks}[].text" and column not in (query, group_by):
            return InvalidArgumentError(
                f"chunks must name structs with 'text', 'content' or 'page_content'; those of "
                f"{chunks[:80]!r} have {listed}"
            )
        name = ("group_by" if column == group_by else "chunks") if column != query else "query"
        hint = _validate.did_you_mean(column, fields)
        return InvalidArgumentError(
            f"{name} must be the name of a column, not {column[:80]!r}{hint}; the table has "
            f"{listed}"
        )
    if code == COLUMN_TYPE:
        field = column.rpartition(".")[2]
        allowed = "strings"
        if column == chunks:
            one = "strings or structs"
            allowed = one if group_by is not None else f"lists of {one}"
        elif column == f"{chunks}[]":
            allowed = "strings or structs"
        elif column == query:
            allowed = "strings"
        elif column == group_by or field == "id":
            allowed = "strings or whole numbers"
        elif field in _NUMBERS:
            allowed = "numbers"
        return InvalidArgumentError(
            f"the column {column[:80]!r} of table must have {allowed}, not {found}"
        )
    return InvalidArgumentError(f"table cannot be read: {found[:500]}")
