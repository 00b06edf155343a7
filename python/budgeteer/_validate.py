"""
Validates arguments and words the errors about them.

Both backends get values that were checked here, so an error reads the same with either of them. A
message names the argument, the type or number found, and what is allowed. It never quotes a
retrieved text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import index
from os import PathLike, fsdecode, fsencode
from typing import Any, TypeVar

from budgeteer._codes import NOT_UTF8, NULL
from budgeteer.errors import InvalidArgumentError

C = TypeVar("C", bound=str)

MAX_TOKENS = 2**63 - 1
"""The largest number of tokens in an argument."""


def type_name(value: object) -> str:
    """Return the name of *value*'s type for an error."""
    return "None" if value is None else type(value).__name__


def is_bool(value: object) -> bool:
    """Return whether *value* is a bool, Python's or numpy's, rather than a number."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def flag(name: str, value: object) -> bool:
    """Return *value* as a bool."""
    if not is_bool(value):
        raise InvalidArgumentError(f"{name} must be a bool, not {type_name(value)}")
    return bool(value)


def as_int(value: object) -> int | None:
    """Return *value* as an int, or None if it is not a whole number."""
    if type(value) is int:
        return value
    if not is_bool(value):
        with suppress(TypeError):  # an array has __index__, but is not a number
            return index(value)  # type: ignore[arg-type]
    return None


def tokens(name: str, value: object, *, minimum: int = 0) -> int:
    """Return *value* as a number of tokens."""
    return whole(name, value, minimum, MAX_TOKENS)


def whole(name: str, value: object, minimum: int, maximum: int) -> int:
    """Return *value* as an int from *minimum* to *maximum*."""
    number = as_int(value)
    if number is None:
        raise InvalidArgumentError(f"{name} must be an int, not {type_name(value)}")
    if not minimum <= number <= maximum:
        raise InvalidArgumentError(
            f"{name} must be from {minimum} to {maximum}, not {shown(number)}"
        )
    return number


def shown(number: int) -> str:
    """Return *number* in digits, or its size if it has too many digits."""
    if number.bit_length() <= 128:
        return str(number)
    return f"{'a negative' if number < 0 else 'an'} int of {number.bit_length()} bits"


def as_float(name: str, value: object) -> float | None:
    """Return *value* as a float, or None if it is no number: a bool, text, another type."""
    if type(value) is float:
        return value
    if not _is_no_number(value):
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            raise InvalidArgumentError(f"{name} is beyond the range of a float") from None
        except Exception:  # noqa: BLE001, S110 - whatever another's type raises, it is no number
            pass
    return None


def as_seconds(value: Any) -> float | None:
    """
    Return a time in seconds since 1970, or None if *value* is no datetime, pandas' or numpy's.

    A time without a zone is in UTC. NaN stands for a time that is missing.
    """
    from datetime import datetime, timezone  # few programs have times

    is_numpy = type(value).__name__ == "datetime64"
    if not is_numpy and not isinstance(value, datetime):
        return None
    if value != value:  # noqa: PLR0124 - NaT, which pandas makes a datetime
        return math.nan
    if is_numpy:  # a float of it would be in its own unit
        return float(value.astype("datetime64[us]").astype("int64")) / 1e6
    zoned = value if value.utcoffset() is not None else value.replace(tzinfo=timezone.utc)
    return float(zoned.timestamp())


def number(name: str, value: object, allowed: str = "a float") -> float:
    """Return *value* as a float. Infinities pass; NaN, bool, text and other types do not."""
    number = as_float(name, value)
    if number is None:
        raise InvalidArgumentError(f"{name} must be {allowed}, not {type_name(value)}")
    if math.isnan(number):
        raise InvalidArgumentError(f"{name} must be a number, not NaN")
    return number


def _is_no_number(value: object) -> bool:
    """Return whether *value* is none though a float can be made of it."""
    if is_bool(value) or isinstance(value, (str, bytes, bytearray)):
        return True
    # Of numpy's times, a float tells how many they have of their unit, and not which, and of its
    # complex numbers a part.
    return getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M", "c")


def number_between(
    name: str, value: object, minimum: float, maximum: float, unit: str = ""
) -> float:
    """Return *value* as a float from *minimum* to *maximum*, both in *unit*."""
    found = number(name, value)
    if not minimum <= found <= maximum:
        low, high = (f"{bound:g}" if bound < 1 else f"{bound:.0f}" for bound in (minimum, maximum))
        raise InvalidArgumentError(f"{name} must be from {low} to {high}{unit}, not {found!r}")
    return found


def text(name: str, value: object) -> str:
    """Return *value*, which must be a str; a subclass's own methods are ignored."""
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a str, not {type_name(value)}")
    return str.__str__(value)


def path_like(name: str, value: object) -> str:
    """Return *value*, which must be a str or a path, as a str."""
    if not isinstance(value, (str, PathLike)):
        raise InvalidArgumentError(f"{name} must be a str or a path, not {type_name(value)}")
    return fsdecode(value)


def path(name: str, value: object) -> str:
    """Return *value*, which must be the path of a file, as a str."""
    found = path_like(name, value)
    if not found or "\0" in found:
        raise InvalidArgumentError(
            f"{name} must be the name of a file, not empty or with a NUL in it"
        )
    try:
        fsencode(found)
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{name} must be the name of a file, which {found[-80:]!a} cannot be"
        ) from None
    return found


def choice(name: str, value: object, allowed: Sequence[C]) -> C:
    """Return *value*, which must be one of *allowed*."""
    if isinstance(value, str) and value in allowed:
        return value  # type: ignore[return-value]  # it is one of them
    listed = ", ".join(map(repr, allowed))
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be one of {listed}, not {type_name(value)}")
    hint = did_you_mean(value, allowed)
    raise InvalidArgumentError(f"{name} must be one of {listed}, not {value[:80]!r}{hint}")


def did_you_mean(value: str, allowed: Iterable[str]) -> str:
    """Return a hint at the nearest of *allowed*, or nothing if none is near."""
    import difflib  # only a misspelling needs it

    near = difflib.get_close_matches(value[:80], list(allowed), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def batch(name: str, value: object) -> Sequence[Any]:
    """
    Return the items of *value* as a list or tuple.

    A column of pandas, Polars, Arrow or numpy gives its values; a null among them, a single
    text or mapping, a data frame (whose items are the names of its columns) and a
    set (whose order differs between processes) are refused.
    """
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (set, frozenset)):
        raise InvalidArgumentError(
            f"{name} must be a sequence, not {type_name(value)}, whose order differs between "
            f"processes: give it one, as sorted() does"
        )
    refuse_table(name, value)
    kind = type(value)
    if hasattr(kind, "to_pylist") or hasattr(kind, "dtype"):
        return _column(name, value)
    return list(iterable(name, value))


def refuse_table(name: str, value: object) -> None:
    """Refuse a data frame, whose items are the names of its columns, and any other table."""
    kind = type(value)
    if hasattr(kind, "columns") and hasattr(kind, "shape"):
        raise InvalidArgumentError(
            f"{name} must be a sequence, not {type_name(value)}: give {_column_of(value)}"
        )
    if hasattr(kind, "collect_schema"):  # a lazy frame of Polars, whose columns cost a query plan
        raise InvalidArgumentError(
            f"{name} must be a sequence, not {type_name(value)}: collect() it and give one column "
            f"of it, df.collect()['text'].to_list()"
        )
    if hasattr(kind, "read_all"):  # a reader of Arrow, at its end once strings were looked for
        raise InvalidArgumentError(
            f"{name} must be a sequence, not {type_name(value)}: read it whole and give a "
            f"column of it, pyarrow.table(reader)['text']"
        )


def _column_of(frame: Any) -> str:
    """Return the line of Python that gives the texts of a data frame."""
    names = [*getattr(frame, "column_names", frame.columns)]
    known = [name for name in ("text", "content", "page_content") if name in names]
    shown_name = repr((known or names or ["text"])[0])[:80]
    kind = type(frame)
    if hasattr(kind, "fetchall"):  # a relation of DuckDB, whose columns are relations
        return f"one column of it, [row[0] for row in df[{shown_name}].fetchall()]"
    method = "to_pylist" if hasattr(kind, "to_pylist") else "to_list"
    return f"one column of it, df[{shown_name}].{method}()"


def _column(name: str, column: Any) -> Sequence[Any]:
    """Return the values of a column of pandas, Polars, Arrow or numpy, which has no nulls."""
    if getattr(getattr(column, "dtype", None), "names", None):  # tuples would lose the names
        return list(iterable(name, column))
    methods = (getattr(column, name, None) for name in ("to_pylist", "to_list", "tolist"))
    values = next((method() for method in methods if callable(method)), column)
    if not isinstance(values, list):  # such as an array without dimensions
        raise InvalidArgumentError(f"{name} must be a sequence, not {type_name(column)}")
    for i, value in enumerate(values):
        if type(value) is not str and is_null(value):
            raise unread(name, NULL, i)
    return values


def is_arrow(column: Any) -> bool:
    """Return whether a column gives Arrow without making it of Python's objects first."""
    kind = type(column)
    if not (hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")):
        return False
    return str(getattr(column, "dtype", "")) != "object"  # pandas' own


def unread(name: str, code: int, i: int) -> InvalidArgumentError:
    """Return the error for item *i* of a column, which cannot be read; *code* is the reason."""
    if code == NULL:
        return InvalidArgumentError(
            f"{name}[{i}] is null: leave it out before, as dropna(), drop_nulls() or "
            f"drop_null() of the column does"
        )
    what = "is not UTF-8" if code == NOT_UTF8 else "has offsets that lead out of its data"
    return InvalidArgumentError(f"{name}[{i}] {what}")


def is_null(value: object) -> bool:
    """Return whether *value* stands for none at all in a column: None, NaN or pandas' own."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_absent(value: object) -> bool:
    """Return whether a number or time is not stated: None, NaT, or pandas' NA; NaN is refused."""
    if type(value).__name__ == "datetime64":
        return value != value  # noqa: PLR0124 - NaT
    return not isinstance(value, float) and is_null(value)


def iterable(name: str, value: object, wanted: str = "a sequence") -> Iterable[Any]:
    """
    Return *value*, which must be iterable; a single text or mapping is refused.

    An error says what is *wanted*, so name it where it is more than a sequence.
    """
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        is_one = name == "chunks" and isinstance(value, (str, Mapping))
        remedy = ": put it into a list" if is_one else ""
        raise InvalidArgumentError(f"{name} must be {wanted}, not {type_name(value)}{remedy}")
    if getattr(value, "ndim", 1) == 0:  # of numpy, which only says so when it is asked
        raise InvalidArgumentError(f"{name} must be {wanted}, not an array of no dimension")
    return value
