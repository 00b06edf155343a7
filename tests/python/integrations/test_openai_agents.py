"""OpenAI Agents: what reaches the models of a run fits."""

import asyncio
import json

import pytest

pytest.importorskip("agents")

import agents
import provider as loopback
from agents import Agent, RunConfig, Runner, SQLiteSession, WebSearchTool, function_tool
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from pydantic import BaseModel

from budgeteer import get_counter
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations.openai_agents import BudgetSession, input_filter
from budgeteer.window import count_messages, count_tools

COUNT = get_counter("o200k_base").count
agents.set_tracing_disabled(True)


class Answer(BaseModel):
    """The answer, and where it was found."""

    text: str
    sources: list[str]


@function_tool
def read(path: str) -> str:
    """Read a file, and say what is in it."""
    return f"{path}: started. " * 300


def items(turns):
    made = []
    for i in range(turns):
        call = {"type": "function_call", "call_id": f"c{i}", "name": "read", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": f"c{i}", "output": "Started. " * 200}
        made += [
            {"role": "user", "content": f"What is in file {i}?"},
            call,
            output,
            {"role": "assistant", "content": "It started."},
        ]
    return made


def tokens_of(body):
    """Return what a request takes, counted without the filter."""
    key = "input" if "input" in body else "messages"
    total = count_messages(body[key], model="gpt-4o") + COUNT(body.get("instructions") or "")
    tools = [tool for tool in body.get("tools") or () if tool["type"] == "function"]
    total += count_tools(tools, model="gpt-4o", has_system_message=True)
    schema = (body.get("text") or {}).get("format") or body.get("response_format") or {}
    if schema:
        total += COUNT(json.dumps(schema.get("schema") or schema["json_schema"]["schema"]))
    return total


def calling(times, answer):
    """Return how a provider answers that calls a tool so many times first."""

    def answered(body):
        made = answer(body)
        results = [item for item in body["input"] if item.get("type") == "function_call_output"]
        if len({item["call_id"] for item in results if item["call_id"].startswith("d")}) < times:
            call = {
                "type": "function_call",
                "id": f"f{len(results)}",
                "call_id": f"d{len(results)}",
                "name": "read",
                "arguments": '{"path": "a"}',
                "status": "completed",
            }
            made["output"] = [call]
        else:
            made["output"][0]["content"][0]["text"] = '{"text": "ok", "sources": []}'
        return made

    return answered


async def run(provider, kind, window, asked, session=None, **options):
    async with AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0) as own:
        other = Agent("Baker", handoff_description="Knows all about rye.")
        agent = Agent(
            "Host",
            instructions="Answer from the files alone. " * 5,
            model=kind("gpt-4o", own),
            handoffs=[other],
            **options,
        )
        config = RunConfig(call_model_input_filter=input_filter(context_window=window))
        return await Runner.run(agent, asked, run_config=config, session=session)


@pytest.mark.parametrize("window", [500, 900])
@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
def test_what_is_sent_fits(provider, kind, window):
    """The law: items, instructions, tools, handoffs and schema that are sent fit."""
    asked = [*items(6), {"role": "user", "content": "Which one failed?"}]
    output = {"output_type": Answer} if kind is OpenAIChatCompletionsModel else {}

    result = asyncio.run(run(provider, kind, window, asked, tools=[read], **output))

    [body] = provider.seen
    assert window // 2 < tokens_of(body) <= window
    assert "Which one failed?" in str(body.get("input") or body["messages"][-1])
    assert len(asked) < len(result.to_input_list())


def test_a_run_with_tools_and_a_session(provider, monkeypatch):
    """Each call of a run fits, call after call, and its session keeps everything."""
    monkeypatch.setitem(loopback.ANSWERS, "responses", calling(5, loopback.response))
    session = SQLiteSession("house")

    async def talk():
        await session.add_items(items(3))
        options = {"tools": [read], "output_type": Answer}
        asked = (OpenAIResponsesModel, 900, "Which one failed?", session)
        result = await run(provider, *asked, **options)
        return result.final_output, await session.get_items()

    answer, kept = asyncio.run(talk())
    session.close()

    assert "ok" == answer.text
    assert 6 == len(provider.seen)
    for body in provider.seen:
        assert tokens_of(body) <= 900
        calls = [i["call_id"] for i in body["input"] if i.get("type") == "function_call"]
        outputs = [i["call_id"] for i in body["input"] if i.get("type") == "function_call_output"]
        assert calls == outputs
    outputs = [item for item in kept if item.get("type") == "function_call_output"]
    assert 8 == len(outputs)
    assert all(len(item["output"]) > 1000 for item in outputs)


@pytest.mark.parametrize("limit", [120, 400, 10_000])
def test_a_session_that_fits(provider, limit):
    """The law: what is read of a session fits; pairs stay together, and nothing is lost."""
    whole = SQLiteSession("house")
    session = BudgetSession(whole, limit, model="gpt-4o")

    async def talk():
        await session.add_items(items(6))
        await session.add_items([{"role": "user", "content": "Which one failed?"}])
        before = await session.get_items()
        await run(provider, OpenAIResponsesModel, 100_000, "And why?", session, tools=[read])
        return (
            before,
            await session.get_items(),
            await session.get_items(2),
            await whole.get_items(),
        )

    before, after, two, everything = asyncio.run(talk())
    whole.close()

    for found in (before, after, two):
        assert count_messages(found, model="gpt-4o") <= limit
        calls = [i["call_id"] for i in found if i.get("type") == "function_call"]
        outputs = [i["call_id"] for i in found if i.get("type") == "function_call_output"]
        assert calls == outputs
    assert "Which one failed?" == before[-1]["content"]
    assert (limit == 10_000) == (len(before) == 25)
    assert 25 + 2 == len(everything)
    [body] = provider.seen
    assert before == body["input"][: len(before)]


LONG = {"role": "assistant", "content": "Rye. " * 700}
REASONING = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e" * 9000}
DRAWN = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "e" * 9000}


@pytest.mark.parametrize("last", [[LONG], [REASONING, LONG], [*items(2)[-3:-1], LONG], [DRAWN]])
def test_an_answer_that_does_not_fit(provider, last):
    """A run goes on after an answer that is larger than the session may read."""
    whole = SQLiteSession("house")
    session = BudgetSession(whole, 300, model="gpt-4o")

    async def talk():
        await session.add_items([*items(1), {"role": "user", "content": "Rye?"}, *last])
        before = await session.get_items()
        await run(provider, OpenAIResponsesModel, 100_000, "And tea?", session)
        return before, await session.get_items(), await whole.get_items()

    before, after, everything = asyncio.run(talk())
    whole.close()
    assert [] == before
    assert "And tea?" == after[0]["content"]
    assert 5 + len(last) + 2 == len(everything)
    [body] = provider.seen
    assert ["And tea?"] == [item["content"] for item in body["input"]]


@pytest.mark.parametrize("last", [[], [REASONING], [LONG, items(1)[1]], [items(1)[1], LONG]])
def test_what_waits_for_an_answer_stays(last):
    """A question, or a call without its output, that does not fit is an error."""
    session = BudgetSession(SQLiteSession("house"), 300, model="gpt-4o")
    asyncio.run(session.add_items([{"role": "user", "content": "Rye? " * 300}, *last]))
    with pytest.raises(BudgetExhaustedError, match="newest message of the user"):
        asyncio.run(session.get_items())
    session.session.close()


def test_a_session_is_one(provider):
    """It is a session for the package, and passes on what it is not asked to change."""
    whole = SQLiteSession("house")
    session = BudgetSession(whole, 20)
    assert isinstance(session, agents.Session)

    async def use():
        await session.add_items(items(1))
        last = await session.pop_item()
        left = await whole.get_items()
        await session.clear_session()
        return last, left, await whole.get_items()

    last, left, gone = asyncio.run(use())
    whole.close()
    assert ({"role": "assistant", "content": "It started."}, 3, []) == (last, len(left), gone)
    for wrong, says in ((-1, "max_tokens must be from 0"), ("9", "max_tokens must be an int")):
        with pytest.raises(InvalidArgumentError, match=says):
            BudgetSession(whole, wrong)
    with pytest.raises(InvalidArgumentError, match="model"):
        BudgetSession(whole, 9, model=3)
    with pytest.raises(InvalidArgumentError, match="session must be a Session, not None"):
        BudgetSession(None, 9)


def test_a_session_without_settings():
    """What the package takes for a session is one here."""

    class Own:
        session_id = "own"

        async def get_items(self, limit=None):
            return [{"role": "user", "content": text} for text in ("Tea? " * 99, "And rye?")]

    assert ["And rye?"] == [
        item["content"] for item in asyncio.run(BudgetSession(Own(), 12).get_items())
    ]


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize("kind", [bool, "function", "coroutine"])
def test_handoffs_that_are_disabled(is_enabled, kind):
    """A handoff counts where it reaches the model, and not else."""

    async def later(context, agent):
        return is_enabled

    says = {"function": lambda context, agent: is_enabled, "coroutine": later}.get(
        kind, is_enabled
    )
    to = agents.handoff(Agent("taster", handoff_description="Tastes. " * 50), is_enabled=says)
    data = agents.run.CallModelData(
        agents.run.ModelInputData([{"role": "user", "content": "Hello?"}], None),
        Agent("house", model="gpt-4o", handoffs=[to]),
        None,
    )
    fits = input_filter(context_window=60)
    if is_enabled:
        with pytest.raises(BudgetExhaustedError, match="for tools"):
            asyncio.run(fits(data))
    else:
        assert data.model_data.input == asyncio.run(fits(data)).input


def test_what_cannot_fit_is_not_sent(provider):
    """Tools of the provider count as well: the error has the arithmetic, and nothing is sent."""
    with pytest.raises(BudgetExhaustedError, match="for tools"):
        asyncio.run(run(provider, OpenAIResponsesModel, 900, "Hello?", tools=[WebSearchTool()]))
    assert [] == provider.seen


@pytest.mark.parametrize("kind", ["CustomTool", "ToolSearchTool", "HostedMCPTool"])
def test_what_other_tools_say_counts(kind):
    """Grammar, description and settings of a tool that is no function count as they are sent."""
    if not hasattr(agents, kind):
        pytest.skip(f"this version has no {kind}")

    async def invoke(context, text):
        return text

    long = "Find tea. " * 2_000
    told = {"type": "mcp", "server_label": "tea", "server_description": long}
    options = {
        "CustomTool": {
            "name": "find",
            "description": "Find.",
            "on_invoke_tool": invoke,
            "format": {"type": "grammar", "syntax": "lark", "definition": long},
        },
        "ToolSearchTool": {"description": long},
        "HostedMCPTool": {"tool_config": told},
    }
    tool = getattr(agents, kind)(**options[kind])
    data = agents.run.CallModelData(
        agents.run.ModelInputData([{"role": "user", "content": "Hello?"}], None),
        Agent("house", model="gpt-4o", tools=[tool]),
        None,
    )

    with pytest.raises(BudgetExhaustedError, match="for tools"):
        asyncio.run(input_filter(context_window=COUNT(long))(data))
    assert data.model_data.input == asyncio.run(input_filter()(data)).input


def test_a_prompt_that_the_provider_has():
    """An agent whose instructions are stored by the provider is refused, as they cannot count."""
    data = agents.run.CallModelData(
        agents.run.ModelInputData([{"role": "user", "content": "Hello?"}], None),
        Agent("house", model="gpt-4o", prompt={"id": "pmpt_1"}),
        None,
    )
    with pytest.raises(InvalidArgumentError, match=r"'prompt'.* that only the provider has"):
        asyncio.run(input_filter()(data))


@pytest.mark.parametrize("kept", [{"conversation_id": "v1"}, {"auto_previous_response_id": True}])
def test_a_conversation_that_the_provider_has(provider, monkeypatch, kept):
    """A result whose call only the provider has is not left out: the run is refused."""
    monkeypatch.setitem(loopback.ANSWERS, "responses", calling(1, loopback.response))

    async def talk(fits):
        async with AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1") as own:
            agent = Agent("Host", model=OpenAIResponsesModel("gpt-4o", own), tools=[read])
            config = RunConfig(call_model_input_filter=fits)
            return await Runner.run(agent, "Which one failed?", run_config=config, **kept)

    with pytest.raises(InvalidArgumentError, match="the call of the result 'd0' is not among"):
        asyncio.run(talk(input_filter(context_window=900)))
    assert 1 == len(provider.seen)


def test_old_results_without_calls():
    """A session that is read in part may begin with the result of a call: it is left out."""
    cut = [*items(1)[2:], {"role": "user", "content": "Which one failed?"}]
    data = agents.run.CallModelData(
        agents.run.ModelInputData(cut, None), Agent("house", model="gpt-4o"), None
    )
    assert cut[1:] == asyncio.run(input_filter()(data)).input


def test_wrong_arguments():
    """A wrong argument is refused when the filter is made."""
    with pytest.raises(InvalidArgumentError, match="context_window must be an int, not str"):
        input_filter(context_window="9")
