"""Reports: everything that a packing knows is on the page, and nothing else can get onto it."""

import pickle
import re
import xml.etree.ElementTree as ET
from html import unescape
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_support import Page, handbook, hostile
from support import (
    budgets,
    chunk_lists,
    counters,
    on_both,
    options,
    outcome,
    queries,
    texts,
    using,
)

from budgeteer import Chunk, Corpus, InvalidArgumentError, Packer, Prompt, Template, pack, presets
from budgeteer._pack.shown import SHOWN, cut_pieces, name_of, report_of
from budgeteer._report.chart import bar, plot, ticks
from budgeteer._report.page import page
from budgeteer._report.parts import Part, Piece, Report
from budgeteer._report.words import flat, shown
from budgeteer.ranking import Embedding

KINDS = st.sampled_from(["used", "reserve", "free"])
SVG = "{http://www.w3.org/2000/svg}"


def rows_of(found):
    """Return the rows of a page: what each says of itself, by the index of its chunk."""
    return {
        int(row["id"].removeprefix("chunk-")): row for row in found.of("tr") if "data-state" in row
    }


@on_both
@given(query=queries, chunks=chunk_lists(), budget=budgets, counter=counters, chosen=options)
def test_every_chunk_has_a_row(name, query, chunks, budget, counter, chosen):
    """Each chunk has one row, that says what became of it; the page is well formed."""
    with using(name):
        packer = outcome(Packer, budget, counter=counter, **chosen)
        if isinstance(packer, tuple):
            return
        packing = packer.pack(query, chunks)
        found = Page(packing.report(curve=False))

    rows = rows_of(found)
    assert {*range(len(chunks))} == {*rows}
    for kept in packing.kept:
        assert ("cut" if kept.was_cut else "kept") == rows[kept.index]["data-state"]
    for dropped in packing.dropped:
        row = rows[dropped.index]
        assert ("dropped", dropped.reason) == (row["data-state"], row["data-reason"])


@given(text=texts | st.text())
@example(text="green\r\ntea\r")
def test_a_text_is_shown_as_text(text):
    """No character of a text is markup, lost, or beyond what a file can hold."""
    found = shown(text)
    found.encode("utf-8")

    pieces = re.split(r'<span class="odd">U\+(\w+)</span>', found)
    assert not re.search(r"[<>\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", "".join(pieces))
    pieces[::2] = map(unescape, pieces[::2])
    pieces[1::2] = [chr(int(code, 16)) for code in pieces[1::2]]
    assert text.replace("\r\n", "\n") == "".join(pieces)
    assert re.sub(r"<.*?>", "", found) == flat(text)


@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",  # a space without width
        "\u200f",  # from right to left
        "\u2060",
        "\xad",
        "\u3164",
        "\U000e0041\U000e0042",  # letters of the block of tags
        "\ufe01\ufe02\U000e0101",  # bytes as variation selectors
        "\u200c\u200d\u200d\u200c",  # bits as joiners
        "\ufe0f\u200d\ufe0f\u200d",  # and as both
        "\U0001d173\U0001bca0",  # controls of music and of shorthand
    ],
)
def test_what_is_not_seen_is_named(hidden):
    """Characters without ink, in which a text can be hidden from its readers, are shown."""
    named = "".join(f'<span class="odd">U+{ord(one):04X}</span>' for one in hidden)
    assert f"tea{named}leaf" == shown(f"tea{hidden}leaf")


@pytest.mark.parametrize(
    "text",
    [
        *("\u2764\ufe0f", "\u2764\ufe0f\u200d\U0001f525", "\U0001f469\u200d\U0001f4bb"),
        *("\u0645\u06cc\u200c\u062e", "a\xa0b"),
    ],
)
def test_what_writing_needs_is_not_named(text):
    """What joins or parts letters and emoji, one variation selector, and spaces stay."""
    assert text == shown(text)


@pytest.mark.parametrize("of", ["report", "_repr_html_"])
def test_hostile_texts(of):
    """Scripts, styles and ends of elements in texts, names and queries are text."""
    found = Page(getattr(hostile(), of)())
    tags = {tag for tag, _ in found.elements}

    assert not {"img", "b"} & tags
    assert len(found.of("script")) <= 1
    assert len(found.of("style")) <= 1
    assert not [name for _, given in found.elements for name in given if name.startswith("on")]


def test_what_is_allowed():
    """The page allows its own script and style by their hashes, and nothing to be loaded."""
    text = handbook().report()
    (policy,) = [item["content"] for item in Page(text).of("meta") if "http-equiv" in item]

    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href)="(?!#)', text)
    assert not re.search(r' style="', text)
    assert "http" not in re.sub(r"http-equiv", "", text)


@on_both
def test_backends_write_the_same(name):
    """Both backends lead to the same page."""
    with using(name):
        told = handbook().report(), hostile().report()
    assert (handbook().report(), hostile().report()) == told


def test_rank_order():
    """Rows stand by rank: by score, by time, or as given."""
    chunks = [
        Chunk(f"Tea {i}.", score=score, metadata={"mtime": 10 - i})
        for i, score in enumerate((1, 3, 2))
    ]
    for ranking, expected in (("score", [1, 2, 0]), ("recency", [0, 1, 2]), ("input", [0, 1, 2])):
        rows = report_of(Packer(9, ranking=ranking).pack("tea", chunks), 9).rows
        assert expected == [row.index for row in rows]
        assert [1, 2, 3] == [row.rank for row in rows]


def test_duplicates_are_linked():
    """The row of a duplicate leads to the chunk that it repeats."""
    found = pack("tea", ["Green tea.", "Rye.", "Green tea."], 20).report()

    assert 'its text equals that of <a href="#chunk-0">chunk 0</a>, which is kept' in found


@pytest.mark.parametrize("overflow", ["truncate_end", "truncate_middle"])
def test_what_was_cut_out(overflow):
    """A cut chunk's row has its whole text: what is in the text, and what is not."""
    text = " ".join(f"Green tea number {i}." for i in range(30))
    packing = Packer(40, overflow=overflow).pack("tea", [text])
    (row,) = report_of(packing, 0).rows
    kept = "".join(piece.text for piece in row.text if not piece.is_gone)

    assert packing.kept[0].text == kept
    marker = " [...]" if overflow == "truncate_end" else "\n[...truncated...]\n"
    assert text == "".join(piece.text for piece in row.text if piece.text != marker)


@pytest.mark.parametrize("own", [" [...] ", " [...]", "\n[...truncated...]\n"], ids=repr)
@pytest.mark.parametrize("overflow", ["truncate_end", "truncate_middle"])
def test_a_marker_of_the_text_itself(overflow, own):
    """What looks like a marker and is the text's own does not hide what was cut out."""
    text = f"Green tea{own}is mild. " + " ".join(f"Tea number {i}." for i in range(30)) + own
    packing = Packer(40, overflow=overflow).pack("tea", [text])
    (row,) = report_of(packing, 0).rows
    marker = " [...]" if overflow == "truncate_end" else "\n[...truncated...]\n"
    pieces = [*row.text]
    pieces.remove((marker, False))

    assert packing.kept[0].text == "".join(p.text for p in row.text if not p.is_gone)
    assert text == "".join(piece.text for piece in pieces)
    assert any("number 20" in piece.text for piece in pieces if piece.is_gone)


def test_a_gap_of_the_text_itself():
    """A gap that the text itself has was not made by leaving a sentence out."""
    text = "Tea is [...] good. Snow fell on the whole country. Green tea is mild. It rained a lot."
    packing = Packer(18, units="sentence").pack("green tea", [text, "Rye bread is dark."])
    row = next(row for row in report_of(packing, 9).rows if row.state == "cut")

    assert packing.kept[0].text == "".join(p.text for p in row.text if not p.is_gone)
    assert all(len(piece.text) > len(" [...] ") for piece in row.text if piece.is_gone)


def test_sentences_that_were_cut_out():
    """Sentences that were left out stand struck between those that were kept."""
    text = "Green tea is mild. The office is closed on Friday. It rains. Black tea is strong tea."
    packing = Packer(14, units="sentence").pack("tea", [text, "Rye bread is dark."])
    row = next(row for row in report_of(packing, 9).rows if row.state == "cut")

    assert packing.kept[0].text == "".join(p.text for p in row.text if not p.is_gone)
    assert any("office" in piece.text for piece in row.text if piece.is_gone)


def test_long_texts():
    """Of a long dropped text the beginning is shown, and how much more there is."""
    found = pack("tea", ["x" * (SHOWN + 1_234)], 1).report()

    assert "and 1,234 more characters" in found
    assert "x" * SHOWN in found
    assert "x" * (SHOWN + 1) not in found


@given(whole=texts, kept=texts)
def test_pieces_hold_what_was_kept(whole, kept):
    """Whatever is a cut text, its pieces show all of it."""
    pieces, _ = cut_pieces(whole, kept)
    assert kept == "".join(piece.text for piece in pieces if not piece.is_gone)


@pytest.mark.parametrize("dropped", [0, 2, 10**9])
def test_number_of_dropped(dropped):
    """At most that many dropped chunks are listed, the best; the page says how many are not."""
    packing = handbook(30)
    found = packing.report(dropped=dropped)
    rows = rows_of(Page(found))
    kept = {chunk.index for chunk in packing.kept}
    listed = min(dropped, packing.dropped_count)

    assert len(kept) + listed == len(rows)
    rest = packing.dropped_count - listed
    assert (f"{rest} more dropped chunks" in found) == (rest > 0)
    by_score = sorted(packing.dropped, key=lambda chunk: (-chunk.score, chunk.index))
    assert {chunk.index for chunk in by_score[:dropped]} == {*rows} - kept


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropped": -1}, "dropped must be from 0 to"),
        ({"dropped": "all"}, "dropped must be an int, not str"),
        ({"curve": 1}, "curve must be a bool, not int"),
    ],
)
def test_refused(arguments, message):
    """A wrong argument is named."""
    with pytest.raises(InvalidArgumentError, match=message):
        handbook().report(**arguments)


def test_a_pickled_packing():
    """What was pickled is reported without dropped texts and without a curve."""
    packing = handbook(9)
    found = pickle.loads(pickle.dumps(packing)).report()

    assert "The budget curve" in packing.report()
    assert "The budget curve" not in found
    assert len(rows_of(Page(packing.report()))) == len(rows_of(Page(found)))
    assert packing.dropped[0].chunk.text not in found
    assert packing.kept[0].text in found
    assert pickle.loads(pickle.dumps(packing)).plot().startswith("<svg")


def test_the_curve_is_a_choice():
    """Without the curve nothing is packed again."""
    asked = []

    def count(text):
        asked.append(text)
        return len(text.split())

    packing = Packer(5, counter=count).pack("tea", ["Green tea.", "Rye bread is dark."])
    before = len(asked)
    packing.report(curve=False)
    assert before == len(asked)
    packing.report()
    assert before < len(asked)


def test_nothing_at_all():
    """A packing of nothing has a page too."""
    found = pack("", [], 0).report()
    assert "There are none." in found
    assert "It is empty." in found
    Page(found)


@pytest.mark.parametrize(
    ("packing", "expected"),
    [
        (lambda: pack("tea", ["Tea."], 9), ["chunks 2", "free 7"]),
        (
            lambda: pack("tea", ["Tea.", "Rye."], 9, reserve_tokens=2, template="tagged"),
            ["chunks", "around the chunks", "free", "reserve 2"],
        ),
        (
            lambda: presets.agentic_rag(90, buffer_tokens=8).pack("a", [Chunk("A.", source="a")]),
            ["chunks", "citations", "free", "reserve 8"],
        ),
        (lambda: pack("tea", ["Tea."], 1), ["chunks 0", "free 1"]),
    ],
)
def test_parts(packing, expected):
    """The sections of the budget add up to it, and to what is reserved."""
    packing = packing()
    parts = report_of(packing, 0).parts
    told = [f"{part.name} {part.tokens}" for part in parts]

    assert len(expected) == len(told)
    assert all(each.startswith(words) for each, words in zip(told, expected, strict=True))
    given = packing.budget_tokens + packing._reserve_tokens
    assert given == sum(part.tokens for part in parts)


def test_the_text():
    """The text is shown as it is sent, each chunk marked with its index."""
    packing = pack("tea", ["Green tea.", "Black tea."], 20, template="markdown")
    pieces = report_of(packing, 0).text

    assert packing.text == "".join(piece.text for piece in pieces)
    assert [0, 1] == sorted(piece.index for piece in pieces if piece.index is not None)


@pytest.mark.parametrize(
    "template",
    [Prompt(lambda chunks: f"<{'|'.join(chunks)}>"), Template(lambda chunk: f"* {chunk} *")],
    ids=["prompt", "function"],
)
def test_written_texts(template):
    """What a function wrote is shown as it was written."""
    packing = pack("tea", ["Green tea.", "Rye bread."], 12, template=template)
    pieces = report_of(packing, 9).text

    assert packing.text == "".join(piece.text for piece in pieces)
    Page(packing.report())


@on_both
@pytest.mark.parametrize("of", [Corpus, list, tuple, pl.Series])
def test_batches(name, of):
    """A corpus and a column are reported as a list of their texts is."""
    texts = ["Green tea is mild.", "Rye bread.", "Green tea is mild.", ""]
    with using(name):
        assert pack("tea", texts, 6).report() == pack("tea", of(texts), 6).report()


def test_a_fallback_is_told():
    """A page says that embedding failed, and what ranked."""
    from budgeteer.embedding import EmbeddingError

    class Failing:
        def embed(self, texts):
            raise EmbeddingError("no network")

    packer = Packer(5, ranking=Embedding(Failing(), fallback="bm25"))
    assert "bm25, as embedding failed" in packer.pack("tea", ["Tea."]).report()


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        ("Tea.", ""),
        (None, ""),
        (Chunk("Tea.", id="a.md:3", source="a.md", title="Tea"), "a.md:3 \u00b7 Tea"),
        ({"text": "Tea.", "source": "a.md", "id": 7}, "a.md \u00b7 7"),
        ({"text": "Tea.", "metadata": {"title": "Tea"}}, "Tea"),
    ],
)
def test_names(chunk, expected):
    """A chunk is named by source, id and title, each said once."""
    assert expected == name_of(chunk)


def test_plot():
    """A picture is XML of its own, with a title; it has the parts and the curve."""
    packing = handbook(9, 60, reserve_tokens=9)
    picture = packing.plot()
    root = ET.fromstring(picture)

    assert f"{SVG}svg" == root.tag
    assert root.find(f"{SVG}title").text.startswith("Kept ")
    assert len(root.findall(f"{SVG}circle")) == len(packing.budget_curve())
    assert picture == picture._repr_svg_()
    ET.fromstring(hostile().plot())


def test_many_sections_are_named_in_rows():
    """The names of sections stand inside the picture, each in a place of its own."""
    names = [f"section {i}" for i in range(20)]
    picture = plot(Report(title="a", lead="b", parts=[Part(name, 10) for name in names]))
    places = {
        text.text.rpartition(" ")[0]: (float(text.get("x")), float(text.get("y")))
        for text in ET.fromstring(picture).iter(f"{SVG}text")
        if text.text.startswith("section")
    }

    assert names == [*places]
    assert len({*places.values()}) == len(names)
    assert len({y for _, y in places.values()}) > 1
    assert all(x + 7.6 * len("section 10 10") <= 720 for x, _ in places.values())


@given(parts=st.lists(st.builds(Part, st.just("a"), st.integers(0, 10**12), KINDS), max_size=40))
def test_bars(parts):
    """Every section with a token is seen, inside the bar, and none overlaps another."""
    found = [
        (float(x), float(wide))
        for x, wide in re.findall(r'<rect x="([\d.]+)" y="0.5" width="([\d.]+)"', bar(parts))
    ]

    assert len(found) == sum(part.tokens > 0 for part in parts)
    assert all(wide >= 1 for _, wide in found)
    assert all(x + wide <= after + 0.2 for (x, wide), (after, _) in pairwise(found))
    assert not found or found[-1][0] + found[-1][1] <= 720.2


@given(most=st.integers(1, 2**63))
def test_ticks(most):
    """An axis has a few whole numbers from 0 on, evenly spaced."""
    found = ticks(most)
    assert 0 == found[0]
    assert found[-1] <= most
    assert len(found) <= 7
    assert len({b - a for a, b in pairwise(found)}) <= 1


def test_a_notebook_shows_the_best():
    """A notebook shows figures and ten chunks, without scripts or styles for the whole page."""
    found = handbook(30)._repr_html_()
    page_of = Page(found)

    assert 11 == len(page_of.of("tr"))
    assert "20 more chunks" in found
    assert not page_of.of("script")
    assert not page_of.of("style")
    assert isinstance(page(report_of(handbook(), 0)), str)
    assert Piece("a") == Piece("a", is_gone=False)
