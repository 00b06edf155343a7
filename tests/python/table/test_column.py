"""Columns that give Arrow: counted as the list of their texts, and read where they lie."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, exact_counters, formula_counters, texts, using
from test_table import STRINGS, is_utf8
from test_table_errors import BAD, offsets

from budgeteer import get_counter
from budgeteer.errors import InvalidArgumentError


@pytest.mark.parametrize("name", BACKENDS)
@given(
    items=st.lists(texts.filter(is_utf8), max_size=8),
    string=st.sampled_from(STRINGS),
    cut=st.integers(0, 8),
    counter=formula_counters | exact_counters,
)
def test_a_column_counts_as_its_list(name, items, string, cut, counter):
    """Any column of strings, sliced or in parts, has the counts of its texts."""
    column = pa.array(["before", *items, "behind"], pa.string())
    column = column.dictionary_encode() if pa.types.is_dictionary(string) else column.cast(string)
    column = column.slice(1, len(items))
    with using(name):
        found = get_counter(counter)
        expected = found.count_batch(items).tolist()

        assert expected == found.count_batch(column).tolist()
        parts = pa.chunked_array([column.slice(0, cut), column.slice(cut)])
        assert expected == found.count_batch(parts).tolist()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (BAD, r"^texts\[1\] is not UTF-8$"),
        (pa.chunked_array([["Tea.", "Rye."], ["Oat.", None]]), r"^texts\[3\] is null: "),
        (pl.Series(["Tea.", None]), r"^texts\[1\] is null: "),
        (pd.Series(["Tea.", None]), r"^texts\[1\] is null: "),
        (pa.array([None, None]), r"^texts\[0\] is null: "),
        (pl.Series([1, 2]), r"^texts\[0\] must be a str, not int$"),
        (pa.array([b"Tea."]), r"^texts\[0\] must be a str, not bytes$"),
        (pl.DataFrame({"text": ["Tea."]}), r"^texts must be a sequence, not DataFrame: "),
        (pa.table({"text": ["Tea."]}), r"^texts must be a sequence, not Table: "),
    ],
    ids=repr,
)
def test_what_is_no_text(backend, column, message):
    """A null, bytes that are no text, and a column of another type are refused by their place."""
    with pytest.raises(InvalidArgumentError, match=message):
        get_counter("o200k_base").count_batch(column)


def test_offsets_that_go_down(native):
    """Offsets that go down are an error."""
    buffers = [None, offsets(0, 4, 2, 6), pa.py_buffer(b"Tea.xx")]
    column = pa.Array.from_buffers(pa.string(), 3, buffers)

    with pytest.raises(InvalidArgumentError, match=r"^texts\[1\] has offsets that lead out of"):
        get_counter("words").count_batch(column)


def test_an_empty_column(backend):
    """A column without texts has no counts."""
    for column in (pa.array([], pa.string()), pa.chunked_array([], pa.string()), pl.Series([])):
        assert [] == get_counter("words").count_batch(column).tolist()


def test_a_column_that_cannot_give_arrow(backend):
    """What fails to give Arrow is read as the sequence that it is."""

    class Column:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ImportError("no pyarrow")

        def __iter__(self):
            return iter(["Green tea."])

    assert [2] == get_counter("words").count_batch(Column()).tolist()


def test_a_function_of_the_caller_counts_a_column(backend):
    """A caller's own counter is asked for each text."""
    assert [4, 5] == get_counter(len).count_batch(pa.array(["Rye.", "Bread"])).tolist()
