"""Reference of ``rust/core/src/truncate.rs``."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from budgeteer._codes import CALLABLE, END, LOOSE, START
from budgeteer._reference._count import count as count_tokens
from budgeteer._reference._graphemes import grapheme_boundaries


class Cut:
    """A text, and the pieces of it that a cut may leave."""

    def __init__(self, text: str, keep: int, marker: str) -> None:
        """Find the places where *text* may be cut."""
        self.text = text
        self.keep = keep
        self.marker = marker
        self.boundaries = grapheme_boundaries(text)

    def piece(self, size: int) -> str | None:
        """
        Return the marker and at most *size* code points of the text, whole graphemes only.

        Where both ends are kept the start gets the odd one. None where nothing is left.
        """
        n = len(self.text)
        head = {START: size, END: 0}.get(self.keep, size - size // 2)
        tail = size - head
        head = self.boundaries[bisect_right(self.boundaries, head) - 1]
        tail_start = self.boundaries[bisect_left(self.boundaries, n - tail)]
        if head == 0 and tail_start == n:
            return None
        return self.text[:head] + self.marker + self.text[tail_start:]

    def longest(self, count: Callable[[str], int], max_tokens: int) -> tuple[str, int] | None:
        """
        Return the longest piece of at most *max_tokens* tokens, and its count.

        It is never longer than the text. Bisection takes it that a longer piece costs no less;
        where that is not so, the answer still fits, but a longer one might have.
        """
        best = None
        low, high = 0, len(self.text) - len(self.marker)
        while low < high:
            middle = low + (high - low + 1) // 2
            piece = self.piece(middle)
            if piece is None:
                low = middle
                continue
            tokens = count(piece)
            if tokens <= max_tokens:
                low, best = middle, (piece, tokens)
            else:
                high = middle - 1
        return best


def truncate(
    kind: int,
    ratio: float,
    ask: Callable[[str, int], int] | None,
    text: str,
    max_tokens: int,
    keep: int,
    marker: str,
) -> str:
    """Cut *text* to at most *max_tokens* tokens, marker included."""

    def count(piece: str) -> int:
        if kind == CALLABLE and ask is not None:
            return ask(piece, LOOSE)
        return count_tokens(kind, ratio, piece)

    if count(text) <= max_tokens:
        return text
    best = Cut(text, keep, marker).longest(count, max_tokens)
    return "" if best is None else best[0]
