"""The options of ``ask`` and ``pack``: they are Packer's, by its names."""

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest

import budgeteer
from budgeteer import Chunk, Packer
from budgeteer._pack.options import DEDUPES, ORDERS, OVERFLOWS, SELECTIONS, STYLES, UNITS
from budgeteer._rank.rankings import NAMES, Bm25, Lexical
from budgeteer._rank.terms import LISTED, STEMMED
from budgeteer.cli._main import _parser

QUERY = "remote tea"
TEXTS = {
    "a.md": "# Remote work\n\nThe remote work policy asks for a VPN.\n\n## Tea\n\nTea is free.\n",
    "b.txt": "Tea is free.\n\nRemote tea is remote. It is tea. Nothing else is said of tea.\n",
    "c.txt": "Tea is free.",
    "d.txt": "Lunch is at noon.",
}
VALUES = {
    "ranking": NAMES,
    "overflow": OVERFLOWS,
    "dedupe": DEDUPES,
    "selection": SELECTIONS,
    "units": UNITS,
    "order": ORDERS,
    "template": STYLES,
    "stemming": (*STEMMED, None),
    "stopwords": (*LISTED, None),
}
"""The options that have a fixed set of values."""
FLAGS = ("headings", "links", "feedback")
"""The options of the lexical ranking that can be turned off."""
LEXICAL = ("stemming", "stopwords", "k1", "b", "k3", *FLAGS)
MISSING = {
    ("ranking", "embedding"): "needs vectors",
    ("ranking", "hybrid"): "needs vectors",
    ("order", "sticky"): "needs the packing before, and a process has none",
}
"""The values that cannot be given on a command line, and why."""
MISSING_IN = {
    "pack": MISSING,
    "ask": {**MISSING, ("ranking", "score"): "files have no scores of their own"},
}


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """Stand beside a folder of texts, the first of which is the newest."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for age, (name, text) in enumerate(TEXTS.items()):
        (folder / name).write_text(text)
        os.utime(folder / name, (1_700_000_000 - age, 1_700_000_000 - age))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def asked(run):
    """Ask the folder, and return the JSON answer."""

    def asked(*options):
        status, out, err = run("ask", "docs", QUERY, "-o", "json", *options)
        assert (0, "") == (status, err)
        return json.loads(out)

    return asked


def options_of(command):
    """Return the options of a command by their destination."""
    (commands,) = (action for action in _parser()._actions if action.dest == "command")
    return {action.dest: action for action in commands.choices[command]._actions}


# One vocabulary.


@pytest.mark.parametrize("command", ["ask", "pack"])
def test_every_option_of_packer_has_a_flag(command):
    """A new option of Packer, or of a ranking by words, is one of both; statistics are no text."""
    flags = options_of(command)
    names = {
        kind: {option.name for option in dataclasses.fields(kind) if option.init} - {"statistics"}
        for kind in (Packer, Lexical, Bm25)
    }
    for name in names[Packer] | names[Lexical] | names[Bm25]:
        assert f"--{name.replace('_', '-')}" in flags[name].option_strings
        assert name not in FLAGS or f"--no-{name}" in flags[name].option_strings
    assert {*LEXICAL} == names[Lexical]


@pytest.mark.parametrize("command", ["ask", "pack"])
def test_every_value_of_an_option_can_be_given(command):
    """A new value can be given too, or is listed above with the reason."""
    flags, missing = options_of(command), MISSING_IN[command]
    for name, values in VALUES.items():
        allowed = flags[name].type.allowed
        expected = [value or "none" for value in values if (name, value) not in missing]
        assert sorted(expected) == sorted(allowed)


def test_both_commands_declare_the_same():
    """But for what is packed, the ranking that files cannot have, and feedback's default."""
    ask, pack = options_of("ask"), options_of("pack")
    assert {"paths", "globs"} == {*ask} - {*pack}
    assert {"input", "workers"} == {*pack} - {*ask}
    for name in {*ask} & {*pack} - {"query", "ranking", "feedback", "output"}:
        for part in ("option_strings", "default", "metavar", "help"):
            assert getattr(ask[name], part) == getattr(pack[name], part)


def test_every_command_that_counts_takes_the_model_alike():
    """-m is --counter wherever tokens are counted by one."""
    for command in ("ask", "pack", "count", "cut"):
        counter = options_of(command)["counter"]
        assert ["-m", "--counter"] == counter.option_strings
        assert Packer(1).counter == counter.default


@pytest.mark.parametrize("flag", ["-q", "--query", "-t", "--text"])
@pytest.mark.parametrize("command", ["pack", "query"])
def test_the_query_has_the_spellings_of_all(run, docs, command, flag):
    """--query is the name; the seed's --text is taken for it."""
    Path("c.yaml").write_text("sources: [{type: inline, text: Tea.}]")
    config = ("-c", "c.yaml") if command == "query" else ()
    status, out, err = run(command, flag, "tea", *config, stdin='["Tea."]')
    assert (0, "") == (status, err)
    assert out.endswith(("Tea.", "Tea.\n"))


def test_the_budget_is_the_same_where_none_is_given(run, docs):
    """8,000 tokens for both."""
    for answer in (
        run("ask", "docs", QUERY, "-o", "json"),
        run("pack", "-q", QUERY, "-o", "json", stdin='["tea"]'),
    ):
        assert 8_000 == json.loads(answer[1])["budget_tokens"]


# What the options do to files.


def chunks():
    """Return the chunks of the folder."""
    parts = [
        ("a.md", 1, "# Remote work\n\nThe remote work policy asks for a VPN.", "Remote work"),
        ("a.md", 5, "## Tea\n\nTea is free.", "Remote work > Tea"),
        *((name, 1, TEXTS[name].strip(), "") for name in ("b.txt", "c.txt", "d.txt")),
    ]
    return [
        Chunk(
            text, id=f"{name}:{line}", source=name, title=title,
            metadata={"mtime": 1_700_000_000 - [*TEXTS].index(name)},
        )
        for name, line, text, title in parts
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {}, {"reserve_tokens": 7}, {"min_score": 0.0}, {"min_score": 0.5}, {"max_chunks": 1},
        {"notice": True}, {"notice": "{count} more."},
        *({"counter": name} for name in ("gpt-4o", "gpt-4", "words")),
        *(
            {name: value}
            for name, values in VALUES.items()
            for value in values
            if (name, value) not in MISSING_IN["ask"] and name not in ("stemming", "stopwords")
        ),
        {"stemming": None}, {"stemming": "german"}, {"stopwords": None}, {"k1": 0.0}, {"b": 0.0},
        {"k3": 0.0}, *({name: False} for name in FLAGS), {"feedback": True},
        {**dict.fromkeys(FLAGS, False), "k3": 1},
        {"ranking": "lexical", "stemming": None, "k3": 0.5},
        {"ranking": "bm25", "stemming": "english"}, {"ranking": "bm25", "k1": 0.0, "b": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_each_option_of_ask_is_packers_own(asked, docs, options):
    """An option does to the parts of files what it does in Python."""
    arguments = []
    for name, value in options.items():
        flag, given = f"--{name.replace('_', '-')}", "none" if value is None else value
        arguments.append(
            f"--no-{name}" if value is False else flag if value is True else f"{flag}={given}"
        )
    options = dict(options)
    own = {name: options.pop(name) for name in [*options] if name in LEXICAL}
    if options.get("ranking", "lexical") == "lexical":
        options["ranking"] = Lexical(**{"feedback": False, **own})  # which would find too much
    elif own:
        options["ranking"] = Bm25(**own)
    if options.get("ranking") not in ("recency", "input"):
        options = {"min_score": 1e-300, **options}
    for max_tokens in (44, 55, 8_000):  # the parts of files are whole
        expected = Packer(max_tokens, **options).pack(QUERY, chunks())
        if not expected.kept:
            continue
        answer = asked("-n", max_tokens, *arguments)
        assert expected.text == answer["text"]
        found = [
            {name: value for name, value in kept.items() if name not in ("id", "source", "title")}
            for kept in answer["kept"]
        ]
        assert [kept.to_dict() for kept in expected.kept] == found
        assert [kept.chunk.id for kept in expected.kept] == [kept["id"] for kept in answer["kept"]]


def test_a_notice_takes_no_word_that_follows(run, docs):
    """--notice is True before a path; words of one's own stand behind a sign."""
    expected = run("ask", "docs", QUERY, "--max-chunks", 1, "--notice")
    assert expected[1].endswith("\n\nChunks left out: 4.")
    assert expected == run("ask", "--notice", "docs", QUERY, "--max-chunks", 1)
    _, out, _ = run("ask", "docs", QUERY, "--notice=none of {count}", "--max-chunks", 1)
    assert out.endswith("\n\nnone of 4")
    assert (1, "") == run("ask", "--", "docs", "--notice")[:2]


@pytest.mark.parametrize("template", ["markdown", "xml"])
def test_an_output_may_be_a_template(run, template):
    """-o xml is --template xml; two that differ contradict one another."""
    arguments = ("pack", "-q", "tea", "-n", 30)
    expected = budgeteer.pack("tea", ["tea"], 30, template=template).text
    for options in (["-o", template], ["--template", template], ["-o", template] * 2):
        assert (0, expected, "") == run(*arguments, *options, stdin='["tea"]')
    same = run(*arguments, "-o", template, "--template", template, stdin='["tea"]')
    assert (0, expected, "") == same
    document = run(*arguments, "-o", "json", "--template", template, stdin='["tea"]')[1]
    assert expected == json.loads(document)["text"]


# Dropped chunks.


@pytest.mark.parametrize(
    ("value", "listed"), [("none", 0), ("0", 0), ("1", 1), ("99", 4), ("9" * 99, 4), ("all", 4)]
)
def test_dropped_limits_what_is_listed(run, docs, value, listed):
    """In JSON, where the number of them stays; and in what --explain says."""
    arguments = ("ask", "docs", QUERY, "--max-chunks", 1, "--dropped", value)
    answer = json.loads(run(*arguments, "-o", "json")[1])
    whole = json.loads(run(*arguments[:-2], "-o", "json")[1])
    assert (4, whole["dropped"][:listed]) == (answer["dropped_count"], answer["dropped"])
    assert "dropped_count" not in whole
    _, _, err = run(*arguments, "--explain")
    lines = err.splitlines()
    assert 2 + listed == len(lines)
    assert all(re.fullmatch(r"Chunk \d \([a-d]\.\w+:\d\) was dropped: .+\.", s) for s in lines[2:])


def test_what_is_explained_is_what_packing_says(run):
    """The line of a dropped chunk has the words of Packing.explain."""
    texts = ["tea", "tea", "", "coffee, black", "milk"]
    arguments = ("pack", "-q", "tea", "-n", 3, "--max-chunks", 1, "--explain", "--dropped", "all")
    _, _, err = run(*arguments, stdin=json.dumps(texts))
    packing = budgeteer.pack("tea", texts, 3, max_chunks=1)
    expected = [
        re.sub(r" \(score.*?\)", "", packing.explain(dropped.index)) for dropped in packing.dropped
    ]
    assert [*packing.explain().splitlines(), *expected] == err.splitlines()


def test_dropped_of_a_query(run, docs):
    """As with the others."""
    Path("c.yaml").write_text(
        "budget: {max_tokens: 1}\nsources: [{type: inline, text: Green tea.}]"
    )
    arguments = ("query", "-c", "c.yaml", "-q", "tea", "-o", "json")
    answer = json.loads(run(*arguments, "--dropped", "none")[1])
    assert ([], 1) == (answer["dropped"], answer["dropped_count"])
    assert 1 == len(json.loads(run(*arguments)[1])["dropped"])


# What is refused.

PYTHON = re.compile(
    r"\w=['\"\w]|\(\)|\bNone\b|callable|register_|\w+Counter|\bTemplate\b|\bpass\b"
)
"""What can be done in Python alone."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--units=sentence", "--dedupe=near"], "units must be 'chunk' under --dedupe near"),
        (
            ["--units=sentence", "--selection=coverage"],
            "units must be 'chunk' under --selection coverage",
        ),
        (["--k1=-1"], "k1 must be from 0 to 1000000"),
        (["--b=nan"], "b must be a number"),
        (["--b=x"], "argument --b: must be a number from 0 to 1, not 'x'"),
        (["--k1=x"], "argument --k1: must be a number from 0 to 1000000, not 'x'"),
        (["--ranking=keyword", "--b=0.5"], "--b is for --ranking lexical or bm25, not keyword"),
        (["--ranking=bm25", "--k3=2"], "--k3 is for --ranking lexical, not bm25"),
        (["--ranking=input", "--k3=2"], "--k3 is for --ranking lexical, not input"),
        *(
            (
                [f"--ranking={name}", f"--no-{flag}"],
                f"--no-{flag} is for --ranking lexical, not {name}",
            )
            for flag in FLAGS
            for name in ("bm25", "recency")
        ),
        (["--ranking=bm25", "--b=0.5", "--no-links"], "--no-links is for --ranking lexical, not "),
        (["--k3=-1"], "k3 must be from 0 to 1000000"),
        (["--k3=x"], "argument --k3: must be a number from 0 to 1000000, not 'x'"),
        (["--ranking=embedding"], "argument --ranking: must be one of 'lexical', 'bm25', "),
        (["--ranking=hybrid"], "argument --ranking: must be one of 'lexical', 'bm25', "),
        (["--order=sticky"], "argument --order: must be one of 'rank', "),
        (["--notice={x}"], "notice must have no other fields than {count}"),
        (["--max-chunks=-1"], "max_chunks must be from 0 to "),
        (["-o", "xml", "--template=json"], "-o xml is --template xml, not json"),
        (["--dropped=3"], "--dropped is for -o json, --explain and --report"),
        (["--dropped=x"], "argument --dropped: must be a number from 0 on, 'none' or 'all', not "),
        (["--dropped=-1"], "argument --dropped: must be a number from 0 on, 'none' or 'all', "),
        (["-m", "gpt4o"], "argument -m/--counter: counter must be one of "),
        (["-m", "acme"], "argument -m/--counter: counter must be one of "),
        (["-m", "hf:"], "argument -m/--counter: counter 'hf:' must have the path of a "),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["ask", "pack"])
def test_errors_name_what_the_program_has(refused, docs, command, options, message):
    """The words are those of the command line, and no remedy is one of Python's."""
    what = ("docs", QUERY) if command == "ask" else ("-q", QUERY)
    said = refused(command, *what, *options, stdin='["tea"]')
    assert said.startswith(message)
    assert not PYTHON.search(said)


def test_ask_does_not_rank_by_scores(refused, docs):
    """Files have none."""
    said = refused("ask", "docs", QUERY, "--ranking", "score")
    assert said.startswith(
        "argument --ranking: must be one of 'lexical', 'bm25', 'keyword', 'recency', "
    )


def test_a_query_lists_dropped_chunks_in_json_alone(refused, docs):
    """Its text has their number only."""
    Path("c.yaml").write_text("sources: [{type: inline, text: Tea.}]")
    said = refused("query", "-c", "c.yaml", "-q", "tea", "--dropped", "3")
    assert "--dropped is for -o json and --report" == said


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--min-score=99"], "nothing in docs scores 99.0 or more"),
        (["--ranking=recency", "--min-score=2e9"], "nothing in docs scores 2000000000.0 or more"),
        (["--max-chunks=0"], "--max-chunks 0 keeps nothing"),
        (["--ranking=input", "-n=1"], "nothing fits into 1 tokens"),
        (["-n=9", "--reserve-tokens=8"], "nothing that has a word of the question fits into 1 "),
    ],
    ids=str,
)
def test_why_nothing_is_kept(run, docs, options, reason):
    """The reason is that of the options."""
    status, out, err = run("ask", "docs", QUERY, *options)
    assert (1, "") == (status, out)
    assert err.startswith(f"budgeteer: {reason}")
