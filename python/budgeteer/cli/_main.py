"""The program: its arguments and its commands."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import budgeteer
from budgeteer import Packing, _validate, config
from budgeteer._chunk.chunk import field_of
from budgeteer._files import json_lines, one_line, parse_json, reason
from budgeteer._pack.options import ORDERS, OVERFLOWS, REASONS, SELECTIONS, STYLES, UNITS
from budgeteer._pack.packer import Packer
from budgeteer._rank.rankings import NAMES, Bm25
from budgeteer._rank.terms import LISTED, STEMMED
from budgeteer.cli import _ask, _count, _cut, _window
from budgeteer.cli._arguments import (
    DEFAULTS,
    Commands,
    Help,
    Parser,
    add_choice,
    add_counter,
    add_output,
    counter,
    examples,
)
from budgeteer.cli._gate import gate
from budgeteer.cli._streams import (
    STDIN,
    Answer,
    abandon_output,
    json_of,
    line_end,
    read,
    shown,
    write,
)
from budgeteer.errors import BudgeteerError, InternalError, InvalidArgumentError

_FAILED, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141
_NONE = "none"
_DEDUPES = ("exact", "near", _NONE)
_RANKINGS = tuple(name for name in NAMES if name not in ("embedding", "hybrid"))
"""The rankings that need no vectors."""
_BM25 = ("stemming", "stopwords")
"""The options of BM25."""


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line and return its exit status.

    Args:
        argv: The arguments; None takes those of the process.

    Returns:
        0; 2 after an error in the input, which is one line on standard error; 130 after Ctrl-C;
        141 if nobody read the output. ``count`` and ``ask`` return 1 in cases that their help
        names. Other errors are raised.

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
        write(answer.text)
    except BrokenPipeError:
        abandon_output()
        return _BROKEN_PIPE
    except OSError as error:
        abandon_output()
        return _fail(f"cannot write the output: {error.strerror or error}")
    if answer.said and sys.stderr is not None:
        sys.stderr.write(answer.said)
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
    answer = run(arguments)
    return Answer(answer) if isinstance(answer, str) else answer


def _query(arguments: argparse.Namespace) -> str:
    loaded = config.load(arguments.config)
    with loaded.embedder or nullcontext():
        chunks = loaded.chunks(arguments.text)
        packing, elapsed_ms = _timed(loaded.packer, arguments.text, chunks)
    return _json(packing, elapsed_ms) if arguments.output == "json" else _report(packing)


def _pack_input(arguments: argparse.Namespace) -> str:
    options = {
        name: getattr(arguments, name)
        for name in DEFAULTS
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
    chunks = _chunks(read(arguments.input), shown(arguments.input))
    packing, elapsed_ms = _timed(packer, arguments.query, chunks)
    if arguments.output == "json":
        return _json(packing, elapsed_ms)
    return packing.text + line_end()


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
    for name in ("messages", "memories", "tools"):
        value = getattr(arguments, name)
        if value is not None:
            is_number = (
                name != "tools" and value.isascii() and value.isdigit() and len(value) < 100
            )
            options[name] = int(value) if is_number else json_of(value)
    return _window.inspect(
        arguments.output,
        model=arguments.model,
        max_output_tokens=arguments.max_tokens,
        strict=arguments.strict,
        **options,
    )


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


def _parser() -> Parser:
    parser = Parser(
        prog="budgeteer",
        description="Decides what goes into an LLM's context window: the best that provably fits.",
        epilog=examples(
            'budgeteer ask docs "What is the remote work policy?" -n 8000 -m gpt-4o',
            "budgeteer count --max 8000 prompt.md",
        ),
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands: Commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    _ask.add(commands)
    _add_query(commands)
    _add_pack(commands)
    _add_gate(commands)
    _count.add(commands)
    _cut.add(commands)
    _add_models(commands)
    _add_inspect(commands)
    return parser


def _add_query(commands: Commands) -> None:
    query = commands.add_parser(
        "query",
        help="pack the sources of a configuration for a query",
        epilog=examples(
            'budgeteer query -c budgeteer.yaml -t "What is the remote work policy?"',
            'budgeteer query -c budgeteer.yaml -t "remote work" -o json > context.json',
        ),
    )
    query.set_defaults(run=_query)
    query.add_argument("-c", "--config", required=True, metavar="FILE", help="a YAML file")
    query.add_argument("-t", "--text", required=True, help="the query")
    add_output(query)


def _add_pack(commands: Commands) -> None:
    pack = commands.add_parser(
        "pack",
        help="pack chunks given as JSON or JSON Lines",
        epilog=examples(
            'echo \'["Green tea.", "Coffee."]\' | budgeteer pack --query tea --max-tokens 4',
            "budgeteer pack --query tea --max-tokens 2000 --input chunks.jsonl --template xml",
        ),
    )
    pack.set_defaults(run=_pack_input)
    pack.add_argument("--query", required=True, metavar="TEXT", help="the query; may be empty")
    pack.add_argument("--max-tokens", required=True, type=int, metavar="N", help="the budget")
    pack.add_argument(
        "--reserve-tokens", type=int, metavar="N", help="tokens to subtract from the budget"
    )
    add_counter(pack, None)
    add_choice(pack, "ranking", _RANKINGS, "what comes first")
    pack.add_argument("--min-score", type=float, metavar="X", help="drop chunks that score lower")
    add_choice(pack, "overflow", OVERFLOWS, "what becomes of a chunk that does not fit")
    pack.add_argument("--max-chunks", type=int, metavar="N", help="the most chunks to keep")
    add_choice(pack, "dedupe", _DEDUPES, "whether equal texts, or near ones too, are kept once")
    add_choice(pack, "selection", SELECTIONS, "in which order chunks are admitted")
    add_choice(pack, "stemming", STEMMED, "language whose words of one stem BM25 takes for one")
    add_choice(pack, "stopwords", (*LISTED, _NONE), "whose words BM25 leaves out")
    add_choice(pack, "units", UNITS, "what is packed")
    add_choice(pack, "order", ORDERS, "how the kept chunks stand in the text")
    add_choice(pack, "template", STYLES, "how the text is written")
    pack.add_argument(
        "--notice",
        action="store_true",
        default=None,
        help="say in the text how many were left out",
    )
    pack.add_argument(
        "--input",
        default=STDIN,
        metavar="FILE",
        help="a JSON array, or a string or object a line (default: standard input)",
    )
    add_output(pack)


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
        "--max-tokens", required=True, type=int, metavar="N", help="requested for the answer"
    )
    inspect.add_argument("--memories", metavar="N|FILE", help=number_or_file)
    inspect.add_argument("--tools", metavar="FILE", help="tool schemas, a JSON file")
    inspect.add_argument(
        "--system-tokens",
        type=int,
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
    gate.add_argument("--budget-tokens", type=int, metavar="N", help="the budget (default: 120)")
    gate.add_argument(
        "--max-docs", type=int, metavar="N", help="the most documents to consider (default: 3)"
    )
    add_output(gate)


def _margin(value: str) -> int | str:
    return value if value == "auto" else int(value)


def _fail(message: str) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"budgeteer: error: {one_line(message)}\n")
    return _FAILED
