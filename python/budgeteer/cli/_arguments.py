"""What the commands have in common: their parser, and arguments that several of them take."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import budgeteer
from budgeteer import TokenCounter, _validate
from budgeteer._pack.packer import Packer
from budgeteer._rank.rankings import Lexical
from budgeteer._sources.folder import TextFile
from budgeteer.cli._streams import STDIN, files_of, shown
from budgeteer.errors import BudgeteerError, InvalidArgumentError

NONE = "none"
"""Python's None, where an option takes it."""
NOTICE = "--notice"
"""The option that may have a value, which then stands behind ``=``."""
_WHOLE = f"a whole number from 0 to {_validate.MAX_TOKENS}"
OUTPUTS = ("text", "json")

DEFAULTS: dict[str, Any] = {
    option.name: option.default
    for kind in (Packer, Lexical)
    for option in dataclasses.fields(kind)
    if option.init and option.name != "statistics"
}


class Help(Exception):  # noqa: N818 - an answer, not an error
    """Carries the help text to where output is written."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and whose help goes out like any answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,  # examples are whole lines
            **options,
        )

    def parse_args(self, args: Sequence[str] | None = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse; an option whose value may be missing never takes the next word for it."""
        words = [*(sys.argv[1:] if args is None else args)]
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"]
        end = words.index("--") if "--" in words else len(words)
        words[:end] = [f"{word}=" if word == NOTICE else word for word in words[:end]]
        return super().parse_args([*words[:1], *self._options_first(words)])

    def _options_first(self, words: Sequence[str]) -> Sequence[str]:
        """
        Return the words behind a command, its options before all others.

        Else several paths could not stand on both sides of an option: argparse takes those of one
        side for all. Where a word is no option of the command, or an option has no value, the
        order stays for its error.
        """
        commands: Any = next(action for action in self._actions if action.dest == "command")
        command = commands.choices.get(words[0]) if words else None
        known = {} if command is None else command._option_string_actions  # noqa: SLF001
        options, others = [], []
        rest = iter(words[1:])
        for word in rest:
            if word == "--":
                others += [word, *rest]
            elif word == STDIN or not word.startswith("-"):
                others.append(word)
            else:
                name, equals, _ = word.partition("=")
                short = word[:2] if name not in known and not word.startswith("--") else name
                if short not in known:
                    return words[1:]
                options.append(word)
                if known[short].nargs is None and not equals and short == word:
                    value = next(rest, "--")
                    if value == "--" or value.partition("=")[0] in known:
                        return words[1:]
                    options.append(value)
        return [*options, *others]

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(message)

    def _check_value(self, action: argparse.Action, value: str) -> None:
        """Refuse a misspelt command; argparse asks nothing else of what has choices here."""
        if action.choices is not None:
            try:
                OneOf(*action.choices)(value)
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(action, str(error)) from None

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002 - argparse's own name
        raise Help(self.format_help())


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - has no other name


class OneOf:
    """Checks an argument, in the words of the facade and with its hint."""

    meaning = ""
    """What the help says of more than is listed."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed

    def __call__(self, value: str) -> str:
        if value in self.allowed:
            return value
        hint = _validate.did_you_mean(value, self.allowed)
        listed = ", ".join(map(repr, self.allowed))
        raise argparse.ArgumentTypeError(f"must be one of {listed}, not {value[:80]!r}{hint}")

    @property
    def metavar(self) -> str:
        return "{" + ",".join(self.allowed) + "}"


def whole(value: str, allowed: str = _WHOLE) -> int:
    """Return a whole number; its range is checked where it is used."""
    try:
        return int(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {allowed}, not {value[:80]!r}") from None


def decimal(value: str, allowed: str = "a number") -> float:
    """Return a number; its range is checked where it is used."""
    try:
        return float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {allowed}, not {value[:80]!r}") from None


def examples(*lines: str) -> str:
    """Return command lines as the end of a help text."""
    return "\n  ".join(("examples:", *lines))


def add_choice(parser: Parser, name: str, allowed: tuple[str, ...], meaning: str) -> None:
    """Add an option of `Packer` that takes one of *allowed*; the default is the packer's own."""
    checks = OneOf(*allowed)
    default = NONE if DEFAULTS[name] is None else DEFAULTS[name]
    parser.add_argument(
        f"--{name}",
        type=checks,
        metavar=checks.metavar,
        help=f"{meaning} (default: {default})",
    )


def add_texts(parser: Parser, nargs: str, meaning: str) -> None:
    """
    Add the texts that a command reads, and the counter of their tokens.

    Args:
        parser: The command's.
        nargs: How many paths, as argparse writes it. Where there may be several, folders are read
            too, and ``-g`` chooses from their files.
        meaning: The help of the paths.

    """
    add_counter(parser)
    if nargs == "?":
        parser.add_argument("path", nargs=nargs, default=STDIN, metavar="FILE", help=meaning)
        return
    parser.add_argument("paths", nargs=nargs, metavar="PATH", help=meaning)
    parser.add_argument(
        "-g",
        "--glob",
        action="append",
        default=[],
        dest="globs",
        metavar="PATTERN",
        help="of folders, read only files that match it, or with ! in front none that do; "
        "written as in a .gitignore, may be repeated",
    )


def texts_of(arguments: argparse.Namespace, doing: str) -> tuple[Iterator[TextFile], str]:
    """
    Return the files of `add_texts`, read one by one as they are asked for, and what names them.

    Without a path it is standard input. *doing* is what the bar says meanwhile. It is an error
    if there are globs, and no folder to choose from.
    """
    paths, globs = arguments.paths or [STDIN], arguments.globs
    if globs and not any(path and Path(path).is_dir() for path in arguments.paths):
        raise InvalidArgumentError("--glob is for the files of folders, and no PATH is a folder")
    files = files_of(paths, globs)
    if STDIN not in paths:  # somebody may be typing it
        files = arguments.bar.over(doing, files)
    chosen = f" for {' '.join(f'--glob {glob!r}' for glob in globs)}" if globs else ""
    return files, f"{', '.join(map(shown, paths))}{chosen}"


def add_counter(parser: Parser) -> None:
    """Add the choice of the counter."""
    parser.add_argument(
        "-m",
        "--counter",
        type=counter,
        default=DEFAULTS["counter"],
        metavar="NAME",
        help="a model such as gpt-4o, an encoding (o200k_base, cl100k_base), tiktoken:NAME, "
        "file:PATH, or an estimate: chars_div4, chars_per_token:X, words, whitespace "
        f"(default: {DEFAULTS['counter']})",
    )


def add_query(parser: Parser, *, required: bool = True) -> None:
    """Add the query; the last two spellings are those of the document's commands."""
    parser.add_argument(
        *("-q", "--query", "-t", "--text"),
        required=required,
        dest="query",
        metavar="TEXT",
        help="the query; may be empty",
    )


def add_output(parser: Parser, checks: OneOf | None = None) -> None:
    checks = checks or OneOf(*OUTPUTS)
    parser.add_argument(
        "-o",
        "--output",
        type=checks,
        default=checks.allowed[0],
        metavar=checks.metavar,
        help=f"how the answer is written{checks.meaning} (default: {checks.allowed[0]})",
    )


def counter(name: str) -> TokenCounter:
    try:
        return budgeteer.get_counter(name)
    except BudgeteerError as error:
        # The other two are functions of Python's.
        message = str(error).replace("register_model, load_models, BUDGETEER", "BUDGETEER")
        raise argparse.ArgumentTypeError(message) from None
