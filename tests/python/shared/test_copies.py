"""Copies in a process have what the original has; what cannot be pickled says so."""

import copy
import pickle

import pytest

from budgeteer import Calibration, Chunk, Corpus, Packer, Template, pack_table
from budgeteer.errors import BudgeteerError
from budgeteer.presets import citations
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy}
CHUNKS = [Chunk(f"Tea {i} is mild.", id=f"c{i}", source="tea.md") for i in range(9)]


@pytest.fixture(params=COPIES.values(), ids=COPIES)
def copied(request):
    """Return what makes a copy."""
    return request.param


OPTIONS = {
    "plain": {},
    "callable": {"counter": len},
    "sticky": {"order": "sticky", "overflow": "truncate_end"},
    "written": {"template": Template(format=lambda chunk: f"- {chunk.text}"), "counter": "words"},
    "sentences": {"units": "sentence"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", [list, Corpus])
@pytest.mark.parametrize("is_read", [False, True])
def test_a_packing(backend, copied, options, kind, is_read):
    """A copy of a packing answers all that the packing answers, and its text is its own."""
    packer, chunks = Packer(24, **options), kind(CHUNKS)
    previous = packer.pack("mild tea", chunks) if "order" in options else None
    packing = packer.pack("tea 3", chunks, previous=previous)
    if is_read:
        _ = packing.to_dict(), packing.dropped_total_tokens
    other = copied(packing)

    assert packing.to_dict() == other.to_dict()
    assert packing.whatif(90).to_dict() == other.whatif(90).to_dict()
    assert packing.budget_curve() == other.budget_curve()
    assert packing.report() == other.report()
    assert packing.dropped_total_tokens == other.dropped_total_tokens
    assert packing.stable_prefix_tokens == other.stable_prefix_tokens
    assert citations(packing) == citations(other)
    assert all(item.chunk is CHUNKS[item.index] for item in [*other.kept, *other.dropped])
    other.text = ""
    assert packing.text


def test_a_copy_is_pickled_as_its_original():
    """A pickle holds no chunks, of a copy neither."""
    packing = Packer(9).pack("tea", CHUNKS)
    other = pickle.loads(pickle.dumps(copy.copy(packing)))

    assert packing.to_dict() == copy.copy(other).to_dict()
    with pytest.raises(BudgeteerError, match="packing that was pickled"):
        copy.deepcopy(other).whatif(9)


def test_a_corpus(backend, copied):
    """A copy of a corpus has its chunks, and neither changes with the other."""
    one = Corpus(CHUNKS)
    one.remove(["c8"])
    two = copied(one)
    one.append([Chunk("Mild tea.", id="c9")])
    one.remove(["c0"])
    two.replace([Chunk("Oolong tea.", id="c1")])
    two.remove(["c2"])
    two.append([Chunk("Oolong.", id="c9"), Chunk("Tea.", id="c10")])

    assert [*CHUNKS[1:8], Chunk("Mild tea.", id="c9")] == [*one]
    assert [CHUNKS[0], Chunk("Oolong tea.", id="c1"), *CHUNKS[3:8]] == [*two][:-2]
    for corpus in (one, two):
        expected = Packer(30).pack("mild oolong", [*corpus])
        assert expected.to_dict() == Packer(30).pack("mild oolong", corpus).to_dict()


def test_a_corpus_of_a_class_of_its_own(copied):
    """What a subclass has besides is copied, too."""

    class Shelf(Corpus):
        pass

    shelf = Shelf(CHUNKS)
    shelf.name = "teas"
    assert ("teas", 9, Shelf) == (copied(shelf).name, len(copied(shelf)), type(copied(shelf)))


@pytest.mark.parametrize(
    "copied",
    [*COPIES.values(), lambda it: pickle.loads(pickle.dumps(it))],
    ids=[*COPIES, "pickle"],
)
def test_a_calibration(copied):
    """A copy corrects alike, and what one learns from then on is not in the other."""
    calibration = Calibration(quantile=0.9)
    for i in range(1, 200):
        calibration.observe(7 * i, 10 * i + 40, model="words")
    calibration.observe(100, 130, model="gpt-4o")
    other = copied(calibration)

    assert repr(calibration) == repr(other)
    for model in ("words", "gpt-4o"):
        assert calibration.correction(model) == other.correction(model)
    before = calibration.correction("gpt-4o")
    other.observe(1_000, 2_000, model="gpt-4o")
    assert before == calibration.correction("gpt-4o") != other.correction("gpt-4o")
    calibration.observe(1_000, 2_000, model="gpt-4o")
    assert calibration.correction("gpt-4o") == other.correction("gpt-4o")


def test_a_table(backend, copied):
    """A table never changes: it is its own copy. A pickle is refused with what to pickle."""
    pyarrow = pytest.importorskip("pyarrow")
    packed = pack_table(pyarrow.table({"query": ["tea"], "chunks": [["Green tea."]]}), 9)

    assert copied(packed) is packed
    with pytest.raises(BudgeteerError, match=r"^a PackedTable cannot be .*pyarrow\.table\(packed"):
        pickle.dumps(packed)
    table = pyarrow.table(packed)
    assert table == pickle.loads(pickle.dumps(table))


def test_a_service(copied):
    """A copy of a service has settings of its own; a pickle is refused with what to do."""
    service = RetrievalService(ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"))
    other = copied(service)
    other.settings = LlmSettings("gpt-4")

    assert ("gpt-4o", "gpt-4") == (service.settings.model, other.settings.model)
    assert "Green tea." == other.retrieve("tea").packing.text
    assert 1 == service.stats().answered
    with pytest.raises(BudgeteerError, match=r"^a RetrievalService cannot be pickled: make it in"):
        pickle.dumps(service)
