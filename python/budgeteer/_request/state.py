"""The state of a request while it is fitted: what each message and each tool result takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._layout.section import Section
from budgeteer._messages.frames import Rule
from budgeteer._messages.messages import MessageCosts
from budgeteer._messages.turn import MARKER
from budgeteer._messages.views import Path, Slot, part_path, replaced, slots_of, with_text
from budgeteer._output.output import EMPTY, fit_output
from budgeteer._pack.packer import Packer
from budgeteer._request.read import Item
from budgeteer.errors import BudgetExhaustedError

LEAST_CUT = 256
"""The tokens that a large tool result keeps while there is older history to leave out."""


class Result:
    """
    A text of a tool result.

    Attributes:
        slot: The text and its place.
        before: Its tokens.
        tokens: Its tokens as it is planned.
        is_masked: Whether the mask is planned for it.
        text: The text that stands for it, None for its own.

    """

    __slots__ = ("before", "is_masked", "slot", "text", "tokens")

    def __init__(self, slot: Slot, tokens: int) -> None:
        self.slot = slot
        self.before = self.tokens = tokens
        self.is_masked = False
        self.text: str | None = None


def _uncounted(_: str) -> int:
    return 0


class Entry:
    """
    A message and what it takes.

    Attributes:
        item: The message.
        fixed: Its tokens without the texts of its tool results and its chunks.
        media: Those of them that images, audio and files take.
        results: The texts of its tool results.
        chunks: The text of its chunks, None without a section.
        chunk_tokens: The tokens of that text, and before anything was sacrificed.
        gone: Why it is left out, None if it stays.
        is_exact: Whether nothing of it was estimated.
        media_basis: What the tokens of its media rest on.
        lost: The tokens that it lost before this fitting, None if it is as given.
        lost_by: Why it lost them.

    """

    # Defaults are the class's own, as most messages have no other: there are many.
    media = 0
    results: Sequence[Result] = ()
    chunks: str | None = None
    chunk_tokens = chunk_before = 0
    gone: str | None = None
    lost: int | None = None
    lost_by = "before"
    is_exact = True
    media_basis: Rule = "published rule"

    def __init__(self, item: Item, costs: MessageCosts, count: Callable[[str], int]) -> None:
        """Count the message."""
        self.item = item
        fields = item.fields
        if item.is_plain:
            self.fixed = costs.frame(item.role) + count(fields["content"])
            return
        media = costs.media
        costs.is_exact, costs.media_basis = True, "published rule"
        if not item.results:
            self.fixed = costs.of_view(item.place, fields)
        elif item.shape == "chat" and type(fields.get("content")) is str:
            self.fixed = costs.of_view(item.place, fields, _uncounted)
            slot = Slot(fields["content"], ("content",))
            self.results = (Result(slot, count(slot.text)),)
        else:
            texts: list[str] = []

            def hold(text: str) -> int:
                texts.append(text)
                return 0

            self.fixed = costs.of_view(item.place, fields, hold)
            self.results = [Result(slot, count(slot.text)) for slot in slots_of(item.view)]
            if len(texts) != len(self.results):  # a media part of a result counts as fixed
                self.fixed += sum(map(count, texts)) - self.result_tokens
        self.media = costs.media - media
        self.is_exact, self.media_basis = costs.is_exact, costs.media_basis

    def anew(self) -> Entry:
        """Return an entry of the same message as it was when it was counted."""
        entry = object.__new__(Entry)
        entry.item, entry.fixed = self.item, self.fixed
        if not self.item.is_plain:
            entry.media, entry.media_basis = self.media, self.media_basis
            entry.is_exact = self.is_exact
            entry.results = [Result(result.slot, result.before) for result in self.results]
        return entry

    @property
    def result_tokens(self) -> int:
        return sum(result.tokens for result in self.results)

    @property
    def before(self) -> int:
        tokens = self.fixed + self.chunk_before + (self.lost or 0)
        if not self.results:  # as of most messages
            return tokens
        return tokens + sum(result.before for result in self.results)

    @property
    def tokens(self) -> int:
        """The tokens that are planned for it, 0 if it is left out."""
        if self.gone is not None:
            return 0
        tokens = self.fixed + self.chunk_tokens
        return tokens + self.result_tokens if self.results else tokens

    def pack(self, room: int, counter: TokenCounter) -> None:
        """Pack the chunks of its section into *room* tokens."""
        section = self.item.section
        assert section is not None  # noqa: S101 - callers have asked
        self.chunks = packed(section, room, counter)
        self.chunk_tokens = counter.count(self.chunks) if self.chunks else 0

    def made(self) -> Any:
        """Return the message as it is sent: the caller's own object if nothing is changed."""
        value = self.item.value
        if self.chunks is None and not self.results:
            return value
        view = self.item.view
        for result in self.results:
            if result.text is not None:
                value = with_text(value, view, result.slot.path, result.text)
        if self.chunks is not None:
            at, text = self.item.at, self.chunks
            path: Path = ("content",)
            if at is not None:
                is_part = view.shape in ("gemini", "part")
                path = (*(part_path(value, at) if is_part else ("content", at)), "text")
            value = replaced(value, path, lambda _: text)
        return value


def packed(section: Section, room: int, counter: TokenCounter) -> str:
    """Return the text of a section's chunks packed into *room* tokens."""
    most = _validate.MAX_TOKENS if section.max_tokens is None else section.max_tokens
    given = section.packer
    packer = Packer(most, counter=counter) if given is None else replace(given, counter=counter)
    query, chunks = section.query, section.chunks
    room = min(room, packer.max_tokens, most)
    return packer.pack(query, chunks, max_tokens=room).text  # type: ignore[arg-type]  # both given


def level(results: Sequence[Result], over: int, floor: int) -> int:
    """
    Return the tokens that the largest of *results* may keep so that all lose *over* together.

    At least *floor*, where they then lose less.
    """
    sizes = sorted((result.tokens for result in results), reverse=True)
    for count, size in enumerate(sizes, 1):
        below = max(floor, sizes[count] if count < len(sizes) else 0)
        if size <= floor:
            break
        above = sum(sizes[:count])
        if above - count * below >= over:
            return max(floor, (above - over) // count)
    return floor


def cut(
    results: Sequence[Result], room: int, counter: TokenCounter, query: str | None = None
) -> None:
    """
    Cut the largest of *results* so that all of them take at most *room* tokens.

    What answers *query* best stays.
    """
    ordered = sorted(results, key=lambda result: result.before)
    for done, result in enumerate(ordered):
        share = room // (len(ordered) - done)
        if result.before > share:
            result.text = shortened(result.slot.text, share, counter, query)
            result.tokens = counter.count(result.text)
        else:
            result.tokens = result.before
        room -= result.tokens


def shortened(text: str, room: int, counter: TokenCounter, query: str | None) -> str:
    """Return a large tool result in *room* tokens: what it is, as JSON or a log, stays valid."""
    try:
        fitted = fit_output(text, room, query=query, counter=counter).text
    except BudgetExhaustedError:
        return MARKER
    return MARKER if fitted in EMPTY else fitted


def alive(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the messages that stay."""
    return (entry for entry in entries if entry.gone is None)
