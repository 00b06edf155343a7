"""OpenAI Agents: a filter that makes each call of a run's models fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter
from budgeteer.integrations._missing import missing
from budgeteer.integrations._requests import Fitter

try:
    from agents import Agent, FunctionTool, RunContextWrapper, handoff
    from agents.agent_output import AgentOutputSchema, AgentOutputSchemaBase
    from agents.models.default_models import get_default_model
    from agents.run import CallModelData, ModelInputData
except ImportError as _error:
    raise missing(__name__, _error) from None

__all__ = ["input_filter"]


def input_filter(
    *,
    model: str | ModelLimits | None = None,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    counter: Counter | None = None,
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """
    Return a filter for ``RunConfig(call_model_input_filter=...)`` that makes each call fit.

    The law: the items, instructions, tools, handoffs and schema of the output that reach the
    model, and what is reserved for the answer, count at most the window, as by `fit_request`.
    Old tool results are masked, large ones are cut, and then the oldest turns leave; no call is
    separated from its output. The result of the run, and its session, keep everything. What left
    a conversation stays away while it grows, so that the provider's cache finds the beginning of
    the prompt: the last 64 conversations are remembered.

    Tools of MCP servers are listed for each call, unless the servers keep their lists.

    Args:
        model: The model whose window, costs and counter apply. None takes the agent's own, or the
            package's default. A model in ``RunConfig`` is not known here: give it.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's.
        max_output_tokens: The tokens to reserve for the answer. None takes the ``max_tokens`` of
            the agent's settings, 0 if there is none.
        counter: Counts the texts, as for `fit_request`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range. From a run: neither
            a known model nor a window is given.
        BudgetExhaustedError: From a run: what must stay does not fit.

    Examples:
        >>> import asyncio
        >>> from agents import Agent
        >>> from agents.run import CallModelData, ModelInputData
        >>> items = [{"role": "user", "content": text} for text in ("Tea? " * 99, "And rye?")]
        >>> asked = CallModelData(ModelInputData(items, "Be brief."), Agent("house"), None)
        >>> fits = input_filter(model="gpt-4o", context_window=30)
        >>> asyncio.run(fits(asked)).input
        [{'role': 'user', 'content': 'And rye?'}]

    """
    fit = Fitter(model, context_window, max_output_tokens, counter)

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        agent, given = data.agent, data.model_data
        request: dict[str, Any] = {
            "model": _model(agent),
            "input": given.input,
            "tools": await _tools(agent, data.context),
        }
        if given.instructions:
            request["instructions"] = given.instructions
        if agent.model_settings.max_tokens is not None:
            request["max_output_tokens"] = agent.model_settings.max_tokens
        schema = _schema(agent)
        if schema is not None:
            written = {"type": "json_schema", "name": "final_output", "schema": schema}
            request["text"] = {"format": written}
        made = fit(request).request["input"]
        return ModelInputData(input=made, instructions=given.instructions)

    return fitted


def _model(agent: Agent[Any]) -> str:
    model = agent.model
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return str(name or get_default_model())


async def _tools(agent: Agent[Any], context: Any) -> list[dict[str, Any]]:
    """Return what is sent of tools and handoffs."""
    shown = []
    for tool in await agent.get_all_tools(RunContextWrapper(context)):
        if isinstance(tool, FunctionTool):
            shown.append(_function(tool.name, tool.description, tool.params_json_schema))
        else:
            shown.append({"type": tool.name})
    for target in agent.handoffs:
        to = handoff(target) if isinstance(target, Agent) else target
        shown.append(_function(to.tool_name, to.tool_description, to.input_json_schema))
    return shown


def _function(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": schema}


def _schema(agent: Agent[Any]) -> dict[str, Any] | None:
    """Return the schema of the output, None for plain text."""
    kind = agent.output_type
    if kind is None or kind is str:
        return None
    output = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
    return None if output.is_plain_text() else output.json_schema()
