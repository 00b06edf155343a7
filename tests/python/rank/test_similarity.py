"""Vectors and cosines: what is taken, what is refused, and that both backends agree."""

import array
import math
import pickle
import random
import re
import struct
import subprocess
import sys
from collections import deque
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, backend_named, compared, outcome, using

from budgeteer import InvalidArgumentError, Packer, ranking

CHUNKS = ["Rye bread.", "Green tea.", "Coffee."]
WANTED = np.array([1, 0, 0], dtype=np.float32)
FOUND = np.array([[0, 2, 0], [3, 4, 0], [5, 0, 0]], dtype=np.float32)
COSINES = [0.0, 0.6, 1.0]

numbers = (
    st.floats(width=32, allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.401298464324817e-45, -3.4028234663852886e38])
    | st.floats(-1, 1, width=32)
)


@st.composite
def vectors(draw):
    """Draw a query's vector and those of some chunks, of any size."""
    size = draw(st.integers(1, 40))
    row = st.lists(numbers, min_size=size, max_size=size)
    rows = draw(st.lists(row, max_size=10))
    wanted = draw(row | st.sampled_from(rows) if rows else row)
    found = np.array(rows, dtype=np.float32).reshape(-1, size)
    return np.array(wanted, np.float32), found


def by_hand(left, right):
    """The sum of products as the design has it, number by number."""
    lanes = [0.0] * 8
    for i, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        lanes[i % 8] += a * b
    a, b, c, d, e, f, g, h = lanes
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


def cosine(left, right):
    norms = math.sqrt(by_hand(left, left) * by_hand(right, right))
    return max(-1.0, min(1.0, by_hand(left, right) / norms)) if norms else 0.0


@pytest.mark.parametrize("name", BACKENDS)
@given(vectors())
def test_scores(name, pair):
    """Cosines are those of the formula to the bit: float64, from -1 to 1."""
    wanted, found = pair
    with using(name):
        scores = ranking.cosine_scores(wanted, found)

    assert [cosine(wanted, row) for row in found] == scores.tolist()
    assert (np.float64, (len(found),)) == (scores.dtype, scores.shape)
    assert ((scores >= -1) & (scores <= 1)).all()


@compared
@pytest.mark.parametrize("size", [1, 7, 8, 9, 24, 100, 384, 1536])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_backends_agree(size, count):
    """Both backends give the same to the bit for vectors of any size and number."""
    generator = np.random.default_rng(size * 100 + count)
    wanted = generator.standard_normal(size).astype(np.float32)
    found = generator.standard_normal((count, size)).astype(np.float32)
    native, reference = (
        bytes(backend_named(name).cosine_scores(wanted, found)) for name in ("native", "reference")
    )

    assert native == reference
    exact = found.astype(np.float64) @ wanted / np.linalg.norm(wanted)
    expected = exact / np.linalg.norm(found.astype(np.float64), axis=1)
    assert np.allclose(np.frombuffer(native), expected, rtol=1e-6, atol=1e-7)


def test_extremes(backend):
    """The largest and the smallest numbers neither overflow nor vanish; zeros score 0."""
    largest, smallest = np.finfo(np.float32).max, np.float32(1e-45)
    found = np.array([[largest] * 2, [-largest] * 2, [smallest] * 2, [0, -0.0]], np.float32)

    assert [1, -1, 1, 0] == ranking.cosine_scores(np.full(2, largest), found).tolist()
    assert [1, -1, 1, 0] == ranking.cosine_scores(np.full(2, smallest), found).tolist()
    assert [0, 0, 0, 0] == ranking.cosine_scores(np.zeros(2, np.float32), found).tolist()


def test_never_beyond_one(backend):
    """Parallel vectors score at most 1, however the sums were rounded."""
    generator = random.Random(7)
    for _ in range(200):
        size = generator.randrange(1, 20)
        row = np.array([generator.uniform(-1, 1) for _ in range(size)], np.float32)
        factors = np.array([generator.uniform(-9, 9) for _ in range(4)], np.float32)
        scores = ranking.cosine_scores(row, factors[:, None] * row)
        assert np.abs(scores).max() <= 1


def shaped(code, numbers, shape):
    """Return a read-only buffer of no library's type."""
    data = struct.pack(f"{len(numbers)}{code}", *numbers)
    return memoryview(data).cast(code, shape)


KINDS = {
    "float32": FOUND,
    "float64": FOUND.astype(np.float64),
    "float16": FOUND.astype(np.float16),
    "big-endian": FOUND.astype(">f4"),
    "Fortran": np.asfortranarray(FOUND),
    "strided": np.repeat(np.repeat(FOUND, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": FOUND[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": np.frombuffer(b"x" + FOUND.tobytes(), np.uint8)[1:].view("<f4").reshape(3, 3),
    "memoryview": shaped("f", FOUND.ravel().tolist(), (3, 3)),
    "memoryview of float64": shaped("d", FOUND.ravel().tolist(), (3, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(backend, kind):
    """Whatever holds the numbers, contiguous or not, the scores are the same."""
    found = KINDS[kind]
    if kind == "unaligned":
        assert not found.flags.aligned

    assert COSINES == ranking.cosine_scores(WANTED, found).tolist()
    packing = Packer(99, ranking="embedding").pack("", CHUNKS, vectors=(WANTED, found))
    assert [2, 1, 0] == [kept.index for kept in packing.kept]
    assert [1.0, 0.6, 0.0] == [kept.score for kept in packing.kept]


@pytest.mark.parametrize(
    "wanted",
    [
        [1, 0, 0],
        (1.0, 0, np.float32(0)),
        array.array("f", [1, 0, 0]),
        array.array("d", [1, 0, 0]),
        WANTED[None, :],
        memoryview(WANTED),
        np.array([9, 1, 8, 0, 7, 0], np.float32)[1::2],
    ],
    ids=lambda it: type(it).__name__,
)
def test_query_vectors(backend, wanted):
    """The query's vector may be a list of numbers, and an array of one row."""
    assert COSINES == ranking.cosine_scores(wanted, FOUND).tolist()


def test_arrow(backend):
    """Fixed-size lists of Arrow are vectors, sliced or in pieces; nulls are refused."""
    arrow = pytest.importorskip("pyarrow")
    kind = arrow.list_(arrow.float32(), 3)
    found = arrow.array(FOUND.tolist(), kind)

    assert COSINES == ranking.cosine_scores(WANTED, found).tolist()
    assert COSINES[1:] == ranking.cosine_scores(WANTED, found[1:]).tolist()
    pieces = arrow.chunked_array([found[:1], found[1:]])
    assert COSINES == ranking.cosine_scores(WANTED, pieces).tolist()
    wide = arrow.array(FOUND.tolist(), arrow.list_(arrow.float64(), 3))
    assert COSINES == ranking.cosine_scores(WANTED, wide).tolist()
    assert [] == ranking.cosine_scores(WANTED, found[:0]).tolist()
    wanted = arrow.array(WANTED.tolist(), arrow.float32())
    assert COSINES == ranking.cosine_scores(wanted, found).tolist()
    for bad in ([[0, 2, 0], None], [[0, 2, 0], [1, None, 1]]):
        with pytest.raises(InvalidArgumentError, match=r"^vectors must have no nulls, but has 1$"):
            ranking.cosine_scores(WANTED, arrow.array(bad, kind))


@pytest.mark.parametrize("item", ["a", ["a"], True])
def test_arrow_without_numbers(backend, item):
    """Fixed-size lists of anything but numbers are refused with their type, not Arrow's words."""
    arrow = pytest.importorskip("pyarrow")
    held = arrow.infer_type([item])
    bad = arrow.array([[item] * 3], arrow.list_(held, 3))
    expected = re.escape(f"and FixedSizeListArray of {bad.type} cannot be read as one")
    with pytest.raises(InvalidArgumentError, match=f"^{AN_ARRAY}, {expected}$"):
        ranking.cosine_scores(WANTED, bad)


class Arrow:
    """What pyarrow's FixedSizeListArray looks like, as far as it is read."""

    type = SimpleNamespace(list_size=3)
    null_count = 0

    def __len__(self):
        return 3

    def flatten(self):
        return self

    def to_numpy(self):
        return FOUND.ravel()


def test_looks_like_arrow(backend):
    """An array with the methods of Arrow's is read by them, without pyarrow."""
    assert COSINES == ranking.cosine_scores(WANTED, Arrow()).tolist()


AN_ARRAY = "vectors must be an array of float16, float32 or float64"
A_TABLE = r"vectors must be an array of float32 of the shape \(n, d\)"
CONVERT = "; convert its numbers to float32"
A_QUERY = AN_ARRAY.replace("vectors", "query_vector")
BAD_VECTORS = [
    (None, AN_ARRAY + ", not None"),
    ("text", AN_ARRAY + ", not str"),
    (b"1234", AN_ARRAY + ", not bytes"),
    ({}, AN_ARRAY + ", not dict"),
    (iter([1.0]), AN_ARRAY + ", not list_iterator"),
    (np.array([["a"]]), AN_ARRAY + ", not ndarray of str32"),
    (FOUND.astype(object), AN_ARRAY + ", not ndarray of object"),
    (np.zeros(3, [("a", "f4"), ("b", "f4")]), AN_ARRAY + ", not ndarray of void64"),
    (deque([[1.0, 2.0], [3.0]]), AN_ARRAY + ", and deque cannot be read as one"),
    (FOUND.tolist(), A_TABLE + r", not list; numpy.asarray\(..., dtype='float32'\) makes one"),
    (tuple(FOUND), A_TABLE + r", not tuple; .*"),
    (FOUND.astype(np.int8), AN_ARRAY + ", not ndarray of int8" + CONVERT),
    (FOUND > 1, AN_ARRAY + ", not ndarray of bool" + CONVERT),
    (array.array("i", [1, 2, 3]), AN_ARRAY + ", not array of int32" + CONVERT),
    (FOUND.astype(np.complex64), AN_ARRAY + ", not ndarray of complex64"),
    (1.5, r"vectors must have the shape \(n, d\), not \(\)"),
    (FOUND.ravel(), r"vectors must have the shape \(n, d\), not \(9,\)"),
    (FOUND[None], r"vectors must have the shape \(n, d\), not \(1, 3, 3\)"),
    (FOUND[:, :0], r"vectors must have the shape \(n, d\), not \(3, 0\)"),
    (FOUND[:, :2], "vectors must have as many dimensions as query_vector, 3, not 2"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_VECTORS)
def test_bad_vectors(backend, bad, message):
    """What is no array of float32 of the right shape is refused: what is wrong is named."""
    with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
        ranking.cosine_scores(WANTED, bad)
    if bad is not None:
        message = message.replace("vectors", r"vectors\[1\]")
        message = message.replace("query_vector", r"vectors\[0\]")
        with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
            Packer(9, ranking="embedding").pack("tea", CHUNKS, vectors=(WANTED, bad))


BAD_QUERIES = [
    (None, A_QUERY + ", not None"),
    ("abc", A_QUERY + ", not str"),
    (["1", "2", "3"], "query_vector must hold numbers alone"),
    ([[1], [2], [3]], "query_vector must hold numbers alone"),
    ([1, None, 0], "query_vector must hold numbers alone"),
    ([], r"query_vector must have the shape \(d,\), not \(0,\)"),
    (FOUND, r"query_vector must have the shape \(d,\), not \(3, 3\)"),
    (WANTED.astype(np.int64), A_QUERY + ", not ndarray of int64" + CONVERT),
    ([Decimal("sNaN"), 0, 0], "query_vector must hold numbers alone"),
    ([10**400, 0, 0], "query_vector must hold finite float32 alone, and a number is beyond .*"),
    ([1, math.nan, 0], r"query_vector\[1\] must be a finite float32, not nan"),
    ([1, 0, -1e39], r"query_vector\[2\] must be a finite float32, not -inf"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_QUERIES)
def test_bad_query_vectors(backend, bad, message):
    """A query's vector that is none is refused likewise."""
    with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
        ranking.cosine_scores(bad, FOUND)
    with pytest.raises(
        InvalidArgumentError, match=message.replace("query_vector", r"^vectors\[0\]")
    ):
        Packer(9, ranking="embedding").pack("tea", CHUNKS, vectors=(bad, FOUND))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 1), (8, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_not_finite(backend, bad, place, dtype):
    """The first number that is not finite is named by row and column."""
    found = np.ones((9, 17), dtype)
    found[place] = found[8, 16] = bad
    at = ", ".join(map(str, place))
    with pytest.raises(
        InvalidArgumentError, match=rf"^vectors\[{at}\] must be a finite float32, not {bad!r}$"
    ):
        ranking.cosine_scores(np.ones(17, dtype), found)


def test_beyond_float32(backend):
    """A float64 that float32 cannot hold is refused, without a warning of numpy's."""
    with pytest.raises(InvalidArgumentError, match=r"^vectors\[0, 1\] must be a finite float32"):
        ranking.cosine_scores([1, 1], np.array([[0, 1e300]]))


def test_number_of_vectors(backend):
    """There must be as many vectors as chunks."""
    packer = Packer(9, ranking="embedding")
    for count in (0, 2, 4):
        found = np.ones((count, 3), np.float32)
        expected = rf"^vectors\[1\] must have a row for each of 3 chunks, not {count}$"
        with pytest.raises(InvalidArgumentError, match=expected):
            packer.pack("tea", CHUNKS, vectors=(WANTED, found))
    assert "" == packer.pack("tea", [], vectors=(WANTED, FOUND[:0])).text


@pytest.mark.parametrize("given", [None, FOUND, WANTED, "ab", 3, [WANTED], (WANTED, FOUND, FOUND)])
def test_no_pair(backend, given):
    """Without an embedder vectors are a pair."""
    kind = "None" if given is None else type(given).__name__
    expected = rf"^vectors must be a pair, .*, not {kind}; ranking=Embedding\(embedder\) or "
    with pytest.raises(InvalidArgumentError, match=expected):
        Packer(9, ranking="embedding").pack("tea", CHUNKS, vectors=given)


@pytest.mark.parametrize("name", ["bm25", "keyword", "recency", "input", "score"])
def test_no_vectors_are_taken(backend, name):
    """Rankings that compare no vectors refuse them."""
    message = f"^vectors must be None under ranking='{name}', not tuple$"
    with pytest.raises(InvalidArgumentError, match=message):
        Packer(9, ranking=name).pack("tea", CHUNKS, vectors=(WANTED, FOUND))


def test_pack(backend):
    """Chunks go by their cosine, ties by input order; below min_score they are out of scope."""
    found = np.array([[1, 0], [0, 1], [1, 0], [-1, 0], [0, 0]], np.float32)
    texts = ["a", "b", "c", "d", "e"]
    packer = Packer(99, ranking="embedding", min_score=0)
    packing = packer.pack("", texts, vectors=([2, 0], found))

    assert [(0, 1.0), (2, 1.0), (1, 0.0), (4, 0.0)] == [(k.index, k.score) for k in packing.kept]
    assert [(3, -1.0, "out_of_scope")] == [(d.index, d.score, d.reason) for d in packing.dropped]
    assert packing.fallback is None
    assert packing.explain(3).startswith("Chunk 3 (score -1.00) was dropped")


def test_pack_batch(backend):
    """Each request has vectors of its own."""
    requests = [
        {"query": "", "chunks": ["a", "b"], "vectors": (WANTED, FOUND[:2])},
        {"query": "", "chunks": ["a", "b", "c"], "vectors": (-WANTED, FOUND), "max_tokens": 1},
    ]
    packings = Packer(9, ranking="embedding").pack_batch(requests)

    assert ["b\n\na", "a"] == [packing.text for packing in packings]


def test_the_caller_may_write_afterwards(backend):
    """A packing keeps nothing of the vectors."""
    found = FOUND.copy()
    packing = Packer(99, ranking="embedding").pack("", CHUNKS, vectors=(WANTED, found))
    found[:] = math.nan

    assert [1.0, 0.6, 0.0] == [kept.score for kept in packing.kept]
    assert [1.0, 0.6, 0.0] == [kept.score for kept in pickle.loads(pickle.dumps(packing)).kept]


@pytest.mark.parametrize("bad", [{"text": "b", "title": 3}, {"text": 3}, 3])
def test_bad_chunks(backend, bad):
    """A title is not read where nothing needs it; a chunk without text is refused by its index."""
    packer = Packer(99, ranking="embedding")
    if isinstance(bad, dict) and bad["text"] == "b":
        assert "b\n\na" == packer.pack("", ["a", bad], vectors=(WANTED, FOUND[:2])).text
        return
    with pytest.raises(InvalidArgumentError, match=r"^chunks\[1\]"):
        packer.pack("", ["a", bad], vectors=(WANTED, FOUND[:2]))


@compared
@given(vectors(), st.integers(0, 20), st.none() | st.floats(-1, 1))
def test_packings_agree(pair, max_tokens, min_score):
    """Both backends pack the same by any vectors."""
    wanted, found = pair
    packer = Packer(max_tokens, ranking="embedding", min_score=min_score, counter="words")
    chunks = [f"{i} tea" for i in range(len(found))]
    results = []
    for name in BACKENDS:
        with using(name):
            packing = outcome(packer.pack, "tea", chunks, vectors=(wanted, found))
            results.append(packing.to_dict())

    assert results[0] == results[1]


@compared
def test_large():
    """More vectors than are read in one go are scored all, and the first bad one is named."""
    found = np.zeros((5_000, 1_024), np.float32)
    found[:, 0] = np.arange(5_000) % 3 - 1
    wanted = np.eye(1, 1_024, dtype=np.float32)

    assert [-1, 0, 1] * 3 == ranking.cosine_scores(wanted, found).tolist()[:9]
    assert (found[:, 0] == ranking.cosine_scores(wanted, found)).all()
    found[4_321, 1_000] = math.nan
    with pytest.raises(InvalidArgumentError, match=r"^vectors\[4321, 1000\]"):
        ranking.cosine_scores(wanted, found)


def test_numpy_only_for_arrays():
    """An embedding is ranked without a network library; other rankings load no numpy."""
    code = (
        "import sys, budgeteer\n"
        "from budgeteer.ranking import Hybrid\n"
        "budgeteer.Packer(9, ranking=Hybrid({'bm25': 1})).pack('tea', ['tea'])\n"
        "assert 'numpy' not in sys.modules\n"
        "import array\n"
        "vectors = memoryview(bytes(8)).cast('f', (1, 2))\n"
        "budgeteer.Packer(9, ranking='embedding').pack('', ['tea'], vectors=([1, 2], vectors))\n"
        "assert 'httpx' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("", 0) == (done.stderr, done.returncode)
