"""Chunks in slots: read where they lie, and made without a call for each."""

import copy
import math
import pickle
import sys
from abc import ABCMeta
from collections import UserDict
from dataclasses import FrozenInstanceError, dataclass
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from support import backend_named, compared, using

from budgeteer import Chunk, DroppedChunk, InvalidArgumentError, KeptChunk, Packer, pack
from budgeteer._chunk.chunk import score_keys


class Slots:
    """A class of a caller's with slots, of which some may be unset."""

    __slots__ = ("metadata", "score", "text", "title")

    def __init__(self, **fields):
        for name, value in fields.items():
            setattr(self, name, value)


class Overriding(Slots):
    """A property stands in front of the slot."""

    __slots__ = ()

    @property
    def text(self):
        return "Rye bread, by a property."

    @property
    def score(self):
        return 0.5


class Answering(Slots):
    """What is not set is answered."""

    __slots__ = ()

    def __getattr__(self, name):
        found = {"text": "Rye bread, answered.", "title": "Tea", "score": 3}
        if name not in found:
            raise AttributeError(name)
        return found[name]


class Watching(Slots):
    """Every look-up is its own."""

    __slots__ = ()

    def __getattribute__(self, name):
        return "Green tea, watched." if name == "text" else object.__getattribute__(self, name)


class Shadowing(Slots):
    """Its objects have a dict too, which a slot goes before."""


class Abstract(metaclass=ABCMeta):  # noqa: B024 - only its class matters
    """A class whose class is not type."""

    __slots__ = ("score", "text")


@dataclass(slots=True)
class Plain:
    text: str
    score: object = None


@dataclass
class Other:
    text: str
    score: object = None


class Row(NamedTuple):
    text: str
    score: int


def shadowing():
    """Return an object whose dict says something else than its slot."""
    made = Shadowing(text="Green tea, in a slot.", score=2)
    made.__dict__["text"] = "Nobody sees this."
    return made


def abstract(**fields):
    """Return an object of an abstract class."""
    made = Abstract()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


SHAPES = {
    "slots": Slots(text="Green tea.", title="Drinks", score=1),
    "unset title": Slots(text="Green tea."),
    "title inside": Slots(text="Bread.", title="", metadata={"title": "Tea"}, score=2),
    "property": Overriding(title="Bread"),
    "getattr": Answering(metadata=None),
    "getattribute": Watching(text="Bread.", score=None),
    "dict": shadowing(),
    "abstract": abstract(text="Tea and bread.", score=-1.5),
    "dataclass": Plain("Green tea", 0.25),
    "dataclass with a dict": Other("Black tea", 7),
    "Chunk": Chunk("Tea leaves.", title="Tea", score=2, metadata={"title": "Bread"}),
    "namespace": SimpleNamespace(text="Tea time.", score=0.125),
    "namespace without": SimpleNamespace(text="Tea time."),
    "mapping": UserDict(text="Tea in a mapping.", score=0.75),
    "dict itself": {"text": "Tea in a dict.", "score": 1e300},
    "text": "Tea as a text.",
    "tuple": Row("Tea in a row.", 4),
}

BATCH = [*SHAPES.values()] * 2


@pytest.mark.parametrize("ranking", ["lexical", "keyword", "score", "input"])
def test_every_shape_is_read_alike(backend, ranking):
    """A slot is a field like any other: what is read is what the look-up of Python finds."""
    packing = Packer(10_000, ranking=ranking, dedupe=None).pack("green tea", BATCH)

    texts = {i: getattr(chunk, "text", None) or str(chunk) for i, chunk in enumerate(BATCH)}
    texts |= {
        i: chunk["text"] for i, chunk in enumerate(BATCH) if isinstance(chunk, dict | UserDict)
    }
    assert {kept.index: kept.text for kept in packing.kept} == texts


@compared
@pytest.mark.parametrize("ranking", ["lexical", "keyword", "score"])
def test_backends_agree_on_every_shape(ranking):
    """Titles and scores of every shape are the same on both backends."""
    found = []
    for name in ("native", "reference"):
        with using(name):
            found.append(Packer(40, ranking=ranking).pack("green tea drinks", BATCH).to_dict())

    assert found[0] == found[1]


def test_an_unset_slot_is_no_text(backend):
    """A slot that is not set is as good as none."""
    with pytest.raises(InvalidArgumentError, match=r"chunks\[1\] must be a str"):
        pack("tea", [Slots(text="tea"), Slots(title="tea")], 9)
    with pytest.raises(InvalidArgumentError, match=r"chunks\[0\] must be a str"):
        pack("tea", [Slots(title="tea")], 9)
    with pytest.raises(InvalidArgumentError, match=r"chunks\[1\]\.text must be a str"):
        pack("tea", [Slots(text="tea"), Slots(text=7)], 9)


SCORES = [None, 1, -0.0, 2**53, 1.5, float("inf"), float("-inf"), 2**60]


def test_scores_are_read_as_they_are(backend):
    """Whatever a chunk is, its score is the float of its own; NaN stands for none."""
    for made in (Plain, Other, lambda text, score: {"text": text, "score": score}):
        keys = memoryview(score_keys([made("tea", score) for score in SCORES])).cast("d")
        expected = [score if score is None else float(score) for score in SCORES]
        assert expected == [None if math.isnan(key) else key for key in keys]


@pytest.mark.parametrize("score", [float("nan"), "1", True, object()])
def test_a_bad_score_is_refused(backend, score):
    """The first chunk whose score cannot be read is named, in the order of the chunks."""

    class Failing:
        text = "tea"

        @property
        def score(self):
            raise RuntimeError("not now")

    packer = Packer(9, ranking="score")
    with pytest.raises(InvalidArgumentError, match=r"chunks\[1\]\.score must be"):
        packer.pack("tea", [Plain("tea", 1), Other("tea", score), Failing()])
    with pytest.raises(RuntimeError, match="not now"):
        packer.pack("tea", [Plain("tea", 1), Failing(), Other("tea", score)])


def python_calls(work):
    """Return how many functions are called, of Python's and of C's."""
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


MANY = [Chunk(f"Tea number {i}.", score=i / 8) for i in range(2_000)]


def test_nothing_is_called_for_each_chunk(native):
    """Scores are read, and kept and dropped chunks made, without a call for each of them."""
    packer = Packer(5_000, ranking="score", counter="words")
    packing = packer.pack("tea", MANY)

    assert python_calls(lambda: packer.pack("tea", MANY)) < 300
    assert python_calls(lambda: [*packing.kept]) < 100
    assert python_calls(lambda: [*packing.dropped]) < 100
    assert len(packing.kept) > 1_000
    assert packing.dropped_count > 300


@pytest.mark.parametrize("template", ["plain", "xml", "markdown"])
@pytest.mark.parametrize("units", ["chunk", "sentence"])
def test_what_is_made_at_once_is_what_is_made_one_by_one(backend, template, units):
    """Reading all, one, a slice or a copy gives equal objects, which are like any others."""
    chunks = [Chunk(f"Tea <{i}> & more. Bread {i}.", score=None) for i in range(40)]
    packer = Packer(150, template=template, units=units, overflow="truncate_end")
    packing = packer.pack("tea 3", [*chunks, chunks[3], ""])
    for items, kind in ((packing.kept, KeptChunk), (packing.dropped, DroppedChunk)):
        listed = [*items]
        assert listed == [items[i] for i in range(len(items))] == [*items[:]]
        assert listed[-1] == items[-1]
        assert repr(listed[0]) == repr(items[0])
        for item in listed:
            assert type(item) is kind
            fields = [getattr(item, name) for name in kind.__slots__]
            assert item == kind(*fields)
            assert item == copy.copy(item) == pickle.loads(pickle.dumps(item))
            assert hash(item) == hash(kind(*fields))
        with pytest.raises(FrozenInstanceError):
            listed[0].index = 1
        with pytest.raises(IndexError):
            items[len(items)]
    again = pickle.loads(pickle.dumps(packing))
    assert [kept.text for kept in again.kept] == [kept.text for kept in packing.kept]
    assert [dropped.reason for dropped in again.dropped] == [
        dropped.reason for dropped in packing.dropped
    ]


@compared
def test_a_class_without_slots_is_refused():
    """The backend makes objects of classes with slots alone."""
    with pytest.raises((TypeError, AttributeError)):
        backend_named("native").scored(Other, [Other("tea")], [1.0])
