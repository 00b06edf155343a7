"""``budgeteer models`` and ``budgeteer inspect``: what they answer, and what they refuse."""

import io
import json
import logging
import subprocess
import sys

import pytest

from budgeteer.window import list_models, model_limits, negotiate

WHOLE = f"must be a whole number from 0 to {2**63 - 1}, not"
DOCUMENT = ("--model", "gpt-3.5-turbo", "--messages", "50", "--max-tokens", "5000")


@pytest.fixture(autouse=True)
def _handlers(monkeypatch):
    """No handler that a command adds is left behind."""
    monkeypatch.setattr(logging.getLogger("budgeteer"), "handlers", [])


def test_inspect_prints_the_documents_json(run):
    """Seed 001: the JSON of its CLI section, figure by figure."""
    status, out, err = run("inspect", *DOCUMENT, "--memories", 3, "-o", "json")

    assert (0, "") == (status, err)
    expected = {
        "adjustedMaxTokens": 3285,
        "inputTokenCount": 13000,
        "messageCount": 50,
        "memoryCount": 3,
    }
    assert {"metadata": expected} == json.loads(out)
    assert list(expected) == list(json.loads(out)["metadata"])


def test_inspect_names_memories(run):
    """Memories are a part of the sum, where there are any."""
    _, out, _ = run("inspect", *DOCUMENT, "--memories", 3)

    assert "50 messages + 500 system + " in out
    assert " in 3 memories)" in out


def test_inspect_is_readable(run):
    """Seed 001: the fields of its console example, with its mark where the answer shrank."""
    expected = [
        "Two-dimensional budget for gpt-3.5-turbo:",
        "  Context Window: 16385 tokens",
        "  Input Tokens (estimated): 13000 (50 messages + 500 system)",
        "  Safety Margin: 100",
        "  Available for Completion: 3285",
        "  Requested maxTokens: 5000",
        "  Adjusted maxTokens: 3285 (REDUCED)",
    ]

    assert (0, "\n".join([*expected, ""]), "") == run("inspect", *DOCUMENT)


def test_inspect_says_that_the_window_overflows(run):
    """The third example is readable too, and strict makes it an error."""
    arguments = ("--model", "deepseek-coder:6.7b", "--messages", 60, "--max-tokens", 3000)
    status, out, err = run("inspect", *arguments)

    assert (0, "") == (status, err)
    assert out.splitlines()[-1].startswith("  The window overflows: ")
    assert (2, "") == run("inspect", *arguments, "--strict")[:2]


def test_inspect_says_that_the_model_is_not_known(run):
    """An unknown model has 32768 tokens, and nothing is logged to standard error."""
    status, out, err = run("inspect", "--model", "no\nbody", "--messages", 1, "--max-tokens", 9)

    assert (0, "") == (status, err)
    assert "  Context Window: 32768 tokens (the model is not known)" in out.splitlines()
    assert out.startswith("Two-dimensional budget for no\\nbody:\n")


def test_inspect_reads_files(run, tmp_path):
    """Messages, memories and tools may be JSON files, and are counted by a counter."""
    messages = [{"role": "user", "content": "Hello, world!"}]
    memories = ["Tea is green.", {"content": "Old.", "age_days": 30}]
    tools = [{"name": "now", "description": "Say what time it is"}]
    paths = []
    for name, value in (("messages", messages), ("memories", memories), ("tools", tools)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(value))
        paths += [f"--{name}", path]
    status, out, err = run(
        *("inspect", "--model", "gpt-4o", "--max-tokens", 900, "--counter", "gpt-4o"),
        *("--system-tokens", 7, "--safety-margin", "auto", "-o", "json"),
        *paths,
    )
    expected = negotiate(
        model="gpt-4o",
        messages=messages,
        max_output_tokens=900,
        counter="gpt-4o",
        system_tokens=7,
        safety_margin="auto",
        memories=memories,
        tools=tools,
    )

    assert (0, "") == (status, err)
    assert expected.input_token_count == json.loads(out)["metadata"]["inputTokenCount"]
    assert 1 == json.loads(out)["metadata"]["memoryCount"]


def test_inspect_refuses_a_counter_that_counts_nothing(refused):
    """Where messages and memories are numbers, each takes what it always takes."""
    said = refused("inspect", *DOCUMENT, "--memories", 3, "--counter", "gpt-4o")
    assert "--counter does nothing where nothing is counted: give the messages as a file" == said


@pytest.mark.parametrize("name", ["messages", "tools"])
def test_inspect_refuses_what_is_no_mapping(refused, name):
    """The message has no remedy that a file cannot have."""
    said = refused("inspect", *DOCUMENT, f"--{name}", "-", stdin="[3]")
    assert f"{name}[0] must be a mapping, not int" == said


def test_inspect_reads_standard_input(run, monkeypatch):
    """A dash is standard input."""
    stdin = io.TextIOWrapper(io.BytesIO(b'[{"role": "user", "content": "a"}]'))
    monkeypatch.setattr(sys, "stdin", stdin)
    answer = run(
        *("inspect", "--model", "gpt-4", "--messages", "-", "--max-tokens", 9, "-o", "json")
    )

    assert 1 == json.loads(answer[1])["metadata"]["messageCount"]


def test_models_lists_all(run):
    """Every known model is a line, and an object of the JSON."""
    status, out, err = run("models")

    assert (0, "") == (status, err)
    assert [limits.name for limits in list_models()] == [
        line.split("\t")[0] for line in out.splitlines()
    ]
    assert [limits.to_dict() for limits in list_models()] == json.loads(
        run("models", "-o", "json")[1]
    )


def test_models_looks_one_up(run):
    """A name is looked up as everywhere; an unknown one says so."""
    line = "openai/gpt-4o\twindow=128000\tinput=128000\toutput=16384\to200k_base\topenai\tdocument"

    assert (0, line + "\n", "") == run("models", "openai/gpt-4o")
    assert "\tclaude3\tanthropic\t" in run("models", "claude-3-opus")[1]
    assert model_limits("gpt-5").to_dict() == json.loads(run("models", "gpt-5", "-o", "json")[1])
    status, out, err = run("models", "nobody-knows")
    assert (0, "", "not known\n") == (status, err, out.split("\t")[-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect"], "the following arguments are required: --model, --messages, --max-tokens"),
        (["inspect", *DOCUMENT[:-1], "x"], f"argument --max-tokens: {WHOLE} 'x'"),
        (["inspect", *DOCUMENT[:-1], "-1"], "--max-tokens must be from 0 to "),
        (["inspect", *DOCUMENT, "--memories", "no/such/file"], "no/such/file: No such file"),
        (["inspect", *DOCUMENT, "--memories", "9" * 5000], "9999"),
        (["inspect", *DOCUMENT, "--memories", "9" * 50], "memories must be from 0 to "),
        (["inspect", *DOCUMENT, "--tools", "3"], "3: No such file"),
        (["inspect", *DOCUMENT, "--counter", "wrods"], "argument --counter: "),
        (
            ["inspect", *DOCUMENT, "--safety-margin", "atuo"],
            "argument --safety-margin: must be a whole number from 0 on or 'auto', not 'atuo'",
        ),
        (
            ["inspect", *DOCUMENT, "--memories", "-", "--tools", "-"],
            "only one of --messages, --memories and --tools may be standard input",
        ),
        (["models", "a", "b"], "unrecognized arguments: b"),
        (["models", "-o", "jsn"], "argument -o/--output: must be one of "),
    ],
)
def test_refused(refused, arguments, message):
    """An error is one line that names the argument."""
    assert message in refused(*arguments)


def test_a_file_that_is_not_json(refused, tmp_path):
    """It is named."""
    path = tmp_path / "messages.json"
    path.write_text("{")

    said = refused("inspect", "--model", "gpt-4", "--messages", path, "--max-tokens", 9)
    assert said.startswith(f"{path}: ")


def test_the_program():
    """In a process of its own a reduced answer leaves standard error empty."""
    done = subprocess.run(
        [sys.executable, "-m", "budgeteer", "inspect", *DOCUMENT],
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip

    assert (0, b"") == (done.returncode, done.stderr)
    assert done.stdout.rstrip().endswith(b"Adjusted maxTokens: 3285 (REDUCED)")
