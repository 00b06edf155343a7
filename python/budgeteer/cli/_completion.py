"""``budgeteer completion``: the script with which a shell completes the program's arguments."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from budgeteer._count.limits import list_models
from budgeteer._count.names import ENCODINGS, ESTIMATORS
from budgeteer.cli._arguments import NOTICE, Commands, OneOf, Parser, counter, examples
from budgeteer.cli._bulk import Output
from budgeteer.cli._packer import OUTPUTS
from budgeteer.errors import InvalidArgumentError

_SHELLS = ("bash", "zsh", "tcsh")
_FILES = ("FILE", "PATH")
"""In the name of a value they say that it may be a file."""
_EITHER = "_budgeteer_word_or_file"
_WORDS = " ".join(OUTPUTS)
_BOTH = {
    "bash": f'{_EITHER}() {{\n  compgen -W "{_WORDS}" -- "$1"\n  compgen -f -- "$1"\n}}',
    "zsh": f"{_EITHER}() {{\n  compadd -- {_WORDS}\n  _files\n}}",
}
"""Functions that complete what `Output` takes."""


def add(commands: Commands) -> None:
    """Add the command to the program."""
    completion = commands.add_parser(
        "completion",
        help="print a script that completes arguments in a shell",
        description="Prints a script for the shell. Where it belongs: with bash in\n"
        "~/.local/share/bash-completion/completions/budgeteer, with zsh in a folder of $fpath "
        "as _budgeteer,\nwith tcsh in a file that ~/.tcshrc sources.",
        epilog=examples(
            "budgeteer completion bash > budgeteer.bash", "budgeteer completion zsh > _budgeteer"
        ),
    )
    completion.set_defaults(run=_run)
    checks = OneOf(*_SHELLS)
    completion.add_argument("shell", type=checks, metavar=checks.metavar, help="the shell")


def _run(arguments: argparse.Namespace) -> str:
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        raise InvalidArgumentError(
            "completion needs shtab: pip install 'budgeteer[cli]'"
        ) from None
    parser = arguments.parser()
    _mark(parser, shtab.FILE)
    script: str = shtab.complete(parser, arguments.shell, preamble=_BOTH)
    return f"{script.rstrip()}\n"


def _mark(parser: Parser, file: Any) -> None:
    """Tell shtab what the values of each argument may be."""
    for action in parser._actions:  # noqa: SLF001 - as shtab does
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - has no other name
            for inner in action.choices.values():
                _mark(inner, file)
        elif isinstance(action.type, OneOf):
            if isinstance(action.type, Output):  # shtab knows words or files, not both
                action.complete = {**file, **dict.fromkeys(_BOTH, _EITHER)}  # type: ignore[attr-defined]
            else:
                action.choices = action.type.allowed
        elif action.type is counter:
            models = (limits.name for limits in list_models() if limits.encoding is not None)
            action.choices = (*ENCODINGS, *ESTIMATORS, *models)
        elif any(name in str(action.metavar) for name in _FILES):
            action.complete = file  # type: ignore[attr-defined]
        elif NOTICE in action.option_strings:
            action.nargs = 0
