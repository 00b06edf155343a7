"""Frameworks without a hook of their own: what their clients send fits."""

import asyncio

import pytest
from provider import history

from budgeteer.window import count_messages

OPTIONS = {"context_window": 900, "max_output_tokens": 100}


def test_smolagents(provider):
    """A model of smolagents has OpenAI's client, and a fitted one takes its place."""
    smolagents = pytest.importorskip("smolagents")
    pytest.importorskip("openai")
    from budgeteer.integrations.openai import fitted

    model = smolagents.OpenAIModel("gpt-4o", api_base=f"{provider.url}/v1", api_key="none")
    with model.client:
        model.client = fitted(model.client, **OPTIONS)
        turns = [
            {"role": role, "content": [{"type": "text", "text": "Started. " * 200}]}
            for _ in range(4)
            for role in ("user", "assistant")
        ]
        asked = {"role": "user", "content": [{"type": "text", "text": "Which one failed?"}]}
        model.generate([*turns, asked])

    [body] = provider.seen
    assert count_messages(body["messages"], model="gpt-4o") <= 800
    assert asked["content"][0]["text"] in str(body["messages"][-1])


@pytest.mark.filterwarnings("default")  # litellm's own are many
def test_dspy(provider):
    """What DSPy awaits goes through litellm, whose hook makes it fit."""
    dspy = pytest.importorskip("dspy")
    litellm = pytest.importorskip("litellm")
    from budgeteer.integrations.litellm import BudgetHook

    hook = BudgetHook(**OPTIONS)
    litellm.callbacks.append(hook)
    try:
        lm = dspy.LM(
            "openai/gpt-4o",
            api_base=f"{provider.url}/v1",
            api_key="none",
            cache=False,
            engine="litellm",
        )
        messages = history(6)
        assert asyncio.run(lm.acall(messages=messages))
    finally:
        litellm.callbacks.remove(hook)

    [body] = provider.seen
    assert count_messages(body["messages"], model="gpt-4o") <= 800
    assert messages[-1] == body["messages"][-1]
