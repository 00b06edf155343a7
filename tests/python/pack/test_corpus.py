"""Corpora: what is packed from an index is what is packed from the list of its chunks."""

import os
import pickle
import random
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    RANKINGS,
    VOCABULARY,
    Pure,
    budgets,
    chunk_lists,
    compared,
    counters,
    options,
    outcome,
    queries,
    texts,
    using,
)

from budgeteer import (
    BudgeteerError,
    Chunk,
    Corpus,
    CounterError,
    InvalidArgumentError,
    Packer,
    Packing,
    Template,
    pack,
)
from budgeteer.errors import EmbeddingError
from budgeteer.presets import agentic_rag, context_gate, context_router, retrieval_service
from budgeteer.ranking import Embedding, Hybrid


def seen(packing):
    """Return all that a packing says."""
    if isinstance(packing, tuple):
        return packing
    said = packing.to_dict(), packing.dropped_count, packing.was_truncated, repr(packing)
    said = *said, packing.text, packing.stable_prefix_tokens, packing.fallback
    count = len(packing.kept) + packing.dropped_count
    return *said, [packing.explain(i) for i in range(0, count, 7)]


def assert_same(query, chunks, corpus, max_tokens, **options):
    """Packing the corpus is packing the list."""
    expected = seen(outcome(pack, query, chunks, max_tokens, **options))

    assert expected == seen(outcome(pack, query, corpus, max_tokens, **options))


def halves(chunks):
    """Return a corpus that was made in two steps."""
    corpus = Corpus(chunks[: len(chunks) // 2])
    corpus.append(chunks[len(chunks) // 2 :])
    return corpus


@given(queries, chunk_lists(), budgets, counters, options)
def test_identity(query, chunks, max_tokens, counter, options):
    """Whatever the options, a corpus packs as the list does, however it was made."""
    for name in BACKENDS:
        with using(name):
            made = outcome(Corpus, chunks)
            if isinstance(made, tuple):  # a list of unreadable chunks: no corpus either
                packer = {"counter": counter, **options, "ranking": "bm25"}
                assert made == outcome(pack, query, chunks, max_tokens, **packer)
                return
            for corpus in made, halves(chunks):
                assert_same(query, chunks, corpus, max_tokens, counter=counter, **options)


def pool(random, count):
    """Return many small chunks, some of them equal, empty, long or without a query's word."""
    some = [" ".join(random.choices(VOCABULARY, k=random.randrange(1, 9))) for _ in range(count)]
    some += random.choices(some, k=count // 4) + [""] * (count // 50) + [" ", "\n\n", "tea\n\n\n"]
    some += ["long " * random.randrange(20, 200) + "tea" for _ in range(count // 5)]
    random.shuffle(some)
    return [
        Chunk(
            text,
            title=random.choice(["", "", "tea", "Green policy"]),
            score=random.choice([None, 0.0, -0.0, 1.5, random.random()]),
            metadata={"mtime": random.choice([0, 5, random.random()])},
        )
        for text in some
    ]


@pytest.mark.parametrize("counter", ["o200k_base", "chars_div4", "words", "chars_per_token:0.7"])
@pytest.mark.parametrize("ranking", RANKINGS)
def test_unseen(backend, ranking, counter):
    """What is told of chunks that were not looked at is what looking at them would tell."""
    rng = random.Random(f"{ranking} {counter}")
    chunks = pool(rng, 700)
    corpus = halves(chunks)
    tried = 24 if "_native" in backend.__name__ else 3
    for turn in range(tried):
        options = {
            "overflow": ["skip", "stop", "truncate_end", "truncate_middle"][turn % 4],
            "max_chunks": rng.choice([None, None, 0, 3, 150]),
            "min_score": rng.choice([None, None, 0.0, 0.4, 2.0]),
            "dedupe": rng.choice(["exact", "near", None]),
            "selection": rng.choice(["rank", "rank", "coverage"]),
            "order": rng.choice(["rank", "input"]),
            "template": rng.choice(["plain", "tagged"]),
        }
        query = rng.choice(["green tea", "remote work policy", "", "\u7eff\u8336 caf\u00e9", "x"])
        budget = rng.choice([0, 1, 7, 60, 400, 3_000, 10**9])
        assert_same(query, chunks, corpus, budget, counter=counter, ranking=ranking, **options)


TEMPLATES = [
    *("plain", "tagged", "markdown", "xml", "json"),
    Template("<{id} {source}> {text}\n", separator="", header="Context:\n", footer="\nEnd."),
    Template("{text} ({title}) {nonce}", nonce=True),
]


WEIGHTS = [
    {"bm25": 1, "embedding": 1},
    {"bm25": 0.3, "embedding": 0.5, "score": 0.2},
    {"embedding": 1, "score": 2},
    {"bm25": 1},
    {"score": 1},
]


def framed_options(rng):
    """Return options of what stands around the chunks, and in which order they stand."""
    return {
        "overflow": rng.choice(["skip", "stop", "truncate_end", "truncate_middle"]),
        "max_chunks": rng.choice([None, None, 3, 150]),
        "min_score": rng.choice([None, None, 0.0, 0.4]),
        "dedupe": rng.choice(["exact", "near", None]),
        "selection": rng.choice(["rank", "rank", "coverage"]),
        "order": rng.choice(["rank", "input", "document", "edges", "sticky"]),
        "template": rng.choice(TEMPLATES),
        "notice": rng.choice([None, True, "{count} more"]),
    }


def assert_packed_alike(packer, query, chunks, corpora, **arguments):
    """A packer packs each corpus as it packs the list."""
    expected = seen(outcome(packer.pack, query, chunks, **arguments))
    for corpus in corpora:
        assert expected == seen(outcome(packer.pack, query, corpus, **arguments))


def some_corpora(backend, chunks, path):
    """Return corpora of the chunks: made in two steps, and opened from a file where that is."""
    corpora = [halves(chunks)]
    if "_native" in backend.__name__:
        corpora[0].save(path)
        corpora.append(Corpus.open(path))
    return corpora


@pytest.mark.parametrize("counter", ["o200k_base", "words", "chars_div4", Pure("bytes", 1)])
@pytest.mark.parametrize("ranking", [*RANKINGS, "embedding", "hybrid"])
def test_every_option(backend, ranking, counter, tmp_path):
    """Templates, orders, notices, packings before and vectors: all as for the list."""
    rng = random.Random(f"{ranking} {counter}")
    chunks = [
        *pool(rng, 120),
        *({"text": f"green tea {i}", "source": f"s{i % 3}", "position": -i} for i in range(9)),
        *("black tea " * rng.randrange(1, 9) for _ in range(9)),
    ]
    corpora = some_corpora(backend, chunks, tmp_path / "corpus")
    vectors = np.array([[rng.gauss(0, 1) for _ in range(4)] for _ in chunks], np.float32)
    previous = None
    for _ in range(16 if "_native" in backend.__name__ else 3):
        options = framed_options(rng)
        arguments = {}
        by, takes_vectors = ranking, ranking == "embedding"
        if ranking == "hybrid":
            weights = rng.choice(WEIGHTS)
            by = Hybrid(weights, fusion=rng.choice(["minmax", "rrf"]))
            takes_vectors = "embedding" in weights
        if takes_vectors:
            arguments["vectors"] = [1, 0, 0.5, -1], vectors
        if options["order"] == "sticky":
            arguments["previous"] = previous
        budget = rng.choice([0, 1, 30, 200, 3_000])
        query = rng.choice(["green tea", "remote work policy", "", "x"])
        packer = Packer(budget, counter=counter, ranking=by, **options)
        assert_packed_alike(packer, query, chunks, corpora, **arguments)
        previous = packer.pack(query, chunks, **arguments)


@pytest.mark.parametrize("counter", ["o200k_base", "chars_div4", Pure("bytes", 1)])
def test_presets(backend, counter, tmp_path):
    """Citations, a gate and other presets: as for the list."""
    rng = random.Random(7)
    kinds = ["instruction", "policy", "document", None, "memory"]
    chunks = [
        Chunk(
            chunk.text,
            id=str(i),
            source=f"s{i % 5}",
            title=chunk.title,
            score=rng.random(),
            metadata={"kind": rng.choice(kinds), "authority": "system", "priority": i % 4},
        )
        for i, chunk in enumerate(pool(rng, 90))
    ]
    corpora = some_corpora(backend, chunks, tmp_path / "corpus")
    for budget in 1, 64, 90, 200, 1_000:
        packers = [
            agentic_rag(budget, counter=counter),
            context_gate(budget),
            context_gate(budget, max_docs=40),
            context_router(budget, estimator="words"),
            retrieval_service(budget),
        ]
        for packer in packers:
            for query in "green tea", "", "remote policy":
                assert isinstance(packer.pack(query, chunks), Packing)
                assert_packed_alike(packer, query, chunks, corpora)


class Embedder:
    """Embeds by counting letters, unless it is out of order."""

    def __init__(self, message=None):
        self.message = message
        self.asked = []

    def embed(self, texts):
        """Return a vector of each text."""
        self.asked.append(texts)
        if self.message is not None:
            raise EmbeddingError(self.message)
        return np.array([[text.count("e"), text.count("a"), 1] for text in texts], np.float32)


@pytest.mark.parametrize("ranking", ["embedding", "hybrid"])
@pytest.mark.parametrize("message", [None, "out of order"])
def test_embedder(backend, ranking, message, tmp_path):
    """An embedder is asked for the same texts; what it raises is raised, or fallen back from."""
    chunks = pool(random.Random(3), 40)
    corpora = some_corpora(backend, chunks, tmp_path / "corpus")
    for fallback in None, "bm25":
        embedder = Embedder(message)
        by = Embedding(embedder, fallback=fallback)
        packer = Packer(60, ranking=Hybrid(embedding=by) if ranking == "hybrid" else by)
        assert_packed_alike(packer, "green tea", chunks, corpora)

        assert all(asked in embedder.asked[:2] for asked in embedder.asked)


def test_bad_vectors(backend):
    """Vectors of another number of chunks are refused as for the list."""
    chunks = ["green tea", "rye"]
    packer = Packer(9, ranking="embedding")
    for count in 0, 1, 3:
        vectors = [1.0, 0.0], np.ones((count, 2), np.float32)
        assert_packed_alike(packer, "tea", chunks, [halves(chunks)], vectors=vectors)
    assert_packed_alike(packer, "tea", chunks, [halves(chunks)])


@pytest.mark.parametrize("counter", [Pure("joints", 3), Pure("hash", 7), Pure("nothing", 1)])
def test_callable(backend, counter):
    """A caller's counter is asked about as many chunks as in a list."""
    chunks = pool(random.Random(4), 300)
    corpus = Corpus(chunks)
    for overflow in "skip", "stop", "truncate_end":
        assert_same("green tea", chunks, corpus, 90, counter=counter, overflow=overflow)


def test_leaving(backend):
    """Chunks that leave an over-full text are told of behind all that never came in."""
    chunks = ["a" * 9, "a" * 9, *["tea " * 40] * 600, "tea"]
    corpus = Corpus(chunks)

    assert_same("tea", chunks, corpus, 90, counter=Pure("joints", 80))
    assert_same("tea", chunks, corpus, 2_000, counter="o200k_base")


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 50])
def test_append(backend, steps):
    """Appending in any number of steps makes the corpus of all chunks."""
    chunks = pool(random.Random(steps), 120)
    corpus = Corpus()
    size = -(-len(chunks) // steps)
    for start in range(0, len(chunks), size):
        corpus.append(chunks[start : start + size])
        assert_same("green tea policy", chunks[: start + size], corpus, 50)

    assert len(chunks) == len(corpus)
    assert chunks == list(corpus)
    assert all(one is other for one, other in zip(chunks, corpus, strict=True))


def test_append_all_or_nothing(backend):
    """A chunk that cannot be read leaves the corpus as it was."""
    corpus = Corpus(["green tea"])
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[1\] must be a str, .*, not int$"):
        corpus.append(["black tea", 7])

    assert ["green tea"] == list(corpus)
    assert corpus[0] == corpus[-1] == "green tea"
    assert_same("tea", ["green tea"], corpus, 9)


def test_packing_outlives_appending(backend):
    """A packing tells of the chunks that were there when it was made."""
    corpus = Corpus(["green tea"] * 3 + ["rye"] * 400)
    packing = Packer(4).pack("tea", corpus)
    corpus.append(["black tea"] * 300)

    assert seen(pack("tea", ["green tea"] * 3 + ["rye"] * 400, 4)) == seen(packing)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ("tea", "chunks must be a sequence, not str: put it into a list"),
        (7, "chunks must be a sequence, not int"),
        ([SimpleNamespace(text=7)], "chunks[0].text must be a str, not int"),
        (["tea", {"text": "tea", "title": 7}], "chunks[1].title must be a str, not int"),
        (["tea", {}], "chunks[1] must have a key 'text', 'content' or 'page_content'"),
    ],
)
def test_bad_chunks(backend, chunks, message):
    """What cannot be read is named."""
    assert (InvalidArgumentError, message) == outcome(Corpus, chunks)
    assert (InvalidArgumentError, message) == outcome(Corpus().append, chunks)


def test_objects_with_other_names(backend):
    """Whoever came first to a corpus, objects that came later are read by their own names."""
    corpus = Corpus([SimpleNamespace(content="green tea")])
    corpus.append([SimpleNamespace(text="black tea is strong")])
    packing = pack("tea", corpus, 3)

    assert 4 == packing.dropped_total_tokens
    assert "black tea is strong" in packing.report()
    assert ["green tea", "black tea is strong"] == [it.text for it in corpus.retrieve("tea", 2)]


def test_bad_scores(backend):
    """Scores and times are looked at when a ranking asks for them."""
    corpus = Corpus([{"text": "tea", "score": "high"}])

    assert "tea" == pack("tea", corpus, 5).text
    with pytest.raises(InvalidArgumentError, match=r"chunks\[0\].score must be a float"):
        pack("tea", corpus, 5, ranking="score")


def test_counter_error(backend):
    """A caller's counter that errs is named with its chunk."""
    with pytest.raises(CounterError, match=r"for chunks\[0\], not -1"):
        pack("tea", Corpus(["tea"]), 5, counter=lambda _: -1)


def test_no_texts_in_repr():
    """Neither texts nor titles are in what is shown of a corpus."""
    assert "<Corpus of 0 chunks>" == repr(Corpus())
    assert "<Corpus of 1 chunk>" == repr(Corpus(["secret"]))


def test_pickle():
    """A corpus in memory says that it cannot be pickled; a packing of one can."""
    corpus = Corpus(["green tea"] + ["rye"] * 300)
    with pytest.raises(BudgeteerError, match="cannot be pickled"):
        pickle.dumps(corpus)
    packing = Packer(3).pack("tea", corpus)
    expected = packing.to_dict()

    assert expected == pickle.loads(pickle.dumps(Packer(3).pack("tea", corpus))).to_dict()


def test_threads(backend):
    """Threads that pack while one appends each see a whole addition or nothing of it."""
    size, additions = 40, 25
    corpus = Corpus(["green tea"] * size)
    wrong, over = [], threading.Event()
    packer = Packer(4, counter="words", dedupe=None)

    def query():
        while not over.is_set():
            packing = packer.pack("tea", corpus)
            count = packing.dropped_count + len(packing.kept)
            if count % size or packing.text != "green tea\n\ngreen tea":
                wrong.append(count)

    threads = [threading.Thread(target=query) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(additions):
        corpus.append(["green tea"] * size)
    over.set()
    for thread in threads:
        thread.join()

    assert [] == wrong
    assert size * (additions + 1) == len(corpus)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork(backend):
    """A child packs and appends, even if a thread was appending when it was forked."""
    corpus = Corpus(["green tea"] * 5)
    with corpus._lock:
        child = os.fork()
        if child == 0:
            corpus.append(["black tea"])
            os._exit(len(corpus) + ("black tea" in pack("black tea", corpus, 4).text))
    _, status = os.waitpid(child, 0)

    assert 7 == os.waitstatus_to_exitcode(status)


@compared
def test_no_text_is_copied():
    """The strings of an index are the caller's."""
    text = "green tea " * 9
    before = sys.getrefcount(text)
    with using("native"):
        corpus = Corpus([text])

    assert sys.getrefcount(text) > before
    assert corpus[0] is text


@given(st.lists(texts, max_size=8), queries)
def test_scores_to_the_bit(chunks, query):
    """Scores of terms, wherever they stand, are those of one pass over the texts."""
    expected = [kept.score for kept in pack(query, chunks, 10**6, dedupe=None, order="input").kept]
    corpus = halves(chunks)
    packed = pack(query, corpus, 10**6, dedupe=None, order="input")

    assert expected == [kept.score for kept in packed.kept]


def test_a_corpus_is_a_retriever(backend):
    """A service over a corpus gets the best chunks of its index, with all that they say."""
    from budgeteer.service import LlmSettings, RetrievalService

    chunks = [
        Chunk("Rye bread.", id="r"),
        {"text": "Green tea is mild.", "id": "t"},
        "",
        "Coffee.",
    ]
    corpus = Corpus(chunks)
    found = corpus.retrieve("green tea", 2)
    packing = Packer(99, max_chunks=2).pack("green tea", chunks)

    assert [(kept.text, kept.score) for kept in packing.kept] == [(c.text, c.score) for c in found]
    assert ["t", "r"] == [chunk.id for chunk in found]
    assert [] == corpus.retrieve("tea", 0) == Corpus().retrieve("tea", 9)
    for query, limit in ((3, 1), ("tea", -1), ("tea", "1")):
        with pytest.raises(InvalidArgumentError):
            corpus.retrieve(query, limit)

    service = RetrievalService(corpus, LlmSettings(model="gpt-4o"))
    answer = service.retrieve("green tea")
    assert answer.packing.text.startswith("Green tea is mild.")
    assert "green tea" in answer.messages[-1]["content"]


def test_what_cannot_be_retrieved(backend):
    """The message names the place in the corpus."""
    corpus = Corpus(["Rye bread.", {"text": "Green tea.", "source": 5}])
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[1\]\.source must be a str, not int"):
        corpus.retrieve("green tea", 1)
