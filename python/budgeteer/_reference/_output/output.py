"""Reference of ``rust/core/src/output.rs``."""

from collections.abc import Callable
from typing import Protocol

from budgeteer._codes import (
    AUTO,
    CALLABLE,
    DIFF,
    JSON_VALUE,
    LOG,
    LOOSE,
    NO_ROOM,
    NOT_DIFF,
    TABLE,
    TEXT,
)
from budgeteer._reference._count.counter import count as count_tokens
from budgeteer._reference._output.diff import diff_of
from budgeteer._reference._output.lines import text_of
from budgeteer._reference._output.log import is_log, log_of
from budgeteer._reference._output.scan import NotJsonError, scan
from budgeteer._reference._output.tree import Draft, Tree, table_of

CHARS_PER_TOKEN = 4
"""The first text that is counted has this many code points for each token."""

SLACK = 64
"""What a text grows by besides doubling, while it fits."""

Count = Callable[[str], int | None]


class Shape(Protocol):
    """A value that can be cut: JSON, lines or a diff."""

    @property
    def size(self) -> int:
        """Its length in code points."""

    @property
    def bare(self) -> str | None:
        """Its smallest text; None if it cannot be cut."""

    def render(self, room: int, pointer: str | None) -> Draft:
        """Return a text of about *room* code points."""


def fit_output(
    kind: int,
    ratio: float,
    ask: Callable[[str, int], int] | None,
    text: str,
    max_tokens: int,
    shape: int,
    query: str | None,
    pointer: str | None,
) -> tuple[str, int, int, int] | tuple[int, int]:
    """
    Cut *text* to at most *max_tokens* tokens.

    Returns the text, its tokens, how many code points it leaves out, and its shape; or a code and
    a number: what is wrong with the text and where, or the tokens of its smallest text.
    """

    def count(piece: str) -> int | None:
        if not piece:
            return 0
        if kind == CALLABLE and ask is not None:
            tokens = ask(piece, LOOSE)
        else:
            tokens = count_tokens(kind, ratio, piece)
        return tokens if tokens <= max_tokens else None

    if shape == AUTO:
        shape = shape_of(text)
    tree = None
    if shape in (JSON_VALUE, TABLE):
        try:
            compact, root = scan(text)
        except NotJsonError as error:
            code, place = error.args
            return code, place
        tree = Tree(compact, root, query, root)
    diff = None
    if shape == DIFF:
        diff = diff_of(text, query)
        if diff is None and not is_rest_of_diff(text):
            return NOT_DIFF, 0
    total = count(text)
    if total is not None:
        return text, total, 0, JSON_VALUE if shape == TABLE else shape
    if tree is None:
        lines: Shape = diff or (log_of if shape == LOG else text_of)(text, query)
        found = longest(lines, count, max_tokens, pointer)
        if found is None:
            return "", 0, len(text), shape
        return found[0].text, found[1], found[0].left_out, shape
    if tree.text != text:
        total = count(tree.text)
        if total is not None:
            return tree.text, total, 0, JSON_VALUE
    best = longest(tree, count, max_tokens, pointer)
    answered = JSON_VALUE
    table = table_of(tree) if shape == TABLE else None
    if table is not None:
        found = if_whole(table, count) or longest(table, count, max_tokens, pointer)
        if found is not None and found[0].rows > (best[0].rows if best else 0):
            best, answered = found, TABLE
    if best is None and tree.bare is not None:
        total = count(tree.bare)
        if total is not None:
            best = Draft(tree.bare, tree.size - len(tree.bare)), total
    if best is None:
        smallest = tree.text if tree.bare is None else tree.bare
        needed = ask(smallest, LOOSE) if ask else count_tokens(kind, ratio, smallest)
        return NO_ROOM, needed
    return best[0].text, best[1], best[0].left_out, answered


def if_whole(tree: Tree, count: Count) -> tuple[Draft, int] | None:
    """Return the whole of *tree* and its tokens, if it fits."""
    total = count(tree.text)
    return None if total is None else (Draft(tree.text, 0, len(tree.rows.inside)), total)


def longest(
    shape: Shape, count: Count, max_tokens: int, pointer: str | None
) -> tuple[Draft, int] | None:
    """
    Return the longest text of *shape* that fits, and its tokens; None if none does.

    The room doubles until a text does not fit, and is then bisected. Where a longer text counts
    less, the result still fits, but a longer one might have fitted too.
    """
    best = None
    whole = max(1, shape.size)
    low, high = -1, whole
    room = min(high - 1, CHARS_PER_TOKEN * max_tokens)
    while high - low > 1:
        draft = shape.render(room, pointer)
        total = count(draft.text)
        if total is None:
            high = room
        else:
            low, best = room, (draft, total)
        grown = min(high - 1, 2 * room + SLACK)
        room = grown if high == whole else (low + high) // 2
    return best


def shape_of(text: str) -> int:
    """Return the shape of a text by what it is."""
    if text.lstrip(" \t\n\r")[:1] in ("[", "{"):
        try:
            scan(text)
        except NotJsonError:
            pass
        else:
            return JSON_VALUE
    diff = diff_of(text, None)
    if diff is not None and 2 * diff.first <= len(text):
        return DIFF
    return LOG if is_log(text) else TEXT


def is_rest_of_diff(text: str) -> bool:
    """Return whether a text may be what is left of a diff: nothing, or a marker at the end."""
    last = text[text.rfind("\n", 0, len(text) - 1) + 1 :] if text else ""
    return not text or (last.startswith("[... ") and last.endswith(" ...]\n"))
