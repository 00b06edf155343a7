"""LangChain's agents: a middleware that makes each call of the model fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter, model_name
from budgeteer._public import public
from budgeteer._request.result import FittedRequest
from budgeteer.integrations._missing import missing
from budgeteer.integrations._requests import Fitter, tool_for

_HOME = "budgeteer.integrations.langchain"
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""What providers, and LangChain's models of them, call the most tokens of an answer."""
_COUNTED = ("tool_choice", "functions", "function_call", "response_format")
"""What counts beside messages and tools, and may be bound to a model."""

try:
    from langchain.agents.middleware.types import AgentMiddleware, ModelRequest
    from langchain.agents.structured_output import (
        OutputToolBinding,
        ProviderStrategy,
        ToolStrategy,
    )
    from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as _error:
    raise missing(_HOME, _error) from None


@public(_HOME)
class BudgetMiddleware(AgentMiddleware):
    """
    Makes each call of an agent's model fit into the window.

    The law: system message, messages, tools and schema of the answer that reach the model, and
    what is reserved for the answer, count at most the window, as by `fit_request`. Old tool
    results are masked, large ones are cut, and then the oldest turns leave; so what is left begins
    with a message of the user. The state of the agent keeps everything. What left a conversation
    stays away while it grows, so that a provider's cache finds the beginning of the prompt: the
    last 64 conversations are remembered.

    A model with fallbacks may ask each of them: the call fits all.

    Put it last in the list, as what a middleware behind it adds is not counted.

    Args:
        model: The model whose window, costs and counter apply. None takes the name of the agent's
            own.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's.
        max_output_tokens: The tokens to reserve for the answer, even where a request states more.
            None takes the ``max_tokens`` of the call, or what is bound to the agent's model or is
            its own, by whichever name its provider has for it, 0 if there is none.
        counter: Counts the texts, as for `fit_request`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range. From a call: neither
            a model's name nor a window is known.
        BudgetExhaustedError: From a call: what must stay does not fit.

    Examples:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> fits = BudgetMiddleware(model="gpt-4o", context_window=30)
        >>> agent = create_agent(FakeListChatModel(responses=["Green."]), middleware=[fits])
        >>> turns = [("human", "Which tea? " * 9), ("ai", "Any."), ("human", "Which one?")]
        >>> agent.invoke({"messages": turns})["messages"][-1].content
        'Green.'

    """

    def __init__(
        self,
        *,
        model: str | ModelLimits | None = None,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        counter: Counter | None = None,
    ) -> None:
        super().__init__()
        self._name = model_name(model)
        self._fit = Fitter(model, context_window, max_output_tokens, counter)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """
        Call the model with what fits.

        Args:
            request: LangChain's request.
            handler: Calls the model.

        Examples:
            >>> from langchain.agents.middleware.types import ModelRequest
            >>> from langchain_core.language_models import FakeListChatModel
            >>> from langchain_core.messages import AIMessage, HumanMessage
            >>> messages = [HumanMessage("Tea? " * 9), AIMessage("Any."), HumanMessage("Which?")]
            >>> request = ModelRequest(model=FakeListChatModel(responses=[]), messages=messages)
            >>> fits = BudgetMiddleware(context_window=20)
            >>> fits.wrap_model_call(request, lambda fitted: fitted.messages[0].content)
            'Which?'

        """
        return handler(self._fitted(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """
        Await the model with what fits.

        Args:
            request: LangChain's request.
            handler: Calls the model.

        Examples:
            >>> import asyncio
            >>> from langchain.agents.middleware.types import ModelRequest
            >>> from langchain_core.language_models import FakeListChatModel
            >>> from langchain_core.messages import HumanMessage
            >>> model = FakeListChatModel(responses=[])
            >>> request = ModelRequest(model=model, messages=[HumanMessage("Which tea?")])
            >>> async def handler(fitted):
            ...     return len(fitted.messages)
            >>> fits = BudgetMiddleware(context_window=20)
            >>> asyncio.run(fits.awrap_model_call(request, handler))
            1

        """
        return await handler(self._fitted(request))

    def _fitted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        for model in _candidates(request.model):
            request = self._fitted_to(model, request)
        return request

    def _fitted_to(self, model: Any, request: ModelRequest[Any]) -> ModelRequest[Any]:
        given = [] if request.system_message is None else [request.system_message]
        name = _name_of(model)
        answer, bound = request.response_format, {}
        if not request.tools and answer is None:  # else LangChain binds to the model itself
            bound = {**_bound(model), **request.model_settings}
        tools = _tools(request) or bound.get("tools") or []
        asked = {
            "model": name,
            "messages": [*given, *request.messages],
            "tool_choice": request.tool_choice,
            **{key: bound[key] for key in _COUNTED if key in bound},
            "tools": [_shown(self._name or name or "", tool) for tool in tools] or None,
            "max_tokens": _limit(model, request),
        }
        if answer is not None and not isinstance(answer, ToolStrategy) and _is_single(answer):
            asked.update(ProviderStrategy(_schema(answer)).to_model_kwargs())
        asked = {key: value for key, value in asked.items() if value is not None}
        # None leaves it to the call whether it is one of OpenAI's Responses.
        as_items = getattr(model, "use_responses_api", False) is not False

        def added(fitted: FittedRequest) -> int:
            """Return what the items of OpenAI's Responses have more than messages."""
            shown = fitted.request["messages"]
            made = self._fit.count(shown, name or "", as_items=True)
            return made - self._fit.count(shown, name or "")

        fitted = self._fit(asked, added if as_items else None)
        return request.override(messages=fitted.request["messages"][len(given) :])


def _candidates(model: Any) -> list[Any]:
    """Return the models of which one answers: one with fallbacks is these, each as it is bound."""
    if isinstance(model, RunnableWithFallbacks):
        return [one for inner in model.runnables for one in _candidates(inner)]
    found = _candidates(model.bound) if isinstance(model, RunnableBinding) else []
    return [model.model_copy(update={"bound": one}) for one in found] if found[1:] else [model]


def _limit(model: Any, request: ModelRequest[Any]) -> Any:
    """Return the most tokens of the answer: what the call states, is bound, or is the model's."""
    own = {name: getattr(model, name, None) for name in _LIMITS}
    own = {name: limit for name, limit in own.items() if limit is not None}
    found = [_bound(model), own]
    if request.tools or request.response_format is not None:
        found.reverse()  # LangChain binds tools to the model itself, and sends its own limit
    given = [request.model_settings, *found]
    stated = ([each[name] for name in _LIMITS if name in each] for each in given)
    return next((limit for limit in next(filter(None, stated), []) if limit is not None), None)


def _bound(model: object) -> dict[str, Any]:
    """Return what is bound to a model, by one binding or more: the last wins."""
    if not isinstance(model, RunnableBinding):
        return {}
    return {**_bound(model.bound), **model.kwargs}


def _name_of(model: object) -> str | None:
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str) and name), None)


def _tools(request: ModelRequest[Any]) -> list[dict[str, Any]]:
    """Return the tools that are bound: those of the call, and those that an answer may be."""
    answer = request.response_format
    found = [*request.tools]
    if answer is not None and not isinstance(answer, ProviderStrategy):
        # Which way an undecided schema goes is known after this: it counts as a tool, too.
        way = answer if isinstance(answer, ToolStrategy) else ToolStrategy(_schema(answer))
        found += [OutputToolBinding.from_schema_spec(spec).tool for spec in way.schema_specs]
    return [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in found]


def _is_single(answer: Any) -> bool:
    """Return whether an answer has one schema; of several a model chooses by a tool for each."""
    return (
        isinstance(answer, ProviderStrategy)
        or len(ToolStrategy(_schema(answer)).schema_specs) == 1
    )


def _schema(answer: Any) -> Any:
    return getattr(answer, "schema", answer)


def _shown(name: str, tool: Any) -> Any:
    """Return a tool as the provider of a model is sent it."""
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return tool
    told = (function.get("name", ""), function.get("description"), function.get("parameters", {}))
    return tool_for(name, *told)
