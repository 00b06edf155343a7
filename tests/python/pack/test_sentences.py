"""Sentences: where they start and end, and that packing them keeps every promise."""

import dataclasses
import json
import pickle
import time

import pytest
import sentence_cases
from hypothesis import example, given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    backend_named,
    chunk_lists,
    compared,
    counters,
    formula_counters,
    long_texts,
    notices,
    options,
    orders,
    queries,
    templates,
    text_of,
    texts,
    using,
)

from budgeteer import Chunk, Corpus, CounterError, InvalidArgumentError, Packer, get_counter
from budgeteer._reference._pack.extracts import GAP, MAX_CHUNKS
from budgeteer.embedding import EmbeddingError
from budgeteer.presets import agentic_rag
from budgeteer.ranking import Bm25, Embedding, Hybrid

CASES = json.loads(sentence_cases.FILE.read_text("utf-8"))


pieces = st.sampled_from(
    [
        *("Tea", "green", " ", " ", " ", ".", ". ", "!", "?", "\u3002", "\n", "\r\n", "\n\n"),
        *("Dr", "e.g", "U.S", "J", "3", "42", ")", '"', "\u201d", "\u2026", "\u8336", "\u00e9"),
        *("\u00c9", "\u0301", "\u3000", "\u2028", "\x1c", "\ud800", "\u0964", "\u01c5", "- "),
    ]
)
sentences = st.lists(pieces, max_size=40).map("".join) | texts | long_texts


@pytest.mark.parametrize("kind", sentence_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(kind):
    """What `tests/cases/sentences.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == json.loads(json.dumps(kind()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four\u2026 five.", ["One.", "Two!", "Three?", "Four\u2026 five."]),
        ("Dr. Oolong, J. K. Rye and Fig. 2.", ["Dr. Oolong, J. K. Rye and Fig. 2."]),
        ("In the U.S. Army. e.g. two. It is 3.14 or 5. Yes",
         ["In the U.S. Army. e.g. two.", "It is 3.14 or 5.", "Yes"]),
        ('"No." (Why?) "So!" she said. [End.] X',
         ['"No."', "(Why?)", '"So!" she said.', "[End.]", "X"]),
        ("\u8336\u3002\u300c\u597d\u3002\u300d\u7eff",
         ["\u8336\u3002", "\u300c\u597d\u3002\u300d", "\u7eff"]),
        ("# Head\nA line\nwrapped.\n- one\n2. Two\r\n\r\nnext",
         ["# Head", "A line\nwrapped.", "- one", "2. Two", "next"]),
        (" \n ", []),
    ],
)  # fmt: skip
def test_where_sentences_end(backend, text, expected):
    """Marks, lines and lists end sentences; abbreviations, initials and numbers do not."""
    spans = backend.sentence_spans(text)

    assert expected == [
        text[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)
    ]


@given(sentences)
def test_spans_hold_the_text(text):
    """Spans are in order, begin and end with no space, and leave nothing but spaces out."""
    for name in BACKENDS:
        spans = backend_named(name).sentence_spans(text)
        found = [text[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)]

        assert spans == sorted(spans)
        assert all(sentence and sentence == sentence.strip() for sentence in found)
        assert "".join(text.split()) == "".join("".join(found).split())


@compared
@given(sentences)
def test_backends_split_alike(text):
    """Both backends find the same sentences in every text."""
    reference, native = (
        backend_named(name).sentence_spans(text) for name in ("reference", "native")
    )

    assert reference == native


# Sentences are for neither of these: see `test_what_sentences_do_not_go_with`.
by_sentences = options.map(
    lambda given: {name: value for name, value in given.items() if name != "selection"}
).map(lambda given: {**given, "dedupe": "exact" if given.get("dedupe") else None})
calls = st.tuples(
    queries, chunk_lists(sentences, max_size=6), st.integers(0, 60), counters, by_sentences
)


def outcome(packer, query, chunks):
    """Return all that a packing says."""
    packing = packer.pack(query, chunks)
    return packing.to_dict(), [packing.explain(i) for i in range(len(chunks))]


@compared
@given(calls)
def test_backends_pack_alike(call):
    """Both backends pack the same sentences, and say the same of each chunk."""
    query, chunks, budget, counter, given_options = call
    packer = {**given_options, "counter": counter, "units": "sentence"}
    found = []
    for name in BACKENDS:
        with using(name):
            found.append(outcome(Packer(budget, **packer), query, chunks))

    assert found[0] == found[-1]


@pytest.mark.parametrize("name", BACKENDS)
@given(call=calls)
def test_the_law(name, call):
    """The counter answers at most the budget, and each chunk is answered once."""
    query, chunks, budget, counter, given_options = call
    with using(name):
        packer = Packer(budget, counter=counter, units="sentence", **given_options)
        packing = packer.pack(query, chunks)
        total = get_counter(counter).count(packing.text) if packing.text else 0

        assert total == packing.total_tokens <= packing.budget_tokens
        answered = [chunk.index for chunk in (*packing.kept, *packing.dropped)]
        assert [*range(len(chunks))] == sorted(answered)
        assert {*map(id, chunks)} >= {id(kept.chunk) for kept in packing.kept}


@pytest.mark.parametrize("name", BACKENDS)
@given(query=queries, chunks=chunk_lists(sentences, max_size=6), budget=st.integers(1, 60))
def test_extracts_are_sentences(name, query, chunks, budget):
    """What is kept of a chunk are sentences of it in their order; all of them are the chunk."""
    with using(name) as module:
        for kept in Packer(budget, counter="words", units="sentence").pack(query, chunks).kept:
            text = text_of(kept.chunk)
            assert kept.was_cut == (kept.text != text)
            place = 0
            for part in kept.text.split(GAP) if kept.was_cut else ():
                place = text.index(part, place) + len(part)
            spans = module.sentence_spans(text)
            assert not kept.was_cut or len(spans) > 2


@pytest.mark.parametrize("name", BACKENDS)
@given(call=calls)
def test_a_corpus_packs_as_its_chunks(name, call):
    """A corpus gives what the list of its chunks gives."""
    query, chunks, budget, counter, given_options = call
    with using(name):
        packer = Packer(budget, counter=counter, units="sentence", **given_options)
        expected, found = packer.pack(query, chunks), packer.pack(query, Corpus(chunks))

        assert expected.to_dict() == found.to_dict()


@pytest.mark.parametrize("name", BACKENDS)
@given(
    chunks=chunk_lists(sentences, max_size=5),
    counter=formula_counters,
    template=templates,
    notice=notices,
    order=orders,
)
def test_what_all_fits_is_whole(name, chunks, counter, template, notice, order):
    """With room for everything, whole chunks are packed as they are."""
    shared = {"counter": counter, "template": template, "notice": notice, "order": order}
    with using(name):
        whole = Packer(10**6, **shared).pack("green tea", chunks)
        packing = Packer(10**6, units="sentence", **shared).pack("green tea", chunks)

        assert whole.to_dict() == packing.to_dict()


TEA = "Tea is old. Green tea is from China. So is silk. Rye is not."


def test_the_best_sentences_come_first(backend):
    """A sentence that answers goes before those around it, and gaps are marked."""
    chunks = [Chunk(TEA, title="Tea"), "Rye bread is dark. It keeps.", "Silk, green."]
    one = Packer(6, units="sentence").pack("green tea", chunks)
    expected = "Tea is old. [...] So is silk."
    packer = Packer(len(expected), units="sentence", max_chunks=1, counter=len)
    two = packer.pack("silk or old tea", chunks)

    assert "Green tea is from China." == one.text
    assert [(0, True, (0, 24))] == [(kept.index, kept.was_cut, kept.span) for kept in one.kept]
    assert expected == two.text
    assert "was cut to 2 of 4 sentences with" in two.explain(0)
    assert two.was_truncated
    again = pickle.loads(pickle.dumps(two))
    assert two.to_dict() == again.to_dict()


def test_neighbours_are_joined_as_they_stood(backend):
    """Between two neighbours stands what stood there."""
    text = "Green tea.\n\nBlack  tea!\tOolong? \u8336\u3002\u8336. Rye is no tea at all, whatever."
    packing = Packer(
        len("Green tea.\n\nBlack  tea!\tOolong?"), counter=len, units="sentence"
    ).pack("green black oolong", [text])

    assert "Green tea.\n\nBlack  tea!\tOolong?" == packing.text


def test_whole_chunks_fill_what_is_left(backend):
    """What was not split, or not chosen, may still come in whole, in the order of rank."""
    chunks = ["Filler, and more of it.", "Hm.", f"{TEA} Nor is {'a' * 200}.", "Oh!"]
    room = len("Green tea is from China.\n\nHm.\n\nOh!")
    packing = Packer(room, units="sentence", counter=len).pack("green tea China", chunks)

    assert "Green tea is from China.\n\nHm.\n\nOh!" == packing.text
    assert [(2, True), (1, False), (3, False)] == [
        (kept.index, kept.was_cut) for kept in packing.kept
    ]
    packing = Packer(room, units="sentence", counter=len, ranking="input").pack("oh hm", chunks)
    assert [0, 1, 3] == [kept.index for kept in packing.kept]


def test_duplicates(backend):
    """What repeats a kept chunk is a duplicate of it, cut or not."""
    packing = Packer(6, units="sentence").pack("green tea", [TEA, "Rye.", TEA])

    assert [0] == [kept.index for kept in packing.kept]
    assert ("duplicate", 0) == next(
        (dropped.reason, dropped.duplicate_of) for dropped in packing.dropped if dropped.index == 2
    )
    twice = ["Green tea. Rye.", "Green tea. Oat."]  # only the rest of the second is new
    packing = Packer(7, units="sentence").pack("green tea", twice)
    assert "Green tea. Rye." == packing.text
    assert "budget" == packing.dropped[0].reason
    both = Packer(14, units="sentence", dedupe=None).pack("green tea China", [TEA, TEA])
    assert [0, 1] == sorted(kept.index for kept in both.kept)


def test_min_score_and_cap(backend):
    """Chunks out of scope are not split, and the cap counts chunks."""
    chunks = [TEA, "Rye is dark. It keeps.", "", "Tea of rye. Or not."]
    packer = Packer(40, units="sentence", ranking="bm25", min_score=0.01, max_chunks=1)
    packing = packer.pack("tea", chunks)
    reasons = {dropped.index: dropped.reason for dropped in packing.dropped}

    assert "out_of_scope" == reasons[1]
    assert "out_of_scope" == reasons[2]  # before it is looked at
    assert "cap" == reasons.get(0, reasons.get(3))
    assert 1 == len(packing.kept)


@pytest.mark.parametrize("ranking", ["recency", "input", "score", "keyword"])
def test_every_ranking_ranks_chunks(backend, ranking):
    """Sentences are of the chunks that the ranking puts first; scores are the chunks' own."""
    chunks = [
        Chunk("One. Two tea. Three.", score=0.1, metadata={"mtime": 3}),
        Chunk("Four. Five. Six.", score=0.9, metadata={"mtime": 1}),
    ]
    whole = Packer(99, ranking=ranking).pack("tea", chunks)
    packing = Packer(99, ranking=ranking, units="sentence").pack("tea", chunks)
    assert whole.to_dict() == packing.to_dict()
    tight = Packer(3, ranking=ranking, units="sentence", counter="words").pack("x", chunks)
    best = whole.kept[0].index if ranking != "keyword" else 0
    assert best in [kept.index for kept in tight.kept]


def test_vectors(backend):
    """Vectors rank the chunks, BM25 their sentences."""
    np = pytest.importorskip("numpy")
    vectors = [0, 1], np.array([[1, 0], [0, 1]], dtype="float32")
    packer = Packer(4, ranking="embedding", units="sentence", counter="words")
    packing = packer.pack(
        "tea", ["Tea one two.", "No. Green tea two. Or not so."], vectors=vectors
    )

    assert "No. Green tea two." == packing.text
    assert 1.0 == packing.kept[0].score
    chunks = [{"text": TEA, "score": 0.9}, {"text": "Green tea. Rye.", "score": 0.1}]
    for weights in (None, {"bm25": 0.2, "embedding": 1, "score": 1}, {"score": 1}):
        takes = weights is None or "embedding" in weights
        shared = {"ranking": Hybrid(weights), "counter": "words"}
        given = {"vectors": vectors} if takes else {}
        whole = Packer(99, **shared).pack("green tea", chunks, **given)
        packing = Packer(7, units="sentence", **shared).pack("green tea", chunks, **given)
        scores = {kept.index: kept.score for kept in whole.kept}
        assert all(scores[kept.index] == kept.score for kept in packing.kept)
        assert 7 >= packing.total_tokens > 0
        corpus = Packer(7, units="sentence", **shared).pack("green tea", Corpus(chunks), **given)
        assert packing.to_dict() == corpus.to_dict()


def test_fallback(backend):
    """Where embedding fails BM25 ranks the chunks too, and says so."""

    class Failing:
        def embed(self, _texts):
            raise EmbeddingError("down")

    packer = Packer(
        6, ranking=Embedding(Failing(), fallback="bm25"), units="sentence", min_score=9
    )
    packing = packer.pack("green tea", ["Rye.", TEA])

    assert ("Green tea is from China.", "bm25") == (packing.text, packing.fallback)


def test_sticky(backend):
    """Under order='sticky' extracts that are kept again stay where they stood."""
    chunks = [TEA, "Rye bread is dark. It keeps long. Tea does not."]
    packer = Packer(22, units="sentence", order="sticky")
    first = packer.pack("green tea China dark rye", chunks)
    second = packer.pack("dark rye green tea China", chunks, previous=first)

    assert first.text == second.text
    assert second.stable_prefix_tokens == second.total_tokens


def test_a_sentence_counts_with_its_chunk(backend):
    """A chunk adds its share of the best score where words rank; elsewhere its place counts."""
    chunks = ["Green tea, green tea. Oat is pale.", "Green hill. Tea hill. Green pot. Tea pot."]
    by_words = Packer(7, units="sentence", counter="words", ranking=Bm25(b=0))
    by_place = dataclasses.replace(by_words, ranking="input")

    assert "Green tea, green tea.\n\nGreen hill." == by_words.pack("green tea", chunks).text
    assert chunks[0] == by_place.pack("green tea", chunks).text


@pytest.mark.parametrize("ranking", ["lexical", "bm25", "keyword", "input"])
@pytest.mark.parametrize("title", ["Ruby tea", "Ruby tea (Assam)", ""])
def test_headings_count_in_each_sentence(backend, ranking, title):
    """The words of a chunk's title, or of its first line, count in each of its sentences."""
    line = "" if title else "Ruby tea\n"
    chunks = [
        Chunk(f"{line}It is dark. It is from Taiwan.", title=title),
        "Pots\nTaiwan has pots. Jars are old.",
    ]
    packer = Packer(4, units="sentence", counter="words", ranking=ranking)

    assert "It is from Taiwan." == packer.pack("ruby in taiwan", chunks).text


def test_a_heading_counts_once(backend):
    """The line that is the heading has its words once, as every other sentence."""
    rest = "Stones are red, blue or green, and some of them are quite old."
    packing = Packer(2, units="sentence", counter="words").pack(
        "ruby", [f"Ruby\nA ruby. {rest} {rest}"]
    )

    assert "A ruby." == packing.text


@pytest.mark.parametrize(
    ("ranking", "scores"),
    [
        ("lexical", [None, None]),
        ("keyword", [None, None]),
        ("score", [-1.0, -5.0]),
        ("score", [0.0, 0.0]),
        ("score", [-1.0, None]),
        ("score", [None, None]),
        ("score", [1e-320, -1e308]),
    ],
)
def test_where_nothing_scores(backend, ranking, scores):
    """Without a word of the query sentences come in the order of chunks, then in their own."""
    chunks = [
        Chunk(text, score=score)
        for text, score in zip(["One. Two.", "Six. Ten."], scores, strict=True)
    ]
    packer = Packer(3, units="sentence", counter="words", ranking=ranking)

    assert "One. Two.\n\nSix." == packer.pack("tea", chunks).text


def test_stemming_goes_for_sentences(backend):
    """Sentences are found by stems too, where the chunks are."""
    chunks = ["Nothing here. We work remotely. Lunch is at noon."]
    packing = Packer(5, units="sentence", ranking=Bm25(stemming="english")).pack(
        "remote working", chunks
    )

    assert "We work remotely." == packing.text


def test_large_batches_are_bounded(backend):
    """No more than so many chunks are split, however large the budget; the rest comes whole."""
    count = 3 * MAX_CHUNKS if backend is not backend_named("reference") else MAX_CHUNKS + 9
    chunks = [f"Tea {i}. Rye {i}." for i in range(count)]
    start = time.perf_counter()
    packing = Packer(10**6, units="sentence", counter="words").pack("tea", chunks)

    assert count == len(packing.kept)
    assert time.perf_counter() - start < 60


@pytest.mark.parametrize("text", ["J. ", "1. ", "e.g. a ", "! ", "A\n", ".", "\u3000", "\"'"])
def test_long_texts_take_linear_time(backend, text):
    """No text takes long to split, and one of very many sentences is packed whole or not."""
    long = text * (200_000 if backend is not backend_named("reference") else 20_000)
    start = time.perf_counter()
    assert backend.sentence_spans(long) is not None
    assert ["Tea."] == [
        kept.text for kept in Packer(9, units="sentence").pack("tea", [long, "Tea."]).kept[:1]
    ]
    assert time.perf_counter() - start < 30


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ("sentences", "units must be one of 'chunk', 'sentence', not 'sentences'; did you mean"),
        (None, "units must be one of 'chunk', 'sentence', not None"),
    ],
)
def test_bad_units(units, message):
    """A wrong unit is named."""
    with pytest.raises(InvalidArgumentError, match=message):
        Packer(9, units=units)


def test_presets_pack_chunks():
    """A preset's own admission goes by whole chunks."""
    with pytest.raises(InvalidArgumentError, match="units must be 'chunk' in a preset"):
        dataclasses.replace(agentic_rag(99), units="sentence")


@pytest.mark.parametrize("option", ["dedupe='near'", "selection='coverage'"])
def test_what_sentences_do_not_go_with(option):
    """What compares or chooses whole chunks is refused, and the message names it."""
    name, value = option.split("=")
    with pytest.raises(InvalidArgumentError, match=f"units must be 'chunk' under {option}"):
        Packer(9, units="sentence", **{name: value.strip("'")})


plain_sentences = st.lists(
    st.sampled_from(["tea", "rye", "pot", "dry leaf", "steam"]), min_size=1, max_size=8
).map(lambda words: " ".join(words).capitalize() + ".")


@pytest.mark.parametrize("name", BACKENDS)
@given(
    best=plain_sentences,
    chunks=st.lists(st.lists(plain_sentences, min_size=1, max_size=3), min_size=2, max_size=6),
    place=st.integers(0, 5),
    budget=st.integers(6, 40),
    packer=st.fixed_dictionaries(
        {
            "counter": st.sampled_from(["words", "chars_div4", "cl100k_base"]),
            "template": st.sampled_from(["plain", "tagged", "markdown", "xml"]),
            "overflow": st.sampled_from(["skip", "truncate_end", "truncate_middle"]),
        }
    ),
)
@example(
    best="Bread dry leaf pot steam leaf tea cup.",
    chunks=[["Roll."], [], ["Pot pot bread cup.", "Dry green."], ["Green tea roll cup cold."]],
    place=1,
    budget=14,
    packer={"counter": "words", "template": "markdown", "overflow": "skip"},
)
def test_a_notice_never_costs_the_best_sentence(name, best, chunks, place, budget, packer):
    """A notice that has no room beside the best sentence is left out, whatever comes first."""
    chunks = [[*one] for one in chunks]
    chunks[place % len(chunks)].append(f"Kiwi {best.lower()}")  # alone has the word of the query
    texts = [" ".join(one) for one in chunks]
    with using(name):
        plain, noted = (
            Packer(budget, units="sentence", ranking="input", notice=notice, **packer)
            .pack("kiwi", texts)
            .text
            for notice in (None, True)
        )

    assert ("Kiwi" in noted) or ("Kiwi" not in plain)


def test_a_sentence_stands_once(backend):
    """Chunks that overlap give each sentence once, unless repetitions are kept."""
    ends = ["Apples grow.", "Bread bakes.", "Dogs bark."]
    chunks = [f"Green tea is from China. {end}" for end in ends]
    once = Packer(14, units="sentence").pack("green tea china", chunks)
    again = Packer(14, units="sentence", dedupe=None).pack("green tea china", chunks)
    assert (1, 2) == tuple(p.text.count("Green tea is from China.") for p in (once, again))


def test_what_is_cut_takes_no_room_from_sentences(backend):
    """A long chunk is cut into what the sentences leave, and into no more."""
    long = "Green tea " + " ".join(f"word{i}" for i in range(60)) + "."
    short = [
        "Filler number one is here. Green tea is from Hunan. Another filler.",
        "The answer is Fujian. Green tea is also from Fujian.",
    ]
    packer = Packer(60, units="sentence", overflow="truncate_end", ranking="input")
    packing = packer.pack("green tea", [long, *short])
    assert {1, 2} < {kept.index for kept in packing.kept}
    assert packing.total_tokens <= 60


def test_what_is_too_long_to_split_is_passed_over(backend):
    """A chunk of more sentences than are ranked leaves room for those of others."""
    others = [f"Filler {i} about nothing. Green tea number {i} is from China." for i in range(8)]
    chunks = ["Green tea grows. " * 4_200, *others]
    packing = Packer(40, units="sentence", ranking="input").pack("green tea china", chunks)
    assert packing.text.count("is from China") >= 3


def test_bad_chunks_and_counters(backend):
    """Errors are those of packing chunks, with the index in the caller's list."""
    packer = Packer(9, units="sentence")
    with pytest.raises(InvalidArgumentError, match=r"chunks\[1\] must be a str"):
        packer.pack("tea", ["Tea.", 3])
    with pytest.raises(CounterError, match=r"chunks\[0\]"):
        Packer(9, units="sentence", counter=lambda text: None if text == TEA else 1).pack(
            "tea", [TEA, "Rye."]
        )


@pytest.mark.parametrize("budget", [60, 400, 1_500])
def test_few_tries_are_made(backend, budget):
    """The caller's counter is asked for at most three times the characters of a plain pack."""
    words = [
        f"Sentence {i} of many says what tea {i % 7} and rye {i % 5} are." for i in range(400)
    ]
    chunks = [" ".join(words[i : i + 8]) for i in range(0, 400, 8)]
    asked = []
    for units in ("chunk", "sentence"):
        chars = []
        packer = Packer(
            budget,
            units=units,
            counter=lambda text, to=chars: to.append(len(text)) or len(text) // 4,
        )
        packing = packer.pack("which tea is rye", chunks)
        assert budget * 0.8 < packing.total_tokens <= budget or units == "chunk"
        asked.append(sum(chars))

    assert asked[1] <= 3 * asked[0]


def test_all_chunks_read_together_are_those_read_one_by_one(backend):
    """Going through the chunks gives the same as asking for each."""
    chunks = [Chunk(TEA, score=2, title="Tea"), "Rye <b>bread</b>. It keeps.", "Oats " * 40, TEA]
    for given_options in ({}, {"template": "xml"}, {"ranking": "score", "dedupe": None}):
        packing = Packer(30, units="sentence", **given_options).pack("green tea or rye", chunks)
        for items in (packing.kept, packing.dropped):
            assert [*items] == [items[place] for place in range(len(items))]
            assert all(type(one) is type(items[0]) for one in items)
            with pytest.raises(dataclasses.FrozenInstanceError):
                next(iter(items)).index = 3
