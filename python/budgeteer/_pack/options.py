"""The choices of a packer, as types and as the tuples they are checked against."""

from typing import Literal, TypeAlias, get_args

MinScore: TypeAlias = float | Literal["auto"]
Overflow: TypeAlias = Literal["skip", "stop", "truncate_end", "truncate_middle"]
Dedupe: TypeAlias = Literal["exact", "near"]
Selection: TypeAlias = Literal["rank", "coverage"]
Units: TypeAlias = Literal["chunk", "sentence"]
Order: TypeAlias = Literal["rank", "input", "document", "edges", "sticky"]
Style: TypeAlias = Literal["plain", "tagged", "markdown", "xml", "json"]
Reason: TypeAlias = Literal["out_of_scope", "empty", "cap", "duplicate", "budget"]

OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)
DEDUPES: tuple[Dedupe | None, ...] = (None, *get_args(Dedupe))
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
UNITS: tuple[Units, ...] = get_args(Units)
ORDERS: tuple[Order, ...] = get_args(Order)
STYLES: tuple[Style, ...] = get_args(Style)
REASONS: tuple[Reason, ...] = get_args(Reason)
"""Each tuple is in the order of the codes that backends use."""


BUDGETS = 4
"""The chunks that are split into sentences have together at most this multiple of the budget."""
