"""The shapes of messages: mappings, objects of the APIs' packages, texts of tool results."""

from __future__ import annotations

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
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else None
    keys = getattr(value, "keys", None)
    if callable(keys) and hasattr(type(value), "__getitem__"):
        return {key: value[key] for key in keys()}  # type: ignore[index]  # it was asked
    return None


def mapping(where: str, value: object) -> Mapping[str, Any]:
    """Return the fields of *value*, which must be a mapping or an object that is like one."""
    fields = value if type(value) is dict else fields_of(value)
    if fields is None:
        raise InvalidArgumentError(f"{where} must be a mapping, not {_validate.type_name(value)}")
    return fields


def with_results(where: str, message: Any, texts: Iterator[str]) -> Any:
    """
    Return a copy of *message* that has *texts*, in order, for the texts of its tool results.

    Everything else in it, and the types of all, are those of *message*.
    """
    role = _get(message, "role")
    content = _content(
        f"{where}['content']", _get(message, "content"), texts, role in RESULT_ROLES
    )
    return _replaced(where, message, "content", content)


def _content(where: str, value: Any, texts: Iterator[str], is_result: bool) -> Any:
    if isinstance(value, str):
        return next(texts) if is_result else value
    if not isinstance(value, (list, tuple)):
        return value
    parts = [_part(f"{where}[{i}]", part, texts, is_result) for i, part in enumerate(value)]
    return tuple(parts) if isinstance(value, tuple) else parts


def _part(where: str, value: Any, texts: Iterator[str], is_result: bool) -> Any:
    if isinstance(value, str):
        return next(texts) if is_result else value
    kind = _get(value, "type")
    if kind in TEXT_PARTS and is_result:
        return _replaced(where, value, TEXT_PARTS[kind], next(texts))
    if kind == "tool_result":
        inner = _content(f"{where}['content']", _get(value, "content"), texts, is_result=True)
        return _replaced(where, value, "content", inner)
    return value


def _get(value: Any, key: str) -> Any:
    """Return a field as the object itself has it, not turned into plain data."""
    if isinstance(value, Mapping) or not hasattr(value, "model_dump"):
        return (fields_of(value) or {}).get(key)
    return getattr(value, key, None)


def _replaced(where: str, value: Any, key: str, new: Any) -> Any:
    """Return a copy of *value* with another value of one field; itself if nothing would change."""
    if _get(value, key) == new:
        return value
    if isinstance(value, dict):
        copied = copy(value)
        copied[key] = new
        return copied
    if hasattr(value, "model_copy"):
        return value.model_copy(update={key: new})
    if hasattr(value, "model_dump"):
        raise InvalidArgumentError(
            f"{where} is a tool result to be cut, and must be a mapping or have model_copy(), "
            f"not {_validate.type_name(value)}"
        )
    return {**(fields_of(value) or {}), key: new}
