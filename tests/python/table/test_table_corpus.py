"""Tables of queries over one corpus: each row is packed as `Packer.pack` packs it."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, budgets, exact_counters, formula_counters, lexicals, queries, using

from budgeteer import Chunk, Corpus, Packer, get_counter, pack_table
from budgeteer.errors import CorpusError

CHUNKS = [
    "Green tea is mild.",
    Chunk("Rye bread is dark.", title="Bread", score=0.7, id="rye"),
    {"text": "Oats are pale, and so is some bread.", "score": 0.2, "source": "mill"},
    "Tea and bread.",
    "",
]
STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]

asked = st.none() | st.sampled_from(["tea", "green bread", "dark rye", ""])
asked |= queries.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
options = st.fixed_dictionaries(
    {"counter": formula_counters | exact_counters},
    optional={
        "reserve_tokens": st.integers(0, 10),
        "ranking": st.sampled_from(["lexical", "bm25", "keyword", "input", "score"]) | lexicals,
        "overflow": st.sampled_from(["skip", "stop", "truncate_end"]),
        "max_chunks": st.none() | st.integers(0, 3),
        "template": st.sampled_from(["plain", "tagged", "xml"]),
        "notice": st.booleans(),
    },
)


def rows_of(packed):
    table = pa.table(packed)
    table.validate(full=True)
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("name", BACKENDS)
@given(
    asked=st.lists(asked, max_size=5),
    string=st.sampled_from(STRINGS),
    cut=st.integers(0, 2),
    budget=budgets,
    options=options,
)
def test_a_row_is_a_query_over_the_corpus(name, asked, string, cut, budget, options):
    """Text, tokens and kept chunks are those of a packer, and the text fits; a null is told."""
    with using(name):
        corpus, packer = Corpus(CHUNKS), Packer(budget, **options)
        counter = get_counter(options["counter"])
        reads_query = options.get("ranking") not in ("input", "score")
        column = pa.array(asked, pa.string())
        column = (
            column.dictionary_encode() if pa.types.is_dictionary(string) else column.cast(string)
        )
        whole = pa.table({"other": range(len(asked)), "query": column})
        expected = []
        for query in asked:
            if query is None and reads_query:
                error = f"query is null, and ranking={name_of(options)!r} needs one"
                expected.append((None, None, None, error))
                continue
            packing = packer.pack(query or "", corpus)
            kept = [kept.index for kept in packing.kept]
            expected.append((packing.text, packing.total_tokens, kept, None))

        table = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
        found = rows_of(pack_table(table, budget, chunks=corpus, **options))

        assert expected == found
        for text, total, _, error in found:
            if error is None:
                assert total == counter.count(text)
                assert total <= max(0, budget - packer.reserve_tokens)


def name_of(options):
    ranking = options.get("ranking", "lexical")
    return ranking if isinstance(ranking, str) else "lexical"


def test_functions_of_the_caller(backend):
    """A counter of the caller's is asked, and its failure is that of its row."""

    def picky(text):
        if "dark" in text:
            raise OSError(text)
        return len(text)

    table = pa.table({"q": ["tea", "rye"]})
    corpus = Corpus(CHUNKS[:2])

    found = rows_of(pack_table(table, 20, query="q", chunks=corpus, counter=picky, max_chunks=1))

    assert ("Green tea is mild.", 18, [0], None) == found[0]
    assert (None, None, None, "a function of the caller's raised OSError") == found[1]


def test_damage_is_no_property_of_a_row(native, tmp_path):
    """A file that is damaged where it is read is an error of the call."""
    path = tmp_path / "corpus"
    Corpus([f"Chunk {i} is of tea number {i}. " * 20 for i in range(500)]).save(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"Chunk 250 is of")] ^= 1
    path.write_bytes(data)
    corpus = Corpus.open(path)

    with pytest.raises(CorpusError):
        pack_table(pa.table({"query": ["250"]}), 200, chunks=corpus)
