"""Reference of ``rust/core/src/truncate.rs``."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from budgeteer._codes import BOTH, CALLABLE, END, LOOSE, START, WORDS
from budgeteer._reference._count import exact as _exact
from budgeteer._reference._count.counter import count as count_tokens
from budgeteer._reference._count.counter import within
from budgeteer._reference._count.graphemes import grapheme_boundaries

SINGLE_TRIES = 8
"""The times that a piece still over loses one cluster; then the loss doubles each time."""


LONGEST_TOKEN = 128
"""The most bytes of a token."""

SLACK = 256
"""The number of code points to look at beyond those that can stay."""


def last_plain_pair(text: str, start: int) -> int:
    """Return the last place up to *start* between two plain characters."""
    for place in range(min(start, len(text) - 1), 0, -1):
        if is_plain(text[place - 1]) and is_plain(text[place]):
            return place
    return 0


def is_plain(char: str) -> bool:
    """Return whether *char* is a cluster by itself, whatever its neighbours are."""
    return char == "\n" or " " <= char <= "~" or "\u4e00" <= char <= "\u9fff"


class Words:
    """The places where a text may be cut so that all its words are whole."""

    def __init__(self, text: str, clusters: list[int], keep: int, marker: str) -> None:
        """Find the places where the head may end and the tail begin, by their words."""
        n = len(text)
        # A word must not run on into the marker, nor the head into the tail.
        before = not marker[0].isspace() if marker else keep == BOTH
        behind = bool(marker) and not marker[-1].isspace()
        self.heads, self.tails = [0], [n]
        if keep != END:
            self.heads += ends_of_words(text, clusters, runs_on=before)
        if keep != START:
            mirrored = [n - at for at in reversed(clusters)]
            ends = ends_of_words(text[::-1], mirrored, runs_on=behind)
            self.tails += [n - at for at in ends]

    def most_even(self, words: int) -> tuple[int, int] | None:
        """
        Return the ends of the piece of that many words whose ends have the most even numbers.

        The start gets the odd word. None if nothing would be cut out.
        """
        first, last = max(0, words - len(self.tails) + 1), min(words, len(self.heads) - 1)
        fitting = [
            of_head
            for of_head in range(first, last + 1)
            if self.heads[of_head] < self.tails[words - of_head]
        ]
        if not fitting:
            return None
        of_head = min(fitting, key=lambda of_head: abs(of_head - (words - words // 2)))
        return self.heads[of_head], self.tails[words - of_head]


def ends_of_words(text: str, clusters: list[int], *, runs_on: bool) -> list[int]:
    """
    Return the first place after each word but the last at which a cluster ends, outside of words.

    With *runs_on*, whitespace must stand before the place; else it may stand after it.
    """
    places, last, has_word = [], 0, False
    for at in clusters:
        if not 0 < at < len(text):
            continue
        has_word = has_word or not text[last:at].isspace()
        last = at
        if has_word and (text[at - 1].isspace() or (not runs_on and text[at].isspace())):
            places.append(at)
            has_word = False
    return places


class Cut:
    """A text and the pieces that a cut may leave; with *words*, only whole words."""

    def __init__(self, text: str, keep: int, marker: str, *, words: bool = False) -> None:
        """Find the places where *text* may be cut."""
        self.text = text
        self.keep = keep
        self.marker = marker
        self.boundaries = grapheme_boundaries(text)
        self.words = Words(text, self.boundaries, keep, marker) if words else None

    def piece(self, size: int) -> str | None:
        """
        Return the marker and at most *size* code points of the text, whole graphemes only.

        If both ends are kept, the start gets the odd one. None if nothing is left.
        """
        n = len(self.text)
        head = self.head_of(size)
        tail = size - head
        head = self.boundaries[bisect_right(self.boundaries, head) - 1]
        tail_start = self.boundaries[bisect_left(self.boundaries, n - tail)]
        if head == 0 and tail_start == n:
            return None
        return self.text[:head] + self.marker + self.text[tail_start:]

    def head_of(self, size: int) -> int:
        """Return how many of *size* units the start gets, the odd one included."""
        return {START: size, END: 0}.get(self.keep, size - size // 2)

    def longest_exact(self, kind: int, max_tokens: int) -> tuple[str, int] | None:
        """
        Return a long piece of at most *max_tokens* tokens of an encoding, and its count.

        It ends at the end of a token, or at the cluster before it, and is shortened further if it
        still counts more. Only the part of the text that may stay is read.
        """
        if not _exact.has_tokens(kind):
            return self.longest(lambda piece: _exact.count(kind, piece), max_tokens)
        n = len(self.text)
        room = max_tokens - _exact.count(kind, self.marker)
        most = n - len(self.marker)
        if room <= 0 or most <= 0:
            return None
        reach = room * LONGEST_TOKEN + SLACK
        head, tail = 0, n
        if self.keep != END:
            head = _exact.Tokens(kind, self.text[:reach]).head(self.head_of(room))
        if self.keep != START:
            back = last_plain_pair(self.text, max(0, n - reach))
            tokens = _exact.Tokens(kind, self.text[back:])
            tail = max(head, back + tokens.tail(room - self.head_of(room)))
        if head + n - tail > most:  # never longer than the text
            head = min(head, self.head_of(most))
            tail = max(tail, n - (most - self.head_of(most)))
        at_head = bisect_right(self.boundaries, head) - 1
        at_tail = bisect_left(self.boundaries, tail)
        last = len(self.boundaries) - 1
        tries, clusters = 0, 1
        while at_head > 0 or at_tail < last:
            head, tail = self.boundaries[at_head], self.boundaries[at_tail]
            piece = self.text[:head] + self.marker + self.text[tail:]
            counted = _exact.count(kind, piece)
            if counted <= max_tokens:
                return piece, counted
            tries += 1
            if tries > SINGLE_TRIES:
                clusters *= 2
            for _ in range(clusters):
                if at_head > 0 and self.boundaries[at_head] >= n - self.boundaries[at_tail]:
                    at_head -= 1
                elif at_tail < last:
                    at_tail += 1
        return None

    def longest(self, count: Callable[[str], int], max_tokens: int) -> tuple[str, int] | None:
        """
        Return the longest piece of at most *max_tokens* tokens, and its count.

        It is never longer than the text, but where words are counted: there the marker may have
        more characters than the words that it stands for. Bisection assumes that a longer piece
        costs no less; if that is wrong, the result still fits, but a longer piece might have
        fitted too.
        """
        best = None
        low, high = 0, len(self.text) - len(self.marker)
        if self.words is not None:
            high = len(self.words.heads) + len(self.words.tails) - 2
        while low < high:
            middle = low + (high - low + 1) // 2
            if self.words is None:
                piece = self.piece(middle)
                if piece is None:
                    low = middle
                    continue
            else:
                ends = self.words.most_even(middle)
                if ends is None:
                    high = middle - 1
                    continue
                piece = self.text[: ends[0]] + self.marker + self.text[ends[1] :]
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
    if _exact.is_exact(kind):
        max_tokens = within(max_tokens, ratio)
        if _exact.count_till_limit(kind, text, max_tokens) is not None:
            return text
        best = Cut(text, keep, marker).longest_exact(kind, max_tokens)
        return "" if best is None else best[0]

    def count(piece: str) -> int:
        if kind == CALLABLE and ask is not None:
            return ask(piece, LOOSE)
        return count_tokens(kind, ratio, piece)

    if count(text) <= max_tokens:
        return text
    best = Cut(text, keep, marker, words=kind == WORDS).longest(count, max_tokens)
    return "" if best is None else best[0]
