"""Renders a request by a given chat template of Jinja, as a server of an open model does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from budgeteer import _validate
from budgeteer._messages.shapes import RESULT_ROLES, fields_of, tool_fields
from budgeteer._request.parts import split_tools
from budgeteer._request.read import Reading, texts_of
from budgeteer.errors import CounterError, InvalidArgumentError

SOURCE = "the given chat template, its special tokens counted as text"


class ChatTemplate:
    """A chat template that renders what a request would be as one text."""

    def __init__(self, template: str) -> None:
        """Compile the template; nothing in it can reach what it is not given."""
        try:
            from jinja2 import TemplateError
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            raise CounterError(
                "template needs jinja2: pip install 'budgeteer[templates]'"
            ) from None
        world = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        world.filters["tojson"] = _to_json

        def refuse(message: object) -> NoReturn:
            raise _RefusalError(str(message))

        class _RefusalError(TemplateError):
            """The template's own words, which may quote the request."""

        world.globals["raise_exception"] = refuse
        world.globals["strftime_now"] = lambda form: form  # a time differs from call to call
        self._error, self._refusal = TemplateError, _RefusalError
        self._source = _validate.text("template", template)
        try:
            self._template = world.from_string(self._source)
        except TemplateError as error:
            raise InvalidArgumentError(f"template is not valid: {error}") from None

    def render(
        self, reading: Reading, system: Mapping[str, Any] | None, tools: Sequence[Any]
    ) -> str:
        """Return the text of the messages of *reading*, with these instructions and tools."""
        messages: list[dict[str, Any]] = []
        if system is not None:
            messages += _messages(system)
        for item in reading.items:
            messages += _messages(item.fields)
        try:
            return self._template.render(
                messages=messages,
                tools=[_tool(tool) for tool in split_tools(tools)[0]] or None,
                add_generation_prompt=True,
                bos_token="<s>",  # noqa: S106 - a token of a vocabulary
                eos_token="</s>",  # noqa: S106
            )
        except self._refusal as error:
            # Words that are not in the template as they are may quote a message.
            told = f": {error}" if f"{error}" in self._source else ""
            raise InvalidArgumentError(f"template refuses the request{told}") from None
        except self._error as error:
            raise InvalidArgumentError(
                f"template refuses the request: {_told(error, self._source)}"
            ) from None
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidArgumentError(
                f"template cannot render the request: {type(error).__name__}"
            ) from None


def _told(error: Exception, source: str) -> str:
    """Return what went wrong; only the type if something is quoted that is not in *source*."""
    message = str(error)
    rest = _QUOTED.sub(lambda found: "" if (found[1] or "") in source else found[0], message)
    return type(error).__name__ if set(rest) & {"'", '"'} else message


_QUOTED = re.compile(r"'(?:(?:dict|list|str|int|float|bool|tuple|NoneType) object|([^'\"]*))'")


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def _messages(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of OpenAI's chat that a view stands for, with texts alone."""
    content = fields.get("content")
    calls = [_call(call) for call in fields.get("tool_calls") or ()]
    texts: list[str] = []
    for part in content if isinstance(content, (list, tuple)) else [content or ""]:
        inner = {"text": part} if isinstance(part, str) else fields_of(part) or {}
        kind = inner.get("type")
        if kind == "tool_use":
            calls.append(_call({**inner, "arguments": inner.get("input")}))
        elif kind == "tool_result":
            text = "\n".join(texts_of(inner.get("content")))
            yield {"role": "tool", "tool_call_id": inner.get("tool_use_id"), "content": text}
        else:
            texts += texts_of([inner])
    role = fields.get("role")
    if texts or calls or not isinstance(content, (list, tuple)):
        made: dict[str, Any] = {"role": role, "content": "\n".join(texts)}
        if calls:
            made["tool_calls"] = calls
        if role in RESULT_ROLES:
            made["tool_call_id"] = fields.get("tool_call_id")
        if fields.get("name") is not None:
            made["name"] = fields["name"]
        yield made


def _call(value: Any) -> dict[str, Any]:
    fields = fields_of(value) or {}
    inner = fields_of(fields.get("function")) or fields
    given = inner.get("arguments")
    if isinstance(given, str):
        with suppress(ValueError):  # a template takes what the model wrote, too
            given = json.loads(given)
    function: dict[str, Any] = {
        "name": inner.get("name"),
        "arguments": {} if given is None else given,
    }
    return {"id": fields.get("id"), "type": "function", "function": function}


def _tool(value: Any) -> dict[str, Any]:
    inner = tool_fields(fields_of(value) or {})
    schemas = (inner.get(key) for key in ("parameters", "input_schema", "format"))
    schema: Any = next((found for found in schemas if found), {})
    function = {"name": inner.get("name"), "description": inner.get("description") or ""}
    return {"type": "function", "function": {**function, "parameters": schema}}
