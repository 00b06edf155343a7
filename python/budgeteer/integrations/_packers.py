"""The packer of a framework's chunks, which counts them as the framework writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from budgeteer import _validate
from budgeteer._codes import NO_POLICY
from budgeteer._pack.packer import Packer
from budgeteer._pack.template import Prompt, Template, plain_text
from budgeteer.errors import InvalidArgumentError


def as_packer(packer: object, template: Template | Prompt | None = None) -> Packer:
    """
    Return *packer*, or one of so many tokens in the order of the input, with a template.

    Raises:
        InvalidArgumentError: It is neither, or it would write what the framework does not.

    """
    if not isinstance(packer, Packer):
        limit = _validate.as_int(packer)
        if limit is None:
            raise InvalidArgumentError(
                f"packer must be a Packer or an int, the most tokens, "
                f"not {_validate.type_name(packer)}"
            )
        packer = Packer(_validate.tokens("packer", limit), ranking="input")
    if packer._policy[0] != NO_POLICY:
        raise InvalidArgumentError(
            f"packer must not be of the preset {_validate.type_name(packer)}, which writes more "
            "than chunks"
        )
    for name, usual in (("template", "plain"), ("notice", None)):
        if getattr(packer, name) not in (usual, False):
            raise InvalidArgumentError(
                f"packer must have {name}={usual!r}: the framework writes the text"
            )
    return packer if template is None else replace(packer, template=template)


def written(write: Callable[[Any], str] | None, separator: str) -> Template:
    """Return the template of chunks that *write* writes, None for their own texts."""
    text = plain_text("separator", separator)  # None would be a Template's own default
    return Template("{text}" if write is None else write, separator=text)
