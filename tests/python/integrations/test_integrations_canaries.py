"""
Canaries in what integrations are given: what they log, trace, warn of and refuse shows none.

It goes for texts, titles, queries, metadata, messages, results and keys, where an integration
answers, where it refuses and where something fails. What a function of the caller's raises, and
what a provider's own client does, passes as it was worded.
"""

import asyncio
import traceback
import warnings

import pytest
from canary_support import KEY, MESSAGES, META, QUERY, SECRETS, TEXT, TEXTS, TITLE, TOOLS, told

from budgeteer import Packer
from budgeteer.errors import (
    BudgeteerError,
    BudgetExhaustedError,
    CounterError,
    InvalidArgumentError,
)

OPTIONS = {"context_window": 400, "max_output_tokens": 50}
"""A window in which the messages fit once their result is shorter."""

LONG = [{"role": "user", "content": f"{TEXTS['message']} " * 400}]
BAD = {
    "a role": [*MESSAGES, {"role": 3, "content": TEXT}],
    "a content": [*MESSAGES, {"role": "user", "content": {TEXT: TEXT}}],
    "a message": [*MESSAGES, {TEXT: TEXT}],
    "no list": {TEXT: TEXT},
}
METADATA = {"title": TITLE, "owner": META}
CHUNKS = [f"{TEXT} is mild, and {QUERY} too.", f"{TEXT} of no end. " * 60, f"{TEXT} again."]


class OwnError(Exception):
    """What a function of the caller's raises."""


def own(text):
    """Count by raising what quotes the text."""
    raise OwnError(f"{KEY}: {text}")


class Watch:
    """Sees that what is told shows no canary."""

    def __init__(self, log, spans, warned):
        self.log, self.spans, self.warned = log, spans, warned

    def see(self, *items):
        """See to what was logged, traced and warned of so far, and to how objects show."""
        shown = [f"{item!r} {item}" for item in items]
        shown += [self.log(), self.spans(), *(str(warning.message) for warning in self.warned)]
        assert [] == [item for item in shown if told(item)]

    def fail(self, call, kind=BudgeteerError):
        """See to the error of a call, and return it."""
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        notes = getattr(error, "__notes__", ())
        whole = "".join(traceback.format_exception(error))
        self.see(error, error.args, vars(error), notes, whole)
        return error

    def pass_on(self, call, kind):
        """See that an error of somebody else's passes, and that nothing is added to it."""
        with pytest.raises(kind) as caught:
            call()
        assert told(str(caught.value))
        assert [] == told(str(getattr(caught.value, "__notes__", [])))
        self.see()


@pytest.fixture
def watch(log, spans):
    """What sees to all that is told in a test."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield Watch(log, spans, warned)


def check_sent(provider, *, times):
    """See that what must be shown nowhere reached the provider."""
    assert times == len(provider.seen)
    for body, headers in zip(provider.seen, provider.headers, strict=True):
        assert "message" in told(str(body))
        assert "key" in told(str(headers.items()), SECRETS)


def check_requests(watch, provider, client, fitted, send, unknown):
    """See to a client's copy that answers, refuses and fails; *send* sends messages by it."""
    fits = fitted(client, **OPTIONS)
    send(fits, MESSAGES)
    send(fitted(client, model=unknown, max_output_tokens=9), MESSAGES)
    check_sent(provider, times=2)
    assert unknown in watch.log()
    watch.see(fits, client)

    watch.fail(lambda: send(fits, LONG), BudgetExhaustedError)
    for messages in BAD.values():
        watch.fail(lambda messages=messages: send(fits, messages))
    watch.fail(lambda: send(fitted(client, counter=lambda text: text, **OPTIONS), MESSAGES))
    watch.fail(lambda: fitted(client, model=[TEXT]), InvalidArgumentError)
    watch.fail(lambda: fitted(client, context_window=TEXT), InvalidArgumentError)
    watch.fail(lambda: fitted([TEXT, KEY]), InvalidArgumentError)
    watch.pass_on(lambda: send(fitted(client, counter=own, **OPTIONS), MESSAGES), OwnError)
    assert 2 == len(provider.seen)


@pytest.mark.parametrize("of", ["chat", "responses"])
def test_a_client_of_openai(watch, provider, of):
    """A client whose requests fit shows neither its key nor what it sends."""
    openai = pytest.importorskip("openai")
    from budgeteer.integrations.openai import fitted

    def send(client, messages):
        if of == "chat":
            client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
        else:
            [tool] = TOOLS
            tools = [{"type": "function", **tool["function"]}]
            client.responses.create(model="gpt-4o", input=items(messages), tools=tools)

    client = provider.made(openai.OpenAI, f"{provider.url}/v1", KEY)
    check_requests(watch, provider, client, fitted, send, f"own-{of}")
    provider.status = 401
    watch.pass_on(lambda: send(fitted(client, **OPTIONS), MESSAGES), openai.AuthenticationError)
    odd = [{TEXT: 1}, TEXT]
    watch.fail(
        lambda: fitted(client, **OPTIONS).responses.create(model="gpt-4o", input=TEXT, tools=odd)
    )


def items(messages):
    """Return messages of a chat as those of OpenAI's Responses."""
    if not isinstance(messages, list):
        return messages
    made = []
    for message in messages:
        if message.get("role") == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            made.append({"type": "function_call_output", **output})
        elif "tool_calls" in message:
            [call] = message["tool_calls"]
            made.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        else:
            made.append(message)
    return made


def test_a_client_of_anthropic(watch, provider):
    """The same of Anthropic's client."""
    anthropic = pytest.importorskip("anthropic")
    from budgeteer.integrations.anthropic import fitted

    call = {"type": "tool_use", "id": "c", "name": "find", "input": {"q": TEXTS["message"]}}
    answer = {"type": "tool_result", "tool_use_id": "c", "content": MESSAGES[3]["content"]}
    turns = [
        MESSAGES[1],
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": "Yes."},
        MESSAGES[4],
    ]

    def send(client, messages):
        if isinstance(messages, list) and messages[:1] == MESSAGES[:1]:
            messages = [*turns, *messages[len(MESSAGES) :]]
        system = TEXTS["system"]
        client.messages.create(
            model="claude-opus-5", max_tokens=50, system=system, messages=messages
        )

    client = provider.made(anthropic.Anthropic, provider.url, KEY)
    check_requests(watch, provider, client, fitted, send, "own-message")
    provider.status = 500
    watch.pass_on(lambda: send(fitted(client, **OPTIONS), MESSAGES), anthropic.APIStatusError)


def test_litellm(watch, provider):
    """A hook and a wrapped function show neither key nor messages."""
    litellm = pytest.importorskip("litellm")
    from budgeteer.integrations.litellm import BudgetHook, fitted

    api = {"api_base": f"{provider.url}/v1", "api_key": KEY, "tools": TOOLS}
    asked = {"model": "openai/gpt-4o", "messages": MESSAGES, **api}
    hook = BudgetHook(**OPTIONS)
    completion = fitted(litellm.completion, **OPTIONS)

    def send(messages):
        return asyncio.run(litellm.acompletion(**{**asked, "messages": messages}))

    litellm.callbacks.append(hook)
    try:
        send(MESSAGES)
        completion(**asked)
        check_sent(provider, times=2)
        watch.see(hook, completion)
        for messages in (LONG, *BAD.values()):
            watch.fail(lambda messages=messages: completion(**{**asked, "messages": messages}))
        watch.fail(lambda: send(LONG), BudgetExhaustedError)
        watch.fail(lambda: send(BAD["a role"]), InvalidArgumentError)
        watch.fail(lambda: asyncio.run(litellm.acompletion("openai/gpt-4o", MESSAGES, **api)))
        watch.fail(lambda: fitted(litellm.completion, counter=[TEXT]))
        watch.fail(lambda: fitted(TEXT), InvalidArgumentError)
        wrong = fitted(litellm.completion, counter=lambda text: text, **OPTIONS)
        watch.fail(lambda: wrong(**asked), CounterError)
        raising = fitted(litellm.completion, counter=own, **OPTIONS)
        watch.pass_on(lambda: raising(**asked), OwnError)
        assert 2 == len(provider.seen)
        provider.status = 400
        watch.pass_on(lambda: completion(**asked, num_retries=0), litellm.BadRequestError)
    finally:
        litellm.callbacks.remove(hook)


PACKERS = [60, {"max_tokens": 60, "ranking": "lexical"}, Packer(60, ranking="keyword")]
WRONG_PACKERS = [TEXT, [KEY], {"max_tokens": TEXT}, {"max_tokens": 9, "counter": [TEXT]}]


@pytest.mark.parametrize("packer", PACKERS)
def test_documents_of_langchain(watch, packer):
    """A compressor shows no document, and neither do its errors."""
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.prompts import PromptTemplate

    from budgeteer.integrations.langchain import BudgetCompressor

    prompt = PromptTemplate.from_template("<{title}> {page_content}")
    documents = [Document(text, id=str(i), metadata=METADATA) for i, text in enumerate(CHUNKS)]
    for options in ({}, {"document_prompt": prompt}):
        compressor = BudgetCompressor(packer=packer, **options)
        asked = {"documents": documents, "query": QUERY}
        assert compressor.compress_documents(documents, QUERY)
        assert asyncio.run(compressor.acompress_documents(documents, QUERY))
        assert compressor.as_runnable().invoke(asked)
        watch.see(compressor)
        watch.fail(lambda c=compressor: c.compress_documents(documents, QUERY.encode()))
        watch.fail(lambda c=compressor: c.compress_documents([*documents, 3], QUERY), Exception)
        watch.fail(lambda c=compressor: c.compress_documents(TEXT, QUERY), Exception)
    assert "budgeteer.pack" in watch.spans()
    cutting = BudgetCompressor(packer=Packer(12, overflow="truncate_end"))
    assert any(found not in documents for found in cutting.compress_documents(documents, QUERY))
    missing = PromptTemplate.from_template("{page_content} {nowhere}")
    without = BudgetCompressor(packer=9, document_prompt=missing)
    watch.fail(lambda: without.compress_documents(documents, QUERY), Exception)
    raising = BudgetCompressor(packer=Packer(9, counter=own))
    watch.pass_on(lambda: raising.compress_documents(documents, QUERY), OwnError)
    wrong = BudgetCompressor(packer=Packer(9, counter=lambda text: text))
    watch.fail(lambda: wrong.compress_documents(documents, QUERY), CounterError)
    for given in WRONG_PACKERS:
        watch.fail(lambda given=given: BudgetCompressor(packer=given), InvalidArgumentError)
    watch.fail(lambda: BudgetCompressor(packer=9, document_prompt=TEXT), InvalidArgumentError)
    watch.fail(lambda: BudgetCompressor(packer=9, separator=[TEXT]), InvalidArgumentError)


def test_llama_index(watch):
    """A postprocessor, a memory and a tokenizer show no node and no message."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.schema import NodeWithScore, TextNode

    from budgeteer.integrations.llama_index import BudgetMemory, BudgetPostprocessor, tokenizer

    nodes = [NodeWithScore(node=TextNode(text=text, metadata=METADATA)) for text in CHUNKS]
    for packer in PACKERS:
        fits = BudgetPostprocessor(packer=packer)
        assert fits.postprocess_nodes(nodes, query_str=QUERY)
        watch.see(fits)
    assert "budgeteer.pack" in watch.spans()
    for counter, kind in ((own, OwnError), (lambda text: text, CounterError)):
        fails = BudgetPostprocessor(packer=Packer(9, counter=counter))
        passes = watch.pass_on if kind is OwnError else watch.fail
        passes(lambda f=fails: f.postprocess_nodes(nodes, query_str=QUERY), kind)
    watch.fail(lambda: fits.postprocess_nodes([*nodes, 3], query_str=QUERY), Exception)
    for given in WRONG_PACKERS:
        watch.fail(lambda given=given: BudgetPostprocessor(packer=given), InvalidArgumentError)

    def remembered(*messages, **options):
        memory = BudgetMemory(**{"max_tokens": 120, "model": "gpt-4o", **options})
        memory.put_messages([*map(chat, MESSAGES), *messages])
        watch.see(memory)
        assert memory.get()
        assert asyncio.run(memory.aget())
        watch.see(memory)

    def chat(message):
        more = {key: value for key, value in message.items() if key not in ("role", "content")}
        content = message["content"] or ""
        return ChatMessage(content, role=message["role"], additional_kwargs=more)

    remembered()
    watch.fail(lambda: remembered(chat(LONG[0])), BudgetExhaustedError)
    watch.fail(lambda: remembered(counter=lambda text: text), CounterError)
    watch.pass_on(lambda: remembered(counter=own), OwnError)
    memory = BudgetMemory(max_tokens=9)
    watch.fail(lambda: memory.get(initial_token_count=TEXT), InvalidArgumentError)
    watch.fail(lambda: BudgetMemory(max_tokens=TEXT), InvalidArgumentError)
    watch.fail(lambda: BudgetMemory(max_tokens=9, model=[TEXT]), InvalidArgumentError)
    count = tokenizer("gpt-4o")
    assert len(count(TEXT))
    watch.see(count, count(TEXT))
    watch.fail(lambda: count([TEXT]))
    watch.fail(lambda: tokenizer(counter=[TEXT]))


TEMPLATE = "{% for d in documents %}{{ d.content }} {{ d.meta.title }}{% endfor %}{{ query }}"


def test_haystack(watch):
    """Components for documents, prompts and conversations show none of them."""
    pytest.importorskip("haystack")
    from haystack import Document
    from haystack.dataclasses import ChatMessage, ToolCall
    from haystack.tools import Tool

    from budgeteer.integrations.haystack import (
        BudgetCompactor,
        BudgetPacker,
        BudgetPromptBuilder,
        BudgetTokenCounter,
    )

    documents = [Document(content=text, meta=METADATA) for text in CHUNKS]
    for packer in PACKERS:
        packs, builds = BudgetPacker(packer), BudgetPromptBuilder(TEMPLATE, packer)
        assert packs.run(documents, QUERY)["documents"]
        assert told(builds.run(documents=documents, query=QUERY)["prompt"])
        watch.see(packs, builds)
        watch.fail(lambda packs=packs: packs.run(documents, QUERY.encode()))
        watch.fail(lambda packs=packs: packs.run([*documents, TEXT], QUERY), Exception)
    assert "budgeteer.pack" in watch.spans()
    scored = BudgetPacker({"max_tokens": 9, "ranking": "score"})
    watch.fail(lambda: scored.run([Document(content=TEXT, score=META)]), InvalidArgumentError)
    small = BudgetPromptBuilder(TEMPLATE, 9)
    watch.fail(lambda: small.run(documents=[], query=f"{QUERY} " * 9), BudgetExhaustedError)
    watch.fail(lambda: small.run(documents=documents), Exception)
    for counter, kind in ((own, OwnError), (lambda text: text, CounterError)):
        packer = Packer(9, counter=counter)
        passes = watch.pass_on if kind is OwnError else watch.fail
        passes(lambda p=packer: BudgetPacker(p).run(documents, QUERY), kind)
        built = BudgetPromptBuilder(TEMPLATE, packer)
        passes(lambda b=built: b.run(documents=documents, query=QUERY), kind)
    for given in WRONG_PACKERS:
        watch.fail(lambda given=given: BudgetPacker(given), InvalidArgumentError)
    watch.fail(lambda: BudgetPromptBuilder(TEXT, 9), InvalidArgumentError)
    watch.fail(lambda: BudgetPacker(9, separator=[TEXT]), InvalidArgumentError)

    call = ToolCall("find", {"q": TEXTS["message"]}, id="c")
    messages = [
        ChatMessage.from_system(TEXTS["system"]),
        ChatMessage.from_user(TEXTS["message"], meta={"owner": META}),
        ChatMessage.from_assistant(tool_calls=[call]),
        ChatMessage.from_tool(MESSAGES[3]["content"], call),
        ChatMessage.from_user(TEXTS["message"]),
    ]
    schema = TOOLS[0]["function"]["parameters"]
    tool = Tool(name="find", description=TEXTS["tool"], parameters=schema, function=len)
    counter, compactor = BudgetTokenCounter("gpt-4o"), BudgetCompactor("gpt-4o")
    assert counter.count(messages, [tool]) > counter.count(messages)
    for target in (1, 100):
        assert counter.count(compactor.compact(messages, target, counter)) < 300
    assert asyncio.run(compactor.compact_async(messages, 100))
    watch.see(counter, compactor, counter.to_dict(), compactor.to_dict())
    watch.fail(lambda: compactor.compact(messages, TEXT), InvalidArgumentError)
    watch.fail(lambda: compactor.compact([*messages, TEXT], 9), Exception)
    watch.fail(lambda: counter.count(messages, [TEXT]), Exception)
    watch.fail(lambda: BudgetTokenCounter([TEXT]), InvalidArgumentError)
    watch.fail(lambda: BudgetCompactor(counter=[TEXT]), InvalidArgumentError)


def test_an_agent_of_langchain(watch):
    """A middleware and a counter of messages show none of them."""
    pytest.importorskip("langchain")
    from langchain.agents import create_agent
    from langchain.tools import tool
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    from budgeteer.integrations.langchain import BudgetMiddleware, token_counter

    call = {"name": "find", "args": {"q": TEXTS["message"]}, "id": "c"}
    messages = [
        HumanMessage(TEXTS["message"]),
        AIMessage("", tool_calls=[call]),
        ToolMessage(MESSAGES[3]["content"], tool_call_id="c"),
        AIMessage("Yes."),
        HumanMessage(f"{TEXTS['message']} two"),
    ]
    seen = []

    class Model(FakeListChatModel):
        model_name: str = "gpt-4o"

        def bind_tools(self, tools, **kwargs):
            return self

        def _call(self, messages, *args, **kwargs):
            seen.append(messages)
            return "Yes."

    @tool(description=TEXTS["tool"])
    def find(q: str) -> str:
        return TEXTS["result"]

    def asked(turns=messages, **options):
        fits = BudgetMiddleware(**{**OPTIONS, **options})
        model = Model(responses=["Yes."])
        agent = create_agent(model, [find], system_prompt=TEXTS["system"], middleware=[fits])
        agent.invoke({"messages": turns})
        return fits

    watch.see(asked())
    assert ["message", "system"] == told(str(seen))
    assert told(str([message.content for message in seen[0]])) != told(str(messages))
    watch.fail(lambda: asked([HumanMessage(LONG[0]["content"])]), BudgetExhaustedError)
    watch.fail(lambda: asked(context_window=20), BudgetExhaustedError)
    watch.fail(lambda: asked(counter=lambda text: text), CounterError)
    watch.pass_on(lambda: asked(counter=own), OwnError)
    watch.fail(lambda: asked(model=[TEXT]), InvalidArgumentError)
    count = token_counter("gpt-4o")
    assert count([SystemMessage(TEXTS["system"]), *messages])
    watch.see(count)
    watch.fail(lambda: count([*messages, 3]))
    watch.fail(lambda: count([{"role": 3, "content": TEXT}]))
    watch.fail(lambda: token_counter(counter=[TEXT]))


def test_pydantic_ai(watch):
    """A capability of an agent shows neither instructions nor messages nor results."""
    pytest.importorskip("pydantic_ai", minversion="2.54")
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models.function import FunctionModel

    from budgeteer.integrations.pydantic_ai import BudgetHistory

    call = ToolCallPart("find", {"q": TEXTS["message"]}, tool_call_id="c")
    result = ToolReturnPart("find", MESSAGES[3]["content"], tool_call_id="c")
    history = [
        ModelRequest([UserPromptPart(TEXTS["message"])]),
        ModelResponse([call]),
        ModelRequest([result]),
        ModelResponse([TextPart("Yes.")]),
    ]
    seen = []

    def find(q: str) -> str:
        return TEXTS["result"]

    def answer(messages, info):
        seen.append(str(messages))
        return ModelResponse([TextPart("Yes.")])

    def asked(prompt=TEXTS["message"], **options):
        fits = BudgetHistory(**{"model": "gpt-4o", **OPTIONS, **options})
        told_ = TEXTS["system"]
        agent = Agent(FunctionModel(answer), instructions=told_, tools=[find], capabilities=[fits])
        asyncio.run(agent.run(prompt, message_history=history))
        return fits

    watch.see(asked())
    [sent] = seen
    assert ["message", "system"] == [name for name in told(sent) if name != "result"]
    assert len(sent) < len(str(history))
    watch.fail(lambda: asked(LONG[0]["content"]), BudgetExhaustedError)
    watch.fail(lambda: asked(context_window=20), BudgetExhaustedError)
    watch.fail(lambda: asked(counter=lambda text: text), CounterError)
    watch.pass_on(lambda: asked(counter=own), OwnError)
    watch.fail(lambda: asked(model=[TEXT]), InvalidArgumentError)
    watch.fail(lambda: asked(max_output_tokens=TEXT), InvalidArgumentError)


def test_openai_agents(watch, provider):
    """A filter and a session of an agent show neither instructions nor items."""
    agents = pytest.importorskip("agents")
    from agents.models.openai_responses import OpenAIResponsesModel
    from openai import AsyncOpenAI, AuthenticationError

    from budgeteer.integrations.openai_agents import BudgetSession, input_filter

    agents.set_tracing_disabled(True)
    turns = items(MESSAGES[1:])

    async def ran(turns, kept, options):
        url = f"{provider.url}/v1"
        async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
            agent = agents.Agent(
                "Host",
                instructions=TEXTS["system"],
                model=OpenAIResponsesModel("gpt-4o", client),
                tools=[agents.function_tool(find)],
            )
            fits = input_filter(**{**OPTIONS, **options})
            config = agents.RunConfig(call_model_input_filter=fits)
            await agents.Runner.run(agent, turns, run_config=config, session=kept)
            return fits

    def find(q: str) -> str:
        return TEXTS["result"]

    def asked(turns=turns, kept=None, **options):
        return asyncio.run(ran(turns, kept, options))

    whole = agents.SQLiteSession("house")
    session = BudgetSession(whole, 100, model="gpt-4o")
    try:
        watch.see(asked())
        asyncio.run(session.add_items(turns))
        watch.see(asked(TEXTS["message"], session), session)
        check_sent(provider, times=2)
        asyncio.run(session.add_items(LONG))
        watch.fail(lambda: asyncio.run(session.get_items()), BudgetExhaustedError)
        wrong = BudgetSession(whole, 100, counter=lambda text: text)
        watch.fail(lambda: asyncio.run(wrong.get_items()), CounterError)
    finally:
        whole.close()
    watch.fail(lambda: asked(LONG), BudgetExhaustedError)
    watch.fail(lambda: asked([*turns, {"role": 3, "content": TEXT}]))
    watch.fail(lambda: asked(counter=lambda text: text), CounterError)
    watch.pass_on(lambda: asked(counter=own), OwnError)
    watch.fail(lambda: BudgetSession(whole, TEXT), InvalidArgumentError)
    watch.fail(lambda: BudgetSession(whole, 9, model=[TEXT]), InvalidArgumentError)
    watch.fail(lambda: input_filter(counter=[TEXT]))
    assert 2 == len(provider.seen)
    provider.status = 401
    watch.pass_on(asked, AuthenticationError)


def test_mcp(watch, tmp_path):
    """A server answers with texts; what it refuses, and all else, shows none."""
    pytest.importorskip("mcp.server.mcpserver", exc_type=ImportError)
    from mcp import Client

    from budgeteer.integrations.mcp import server

    (tmp_path / "a.md").write_text(f"# {TITLE}\n\n" + f"{CHUNKS[0]}\n\n" * 40, "utf-8")
    made = server([str(tmp_path)])

    async def called(*calls):
        async with Client(made) as client:
            return [await client.call_tool(name, given) for name, given in calls]

    texts = {"text": f"{TEXT} " * 90, "max_tokens": 9}
    good = asyncio.run(
        called(
            ("ask", {"query": QUERY, "max_tokens": 90}),
            ("cut", {**texts, "max_tokens": 99, "query": QUERY}),
            ("count", {"text": TEXT}),
        )
    )
    assert [False] * 3 == [answer.is_error for answer in good]
    assert "text" in told(str(good[0].content))
    watch.see(made)
    refused = asyncio.run(
        called(
            ("cut", {**texts, "kind": "json"}),
            ("cut", {**texts, "kind": "diff"}),
            ("cut", {"text": f'["{TEXT}"]', "max_tokens": 0}),
            ("count", {"text": TEXT, "model": ""}),
            ("ask", {"query": QUERY, "model": ""}),
        )
    )
    assert [True] * 3 == [answer.is_error for answer in refused][:3]
    watch.see(*(answer.content for answer in refused if answer.is_error))
    (tmp_path / "a.md").write_bytes(TEXT.encode() + b"\xff\x00")
    [answer] = asyncio.run(called(("ask", {"query": QUERY})))
    watch.see(*(answer.content if answer.is_error else ()))
    watch.fail(lambda: server(paths=[[TEXT]]), InvalidArgumentError)
    watch.fail(lambda: server(model=[TEXT]), InvalidArgumentError)
