"""The shapes of messages: mappings, objects of the APIs' packages, texts of tool results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Protocol, TypeAlias

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError

TEXT_PARTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
"""The types of parts that are text, and the key that holds it."""

DEEPEST = 100
"""How deep a value may be nested."""

RESULT_ROLES = ("tool", "function")
"""The roles of a message that is a tool's result, OpenAI's newer and older one."""


class Dumped(Protocol):
    """What has ``model_dump()``, as the objects of the APIs' packages have."""

    def model_dump(self) -> Mapping[str, Any]:
        """Return its fields."""


class Keyed(Protocol):
    """What is like a mapping."""

    def keys(self) -> Iterable[str]:
        """Return its keys."""

    def __getitem__(self, key: str, /) -> Any:
        """Return the value of a key."""


AnyMessage: TypeAlias = Mapping[str, Any] | Dumped | Keyed
"""A message as callers give it: a mapping, or an object of a package of an API."""


def fields_of(value: object) -> Mapping[str, Any] | None:
    """Return the fields of a mapping or of an object that is like one, None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, type):
        return None
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # Google's client does not send what is None, and that is most of what its objects have.
        is_google = type(value).__module__.startswith("google.genai.")
        dumped = dump(exclude_none=True) if is_google else dump()
        return dumped if isinstance(dumped, Mapping) else None
    keys = getattr(value, "keys", None)
    if callable(keys) and hasattr(type(value), "__getitem__"):
        return {key: value[key] for key in keys()}  # type: ignore[index]  # it was asked
    return None


AROUND_TOOLS = ("function", "custom")
"""What may stand around the fields of a tool."""


def tool_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what ``function`` or ``custom`` has of a tool or a choice of one, or its *fields*."""
    inner = (fields_of(fields.get(key)) for key in AROUND_TOOLS)
    return next((found for found in inner if found), fields)


def mapping(where: str, value: object) -> Mapping[str, Any]:
    """Return the fields of *value*, which must be a mapping or an object that is like one."""
    fields = value if type(value) is dict else fields_of(value)
    if fields is None:
        raise InvalidArgumentError(
            f"{where} must be a mapping, not {_validate.type_name(value)}; an object must have "
            "model_dump()"
        )
    return fields


def text_key(part: Mapping[str, Any]) -> str | None:
    """Return the key that holds the text of a part, None for a part that is not text."""
    kind = part.get("type")
    if kind is None:
        return "text" if isinstance(part.get("text"), str) else None
    return TEXT_PARTS.get(kind)


def has_breakpoint(message: Any) -> bool:
    """Return whether a message, or a part of it, has a cache breakpoint as Anthropic's have."""
    fields = fields_of(message) or {}
    if fields.get("cache_control") is not None:
        return True
    content = fields.get("content")
    return isinstance(content, (list, tuple)) and any(map(has_breakpoint, content))


def with_results(message: Any, texts: Iterator[str]) -> Any:
    """
    Return a copy of *message* that has *texts*, in order, for the texts of its tool results.

    Everything else in it, and the types of all, are those of *message*. What is neither a dict
    nor has a ``model_copy()`` that dumps the texts becomes a dict.
    """
    is_result = (fields_of(message) or {}).get("role") in RESULT_ROLES
    return _replaced(message, "content", _content(_own(message, "content"), texts, is_result))


def result_texts(message: Any) -> list[str]:
    """Return the texts of the tool results of *message*, in the order of `with_results`."""
    fields = fields_of(message) or {}
    return [*_texts(fields.get("content"), fields.get("role") in RESULT_ROLES)]


def _texts(content: Any, is_result: bool) -> Iterator[str]:
    if is_result and isinstance(content, str):
        yield content
    elif isinstance(content, (list, tuple)):
        for part in content:
            fields = fields_of(part) or {}
            key = text_key(fields)
            if is_result and isinstance(part, str):
                yield part
            elif is_result and key is not None:
                text = fields.get(key)
                yield text if isinstance(text, str) else ""
            elif fields.get("type") == "tool_result":
                yield from _texts(fields.get("content"), is_result=True)


def with_result(message: Any, text: str) -> Any:
    """Return a copy of *message* each of whose tool results is *text*, as by `with_results`."""
    if (fields_of(message) or {}).get("role") in RESULT_ROLES:
        return _replaced(message, "content", text)
    content = _own(message, "content")
    if not isinstance(content, (list, tuple)):
        return message
    parts = [
        _replaced(part, "content", text)
        if (fields_of(part) or {}).get("type") == "tool_result"
        else part
        for part in content
    ]
    return _replaced(message, "content", tuple(parts) if isinstance(content, tuple) else parts)


def _content(value: Any, texts: Iterator[str], is_result: bool) -> Any:
    if isinstance(value, str):
        return next(texts) if is_result else value
    if not isinstance(value, (list, tuple)):
        return value
    parts = [_part(part, texts, is_result) for part in value]
    return tuple(parts) if isinstance(value, tuple) else parts


def _part(value: Any, texts: Iterator[str], is_result: bool) -> Any:
    if isinstance(value, str):
        return next(texts) if is_result else value
    fields = fields_of(value) or {}
    key = text_key(fields)
    if key is not None and is_result:
        return _replaced(value, key, next(texts))
    if fields.get("type") == "tool_result":
        inner = _content(_own(value, "content"), texts, is_result=True)
        return _replaced(value, "content", inner)
    return value


def _own(value: Any, key: str) -> Any:
    """Return a field as it is dumped, but of the object's own types where it can be copied."""
    dumped = (fields_of(value) or {}).get(key)
    if hasattr(value, "model_copy"):
        own = getattr(value, key, None)
        if _dumps_to(own, dumped):
            return own
    return dumped


def _dumps_to(own: Any, dumped: Any) -> bool:
    """Return whether *own* is *dumped* once its objects are turned into mappings."""
    if own == dumped:
        return True
    if isinstance(own, (list, tuple)) and isinstance(dumped, (list, tuple)):
        return len(own) == len(dumped) and all(map(_dumps_to, own, dumped))
    fields, plain = fields_of(own), fields_of(dumped)
    if fields is None or plain is None or fields.keys() != plain.keys():
        return False
    return all(_dumps_to(fields[key], plain[key]) for key in fields)


def _replaced(value: Any, key: str, new: Any) -> Any:
    """Return a copy of *value* with another value of one field; itself if nothing would change."""
    if _own(value, key) == new:
        return value
    if isinstance(value, dict):
        copied = copy(value)
        copied[key] = new
        return copied
    fields = fields_of(value) or {}
    if hasattr(value, "model_copy"):
        copied = value.model_copy(update={key: new})
        if _dumps_to(new, (fields_of(copied) or {}).get(key)):  # else it would count as before
            return copied
    return {**fields, key: new}


def plain(value: object) -> dict[str, Any]:
    """Return an object inside a value as a mapping of its fields, as `json.dumps` asks for it."""
    fields = fields_of(value)
    if fields is None:
        raise TypeError(f"{_validate.type_name(value)} cannot")
    return dict(fields)


def as_json(where: str, value: object) -> str:
    """Return *value* as the JSON that a model sees."""

    def plain(inner: object) -> object:
        fields = fields_of(inner)
        if fields is None:
            raise TypeError
        return dict(fields)

    try:
        return json.dumps(value, ensure_ascii=False, default=plain)
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError(
            f"{where} must be of JSON's types, not {_validate.type_name(value)}"
        ) from None
