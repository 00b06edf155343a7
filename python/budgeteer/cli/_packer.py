"""The options of `Packer` as arguments, for every command that packs, and what comes of them."""

from __future__ import annotations

import argparse
import dataclasses
import re
from functools import partial
from typing import Any

from budgeteer import Packer, Packing
from budgeteer._files import one_line
from budgeteer._pack.options import DEDUPES, ORDERS, OVERFLOWS, SELECTIONS, STYLES, UNITS
from budgeteer._rank.rankings import KINDS_BY_WORDS, NAMES, Bm25
from budgeteer._rank.terms import LISTED, STEMMED
from budgeteer._validate import MAX_TOKENS
from budgeteer.cli._arguments import (
    DEFAULTS,
    NONE,
    NOTICE,
    OneOf,
    Parser,
    add_choice,
    add_output,
    decimal,
    whole,
)
from budgeteer.cli._document import add_dropped, add_report, document_of, write_report, written
from budgeteer.cli._explained import explained
from budgeteer.cli._streams import Answer, line_end
from budgeteer.errors import InvalidArgumentError

BY_WORDS = (*KINDS_BY_WORDS, "keyword")
"""The rankings that score what has nothing to do with the query 0."""
_TOKENS = 8_000
NOTHING = 1
"""The exit status where nothing was packed."""
_RANKINGS = tuple(name for name in NAMES if name not in ("embedding", "hybrid"))
"""The rankings that need no vectors."""
_ORDERS = tuple(name for name in ORDERS if name != "sticky")
"""The orders that need no packing before this one."""
_TEMPLATES = ("markdown", "xml")
OUTPUTS = ("text", "json", *_TEMPLATES)
_NULLABLE = ("dedupe", "stemming", "stopwords")
_OPTIONS = {
    name: tuple(option.name for option in dataclasses.fields(kind) if option.init)
    for name, kind in KINDS_BY_WORDS.items()
}
"""The options of each ranking that has some."""


def add_packer(
    parser: Parser,
    rankings: tuple[str, ...] = _RANKINGS,
    signals: tuple[str, ...] = ("headings", "links", "feedback"),
    output: OneOf | None = None,
) -> None:
    """
    Add the options of `Packer` but for its counter, and how the answer is written.

    Args:
        parser: The command's.
        rankings: The rankings that the command has.
        signals: What counts under the lexical ranking unless an option says otherwise.
        output: Checks how the answer is written.

    """
    parser.add_argument(
        "-n",
        "--max-tokens",
        type=whole,
        default=_TOKENS,
        metavar="N",
        help=f"the budget (default: {_TOKENS})",
    )
    parser.add_argument(
        "--reserve-tokens", type=whole, metavar="N", help="tokens to subtract from the budget"
    )
    add_choice(parser, "ranking", rankings, "what comes first")
    stems = "language whose words of one stem are one; under --ranking bm25 none is the default"
    add_choice(parser, "stemming", (*STEMMED, NONE), stems)
    add_choice(parser, "stopwords", (*LISTED, NONE), "whose words match nothing")
    for name, most, meaning in (
        ("k1", 1_000_000, "how much repetitions in a text add"),
        ("b", 1, "how much long texts lose"),
        ("k3", 1_000_000, "how much repetitions in the query add"),
    ):
        checks = partial(decimal, allowed=f"a number from 0 to {most}")
        help_text = f"{meaning} (default: {DEFAULTS[name]:g})"
        parser.add_argument(f"--{name}", type=checks, metavar="X", help=help_text)
    for name, meaning in (
        ("headings", "words of the query count more in headings"),
        ("links", "the best chunks raise those whose headings they name"),
        ("feedback", "words of the best chunk count too"),
    ):
        parser.add_argument(
            f"--{name}",
            action=argparse.BooleanOptionalAction,
            help=f"whether {meaning} (default: {'yes' if name in signals else 'no'})",
        )
    parser.add_argument(
        "--min-score",
        type=_min_score,
        metavar="X",
        help="drop chunks that score lower; 'auto' drops those far below the best, for --ranking "
        f"{' or '.join(KINDS_BY_WORDS)}",
    )
    add_choice(parser, "overflow", OVERFLOWS, "what becomes of a chunk that does not fit")
    parser.add_argument("--max-chunks", type=whole, metavar="N", help="the most chunks to keep")
    dedupes = (*(name for name in DEDUPES if name is not None), NONE)
    add_choice(parser, "dedupe", dedupes, "whether equal texts, or near ones too, are kept once")
    add_choice(parser, "selection", SELECTIONS, "in which order chunks are admitted")
    add_choice(parser, "units", UNITS, "what is packed")
    add_choice(parser, "order", _ORDERS, "how the kept chunks stand in the text")
    add_choice(parser, "template", STYLES, "how the text is written")
    parser.add_argument(
        NOTICE,
        nargs="?",
        type=_notice,
        metavar="TEXT",
        help="say in the text how many were left out, with --notice=TEXT in words of your own, "
        "where {count} is the number",
    )
    parser.add_argument(
        "--explain", action="store_true", help="say on standard error what became of the chunks"
    )
    add_report(parser)
    add_dropped(parser, "-o json, --explain and --report")
    add_output(parser, output or OneOf(*OUTPUTS))


def _min_score(text: str) -> float | str:
    return text if text == "auto" else decimal(text, "a number or 'auto'")


def _notice(text: str) -> str | bool:
    """Return the text of the notice; `Parser` gives an option without one the empty text."""
    return text or True


def packer_of(arguments: argparse.Namespace, **defaults: Any) -> Packer:
    """Return the packer of the arguments; *defaults* are for options that are not given."""
    is_listed = arguments.output == "json" or arguments.explain or arguments.report is not None
    if arguments.dropped is not None and not is_listed:
        raise InvalidArgumentError("--dropped is for -o json, --explain and --report")
    options = {
        name: getattr(arguments, name) for name in DEFAULTS if getattr(arguments, name) is not None
    }
    options = {**defaults, **options, "template": _template(arguments)}
    options |= {name: None for name in _NULLABLE if options.get(name) == NONE}
    ranking = options.get("ranking", DEFAULTS["ranking"])
    if options.get("min_score") == "auto" and ranking not in KINDS_BY_WORDS:
        able = " or ".join(KINDS_BY_WORDS)
        raise InvalidArgumentError(f"--min-score auto is for --ranking {able}, not {ranking}")
    own = {name: options.pop(name) for name in _OPTIONS["lexical"] if name in options}
    if own:
        for name, value in own.items():
            if name not in _OPTIONS.get(ranking, ()):
                able = " or ".join(able for able, names in _OPTIONS.items() if name in names)
                flag = f"--no-{name}" if value is False else f"--{name}"
                raise InvalidArgumentError(f"{flag} is for --ranking {able}, not {ranking}")
        options["ranking"] = KINDS_BY_WORDS[ranking](**own)
    try:
        return Packer(**options)
    except InvalidArgumentError as error:
        words = re.sub(r"\b([a-z_]+)='(\w+)'", r"--\1 \2", str(error))
    raise InvalidArgumentError(words)


def _template(arguments: argparse.Namespace) -> str:
    """Return the template that ``--template`` or ``--output`` names."""
    output, template = arguments.output, arguments.template
    if output not in _TEMPLATES:
        return template or DEFAULTS["template"]  # type: ignore[no-any-return]
    if template not in (None, output):
        raise InvalidArgumentError(f"-o {output} is --template {output}, not {template}")
    return output  # type: ignore[no-any-return]


def answer_of(
    arguments: argparse.Namespace,
    packing: Packing[Any],
    packer: Packer,
    where: str,
    *,
    has_places: bool = True,
) -> Answer:
    """
    Return the answer: status 1, and a line that says why, where nothing was packed.

    Args:
        arguments: Those of `add_packer`.
        packing: What was packed.
        packer: What packed it.
        where: The name of what was read.
        has_places: Whether the JSON says where each chunk comes from.

    """
    write_report(arguments, packing)
    said = explained(packing, arguments.dropped) if arguments.explain else []
    if not packing.kept:
        said.append(one_line(f"budgeteer: {_why_nothing(arguments, packing, packer, where)}"))
    lines = "".join(f"{line}\n" for line in said)
    if arguments.output == "json":
        text = written(document_of(arguments, packing, has_places=has_places))
    else:
        text = packing.text and packing.text + line_end()
    return Answer(text, lines, 0 if packing.kept else NOTHING)


def _why_nothing(
    arguments: argparse.Namespace, packing: Packing[Any], packer: Packer, where: str
) -> str:
    """Return why nothing is kept."""
    reasons = {dropped.reason for dropped in packing.dropped} - {"empty"}
    if not reasons:
        return f"there is no text in {where}"
    # `ask` alone leaves out what scores 0, unless told from which score on.
    has_word = packer.min_score != arguments.min_score
    if reasons == {"out_of_scope"} and packer.min_score == "auto":
        return f"nothing with text in {where} scores enough for --min-score auto"
    if reasons == {"out_of_scope"} and not has_word:
        return f"nothing in {where} scores {arguments.min_score!r} or more"
    if reasons == {"out_of_scope"}:
        return _why_no_word(arguments.query, packer, where)
    if "budget" not in reasons:
        return "--max-chunks 0 keeps nothing"
    which = " that has a word of the question" if has_word else ""
    remedy = "a larger -n has room"
    if packer.overflow in ("skip", "stop") and packing.budget_tokens > 0:
        remedy += ", and --overflow truncate_end cuts to fit"
    return f"nothing{which} fits into {packing.budget_tokens} tokens; {remedy}"


def _why_no_word(query: str, packer: Packer, where: str) -> str:
    """Return why nothing has a word of the question: the text, or the question itself."""
    if _matches_itself(query, packer, packer.ranking):
        return f"nothing in {where} has a word of the question"
    if packer.ranking != "keyword" and _matches_itself(query, packer, Bm25(stopwords=None)):
        return "the question has no word but stopwords; --stopwords none counts them"
    return "the question has no word to look for"


def _matches_itself(query: str, packer: Packer, ranking: Any) -> bool:
    """Return whether a query has a word that the ranking looks for."""
    same = Packer(MAX_TOKENS, counter="words", ranking=ranking, min_score=packer.min_score)
    return same.pack(query, [query]).dropped_count == 0
