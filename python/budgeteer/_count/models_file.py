"""What a file of models states, of the own form or litellm's. The figures are not checked here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._count import litellm
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = (
    *("context_window", "max_input_tokens", "max_output_tokens"),
    *("encoding", "calibration", "provider", "source"),
)
"""What may be stated of a model."""

_LITELLM = "litellm"


def entries(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Yield of each model its place for an error, its name, what is stated, and the source."""
    from pathlib import Path  # slow to load

    from budgeteer._files import decode, parse_json, reason

    if path == _LITELLM:  # which a path is not
        file, origin = _installed_litellm()
    else:
        file, origin = Path(_validate.path_like("path", path)), ""
    try:
        document = parse_json(decode(file.read_bytes()))
        is_own = not litellm.is_litellm(document)
        models = None if is_own else litellm.entries(document)
    except OSError as error:
        raise InvalidArgumentError(reason(error)) from error
    except ValueError as error:  # bad UTF-8, JSON or figures, or a NUL in the path
        raise InvalidArgumentError(f"{str(file)!r}: {error}") from None
    if is_own and isinstance(document, dict):
        models = document.get("models")
    if not isinstance(models, dict):
        raise InvalidArgumentError(
            f"{str(file)!r}: it must be an object with an object 'models', or litellm's"
        )
    for name, fields in models.items():
        where = f"{str(file)!r}: {'models' if is_own else ''}[{name[:80]!r}]"
        if not isinstance(fields, dict):
            raise InvalidArgumentError(
                f"{where} must be an object, not {_validate.type_name(fields)}"
            )
        for key in fields:
            if key not in KEYS:
                hint = _validate.did_you_mean(key, KEYS)
                raise InvalidArgumentError(f"{where} has the unknown key {key[:80]!r}{hint}")
        yield where, name, fields, origin or file.name


def _installed_litellm() -> tuple[Path, str]:
    """Return the file of models of the installed litellm, and that package with its version."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load, all three
    from importlib.util import find_spec
    from pathlib import Path

    package = find_spec(_LITELLM)  # imports nothing
    for folder in (package and package.submodule_search_locations) or ():
        file = Path(folder, litellm.FILE)
        if file.is_file():
            try:
                return file, f"{_LITELLM} {version(_LITELLM)}"
            except PackageNotFoundError:  # a folder that is merely importable
                return file, _LITELLM
    raise InvalidArgumentError(
        "load_models('litellm') needs litellm: pip install litellm, or give the path of its "
        "model_prices_and_context_window.json"
    )
