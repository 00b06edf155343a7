"""Tables that cannot be read are refused; rows that cannot be packed say why."""

import ctypes
import math
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_table import answers_of

from budgeteer import Corpus, Template, pack_table
from budgeteer.errors import InternalError, InvalidArgumentError
from budgeteer.ranking import Hybrid

TABLE = pa.table({"query": ["tea"], "chunks": [["Tea."]]})
BAD = pa.Array.from_buffers(
    pa.string(),
    2,
    [None, pa.py_buffer(b"\0\0\0\0\4\0\0\0\6\0\0\0"), pa.py_buffer(b"Tea.\xff\xfe")],
)
"""A text, and bytes that are none, which pyarrow takes as it is told."""


def offsets(*numbers):
    return pa.py_buffer(b"".join(number.to_bytes(4, "little", signed=True) for number in numbers))


def lists_of(items, *ends):
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)


def structs(**columns):
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def table_of(lists, queries=None):
    queries = ["tea"] * len(lists) if queries is None else queries
    return pa.table({"query": queries, "chunks": lists})


TWO = {"text": pa.array(["Tea.", "Rye."])}
ROWS = {
    "null query": (
        table_of([["Tea."]], pa.array([None], pa.string())),
        {},
        "query is null, and ranking='lexical' needs one",
    ),
    "null query, coverage": (
        table_of([["Tea."]], pa.array([None], pa.string())),
        {"ranking": "input", "selection": "coverage"},
        "query is null, and ranking='input' needs one",
    ),
    "null list": (table_of(pa.array([None], pa.list_(pa.string()))), {}, "chunks is null"),
    "null text": (table_of([["Tea.", None]]), {}, "chunks[1] is null"),
    "null struct": (table_of([[{"text": "Tea."}, None]]), {}, "chunks[1] is null"),
    "null field": (table_of([[{"text": "Tea."}, {"text": None}]]), {}, "chunks[1].text is null"),
    "null content": (
        table_of([[{"content": "Tea."}, {"content": None}]]),
        {},
        "chunks[1].content is null",
    ),
    "NaN": (
        table_of(lists_of(structs(**TWO, score=pa.array([0.5, math.nan])), 0, 2)),
        {"ranking": "score"},
        "chunks[1].score must be a number, not NaN",
    ),
    "NaN time": (
        table_of(lists_of(structs(**TWO, mtime=pa.array([math.nan, 1.0])), 0, 2)),
        {"ranking": "recency"},
        "chunks[0].mtime must be a number, not NaN",
    ),
    "infinite": (
        table_of(lists_of(structs(**TWO, score=pa.array([math.inf, 1.0])), 0, 2)),
        {"ranking": Hybrid(weights={"bm25": 1.0, "score": 1.0})},
        "chunks[0].score must be finite under ranking='hybrid'",
    ),
    "bytes": (table_of(lists_of(BAD, 0, 2)), {}, "chunks[1] is not UTF-8"),
    "bytes in a query": (table_of([["Tea."]], BAD.slice(1)), {}, "query is not UTF-8"),
    "bytes in a title": (
        table_of(lists_of(structs(**TWO, title=BAD), 0, 2)),
        {},
        "chunks[1].title is not UTF-8",
    ),
    "bytes in a title of sentences": (
        table_of(lists_of(structs(**TWO, title=BAD), 0, 2)),
        {"ranking": "score", "units": "sentence"},
        "chunks[1].title is not UTF-8",
    ),
    "bytes in a title of sentences, with a counter": (
        table_of(lists_of(structs(**TWO, title=BAD), 0, 2)),
        {"ranking": "score", "units": "sentence", "counter": len},
        "chunks[1].title is not UTF-8",
    ),
    "bytes in a source": (
        table_of(lists_of(structs(**TWO, source=BAD), 0, 2)),
        {"template": "xml"},
        "chunks[1].source is not UTF-8",
    ),
    "bytes in an id": (
        table_of(lists_of(structs(**TWO, id=BAD), 0, 2)),
        {"template": "xml", "counter": len},
        "chunks[1].id is not UTF-8",
    ),
}


@pytest.mark.parametrize(("table", "options", "error"), ROWS.values(), ids=ROWS)
def test_a_bad_row(backend, table, options, error):
    """A row says why it was not packed; the rows around it are packed as without it."""
    good = pa.table({"query": ["tea"], "chunks": [["Tea."]]})
    good = good.cast(table.schema) if table.schema == good.schema else None
    tables = [table] if good is None else [good, table, good]

    answers = answers_of(pack_table(pa.concat_tables(tables), 30, **options))

    expected = [(None, None, None, error)]
    if good is not None:
        fine = [("Tea.", 2, [0], None)]
        expected = [*fine, *expected, *fine]
    counted = options.get("counter") is len
    assert counted or expected == answers
    assert (None, None, None, error) in answers


def test_what_is_not_read_is_not_looked_at(backend):
    """A null query, a NaN or bytes in a label are no error where nothing reads them."""
    fields = structs(**TWO, score=pa.array([0.5, math.nan]), source=BAD)
    table = table_of(lists_of(fields, 0, 2), pa.array([None], pa.string()))

    answers = answers_of(pack_table(table, 30, ranking="input"))

    assert [("Tea.\n\nRye.", 5, [0, 1], None)] == answers


def test_what_stands_below_a_null_struct_is_not_looked_at(backend):
    """A dictionary has no text for the field of a null struct, as pyarrow makes it."""
    kind = pa.struct([("text", pa.dictionary(pa.int8(), pa.string()))])
    table = table_of(pa.array([[None]], pa.list_(kind)))

    answers = answers_of(pack_table(table, 30))

    assert [(None, None, None, "chunks[0] is null")] == answers


def test_a_row_of_a_long_table_is_named(backend):
    """In a long table the row of the table is named."""
    table = pa.table({"key": [1, 2, 1], "query": ["tea"] * 3, "text": ["Tea.", "Rye.", None]})

    answers = answers_of(pack_table(table, 30, chunks="text", group_by="key"))

    assert (None, None, None, "text[2] is null") == answers[0]
    assert ("Rye.", 3, [1], None) == answers[1]


def test_a_column_of_nulls(backend):
    """Rows without chunks are errors of theirs, even where no row has any and no type is known."""
    answer = (None, None, None, "chunks is null")
    for chunks in (pa.nulls(2), pl.Series([None, None]), pd.Series([None, None])):
        table = pa.table({"query": ["tea", "rye"], "chunks": pa.array(chunks)})
        assert [answer] * 2 == answers_of(pack_table(table, 30))
    assert [answer] == answers_of(pack_table(pd.DataFrame({"query": ["a"], "chunks": [None]}), 9))
    long = pa.table({"key": [1, 1], "query": ["tea"] * 2, "text": pa.nulls(2)})
    [found] = answers_of(pack_table(long, 30, chunks="text", group_by="key"))
    assert "text[0] is null" == found[3]


def test_columns_of_extension_types(backend):
    """They are read as what they are stored as."""
    query = pa.array(['{"a": 1}'], pa.json_())
    score = pa.array([1, 0], pa.bool8())
    items = structs(**TWO, id=pa.array(["a", "b"], pa.json_()), score=score)
    table = pa.table({"query": query, "chunks": lists_of(items, 0, 2)})
    assert [("Tea.\n\nRye.", 5, [0, 1], None)] == answers_of(pack_table(table, 30))
    [found] = answers_of(pack_table(table, 3, ranking="score", template="xml")) or [None]
    assert found[3] is None
    long = pa.table({"key": query, "query": query, "text": ["Tea."]})
    packed = pa.table(pack_table(long, 30, chunks="text", group_by="key"))
    assert ['{"a": 1}'] == packed["key"].to_pylist()


@pytest.mark.parametrize("scale", [0, 1, 17, -3])
def test_decimals_are_numbers(backend, scale):
    """A literal of SQL such as 0.9 is a decimal; it is read as Python's float of it."""
    numbers = [Decimal(digits).scaleb(-scale) for digits in (1, 98765432109876543)]
    kind = pa.decimal128(38, scale)
    items = structs(**TWO, score=pa.array(numbers, kind), mtime=pa.array([None, 0], kind))
    table = table_of(lists_of(items, 0, 2))
    options = {"ranking": "score", "max_chunks": 1, "min_score": float(numbers[1])}
    assert [("Rye.", 3, [1], None)] == answers_of(pack_table(table, 30, **options))
    options["min_score"] = math.nextafter(float(numbers[1]), math.inf)
    assert [("", 0, [], None)] == answers_of(pack_table(table, 30, **options))
    wide = structs(**TWO, score=pa.array([1, 2], pa.decimal256(40, 1)))
    with pytest.raises(
        InvalidArgumentError, match="score' of table must have numbers, not decimal"
    ):
        pack_table(table_of(lists_of(wide, 0, 2)), 30)


def test_fields_of_one_name(backend):
    """The first of several texts is taken."""
    fields = [pa.array(["Tea.", "Rye."]), pa.array(["no", "no"])]
    items = pa.StructArray.from_arrays(fields, ["text", "text"])
    table = pa.table({"query": ["tea"], "chunks": lists_of(items, 0, 2)})
    assert [("Tea.\n\nRye.", 5, [0, 1], None)] == answers_of(pack_table(table, 30))


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        (None, "None"),
        ([{"query": "tea", "chunks": []}], "list"),
        ({"query": ["tea"]}, "dict"),
        ("tea", "str"),
        (pa.array(["tea"]), "a column of type string"),
        (pl.Series([1]), "a column of type int64"),
        (type("Empty", (), {"__arrow_c_stream__": lambda *_: 3})(), "Empty"),
        (type("Empty", (), {"__arrow_c_array__": lambda *_: (3, 4)})(), "Empty"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_table(backend, table, shown):
    """What gives no Arrow, or one column alone, is no table."""
    with pytest.raises(InvalidArgumentError, match=r"^table must be a table that gives") as raised:
        pack_table(table, 3)

    assert str(raised.value).endswith(f"pyarrow do, not {shown}")


WRONG = [
    (
        TABLE.rename_columns(["qeury", "chunks"]),
        {},
        (
            "query must be the name of a column, not 'query'; did you mean 'qeury'?; "
            "the table has 'qeury', 'chunks'"
        ),
    ),
    (
        TABLE,
        {"chunks": "hits"},
        "chunks must be the name of a column, not 'hits'; the table has 'query', 'chunks'",
    ),
    (
        TABLE,
        {"group_by": "day", "chunks": "query"},
        "group_by must be the name of a column, not 'day'; the table has 'query', 'chunks'",
    ),
    (
        pa.table({"query": [3], "chunks": [["Tea."]]}),
        {},
        "the column 'query' of table must have strings, not int64",
    ),
    (
        pa.table({"id": [3], "chunks": [["Tea."]]}),
        {"query": "id"},
        "the column 'id' of table must have strings, not int64",
    ),
    (
        pa.table({"key": [3], "chunks": ["Tea."]}),
        {"query": "key", "group_by": "key"},
        "the column 'key' of table must have strings, not int64",
    ),
    (
        pa.table({"query": ["tea"], "chunks": ["Tea."]}),
        {},
        "the column 'chunks' of table must have lists of strings or structs, not string",
    ),
    (
        pa.table({"query": ["tea"], "chunks": [[b"Tea."]]}),
        {},
        "the column 'chunks[]' of table must have strings or structs, not binary",
    ),
    (
        pa.table({"query": ["tea"], "chunks": [[{"body": "Tea."}]]}),
        {},
        (
            "chunks must name structs with 'text', 'content' or 'page_content'; those of 'chunks' "
            "have 'body'"
        ),
    ),
    (
        pa.table({"query": ["tea"], "chunks": [[{"text": 3}]]}),
        {},
        "the column 'chunks[].text' of table must have strings, not int64",
    ),
    (
        pa.table({"query": ["tea"], "chunks": [[{"text": "Tea.", "score": "high"}]]}),
        {},
        "the column 'chunks[].score' of table must have numbers, not string",
    ),
    (
        pa.table({"query": ["tea"], "chunks": [[{"text": "Tea.", "id": 1.5}]]}),
        {},
        "the column 'chunks[].id' of table must have strings or whole numbers, not float64",
    ),
    (
        pa.table({"query": ["tea"], "chunks": [[{"text": "Tea.", "title": True}]]}),
        {},
        "the column 'chunks[].title' of table must have strings, not bool",
    ),
    (
        TABLE,
        {"group_by": "query"},
        "the column 'chunks' of table must have strings or structs, not list",
    ),
    (
        pa.table({"query": ["tea"], "text": ["Tea."], "key": [1.5]}),
        {"group_by": "key", "chunks": "text"},
        "the column 'key' of table must have strings or whole numbers, not float64",
    ),
    (
        pa.table({"query": ["tea"] * 2, "text": ["Tea."] * 2, "key": BAD}),
        {"group_by": "key", "chunks": "text"},
        (
            "the column 'key' of table must have strings or whole numbers, not a text that is not "
            "UTF-8"
        ),
    ),
]


@pytest.mark.parametrize(("table", "names", "message"), WRONG, ids=[row[2][:40] for row in WRONG])
def test_wrong_columns(backend, table, names, message):
    """A column that is missing or has another type is refused, with what there is."""
    with pytest.raises(InvalidArgumentError) as raised:
        pack_table(table, 30, **names)

    assert message == str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": 3}, "query must be a str, not int"),
        (
            {"chunks": None},
            "chunks must be a str, the name of a column, or a Corpus, not None",
        ),
        (
            {"chunks": Corpus(), "group_by": "day"},
            "group_by must be None where chunks is a Corpus",
        ),
        (
            {"chunks": Corpus(), "query": None, "ranking": "input"},
            "query must be the name of a column, not None, where chunks is a Corpus",
        ),
        ({"group_by": 3}, "group_by must be a str, not int"),
        ({"query": None}, "query must be the name of a column, not None"),
        ({"query": None, "ranking": "input", "min_score": 0.5}, "query must be the name of a"),
        ({"query": None, "ranking": "score", "units": "sentence"}, "query must be the name of a"),
        ({"group_by": "kept"}, "group_by must not be 'kept', the name of a column of the answer"),
        ({"order": "sticky"}, "order must not be 'sticky' in pack_table"),
        ({"ranking": "embedding"}, "ranking must have an embedder in pack_table"),
        ({"max_tokens": -1}, "max_tokens must be from 0 to"),
        ({"overflow": "cut"}, "overflow must be one of"),
    ],
)
def test_bad_arguments(backend, arguments, message):
    """An argument that no table can be packed with is refused before the table is read."""
    with pytest.raises(InvalidArgumentError) as raised:
        pack_table(None, **{"max_tokens": 3, **arguments})

    assert str(raised.value).startswith(message)


def test_a_producer_that_fails(backend):
    """What a producer says about its failure is in the error."""

    def batches():
        yield TABLE.to_batches()[0]
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(InvalidArgumentError, match=r"^table cannot be read: .*the disk is gone"):
        pack_table(reader, 3)
    # pandas' columns are objects, which Arrow may not be able to hold.
    for query, message in ((["tea", 1], "Expected bytes"), (["\ud800", "tea"], "surrogates")):
        frame = pd.DataFrame({"query": query, "chunks": [["Tea."], ["Rye."]]}, dtype=object)
        with pytest.raises(InvalidArgumentError, match=f"^table cannot be read: .*{message}"):
            pack_table(frame, 3)


@pytest.mark.parametrize("name", ["query", "chunks", "group_by"])
def test_names_that_no_column_has(backend, name):
    """A lone surrogate in a name is refused, as Arrow's names are UTF-8."""
    message = f"^{name} must be the name of a column, without lone surrogates, not '.ud800'"
    with pytest.raises(InvalidArgumentError, match=message):
        pack_table(TABLE, 3, **{name: "\ud800"})


def test_a_reader_is_read_once(backend):
    """A reader that was read to its end has no rows, or says that it is over."""
    reader = TABLE.to_reader()
    assert [("Tea.", 2, [0], None)] == answers_of(pack_table(reader, 3))

    assert [] == answers_of(pack_table(reader, 3))


def test_functions_that_fail(backend):
    """What a function of the caller's raises is in the row, by its type alone; so is our error."""
    table = pa.table({"query": ["tea"] * 3, "chunks": [["Tea."], ["Secret."], ["Rye."]]})

    def picky(text):
        if "Secret" in text:
            raise OSError(text)
        return -1 if "Rye" in text else len(text)

    answers = answers_of(pack_table(table, 30, counter=picky))

    assert ("Tea.", 4, [0], None) == answers[0]
    assert (None, None, None, "a function of the caller's raised OSError") == answers[1]
    assert answers[2][3].startswith("the counter must answer an int from 0 on for chunks[0]")


def test_a_text_that_arrow_cannot_hold(backend):
    """A function that writes a lone surrogate spoils its own row, and no other."""
    table = pa.table({"query": ["tea"] * 2, "chunks": [["Tea."], ["Rye."]]})
    template = Template(lambda chunk: "\ud800" if chunk == "Tea." else str(chunk))
    answers = answers_of(pack_table(table, 30, counter=len, template=template))
    assert "the text has a lone surrogate, which Arrow cannot hold" == answers[0][3]
    assert ("Rye.", 4, [0], None) == answers[1]


def test_a_defect_is_raised(backend, monkeypatch):
    """A defect of ours is no property of a row."""

    def broken(text):
        raise InternalError("a defect")

    with pytest.raises(InternalError, match="a defect"):
        pack_table(TABLE, 30, counter=broken)


def test_offsets_that_lead_nowhere(native):
    """Offsets that go down, or lead behind the last item, are an error of the row."""
    down = pa.Array.from_buffers(
        pa.string(), 3, [None, offsets(0, 4, 2, 6), pa.py_buffer(b"Tea.xx")]
    )
    where = " has offsets that lead out of its data"

    answers = answers_of(pack_table(table_of(lists_of(down, 0, 1, 2, 3)), 30))
    assert [None, f"chunks[0]{where}"] == [row[3] for row in answers][:2]


class CArray(ctypes.Structure):
    """``struct ArrowArray``."""


CArray._fields_ = [
    *[(name, ctypes.c_int64) for name in ("length", "null_count", "offset")],
    *[("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64)],
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
    *[("dictionary", ctypes.POINTER(CArray)), ("release", ctypes.c_void_p)],
]


class Hostile:
    """A table whose arrays were changed behind its back."""

    def __init__(self, table, change):
        self.schema, self.array = table.to_batches()[0].__arrow_c_array__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        change(CArray.from_address(get(self.array, b"arrow_array")))

    def __arrow_c_array__(self, requested_schema=None):
        return self.schema, self.array


def lists(array):
    return array.children[1].contents


def shorten(array):
    lists(array).children[0].contents.length = 1


def forget_bytes(array):
    lists(array).children[0].contents.buffers[2] = None


def forget_offsets(array):
    lists(array).buffers[1] = None


def lose_a_column(array):
    array.n_children = 1


def lengthen(array):
    array.length = 9


def lose_all_buffers(array):
    lists(array).children[0].contents.n_buffers = 1


def negate(array):
    lists(array).children[0].contents.length = -1


HOSTILE = [
    shorten,
    forget_bytes,
    forget_offsets,
    lose_a_column,
    lengthen,
    lose_all_buffers,
    negate,
]


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: change.__name__)
def test_arrays_that_are_not_of_their_type(native, change):
    """Arrays without a buffer or a child, or with fewer items than lists have, are errors."""
    table = pa.table({"query": ["tea"], "chunks": [["Tea.", "Rye."]]})
    assert [None] == [row[3] for row in answers_of(pack_table(Hostile(table, len_of), 30))]

    try:
        errors = [row[3] for row in answers_of(pack_table(Hostile(table, change), 30))]
    except InvalidArgumentError as error:
        errors = [str(error)]

    assert 1 == len(errors)
    assert errors[0].endswith(
        (
            "has offsets that lead out of its data",
            "table cannot be read: its parts do not match its type",
        )
    )


def len_of(array):
    assert 1 == array.length
