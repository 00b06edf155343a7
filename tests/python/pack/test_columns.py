"""What is a batch of chunks: columns of pandas, Polars and Arrow are; frames and sets are not."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from budgeteer import Chunk, Corpus, Packer, Template, get_counter
from budgeteer.errors import InvalidArgumentError

TEXTS = ["Green tea.", "Rye bread.", "Tea \u8336 is mild."]

COLUMNS = {
    "pandas": pd.Series(TEXTS, index=[7, 5, 3]),
    "pandas object": pd.Series(TEXTS, dtype=object),
    "pandas Index": pd.Index(TEXTS),
    "pandas categories": pd.Series(TEXTS, dtype="category"),
    "pandas Arrow": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.large_string())),
    "polars": pl.Series("text", TEXTS),
    "polars categories": pl.Series("text", TEXTS, dtype=pl.Categorical),
    "arrow": pa.array(TEXTS),
    "arrow large": pa.array(TEXTS, pa.large_string()),
    "arrow view": pa.array(TEXTS, pa.string_view()),
    "arrow dictionary": pa.array(TEXTS).dictionary_encode(),
    "arrow chunked": pa.chunked_array([TEXTS[:1], [], TEXTS[1:]]),
    "numpy": np.array(TEXTS),
    "numpy object": np.array(TEXTS, dtype=object),
}

NULLS = {
    "pandas": pd.Series(["tea", None]),
    "pandas NaN": pd.Series(["tea", float("nan")], dtype=object),
    "pandas NA": pd.Series(["tea", pd.NA], dtype=object),
    "pandas Arrow": pd.Series(["tea", None], dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series(["tea", None]),
    "arrow": pa.array(["tea", None]),
    "arrow chunked": pa.chunked_array([["tea"], [None]]),
    "numpy": np.array(["tea", None], dtype=object),
}

DATA = {"id": [1, 2, 3], "text": TEXTS}

FRAMES = {
    "pandas": (pd.DataFrame(DATA), "df['text'].to_list()"),
    "pandas, no text": (pd.DataFrame({"body": TEXTS}), "df['body'].to_list()"),
    "polars": (pl.DataFrame(DATA), "df['text'].to_list()"),
    "polars, lazy": (pl.LazyFrame(DATA), "df.collect()['text'].to_list()"),
    "duckdb": (
        duckdb.from_arrow(pa.table(DATA)),
        "[row[0] for row in df['text'].fetchall()]",
    ),
    "arrow": (pa.table(DATA), "df['text'].to_pylist()"),
    "arrow batch": (pa.record_batch(DATA), "df['text'].to_pylist()"),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_is_its_texts(backend, column):
    """A column of strings packs, indexes and counts as the list of its texts."""
    packer = Packer(100)
    expected = packer.pack("tea", TEXTS).to_dict()

    packing = packer.pack("tea", column)

    assert expected == packing.to_dict()
    assert {str} == {type(kept.chunk) for kept in packing.kept}
    assert expected == packer.pack("tea", Corpus(column)).to_dict()
    counter = get_counter("o200k_base")
    assert counter.count_batch(TEXTS).tolist() == counter.count_batch(column).tolist()


@pytest.mark.parametrize("column", NULLS.values(), ids=NULLS)
def test_a_null_is_named(backend, column):
    """What is null in a column has no text, and the message says where it stands."""
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[1\] is null: .*dropna\(\)"):
        Packer(100).pack("tea", column)


@pytest.mark.parametrize(("frame", "line"), FRAMES.values(), ids=FRAMES)
def test_a_frame_is_refused_with_the_line_that_works(backend, frame, line):
    """The items of a frame are the names of its columns: nobody means those."""
    with pytest.raises(InvalidArgumentError, match=r"^chunks must be a sequence, not ") as raised:
        Packer(100).pack("tea", frame)

    assert str(raised.value).endswith(line)
    texts = eval(line, {"df": frame})
    assert Packer(100).pack("tea", TEXTS).text == Packer(100).pack("tea", texts).text


@pytest.mark.parametrize(
    "call", [Packer(100).pack, lambda _, chunks: Corpus(chunks)], ids=["pack", "Corpus"]
)
def test_a_reader_of_a_table_is_refused(backend, call):
    """It gives its rows once: whoever looked for texts in them would leave none for a list."""
    with pytest.raises(InvalidArgumentError, match=r"not RecordBatchReader: read it ") as raised:
        call("tea", pa.table(DATA).to_reader())

    line = str(raised.value).rpartition("of it, ")[2]
    texts = eval(line, {"pyarrow": pa, "reader": pa.table(DATA).to_reader()})
    assert Packer(100).pack("tea", TEXTS).text == Packer(100).pack("tea", texts).text


@pytest.mark.parametrize("chunk", ["tea", {"text": "tea"}])
def test_a_single_chunk_belongs_into_a_list(backend, chunk):
    """One chunk alone is refused with the remedy; what can be no chunk has none."""
    for call in (lambda: Packer(9).pack("tea", chunk), lambda: Corpus(chunk)):
        with pytest.raises(InvalidArgumentError, match=r"not (str|dict): put it into a list$"):
            call()
    assert "tea" == Packer(9).pack("tea", [chunk]).text
    with pytest.raises(InvalidArgumentError, match=r"^chunks must be a sequence, not bytes$"):
        Packer(9).pack("tea", b"tea")


def test_an_empty_frame(backend):
    """A frame without columns is refused as any other."""
    with pytest.raises(InvalidArgumentError, match=r"df\['text'\]\.to_list\(\)$"):
        Packer(100).pack("tea", pd.DataFrame())


@pytest.mark.parametrize("make", [set, frozenset])
def test_a_set_is_refused(backend, make):
    """The order of a set of strings is another in the next process, and so would the text be."""
    with pytest.raises(InvalidArgumentError, match=r"^chunks must be a sequence, not .*order"):
        Packer(100).pack("tea", make(TEXTS))
    with pytest.raises(InvalidArgumentError, match=r"^chunks must be a sequence, not .*order"):
        Corpus(make(TEXTS))


def test_views_of_a_dict(backend):
    """The views of a dict have its order."""
    chunks = {text: Chunk(text) for text in TEXTS}
    expected = Packer(100).pack("tea", TEXTS).text

    assert expected == Packer(100).pack("tea", chunks.keys()).text
    assert expected == Packer(100).pack("tea", chunks.values()).text
    assert expected == Packer(100).pack("tea", iter(chunks)).text


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series([1, 2]), r"^chunks\[0\] must be a str, .*, not int$"),
        (pl.Series([1.5]), r"^chunks\[0\] must be a str, .*, not float$"),
        (np.array("tea"), r"^chunks must be a sequence, not ndarray$"),
        (np.array([["tea"]]), r"^chunks\[0\] must be a str, .*, not list$"),
        (pa.scalar("tea"), r"^chunks must be a sequence, not StringScalar$"),
    ],
)
def test_a_column_of_something_else(backend, column, message):
    """A column that holds no texts is refused as a list of the same would be."""
    with pytest.raises(InvalidArgumentError, match=message):
        Packer(100).pack("tea", column)


def test_a_column_of_mappings(backend):
    """A column may hold chunks of any type."""
    column = pd.Series([{"text": text, "id": "a"} for text in TEXTS])

    assert Packer(100).pack("tea", TEXTS).text == Packer(100).pack("tea", column).text


@pytest.mark.parametrize("make", [tuple, Corpus, lambda records: records])
def test_records_of_numpy(make):
    """A record of numpy has its fields as attributes, as any object, also in an array of them."""
    rows = [("Green tea.", 0.2, "a"), ("Rye bread.", 0.9, "b")]
    records = np.rec.fromrecords(rows, names="text,score,source")
    packer = Packer(20, ranking="score", template=Template(format="{source}: {text}"))
    assert "b: Rye bread.\n\na: Green tea." == packer.pack("tea", make(records)).text


def test_a_structured_array():
    """What it is made of has no attributes."""
    array = np.array([("Green tea.", 1)], dtype=[("text", "U20"), ("id", "i4")])
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[0\] must be a str, .*, not void$"):
        Packer(20).pack("tea", array)
    with pytest.raises(InvalidArgumentError, match=r"not an array of no dimension$"):
        Packer(20).pack("tea", array.reshape(()))
