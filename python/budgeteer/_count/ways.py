"""The ways to count of models and families: an encoding, and a factor if it is another model's."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

from budgeteer._count import model_names

_UNKNOWN = "other"
"""The way to count of a model that nobody knows."""


class Way(NamedTuple):
    """A way to count: an encoding, and a factor with its source if it is another model's."""

    encoding: str
    calibration: float | None
    source: str | None


@cache
def document() -> dict[str, Any]:
    """Return the table of models as it is shipped."""
    import json  # slow to load with pathlib, and many programs name no model
    from pathlib import Path

    return json.loads(Path(__file__).with_name("models.json").read_text("utf-8"))  # type: ignore[no-any-return]


@cache
def known() -> dict[str, Way]:
    """Return every way to count, by its name. One that is only believed ends in "?"."""
    return {name: Way(**fields) for name, fields in document()["counting"].items()}


@cache
def prefixes() -> tuple[str, ...]:
    """Return the prefixes of providers, hosts and regions."""
    return tuple(document()["prefixes"])


def of_family(name: str, longer_than: str = "") -> Way | None:
    """
    Return how the family of a model counts, None without any.

    Of several ways to count, none is known to be the model's, and it counts as an unknown one. If
    *longer_than* is given, the family's name begins with it and is longer.

    Examples:
        >>> of_family("qwen3-8b").encoding, of_family("my-qwen3").calibration
        ('qwen2', 1.0)

    """
    found = [
        (known()[way], is_whole)
        for family, way, is_whole in _families(name)
        if family.startswith(longer_than) and family != longer_than
    ]
    if not found:
        return None
    way, is_whole = found[0]
    if any(other != way for other, _ in found):
        return known()[_UNKNOWN]
    if way.calibration is None and not is_whole:
        return way._replace(calibration=1.0)  # a model of another maker, or a newer one
    return way


def file_names(name: str) -> list[str]:
    """
    Return the names under which a file may have the tokenizer of a model, the best first.

    Examples:
        >>> file_names("meta/Llama-3.1:70b")
        ['meta/Llama-3.1:70b', 'Llama-3.1:70b', 'Llama-3.1', 'llama-3.1', 'llama-3', 'llama3']

    """
    bare = model_names.bare(name, prefixes())
    names = [*bare, *(it.rpartition("/")[2] for it in bare), bare[-1].partition(":")[0]]
    families = _families(name)
    if len(families) == 1:
        ((family, way, is_whole),) = families
        is_sure = is_whole and way != _UNKNOWN and not way.endswith("?")
        if is_sure and known()[way].calibration is not None:
            names += [family, way, way.replace("-", "")]
    return [it for it in dict.fromkeys(names) if it]


def source_of(name: str, encoding: str, factor: float, guessed_from: str | None) -> str:
    """Return where the factor that is shipped for a model comes from."""
    same = {
        key: way.source or ""
        for key, way in known().items()
        if (way.encoding, way.calibration) == (encoding, factor)
    }
    families = [way for _, way, _ in _families(name)]
    for key in (*families, f"{encoding}?", _UNKNOWN):
        if key in same:
            return same[key]
    if guessed_from is not None:
        return f"believed to count as {guessed_from[:80]}, which is in its name"
    return next(iter(same.values()))


_LONGEST_KEPT = 256
"""How long a name may be whose families are kept."""


def _families(name: str) -> tuple[tuple[str, str, bool], ...]:
    """Return each family in a name, its way to count, and whether it is the whole name's."""
    return _kept_families(name) if len(name) <= _LONGEST_KEPT else _found_families(name)


@lru_cache(maxsize=64)  # a program names few models, and some of them in every call
def _kept_families(name: str) -> tuple[tuple[str, str, bool], ...]:
    return _found_families(name)


def _found_families(name: str) -> tuple[tuple[str, str, bool], ...]:
    ways = document()["families"]
    found = model_names.families(name, ways, prefixes())
    return tuple((family, ways[family], is_whole) for family, is_whole in found)
