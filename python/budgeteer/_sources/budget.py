"""The budget of a configuration: the options of a packer, in Packer's words or in older ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from budgeteer import _validate
from budgeteer._codes import FILE, HF
from budgeteer._files import mapping
from budgeteer._pack.options import STYLES, Overflow
from budgeteer._pack.packer import Packer
from budgeteer._pack.template import Template
from budgeteer._rank.rankings import (
    KINDS_BY_WORDS,
    NAMES,
    Bm25,
    Embedding,
    Hybrid,
    Lexical,
    Ranking,
    RankingName,
    ranked,
)
from budgeteer._sources.embedder import embedder_of, in_yaml
from budgeteer.errors import BudgeteerError, InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer.embedding import OpenAIEmbedder

T = TypeVar("T")

_OPTIONS = tuple(item.name for item in fields(Packer) if item.init)
_OLDER = {"estimator": "counter", "truncation": "overflow"}
"""The older names of options."""

KEYS = (*_OPTIONS, "embedding", *_OLDER)

_RANKINGS: dict[str, RankingName] = {"relevance": "keyword", "manual": "input"}
_TRUNCATIONS: dict[str, Overflow] = {
    "drop": "skip",
    "truncate_end": "truncate_end",
    "truncate_middle": "truncate_middle",
}
"""The older values of options."""

MAX_TOKENS = 8_000

OLDER_DEFAULTS: dict[str, Any] = {
    "max_tokens": MAX_TOKENS,
    "reserve_tokens": 0,
    "counter": "chars_div4",
    "ranking": "keyword",
    "min_score": None,
    "overflow": "skip",
    "max_chunks": None,
    "dedupe": None,
    "selection": "rank",
    "units": "chunk",
    "order": "rank",
    "template": "plain",
    "notice": None,
}
"""The defaults of a budget with an older spelling: all of them, so that Packer decides none."""

_WITH_OPTIONS = (*KINDS_BY_WORDS, "embedding", "hybrid")


def budget_of(value: object, base: Path) -> tuple[Packer, OpenAIEmbedder | None]:
    """
    Return the packer, and the embedder if there is one, of the section ``budget``.

    Args:
        value: The section; None is one that says nothing.
        base: The directory of relative paths.

    Raises:
        InvalidArgumentError: The section is invalid.

    """
    said = {**mapping("budget", {} if value is None else value, KEYS)}
    section = said.pop("embedding", None)
    embedder = None if section is None else embedder_of("budget.embedding", section, base)
    keys = {name: name for name in _OPTIONS}
    is_older = _rename(said, keys)
    options = {**(OLDER_DEFAULTS if is_older else {"max_tokens": MAX_TOKENS}), **said}
    _validate.tokens("budget.max_tokens", options["max_tokens"], minimum=1)
    if "counter" in said:
        options["counter"] = _counter(f"budget.{keys['counter']}", said["counter"], base)
    if "ranking" in said:
        options["ranking"] = _ranking("budget.ranking", said["ranking"], embedder)
    if isinstance(said.get("template"), dict):
        options["template"] = _template("budget.template", said["template"])
    try:
        return Packer(**options), embedder
    except BudgeteerError as error:
        message = in_yaml(str(error))
    name, _, rest = message.partition(" ")
    if name not in keys:  # else it starts with the option
        name, rest = "counter", message
        keys["counter"] += ":"
    raise InvalidArgumentError(f"budget.{keys[name]} {rest}")


def _rename(said: dict[str, Any], keys: dict[str, str]) -> bool:
    """
    Replace the older spellings in *said*, and return whether there was one.

    Args:
        said: The keys and values of a budget.
        keys: The key of each option, for errors.

    """
    older = [name for name in _OLDER if name in said]
    for name in older:
        option = _OLDER[name]
        if option in said:
            raise InvalidArgumentError(
                f"budget.{name} is the older name of budget.{option}: give one of them, not both "
                f"{said[name]!r:.80} and {said[option]!r:.80}"
            )
        keys[option] = name
        said[option] = said.pop(name)
    if "truncation" in older:
        word = _validate.choice("budget.truncation", said["overflow"], tuple(_TRUNCATIONS))
        said["overflow"] = _TRUNCATIONS[word]
    ranking = said.get("ranking")
    if isinstance(ranking, str) and ranking in _RANKINGS:
        said["ranking"] = _RANKINGS[ranking]
        return True
    return bool(older)


def _counter(key: str, value: object, base: Path) -> str:
    name = _validate.text(key, value)
    kind, _, path = name.partition(":")
    is_path = name.startswith((FILE, HF)) and path
    return f"{kind}:{base / path}" if is_path else name


def _ranking(key: str, value: object, embedder: OpenAIEmbedder | None) -> Ranking:
    names = (*NAMES, *_RANKINGS)
    if isinstance(value, dict):
        if len(value) != 1:
            raise InvalidArgumentError(f"{key} must have one ranking, not {len(value)}")
        ((name, options),) = mapping(key, value, _WITH_OPTIONS).items()
        if name in KINDS_BY_WORDS:
            return _by_words(f"{key}.{name}", KINDS_BY_WORDS[name], options)  # type: ignore[no-any-return]
    elif isinstance(value, str):
        name, options = _validate.choice(key, value, names), {}
    else:
        raise InvalidArgumentError(
            f"{key} must be one of {', '.join(map(repr, names))}, or a mapping such as "
            f"{{bm25: {{stemming: german}}}}, not {_validate.type_name(value)}"
        )
    if name == "embedding":
        return _embedding(f"{key}.{name}", options, embedder)
    if name == "hybrid":
        return _hybrid(f"{key}.{name}", options, embedder)
    return name  # type: ignore[return-value]  # it is one of them


def _by_words(key: str, kind: Any, value: object) -> Any:
    return _made(key, kind, mapping(key, value, _names(kind, "statistics")))


def _either(key: str, value: object) -> Lexical | Bm25:
    """Return a ranking by words: its name, its name with options, or the options of BM25."""
    if isinstance(value, str):
        value = {_validate.choice(key, value, tuple(KINDS_BY_WORDS)): {}}
    if isinstance(value, dict) and len(value) == 1:
        ((name, options),) = value.items()
        if name in KINDS_BY_WORDS:
            return _by_words(f"{key}.{name}", KINDS_BY_WORDS[name], options)  # type: ignore[no-any-return]
    return _by_words(key, Bm25, value)  # type: ignore[no-any-return]


def _embedding(key: str, value: object, embedder: OpenAIEmbedder | None) -> Embedding:
    options = {**mapping(key, value, _names(Embedding, "embedder"))}
    if embedder is None:
        ranking = key.split(".")[2]
        raise InvalidArgumentError(
            f"budget.embedding is required when budget.ranking is {ranking!r}"
        )
    if isinstance(options.get("fallback"), dict):
        options["fallback"] = _either(f"{key}.fallback", options["fallback"])
    return _made(key, Embedding, {**options, "embedder": embedder})


def _hybrid(key: str, value: object, embedder: OpenAIEmbedder | None) -> Hybrid:
    options = {**mapping(key, value, _names(Hybrid))}
    weights = _made(key, Hybrid, {"weights": options.get("weights")})
    if ranked(weights).needs.cosines:
        section = options.get("embedding", {})
        options["embedding"] = _embedding(f"{key}.embedding", section, embedder)
    elif "embedding" in options:
        raise InvalidArgumentError(
            f"{key}.embedding must be left out where weights has none for 'embedding'"
        )
    if "bm25" in options:
        options["bm25"] = _either(f"{key}.bm25", options["bm25"])
    return _made(key, Hybrid, options)


def _template(key: str, value: object) -> Template:
    options = mapping(key, value, _names(Template))
    if "format" not in options:
        raise InvalidArgumentError(
            f"{key}.format is required: one of {', '.join(map(repr, STYLES))}, or a format string"
        )
    return _made(key, Template, options)


def _names(kind: Any, *without: str) -> tuple[str, ...]:
    """Return the options of a dataclass."""
    return tuple(item.name for item in fields(kind) if item.init and item.name not in without)


def _made(key: str, kind: Callable[..., T], options: Mapping[str, Any]) -> T:
    try:
        return kind(**options)
    except InvalidArgumentError as error:  # its message starts with the option
        message = in_yaml(str(error))
    what = "a key of " if message.startswith("a key of ") else ""
    raise InvalidArgumentError(f"{what}{key}.{message.removeprefix(what)}")
