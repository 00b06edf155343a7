"""What changed between two packings."""

import json
import pickle
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgeteer import (
    Chunk,
    ChunkChange,
    FigureChange,
    InvalidArgumentError,
    Packer,
    Template,
    compare,
    pack,
)

CHUNKS = ["Green tea.", "Rye bread.", "Black tea.", "Green tea."]
NAMED = [{"text": text, "id": f"c{i}", "title": text[:5]} for i, text in enumerate(CHUNKS)]


def test_the_same(backend):
    """A packing is the same as itself, as another of the same call, and as its document."""
    one, two = (pack("tea", CHUNKS, 8) for _ in range(2))

    for a, b in ((one, one), (one, two), (one, two.to_dict()), (one.to_dict(), two)):
        found = compare(a, b)
        assert found.is_same
        assert ((), (), False) == (found.figures, found.chunks, found.is_reordered)
        assert "Nothing changed." == found.explain()


def test_another_budget(backend):
    """The budget, what follows from it, and each chunk that is treated differently."""
    found = compare(pack("tea", CHUNKS, 4), pack("tea", CHUNKS, 8))

    assert not found.is_same
    assert "index" == found.matched_by
    assert (
        FigureChange("budget", 4, 8),
        FigureChange("tokens", 3, 6),
        FigureChange("kept", 1, 2),
        FigureChange("dropped", 3, 2),
    ) == found.figures
    assert (ChunkChange(2, "", "budget", "kept", None, 3),) == found.chunks
    assert "Chunk 2: dropped (budget) -> kept with 3 tokens" in found.explain()


def test_other_options(backend):
    """Counter, ranking and question are told where both packings know them."""
    one = Packer(90, ranking="input").pack("tea", CHUNKS)
    two = Packer(90, ranking="bm25", counter="words", dedupe=None).pack("rye", CHUNKS)
    found = compare(one, two)

    named = {one.name: (one.before, one.after) for one in found.figures}
    assert ("tea", "rye") == named["question"]
    assert ("input", "bm25") == named["ranking"]
    assert ("o200k_base", "words") == named["counter"]
    assert ("exact", "an estimate") == named["count"]
    assert "duplicate" in {chunk.before for chunk in found.chunks}
    assert found.is_reordered
    known = {one.name for one in compare(one, pickle.loads(pickle.dumps(two))).figures}
    assert {"question", "ranking", "counter"}.isdisjoint(known)


def test_ids(backend):
    """Chunks with ids of their own are matched by them, wherever they stand."""
    found = compare(pack("tea", NAMED, 40), pack("tea", NAMED[::-1][1:], 40))

    assert "id" == found.matched_by
    changed = {chunk.key: (chunk.before, chunk.after, chunk.name) for chunk in found.chunks}
    assert {"c3": ("duplicate", None, "c3 \u00b7 Green")} == changed
    assert "Chunk c3 \u00b7 Green: dropped (duplicate) -> not there" in found.explain()
    twice = [*NAMED, NAMED[0]]
    assert "index" == compare(pack("tea", NAMED, 9), pack("tea", twice, 9)).matched_by


def test_a_cut(backend):
    """A chunk that is cut to another size is another one."""
    chunks = ["Tea is green or black, and sometimes white or yellow."]
    one, two = (Packer(n, overflow="truncate_end").pack("tea", chunks) for n in (6, 8))
    (chunk,) = compare(one, two).chunks

    assert ("cut", "cut") == (chunk.before, chunk.after)
    assert (one.kept[0].token_count, two.kept[0].token_count) == (
        chunk.tokens_before,
        chunk.tokens_after,
    )


def test_only_the_text(backend):
    """Another template of the same size changes the text alone."""
    one, two = (
        Packer(40, template=Template(format=f"{mark} {{text}}"), counter="words").pack(
            "tea", CHUNKS[:2]
        )
        for mark in ("-", "*")
    )

    assert "Only the text changed." == compare(one, two).explain()
    assert "Only the text changed." in compare(one, two).to_html()


@given(
    st.lists(st.sampled_from([*CHUNKS, "", "Rye.", "Tea and rye bread."]), max_size=8),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_every_change_is_there(chunks, small, large):
    """A chunk is among the changes if its outcome differs, and only then, however it is given."""
    one, two = (Packer(n, overflow="truncate_end").pack("tea", chunks) for n in (small, large))
    found = compare(one, two)

    def outcomes(packing):
        kept = {
            item.index: ("cut" if item.was_cut else "kept", item.token_count)
            for item in packing.kept
        }
        return kept | {item.index: (item.reason, None) for item in packing.dropped}

    before, after = outcomes(one), outcomes(two)
    assert {i for i in before if before[i] != after[i]} == {chunk.key for chunk in found.chunks}
    assert found.is_same == (one.to_dict() == two.to_dict()) or before == after
    documents = compare(
        json.loads(json.dumps(one.to_dict())), json.loads(json.dumps(two.to_dict()))
    )
    assert documents.chunks == found.chunks
    assert documents == compare(pickle.loads(pickle.dumps(one)), two.to_dict())


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("tea", {}, "before must be a Packing or what Packing.to_dict returns, not str"),
        ({}, {}, "before must be what Packing.to_dict returns: it has no 'kept'"),
        (
            pack("", [], 1, counter="words"),
            {"kept": [{}]},
            r"after must be what Packing.to_dict returns: kept\[0\] has no 'index'$",
        ),
        (
            pack("", [], 1, counter="words"),
            {"kept": 3},
            "after must be what Packing.to_dict returns: kept must be a sequence, not int$",
        ),
        (
            {
                **pack("tea", ["tea"], 0, counter="words").to_dict(),
                "dropped": [],
                "dropped_count": 1,
            },
            {},
            "before lists 0 of 1 dropped chunks: write it without --dropped",
        ),
    ],
)
def test_bad_input(before, after, says):
    """An error names the argument and what is wrong with it."""
    with pytest.raises(InvalidArgumentError, match=says):
        compare(before, after)


DOCUMENT = {
    **pack("tea", CHUNKS, 3, counter="words").to_dict(),
    "text": "Green tea.",
}
WRONG = {
    "an id": ("kept", 0, "id", [1], "kept[0].id must be a str or a number of at most"),
    "a yes for an id": ("dropped", 1, "id", True, "dropped[1].id must be a str or a number"),
    "a long id": ("kept", 0, "id", 2**999, "at most 128 bits, not an int of 1000 bits"),
    "a source": ("kept", 0, "source", 3, "kept[0].source must be a str, not int"),
    "a title": ("dropped", 0, "title", ["SECRET"], "dropped[0].title must be a str, not list"),
    "tokens": ("kept", 0, "token_count", "7", "kept[0].token_count must be an int, not str"),
    "too few": ("kept", 0, "token_count", -1, "kept[0].token_count must be from 0 to"),
    "a cut": ("kept", 0, "was_cut", "no", "kept[0].was_cut must be a bool, not str"),
    "a reason": ("dropped", 0, "reason", 5, "dropped[0].reason must be a str, not int"),
    "a text": ("dropped", 0, "reason", "SECRET", "must be one of 'out_of_scope', 'empty',"),
    "an index": ("dropped", 0, "index", None, "dropped[0].index must be an int, not None"),
    "twice": ("dropped", 2, "index", 0, "dropped[2].index must not be that of kept[0], 0"),
}
WRONG_FIGURES = {
    "text": ((None, ["SECRET"]), "text must be a str, not "),
    "is_exact": (("no", 1), "is_exact must be a bool, not "),
    "kept": (({}, "SECRET", None, {1}), "kept must be a sequence, not "),
    "dropped": (({"SECRET": 1}, 3, [3]), "dropped"),
    "budget_tokens": ((None, 1.5, [1], True, -1), "budget_tokens must be "),
    "total_tokens": ((None, "1", -1, 2**64), "total_tokens must be "),
    "dropped_count": (("1", None, -1, 2), "dropped_count must be "),
}


def refused(document):
    """Return why both sides refuse a document."""
    said = []
    for sides in ((document, DOCUMENT), (DOCUMENT, document)):
        with pytest.raises(InvalidArgumentError) as caught:
            compare(*sides)
        said.append(str(caught.value).partition(" ")[2])
    assert said[0] == said[1]
    assert "SECRET" not in said[0]
    return said[0]


@pytest.mark.parametrize(("part", "place", "key", "value", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_item(part, place, key, value, says):
    """A field of a chunk that is none is named with its place, and never quoted."""
    items = [dict(item) for item in DOCUMENT[part]]
    items[place][key] = value

    said = refused({**DOCUMENT, part: items})
    assert said.startswith("must be what Packing.to_dict returns: ")
    assert says in said


@pytest.mark.parametrize("key", WRONG_FIGURES)
def test_a_wrong_figure(key):
    """So is a figure, and one that is missing."""
    values, says = WRONG_FIGURES[key]
    for value in values:
        assert f"must be what Packing.to_dict returns: {says}" in refused({**DOCUMENT, key: value})
    if key != "dropped_count":
        lacking = {name: value for name, value in DOCUMENT.items() if name != key}
        assert f"must be what Packing.to_dict returns: it has no {key!r}" == refused(lacking)


def test_numbers_are_ids():
    """An id is the same chunk's in a packing and in its document, be it a text or a number."""
    chunks = [Chunk(text, metadata={"id": i + 0.5 * (i > 1)}) for i, text in enumerate(CHUNKS)]
    packing = pack("tea", chunks, 40)
    document = packing.to_dict()
    for item in [*document["kept"], *document["dropped"]]:
        item["id"] = chunks[item["index"]].metadata["id"]

    found = compare(packing, document)
    assert found.is_same
    assert "id" == found.matched_by


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (
            [{"text": f"tea {i}", "source": "chapter-12.md"} for i in range(4)],
            [f"{i} (chapter-12.md)" for i in range(4)],
        ),
        (
            [{"text": f"tea {i}", "id": f"{i}", "source": f"s{i}.md"} for i in range(2)],
            ["0 \u00b7 s0.md", "1 \u00b7 s1.md"],
        ),
        (
            [{"text": "tea", "id": "7", "source": "a.md", "title": "Tea"}],
            ["7 \u00b7 a.md \u00b7 Tea"],
        ),
        (
            [
                {"text": "tea 0", "id": "a", "title": "b"},
                {"text": "tea 1", "id": "a \u00b7 b"},
                {"text": "tea 2", "id": "'a'"},
                {"text": "tea 3", "id": ""},
            ],
            ["a \u00b7 b", "'a \u00b7 b'", "\"'a'\"", "''"],
        ),
    ],
)
def test_every_chunk_has_a_label_of_its_own(chunks, expected):
    """A chunk is told by its id or index, which leads, whatever else has the same name."""
    found = compare(pack("tea", chunks, 0), pack("tea", chunks, 90))

    lines = [line.partition(": ")[0] for line in found.explain().splitlines()]
    assert sorted(f"Chunk {label}" for label in expected) == sorted(
        line for line in lines if line.startswith("Chunk ")
    )
    for label in expected:
        assert f">Chunk {escape(label)}</th>" in found.to_html()


@given(
    st.lists(st.text("a1\u00b7 '\\\n", max_size=4), min_size=2, max_size=4, unique=True), st.data()
)
def test_labels_are_unique(ids, data):
    """No two chunks are called alike, whatever their ids, sources and titles are."""
    part = st.sampled_from([*ids, "a", ""])
    chunks = [
        {"text": f"tea {i}", "id": name, "source": data.draw(part), "title": data.draw(part)}
        for i, name in enumerate(ids)
    ]
    found = compare(pack("tea", chunks, 0), pack("tea", chunks, 90))

    lines = [line for line in found.explain().splitlines() if line.startswith("Chunk ")]
    assert len(lines) == len({line.partition(": ")[0] for line in lines}) == len(ids)


def test_a_name_forges_no_line():
    """What a terminal would obey, or could not show, is escaped in names and in questions."""
    evil = "a\nBudget: 1 -> 2\x1b[2J\u202e\ud800"
    chunks = [{"text": "tea", "id": evil}, {"text": "tea 2", "id": "b", "title": evil}]
    found = compare(pack("tea", chunks, 0), pack(f"tea {evil}", chunks, 9))

    lines = found.explain().splitlines()
    assert len(lines) == len(found.figures) + len(found.chunks)
    assert all(line.isprintable() for line in lines)


def test_a_page_shows_names_as_text():
    """What a chunk is called is text, whatever it holds."""
    evil = [{"text": "tea", "id": "<script>alert(1)</script>"}]
    found = compare(pack("tea", evil, 0), pack("tea", evil, 9))

    for page in (found.to_html(), found._repr_html_()):
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in found.to_html()


def test_many_chunks_are_counted():
    """An explanation names the first, and says how many there are."""
    chunks = [f"tea {i}" for i in range(60)]
    found = compare(pack("tea", chunks, 0), pack("tea", chunks, 900))

    assert "And 20 more chunks." == found.explain().splitlines()[-1]
    assert 60 == len(found.to_dict()["chunks"])
    json.dumps(found.to_dict())
