"""The packer of a framework's chunks, which counts them as the framework writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from budgeteer import _validate
from budgeteer._codes import NO_POLICY
from budgeteer._pack.packer import Packer
from budgeteer._pack.prepared import refuse_sticky
from budgeteer._pack.template import Prompt, Template, plain_text
from budgeteer._pydantic import beyond_json, options_of
from budgeteer.errors import InvalidArgumentError

T = TypeVar("T")


def as_packer(packer: object, template: Template | Prompt | None = None) -> Packer:
    """
    Return *packer*, or one of that many tokens in the order of the input, with a template.

    Raises:
        InvalidArgumentError: It is neither, nor a mapping of a packer's options, or it would write
            what the framework does not.

    """
    if isinstance(packer, Mapping):
        try:
            packer = Packer(**{"ranking": "input", **options_of(Packer, packer)})
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"packer: {error}") from None
    elif not isinstance(packer, Packer):
        limit = _validate.as_int(packer)
        if limit is None:
            raise InvalidArgumentError(
                f"packer must be a Packer, a mapping of its options or an int, the most tokens, "
                f"not {_validate.type_name(packer)}"
            )
        packer = Packer(_validate.tokens("packer", limit), ranking="input")
    if packer._policy[0] != NO_POLICY:
        raise InvalidArgumentError(
            f"packer must not be of the preset {_validate.type_name(packer)}, which writes more "
            "than chunks"
        )
    refuse_sticky(packer, "in a framework")
    for name, usual in (("template", "plain"), ("notice", None)):
        if getattr(packer, name) not in (usual, False):
            raise InvalidArgumentError(
                f"packer must have {name}={usual!r}: the framework writes the text"
            )
    return packer if template is None else replace(packer, template=template)


def listed(name: str, given: Any, kind: type[T]) -> list[T]:
    """Return what *given* holds, which must be objects of a framework's *kind*."""
    items = [*_validate.iterable(name, given)]
    for i, item in enumerate(items):
        if not isinstance(item, kind):
            found = _validate.type_name(item)
            raise InvalidArgumentError(f"{name}[{i}] must be a {kind.__name__}, not {found}")
    return items


def taken(packer: Any) -> Any:
    """Return what `as_packer` took, whatever becomes of a mapping that was given."""
    if isinstance(packer, Mapping):
        return {**packer}
    return packer if isinstance(packer, Packer) else int(packer)


def plain(packer: Any) -> Any:
    """
    Return what `as_packer` takes as it may be written into a file, an int or a mapping of options.

    Raises:
        InvalidArgumentError: An option has no such form, or as for `as_packer`.

    """
    made = as_packer(packer)
    if isinstance(packer, Packer):
        options = {item.name: getattr(packer, item.name) for item in fields(packer) if item.init}
    elif isinstance(packer, Mapping):
        options = {**packer}
    else:
        return made.max_tokens
    problem = beyond_json(Packer, made, options)
    if problem:
        raise InvalidArgumentError(problem)
    return options


class Kept:
    """Keeps a packer for as long as what it is made of is the same; deep copies keep none."""

    def __init__(self) -> None:
        self._made: tuple[tuple[Any, ...], Packer] | None = None

    def get(self, given: tuple[Any, ...], make: Callable[[], Packer]) -> Packer:
        """Return the packer that *make* makes of *given*."""
        made = self._made
        if made is None or any(a is not b for a, b in zip(given, made[0], strict=True)):
            made = self._made = given, make()
        return made[1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the packer behind: its template may be a function within another."""
        return Kept, ()


def written(write: Callable[[Any], str] | None, separator: str) -> Template:
    """Return the template of chunks that *write* writes, None for their own texts."""
    text = plain_text("separator", separator)  # None would be a Template's own default
    return Template("{text}" if write is None else write, separator=text)
