"""The settings of a language model: its name, its window, and the reserve for its answer."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._count.limits import ModelLimits, model_limits
from budgeteer._count.resolve import get_counter
from budgeteer._files import decode, join, mapping, reason
from budgeteer._public import public
from budgeteer._pydantic import options_schema
from budgeteer.config import ConfigError, document_of
from budgeteer.errors import InvalidArgumentError

ENVIRONMENT = "BUDGETEER_LLM_"
"""The prefix of the environment variables of `LlmSettings.from_env`."""

SECTION = "llm"
"""The key of a file that may hold the settings."""

_SPELLINGS = {
    "model": ("model",),
    "context_window": ("context_window", "max_context_window", "context_window_size"),
    "max_output_tokens": ("max_output_tokens", "reserved_output_tokens"),
    "counter": ("counter",),
}
"""The spellings of a setting in files and the environment."""

_KNOWN = tuple(spelling for spellings in _SPELLINGS.values() for spelling in spellings)
_DEFAULT_COUNTER = "o200k_base"
_OUTPUT_SHARE = 4  # by default the answer has at most a quarter of the window


class ActiveModel(NamedTuple):
    """The figures of the model that requests need, made once for each `LlmSettings`."""

    name: str
    context_window: int
    max_input_tokens: int
    max_output_tokens: int
    counter: TokenCounter


@public("budgeteer.service")
@dataclass(frozen=True, slots=True)
class LlmSettings:
    """
    The model of a service, its window, and the part of it reserved for the answer.

    Immutable and picklable. At least one of *model* and *context_window* is required.

    Args:
        model: The model's name, as for `budgeteer.window.model_limits`, or a `ModelLimits`, whose
            own encoding then counts.
        context_window: The most tokens of input and answer together. It overrides the model's
            known window; None takes that.
        max_output_tokens: The tokens reserved for the answer. None is the model's own limit, at
            most a quarter of the window.
        counter: The counter, as for `budgeteer.get_counter`. None takes the model's, an estimate
            for a model that is unknown or whose tokenizer is not native.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        CounterError: A package or file that the counter needs is not installed or cannot be read.

    Examples:
        >>> settings = LlmSettings(model="gpt-4o", max_output_tokens=1_000)
        >>> settings.limits.context_window, settings.limits.max_output_tokens
        (128000, 1000)
        >>> LlmSettings(model="gpt-4", context_window=4096).limits.max_output_tokens
        1024

    """

    model: str | ModelLimits | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    counter: str | Callable[[str], int] | TokenCounter | None = None

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, ModelLimits):
            object.__setattr__(self, "model", _validate.text("model", self.model))
            if not self.model:
                raise InvalidArgumentError("model must not be empty")
        for name, minimum in (("context_window", 1), ("max_output_tokens", 0)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _validate.tokens(name, value, minimum=minimum))
        if self.model is None and self.context_window is None:
            raise InvalidArgumentError("model or context_window is required")
        active_model(self)  # refuses an unknown counter

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, or a mapping of its options."""
        return options_schema(cls)

    @property
    def limits(self) -> ActiveModel:
        """
        The figures that these settings give at present.

        ``name``, ``context_window``, ``max_input_tokens``, ``max_output_tokens`` and ``counter``.

        Examples:
            >>> LlmSettings(model="gpt-5", max_output_tokens=0).limits.max_input_tokens
            272000

        """
        return active_model(self)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> LlmSettings:
        """
        Read settings from a TOML or YAML file, as its suffix says.

        The settings are all the keys at the top, or those under ``llm``, beside which there may be
        others. A counter ``file:PATH`` is relative to the current directory.
        ``max_context_window`` and ``context_window_size`` are spellings of ``context_window``,
        ``reserved_output_tokens`` of ``max_output_tokens``. TOML needs Python 3.11, or
        ``pip install 'budgeteer[toml]'``; YAML needs ``pip install 'budgeteer[cli]'``.

        Raises:
            ConfigError: The file cannot be read, or a value is invalid; the message names the file
                and the key.
            InvalidArgumentError: *path* is not a path.

        Examples:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "service.yaml")
            ...     _ = path.write_text("llm: {max_context_window: 4096, model: gpt-4}")
            ...     LlmSettings.from_file(path).context_window
            4096

        """
        file = Path(_validate.path_like("path", path))
        try:
            document = _document(file)
            section = SECTION if isinstance(document, Mapping) and SECTION in document else ""
            return cls._of(document[SECTION] if section else document, section)
        except OSError as error:
            raise ConfigError(reason(error)) from error
        except (ValueError, RecursionError) as error:
            found = "nested too deeply" if isinstance(error, RecursionError) else error
            raise ConfigError(f"{file}: {found}") from None

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] | None = None, *, prefix: str = ENVIRONMENT
    ) -> LlmSettings:
        """
        Read settings from environment variables.

        ``BUDGETEER_LLM_MODEL``, ``BUDGETEER_LLM_CONTEXT_WINDOW``,
        ``BUDGETEER_LLM_MAX_OUTPUT_TOKENS`` and ``BUDGETEER_LLM_COUNTER``, and the other spellings
        of `from_file`. An empty variable counts as unset.

        Args:
            environ: The variables; None takes those of the process.
            prefix: The prefix of their names.

        Raises:
            InvalidArgumentError: A variable is invalid; the message names it.

        Examples:
            >>> variables = {"APP_MODEL": "gpt-4o", "APP_RESERVED_OUTPUT_TOKENS": "500"}
            >>> LlmSettings.from_env(variables, prefix="APP_").max_output_tokens
            500

        """
        variables = os.environ if environ is None else environ
        if not isinstance(variables, Mapping):
            raise InvalidArgumentError(
                f"environ must be a mapping, not {_validate.type_name(variables)}"
            )
        prefix = _validate.text("prefix", prefix)
        given: dict[str, object] = {}
        for spelling in _KNOWN:
            name = prefix + spelling.upper()
            value = variables.get(name)
            if not value:
                continue
            value = _validate.text(name, value)
            if spelling not in ("model", "counter"):
                given[name] = _number(name, value)
            else:
                given[name] = value
        if not given:
            raise InvalidArgumentError(f"{prefix}MODEL or {prefix}CONTEXT_WINDOW is required")
        return cls._of(given, "", lambda spelling: prefix + spelling.upper())

    @classmethod
    def _of(cls, values: object, section: str, spelt: Callable[[str], str] = str) -> LlmSettings:
        """Return the settings of a mapping; *spelt* turns a key into its spelling there."""
        found = mapping(section, values, tuple(map(spelt, _KNOWN)))
        settings: dict[str, Any] = {}
        spelt_as: dict[str, str] = {}
        for name, spellings in _SPELLINGS.items():
            keys = [spelt(key) for key in spellings if found.get(spelt(key)) is not None]
            if len(keys) > 1:
                first, second = (join(section, key) for key in keys[:2])
                raise InvalidArgumentError(f"{first} and {second} are the same; give one of them")
            if keys:
                settings[name] = found[keys[0]]
                spelt_as[name] = key = join(section, keys[0])
                if name in ("model", "counter"):
                    _validate.text(key, settings[name])
                else:
                    minimum = int(name == "context_window")
                    settings[name] = _validate.tokens(key, settings[name], minimum=minimum)
        try:
            return cls(**settings)
        except InvalidArgumentError as error:
            message = str(error)
            if section:
                raise InvalidArgumentError(f"{section}: {message}") from None
            name = next((name for name in spelt_as if message.startswith(f"{name} ")), "")
            shown = spelt_as.get(name, "")
            raise InvalidArgumentError(shown + message.removeprefix(name)) from None


def active_model(settings: LlmSettings) -> ActiveModel:
    """
    Return the figures that *settings* give.

    A given window overrides the model's. The model's own input limit still applies, unless the
    given window is larger than the window that limit belongs to.
    """
    model, window = settings.model, settings.context_window
    if model is None:
        assert window is not None  # noqa: S101 - LlmSettings has checked
        output = window // _OUTPUT_SHARE
        counter = get_counter(_DEFAULT_COUNTER if settings.counter is None else settings.counter)
        return ActiveModel("", window, window, _output(settings, output), counter)
    limits = model_limits(model)
    _validate.tokens("context_window", limits.context_window, minimum=1)  # limits made by a caller
    max_input = limits.max_input_tokens
    if window is None:
        window = limits.context_window
    elif window > limits.context_window:
        max_input = window
    largest = limits.max_output_tokens
    output = window // _OUTPUT_SHARE if largest is None else min(largest, window // _OUTPUT_SHARE)
    return ActiveModel(
        limits.name,
        window,
        min(window, max_input),
        _output(settings, output),
        get_counter(limits if settings.counter is None else settings.counter),
    )


def _output(settings: LlmSettings, default: int) -> int:
    return default if settings.max_output_tokens is None else settings.max_output_tokens


def _number(name: str, value: str) -> int:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 40):
        raise InvalidArgumentError(f"{name} must be a whole number, not {value[:80]!r}")
    return int(value)


def _document(file: Path) -> Any:
    text = decode(file.read_bytes())
    suffix = file.suffix.lower()
    if suffix == ".toml":
        return _toml(text)
    if suffix in (".yaml", ".yml"):
        return document_of(text)
    raise InvalidArgumentError(
        f"the name must end with .toml, .yaml or .yml, not {file.suffix[:80]!r}"
    )


def _toml(text: str) -> Any:
    for name in ("tomllib", "tomli"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        return library.loads(text)  # raises a ValueError
    raise InvalidArgumentError(
        "reading it needs Python 3.11 or tomli: pip install 'budgeteer[toml]'"
    )
