"""The program: its arguments and its commands."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import budgeteer
from budgeteer import _validate, config
from budgeteer._chunk.chunk import field_of
from budgeteer._files import decode, json_lines, one_line, parse_json, reason
from budgeteer._pack.options import ORDERS, OVERFLOWS, REASONS, SELECTIONS, STYLES, UNITS
from budgeteer._pack.packer import Packer
from budgeteer._rank.rankings import NAMES, Bm25
from budgeteer._rank.terms import LISTED, STEMMED
from budgeteer.cli import _window
from budgeteer.cli._gate import gate
from budgeteer.errors import BudgeteerError, InternalError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from budgeteer import Packing, TokenCounter

_FAILED, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141
_STDIN = "-"
_OUTPUTS = ("text", "json")
_NONE = "none"
_DEDUPES = ("exact", "near", _NONE)
_RANKINGS = tuple(name for name in NAMES if name not in ("embedding", "hybrid"))
"""The rankings that need no vectors."""
_BM25 = ("stemming", "stopwords")
"""The options of BM25."""

_DEFAULTS: dict[str, Any] = {
    option.name: option.default
    for kind in (Packer, Bm25)
    for option in dataclasses.fields(kind)
    if option.init
}


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line and return its exit status.

    Args:
        argv: The arguments; None takes those of the process.

    Returns:
        0; 2 after an error in the input, which is one line on standard error; 130 after Ctrl-C;
        141 if nobody read the output. Other errors are raised.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "chunks.json")
        ...     _ = path.write_text('["Rye bread.", "Green tea."]')
        ...     arguments = ["--query", "tea", "--max-tokens", "3", "--input", str(path)]
        ...     status = main(["pack", *arguments])
        Green tea.
        >>> status
        0

    """
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    try:
        answer = _answer(argv)
    except InternalError:
        raise
    except BudgeteerError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(reason(error))
    try:
        _write(answer)
    except BrokenPipeError:
        _abandon_output()
        return _BROKEN_PIPE
    except OSError as error:
        _abandon_output()
        return _fail(f"cannot write the output: {error.strerror or error}")
    return 0


def _answer(argv: Sequence[str] | None) -> str:
    """Return the whole standard output."""
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except _Help as answer:
        return str(answer)
    if arguments.version:
        return f"budgeteer {budgeteer.__version__}\n"
    if arguments.command is None:
        parser.error("a command is required: query, pack, gate, count, models or inspect")
    run: Callable[[argparse.Namespace], str] = arguments.run
    return run(arguments)


def _query(arguments: argparse.Namespace) -> str:
    loaded = config.load(arguments.config)
    with loaded.embedder or nullcontext():
        chunks = loaded.chunks(arguments.text)
        packing, elapsed_ms = _timed(loaded.packer, arguments.text, chunks)
    return _json(packing, elapsed_ms) if arguments.output == "json" else _report(packing)


def _pack_input(arguments: argparse.Namespace) -> str:
    options = {
        name: getattr(arguments, name)
        for name in _DEFAULTS
        if getattr(arguments, name, None) is not None
    }
    for name in ("dedupe", "stopwords"):
        if options.get(name) == _NONE:
            options[name] = None
    bm25 = {name: options.pop(name) for name in _BM25 if name in options}
    if bm25:
        ranking = options.get("ranking", "bm25")
        if ranking != "bm25":
            raise InvalidArgumentError(
                f"--{next(iter(bm25))} is for --ranking bm25, not {ranking}"
            )
        options["ranking"] = Bm25(**bm25)
    packer = Packer(**options)
    chunks = _chunks(_read(arguments.input), _shown(arguments.input))
    packing, elapsed_ms = _timed(packer, arguments.query, chunks)
    if arguments.output == "json":
        return _json(packing, elapsed_ms)
    # Exactly the counted text; only a terminal gets a line end.
    return packing.text + ("\n" if sys.stdout is not None and sys.stdout.isatty() else "")


def _gate_bundle(arguments: argparse.Namespace) -> str:
    bundle = _json_of(arguments.bundle)
    options = {
        name: getattr(arguments, name)
        for name in ("budget_tokens", "max_docs")
        if getattr(arguments, name) is not None
    }
    return gate(bundle, arguments.output, **options)


def _count(arguments: argparse.Namespace) -> str:
    counter: TokenCounter = arguments.counter
    if not arguments.files:
        return f"{counter.count(_read(_STDIN))}\n"
    counts = [(counter.count(_read(name)), one_line(_shown(name))) for name in arguments.files]
    if len(counts) > 1:
        counts.append((sum(count for count, _ in counts), "total"))
    return "".join(f"{count}\t{name}\n" for count, name in counts)


def _models(arguments: argparse.Namespace) -> str:
    return _window.models(arguments.name, arguments.output)


def _inspect(arguments: argparse.Namespace) -> str:
    """Divide a window; messages, memories and tools are JSON files, ``-`` standard input."""
    options = {
        name: getattr(arguments, name)
        for name in ("system_tokens", "safety_margin", "counter")
        if getattr(arguments, name) is not None
    }
    for name in ("messages", "memories", "tools"):
        value = getattr(arguments, name)
        if value is not None:
            is_number = (
                name != "tools" and value.isascii() and value.isdigit() and len(value) < 100
            )
            options[name] = int(value) if is_number else _json_of(value)
    return _window.inspect(
        arguments.output,
        model=arguments.model,
        max_output_tokens=arguments.max_tokens,
        strict=arguments.strict,
        **options,
    )


def _json_of(name: str) -> Any:
    try:
        return parse_json(_read(name))
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{_shown(name)}: {error}") from None


def _timed(packer: Packer, query: str, chunks: Sequence[Any]) -> tuple[Packing[Any], float]:
    """Return a packing and its time in milliseconds."""
    start = time.perf_counter()
    packing = packer.pack(query, chunks)
    return packing, round((time.perf_counter() - start) * 1000, 3)


def _chunks(text: str, where: str) -> list[Any]:
    """Return the chunks of a JSON array or of JSON lines."""
    try:
        if text.lstrip()[:1] == "[":
            items: list[Any] = parse_json(text)
            places = [f"chunks[{i}]" for i in range(len(items))]
        else:
            lines = list(json_lines(text))
            items = [item for _, item in lines]
            places = [f"line {n}" for n, _ in lines]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}: {error}") from None
    for place, item in zip(places, items, strict=True):
        if not isinstance(item, (str, dict)):
            found = _validate.type_name(item)
            raise InvalidArgumentError(
                f"{where}: {place} must be a str or a JSON object, not {found}"
            )
    return items


def _json(packing: Packing[Any], elapsed_ms: float) -> str:
    answer = {
        "total_tokens": packing.total_tokens,
        "budget_tokens": packing.budget_tokens,
        "was_truncated": packing.was_truncated,
        "is_exact": packing.is_exact,
        "chunks": [
            {
                "content": kept.text,
                "source": field_of(kept.chunk, "source") or "",
                "title": field_of(kept.chunk, "title") or "",
                "path": _metadata(kept.chunk).get("path"),
                "relevance_score": _rounded(kept.score),
                "token_count": kept.token_count,
                "was_cut": kept.was_cut,
                "metadata": _metadata(kept.chunk),
            }
            for kept in packing.kept
        ],
        "dropped": [
            {
                "source": field_of(dropped.chunk, "source") or "",
                "title": field_of(dropped.chunk, "title") or "",
                "relevance_score": _rounded(dropped.score),
                "reason": dropped.reason,
                "needed_tokens": dropped.needed_tokens,
                "available_tokens": dropped.available_tokens,
            }
            for dropped in packing.dropped
        ],
        "dropped_count": packing.dropped_count,
        "elapsed_ms": elapsed_ms,
    }
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _report(packing: Packing[Any]) -> str:
    counted = "" if packing.is_exact else " (estimated)"
    reasons = Counter(dropped.reason for dropped in packing.dropped)
    details = ", ".join(f"{name}: {reasons[name]}" for name in REASONS if reasons[name])
    lines = [
        f"{packing.total_tokens} of {packing.budget_tokens} tokens{counted}: "
        f"{len(packing.kept)} kept, {packing.dropped_count} dropped"
        + (f" ({details})" if details else "")
    ]
    for kept in packing.kept:
        title = field_of(kept.chunk, "title") or field_of(kept.chunk, "id") or "untitled"
        score = "none" if kept.score is None else f"{kept.score:.2f}"
        cut = ", cut" if kept.was_cut else ""
        lines.append(
            one_line(
                f"  [{field_of(kept.chunk, 'source')}] {title}: "
                f"score={score}, tokens={kept.token_count}{cut}"
            )
        )
    return "\n".join([*lines, *(["", packing.text] if packing.text else []), ""])


def _metadata(chunk: object) -> Any:
    """Return the metadata of a chunk, which may be any value in a caller's JSON."""
    metadata = field_of(chunk, "metadata")
    return metadata if isinstance(metadata, dict) else {}


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


class _Help(Exception):  # noqa: N818 - an answer, not an error
    """Carries the help text to the code that writes output."""


class _Parser(argparse.ArgumentParser):
    """An argument parser with errors of one line, whose help is written like any answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(message)

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002 - argparse's own name
        raise _Help(self.format_help())


def _parser() -> _Parser:
    parser = _Parser(
        prog="budgeteer",
        description="Decides what goes into an LLM's context window: the best that provably fits.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")

    query = commands.add_parser("query", help="pack the sources of a configuration for a query")
    query.set_defaults(run=_query)
    query.add_argument("-c", "--config", required=True, metavar="FILE", help="a YAML file")
    query.add_argument("-t", "--text", required=True, help="the query")
    _add_output(query)

    pack = commands.add_parser("pack", help="pack chunks given as JSON or JSON Lines")
    pack.set_defaults(run=_pack_input)
    pack.add_argument("--query", required=True, metavar="TEXT", help="the query; may be empty")
    pack.add_argument("--max-tokens", required=True, type=int, metavar="N", help="the budget")
    pack.add_argument(
        "--reserve-tokens", type=int, metavar="N", help="tokens to subtract from the budget"
    )
    _add_counter(pack, None)
    _add_choice(pack, "ranking", _RANKINGS, "what comes first")
    pack.add_argument("--min-score", type=float, metavar="X", help="drop chunks that score lower")
    _add_choice(pack, "overflow", OVERFLOWS, "what becomes of a chunk that does not fit")
    pack.add_argument("--max-chunks", type=int, metavar="N", help="the most chunks to keep")
    _add_choice(pack, "dedupe", _DEDUPES, "whether equal texts, or near ones too, are kept once")
    _add_choice(pack, "selection", SELECTIONS, "in which order chunks are admitted")
    _add_choice(pack, "stemming", STEMMED, "language whose words of one stem BM25 takes for one")
    _add_choice(pack, "stopwords", (*LISTED, _NONE), "whose words BM25 leaves out")
    _add_choice(pack, "units", UNITS, "what is packed")
    _add_choice(pack, "order", ORDERS, "how the kept chunks stand in the text")
    _add_choice(pack, "template", STYLES, "how the text is written")
    pack.add_argument(
        "--notice",
        action="store_true",
        default=None,
        help="say in the text how many were left out",
    )
    pack.add_argument(
        "--input",
        default=_STDIN,
        metavar="FILE",
        help="a JSON array, or a string or object a line (default: standard input)",
    )
    _add_output(pack)

    _add_gate(commands.add_parser("gate", help="admit the artifacts of a bundle"))

    count = commands.add_parser("count", help="count the tokens of files or of standard input")
    count.set_defaults(run=_count)
    _add_counter(count, _DEFAULTS["counter"])
    count.add_argument("files", nargs="*", metavar="FILE", help="default: standard input")

    models = commands.add_parser("models", help="list the known models, or look one up")
    models.set_defaults(run=_models)
    models.add_argument("name", nargs="?", metavar="NAME", help="default: all of them")
    _add_output(models)

    inspect = commands.add_parser("inspect", help="divide a model's window, and say how")
    inspect.set_defaults(run=_inspect)
    inspect.add_argument("--model", required=True, metavar="NAME", help="such as gpt-4o")
    number_or_file = "a number, or a JSON file (-: standard input)"
    inspect.add_argument("--messages", required=True, metavar="N|FILE", help=number_or_file)
    inspect.add_argument(
        "--max-tokens", required=True, type=int, metavar="N", help="requested for the answer"
    )
    inspect.add_argument("--memories", metavar="N|FILE", help=number_or_file)
    inspect.add_argument("--tools", metavar="FILE", help="tool schemas, a JSON file")
    inspect.add_argument(
        "--system-tokens", type=int, metavar="N", help="of the system prompt (default: 500)"
    )
    inspect.add_argument(
        "--safety-margin", type=_margin, metavar="N|auto", help="kept free (default: 100)"
    )
    inspect.add_argument(
        "--counter",
        type=_counter,
        metavar="NAME",
        help="counts the messages of a file (default: 250 tokens for each)",
    )
    inspect.add_argument("--strict", action="store_true", help="fail if the window overflows")
    _add_output(inspect)
    return parser


def _add_gate(gate: _Parser) -> None:
    gate.set_defaults(run=_gate_bundle)
    gate.add_argument("bundle", metavar="FILE", help="JSON with artifacts (-: standard input)")
    gate.add_argument("--budget-tokens", type=int, metavar="N", help="the budget (default: 120)")
    gate.add_argument(
        "--max-docs", type=int, metavar="N", help="the most documents to consider (default: 3)"
    )
    _add_output(gate)


def _add_choice(parser: _Parser, name: str, allowed: tuple[str, ...], meaning: str) -> None:
    """Add an option of `Packer` that takes one of *allowed*; the default is the packer's own."""
    parser.add_argument(
        f"--{name}",
        type=_one_of(allowed),
        metavar="{" + ",".join(allowed) + "}",
        help=f"{meaning} (default: {_DEFAULTS[name]})",
    )


def _add_counter(parser: _Parser, default: str | None) -> None:
    parser.add_argument(
        "--counter",
        type=_counter,
        default=default,
        metavar="NAME",
        help="o200k_base, cl100k_base, a model such as gpt-4o, tiktoken:NAME, hf:PATH, or an "
        "estimate: chars_div4, chars_per_token:X, words, whitespace "
        f"(default: {_DEFAULTS['counter']})",
    )


def _add_output(parser: _Parser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=_one_of(_OUTPUTS),
        default=_OUTPUTS[0],
        metavar="{" + ",".join(_OUTPUTS) + "}",
        help=f"the output format (default: {_OUTPUTS[0]})",
    )


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that checks an argument, with the facade's error message and hint."""

    def choice(value: str) -> str:
        if value in allowed:
            return value
        hint = _validate.did_you_mean(value, allowed)
        listed = ", ".join(map(repr, allowed))
        raise argparse.ArgumentTypeError(f"must be one of {listed}, not {value[:80]!r}{hint}")

    return choice


def _margin(value: str) -> int | str:
    return value if value == "auto" else int(value)


def _counter(name: str) -> TokenCounter:
    try:
        return budgeteer.get_counter(name)
    except BudgeteerError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _read(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``."""
    if name != _STDIN:
        data = Path(name).read_bytes()
    elif sys.stdin is None:
        raise InvalidArgumentError("standard input is closed")
    elif not hasattr(sys.stdin, "buffer"):
        return sys.stdin.read()
    else:
        data = sys.stdin.buffer.read()
    try:
        return decode(data)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{_shown(name)}: {error}") from None


def _shown(name: str) -> str:
    return "standard input" if name == _STDIN else name


def _write(text: str) -> None:
    """Write the whole of *text* to standard output, at once."""
    if not text:
        return
    data = text.encode("utf-8", "backslashreplace")
    if sys.stdout is None:
        raise OSError("standard output is closed")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
    else:
        rest = memoryview(data)
        while rest:  # an unbuffered stream may take only a part
            rest = rest[buffer.write(rest) or 0 :]
    sys.stdout.flush()


def _abandon_output() -> None:
    """Discard buffered output, so that exiting does not fail again."""
    try:
        stdout = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or not a file
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stdout)
    os.close(nowhere)


def _fail(message: str) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"budgeteer: error: {one_line(message)}\n")
    return _FAILED
