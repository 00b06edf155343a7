"""Reference of the text so far in ``rust/core/src/assemble``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from budgeteer._codes import BY_DOCUMENT, PLAIN, WRITTEN
from budgeteer._reference._pack.outcome import Outcome
from budgeteer._reference._pack.template import Piece, Tag, Template, arranged


@dataclass(slots=True)
class Draft:
    """
    The text with the chunks that are kept so far.

    It is the header, the kept chunks with separators between them, the notice if chunks were left
    out, and the footer. Without a kept chunk it is empty.
    """

    texts: Sequence[str]
    template: Template
    order: int
    previous: Sequence[str]
    notice_pieces: Sequence[str] | None
    """The notice, split at its number; None for no notice."""
    tag: Callable[[int], tuple[str, str, str, str, float]]
    """Returns the tag of a chunk. It may raise, and is called for few chunks only."""
    write: Callable[[int], str]
    """Returns how the caller's function writes a chunk. It may raise."""
    outcome: Outcome
    written: dict[int, str] = field(default_factory=dict)
    """What it has written."""
    has_room_for_notice: bool = False
    notice_yields: bool = False
    """Whether there is no notice, as the best chunk needs its room."""

    @property
    def is_written(self) -> bool:
        """Whether the caller's function writes the chunks."""
        return self.template.style == WRITTEN

    def body(self, i: int) -> str:
        """Return what is counted of chunk *i* without its frame."""
        return self.written.get(i, self.texts[i])

    def bare(self, i: int, tokens: int) -> Piece:
        """Return chunk *i* without its frame and without escaping."""
        return Piece(i, "", self.body(i), "", tokens)

    def framed(self, i: int, tokens: int) -> Piece:
        """Return chunk *i* in its frame; *tokens* are those of its own text."""
        if self.template.style in (PLAIN, WRITTEN) and self.order != BY_DOCUMENT:
            return self.bare(i, tokens)
        tag = Tag(*self.tag(i))
        front, back = self.template.around(tag, i)
        text = self.template.escaped(self.body(i))
        return Piece(i, front, text, back, tokens, tag.source, tag.position)

    def cut_to(self, piece: Piece, text: str, tokens: int) -> Piece:
        """Return *piece* with the *text* that a cut left of it, in the same frame."""
        return replace(piece, text=self.template.escaped(text), tokens=tokens, was_cut=True)

    def notice(self, count: int) -> str:
        """Return a separator and the notice that *count* chunks were left out, if wanted."""
        if self.notice_pieces is None:
            return ""
        return self.template.separator + self.template.notice(self.notice_pieces, count)

    def longest_notice(self) -> str:
        """Return the notice that all chunks were left out, as no other number is longer."""
        return self.notice(len(self.texts))

    def tail(self) -> str:
        """Return the text after the last chunk."""
        notice = self.notice(len(self.outcome.dropped)) if self.has_notice() else ""
        return notice + self.template.footer

    def has_notice(self) -> bool:
        """Return whether the text has a notice if no more chunks are dropped."""
        is_wanted = self.notice_pieces is not None and not self.notice_yields
        return is_wanted and bool(self.outcome.dropped)

    def longest_tail(self) -> str:
        """Return the longest text that may come after the last chunk."""
        notice = self.longest_notice() if self.has_room_for_notice else ""
        return notice + self.template.footer

    def in_text_order(self) -> list[Piece]:
        """Return the kept chunks in the order of the text."""
        return arranged(self.order, self.outcome.kept, self.previous, self.template)

    def assembled(self, tail: str) -> str:
        """Return the text, with *tail* after the last chunk."""
        if not self.outcome.kept:
            return ""
        pieces = (piece.rendered for piece in self.in_text_order())
        return self.template.header + self.template.separator.join(pieces) + tail

    def assembled_with(self, piece: Piece) -> str:
        """Return the text with *piece* also kept, and the longest tail."""
        self.outcome.kept.append(piece)
        text = self.assembled(self.longest_tail())
        self.outcome.kept.pop()
        return text
