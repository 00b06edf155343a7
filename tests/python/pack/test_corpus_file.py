"""Corpora in files: what is opened is what was saved, and damage is told."""

import os
import pickle
import random
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from support import ONLY_REFERENCE, backend_named, chunk_lists, counters, options, outcome, queries
from test_corpus import assert_same, pool

from budgeteer import (
    BudgeteerError,
    Chunk,
    Corpus,
    CorpusError,
    InvalidArgumentError,
    pack,
)

native = pytest.mark.skipif(ONLY_REFERENCE, reason="BUDGETEER_BACKEND=reference was asked for")

CHUNKS = [
    "green tea",
    "",
    "caf\u00e9 \u7eff\u8336 \ud800 \U0001f600",
    Chunk(
        "black tea",
        id="7",
        source="shelf",
        title="Teas",
        score=-0.0,
        metadata={"mtime": 3, "kind": None, "deep": [{"a": [1.5]}]},
    ),
    Chunk("rye", score=float("inf")),
    {"text": "oolong", "title": "Teas", "score": 0.1, "n": 10**30},
    {"content": "white tea", "other": "\ud83d"},
    {"text": "black tea", "title": "\ud83d\ude00", "other": {"\ud83d\ude00": "😀"}},
    Chunk("tea", id="\ud83d\ude00"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "teas.corpus"


@native
def test_round_trip(path):
    """Chunks come back as they were."""
    Corpus(CHUNKS).save(path)
    opened = Corpus.open(path)

    assert CHUNKS == list(opened) == opened[:]
    assert [type(chunk) for chunk in CHUNKS] == [type(chunk) for chunk in opened]
    assert "-0.0" == str(opened[3].score)
    assert opened[-1] == CHUNKS[-1]
    assert len(CHUNKS) == len(opened)
    with pytest.raises(IndexError):
        opened[len(CHUNKS)]


@native
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queries, chunk_lists(), counters, options)
def test_identity(tmp_path_factory, query, chunks, counter, options):
    """An opened corpus packs as the list does, whatever is appended to it."""
    path = tmp_path_factory.getbasetemp() / "identity.corpus"
    corpus = outcome(Corpus, chunks)
    if isinstance(corpus, tuple) or isinstance(outcome(corpus.save, path), tuple):
        return
    opened = Corpus.open(path)
    opened.append(chunks)
    for budget in 9, 60:
        assert_same(query, chunks, Corpus.open(path), budget, counter=counter, **options)
        assert_same(query, chunks * 2, opened, budget, counter=counter, **options)


@native
@pytest.mark.parametrize("steps", [1, 3])
def test_many(path, steps):
    """Many chunks, saved, opened, appended to, saved again and opened once more."""
    chunks = pool(random.Random(steps), 300)
    size = len(chunks) // steps
    Corpus(chunks[:size]).save(path)
    corpus = Corpus.open(path)
    for start in range(size, len(chunks), size):
        corpus.append(chunks[start : start + size])
    corpus.save(path)
    for ranking in "bm25", "keyword", "recency", "score":
        for found in corpus, Corpus.open(path):
            assert_same("green tea", chunks, found, 300, ranking=ranking)


@native
def test_objects_become_chunks(path):
    """Of an object of another type comes back what a Chunk can hold."""
    document = SimpleNamespace(page_content="green tea", metadata={"page": 3}, id="7")
    Corpus([document]).save(path)

    assert [Chunk("green tea", id="7", metadata={"page": 3})] == list(Corpus.open(path))


@native
def test_a_title_in_the_metadata(path):
    """A chunk without a title of its own comes back with that by which it ranked."""
    chunks = [
        Chunk("green tea", metadata={"title": "Teas"}),
        Chunk("rye", title="Breads", metadata={"title": "Teas"}),
        {"text": "oolong", "metadata": {"title": "Teas"}},
    ]
    Corpus(chunks).save(path)
    opened = Corpus.open(path)

    assert [Chunk("green tea", title="Teas", metadata={"title": "Teas"}), *chunks[1:]] == [*opened]
    for ranking in "lexical", "keyword":
        assert_same("teas", chunks, opened, 9, ranking=ranking)


@native
def test_empty(path):
    """A corpus without chunks is one, too."""
    Corpus().save(path)
    opened = Corpus.open(path)
    opened.append(["green tea"])

    assert ["green tea"] == list(opened)
    assert "" == pack("tea", Corpus.open(path), 9).text


@native
@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"text": "tea", "x": {1, 2}}, r"chunks\[1\]\['x'\] holds a set, which JSON does not"),
        ({"text": "tea", "x": (1,)}, r"chunks\[1\]\['x'\] holds a tuple"),
        ({"text": "tea", 7: 1}, r"chunks\[1\] must have keys of type str to be saved, not int"),
        (
            Chunk("tea", metadata={"x": [float("nan")]}),
            r"chunks\[1\].metadata\['x'\] must be finite",
        ),
        (Chunk("tea", metadata={"x": 10**5000}), r"chunks\[1\] cannot be saved: .*digits"),
        (SimpleNamespace(text="tea", id=7), r"chunks\[1\].id must be a str, not int"),
        (
            SimpleNamespace(text="tea", metadata=["page"]),
            r"chunks\[1\].metadata must be a mapping to be saved, not list",
        ),
    ],
)
def test_what_json_cannot_hold(path, chunk, message):
    """The chunk is named, and nothing is written."""
    with pytest.raises(InvalidArgumentError, match=rf"^{message}"):
        Corpus(["rye", chunk]).save(path)

    assert [] == list(path.parent.iterdir())


@native
def test_deep_metadata(path):
    """Nesting without end is refused, not followed."""
    deep = {}
    deep["a"] = deep
    with pytest.raises(InvalidArgumentError, match="nested more than 64 deep"):
        Corpus([Chunk("tea", metadata=deep)]).save(path)


@pytest.mark.skipif(os.name == "nt", reason="has no such names")
def test_a_name_that_no_file_can_have():
    """It is refused by either backend, and shown in characters that can be printed."""
    for use in (Corpus.open, Corpus(["rye"]).save):
        with pytest.raises(InvalidArgumentError, match=r"which '/a\\ud800' cannot be$"):
            use("/a\ud800")


@native
def test_saving_replaces(path):
    """What was there before is whole until the new one is, and no other file stays."""
    Corpus(["green tea"]).save(path)
    before = Corpus.open(path)
    Corpus(["black tea"] * 9).save(path)

    assert ["green tea"] == list(before)
    assert ["black tea"] * 9 == list(Corpus.open(path))
    assert [path] == list(path.parent.iterdir())


@native
@pytest.mark.parametrize("name", ["missing/teas", "missing"])
def test_no_such_file(tmp_path, name):
    """What the operating system refuses is an OSError that names the file."""
    with pytest.raises(FileNotFoundError, match="missing"):
        Corpus.open(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="missing"):
        Corpus().save(tmp_path / "missing" / "teas")
    for function in Corpus.open, Corpus().save:
        with pytest.raises(IsADirectoryError, match="directory"):
            function(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="about files of POSIX")
def test_no_regular_file(path):
    """A pipe, which would be waited for, and a device are refused at once."""
    os.mkfifo(path)
    for name in path, os.devnull:
        with pytest.raises(CorpusError, match=r"opened as a corpus: it is no regular file$"):
            Corpus.open(name)


@pytest.mark.parametrize("path", [7, None, "", "a\0b", b"teas"])
def test_bad_path(path):
    """A path is a str or a path."""
    for function in Corpus.open, Corpus().save:
        with pytest.raises(InvalidArgumentError, match=r"^path must be "):
            function(path)


@native
@pytest.mark.parametrize("content", [b"", b"x", b"budgeteer", b"PK\3\4" * 200, b"\0" * 4096])
def test_foreign(path, content):
    """A file of something else is told apart."""
    path.write_bytes(content)
    with pytest.raises(
        CorpusError, match=r"teas\.corpus' cannot be opened .*: the file is no corpus"
    ):
        Corpus.open(path)


@native
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 2**32 - 1])
def test_other_version(path, version):
    """Another layout is named, with the one that is known and what to do, whatever its size."""
    Corpus(["tea"]).save(path)
    data = bytearray(path.read_bytes())
    data[16:20] = struct.pack("<I", version)
    # An empty corpus of the first version is shorter than a header of the second.
    for size in (len(data), 288, 20):
        path.write_bytes(data[:size])
        with pytest.raises(
            CorpusError,
            match=f"has version {version} of the layout, and only 5 is known: save the corpus "
            "again from its chunks$",
        ):
            Corpus.open(path)


@native
def test_every_byte_counts(path):
    """
    Whichever byte is flipped, a file of one block is refused; likewise wherever it is cut.

    The figures that are checked at opening share that block with all else.
    """
    Corpus(CHUNKS).save(path)
    good = path.read_bytes()
    other = path.with_name("damaged")
    rng = random.Random(7)
    for at in range(len(good)):
        damaged = bytearray(good)
        damaged[at] ^= rng.choice([1, 0x80, 0xFF])
        other.write_bytes(damaged)
        with pytest.raises(CorpusError):
            Corpus.open(other)
    for size in range(0, len(good), 7):
        other.write_bytes(good[:size])
        with pytest.raises(CorpusError):
            Corpus.open(other)
    other.write_bytes(good + b"\0")
    with pytest.raises(CorpusError, match="something behind its end"):
        Corpus.open(other)


@native
def test_layout(path):
    """The file is the same wherever it is written: little-endian, with sizes of its own."""
    Corpus(["tea"]).save(path)
    data = path.read_bytes()

    assert b"budgeteer corpus" == data[:16]
    assert (5, 1, len(data), 0) == struct.unpack("<IIQQ", data[16:40])
    sizes = list(struct.unpack("<20Q", data[40:200]))
    assert len(data) == 40 + 160 + 8 + 8 + sum(sizes) + 8  # one block has one hash
    words, headings, runs = [20, 3, 1], [0, 0, 0], [0, 0, 0]
    assert [20, 0, *words, *headings, *runs, 4, 0, 0, 8, 3, 8, 0, 8, 0] == sizes


@native
@pytest.mark.parametrize(
    ("texts", "expected"),
    [(["th\u00e9", "\U0001f375"], 0), (["\ud83c tea"], 1), (["tea", "th\u00e9 \udf75", "tea"], 1)],
)
def test_a_file_says_whether_it_has_surrogates(path, texts, expected):
    """What reads it relies on that: without them all its texts are UTF-8."""
    Corpus(texts).save(path)

    assert (expected,) == struct.unpack("<Q", path.read_bytes()[32:40])
    assert texts == list(Corpus.open(path))


LARGE = [
    Chunk(
        " ".join(f"{('green', 'black', 'white')[j % 3]}leaf{i * j % 97} tea" for j in range(12)),
        id=str(i),
        title=f"Brewed {i % 9}" if i % 3 else "",
        score=i % 7,
    )
    for i in range(500)
]
"""Chunks whose texts and records take several blocks in a file."""


def damaged(path, at):
    """Flip a byte of the file at *path*, and return the corpus in it."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)
    return Corpus.open(path)


def calls(corpus):
    """Yield what comes of everything that can be done with a corpus of LARGE."""
    small = {"max_chunks": 1, "ranking": "bm25", "counter": "chars_div4"}
    yield lambda: pack("whiteleaf31", corpus, 999, **small).text
    yield lambda: corpus[0]
    yield lambda: corpus.retrieve("brewing green tea", 3)
    for ranking in "bm25", "keyword", "recency", "score", "lexical":
        for counter in "words", "o200k_base", len:
            yield (
                lambda counter=counter, ranking=ranking: (
                    pack("brew greenleaf7", corpus, 90, counter=counter, ranking=ranking).text
                )
            )
    yield lambda: pack("brew", corpus, 90, units="sentence", counter="words").text
    yield lambda: list(corpus)
    yield lambda: corpus.append([Chunk("rye", id="rye")] * 300)
    yield lambda: corpus.remove(["rye"])
    yield lambda: corpus.replace([Chunk("rye", id="7")])
    yield lambda: pack("rye", corpus, 9).text


@native
def test_damage_is_met(path):
    """
    A damaged byte of a large file is told by the call that meets it, and by all that follow.

    Until then each call says what it says of the whole file.
    """
    Corpus(LARGE).save(path)
    good = path.read_bytes()
    expected = [call() for call in calls(Corpus.open(path))]
    opened, first = 0, []
    for at in range(216, len(good), 2503):
        path.write_bytes(good)
        try:
            corpus = damaged(path, at)
        except CorpusError:
            continue
        opened += 1
        found = [outcome(call) for call in calls(corpus)]
        told = (CorpusError, f"{str(path)!r} cannot be read as a corpus: the file is damaged")
        met = found.index(told) if told in found else len(found)
        assert found == expected[:met] + [told] * (len(found) - met)
        first.append(met)
        path.with_name("again").unlink(missing_ok=True)
        with pytest.raises(CorpusError, match="damaged"):
            corpus.save(path.with_name("again"))
        assert [path] == list(path.parent.iterdir())

    assert opened > 20
    assert len({*first}) > 2, first


@native
def test_a_refused_change_changes_nothing(path):
    """A change that meets damage leaves the corpus as it was."""
    Corpus(LARGE).save(path)
    corpus = damaged(path, path.read_bytes().index(LARGE[400].text.encode()))
    refused = 0
    for change in (
        lambda: corpus.append([Chunk("rye")] * 400 + LARGE),
        lambda: corpus.save(path.with_name("again")),
        lambda: corpus.append(["rye"]),
    ):
        before = len(corpus)
        with suppress(CorpusError):
            change()
            continue
        refused += 1
        assert before == len(corpus)
    assert refused == 2  # the first reads no text
    with pytest.raises(CorpusError):
        corpus[400]


@native
def test_threads_open_a_file(path):
    """Threads that read a file for the first time at once all get what is there."""
    Corpus(LARGE).save(path)
    expected = pack("brew greenleaf7", LARGE, 300, counter="words").text
    for _ in range(5):
        corpus = Corpus.open(path)
        with ThreadPoolExecutor(8) as pool:
            texts = [
                pool.submit(pack, "brew greenleaf7", corpus, 300, counter="words")
                for _ in range(16)
            ]
            assert all(expected == text.result().text for text in texts)
            assert LARGE == [*pool.map(corpus.__getitem__, range(len(LARGE)))]


@native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_processes_read_a_file(path):
    """A process forked while others read goes on reading, and tells its own damage."""
    Corpus(LARGE).save(path)
    code = """if True:
        import os, sys, threading
        from budgeteer import Corpus, CorpusError, pack
        corpus = Corpus.open(sys.argv[1])
        reader = threading.Thread(target=lambda: [corpus[i] for i in range(300)])
        reader.start()
        child = os.fork()
        if not child:
            found = pack("brew greenleaf7", corpus, 300, counter="words").text
            os._exit(0 if found == sys.argv[2] else 1)
        reader.join()
        assert os.waitpid(child, 0)[1] == 0
        assert pack("brew greenleaf7", corpus, 300, counter="words").text == sys.argv[2]
    """
    expected = pack("brew greenleaf7", LARGE, 300, counter="words").text
    subprocess.run([sys.executable, "-c", code, str(path), expected], check=True, timeout=60)


@native
def test_counts_are_kept(path):
    """A file keeps the counts of each encoding that has counted, and packs as before."""
    corpus = Corpus(["green tea", "black tea", "rye"])
    corpus.save(path)
    size = path.stat().st_size
    counters = ("o200k_base", "qwen2", "gemma4")
    packed = [pack("tea", corpus, 5, counter=counter).text for counter in counters]
    corpus.save(path)

    assert path.stat().st_size == size + sum(1 + len(name) + 4 * 3 for name in counters)
    opened = Corpus.open(path)
    again = path.with_name("again")
    opened.save(again)
    assert path.read_bytes() == again.read_bytes()
    assert packed == [pack("tea", opened, 5, counter=counter).text for counter in counters]


@native
@pytest.mark.skipif(os.name == "nt", reason="has no such links and pipes")
def test_saving_to_a_link_or_a_pipe(path):
    """What a link leads to is replaced, and keeps its permissions; a pipe stays one."""
    Corpus(["green tea"]).save(path)
    path.chmod(0o640)
    link, pipe = path.with_name("link"), path.with_name("pipe")
    link.symlink_to(path)
    os.mkfifo(pipe)
    Corpus(["black tea"]).save(link)

    assert link.is_symlink()
    assert ["black tea"] == list(Corpus.open(path))
    assert 0o640 == path.stat().st_mode & 0o777
    with pytest.raises(InvalidArgumentError, match="pipe', a pipe or a device"):
        Corpus(["black tea"]).save(pipe)
    assert pipe.is_fifo()


@native
def test_pickle(path):
    """An opened corpus is pickled by its path, until something is appended."""
    Corpus(["green tea"]).save(path)
    opened = Corpus.open(os.path.relpath(path))

    assert ["green tea"] == list(pickle.loads(pickle.dumps(opened)))
    opened.append(["black tea"])
    with pytest.raises(BudgeteerError, match="cannot be pickled unless"):
        pickle.dumps(opened)


@native
def test_pickle_from_another_folder(path, tmp_path, monkeypatch):
    """A relative path is that of the folder in which the corpus was opened."""
    Corpus(["green tea"]).save(path)
    monkeypatch.chdir(tmp_path)
    opened = Corpus.open(path.name)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir("other")

    assert ["green tea"] == list(pickle.loads(pickle.dumps(opened)))


@native
def test_other_process(path):
    """Another process opens the file; what it says is the same."""
    chunks = [f"green tea number {i}" for i in range(500)]
    Corpus(chunks).save(path)
    code = (
        "import sys; from budgeteer import Corpus, pack;"
        "print(pack('number 77', Corpus.open(sys.argv[1]), 30, counter='words').text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )

    assert pack("number 77", chunks, 30, counter="words").text == done.stdout.rstrip("\n")


def test_the_reference_has_no_files(tmp_path):
    """The reference says that it knows no files."""
    reference = backend_named("reference")
    for function, *args in (
        (reference.open_corpus, str(tmp_path / "x")),
        (reference.save_corpus, None, str(tmp_path / "x"), []),
        (reference.stored_chunk, None, 0),
    ):
        with pytest.raises(BudgeteerError, match="need the native backend"):
            function(*args)
    assert [] == list(Path(tmp_path).iterdir())


CASES = Path(__file__).parents[2] / "cases"


@native
def test_rust_reads_what_is_saved(tmp_path):
    """`tests/cases/python.corpus`, which the tests of Rust read, is what is saved now."""
    metadata = {"kind": "note", "authority": "tool", "priority": 2, "mtime": 1700000000.5}
    metadata |= {"index": 4, "nested": {"\u00e9": [1, True, None], "a": []}}
    mapping = {"content": "Caf\u00e9 \u8336", "title": "Drinks", "id": 12, "score": 1}
    mapping |= {"kind": "task", "source": 'a "b"', "shelf": 3, "metadata": {"page": 3}}
    chunk = Chunk(
        "Black tea is strong.",
        id="b7",
        source="tea.md",
        title="Black",
        score=0.5,
        metadata=metadata,
    )
    Corpus(["Green tea is mild.", chunk, mapping]).save(tmp_path / "corpus")

    assert (CASES / "python.corpus").read_bytes() == (tmp_path / "corpus").read_bytes()


@native
def test_what_rust_saves_is_read(tmp_path):
    """A corpus that a program in Rust saved has its chunks here, and stays as it is."""
    corpus = Corpus.open(CASES / "rust.corpus")

    metadata = {"page": 3, "x": 1e-7, "kind": "note", "authority": "tool", "priority": 2.0}
    metadata |= {"mtime": 1700000000.5, "position": 4.0}
    tea = Chunk(
        "Black tea.", id="b7", source="t\u00e9.md", title="Black", score=0.5, metadata=metadata
    )
    assert ["Green tea is mild.", tea, Chunk("Rye.", title="Bread")] == list(corpus)
    corpus.save(tmp_path / "again")
    assert (CASES / "rust.corpus").read_bytes() == (tmp_path / "again").read_bytes()
