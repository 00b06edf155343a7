"""What pydantic asks of a class that is the type of a field. Never imported by itself."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from budgeteer import _validate
from budgeteer.errors import BudgeteerError, InvalidArgumentError

_JSON_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_PLAIN = tuple(_JSON_TYPES)


def instance_schema(item: type, to_dict: Callable[[Any], dict[str, Any]] | None = None) -> Any:
    """
    Return the schema of a field that holds an instance of *item* as it is.

    Where *to_dict* is given the instance is written as what that returns; else as pydantic writes
    what it does not know: a dataclass as its fields.
    """
    from pydantic_core import core_schema  # whoever asks has it

    if to_dict is None:
        return core_schema.is_instance_schema(item)
    written = core_schema.plain_serializer_function_ser_schema(
        to_dict, return_schema=core_schema.dict_schema(core_schema.str_schema())
    )
    return core_schema.is_instance_schema(
        item,
        serialization=written,
        metadata={
            "pydantic_js_functions": [lambda *_: {"title": item.__name__, "type": "object"}]
        },
    )


def options_schema(item: type) -> Any:
    """
    Return the schema of a field that holds *item*, a dataclass whose fields are its options.

    It takes an instance as it is, or a mapping of options. Python gets the options back as they
    are. JSON gets them where reading them makes the same object again, and an error else.
    """
    from pydantic_core import PydanticCustomError, PydanticSerializationError, core_schema

    def read(value: Any) -> Any:
        if isinstance(value, item):
            return value
        try:
            return item(**options_of(item, value))
        except BudgeteerError as error:
            reason = str(error)
        raise PydanticCustomError("budgeteer", "{reason}", {"reason": reason})

    def write(value: Any, info: Any) -> dict[str, Any]:
        options = {field.name: getattr(value, field.name) for field in _fields(type(value))}
        problem = beyond_json(item, value, options) if info.mode_is_json() else ""
        if problem:
            raise PydanticSerializationError(problem)
        return options

    return core_schema.no_info_plain_validator_function(
        read,
        serialization=core_schema.plain_serializer_function_ser_schema(
            write,
            info_arg=True,
            return_schema=core_schema.dict_schema(core_schema.str_schema()),
        ),
        metadata={"pydantic_js_functions": [lambda *_: _json_schema(item)]},
    )


def _fields(item: Any) -> list[Any]:
    return [field for field in fields(item) if field.init]


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def options_of(item: type, value: object) -> dict[str, Any]:
    """Return *value*, which must be a mapping of options of *item*, with all that it needs."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"must be a {item.__name__} or a mapping of its options, "
            f"not {_validate.type_name(value)}"
        )
    known = {field.name: field for field in _fields(item)}
    check_known(item, known, value)
    for name, field in known.items():
        if _is_required(field) and name not in value:
            raise InvalidArgumentError(f"{name} is required")
    return dict(value)


def check_known(item: type, known: Collection[str], given: Iterable[object]) -> None:
    """Refuse names that are no options of *item*."""
    for name in given:
        if name not in known:
            shown = str(name)[:80]
            raise InvalidArgumentError(
                f"{shown} is not an option of {item.__name__}; known are "
                f"{', '.join(map(repr, known))}{_validate.did_you_mean(shown, known)}"
            )


def beyond_json(item: type, value: object, options: dict[str, Any]) -> str:
    """Return why JSON cannot hold *value*, which has these *options*; nothing if it can."""
    if type(value) is not item:
        return f"a preset or a subclass of {item.__name__} has no JSON form: write what made it"
    for name, option in options.items():
        if type(option) not in _PLAIN:
            return (
                f"{item.__name__}.{name} is a {_validate.type_name(option)}, which has no JSON "
                f"form: give its name, or leave the field out"
            )
        if isinstance(option, float) and not math.isfinite(option):
            return f"{item.__name__}.{name} is {option}, which has no JSON form"
    return ""


def _json_schema(item: type) -> dict[str, Any]:
    """Return the JSON schema of a mapping of options."""
    hints = get_type_hints(item)
    properties: dict[str, Any] = {}
    for field in _fields(item):
        types = _json_types(hints[field.name])
        schema = types[0] if len(types) == 1 else {"anyOf": types}
        properties[field.name] = schema | (
            {} if _is_required(field) else {"default": field.default}
        )
    return {
        "title": item.__name__,
        "type": "object",
        "properties": properties,
        "required": [field.name for field in _fields(item) if _is_required(field)],
        "additionalProperties": False,
    }


def _json_types(hint: Any) -> list[dict[str, Any]]:
    """Return the JSON schemas of a type; none for a class of ours or a function."""
    if hint in _JSON_TYPES:
        return [{"type": _JSON_TYPES[hint]}]
    if get_origin(hint) is Literal:
        return [{"type": "string", "enum": [*get_args(hint)]}]
    if get_origin(hint) is Callable or isinstance(hint, type):
        return []
    return [schema for part in get_args(hint) for schema in _json_types(part)]
