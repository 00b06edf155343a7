"""What pydantic asks of a class that is the type of a field. Never imported by itself."""

from collections.abc import Callable
from typing import Any


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
