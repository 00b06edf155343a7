"""The lexical ranking: its four parts, and that both backends give the same bits."""

import math
import random
import struct
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    chunk_lists,
    compared,
    lexicals,
    long_texts,
    on_both,
    queries,
    text_of,
    texts,
    using,
)

from budgeteer import Chunk, Corpus, Packer, pack
from budgeteer._chunk.chunk import label_of
from budgeteer._codes import FEEDBACK, HEADING, LINK
from budgeteer._reference._rank.terms import terms
from budgeteer.ranking import Bm25, Hybrid, Lexical, bm25_scores, lexical_scores

PLAIN = {"stemming": None, "headings": False, "links": False, "feedback": False, "k3": 0}
"""The options that leave BM25 and nothing else."""

ADA = "Ada gave her books to the Blue Library."
QUERY = "Where are Ada's books?"


def only(**options):
    """Return the options that leave of the further signals only those named."""
    return {**PLAIN, **options}


def scored(chunks, query=QUERY, **options):
    """Return the score of each chunk, each a text or a title and a text."""
    pairs = [chunk if isinstance(chunk, tuple) else ("", chunk) for chunk in chunks]
    titles, items = [title for title, _ in pairs], [text for _, text in pairs]
    return lexical_scores(query, items, titles=titles, **options).tolist()


def packed(query, chunks, ranking):
    """Pack all chunks."""
    return Packer(10**6, counter="words", dedupe=None, ranking=ranking).pack(query, chunks)


def said(packing):
    """Return the scores, what they have besides the query's words, and the sentences on them."""
    scores = {one.index: one.score for one in (*packing.kept, *packing.dropped)}
    explained = [packing.explain(i) for i in range(len(scores))]
    return scores, signals(packing), explained, packing.to_dict()


def signals(packing):
    """Return chunk, kind, other chunk and what is added to the chunk's score."""
    return [*struct.iter_unpack("=IIId", packing._signals)]


def sums(columns):
    """Return the sums of the scores of each text, from left to right."""
    return [sum(column) for column in zip(*columns, strict=True)]


def idf(size, frequency):
    """Return the weight of a term that so many of *size* texts contain."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


# The same bits everywhere.

WORDS = [
    *("Ada", "Byron", "gave", "books", "the", "of", "Blue", "Library"),
    *("Caf\xe9", "caf\xe9", "dying", "die", "dies", "work", "working", "Lyon"),
    *("\u8336\u5f88\u597d", "\u7eff\u8336", "2024", "19th", "x", "ly", "skies", "happily"),
    *(
        "na\xefve",
        "(Texas)",
        "(",
        ")",
        "don't",
        "O'Brien",
        "snake_case",
        "\u039f\u0394\u039f\u03a3",
    ),
    *("\u03bf\u03b4\u03bf\u03c2", "universities"),
]
phrases = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
headed = st.builds(
    "{}{}{}".format,
    st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
    st.sampled_from(["", "\n", "\n\n", "\n \n", "\r\n", " (x)\n", "\u2028"]),
    phrases,
)
named_chunks = st.lists(
    st.builds(
        Chunk,
        headed | phrases | texts | long_texts,
        title=st.just("") | st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | texts,
    ),
    max_size=9,
)


@compared
@given(queries | phrases, named_chunks, lexicals)
def test_backends_agree(query, chunks, lexical):
    """Scores, and what is said of them, are equal to the bit for lists, whatever the options."""
    answers = []
    for name in ("reference", "native"):
        with using(name):
            answers.append(said(packed(query, chunks, lexical)))

    assert answers[0] == answers[1]


@given(queries | phrases, named_chunks | chunk_lists(), lexicals)
@on_both
def test_a_packing_has_the_scores_of_the_function(name, query, chunks, lexical):
    """A packing scores as `lexical_scores` does with the same options, and so does a corpus."""
    options = {field: getattr(lexical, field) for field in Lexical.__dataclass_fields__}
    del options["statistics"]
    options.pop("_", None)
    titles = [label_of(chunk, "title") for chunk in chunks]
    with using(name):
        found = lexical_scores(query, [*map(text_of, chunks)], titles=titles, **options)
        for pool in (chunks, Corpus(chunks)):
            assert dict(enumerate(found.tolist())) == said(packed(query, pool, lexical))[0]


def many_chunks(rng, count):
    """Return chunks of a few words, many of which name others; each has an id."""
    made = []
    for i in range(count):
        title = " ".join(rng.choices(WORDS, k=rng.randrange(4)))
        line = " ".join(rng.choices(WORDS, k=rng.randrange(3)))
        body = " ".join(rng.choices(WORDS, k=rng.randrange(60)))
        text = body if rng.random() < 0.5 else f"{line}\n{body}"
        made.append(Chunk(text, id=str(i), title=title if rng.random() < 0.6 else ""))
    return made


def random_lexical(rng):
    """Return a ranking of random options, most of them on."""
    return Lexical(
        stemming=rng.choice(["english", "english", None, "german", "russian"]),
        stopwords=rng.choice(["english", None, ("the", "ada"), "german"]),
        headings=rng.random() < 0.8,
        links=rng.random() < 0.8,
        feedback=rng.random() < 0.8,
        k1=rng.choice([1.2, 0.0, 3.0]),
        b=rng.choice([0.75, 0.0, 1.0]),
        k3=rng.choice([3.0, 0.0, 1e6]),
    )


def test_every_way_to_the_same_scores(tmp_path):
    """A list, a corpus of it, one that was changed, and one from a file say all the same."""
    kinds = Counter()
    for seed in range(60):
        rng = random.Random(seed)
        chunks = many_chunks(rng, rng.randrange(1, 16))
        query, lexical = " ".join(rng.choices(WORDS, k=rng.randrange(1, 7))), random_lexical(rng)
        by = lexical if seed % 3 else Hybrid({"bm25": 1}, bm25=lexical)
        answers = []
        for name in BACKENDS:
            with using(name):
                corpora = [Corpus(chunks), Corpus(), Corpus()]
                corpora[1].append(chunks[:2])
                corpora[1].append(chunks[2:])
                # Others in between are removed, and some are replaced.
                other = [Chunk("Ada Byron\nbooks of Ada", id=f"other{i}") for i in range(3)]
                first = [Chunk("Library books", id=one.id) for one in chunks[::2]]
                before = [*other, *chunks]
                before[3::2] = first
                corpora[2].append(before)
                corpora[2].remove([one.id for one in other])
                corpora[2].replace(chunks[::2])
                if name == "native":
                    corpora[2].save(tmp_path / "corpus")
                    corpora.append(Corpus.open(tmp_path / "corpus"))
                answers += [said(packed(query, pool, by)) for pool in (chunks, *corpora)]
        for answer in answers:
            assert (seed, answers[0]) == (seed, answer)
        kinds.update(kind for _, kind, _, _ in answers[0][1])

    assert {HEADING, LINK, FEEDBACK} == {*kinds}
    assert min(kinds.values()) > 25


@compared
@given(queries | phrases, named_chunks, lexicals, st.sampled_from(["minmax", "rrf"]))
def test_hybrids_agree(query, chunks, lexical, fusion):
    """A hybrid ranking weighs these scores: the same on both backends, for lists and corpora."""
    by = Hybrid({"bm25": 0.7, "score": 0.3}, bm25=lexical, fusion=fusion)
    chunks = [Chunk(one.text, title=one.title, score=i % 3) for i, one in enumerate(chunks)]
    answers = []
    for name in ("reference", "native"):
        with using(name):
            answers += [said(packed(query, pool, by)) for pool in (chunks, Corpus(chunks))]

    assert [answers[0]] * 4 == answers


@on_both
@given(query=queries | phrases, chunks=named_chunks, lexical=lexicals)
def test_all_off_is_bm25(name, query, chunks, lexical):
    """Without its signals, and with k3=0, it has the bits of BM25, whatever the other options."""
    words = {name: getattr(lexical, name) for name in ("stemming", "stopwords", "k1", "b")}
    off = Lexical(**{**PLAIN, **words})
    with using(name):
        for pool in (chunks, Corpus(chunks)):
            assert said(packed(query, pool, Bm25(**words))) == said(packed(query, pool, off))
        items = [one.text for one in chunks]
        bits = [
            scores.tobytes()
            for scores in (
                lexical_scores(query, items, **PLAIN),
                bm25_scores(query, items),
            )
        ]
    assert bits[0] == bits[1]


@on_both
@given(query=queries | phrases, chunks=named_chunks, lexical=lexicals)
def test_a_score_is_the_sum_of_its_parts(name, query, chunks, lexical):
    """What is said of a score adds up to it; no part that is off has a share in it."""
    words = ("stemming", "stopwords", "k1", "b", "k3")
    bare = Lexical(
        **{name: getattr(lexical, name) for name in words},
        headings=False, links=False, feedback=False,
    )  # fmt: skip
    with using(name):
        packing = packed(query, chunks, lexical)
        expected, _, _, _ = said(packed(query, chunks, bare))
    on = {HEADING: lexical.headings, LINK: lexical.links, FEEDBACK: lexical.feedback}
    for chunk, kind, _, added in signals(packing):
        assert on[kind]
        assert added >= 0.0
        expected[chunk] += added

    assert expected == pytest.approx(said(packing)[0], rel=1e-12, abs=1e-300)


# What each option does.


@pytest.mark.parametrize(
    ("k3", "factor"), [(0, 1), (1, 4 / 3), (3, 1.6), (1_000_000, 2_000_002 / 1_000_002)]
)
def test_k3(backend, k3, factor):
    """A term that the query has twice weighs (k3 + 1) * 2 / (k3 + 2) times as much."""
    items = ["green tea", "rye bread", "green bread"]
    once = scored(items, "tea bread", **PLAIN)
    twice = scored(items, "tea bread tea", **only(k3=k3))

    assert [once[0] * factor, *once[1:]] == pytest.approx(twice, rel=1e-15)
    assert once == scored(items, "tea bread", **only(k3=k3))


def test_k3_counts_stems(backend):
    """Forms of a word in the query are repetitions of its stem, and stopwords are none."""
    items = ["We work.", "Rye bread."]
    by = only(stemming="english", k3=3)
    twice = scored(items, "work working bread", **by)

    assert twice == scored(items, "works bread the work", **by)
    assert twice[0] == pytest.approx(1.6 * scored(items, "work bread", **by)[0])
    assert scored(items, "work bread", **by)[1] == twice[1]


@pytest.mark.parametrize(
    ("title", "text", "hits", "size"),
    [
        ("Black tea", "It is strong.", 2, 2),
        ("Black tea, black", "It is strong.", 2, 2),
        ("The black tea of Assam", "It is strong.", 2, 3),
        ("Assam tea", "It is strong.", 1, 2),
        ("Assam", "Black tea.", 0, 1),
        ("Black tea (Assam)", "It is strong.", 2, 2),
        ("Black tea (Assam) \n", "It is strong.", 2, 2),
        ("Black (Assam) tea", "It is strong.", 2, 3),
        ("Black tea (Assam) (b)", "It is strong.", 2, 3),
        ("", "Black tea\nIt is strong.", 2, 2),
        ("", "Black tea (Assam)\r\nIt is strong.", 2, 2),
        ("", "Black tea\n\u3000\n", 0, 0),  # nothing follows
        ("", "Black tea", 0, 0),
        ("", "\nBlack tea\nIt is strong.", 0, 0),
        ("", "Black tea".ljust(120) + "\nIt is strong.", 2, 2),
        ("", "Black tea".ljust(121) + "\nIt is strong.", 0, 0),
        ("Assam", "Black tea\nIt is strong.", 0, 1),  # the title is the heading
        (" ", "Black tea\nIt is strong.", 0, 0),
        ("(Black tea)", "It is strong.", 0, 0),
    ],
)
def test_headings(backend, title, text, hits, size):
    """A heading adds the weights of the query's terms in it, times their share of its terms."""
    chunks = [(title, text), "Rye bread.", "Coffee.", "Milk."]
    before, after = (scored(chunks, "black tea", **only(headings=on)) for on in (False, True))
    weights = idf(4, 1) * hits  # no other chunk has either
    added = weights * (hits / size) if hits else 0.0

    assert [before[0] + added, *before[1:]] == pytest.approx(after, rel=1e-15)
    assert (before == after) == (hits == 0)


def test_headings_are_stemmed(backend):
    """A form of the query's word is that word in a heading, too."""
    chunks = [("Working hours", "Nine to five."), "Rye bread."]
    before, after = (
        scored(chunks, "work", **only(headings=on, stemming="english")) for on in (False, True)
    )

    assert after[0] == pytest.approx(before[0] + idf(2, 1) / 2, rel=1e-15)
    assert scored(chunks, "work", **only(headings=True)) == [0.0, 0.0]


LONG = " ".join(f"w{i}" for i in range(32))


@pytest.mark.parametrize(
    ("source", "linked", "is_linked"),
    [
        (ADA, ("Blue Library", "It is in Lyon."), True),
        (ADA, ("BLUE library!", "It is in Lyon."), True),
        (ADA, ("The Blue Library", "It is in Lyon."), True),
        (ADA, ("Blue Library (Lyon)", "It has a roof."), True),
        (ADA, "Blue Library\nIt is in Lyon.", True),
        (ADA, "Blue Library. It is in Lyon.", False),  # no heading
        (ADA, ("A Blue Library", "It is in Lyon."), False),  # not word for word
        (ADA, ("Blue Libraries", "It is in Lyon."), False),  # stems are not enough
        (ADA, ("Library Blue", "It is in Lyon."), False),
        (ADA, ("Blue", "It is in Lyon."), True),
        (ADA, ("Lue Library", "It is in Lyon."), False),
        (ADA, ("books", "They burn."), False),  # the query has all of it
        (ADA, ("to the", "It is in Lyon."), False),  # nothing but stopwords
        (ADA, ("(Blue Library)", "It is in Lyon."), False),  # an empty heading
        (("Ada of the Blue Library", "Her books."), ("Blue Library", "It is in Lyon."), True),
        (("Blue Library", "Ada: books."), ("Blue Library", "It is in Lyon."), False),  # its own
        (("Blue", "Ada: books to the Library."), ("Library Blue", "It is."), False),
        (f"Ada's books: {LONG} w32", (LONG, "It is in Lyon."), True),
        (f"Ada's books: {LONG} w32", (f"{LONG} w32", "It is in Lyon."), False),  # too long
    ],
)
def test_links(backend, source, linked, is_linked):
    """A chunk whose heading stands in a better one, word for word, gets a fifth of its score."""
    chunks = ["Rye bread.", linked, source]
    before, after = (scored(chunks, **only(links=on)) for on in (False, True))
    added = 0.2 * before[2] if is_linked else 0.0

    assert before[2] > before[1]
    assert [before[0], before[1] + added, before[2]] == after


def test_links_come_from_the_three_best(backend):
    """The three best chunks name others, and a chunk gets a fifth of the best that names it."""
    chunks = [
        ("Oslo", "It is cold."),
        ("Paris", "It is warm."),
        ("Quito", "It is high."),
        ("Rome", "It is old."),
        "tea tea tea tea Oslo Paris x y",
        "tea tea tea Paris Quito x y z",
        "tea tea Quito Oslo x y z v",
        "tea Rome x y z v w u",
    ]
    before, after = (scored(chunks, "tea", **only(links=on)) for on in (False, True))
    assert sorted(before[4:], reverse=True) == before[4:]
    expected = [0.2 * before[4], 0.2 * before[4], 0.2 * before[5], 0.0, *before[4:]]

    assert expected == after


def test_links_go_to_worse_chunks_only(backend):
    """No chunk is linked from one behind it; of equal ones the first is the better."""
    chunks = [("Lyon", "tea tea Oslo"), ("Oslo", "tea Lyon oh")]
    by = only(links=True)
    before = scored(chunks, "tea", **PLAIN)
    assert before[0] > before[1]
    assert [before[0], before[1] + 0.2 * before[0]] == scored(chunks, "tea", **by)

    alike = [("Lyon", "tea Oslo"), ("Oslo", "tea Lyon")]
    before = scored(alike, "tea", **PLAIN)
    assert before[0] == before[1]
    assert [before[0], before[1] + 0.2 * before[0]] == scored(alike, "tea", **by)


def test_many_headings_that_begin_alike(backend):
    """Many headings take the time of the text, not that of as many searches, and link alike."""
    rng = random.Random(17)
    words = [rng.choice("pq") for _ in range(3_000)]
    long = [rng.choice("pq") for _ in range(40)]
    named = [" ".join(words[at : at + 3 + at % 30]) for at in range(0, 300, 10)]
    others = [" ".join(["p", *(rng.choice("pq") for _ in range(28)), "p"]) for _ in range(200)]
    source = " ".join(["tea tea", *words, *long])
    chunks = [source, *((heading, "rye") for heading in (*named, *others, " ".join(long)))]
    values = scored(chunks, "tea", **only(links=True))

    fits = [len(heading.split()) <= 32 for heading in named]
    assert [values[0] / 5 if fit else 0.0 for fit in fits] == values[1 : len(named) + 1]
    is_named = [f" {heading} " in f" {source} " for heading in others]
    assert [values[0] / 5 if named else 0.0 for named in is_named] == values[len(named) + 1 : -1]
    assert 0.0 == values[-1]


def test_nothing_is_linked_where_nothing_scores(backend):
    """A chunk that has no word of the query names none, and none stands out."""
    chunks = [("Oslo", "It is cold."), "We went to Oslo.", "Oslo is far."]
    for query in ("tea", "", "the of"):
        assert [0.0] * 3 == scored(chunks, query)


def fed(before, items, query):
    """Return what feedback adds to each of *items*, texts of one title, by its formula."""
    counted = [Counter(terms(text)) for text in items]
    mean = sum(counts.total() for counts in counted) / len(items)

    def part(i, term):
        f, length = counted[i][term], counted[i].total()
        frequency = sum(term in counts for counts in counted)
        saturated = f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / mean))
        return idf(len(items), frequency) * saturated if f else 0.0

    best = before.index(max(before))
    others = [
        term
        for term in counted[best]
        if term not in terms(query)
        and not term[0].isdigit()
        and sum(term in counts for counts in counted) > 1
    ]
    strengths = {term: part(best, term) for term in others}
    strong = sorted(others, key=lambda term: (-strengths[term], term))[:10]
    most = max(strengths.values(), default=1.0)
    return [
        sum(0.2 * strengths[term] / most * part(i, term) for term in strong)
        for i in range(len(items))
    ]


@pytest.mark.parametrize(
    "items",
    [
        ["tea leaf cup", "cup water", "leaf tree leaf", "rye"],
        ["tea tea 2024 4th", "2024 4th", "rye", "tea leaf"],  # no numbers
        ["tea only here", "rye", "oat"],  # no words of one chunk alone
        ["tea a1 b c d e f g h i j k l m", "a1 b c", "d e f g h i j k l m", "k l m", "m"],
        ["leaf", "cup", "rye"],  # nothing scored
    ],
)
def test_feedback(backend, items):
    """The ten strongest other words of the best chunk count up to a fifth, by its formula."""
    before, after = (
        scored(items, "tea", **only(feedback=on, stopwords=None)) for on in (False, True)
    )
    added = fed(before, items, "tea") if max(before) else [0.0] * len(items)

    assert sums([before, added]) == pytest.approx(after, rel=1e-12)


def test_feedback_takes_ten_words(backend):
    """The eleventh word adds nothing; of equally strong ones the first by spelling count."""
    words = [chr(ord("b") + i) * 2 for i in range(11)]
    items = [f"tea {' '.join(words)}", *words, *"xyz"]
    after = scored(items, "tea", **only(feedback=True))

    assert 0.0 == after[11] < after[10] == after[1]
    assert [0.0] * 3 == after[12:]


def test_feedback_leaves_stopwords_out(backend):
    """A stopword of the best chunk brings no other in."""
    items = ["the tea", "the rye", "oat"]

    assert 0.0 == scored(items, "tea", **only(feedback=True))[1]
    assert 0.0 < scored(items, "tea", **only(feedback=True, stopwords=None))[1]


def test_feedback_with_an_empty_stem(backend):
    """A word may be nothing but an ending: it counts as any other."""
    items = ["tea \u0930\u0924", "\u0930\u0924 rye", "oat"]

    assert 0.0 < scored(items, "tea", **only(feedback=True, stemming="nepali"))[1]


def test_a_final_y_that_becomes_i_in_a_stem(backend):
    """A short French stem may differ from its word in the second letter."""
    assert 0.0 < scored(["ayissement"], "ayissement", **only(stemming="french"))[0]


def test_stemming_and_stopwords(backend):
    """English stems and stopwords are the default, for texts, headings and feedback alike."""
    items = ["He worked.", "the of", "Rye."]

    assert 0.0 < scored(items, "working")[0]
    assert [0.0] * 3 == scored(items, "working", stemming=None)
    assert [0.0] * 3 == scored(items, "the of")
    assert 0.0 < scored(items, "the of", stopwords=None)[1]
    assert scored(items, "Working, the") == scored(items, "work")


SIGNALS = ("headings", "links", "feedback")


@pytest.mark.parametrize("on", [*product([False, True], repeat=3)])
def test_each_part_is_told(backend, on):
    """`Packing.explain` says which parts a score has, and each option changes its own alone."""
    chunks = [
        {"title": "Weather", "text": "It rains in Lyon."},
        {"title": "Blue Library", "text": "It is in Lyon."},
        {"title": "Bread", "text": "Rye."},
        {"title": "Ada", "text": f"{ADA} Lyon."},
    ]
    packing = packed(QUERY, chunks, Lexical(**dict(zip(SIGNALS, on, strict=True))))
    parts = [
        [None, "for words of chunk 3, the best"],
        ["linked from chunk 3 by its heading", "for words of chunk 3, the best"],
        [],
        ["for its heading", "for words of chunk 3, the best"],
    ]
    option = {"its heading": 0, "by its heading": 1, "the best": 2}
    for i, expected in enumerate(parts):
        left = [
            part
            for part in filter(None, expected)
            if on[next(at for end, at in reversed(option.items()) if part.endswith(end))]
        ]
        told = packing.explain(i)
        assert told.count(" for ") + told.count(" linked ") == len(left), told
        assert all(part in told for part in left)
        assert (" Part of its score by words: " in told) == bool(left)


def test_explained_to_the_word(backend):
    """The whole of what is said of a linked chunk, kept or dropped, of a list or a corpus."""
    chunks = [
        {"title": "Weather", "text": "It rains."},
        {"title": "Blue Library", "text": "It is in Lyon."},
        "Rye bread.",
        ADA,
    ]
    for pool in (chunks, Corpus(chunks)):
        kept = pack(QUERY, pool, 20)
        dropped = pack(QUERY, pool, 11)
        hybrid = pack(QUERY, pool, 20, ranking=Hybrid({"bm25": 1}, bm25=Lexical(feedback=False)))

        assert (
            "Chunk 1 (score 0.63) was kept with 5 tokens, characters 41 to 55 of the text. Part "
            "of its score by words: 0.38 linked from chunk 3 by its heading, 0.25 for words of "
            "chunk 3, the best."
        ) == kept.explain(1)
        assert (
            "Chunk 1 (score 0.63) was dropped: it needs at least 3 tokens, and 2 of 11 were left. "
            "Part of its score by words: 0.38 linked from chunk 3 by its heading, 0.25 for words "
            "of chunk 3, the best."
        ) == dropped.explain(1)
        assert hybrid.explain(1).endswith("by words: 0.38 linked from chunk 3 by its heading.")


@compared
@pytest.mark.slow
def test_large_batches():
    """Scores of thousands of chunks are equal to the bit, of their corpus too."""
    rng = random.Random(11)
    chunks = many_chunks(rng, 2_500)
    for query in ("Ada Byron's books of the Blue Library", "work \u7eff\u8336", "happily dying"):
        answers = []
        for name in ("reference", "native"):
            with using(name):
                packing = Packer(3_000, counter="words").pack(query, chunks)
                answers.append((packing.to_dict(), packing._signals))
        with using("native"):
            corpus = Packer(3_000, counter="words").pack(query, Corpus(chunks))
        answers.append((corpus.to_dict(), corpus._signals))

        assert answers[0] == answers[1] == answers[2]
