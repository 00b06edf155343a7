"""Tables: each row is packed as `Packer.pack` packs it, whatever the table is made of."""

import itertools
import math

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    budgets,
    exact_counters,
    formula_counters,
    lexicals,
    notices,
    queries,
    templates,
    texts,
    using,
)

from budgeteer import PackedTable, Packer, Prompt, Template, get_counter, pack_table
from budgeteer.errors import InvalidArgumentError
from budgeteer.ranking import Embedding, Hybrid

STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
FIELDS = {
    "id": pa.string(),
    "title": pa.string(),
    "source": pa.string(),
    "kind": pa.string(),
    "score": pa.float64(),
    "position": pa.int32(),
    "mtime": pa.float32(),
}


def is_utf8(text):
    return not any("\ud800" <= character <= "\udfff" for character in text)


arrow_texts = texts.filter(is_utf8)
labels = st.none() | arrow_texts
arrow_chunks = st.fixed_dictionaries(
    {"text": arrow_texts},
    optional={
        "id": labels,
        "title": labels,
        "source": st.sampled_from([None, "a", "b"]),
        "kind": labels,
        "score": st.none() | st.sampled_from([0.0, 1.0, -3.5, math.inf]),
        "position": st.none() | st.integers(-3, 3),
        "mtime": st.none() | st.sampled_from([0.0, 1.5, -2.0]),
    },
)
rows = st.tuples(queries.filter(is_utf8), st.lists(arrow_chunks, max_size=5))
options = st.fixed_dictionaries(
    {"counter": formula_counters | exact_counters},
    optional={
        "reserve_tokens": st.integers(0, 10),
        "ranking": st.sampled_from(["lexical", "bm25", "keyword", "recency", "input", "score"])
        | lexicals
        | st.just(Hybrid(weights={"bm25": 1.0, "score": 0.5})),
        "min_score": st.none() | st.sampled_from([0.0, 0.5]),
        "overflow": st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
        "max_chunks": st.none() | st.integers(0, 6),
        "dedupe": st.sampled_from(["exact", "near", None]),
        "selection": st.sampled_from(["rank", "coverage"]),
        "order": st.sampled_from(["rank", "input", "document", "edges"]),
        "template": templates,
        "notice": notices,
    },
)


def chunk_of(fields):
    """Return the mapping that a packer takes for a struct."""
    chunk = {name: value for name, value in fields.items() if value is not None}
    if "mtime" in chunk:
        chunk["metadata"] = {"mtime": chunk.pop("mtime")}
    return chunk


def expected_of(packer, table):
    """Return what a packer answers for each row."""

    def answer(query, chunks):
        try:
            packing = packer.pack(query, [chunk_of(chunk) for chunk in chunks])
        except InvalidArgumentError as error:
            return None, None, None, str(error).partition(", not")[0]
        return (
            packing.text,
            packing.total_tokens,
            [kept.index for kept in packing.kept],
            None,
        )

    return [answer(*row) for row in table]


def answers_of(packed):
    """Return the rows of an answer."""
    table = pa.table(packed)
    assert len(packed) == table.num_rows
    table.validate(full=True)
    return [
        tuple(row[name] for name in ("text", "total_tokens", "kept", "error"))
        for row in table.to_pylist()
    ]


def arrow(table, string, of_list, cut=0):
    """Return rows as a table of chunks, of which two more were cut off at the ends."""
    fields = [
        pa.field(name, string if kind == pa.string() else kind)
        for name, kind in {"text": pa.string(), **FIELDS}.items()
    ]
    # Arrow makes no lists of dictionaries from Python: structs come from columns.
    padded = [("x", [{"text": "before"}]), *table, ("y", [{"text": "behind"}])]
    items = [chunk for _, chunks in padded for chunk in chunks]
    columns = []
    for field in fields:
        values = [chunk.get(field.name) for chunk in items]
        if pa.types.is_dictionary(field.type):
            columns.append(pa.array(values, pa.string()).dictionary_encode())
        else:
            columns.append(pa.array(values, field.type))
    structs = pa.StructArray.from_arrays(columns, [field.name for field in fields])
    ends = [0]
    for _, chunks in padded:
        ends.append(ends[-1] + len(chunks))
    if of_list in (pa.list_view, pa.large_list_view):
        kind = pa.ListViewArray if of_list is pa.list_view else pa.LargeListViewArray
        width = pa.int32() if of_list is pa.list_view else pa.int64()
        sizes = [b - a for a, b in itertools.pairwise(ends)]
        lists = kind.from_arrays(pa.array(ends[:-1], width), pa.array(sizes, width), structs)
    else:
        kind = pa.ListArray if of_list is pa.list_ else pa.LargeListArray
        width = pa.int32() if of_list is pa.list_ else pa.int64()
        lists = kind.from_arrays(pa.array(ends, width), structs)
    asked = pa.array([query for query, _ in padded], pa.string())
    asked = asked.dictionary_encode() if pa.types.is_dictionary(string) else asked.cast(string)
    whole = pa.table({"query": asked, "chunks": lists}).slice(1, len(table))
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])


@pytest.mark.parametrize("name", BACKENDS)
@given(
    table=st.lists(rows, max_size=4),
    string=st.sampled_from(STRINGS),
    of_list=st.sampled_from(LISTS),
    cut=st.integers(0, 2),
    budget=budgets,
    options=options,
)
def test_a_row_is_packed_as_a_packer_packs_it(name, table, string, of_list, cut, budget, options):
    """Text, tokens, kept chunks and errors are those of a packer, and the text fits."""
    with using(name):
        packer = Packer(budget, **options)
        counter = get_counter(options["counter"])
        expected = expected_of(packer, table)

        answers = answers_of(pack_table(arrow(table, string, of_list, cut), budget, **options))

        assert expected == answers
        for text, total, _, error in answers:
            if error is None:
                assert total == counter.count(text)
                assert total <= max(0, budget - packer.reserve_tokens)


@pytest.mark.parametrize("name", BACKENDS)
@given(
    items=st.lists(st.tuples(st.sampled_from([None, 3, -1, 2**40]), arrow_texts), max_size=8),
    budget=st.integers(0, 60),
    string=st.sampled_from(STRINGS[:3]),
)
def test_a_long_table_is_grouped(name, items, budget, string):
    """Rows with one key, wherever they stand, are packed as one list, and named by their row."""
    groups = {}
    for row, (key, _) in enumerate(items):
        groups.setdefault(key, []).append(row)
    with using(name):
        packer = Packer(budget, counter="chars_div4")
        expected = []
        for key, of in groups.items():
            packing = packer.pack("green tea", [items[row][1] for row in of])
            kept = [of[kept.index] for kept in packing.kept]
            expected.append((key, packing.text, packing.total_tokens, kept, None))
        table = pa.table(
            {
                "key": pa.array([key for key, _ in items], pa.int64()),
                "query": ["green tea"] * len(items),
                "text": pa.array([text for _, text in items], string),
            }
        )
        chunked = pa.concat_tables([table.slice(0, 3), table.slice(3)])

        packed = pack_table(chunked, budget, chunks="text", group_by="key", counter="chars_div4")

        assert expected == [tuple(row.values()) for row in pa.table(packed).to_pylist()]


def test_columns_beside_a_long_table_are_fields(backend):
    """A long table of strings has titles and scores in columns; one of structs has them inside."""
    long = {
        "text": ["Rye.", "Tea.", "Oat."],
        "score": [0.1, 0.9, None],
        "id": [5, 6, 7],
        "day": ["mon", "mon", "tue"],
    }
    flat = pa.table(long)
    options = {"ranking": "score", "template": "tagged", "query": None, "group_by": "day"}
    expected = [
        {
            "day": "mon",
            "text": "[document:6] Tea.\n[document:5] Rye.",
            "kept": [1, 0],
            "error": None,
        },
        {"day": "tue", "text": "[document:7] Oat.", "kept": [2], "error": None},
    ]
    structs = [
        dict(zip(("text", "score", "id"), row, strict=True))
        for row in zip(long["text"], long["score"], long["id"], strict=True)
    ]

    for table, chunks in (
        (flat, "text"),
        (pa.table({"day": long["day"], "hit": structs}), "hit"),
        (pl.DataFrame(long), "text"),
    ):
        packed = pa.table(pack_table(table, 100, chunks=chunks, **options))
        assert expected == packed.drop_columns("total_tokens").to_pylist()


TABLE = pa.table({"query": ["tea", "rye"], "chunks": [["Tea.", "Rye."], ["Tea.", "Rye."]]})
ANSWERS = [("Tea.", 2, [0], None), ("Rye.", 3, [1], None)]
MADE = {
    "pyarrow": lambda: TABLE,
    "a batch": lambda: TABLE.to_batches()[0],
    "a struct array": lambda: TABLE.to_struct_array().chunk(0),
    "a reader": TABLE.to_reader,
    "polars": lambda: pl.DataFrame(TABLE),
    "pandas": lambda: pd.DataFrame({"query": ["tea", "rye"], "chunks": [["Tea.", "Rye."]] * 2}),
    "pandas of Arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "duckdb": lambda: duckdb.sql(
        "select unnest(['tea', 'rye']) as query, ['Tea.', 'Rye.'] as chunks"
    ),
    "fixed lists": lambda: TABLE.set_column(
        1, "chunks", TABLE["chunks"].cast(pa.list_(pa.string(), 2))
    ),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_producers(backend, make):
    """Whatever has the Arrow PyCapsule interface is a table."""
    assert ANSWERS == answers_of(pack_table(make(), 3))


def test_consumers(backend):
    """Whatever reads the Arrow PyCapsule interface reads an answer, more than once."""
    packed = pack_table(TABLE, 3)

    expected = [
        {"text": text, "total_tokens": total, "kept": kept, "error": error}
        for text, total, kept, error in ANSWERS
    ]
    assert expected == pl.DataFrame(packed).to_dicts()
    assert expected == pa.table(packed).to_pylist()
    assert ANSWERS == duckdb.sql("select * from packed").fetchall()
    frame = pd.DataFrame.from_arrow(packed)
    assert ["Tea.", "Rye."] == frame["text"].to_list()
    assert [[0], [1]] == [list(kept) for kept in frame["kept"]]
    types = [pa.large_string(), pa.int64(), None, pa.large_string()]
    types[2] = pa.list_(pa.field("item", pa.int64(), nullable=False))
    assert types == pa.schema(packed).types == pa.table(packed).schema.types


def test_an_answer_shows_itself(backend):
    """Length and repr tell the rows; the type is public."""
    packed = pack_table(TABLE, 3)

    assert isinstance(packed, PackedTable)
    assert 2 == len(packed)
    assert "PackedTable(rows=2, columns=['text', 'total_tokens', 'kept', 'error'])" == repr(packed)


@pytest.mark.parametrize("table", [TABLE.slice(0, 0), TABLE.schema.empty_table()])
def test_no_rows(backend, table):
    """A table without rows, with or without parts, gives an answer without rows."""
    packed = pack_table(table, 3)

    assert 0 == len(packed)
    assert [] == answers_of(packed)
    with pytest.raises(InvalidArgumentError, match=r"^query must be the name of a column"):
        pack_table(table, 3, query="q")


def test_nulls_in_labels_are_none(backend):
    """Columns of nulls alone, as data frames make them, are labels that no chunk has."""
    chunks = [{"text": "Tea.", "title": None, "score": None, "id": None}]
    table = pa.table({"query": ["tea"], "chunks": [chunks]})
    assert pa.types.is_null(table["chunks"].type.value_type.field("score").type)

    for ranking in ("lexical", "score"):
        packed = pack_table(table, 9, ranking=ranking, template="tagged")
        assert [("[document:0] Tea.", 7, [0], None)] == answers_of(packed)


class Letters:
    """An embedder."""

    def embed(self, texts):
        import numpy as np

        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text):
        import numpy as np

        return np.array([text.count("e"), text.count("y") + 0.5], dtype="float32")


SLOW = {
    "a counter": {"counter": len, "max_chunks": 1},
    "a template": {"template": Template(lambda chunk: f"<{chunk}>"), "max_chunks": 1},
    "a prompt": {"template": Prompt(lambda chunks: f"{chunks}"), "max_chunks": 1},
    "a nonce": {"template": Template("{nonce} {text}", nonce="salt"), "max_chunks": 1},
    "an embedder": {"ranking": Embedding(Letters()), "max_chunks": 1},
}


@pytest.mark.parametrize("function", [Template, lambda write: Prompt(lambda kept: write(*kept))])
@pytest.mark.parametrize("key", ["text", "content", "page_content"])
def test_functions_get_the_fields(backend, function, key):
    """A function gets the text by its own name, and then the other fields that are read."""
    chunk = {"score": 0.5, "mtime": 3.0, "id": 7, "kind": None, "year": 5, "source": "a.md"}
    table = pa.table({"chunks": [[{**chunk, "title": "Tea", key: "Leaves."}]]})

    packed = pack_table(
        table,
        99,
        query=None,
        ranking="input",
        template=function(lambda *chunk: str(chunk[0]) if chunk else ""),
    )

    read = {key: "Leaves.", "title": "Tea", "source": "a.md", "id": 7, "score": 0.5}
    assert [str(read | {"metadata": {"mtime": 3.0}})] == pa.table(packed)["text"].to_pylist()


def test_functions_get_chunks_of_one_shape(backend):
    """Where some rows of a long table have no label, a function gets mappings of all."""
    title, options = ["T", None], {"query": None, "ranking": "input"}
    table = pa.table({"day": ["mon", "mon"], "body": ["Tea.", "Rye."], "title": title})
    written = Template(lambda chunk: f"{chunk}", separator="\n")

    for columns, expected in (
        (["day", "body", "title"], "{'text': 'Tea.', 'title': 'T'}\n{'text': 'Rye.'}"),
        (["day", "body"], "Tea.\nRye."),
    ):
        found = pack_table(
            table.select(columns), 99, chunks="body", group_by="day", template=written, **options
        )
        assert [expected] == pa.table(found)["text"].to_pylist()


@pytest.mark.parametrize("options", SLOW.values(), ids=SLOW)
def test_functions_of_the_caller(backend, options):
    """With a function of the caller's, rows are packed as a packer packs them, too."""
    table = [("tea", ["Tea.", "Rye."]), ("rye", ["Tea.", "Rye."])]
    packer = Packer(100, **options)
    expected = []
    for query, chunks in table:
        packing = packer.pack(query, chunks)
        kept = [kept.index for kept in packing.kept]
        expected.append((packing.text, packing.total_tokens, kept, None))

    assert expected == answers_of(pack_table(TABLE, 100, **options))


@pytest.mark.parametrize("name", BACKENDS)
@given(table=st.lists(rows, max_size=3), options=options)
def test_functions_get_the_same_chunks(name, table, options):
    """What a function of the caller's sees leads to the answer that a backend gives by itself."""
    counter = get_counter(options.pop("counter"))
    with using(name):
        made = arrow(table, pa.string(), pa.list_)
        expected = expected_of(Packer(30, counter=counter.count, **options), table)

        assert expected == answers_of(pack_table(made, 30, counter=counter.count, **options))


def test_many_rows(backend):
    """Rows are answered in their order, however many there are."""
    count = 5_000 if backend.__name__.endswith("native") else 300
    table = pa.table(
        {
            "query": [f"number {i}" for i in range(count)],
            "chunks": [[f"A number, {i}.", f"{i} is none."] for i in range(count)],
        }
    )

    answers = answers_of(pack_table(table, 8, counter="words"))

    assert [f"A number, {i}.\n\n{i} is none." for i in range(count)] == [row[0] for row in answers]
