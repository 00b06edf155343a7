"""Statistics of a collection: what they are, what they change, what is refused."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import chunk_lists, compared, lexicals, on_both, queries, using

from budgeteer import Corpus, InvalidArgumentError, Packer
from budgeteer.ranking import Bm25, Hybrid, Lexical, Statistics

WORDS = ("tea", "green", "polici", "policy", "work", "\u8336\u5f88", "\ud800", "")
HOUSE = ["Green tea.", "A tea house.", "Rye bread."]


def packed(query, chunks, ranking, **options):
    """Pack all chunks, and return the scores and what is said of them."""
    packer = Packer(10**6, counter="words", ranking=ranking, **options)
    packing = packer.pack(query, chunks)
    return packing.text, packing.to_dict(), [packing.explain(i) for i in range(len(chunks))]


def of_options(lexical):
    """Return the options of a ranking that decide what a word is."""
    return {"stemming": lexical.stemming, "stopwords": lexical.stopwords}


def with_statistics(lexical, statistics):
    """Return the ranking with statistics of these numbers."""
    return Lexical(
        headings=lexical.headings, links=lexical.links, feedback=lexical.feedback,
        k1=lexical.k1, b=lexical.b, k3=lexical.k3, **of_options(lexical),
        statistics=Statistics(*statistics, **of_options(lexical)),
    )  # fmt: skip


def test_what_they_are(backend):
    """Stems, words with stopwords in the lengths, each chunk once, titles too."""
    chunks = [{"text": "The tea, a tea.", "title": "Teas"}, "Green teas", ""]

    found = Corpus(chunks).statistics()

    assert (3, 7) == (found.chunks, found.words)
    assert {"tea": 2, "green": 1} == found.frequencies
    plain = Corpus(chunks).statistics(stemming=None, stopwords=None)
    assert {"the": 1, "tea": 1, "a": 1, "teas": 2, "green": 1} == plain.frequencies
    assert Statistics(0, 0, {}) == Corpus().statistics()


@on_both
@given(
    query=queries, chunks=chunk_lists(), lexical=lexicals,
    units=st.sampled_from(["chunk", "sentence"]),
    selection=st.sampled_from(["rank", "coverage"]),
)  # fmt: skip
def test_those_of_the_chunks_change_nothing(name, query, chunks, lexical, units, selection):
    """A call whose chunks are the whole collection is as without statistics; sentences, too."""
    options = {"units": units, "selection": selection if units == "chunk" else "rank"}
    with using(name):
        corpus = Corpus(chunks)
        found = corpus.statistics(**of_options(lexical))
        known = with_statistics(lexical, (found.chunks, found.words, found.frequencies))
        for pool in (chunks, corpus):
            assert packed(query, pool, lexical, **options) == packed(query, pool, known, **options)


@compared
@given(
    query=queries,
    chunks=chunk_lists(),
    lexical=lexicals,
    numbers=st.tuples(st.integers(0, 50), st.integers(0, 500)),
    frequencies=st.dictionaries(st.sampled_from(WORDS), st.integers(0, 50)),
)
def test_backends_agree(query, chunks, lexical, numbers, frequencies):
    """On any numbers, also those that the chunks belie; for lists, corpora and hybrids alike."""
    frequencies = {word: min(numbers[0], number) for word, number in frequencies.items()}
    answers = []
    for name in ("reference", "native"):
        with using(name):
            by = with_statistics(lexical, (*numbers, frequencies))
            answers += [
                [packed(query, pool, ranking) for pool in (chunks, Corpus(chunks))]
                for ranking in (by, Hybrid({"bm25": 1}, bm25=by))
            ]

    assert answers[:2] == answers[2:]
    assert all(one == other for one, other in answers)


def test_a_word_is_as_rare_as_in_the_collection(backend):
    """Which turns the order of two chunks; more chunks of the call count as so many."""
    chunks = ["rye bread", "green tea", "old bread"]
    rare = Statistics(1_000, 2_000, {"tea": 900, "bread": 2})

    for kind in (Bm25, Lexical):
        by = kind(statistics=Statistics(*_numbers(rare), stemming=kind().stemming))
        tea_first = Packer(2, counter="words", ranking=kind()).pack("tea bread", chunks)
        bread_first = Packer(2, counter="words", ranking=by).pack("tea bread", chunks)
        assert ("green tea", "rye bread") == (tea_first.text, bread_first.text)
        few = kind(statistics=Statistics(1, 2, {}, stemming=kind().stemming))
        assert packed("tea bread", chunks, kind()) == packed("tea bread", chunks, few)


def test_words_that_weigh_nothing_have_a_score(backend):
    """In 2**53 chunks a word of all of them does; as the strongest of the best it adds nothing."""
    chunks = ["green tea rye", "rye green pot", "green rye"]
    words = {"tea": 2, **dict.fromkeys(("green", "rye", "pot"), 2**53)}
    statistics = Statistics(2**53, 36, words, stemming=None)
    alone, fed = (
        Lexical(stemming=None, statistics=statistics, feedback=feedback)
        for feedback in (False, True)
    )

    for pool in (chunks, Corpus(chunks)):
        scores, expected = (
            [kept.score for kept in Packer(99, counter="words", ranking=by).pack("tea", pool).kept]
            for by in (fed, alone)
        )
        assert expected == scores
        assert [0.0, 0.0] == scores[1:]


def _numbers(statistics):
    return statistics.chunks, statistics.words, statistics.frequencies


def test_they_can_be_kept(backend):
    """By pickle, with packers of them, and as JSON."""
    found = Corpus(HOUSE).statistics(stopwords=["rye"])

    assert found == pickle.loads(pickle.dumps(found))
    packer = Packer(3, counter="words", ranking=Lexical(stopwords=["rye"], statistics=found))
    other = pickle.loads(pickle.dumps(packer))
    assert packer == other
    assert "A tea house." == other.pack("tea house", HOUSE).text
    fields = ("chunks", "words", "frequencies", "stemming", "stopwords")
    text = json.dumps({name: getattr(found, name) for name in fields})
    kept = json.loads(text)
    assert found == Statistics(**kept)
    assert "tea" not in repr(found)
    assert hash(found) == hash(Statistics(**kept))


def test_merged():
    """Numbers add up; parts of other words are refused."""
    one, other = Corpus(HOUSE).statistics(), Corpus(["Tea leaves."]).statistics()

    both = Statistics.merged(iter([one, other]))

    assert Corpus([*HOUSE, "Tea leaves."]).statistics() == both
    assert (4, 3) == (both.chunks, both.frequencies["tea"])
    plain = Corpus(HOUSE).statistics(stemming=None)
    for parts, message in (
        ([], "parts must have a Statistics"),
        ([one, {}], "parts[1] must be a Statistics, not dict"),
        (one, "parts must be an iterable of Statistics, not Statistics"),
        ({"a": one}, "parts must be an iterable of Statistics, not dict"),
        ([one, plain], "parts[1] must have the stemming of parts[0], 'english', not None"),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            Statistics.merged(parts)
        assert message == str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Statistics(-1, 0, {}), "chunks must be from 0 to 9007199254740992, not -1"),
        (lambda: Statistics(1, True, {}), "words must be an int, not bool"),
        (lambda: Statistics(1, 1, ["tea"]), "frequencies must be a mapping, not list"),
        (lambda: Statistics(1, 1, {3: 1}), "a key of frequencies must be a str, not int"),
        (
            lambda: Statistics(1, 1, {"tea": 2}),
            "a value of frequencies must be from 0 to 1, not 2",
        ),
        (
            lambda: Bm25(statistics=Corpus(HOUSE).statistics()),
            "statistics must have the stemming of the ranking, None, not 'english'",
        ),
        (
            lambda: Lexical(statistics=Corpus(HOUSE).statistics(stopwords=["a", "b"])),
            "statistics must have the stopwords of the ranking, 'english', not 2 words",
        ),
        (lambda: Lexical(statistics={}), "statistics must be a Statistics or None, not dict"),
    ],
    ids=["chunks", "words", "list", "key", "frequency", "stemming", "stopwords", "dict"],
)
def test_refused(make, message):
    """The message names the argument, the value and what is allowed."""
    with pytest.raises(InvalidArgumentError) as caught:
        make()
    assert message == str(caught.value)
