"""
Counters from other packages: tiktoken's encodings, and what only ``tokenizers`` counts.

Both packages are extras, so each is loaded only when one of its counters is made. Texts are
untrusted: a special token in a text counts as plain text.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from budgeteer import _validate
from budgeteer._codes import TIKTOKEN
from budgeteer._models import NATIVE
from budgeteer.errors import CounterError, InvalidArgumentError

KEPT = 4
"""How many files each reader keeps in memory, of those that it read last."""


@dataclass(frozen=True, slots=True)
class TiktokenCounter:
    """
    Counts as tiktoken's ``encode_ordinary``. Immutable, thread-safe, picklable by its name.

    Attributes:
        name: ``tiktoken:`` and the name of the encoding.
        encoding: tiktoken's own object.

    """

    name: str
    encoding: Any = field(repr=False, compare=False)

    def __call__(self, text: str) -> int:
        """Return the number of tokens in *text*; a lone surrogate counts as U+FFFD does."""
        return len(_answer(self.name, self.encoding.encode_ordinary, text))

    def __reduce__(self) -> tuple[Callable[[str], TiktokenCounter], tuple[str]]:
        return tiktoken_counter, (self.name.removeprefix(TIKTOKEN),)


@dataclass(frozen=True, slots=True)
class HFCounter:
    """
    Counts as a ``tokenizer.json``. Immutable, thread-safe; picklable by its path.

    Attributes:
        name: ``file:`` or ``hf:``, and the path as it was given.

    """

    name: str
    _path: str = field(repr=False)
    _tokenizer: Any = field(repr=False, compare=False)

    def __call__(self, text: str) -> int:
        """Return the number of tokens in *text*; a lone surrogate counts as U+FFFD does."""
        return len(_answer(self.name, self._encode, text).ids)

    def _encode(self, text: str) -> Any:
        try:
            text.encode()
        except UnicodeEncodeError:  # versions of tokenizers disagree here: do as tiktoken does
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._tokenizer.encode(text, add_special_tokens=False)

    def __reduce__(self) -> tuple[Callable[[str, str], HFCounter], tuple[str, str]]:
        return _read, (self.name, self._path)


def tiktoken_counter(name: str) -> TiktokenCounter:
    """
    Return the counter ``tiktoken:NAME``, with its vocabulary loaded.

    tiktoken reads the vocabulary from the directory TIKTOKEN_CACHE_DIR, and downloads it there if
    it is missing.

    Args:
        name: The part after the colon: an encoding that tiktoken knows, plug-ins included.

    Raises:
        InvalidArgumentError: tiktoken knows no encoding of that name.
        CounterError: tiktoken is not installed, or the vocabulary cannot be loaded.

    Examples:
        >>> counter = tiktoken_counter("cl100k_base")
        >>> counter("Hello, world"), counter.name
        (3, 'tiktoken:cl100k_base')

    """
    full = TIKTOKEN + name
    hint = ""
    if name in NATIVE:
        hint = f"; the counter {NATIVE[name]!r} counts the same without it"
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ImportError:
        raise CounterError(
            f"counter {full[:80]!r} needs tiktoken: pip install 'budgeteer[tiktoken]'{hint}"
        ) from None
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise InvalidArgumentError(
            f"counter {full[:80]!r} must have one of {', '.join(map(repr, known))} after the colon"
            f"{_validate.did_you_mean(name, known)}"
        )
    try:
        return TiktokenCounter(full, tiktoken.get_encoding(name))
    except (AssertionError, ImportError, OSError, ValueError) as error:
        # Its message holds URLs, maybe a proxy's with its password: report only its type.
        raise CounterError(
            f"the vocabulary of {full!r} can neither be read from TIKTOKEN_CACHE_DIR nor "
            f"downloaded into it ({type(error).__name__}){hint}"
        ) from None


def tokenizer_json(path: str) -> str | None:
    """Return the ``tokenizer.json`` at *path*, or in it if it is a directory; None without one."""
    file = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path
    return file if os.path.isfile(file) else None


def hf_counter(name: str, path: str, reason: str) -> HFCounter:
    """
    Return a counter of a ``tokenizer.json`` that the backend cannot count, for *reason*.

    The file's settings for truncation, padding, dropout and special tokens around a text are
    ignored, as they would falsify the counts.

    Args:
        name: The name of the counter.
        path: The absolute path of the file, or of a directory that holds it.
        reason: Why the backend cannot count it.

    Raises:
        CounterError: tokenizers is not installed, or cannot read the file either.

    """
    file = tokenizer_json(path)
    if file is None:
        raise CounterError(f"counter {name[:80]!r}: {reason}")
    try:
        importlib.import_module("tokenizers")
    except ImportError:
        raise CounterError(
            f"counter {name[:80]!r}: {reason}; the package tokenizers may count it: "
            "pip install 'budgeteer[hf]'"
        ) from None
    try:
        return _read(name, file)
    except CounterError:
        raise CounterError(f"counter {name[:80]!r}: {reason}") from None


def unreadable(name: str, error: OSError) -> CounterError:
    """Return the error for the file of a counter that cannot be read."""
    reason = error.strerror or type(error).__name__
    return CounterError(f"the file of {name[:80]!r} cannot be read: {reason}")


def version_of(file: str) -> tuple[int, ...]:
    """Return what is another once a file is changed or replaced."""
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(name: str, path: str) -> HFCounter:
    try:
        importlib.import_module("tokenizers")
    except ImportError:
        raise CounterError(
            f"counter {name[:80]!r} needs tokenizers: pip install 'budgeteer[hf]'"
        ) from None
    try:
        return HFCounter(name, path, _tokenizer(path, version_of(path)))
    except OSError as error:
        raise unreadable(name, error) from None
    except ValueError:  # its message may quote the file
        raise CounterError(f"the file of {name[:80]!r} is not a tokenizer.json") from None


@lru_cache(maxsize=KEPT)
def _tokenizer(path: str, _: tuple[int, ...]) -> Any:
    """Return the tokenizer of a file as plain texts are counted; counters share it, unchanged."""
    tokenizers = importlib.import_module("tokenizers")
    with open(path, "rb") as file:
        tokenizer = tokenizers.Tokenizer.from_buffer(file.read())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # As text, whatever the file calls special: a retrieved one must not pass for a token.
    added = tokenizer.get_added_tokens_decoder().values()
    tokenizer.add_special_tokens(
        [tokenizers.AddedToken(token.content, special=True) for token in added]
    )
    tokenizer.encode_special_tokens = True
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None  # it makes counts random
    return tokenizer


def _answer(name: str, encode: Callable[[str], Any], text: str) -> Any:
    """Return *encode* of *text*; its failure is a CounterError that quotes no text."""
    try:
        return encode(text)
    except BaseException as error:
        # A panic in Rust is not an Exception, and its class cannot be imported. tiktoken panics
        # when its regex runs out of stack: at a million spaces, for example.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise CounterError(f"the tokenizer of {name[:80]!r} cannot encode a text") from None
        raise
