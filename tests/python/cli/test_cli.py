"""The command line: what it answers, and what it says on one line when it cannot."""

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest

import budgeteer
from budgeteer import get_counter
from budgeteer._pack.options import ORDERS, OVERFLOWS, SELECTIONS, UNITS
from budgeteer._pack.template import STYLES
from budgeteer._rank.rankings import NAMES
from budgeteer.ranking import Bm25, Lexical

CHUNKS = [
    {"text": "Rye bread.", "source": "kitchen", "title": "Bread", "metadata": {"path": "b.md"}},
    {"content": "Green tea is mild.", "id": 7, "metadata": {"mtime": 5, "tags": ["é"]}},
    "tea",
    "tea",
    "",
]
FIXED = ("--counter", "chars_div4", "--ranking", "keyword")
"""What the answers below are written for, whatever the defaults are."""
BM25 = ("stemming", "stopwords", "k1", "b")


@pytest.fixture
def packed(run):
    """Pack the chunks above, and return the JSON answer."""

    def packed(*options, chunks=CHUNKS, query="tea"):
        status, out, err = run(
            "pack", "--query", query, "-o", "json", *FIXED, *options, stdin=json.dumps(chunks)
        )
        answer = json.loads(out)
        assert (not answer["kept"], not answer["kept"]) == (status, bool(err))
        return answer

    return packed


# pack


def test_pack_prints_just_the_text(run):
    """Text output is exactly what was counted, without so much as a line end."""
    arguments = ("pack", "--query", "tea", "--max-tokens", 100, *FIXED)
    expected = "Green tea is mild.\n\ntea\n\nRye bread."
    assert (0, expected, "") == run(*arguments, stdin=json.dumps(CHUNKS))


def test_pack_ends_the_line_at_a_terminal(run, monkeypatch):
    """A person at a terminal gets the prompt back on a line of its own."""
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert "tea\n" == run("pack", "--query", "", "--max-tokens", 5, stdin='["tea"]')[1]


def test_pack_answers_in_json(packed):
    """JSON output is the packing's own document, in its order."""
    for max_tokens in (6, 60):
        answer = packed("--max-tokens", max_tokens)
        options = {"counter": "chars_div4", "ranking": "keyword"}
        expected = budgeteer.pack("tea", CHUNKS, max_tokens, **options)
        assert expected.to_dict() == answer
        assert [*expected.to_dict()] == [*answer]
        assert [chunk.to_dict() for chunk in expected.kept] == answer["kept"]
        assert [chunk.to_dict() for chunk in expected.dropped] == answer["dropped"]
    assert ["duplicate", "empty"] == [chunk["reason"] for chunk in answer["dropped"]]
    assert 2 == answer["dropped"][0]["duplicate_of"]


def contents(answer):
    return [chunk["text"] for chunk in answer["kept"]]


@pytest.mark.parametrize(
    "options",
    [
        {"reserve_tokens": 7}, {"counter": "words"}, {"counter": "chars_per_token:1"},
        {"counter": "o200k_base"}, {"counter": "cl100k_base"}, {"counter": "gpt-4o-mini"},
        {"counter": "tiktoken:cl100k_base"},
        *({"ranking": name} for name in ("keyword", "recency", "input")),
        {"counter": "gpt-4"}, {"min_score": 0.5}, *({"overflow": name} for name in OVERFLOWS),
        {"max_chunks": 1}, {"dedupe": "exact"}, {"dedupe": "near"}, {"dedupe": None},
        *({"selection": name} for name in SELECTIONS),
        {"ranking": "bm25", "stemming": "english"}, {"stemming": None}, {"k1": 0.0}, {"b": 0.5},
        {"ranking": "lexical", "stemming": None}, {"k3": 0.5, "b": 0.25},
        {"ranking": "bm25", "stopwords": None},
        {"ranking": "bm25", "stopwords": "german"},
        {"ranking": "bm25", "stemming": "german", "stopwords": None},
        *({"units": name} for name in UNITS),
        *({"order": name} for name in ORDERS if name != "sticky"),
        *({"template": name} for name in STYLES),
    ],
)  # fmt: skip
def test_each_option_of_pack_is_packers_own(packed, options):
    """An option given on the command line does what it does in Python."""
    arguments = []
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", "none" if value is None else str(value)]
    own = {
        name: options[name]
        for name in ("stemming", "stopwords", "k1", "b", "k3")
        if name in options
    }
    if own and "ranking" not in options:
        arguments += ["--ranking", "lexical"]  # in place of the one of all these tests
    kind = Bm25 if options.get("ranking") == "bm25" else Lexical
    options = {"counter": "chars_div4", "ranking": "keyword", **options}
    options = {name: value for name, value in options.items() if name not in own}
    if own:
        options["ranking"] = kind(**own)
    for max_tokens in (5, 9, 40):
        expected = budgeteer.pack("tea", CHUNKS, max_tokens, **options)
        answer = packed("--max-tokens", str(max_tokens), *arguments)
        assert [kept.text for kept in expected.kept] == contents(answer)
        assert expected.total_tokens == answer["total_tokens"]
        assert [d.reason for d in expected.dropped] == [d["reason"] for d in answer["dropped"]]


@pytest.mark.parametrize("name", ["keyword", "recency", "input", "score"])
def test_options_of_bm25_need_it(refused, name):
    """--stemming and --stopwords are for BM25, and an error beside another ranking."""
    arguments = ("pack", "--query", "tea", "--max-tokens", 9, "--ranking", name)
    for option, value in (("stemming", "english"), ("stopwords", "none"), ("stopwords", "dutch")):
        message = refused(*arguments, f"--{option}", value, stdin='["tea"]')
        assert f"--{option} is for --ranking lexical or bm25, not {name}" == message


def test_options_by_themselves_are_those_of_the_default(run):
    """Without --ranking stems are those of the lexical one, which has English ones by default."""
    arguments = ("pack", "--query", "working", "--max-tokens", 5)
    chunks = '["Lunch is at noon.", "We work remotely."]'
    stemmed, unstemmed = "We work remotely.", "Lunch is at noon."
    for options, expected in (
        ((), stemmed),
        (("--stemming", "english"), stemmed),
        (("--stemming", "none"), unstemmed),
        (("--ranking", "bm25"), unstemmed),
        (("--ranking", "bm25", "--stemming", "english"), stemmed),
        (("--k3", "0", "--no-links", "--no-headings", "--no-feedback"), stemmed),
    ):
        assert (0, expected, "") == run(*arguments, *options, stdin=chunks)


def test_signals_can_be_turned_off(packed):
    """--no-headings, --no-links and --no-feedback leave each its part of the scores out."""
    chunks = [
        {"title": "Weather", "text": "Rain in Lyon."},
        {"title": "Blue Library", "text": "It is in Lyon."},
        {"title": "Books of Ada", "text": "Ada's are in the Blue Library in Lyon."},
    ]
    seen = set()
    for off in ((), ("headings",), ("links",), ("feedback",), ("headings", "links", "feedback")):
        arguments = [f"--no-{name}" for name in off] + ["--ranking", "lexical"]
        answer = packed(*arguments, "--max-tokens", "99", chunks=chunks, query="Ada's books")
        ranking = Lexical(**dict.fromkeys(off, False))
        expected = budgeteer.pack("Ada's books", chunks, 99, ranking=ranking, counter="chars_div4")
        found = [(kept["index"], kept["score"]) for kept in answer["kept"]]
        assert [(kept.index, kept.score) for kept in expected.kept] == found
        seen.add(tuple(sorted(found)))

    assert 5 == len(seen)


def test_the_notice_is_an_option(run):
    """--notice is notice=True."""
    arguments = ("--query", "tea", "--max-tokens", "40", "--max-chunks", "1", "--notice")
    status, out, _ = run("pack", *arguments, stdin='["tea", "bread"]')

    assert (0, "tea\n\nChunks left out: 1.") == (status, out)


def test_the_choices_are_the_facades(run):
    """Help lists what the facade takes, so that the two cannot drift."""
    status, out, err = run("pack", "--help")
    assert (0, "") == (status, err)
    without_vectors = tuple(n for n in NAMES if n not in ("embedding", "hybrid"))
    without_previous = tuple(name for name in ORDERS if name != "sticky")
    for names in (without_vectors, OVERFLOWS, without_previous, STYLES):
        assert "{" + ",".join(names) + "}" in out
    assert out.startswith("usage: budgeteer pack ")


def test_own_scores_may_be_missing(packed):
    """Under ranking score a chunk without one has null, in JSON as in Python."""
    chunks = [{"text": "a"}, {"text": "b", "score": 2.5}]
    answer = packed("--max-tokens", 9, "--ranking", "score", chunks=chunks)
    assert [("b", 2.5), ("a", None)] == [
        (chunk["text"], chunk["score"]) for chunk in answer["kept"]
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[{"text": "tea"}, "bread"]',
        ' \n[\n{"text": "tea"},\n"bread"\n]\n',
        '{"text": "tea"}\n"bread"',
        '\n{"content": "tea"}\r\n\r\n  "bread"\n\n',
        '\ufeff["tea", "bread"]',
        '\ufeff"tea"\n"bread"',
    ],
)
def test_pack_reads_an_array_or_lines(run, tmp_path, text):
    """The first character says whether the input is an array; a file is read like a pipe."""
    arguments = ("pack", "--query", "", "--max-tokens", 9)
    assert (0, "tea\n\nbread", "") == run(*arguments, stdin=text)
    (tmp_path / "chunks").write_text(text, encoding="utf-8")
    assert (0, "tea\n\nbread", "") == run(*arguments, "--input", tmp_path / "chunks")


def test_a_line_of_json_ends_at_a_newline_only(run):
    """Other line separators may stand in a string, raw as JSON allows."""
    text = '"a\u2028b\x85c"\n"d"'
    assert "a\u2028b\x85c\n\nd" == run("pack", "--query", "", "--max-tokens", 9, stdin=text)[1]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        *(
            (text, (), "there is no text in standard input")
            for text in ("", "\n \n", "[]", '[""]')
        ),
        ('["Green tea is mild."]', (), "nothing fits into 2 tokens; a larger -n has room, and "),
        ('["Green tea"]', ("--min-score", 9), "nothing in standard input scores 9.0 or more"),
        ('["tea"]', ("--max-chunks", 0), "--max-chunks 0 keeps nothing"),
    ],
)
def test_nothing_packed_is_status_1(run, text, options, reason):
    """As with ask: a line says why; JSON is the document of the empty packing."""
    arguments = ("pack", "--query", "x", "--max-tokens", 2, *options)
    status, out, err = run(*arguments, stdin=text)
    assert (1, "") == (status, out)
    assert err.startswith(f"budgeteer: {reason}")
    status, out, said = run(*arguments, "-o", "json", stdin=text)
    assert (1, err) == (status, said)
    assert ("", []) == (json.loads(out)["text"], json.loads(out)["kept"])


def test_input_may_come_from_a_stream_without_bytes(run, monkeypatch):
    """A standard input that was replaced by a text stream is read too."""
    monkeypatch.setattr(sys, "stdin", io.StringIO('["tea"]'))
    assert (0, "tea", "") == run("pack", "--query", "", "--max-tokens", 9)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cut", "-n", 5, ""),
        ("ask", "", "tea"),
        ("pack", "-q", "t", "--input", ""),
        ("compare", "", ""),
        ("gate", ""),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_name_is_no_folder(refused, arguments):
    """An empty name, as of a variable that is not set, is not where the program runs."""
    assert "cannot read '': No such file or directory" == refused(*arguments)


def test_lone_surrogates_count_as_they_are_written(run, tmp_path):
    """What UTF-8 cannot hold is written as what it counts as; in JSON it reads back as itself."""
    arguments = ("pack", "--query", "", "--max-tokens", 9)
    chunk = r'["x\ud800y"]'
    assert (0, "x\ufffdy", "") == run(*arguments, stdin=chunk)
    out = run(*arguments, "-o", "json", stdin=chunk)[1]
    assert "x\ud800y" == json.loads(out)["kept"][0]["text"]
    folder = os.fsencode(tmp_path)
    with open(folder + b"/\xff\xfe\xff.txt", "w") as file:  # noqa: PTH123 - a name of bytes
        file.write("tea one")
    for limit in range(5, 40):
        out = run("ask", tmp_path, "tea", "-n", limit, "-o", "markdown")[1]
        assert get_counter("o200k_base").count(out.removesuffix("\n")) <= limit
    assert "\ufffd\ufffd\ufffd.txt" in out


WHOLE = f"must be a whole number from 0 to {2**63 - 1}, not"
BAD_ITEM = "must be a str or a JSON object, not"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1", "standard input: line 1, column 3: invalid JSON: "),
        ('\n["a",\n', "standard input: line 3, column 1: invalid JSON: "),
        ('"a"\n{"text": }', "standard input: line 2, column 10: invalid JSON: Expecting value"),
        ('"a"\nplain', "standard input: line 2, column 1: invalid JSON: Expecting value"),
        ('["a", NaN]', "standard input: line 1: invalid JSON: NaN is not a JSON number"),
        ("[" * 200_000, "standard input: line 1: invalid JSON: nested too deeply"),
        ("9" * 5_000, "standard input: line 1: invalid JSON: Exceeds the limit (4300 digits)"),
        ('["a", 5]', f"standard input: chunks[1] {BAD_ITEM} int"),
        ('["a", null]', f"standard input: chunks[1] {BAD_ITEM} None"),
        ('"a"\n\n[1]', f"standard input: line 3 {BAD_ITEM} list"),
        ('["a", {"body": "x"}]', "chunks[1] must have a key 'text', 'content' or 'page_content'"),
        ('[{"text": 5}]', "chunks[0].text must be a str, not int"),
        ('"a"\n\n{"body": "x"}', "standard input: line 3 must have a key 'text', 'content' or "),
        ('"a"\n\n{"text": 5}', "standard input: line 3: text must be a str, not int"),
        (b'"a"\n"\xff"', "standard input: line 2: not UTF-8"),
    ],
)
def test_bad_input_is_refused(refused, text, message):
    """The message says where the input is wrong, and nothing is written."""
    arguments = ("pack", "--query", "", "--max-tokens", 9, "-o", "json")
    error = refused(*arguments, stdin=text)
    assert error.startswith(message)
    assert "sys." not in error  # there is no such remedy here


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-tokens", -1], f"max_tokens must be from 0 to {2**63 - 1}, not -1"),
        (["--max-tokens", "x"], f"argument -n/--max-tokens: {WHOLE} 'x'"),
        (["--max-tokens", "1.5"], f"argument -n/--max-tokens: {WHOLE} '1.5'"),
        (["--reserve-tokens", "x"], f"argument --reserve-tokens: {WHOLE} 'x'"),
        (["--max-chunks", "x"], f"argument --max-chunks: {WHOLE} 'x'"),
        (["--reserve-tokens", -2], f"reserve_tokens must be from 0 to {2**63 - 1}, not -2"),
        (["--min-score", "nan"], "min_score must be a number, not NaN"),
        (["--min-score", "high"], "argument --min-score: must be a number or 'auto', not 'high'"),
        (
            ["--min-score", "auto", "--ranking", "keyword"],
            "--min-score auto is for --ranking lexical or bm25, not keyword",
        ),
        (
            ["--overflow", "truncate"],
            (
                "argument --overflow: must be one of 'skip', 'stop', 'truncate_end', "
                "'truncate_middle', not 'truncate'; did you mean 'truncate_end'?"
            ),
        ),
        (
            ["--dedupe", "off"],
            "argument --dedupe: must be one of 'exact', 'near', 'none', not 'off'",
        ),
        (
            ["-o", "jsno"],
            (
                "argument -o/--output: must be one of 'text', 'json', 'markdown', 'xml', or a "
                "file that ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet, not 'jsno'; did you "
                "mean 'json'?"
            ),
        ),
        (["--max", "5"], "unrecognized arguments: --max 5"),
        (["--bad\n"], r"unrecognized arguments: --bad\n"),
    ],
)
def test_bad_options_are_refused_before_input_is_read(refused, monkeypatch, options, message):
    """A bad option is one line, in the words of the facade where it is the facade's."""
    monkeypatch.setattr(sys, "stdin", None)
    assert message == refused("pack", "--query", "x", "--max-tokens", 5, *options)


@pytest.mark.parametrize("command", [["pack", "--query", "", "--max-tokens", 5], ["count"]])
def test_an_unknown_counter_is_refused(refused, command):
    """A near miss of a counter's name is named; a callable is not offered."""
    message = refused(*command, "--counter", "wrods", stdin="")
    assert message.startswith("argument -m/--counter: counter must be one of ")
    assert message.endswith("not 'wrods'; did you mean 'words'?")
    assert "callable" not in message


@pytest.mark.parametrize("command", [["pack", "--query", "", "--max-tokens", 5], ["count"]])
@pytest.mark.parametrize(
    ("name", "starts", "ends"),
    [
        ("gpt4o", "must be one of ", "not 'gpt4o'; did you mean 'gpt-4o'?"),
        ("o200k", "must be one of ", "not 'o200k'; did you mean 'o200k_base'?"),
        ("tiktoken:o200k", "'tiktoken:o200k' must have one of ", "did you mean 'o200k_base'?"),
        ("hf:gone", "'hf:gone' must have the path ", "; there is no such file"),
        ("chars_per_token:0", "'chars_per_token:0' must have a number ", " after the colon"),
    ],
)
def test_a_counter_that_cannot_be_had_is_one_line(refused, command, name, starts, ends):
    """A counter that is not there is an error of its argument, before any input is read."""
    message = refused(*command, "--counter", name)
    assert message.startswith(f"argument -m/--counter: counter {starts}")
    assert message.endswith(ends)


@pytest.mark.parametrize("name", ["gone.json", "."])
def test_pack_names_a_file_that_cannot_be_read(refused, tmp_path, name):
    """A missing input, and a directory given as one, are one line."""
    message = refused("pack", "--query", "", "--max-tokens", 5, "--input", tmp_path / name)
    assert message.startswith(f"cannot read {tmp_path / name}: ")


# count


def test_count_counts_standard_input(run):
    """Without files the answer is the number alone."""
    assert (0, "3\n", "") == run("count", "--counter", "chars_div4", stdin="Hello, world")
    assert (0, "2\n", "") == run("count", "--counter", "words", stdin="Hello, world\r\n")
    assert (0, "0\n", "") == run("count", stdin="")


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        *(("o200k_base", 6), ("cl100k_base", 9), ("gpt-4o", 6), ("gpt-4-0613", 9)),
        *(("tiktoken:cl100k_base", 9), ("tiktoken:o200k_harmony", 6)),
    ],
)
def test_count_takes_encodings_and_models(run, name, tokens):
    """An encoding is named by itself, by a model that uses it, or as tiktoken's."""
    text = "Remote work \u7eff\u8336 \u043f\u043e\u043b\u0438\u0442\u0438\u043a\u0430"
    assert (0, f"{tokens}\n", "") == run("count", "--counter", name, stdin=text)


def test_count_takes_a_tokenizer(run, tmp_path, monkeypatch):
    """A local tokenizer.json is named by its path from where the program stands."""
    words = {"type": "WordLevel", "vocab": {"tea": 0, "?": 1}, "unk_token": "?"}
    content = {"model": words, "pre_tokenizer": {"type": "Whitespace"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("hf:.", "hf:tokenizer.json", f"hf:{tmp_path}"):
        assert (0, "3\n", "") == run("count", "--counter", name, stdin="Green tea.")


def test_pack_is_exact_unless_told_otherwise(run):
    """Without a counter the figures are those of Packer's default, and say that they are exact."""
    arguments = ("pack", "--query", "tea", "--max-tokens", 9, "-o", "json")
    answer = json.loads(run(*arguments, stdin=json.dumps(CHUNKS))[1])
    expected = budgeteer.pack("tea", CHUNKS, 9)
    assert (expected.total_tokens, True) == (answer["total_tokens"], answer["is_exact"])
    assert budgeteer.get_counter("o200k_base").count(expected.text) == answer["total_tokens"]
    answer = json.loads(run(*arguments, "--counter", "words", stdin=json.dumps(CHUNKS))[1])
    assert not answer["is_exact"]


def test_count_uses_the_default_of_packer(run):
    """The counter is Packer's own where none is named."""
    text = "What is the remote work policy?"
    assert (
        f"{budgeteer.get_counter(budgeteer.Packer(1).counter).count(text)}\n"
        == (run("count", stdin=text)[1])
    )


def test_count_lists_files_and_their_total(run, tmp_path):
    """A file is a line, several have a total; standard input may be one of them."""
    one, two = tmp_path / "one\n", tmp_path / "two"
    one.write_bytes("\ufeffGrün".encode())
    two.write_bytes(b"two words")
    words = ("count", "--counter", "words")
    shown = str(one).replace("\n", r"\n")
    assert f"1\t{shown}\n" == run(*words, one)[1]
    assert f"1\t{shown}\n2\t{two}\n3\ttotal\n" == run(*words, one, two)[1]
    out = run(*words, "-", two, stdin="a b c")[1]
    assert f"3\tstandard input\n2\t{two}\n5\ttotal\n" == out


def test_a_file_without_permission_is_one_line(refused, tmp_path, monkeypatch):
    """What may not be read is named with the reason."""

    def denied(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    path = tmp_path / "a"
    assert f"cannot read {path}: Permission denied" == refused("count", path)


# The program as a whole.


def test_no_arguments_are_a_call_for_help(run):
    """Bare, the program shows its help."""
    status, out, err = run()
    assert (0, "") == (status, err)
    assert run("--help")[1] == out


def test_help_is_a_word_too(run):
    """Alone it is the help of the program, before a command that of the command."""
    assert run("--help") == run("help")
    assert run("ask", "--help") == run("help", "ask")


def test_a_misspelt_command_has_a_hint(refused):
    """As misspelt values of options have."""
    assert refused("quarry").endswith(", not 'quarry'; did you mean 'query'?")
    assert refused("xyz").endswith(", not 'xyz'")


def test_version_and_help(run):
    """The version and the help are answers: status 0, nothing on standard error."""
    assert (0, f"budgeteer {budgeteer.__version__}\n", "") == run("--version")
    status, out, err = run("-h")
    assert (0, "") == (status, err)
    commands = ("ask", "query", "pack", "gate", "count", "cut", "models", "inspect", "mcp")
    commands = (*commands, "compare", "schema", "completion")
    assert all(f"\n    {command}" in out for command in commands)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "docs"], "the following arguments are required: QUERY"),
        (["cut"], "the following arguments are required: -n/--max-tokens"),
        (["quarry"], "argument COMMAND: must be one of 'ask', 'query', "),
        (["help", "quarry"], "argument COMMAND: must be one of 'ask', "),
        (["count", "--max", "abc"], f"argument --max: {WHOLE} 'abc'"),
        (["gate", "--max-docs", "abc"], f"argument --max-docs: {WHOLE} 'abc'"),
        (["query"], "the following arguments are required: -c/--config, -q/--query/-t/--text"),
        (["query", "-c"], "argument -c/--config: expected one argument"),
        (["pack"], "the following arguments are required: -q/--query/-t/--text"),
        (["query", "--conf", "x", "-t", "x"], "the following arguments are required: -c/--config"),
        (["--nothing"], "unrecognized arguments: --nothing"),
    ],
)
def test_bad_arguments_are_one_line(refused, arguments, message):
    """An error of the arguments is one line without the usage."""
    assert refused(*arguments).startswith(message)
