"""
The table of models: windows, limits and encodings, which a caller may extend.

The table is ``models.json``, written by ``scripts/generate_models.py`` and read on first use. The
models of the file that ``BUDGETEER_MODELS`` names override it, and those of `register_model` and
`load_models` override both; the latest call wins.

An unknown name is neither an error nor a Python warning: it gets the limits of the longest known
name in it, or a default, and a log line. A service reads its log rather than its standard error,
and Python shows a warning once for a line of code, where here it is once for a name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

from budgeteer import _models, _validate
from budgeteer._codes import FILE, HF, TIKTOKEN
from budgeteer._count import model_names, models_file, ways
from budgeteer._count.names import NAMES, meaning_of
from budgeteer._log import log
from budgeteer._process import RenewedLock
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

VARIABLE = "BUDGETEER_MODELS"
"""The environment variable that names a file of models."""

_PREFIXES = ("chars_per_token:", TIKTOKEN, FILE, HF)
_WARNED_MAX = 1_000
_WARNED_CHARS = 256  # of a name: longer ones that begin alike are told once
_FACTOR_MIN, _FACTOR_MAX = 0.01, 100.0
_UNPUBLISHED = ("claude", "grok")
"""What is in the names of models whose tokenizers nobody published."""


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
        encoding: The name of its encoding. None takes that of the model of this *name*, or counts
            as for an unknown one.
        calibration: The model's tokens for each token of that encoding, if its own tokenizer is
            not native or not published. None if the encoding is exact; 1.0 only marks counts as
            estimates.
        provider: The maker of the model; None if unknown.
        known: Whether the name was found. If not, the figures are a guess.
        source: Where the figures come from: ``document``, ``litellm`` with its version and the
            date of the table, ``registered``, the ``source`` that a file states or the file's
            name, or ``unknown``.
        guessed_from: The known name inside an unknown one, whose figures these are; else None.

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
    guessed_from: str | None = None

    def __post_init__(self) -> None:
        for name in ("name", "encoding", "provider", "source", "guessed_from"):
            value = getattr(self, name)
            if value is not None or name in ("name", "source"):
                _validate.text(name, value)
        for name in ("context_window", "max_input_tokens", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None or name != "max_output_tokens":
                object.__setattr__(self, name, _validate.tokens(name, value))
        _factor("calibration", self.calibration)
        object.__setattr__(self, "known", _validate.flag("known", self.known))

    def to_dict(self) -> dict[str, Any]:
        """
        Return a dict of all attributes.

        Examples:
            >>> model_limits("gpt-4").to_dict()["context_window"]
            8192

        """
        return asdict(self)


_lock = RenewedLock()
_own: dict[str, ModelLimits] = {}  # replaced, never changed, so that readers need no lock
_warned: dict[str, None] = {}


def model_limits(name: str | ModelLimits, *, strict: bool = False) -> ModelLimits:
    """
    Return the limits of the model *name*.

    The whole name is looked up first, then the name without the prefix of a provider, host or
    region (``openai/``, ``bedrock/us.anthropic.``, ``ft:``), then its longest beginning that is a
    known name and ends before one of ``-``, ``:``, ``@`` and ``/``: ``gpt-4o-2024-11-20`` gets the
    limits of ``gpt-4o``, and ``gpt-4.1`` never those of ``gpt-4``. Then all of what is after the
    last slash: ``gpt-4o`` in ``acme/gpt-4o``. Where a known name has small letters, capitals stand
    for them: ``GPT-4O`` is ``gpt-4o``. A version whose window is its own, larger or smaller, needs
    `register_model` where the table lacks it.

    Any other name is a guess, with ``known=False``. The longest known name in it decides, and is
    in ``guessed_from``: ``gpt-4o`` in ``azure/My-GPT-4o-deployment``. It starts the name or comes
    after ``.``, ``_`` or one of the signs above, ends the name or comes before ``_`` or one of
    those signs, and may have capitals; among equally long ones the last wins. Without any, the
    window is 32768, and a part that starts with a family's name decides how the model counts:
    ``qwen3:8b`` counts as Qwen does. A guess is logged once for each name, as a warning of the
    logger ``budgeteer``. No network is used.

    Args:
        name: The name of a model. A `ModelLimits` is returned as it is.
        strict: Whether to raise an error instead of guessing.

    Raises:
        InvalidArgumentError: *name* is neither; the file that ``BUDGETEER_MODELS`` names is not
            valid for `load_models`; or *strict*, and the name is not known.

    Examples:
        >>> model_limits("openai/gpt-4o-2024-11-20").context_window
        128000
        >>> model_limits("gpt-5").max_input_tokens, model_limits("gpt-5").context_window
        (272000, 400000)
        >>> model_limits("claude-sonnet-4-5-20250929").encoding
        'claude3'
        >>> guess = model_limits("azure/my-gpt-4o-deployment")
        >>> guess.context_window, guess.known, guess.guessed_from
        (128000, False, 'gpt-4o')

    """
    strict = _validate.flag("strict", strict)
    limits = name if isinstance(name, ModelLimits) else _limits_of(_validate.text("model", name))
    if strict and not limits.known:
        known = (*_own, *_environment(), *_table().models)
        hint = "" if limits.guessed_from is None else f", only {limits.guessed_from[:80]!r} in it"
        raise InvalidArgumentError(
            f"model {limits.name[:80]!r} is not known{hint}; {_REMEDY}"
            f"{_validate.did_you_mean(limits.name, known)}"
        )
    if not limits.known and not isinstance(name, ModelLimits):
        _warn_of_guess(limits)
    return limits


def _limits_of(name: str) -> ModelLimits:
    return find(name) or _unknown(name)


def _unknown(name: str) -> ModelLimits:
    """Return the limits of a model that the table does not have, with what tells how it counts."""
    unknown = replace(_table().unknown, name=name)
    encoding, factor = _counting_of_unknown(name)
    return unknown if encoding is None else replace(unknown, encoding=encoding, calibration=factor)


def _counting_of_unknown(name: str) -> tuple[str | None, float | None]:
    """Return how tiktoken or the family of a model counts; None without both."""
    encoding = _tiktokens(name)
    if encoding is not None:
        return encoding, None
    way = ways.of_family(name)
    return (None, None) if way is None else (way.encoding, way.calibration)


def _tiktokens(name: str) -> str | None:
    """Return the encoding that tiktoken has for a model, in capitals too."""
    return _models.encoding_of(name) or _models.encoding_of(model_names.fold(name))


_REMEDY = "register_model states its limits, load_models('litellm') reads those that litellm knows"


def _warn_of_guess(limits: ModelLimits) -> None:
    if not _is_new(limits.name):
        return
    found = limits.guessed_from
    log().warning(
        "model %.80r is not known: unless given, its context window is taken to be %d%s; %s",
        limits.name,
        limits.context_window,
        "" if found is None else f", as that of {found[:80]!r} in its name",
        _REMEDY,
        extra={
            "code": "model_not_known",
            "model": limits.name[:80],
            "context_window": limits.context_window,
            "guessed_from": found and found[:80],
        },
    )


def warn_of_estimate(name: str, encoding: str, factor: float) -> None:
    """Warn once that the model *name* counts by an estimate; not of a caller's own factor."""
    if name[:_WARNED_CHARS] in _warned:
        return
    known = shipped(name)
    if (encoding, factor) != (known.encoding, known.calibration):
        return
    if known.guessed_from is not None:
        _warn_of_guess(known)
    elif _is_new(name):
        log().warning(
            "model %.80r counts by an estimate: the tokens of %s times %g; %s",
            *(name, encoding, factor, exact_remedy(name)),
            extra={
                "code": "model_estimated",
                "model": name[:80],
                "encoding": encoding,
                "calibration": factor,
            },
        )


def shipped(name: str) -> ModelLimits:
    """Return what is shipped of a model, with what counts for it here."""
    found = _find(name)
    known = found[0] if found else _unknown(name)
    if known.encoding in _models.NATIVE:
        return known
    encoding, factor = unknown_encoding()
    return replace(known, encoding=encoding, calibration=factor)


def source_of_factor(name: str, encoding: str, factor: float) -> str:
    """Return where the factor of a model comes from."""
    known = shipped(name)
    if (encoding, factor) != (known.encoding, known.calibration):
        return "stated by the caller"
    return ways.source_of(name, encoding, factor, known.guessed_from)


def exact_remedy(name: str) -> str:
    """Return what counts exactly for a model that is not native, or what changes its factor."""
    encoding = _tiktokens(name)
    if encoding is not None and encoding not in _models.NATIVE:
        return f"'tiktoken:{encoding}' counts it exactly"
    if any(maker in model_names.fold(name) for maker in _UNPUBLISHED):
        return (
            "its tokenizer is not published: register_model(..., calibration=...) changes the "
            "factor"
        )
    return (
        "'file:PATH' counts exactly with its tokenizer.json, where that is published, and so does "
        "its name where a folder in BUDGETEER_TOKENIZERS has it"
    )


def _is_new(name: str) -> bool:
    """Return whether nothing was logged of the model *name* before."""
    name = name[:_WARNED_CHARS]
    if name in _warned:
        return False
    with _lock.now:
        if name in _warned:
            return False
        if len(_warned) >= _WARNED_MAX:
            _warned.clear()
        _warned[name] = None
        return True


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
            None takes what is known of the name, or the estimate of an unknown model.
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
    fields = dict(zip(models_file.KEYS, (*values, provider, source), strict=True))
    limits = _limits("", name, fields, "registered")
    _add({limits.name: limits})
    return limits


def load_models(path: str | os.PathLike[str]) -> list[ModelLimits]:
    """
    Register every model of a JSON file, and return them; none if one of them is invalid.

    The file is an object like ``{"models": {"acme-7b": {"context_window": 32000}}}``, with the
    arguments of `register_model` as keys, or has the form of litellm's
    ``model_prices_and_context_window.json``. Of that file ``max_input_tokens``,
    ``max_output_tokens``, ``max_tokens``, ``mode`` and ``litellm_provider`` are read, also numbers
    that are texts (``"4096"``); entries without a window, and those of models that take or make no
    text, are left out.

    ``load_models("litellm")`` reads that file of the installed litellm, without importing it. The
    file that the environment variable ``BUDGETEER_MODELS`` names, or ``litellm``, is read when a
    model is first looked up.

    Args:
        path: The path of the file, or ``litellm``. A file of that name is ``./litellm``.

    Raises:
        InvalidArgumentError: The file cannot be read or has neither form, or litellm is not
            installed; the message names the file and the key.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "models.json")
        ...     _ = path.write_text('{"models": {"acme-8b": {"context_window": 64000}}}')
        ...     [limits] = load_models(path)
        ...     _ = path.write_text('{"acme-9b": {"max_input_tokens": 9000, "mode": "chat"}}')
        ...     [like_litellm] = load_models(path)
        >>> limits.context_window, limits.source, like_litellm.context_window
        (64000, 'models.json', 9000)

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
    known = {**_table().models, **_environment(), **_own}
    return sorted(known.values(), key=lambda limits: (limits.provider or "", limits.name))


def find(name: str) -> ModelLimits | None:
    """Return the limits of *name*, under that name, or None."""
    found = _find(name, (_own, _environment()))
    return found and found[0]


def encoding_of(name: str) -> tuple[str | None, float | None]:
    """
    Return the encoding of a model, None if nothing is known of it, and its factor if any.

    Registered models come first, then tiktoken's names, then the table, then families.
    """
    found = find(name)
    if found is None:
        return _counting_of_unknown(name)
    return found.encoding, found.calibration


def unknown_encoding() -> tuple[str, float]:
    """Return the encoding and the factor that an unknown model counts by."""
    unknown = _table().unknown
    assert unknown.encoding is not None and unknown.calibration is not None  # noqa: S101, PT018
    return unknown.encoding, unknown.calibration


def _find(
    name: str, own: tuple[Mapping[str, ModelLimits], ...] = ()
) -> tuple[ModelLimits, bool] | None:
    """Return the limits of *name*, from *own* or as shipped, and whether they are from *own*."""
    for candidate in model_names.beginnings(name, ways.prefixes()):
        found = _known(candidate, name, own) or _known(model_names.fold(candidate), name, own)
        if found is not None:
            return found
    for part in model_names.parts(name):
        for candidate in (part, model_names.fold(part)):
            found = _known(candidate, name, own)
            if found is not None:
                limits, is_own = found
                factor = limits.calibration
                if factor is None and _tiktokens(name) is None:
                    factor = 1.0  # the encoding is a guess, too
                guess = replace(limits, calibration=factor, known=False, guessed_from=candidate)
                return guess, is_own
    return None


def _known(
    candidate: str, name: str, own: tuple[Mapping[str, ModelLimits], ...]
) -> tuple[ModelLimits, bool] | None:
    """Return the limits that are known under *candidate*, for *name*, and whether from *own*."""
    for layer in own:
        if candidate in layer:
            return replace(layer[candidate], name=name), True
    table = _table()
    limits = table.models.get(table.aliases.get(candidate, candidate))
    if limits is None:
        return None
    encoding = _tiktokens(name)  # tiktoken's names come first
    way = ways.of_family(name, model_names.fold(candidate))  # a longer name knows more
    if encoding is not None:
        limits = replace(limits, encoding=encoding, calibration=None)
    elif way is not None:
        limits = replace(limits, encoding=way.encoding, calibration=way.calibration)
    return replace(limits, name=name), False


def _add(read: Mapping[str, ModelLimits]) -> None:
    global _own  # noqa: PLW0603 - the registry of the process
    with _lock.now:
        _own = {**_own, **read}


class _Table(NamedTuple):
    """What is shipped of limits: models, their other names, and what is not known."""

    models: dict[str, ModelLimits]
    aliases: dict[str, str]
    unknown: ModelLimits


@cache
def _table() -> _Table:
    document = ways.document()

    def limits(name: str, counting: str, **fields: Any) -> ModelLimits:
        encoding, factor, _ = ways.known()[counting]
        return ModelLimits(name=name, encoding=encoding, calibration=factor, **fields)

    models = {
        name: limits(name, known=True, **fields) for name, fields in document["models"].items()
    }
    unknown = limits(
        "",
        max_input_tokens=document["unknown"]["context_window"],
        max_output_tokens=None,
        provider=None,
        known=False,
        source="unknown",
        **document["unknown"],
    )
    return _Table(models, document["aliases"], unknown)


def _environment() -> dict[str, ModelLimits]:
    """Return the models of the file that the environment names."""
    path = os.environ.get(VARIABLE)
    return _environment_file(path) if path else {}


@lru_cache(maxsize=4)  # a process may change its environment
def _environment_file(path: str) -> dict[str, ModelLimits]:
    try:
        return _read(path)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{VARIABLE}: {error}") from None


def _read(path: str | os.PathLike[str]) -> dict[str, ModelLimits]:
    return {
        name: _limits(f"{where}.", name, fields, origin)
        for where, name, fields, origin in models_file.entries(path)
    }


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
    encoding, calibration = _counting(where, name, texts["encoding"], calibration)
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


def _counting(
    where: str, name: str, encoding: str | None, calibration: float | None
) -> tuple[str, float | None]:
    """Return the encoding and the factor that are stated, or else those that are known."""
    if encoding is not None:
        _check_encoding(where, encoding)
        return encoding, calibration
    known = _find(name)
    if known is None:
        encoding, factor = _counting_of_unknown(name)
    else:
        encoding, factor = known[0].encoding, known[0].calibration
    if encoding is None and calibration is not None:
        raise InvalidArgumentError(f"{where}calibration needs an encoding to go with")
    if encoding is None:
        return unknown_encoding()
    return encoding, factor if calibration is None else calibration


def _factor(name: str, value: object) -> float | None:
    if value is None:
        return None
    return _validate.number_between(name, value, _FACTOR_MIN, _FACTOR_MAX)


def no_encoding(where: str, encoding: str) -> InvalidArgumentError:
    """Return the error for what counts nothing; *where* names it."""
    if encoding in _models.MODELS_OF:
        hint = f"; did you mean {TIKTOKEN + encoding!r}?"
    elif (own := _tiktokens(encoding)) is not None:
        shown = _models.NATIVE.get(own, TIKTOKEN + own)
        hint = f", which is a model: its encoding is {shown!r}"
    else:
        hint = _validate.did_you_mean(encoding, NAMES)
    return InvalidArgumentError(
        f"{where} must be one of {', '.join(map(repr, NAMES))}, not {encoding[:80]!r}{hint}"
    )


def _check_encoding(where: str, encoding: str) -> None:
    if encoding not in NAMES and not encoding.startswith(_PREFIXES):
        raise no_encoding(f"{where}encoding", encoding)
    try:
        meaning_of(encoding)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}encoding: {error}") from None
