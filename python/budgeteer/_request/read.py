"""Reads a request of any provider: its messages, and its other parts by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._layout.section import Section
from budgeteer._messages.messages import SYSTEM_ROLES, Message, role_of
from budgeteer._messages.shapes import RESULT_ROLES, fields_of, mapping
from budgeteer._messages.views import View, view_of
from budgeteer.errors import InvalidArgumentError

Provider: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

_KEYS = {"messages": "openai_chat", "input": "openai_responses", "contents": "gemini"}
_OF_ANTHROPIC = (
    *("system", "thinking", "stop_sequences", "top_k", "output_config", "output_format"),
    *("anthropic_version", "mcp_servers", "container", "context_management"),
)
_REFERS = ("previous_response_id", "conversation", "prompt", "cached_content", "cachedContent")
"""What stands for messages or instructions that only the provider has."""

_CONFIGS = ("config", "generation_config", "generationConfig")


@dataclass(slots=True)
class Item:
    """
    A message or item of a request.

    Attributes:
        place: Where it is, such as ``messages[3]``.
        value: The caller's object.
        view: Its view.
        is_system: Whether it has the instructions of the application.
        is_user: Whether it is the user's.
        calls: The id of each call in it, None for a call without one.
        results: The same for each result.
        asks: Whether it is the user's and has more than results.
        section: The section whose chunks stand in it, None without.
        at: The part that the section is, None if it is the whole content.

    """

    place: str
    value: Any
    view: View
    is_system: bool = False
    is_user: bool = False
    calls: Sequence[str | None] = ()
    results: Sequence[str | None] = ()
    asks: bool = False
    section: Section | None = None
    at: int | None = None


@dataclass(slots=True)
class Reading:
    """
    What a request holds.

    Attributes:
        request: The caller's request.
        provider: Whose shape it has.
        key: The key of its messages.
        items: Its messages.
        system: Its instructions beside the messages, None without.
        tools: Its tools.
        section: The section that selects among them, None without.

    """

    request: Message
    provider: Provider
    key: str
    items: list[Item]
    system: object = None
    tools: Sequence[Any] = ()
    section: Section | None = None
    _places: list[Mapping[str, Any]] = field(default_factory=list)

    def option(self, *names: str) -> Any:
        """Return the first of the options of these names that is given, None without."""
        for fields in self._places:
            for name in names:
                if fields.get(name) is not None:
                    return fields[name]
        return None

    def number(self, *names: str) -> int | None:
        """Return the same for a number of tokens."""
        found = self.option(*names)
        return None if found is None else _validate.tokens(f"request[{names[0]!r}]", found)


def read_request(request: object) -> Reading:
    """Return what *request* holds; an error names what is not of a known shape."""
    if not isinstance(request, Mapping):
        raise InvalidArgumentError(
            "request must be a mapping of the keyword arguments that are sent, "
            f"not {_validate.type_name(request)}"
        )
    found = [key for key in _KEYS if request.get(key) is not None]
    if len(found) != 1:
        raise InvalidArgumentError(
            "request must have one of 'messages' (OpenAI's chat completions and Anthropic), "
            f"'input' (OpenAI's Responses) and 'contents' (Gemini), not {_listed(found)}"
        )
    key = found[0]
    for name in _REFERS:
        if request.get(name) is not None:
            raise InvalidArgumentError(
                f"request[{name!r}] stands for messages that only the provider has, so their "
                "tokens are not known: send the messages themselves"
            )
    places: list[Mapping[str, Any]] = [request]
    for name in _CONFIGS if key == "contents" else ():
        config = request.get(name)
        if config is not None:
            places.append(mapping(f"request[{name!r}]", config))
    reading = Reading(request, _KEYS[key], key, [], _places=places)  # type: ignore[arg-type]
    values = request[key]
    if isinstance(values, str) or (key == "contents" and not isinstance(values, (list, tuple))):
        values = [values]
    items = _validate.batch(f"request[{key!r}]", values)
    reading.items = [read_item(f"{key}[{i}]", item, key) for i, item in enumerate(items)]
    reading.system = reading.option(
        *(("system_instruction", "systemInstruction") if key == "contents" else ()),
        *(("instructions",) if key == "input" else ()),
        *(("system",) if key == "messages" else ()),
    )
    _read_tools(reading)
    if key == "messages" and _is_anthropic(reading):
        reading.provider = "anthropic"
    return reading


def _read_tools(reading: Reading) -> None:
    tools = reading.option("tools", "functions")
    if isinstance(tools, Section):
        content: Any = tools.content
        if tools.select is None or reading.request.get("tools") is not tools:
            raise InvalidArgumentError(
                "a section in the place of a request's tools needs content and select, and a "
                "request with 'tools' of its own, as Gemini's has not"
            )
        reading.section, tools = tools, content
    reading.tools = () if tools is None else _validate.batch("request['tools']", tools)


def _listed(found: Sequence[str]) -> str:
    return " and ".join(map(repr, found)) if found else "none of them"


def _is_anthropic(reading: Reading) -> bool:
    """Return whether a request with messages is Anthropic's."""
    request = reading.request
    if any(key in request for key in _OF_ANTHROPIC):
        return True
    model = request.get("model")
    if isinstance(model, str) and "claude" in model and not _has_openai_tools(reading.tools):
        return True
    for item in reading.items:
        if item.calls or item.results:
            content = item.view.fields.get("content")
            if "tool_calls" in item.view.fields or item.view.fields.get("role") in RESULT_ROLES:
                return False
            return isinstance(content, (list, tuple))
    return any("input_schema" in (fields_of(tool) or {}) for tool in reading.tools)


def _has_openai_tools(tools: Sequence[Any]) -> bool:
    return any("function" in (fields_of(tool) or {}) for tool in tools)


def read_item(place: str, value: Any, key: str = "messages") -> Item:
    """Return a message or item with what is in it."""
    if type(value) is dict and len(value) == 2:
        role, content = value.get("role"), value.get("content")
        if type(content) is str and type(role) is str and role not in RESULT_ROLES:
            is_user = role == "user"  # most messages are like this
            return Item(
                place, value, View(value, "chat"), role in SYSTEM_ROLES, is_user, asks=is_user
            )
    view = _view(value, key)
    if view is None:
        view = View(mapping(place, value), "chat")
    fields = view.fields
    role = fields.get("role")
    if type(role) is not str:
        role = role_of(place, fields)
    item = Item(place, value, view)
    item.is_system = role in SYSTEM_ROLES
    item.is_user = role == "user"
    content = fields.get("content")
    calls = [_id(call, "id") for call in fields.get("tool_calls") or ()]
    if fields.get("function_call") is not None:
        calls.append(None)
    results = [_id(fields, "tool_call_id")] if role in RESULT_ROLES else []
    item.calls, item.results = calls, results
    others = 1
    if isinstance(content, (list, tuple)):
        others = _read_parts(item, content, calls, results)
    if isinstance(value, Mapping) and isinstance(value.get("content"), Section):
        item.section, others = value["content"], 0
    item.asks = item.is_user and content is not None and others > 0
    return item


def _view(value: Any, key: str) -> View | None:
    if isinstance(value, str) and key != "messages":
        return View({"role": "user", "content": value}, "chat")
    if isinstance(value, Mapping) and isinstance(value.get("content"), Section):
        return View({**value, "content": ""}, "chat")
    return view_of(value)


def _read_parts(
    item: Item, content: Sequence[Any], calls: list[str | None], results: list[str | None]
) -> int:
    """Read the parts of a message, and return how many are neither calls, results nor chunks."""
    others = 0
    for i, part in enumerate(content):
        fields = part if type(part) is dict else fields_of(part) or {}
        kind = fields.get("type")
        if kind == "tool_use":
            calls.append(_id(fields, "id"))
        elif kind == "tool_result":
            results.append(_id(fields, "tool_use_id"))
        elif isinstance(fields.get("text"), Section):
            item.section, item.at = fields["text"], i
            shown = [*content[:i], {**fields, "text": ""}, *content[i + 1 :]]
            item.view = View({**item.view.fields, "content": shown}, item.view.shape)
        else:
            others += 1
    return others


def _id(value: object, key: str) -> str | None:
    found = (value if type(value) is dict else fields_of(value) or {}).get(key)
    return found if isinstance(found, str) else None
