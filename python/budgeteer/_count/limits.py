"""
The table of models: windows, limits and encodings, which a caller may extend.

The table is ``models.json``, written by ``scripts/generate_models.py`` and read on first use. The
models of the file that ``BUDGETEER_MODELS`` names override it, and those of `register_model` and
`load_models` override both; the latest call wins.

An unknown name is neither an error nor a Python warning: it gets a safe default and a log line. A
service reads its log rather than its standard error, and Python shows a warning once for a line of
code, where here it is once for a name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from budgeteer import _models, _validate
from budgeteer._count.names import NAMES, meaning_of
from budgeteer._log import log
from budgeteer._process import call_in_child
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

UNKNOWN_WINDOW = 8192
"""The window of an unknown model: the smallest usual one."""

VARIABLE = "BUDGETEER_MODELS"
"""The environment variable that names a file of models."""

_BOUNDARIES = "-:@/"
_NAME_MAX = 200  # known names are shorter, and time grows with the square
_PREFIXES_MAX = 6
_WARNED_MAX = 1_000
_FACTOR_MIN, _FACTOR_MAX = 0.01, 100.0
_KEYS = (
    *("context_window", "max_input_tokens", "max_output_tokens"),
    *("encoding", "calibration", "provider", "source"),
)


@public("budgeteer.window")
@dataclass(frozen=True, slots=True)
class ModelLimits:
    """
    The limits of a model, and how it counts.

    Limits made by a caller can be given wherever a model is, whatever is registered, and count by
    their own encoding. A limit above the window has no effect.

    Attributes:
        name: The name that was looked up.
        context_window: The most tokens of input and answer together.
        max_input_tokens: The most tokens of the input; the whole window if no other limit is
            stated.
        max_output_tokens: The most tokens of the answer; None if no limit is stated.
        encoding: The name of its encoding; None if its tokenizer is not native.
        calibration: The model's tokens for each token of that encoding, if its own tokenizer is
            not published. None if the encoding is exact.
        provider: The maker of the model; None if unknown.
        known: Whether the name was found. If not, the window is 8192.
        source: Where the figures come from: ``document``, ``litellm``, ``registered``, the
            ``source`` that a file states or the file's name, or ``unknown``.

    Raises:
        InvalidArgumentError: A value has a wrong type or is out of range.

    Examples:
        >>> limits = model_limits("gpt-4o")
        >>> limits.context_window, limits.max_output_tokens, limits.encoding
        (128000, 16384, 'o200k_base')

    """

    name: str
    context_window: int
    max_input_tokens: int
    max_output_tokens: int | None
    encoding: str | None
    calibration: float | None
    provider: str | None
    known: bool
    source: str

    def __post_init__(self) -> None:
        for name in ("name", "encoding", "provider", "source"):
            value = getattr(self, name)
            if value is not None or name in ("name", "source"):
                _validate.text(name, value)
        for name in ("context_window", "max_input_tokens", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None or name != "max_output_tokens":
                object.__setattr__(self, name, _validate.tokens(name, value))
        _factor("calibration", self.calibration)
        if not isinstance(self.known, bool):
            raise InvalidArgumentError(
                f"known must be a bool, not {_validate.type_name(self.known)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """
        Return a dict of all attributes.

        Examples:
            >>> model_limits("gpt-4").to_dict()["context_window"]
            8192

        """
        return asdict(self)


_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - in a forked process
    _lock = threading.Lock()


call_in_child(_renew_lock)
_own: dict[str, ModelLimits] = {}  # replaced, never changed, so that readers need no lock
_warned: dict[str, None] = {}


def model_limits(name: str | ModelLimits) -> ModelLimits:
    """
    Return the limits of the model *name*.

    The whole name is looked up first, then the name without the prefix of a provider, host or
    region (``openai/``, ``bedrock/us.anthropic.``, ``ft:``), then its longest beginning that is a
    known name and ends before one of ``-``, ``:``, ``@`` and ``/``: ``gpt-4o-2024-11-20`` gets the
    limits of ``gpt-4o``, and ``gpt-4.1`` never those of ``gpt-4``. Case matters. A version may
    have a larger window than the beginning of its name, so the result errs low.

    An unknown name has a window of 8192 and ``known=False``, and is logged once, as a warning of
    the logger ``budgeteer``. No network is used.

    Args:
        name: The name of a model. A `ModelLimits` is returned as it is.

    Raises:
        InvalidArgumentError: *name* is neither, or the file that ``BUDGETEER_MODELS`` names is not
            valid for `load_models`.

    Examples:
        >>> model_limits("openai/gpt-4o-2024-11-20").context_window
        128000
        >>> model_limits("gpt-5").max_input_tokens, model_limits("gpt-5").context_window
        (272000, 400000)
        >>> model_limits("claude-sonnet-4-5-20250929").calibration
        1.18

    """
    if isinstance(name, ModelLimits):
        return name
    name = _validate.text("model", name)
    found = find(name)
    if found is not None:
        return found
    with _lock:
        is_new = name not in _warned
        if is_new:
            if len(_warned) >= _WARNED_MAX:
                _warned.clear()
            _warned[name] = None
    if is_new:
        log().warning(
            *("model %.80r is not known: its context window is taken to be 8192", name),
            extra={"model": name[:80], "context_window": UNKNOWN_WINDOW},
        )
    encoding = _models.encoding_of(name)
    return ModelLimits(
        *(name, UNKNOWN_WINDOW, UNKNOWN_WINDOW, None, encoding, None, None, False, "unknown")
    )


def register_model(
    name: str,
    *,
    context_window: int,
    max_input_tokens: int | None = None,
    max_output_tokens: int | None = None,
    encoding: str | None = None,
    calibration: float | None = None,
    provider: str | None = None,
    source: str = "registered",
) -> ModelLimits:
    """
    Register the model *name* for this process, over whatever was known of it.

    Args:
        name: The name, which longer names match too, as in `model_limits`.
        context_window: The most tokens of input and answer together.
        max_input_tokens: The most tokens of the input; None for the whole window.
        max_output_tokens: The most tokens of the answer; None for no limit.
        encoding: The name of its counter: any name that `get_counter` takes except a model's.
            None takes the encoding known for the name before, if any.
        calibration: The model's tokens for each token of *encoding*, from 0.01 to 100, for a
            tokenizer that is not published; 1.0 only marks counts as estimates. None if *encoding*
            is the model's own.
        provider: The maker of the model.
        source: Where the figures come from.

    Returns:
        The limits that `model_limits` returns from now on.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        CounterError: A package or file that *encoding* needs is not installed or cannot be read.

    Examples:
        >>> limits = register_model("acme-7b", context_window=32_000, max_output_tokens=4_000)
        >>> model_limits("acme-7b-instruct").context_window
        32000

    """
    values = (context_window, max_input_tokens, max_output_tokens, encoding, calibration)
    fields = dict(zip(_KEYS, (*values, provider, source), strict=True))
    limits = _limits("", name, fields, "registered")
    _add({limits.name: limits})
    return limits


def load_models(path: str | os.PathLike[str]) -> list[ModelLimits]:
    """
    Register every model of a JSON file, and return them; none if one of them is invalid.

    The file is an object like ``{"models": {"acme-7b": {"context_window": 32000}}}``, with the
    arguments of `register_model` as keys. The file that the environment variable
    ``BUDGETEER_MODELS`` names is read when a model is first looked up.

    Raises:
        InvalidArgumentError: The file cannot be read or is not of that form; the message names
            the file and the key.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "models.json")
        ...     _ = path.write_text('{"models": {"acme-8b": {"context_window": 64000}}}')
        ...     [limits] = load_models(path)
        >>> limits.context_window, limits.source
        (64000, 'models.json')

    """
    read = _read(path)
    _add(read)
    return list(read.values())


def list_models() -> list[ModelLimits]:
    """
    Return every known model, sorted by provider and name.

    Examples:
        >>> len(list_models()) > 100
        True

    """
    known = {**_table()[0], **_environment(), **_own}
    return sorted(known.values(), key=lambda limits: (limits.provider or "", limits.name))


def find(name: str) -> ModelLimits | None:
    """Return the limits of *name*, under that name, or None."""
    found = _find(name, (_own, _environment()))
    return found and found[0]


def encoding_of(name: str) -> tuple[str | None, float | None, bool]:
    """
    Return the encoding of a model, its factor if any, and whether the model is known.

    Registered models come first, then tiktoken's names, then the table.
    """
    found = _find(name, (_own, _environment()))
    if found is not None and found[1]:
        return found[0].encoding, found[0].calibration, True
    encoding = _models.encoding_of(name)
    if encoding is not None:
        return encoding, None, True
    return (
        (None, None, False) if found is None else (found[0].encoding, found[0].calibration, True)
    )


def _find(
    name: str, own: tuple[Mapping[str, ModelLimits], ...] = ()
) -> tuple[ModelLimits, bool] | None:
    """Return the limits of *name*, from *own* or as shipped, and whether they are from *own*."""
    shipped, aliases, prefixes = _table()
    names = [name]
    while len(names) <= _PREFIXES_MAX:
        start = next((prefix for prefix in prefixes if names[-1].startswith(prefix)), None)
        if start is None:
            break
        names.append(names[-1][len(start) :])
    starts = [
        candidate[:end]
        for candidate in names
        for end in range(min(len(candidate), _NAME_MAX) - 1, 0, -1)
        if candidate[end] in _BOUNDARIES
    ]
    for candidate in (*names, *starts):
        for layer in own:
            if candidate in layer:
                return replace(layer[candidate], name=name), True
        limits = shipped.get(aliases.get(candidate, candidate))
        if limits is not None:
            encoding = _models.encoding_of(name)  # tiktoken's names come first
            if encoding is not None:
                limits = replace(limits, encoding=encoding, calibration=None)
            return replace(limits, name=name), False
    return None


def _add(read: Mapping[str, ModelLimits]) -> None:
    global _own  # noqa: PLW0603 - the registry of the process
    with _lock:
        _own = {**_own, **read}


@cache
def _table() -> tuple[dict[str, ModelLimits], dict[str, str], tuple[str, ...]]:
    """Return the shipped models, aliases and prefixes."""
    import json  # slow to load with pathlib, and many programs name no model
    from pathlib import Path

    document = json.loads(Path(__file__).with_name("models.json").read_text("utf-8"))
    models = {
        name: ModelLimits(name=name, known=True, **fields)
        for name, fields in document["models"].items()
    }
    return models, document["aliases"], tuple(document["prefixes"])


def _environment() -> dict[str, ModelLimits]:
    """Return the models of the file that the environment names."""
    path = os.environ.get(VARIABLE)
    return _environment_file(path) if path else {}


@cache
def _environment_file(path: str) -> dict[str, ModelLimits]:
    try:
        return _read(path)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{VARIABLE}: {error}") from None


def _read(path: str | os.PathLike[str]) -> dict[str, ModelLimits]:
    from pathlib import Path  # slow to load

    from budgeteer._files import decode, parse_json, reason

    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError(
            f"path must be a str or a path, not {_validate.type_name(path)}"
        )
    file = Path(path)
    try:
        document = parse_json(decode(file.read_bytes()))
    except OSError as error:
        raise InvalidArgumentError(reason(error)) from error
    except ValueError as error:  # bad UTF-8 or JSON, or a NUL in the path
        raise InvalidArgumentError(f"{str(file)!r}: {error}") from None
    models = document.get("models") if isinstance(document, dict) else None
    if not isinstance(models, dict):
        raise InvalidArgumentError(f"{str(file)!r}: it must be an object with an object 'models'")
    read = {}
    for name, fields in models.items():
        where = f"{str(file)!r}: models[{name[:80]!r}]"
        if not isinstance(fields, dict):
            raise InvalidArgumentError(
                f"{where} must be an object, not {_validate.type_name(fields)}"
            )
        for key in fields:
            if key not in _KEYS:
                hint = _validate.did_you_mean(key, _KEYS)
                raise InvalidArgumentError(f"{where} has the unknown key {key[:80]!r}{hint}")
        read[name] = _limits(f"{where}.", name, fields, file.name)
    return read


def _limits(where: str, name: object, fields: Mapping[str, Any], origin: str) -> ModelLimits:
    """Return checked limits; *where* comes before the name of an argument in an error."""
    name = _validate.text("name", name)
    if not name:
        raise InvalidArgumentError(f"{where}name must not be empty")
    if fields.get("context_window") is None:
        raise InvalidArgumentError(f"{where}context_window is required")
    window = _validate.tokens(f"{where}context_window", fields["context_window"], minimum=1)
    numbers: dict[str, int | None] = {}
    for key in ("max_input_tokens", "max_output_tokens"):
        number = fields.get(key)
        if number is not None:
            number = _validate.tokens(where + key, number, minimum=1)
            if number > window:
                raise InvalidArgumentError(
                    f"{where}{key} must be at most the context_window {window}, not {number}"
                )
        numbers[key] = number
    texts: dict[str, str | None] = {}
    for key in ("encoding", "provider", "source"):
        value = fields.get(key)
        texts[key] = None if value is None else _validate.text(where + key, value)
    calibration = _factor(f"{where}calibration", fields.get("calibration"))
    encoding = texts["encoding"]
    if encoding is not None:
        _check_encoding(where, encoding)
    else:
        known = _find(name)
        encoding = known[0].encoding if known else _models.encoding_of(name)
        if calibration is None:
            calibration = known and known[0].calibration
        elif encoding is None:
            raise InvalidArgumentError(f"{where}calibration needs an encoding to go with")
    return ModelLimits(
        name=name,
        context_window=window,
        max_input_tokens=numbers["max_input_tokens"] or window,
        max_output_tokens=numbers["max_output_tokens"],
        encoding=encoding,
        calibration=calibration,
        provider=texts["provider"],
        known=True,
        source=texts["source"] or origin,
    )


def _factor(name: str, value: object) -> float | None:
    if value is None:
        return None
    return _validate.number_between(name, value, _FACTOR_MIN, _FACTOR_MAX)


def _check_encoding(where: str, encoding: str) -> None:
    if encoding not in NAMES and not encoding.startswith(("chars_per_token:", "tiktoken:", "hf:")):
        raise InvalidArgumentError(
            f"{where}encoding must be one of {', '.join(map(repr, NAMES))}, "
            f"not {encoding[:80]!r}{_validate.did_you_mean(encoding, NAMES)}"
        )
    try:
        meaning_of(encoding)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}encoding: {error}") from None
