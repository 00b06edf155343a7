"""OpenAI Agents: a filter that makes each call of a run's models fit, and a session that fits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits
from budgeteer._messages.history import ties_of
from budgeteer._messages.messages import Counter, chosen
from budgeteer._messages.views import viewed_fields
from budgeteer.errors import InvalidArgumentError
from budgeteer.integrations._histories import trimmed_history
from budgeteer.integrations._missing import missing
from budgeteer.integrations._requests import Fitter

try:
    from agents import Agent, FunctionTool, RunContextWrapper, Session, TResponseInputItem, handoff
    from agents.agent_output import AgentOutputSchema, AgentOutputSchemaBase
    from agents.memory import SessionSettings
    from agents.models.default_models import get_default_model
    from agents.run import CallModelData, ModelInputData
except ImportError as _error:
    raise missing(__name__, _error) from None

__all__ = ["BudgetSession", "input_filter"]


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

    Tools of MCP servers are listed for each call, unless the servers keep their lists. What the
    provider keeps of a conversation, by ``conversation_id`` or ``previous_response_id``, cannot be
    counted: the run is refused where a result of a tool comes without its call.

    Args:
        model: The model whose window, costs and counter apply. None takes the agent's own, or the
            package's default; what is not known of it is estimated, with a warning. A model in
            ``RunConfig`` is not known here, nor are its settings: give them.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's.
        max_output_tokens: The tokens to reserve for the answer, even where a request states more.
            None takes the ``max_tokens`` of the agent's settings, 0 if there is none.
        counter: Counts the texts, as for `fit_request`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range. From a run: the
            agent has a ``prompt``, whose text only the provider has, or the provider has the call
            of the newest result.
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
        _check_whole(given.input)
        request: dict[str, Any] = {
            "model": _model(agent),
            "input": given.input,
            "tools": await _tools(agent, data.context),
        }
        if given.instructions:
            request["instructions"] = given.instructions
        if agent.model_settings.max_tokens is not None:
            request["max_output_tokens"] = agent.model_settings.max_tokens
        if getattr(agent, "prompt", None) is not None:
            request["prompt"] = agent.prompt  # which is refused: only the provider has it
        schema = _schema(agent)
        if schema is not None:
            written = {"type": "json_schema", "name": "final_output", "schema": schema}
            request["text"] = {"format": written}
        made = fit(request).request["input"]
        return ModelInputData(input=made, instructions=given.instructions)

    return fitted


class BudgetSession:
    """
    A session of which a run reads no more than fits; it keeps everything.

    The law: the items of `get_items` count at most *max_tokens*, as by `count_messages`. They are
    the newest, no call is separated from its output, and their beginning stays the same from one
    time to the next as long as it can. For the whole of a request, instructions and tools
    included, take `input_filter`; both go together.

    A run reads the session before it adds its question. Where the newest turn is answered and does
    not fit, it is left out: only the system messages are read then.

    Args:
        session: The session that keeps the items, such as ``SQLiteSession``.
        max_tokens: The most tokens of the items that are read, from 0 on.
        model: The model by whose rules messages count. None counts as for OpenAI's.
        counter: Counts the texts, as for `get_counter`. None takes the model's, or
            ``o200k_base``.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        BudgetExhaustedError: From `get_items`: the system messages do not fit, or a question or
            tool result that waits for an answer does not.

    Examples:
        >>> import asyncio
        >>> from agents import SQLiteSession
        >>> session = BudgetSession(SQLiteSession("house"), 12)
        >>> items = [{"role": "user", "content": text} for text in ("Tea? " * 99, "And rye?")]
        >>> asyncio.run(session.add_items(items))
        >>> asyncio.run(session.get_items())
        [{'role': 'user', 'content': 'And rye?'}]

    """

    def __init__(
        self,
        session: Session,
        max_tokens: int,
        *,
        model: str | ModelLimits | None = None,
        counter: Counter | None = None,
    ) -> None:
        if not (hasattr(session, "get_items") and hasattr(session, "session_id")):
            raise InvalidArgumentError(
                f"session must be a Session, not {_validate.type_name(session)}"
            )
        self.session = session
        self.session_id: str = session.session_id
        self.session_settings: SessionSettings | None = getattr(session, "session_settings", None)
        self._trim = partial(
            trimmed_history,
            max_tokens=_validate.tokens("max_tokens", max_tokens),
            model=model,
            counter=chosen(counter, model),
        )
        self._trim([])  # refuses what is wrong now, and not in a run
        self._sent: list[TResponseInputItem] = []

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """
        Return the newest items that fit, oldest first.

        Examples:
            >>> import asyncio
            >>> from agents import SQLiteSession
            >>> asyncio.run(BudgetSession(SQLiteSession("house"), 12).get_items())
            []

        """
        items = await self.session.get_items(limit)
        found = list(self._trim(items, previous=None if limit else self._sent))
        if not limit:
            self._sent = found
        return [*found]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """
        Add items to the session, all of them.

        Examples:
            >>> import asyncio
            >>> from agents import SQLiteSession
            >>> session = BudgetSession(SQLiteSession("house"), 12)
            >>> asyncio.run(session.add_items([{"role": "user", "content": "And rye?"}]))

        """
        await self.session.add_items(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """
        Remove and return the newest item of the session; None if there is none.

        Examples:
            >>> import asyncio
            >>> from agents import SQLiteSession
            >>> asyncio.run(BudgetSession(SQLiteSession("house"), 12).pop_item())

        """
        return await self.session.pop_item()

    async def clear_session(self) -> None:
        """
        Remove all items of the session.

        Examples:
            >>> import asyncio
            >>> from agents import SQLiteSession
            >>> asyncio.run(BudgetSession(SQLiteSession("house"), 12).clear_session())

        """
        self._sent = []
        await self.session.clear_session()


def _check_whole(items: Sequence[Any]) -> None:
    """Refuse items whose newest is the result of a call that only the provider has."""
    asked = {key for key in _ties(items[-1])[1] if key is not None} if items else set()
    for item in reversed(items[:-1]):
        if not asked:
            break
        asked -= {*_ties(item)[0]}
    if asked:
        raise InvalidArgumentError(
            f"the call of the result {min(asked)!r:.80} is not among the items: only the provider "
            "has the conversation, so its tokens are not known: take a session instead of "
            "conversation_id, previous_response_id or auto_previous_response_id"
        )


def _ties(item: Any) -> tuple[Sequence[str | None], Sequence[str | None], int]:
    """Return the ids of the calls and of the results in an item."""
    fields = viewed_fields(item)
    return ties_of(str(fields.get("role")), fields)


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
            shown.append(_hosted(tool))
    for target in agent.handoffs:
        to = handoff(target) if isinstance(target, Agent) else target
        is_on = to.is_enabled
        is_on = is_on if isinstance(is_on, bool) else is_on(RunContextWrapper(context), agent)
        if await is_on if isawaitable(is_on) else is_on:
            shown.append(_function(to.tool_name, to.tool_description, to.input_json_schema))
    return shown


def _hosted(tool: Any) -> dict[str, Any]:
    """Return what is sent of a tool that is not a function: its grammar or description, too."""
    config = getattr(tool, "tool_config", None)
    if isinstance(config, Mapping):
        return {**config}
    told = {
        name: getattr(tool, name, None) for name in ("description", "parameters", "environment")
    }
    return {
        "type": tool.name,
        **{name: value for name, value in told.items() if value is not None},
    }


def _function(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": schema}


def _schema(agent: Agent[Any]) -> dict[str, Any] | None:
    """Return the schema of the output, None for plain text."""
    kind = agent.output_type
    if kind is None or kind is str:
        return None
    output = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
    return None if output.is_plain_text() else output.json_schema()
