"""Cuts the results of tools to a limit: JSON, tables, logs, diffs and texts stay what they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._codes import NO_ROOM, NOT_DIFF, TOO_DEEP
from budgeteer._count.counter import TokenCounter
from budgeteer._count.resolve import get_counter
from budgeteer._messages.shapes import plain
from budgeteer._public import public
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

OutputKind: TypeAlias = Literal["auto", "text", "json", "table", "log", "diff"]
KINDS: tuple[OutputKind, ...] = get_args(OutputKind)

_OF_VALUES = ("auto", "json", "table")
"""The kinds that take a value other than a str."""

_DEEPEST = 128
"""The most levels of arrays and objects."""

EMPTY = ("", "[]", "{}", '""')
"""The smallest texts, which do not say that something was left out."""

_LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

Counter: TypeAlias = "str | Callable[[str], int] | TokenCounter | ModelLimits"
Spill: TypeAlias = Callable[[str], str]


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class FittedOutput:
    """
    The result of a tool, cut to a limit. Made by `fit_output`.

    Attributes:
        text: What to send; valid JSON, a diff or a log, as `kind` says.
        total_tokens: The tokens of `text` by the counter, at most the limit.
        left_out: The number of characters that `text` leaves out, from 0 on. In JSON, whitespace
            between tokens is not counted.
        kind: ``"text"``, ``"json"``, ``"table"``, ``"log"`` or ``"diff"``.
        pointer: What the spill callback returned; None if it was not called.

    Examples:
        >>> fit_output([1, 2, 3], 20)
        FittedOutput(text='[1,2,3]', total_tokens=7, left_out=0, kind='json', pointer=None)

    """

    text: str
    total_tokens: int
    left_out: int
    kind: OutputKind
    pointer: str | None = None

    @property
    def was_cut(self) -> bool:
        """
        Whether anything was left out.

        Examples:
            >>> fit_output("Green tea. " * 50, 20).was_cut
            True

        """
        return self.left_out > 0


def fit_output(
    value: object,
    max_tokens: int,
    *,
    query: str | None = None,
    kind: OutputKind = "auto",
    counter: Counter = "o200k_base",
    spill: Spill | None = None,
) -> FittedOutput:
    r"""
    Return the result of a tool cut to at most *max_tokens* tokens, and still valid.

    A value that fits is returned as it is. One that is cut says, in its own format, how much was
    left out, and that is counted too; only its smallest text does not. Fitting the text again with
    the same limit changes nothing.

    ==========  ==================================================================================
    ``json``    It parses, and arrays stay arrays and objects objects. The best items of an array
                stay, in their order; an item that would take more than a quarter of the room loses
                the middle of its long strings, and of its arrays. One string stands where items
                were first left out. An object keeps all its keys while there is room for them;
                then a member ``"..."`` says how many are left out. Numbers, keys and duplicates
                stay as written. The smallest texts are ``[]``, ``{}`` and ``""``.
    ``table``   As ``json``. An array of objects with the same keys becomes
                ``{"columns":[...],"rows":[[...],...]}`` if more of its items fit so.
    ``log``     Errors stay first, and take turns with answers to the query; then the indented
                lines behind them, warnings, the two lines at either end, the lines around errors,
                and all others. Of lines that differ in numbers and identifiers alone one stands
                for all: the first, or the best answer. Its repeats stay last; but the last of an
                error stands behind the errors, and the others take turns with the lines that are
                new. The best line is whole where it fits; others are whole, too, or go, but that
                long ones may lose their middle. Objects of JSON Lines stay JSON between the
                markers, which are none; their ``level`` or ``severity`` decides, a number as in
                pino, or below 10 as in syslog.
    ``diff``    Whole hunks stay below the header of their file, from the start on. Files without
                any are named in the last line.
    ``text``    Its two ends stay; with a query, its best paragraphs.
    ``auto``    ``json`` for a value that is not a str, and for a str that begins with ``[`` or
                ``{`` and parses; ``diff`` for a unified diff, with at most as much text before it;
                ``log`` for JSON Lines, and for four lines or more, half of them with a level such
                as ``INFO`` or a time such as ``12:30`` near their start, or one of them the error
                of a build such as ``tea.c:3:5: error: ...``, half with digits, slashes or the
                like, and none that begins as Markdown's fences, headings and tables; else
                ``text``.
    ==========  ==================================================================================

    Without a query the best items, lines and paragraphs are those at both ends. With one, those
    come first that answer it by BM25, as in `budgeteer.ranking.bm25_scores`.

    Args:
        value: A str, or a value that can be written as JSON.
        max_tokens: The most tokens of the text, from 0 on.
        query: What the best parts are about; None or the empty text for no query.
        kind: What *value* is.
        counter: Counts the text, as for `get_counter`: the name of a counter or of a model, a
            callable or a `TokenCounter`.
        spill: Called with the whole text where something is left out, once. It keeps the text, and
            returns one line that says where, which the first marker then shows. Where that marker
            does not fit, the plain one stands, and only `FittedOutput.pointer` has the line.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, *value* is not of
            the *kind*, or it is nested more than 128 deep.
        BudgetExhaustedError: Not even the smallest text of the value fits. Texts, logs and diffs
            always do, as the empty text has no tokens.
        CounterError: As for `TokenCounter.count`.

    Examples:
        >>> rows = [{"id": i, "tea": "green" if i == 7 else "black"} for i in range(50)]
        >>> print(fit_output(rows, 40, query="green").text)
        [{"id":0,"tea":"black"},"[... 48 of 50 items left out ...]",{"id":7,"tea":"green"}]
        >>> fitted = fit_output("INFO 12:30 ping\n" * 99 + "ERROR 12:31 no pong\n", 25)
        >>> fitted.kind, fitted.was_cut
        ('log', True)
        >>> print(fitted.text)
        INFO 12:30 ping
        [... 98 similar lines ...]
        ERROR 12:31 no pong
        <BLANKLINE>
        >>> fit_output("Green tea. " * 50, 24, spill=lambda text: "/tmp/tea.txt").pointer
        '/tmp/tea.txt'

    """
    limit = _validate.tokens("max_tokens", max_tokens)
    options = _options(query, kind, counter, spill)
    text, kind = _text("value", value, kind)
    return _fit("value", text, kind, limit, *options)


def fit_outputs(
    values: Sequence[object],
    max_tokens: int,
    *,
    query: str | None = None,
    kind: OutputKind = "auto",
    counter: Counter = "o200k_base",
    spill: Spill | None = None,
) -> list[FittedOutput]:
    """
    Return the results of several tools, together cut to at most *max_tokens* tokens.

    They share the limit by max-min fairness: a small result is whole before a larger one gets
    more than it. Each is cut as `fit_output` cuts it.

    Args:
        values: The results, each a str or a value that can be written as JSON.
        max_tokens: The most tokens of all texts together, from 0 on.
        query: As for `fit_output`.
        kind: As for `fit_output`; the kind of each of them.
        counter: As for `fit_output`.
        spill: As for `fit_output`; called once for each result that is cut.

    Returns:
        A `FittedOutput` for each of *values*, in their order.

    Raises:
        InvalidArgumentError: As for `fit_output`; the message names the index.
        BudgetExhaustedError: As for `fit_output`, for the share of one of them.
        CounterError: As for `TokenCounter.count`.

    Examples:
        >>> fitted = fit_outputs(["Green tea.", "Black tea. " * 99, "Oolong. " * 99], 63)
        >>> [output.total_tokens for output in fitted]
        [3, 30, 30]

    """
    items = _validate.batch("values", values)
    limit = _validate.tokens("max_tokens", max_tokens)
    options = _options(query, kind, counter, spill)
    texts = [_text(f"values[{i}]", item, kind) for i, item in enumerate(items)]
    count = options[1].count_till_limit
    needs = [count(text, limit) if text else 0 for text, _ in texts]
    order = sorted(range(len(texts)), key=lambda i: (needs[i] is None, needs[i] or 0, i))
    fitted: dict[int, FittedOutput] = {}
    for done, i in enumerate(order):
        share = limit // (len(order) - done)
        text, kind = texts[i]
        fitted[i] = _fit(f"values[{i}]", text, kind, share, *options)
        limit -= fitted[i].total_tokens
    return [fitted[i] for i in range(len(texts))]


def _options(
    query: str | None,
    kind: OutputKind,
    counter: Counter,
    spill: Spill | None,
) -> tuple[str | None, TokenCounter, Spill | None]:
    """Return the options of a call but for the kind, checked."""
    if query is not None:
        query = _validate.text("query", query)
    _validate.choice("kind", kind, KINDS)
    if spill is not None and not callable(spill):
        raise InvalidArgumentError(
            f"spill must be a callable or None, not {_validate.type_name(spill)}"
        )
    return query or None, get_counter(counter), spill


def _text(where: str, value: object, kind: OutputKind) -> tuple[str, OutputKind]:
    """Return a value as text, and its kind as far as the type decides it."""
    if isinstance(value, str):
        text = _validate.text(where, value)
        if kind in ("auto", "text", "log", "diff") or text:
            return text, kind
        raise InvalidArgumentError(f"{where} must be JSON for kind {kind!r}, not the empty text")
    if kind not in _OF_VALUES:
        raise InvalidArgumentError(
            f"{where} must be a str for kind {kind!r}, not {_validate.type_name(value)}: kind "
            "'json' takes any value"
        )
    try:
        text = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain
        )
    except RecursionError:
        raise _too_deep(where) from None
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{where} must be a str or a value that can be written as JSON: {error}"
        ) from None
    return text, "json" if kind == "auto" else kind


def _fit(
    where: str,
    text: str,
    kind: OutputKind,
    limit: int,
    query: str | None,
    counter: TokenCounter,
    spill: Spill | None,
) -> FittedOutput:
    """Cut one text."""
    fitted = _cut(where, text, kind, limit, query, counter, None)
    if spill is None or not fitted.was_cut:
        return fitted
    pointer = spill(text)
    if not isinstance(pointer, str):
        shown = _validate.type_name(pointer)
    else:
        pointer = _validate.text("spill", pointer)
        if pointer and _LINE_ENDS.isdisjoint(pointer):
            found = _cut(where, text, kind, limit, query, counter, pointer)
            return replace(fitted, pointer=pointer) if found.text in EMPTY else found
        shown = "more lines" if pointer else "the empty text"
    raise InvalidArgumentError(f"spill must return one line of text, not {shown}")


def _cut(
    where: str,
    text: str,
    kind: OutputKind,
    limit: int,
    query: str | None,
    counter: TokenCounter,
    pointer: str | None,
) -> FittedOutput:
    """Have the backend cut one text, and word its errors."""
    asked = None if counter._function is None else counter._ask
    answer = backend.fit_output(
        counter._kind,
        counter._ratio,
        asked,
        text,
        limit,
        KINDS.index(kind),
        query,
        pointer,
    )
    if len(answer) == 4:
        fitted, total, left_out, code = answer
        return FittedOutput(fitted, total, left_out, KINDS[code], pointer)
    code, number = answer
    if code == NO_ROOM:
        raise BudgetExhaustedError(
            f"nothing of {where} fits: max_tokens {limit} - {number} for its smallest text = "
            f"{limit - number}"
        )
    if code == TOO_DEEP:
        raise _too_deep(where)
    if code == NOT_DIFF:
        raise InvalidArgumentError(
            f"{where} must be a unified diff for kind 'diff', and has no header of a file: kind "
            "'text' takes any str"
        )
    raise InvalidArgumentError(
        f"{where} must be JSON for kind {kind!r}, and is not from character {number} on: kind "
        "'text' takes any str"
    )


def _too_deep(where: str) -> InvalidArgumentError:
    """Return the error for JSON with too many levels."""
    return InvalidArgumentError(
        f"{where} must be nested at most {_DEEPEST} deep to be cut as JSON: as a str, kind 'text' "
        "takes it"
    )
