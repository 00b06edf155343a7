"""MCP: a server whose answers fit."""

import asyncio
import json
import os
import sys
from pathlib import Path

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

    assert count(text_of(asked)) <= limit
    assert limit < 200 or "Remote Work" in text_of(asked)
    assert count(text_of(cut)) <= limit
    assert count(long) == int(text_of(counted))


def test_the_tools():
    """The tools say what they take; one that would read is there only with something to read."""
    tools, _ = called(server([str(HANDBOOK)]))
    assert ["ask", "count", "cut"] == [tool.name for tool in tools]
    for tool in tools:
        assert tool.description
        assert all(shown.get("description") for shown in tool.input_schema["properties"].values())
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


def test_the_command():
    """`budgeteer mcp` serves on standard input and output."""
    command = ["-m", "budgeteer", "mcp", str(HANDBOOK)]
    given = StdioServerParameters(command=sys.executable, args=command, env={**os.environ})

    tools, [answer] = called(stdio_client(given), ("count", {"text": "Green tea."}))

    assert 3 == len(tools)
    assert "3" == text_of(answer)
