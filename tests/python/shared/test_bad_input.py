"""Bad input: a typed error that names argument and index, or a defined result."""

import re
import time
from collections import deque
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from support import BACKENDS, EXACT, using

from budgeteer import Chunk, InvalidArgumentError, Packer, get_counter, pack

NAN, INF = float("nan"), float("inf")
MAX = 2**63 - 1


def named(value):
    return "None" if value is None else type(value).__name__


NO_INTS = [
    b"3", "3", True, False, 1.0, NAN, INF, [3], Decimal(3), np.float64(1), np.bool_(True), 3j,
    np.array([1, 2]),
]  # fmt: skip
OUT_OF_RANGE = [-1, -(10**40), 2**63, 10**40, 10**5000, np.int64(-1), np.uint64(2**63)]


@pytest.mark.parametrize("option", ["max_tokens", "reserve_tokens", "max_chunks"])
@pytest.mark.parametrize("bad", NO_INTS, ids=repr)
def test_no_int(option, bad):
    """A number of tokens or chunks is an int; bool and float are none."""
    with pytest.raises(
        InvalidArgumentError, match=rf"^{option} must be an int, not {named(bad)}$"
    ):
        Packer(**{"max_tokens": 5, option: bad})


@pytest.mark.parametrize("option", ["max_tokens", "reserve_tokens"])
def test_none_is_no_int(option):
    """None is no number of tokens."""
    with pytest.raises(InvalidArgumentError, match=rf"^{option} must be an int, not None$"):
        Packer(**{"max_tokens": 5, option: None})


@pytest.mark.parametrize("option", ["max_tokens", "reserve_tokens", "max_chunks"])
@pytest.mark.parametrize("bad", OUT_OF_RANGE, ids=lambda bad: f"{int(bad).bit_length()} bits")
def test_int_out_of_range(option, bad):
    """A number of tokens or chunks is from 0 to 2**63 - 1; the message stays short."""
    with pytest.raises(
        InvalidArgumentError, match=rf"^{option} must be from 0 to {MAX}"
    ) as caught:
        Packer(**{"max_tokens": 5, option: bad})

    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("option", ["max_tokens", "reserve_tokens", "max_chunks"])
@pytest.mark.parametrize("good", [0, 3, MAX, np.int64(3), np.uint8(3), np.int64(MAX)], ids=repr)
def test_good_int(backend, option, good):
    """Ints from 0 to 2**63 - 1 pass, those of numpy as well, and come out as int."""
    packer = Packer(**{"max_tokens": 5, option: good})

    assert int is type(getattr(packer, option))
    assert packer.pack("tea", ["tea"]).total_tokens in (0, 1)


@pytest.mark.parametrize(
    "bad", [b"x", True, np.bool_(True), [1.0], 1j, np.array([1.0, 2.0])], ids=repr
)
def test_no_min_score(bad):
    """min_score is a number; bool, bytes and arrays are none. Text is in `test_scope.py`."""
    with pytest.raises(
        InvalidArgumentError, match=rf"^min_score must be a float, not {named(bad)}"
    ):
        Packer(5, min_score=bad)


@pytest.mark.parametrize("bad", [NAN, np.float32("nan"), Decimal("nan")], ids=repr)
def test_min_score_nan(bad):
    """NaN is no score to compare with."""
    with pytest.raises(InvalidArgumentError, match=r"^min_score must be a number, not NaN$"):
        Packer(5, min_score=bad)


@pytest.mark.parametrize("bad", [10**400, -(10**400)], ids=["huge", "negative"])
def test_min_score_beyond_float(bad):
    """An int beyond the range of floats is refused, without its digits."""
    with pytest.raises(InvalidArgumentError, match=r"^min_score is beyond the range of a float$"):
        Packer(5, min_score=bad)


@pytest.mark.parametrize(
    "good",
    [0, -1, 10**40, INF, -INF, -0.0, np.float32(0.5), np.int64(1), Fraction(1, 3)],
    ids=repr,
)
def test_good_min_score(backend, good):
    """Every number but NaN is a min_score, infinities included."""
    packing = pack("tea", ["tea", "rye"], 9, ranking="keyword", min_score=good)

    expected = [i for i, score in enumerate([1.0, 0.0]) if score >= good]
    assert expected == [kept.index for kept in packing.kept]


CHOICES = {"ranking": "keyword", "overflow": "stop", "selection": "coverage"}
CHOICES |= {"order": "input", "template": "tagged"}


@pytest.mark.parametrize("option", CHOICES)
@pytest.mark.parametrize("bad", [None, b"keyword", True, 0, NAN, ["input"]], ids=repr)
def test_no_choice(option, bad):
    """A choice is one of the names there are; another type is named, not quoted."""
    with pytest.raises(
        InvalidArgumentError, match=rf"^{option} must be one of .*, not {named(bad)}"
    ):
        Packer(5, **{option: bad})


@pytest.mark.parametrize(("option", "name"), CHOICES.items())
def test_choice_misspelt(option, name):
    """A near miss is answered by the nearest name."""
    with pytest.raises(InvalidArgumentError, match=rf"^{option} .*; did you mean '{name}'"):
        Packer(5, **{option: name[:-1]})


@pytest.mark.parametrize(
    "bad", [b"exact", True, False, 0, "nearly", "", NAN, np.array(["a", "b"])], ids=repr
)
def test_no_dedupe(bad):
    """Dedupe is "exact", "near" or None."""
    with pytest.raises(
        InvalidArgumentError, match=r"^dedupe must be 'exact', 'near' or None, not"
    ):
        Packer(5, dedupe=bad)


@pytest.mark.parametrize("bad", [None, b"words", True, 4, NAN, ["words"], "wordz"], ids=repr)
def test_no_counter(bad):
    """A counter is a name that there is, or a callable."""
    with pytest.raises(InvalidArgumentError, match=r"^counter must be"):
        Packer(5, counter=bad)


def test_unknown_option():
    """An option that there is not is refused, as Python does it."""
    with pytest.raises(TypeError, match="budget"):
        pack("tea", [], 5, budget=3)


@pytest.mark.parametrize("bad", [None, b"tea", True, 3, NAN, ["tea"]], ids=repr)
def test_no_query(backend, bad):
    """A query is a str."""
    with pytest.raises(InvalidArgumentError, match=rf"^query must be a str, not {named(bad)}$"):
        pack(bad, ["tea"], 5)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "tea",
        b"tea",
        bytearray(b"tea"),
        {"text": "tea"},
        MappingProxyType({"text": "tea"}),
        True,
        3,
        NAN,
        INF,
        Chunk("tea"),
    ],
    ids=repr,
)
def test_no_chunks(backend, bad):
    """Chunks are many: a lone text, mapping, chunk or number is refused."""
    with pytest.raises(
        InvalidArgumentError,
        match=rf"^chunks must be .*, not {named(bad)}(: put it into a list)?$",
    ):
        pack("tea", bad, 5)


@pytest.mark.parametrize("bad", [*NO_INTS, *OUT_OF_RANGE][:-3], ids=lambda bad: f"{bad!r:.9}")
def test_bad_max_tokens_of_a_call(backend, bad):
    """max_tokens of a call is checked as the packer's own is."""
    with pytest.raises(InvalidArgumentError, match=r"^max_tokens must be"):
        Packer(5).pack("tea", ["tea"], max_tokens=bad)


def test_vectors(backend):
    """BM25 takes no vectors."""
    with pytest.raises(InvalidArgumentError, match=r"^vectors must be None .*, not list"):
        Packer(5).pack("tea", ["tea"], vectors=[[1.0]])


BAD_CHUNKS = [
    (None, " must be a str, a mapping .*, not None$"),
    (b"secret", " must be .*, not bytes$"),
    (True, " must be .*, not bool$"),
    (3, " must be .*, not int$"),
    (NAN, " must be .*, not float$"),
    (["secret"], " must be .*, not list$"),
    (SimpleNamespace(body="secret"), " must be .*, not SimpleNamespace$"),
    ({}, " must have a key 'text', 'content' or 'page_content'$"),
    ({"body": "secret"}, " must have a key 'text', 'content' or 'page_content'$"),
    ({"text": None}, ".text must be a str, not None$"),
    ({"text": b"secret"}, ".text must be a str, not bytes$"),
    ({"content": 3}, ".content must be a str, not int$"),
    ({"text": None, "content": "secret"}, ".text must be a str, not None$"),
    ({"text": "secret", "title": 3}, ".title must be a str, not int$"),
    (SimpleNamespace(text=b"secret"), ".text must be a str, not bytes$"),
    (SimpleNamespace(page_content=None), ".page_content must be a str, not None$"),
    (SimpleNamespace(content=["secret"]), ".content must be a str, not list$"),
    (SimpleNamespace(text="secret", title=b"x"), ".title must be a str, not bytes$"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_CHUNKS, ids=lambda item: f"{item!r:.30}")
@pytest.mark.parametrize("index", [0, 1, 7])
def test_bad_chunk(backend, bad, message, index):
    """A chunk that cannot be read is named by index and type; no text is quoted."""
    chunks = ["tea"] * 8
    chunks[index] = bad
    with pytest.raises(InvalidArgumentError, match=rf"^chunks\[{index}\]{message}") as caught:
        pack("tea", chunks, 5)

    assert "secret" not in str(caught.value)


BAD_SCORES = [
    (NAN, "must be a number, not NaN"),
    (np.float32("nan"), "must be a number, not NaN"),
    (10**400, "is beyond the range of a float"),
    (True, "must be a float, not bool"),
    ("secret", "must be a float, not str"),
    (b"1", "must be a float, not bytes"),
    ([1.0], "must be a float, not list"),
    (np.datetime64("2026-11-21", "ns"), "must be a float, not datetime64"),
    (np.timedelta64(1, "s"), "must be a float, not timedelta64"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_SCORES, ids=lambda item: f"{item!r:.20}")
@pytest.mark.parametrize("index", [0, 2])
def test_bad_score(backend, bad, message, index):
    """A score that is no number is named by its index."""
    for make in (dict, SimpleNamespace):
        chunks = [make(text="tea", score=score) for score in (1, None, 0.5)]
        chunks[index] = make(text="tea", score=bad)
        with pytest.raises(InvalidArgumentError, match=rf"^chunks\[{index}\].score {message}$"):
            pack("tea", chunks, 5, ranking="score")


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_a_complex_score(backend):
    """A part of a complex number is no score, though numpy gives one with a mere warning."""
    chunks = [{"text": "tea", "score": np.complex128(1 + 2j)}]
    with pytest.raises(InvalidArgumentError, match=r"score must be a float, not complex128$"):
        pack("tea", chunks, 5, ranking="score")


@pytest.mark.parametrize(("bad", "message"), BAD_SCORES, ids=lambda item: f"{item!r:.20}")
def test_bad_score_of_a_chunk(bad, message):
    """A Chunk refuses a bad score when it is made."""
    with pytest.raises(InvalidArgumentError, match=rf"^score {message}$"):
        Chunk("tea", score=bad)


@pytest.mark.parametrize("field", ["text", "id", "source", "title"])
@pytest.mark.parametrize("bad", [b"tea", 3, True, ["tea"]], ids=repr)
def test_bad_field_of_a_chunk(field, bad):
    """A Chunk refuses a field that is no str when it is made."""
    with pytest.raises(InvalidArgumentError, match=rf"^{field} must be a str, not {named(bad)}$"):
        Chunk(**{"text": "tea", field: bad})


@pytest.mark.parametrize("bad", [3, "mtime", [("mtime", 3)], b""], ids=repr)
def test_metadata_that_is_no_mapping(backend, bad):
    """A Chunk refuses metadata that is no mapping; other chunks have none then."""
    with pytest.raises(
        InvalidArgumentError, match=rf"^metadata must be a mapping, not {named(bad)}"
    ):
        Chunk("tea", metadata=bad)

    chunks = [{"text": "tea", "metadata": bad}, {"text": "rye", "metadata": {"mtime": 1}}]
    for template in ("plain", "tagged"):
        packing = pack("tea", chunks, 99, ranking="recency", template=template)
        assert [1, 0] == [kept.index for kept in packing.kept]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (NAN, "must be a number, not NaN"),
        (np.float32(NAN), "must be a number, not NaN"),
        (10**400, "is beyond the range of a float"),
    ],
    ids=["nan", "nan of numpy", "huge"],
)
def test_bad_mtime(backend, bad, message):
    """An mtime that is no finite order is named by its index."""
    chunks = ["rye", {"text": "tea", "metadata": {"mtime": bad}}]
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[1\].*mtime.*" + message):
        pack("tea", chunks, 9, ranking="recency")


class Raising:
    """An object one of whose fields raises."""

    def __init__(self, raising, error):
        self._raising, self._error = raising, error

    def _get(self, name, value):
        if name == self._raising:
            raise self._error
        return value

    text = property(lambda self: self._get("text", "tea leaves"))
    title = property(lambda self: self._get("title", ""))
    score = property(lambda self: self._get("score", 1.0))
    metadata = property(lambda self: self._get("metadata", {}))
    id = property(lambda self: self._get("id", None))


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("text", {}),
        ("title", {}),
        ("score", {"ranking": "score"}),
        ("metadata", {"ranking": "recency"}),
        ("metadata", {"template": "tagged"}),
        ("id", {"template": "tagged"}),
    ],
)
@pytest.mark.parametrize(
    "error", [KeyError("mine"), KeyboardInterrupt(), OSError(2, "mine")], ids=repr
)
def test_exception_of_a_property(backend, field, options, error):
    """A property's own exception passes unchanged."""
    with pytest.raises(type(error)) as caught:
        pack("tea", ["tea", Raising(field, error)], 99, **options)

    assert error is caught.value


@pytest.mark.parametrize("field", ["title", "metadata"])
def test_no_field_is_read_in_vain(backend, field):
    """A title ranks by words alone: where a score ranks, it is not asked for."""
    packing = pack("tea", ["rye", Raising(field, OSError("mine"))], 99, ranking="score")

    assert [1, 0] == [kept.index for kept in packing.kept]


def test_exception_of_an_iterator(backend):
    """An iterator's own exception passes unchanged."""
    error = OSError("mine")

    def chunks():
        yield "tea"
        raise error

    with pytest.raises(OSError, match="mine") as caught:
        pack("tea", chunks(), 9)

    assert error is caught.value


@pytest.mark.parametrize(
    "chunks",
    [
        ["rye", "tea"],
        ("rye", "tea"),
        deque(["rye", "tea"]),
        {"rye": 1, "tea": 2}.keys(),
        np.array(["rye", "tea"]),
        np.array(["rye", "tea"], dtype=object),
        iter(["rye", "tea"]),
    ],
    ids=lambda chunks: type(chunks).__name__,
)
@pytest.mark.parametrize("name", BACKENDS)
def test_any_iterable(name, chunks):
    """Chunks may be any iterable of chunks."""
    if hasattr(chunks, "__next__"):
        chunks = (chunk for chunk in ["rye", "tea"])
    with using(name):
        assert "tea\n\nrye" == pack("tea", chunks, 9).text


@pytest.mark.parametrize(
    "empty", [[], (), iter(()), {}.values(), np.array([])], ids=lambda it: type(it).__name__
)
def test_no_chunk(backend, empty):
    """No chunks make an empty packing."""
    packing = pack("tea", empty, 5)

    assert ("", 0, [], []) == (
        packing.text,
        packing.total_tokens,
        list(packing.kept),
        list(packing.dropped),
    )
    assert 0 == packing.dropped_total_tokens
    with pytest.raises(InvalidArgumentError, match=r"^index must be"):
        packing.explain(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
def test_a_million_chunks(name):
    """A million chunks are packed in seconds."""
    size = 1_000_000 if name == "native" else 20_000
    chunks = [f"chunk {i} of tea" if i % 1_000 == 0 else "some rye" for i in range(size)]
    with using(name):
        started = time.process_time()
        packing = pack("tea", chunks, 50)
        elapsed = time.process_time() - started

    assert size == len(packing.kept) + packing.dropped_count
    assert [0, 1_000, 2_000] == [kept.index for kept in packing.kept][:3]
    assert elapsed < 10


@pytest.mark.parametrize(
    "odd", ["\x00", "tea\x00", "\ud800", "\udfff\ud800 tea", "\U0010ffff", "\ufeff"]
)
@pytest.mark.parametrize("counter", ["chars_div4", "words", "chars_per_token:1", len, *EXACT])
def test_odd_text(backend, odd, counter):
    """NUL, lone surrogates and the like are characters as any other."""
    chunks = [odd, Chunk(odd + "x", title=odd, id=odd), {"text": "tea", "title": odd}]
    packing = pack(odd, chunks, 99, counter=counter, template="tagged")

    assert {odd, odd + "x", "tea"} == {kept.text for kept in packing.kept}
    assert get_counter(counter).count(packing.text) == packing.total_tokens


def test_odd_text_is_cut(backend):
    """A text of NULs and lone surrogates can be cut."""
    call = {"query": "", "chunks": ["\x00\ud800" * 50], "overflow": "truncate_end"}
    packing = pack(**call, max_tokens=5, counter="chars_div4")

    assert "\x00\ud800" * 7 + " [...]" == packing.text
    for counter in EXACT:
        packing = pack(**call, max_tokens=20, counter=counter)
        assert packing.text.endswith(" [...]")
        assert 15 <= packing.total_tokens <= 20


@pytest.mark.parametrize("overflow", ["skip", "truncate_end"])
def test_chunks_mutated_by_the_counter(backend, overflow):
    """A list that a counter changes meanwhile is packed as it was when pack was called."""
    chunks = ["tea " * 5, "rye " * 50, {"text": "bread"}]
    expected = pack("tea", list(chunks), 60, counter=len, overflow=overflow).to_dict()

    def counter(text):
        chunks.clear()
        return len(text)

    packing = pack("tea", chunks, 60, counter=counter, overflow=overflow)
    assert expected == packing.to_dict()
    objects = {chunk.index: chunk.chunk for chunk in (*packing.kept, *packing.dropped)}
    assert {0: "tea " * 5, 1: "rye " * 50, 2: {"text": "bread"}} == objects


@pytest.mark.parametrize("bad", [None, 3, True])
def test_no_requests(backend, bad):
    """The requests of a batch are many."""
    said = rf"^requests must be an iterable of requests, not {named(bad)}$"
    with pytest.raises(InvalidArgumentError, match=said):
        list(Packer(5).pack_batch(bad))


@pytest.mark.parametrize(
    "bad",
    [None, "ab", b"ab", 3, (), ("tea",), ("tea", [], 5), {}, {"query": "tea"}, {"chunks": []},
     {"query": "tea", "chunks": [], "budget": 3}],
    ids=repr,
)  # fmt: skip
def test_bad_request(backend, bad):
    """A request that is neither a pair nor a mapping of pack's arguments is named."""
    packings = Packer(5).pack_batch([("tea", ["tea"]), bad])

    assert "tea" == next(packings).text
    with pytest.raises(InvalidArgumentError, match=re.escape("requests[1] must ")):
        next(packings)


@pytest.mark.parametrize("bad", ["0", True, 1.0, -1, 2, 2**63, 10**40])
def test_bad_index(backend, bad):
    """An index of explain is an int below the number of chunks."""
    with pytest.raises(InvalidArgumentError, match=r"^index must be"):
        pack("tea", ["tea", "rye"], 9).explain(bad)
