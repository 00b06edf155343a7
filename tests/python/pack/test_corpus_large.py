"""Large corpora, where few scores are added up: what is packed is what is packed from a list."""

import pickle
import random

import pytest
from support import using

from budgeteer import Corpus, Packer

LARGE_OPTIONS = [
    {},
    {"ranking": "bm25", "max_chunks": 5},
    {"ranking": "keyword"},
    {"ranking": "keyword", "max_chunks": 3, "counter": "words"},
    {"counter": "chars_div4", "min_score": "auto"},
    {"counter": "words", "min_score": 2.0, "overflow": "truncate_end"},
    {"ranking": "input", "counter": "words"},
    {"overflow": "stop", "ranking": "bm25"},
    {"counter": "chars_div4", "dedupe": None, "max_chunks": 300},
    {"units": "sentence", "counter": "words"},
]


@pytest.fixture(scope="module")
def large():
    """Thousands of texts in which some words are frequent, with headings; and their corpus."""
    made = random.Random(3)
    texts = []
    for at in range(6_000):
        words = [f"word{made.randrange(1 + made.randrange(150))}" for _ in range(4 + at % 23)]
        words[at % 3] += made.choice(["s", "-word2", ".", ""])
        texts.append((f"word{at % 90} word3\n" if at % 7 == 0 else "") + " ".join(words))
    with using("native"):
        corpus = Corpus(texts[:2_500])
        corpus.append(texts[2_500:2_600])
        corpus.append(texts[2_600:])
    return texts, corpus


@pytest.mark.parametrize("options", LARGE_OPTIONS, ids=str)
@pytest.mark.parametrize(
    "query", ["word1 word7?", "word140 words word3", "word8-word2 word5 word9"]
)
def test_a_large_corpus_packs_as_its_list(native, large, options, query):
    """Where few scores are added up, what is kept and dropped and why is that of the list."""
    texts, corpus = large
    packer = Packer(700, **options)

    expected, found = packer.pack(query, texts), packer.pack(query, corpus)

    assert [*expected.kept] == [*found.kept]  # before the scores of the others are read
    assert expected.text == found.text
    assert [*expected.dropped] == [*found.dropped]
    assert expected.explain() == found.explain()
    places = [*range(0, 6_000, 61), expected.kept[0].index]
    assert [expected.explain(i) for i in places] == [found.explain(i) for i in places]
    again = pickle.loads(pickle.dumps(packer.pack(query, corpus)))
    assert [kept.score for kept in again.kept] == [kept.score for kept in expected.kept]


@pytest.fixture(scope="module")
def larger():
    """Texts whose words are so frequent that scores are added up where they are asked for."""
    made = random.Random(5)
    texts = []
    for _ in range(40_000):
        if made.random() < 0.02 and texts:
            texts.append(made.choice(texts))
            continue
        length = made.choice([1, 3, 9, 20, 20, 20, 40, 80])
        words = (f"word{min(int(made.paretovariate(0.7)), 9_999)}" for _ in range(length))
        texts.append(" ".join(words))
    with using("native"):
        return texts, Corpus(texts)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ranking": "bm25", "min_score": 1.5},
        {"counter": "words", "max_chunks": 40},
        {"counter": "chars_div4", "dedupe": None},
        {"counter": "words", "overflow": "truncate_end"},
        {"overflow": "stop", "min_score": "auto"},
        {"ranking": "keyword", "counter": "words"},
    ],
    ids=str,
)
def test_a_corpus_packs_as_its_list_whatever_room_is_left(native, larger, options):
    """The first that do not fit may leave room for many others, for few, or for none."""
    texts, corpus = larger
    made = random.Random(str(options))
    for turn in range(24):
        packer = Packer(made.choice([30, 300, 3_000, 12_000]) + made.randrange(300), **options)
        most = made.choice([4, 40, 400, 4_000])
        query = " ".join(f"word{made.randrange(1, most)}" for _ in range(made.randrange(1, 7)))

        expected, found = packer.pack(query, texts), packer.pack(query, corpus)

        assert [*expected.kept] == [*found.kept], (query, packer)
        assert expected.text == found.text
        if turn % 8 == 0:
            assert [*expected.dropped] == [*found.dropped]
