"""What the commands have in common: their parser, and arguments that several of them take."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import budgeteer
from budgeteer import TokenCounter, _validate
from budgeteer._pack.packer import Packer
from budgeteer._rank.rankings import Bm25
from budgeteer.errors import BudgeteerError, InvalidArgumentError

OUTPUTS = ("text", "json")

DEFAULTS: dict[str, Any] = {
    option.name: option.default
    for kind in (Packer, Bm25)
    for option in dataclasses.fields(kind)
    if option.init
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

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(message)

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002 - argparse's own name
        raise Help(self.format_help())


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - has no other name


def examples(*lines: str) -> str:
    """Return command lines as the end of a help text."""
    return "\n  ".join(("examples:", *lines))


def add_choice(parser: Parser, name: str, allowed: tuple[str, ...], meaning: str) -> None:
    """Add an option of `Packer` that takes one of *allowed*; the default is the packer's own."""
    parser.add_argument(
        f"--{name}",
        type=one_of(allowed),
        metavar="{" + ",".join(allowed) + "}",
        help=f"{meaning} (default: {DEFAULTS[name]})",
    )


def add_counter(parser: Parser, default: str | None, *short: str) -> None:
    """Add the choice of the counter; *short* are other spellings of it."""
    parser.add_argument(
        *short,
        "--counter",
        type=counter,
        default=default,
        metavar="NAME",
        help="o200k_base, cl100k_base, a model such as gpt-4o, tiktoken:NAME, hf:PATH, or an "
        "estimate: chars_div4, chars_per_token:X, words, whitespace "
        f"(default: {DEFAULTS['counter']})",
    )


def add_globs(parser: Parser) -> None:
    """Add the choice of the files of folders."""
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


def add_output(parser: Parser, outputs: tuple[str, ...] = OUTPUTS) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=one_of(outputs),
        default=outputs[0],
        metavar="{" + ",".join(outputs) + "}",
        help=f"how the answer is written (default: {outputs[0]})",
    )


def one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    """Return what checks an argument, in the words of the facade and with its hint."""

    def choice(value: str) -> str:
        if value in allowed:
            return value
        hint = _validate.did_you_mean(value, allowed)
        listed = ", ".join(map(repr, allowed))
        raise argparse.ArgumentTypeError(f"must be one of {listed}, not {value[:80]!r}{hint}")

    return choice


def counter(name: str) -> TokenCounter:
    try:
        return budgeteer.get_counter(name)
    except BudgeteerError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
