"""MCP: a server whose answers fit."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

pytest.importorskip("mcp.server.mcpserver", exc_type=ImportError)

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from budgeteer import get_counter
from budgeteer.errors import InvalidArgumentError
from budgeteer.integrations.mcp import server

HANDBOOK = Path(__file__).parents[3] / "examples/handbook"


def called(made, *calls):
    """Return the answers of a server to calls of its tools, and the tools."""

    async def ask():
        async with Client(made) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(ask())


def text_of(answer):
    assert not answer.is_error, answer.content
    return "".join(part.text for part in answer.content)


@pytest.mark.parametrize("limit", [0, 20, 60, 200, 1000])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-5"])
def test_answers_fit(limit, model):
    """The law: what the tools answer counts at most what the caller asks for."""
    count = get_counter(model).count
    long = json.dumps([{"id": i, "tea": "green"} for i in range(300)])
    options = {"max_tokens": limit, "model": model}

    _, [asked, cut, counted] = called(
        server([str(HANDBOOK)]),
        ("ask", {"query": "What is the remote work policy?", **options}),
        ("cut", {"text": long, "kind": "text", **options}),
        ("count", {"text": long, "model": model}),
    )

    for answer in (asked, cut):
        if limit < 200 and answer.is_error:
            assert f"fits into {limit} tokens: ask for more" in answer.content[0].text
        else:
            assert 0 < count(text_of(answer)) <= limit
    assert limit < 200 or "Remote Work" in text_of(asked)
    said = "" if get_counter(model).is_exact else " (an estimate)"
    assert f"{count(long)}{said}" == text_of(counted)


def test_the_tools():
    """The tools say what they take; one that would read is there only with something to read."""
    tools, _ = called(server([str(HANDBOOK)]))
    assert ["ask", "count", "cut"] == [tool.name for tool in tools]
    for tool in tools:
        assert tool.description
        assert all(shown.get("description") for shown in tool.input_schema["properties"].values())
        assert tool.input_schema["additionalProperties"] is False
    assert ["count", "cut"] == [tool.name for tool in called(server())[0]]


def test_wrong_arguments():
    """A wrong argument of a call is an error of the call, with what is allowed."""
    _, answers = called(
        server(),
        ("cut", {"text": "{", "max_tokens": 9, "kind": "json"}),
        ("cut", {"text": "tea", "max_tokens": -1}),
        ("ask", {"query": "tea"}),
    )
    assert [True] * 3 == [answer.is_error for answer in answers]
    [told] = answers[0].content  # the model is told, so that it can ask for something else
    assert "text must be JSON for kind 'json', and is not from character" in told.text
    assert "kind 'text' takes any str" in told.text
    with pytest.raises(InvalidArgumentError, match="cannot read 'nowhere': No such file"):
        server(["nowhere"])
    with pytest.raises(InvalidArgumentError, match="model must be a str"):
        server(model=3)


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("ask", {"query": "tea", "max_token": 9},
         "ask takes query, max_tokens, model, and no 'max_token'"),
        ("ask", {"max_tokens": 9}, "query must be given"),
        ("ask", {"query": "tea", "max_tokens": "9"}, "max_tokens must be an int, not str"),
        ("count", {"text": "tea", "model": "file:/etc/hosts"}, "no tokenizer is read for a call"),
        ("count", {"text": "tea", "model": ""}, "model must be a name, not empty"),
        ("count", {"text": "tea", "model": 3}, "model must be a str, not int"),
        ("cut", {"text": None, "max_tokens": 9}, "text must be a str, not None"),
        ("cut", {"text": {"tea": 1}, "max_tokens": 9}, "text must be a str, not dict"),
        ("cut", {"text": "tea " * 9, "max_tokens": 1},
         "nothing of the text fits into 1 tokens: ask for more"),
        ("cut", {"text": "[1, 2]", "max_tokens": 0},
         "nothing of the text fits into 0 tokens: ask for more"),
    ],
)  # fmt: skip
def test_what_a_call_gets_wrong(tool, given, told):
    """Names and types are as strict as of a function, as the budget may be misspelt."""
    _, [answer] = called(server([str(HANDBOOK)]), (tool, given))
    assert answer.is_error
    assert told in answer.content[0].text


def test_why_there_is_no_answer(tmp_path, caplog, monkeypatch):
    """An answer without text says why: nothing matches, nothing fits, nothing can be read."""
    folder = tmp_path / "notes"
    folder.mkdir()
    folder.joinpath("tea.md").write_text("Green tea is mild.")
    made = server([str(folder)])
    _, answers = called(
        made, ("ask", {"query": "rye"}), ("ask", {"query": "tea", "max_tokens": 1})
    )
    assert "nothing in the files has a word of the query" in answers[0].content[0].text
    assert "fits into 1 tokens: ask for more" in answers[1].content[0].text
    folder.joinpath("latin.txt").write_bytes(b"caf\xe9 zebra")
    _, answers = called(made, ("ask", {"query": "zebra"}), ("ask", {"query": "tea"}))
    assert f"cannot read {folder.as_posix()}/latin.txt: " in answers[0].content[0].text
    assert "Green tea" in text_of(answers[1])
    assert "latin.txt" in caplog.text
    with monkeypatch.context() as patched:
        denied = PermissionError(errno.EACCES, "Permission denied", str(folder))
        patched.setattr(os, "scandir", Mock(side_effect=denied))
        _, [answer] = called(made, ("ask", {"query": "tea"}))
    assert f"cannot read {folder}: Permission denied" in answer.content[0].text
    folder.rename(tmp_path / "away")
    _, [answer] = called(made, ("ask", {"query": "tea"}))
    assert "there is no text in the files; cannot read" in answer.content[0].text


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_file_whose_name_is_not_utf8(tmp_path):
    """What is named in an answer or an error can be sent, whatever it is; else the server ends."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder, text in ((good, b"Green tea."), (bad, b"caf\xe9")):
        folder.mkdir()
        (folder / os.fsdecode(b"tea\xff.md")).write_bytes(text)
    for folder, is_error in ((good, False), (bad, True)):
        _, [answer] = called(server([str(folder)]), ("ask", {"query": "tea", "max_tokens": 90}))
        assert is_error == answer.is_error
        [told] = answer.content
        assert "tea\ufffd.md" in told.text
        assert get_counter("gpt-4o").count(told.text) <= 90
        told.text.encode()


@pytest.mark.parametrize("name", ["cl100k_base", "words", "chars_per_token:3"])
def test_names_that_are_no_model(name):
    """A caller may name an encoding or an estimate; the operator also a tokenizer's file."""
    _, answers = called(server(model=name), ("count", {"text": "Green tea."}))
    _, others = called(server(), ("count", {"text": "Green tea.", "model": name}))
    expected = get_counter(name)
    said = "" if expected.is_exact else " (an estimate)"
    assert [f"{expected.count('Green tea.')}{said}"] * 2 == [
        text_of(answers[0]),
        text_of(others[0]),
    ]


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a child")
def test_an_interrupt_ends_the_command():
    """Ctrl-C ends it at once, though it waits for standard input."""
    command = [sys.executable, "-m", "budgeteer", "mcp"]
    about = {"name": "test", "version": "1"}
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            assert b"budgeteer" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert 130 == process.wait(10)
        finally:
            process.kill()


def test_the_command():
    """`budgeteer mcp` serves on standard input and output."""
    command = ["-m", "budgeteer", "mcp", str(HANDBOOK)]
    given = StdioServerParameters(command=sys.executable, args=command, env={**os.environ})

    tools, [answer] = called(stdio_client(given), ("count", {"text": "Green tea."}))

    assert 3 == len(tools)
    assert "3" == text_of(answer)
