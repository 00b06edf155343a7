"""Columns of Arrow, read by pyarrow, which copies every value."""

from array import array
from importlib import import_module
from types import ModuleType
from typing import Any

from budgeteer._codes import NOT_UTF8, NULL
from budgeteer._reference._count.counter import count
from budgeteer.errors import BudgeteerError

BROKEN = object()
"""Stands for a text that is not UTF-8."""


def pyarrow() -> ModuleType:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise BudgeteerError(
            "the reference backend reads and makes tables by pyarrow: pip install pyarrow"
        ) from None


def stored(kind: Any) -> Any:
    """Return the type in which the values of a type are, which for most is itself."""
    return stored(kind.storage_type) if isinstance(kind, pyarrow().BaseExtensionType) else kind


def storage(column: Any) -> Any:
    """Return a column in the type in which its values are."""
    return storage(column.storage) if isinstance(column, pyarrow().ExtensionArray) else column


def type_name(kind: Any) -> str:
    """Return what the type of a column is called in errors."""
    types = pyarrow().types
    kind = stored(kind)
    if types.is_dictionary(kind):
        return "dictionary"
    if is_text(kind) and not types.is_null(kind):
        return "string"
    for name in ("null", "struct", "map", "float16", "float32", "float64"):
        if getattr(types, f"is_{name}")(kind):
            return name
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind):
        return str(kind)
    if any(getattr(types, f"is_{name}binary")(kind) for name in ("", "large_")):
        return "binary"
    if is_list(kind):
        return "list"
    if types.is_temporal(kind):
        return "time"
    return "decimal" if types.is_decimal(kind) else "another type"


def is_text(kind: Any) -> bool:
    """Return whether a column holds texts, or nulls alone."""
    types = pyarrow().types
    kind = stored(kind)
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    views = getattr(types, "is_string_view", lambda _: False)
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or views(kind) or types.is_null(kind)
    )


def is_list(kind: Any) -> bool:
    """Return whether a column holds lists."""
    types = pyarrow().types
    names = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    kind = stored(kind)
    return any(getattr(types, f"is_{name}", lambda _: False)(kind) for name in names)


def texts(column: Any) -> list[Any]:
    """Return the texts of a column, None for null."""
    pa = pyarrow()
    column = storage(column)
    if pa.types.is_null(column.type):
        return [None] * len(column)
    if pa.types.is_dictionary(column.type):
        known = dict(enumerate(texts(column.dictionary)))
        # What stands below a null struct may lead out of the dictionary, and nobody reads it.
        return [None if i is None else known.get(i, BROKEN) for i in column.indices.to_pylist()]
    views = getattr(pa.types, "is_string_view", lambda _: False)
    raw = column.cast(pa.binary_view() if views(column.type) else pa.large_binary())
    return [None if text is None else _decoded(text) for text in raw.to_pylist()]


def _decoded(text: bytes) -> object:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return BROKEN


class NoCapsuleError(TypeError):
    """What should give Arrow gives something else."""


class _Given:
    """What a producer has given, once more."""

    def __init__(self, given: Any) -> None:
        name = "__arrow_c_array__" if isinstance(given, tuple) else "__arrow_c_stream__"
        setattr(self, name, lambda requested_schema=None: given)  # noqa: ARG005


def is_arrow(value: object) -> bool:
    """Return whether *value* gives Arrow."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def read_arrow(value: Any) -> Any:
    """Return what *value* gives as a chunked array; a NoCapsuleError if that are none."""
    is_stream = hasattr(value, "__arrow_c_stream__")
    given = value.__arrow_c_stream__() if is_stream else value.__arrow_c_array__()
    for capsule in (given,) if is_stream else given:
        if type(capsule).__name__ != "PyCapsule":
            raise NoCapsuleError
    pa = pyarrow()
    return pa.chunked_array(_Given(given) if is_stream else [pa.array(_Given(given))])


class TextColumn(tuple[str, ...]):
    """A column of texts."""

    __slots__ = ()


def read_column(column: Any) -> TextColumn | tuple[int, int] | None:
    """
    Read a column; or return a code and the index of the first text that cannot be read.

    None if it does not hold texts.
    """
    try:
        found = read_arrow(column)
    except Exception:  # noqa: BLE001 - it may still be read as a sequence
        return None
    if not is_text(found.type):
        return None
    read = [text for part in found.chunks for text in texts(part)]
    for i, text in enumerate(read):
        if text is None or text is BROKEN:
            return NULL if text is None else NOT_UTF8, i
    return TextColumn(read)


def count_column(kind: Any, ratio: float, column: TextColumn) -> bytearray:
    """Count each text of a column, as int64."""
    return bytearray(array("q", [count(kind, ratio, text) for text in column]).tobytes())
