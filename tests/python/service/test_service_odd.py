"""Retrievers, rerankers and errors of others that are unlike most."""

import asyncio

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from service_support import SETTINGS, service_of

from budgeteer.service import (
    RetrievalError,
    RetrievalService,
    RetrievalTimeoutError,
    context_length_error,
)
from budgeteer.window import count_messages

PAGES = [["Green tea."], ["Black tea."]]


class Pages:
    """Answers pages from a list, which has nothing to close."""

    name = "pages"

    def retrieve(self, query, limit):
        raise AssertionError("pages are read instead")

    def pages(self, query):
        return PAGES


class AsyncPages(Pages):
    """Answers them from an asynchronous iterator that has nothing to close."""

    def apages(self, query):
        class Iterator:
            left = iter(PAGES)

            def __aiter__(self):
                return self

            async def __anext__(self):
                try:
                    return next(self.left)
                except StopIteration:
                    raise StopAsyncIteration from None

        return Iterator()


def test_pages_of_a_list():
    """Pages may come from what is no generator; they end where it ends."""
    service = RetrievalService(Pages(), SETTINGS)
    assert "Green tea.\n\nBlack tea." == service.retrieve("tea").packing.text
    service = RetrievalService(AsyncPages(), SETTINGS)
    result = asyncio.run(service.aretrieve("tea"))
    assert "Green tea.\n\nBlack tea." == result.packing.text


class Yields(Pages):
    """Its pages are an asynchronous generator."""

    def retrieve(self, query, limit):
        return ["White tea."]

    async def pages(self, query):
        for page in PAGES:
            yield page


def test_pages_of_an_asynchronous_generator():
    """They are read where they can be awaited, as ``apages`` are."""
    service = RetrievalService(Yields(), SETTINGS)
    result = asyncio.run(service.aretrieve("tea"))
    assert "Green tea.\n\nBlack tea." == result.packing.text
    assert "White tea." == service.retrieve("tea").packing.text


@pytest.mark.filterwarnings("error")
def test_a_coroutine_for_pages():
    """Methods that return pages where they must yield them are errors that say so."""

    class Returns(Pages):
        async def pages(self, query):
            return PAGES

        async def apages(self, query):
            return PAGES

    service = RetrievalService(Returns(), SETTINGS)
    with pytest.raises(RetrievalError, match="pages must answer an iterable of pages, not corou"):
        service.retrieve("tea")
    with pytest.raises(RetrievalError, match="must answer an asynchronous iterable of pages, not"):
        asyncio.run(service.aretrieve("tea"))


@pytest.mark.filterwarnings("error")
def test_a_coroutine_for_chunks():
    """A coroutine where chunks must be is an error, and never a coroutine that nobody awaited."""

    async def found():
        return ["Green tea."]

    class Search:
        def retrieve(self, query, limit):
            return found()

    with pytest.raises(RetrievalError, match="must answer a sequence of chunks, not coroutine"):
        RetrievalService(Search(), SETTINGS).retrieve("tea")


def test_many_that_are_late():
    """An error names the first components that were late, and how many more there are."""

    class Search:
        def __init__(self, i):
            self.name = f"search {i}"

        async def aretrieve(self, query, limit):
            await asyncio.sleep(60)

        def retrieve(self, query, limit):
            raise AssertionError("the coroutine is used")

    service = RetrievalService([Search(i) for i in range(40)], SETTINGS, timeout=0.05)
    with pytest.raises(RetrievalTimeoutError, match=r"search 0, .* and \d+ more answered"):
        asyncio.run(service.aretrieve("tea"))


class HostileError(Exception):
    """An error that cannot even be shown."""

    @property
    def message(self):
        raise RuntimeError("no message")

    body = code = message

    def __str__(self):
        raise RuntimeError("no text")


def test_an_error_that_cannot_be_read():
    """An error whose attributes and text raise is none of ours, and nothing is raised."""
    assert context_length_error(HostileError()) is None


def test_the_log_of_what_fits(caplog):
    """Where everything fits only a log of details says so, with the figures."""
    caplog.set_level("DEBUG", "budgeteer")
    RetrievalService(Pages(), SETTINGS).retrieve("tea")
    (record,) = [it for it in caplog.records if getattr(it, "code", "") == "chunks_fit"]
    assert ("retrieval: everything fits", "DEBUG") == (record.getMessage(), record.levelname)
    assert 2 == getattr(record, "chunks.kept")


def test_another_text_around_the_context():
    """A text that begins as the context does, and goes on otherwise, is counted as it is."""
    chunks = ["Green tea is mild. " * 40]
    packing = RetrievalService(Listed(chunks), SETTINGS).retrieve("tea").packing

    def build(system, context, query):
        return [
            {"role": "system", "content": context},
            {"role": "user", "content": f"{context[:-9]}{query}{'x' * 20}"},
        ]

    service = RetrievalService(Listed(chunks), SETTINGS, message_builder=build)
    result = service.retrieve("tea")
    assert packing.text == result.packing.text
    assert count_messages(result.messages, model="gpt-4") == result.tokens.input


class Listed:
    """Answers these chunks."""

    def __init__(self, chunks):
        self.chunks = chunks

    def retrieve(self, query, limit):
        return self.chunks


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_reranker_answers_an_order(kind):
    """A set has none that is the same in each process: it is refused, as from a retriever."""

    class Reranker:
        def rerank(self, query, chunks):
            return kind(chunks)

        async def arerank(self, query, chunks):
            return kind(chunks)

    service = service_of("Green tea.", "Black tea.", reranker=Reranker())
    message = (
        f"Reranker must answer a sequence of chunks, not {kind.__name__}, whose order differs"
    )
    with pytest.raises(RetrievalError, match=message):
        service.retrieve("tea")
    with pytest.raises(RetrievalError, match=message):
        asyncio.run(service.aretrieve("tea"))


FRAMES = [
    pd.DataFrame({"text": ["Green tea."]}),
    pl.DataFrame({"text": ["Green tea."]}),
    pl.LazyFrame({"text": ["Green tea."]}),
]


def asked(service):
    """Return the texts, or the errors, of both ways to ask a service."""

    def asked_by(ask):
        try:
            return ask("tea").packing.text
        except RetrievalError as error:
            return str(error)

    return [asked_by(service.retrieve), asked_by(lambda q: asyncio.run(service.aretrieve(q)))]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: f"{type(frame)}")
def test_a_data_frame_for_chunks(frame):
    """Its items are the names of its columns, which are no chunks: it is refused, as by pack."""

    class Reranker:
        def rerank(self, query, chunks):
            return frame

    for service in (
        RetrievalService(Listed(frame), SETTINGS),
        service_of("Green tea.", reranker=Reranker()),
    ):
        for error in asked(service):
            assert " a sequence" in error
            assert f", not {type(frame).__name__}" in error


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["Green tea."]),
        pa.chunked_array([["Green tea."]]),
        pa.array([{"text": "Green tea."}]),
        pd.Series(["Green tea."]),
        pl.Series(["Green tea."]),
    ],
    ids=lambda column: f"{type(column)}",
)
def test_a_column_for_chunks(column):
    """A column is the list of its values, as for pack."""

    class Reranker:
        def rerank(self, query, chunks):
            return column

    assert ["Green tea."] * 2 == asked(RetrievalService(Listed(column), SETTINGS))
    assert ["Green tea."] * 2 == asked(service_of("Rye.", reranker=Reranker()))


def test_a_column_with_nulls_for_chunks():
    """A null is no chunk: the error names its place."""
    errors = asked(RetrievalService(Listed(pa.array(["Tea.", None])), SETTINGS))
    for error in errors:
        assert error.startswith("Listed answered what cannot be packed: chunks[1] is null")


def test_an_array_of_no_dimension_for_chunks():
    """It is no batch, though it can be asked for its items."""
    for error in asked(RetrievalService(Listed(np.array("Tea.")), SETTINGS)):
        assert error.endswith("chunks must be a sequence, not an array of no dimension")
