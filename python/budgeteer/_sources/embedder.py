"""The settings of an embedder in a configuration, and what it warns of."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._files import mapping, one_line
from budgeteer._log import log
from budgeteer._rank.similarity import Vectors
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._chunk.chunk import Chunk
    from budgeteer.embedding import OpenAIEmbedder

_CACHE_DIR = ".context_router_embeddings"
_PATHS = ("cache_dir", "ca_file")
_FOR_MANY = ("cache_dir", "max_cache_bytes", "batch_size", "max_batch_bytes", "max_concurrency")
"""The options without a use where nothing but queries is embedded."""

_KEYWORD = re.compile(r"(?<!['\"\w])([a-z_]+)=(?:'(\w+)'|(None|True|False)\b)")
_CONSTANT = re.compile(r"(?<!not )(?<!['\"\w])(?:None|True|False)(?!['\"\w])")
_YAML = {"None": "null", "True": "true", "False": "false"}
_TEMPLATE = re.compile(r"(?<=is given as )Template\((.*)\)$", re.DOTALL)
_OBJECTS = {
    "be Bm25()": "be left out",
    "a Lexical, a Bm25": "a mapping",
    "a Bm25": "a mapping",
    "a Template or a Prompt": "a mapping",
    "a format string or a function": "a format string",
    "a str or a function from a chunk to a str": "a str",
    "a Template": "a mapping",
}
_WARNED_MAX = 10_000
_SHOWN = 500
"""How many characters of a place are shown: the id of a chunk is its owner's."""


def in_yaml(message: str) -> str:
    """
    Return an error about an argument in the words of a YAML file.

    Examples:
        >>> in_yaml("units must be 'chunk' under dedupe='near'")
        "units must be 'chunk' under dedupe: near"
        >>> in_yaml("dedupe must be 'exact', 'near' or None, not 'None'")
        "dedupe must be 'exact', 'near' or null, not 'None'"

    """
    message = _KEYWORD.sub(lambda found: f"{found[1]}: {found[2] or found[3]}", message)
    for found, meant in _OBJECTS.items():
        message = message.replace(found, meant)
    message = _TEMPLATE.sub(lambda found: f"{{format: {found[1]}}}", message)
    return _CONSTANT.sub(lambda found: _YAML[found[0]], message)


def embedder_of(
    key: str, value: object, base: Path, *, is_for_queries: bool = False
) -> OpenAIEmbedder:
    """
    Return the embedder that the section *value* of a configuration describes.

    It cuts texts above its model's limit, unless the section says ``truncate: false`` or the limit
    is not known.

    Args:
        key: The section's own key, for errors.
        value: The section.
        base: The directory of relative paths.
        is_for_queries: Whether it embeds queries alone, which need neither cache nor batches.

    Raises:
        InvalidArgumentError: The section is invalid.

    """
    from budgeteer.embedding import OpenAIEmbedder
    from budgeteer.embedding._protocol import limit_of

    known = tuple(item.name for item in fields(OpenAIEmbedder) if item.init)
    if is_for_queries:
        known = tuple(name for name in known if name not in _FOR_MANY)
    given: dict[str, Any] = {} if is_for_queries else {"cache_dir": _CACHE_DIR}
    given |= mapping(key, value, known)
    for name in _PATHS:
        if given.get(name) is not None and _validate.text(f"{key}.{name}", given[name]):
            given[name] = base / given[name]
    try:
        embedder = OpenAIEmbedder(**given)
    except InvalidArgumentError as error:  # its message starts with the option
        message = in_yaml(str(error))
    else:
        is_cutting = "truncate" not in given and limit_of(embedder) is not None
        return replace(embedder, truncate=True) if is_cutting else embedder
    raise InvalidArgumentError(f"{key}.{message}")


def check_sizes(
    embedder: OpenAIEmbedder, chunks: Sequence[Chunk], places: Sequence[str], *, is_strict: bool
) -> None:
    """
    Warn of chunks that the embedder will cut, once in a process for each of them.

    Args:
        embedder: The embedder of a configuration.
        chunks: The chunks that it will embed.
        places: The file or source of each, and its id or number there.
        is_strict: Whether a chunk that the embedder will refuse is an error here.

    Raises:
        InvalidArgumentError: A chunk is too long for an embedder that cuts none, and *is_strict*.

    """
    from budgeteer.embedding._job import excessive
    from budgeteer.embedding._protocol import limit_of

    limit = limit_of(embedder)
    texts = Vectors("", chunks, None, embedder).texts
    if limit is None or texts is None or not (embedder.truncate or is_strict):
        return
    for text, place in zip(texts, places, strict=True):
        tokens = excessive(embedder, text)
        if tokens is None:
            continue
        if not embedder.truncate:
            raise InvalidArgumentError(
                f"{_shown(place)} has {tokens} tokens, more than the {limit} that "
                f"{embedder.model[:80]!r} takes; budget.embedding.truncate: true cuts what is "
                f"embedded"
            )
        _warn_of_cut(_shown(place), tokens, limit, embedder.model)


@functools.lru_cache(_WARNED_MAX)  # told once: a service reads its sources for each query
def _warn_of_cut(place: str, tokens: int, limit: int, model: str) -> None:
    log().warning(
        "%s has %d tokens, more than the %d that %.80r takes: the rest is not embedded",
        *(place, tokens, limit, model),
        extra={
            "source": place,
            "tokens": tokens,
            "max_input_tokens": limit,
            "model": model,
        },
    )


def _shown(place: str) -> str:
    return one_line(place[:_SHOWN])
