"""What a service reads of a retriever that has pages."""

import asyncio
from dataclasses import replace

import pytest
from service_support import SETTINGS, Fake, text_of

from budgeteer import Packer
from budgeteer.presets import context_gate
from budgeteer.service import LlmSettings, RetrievalService


def test_pages_are_read_until_the_budget_is_full():
    """Pages are asked for while there is room, and a page with nothing ends it."""
    pages = []

    class Paged(Fake):
        def pages(self, query):
            for n in range(100):
                pages.append(n)
                yield [text_of(100)] * 10

    settings = LlmSettings(model="gpt-4", context_window=4096, max_output_tokens=0)
    retriever = Paged()
    result = RetrievalService(retriever, settings).retrieve("q")

    assert [0, 1, 2, 3, 4] == pages
    assert [] == retriever.asked
    assert 40 == len(result.packing.kept)


def _pages_read(packer, *pages):
    """Return how many of the pages, each a list of texts, are read for 250 tokens."""
    read = []

    class Paged(Fake):
        def pages(self, query):
            for page in pages:
                read.append(page)
                yield page

    settings = LlmSettings(model="gpt-4", context_window=4096, max_output_tokens=0)
    RetrievalService(Paged(), settings, packer=packer).retrieve("q")
    return len(read)


def test_pages_are_read_on_where_what_does_not_fit_is_skipped():
    """A chunk that is too large ends the pages only where nothing is packed behind it."""
    large, small = text_of(400), text_of(100)
    pages = [[large, small], [large], [small], [small]]

    assert 1 == _pages_read(Packer(250, ranking="input", overflow="stop"), *pages)
    assert 1 == _pages_read(Packer(250, ranking="input", overflow="truncate_end"), *pages)
    assert 2 == _pages_read(Packer(250, ranking="input", overflow="skip"), *pages)
    # Nothing as small as the smallest would fit any more.
    pages = [[large, small], [small, large], [small] * 9, [large], [small]]
    assert 2 == _pages_read(Packer(250, ranking="input", overflow="skip", dedupe=None), *pages)


def test_pages_are_read_on_where_texts_repeat():
    """A text that is packed once only takes its room once, and a page of such brings nothing."""
    pages = [[text_of(100)] * 9, [text_of(100), text_of(60)], [text_of(60)] * 2, [text_of(10)]]

    assert 1 == _pages_read(Packer(250, ranking="input", dedupe=None), *pages)
    assert 3 == _pages_read(Packer(250, ranking="input", dedupe="exact"), *pages)


class Store(Fake):
    """Has pages of ten, and counts those that are read."""

    def pages(self, query):
        self.read = 0
        for at in range(0, len(self.chunks), 10):
            self.read += 1
            yield self.chunks[at : at + 10]


def both_ways(*chunks, limit=500, **options):
    """Return what is kept with pages and without, and how many pages were read."""
    store = Store(*chunks)
    paged = RetrievalService(store, SETTINGS, limit=limit, **options)
    once = RetrievalService(Fake(*chunks), SETTINGS, limit=limit, **options)
    found = paged.retrieve("green tea").packing
    assert found.text == asyncio.run(paged.aretrieve("green tea")).packing.text
    return found, once.retrieve("green tea").packing, store.read


SCATTERED = [f"{n} is nothing of that sort. " * 9 for n in range(300)] + [
    f"Fact {n} about green tea. " * 9 for n in range(100)
]


@pytest.mark.parametrize(
    "packer",
    [
        Packer(900, ranking="keyword"),
        Packer(900, ranking="bm25", min_score=0.5),
        Packer(900, ranking="input", dedupe="near"),
        Packer(300, ranking="bm25", units="sentence"),
        Packer(900, ranking="bm25", selection="coverage"),
        context_gate(900, max_docs=3),
        Packer(900, ranking="keyword", max_chunks=3),
    ],
    ids=["keyword", "min_score", "near", "sentence", "coverage", "gate", "max_chunks"],
)
def test_chunks_that_compete_are_read_to_the_limit(packer):
    """A packer that ranks anew has as many chunks to choose from as without pages."""
    paged, once, pages = both_ways(*SCATTERED, packer=packer)

    assert once.text == paged.text
    assert 40 == pages


def test_a_reranker_has_the_limit_to_choose_from():
    """So has a reranker, and a limit of the service's own is obeyed."""

    class Reversing:
        def rerank(self, query, chunks):
            return chunks[::-1]

    for limit, pages in ((500, 40), (120, 12)):
        paged, once, read = both_ways(*SCATTERED, limit=limit, reranker=Reversing())
        assert pages == read
        assert once.text == paged.text


def test_chunks_that_are_enough_end_the_pages():
    """Where chunks are taken as they come, no more are read than may be kept."""
    packer = Packer(100_000, ranking="input", max_chunks=12)
    assert 2 == both_ways(*SCATTERED, packer=packer)[2]
    # Empty ones are not kept.
    assert 3 == both_ways(*[""] * 10, *SCATTERED, packer=packer)[2]
    assert 1 == both_ways(*SCATTERED, packer=replace(packer, max_chunks=0))[2]


def test_repeats_before_the_limit_do_not_end_the_pages():
    """Where chunks compete, the last page says whether the next may bring more."""
    texts = [*["green tea"] * 20, *(f"green tea {n}" for n in range(20)), *["green tea"] * 40]
    packer = Packer(100_000, ranking="keyword")

    # Two pages that repeat, two that bring something, and one that repeats behind the limit.
    assert 5 == both_ways(*texts, limit=30, packer=packer)[2]


def test_more_than_the_limit_are_read_while_there_is_room():
    """The limit is what is read at least."""
    small = [f"tea {n}" for n in range(2_000)]
    paged, _, pages = both_ways(*small, limit=20, packer=Packer(3_000, ranking="keyword"))

    assert len(paged.kept) > 500
    assert 20 < pages < 200
