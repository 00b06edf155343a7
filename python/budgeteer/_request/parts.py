"""What a request costs beside its messages: tools, the schema of the answer, and the answer."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, get_origin

from budgeteer import _validate
from budgeteer._messages.frames import OPENAI, Frame, Rule
from budgeteer._messages.messages import NAMED_TOOL, NO_TOOL
from budgeteer._messages.shapes import as_json, fields_of, mapping, plain, tool_fields
from budgeteer._messages.tools import ToolTexts, framed_tools, render_tools, tool_text
from budgeteer._request.read import Provider, Reading
from budgeteer.errors import InvalidArgumentError

SERVER_TOOL = 1500
"""
The most tokens of a tool that the provider runs, beside its JSON. Anthropic's guide to tools
(2026-06) has 245 for bash, 700 for the text editor, and 735 with 499 for computer use.
"""

TEMPLATE_TOOLS = 200
"""The most tokens of the words that a chat template writes around tools: Qwen's are 116."""

_CLAUDE_TOOLS = {
    "claude-3-opus": (530, 281),
    "claude-3-sonnet": (159, 235),
    "claude-3-haiku": (264, 340),
    "claude-3-5-haiku": (264, 340),
}
_CLAUDE_TOOL = (346, 313)
"""Tokens of the system prompt for tools: where the model may choose, and where it must call."""

_DEFINITIONS = ("$defs", "definitions")
_DECLARATIONS = ("function_declarations", "functionDeclarations")


class Cost(NamedTuple):
    """A number of tokens, what it rests on, and where that is from."""

    tokens: int
    basis: Rule
    source: str


def tool_cost(
    reading: Reading,
    tools: Sequence[Any],
    model: str,
    count: Callable[[str], int],
    frame: Frame,
    has_system: bool,
    texts: ToolTexts | None = None,
) -> Cost:
    """
    Return what *tools*, of those of a request, cost as the provider of *model* writes them.

    Those of *texts* are rendered once.
    """
    if not tools:
        return Cost(0, "published rule", "no tools")
    provider = provider_of_tools(reading.provider, frame, model)
    plain, run = split_tools(tools)
    tokens = SERVER_TOOL * len(run)
    tokens += sum(count(as_json("request['tools']", fields_of(tool) or tool)) for tool in run)
    choice = reading.option("tool_choice", "function_call")
    if provider == "openai" and plain:
        text = _shown("typescript", plain, texts)
        tokens += framed_tools(count(text), has_system) + _choice(choice, count)
        return Cost(tokens, "measured", "TypeScript as known from bills, errs high, 2024-07")
    text = _shown("json", plain, texts) if plain else ""
    if provider == "gemini" and '"$ref"' in text:
        tokens += max(count(text), count(_render("json", _inlined_tools(plain))))
    else:
        tokens += count(text)
    if provider == "anthropic":
        known = next((cost for name, cost in _CLAUDE_TOOLS.items() if name in model), _CLAUDE_TOOL)
        chosen = (fields_of(choice) or {}).get("type")
        tokens += known[1] if chosen in ("any", "tool") else max(known)
        return Cost(tokens, "published rule", "Anthropic, tool use pricing, 2026-03; JSON of each")
    if provider == "gemini":
        return Cost(tokens, "estimate", "Google publishes no rule: the JSON of each declaration")
    return Cost(tokens + TEMPLATE_TOOLS, "bound", f"the JSON of each tool; {frame.source}")


def provider_of_tools(provider: Provider, frame: Frame, model: str) -> str:
    """Return whose rule counts tools."""
    if provider in ("anthropic", "gemini"):
        return provider
    if "gemini" in model.lower():  # which frameworks send declarations, whatever they have
        return "gemini"
    return "openai" if frame.basis == "estimate" or frame is OPENAI else "template"


def split_tools(tools: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the tools with a schema, and those that the provider runs."""
    plain, run = [], []
    for i, tool in enumerate(tools):
        if type(tool) is dict and tool.get("function") is not None:  # as most tools
            plain.append(tool)
            continue
        where = f"request['tools'][{i}]"
        if callable(tool) and not hasattr(tool, "model_dump"):
            raise InvalidArgumentError(
                f"{where} is a function, whose schema only its client knows: give its declaration"
            )
        fields = tool if type(tool) is dict else mapping(where, tool)
        declared = next((key for key in _DECLARATIONS if fields.get(key)), None)
        if declared is not None:
            plain += _validate.batch(f"{where}[{declared!r}]", fields[declared])
            run += _run_by_google({key: of for key, of in fields.items() if key != declared})
        elif any(key in fields for key in ("function", "input_schema", "parameters")) or (
            fields.get("type") in (None, "function", "custom") and "name" in tool_fields(fields)
        ):
            plain.append(tool)
        elif fields.get("type") is None:
            run += _run_by_google(fields)
        else:
            run.append(tool)
    return plain, run


def _run_by_google(fields: Mapping[str, Any]) -> list[Any]:
    """Return the tools that Google runs: one object may have several, and declarations beside."""
    return [{key: of} for key, of in fields.items() if of is not None]


_MOST_PLACES = 10_000
"""How many values a schema may have once its references are written out."""


def _inlined_tools(tools: Sequence[Any]) -> list[Any]:
    """Return tools as clients send them to Gemini, which knew no references in a schema."""
    shown = [json.loads(as_json("request['tools']", fields_of(tool) or tool)) for tool in tools]
    try:
        return [_inlined(tool, {}, (), [_MOST_PLACES]) for tool in shown]
    except RecursionError:  # clients do not get further, either
        return shown


def _inlined(value: Any, known: dict[str, Any], within: tuple[str, ...], left: list[int]) -> Any:
    """
    Return a value of JSON with the definitions of its schemas in the places of their references.

    One that refers to itself stays, and so do all once there are too many values.
    """
    left[0] -= 1
    if isinstance(value, list):
        return [_inlined(item, known, within, left) for item in value]
    if not isinstance(value, dict):
        return value
    for key in _DEFINITIONS:
        if isinstance(value.get(key), dict):
            known = {**known, **{f"#/{key}/{name}": of for name, of in value[key].items()}}
    beside = {
        key: _inlined(inner, known, within, left)
        for key, inner in value.items()
        if key not in ("$ref", *_DEFINITIONS)
    }
    place = value.get("$ref")
    if not isinstance(place, str) or place not in known or place in within or left[0] <= 0:
        return {**({} if place is None else {"$ref": place}), **beside}
    found = _inlined(known[place], known, (*within, place), left)
    return {**found, **beside} if isinstance(found, dict) else found


_KEPT_BYTES = 1 << 17
"""How large tools may be whose text is kept."""


def _shown(form: str, tools: Sequence[Any], known: ToolTexts | None) -> str:
    """Return the text of tools; it is kept for those of plain types that are not large."""
    if known is not None:
        return _render(form, tools, known)
    try:
        blob = marshal.dumps([*tools], 2)  # of the same bytes for equal tools
    except ValueError:
        return _render(form, tools)
    return _rendered(form, blob) if len(blob) <= _KEPT_BYTES else _render(form, tools)


@lru_cache(maxsize=32)
def _rendered(form: str, blob: bytes) -> str:
    return _render(form, marshal.loads(blob))  # noqa: S302 - the bytes are our own


def _render(form: str, tools: Sequence[Any], known: ToolTexts | None = None) -> str:
    if form == "typescript":
        return render_tools("request['tools']", tools, known)
    return "".join(tool_text(known, "request[tools]", tool, _function) for tool in tools)


def _function(where: str, tool: Any) -> str:
    return f"<function>{as_json(where, tool)}</function>\n"


def _choice(choice: object, count: Callable[[str], int]) -> int:
    """Return what a choice of tools costs; one that is not known costs nothing."""
    if choice == "none":
        return NO_TOOL
    name = tool_fields(fields_of(choice) or {}).get("name")
    return NAMED_TOOL + count(name) if isinstance(name, str) else 0


def chosen_names(reading: Reading) -> list[str]:
    """Return what may name the tool that must be called: its name and its type."""
    choice = fields_of(reading.option("tool_choice")) or {}
    names = tool_fields(choice).get("name"), choice.get("type")
    return [name for name in names if isinstance(name, str)]


def schema_cost(reading: Reading, count: Callable[[str], int]) -> Cost:
    """Return what the schema of a structured answer costs."""
    found = _schema(reading)
    if found is None:
        return Cost(0, "published rule", "no schema")
    try:
        shown = json.dumps(found, ensure_ascii=False, default=_shown_as)
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError(
            "request's schema of the answer must be of JSON's types, and not nested too deeply"
        ) from None
    text = f"# Response Formats\n\n## {shown}"
    if reading.provider.startswith("openai"):
        return Cost(count(text), "published rule", "OpenAI harmony response format, 2025-08")
    return Cost(count(text), "bound", "the JSON of the schema")


def _schema(reading: Reading) -> object:
    """Return the schema of the answer with its name, None without."""
    if reading.provider == "gemini":
        names = ("response_json_schema", "responseJsonSchema", "response_schema", "responseSchema")
        given = _of_class(reading.once(*names))
        if given is not None and fields_of(given) is None:
            raise InvalidArgumentError(
                "request's schema of the answer must be a mapping or a type, not "
                f"{_validate.type_name(given)}"
            )
        return given
    if reading.provider == "openai_responses":
        given = (fields_of(reading.option("text")) or {}).get("format")
        given = reading.option("text_format") if given is None else given
    elif reading.provider == "anthropic":
        config = fields_of(reading.option("output_config")) or {}
        given = config.get("format")
        # The last is of OpenAI's shape, which gateways to Claude take.
        given = reading.option("output_format", "response_format") if given is None else given
    else:
        given = reading.option("response_format")
    given = _of_class(given)
    fields = fields_of(given)
    if fields is None or fields.get("type") in ("text", "json_object"):
        return None
    return fields.get("json_schema") or dict(fields)


def _of_class(value: Any) -> Any:
    """Return the schema of a type, as of a class of pydantic; anything else as it is."""
    schema = getattr(value, "model_json_schema", None)
    if isinstance(value, type) and callable(schema):
        return schema()
    is_type = isinstance(value, type) or get_origin(value) is not None
    return _of_type(value) if is_type else value


def _of_type(value: Any) -> Any:
    """Return the schema of such a type as ``list[Model]``, which clients write by pydantic."""
    try:
        from pydantic import TypeAdapter  # which they have installed

        return TypeAdapter(value).json_schema()
    # Those of pydantic are of these kinds.
    except (ImportError, NameError, TypeError, ValueError, RuntimeError):
        raise InvalidArgumentError(
            "request's schema of the answer must be one that pydantic can write, not "
            f"{value!r:.80}"
        ) from None


def _shown_as(value: Any) -> object:
    given = _of_class(value)
    return str(value) if fields_of(given) is None else plain(given)


def answer_costs(reading: Reading, max_output_tokens: int | None) -> tuple[Cost, Cost]:
    """Return what is reserved for reasoning and for the rest of the answer."""
    given = max_output_tokens
    if given is None:
        given = reading.number(
            *("max_completion_tokens", "max_output_tokens", "max_tokens"),
            *("maxOutputTokens", "max_tokens_to_sample"),
        )
    budget = _budget(reading)
    if budget is None:
        said = "nothing is stated" if given is None else "what the request or the caller states"
        effort = fields_of(reading.option("reasoning")) or {}
        has_effort = reading.option("reasoning_effort") or effort.get("effort")
        source = "shares the answer's tokens; no figure for an effort" if has_effort else "none"
        return Cost(0, "bound", source), Cost(given or 0, "bound", said)
    source = "the request's budget, shares the answer's tokens: guides of Anthropic and Google"
    rest = max(0, (given or 0) - budget)
    return Cost(budget, "published rule", source), Cost(rest, "bound", "the rest of the answer")


def _budget(reading: Reading) -> int | None:
    """Return the budget for reasoning that a request states."""
    if reading.provider == "gemini":
        config = fields_of(reading.option("thinking_config", "thinkingConfig")) or {}
        given = config.get("thinking_budget", config.get("thinkingBudget"))
        given = None if given == -1 else given  # which lets the model choose
        where = "request's thinking_budget"
    else:
        given = (fields_of(reading.option("thinking")) or {}).get("budget_tokens")
        where = "request['thinking']['budget_tokens']"
    return None if given is None else _validate.tokens(where, given)
