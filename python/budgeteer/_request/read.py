"""Reads a request of any provider: its messages, and its other parts by their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._layout.section import Section
from budgeteer._messages.history import NO_LINKS, History, Links, links_of, ties_of
from budgeteer._messages.messages import CALLS, SYSTEM_ROLES, Message, role_of
from budgeteer._messages.shapes import RESULT_ROLES, fields_of, mapping, text_key
from budgeteer._messages.views import Shape, View, placed
from budgeteer.errors import InvalidArgumentError

Provider: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

_KEYS = {"messages": "openai_chat", "input": "openai_responses", "contents": "gemini"}
_OF_ANTHROPIC = (
    *("system", "stop_sequences", "output_config", "output_format"),
    *("anthropic_version", "mcp_servers", "container", "context_management"),
)
_ALSO_OF_ANTHROPIC = ("thinking", "top_k")
"""What gateways and the servers of open models take in OpenAI's shape, too."""
_REFERS = ("previous_response_id", "conversation", "prompt", "cached_content", "cachedContent")
"""What stands for messages or instructions that only the provider has."""

_CONFIGS = ("config", "generation_config", "generationConfig")

_LISTS = ("messages", "input", "tools", "functions")
"""What is a list of messages or tools, unless it is a text or a section."""

_READ = (*_LISTS, "contents", "system", "instructions", "system_instruction", "systemInstruction")
"""What a request may have as an iterable, of which the clients' types allow any."""

_OF_CONVERSE = frozenset(("toolUse", "toolResult"))
"""The keys of calls and results in a shape in which these could be separated."""

_OF_CHUNKS = ("query", "chunks", "packer", "min_tokens", "max_tokens")
_OF_TOOLS = ("content", "select", "query", "keep", "max_tokens")
"""What a section in a request may have beside its name."""


class Item:
    """
    A message or item of a request.

    Attributes:
        key: The key of the request's messages.
        number: Its place among them.
        value: The caller's object.
        fields: The fields of its view.
        shape: What it was.
        is_plain: Whether it is a mapping of a role and a text, as most are.
        role: Its role.
        is_system: Whether it has the instructions of the application.
        calls: The id of each call in it, None for a call without one.
        results: The same for each result.
        others: How much else it holds.
        links: What ties it to other messages of the model.
        section: The section whose chunks stand in it, None without.
        at: The part that the section is, None if it is the whole content.

    """

    # Defaults are the class's own, as most messages have no other: there are many.
    shape: Shape = "chat"
    is_plain = is_system = False
    calls: Sequence[str | None] = ()
    results: Sequence[str | None] = ()
    others = 1
    links: Links = NO_LINKS
    section: Section | None = None
    at: int | None = None

    def __init__(
        self, key: str, number: int, value: Any, fields: Mapping[str, Any], role: str
    ) -> None:
        self.key, self.number, self.value, self.fields = key, number, value, fields
        self.role = role
        if role in SYSTEM_ROLES:
            self.is_system = True

    @property
    def place(self) -> str:
        """Where it is, such as ``messages[3]``."""
        return f"{self.key}[{self.number}]"

    @property
    def view(self) -> View:
        return View(self.fields, self.shape)

    def join(self, history: History) -> None:
        """Add it to a history."""
        if self.is_plain:
            history.add_plain(self.number, self.role)
        elif self.section is None and not self.is_system:
            ties = self.calls, self.results, self.others
            history.add(self.number, self.role, *ties, self.shape, self.links)


@dataclass(slots=True)
class Reading:
    """
    What a request holds.

    Attributes:
        request: The caller's request; a copy with lists where it has other iterables.
        provider: Whose shape it has.
        key: The key of its messages.
        items: Its messages.
        history: The places of these by their kinds, without those that have a section.
        system: Its instructions beside the messages, None without.
        tools: Its tools.
        section: The section that selects among them, None without.
        known: The `Counted` of the messages of the request before, None without.

    """

    request: Message
    provider: Provider
    key: str
    items: list[Item]
    history: History
    system: object = None
    tools: Sequence[Any] = ()
    section: Section | None = None
    known: Any = None
    _places: list[Mapping[str, Any]] = field(default_factory=list)

    def option(self, *names: str) -> Any:
        """Return the first of the options of these names that is given, None without."""
        return self._named(names)[1]

    def once(self, *names: str) -> Any:
        """Return the same where a second one is an error: it would not be counted."""
        found = [
            (name, fields is self._places[0], fields[name])
            for fields in self._places
            for name in names
            if fields.get(name) is not None
        ]
        if len(found) > 1:
            listed = [f"{name!r}{'' if own else ' in its config'}" for name, own, _ in found]
            raise InvalidArgumentError(
                f"request must have only one of {' and '.join(listed)}: one alone would be counted"
            )
        return found[0][2] if found else None

    def _named(self, names: Sequence[str]) -> tuple[str, Any]:
        for fields in self._places:
            for name in names:
                if fields.get(name) is not None:
                    return name, fields[name]
        return "", None

    def number(self, *names: str) -> int | None:
        """Return the same for a number of tokens."""
        name, found = self._named(names)
        return None if found is None else _validate.tokens(f"request[{name!r}]", found)


def settled(request: Message) -> Message:
    """
    Return *request* with a list in the place of each iterable that is neither list nor tuple.

    An iterator can be read once only, and the client must read it, too. It is a copy then.
    """
    made: dict[str, Any] = {}
    for name in _READ:
        value = request.get(name)
        if isinstance(value, (str, list, tuple, Mapping)) or not isinstance(value, Iterable):
            continue
        # An object with fields may be an iterable of these, and one content of Gemini.
        if name in _LISTS or isinstance(value, Iterator):
            made[name] = _validate.batch(f"request[{name!r}]", value)
    for name in _CONFIGS:
        config = request.get(name)
        if isinstance(config, Mapping):
            inner = settled(config)
            if inner is not config:
                made[name] = inner
    return with_fields(request, made) if made else request


def with_fields(request: Message, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of *request* that has these *fields*."""
    made: dict[str, Any] = copy(request) if isinstance(request, dict) else dict(request)
    made.update(fields)
    return made


def read_request(request: object, known: Any = None) -> Reading:
    """
    Return what *request* holds; an error names what is not of a known shape.

    Messages that are the same as in *known*, a `Counted`, are not read again. Everything is read
    once: what is `settled` stands in the request of the result.
    """
    if not isinstance(request, Mapping):
        raise InvalidArgumentError(
            "request must be a mapping of the keyword arguments that are sent, "
            f"not {_validate.type_name(request)}"
        )
    request = settled(request)
    found = [key for key in _KEYS if request.get(key) is not None]
    if len(found) != 1:
        raise InvalidArgumentError(
            "request must have one of 'messages' (OpenAI's chat completions and Anthropic), "
            f"'input' (OpenAI's Responses) and 'contents' (Gemini), not {_listed(found)}"
        )
    key = found[0]
    places: list[Mapping[str, Any]] = [request]
    for name in _CONFIGS if key == "contents" else ():
        config = request.get(name)
        if config is not None:
            places.append(mapping(f"request[{name!r}]", config))
    for name in _REFERS:  # in the `config` of Google's client, too
        if any(place.get(name) is not None for place in places):
            raise InvalidArgumentError(
                f"request[{name!r}] stands for messages that only the provider has, so their "
                "tokens are not known: send the messages themselves"
            )
    if (fields_of(request.get("thread")) or {}).get("type") == "continue":
        raise InvalidArgumentError(
            "request['thread'] goes on with messages that only the provider has, so their tokens "
            "are not known: send the messages themselves; Anthropic's tool_runner does so with "
            "thread=False"
        )
    reading = Reading(request, _KEYS[key], key, [], History(), _places=places)  # type: ignore[arg-type]
    values = request[key]
    if isinstance(values, str) or (key == "contents" and not isinstance(values, (list, tuple))):
        values = [values]
    items = _validate.batch(f"request[{key!r}]", values)
    _read_items(reading, items, known)
    reading.system = reading.once(
        *(("system_instruction", "systemInstruction") if key == "contents" else ()),
        *(("instructions",) if key == "input" else ()),
        *(("system",) if key == "messages" else ()),
    )
    _read_tools(reading)
    if key == "messages" and _is_anthropic(reading):
        reading.provider = "anthropic"
    return reading


def _read_items(reading: Reading, values: Sequence[Any], known: Any) -> None:
    old: Sequence[Item | None] = () if known is None else known.items(reading.key, values)
    reading.items = [
        (i < len(old) and old[i]) or read_item(reading.key, i, value)
        for i, value in enumerate(values)
    ]
    start = 0
    if known is not None and None not in old and len(old) == len(known.entries):
        reading.history, start = known.history.copy(), len(old)
    for item in islice(reading.items, start, None):
        item.join(reading.history)
    reading.known = known


def _read_tools(reading: Reading) -> None:
    tools = reading.once("tools", "functions")
    if isinstance(tools, Section):
        section, content = tools, tools.content
        if section.select is None or reading.request.get("tools") is not section:
            raise InvalidArgumentError(
                "a section in the place of a request's tools needs content and select, and a "
                "request with 'tools' of its own, as Gemini's has not"
            )
        _check_section("request['tools']", section, _OF_TOOLS)
        reading.section, tools = section, content
    reading.tools = () if tools is None else _validate.batch("request['tools']", tools)


def _listed(found: Sequence[str]) -> str:
    return " and ".join(map(repr, found)) if found else "none of them"


def _is_anthropic(reading: Reading) -> bool:
    """Return whether a request with messages is Anthropic's."""
    request = reading.request
    if any(request.get(key) is not None for key in _OF_ANTHROPIC):
        return True
    model = request.get("model")
    if isinstance(model, str) and "claude" in model and not _has_openai_tools(reading.tools):
        return True
    for item in reading.items:
        if item.calls or item.results:
            content = item.fields.get("content")
            if any(key in item.fields for key in CALLS) or item.role in RESULT_ROLES:
                return False
            return isinstance(content, (list, tuple))
    if any(request.get(key) is not None for key in _ALSO_OF_ANTHROPIC):
        return not _has_openai_tools(reading.tools)
    return any("input_schema" in (fields_of(tool) or {}) for tool in reading.tools)


def _has_openai_tools(tools: Sequence[Any]) -> bool:
    return any("function" in (fields_of(tool) or {}) for tool in tools)


def read_item(key: str, number: int, value: Any) -> Item:
    """Return a message or item with what is in it."""
    shape: Shape = "chat"
    fields: Mapping[str, Any] = value
    if type(value) is dict and "role" in value and "parts" not in value:
        role, content = value["role"], value.get("content")
        is_plain = len(value) == 2 and type(content) is str and type(role) is str
        if is_plain and role not in RESULT_ROLES:  # as most messages
            item = Item(key, number, value, value, role)
            item.is_plain = True
            return item
        if value.get("type") not in (None, "message") or type(content) is Section:
            fields, shape = _view(key, number, value)
    else:
        fields, shape = _view(key, number, value)
    role = fields.get("role")
    if type(role) is not str:
        role = role_of(f"{key}[{number}]", fields)
    item = Item(key, number, value, fields, role)
    if shape != "chat":
        item.shape = shape
    item.calls, item.results, item.others = ties_of(role, fields)
    item.links = links_of(role, fields)
    content = fields.get("content")
    if content == "" or type(content) in (list, tuple):
        _find_section(item)
    return item


def _view(key: str, number: int, value: Any) -> View:
    if isinstance(value, str) and key != "messages":
        return View({"role": "user", "content": value}, "part" if key == "contents" else "chat")
    if isinstance(value, Mapping) and isinstance(value.get("content"), Section):
        return View({**value, "content": ""}, "chat")
    where = f"{key}[{number}]"
    view = placed(where, value)
    return View(mapping(where, value), "chat") if view is None else view


def _find_section(item: Item) -> None:
    """Take the section that stands in a message, which counts as the empty text there."""
    content = item.fields.get("content")
    if isinstance(content, (list, tuple)):
        for i, part in enumerate(content):
            found = part if type(part) is dict else fields_of(part) or {}
            if "type" not in found and not _OF_CONVERSE.isdisjoint(found):
                raise InvalidArgumentError(
                    f"{item.place} has a call or result in the shape of Bedrock's Converse, which "
                    "is not read: give the messages in OpenAI's or Anthropic's shape"
                )
            if not isinstance(found.get("text"), Section):
                continue
            if item.section is not None:
                raise InvalidArgumentError(
                    f"{item.place} must have one section at most: put each into a message of its "
                    "own"
                )
            item.section, item.at = found["text"], i
            shown = [*content[:i], {**found, "text": ""}, *content[i + 1 :]]
            item.fields = {**item.fields, "content": shown}
    elif content == "" and isinstance(item.value, Mapping):
        content = item.value.get("content")
        item.section = content if isinstance(content, Section) else None
    if item.section is not None:
        _check_section(item.place, item.section, _OF_CHUNKS)


def _check_section(place: str, section: Section, taken: Sequence[str]) -> None:
    """Refuse a section that has not what is packed there, or what only a layout heeds."""
    other = [
        one.name
        for one in dataclasses.fields(section)
        if one.name not in ("name", *taken) and getattr(section, one.name) != one.default
    ]
    if other or (section.chunks is None and section.select is None):
        raise InvalidArgumentError(
            f"{place} must be a section with {', '.join(taken)}, "
            + (f"not {other[0]}, which is for a Layout" if other else "not without chunks")
        )


def texts_of(content: Any) -> list[str]:
    """Return the texts in a content."""
    if isinstance(content, str):
        return [content]
    texts = []
    for part in content if isinstance(content, (list, tuple)) else ():
        fields = {"text": part} if isinstance(part, str) else fields_of(part) or {}
        key = text_key(fields)
        if key is not None and isinstance(fields.get(key), str):
            texts.append(fields[key])
    return texts
