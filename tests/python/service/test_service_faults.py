"""RetrievalService when something fails, or answers oddly."""

import asyncio
from dataclasses import replace

import pytest
from service_support import SETTINGS, AsyncFake, AsyncSlow, Embedder, Fake, both, service_of

from budgeteer import Chunk, CounterError, InvalidArgumentError, Packer
from budgeteer.presets import context_router
from budgeteer.service import (
    InputValidationError,
    LlmSettings,
    RetrievalError,
    RetrievalService,
)


class Failing(Fake):
    def retrieve(self, query, limit):
        raise OSError("https://user:secret@vectors.example")


def test_given_a_retriever_that_raises_when_retrieving_then_the_error_names_it():
    """The error names the retriever, keeps the cause, and tells no secret."""
    error = both(RetrievalService([Fake("a"), Failing()], SETTINGS))

    assert (RetrievalError, "fake") == (type(error), error.source)
    assert "fake failed: OSError" == str(error)
    assert isinstance(error.__cause__, OSError)


def test_given_an_async_retriever_that_raises_when_retrieving_then_the_error_names_it():
    """So does that of a coroutine; the other retriever is cancelled."""

    class Broken(AsyncFake):
        name = "broken"

        async def aretrieve(self, query, limit):
            raise KeyError("x")

    slow = AsyncSlow()
    with pytest.raises(RetrievalError, match="broken failed: KeyError") as caught:
        asyncio.run(RetrievalService([slow, Broken()], SETTINGS).aretrieve("q"))
    assert isinstance(caught.value.__cause__, KeyError)
    assert slow.was_cancelled


def test_given_several_that_raise_then_the_first_is_named():
    """Of several errors that of the first retriever is raised."""

    class Named(Failing):
        def __init__(self, name):
            super().__init__()
            self.name = name

    error = both(RetrievalService([Fake(), Named("one"), Named("two")], SETTINGS))

    assert "one" == error.source


@pytest.mark.parametrize(
    "found", [None, 3, "text", b"bytes", {"text": "one"}, {"one"}, frozenset()]
)
def test_given_an_answer_that_is_no_sequence_then_the_error_names_the_retriever(found):
    """An answer that is no batch of chunks is an error."""

    class Odd(Fake):
        def retrieve(self, query, limit):
            return found

    error = both(RetrievalService(Odd(), SETTINGS))

    assert RetrievalError is type(error)
    assert "fake must answer a sequence of chunks, not " in str(error)
    is_set = isinstance(found, (set, frozenset))
    assert is_set == ("whose order differs between processes: answer a list" in str(error))


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"title": "no text"}, r"chunks\[1\] must have a key 'text', 'content' or 'page_content'"),
        (3, r"chunks\[1\] must be a str, a mapping with 'text', 'content' or 'page_content', or"),
        ({"text": None}, r"chunks\[1\].text must be a str, not None"),
        ({"text": "a", "score": float("nan")}, r"chunks\[1\].score must be a number, not NaN"),
    ],
)
def test_given_a_chunk_without_a_text_then_the_error_names_retriever_and_place(chunk, message):
    """A chunk that cannot be packed is the retriever's fault, and its place there is named."""
    bad = Fake({"text": "a", "score": 1.0}, chunk)
    bad.name = "bad"
    error = both(RetrievalService([Fake({"text": "b", "score": 1}), bad], SETTINGS))

    assert (RetrievalError, "bad") == (type(error), error.source)
    with pytest.raises(RetrievalError, match=f"bad answered what cannot be packed: {message}"):
        raise error


def test_given_a_packer_that_an_estimate_would_not_do_then_the_retriever_is_blamed():
    """What is wrong with a chunk is found by the caller's packer, whatever counter it needs."""
    bad = Fake({"title": "no text"})
    bad.name = "bad"
    packer = replace(context_router(), counter="o200k_base", max_chunks=3)
    error = both(RetrievalService(bad, SETTINGS, packer=packer))

    assert (RetrievalError, "bad") == (type(error), error.source)


def test_given_pages_with_a_chunk_without_a_text_then_the_error_names_the_retriever():
    """So it is where chunks come in pages."""

    class Paged(Fake):
        def pages(self, query):
            yield [{"text": "a"}]
            yield [object()]

    error = both(RetrievalService(Paged(), SETTINGS))

    assert (RetrievalError, "fake") == (type(error), error.source)


@pytest.mark.parametrize(
    "answer", [None, "text", 3, lambda chunks: chunks[5]], ids=["None", "text", "int", "raises"]
)
def test_given_a_reranker_that_fails_then_the_error_names_it(answer):
    """A reranker's failure is an error that names it."""

    class Reranker:
        def rerank(self, query, chunks):
            return answer(chunks) if callable(answer) else answer

    error = both(service_of("a", reranker=Reranker()))

    assert (RetrievalError, "Reranker") == (type(error), error.source)


def test_given_an_embedder_that_fails_then_the_error_names_it():
    """An embedder's failure is an error that names it."""

    class Broken(Embedder):
        def embed_query(self, text):
            raise RuntimeError(text)

    retriever = Fake("a")
    retriever.takes_vector = True
    error = both(RetrievalService(retriever, SETTINGS, embedder=Broken()))

    assert ("Broken failed: RuntimeError", []) == (str(error), retriever.asked)


def test_given_duplicates_then_the_packer_decides():
    """The document keeps them; a packer with dedupe drops them."""
    from budgeteer import Packer

    chunks = ["tea", "tea", "rye"]

    assert "tea\n\ntea\n\nrye" == both(service_of(*chunks)).packing.text
    packing = both(service_of(*chunks, packer=Packer(99, ranking="input"))).packing
    assert "tea\n\nrye" == packing.text


def test_given_empty_texts_then_they_are_dropped_as_empty_or_cost_nothing():
    """An empty text is no error."""
    packing = both(service_of("", "tea", "")).packing

    assert "tea" == packing.text
    assert ["empty"] * 2 == [dropped.reason for dropped in packing.dropped]


def test_given_nothing_then_the_packing_is_empty():
    """Nothing found is a packing without text."""
    assert "" == both(service_of()).packing.text


@pytest.mark.slow
def test_given_100_000_chunks_then_the_top_fit():
    """A hundred thousand chunks are packed, and the figures add up."""
    chunks = [Chunk(f"{i} green tea", score=float(i % 1_000)) for i in range(100_000)]
    result = both(service_of(*chunks, limit=100_000))

    assert 100_000 == len(result.packing.kept) + result.packing.dropped_count
    assert 999.0 == result.packing.kept[0].score
    assert result.tokens.input + result.tokens.output <= 4096


def test_given_more_chunks_than_the_limit_then_a_generator_is_read_whole():
    """What a retriever answers is packed, however it is held."""

    class Generator(Fake):
        def retrieve(self, query, limit):
            yield from ["a", "b"]

    assert "a\n\nb" == both(RetrievalService(Generator(), SETTINGS)).packing.text


def test_a_counter_that_fails():
    """What a caller's counter raises passes as it is."""

    def counter(text):
        return -1 if text == "bad" else len(text)

    class Paged(Fake):
        def pages(self, query):
            yield self.chunks

    settings = LlmSettings(context_window=900, counter=counter)
    assert isinstance(both(RetrievalService(Fake("bad"), settings)), CounterError)
    assert isinstance(both(RetrievalService(Paged("bad"), settings)), CounterError)


def test_a_counter_that_fails_is_not_the_retrievers_fault():
    """What a counter raises passes unchanged, with pages too; a retriever's own does not."""

    class Paged(Fake):
        def pages(self, query):
            yield ["tea", "bad"]

    def counter(text):
        if "bad" in text:
            raise ZeroDivisionError("the counter's own")
        return len(text.split())

    settings = LlmSettings(context_window=99, max_output_tokens=0, counter=counter)
    for retriever in (Paged(), Fake("tea", "bad")):
        with pytest.raises(ZeroDivisionError, match="the counter's own"):
            RetrievalService(retriever, settings).retrieve("q")

    class Counting(Fake):
        def retrieve(self, query, limit):
            raise CounterError("of a packer of its own")

    with pytest.raises(RetrievalError, match="fake failed: of a packer of its own"):
        RetrievalService(Counting(), SETTINGS).retrieve("q")


def test_a_chunk_that_raises_when_it_is_read_names_the_retriever():
    """What a property of a chunk raises is its cause, and is not quoted."""

    class Row:
        @property
        def text(self):
            raise OSError("postgres://user:secret@host")

    for retriever in (Fake(Row()), Fake("tea", Row())):
        with pytest.raises(RetrievalError) as caught:
            RetrievalService(retriever, SETTINGS).retrieve("q")
        assert "fake answered what cannot be packed: OSError" == str(caught.value)
        assert isinstance(caught.value.__cause__, OSError)


def test_components_that_are_coroutines_under_other_names():
    """``async def rerank`` and ``async def embed_query`` are awaited, and told apart without."""

    class Reversing:
        async def rerank(self, query, chunks):
            return chunks[::-1]

    class Searching(Fake):
        takes_vector = True

        def retrieve(self, query, limit, *, vector):
            return super().retrieve(query, limit)

    class Embedding:
        async def embed_query(self, text):
            return [1.0]

    service = service_of("a", "b", reranker=Reversing())
    assert "b\n\na" == asyncio.run(service.aretrieve("q")).packing.text
    with pytest.raises(RetrievalError, match="Reversing must answer a sequence of chunks, not c"):
        service.retrieve("q")
    service = RetrievalService(Searching("a"), SETTINGS, embedder=Embedding())
    assert "a" == asyncio.run(service.aretrieve("q")).packing.text
    with pytest.raises(RetrievalError, match="Embedding must answer a vector, not coroutine"):
        service.retrieve("q")


def test_messages_of_a_builder():
    """They may be of any sequence, and what is wrong with them names the builder."""

    def generated(prompt, context, query):
        yield {"role": "user", "content": context + query}

    assert (
        "teaq" == service_of("tea", message_builder=generated).retrieve("q").messages[0]["content"]
    )
    for answer, message in [
        ("tea", "the messages of message_builder must be a sequence, not str"),
        ([{"content": "tea"}], "message_builder: messages[0]"),
    ]:
        with pytest.raises(InvalidArgumentError) as caught:
            service_of("tea", message_builder=lambda *_, answer=answer: answer).retrieve("q")
        assert str(caught.value).startswith(message)


def test_a_counter_that_changes_its_mind():
    """Messages that are over whatever is left out of them are an error, and no answer."""
    more = 0

    class Changing(Fake):
        def retrieve(self, query, limit):
            nonlocal more
            more = 500
            return super().retrieve(query, limit)

    def counter(text):
        return len(text) + more

    settings = LlmSettings(context_window=100, max_output_tokens=0, counter=counter)
    with pytest.raises(InvalidArgumentError, match=r"count \d+ tokens without a context, and 100"):
        RetrievalService(Changing("tea", "rye"), settings).retrieve("q")


def test_a_packer_without_room_is_refused_before_anyone_is_asked():
    """A reserve that takes all of it is what leaves nothing."""
    retriever = Fake("tea")
    packer = Packer(1_000, reserve_tokens=1_000)
    with pytest.raises(InputValidationError) as caught:
        RetrievalService(retriever, SETTINGS, packer=packer).retrieve("q")
    assert "nothing is left for retrieval: max_tokens 1000 - reserve_tokens 1000 = 0" == str(
        caught.value
    )
    assert [] == retriever.asked
