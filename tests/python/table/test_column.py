"""Columns that give Arrow: counted as the list of their texts, and read where they lie."""

import asyncio
import pickle

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
    options,
    outcome,
    queries,
    texts,
    using,
)
from test_table import STRINGS, is_utf8
from test_table_errors import BAD, offsets

from budgeteer import Corpus, Packer, get_counter
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


@pytest.mark.parametrize("name", BACKENDS)
@given(
    items=st.lists(texts.filter(is_utf8), min_size=1, max_size=6),
    string=st.sampled_from(STRINGS),
    budget=budgets,
    options=options,
    query=queries.filter(is_utf8),
)
def test_a_column_packs_as_its_list(name, items, string, budget, options, query):
    """A column of strings, and a corpus of it, pack as the list of its texts."""
    column = pa.array(items, pa.string())
    column = column.dictionary_encode() if pa.types.is_dictionary(string) else column.cast(string)
    with using(name):
        packer = Packer(budget, **options)
        expected = outcome(lambda chunks: packer.pack(query, chunks).to_dict(), items)

        assert expected == outcome(lambda chunks: packer.pack(query, chunks).to_dict(), column)
        parts = pa.chunked_array([column.slice(0, 2), column.slice(2)])
        assert expected == outcome(lambda chunks: packer.pack(query, chunks).to_dict(), parts)
        assert outcome(lambda chunks: packer.pack(query, Corpus(chunks)).to_dict(), items) == (
            outcome(lambda chunks: packer.pack(query, Corpus(chunks)).to_dict(), column)
        )


@pytest.mark.parametrize("name", BACKENDS)
@given(
    items=st.lists(texts.filter(is_utf8), min_size=1, max_size=4),
    added=st.lists(texts, max_size=3),
    dedupe=st.sampled_from(["exact", "near"]),
)
def test_a_corpus_of_a_column_grows(name, items, added, dedupe):
    """Chunks may come to a corpus of a column; it is then as one that was made of all."""
    with using(name):
        corpus = Corpus(pa.array(items))
        corpus.append(added)
        packer = Packer(40, dedupe=dedupe)

        assert [*items, *added] == [*corpus]
        expected = packer.pack("green tea", Corpus([*items, *added]))
        assert expected.to_dict() == packer.pack("green tea", corpus).to_dict()


def test_a_corpus_of_a_column_changes(backend):
    """Chunks with ids may be replaced and removed beside those of a column, which have none."""
    corpus = Corpus(pa.array(["Tea.", "Rye."]))
    corpus.append([{"id": 7, "text": "Oat."}, {"id": 8, "text": "Green tea."}])
    corpus.replace([{"id": 7, "text": "Black tea."}])
    corpus.remove([8])

    assert ["Tea.", "Rye.", {"id": 7, "text": "Black tea."}] == [*corpus]
    assert "Tea.\n\nBlack tea." == Packer(20, max_chunks=2).pack("tea", corpus).text


def test_a_corpus_of_a_column_is_saved(native, tmp_path):
    """A file of such a corpus is the file of one of the texts."""
    texts = ["Green tea.", "Rye \u8336.", "Green tea."]
    Corpus(pa.array(texts)).save(tmp_path / "column")
    Corpus(texts).save(tmp_path / "list")

    assert (tmp_path / "list").read_bytes() == (tmp_path / "column").read_bytes()
    assert texts == [*Corpus.open(tmp_path / "column")]


def test_a_packing_of_a_column(backend):
    """What became of a column's chunks is told as of a list's: with strs, and when pickled."""
    texts = ["Green tea.", "Rye.", "Tea \u8336.", "Rye."]
    column = pl.Series(texts)
    packing = Packer(6).pack("tea", column)

    assert Packer(6).pack("tea", texts).to_dict() == packing.to_dict()
    assert {str} == {type(found.chunk) for found in (*packing.kept, *packing.dropped)}
    assert [texts[found.index] for found in packing.dropped] == [
        found.chunk for found in packing.dropped
    ]
    assert packing.to_dict() == pickle.loads(pickle.dumps(packing)).to_dict()
    assert packing.text == asyncio.run(Packer(6).apack("tea", column)).text
    (batched,) = Packer(6).pack_batch([("tea", column)])
    assert packing.text == batched.text


def test_a_native_column_is_a_sequence(native):
    """Its texts are read by index, from the end too, by slices and in turn."""
    column = native.read_column(pa.chunked_array([["a", "b"], [], ["c"]]))

    assert 3 == len(column)
    assert ["a", "b", "c"] == [*column] == column[:]
    assert ["c", "a"] == column[::-2]
    assert ("c", "a") == (column[-1], column[-3])
    for place in (3, -4, 2**62):
        with pytest.raises(IndexError):
            column[place]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (BAD, r"^chunks\[1\] is not UTF-8$"),
        (pl.Series(["Tea.", None]), r"^chunks\[1\] is null: "),
    ],
)
def test_a_column_that_cannot_be_read(backend, column, message):
    """A null, or bytes that are no text, are refused by packings and corpora."""
    for call in (Packer(9).pack, lambda _, chunks: Corpus(chunks)):
        with pytest.raises(InvalidArgumentError, match=message):
            call("tea", column)
