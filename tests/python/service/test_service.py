"""RetrievalService: its document's scenarios, and the law for every input."""

import logging
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_support import COUNT, SETTINGS, AsyncFake, Embedder, Fake, service_of, text_of
from support import chunk_lists, counters, queries, texts
from support import text_of as text_of_chunk

from budgeteer import BudgetExhaustedError, Chunk, InvalidArgumentError, Packer, get_counter
from budgeteer.ranking import Bm25, Embedding, Hybrid
from budgeteer.service import (
    InputValidationError,
    LlmSettings,
    NoOpReranker,
    RetrievalService,
    chat_messages,
)
from budgeteer.window import count_messages


def in_window(result, model="gpt-4"):
    """Return whether the messages and the answer fit, counted from outside."""
    total = count_messages(result.messages, model=model)
    assert total == result.tokens.input
    return total + result.tokens.output <= result.tokens.context_window


def test_dynamic_budget_calculation():
    """Seed 003, criterion 1: 4096 - 200 - 500 - 50 = 3346."""
    service = service_of(system_prompt=text_of(200))

    tokens = service.retrieve(text_of(50)).tokens

    assert (200, 50, 500) == (tokens.system, tokens.query, tokens.output)
    assert 3346 == tokens.budget
    assert 3346 - tokens.overhead == tokens.remaining


def test_given_small_budget_when_retrieving_then_truncates_chunks(caplog):
    """Seed 003, criterion 2: of 5 chunks of 300 tokens 3 fit into 1000, and the log says so."""
    chunks = [{"text": text_of(300), "score": score} for score in (0.9, 0.8, 0.7, 0.6, 0.5)]
    settings = LlmSettings(model="gpt-4", context_window=1750, max_output_tokens=500)
    service = service_of(*chunks, settings=settings, system_prompt=text_of(200))

    with caplog.at_level(logging.WARNING, logger="budgeteer"):
        result = service.retrieve(text_of(50))

    assert 1000 == result.tokens.budget
    assert [0, 1, 2] == [kept.index for kept in result.packing.kept]
    assert [3, 4] == [dropped.index for dropped in result.packing.dropped]
    assert in_window(result)
    [record] = caplog.records
    assert "Token budget exceeded: dropped 2 lowest-relevance chunks" == record.getMessage()
    assert (logging.WARNING, "budgeteer") == (record.levelno, record.name)


def test_given_huge_query_when_retrieving_then_returns_error():
    """Seed 003, criterion 3: neither a retriever nor a model is asked."""
    retriever, embedder = Fake("tea"), Embedder()
    retriever.takes_vector = True
    reranker = Counting()
    service = RetrievalService(
        retriever,
        SETTINGS,
        system_prompt=text_of(200),
        embedder=embedder,
        reranker=reranker,
    )

    with pytest.raises(InputValidationError) as caught:
        service.retrieve(text_of(3_500))

    assert [] == retriever.asked == embedder.asked == reranker.asked
    assert isinstance(caught.value, BudgetExhaustedError)
    assert str(caught.value) == (
        "nothing is left for retrieval: context_window 4096 - system_tokens 200 - "
        "max_output_tokens 500 - query_tokens 3500 = -104"
    )
    assert 1 == service.stats().rejected


def test_given_a_query_that_leaves_no_room_for_the_messages_then_returns_error():
    """What the messages cost is taken off too, before anything is retrieved."""
    retriever = Fake("tea")
    service = RetrievalService(retriever, SETTINGS)

    with pytest.raises(InputValidationError, match=r"- message_tokens \d+ = -?\d+$"):
        service.retrieve(text_of(3_592))
    assert [] == retriever.asked

    assert service.retrieve(text_of(3_580)).tokens.budget == 16


def test_given_a_given_window_when_the_model_is_known_then_it_goes_before():
    """A given context_window overrides the model's."""
    service = service_of("tea", settings=LlmSettings(model="gpt-4o", context_window=100))

    assert 100 == service.retrieve("tea").tokens.context_window


def test_given_a_limit_of_the_input_when_it_is_smaller_then_it_bounds():
    """Where a model's input has a limit of its own, the prompt stays below it too."""
    settings = LlmSettings(model="gpt-5", max_output_tokens=100)
    limits = settings.limits
    assert limits.max_input_tokens < limits.context_window - 100
    service = service_of(*["word " * 30_000] * 12, settings=settings)

    result = service.retrieve("tea")

    assert count_messages(result.messages, model="gpt-5") <= limits.max_input_tokens
    assert limits.max_input_tokens - 1 == result.tokens.budget
    with pytest.raises(InputValidationError, match="max_input_tokens 272000 - system_tokens 0"):
        service.retrieve("word " * 275_000)


def test_given_a_swap_when_requests_follow_then_window_and_encoding_change():
    """From a 4k to a 128k model: the next request has its window and its encoding."""
    text = "日本のお茶を飲みます。" * 300
    service = service_of(text, settings=LlmSettings(model="gpt-4", context_window=4096))
    assert 0 == len(service.retrieve("お茶").packing.kept)

    service.settings = LlmSettings(model="gpt-4o")
    result = service.retrieve("お茶")

    assert ("gpt-4o", 128_000) == (result.model, result.tokens.context_window)
    assert get_counter("o200k_base").count(text) == result.tokens.retrieved
    assert in_window(result, "gpt-4o")


def test_given_no_chunks_when_retrieving_then_the_query_alone_is_sent():
    """Nothing found is an answer, not an error."""
    result = service_of(system_prompt="Be brief.").retrieve("Why?")

    assert [("system", "Be brief."), ("user", "Why?")] == [
        (message["role"], message["content"]) for message in result.messages
    ]
    assert "" == result.packing.text


def test_messages():
    """The retrieved text stands in front of the query, never in the system message."""
    result = service_of("Green tea.").retrieve("Is it mild?")

    assert [{"role": "user", "content": "Green tea.\n\nIs it mild?"}] == result.messages
    assert chat_messages("s", "c", "q") == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "c\n\nq"},
    ]


def test_the_highest_scores_come_first():
    """Chunks are packed by their own scores, whichever retriever brought them."""
    first = Fake(Chunk("a", score=0.1), Chunk("b", score=0.9))
    second = Fake(Chunk("c", score=0.5))

    result = RetrievalService([first, second], SETTINGS).retrieve("q")

    assert "b\n\nc\n\na" == result.packing.text


@pytest.mark.parametrize(
    "chunks", [(["a", "b"], ["c"]), (["a", "b"], [Chunk("c", score=1.0)])], ids=["none", "some"]
)
def test_merged_in_the_given_order(chunks):
    """Without a score for each chunk the given order holds."""
    service = RetrievalService([Fake(*part) for part in chunks], SETTINGS)

    assert "a\n\nb\n\nc" == service.retrieve("q").packing.text


class Counting:
    """Turns the order around, and counts its calls."""

    def __init__(self):
        self.asked = []

    def rerank(self, query, chunks):
        self.asked.append(query)
        return reversed(chunks)


def test_a_reranker_decides_the_order():
    """What a reranker answers is packed in its order, whatever the scores."""
    chunks = [Chunk("a", score=0.9), Chunk("b", score=0.1)]

    assert "a\n\nb" == service_of(*chunks, reranker=NoOpReranker()).retrieve("q").packing.text
    assert "b\n\na" == service_of(*chunks, reranker=Counting()).retrieve("q").packing.text


def test_a_packer_of_ones_own():
    """A packer's options apply, its bound too; the model's counter counts."""
    packer = Packer(3, counter="chars_div4", ranking="input", overflow="skip")
    service = service_of("one two three four", "tea", "tea", packer=packer)

    packing = service.retrieve("q").packing

    assert ("tea", 3, True) == (packing.text, packing.budget_tokens, packing.is_exact)
    assert ["budget", "duplicate"] == [dropped.reason for dropped in packing.dropped]


class Arrays(Embedder):
    """An embedder as packers want them."""

    def embed(self, texts):
        return np.array(super().embed(texts), dtype="float32")


@pytest.mark.parametrize("reranker", [None, NoOpReranker(), Counting()])
@pytest.mark.parametrize(
    "options",
    [
        {"ranking": Bm25(stemming="english")},
        {"ranking": Bm25(stopwords=None)},
        {"ranking": Bm25(stopwords="german")},
        {"ranking": Bm25(stopwords=["tea"])},
        {"ranking": Bm25(k1=0.5, b=0)},
        {"ranking": Hybrid({"bm25": 1, "score": 1})},
        {"ranking": Hybrid({"bm25": 1}, bm25=Bm25(stemming="english"))},
        {"ranking": Hybrid(fusion="rrf", k=1, embedding=Embedding(Arrays()))},
        {"ranking": Embedding(Arrays())},
        {"ranking": Embedding(Arrays(), fallback=Bm25(stopwords=None))},
        {"ranking": "score", "min_score": 0.2},
        {"units": "sentence", "ranking": Bm25(stemming="english")},
        {"selection": "coverage"},
        {"order": "edges", "notice": True, "template": "xml"},
    ],
    ids=" ".join,
)
def test_each_option_of_a_packer(backend, options, reranker):
    """A service packs as the packer it is given does by itself, whatever its options."""
    packer = Packer(40, counter="cl100k_base", **options)
    texts = ["Teas are mild.", "The tea of the day. Und es ist gut.", "Bread.", "A day in May."]
    chunks = [{"text": text, "score": i / 4} for i, text in enumerate(texts)]
    service = service_of(*chunks, packer=packer, reranker=reranker)

    packing = service.retrieve("the teas of und").packing

    if isinstance(reranker, Counting):
        chunks = reranker.rerank("the teas of und", chunks)
    assert packer.pack("the teas of und", chunks).to_dict() == packing.to_dict()
    service.settings = SETTINGS
    assert packing.text == service.retrieve("the teas of und").packing.text


def test_the_query_is_embedded_once():
    """All retrievers that take a vector get the same one."""
    embedder, got = Embedder(), []

    class Vectors(Fake):
        takes_vector = True

        def retrieve(self, query, limit, *, vector):
            got.append(vector)
            return ["tea"]

    service = RetrievalService([Vectors(), Fake(), Vectors()], SETTINGS, embedder=embedder)
    service.retrieve("q")

    assert ["q"] == embedder.asked
    assert [embedder.vector("q")] * 2 == got


def test_settings_that_leave_nothing_are_told_when_they_are_set(caplog):
    """It is not the query's fault where the reserve and the system prompt fill the window."""
    service = service_of("tea", system_prompt=text_of(50))
    assert [] == caplog.records
    service.settings = LlmSettings(model="gpt-4", context_window=100, max_output_tokens=50)
    [record] = [it for it in caplog.records if it.levelno == logging.WARNING]

    assert record.getMessage() == (
        "retrieval service: every query will be refused, as 50 tokens of output and 50 of the "
        "system prompt leave nothing of the context window 100"
    )
    with pytest.raises(InputValidationError):
        service.retrieve("q")


def test_log_without_texts(caplog):
    """What is logged has the figures of the document by their names, and no text."""
    service = service_of(*["green tea " * 600] * 9, system_prompt="secret prompt")
    with caplog.at_level(logging.DEBUG, logger="budgeteer"):
        tokens = service.retrieve("secret query").tokens
    [record] = caplog.records

    figures = {name: value for name, value in vars(record).items() if "tokens." in name}
    assert figures == {
        "tokens.system": tokens.system,
        "tokens.query": tokens.query,
        "tokens.retrieved": tokens.retrieved,
        "tokens.budget": tokens.budget,
        "tokens.budget_remaining": tokens.remaining,
    }
    assert "secret" not in str(vars(record))
    assert "green" not in str(vars(record))


def test_repr_and_dict():
    """A result says its figures in its repr, and everything in its dict."""
    result = service_of("green tea").retrieve("secret")

    assert "secret" not in repr(result)
    assert "green" not in repr(result)
    assert "green tea" == result.to_dict()["packing"]["text"]
    assert result.tokens.input == result.to_dict()["tokens"]["input"]
    assert result.packing.text == pickle.loads(pickle.dumps(result)).packing.text


@given(chunk_lists(), queries, texts, counters, st.integers(1, 120), st.integers(0, 40), st.data())
def test_the_law(chunks, query, prompt, counter, window, output, data):
    """For every input the messages and the reserve are within the window, or an error says so."""
    settings = LlmSettings(context_window=window, max_output_tokens=output, counter=counter)
    packer = data.draw(
        st.none()
        | st.builds(
            Packer,
            st.just(1_000),
            ranking=st.sampled_from(["input", "keyword"]),
            overflow=st.sampled_from(["skip", "stop", "truncate_end"]),
            template=st.sampled_from(["plain", "tagged"]),
        )
    )
    service = RetrievalService(Fake(*chunks), settings, system_prompt=prompt, packer=packer)
    try:
        result = service.retrieve(query)
    except InputValidationError:
        assert 1 == service.stats().rejected
        return

    tokens = result.tokens
    total = count_messages(result.messages, counter=settings.limits.counter)
    assert (
        total
        == tokens.input
        == (tokens.system + tokens.query + tokens.retrieved + tokens.overhead)
    )
    assert total + output <= window
    assert tokens.remaining == window - output - total
    assert result.messages == chat_messages(prompt, result.packing.text, query)
    seen = [kept.index for kept in result.packing.kept]
    seen += [dropped.index for dropped in result.packing.dropped]
    assert sorted(seen) == list(range(len(chunks)))


def test_a_counter_that_counts_seams_dearly():
    """Where texts count more beside each other, chunks leave until the messages fit."""

    def counter(text):
        return len(text) + 50 * text.count("\n\n")

    settings = LlmSettings(context_window=400, max_output_tokens=0, counter=counter)
    result = service_of(*["a" * 40] * 9, settings=settings).retrieve("q")

    assert 1 <= len(result.packing.kept) < 9
    assert count_messages(result.messages, counter=counter) <= 400


def test_a_message_builder_is_counted():
    """Whatever a builder puts around the context, the messages fit."""

    def build(prompt, context, query):
        yield {"role": "user", "content": f"{prompt}\n<context>{context}</context>\n{query}"}
        yield {"role": "assistant", "content": "I have read it. " * 20}

    def builder(*parts):
        return list(build(*parts))

    settings = LlmSettings(model="gpt-4", context_window=300, max_output_tokens=50)
    result = service_of(*["tea " * 10] * 90, settings=settings, message_builder=builder).retrieve(
        "q"
    )

    assert result.packing.kept
    assert in_window(result)


def test_a_builder_with_no_room_for_any_chunk_is_told(caplog):
    """Where the messages cost more with every context, all chunks are dropped for the budget."""

    def builder(prompt, context, query):
        many = 2_000 if len(context) > 1 else 1
        return [{"role": "user", "content": f"{context} {query}" + " tea" * many}]

    settings = LlmSettings(model="gpt-4", context_window=1000, max_output_tokens=100)
    service = service_of("one two", "three", settings=settings, message_builder=builder)
    with caplog.at_level(logging.WARNING, logger="budgeteer"):
        result = service.retrieve("q")

    assert "" == result.packing.text
    assert ["budget", "budget"] == [dropped.reason for dropped in result.packing.dropped]
    assert in_window(result)
    [record] = caplog.records
    assert "Token budget exceeded: dropped 2 lowest-relevance chunks" == record.getMessage()
    assert (1, 2, 3) == tuple(
        getattr(service.stats(), name) for name in ("cut", "dropped_chunks", "dropped_tokens")
    )


def test_a_counter_to_which_texts_are_nothing_until_they_are_joined():
    """Then none is kept, as none is in the messages."""

    def counter(text):
        return 1 if len(text) < 50 else 0 if len(text) < 61 else 1_000

    settings = LlmSettings(context_window=100, max_output_tokens=0, counter=counter)
    result = service_of(*["a" * 60] * 3, settings=settings).retrieve("q")

    assert ("", 0) == (result.packing.text, len(result.packing.kept))
    assert result.messages == chat_messages("", "", "q")


def test_a_message_builder_may_use_the_context_twice():
    """What is left out is what does not fit twice, and not nearly everything."""

    def builder(prompt, context, query):
        return [{"role": "system", "content": context}, {"role": "user", "content": context}]

    settings = LlmSettings(model="gpt-4", context_window=1000, max_output_tokens=100)
    chunks = [f"{n} is a number of tea" for n in range(100, 200)]
    result = service_of(*chunks, settings=settings, message_builder=builder).retrieve("q")

    assert in_window(result)
    assert result.tokens.budget // 3 < result.tokens.retrieved < result.tokens.budget // 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, SETTINGS), "retriever must have retrieve(query, limit), and int has not"),
        (([Fake(), 3], SETTINGS), "retriever[1] must have retrieve(query, limit), and int"),
        (([], SETTINGS), "retriever must have at least one retriever"),
        (("tea", SETTINGS), "retriever must have retrieve(query, limit), and str has not"),
        ((Fake(), {"model": "gpt-4"}), "settings must be LlmSettings, not dict"),
    ],
)
def test_bad_arguments(arguments, message):
    """A wrong argument is named."""
    with pytest.raises(InvalidArgumentError) as caught:
        RetrievalService(*arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system_prompt": None}, "system_prompt must be a str, not None"),
        ({"packer": 9}, "packer must be a Packer or None, not int"),
        (
            {"packer": Packer(9, order="sticky")},
            "order must not be 'sticky' in a RetrievalService, which has no previous packing",
        ),
        ({"reranker": 9}, "reranker must have rerank, and int has not"),
        ({"embedder": 9}, "embedder must have embed_query, and int has not"),
        ({"message_builder": 9}, "message_builder must be callable, not int"),
        ({"limit": 0}, "limit must be from 1 to 9223372036854775807, not 0"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, not 0"),
        ({"timeout": float("inf")}, "timeout must be a number of seconds above 0, not inf"),
        ({"timeout": "1"}, "timeout must be a float, not str"),
    ],
)
def test_bad_options(options, message):
    """A wrong option is named."""
    with pytest.raises(InvalidArgumentError) as caught:
        service_of(**options)
    assert message == str(caught.value)


def test_bad_requests():
    """A wrong argument of a request is named, and nothing is retrieved."""
    retriever = Fake("tea")
    service = RetrievalService(retriever, SETTINGS)
    with pytest.raises(InvalidArgumentError, match="query must be a str, not int"):
        service.retrieve(3)
    with pytest.raises(InvalidArgumentError, match="timeout must be a number"):
        service.retrieve("q", timeout=-1)
    with pytest.raises(InvalidArgumentError, match="settings must be LlmSettings, not None"):
        service.settings = None
    with pytest.raises(InvalidArgumentError, match="fake is asynchronous: use aretrieve"):
        RetrievalService([retriever, AsyncFake()], SETTINGS).retrieve("q")
    assert [] == retriever.asked
    retriever.takes_vector = True
    with pytest.raises(InvalidArgumentError, match="embedder is required: fake takes the query's"):
        RetrievalService(retriever, SETTINGS)


def test_chunks_of_every_type():
    """What a packer takes a retriever may answer."""
    chunks = ["a", {"content": "b"}, Chunk("c")]
    result = service_of(*chunks).retrieve("q")

    assert chunks == [kept.chunk for kept in result.packing.kept]
    assert ["a", "b", "c"] == [text_of_chunk(kept.chunk) for kept in result.packing.kept]


def test_exact_figures():
    """System prompt and query are counted as the model counts them."""
    result = service_of(system_prompt="Answer briefly.").retrieve("What is 緑茶?")

    assert COUNT("Answer briefly.") == result.tokens.system
    assert COUNT("What is 緑茶?") == result.tokens.query
    assert result.tokens.is_exact
