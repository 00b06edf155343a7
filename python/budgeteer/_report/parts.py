"""What a report shows, whatever it is of: plain data, read by the rooms that own it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["kept", "cut", "dropped"]
Kind: TypeAlias = Literal["used", "reserve", "free"]


class Part(NamedTuple):
    """
    A section of a window.

    Attributes:
        name: Its name.
        tokens: Its tokens.
        kind: Whether the tokens are used, kept free on purpose, or free.
        note: What else is to be said of it, a few words.
        others: Further figures, for the columns of `Report.columns`.

    """

    name: str
    tokens: int
    kind: Kind = "used"
    note: str = ""
    others: tuple[int, ...] = ()


class Piece(NamedTuple):
    """A piece of a text, and whether it was cut out of it."""

    text: str
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """
    A chunk.

    Attributes:
        rank: Its place by rank, from 1.
        index: Its place in the input, from 0.
        name: What its owner calls it: source, id and title.
        score: Its relevance, if it has one.
        tokens: Its tokens, if they are known.
        state: What became of it.
        reason: Why it was dropped, in one word; empty for a kept one.
        why: What happened to it, in words.
        text: Its text, in pieces.
        more: The number of characters of its text that are left out here.
        is_least: Whether it has at least these tokens: it was not counted to its end.

    """

    rank: int
    index: int
    name: str
    score: float | None
    tokens: int | None
    state: State
    reason: str
    why: str
    text: tuple[Piece, ...]
    more: int = 0
    is_least: bool = False


class Change(NamedTuple):
    """Something that was masked, cut or left out of a request."""

    place: str
    action: str
    reason: str
    before: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Written:
    """A piece of the final text, and the index of its chunk; None between chunks."""

    text: str
    index: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    All that a report shows.

    Attributes:
        title: Its title.
        lead: Sentences that say the most important.
        facts: Pairs of a term and what it is here.
        parts: The sections of the window, in order.
        columns: The names of the further figures of the sections.
        rows: The chunks by rank; None where there are none to speak of.
        unlisted: The number of dropped chunks that are not among the rows.
        curve: The points of a budget curve, if it was asked for.
        own: The budget on it that is the packing's own.
        changes: The changes to a request; None where there can be none.
        text: The final text; None where there is none.

    """

    title: str
    lead: str
    facts: Sequence[tuple[str, str]] = ()
    parts: Sequence[Part] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Row] | None = None
    unlisted: int = 0
    curve: Sequence[Any] = ()
    own: int = 0
    changes: Sequence[Change] | None = None
    text: Sequence[Written] | None = None
