"""
Tokenizers of models whose vocabularies are not in the package, found by the model's name.

They are looked for where the user keeps files: in the folders that ``BUDGETEER_TOKENIZERS`` names,
and in the local cache of Hugging Face, which is only read. No network is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from budgeteer._count import model_names
from budgeteer._count.files import IN_A_FOLDER
from budgeteer._files import reason
from budgeteer.errors import CounterError

VARIABLE = "BUDGETEER_TOKENIZERS"
"""The environment variable that names the folders, separated as in ``PATH``."""

_NAME_MAX = 200  # bytes, which file systems allow
_ENDINGS = (".json", ".model", ".tiktoken")


def path_of(names: list[str]) -> str | None:
    """
    Return the path of the first file, or folder with one, that has one of *names*; None without.

    Below the folders of ``BUDGETEER_TOKENIZERS`` it is ``NAME.json``, ``NAME.model``,
    ``NAME.tiktoken`` or the folder ``NAME``; the name as it is, in lower case, or with ``-`` or
    ``--`` in place of ``/`` and ``:``. In the cache of Hugging Face it is the model's newest
    snapshot. Files are looked for at each call, so that a new one is found.

    Raises:
        CounterError: A folder cannot be read.

    """
    try:
        found = next((path for name in names for path in _in_folders(name)), None)
        found = found or next((path for name in names for path in _in_the_cache(name)), None)
    except OSError as error:
        raise CounterError(
            f"the tokenizer of {names[0][:80]!r} cannot be looked for: {reason(error)}"
        ) from None
    return None if found is None else str(found.absolute())


def _in_folders(name: str) -> Iterator[Path]:
    for folder in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        for spelled in _spellings(name):
            files = (Path(folder, spelled + ending) for ending in _ENDINGS)
            yield from (file for file in files if file.is_file())
            if Path(folder, spelled).is_dir():
                yield Path(folder, spelled)


def _spellings(name: str) -> Iterator[str]:
    """Yield how a name may be written as that of a file below a folder."""
    lower = model_names.fold(name)
    flat = (lower.replace("/", sign).replace(":", sign) for sign in ("-", "--"))
    for spelled in dict.fromkeys((name, lower, *flat)):
        # A name may come from a request: it must not lead out of the folder.
        parts = spelled.replace("\\", "/").split("/")
        is_name = spelled.isprintable() and len(spelled.encode()) <= _NAME_MAX
        if is_name and all(part.strip(". ") for part in parts):
            yield spelled


def _in_the_cache(name: str) -> Iterator[Path]:
    """Yield the snapshots of a model, whose name may lack that of its maker."""
    wanted = model_names.fold(name).replace("/", "--")
    try:
        models = sorted(_hub().iterdir())
    except OSError:
        return
    for model in models:
        kind, _, known = model_names.fold(model.name).partition("--")
        if kind == "models" and wanted in (known, known.partition("--")[2]):
            yield from _snapshots(model)


def _hub() -> Path:
    """Return the folder of Hugging Face's cache."""
    hub = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or "~/.cache/huggingface"
    return Path(hub or Path(home, "hub")).expanduser()


def _snapshots(model: Path) -> Iterator[Path]:
    """Yield the snapshots of a cached model that have a tokenizer, the main one first."""
    try:
        folders = sorted(model.joinpath("snapshots").iterdir())
        folders.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    except OSError:
        return
    try:
        main = model.joinpath("refs", "main").read_text("ascii").strip()
    except (OSError, ValueError):
        main = ""
    folders.sort(key=lambda folder: folder.name != main)
    for folder in folders:
        if any(folder.joinpath(file).is_file() for file in IN_A_FOLDER):
            yield folder
