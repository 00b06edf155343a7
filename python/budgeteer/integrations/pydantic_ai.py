"""Pydantic AI: a capability that makes each request of an agent fit."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter, model_name
from budgeteer._messages.views import result_texts
from budgeteer._request.result import FittedRequest
from budgeteer.integrations._missing import missing
from budgeteer.integrations._requests import Fitter, sent_of, tool_for

try:
    from pydantic_ai import RunContext
    from pydantic_ai import messages as _parts_of_messages
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart
    from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
except ImportError as _error:
    raise missing(__name__, _error) from None

__all__ = ["BudgetHistory"]

_ESCAPES = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\(?:u[0-9a-fA-F]{,3})?|"')
"""An escape of JSON, or what a cut leaves of one."""

_ROOM = r"\n\n\n\n user"
"""What the message of a result's files takes, and the ends of lines that a cut writes, in JSON."""

_SKIPPED = base64.b64encode(b"skip_thought_signature_validator").decode()
"""What stands for the thought signature of a call to Google that has none."""

_SENDS_RETRIES_AS_RESULTS = hasattr(_parts_of_messages, "RetryFeedbackPart")
"""Whether what asks to call a tool again is sent as a result of it, as in newer versions."""


@dataclass(init=False)  # Pydantic AI's specs of agents, in YAML or JSON, take no other class
class BudgetHistory(AbstractCapability[Any]):
    """
    Makes each request of an agent fit into the window of its model.

    The law: instructions, messages, the notes that Pydantic AI writes between them, tools and the
    schema of the output that reach the model, and what is reserved for the answer, count at most
    the window, as by `fit_request`. Old tool results are masked, large ones are cut, and then the
    oldest turns leave. The history of the run keeps everything, in Pydantic AI's own objects. What
    left a conversation stays away while it grows, so that a provider's cache finds the beginning
    of the prompt: the last 64 conversations are remembered.

    A ``FallbackModel`` may ask each of its models: the request fits all of them.

    Put it last in ``capabilities``, as what another adds after it is not counted. Pydantic AI
    before 2.54 would take what leaves a request out of the run's history, too.

    Args:
        model: The model whose window, costs and counter apply. None takes the agent's own. What
            is not known of it is estimated, with a warning.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's.
        max_output_tokens: The tokens to reserve for the answer, even where a request states more.
            None takes the ``max_tokens`` of the model's settings, 0 if there is none.
        counter: Counts the texts, as for `fit_request`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        BudgetExhaustedError: From a run: what must stay does not fit.

    Examples:
        >>> import asyncio
        >>> from pydantic_ai import Agent
        >>> from pydantic_ai.models.test import TestModel
        >>> fits = BudgetHistory(model="gpt-4o", context_window=50)
        >>> agent = Agent(TestModel(), capabilities=[fits])
        >>> asyncio.run(agent.run("Which tea?")).output
        'success (no tool calls)'

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

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - Pydantic AI's own
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """
        Return the request with the messages that fit; Pydantic AI awaits this.

        Args:
            ctx: Not used.
            request_context: The request.

        Examples:
            >>> import asyncio
            >>> from pydantic_ai.messages import ModelRequest
            >>> from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
            >>> from pydantic_ai.models.test import TestModel
            >>> turns = [ModelRequest.user_text_prompt(text) for text in ("Tea? " * 99, "Rye?")]
            >>> asked = ModelRequestContext(
            ...     model=TestModel(),
            ...     messages=turns,
            ...     model_settings=None,
            ...     model_request_parameters=ModelRequestParameters(),
            ... )
            >>> fits = BudgetHistory(context_window=20)
            >>> made = asyncio.run(fits.before_model_request(None, asked))
            >>> [message.parts[0].content for message in made.messages]
            ['Rye?']

        """
        for model in _candidates(request_context.model):
            request_context.messages = self._fitted(model, request_context)
        return request_context

    def _fitted(self, model: Model[Any], request_context: ModelRequestContext) -> Any:
        """Return the messages of a request that fit a model."""
        name = model.model_name
        settings, parameters = model.prepare_request(  # as the model will do it once more
            request_context.model_settings, request_context.model_request_parameters
        )
        told = "\n\n".join(part.content for part in parameters.instruction_parts or ())
        given = [{"role": "system", "content": told}] if told else []
        messages = request_context.messages
        as_google = model.system.startswith("google")
        runs = [None, *(message.run_id for message in messages)]
        views = [
            view
            for message, run in zip(messages, runs, strict=False)
            for view in _views(message, signed=as_google, run=run)
        ]
        places = [
            (i, j) for i, message in enumerate(messages) for j in range(len(_parts(message)))
        ]
        request: dict[str, Any] = {
            "model": name,
            "messages": [*given, *views],
            "tools": _tools(self._name or name, parameters),
        }
        limit = (settings or {}).get("max_tokens")
        if limit is not None:
            request["max_tokens"] = limit
        if parameters.output_object is not None and parameters.output_mode == "native":
            shown = parameters.output_object
            schema = {"name": shown.name or "output", "schema": shown.json_schema}
            if shown.description:
                schema["description"] = shown.description
            request["response_format"] = {"type": "json_schema", "json_schema": schema}

        left = messages

        def added(fitted: FittedRequest) -> int:
            """Take what is left, and return what the model's notes and frames add to it."""
            nonlocal left
            shown, left = fitted.request["messages"], messages
            if shown is not request["messages"]:
                sent = [item for item in sent_of(fitted, "messages") if item[0] >= len(given)]
                kept = [(places[i - len(given)], view, changed) for i, view, changed in sent]
                left = [*_rebuilt(messages, kept)]
            prepared = model.prepare_messages(left, parameters)
            views = [
                view
                for message in prepared
                for view in _views(message, signed=as_google, framed=as_google)
            ]
            made = self._fit.count([*given, *views], name, as_items="openai" in model.system)
            return made - self._fit.count(shown, name)

        self._fit(request, added)  # asks last for what it returns
        return left


def _candidates(model: Model[Any]) -> list[Model[Any]]:
    """Return the models of which one answers: all of a ``FallbackModel``, else the model."""
    found = getattr(model, "models", None)
    if not found or not isinstance(found, (list, tuple)):
        return [model]
    return [one for inner in found for one in _candidates(inner)]


def _tools(model: str, parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    tools = [*parameters.function_tools, *parameters.output_tools]
    shown = [
        tool_for(model, tool.name, tool.description, tool.parameters_json_schema) for tool in tools
    ]
    return [*shown, *({"type": tool.kind} for tool in parameters.native_tools)]


def _parts(message: ModelMessage) -> Sequence[Any]:
    """Return what of a message may leave alone: a response is one piece."""
    return (message,) if isinstance(message, ModelResponse) else message.parts


def _views(
    message: ModelMessage, *, signed: bool = False, framed: bool = False, run: str | None = None
) -> Iterator[dict[str, Any]]:
    """
    Yield what is sent of a message: to Google calls are signed, and results framed.

    What a tool tells the model beside its result, and what asks for another answer, has the form
    of a prompt. In the *run* of the message before it is shown as said by the model: it is not the
    question, which must stay.
    """
    if isinstance(message, ModelResponse):
        yield _signed(_answer(message)) if signed else _answer(message)
        return
    has_result, goes_on = False, run is not None and run == message.run_id
    for part in message.parts:
        kind = part.part_kind
        if kind == "system-prompt":
            yield {"role": "system", "content": part.content}
        elif kind == "user-prompt":
            role = "assistant" if goes_on and has_result else "user"
            yield {"role": role, "content": _content(part.content)}
        elif getattr(part, "tool_name", None) is not None and hasattr(part, "tool_call_id"):
            has_result = True
            content = _result(_returned(part), framed=framed)
            yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
        elif hasattr(part, "model_response"):
            yield {"role": "assistant" if goes_on else "user", "content": part.model_response()}
        else:  # what a version knows and this does not: it stays, and errs high
            yield {"role": "system", "content": _json(part)}


def _signed(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a response whose call has a thought signature: its own, or what stands for it."""
    content = answer["content"] or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if "tool_calls" not in answer or any("signature" in part for part in parts):
        return answer
    seal = {"type": "thinking", "thinking": "", "signature": _SKIPPED}
    return {**answer, "content": [*parts, seal]}


def _result(part: Any, *, framed: bool) -> Any:
    """
    Return the content of a result.

    Beside files the text may be sent as JSON: it is counted so, and cut so. What a provider writes
    around it and around the files counts, too, and stays.
    """
    text = part.model_response_str()
    if framed and part.outcome == "success":  # an error has its frame in its text
        text = json.dumps(part.model_response_object(), ensure_ascii=False)
    if not (files := getattr(part, "files", ())):
        return text
    empty = replace(part, content=["", *files], outcome="success")
    told, others = empty.model_response_str_and_user_content()
    frame = [told, *(item for item in others if isinstance(item, str)), _ROOM]
    return [
        {"type": "text", "text": json.dumps(text, ensure_ascii=False)[1:-1]},
        {"type": "frame", "text": "\n".join(frame)},
        *map(_medium, files),
    ]


def _answer(message: ModelResponse) -> dict[str, Any]:
    """Return a response as a message of OpenAI's chat; what is not text errs high."""
    texts, others, calls = [], [], []
    for part in message.parts:
        if seal := _seal(part):
            others.append({"type": "thinking", "thinking": "", "signature": seal})
        if part.part_kind == "text":
            texts.append(part.content)
        elif part.part_kind == "tool-call":
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "type": "function", "function": function})
        elif part.part_kind == "thinking":  # as it is sent where a provider has no place for it
            texts.append(f"<think>\n{part.content}\n</think>")
        else:
            others.append({"type": part.part_kind, "text": _json(part)})
    content: Any = "\n\n".join(texts) or None
    if others:
        content = [{"type": "text", "text": content or ""}, *others]
    told = {"role": "assistant", "content": content}
    return {**told, "tool_calls": calls} if calls else told


def _seal(part: Any) -> str | None:
    """Return the reasoning of a part that only its provider can read, and gets back."""
    found = (getattr(part, "provider_details", None) or {}).get("thought_signature")
    # Beside a text a signature of Anthropic's is a mere seal; OpenAI's is all of the reasoning.
    if part.part_kind == "thinking" and (not part.content or part.provider_name == "openai"):
        found = found or part.signature
    return found if isinstance(found, str) else None


def _content(content: Any) -> Any:
    """Return a prompt as the content of a message."""
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": item} if isinstance(item, str) else _medium(item)
        for item in content
    ]


def _medium(item: Any) -> dict[str, Any]:
    kind = item.kind
    if isinstance(getattr(item, "content", None), str):
        return {"type": "text", "text": item.content}
    url, data = getattr(item, "url", None), getattr(item, "data", None)
    key = getattr(item, "file_id", None)  # of a file that the provider has
    media = getattr(item, "media_type", "") if data is not None or key is not None else ""
    if data is not None and not isinstance(data, str):
        data = base64.b64encode(data).decode("ascii")
    if key is not None:
        name = media.partition("/")[0]
        name = name if name in ("image", "audio", "video") else "document"
        return {"type": name, "source": {"type": "file", "file_id": key}}
    if kind == "image-url" or media.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url or f"data:{media};base64,{data}"}}
    if url is None and data is None:  # such as a point for the cache, which costs nothing
        return {"type": "text", "text": ""}
    name = media.partition("/")[0] if media else kind.removesuffix("-url")
    name = name if name in ("audio", "video") else "document"
    source = {"data": data, "media_type": media} if url is None else {"type": "url", "url": url}
    return {"type": name, "source": source}


def _json(part: Any) -> str:
    return json.dumps(asdict(part), default=str)


def _rebuilt(
    messages: Sequence[ModelMessage], kept: Sequence[tuple[tuple[int, int], Any, bool]]
) -> Iterator[ModelMessage]:
    """Yield the messages that have parts that stay, as themselves where all of them do."""
    for i, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            if any(place[0] == i for place, _, _ in kept):
                yield message
            continue
        mine = [(place[1], view, changed) for place, view, changed in kept if place[0] == i]
        parts = [
            _shortened(message.parts[j], view) if changed else message.parts[j]
            for j, view, changed in mine
        ]
        if parts:
            is_same = len(parts) == len(message.parts) and not any(item[2] for item in mine)
            yield message if is_same else replace(message, parts=parts)


def _returned(part: Any) -> Any:
    """Return a part that answers a call as the result that is sent for it."""
    if part.part_kind != "retry-prompt":
        return part
    content, more = part.model_response(), {}
    if _SENDS_RETRIES_AS_RESULTS:
        content, more = part.content, {"outcome": "retried"}
    told: dict[str, Any] = {"timestamp": part.timestamp, **more}
    return ToolReturnPart(part.tool_name, content, part.tool_call_id, **told)


def _shortened(part: Any, view: dict[str, Any]) -> Any:
    """Return the part of a result with another text, and its files where they stay."""
    part = _returned(part)
    [text] = result_texts(view)
    files = () if isinstance(view["content"], str) else part.files
    if files:
        text = _from_json(text)
    for content in (text, *_error_in(text)):
        made = replace(part, content=[content, *files] if files else content)
        if made.model_response_str() == text:
            return made
    # The text of an error has its frame already: it would be written around it once more.
    return replace(part, content=[text, *files] if files else text, outcome="success")


def _from_json(text: str) -> str:
    """Return a text of which its form in JSON was cut, without the halves of escapes."""
    whole = _ESCAPES.sub(lambda found: found[1] or "", text)
    read: str = json.loads(f'"{whole}"', strict=False)
    return read


def _error_in(text: str) -> Iterator[Any]:
    """Yield what is framed as an error in the text of a result."""
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and [*found] == ["error"]:
            yield found["error"]
