"""What is read of a chunk beside its text: the same names wherever a field is read."""

import datetime as dt
import enum
import math
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from budgeteer import Chunk, Corpus, InvalidArgumentError, KeptChunk, Packer, pack
from budgeteer.presets import (
    agentic_rag,
    citations,
    context_gate,
    estimate_citation_tokens,
    sources_footer,
)
from budgeteer.service import ChunkRetriever

SHAPES = pytest.mark.parametrize("shape", [dict, SimpleNamespace], ids=["mapping", "object"])


def test_all_but_the_text_is_a_keyword():
    """The fields of a chunk have names where it is made: their order says nothing."""
    with pytest.raises(TypeError, match="positional"):
        Chunk("tea", "7")
    assert ("text",) == Chunk.__match_args__
    assert "7" == Chunk("tea", id="7").id


@SHAPES
def test_meta_is_metadata(backend, shape):
    """What Haystack calls meta is the metadata for every template, ranking, preset and file."""
    chunks = [
        shape(content=f"Tea {name}.", meta={"mtime": mtime, "kind": "note", "source": "a.md"})
        for name, mtime in (("a", 1), ("b", 3), ("c", 2))
    ]
    packer = Packer(100, ranking="recency", template="tagged", counter="words")

    assert "[note:1] Tea b.\n[note:2] Tea c.\n[note:0] Tea a." == packer.pack("", chunks).text
    assert packer.pack("", chunks).text == packer.pack("", Corpus(chunks)).text
    xml = Packer(100, template="xml", counter="words").pack("tea", chunks)
    assert 3 == xml.text.count('source="a.md"')
    assert {"kind": "note"}.items() <= ChunkRetriever(chunks).retrieve("tea", 1)[
        0
    ].metadata.items()
    first = shape(content="Tea.", meta={"authority": "user", "kind": "decision"})
    gated = context_gate(99, max_docs=2).pack("tea", [*chunks, first])
    assert 3 in [kept.index for kept in gated.kept]


@SHAPES
def test_node_id_is_the_id(backend, shape):
    """What LlamaIndex calls node_id is the identifier."""
    chunks = [shape(text="Tea.", node_id="n-7")]
    packer = Packer(100, template="tagged")

    assert "[document:n-7] Tea." == packer.pack("tea", chunks).text
    assert "n-7" == ChunkRetriever(chunks).retrieve("tea", 1)[0].id


@SHAPES
def test_other_names_in_a_file(native, shape, tmp_path):
    """A file keeps what is read under another name."""
    chunks = [shape(text="Tea.", node_id="n-7", meta={"kind": "note"})]
    Corpus(chunks).save(tmp_path / "corpus")

    opened = Corpus.open(tmp_path / "corpus")

    assert "[note:n-7] Tea." == Packer(100, template="tagged").pack("tea", opened).text


@SHAPES
def test_our_names_go_first(backend, shape):
    """Where a chunk has both names, ours counts; meta that is no mapping is none."""
    both = shape(
        text="Tea.", id="a", node_id="b", metadata={"kind": "task"}, meta={"kind": "note"}
    )
    none = shape(text="Rye.", meta="note", node_id=None)

    packing = Packer(100, template="tagged", ranking="input").pack("", [both, none])

    assert "[task:a] Tea.\n[document:1] Rye." == packing.text
    assert ChunkRetriever([none]).retrieve("rye", 1)[0].metadata is None


def test_a_short_chunk_is_shown_whole():
    """What a session shows of a short chunk makes the same one."""
    chunk = Chunk("Green\ntea.", id="a", source="s", title="t", score=0.5, metadata={"n": [1]})

    assert repr(chunk) == (
        "Chunk(text='Green\\ntea.', id='a', source='s', title='t', score=0.5, metadata={'n': [1]})"
    )
    assert chunk == eval(repr(chunk))
    assert Chunk("x" * 500) == eval(repr(Chunk("x" * 500)))


def test_a_long_chunk_is_shown_by_its_beginning(backend):
    """Of a long field there is a beginning and the length, wherever it stands."""
    text = "tea " * 20_000
    long = Chunk(text, title="t" * 501, metadata={"raw": text})
    metadata = {"self": None}
    metadata["self"] = Chunk("tea", metadata=metadata)

    shown = f"text={text[:80]!r}... (80000 characters), "
    assert repr(long).startswith(f"Chunk({shown}id=None, source='', title='{'t' * 80}'... (501 ")
    assert len(repr(long)) < 600
    assert "..." in repr(metadata["self"])
    for chunk in (long, text, {"text": text}):
        packing = pack("tea", [chunk], 100_000)
        assert len(repr(packing.kept[0])) < 1_000
        assert shown in repr(packing.kept[0])
        assert len(repr(pack("tea", [chunk], 0).dropped[0])) < 1_000
    kept = pack("tea", ["Green tea."], 9).kept[0]
    assert kept == eval(repr(kept), {"KeptChunk": KeptChunk})


MISSING = pytest.mark.parametrize("none", [math.nan, np.float64("nan"), pd.NA, pd.NaT], ids=repr)


@MISSING
def test_what_pandas_has_for_none_is_none(backend, none):
    """A frame's missing titles, ids and sources are no labels, in the metadata neither."""
    packer = Packer(60, counter="words", template="xml")
    labels = dict.fromkeys(("title", "id", "source", "kind"), none)
    shown = '<documents>\n<document id="0">\nTea.\n</document>\n</documents>'
    for chunk in (
        {"text": "Tea.", **labels},
        {"text": "Tea.", "metadata": labels},
        MappingProxyType({"text": "Tea.", **labels, "metadata": MappingProxyType(labels)}),
        SimpleNamespace(text="Tea.", **labels, metadata=labels),
        {"text": "Tea.", "id": none, "source": none},
        {"text": "Tea.", "metadata": {"id": none, "source": none}},
        {"text": "Tea.", "id": none, "metadata": {"id": "0"}},
    ):
        for chunks in ([chunk], Corpus([chunk])):
            assert shown == packer.pack("", chunks).text
        assert shown == packer.pack("", ChunkRetriever([chunk]).retrieve("tea", 1)).text


@SHAPES
@MISSING
@pytest.mark.parametrize("ranking", ["lexical", "bm25", "keyword", "recency", "input"])
def test_a_missing_title_under_every_ranking(backend, shape, none, ranking):
    """A title that pandas has for none is no title, or that of the metadata."""
    chunks = [
        shape(text="Leaves.", title=none, metadata=None, meta=None),
        shape(text="Leaves of tea.", title=none, metadata={"title": "Green"}),
        shape(text="Leaves, too.", title=none, metadata=none, meta={"title": "Green tea"}),
        shape(text="Leaves, at last.", title=none, metadata={"title": none}),
    ]
    same = [
        shape(text="Leaves.", title=""),
        shape(text="Leaves of tea.", title="Green"),
        shape(text="Leaves, too.", title="Green tea"),
        shape(text="Leaves, at last."),
    ]
    packer = Packer(99, ranking=ranking, template="xml")
    expected = packer.pack("green", same)

    for given in (chunks, Corpus(chunks)):
        packing = packer.pack("green", given)
        assert expected.text == packing.text
        assert [kept.score for kept in expected.kept] == [kept.score for kept in packing.kept]


@SHAPES
@MISSING
def test_a_missing_source_or_id_is_not_cited(backend, shape, none):
    """Citations and what they cost pass over what pandas has for none."""
    chunks = [
        shape(text="Green tea.", source=none, id=none),
        shape(text="Tea.", source=none, id=none, metadata={"source": "tea.md", "id": 7}),
        shape(text="Black tea.", source=none, id=none, node_id="n", metadata=none),
    ]
    bare = [
        shape(text="Green tea."),
        shape(text="Tea.", metadata={"source": "tea.md", "id": 7}),
        shape(text="Black tea.", node_id="n"),
    ]
    packing = agentic_rag().pack("tea", chunks)

    assert agentic_rag().pack("tea", bare).text == packing.text
    cited = {cited.index: (cited.source, cited.id) for cited in citations(packing)}
    assert {0: ("", None), 1: ("tea.md", "7"), 2: ("", "n")} == cited
    assert sources_footer(agentic_rag().pack("tea", bare)) == sources_footer(packing)
    assert estimate_citation_tokens(bare) == estimate_citation_tokens(chunks)


@MISSING
def test_a_missing_label_of_an_object_is_saved_as_none(native, none, tmp_path):
    """A file has no label where pandas has none."""
    chunk = SimpleNamespace(text="Tea.", id=none, source=none, title=none)
    Corpus([chunk]).save(tmp_path / "corpus")
    assert [Chunk("Tea.")] == [
        kept.chunk for kept in Packer(9).pack("", Corpus.open(tmp_path / "corpus")).kept
    ]


@SHAPES
@pytest.mark.parametrize("title", [1.5, True, 3, b"tea", Decimal("NaN")], ids=repr)
def test_a_title_of_another_type_is_an_error(backend, shape, title):
    """Only what pandas has for none is passed over."""
    with pytest.raises(InvalidArgumentError) as caught:
        pack("tea", [shape(text="tea", title=title)], 9)
    assert f"chunks[0].title must be a str, not {type(title).__name__}" == str(caught.value)


@pytest.mark.parametrize("place", ["own", "metadata"])
def test_an_id_may_be_any_int(backend, place):
    """An int of numpy is an id as Python's is."""
    labels = {"id": np.int64(3)}
    chunk = {"text": "Tea.", **(labels if place == "own" else {"metadata": labels})}
    packing = pack("", [chunk], 9, template="tagged")
    assert "[document:3] Tea." == packing.text
    assert "3" == citations(packing)[0].id


IN_PARIS = dt.timezone(dt.timedelta(hours=1))
NUMBERS = [0.5, np.int64(1), np.float32(1.5), Decimal("2.25"), Fraction(5, 2), np.uint8(3), 4]
TIMES = [
    dt.datetime(1970, 1, 1, 0, 0, 5),  # noqa: DTZ001 - taken for UTC
    dt.datetime(1970, 1, 1, 1, 0, 6, tzinfo=IN_PARIS),
    pd.Timestamp(7, unit="s"),
    pd.Timestamp(8, unit="s", tz="Europe/Paris"),
    np.datetime64(9, "s"),
    np.datetime64(10 * 10**9, "ns"),
]


class Tensor:
    """Raises an error of its own where a float is asked of it."""

    def __float__(self):
        raise RuntimeError("2 elements are no scalar")


NANS = [math.nan, np.float32("nan"), Decimal("NaN")]
NO_NUMBERS = [
    *(None, pd.NA, pd.NaT),
    np.datetime64("NaT", "ns"),
    *("9", "", [], [1], np.array([1, 2]), b"9", 3j, Tensor()),
]
PLACES = pytest.mark.parametrize(
    "place",
    [
        lambda name, value: {"text": "tea", "metadata": {name: value}},
        lambda name, value: {"text": "tea", name: value},
        lambda name, value: {"text": "tea", name: value, "metadata": {name: pd.NA}},
        lambda name, value: SimpleNamespace(text="tea", metadata={name: value}),
        lambda name, value: Chunk("tea", metadata={name: value}),
    ],
    ids=["metadata", "mapping", "mapping whose metadata has none", "object", "chunk"],
)


def _order(chunks, **options):
    packer = Packer(99, dedupe=None, **options)
    found = packer.pack("", chunks)
    assert found.text == packer.pack("", Corpus(chunks)).text
    return [kept.index for kept in found.kept]


@PLACES
def test_times_of_any_type(backend, place):
    """Recency reads all numbers and times; what pandas has for none and other types are none."""
    chunks = [place("mtime", value) for value in [*NUMBERS, *TIMES]]

    assert [*range(len(chunks))][::-1] == _order(chunks, ranking="recency")
    for none in NO_NUMBERS:
        older = [place("mtime", value) for value in (Decimal("-0.5"), none, np.float32(0.5))]
        assert [2, 1, 0] == _order(older, ranking="recency")


@PLACES
def test_positions_of_any_type(backend, place):
    """Document order reads all numbers; without one a chunk comes where its rank puts it."""
    chunks = [place("position", value) for value in NUMBERS[::-1]]

    assert [*range(len(chunks))][::-1] == _order(chunks, ranking="input", order="document")
    for none in [*NO_NUMBERS, *NANS, True, 10**400, *TIMES[:5]]:
        chunks = [place("position", value) for value in (none, np.float32(2), Decimal(1))]
        assert [2, 1, 0] == _order(chunks, ranking="input", order="document")


def test_a_position_that_is_missing_is_passed_over(backend):
    """The first number counts, under whichever name."""
    chunks = [
        {"text": "tea", "metadata": {"position": math.nan, "index": np.int16(2)}},
        {"text": "rye", "metadata": {"position": pd.NA, "offset": Decimal(1)}},
    ]
    assert [1, 0] == _order(chunks, ranking="input", order="document")


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        ({"text": "tea", "mtime": 10**400}, "chunks[0]['mtime']"),
        ({"text": "tea", "metadata": {"mtime": 10**400}}, "chunks[0].metadata['mtime']"),
        (Chunk("tea", metadata={"mtime": Fraction(10**400)}), "chunks[0].metadata['mtime']"),
    ],
    ids=["mapping", "metadata", "fraction"],
)
def test_a_time_beyond_a_float_is_named_where_it_is(backend, chunk, name):
    """The error names the field that the caller has."""
    with pytest.raises(InvalidArgumentError) as caught:
        pack("", [chunk], 9, ranking="recency")
    assert f"{name} is beyond the range of a float" == str(caught.value)


class Key(str, enum.Enum):
    """A str whose own methods show something else."""

    KIND = "note"
    ID = "a1"
    SOURCE = "tea.md"
    TITLE = "Tea"
    NONE = ""

    def _other(self, *_):
        return "other"

    __str__ = __format__ = __repr__ = _other


LABELS = {"id": Key.ID, "source": Key.SOURCE, "title": Key.TITLE}


@pytest.mark.parametrize(
    "chunk",
    [
        {"text": "Green tea.", "kind": Key.KIND, **LABELS},
        {"text": "Green tea.", "metadata": {"kind": Key.KIND, **LABELS}},
        {"text": "Green tea.", "id": Key.NONE, "metadata": {"kind": Key.KIND, **LABELS}},
        SimpleNamespace(text="Green tea.", metadata={"kind": Key.KIND}, **LABELS),
        Chunk("Green tea.", metadata={"kind": Key.KIND}, **LABELS),
    ],
    ids=["mapping", "metadata", "empty", "object", "chunk"],
)
def test_labels_of_a_subclass_of_str(backend, chunk):
    """A label that is a str counts as its characters, wherever it is shown."""
    expected = {
        "tagged": "[note:a1] Green tea.",
        "xml": '<documents>\n<document kind="note" id="a1" source="tea.md" title="Tea">\n'
        "Green tea.\n</document>\n</documents>",
    }
    for template, text in expected.items():
        packing = pack("tea", [chunk], 99, template=template)
        assert text == packing.text
        (cited,) = citations(packing)
        assert ("tea.md", "a1") == (cited.source, cited.id)
        assert {str} == {type(cited.source), type(cited.id)}
        assert text == pack("tea", Corpus([chunk]), 99, template=template).text
        found = ChunkRetriever([chunk]).retrieve("tea", 1)
        assert text == pack("tea", found, 99, template=template).text
    assert "tea.md" in pack("tea", [chunk], 99).report()


@pytest.mark.parametrize("ranking", ["lexical", "score", "input"])
@pytest.mark.parametrize("made", [tuple, Corpus], ids=["chunks", "corpus"])
def test_an_object_without_the_attribute_of_the_first(backend, ranking, made):
    """The error says which attribute is looked for, and why."""
    chunks = [SimpleNamespace(text="a"), "b", SimpleNamespace(content="c")]
    with pytest.raises(InvalidArgumentError) as caught:
        pack("q", made(chunks), 5, ranking=ranking)
    assert "chunks[2] must have .text, as the first SimpleNamespace has" == str(caught.value)

    chunks[2] = SimpleNamespace(body="c")
    with pytest.raises(
        InvalidArgumentError, match=r"^chunks\[2\] must be a str, .* or \.content, not"
    ):
        pack("q", made(chunks), 5, ranking=ranking)
