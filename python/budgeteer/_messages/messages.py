"""
Counts chat messages and tool schemas: their texts and the tokens around them.

The rule for messages is the one that OpenAI publishes. There is no official rule for tools; the
best known one renders them as the TypeScript namespace that the model sees. Both are also applied
to Anthropic's shapes, as Anthropic publishes no rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter, get_counter
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

PER_MESSAGE, PER_NAME, PER_REPLY = 3, 1, 3
PER_TOOLS, WITH_SYSTEM, NO_TOOL, NAMED_TOOL = 9, -4, 1, 7
ToolChoice: TypeAlias = Literal["auto", "required", "any", "none"]
_TOOL_CHOICES: tuple[ToolChoice, ...] = get_args(ToolChoice)
_TEXT_PARTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
"""The types of parts that are text, and the key that holds it."""

_PART_TYPES = (*_TEXT_PARTS, "image_url", "input_image", "image", "tool_use", "tool_result")
_DEEPEST = 100
_SIMPLE = {
    **{kind: kind for kind in ("string", "number", "boolean", "null")},
    "integer": "number",
}

Counter: TypeAlias = str | Callable[[str], int] | TokenCounter

Message: TypeAlias = Mapping[str, Any]
"""A message or a tool schema as callers give it, such as a TypedDict of OpenAI or Anthropic."""

Sent: TypeAlias = Any
"""The same as callers get it back: Any, as each client takes only its own TypedDicts."""

SYSTEM_ROLES = ("system", "developer")
"""The roles of an application's instructions, OpenAI's older and newer one."""


def count_messages(
    messages: Sequence[Message],
    *,
    counter: Counter | None = None,
    model: str | ModelLimits | None = None,
) -> int:
    """
    Return how many tokens chat messages take in a prompt, the priming of the reply included.

    A message costs 3 tokens, one more with a ``name``, and those of every text in it: role,
    content, name, the parts of a tool call; numbers and objects count as JSON. Priming the reply
    costs 3. For ``gpt-3.5-turbo-0301`` a message costs 4, and one less with a name. An empty list
    costs nothing.

    A content may be a text, None, or a list of parts, as OpenAI and Anthropic define them. An
    image costs 85 and 170 for each tile, or 85 with low detail (``gpt-4o-mini``: 2833 and 5667).
    Its size is the part's ``width`` and ``height``, or is read from a ``data:`` URL or base64 of a
    PNG, JPEG, GIF or WebP. An image of unknown size costs as the largest: 1445 (``gpt-4o-mini``:
    48169). ``gpt-4.1-mini``, ``gpt-5-mini``, their ``nano`` models and ``o4-mini`` count patches
    of 32 pixels by their own factors. Other rules for images may give more or less.

    Args:
        messages: Mappings with a ``role``, as the APIs take them.
        counter: Counts the texts, as for `get_counter`. None takes the counter of *model*, or
            ``o200k_base`` without a model.
        model: A model whose own costs apply.

    Raises:
        InvalidArgumentError: A message is not of a known shape; the error names its place.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> messages = [{"role": "user", "content": "Hello, world!"}]
        >>> count_messages(messages)
        11
        >>> count_messages([{"role": "user", "name": "Ada", "content": "Hello, world!"}])
        13
        >>> image = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
        >>> count_messages([{"role": "user", "content": [image]}], model="gpt-4o")
        1452

    """
    name = model_name(model)
    costs = MessageCosts(chosen(counter, model).count, name)
    items = _validate.batch("messages", messages)
    total = PER_REPLY if items else 0
    return total + sum(costs.of(f"messages[{i}]", item) for i, item in enumerate(items))


class MessageCosts:
    """
    The costs of messages, all by one counter; `count_messages` is their sum and `PER_REPLY`.

    Each role is counted once for all messages, and any other text once for each message.
    """

    __slots__ = ("_count", "_model", "_per_message", "_per_name", "_roles")

    def __init__(self, count: Callable[[str], int], model: str) -> None:
        """Count by *count*, for the model of that name."""
        self._count = count
        self._model = model
        self._per_message, self._per_name = (
            (4, -1) if model.endswith("gpt-3.5-turbo-0301") else (PER_MESSAGE, PER_NAME)
        )
        self._roles: dict[str, int] = {}

    def frame(self, role: str) -> int:
        """Return the tokens of a message of that role without its content."""
        tokens = self._roles.get(role)
        if tokens is None:
            tokens = self._roles[role] = self._per_message + self._count(role)
        return tokens

    def of(self, where: str, message: object) -> int:
        """Return the tokens of *message*; *where* names it in an error."""
        items = mapping(where, message)
        total = self.frame(role_of(where, items))
        if items.get("name") is not None:
            total += self._per_name
        for key, value in items.items():
            if key == "content":
                total += _content(f"{where}['content']", value, self._count, self._model)
            elif key != "role":
                total += sum(map(self._count, _texts(f"{where}[{key!r:.80}]", value)))
        return total


def count_tools(
    tools: Sequence[Message],
    *,
    counter: Counter | None = None,
    model: str | ModelLimits | None = None,
    tool_choice: ToolChoice | Mapping[str, Any] = "auto",
    has_system_message: bool = False,
) -> int:
    """
    Return about how many tokens tool schemas take in a prompt; an empty list costs nothing.

    There is no official rule. The schemas count as the TypeScript that the model sees, plus 9
    tokens, or 5 if there is a system message. The result errs high. Tools may have OpenAI's shape
    (with or without ``function`` around it) or Anthropic's (``input_schema``).

    Args:
        tools: The schemas.
        counter: The counter, as for `count_messages`.
        model: As for `count_messages`.
        tool_choice: ``none`` costs 1 more; a mapping that names a tool costs 7 and the name.
        has_system_message: Whether the messages have one.

    Raises:
        InvalidArgumentError: A tool is not of a known shape; the error names its place.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> weather = {
        ...     "name": "weather",
        ...     "description": "Say how the weather is",
        ...     "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ... }
        >>> count_tools([weather]), count_tools([{"type": "function", "function": weather}])
        (36, 36)
        >>> count_tools([weather], tool_choice="none", has_system_message=True)
        33

    """
    model_name(model)  # checked though the counter replaces it
    counted = chosen(counter, model)
    items = _validate.batch("tools", tools)
    if not isinstance(has_system_message, bool):
        raise InvalidArgumentError(
            f"has_system_message must be a bool, not {_validate.type_name(has_system_message)}"
        )
    extra = _choice_tokens(tool_choice, counted)
    if not items:
        return 0
    return framed_tools(counted.count(render_tools("tools", items)) + extra, has_system_message)


def framed_tools(tokens: int, has_system_message: bool) -> int:
    """Return the tokens of tool schemas whose text counts *tokens*."""
    return max(0, tokens + PER_TOOLS + (WITH_SYSTEM if has_system_message else 0))


def model_name(model: object) -> str:
    """Return the name of a model, "" for None."""
    if model is None:
        return ""
    if not isinstance(model, str):
        from budgeteer._count.limits import ModelLimits

        if isinstance(model, ModelLimits):
            return model.name
    return _validate.text("model", model)


def chosen(counter: Counter | None, model: str | ModelLimits | None) -> TokenCounter:
    """Return the given counter, that of the model, or the default."""
    return get_counter(counter if counter is not None else model or "o200k_base")


def has_system(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether counted messages include a system message."""
    return any(message.get("role") in SYSTEM_ROLES for message in messages)


def role_of(where: str, message: Mapping[str, Any]) -> str:
    """Return the role of a message."""
    return _validate.text(f"{where}['role']", message.get("role"))


def mapping(where: str, value: object) -> Mapping[str, Any]:
    """Return *value*, which must be a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{where} must be a mapping, not {_validate.type_name(value)}")
    return value


def _texts(where: str, value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every text in a value; numbers and truth values as their JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        if depth > _DEEPEST:
            raise InvalidArgumentError(f"{where} is nested deeper than {_DEEPEST}")
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(where, item, depth + 1)
    elif value is not None:
        yield as_json(where, value)


def as_json(where: str, value: object) -> str:
    """Return *value* as the JSON that a model sees."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError(
            f"{where} must be of JSON's types, not {_validate.type_name(value)}"
        ) from None


def _content(where: str, value: Any, count: Callable[[str], int], model: str) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return count(value)
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(
            f"{where} must be a str, None or a list of parts, not {_validate.type_name(value)}"
        )
    return sum(_part(f"{where}[{i}]", part, count, model) for i, part in enumerate(value))


def _part(where: str, value: Any, count: Callable[[str], int], model: str) -> int:
    if isinstance(value, str):
        return count(value)
    part = mapping(where, value)
    kind = part.get("type")
    if kind not in _PART_TYPES:
        shown = repr(kind[:80]) if isinstance(kind, str) else _validate.type_name(kind)
        raise InvalidArgumentError(
            f"{where}['type'] must be one of {', '.join(map(repr, _PART_TYPES))}, not {shown}"
        )
    if kind in _TEXT_PARTS:
        key = _TEXT_PARTS[kind]
        return count(_validate.text(f"{where}[{key!r}]", part.get(key)))
    if kind == "tool_use":
        texts = (part.get("id"), part.get("name"), as_json(f"{where}['input']", part.get("input")))
        return sum(count(text) for text in texts if isinstance(text, str))
    if kind == "tool_result":
        reference = part.get("tool_use_id")
        own = count(reference) if isinstance(reference, str) else 0
        return own + _content(f"{where}['content']", part.get("content"), count, model)
    return _image(where, part, model)


def _image(where: str, part: Mapping[str, Any], model: str) -> int:
    """Return the tokens of an image: OpenAI's image_url and input_image, Anthropic's image."""
    from budgeteer._messages.images import DETAILS, image_tokens, size_of_base64, size_of_url

    inner = part.get("source") if part["type"] == "image" else part.get("image_url")
    fields = inner if isinstance(inner, Mapping) else {}
    given = part.get("detail", fields.get("detail", "auto"))
    detail = _validate.choice(f"{where}['detail']", given, DETAILS)
    sides = [part.get(key, fields.get(key)) for key in ("width", "height")]
    size: tuple[int, int] | None
    if sides != [None, None]:
        width, height = (
            _validate.tokens(f"{where}[{key!r}]", number, minimum=1)
            for key, number in zip(("width", "height"), sides, strict=True)
        )
        size = width, height
    elif isinstance(fields.get("data"), str):
        size = size_of_base64(fields["data"])
    else:
        url = fields.get("url", inner)
        size = size_of_url(url) if isinstance(url, str) else None
    return image_tokens(size, detail, model)


def _choice_tokens(choice: object, counter: TokenCounter) -> int:
    if not isinstance(choice, Mapping):
        return NO_TOOL if _validate.choice("tool_choice", choice, _TOOL_CHOICES) == "none" else 0
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name")
    if name is None and choice.get("type") in _TOOL_CHOICES:
        return NO_TOOL if choice["type"] == "none" else 0
    return NAMED_TOOL + counter.count(_validate.text("tool_choice['name']", name))


def render_tools(name: str, tools: Sequence[Any]) -> str:
    """
    Return tool schemas as the TypeScript that a model sees; *name* is theirs in an error.

    Examples:
        >>> print(render_tools("tools", [{"name": "now", "description": "Say what time it is"}]))
        namespace functions {
        <BLANKLINE>
        // Say what time it is
        type now = () => any;
        <BLANKLINE>
        } // namespace functions

    """
    lines = ["namespace functions {", ""]
    for i, item in enumerate(tools):
        where = f"{name}[{i}]"
        tool = mapping(where, item)
        if tool.get("function") is not None:
            where = f"{where}['function']"
            tool = mapping(where, tool["function"])
        called = _validate.text(f"{where}['name']", tool.get("name"))
        key = "input_schema" if "input_schema" in tool else "parameters"
        schema = {} if tool.get(key) is None else mapping(f"{where}[{key!r}]", tool[key])
        if tool.get("description"):
            lines.append(f"// {_validate.text(f'{where}[description]', tool['description'])}")
        if schema.get("properties"):
            where = f"{where}[{key!r}]"
            fields = _properties(where, schema, 0)
            lines += [f"type {called} = (_: {{", fields, "}) => any;", ""]
        else:
            lines += [f"type {called} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _properties(where: str, schema: Mapping[str, Any], indent: int, depth: int = 0) -> str:
    required = schema.get("required")
    needed = required if isinstance(required, (list, tuple)) else ()
    lines = []
    place = f"{where}['properties']" if depth < 2 else where
    for name, value in mapping(place, schema.get("properties") or {}).items():
        field = value if isinstance(value, Mapping) else {}
        if isinstance(field.get("description"), str) and field["description"]:
            lines.append(f"// {field['description']}")
        mark = "" if name in needed else "?"
        lines.append(f"{name}{mark}: {_type(f'{place}[{name!r:.80}]', value, indent, depth)},")
    return "\n".join(" " * indent + line for line in lines)


def _type(where: str, schema: Any, indent: int, depth: int) -> str:
    """Return a schema as a TypeScript type, or as JSON if it has none, which errs high."""
    if depth > _DEEPEST:
        raise InvalidArgumentError(f"{where[:200]} is nested deeper than {_DEEPEST}")
    if not isinstance(schema, Mapping):
        return as_json(where, schema)
    if isinstance(schema.get("enum"), (list, tuple)):
        return " | ".join(as_json(where, value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, (list, tuple)):
        return " | ".join(_type(where, {**schema, "type": one}, indent, depth + 1) for one in kind)
    if kind == "array":
        items = schema.get("items")
        return f"{_type(where, items, indent, depth + 1)}[]" if items else "any[]"
    if kind == "object":
        return "\n".join(["{", _properties(where, schema, indent + 2, depth + 1), "}"])
    return _SIMPLE[kind] if kind in _SIMPLE else as_json(where, schema)
