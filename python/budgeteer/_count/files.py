"""Counters of tokenizers that are read from files."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from budgeteer import _external
from budgeteer._backend import backend
from budgeteer.errors import CounterError, InvalidArgumentError

IN_A_FOLDER = ("tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model")
"""The files of a folder that may be its tokenizer, the best first; then those of tiktoken."""


def tokenizer_of(name: str) -> Any:
    """
    Return the tokenizer of ``file:PATH`` or ``hf:PATH``, which are the same.

    It is the backend's, or a callable where only the package tokenizers can count it.

    Raises:
        InvalidArgumentError: There is no such file.
        CounterError: The file cannot be read, or is no tokenizer that can be counted exactly.

    """
    path = name.partition(":")[2]
    absolute = os.path.abspath(path)  # a pickle may be read in another current directory
    if not path or not (os.path.isfile(absolute) or os.path.isdir(absolute)):
        raise _missing(name)
    try:
        absolute.encode("utf-8")
        found = opened(absolute)
    except FileNotFoundError:
        raise _missing(name) from None
    except UnicodeEncodeError:
        raise CounterError(f"the path of {name[:80]!a} must be UTF-8") from None
    except OSError as error:
        raise _external.unreadable(name, error) from None
    # WordPiece, Unigram and other steps: the package that defines them counts them.
    return _external.hf_counter(name, absolute, found) if isinstance(found, str) else found


def unpickled(name: str, path: str, *, has_cache: bool) -> Any:
    """
    Return the backend's tokenizer at the absolute *path*, of the counter *name*.

    Raises:
        CounterError: The file cannot be read any more, or the backend cannot count it.

    """
    try:
        found = opened(path)
    except OSError as error:
        raise _external.unreadable(name, error) from None
    if isinstance(found, str):
        raise CounterError(f"counter {name[:80]!r}: {found}")
    return found if has_cache else found.fresh()


def _missing(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"counter {name[:80]!r} must have the path of a tokenizer.json, tekken.json, "
        "tokenizer.model or tiktoken file, or of a directory that holds one, after the colon; "
        "there is no such file"
    )


def opened(path: str) -> Any:
    """
    Return the tokenizer at the absolute *path*, from memory if the file is as it was.

    It is the text why the backend refuses it where that cannot count it.
    """
    return _open(path, _external.version_of(file_of(path)))


def file_of(path: str) -> str:
    """Return the file that is read: a folder stays as it was while a file in it is written."""
    if not os.path.isdir(path):
        return path
    files = (os.path.join(path, name) for name in IN_A_FOLDER)
    found = next(filter(os.path.isfile, files), None)
    if found is None:
        ranks = [name for name in os.listdir(path) if name.endswith(".tiktoken")]
        found = os.path.join(path, min(ranks, default=""))
    return found


@lru_cache(maxsize=_external.KEPT)
def _open(path: str, _: tuple[int, ...]) -> Any:
    try:
        return backend.Tokenizer(path, True)
    except CounterError as error:  # kept, as it takes as long to find as a tokenizer
        return str(error)
