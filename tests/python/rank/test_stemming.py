"""Stemming and stopwords: stems, scores and errors on both backends, with a corpus too."""

import itertools
import random
import re
import sys
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    VOCABULARY,
    backend_named,
    chunk_lists,
    compared,
    long_texts,
    queries,
    text_of,
    texts,
    using,
)

from budgeteer import BudgeteerError, Corpus, InvalidArgumentError, Packer, ranking
from budgeteer._rank.terms import LISTED, STEMMED
from budgeteer._reference._rank.stem import MAX_CHARS, stemmer
from budgeteer._reference._rank.stopword_table import STOPWORDS
from budgeteer._reference._rank.terms import Terms, terms
from budgeteer.ranking import Bm25, Hybrid

ENDINGS = {
    "english": "s es ed ing ies ly ness fulness ation ational izer y e eed edly al ment 's",
    "french": "s es ement ements ation ations euse euses ité iste ais ait er ir é ée",
    "german": "e en em er es s st ung ungen heit keit lich isch est ß",
    "italian": "a e i o are ere ire ando endo mente zione zioni ità osa",
    "norwegian": "a e en et ene er ers leg eleg ig eig lig hetslov",
    "portuguese": "a o as os ar er ir ando endo mente ação ações idade ância",
    "spanish": "a o as os ar er ir ando iendo mente ación aciones idad ancia",
    "swedish": "a e ad ade arna erna or ande heter lig els fullt löst",
    "dutch": "e en s heid heden lijk ing baar isch ge be",
    "russian": "а ы ов ами ость остей ный ная ться л ла ли ё",
    "turkish": "lar ler da de dan den ım im um üm lık lik ıyor iyor",
    "arabic": "ال ون ين ات ها هم كم و ف ب ة ي",
    "hindi": "ा े ो ी ों ाएँ ियों ना ने ता ती ते",
    "tamil": "கள் இல் உக்கு ஆன் ஆல் ஐ",
    "greek": "ος ου ων ες εις ματα ισμος ικη ωδης",
    "polish": "a ami ach ego emu owi ość ości ić owa",
}
"""What words of some languages end in."""

languages = st.sampled_from(STEMMED)
stopword_options = (
    st.sampled_from([None, *LISTED]) | st.lists(texts, max_size=3) | st.just(("tea", "Don't"))
)


def words_of(language, count, seed=5):
    """Return words as of a language, of its stopwords and what its words end in, and odd ones."""
    rng = random.Random(f"{language}{seed}")
    known = STOPWORDS.get(language, "").split() + terms(" ".join(VOCABULARY))
    known += "relat hous organ gener condition ital minist connect argu commun run hop die".split()
    ends = [*ENDINGS.get(language, ENDINGS["english"]).split(), "x", "z\u0301", "\u00df", "42"]
    alphabet = "".join([*known, *ends])
    for _ in range(count):
        head = rng.choice(known)
        if rng.random() < 0.3:
            head = "".join(rng.choices(alphabet, k=rng.randrange(1, 9)))
        yield from terms(head + "".join(rng.choices(ends, k=rng.randrange(3))))


@compared
@pytest.mark.parametrize("language", STEMMED)
def test_backends_have_the_same_stems(language):
    """A text of a stem alone scores above 0 for each word of it, and the same on both backends."""
    stem = stemmer(language)
    words = words_of(language, 3_000)
    for chunk in iter(lambda: [*itertools.islice(words, 100)], []):
        items = [f"{stem(word)} {other}" for word, other in zip(chunk, chunk[::-1], strict=True)]
        for query in (" ".join(chunk[::2]), chunk[0]):
            args = (query, [*items, *chunk], None, 1.2, 0.75, (language, None))
            reference, native = (
                bytes(backend_named(name).bm25_scores(*args)) for name in ("reference", "native")
            )
            assert reference == native


@compared
@given(
    queries | long_texts,
    st.lists(texts | long_texts, max_size=5),
    st.none() | languages,
    stopword_options,
)
def test_backends_agree(query, items, stemming, stopwords):
    """Scores are equal to the bit, for every query and text, language and stopwords."""
    found = []
    for name in BACKENDS:
        with using(name):
            scores = ranking.bm25_scores(query, items, stemming=stemming, stopwords=stopwords)
            found.append(scores.tobytes())

    assert found[0] == found[-1]


@given(queries, chunk_lists(), st.none() | languages, stopword_options, st.integers(0, 40))
@pytest.mark.parametrize("name", BACKENDS)
def test_a_corpus_scores_as_its_chunks(name, query, chunks, stemming, stopwords, budget):
    """What packs chunks packs a corpus of them alike, scores included, however it was built."""
    packer = Packer(budget, ranking=Bm25(stemming=stemming, stopwords=stopwords))
    query = f"{query} {text_of(chunks[0])}"
    with using(name):
        corpus = Corpus(chunks[:2])
        corpus.append(chunks[2:])
        expected, found = (packer.pack(query, given).to_dict() for given in (chunks, corpus))

        assert expected == found


def test_a_corpus_finds_every_form(backend):
    """The lists of all words of a stem count, also of a word that another query left out."""
    items = [f"{word} filler" for word in ("work", "works", "working", "worked working", "tea")]
    corpus = Corpus(items)
    for stopwords in ("english", None, ["working"], "german"):
        packer = Packer(99, ranking=Bm25(stemming="english", stopwords=stopwords))
        for query in ("worked", "tea", "what is working", "the"):
            expected, found = packer.pack(query, items), packer.pack(query, corpus)
            assert expected.to_dict() == found.to_dict()
    scores = {
        kept.index: kept.score
        for kept in Packer(99, ranking=Bm25(stemming="english")).pack("worked", corpus).kept
    }
    assert 0.0 == scores[4] < scores[0] == scores[1] == scores[2] < scores[3]


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("english", "connect connected connecting connection connections"),
        ("german", "haus hause hauses"),
        ("french", "continuer continuait continuant continua"),
        ("russian", "\u0432\u0430\u0436\u043d\u0430\u044f \u0432\u0430\u0436\u043d\u043e\u0435"),
    ],
)
def test_forms_of_a_word_are_one(backend, language, forms):
    """Each form of a word finds every other, and not without stemming."""
    first, *others = forms.split()
    scores = ranking.bm25_scores(first, [*others, "x"], stemming=language, stopwords=None)

    assert all(score == scores[0] > 0.0 for score in scores[:-1])
    assert 0.0 == scores[-1]


def test_stopwords_match_nothing(backend):
    """A stopword in a text is not taken for another word of its stem, but counts for length."""
    items = ["does do doing", "own owned", "owning", "a a a owning"]
    scores = ranking.bm25_scores("owned", items, stemming="english", stopwords="english")
    every = ranking.bm25_scores("owned", items, stemming="english", stopwords=None)

    assert scores[1] < scores[2] < every[1]
    assert 0.0 == scores[0] < scores[3] < scores[2]


@pytest.mark.parametrize("language", LISTED)
def test_stopwords_of_a_language(backend, language):
    """The stopwords of a language match nothing, those of another do."""
    words = "the of" if language == "english" else " ".join(STOPWORDS[language].split()[:5])
    items = [words, f"{words} zzz"]

    assert [0.0, 0.0] == ranking.bm25_scores(words, items, stopwords=language).tolist()
    assert all(ranking.bm25_scores(words, items, stopwords=None) > 0.0)
    assert all(ranking.bm25_scores(words, items, stopwords=["zzz"]) > 0.0)
    assert [0.0, 0.0] == ranking.bm25_scores("zzz", items, stopwords=["ZZZ!"]).tolist()


def test_stopword_tables_are_terms():
    """Each stopword is a term, so that it can be one of a text."""
    assert {*LISTED} == {*STOPWORDS, "english"}
    for listed in STOPWORDS.values():
        assert listed.split() == terms(listed)


def test_long_words_are_their_own_stems(backend):
    """A word of more than 64 code points is left as it is, whatever it ends in."""
    short, long = "to" * (MAX_CHARS // 2 - 2), "to" * (MAX_CHARS // 2 - 1)
    for word, matches in ((short, True), (long, False)):
        scores = ranking.bm25_scores(word, [f"{word}ing"], stemming="english")
        assert matches == (scores[0] > 0.0)
    slow = "a" * 2_000_000 + "ational"
    assert ranking.bm25_scores("tea", [slow], stemming="english").tolist() == [0.0]


def test_hybrid_and_fallback(backend):
    """A hybrid ranking stems where BM25 weighs something."""
    chunks = [{"text": "We work.", "score": 0.1}, {"text": "Lunch.", "score": 0.2}]
    hybrid = Hybrid({"bm25": 1, "score": 0.1}, bm25=Bm25(stemming="english"))
    packer = Packer(9, ranking=hybrid)

    assert [0, 1] == [kept.index for kept in packer.pack("working", chunks).kept]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stemming": "englisch"}, "stemming must be one of 'arabic', .*; did you mean 'english'"),
        ({"stemming": True}, "stemming must be one of .*, not bool"),
        ({"stemming": "danish"}, "stemming must be one of "),
        ({"stopwords": "klingon"}, "stopwords must be one of 'danish', .*, not 'klingon'"),
        ({"stopwords": b"the"}, "stopwords must be the name of a language, .*, not bytes"),
        ({"stopwords": 3}, "stopwords must be the name of a language, .*, not int"),
        ({"stopwords": ["the", 3]}, r"stopwords\[1\] must be a str, not int"),
    ],
)
def test_bad_options(backend, options, message):
    """A wrong language or collection is named, by the ranking and the function alike."""
    for call in (lambda: Bm25(**options), lambda: ranking.bm25_scores("", [], **options)):
        with pytest.raises(InvalidArgumentError, match=message):
            call()


def test_options_that_contradict():
    """Neither option is for a ranking without BM25."""
    for options in ({"stemming": "english"}, {"stopwords": None}):
        with pytest.raises(InvalidArgumentError, match="where weights has none for 'bm25'"):
            Hybrid({"score": 1}, bm25=Bm25(**options))


def test_packers_with_own_stopwords_are_values():
    """A ranking keeps its own copy of the words, and is equal to one of the same words."""
    words = {"tea", "green"}
    packer = Packer(9, ranking=Bm25(stopwords=words))
    words.add("rye")

    assert ("green", "tea") == packer.ranking.stopwords
    assert packer == Packer(9, ranking=Bm25(stopwords=["tea", "green", "tea"]))
    assert hash(packer) == hash(Packer(9, ranking=Bm25(stopwords=iter(["green", "tea"]))))
    assert Packer(9, ranking=Bm25(stopwords=None)) == Packer(9, ranking=Bm25(stopwords=()))


def test_without_snowballstemmer():
    """The reference says what to install; without stemming it needs nothing."""
    with (
        using("reference"),
        mock.patch.dict(sys.modules, {"snowballstemmer.english_stemmer": None}),
    ):
        assert 0.0 < ranking.bm25_scores("tea", ["tea"])[0]
        with pytest.raises(BudgeteerError, match=re.escape("pip install 'budgeteer[stemming]'")):
            ranking.bm25_scores("tea", ["tea"], stemming="english")


def test_query_terms_are_stemmed_once():
    """Forms of one word in a query are one term, in the place of the first."""
    query = "Works by workers who worked: what worked?"

    assert ["work", "worker"] == Terms(("english", "english")).of_query(query)
