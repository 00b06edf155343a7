"""The program: its arguments and its commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import closing

import budgeteer
from budgeteer import _validate
from budgeteer._files import reason
from budgeteer.cli import (
    _ask,
    _compare,
    _completion,
    _count,
    _cut,
    _mcp,
    _pack,
    _query,
    _schema,
    _window,
)
from budgeteer.cli._arguments import (
    Commands,
    Help,
    Parser,
    add_output,
    counter,
    examples,
    whole,
)
from budgeteer.cli._gate import gate
from budgeteer.cli._progress import Bar
from budgeteer.cli._streams import STDIN, Answer, abandon, fail, json_of, say, write
from budgeteer.errors import BudgeteerError, InternalError, InvalidArgumentError

_BROKEN_PIPE = 141


def run(argv: Sequence[str] | None) -> int:
    """Run the command line and return its exit status."""
    try:
        answer = _answer(argv)
    except InternalError:
        raise
    except BudgeteerError as error:
        return fail(str(error))
    except BrokenPipeError:  # of a command that writes while it runs
        abandon(sys.stdout)
        return _BROKEN_PIPE
    except OSError as error:
        return fail(reason(error))
    try:
        write(answer.text)
    except BrokenPipeError:
        abandon(sys.stdout)
        return _BROKEN_PIPE
    except OSError as error:
        abandon(sys.stdout)
        return fail(f"cannot write the output: {error.strerror or error}")
    say(answer.said)
    return answer.status


def _answer(argv: Sequence[str] | None) -> Answer:
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except Help as help_text:
        return Answer(str(help_text))
    if arguments.version:
        return Answer(f"budgeteer {budgeteer.__version__}\n")
    if arguments.command is None:
        return Answer(parser.format_help())
    run: Callable[[argparse.Namespace], str | Answer] = arguments.run
    with closing(Bar()) as arguments.bar:
        answer = run(arguments)
    return Answer(answer) if isinstance(answer, str) else answer


def _gate_bundle(arguments: argparse.Namespace) -> str:
    bundle = json_of(arguments.bundle)
    options = {
        name: getattr(arguments, name)
        for name in ("budget_tokens", "max_docs")
        if getattr(arguments, name) is not None
    }
    return gate(bundle, arguments.output, **options)


def _models(arguments: argparse.Namespace) -> str:
    return _window.models(arguments.name, arguments.output)


def _inspect(arguments: argparse.Namespace) -> str:
    """Divide a window; messages, memories and tools are JSON files, ``-`` standard input."""
    options = {
        name: getattr(arguments, name)
        for name in ("system_tokens", "safety_margin", "counter")
        if getattr(arguments, name) is not None
    }
    given = {name: getattr(arguments, name) for name in ("messages", "memories", "tools")}
    if list(given.values()).count(STDIN) > 1:
        raise InvalidArgumentError(
            "only one of --messages, --memories and --tools may be standard input"
        )
    for name, value in given.items():
        if value is not None:
            is_number = (
                name != "tools" and value.isascii() and value.isdigit() and len(value) < 100
            )
            options[name] = int(value) if is_number else json_of(value)
    is_counting = any(type(options.get(name)) not in (int, type(None)) for name in given)
    if "counter" in options and not is_counting:
        raise InvalidArgumentError(
            "--counter does nothing where nothing is counted: give the messages as a file"
        )
    try:
        return _window.inspect(
            arguments.output,
            model=arguments.model,
            max_output_tokens=_validate.tokens("--max-tokens", arguments.max_tokens),
            strict=arguments.strict,
            **options,
        )
    except InvalidArgumentError as error:
        # A file has no objects of Python's.
        message = str(error).replace("; an object must have model_dump()", "")
    raise InvalidArgumentError(message)


def _parser() -> Parser:
    parser = Parser(
        prog="budgeteer",
        description="Decides what goes into an LLM's context window: the best that provably fits.",
        epilog=examples(
            'budgeteer ask docs "What is the remote work policy?" -n 8000 -m gpt-4o',
            "budgeteer count --max 8000 prompt.md",
        ),
    )
    parser.set_defaults(parser=_parser)
    parser.add_argument("--version", action="store_true", help="print the version")
    commands: Commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    _ask.add(commands)
    _query.add(commands)
    _pack.add(commands)
    _compare.add(commands)
    _add_gate(commands)
    _count.add(commands)
    _cut.add(commands)
    _add_models(commands)
    _add_inspect(commands)
    _schema.add(commands)
    _mcp.add(commands)
    _completion.add(commands)
    return parser


def _add_models(commands: Commands) -> None:
    models = commands.add_parser(
        "models",
        help="list the models that are known, or look one up",
        epilog=examples("budgeteer models gpt-4o", "budgeteer models -o json"),
    )
    models.set_defaults(run=_models)
    models.add_argument("name", nargs="?", metavar="NAME", help="default: all of them")
    add_output(models)


def _add_inspect(commands: Commands) -> None:
    inspect = commands.add_parser(
        "inspect",
        help="divide a model's window, and say how",
        epilog=examples(
            "budgeteer inspect --model gpt-4 --messages 20 --max-tokens 4000",
            "budgeteer inspect --model gpt-4o --messages messages.json --counter gpt-4o "
            "--max-tokens 4000",
        ),
    )
    inspect.set_defaults(run=_inspect)
    inspect.add_argument("--model", required=True, metavar="NAME", help="such as gpt-4o")
    number_or_file = "a number, or a JSON file (-: standard input)"
    inspect.add_argument("--messages", required=True, metavar="N|FILE", help=number_or_file)
    inspect.add_argument(
        "--max-tokens", required=True, type=whole, metavar="N", help="requested for the answer"
    )
    inspect.add_argument("--memories", metavar="N|FILE", help=number_or_file)
    inspect.add_argument("--tools", metavar="FILE", help="tool schemas, a JSON file")
    inspect.add_argument(
        "--system-tokens",
        type=whole,
        metavar="N",
        help="of the system prompt (default: 500; 0 where a message has it)",
    )
    inspect.add_argument(
        "--safety-margin", type=_margin, metavar="N|auto", help="kept free (default: 100)"
    )
    inspect.add_argument(
        "--counter",
        type=counter,
        metavar="NAME",
        help="counts the messages of a file (default: 250 tokens for each)",
    )
    inspect.add_argument("--strict", action="store_true", help="fail where the window overflows")
    add_output(inspect)


def _add_gate(commands: Commands) -> None:
    gate = commands.add_parser(
        "gate",
        help="admit the artifacts of a bundle",
        epilog=examples(
            "budgeteer gate bundle.json", "budgeteer gate bundle.json --budget-tokens 2000 -o json"
        ),
    )
    gate.set_defaults(run=_gate_bundle)
    gate.add_argument("bundle", metavar="FILE", help="JSON with artifacts (-: standard input)")
    gate.add_argument("--budget-tokens", type=whole, metavar="N", help="the budget (default: 120)")
    gate.add_argument(
        "--max-docs", type=whole, metavar="N", help="the most documents to consider (default: 3)"
    )
    add_output(gate)


def _margin(value: str) -> int | str:
    return value if value == "auto" else whole(value, "a whole number from 0 on or 'auto'")
