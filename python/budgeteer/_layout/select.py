"""Chooses among tools that are too many: by a question, and each with its whole schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._messages.shapes import as_json, fields_of, mapping, tool_fields
from budgeteer.errors import InvalidArgumentError

Select: TypeAlias = Literal["bm25"]
SELECTS: tuple[Select, ...] = get_args(Select)

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def tool_name(where: str, tool: Any) -> str:
    """Return the name of a tool; *where* names it in an error."""
    fields = mapping(where, tool)
    name = tool_fields(fields).get("name", fields.get("type"))
    return _validate.text(f"{where}['name']", name)


def checked_names(keep: object, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of *keep*, each of which must be one of the tools' *names*."""
    kept = tuple(_validate.batch("keep", keep))
    for i, name in enumerate(kept):
        if _validate.text(f"keep[{i}]", name) not in names:
            hint = _validate.did_you_mean(name, names)
            raise InvalidArgumentError(f"keep[{i}] {name[:80]!r} names none of the tools{hint}")
    return kept


def ranked(where: str, tools: Sequence[Any], query: str, keep: Sequence[str]) -> list[int]:
    """
    Return the places of *tools*: those to keep first, then the best for *query* by BM25.

    A tool is read as its name, with the words in it apart, and the JSON of all its fields.
    """
    from budgeteer.ranking import bm25_scores

    names = [tool_name(f"{where}[{i}]", tool) for i, tool in enumerate(tools)]
    texts = [
        f"{_HUMP.sub(' ', name).replace('_', ' ')} {as_json(where, fields_of(tool))}"
        for name, tool in zip(names, tools, strict=True)
    ]
    scores = bm25_scores(query, texts, stemming="english").tolist()
    return sorted(range(len(tools)), key=lambda i: (names[i] not in keep, -scores[i], i))


def fitting(order: Sequence[int], fits: Callable[[list[int]], bool]) -> list[int]:
    """Return the places in *order* that fit together, in their own order; others are skipped."""
    if fits(sorted(order)):
        return sorted(order)
    chosen: list[int] = []
    for i in order:
        tried = sorted([*chosen, i])
        if fits(tried):
            chosen = tried
    return chosen
