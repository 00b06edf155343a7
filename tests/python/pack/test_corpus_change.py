"""Corpora whose chunks are removed and replaced pack as new ones of the chunks that are left."""

import random
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, budgets, chunk_lists, counters, options, queries, texts, using
from test_corpus import assert_same, halves, pool, seen

from budgeteer import Chunk, Corpus, InvalidArgumentError, Packer, pack


def assert_new(query, chunks, corpus, max_tokens=60, **options):
    """The corpus packs as a new one of *chunks*, and as their list."""
    assert chunks == list(corpus)
    assert len(chunks) == len(corpus)
    assert_same(query, chunks, corpus, max_tokens, **options)
    assert seen(pack(query, Corpus(chunks), max_tokens, **options)) == seen(
        pack(query, corpus, max_tokens, **options)
    )


@given(queries, chunk_lists(), st.sets(st.integers(0, 7)), budgets, counters, options)
def test_remove_identity(query, chunks, places, max_tokens, counter, options):
    """Whatever the options, a corpus without some chunks packs as the list without them."""
    tagged = [Chunk("x", id=str(i)) if i in places else one for i, one in enumerate(chunks)]
    gone = [str(i) for i in places if i < len(chunks)]
    left = [one for i, one in enumerate(chunks) if i not in places]
    others = {chunk.id for chunk in left if isinstance(chunk, Chunk)}
    others |= {chunk.get("id") for chunk in left if isinstance(chunk, dict)}
    for name in BACKENDS:
        with using(name):
            try:
                corpus = halves(tagged)
            except InvalidArgumentError:
                return  # a list of unreadable chunks
            if others.intersection(gone):
                return  # a chunk that is left has such an id of its own
            corpus.remove(gone)
            assert_same(query, left, corpus, max_tokens, counter=counter, **options)


@given(
    queries,
    st.lists(st.tuples(texts, texts), min_size=1, max_size=9),
    st.dictionaries(st.integers(0, 8), st.tuples(texts, texts)),
    budgets,
    counters,
    options,
)
def test_replace_identity(query, before, changes, max_tokens, counter, options):
    """Whatever the options, a corpus with other chunks packs as the list with them."""
    chunks = [Chunk(text, title=title, id=str(i)) for i, (text, title) in enumerate(before)]
    new = [
        Chunk(text, title=title, id=str(i), score=i)
        for i, (text, title) in changes.items()
        if i < len(chunks)
    ]
    for name in BACKENDS:
        with using(name):
            corpus = halves(chunks)
            corpus.replace(new)
            expected = list(chunks)
            for chunk in new:
                expected[int(chunk.id)] = chunk
            assert_same(query, expected, corpus, max_tokens, counter=counter, **options)


words = st.lists(st.sampled_from(["green", "tea", "Tea.", "\u7eff\u8336", "caf\u00e9", "the"]))
some_texts = words.map(" ".join)
operations = st.lists(
    st.tuples(
        st.sampled_from(["append", "remove", "replace", "save"]),
        st.lists(st.tuples(st.integers(0, 30), some_texts, some_texts), max_size=5),
    ),
    max_size=12,
)


class Changed:
    """A corpus, and the list that it should be."""

    def __init__(self, folder):
        self.folder, self.corpus, self.chunks, self.count = folder, Corpus(), [], 0

    def append(self, items):
        """Add chunks of several types; one in five has no id."""
        new = []
        for number, text, title in items:
            self.count += 1
            found = {"text": text, "title": title, "id": self.count, "score": number / 7}
            own = Chunk(text, id=str(self.count), title=title, score=number / 7)
            new.append([found, own, own, own, text][number % 5])
        self.corpus.append(new)
        self.chunks += new

    def _picked(self, items):
        """Return some chunks that have an id."""
        having = [one for one in self.chunks if not isinstance(one, str)]
        return [having[number % len(having)] for number, _, _ in items] if having else []

    def remove(self, items):
        """Remove some chunks."""
        gone = self._picked(items)
        self.corpus.remove([id_of(one) for one in gone])
        self.chunks = [one for one in self.chunks if one not in gone]

    def replace(self, items):
        """Replace some chunks, in any order."""
        new = {}
        for old, (_, text, title) in zip(self._picked(items), items, strict=False):
            new[str(id_of(old))] = Chunk(text, id=str(id_of(old)), title=title)
        self.corpus.replace(new.values())
        self.chunks = [new.get(str(id_of(one)), one) for one in self.chunks]

    def save(self, items):
        """Save it and go on with what is opened."""
        if self.folder is not None:
            path = Path(self.folder) / f"corpus{len(items)}"
            self.corpus.save(path)
            self.corpus = Corpus.open(path)


def id_of(chunk):
    """Return the id of a chunk of the tests."""
    return None if isinstance(chunk, str) else getattr(chunk, "id", None) or chunk["id"]


@given(operations, st.sampled_from(["green tea", "the caf\u00e9", "\u7eff\u8336"]))
def test_any_changes(operations, query):
    """After any changes, saved and opened between them, it is the corpus of its chunks."""
    for name in BACKENDS:
        with using(name), tempfile.TemporaryDirectory() as folder:
            changed = Changed(folder if name == "native" else None)
            for operation, items in operations:
                getattr(changed, operation)(items)
                assert_new(query, changed.chunks, changed.corpus, 12)
            for ranking in "keyword", "score", "input", "recency":
                assert_new(query, changed.chunks, changed.corpus, 12, ranking=ranking)


@pytest.mark.parametrize("stemming", [None, "english"])
def test_many(backend, stemming, tmp_path):
    """Chunks of many parts of an index, that stems were asked of, in memory and from a file."""
    from budgeteer.ranking import Bm25

    rng = random.Random(5)
    chunks = [
        Chunk(one.text, id=str(i), title=one.title, score=one.score)
        for i, one in enumerate(pool(rng, 400))
    ]
    corpora = [Corpus(chunks)]
    for size in (7, 300):  # parts of several lengths
        corpora.append(Corpus(chunks[:size]))
        corpora[-1].append(chunks[size:-5])
        corpora[-1].append(chunks[-5:])
    if "_native" in backend.__name__:
        corpora[0].save(tmp_path / "corpus")
        corpora.append(Corpus.open(tmp_path / "corpus"))
    by = Bm25(stemming=stemming)
    for turn in range(6):
        gone = {chunk.id for chunk in rng.sample(chunks, 20)}
        chunks = [chunk for chunk in chunks if chunk.id not in gone]
        new = [
            Chunk(other.text, title=other.title, id=chunk.id, score=turn)
            for chunk, other in zip(rng.sample(chunks, 9), pool(rng, 9), strict=False)
        ]
        by_id = {chunk.id: chunk for chunk in new}
        chunks = [by_id.get(chunk.id, chunk) for chunk in chunks]
        for corpus in corpora:
            corpus.remove(gone)
            corpus.replace(new)
            for counter in "o200k_base", "words":
                assert_new("green teas", chunks, corpus, 80, ranking=by, counter=counter)
            assert_new("green tea", chunks, corpus, 80, ranking="score")


def test_ids(backend):
    """An id is what templates show: of every type of chunk, a number or a text."""
    teas = [
        Chunk("a", id="7"),
        {"text": "b", "id": 7},
        {"text": "c", "id": "8"},
        SimpleNamespace(text="d", node_id="9"),
        "e",
        Chunk("f"),
    ]
    corpus = Corpus(teas)
    corpus.remove([7])  # all that share it
    assert teas[2:] == list(corpus)
    corpus.replace([{"text": "x", "id": 9}])
    assert [teas[2], {"text": "x", "id": 9}, *teas[4:]] == list(corpus)
    corpus.remove({"8", 9})
    assert teas[4:] == list(corpus)
    corpus.remove([])
    corpus.replace([])
    corpus.remove(iter(()))
    assert teas[4:] == list(corpus)


def test_all(backend):
    """A corpus may lose every chunk, and get others."""
    corpus = Corpus([Chunk("green tea", id="a"), Chunk("rye", id="b")])
    corpus.remove(["b", "a", "b"])
    assert_new("tea", [], corpus)
    corpus.append([Chunk("tea", id="a")])
    corpus.replace([Chunk("black tea", id="a")])
    assert_new("tea", [Chunk("black tea", id="a")], corpus)


BAD_IDS = [
    (["a", "x"], "ids has 1 that no chunk of the corpus has: 'x'"),
    (
        [f"x{i}" for i in range(7)],
        "ids has 7 that no chunk of the corpus has: 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more",
    ),
    (["y" * 900], f"ids has 1 that no chunk of the corpus has: '{'y' * 80}'"),
    (["a", None], "ids[1] must be a str or an int of at most 128 bits, not None"),
    ([True], "ids[0] must be a str or an int of at most 128 bits, not bool"),
    ([1.0], "ids[0] must be a str or an int of at most 128 bits, not float"),
    (
        [1 << 20_000],
        "ids[0] must be a str or an int of at most 128 bits, not an int of 20001 bits",
    ),
    ("a", "ids must be a sequence, not str"),
    (7, "ids must be a sequence, not int"),
]


@pytest.mark.parametrize(("ids", "message"), BAD_IDS)
def test_bad_ids(backend, ids, message):
    """An id that no chunk has, or that is none, is named, and nothing is removed."""
    chunks = [Chunk("green tea", id="a"), Chunk("rye", id="b"), "oats"]
    corpus = Corpus(chunks)
    with pytest.raises(InvalidArgumentError) as raised:
        corpus.remove(ids)

    assert message == str(raised.value)
    assert_new("tea", chunks, corpus)


def test_no_ids(backend):
    """A corpus whose chunks have no ids says so, and what to do."""
    for chunks in ["tea"], [Chunk("tea")], [{"text": "tea"}]:
        corpus = Corpus(chunks)
        with pytest.raises(
            InvalidArgumentError,
            match=r"^no chunk of the corpus has an id, .*: make the corpus of chunks that have ",
        ):
            corpus.remove(["a"])
        assert_new("tea", chunks, corpus)
    with pytest.raises(InvalidArgumentError, match=r"^ids has 1 that no chunk"):
        Corpus().remove(["a"])


BAD_CHUNKS = [
    (
        [Chunk("x", id="a"), Chunk("tea")],
        r"chunks\[1\] has no id, .*: give it one, as Chunk\(text",
    ),
    ([Chunk("x", id="a"), "tea"], r"chunks\[1\] has no id"),
    ([Chunk("x", id="a")] * 2, r"chunks\[1\] must not have the id of chunks\[0\], 'a'$"),
    (
        [Chunk("x", id="a"), Chunk("x", id="y")],
        r"no chunk of the corpus has the id of chunks\[1\], 'y': append\(\) adds a chunk$",
    ),
    (
        [Chunk("x", id="a"), Chunk("x", id="c")],
        r"2 chunks of the corpus have the id of chunks\[1\], 'c': remove\(\) them and append\(\)",
    ),
    ([Chunk("x", id="a"), 7], r"chunks\[1\] must be a str, .*, not int$"),
    (
        [Chunk("x", id="a"), {"id": "b"}],
        r"chunks\[1\] must have a key 'text', 'content' or 'page_content'$",
    ),
    ([{"id": "b", "text": 3}, {"id": "a", "text": "x"}], r"chunks\[0\].text must be a str"),
    ("tea", "chunks must be a sequence, not str"),
]


@pytest.mark.parametrize(("chunks", "message"), BAD_CHUNKS)
def test_bad_chunks(backend, chunks, message):
    """A chunk that replaces none, or not one, is named, and nothing is replaced."""
    before = [Chunk("a", id="a"), Chunk("b", id="b"), Chunk("c", id="c"), Chunk("c", id="c")]
    corpus = Corpus(before)
    with pytest.raises(InvalidArgumentError, match=f"^{message}"):
        corpus.replace(chunks)

    assert_new("tea", before, corpus)


def test_packing_outlives_changes(backend):
    """A packing tells of the chunks that were there when it was made."""
    chunks = [Chunk(f"green tea {i}", id=str(i)) for i in range(300)]
    corpus = Corpus(chunks)
    packing = Packer(20).pack("tea", corpus)
    corpus.remove([str(i) for i in range(200)])
    corpus.replace([Chunk("rye", id="250")])

    assert seen(pack("tea", chunks, 20)) == seen(packing)


def test_threads(backend):
    """Threads that pack while others change the corpus each see a whole change or none of it."""
    corpus = Corpus([Chunk("green tea", id=f"{i % 9}-{i}") for i in range(360)])
    wrong, over = [], threading.Event()
    packer = Packer(4, counter="words", dedupe=None)

    def query():
        while not over.is_set():
            packing = packer.pack("tea", corpus)
            count = packing.dropped_count + len(packing.kept)
            if count % 40 or packing.text not in (
                "green tea\n\ngreen tea",
                "black tea\n\nblack tea",
            ):
                wrong.append((count, packing.text))

    def change(group):
        for _ in range(3):
            corpus.append([Chunk("green tea", id=f"x{group}-{i}") for i in range(40)])
            corpus.remove([f"x{group}-{i}" for i in range(40)])

    threads = [threading.Thread(target=query) for _ in range(3)]
    changing = [threading.Thread(target=change, args=(group,)) for group in range(3)]
    for thread in (*threads, *changing):
        thread.start()
    for thread in changing:
        thread.join()
    corpus.replace([Chunk("black tea", id=f"{i % 9}-{i}") for i in range(360)])
    corpus.remove([f"{i % 9}-{i}" for i in range(360) if i % 9 == 4])
    over.set()
    for thread in threads:
        thread.join()

    assert [] == wrong
    assert 320 == len(corpus)
