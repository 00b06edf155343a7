"""Text files and JSON: decoding, checks, error messages, and writing a file whole."""

from __future__ import annotations

import codecs
import errno
import json
import math
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError


def mapping(key: str, value: object, known: tuple[str, ...]) -> dict[str, Any]:
    """Return *value*, which must be a mapping with no other keys than those *known*."""
    if not isinstance(value, dict):
        raise InvalidArgumentError(
            f"{key or 'the file'} must be a mapping, not {_validate.type_name(value)}"
        )
    for name in value:
        if name not in known:
            raise InvalidArgumentError(
                f"{join(key, name)} is not a known key; known are {', '.join(map(repr, known))}"
                f"{_validate.did_you_mean(name, known)}"
            )
    return value


def join(key: str, name: str) -> str:
    """Return the dotted path of the key *name* below *key*."""
    return f"{key}.{name[:80]}" if key else name[:80]


def json_lines(text: str) -> Iterator[tuple[int, Any]]:
    """Yield line number and value of each line of *text* that is not blank."""
    for n, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield n, parse_json(line, n)


def parse_json(text: str, line: int = 1) -> Any:
    """
    Return the value of the JSON *text*; NaN and infinities are refused.

    Raises:
        InvalidArgumentError: It is not JSON; the message names the place, counting lines from
            *line*.

    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1}, column {error.colno}"
        raise InvalidArgumentError(f"{place}: invalid JSON: {error.msg}") from None
    except RecursionError:
        found = "nested too deeply"
    except ValueError as error:
        # Of very many digits Python adds how a program may read them, which no file can.
        found = str(error).partition("; use sys.")[0]
    raise InvalidArgumentError(f"line {line}: invalid JSON: {found}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is beyond the range of a float")
    return number


def decode(data: bytes, line: int = 1) -> str:
    """
    Return UTF-8 *data* as text, without a leading byte order mark.

    Raises:
        InvalidArgumentError: It is not UTF-8; the message names the line, counting from *line*.

    """
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise InvalidArgumentError(f"line {line}: not UTF-8") from None


def one_line(message: str) -> str:
    r"""
    Return *message* on one line, with unprintable characters escaped.

    Examples:
        >>> one_line("a\nb")
        'a\\nb'

    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in message
    )


def repaired(text: str) -> str:
    r"""
    Return *text* with U+FFFD for lone surrogates, which UTF-8 cannot hold, as tiktoken counts it.

    Examples:
        >>> repaired("tea\udcff")
        'tea\ufffd'

    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def reason(error: OSError) -> str:
    """Return the reason of a failure to read, on one line."""
    name = "the input" if error.filename is None else error.filename
    return f"cannot read {name}: {error.strerror or error}"


def place_of(path: str) -> str:
    """
    Return what *path* links to, or *path* itself if it is no link.

    Raises:
        OSError: The links lead in a circle.

    """
    from pathlib import Path  # slow to load

    if not Path(path).is_symlink():
        return path
    place = os.path.realpath(path)
    if Path(place).is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return place


def write_whole(path: str, data: bytes) -> None:
    """
    Write a file beside its place, and move it there once it is complete.

    What *path* links to is replaced, and keeps its permissions. A pipe or a device is written to
    as it is.

    Raises:
        OSError: The file cannot be written; a previous one is left as it was. It names *path*.

    """
    from pathlib import Path  # slow to load

    place = Path(place_of(path))
    exists = place.exists()
    if exists and not place.is_file():
        place.write_bytes(data)
        return
    beside = place.with_name(f"{place.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if exists:
            beside.chmod(stat.S_IMODE(place.stat().st_mode))
        beside.replace(place)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, path) from None  # of the same kind
        raise
