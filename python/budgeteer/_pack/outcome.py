"""What became of a chunk: kept or dropped."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from budgeteer._chunk.chunk import short_repr
from budgeteer._pack.options import Reason
from budgeteer._public import public
from budgeteer._pydantic import instance_schema

T = TypeVar("T")


def score_in_json(score: float | None) -> float | None:
    """Return a score as JSON can hold it: None for an infinite one, as for none."""
    return None if score is None or math.isinf(score) else score


class _Outcome(Generic[T]):
    """What kept and dropped chunks share: dataclasses with the caller's object as ``chunk``."""

    __slots__ = ()

    if not TYPE_CHECKING:  # pydantic never asks the alias of a dataclass for its schema

        def __class_getitem__(cls, item: Any) -> Any:
            """Return the class: of what type the caller's objects are is for type checkers."""
            return cls

    def __repr__(self) -> str:
        """Show the fields; of a long one its beginning and its length."""
        return short_repr(self)

    def to_dict(self) -> dict[str, Any]:
        """
        Return what is known of the chunk as plain data, without the caller's object.

        An infinite score is None, as JSON has no infinity.

        Examples:
            >>> from budgeteer import pack
            >>> packing = pack("tea", ["tea", ""], 3)
            >>> packing.kept[0].to_dict()["span"], packing.dropped[0].to_dict()["reason"]
            ([0, 3], 'empty')

        """
        data = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]  # a dataclass is below
        del data["chunk"]
        data["score"] = score_in_json(data["score"])
        return {name: list(of) if type(of) is tuple else of for name, of in data.items()}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, and write what `to_dict` returns."""
        return instance_schema(cls, cls.to_dict)


@public("budgeteer")
@dataclass(frozen=True, slots=True, repr=False)
class KeptChunk(_Outcome[T]):
    """
    A chunk that is in the packed text.

    Attributes:
        chunk: The caller's object.
        index: Its place in the input, from 0.
        text: Its text as packed: cut if it was cut, before any escaping, without its frame. Under
            a `Template` of a function, what that returned.
        score: Its relevance. None under ``ranking="score"`` if the chunk has none.
        token_count: Tokens of `text` alone, without its frame.
        citation_tokens: Tokens set aside for citing it, 0 as a rule: see ``presets.agentic_rag``.
        span: Where its text, as escaped, stands in ``Packing.text``: from its first code point to
            the one after its last. None under a `Prompt`, unless its text stands there once.
        was_cut: Whether part of its text was left out.

    Examples:
        >>> from budgeteer import pack
        >>> packing = pack("tea", ["Rye bread.", "Green tea."], 3)
        >>> kept = packing.kept[0]
        >>> kept.index, kept.chunk, kept.token_count, packing.text[slice(*kept.span)]
        (1, 'Green tea.', 3, 'Green tea.')

    """

    chunk: T
    index: int
    text: str
    score: float | None
    token_count: int
    citation_tokens: int
    span: tuple[int, int] | None
    was_cut: bool


@public("budgeteer")
@dataclass(frozen=True, slots=True, repr=False)
class DroppedChunk(_Outcome[T]):
    """
    A chunk that is not in the packed text.

    Attributes:
        chunk: The caller's object.
        index: Its place in the input, from 0.
        score: Its relevance. None under ``ranking="score"`` if the chunk has none.
        reason: ``"out_of_scope"`` (below ``min_score``), ``"empty"``, ``"cap"`` (``max_chunks``
            was reached), ``"duplicate"`` or ``"budget"``.
        needed_tokens: For reason ``"budget"``, the tokens it would have added. Under a native
            encoding this is a lower bound, usually `available_tokens` + 1, as counting stops once
            the budget is exceeded. It is also a lower bound if chunks are cited, as the citation
            of a text that does not fit is not counted. 0 for chunks after the one at which
            ``overflow="stop"`` stopped, and for any other reason. Under a `Template` of a function
            it is 1 if no token was left, as the chunk was not written then. Under a `Prompt` both
            are of the chunk's own text, in the room left for such texts.
        available_tokens: For reason ``"budget"``, the tokens that were left when it was
            considered. 0 for any other reason.
        duplicate_of: For reason ``"duplicate"``, the index of the kept chunk with the same, or
            nearly the same, text.

    Examples:
        >>> from budgeteer import pack
        >>> dropped = pack("tea", ["Green tea.", "Rye bread."], 3).dropped[0]
        >>> dropped.chunk, dropped.reason, dropped.available_tokens
        ('Rye bread.', 'budget', 0)

    """

    chunk: T
    index: int
    score: float | None
    reason: Reason
    needed_tokens: int
    available_tokens: int
    duplicate_of: int | None
