"""The suite of benchmarks: its arithmetic, its texts, and what it writes."""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import timing
from suite import fixed, pack, report, run
from suite.charts import bars
from suite.report import Options, Table
from timing import Case, interleaved, one_slice, percentile, sliced

from budgeteer import _native

ROOT = Path(__file__).parents[3]


class Clock:
    """A clock that the cases advance, in nanoseconds."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def spend(self, nanoseconds):
        self.now += nanoseconds


def test_a_long_case_is_interleaved_and_its_slices_add_up():
    """Between two slices of a long case each short one runs, and both times are whole."""
    clock, seen = Clock(), []

    def short(_):
        seen.append("short")
        clock.spend(7)
        return "done"

    def long(_):
        for _ in range(3):
            seen.append("long")
            clock.spend(100)
            yield
        clock.spend(11)
        return "finished"

    found = interleaved({"short": Case(short), "long": Case(long)}, 2, clock)

    assert found.seconds == {
        "short": pytest.approx([7e-9, 7e-9]),
        "long": pytest.approx([311e-9, 311e-9]),
    }
    assert found.ratio("long", "short") == pytest.approx(311 / 7)
    assert found.results == {"short": "done", "long": "finished"}
    most = max(len([*group]) for _, group in itertools.groupby(seen))
    assert most <= 2  # the one that is first changes, so two may meet
    assert seen.count("short") == 2 * 4


def test_what_is_made_is_not_timed_and_is_made_for_each_call():
    """The time of making is nobody's, and no call gets what another got."""
    clock, made = Clock(), []

    def make():
        clock.spend(1_000)
        made.append(object())
        return made[-1]

    given = []
    cases = {"a": Case(lambda one: (given.append(one), clock.spend(5)), make, tries=3)}
    found = interleaved(cases, 1, clock)

    assert found.seconds["a"] == pytest.approx([5e-9])
    assert given == made
    assert len({*map(id, made)}) == 3


def test_the_ratio_is_the_median_of_the_rounds():
    """A round in which the machine was slow for both does not count twice."""
    found = timing.Times({"a": [1.0, 30.0, 3.0], "b": [1.0, 10.0, 1.0]})

    assert found.ratio("a", "b") == 3.0
    assert found.median("a") == 3.0


def test_slices_and_percentiles():
    """All items are in one slice each; a percentile is a value that occurred."""
    assert [*itertools.chain(*sliced(range(500)))] == [*range(500)]
    assert max(map(len, sliced(range(500)))) == 12
    assert len([*sliced(range(100_000))]) <= timing.SLICES
    assert percentile(range(1, 1001), 0.999) == 999
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([5], 0.99) == 5
    assert timing.finished(one_slice(lambda given: given + 1)(4)) == 5


def test_a_function_runs_in_a_process_of_its_own():
    """What it returns comes back, and it is not this process."""
    assert timing.in_process("os", "getpid") != os.getpid()


@pytest.mark.parametrize("name", fixed.SOURCES)
def test_the_texts_are_those_of_the_figures(name):
    """Each is made of what the group `test` installs; its queries have the words they should."""
    assert len(fixed.text_of(name)) > 30_000
    for words in fixed.LENGTHS:
        assert len({*fixed.query_of(name, words).split()}) == words
    assert {len(chunk) for chunk in fixed.chunks_of(name, 20)} == {800}


def test_another_text_stops_the_run(monkeypatch):
    """The error names the text, the package and both hashes."""
    real = fixed.SOURCES["Arabic"]
    other = dataclasses.replace(real, make=lambda: "something else")
    monkeypatch.setitem(fixed.SOURCES, "Arabic", other)
    fixed.text_of.cache_clear()
    try:
        with pytest.raises(fixed.TextError, match=r"'Arabic', of plone.app.locales \d.*SHA-256"):
            fixed.text_of("Arabic")
        with pytest.raises(SystemExit, match=real.sha256):
            run.main(["--only", "memory", "--smoke"])
    finally:
        fixed.text_of.cache_clear()


def test_a_text_without_its_package_says_what_to_install(monkeypatch):
    """The error has the command."""
    missing = fixed.Source("no-such-package", lambda: fixed.content("no-such-package", "x"), "")
    monkeypatch.setitem(fixed.SOURCES, "none", missing)

    with pytest.raises(fixed.TextError, match=r"needs no-such-package: pip install --group test"):
        fixed.text_of("none")


def test_a_peer_that_is_missing_is_left_out_and_named(monkeypatch):
    """It has no column, and the report says so."""
    monkeypatch.setattr(pack, "has", lambda _: False)
    monkeypatch.setitem(report.PEERS, "no_such.module", "no-such-package")

    assert not report.has("no_such.module")
    assert "theaios" not in pack.cases_of("English", 3, reference=False)
    ran = report.environment(Options(), 2)
    assert "no-such-package" in ran["left_out"]
    assert "no-such-package" in run.heading(ran)


def test_packings_that_differ_stop_the_run(monkeypatch):
    """A row of packings that are not alike is not printed."""
    chunks = ["Green tea is mild.", "Rye bread is dark."]
    pack.check_alike("made", "green tea", chunks, pack.RANKINGS["keyword"])
    seen = iter(range(9))
    monkeypatch.setattr(pack, "everything_of", lambda _: next(seen))

    with pytest.raises(pack.DifferentError, match="made: native and reference differ"):
        pack.check_alike("made", "green tea", chunks, pack.RANKINGS["keyword"])


def test_what_differs_from_theaios_is_counted():
    """A chunk that it scores otherwise is in the note of the table."""
    cases = pack.cases_of("English", 8, reference=False)

    assert pack.same_kept("English", cases) == ""
    cases["theaios"] = Case(one_slice(lambda _: [(0, 0.123), (1, 0.456)]))
    assert pack.same_kept("English", cases) == "English: 2 of 2"


# Where the group `bench` is installed, a peer that is measured warns of its end.
@pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")
def test_the_json_has_what_a_reader_needs(tmp_path, capsys):
    """The file has the format, the machine, versions and hashes, and each row by its columns."""
    file = tmp_path / "figures.json"

    run.main(["--only", "rank", "--smoke", "--json", str(file)])

    found = json.loads(file.read_text("utf-8"))
    assert found["format"] == report.FORMAT
    assert found["smoke"] is True
    assert {"made", "python", "processor", "processors", "versions", "left_out", "rounds"} < {
        *found
    }
    assert {name: text["sha256"] for name, text in found["texts"].items()} == {
        name: source.sha256 for name, source in fixed.SOURCES.items()
    }
    (table,) = found["sections"]["rank"]
    assert table["rows"][0]["ranker"] == "BM25"
    assert table["rows"][0]["microseconds"] > 0
    assert table["title"] in capsys.readouterr().out


@pytest.mark.parametrize(
    "given",
    [["--rounds", "0"], ["--only", "none"], ["--smoke", "--charts", "x"]],
)
def test_wrong_options_are_refused(given):
    """No section runs."""
    with pytest.raises(SystemExit):
        run.main(given)


def test_recall_without_questions_is_refused():
    """The error names the option."""
    with pytest.raises(SystemExit, match="--questions FILE"):
        run.main(["--only", "recall"])


def test_a_chart_is_well_formed_and_its_bars_have_the_length_of_their_values():
    """It has no script, a title, colours for dark pages, and escapes its words."""
    picture = bars("Tea & bread", "<unit>", {"one": {"a": 10.0, "b": 5.0}, "two": {"a": None}})

    tree = ET.fromstring(picture)
    names = [one.tag.rpartition("}")[2] for one in tree.iter()]
    assert "script" not in names
    assert "prefers-color-scheme: dark" in picture
    words = [one.text for one in tree.iter() if one.tag.endswith("text")]
    assert {"Tea & bread", "<unit>", "one", "two", "10", "5", "-"} <= {*words}
    widths = [float(one.get("width")) for one in tree.iter() if one.get("rx")]
    assert widths == [440, 220, 0]
    with pytest.raises(ValueError, match="cannot be drawn"):
        bars("none", "", {})


def test_charts_are_drawn_of_what_ran():
    """A section that did not run has no chart."""
    times = Table(
        pack.PEER_TITLE, ["text", "words", "keyword"], [["English", 3, 9.0], ["English", 8, 60.0]]
    )
    other = Table("o", ["text"], [["English"]])

    drawn = run.charts({"pack": [other, times, other], "memory": [other]})

    assert [*drawn] == ["pack.svg"]
    assert ">60<" in drawn["pack.svg"]
    assert ">9<" not in drawn["pack.svg"]


def test_a_table_is_markdown():
    """Numbers have three figures, and what is not known is a dash."""
    table = Table("Times", ["text", "ns"], [["a", 1234.5], ["b", 0.01234], ["c", None]], ["Note."])

    assert table.markdown().splitlines() == [
        "### Times",
        "",
        "| text | ns |",
        "|---|---|",
        "| a | 1,234 |",
        "| b | 0.0123 |",
        "| c | - |",
        "",
        "Note.",
    ]


def test_the_command_runs():
    """`python -m benches` finds its rooms from the checkout."""
    command = [sys.executable, "-m", "benches", "--smoke", "--only", "memory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "Peak memory" in done.stdout


def test_a_packer_is_on_the_backend_that_was_asked_for():
    """And the next one is on the usual one again."""
    before = pack.prepared.backend

    assert pack.packer_on(_native, counter="chars_div4").pack("tea", ["tea"]).kept
    assert pack.prepared.backend is before
