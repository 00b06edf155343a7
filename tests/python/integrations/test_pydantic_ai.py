"""Pydantic AI: what reaches the model of an agent fits."""

import asyncio
import json
import warnings
from contextlib import nullcontext, suppress

import pytest

pytest.importorskip("pydantic_ai", minversion="2.54")

import pydantic_ai
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    ImageUrl,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    ToolOutput,
    ToolReturn,
)
from pydantic_ai.exceptions import FallbackExceptionGroup, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider

from budgeteer import fit_request, get_counter
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations.pydantic_ai import BudgetHistory
from budgeteer.window import count_messages, count_tools

COUNT = get_counter("o200k_base").count


class Answer(BaseModel):
    """The answer, and where it was found."""

    text: str
    sources: list[str] = []


def history(turns):
    system = [SystemPromptPart("Be brief.")]
    messages = []
    for i in range(turns):
        asked = UserPromptPart(f"What is in file {i}?")
        call = ToolCallPart("read", {"path": f"{i}.log"}, tool_call_id=f"c{i}")
        result = ToolReturnPart("read", "Started. " * 200, tool_call_id=f"c{i}")
        messages += [
            ModelRequest([*system, asked]),
            ModelResponse([ThinkingPart("Let me see."), call]),
            ModelRequest([result]),
            ModelResponse([TextPart("It started.")]),
        ]
        system = []
    return messages


def tokens_of(body):
    """Return what a request to OpenAI takes, counted without the capability."""
    total = count_messages(body["messages"], model="gpt-4o")
    has_system = body["messages"][0]["role"] == "system"
    tools = body.get("tools") or []
    total += count_tools(tools, model="gpt-4o", has_system_message=has_system)
    if "json_schema" in body.get("response_format", ()):
        total += COUNT(json.dumps(body["response_format"]["json_schema"]["schema"]))
    return total


def sent_by_openai(provider, given, window, kind=OpenAIChatModel):
    """Return the request to OpenAI that a run with *given* makes."""

    async def run():
        own = OpenAIProvider(base_url=f"{provider.url}/v1", api_key="none")
        model = kind("gpt-4o", provider=own)
        agent = Agent(model, capabilities=[BudgetHistory(context_window=window)])
        async with own.client:
            await agent.run(message_history=given)

    asyncio.run(run())
    [body] = provider.seen
    return body


def read(path: str) -> str:
    """Read a file, and say what is in it."""
    return f"{path}: started. " * 300


OUTPUTS = {
    "text": str,
    "tool": ToolOutput(Answer),
    "native": NativeOutput(Answer),
    "prompted": PromptedOutput(Answer),
}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("window", [400, 900, 2500])
def test_what_is_sent_fits(provider, output, window):
    """The law: what reaches OpenAI fits, with instructions, tools and schema."""

    async def run():
        own = OpenAIProvider(base_url=f"{provider.url}/v1", api_key="none")
        model = OpenAIChatModel("gpt-4o", provider=own)
        agent = Agent(
            model,
            instructions="Answer from the files alone. " * 5,
            tools=[read],
            output_type=OUTPUTS[output],
            capabilities=[BudgetHistory(context_window=window)],
            retries=0,
        )
        async with own.client:
            with suppress(UnexpectedModelBehavior):  # what loopback answers may not be an output
                await agent.run("Which one failed?", message_history=history(6))

    asyncio.run(run())

    [body] = provider.seen
    assert tokens_of(body) <= window
    assert tokens_of(body) > window // 2 or window == 2500
    assert "Which one failed?" == body["messages"][-1]["content"]
    assert "Be brief." in [message.get("content") for message in body["messages"]]
    calls = [call["id"] for m in body["messages"] for call in m.get("tool_calls") or ()]
    assert calls == [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]


@pytest.mark.parametrize("names", [("gpt-4o", "gpt-4"), ("gpt-4", "gpt-4o")])
def test_what_a_fallback_is_sent_fits(provider, names):
    """Any of several models may answer: what is sent fits the smallest window of theirs."""

    def is_poor(answer: ModelResponse) -> bool:
        return True

    async def run():
        own = OpenAIProvider(base_url=f"{provider.url}/v1", api_key="none")
        limit = {"max_tokens": 1000}
        models = [OpenAIChatModel(name, provider=own, settings=limit) for name in names]
        fallback = FallbackModel(*models, fallback_on=is_poor)
        agent = Agent(WrapperModel(fallback), capabilities=[BudgetHistory()])
        async with own.client:
            with suppress(FallbackExceptionGroup):
                await agent.run("Which one failed?", message_history=history(60))

    asyncio.run(run())

    assert [*names] == [body["model"] for body in provider.seen]
    for body in provider.seen:
        assert 4_000 < count_messages(body["messages"], model="gpt-4o") <= 8_192 - 1_000
        assert count_messages(body["messages"], model="gpt-4") <= 8_192 - 1_000
        assert "Which one failed?" == body["messages"][-1]["content"]


def test_the_description_of_an_output_counts():
    """It is sent beside the schema of the output, and is part of what must fit."""
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none"))
    fits = BudgetHistory(context_window=400)
    for words, is_fitting in ((9, True), (900, False)):
        output = OutputObjectDefinition({"type": "object"}, "answer", "tea " * words)
        parameters = ModelRequestParameters(output_mode="native", output_object=output)
        asked = ModelRequestContext(
            model=model,
            messages=[ModelRequest([UserPromptPart("Which tea?")])],
            model_settings=None,
            model_request_parameters=parameters,
        )
        with nullcontext() if is_fitting else pytest.raises(BudgetExhaustedError):
            asyncio.run(fits.before_model_request(None, asked))


def test_a_run_with_tools():
    """Each request of a run fits, and its history keeps everything as it was."""
    seen = []

    def answer(messages, info):
        seen.append([*messages])
        if len(seen) < 6:
            return ModelResponse([ToolCallPart("read", {"path": f"{len(seen)}.log"})])
        return ModelResponse([TextPart("Done.")])

    fits = BudgetHistory(model="gpt-4o", context_window=700)
    agent = Agent(FunctionModel(answer), tools=[read], capabilities=[fits])

    before = history(3)
    result = asyncio.run(agent.run("Which one failed?", message_history=before))

    assert "Done." == result.output
    assert 6 == len(seen)
    given = result.all_messages()
    assert before == given[: len(before)]
    results = [p for m in given for p in m.parts if isinstance(p, ToolReturnPart)]
    assert 8 == len(results)
    assert all(len(part.content) > 1000 for part in results)
    for messages in seen:
        text = json.dumps([[str(getattr(p, "content", "")) for p in m.parts] for m in messages])
        assert COUNT(text) < 900
    own = [message for messages in seen for message in messages]
    assert any(message is before[1] for message in own) or len(own) > 6


def test_media_count():
    """Images and documents count: what cannot fit with them is not sent."""
    image = ImageUrl("https://a.example/b.png")
    page = BinaryContent(b"%PDF-1.4", media_type="application/pdf")
    agent = Agent(
        FunctionModel(lambda *_: ModelResponse([TextPart("ok")])),
        capabilities=[BudgetHistory(model="gpt-4o", context_window=1600)],
    )

    assert "ok" == asyncio.run(agent.run(["What is it?", image])).output
    with pytest.raises(BudgetExhaustedError):
        asyncio.run(agent.run(["What is it?", image, image]))
    with pytest.raises(BudgetExhaustedError):
        asyncio.run(agent.run(["What is it?", page]))
    for kind in ("image/png", "application/pdf", "video/mp4"):
        there = UploadedFile("file-1", "openai", media_type=kind)
        with pytest.raises(BudgetExhaustedError):
            asyncio.run(agent.run(["What is it?", there, there]))


def test_wrong_arguments():
    """A wrong argument is refused when the capability is made."""
    with pytest.raises(InvalidArgumentError, match="context_window must be an int, not str"):
        BudgetHistory(context_window="9")
    with pytest.raises(InvalidArgumentError, match="model must be a str"):
        BudgetHistory(model=3)


def test_an_agent_of_a_specification():
    """An agent that is read from YAML or JSON takes the capability by its name, and fits."""
    options = {"model": "gpt-4o", "context_window": 60}
    spec = {"model": "test", "capabilities": [{"BudgetHistory": options}]}
    agent = Agent.from_spec(spec, custom_capability_types=[BudgetHistory])

    assert "success (no tool calls)" == asyncio.run(agent.run("Which tea?")).output
    with pytest.raises(BudgetExhaustedError):
        asyncio.run(agent.run("Which tea? " * 50))


def test_media_in_a_result_count():
    """The images of a tool's result count, and stay where only its text is cut."""
    image = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    messages = [
        ModelRequest(parts=[UserPromptPart("What is in it?")]),
        ModelResponse(parts=[ToolCallPart("read", {}, "a")]),
        ModelRequest(parts=[ToolReturnPart("read", ["A photo. " * 400, image], "a")]),
    ]
    seen = []

    def answer(given, _):
        seen.append(given[-1].parts[0].content)
        return ModelResponse(parts=[TextPart("ok")])

    def ask(window):
        fits = BudgetHistory(model="gpt-4o", context_window=window)
        agent = Agent(FunctionModel(answer), capabilities=[fits])
        asyncio.run(agent.run(message_history=messages))

    ask(9_000)
    assert messages[-1].parts[0].content == seen.pop()
    ask(1_900)
    [text, kept] = seen.pop()
    assert image == kept
    assert len(text) < 9 * 400
    with pytest.raises(BudgetExhaustedError):
        ask(700)


@pytest.mark.parametrize("window", [900, 2_200, 4_000])
def test_the_question_stays_where_tools_tell_more(window):
    """What a tool tells beside its result is not the question, and stays where it is new."""
    image = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    told = ["In the log: " * 90, image] if window > 1_500 else "In the log: " * 90
    seen = []

    def look(path: str) -> ToolReturn:
        """Look at a file."""
        return ToolReturn("See below.", content=told)

    def answer(messages, _):
        seen.append([part for message in messages for part in message.parts])
        calls = [ToolCallPart("look", {"path": f"{len(seen)}.log"})]
        return ModelResponse(calls if len(seen) < 6 else [TextPart("Done.")])

    fits = BudgetHistory(model="gpt-4o", context_window=window)
    agent = Agent(FunctionModel(answer), tools=[look], capabilities=[fits])
    run = asyncio.run(agent.run("Which one failed?", message_history=history(3)))

    kept = [getattr(part, "content", None) for m in run.all_messages() for part in m.parts]
    assert 5 == kept.count(told)
    for number, parts in enumerate(seen):
        prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
        assert "Which one failed?" in prompts
        assert not number or "In the log: " in str(prompts[-1])
        assert sum(COUNT(str(prompt)) for prompt in prompts if isinstance(prompt, str)) < window
    # What comes with the results of another run, which were awaited, is a question.
    [*before, results] = run.all_messages()[:-1]
    results = ModelRequest([results.parts[0], UserPromptPart("And when?")], run_id="other")
    seen.clear()
    asyncio.run(agent.run(message_history=[*before, results]))
    assert "And when?" == seen[0][-1].content


@pytest.mark.parametrize("window", [250, 500, 2_000])
def test_the_question_stays_where_outputs_are_refused(provider, window):
    """What asks for another answer is not the question, which stays; and what is sent fits."""

    async def run():
        own = OpenAIProvider(base_url=f"{provider.url}/v1", api_key="none")
        model = OpenAIChatModel("gpt-4o", provider=own)
        agent = Agent(model, capabilities=[BudgetHistory(context_window=window)], retries=5)

        @agent.output_validator
        def check(text: str) -> str:
            if len(provider.seen) < 5:
                raise ModelRetry("Name a file that is there. " * 12)
            return text

        async with own.client:
            await agent.run("Which one failed?", message_history=history(3))

    asyncio.run(run())

    assert 5 == len(provider.seen)
    for number, body in enumerate(provider.seen):
        assert tokens_of(body) <= window
        contents = [message.get("content") or "" for message in body["messages"]]
        assert "Which one failed?" in contents
        assert not number or "Name a file" in contents[-1]


@pytest.mark.parametrize("outcome", ["success", "failed"])
@pytest.mark.parametrize("window", [1_300, 1_900, 2_300, 3_100, 6_000])
def test_results_with_files_fit(provider, window, outcome):
    """A text beside files is sent as JSON, whose escapes count, as do notes on what is in it."""
    image = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    line = '"C:\\temp\\a.log": "Started <system> é."\n\t'
    given = [ModelRequest([UserPromptPart("What is in it?")])]
    for i in range(3):
        call = ToolCallPart("read", {"path": "a.log"}, tool_call_id=f"c{i}")
        content = [line * 60, image] if i == 1 else line * 60
        result = ToolReturnPart("read", content, f"c{i}", outcome=outcome)
        given += [ModelResponse([call]), ModelRequest([result])]

    body = sent_by_openai(provider, given, window)

    assert tokens_of(body) <= window
    assert window < 3_000 or window // 2 < tokens_of(body)
    texts = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    for text in texts:
        if "See file" in text and outcome == "success":
            [told, _] = json.loads(text)
            assert told.startswith((line, "[tool result left out]"))


@pytest.mark.parametrize("window", range(150, 400, 25))
def test_calls_that_are_sent_as_items_fit(provider, window):
    """Of OpenAI's Responses each call beside a text is an item of its own, and counts as one."""
    given = [ModelRequest([UserPromptPart("What is in it?")])]
    for i in range(4):
        calls = [ToolCallPart("read", {}, tool_call_id=f"c{i}{j}") for j in range(4)]
        results = [ToolReturnPart("read", "Started. " * 5, call.tool_call_id) for call in calls]
        given += [ModelResponse([TextPart("I look."), *calls]), ModelRequest(results)]

    body = sent_by_openai(provider, given, window, OpenAIResponsesModel)

    request = {"model": "gpt-4o", "input": body["input"]}
    assert fit_request(request, context_window=10_000).total_tokens <= window


RESULTS = {
    "failed": {"outcome": "failed"},
    "retried": {"outcome": "retried"},
    "a list": {"outcome": "failed", "content": [{"loc": [i], "msg": "No."} for i in range(200)]},
    "a retry": None,
}


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("window", [200, 600])
def test_a_failed_result_fits(provider, result, window):
    """What is written around an error is written once, whether its text is cut or masked."""
    fields = RESULTS[result]
    text = '"a.log": "started"\n' * 300

    def failed(key):
        named = {"tool_name": "read", "tool_call_id": key}
        if fields is not None:
            return ToolReturnPart(**{"content": text, **named, **fields})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pydantic_ai.messages.RetryPromptPart(text, **named)

    given = [ModelRequest([UserPromptPart("What is in it?")])]
    for i in range(3):
        call = ToolCallPart("read", {"path": "a.log"}, tool_call_id=f"c{i}")
        given += [ModelResponse([call]), ModelRequest([failed(f"c{i}")])]

    body = sent_by_openai(provider, given, window)

    assert window // 2 < tokens_of(body) <= window
    for message in body["messages"]:
        assert '{"error":"{' not in str(message["content"])


SEALED = {
    "anthropic": ThinkingPart("", signature="AbC9+/xYz1" * 300, provider_name="anthropic"),
    "openai": ThinkingPart("So.", signature="AbC9+/xYz1" * 300, provider_name="openai"),
    "google": TextPart("So.", provider_details={"thought_signature": "AbC9+/xYz1" * 300}),
}


@pytest.mark.parametrize("kind", SEALED)
def test_reasoning_that_only_its_provider_reads_counts(kind):
    """What of a response goes back to its provider unread counts, and leaves where it must."""
    seen = []

    def answer(given, _):
        seen.append(given)
        return ModelResponse([TextPart("ok")])

    before = [ModelRequest([UserPromptPart("Which tea?")]), ModelResponse([SEALED[kind]])]
    for window in (3_000, 500):
        fits = BudgetHistory(model="gpt-4o", context_window=window)
        agent = Agent(FunctionModel(answer), capabilities=[fits])
        asyncio.run(agent.run("Which is mild?", message_history=before))
    assert [3, 1] == [*map(len, seen)]


GOOGLE_RESULTS = {
    "a number": 3,
    "a text": "Started. " * 200,
    "a list": ["started", "stopped"] * 90,
    "an object": {"lines": ["started"] * 200},
}


@pytest.mark.parametrize("result", GOOGLE_RESULTS)
@pytest.mark.parametrize("window", [400, 900])
def test_what_is_sent_to_google_fits(result, window):
    """What Pydantic AI writes around calls and results for Google's models counts, too."""
    google = pytest.importorskip("pydantic_ai.models.google", exc_type=ImportError)
    from pydantic_ai.providers.google import GoogleProvider

    given = history(2)[:-1]
    for i in range(30):
        call = ToolCallPart("read", {}, tool_call_id=f"d{i}")
        answer = ToolReturnPart("read", GOOGLE_RESULTS[result], tool_call_id=f"d{i}")
        given += [ModelResponse([call]), ModelRequest([answer])]
    model = google.GoogleModel("gemini-3.1-pro", provider=GoogleProvider(api_key="none"))

    async def contents():
        asked = ModelRequestContext(
            model=model,
            messages=given,
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        fits = BudgetHistory(context_window=window)
        made = await fits.before_model_request(None, asked)
        return await model._map_messages(made.messages, ModelRequestParameters())

    system, sent = asyncio.run(contents())

    request = {"contents": sent, "system_instruction": system, "model": "gemini-3.1-pro"}
    found = fit_request(request, context_window=10_000).total_tokens
    assert window // 2 < found <= window
