"""OpenAI's and Anthropic's clients: what reaches the provider fits."""

import asyncio
from itertools import pairwise

import pytest
from provider import (
    CLAUDE_TOOL,
    RESPONSES_TOOL,
    TOOL,
    claude_history,
    history,
)

pytest.importorskip("openai")
pytest.importorskip("anthropic")

import anthropic
import openai
from pydantic import BaseModel

from budgeteer import Section, fit_request
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations._requests import Fitter
from budgeteer.integrations.anthropic import fitted as fitted_anthropic
from budgeteer.integrations.openai import fitted as fitted_openai
from budgeteer.window import count_messages, count_tools

OPTIONS = {"context_window": 900, "max_output_tokens": 100}
CHAT = {"model": "gpt-4o", "messages": history(6), "tools": [TOOL]}
RESPONSE = {
    "model": "gpt-4o",
    "instructions": "Be brief.",
    "input": [
        item
        for i in range(6)
        for item in (
            {"role": "user", "content": f"What is in file {i}?"},
            {"type": "function_call", "call_id": f"c{i}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{i}", "output": "Started. " * 300},
            {"role": "assistant", "content": "It started."},
        )
    ]
    + [{"role": "user", "content": "Which one failed?"}],
    "tools": [RESPONSES_TOOL],
}
MESSAGE = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": claude_history(6),
    "tools": [CLAUDE_TOOL],
}


class Answer(BaseModel):
    """An answer."""

    text: str


def sync_openai(provider):
    return provider.made(openai.OpenAI, f"{provider.url}/v1")


def sync_anthropic(provider):
    return provider.made(anthropic.Anthropic, provider.url)


def stream(client, name, request):
    with getattr(client, name).stream(**request) as events:
        return [*events]


OF_OPENAI = {
    "chat": (CHAT, lambda c: c.chat.completions.create(**CHAT)),
    "chat of a stream": (CHAT, lambda c: [*c.chat.completions.create(**CHAT, stream=True)]),
    "chat that is parsed": (
        CHAT,
        lambda c: c.chat.completions.parse(**{**CHAT, "tools": []}, response_format=Answer),
    ),
    "chat with its response": (
        CHAT,
        lambda c: c.chat.completions.with_raw_response.create(**CHAT).parse(),
    ),
    "chat with options": (
        CHAT,
        lambda c: c.with_options(timeout=5).chat.completions.create(**CHAT),
    ),
    "chat with more in its body": (
        CHAT,
        lambda c: c.chat.completions.create(
            model="gpt-4o", messages=[], extra_body={"messages": CHAT["messages"]}
        ),
    ),
    "chat by a path": (CHAT, lambda c: c.post("chat/completions", cast_to=object, body=CHAT)),
    "chat by a URL": (
        CHAT,
        lambda c: c.post(f"{c.base_url}chat/completions/", cast_to=object, body=CHAT),
    ),
    "responses": (RESPONSE, lambda c: c.responses.create(**RESPONSE)),
    "responses of a stream": (RESPONSE, lambda c: stream(c, "responses", RESPONSE)),
}
OF_ANTHROPIC = {
    "messages": (MESSAGE, lambda c: c.messages.create(**MESSAGE)),
    "messages of a stream": (MESSAGE, lambda c: stream(c, "messages", MESSAGE)),
    "messages of the beta": (MESSAGE, lambda c: c.beta.messages.create(**MESSAGE)),
    "messages that are streamed": (
        MESSAGE,
        lambda c: [*c.messages.create(**MESSAGE, stream=True)],
    ),
}


def tokens_of(body):
    """Return the tokens of a body, counted without what fitted it where there is a way."""
    if "input" in body or "system" in body:
        return fit_request(body, context_window=10**6, max_output_tokens=0).total_tokens
    total = count_messages(body["messages"], model="gpt-4o")
    tools = body.get("tools") or ()
    return total + count_tools(tools, model="gpt-4o", has_system_message=True)


def check(given, provider):
    [body] = provider.seen
    assert tokens_of(given) > 900
    assert tokens_of(body) <= 800
    key = "input" if "input" in given else "messages"
    assert given[key][-1] == body[key][-1]
    assert {*body} >= {"model", key}


@pytest.mark.parametrize("kind", OF_OPENAI)
def test_what_openai_gets_fits(provider, kind):
    """The law: the body that reaches the provider fits, however it was asked for."""
    given, ask = OF_OPENAI[kind]
    client = fitted_openai(sync_openai(provider), **OPTIONS)
    assert isinstance(client, openai.OpenAI)

    assert ask(client)

    check(given, provider)


@pytest.mark.parametrize("kind", OF_ANTHROPIC)
def test_what_anthropic_gets_fits(provider, kind):
    """The law: the body that reaches the provider fits, however it was asked for."""
    given, ask = OF_ANTHROPIC[kind]

    assert ask(fitted_anthropic(sync_anthropic(provider), **OPTIONS))

    check(given, provider)


def test_clients_that_are_awaited(provider):
    """The same goes for the asynchronous clients, streams included."""

    async def ask():
        options = {"api_key": "none", "max_retries": 0}
        own = openai.AsyncOpenAI(base_url=f"{provider.url}/v1", **options)
        other = anthropic.AsyncAnthropic(base_url=provider.url, **options)
        async with own, other:
            await asked(fitted_openai(own, **OPTIONS), fitted_anthropic(other, **OPTIONS))

    async def asked(client, claude):
        await client.chat.completions.create(**CHAT)
        async for _ in await client.chat.completions.create(**CHAT, stream=True):
            pass
        await client.with_options(timeout=5).responses.create(**RESPONSE)
        await claude.messages.create(**MESSAGE)
        async with claude.messages.stream(**MESSAGE) as events:
            assert "ok" == await events.get_final_text()

    asyncio.run(ask())

    assert 5 == len(provider.seen)
    assert [] == [tokens_of(body) for body in provider.seen if tokens_of(body) > 800]


def test_the_given_client_stays(provider):
    """The client that was given sends what it is told to, and so does what needs no room."""
    client = sync_openai(provider)
    fits = fitted_openai(client, **OPTIONS)
    short = {"model": "gpt-4o", "messages": history(0)}

    client.chat.completions.create(**CHAT)
    fits.chat.completions.create(**short)

    assert [CHAT, short] == provider.seen
    counted = fitted_anthropic(sync_anthropic(provider), **OPTIONS).messages.count_tokens(
        model="claude-opus-5", messages=MESSAGE["messages"]
    )
    assert 7 == counted.input_tokens
    assert MESSAGE["messages"] == provider.seen[-1]["messages"]


def test_sections_are_packed(provider):
    """A section of chunks in a message is packed before it is sent."""
    chunks = [f"Green tea is mild, says guest {i}." for i in range(500)]
    content = Section("found", query="tea", chunks=chunks)
    messages = [{"role": "user", "content": content}, *history(0)[1:]]
    client = fitted_openai(sync_openai(provider), **OPTIONS)

    client.chat.completions.create(model="gpt-4o", messages=messages)

    [body] = provider.seen
    assert "Green tea" in body["messages"][0]["content"]
    assert 600 < count_messages(body["messages"], model="gpt-4o") <= 800


def test_the_prefix_stays(provider):
    """While a conversation grows, its prompt begins as before in most requests."""
    client = fitted_openai(sync_openai(provider), context_window=2000)
    for turns in range(1, 40):
        client.chat.completions.create(model="gpt-4o", messages=history(turns, 60))

    firsts = [str(body["messages"][1:4]) for body in provider.seen]
    changes = sum(a != b for a, b in pairwise(firsts))
    assert 1 <= changes <= 13
    assert all(tokens_of(body) <= 2000 for body in provider.seen)


def test_what_cannot_fit_is_not_sent(provider):
    """Where the newest question is too long, the error has the arithmetic and nothing is sent."""
    client = fitted_openai(sync_openai(provider), **OPTIONS)
    with pytest.raises(BudgetExhaustedError, match="context_window 900 - 100 for the answer"):
        client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "tea " * 2000}]
        )
    with pytest.raises(InvalidArgumentError, match="previous_response_id"):
        client.responses.create(model="gpt-4o", input="Hello", previous_response_id="r0")
    assert [] == provider.seen


def test_threads_of_anthropic(provider):
    """What begins a thread has all of its messages; what goes on with one has only the newest."""
    client = fitted_anthropic(sync_anthropic(provider), **OPTIONS)
    begun = {"thread": {"type": "create"}}
    client.beta.messages.create(**MESSAGE, extra_body=begun)
    [body] = provider.seen
    assert begun["thread"] == body["thread"]
    assert tokens_of(body) <= 800

    result = {"type": "tool_result", "tool_use_id": "c9", "content": "Started."}
    new = {**MESSAGE, "messages": [{"role": "user", "content": [result]}]}
    goes_on = {"thread": {"type": "continue", "previous_message_id": "m1"}}
    with pytest.raises(InvalidArgumentError, match="thread=False"):
        client.beta.messages.create(**new, extra_body=goes_on)
    assert [body] == provider.seen


def test_what_cannot_be_counted_is_not_sent():
    """Content that is nested too deeply, and a bound that is no number, are named."""
    nested = []
    for _ in range(5000):
        nested = [nested]
    fit = Fitter("gpt-4o", 2000, None, None)
    with pytest.raises(InvalidArgumentError, match="content"):
        fit({"messages": [{"role": "user", "content": nested}]})
    with pytest.raises(InvalidArgumentError, match=r"'max_tokens'\] must be an int"):
        fit({"messages": history(0), "max_tokens": "9"}, 10)


def test_messages_that_can_be_read_once(provider):
    """What the clients take as an iterable reaches the provider whole, and goes on as a list."""
    client = fitted_openai(sync_openai(provider), context_window=2000)
    for turns in (2, 3):
        given = {"messages": (item for item in history(turns, 60)), "tools": iter([TOOL])}
        client.chat.completions.create(model="gpt-4o", **given)
        body = provider.seen[-1]
        assert [history(turns, 60), [TOOL]] == [body["messages"], body["tools"]]
    fit = Fitter("gpt-4o", 2000, None, None)
    for turns in (2, 3):
        sent = fit({"messages": iter(history(turns, 60))})
        assert history(turns, 60) == sent.request["messages"]
    assert sent.report.stable_prefix_tokens > 0


@pytest.mark.parametrize(
    ("fitted", "client", "options", "message"),
    [
        (fitted_openai, 3, {}, "client must be OpenAI or AsyncOpenAI, not int"),
        (fitted_anthropic, None, {}, "client must be Anthropic or AsyncAnthropic, not None"),
        (fitted_openai, None, {"context_window": "9"}, "context_window must be an int, not str"),
        (fitted_openai, None, {"max_output_tokens": -1}, "max_output_tokens must be from 0"),
        (fitted_openai, None, {"model": 3}, "model must be a str, not int"),
    ],
)
def test_wrong_arguments(fitted, client, options, message):
    """A wrong argument is refused when the client is made."""
    with pytest.raises(InvalidArgumentError, match=message):
        fitted(client, **options)
