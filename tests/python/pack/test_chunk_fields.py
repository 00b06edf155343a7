"""What is read of a chunk, whatever kind of object it is and wherever it is given."""

from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from budgeteer import Chunk, Corpus, InvalidArgumentError, Layout, Packer, Section, Template
from budgeteer._pack.shown import name_of
from budgeteer.presets import citations
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService


@dataclass
class Document:
    """A document as LangChain has it."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


class Node:
    """A node as LlamaIndex has it."""

    def __init__(self, text: str, node_id: str = "n", metadata: Any = None) -> None:
        self.text, self.node_id, self.metadata = text, node_id, metadata or {}

    def get_content(self) -> str:
        return self.text


def bundle(text, **metadata):
    return {"text": text, "metadata": metadata}


def node(text, **metadata):
    return Node(text, metadata=metadata)


def chunk(text, **metadata):
    return Chunk(text, metadata=metadata)


KINDS = {
    "mapping": bundle,
    "mapping with content": lambda text, **found: {"content": text, "metadata": found},
    "mapping with page_content": lambda text, **found: {"page_content": text, "metadata": found},
    "mapping with meta": lambda text, **found: {"text": text, "meta": found},
    "other mapping": lambda text, **found: MappingProxyType(bundle(text, **found)),
    "metadata of another type": lambda text, **found: {
        "text": text,
        "metadata": MappingProxyType(found),
    },
    "object": lambda text, **found: SimpleNamespace(text=text, metadata=found),
    "object with meta": lambda text, **found: SimpleNamespace(content=text, meta=found),
    "langchain": lambda text, **found: Document(text, found),
    "llamaindex": node,
    "chunk": chunk,
}
SHOWN = Template("{source}|{title}|{id}|{text}")

kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


@kinds
def test_the_title_in_the_metadata_ranks(backend, make):
    """A chunk is found by the title in its metadata, in a list, a corpus and a service."""
    chunks = [make("It is rolled.", title="Coffee"), make("It is steamed.", title="Green tea")]
    packer = Packer(50, max_chunks=1, counter="words")

    for given in (chunks, Corpus(chunks)):
        assert "It is steamed." == packer.pack("green tea", given).text
        assert 1 == packer.pack("green tea", given).kept[0].index
    by_keyword = Packer(50, ranking="keyword", max_chunks=1, counter="words")
    assert "It is steamed." == by_keyword.pack("green tea", chunks).text
    sentences = Packer(50, units="sentence", max_chunks=1, counter="words")
    assert "It is steamed." == sentences.pack("green tea", chunks).text
    [found] = ChunkRetriever(chunks).retrieve("green tea", 1)
    assert found.text == "It is steamed."
    section = Section("context", query="green tea", chunks=chunks, packer=packer, grow=1)
    [message] = Layout(50, [section], counter="words").fit().messages
    assert "It is steamed." == message["content"]


@kinds
def test_fields_in_the_metadata_are_shown(backend, make):
    """Title, source and id in the metadata are those of the chunk in every place."""
    chunks = [make("Tea.", title="Green tea", source="tea.md", id="7")]
    own_id = "n" if isinstance(chunks[0], Node) else "7"
    packer = Packer(50, template=SHOWN, counter="words")

    for given in (chunks, Corpus(chunks)):
        assert f"tea.md|Green tea|{own_id}|Tea." == packer.pack("tea", given).text
    [cited] = citations(packer.pack("tea", chunks))
    assert ("tea.md", own_id) == (cited.source, cited.id)
    retriever = ChunkRetriever(chunks)
    [found] = retriever.retrieve("tea", 1)
    if not isinstance(chunks[0], Chunk):  # which stays as it is
        assert ("tea.md", "Green tea", own_id) == (found.source, found.title, found.id)
    settings = LlmSettings("gpt-4o", counter="words")
    service = RetrievalService(retriever, settings, packer=packer)
    assert f"tea.md|Green tea|{own_id}|Tea." == service.retrieve("tea").packing.text


@kinds
def test_a_corpus_knows_ids_in_the_metadata(backend, make):
    """Chunks are removed and replaced by the id that is shown."""
    chunks = [make("Tea.", id="7"), make("Rye.", id="8")]
    for chunk in chunks:
        if isinstance(chunk, Node):
            chunk.node_id = None
    corpus = Corpus(chunks)

    corpus.replace([Chunk("Oat.", id="8")])
    corpus.remove(["7"])

    assert [Chunk("Oat.", id="8")] == list(corpus)


def test_a_file_knows_ids_in_the_metadata(native, tmp_path):
    """So are those of a file, where a chunk's own id goes before the one in its metadata."""
    chunks = [
        chunk("Tea.", id=7),
        bundle("Rye.", id="8"),
        Chunk("Oat.", id="9", metadata={"id": 7}),
    ]
    Corpus(chunks).save(tmp_path / "corpus")
    opened = Corpus.open(tmp_path / "corpus")

    opened.remove([7, "8"])

    assert ["9"] == [chunk.id for chunk in opened]


@kinds
def test_fields_survive_a_file(native, make, tmp_path):
    """A corpus that was saved shows the same fields."""
    chunks = [make("Tea.", title="Green tea", source="tea.md", id=7)]
    packer = Packer(50, template=SHOWN, counter="words")
    if isinstance(chunks[0], dict) and isinstance(chunks[0].get("metadata"), MappingProxyType):
        with pytest.raises(InvalidArgumentError, match="which JSON does not give back"):
            Corpus(chunks).save(tmp_path / "corpus")
        return
    Corpus(chunks).save(tmp_path / "corpus")

    opened = Corpus.open(tmp_path / "corpus")

    assert packer.pack("tea", chunks).text == packer.pack("tea", opened).text
    assert packer.pack("green", chunks).kept[0].score == packer.pack("green", opened).kept[0].score


@pytest.mark.parametrize("shape", [dict, SimpleNamespace, lambda **own: MappingProxyType(own)])
def test_the_chunks_own_field_wins(backend, shape):
    """What a chunk says itself goes before its metadata, unless it is empty."""
    inner = {"title": "Coffee", "source": "coffee.md", "id": 2}
    own = shape(text="Tea.", title="Green tea", source="tea.md", id="1", metadata=inner)
    empty = shape(text="Rye.", title="", source="", id="", metadata=inner)
    none = shape(text="Oat.", title=None, source=None, id=None, metadata=inner)
    packer = Packer(50, template=SHOWN, counter="words", ranking="input")

    assert packer.pack("", [own, empty, none]).text.split("\n\n") == [
        "tea.md|Green tea|1|Tea.",
        "coffee.md|Coffee|2|Rye.",
        "coffee.md|Coffee|2|Oat.",
    ]
    scores = {kept.index: kept.score for kept in Packer(50).pack("coffee", [own, none]).kept}
    assert scores[0] == 0 < scores[1]
    assert 0 == Packer(50).pack("green", [empty, none]).kept[0].score


@pytest.mark.parametrize("title", [7, None, ["tea"], b"tea", ""])
def test_a_title_that_is_no_text(backend, title):
    """Anything may be in the metadata: what is no str is not ranked by; a chunk's own must be."""
    chunks = [{"text": "It is steamed.", "metadata": {"title": title}}, "Tea."]

    assert [1, 0] == [kept.index for kept in Packer(50).pack("tea", chunks).kept]
    assert "" == ChunkRetriever(chunks).retrieve("steamed", 1)[0].title
    if not isinstance(title, (str, type(None))):
        with pytest.raises(InvalidArgumentError, match=r"chunks\[0\]\.title must be a str"):
            Packer(50).pack("tea", [{"text": "Tea.", "title": title}])


@pytest.mark.parametrize("metadata", [None, "note", 7, ["title"], {}])
def test_metadata_that_holds_no_title(backend, metadata):
    """Metadata that is no mapping, or has no title, gives none."""
    chunks = [{"text": "Tea.", "metadata": metadata}, SimpleNamespace(text="Rye.", metadata=None)]

    assert "Tea.\n\nRye." == Packer(50).pack("tea", chunks).text


def test_text_goes_before_page_content(backend):
    """Of several keys the first of text, content and page_content is read."""
    both = {"page_content": "Rye.", "content": "Tea."}
    assert "Tea." == Packer(50).pack("", [both]).text
    assert "Oat." == Packer(50).pack("", [{**both, "text": "Oat."}]).text
    with pytest.raises(InvalidArgumentError, match="'text', 'content' or 'page_content'"):
        Packer(50).pack("", [{"body": "Tea."}])
    with pytest.raises(InvalidArgumentError, match=r"chunks\[0\]\.page_content must be a str"):
        Packer(50).pack("", [{"page_content": 3}])


@pytest.mark.parametrize("where", ["own", "metadata"])
@pytest.mark.parametrize(
    ("source", "shown"),
    [
        *((0, "0"), (0.0, "0.0"), (np.int64(0), "0"), (np.array(3), "3")),
        *((np.array(["a", "b"]), "['a' 'b']"), (["a"], "['a']")),
        *((None, ""), (False, ""), ("", ""), ([], ""), (np.array([]), "")),
    ],
    ids=repr,
)
def test_a_source_of_any_type(source, shown, where):
    """A source is shown whatever it is: 0 is one, and so is an array, which has no truth."""
    fields = {"source": source} if where == "own" else {"metadata": {"source": source}}
    template = Template(format="<{source}> {text}")
    packing = Packer(100, template=template).pack("tea", [{"text": "Tea.", **fields}])
    assert f"<{shown}> Tea." == packing.text
    is_own = where == "own" or isinstance(source, str)  # a view of a packing has no others
    assert (shown if is_own else "") == name_of(packing.kept[0].chunk)


@pytest.mark.parametrize(
    "change",
    [
        lambda chunks: chunks[1].pop("text"),
        lambda chunks: chunks[1].update(text=None),
        lambda chunks: vars(chunks[2]).pop("text"),
    ],
    ids=["no key", "None", "no attribute"],
)
def test_a_text_that_is_taken_out_after_packing(change):
    """What reads dropped texts says so; a StopIteration would end a generator of the caller's."""
    chunks = [{"text": "Green tea."}, {"text": "Rye bread."}, SimpleNamespace(text="Rye rolls.")]
    packing = Packer(3).pack("tea", chunks)
    change(chunks)
    for read in (lambda: packing.dropped_total_tokens, lambda: packing.report(curve=False)):
        with pytest.raises(InvalidArgumentError, match=r"^chunks.* must .*have the text that was"):
            read()
