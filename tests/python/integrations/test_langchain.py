"""LangChain: documents, histories and agents within a budget."""

import asyncio
import copy
import json
import pickle
import subprocess
import sys
import typing
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain")
pytest.importorskip("langchain_classic")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

from budgeteer import Packer, Template, fit_request, get_counter, presets
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations.langchain import BudgetCompressor, BudgetMiddleware, token_counter
from budgeteer.window import count_messages, count_tools

COUNT = get_counter("o200k_base").count
PROMPT = PromptTemplate.from_template("<{title}> {page_content} </{title}>")
TEXTS = [
    "Green tea is mild. ",
    "Rye bread is dark and dense. ",
    "茶は緑です。",
    "def tea(): pass\n",
]


def documents(sizes):
    return [
        Document(TEXTS[i % 4] * size, id=str(i), metadata={"title": f"T{i}", "score": i / 7})
        for i, size in enumerate(sizes)
    ]


def rendered(found, prompt, separator):
    """Return what LangChain's own chain puts into its prompt."""
    seen = []

    class Seeing(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):
            seen.append(messages[0].content)
            return "x"

    chain = create_stuff_documents_chain(
        Seeing(responses=["x"]),
        ChatPromptTemplate.from_messages([("human", "{context}")]),
        document_separator=separator,
        **({} if prompt is None else {"document_prompt": prompt}),
    )
    chain.invoke({"context": found})
    return seen[0]


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 30), max_size=8),
    st.integers(0, 300),
    st.sampled_from([None, PROMPT]),
    st.sampled_from(["\n\n", "\n", " | ", ""]),
    st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
    st.sampled_from(["input", "lexical"]),
)
def test_what_the_chain_writes_fits(sizes, limit, prompt, separator, overflow, ranking):
    """The law: what LangChain's chain writes of the documents is within the budget."""
    if prompt is not None and overflow.startswith("truncate"):
        overflow = "skip"
    packer = Packer(limit, overflow=overflow, ranking=ranking)
    compressor = BudgetCompressor(packer=packer, document_prompt=prompt, separator=separator)
    given_ = documents(sizes)

    found = compressor.compress_documents(given_, "Is green tea mild?")

    assert COUNT(rendered(found, prompt, separator)) <= limit
    assert len({document.id for document in found}) == len(found)
    for document in found:
        own = given_[int(document.id)]
        assert document.metadata == own.metadata
        assert document is own or overflow.startswith("truncate")
    assert found == asyncio.run(compressor.acompress_documents(given_, "Is green tea mild?"))


def test_a_budget_keeps_the_order_of_the_retriever():
    """A number stands for a packer of the input's order."""
    given_ = documents([1, 1, 1])

    assert given_ == BudgetCompressor(packer=99).compress_documents(given_, "bread")
    assert given_[:1] == BudgetCompressor(packer=6).compress_documents(given_, "bread")
    ranked = BudgetCompressor(packer=Packer(10)).compress_documents(given_, "bread")
    assert given_[1:2] == ranked


def test_in_a_retriever_and_as_a_runnable():
    """LangChain's own classes take it, in both kinds of programs."""

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return documents([1, 50, 1])

    compressor = BudgetCompressor(packer=20)
    retriever = ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=Retriever()
    )

    assert ["0", "2"] == [found.id for found in retriever.invoke("tea")]
    assert ["0", "2"] == [found.id for found in asyncio.run(retriever.ainvoke("tea"))]
    asked = {"documents": documents([1, 50, 1]), "query": "tea"}
    assert ["0", "2"] == [found.id for found in compressor.as_runnable().invoke(asked)]
    found = asyncio.run(compressor.as_runnable().ainvoke(asked))
    assert ["0", "2"] == [document.id for document in found]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"packer": "9"}, "packer must be a Packer, .* or an int, the most tokens, not str"),
        ({"packer": True}, "packer must be a Packer, .* or an int, the most tokens, not bool"),
        ({"packer": -1}, "packer must be from 0 to"),
        ({"packer": Packer(9, template="xml")}, "packer must have template='plain': the framewo"),
        ({"packer": Packer(9, template=Template("{text}"))}, "packer must have template='plain'"),
        ({"packer": Packer(9, notice=True)}, "packer must have notice=None: the framework writes"),
        ({"packer": presets.context_router(9)}, "packer must not be of the preset"),
        ({"packer": Packer(9, order="sticky")}, "order must not be 'sticky' in a framework"),
        (
            {"packer": Packer(9, overflow="truncate_end"), "document_prompt": PROMPT},
            "overflow",
        ),
        ({"packer": 9, "document_prompt": "{page_content}"}, "document_prompt must be a BasePro"),
        ({"packer": 9, "separator": None}, "separator must be a str"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    """What LangChain would not write is refused when the compressor is made."""
    with pytest.raises(InvalidArgumentError, match=message):
        BudgetCompressor(**options)


def test_what_is_no_document():
    """What a compressor does not take is refused by its name, before anything is written."""
    compressor = BudgetCompressor(packer=9)
    runnable = compressor.as_runnable()
    found = documents([1])
    for asked in ({"documents": found}, {"query": "tea"}, "tea"):
        with pytest.raises(InvalidArgumentError, match="must be a mapping with 'documents' and"):
            runnable.invoke(asked)
        with pytest.raises(InvalidArgumentError, match="must be a mapping with 'documents' and"):
            asyncio.run(runnable.ainvoke(asked))
    message = r"documents\[1\] must be a Document, not str"
    for prompt in (None, PROMPT):
        compressor = BudgetCompressor(packer=9, document_prompt=prompt)
        with pytest.raises(InvalidArgumentError, match=message):
            compressor.compress_documents([*found, "tea"], "tea")
        with pytest.raises(InvalidArgumentError, match=message):
            asyncio.run(compressor.acompress_documents([*found, "tea"], "tea"))


def test_what_the_counter_counts():
    """LangChain's trimming with the counter fits, as `count_messages` counts."""
    messages = [
        SystemMessage("Be brief."),
        *(kind(f"Green tea, {i}. " * 5) for i in range(6) for kind in (HumanMessage, AIMessage)),
        HumanMessage("And rye?"),
    ]
    for limit in (30, 60, 120, 400):
        trimmed = trim_messages(
            messages,
            max_tokens=limit,
            token_counter=token_counter("gpt-4o"),
            include_system=True,
        )
        assert trimmed
        assert count_messages(trimmed, model="gpt-4o") <= limit
    with pytest.raises(InvalidArgumentError, match="model must be a str"):
        token_counter(3)


@tool
def read(path: str) -> str:
    """Read a file, and say what is in it."""
    return f"{path}: started. " * 400


class Answer(BaseModel):
    """The answer, and where it was found."""

    text: str = Field(description="The answer in one sentence")
    sources: list[str]


class Aside(BaseModel):
    """What is no answer."""

    remark: str


class Model(BaseChatModel):
    """A model that notes what reaches it, and calls a tool as often as it is told."""

    model_name: str = "gpt-4o"
    calls: int = 0
    seen: list = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "noting"

    def bind_tools(self, tools, **kwargs):
        shown = [t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools]
        return self.bind(tools=shown, **kwargs)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append((messages, kwargs))
        number = len(self.seen)
        if number <= self.calls:
            calls = [{"name": "read", "args": {"path": f"{number}.log"}, "id": f"call{number}"}]
            message = AIMessage("", tool_calls=calls)
        else:
            answer = {"text": "ok", "sources": []}
            calls = [{"name": "Answer", "args": answer, "id": "answer"}]
            is_tool = kwargs.get("tool_choice") == "any"
            text = '{"text": "ok", "sources": []}'
            message = AIMessage(text, tool_calls=calls if is_tool else [])
        return ChatResult(generations=[ChatGeneration(message=message)])


def tokens_of(messages, kwargs):
    """Return what reached the model, counted without the middleware."""
    total = count_messages(messages, model="gpt-4o")
    has_system = isinstance(messages[0], SystemMessage)
    total += count_tools(kwargs.get("tools", ()), model="gpt-4o", has_system_message=has_system)
    if "response_format" in kwargs:
        total += COUNT(json.dumps(kwargs["response_format"]["json_schema"]["schema"]))
    return total


@pytest.mark.parametrize("answer", [None, ToolStrategy(Answer), ProviderStrategy(Answer), Answer])
@pytest.mark.parametrize("window", [500, 800, 3000])
def test_what_reaches_the_model_fits(answer, window):
    """The law: system, messages, tools and schema that reach the model fit the window."""
    model = Model(calls=5)
    agent = create_agent(
        model,
        [read],
        system_prompt="Answer from the files.",
        middleware=[BudgetMiddleware(context_window=window)],
        response_format=answer,
    )
    turns = [("human", "Hello there. " * 30), ("ai", "Hello!"), ("human", "What do they say?")]

    state = agent.invoke({"messages": turns})

    assert len(model.seen) == 6
    for messages, kwargs in model.seen:
        assert tokens_of(messages, kwargs) <= window
        assert isinstance(messages[0], SystemMessage)
        assert isinstance(messages[1], HumanMessage)
        assert "What do they say?" in [message.content for message in messages]
        asked = {call["id"] for message in messages for call in getattr(message, "tool_calls", ())}
        answered = [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
        assert {*answered} == asked
    # The agent's state has all of it still.
    whole = [message for message in state["messages"] if message.type == "tool"]
    assert "1.log: started. " * 400 == whole[0].content
    assert not isinstance(answer, ToolStrategy) or state["structured_response"].text == "ok"


class Failing(Model):
    """A model that notes what reaches it, and fails."""

    def bind_tools(self, tools, **kwargs) -> Runnable:  # by which fallbacks are bound, too
        return super().bind_tools(tools, **kwargs)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append((messages, kwargs))
        raise ConnectionError


@pytest.mark.parametrize("tools", [[], [read]])
@pytest.mark.parametrize("bind", [lambda model: model, lambda model: model.bind(stop=["x"])])
def test_a_model_with_fallbacks(tools, bind):
    """Any of several models may answer: the call fits the smallest window of theirs."""
    models = [Failing(model_name="gpt-4o"), Failing(model_name="gpt-4"), Model()]
    first, *others = models
    model = bind(first.with_fallbacks(others))
    agent = create_agent(model, tools, middleware=[BudgetMiddleware(max_output_tokens=1000)])
    turns = [("human", "Tea? " * 5000), ("ai", "Any."), ("human", "Which?" * 3000)]

    agent.invoke({"messages": turns})

    for model in models:
        [(messages, kwargs)] = model.seen
        assert 3000 < tokens_of(messages, kwargs) <= 8_192 - 1_000
        assert turns[-1][1] == messages[-1].content


def test_the_prefix_stays():
    """While a conversation grows, the prompt begins as before in most of its calls."""
    model = Model()
    agent = create_agent(model, middleware=[BudgetMiddleware(context_window=1000)])
    messages = []
    for i in range(60):
        messages.append(HumanMessage(f"What is {i} and {i}? " * 3))
        messages = agent.invoke({"messages": messages})["messages"]

    firsts = [seen[0].content for seen, _ in model.seen]
    changes = sum(a != b for a, b in pairwise(firsts))
    assert firsts[0] != firsts[-1]
    assert changes <= 12
    assert all(tokens_of(*seen) <= 1000 for seen in model.seen)


def test_async_agents():
    """An agent that is awaited is fitted as well."""
    model = Model(calls=2)
    agent = create_agent(model, [read], middleware=[BudgetMiddleware(context_window=300)])

    asyncio.run(agent.ainvoke({"messages": [("human", "What do they say?")]}))

    assert [True] * 3 == [tokens_of(*seen) <= 300 for seen in model.seen]


def test_claude_is_counted_by_its_own_rule():
    """The prompt that Anthropic writes for tools counts: what fits without it does not fit."""
    agent = create_agent(
        Model(model_name="claude-opus-5"),
        [read],
        middleware=[BudgetMiddleware(context_window=300)],
    )
    with pytest.raises(BudgetExhaustedError, match="tools"):
        agent.invoke({"messages": [("human", "What do they say?")]})


def test_the_reply_is_reserved():
    """The answer's tokens, as the model has them or as they are given, are left free."""
    model = Model()
    agent = create_agent(
        model, middleware=[BudgetMiddleware(context_window=300, max_output_tokens=200)]
    )
    turns = [("human", "Hello there. " * 30), ("ai", "Hello!"), ("human", "What do they say?")]

    agent.invoke({"messages": turns})

    assert tokens_of(*model.seen[0]) <= 100


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_reply_that_a_call_states(name):
    """A number for the answer counts by each name that providers have for it."""
    turns = [("human", "Hello there. " * 30), ("ai", "Hello!"), ("human", "What do they say?")]

    class Stating(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(model_settings={name: 200}))

    class Limited(Model):
        max_output_tokens: int | None = 200

    fits = BudgetMiddleware(context_window=300)
    for model, before in ((Model(), [Stating()]), (Limited(), [])):
        create_agent(model, middleware=[*before, fits]).invoke({"messages": turns})
        assert tokens_of(*model.seen[0]) <= 100


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_reply_that_is_bound_to_a_model(name):
    """It is reserved as the model's own, which it replaces as in the request; the last wins."""
    turns = [("human", "Hello there. " * 30), ("ai", "Hello!"), ("human", "What do they say?")]

    class Limited(Model):
        max_output_tokens: int | None = 10

    fits = BudgetMiddleware(context_window=300)
    for model in (Model(), Limited()):
        for bound in (
            model.bind(**{name: 200}),
            model.bind(**{name: 200}).bind(stop=["x"]).with_config(tags=["tea"]),
            RunnableBinding(bound=model.bind(**{name: 20}), kwargs={name: 200}),
        ):
            create_agent(bound, middleware=[fits]).invoke({"messages": turns})
            messages, kwargs = model.seen[-1]
            assert 200 == kwargs[name]
            assert tokens_of(messages, {}) <= 100


@pytest.mark.parametrize("window", [70, 100, 150, 300])
def test_tools_that_are_bound_to_a_model(window):
    """They count as they are sent, as do those of the settings of a call."""
    turns = [("human", "Hello there. " * 30), ("ai", "Hello!"), ("human", "What do they say?")]
    shown = convert_to_openai_tool(read)
    schema = {"name": "a", "schema": {"type": "object", "properties": {"tea": {"enum": ["a"]}}}}
    answer = {"type": "json_schema", "json_schema": schema}

    class Setting(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(model_settings={"tools": [shown]}))

    fits = BudgetMiddleware(context_window=window)
    for bound, before in (
        (Model().bind_tools([read]), []),
        (Model().bind(functions=[shown["function"]]), []),
        (Model().bind(response_format=answer), []),
        (Model().bind(tools=[]), [Setting()]),
    ):
        create_agent(bound, middleware=[*before, fits]).invoke({"messages": turns})
        messages, kwargs = bound.bound.seen[0]
        assert {"tools", "functions", "response_format"} & set(kwargs)
        tools = {"tools": [shown]} if "functions" in kwargs else {}
        assert tokens_of(messages, {**kwargs, **tools}) <= window


def test_the_reply_of_a_bound_model_with_tools():
    """LangChain sends the model's own number with tools: that is reserved, and else the bound."""
    turns = [("human", "Hello there. " * 30), ("ai", "Hello!"), ("human", "What do they say?")]

    class Limited(Model):
        max_tokens: int | None = 200

    fits = BudgetMiddleware(context_window=300)
    for model, bound in ((Limited(), 10), (Model(), 200)):
        agent = create_agent(model.bind(max_tokens=bound), [read], middleware=[fits])
        agent.invoke({"messages": turns})
        messages, kwargs = model.seen[0]
        assert "max_tokens" not in kwargs
        assert tokens_of(messages, kwargs) <= 100


@pytest.mark.parametrize("window", range(120, 300, 7))
def test_calls_that_are_sent_as_items(window):
    """Of OpenAI's Responses each call beside a text is an item of its own, and counts as one."""

    class Responding(Model):
        use_responses_api: bool | None = True

    model = Responding()
    turns = [HumanMessage("What do they say?")]
    for i in range(4):
        keys = [f"{i}{j}" for j in range(3)]
        calls = [{"name": "read", "args": {}, "id": key} for key in keys]
        turns.append(AIMessage([{"type": "text", "text": "I look."}], tool_calls=calls))
        turns += [ToolMessage("It started. " * 8, tool_call_id=key) for key in keys]

    agent = create_agent(model, middleware=[BudgetMiddleware(context_window=window)])
    agent.invoke({"messages": turns})

    items = []
    for message in model.seen[0][0]:
        if isinstance(message, ToolMessage):
            told = {"call_id": message.tool_call_id, "output": message.content}
            items.append({"type": "function_call_output", **told})
            continue
        role = "assistant" if isinstance(message, AIMessage) else "user"
        items.append({"type": "message", "role": role, "content": message.text})
        for call in getattr(message, "tool_calls", ()):
            told = {"call_id": call["id"], "name": call["name"], "arguments": "{}"}
            items.append({"type": "function_call", **told})
    request = {"model": "gpt-4o", "input": items}
    assert fit_request(request, context_window=10_000).total_tokens <= window


def test_wrong_options_of_the_middleware():
    """A wrong option is refused when the middleware is made, a missing window by the call."""
    with pytest.raises(InvalidArgumentError, match="context_window must be an int, not str"):
        BudgetMiddleware(context_window="9")
    with pytest.raises(InvalidArgumentError, match="model must be a str"):
        BudgetMiddleware(model=3)
    agent = create_agent(FakeListChatModel(responses=["x"]), middleware=[BudgetMiddleware()])
    with pytest.raises(InvalidArgumentError, match="context_window"):
        agent.invoke({"messages": [("human", "Hello")]})


def test_without_the_package_the_error_says_what_to_install():
    """Without langchain-core the import fails with the command that installs it."""
    code = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "from budgeteer.errors import MissingPackageError\n"
        "try:\n    import budgeteer.integrations.langchain\n"
        "except MissingPackageError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "needs pip install 'budgeteer[langchain]'" in said.stdout


def test_an_answer_of_several_schemas():
    """A model chooses among them by a tool for each, whose schemas count."""
    model = Model(model_name="noting")
    union = typing.Union[Answer, Aside]  # noqa: UP007 - as it is given

    for answer in (union, Answer | Aside, ToolStrategy(union)):
        fits = BudgetMiddleware(model="gpt-4o", context_window=400)
        agent = create_agent(model, middleware=[fits], response_format=answer)
        state = agent.invoke({"messages": [("human", "What do they say?")]})
        assert "ok" == state["structured_response"].text
        assert tokens_of(*model.seen[-1]) <= 400
    fits = BudgetMiddleware(model="gpt-4o", context_window=60)
    small = create_agent(model, middleware=[fits], response_format=union)
    with pytest.raises(BudgetExhaustedError, match="for tools"):
        small.invoke({"messages": [("human", "What do they say?")]})


def test_a_packer_that_changes():
    """What is assigned, or another one in a copy, is heeded, and pickling forgets nothing."""
    documents = [Document("Green tea is mild. " * 9), Document("Rye.")]
    prompt = PromptTemplate.from_template("<{page_content}>")
    compressor = BudgetCompressor(packer=99, document_prompt=prompt)
    assert documents == compressor.compress_documents(documents, "tea")

    copied = compressor.model_copy(update={"packer": 5})
    assert documents[1:] == copied.compress_documents(documents, "tea")
    assert documents == pickle.loads(pickle.dumps(compressor)).compress_documents(documents, "tea")
    assert documents == copy.deepcopy(compressor).compress_documents(documents, "tea")
    compressor.packer = 5
    assert documents[1:] == compressor.compress_documents(documents, "tea")
    compressor.packer = -1
    with pytest.raises(InvalidArgumentError, match="packer must be from 0"):
        compressor.compress_documents(documents, "tea")


def test_a_compressor_is_written_by_its_options():
    """What pydantic writes of it makes another one that does the same."""
    written = BudgetCompressor(packer=Packer(5, ranking="bm25")).model_dump_json()
    options = json.loads(written)["packer"]
    assert (5, "bm25") == (options["max_tokens"], options["ranking"])
    assert Packer(5, ranking="bm25") == Packer(**options)
    options = {"max_tokens": 5}
    compressor = BudgetCompressor(packer=options)
    options["max_tokens"] = 9
    assert {"max_tokens": 5} == compressor.model_dump()["packer"]
    with pytest.raises(Exception, match=r"Packer\.counter is a builtin"):
        BudgetCompressor(packer=Packer(5, counter=len)).model_dump_json()


def test_the_middleware_is_listed():
    """Completion finds what is loaded when it is asked for."""
    from budgeteer.integrations import langchain

    assert {*langchain.__all__} <= {*dir(langchain)}
