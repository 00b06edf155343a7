"""Standard input and output, and files, as bytes of UTF-8."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from budgeteer._files import decode, one_line, parse_json, repaired
from budgeteer._sources.folder import TextFile, text_files
from budgeteer.errors import InvalidArgumentError

STDIN = "-"
NO_NAME = "''"
"""Of files that cannot be read, the first few are named."""


_COLOURS = {"error": 31, "warning": 33}


class Answer(NamedTuple):
    """
    What a command answers.

    Attributes:
        text: For standard output.
        said: Whole lines for standard error.
        status: The exit status.

    """

    text: str
    said: str = ""
    status: int = 0


def read(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``."""
    if name != STDIN:
        if not name:  # for Python it stands for the folder
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), NO_NAME)
        data = Path(name).read_bytes()
    elif sys.stdin is None:
        raise InvalidArgumentError("standard input is closed")
    elif not hasattr(sys.stdin, "buffer"):
        return sys.stdin.read()
    else:
        data = sys.stdin.buffer.read()
    try:
        return decode(data)
    except InvalidArgumentError as error:
        raise _UndecodedError(f"{shown(name)}: {error}", str(error)) from None


class _UndecodedError(InvalidArgumentError):
    """An input is not UTF-8; the second argument says so without its name."""

    def __str__(self) -> str:
        return str(self.args[0])


def shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def files_of(paths: Sequence[str], globs: Sequence[str]) -> Iterator[TextFile]:
    """Yield the files of *paths*, standard input for ``-``."""
    if list(paths).count(STDIN) > 1:
        raise InvalidArgumentError("only one PATH may be standard input")
    for path in paths:
        if path == STDIN:
            name = shown(STDIN)
            try:
                found = TextFile(name, name, read(STDIN))
            except _UndecodedError as error:  # as of a file: the others are read
                found = TextFile(name, name, None, error.args[1])
            yield found
        elif not path:
            yield TextFile(NO_NAME, path, None, os.strerror(errno.ENOENT))
        else:
            yield from text_files([path], globs)


def as_json(value: Any) -> str:
    """Return the lines of the JSON of *value*."""
    return escaped(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def escaped(text: str) -> str:
    """Return JSON with lone surrogates as their escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def write(text: str) -> None:
    """Write the whole of *text* to standard output, at once."""
    if not text:
        return
    data = repaired(text).encode()
    if sys.stdout is None:
        raise OSError("standard output is closed")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
    else:
        rest = memoryview(data)
        while rest:  # an unbuffered stream may take a part only
            rest = rest[buffer.write(rest) or 0 :]
    sys.stdout.flush()


def say(lines: str) -> None:
    """Write whole lines to standard error, at a terminal with the mark of an error in colour."""
    if not lines or sys.stderr is None:
        return
    if has_colours(sys.stderr):
        lines = re.sub(
            r"(?m)^budgeteer: (error|warning):",
            lambda found: f"\x1b[1;{_COLOURS[found[1]]}m{found[0]}\x1b[0m",
            lines,
        )
    try:
        sys.stderr.write(lines)
        sys.stderr.flush()
    except OSError:  # nobody reads it, or the disk is full: the status says it all the same
        abandon(sys.stderr)


def fail(message: str) -> int:
    """Say what is wrong, in one line, and return the exit status of errors."""
    say(f"budgeteer: error: {one_line(message)}\n")
    return 2


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream gets colours: what users set goes before what it is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    is_plain = os.environ.get("TERM") == "dumb" or sys.platform == "win32"
    return stream.isatty() and not is_plain


def abandon(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that exiting does not fail again."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or no file behind it
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def json_of(name: str) -> Any:
    text = read(name)
    try:
        return parse_json(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{shown(name)}: {error}") from None


def line_end() -> str:
    """Return what follows a text that goes out as it was counted: a line end at a terminal."""
    return "\n" if sys.stdout is not None and sys.stdout.isatty() else ""
