"""Sections of chunks, which are packed by the layout's counter."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import chunk_lists, counters, on_both, using
from test_layout import counted

from budgeteer import Corpus, InvalidArgumentError, Layout, Packer, Section, get_counter
from budgeteer.presets import agentic_rag, context_gate, context_router
from budgeteer.ranking import Embedding

CHUNKS = [f"Chunk {i} about green tea and its leaves, steamed." for i in range(60)]
CLAUDE = "claude-opus-4-5"


def section(**options):
    return Section("context", query="green tea", chunks=CHUNKS, grow=1, **options)


def test_a_fill_that_counts_otherwise_is_told_so(native):
    """Where packer and layout count differently, the error names both and what to do."""
    fill = Section("context", fill=lambda n: Packer(n).pack("tea", CHUNKS), basis=300)
    with pytest.raises(InvalidArgumentError) as caught:
        Layout(CLAUDE, [fill]).fit()

    said = str(caught.value)
    assert "more than the" in said
    assert "its packer counts by 'o200k_base', the layout by 'claude3'" in said
    assert "give the packer the layout's counter, or the section query, chunks" in said

    # Both remedies work.
    layout = Layout(CLAUDE, [fill])
    same = replace(
        fill, fill=lambda n: Packer(n, counter=CLAUDE).pack("tea", CHUNKS, max_tokens=n)
    )
    for remedy in (same, replace(fill, fill=None, query="tea", chunks=CHUNKS)):
        allocation = replace(layout, sections=[remedy]).fit()
        assert 250 < allocation.used_tokens["context"] <= 300


def test_a_text_that_counts_otherwise():
    """A text has no counter to name but the layout's."""
    fill = Section("x", fill=lambda _: "a b c d", basis=8)
    with pytest.raises(
        InvalidArgumentError, match="counted by 'words', the counter of the layout"
    ):
        Layout(12, [replace(fill, basis=6)], counter="words").fit()

    packed = Packer(99, counter="words").pack("", ["a b c d e f"])
    for answer in (packed, pickle.loads(pickle.dumps(packed))):
        fill = Section("x", fill=lambda _, answer=answer: answer, basis=8)
        with pytest.raises(InvalidArgumentError, match=r"that it was asked for$"):
            Layout(12, [fill], counter="words").fit()


def test_a_router_that_overruns_is_told_so(backend):
    """The one packer that overruns its budget is named, as no fill of the caller's did it."""
    router = context_router(15, truncation="truncate_end")
    chunks = ["x y z " * 30, "a b"]
    given = Section("context", query="x", chunks=chunks, packer=router, grow=1)
    called = Section("context", fill=lambda n: router.pack("x", chunks, max_tokens=n), grow=1)
    counter = router.counter
    for one in (given, called):
        with pytest.raises(InvalidArgumentError, match="a context_router overruns its budget"):
            Layout(20, [one], counter=counter).fit()
    fits = replace(given, packer=Packer(15, overflow="truncate_end"))
    assert Layout(20, [fits], counter=counter).fit().total_tokens <= 20


@on_both
@given(
    chunks=chunk_lists(),
    counter=counters,
    own=counters,
    window=st.integers(0, 80),
    overflow=st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
    style=st.sampled_from(["plain", "xml", "json"]),
    units=st.sampled_from(["chunk", "sentence"]),
)
def test_a_section_of_chunks_fits(name, chunks, counter, own, window, overflow, style, units):
    """Whatever the two counters are, the packed section is within the layout's own count."""
    with using(name):
        packer = Packer(50, counter=own, overflow=overflow, template=style, units=units)
        part = Section("context", query="tea", chunks=chunks, packer=packer, grow=1)
        layout = Layout(window, [part], counter=counter)
        allocation = layout.fit()
        assert counted(layout, allocation) == allocation.total_tokens
        assert allocation.total_tokens <= window or not allocation.messages
        if allocation.messages:
            text = allocation.messages[0]["content"]
            assert get_counter(counter).count(text) <= min(50, window)
        assert layout.fit() == allocation


def test_the_packers_options_apply(backend):
    """Template, overflow, cap and bound are the packer's; counter and share the layout's."""
    packer = Packer(
        20, counter="chars_div4", template="xml", overflow="truncate_end", max_chunks=1
    )
    allocation = Layout(100, [section(packer=packer)], counter="words").fit()
    [message] = allocation.messages
    expected = replace(packer, counter="words").pack("green tea", CHUNKS)

    assert expected.text == message["content"]
    assert 20 >= expected.total_tokens == get_counter("words").count(message["content"])
    # Without a packer the whole share is filled.
    free = Layout(100, [section()], counter="words").fit()
    assert 90 < free.used_tokens["context"] <= 97


@pytest.mark.parametrize("packer", [agentic_rag(), context_gate(max_docs=3), None])
def test_presets_and_corpora(backend, packer):
    """A preset packs a section too, and a corpus is as good as a list."""
    layout = Layout(150, [section(packer=packer)], counter="chars_div4")
    by_corpus = replace(section(packer=packer), chunks=Corpus(CHUNKS))

    assert layout.fit() == replace(layout, sections=[by_corpus]).fit()
    assert layout.fit().messages
    assert layout.fit() == pickle.loads(pickle.dumps(layout)).fit()


def test_a_section_keeps_its_own_chunks():
    """The caller's list may change between two fits."""
    chunks = ["Tea."]
    layout = Layout(50, [Section("x", query="tea", chunks=chunks, grow=1)], counter="words")
    before = layout.fit()
    chunks.append("Green tea.")

    assert before == layout.fit()
    assert (
        "assistant"
        == Layout(
            50,
            [Section("x", query="", chunks=["Tea."], grow=1, role="assistant")],
            counter="words",
        )
        .fit()
        .messages[0]["role"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"content": "x", "query": "", "chunks": []}, "not both content and chunks"),
        ({"tokens": 3, "query": "", "chunks": []}, "not both tokens and chunks"),
        ({"fill": lambda _: "", "query": "", "chunks": []}, "not both fill and chunks"),
        ({"query": "tea"}, "^query is for chunks, which are not given"),
        ({"packer": Packer(3)}, "^packer is for chunks, which are not given"),
        ({"fill": lambda _: "", "packer": Packer(3)}, "^packer is for chunks"),
        ({"chunks": ["a"]}, "^query is required with chunks; '' is for"),
        ({"query": 3, "chunks": ["a"]}, "^query must be a str, not int"),
        ({"query": "", "chunks": "tea"}, "^chunks must be"),
        ({"query": "", "chunks": 3}, "^chunks must be"),
        ({"query": "", "chunks": {"a"}}, "^chunks must"),
        ({"query": "", "chunks": ["a"], "packer": 9}, "^packer must be a Packer or None, not int"),
        (
            {"query": "", "chunks": ["a"], "packer": Packer(3, ranking="embedding")},
            "^packer ranks by vectors under ranking='embedding' and has no embedder: give",
        ),
        (
            {"query": "", "chunks": ["a"], "packer": Packer(3, order="sticky")},
            "^order must not be 'sticky' in a section, which has no previous packing",
        ),
    ],
)
def test_bad_sections(arguments, message):
    """A combination that makes no sense is an error that says what is allowed."""
    with pytest.raises(InvalidArgumentError, match=message):
        Section("x", **arguments)


def test_a_bad_chunk_names_its_section(backend):
    """The error of a chunk says in which section it is."""
    bad = Section("context", query="", chunks=["a", 3], grow=1)
    with pytest.raises(
        InvalidArgumentError, match=r"^section 'context': chunks\[1\] must be a str"
    ):
        Layout(50, [bad], counter="words").fit()


def test_an_embedder_ranks(backend):
    """A packer with an embedder needs no vectors from the layout."""

    def embed(texts):
        return [[1.0, 0.0] if "tea" in text.lower() else [0.0, 1.0] for text in texts]

    class Embedder:
        def embed(self, texts):
            import numpy as np

            return np.array(embed(texts), dtype=np.float32)

    packer = Packer(99, ranking=Embedding(Embedder()), max_chunks=1)
    part = Section("x", query="tea", chunks=["Rye.", "Tea."], packer=packer, grow=1)

    assert "Tea." == Layout(50, [part], counter="words").fit().messages[0]["content"]
