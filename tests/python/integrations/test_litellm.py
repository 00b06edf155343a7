"""litellm: what reaches a provider fits."""

import asyncio
import inspect
import time

import pytest
from provider import CLAUDE_TOOL, RESPONSES_TOOL, TOOL, claude_history, history

pytest.importorskip("litellm")

import litellm

from budgeteer import Section
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations._requests import Fitter
from budgeteer.integrations.litellm import BudgetHook, fitted
from budgeteer.window import count_messages, count_tools

OPTIONS = {"context_window": 900, "max_output_tokens": 100}
MESSAGES = history(6)
ITEMS = [
    item
    for i in range(6)
    for item in (
        {"role": "user", "content": f"What is in file {i}?"},
        {"type": "function_call", "call_id": f"c{i}", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{i}", "output": "Started. " * 300},
    )
]
ITEMS.append({"role": "user", "content": "Which one failed?"})


@pytest.fixture
def api(provider):
    return {"api_base": f"{provider.url}/v1", "api_key": "none"}


@pytest.fixture
def hook():
    hook = BudgetHook(**OPTIONS)
    litellm.callbacks.append(hook)
    yield hook
    litellm.callbacks.remove(hook)


pytestmark = pytest.mark.filterwarnings("default")  # litellm's own are many


def check(provider):
    assert provider.seen
    for body in provider.seen:
        tools = body.get("tools") or ()
        total = count_messages(body["messages"], model="gpt-4o")
        assert total + count_tools(tools, model="gpt-4o", has_system_message=True) <= 800
        assert MESSAGES[0] == body["messages"][0]
        assert MESSAGES[-1] == body["messages"][-1]


def test_calls_that_are_awaited(provider, api, hook):
    """The law: what `acompletion` sends fits, streams included."""

    async def ask():
        asked = {"model": "openai/gpt-4o", "messages": MESSAGES, "tools": [TOOL], **api}
        answer = await litellm.acompletion(**asked)
        assert "ok" == answer.choices[0].message.content
        async for _ in await litellm.acompletion(**asked, stream=True):
            pass

    asyncio.run(ask())

    assert 2 == len(provider.seen)
    check(provider)


def test_a_router(provider, api, hook):
    """What a router sends to the deployment of its choice fits."""
    deployment = {"model_name": "house", "litellm_params": {"model": "openai/gpt-4o", **api}}
    router = litellm.Router(model_list=[deployment])

    asyncio.run(router.acompletion("house", MESSAGES))
    assert router.completion("house", MESSAGES)

    other = provider.seen.pop()
    check(provider)
    assert len(MESSAGES) == len(other["messages"]), "litellm asks hooks for this, too: say so"
    provider.seen.clear()
    assert fitted(router.completion, model="gpt-4o", **OPTIONS)("house", MESSAGES)
    check(provider)


def test_responses(provider, api, hook):
    """What `aresponses` and a wrapped `responses` send fits."""
    asked = {"model": "openai/gpt-4o", "input": ITEMS, "tools": [RESPONSES_TOOL], **api}

    asyncio.run(litellm.aresponses(**asked))
    fitted(litellm.responses, **OPTIONS)(**asked)

    assert 2 <= len(provider.seen)
    for body in provider.seen:
        total = count_messages(body["input"], model="gpt-4o")
        assert total + count_tools(body["tools"], model="gpt-4o") <= 800
        assert ITEMS[-1]["content"] in str(body["input"][-1])


def test_a_wrapped_function(provider, api):
    """What a wrapped `completion` sends fits, whether arguments are named or not."""
    completion = fitted(litellm.completion, **OPTIONS)

    completion("openai/gpt-4o", MESSAGES, tools=[TOOL], **api)
    completion(model="openai/gpt-4o", messages=MESSAGES, **api)
    for _ in completion("openai/gpt-4o", MESSAGES, stream=True, **api):
        pass
    acompletion = fitted(litellm.acompletion, **OPTIONS)
    assert inspect.iscoroutinefunction(acompletion)
    assert not inspect.iscoroutinefunction(completion)
    asyncio.run(acompletion("openai/gpt-4o", MESSAGES, **api))

    assert 4 == len(provider.seen)
    check(provider)
    assert litellm.completion.__name__ == completion.__name__


def test_arguments_of_a_wrapped_function():
    """It gets them as they were given, whichever way it takes them."""
    seen = []
    old, new = ({"role": "user", "content": text} for text in ("tea " * 99, "Rye?"))

    def named(model, *rest, messages, **others):
        seen.append((model, rest, messages, others))

    def placed(model, messages, /, **others):
        seen.append((model, messages, others))

    def any_way(model, messages, tools=None, stop=None, **others):
        raise AssertionError

    def told(*args, **kwargs):
        seen.append((*args, kwargs))

    told.__signature__ = inspect.signature(any_way)
    chosen = Section("tools", [TOOL], select="bm25", query="Rye?", max_tokens=1)
    fitted(told, context_window=20)("gpt-4o", messages=[old, new])
    fitted(told, context_window=20)("gpt-4o", [old, new], stop="x")
    fitted(told, context_window=20)("gpt-4o", [old, new], chosen, "x", seed=1)
    assert [
        ("gpt-4o", {"messages": [new]}),
        ("gpt-4o", [new], {"stop": "x"}),
        ("gpt-4o", [new], {"stop": "x", "seed": 1}),
    ] == seen
    seen.clear()
    fitted(named, context_window=20)("gpt-4o", 1, 2, messages=[old, new], stop="x")
    fitted(placed, context_window=20)("gpt-4o", [old, new], stop="x")
    assert [
        ("gpt-4o", (1, 2), [new], {"stop": "x"}),
        ("gpt-4o", [new], {"stop": "x"}),
    ] == seen


def test_a_wrapped_function_and_a_hook(provider, api, hook):
    """Hooks see what is given by name, as without the wrapper."""
    acompletion = fitted(litellm.acompletion, **OPTIONS)
    asyncio.run(acompletion(model="openai/gpt-4o", messages=MESSAGES, **api))
    check(provider)


@pytest.mark.parametrize("fallback", ["openai/gpt-4", {"model": "openai/gpt-4"}])
def test_a_call_with_fallbacks(provider, api, fallback):
    """Any of several models may answer: the call fits the smallest window of theirs."""
    old, new = ({"role": "user", "content": text} for text in ("tea " * 20_000, "Rye?"))
    completion = fitted(litellm.completion, max_output_tokens=1000)

    for fallbacks in ({}, {"fallbacks": [fallback]}):
        completion(model="openai/gpt-4o", messages=[old, new], **fallbacks, **api)

    assert [[old, new], [new]] == [body["messages"] for body in provider.seen]
    assert ["gpt-4o", "gpt-4o"] == [body["model"] for body in provider.seen]


def test_functions_that_take_anything():
    """The methods of newer routers do not say what they take: their names do."""
    seen = []
    old, new = ({"role": "user", "content": text} for text in ("tea " * 99, "Rye?"))

    def completion(*args, **kwargs):
        seen.append((*args, kwargs))

    def responses(custom_llm_provider=None, **kwargs):
        seen.append((custom_llm_provider, kwargs))

    def others(*args, **kwargs):
        raise AssertionError

    fitted(completion, context_window=20)("gpt-4o", [old, new], stop="x")
    fitted(completion, context_window=20)(model="gpt-4o", messages=[old, new])
    fitted(responses, context_window=20)("openai", model="gpt-4o", input=[old, new])
    assert [
        ("gpt-4o", [new], {"stop": "x"}),
        ({"model": "gpt-4o", "messages": [new]},),
        ("openai", {"model": "gpt-4o", "input": [new]}),
    ] == seen
    with pytest.raises(InvalidArgumentError, match="must take messages or input"):
        fitted(others)


def test_what_cannot_fit_is_not_sent(provider, api, hook):
    """The errors are ours, and nothing is sent."""
    long = [{"role": "user", "content": "tea " * 2000}]
    with pytest.raises(BudgetExhaustedError, match="context_window 900"):
        asyncio.run(litellm.acompletion(model="openai/gpt-4o", messages=long, **api))
    with pytest.raises(BudgetExhaustedError, match="context_window 900"):
        fitted(litellm.completion, **OPTIONS)("openai/gpt-4o", long, **api)
    with pytest.raises(InvalidArgumentError, match="messages must be given by name"):
        asyncio.run(litellm.acompletion("openai/gpt-4o", MESSAGES, **api))
    assert [] == provider.seen


def test_a_router_falls_back(provider, api, hook):
    """What does not fit goes to the model of a larger window at once, and is not tried again."""
    models = {"small": "openai/gpt-4", "large": "openai/gpt-4o", "none": "openai/gpt-4"}
    deployments = [
        {"model_name": name, "litellm_params": {"model": model, **api}}
        for name, model in models.items()
    ]
    router = litellm.Router(
        model_list=deployments, context_window_fallbacks=[{"small": ["large"]}], num_retries=3
    )
    hook._fit = Fitter(None, None, None, None)
    long = [{"role": "user", "content": "tea " * 9000}]

    assert asyncio.run(router.acompletion("small", long)).choices
    assert ["gpt-4o"] == [body["model"] for body in provider.seen]
    start = time.monotonic()
    with pytest.raises(litellm.ContextWindowExceededError, match="context_window 8192") as error:
        asyncio.run(router.acompletion("none", long))
    assert time.monotonic() - start < 2
    assert isinstance(error.value, BudgetExhaustedError)
    assert 1 == len(provider.seen)


def test_other_calls_pass(hook):
    """A call without a window is none of the hook's."""
    asked = hook.async_pre_call_deployment_hook({"input": ["tea"]}, "aembedding")
    assert asyncio.run(asked) is None


def test_wrong_arguments():
    """A wrong argument is refused at once."""
    with pytest.raises(InvalidArgumentError, match="context_window must be an int, not str"):
        BudgetHook(context_window="9")
    with pytest.raises(InvalidArgumentError, match="function must be a function, not str"):
        fitted("completion")
    with pytest.raises(InvalidArgumentError, match="function must take messages or input"):
        fitted(len)
    with pytest.raises(InvalidArgumentError, match="function must take messages or input"):
        fitted(max)  # which has no signature
    with pytest.raises(InvalidArgumentError, match="aembedding takes texts, each for itself"):
        fitted(litellm.aembedding)


PROXY = {
    "chat/completions": {"model": "house", "messages": MESSAGES, "tools": [TOOL]},
    "messages": {
        "model": "claude",
        "max_tokens": 100,
        "messages": claude_history(6),
        "tools": [CLAUDE_TOOL],
    },
    "responses": {"model": "house", "input": ITEMS, "tools": [RESPONSES_TOOL]},
}
CONFIG = """model_list:
- model_name: house
  litellm_params: {{model: openai/gpt-4o, api_base: {url}/v1, api_key: none}}
- model_name: claude
  litellm_params: {{model: anthropic/claude-opus-5, api_base: {url}, api_key: none}}
litellm_settings:
  callbacks: house.fits
"""


def test_the_proxy(provider, tmp_path, monkeypatch):
    """The law: what the proxy sends to the deployment of its choice fits, at each endpoint."""
    pytest.importorskip("fastapi_sso", reason="litellm[proxy] is not installed")
    from fastapi.testclient import TestClient
    from litellm.proxy import proxy_server

    (tmp_path / "house.py").write_text(
        "from budgeteer.integrations.litellm import BudgetHook\n"
        "fits = BudgetHook(context_window=900, max_output_tokens=100)\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(url=provider.url))
    monkeypatch.setattr(litellm, "callbacks", [])
    asyncio.run(proxy_server.initialize(config=str(config)))
    client = TestClient(proxy_server.app)

    for path, asked in PROXY.items():
        for more in ({}, {"stream": True}):
            answer = client.post(f"/v1/{path}", json={**asked, **more})

            assert 200 == answer.status_code, answer.text
            body = provider.seen.pop()
            assert [] == provider.seen
            key = "input" if path == "responses" else "messages"
            model = "claude-opus-5" if path == "messages" else "gpt-4o"
            total = count_messages(body[key], model=model)
            tools = count_tools(body["tools"], model=model, has_system_message=True)
            assert total + tools <= 800, path
            assert asked[key][-1]["content"] in str(body[key][-1])
    long = {"model": "house", "messages": [{"role": "user", "content": "tea " * 2000}]}
    for path, wrong in (
        ("chat/completions", long),
        ("responses", {"model": "house", "input": "tea " * 2000}),
        ("messages", {**long, "model": "claude", "max_tokens": 100}),
    ):
        answer = client.post(f"/v1/{path}", json=wrong)
        assert 400 == answer.status_code, path
        assert "context_window 900" in answer.text, path
    assert [] == provider.seen
