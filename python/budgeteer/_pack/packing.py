"""The result of packing: what was kept, what was dropped, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._chunk.chunk import packed_texts
from budgeteer._codes import FORMAT, NEAR, PLAIN, WRITTEN
from budgeteer._copies import Copied
from budgeteer._count.counter import TokenCounter
from budgeteer._pack.curve import Again, BudgetPoint
from budgeteer._pack.lazy import Lazy
from budgeteer._pack.options import REASONS
from budgeteer._pack.outcome import DroppedChunk, KeptChunk, score_in_json
from budgeteer._pack.prepared import Prepared
from budgeteer._public import public
from budgeteer._pydantic import instance_schema
from budgeteer._rank.rankings import RankingName
from budgeteer.errors import BudgeteerError, InvalidArgumentError

T = TypeVar("T")

_COLUMNS: dict[str, Literal["I", "q", "d"]] = {
    "_kept": "I",
    "_counts": "q",
    "_spans": "q",
    "_kept_scores": "d",
    "_scores": "d",
    "_dropped": "I",
    "_needed": "q",
    "_available": "q",
    "_citations": "q",
}
"""The attributes of a packing that hold columns of a backend's answer, and their types."""

_NOT_PICKLED = (
    *("_chunks", "_counter", "_again", "_packed", "_prepared"),
    *("_signals_of", "_kept_places", "_dropped_places"),
)
"""The attributes that hold the caller's objects or lead to them, or are made of others."""
_SIGNAL = Struct("=IIId")
"""A chunk, a kind of signal, another chunk, and what is added to the score of the first."""
_EXTRACT = Struct("=III")
"""A chunk, how many of its sentences are in the text, and how many it has."""


@public("budgeteer")
class Packing(Copied, Generic[T]):
    """
    The best context that fits, and what became of every chunk.

    Its items are made on access. Reading `dropped_total_tokens` or `stable_prefix_tokens` counts;
    nothing else does. A pickled packing holds the kept texts, the figures and the reasons; in
    place of the caller's objects it has the kept texts, and None for dropped chunks. A copy in the
    same process, deep or not, shares the caller's objects.

    Attributes:
        text: The context, ready to send.
        total_tokens: The count of exactly `text`; at most `budget_tokens`.
        budget_tokens: ``max_tokens - reserve_tokens``, at least 0.
        is_exact: Whether the counter counts as a tokenizer does; False for an estimate. A caller's
            own function is exact only if it says so, as for `get_counter`.
        fallback: ``"lexical"`` or ``"bm25"`` if texts could not be embedded and that ranked
            instead; usually None.

    Examples:
        >>> from budgeteer import pack
        >>> packing = pack("capital of France", ["Paris is the capital.", "Bread."], 6)
        >>> packing.text
        'Paris is the capital.'
        >>> packing.dropped[0].reason
        'budget'

    """

    def __init__(
        self,
        chunks: Sequence[T],
        packed: Any,
        prepared: Prepared,
        *,
        budget: int,
        reserve: int,
        fallback: RankingName | None = None,
        own: tuple[str, ...] | None = None,
    ) -> None:
        """Wrap the answer of a backend; made by `Packer.pack`."""
        self.text: str = packed.text
        self.total_tokens: int = packed.total_tokens
        self.budget_tokens = budget
        self.is_exact: bool = prepared.counter.is_exact
        self.fallback = fallback
        self._chunks: Sequence[T | None] = chunks
        self._prepared: Prepared | None = prepared
        self._packed: Any = packed
        self._reserve_tokens = reserve
        self._extracts = {i: counts for i, *counts in _EXTRACT.iter_unpack(packed.extracts)}
        self._own = own
        self._stable = 0
        self._again: Again | None = None

    def _read(self) -> None:
        """Read the columns of kept chunks, and the options that a packing reports."""
        packed, prepared = self._packed, self._prepared
        assert prepared is not None  # noqa: S101 - a pickled packing has all columns
        self._counter: TokenCounter | None = prepared.counter
        self._max_chunks = prepared.max_chunks
        self._max_docs = prepared.max_docs
        self._is_citing = prepared.is_citing
        self._style = prepared.template._style
        self._is_needed_a_bound = (
            prepared.counter._is_encoding
            or prepared.is_citing
            or self._style == WRITTEN
            or prepared.prompt is not None
        )
        self._is_near = prepared.dedupe == NEAR
        self._kept = memoryview(packed.kept).cast("I")
        self._counts = memoryview(packed.token_counts).cast("q")
        self._citations = memoryview(packed.citation_tokens).cast("q")
        self._cut: int = packed.cut
        self._least: float | None = packed.least
        self._kept_scores = memoryview(packed.kept_scores).cast("d")
        self._dropped_count = len(self._chunks) - len(self._kept)
        self._duplicates: dict[int, int] = packed.duplicates

    def _read_spans(self) -> None:
        """Read where kept texts stand; in a prompt's own text they are searched for now."""
        self._spans = memoryview(self._packed.spans).cast("q")

    def _read_scores(self) -> None:
        """Read the scores of all chunks; those of a corpus are added up now."""
        packed = self._packed
        scores = packed.scores if packed.unseen is None else packed.unseen
        self._scores = memoryview(scores).cast("d")

    def _read_dropped(self) -> None:
        """Read the columns of dropped chunks; for a corpus they are made now."""
        packed = self._packed
        if packed.unseen is None:
            columns = packed.dropped, packed.reasons, packed.needed, packed.available
        else:
            columns = packed.unseen.columns()
        dropped, self._reasons, needed, available = columns
        self._needed = memoryview(needed).cast("q")
        self._available = memoryview(available).cast("q")
        self._dropped = memoryview(dropped).cast("I")

    def _read_signals(self) -> None:
        """Read what scores by words are made of."""
        packed = self._packed
        self._signals: bytes = packed.signals if packed.unseen is None else packed.unseen.signals()

    @cached_property
    def _signals_of(self) -> dict[int, list[tuple[int, int, float]]]:
        """What the score of each chunk has besides that of the query's words in the text."""
        found: dict[int, list[tuple[int, int, float]]] = {}
        for chunk, *signal in _SIGNAL.iter_unpack(self._signals):
            found.setdefault(chunk, []).append(tuple(signal))
        return found

    @cached_property
    def _kept_places(self) -> dict[int, int]:
        """The place of each kept chunk in the text."""
        return {index: place for place, index in enumerate(self._kept)}

    @cached_property
    def _dropped_places(self) -> dict[int, int]:
        """The place of each dropped chunk among these."""
        return {index: place for place, index in enumerate(self._dropped)}

    if not TYPE_CHECKING:  # a type checker knows the attributes, and no others

        def __getattr__(self, name: str) -> Any:
            """Read the columns when one of them is read first: many callers read only the text."""
            if name in _COLUMNS_OF and "_packed" in self.__dict__:
                _COLUMNS_OF[name](self)
                return self.__dict__[name]
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    @property
    def kept(self) -> Sequence[KeptChunk[T]]:
        """
        The chunks in the text, in the order in which they stand there.

        Examples:
            >>> from budgeteer import pack
            >>> [kept.chunk for kept in pack("tea", ["Rye bread.", "Green tea."], 8).kept]
            ['Green tea.', 'Rye bread.']

        """
        return Lazy(len(self._kept), self._kept_chunks)

    @property
    def dropped(self) -> Sequence[DroppedChunk[T]]:
        """
        The chunks not in the text, in the order in which they were dropped.

        Examples:
            >>> from budgeteer import pack
            >>> packing = pack("tea", ["Green tea.", "Green tea.", ""], 8)
            >>> [dropped.reason for dropped in packing.dropped]
            ['duplicate', 'empty']

        """
        return Lazy(self._dropped_count, self._dropped_chunks)

    @property
    def dropped_count(self) -> int:
        """
        The number of chunks not in the text, for whatever reason.

        Examples:
            >>> from budgeteer import pack
            >>> pack("tea", ["Green tea.", "Green tea.", ""], 8).dropped_count
            2

        """
        return self._dropped_count

    @property
    def was_truncated(self) -> bool:
        """
        Whether anything was dropped or cut.

        Examples:
            >>> from budgeteer import pack
            >>> [pack("tea", ["Green tea."], budget).was_truncated for budget in (3, 2)]
            [False, True]

        """
        return self._cut >= 0 or self._dropped_count > 0 or bool(self._extracts)

    @cached_property
    def dropped_total_tokens(self) -> int:
        """
        Tokens of all dropped texts together. Reading this attribute counts them.

        Raises:
            BudgeteerError: The packing was pickled before this was read: the texts are gone.
            InvalidArgumentError: The text was taken out of a chunk since it was packed.

        Examples:
            >>> from budgeteer import pack
            >>> pack("tea", ["Green tea.", "Rye bread."], 3).dropped_total_tokens
            4

        """
        if self._counter is None:
            raise BudgeteerError(
                "dropped_total_tokens was not read before the packing was pickled, and a pickled "
                "packing has no dropped texts"
            )
        texts = packed_texts(self._chunks)
        return sum(self._counter._count_chunk(texts(i), i) for i in self._dropped)

    @cached_property
    def stable_prefix_tokens(self) -> int:
        """
        Tokens of the beginning that `text` shares with the previous packing.

        It ends with the last chunk of that common beginning. 0 if `Packer.pack` was given no
        ``previous``. Reading this attribute counts them.

        Raises:
            BudgeteerError: The packing was pickled before this was read: the counter is gone.

        Examples:
            >>> from budgeteer import Packer
            >>> packer = Packer(20, order="sticky")
            >>> first = packer.pack("tea", ["Green tea.", "Rye bread."])
            >>> second = packer.pack("bread", ["Rye bread.", "Green tea."], previous=first)
            >>> second.stable_prefix_tokens
            7

        """
        if self._stable == 0:
            return 0
        if self._counter is None:
            raise BudgeteerError(
                "stable_prefix_tokens was not read before the packing was pickled, and a pickled "
                "packing has no counter"
            )
        return self._counter.count(self.text[: self._stable])

    def _cut_places(self, start: int = 0, stop: int | None = None) -> list[int]:
        """Return the places of the kept chunks that were cut, from one place to another."""
        places = range(len(self._kept))[start:stop]
        if not self._extracts:
            return [self._cut] if self._cut in places else []
        kept = self._kept
        return [at for at in places if at == self._cut or kept[at] in self._extracts]

    def _links(self) -> tuple[str, ...]:
        """Return the text, split after the text of each kept chunk, without the rest."""
        return tuple(self.text[i:j] for i, j in pairwise([0, *self._spans[1::2]]))

    def _compare(self, before: str) -> None:
        """Find the end of the last chunk up to which the text equals that of *before*."""
        after = self.text
        low, high = 0, min(len(before), len(after))
        while low < high:
            middle = (low + high + 1) // 2
            if before[low:middle] == after[low:middle]:
                low = middle
            else:
                high = middle - 1
        ends = [len(after)] if before == after else self._spans[1::2]
        self._stable = max((end for end in ends if end <= low), default=0)

    def _score(self, index: int) -> float | None:
        score = self._scores[index]
        return None if math.isnan(score) else score

    def _unescaped(self, text: str) -> str:
        """Return the text of a chunk from its escaped form."""
        if self._style in (PLAIN, FORMAT, WRITTEN):
            return text
        from budgeteer._pack.parse import unescape  # patterns, which take long to compile

        return unescape(self._style, text)

    def _span(self, place: int) -> tuple[int, int] | None:
        start, end = self._spans[2 * place], self._spans[2 * place + 1]
        return None if start < 0 else (start, end)

    def _kept_text(self, place: int) -> str:
        if self._own is not None:  # a prompt may write anything
            return self._own[place]
        start, end = self._spans[2 * place], self._spans[2 * place + 1]
        return self._unescaped(self.text[start:end])

    def _kept_chunks(self, start: int, stop: int) -> list[KeptChunk[T]]:
        """Return the kept chunks from one place to another."""
        texts: Any = self.text
        if self._own is not None or self._style not in (PLAIN, FORMAT, WRITTEN):
            texts = [self._kept_text(place) for place in range(start, stop)]
        return backend.kept_chunks(  # type: ignore[no-any-return]
            KeptChunk,
            self._chunks,
            (start, stop),
            texts,
            (self._kept, self._kept_scores, self._counts, self._citations, self._spans),
            self._cut_places(start, stop),
        )

    def _dropped_chunks(self, start: int, stop: int) -> list[DroppedChunk[T]]:
        """Return the dropped chunks from one place to another."""
        return backend.dropped_chunks(  # type: ignore[no-any-return]
            DroppedChunk,
            self._chunks,
            (start, stop),
            REASONS,
            (self._dropped, self._scores, self._reasons, self._needed, self._available),
            self._duplicates,
        )

    def _dropped_dicts(self) -> list[dict[str, Any]]:
        """Return `DroppedChunk.to_dict` of each, without making the objects: they may be many."""
        return [
            {
                "index": index,
                "score": score_in_json(self._score(index)),
                "reason": REASONS[reason],
                "needed_tokens": needed,
                "available_tokens": available,
                "duplicate_of": self._duplicates.get(index),
            }
            for index, reason, needed, available in zip(
                self._dropped, self._reasons, self._needed, self._available, strict=True
            )
        ]

    def explain(self, index: int | None = None) -> str:
        """
        Return a sentence on what happened to chunk *index*, or a few lines on all chunks.

        Raises:
            InvalidArgumentError: There is no chunk with that index.

        Examples:
            >>> from budgeteer import pack
            >>> packing = pack("tea", ["tea", "tea", "coffee, black"], 3)
            >>> print(packing.explain(1))
            Chunk 1 (score 0.52) was dropped: its text equals that of chunk 0, which is kept.
            >>> print(packing.explain(2))
            Chunk 2 (score 0.00) was dropped: it needs at least 3 tokens, and 2 of 3 were left.
            >>> print(packing.explain())
            Kept 1 of 3 chunks with 1 of 3 tokens.
            Dropped 2: 1 duplicate, 1 budget.

        """
        from budgeteer._pack.explain import sentence, summary  # few packings are explained

        if index is None:
            return summary(self)
        index = _validate.tokens("index", index)
        if index >= len(self._chunks):
            raise InvalidArgumentError(
                f"index must be below {len(self._chunks)}, the number of chunks, not {index}"
            )
        return sentence(self, index)

    def whatif(self, max_tokens: int) -> Packing[T]:
        """
        Return what the same packer makes of the same query and chunks within *max_tokens*.

        Everything else is as it was: the reserve, vectors, the previous packing. The chunks are
        read again, and a counter of the caller's is asked again.

        Args:
            max_tokens: As for `Packer`.

        Raises:
            BudgeteerError: The packing was pickled: it has no chunks and no packer.
            InvalidArgumentError: *max_tokens* is not a number of tokens.
            CounterError: As from `Packer.pack`.

        Examples:
            >>> from budgeteer import pack
            >>> packing = pack("tea", ["Green tea.", "Rye bread."], 3)
            >>> [kept.chunk for kept in packing.whatif(8).kept]
            ['Green tea.', 'Rye bread.']

        """
        from budgeteer._pack.curve import again_of

        packing: Packing[T] = again_of(self, "whatif()").packed(max_tokens)
        return packing

    def budget_curve(
        self, *, step: int | None = None, up_to: int | None = None
    ) -> list[BudgetPoint]:
        """
        Return what other budgets would have kept, each as `whatif` packs it.

        The budgets lie *step* tokens apart, and the packing's own is one of them. Chunks are
        scored once for all of them, but where ``units="sentence"``, ``selection="coverage"``,
        ``min_score="auto"``, a corpus or a gate make that impossible.

        Args:
            step: The tokens from one budget to the next, from 1 on. None takes a sixteenth of the
                packing's own: 500 for 8,000.
            up_to: The highest budget. None takes twice the packing's own.

        Raises:
            BudgeteerError: The packing was pickled: it has no chunks and no packer.
            InvalidArgumentError: An argument is not a number of tokens, or there would be more
                than 1,000 points.
            CounterError: As from `Packer.pack`.

        Examples:
            >>> from budgeteer import pack
            >>> packing = pack("tea", ["Green tea is mild.", "Rye bread."], 5)
            >>> for point in packing.budget_curve(step=5, up_to=10):
            ...     print(point.max_tokens, point.total_tokens, point.admitted)
            5 5 (0,)
            10 9 (1,)

        """
        from budgeteer._pack.curve import curve_of

        return curve_of(self, step, up_to)

    def report(self, *, dropped: int = 5_000, curve: bool = True) -> str:
        """
        Return a page that shows what became of each chunk, and why: one HTML file.

        It needs no network. It has the budget as a bar, the chunks by rank with their texts, a
        search, the text as it is sent, and the budget curve. It shows the texts of all chunks that
        it lists: whoever gets it can read them. Whatever they hold, it is shown as text. Of a
        packing that was pickled there are no texts of dropped chunks and no curve.

        Args:
            dropped: The most dropped chunks to list, best first, from 0 on.
            curve: Whether to pack within up to 32 other budgets, for the curve.

        Raises:
            InvalidArgumentError: An argument has a wrong type or is out of range.
            CounterError: As from `Packer.pack`.

        Examples:
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> from budgeteer import pack
            >>> packing = pack("tea", ["Green tea.", "Rye <b>bread</b>."], 3)
            >>> with TemporaryDirectory() as folder:
            ...     path = Path(folder, "report.html")
            ...     _ = path.write_text(packing.report(), encoding="utf-8")
            ...     "Rye &lt;b&gt;bread&lt;/b&gt;." in path.read_text(encoding="utf-8")
            True

        """
        from budgeteer._pack.shown import report_of
        from budgeteer._report.page import page

        most = _validate.tokens("dropped", dropped)
        has_curve = _validate.flag("curve", curve) and self._again is not None
        return page(report_of(self, most, self.budget_curve() if has_curve else ()))

    def plot(self) -> str:
        """
        Return a picture of the budget and of the budget curve, as SVG.

        A notebook shows it as a picture. Of a packing that was pickled there is no curve.

        Raises:
            CounterError: As from `Packer.pack`.

        Examples:
            >>> from budgeteer import pack
            >>> pack("tea", ["Green tea.", "Rye bread."], 3).plot()[:4]
            '<svg'

        """
        from budgeteer._pack.shown import report_of
        from budgeteer._report.chart import plot

        curve = () if self._again is None else self.budget_curve()
        return plot(report_of(self, 0, curve))

    def _repr_html_(self) -> str:
        """Show figures and the best chunks in a notebook."""
        from budgeteer._pack.shown import report_of
        from budgeteer._report.small import small

        return small(report_of(self, 10))

    def to_dict(self) -> dict[str, Any]:
        """
        Return the packing as plain data that JSON can hold, without the caller's objects.

        An infinite score is None, as JSON has no infinity.

        Examples:
            >>> from budgeteer import pack
            >>> kept = pack("tea", ["tea"], 3).to_dict()["kept"][0]
            >>> kept["text"], kept["token_count"], kept["span"]
            ('tea', 1, [0, 3])

        """
        return {
            "text": self.text,
            "total_tokens": self.total_tokens,
            "budget_tokens": self.budget_tokens,
            "is_exact": self.is_exact,
            "was_truncated": self.was_truncated,
            "fallback": self.fallback,
            "kept": [kept.to_dict() for kept in self.kept],
            "dropped": self._dropped_dicts(),
        }

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, and write what `to_dict` returns."""
        return instance_schema(cls, cls.to_dict)

    def __repr__(self) -> str:
        """Show the figures, never the text."""
        return (
            f"<Packing of {self.total_tokens} of {self.budget_tokens} tokens: "
            f"{len(self._kept)} kept, {self._dropped_count} dropped>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Keep texts, figures and reasons, but not the caller's objects."""
        # This reads the columns.
        _ = self._kept, self._spans, self._scores, self._dropped, self._signals
        state = {
            name: bytes(value) if isinstance(value, memoryview) else value
            for name, value in self.__dict__.items()
            if name not in _NOT_PICKLED
        }
        state["_count"] = len(self._chunks)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what `__getstate__` kept."""
        count = state.pop("_count")
        self.__dict__.update(state)
        for name, code in _COLUMNS.items():
            self.__dict__[name] = memoryview(state[name]).cast(code)
        self._counter = self._again = None
        chunks: list[Any] = [None] * count
        for place, index in enumerate(self._kept):
            chunks[index] = self._kept_text(place)
        self._chunks = chunks


_COLUMNS_OF: dict[str, Callable[[Packing[Any]], None]] = {
    **dict.fromkeys(("_dropped", "_reasons", "_needed", "_available"), Packing._read_dropped),
    "_spans": Packing._read_spans,
    "_scores": Packing._read_scores,
    "_signals": Packing._read_signals,
    **dict.fromkeys(
        (
            *("_kept", "_kept_scores", "_counts", "_citations", "_cut"),
            *("_dropped_count", "_duplicates", "_counter", "_max_chunks", "_max_docs"),
            *("_is_citing", "_is_needed_a_bound", "_style", "_is_near", "_least"),
        ),
        Packing._read,
    ),
}
"""The method that sets each attribute that is read lazily."""
