"""The packer of a framework's chunks, which counts them as the framework writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from budgeteer import _validate
from budgeteer._codes import NO_POLICY
from budgeteer._pack.packer import Packer
from budgeteer._pack.prepared import refuse_sticky
from budgeteer._pack.template import Prompt, Template, plain_text
from budgeteer._pydantic import beyond_json, options_of
from budgeteer.errors import InvalidArgumentError


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


def plain(packer: Any) -> Any:
    """
    Return *packer* as it may be written into a file, a number or a mapping of options.

    Raises:
        InvalidArgumentError: An option has no such form.

    """
    if not isinstance(packer, Packer):
        return packer
    options = {item.name: getattr(packer, item.name) for item in fields(packer) if item.init}
    problem = beyond_json(Packer, packer, options)
    if problem:
        raise InvalidArgumentError(problem)
    return options


def written(write: Callable[[Any], str] | None, separator: str) -> Template:
    """Return the template of chunks that *write* writes, None for their own texts."""
    text = plain_text("separator", separator)  # None would be a Template's own default
    return Template("{text}" if write is None else write, separator=text)
