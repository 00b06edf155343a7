"""Packing: the best context that fits a budget, in one call."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, overload

from budgeteer import _telemetry, _validate
from budgeteer._chunk.chunk import refusal
from budgeteer._codes import NO_POLICY
from budgeteer._count.counter import TokenCounter
from budgeteer._deadline import Deadline, Watch, seconds_of
from budgeteer._pack.call import Call, begun, in_thread
from budgeteer._pack.curve import Again
from budgeteer._pack.options import Dedupe, MinScore, Order, Overflow, Selection, Style, Units
from budgeteer._pack.packing import Packing
from budgeteer._pack.prepared import Prepared, prepared
from budgeteer._pack.requests import MAX_WORKERS, ON_ERROR, OnError, answers, raising
from budgeteer._pack.state import Indexed
from budgeteer._pack.template import Prompt, Template
from budgeteer._public import public
from budgeteer._pydantic import options_schema
from budgeteer._rank.rankings import Ranking
from budgeteer.errors import InvalidArgumentError, PackingTimeoutError

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """The options of a `Packer`, for `pack`."""

        reserve_tokens: int
        counter: str | Callable[[str], int] | TokenCounter
        ranking: Ranking
        min_score: MinScore | None
        overflow: Overflow
        max_chunks: int | None
        dedupe: Dedupe | None
        selection: Selection
        units: Units
        order: Order
        template: Style | Template | Prompt
        notice: str | bool | None


T = TypeVar("T")


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Packer:
    r"""
    Packs chunks into a budget, with options chosen once.

    Immutable, thread-safe, and picklable unless a function or an embedder of the caller's in it
    is not. For every input and counter, ``packing.total_tokens`` is the count of exactly
    ``packing.text`` and at most ``max_tokens - reserve_tokens``.

    Args:
        max_tokens: The most tokens of the text, from 0 on.
        reserve_tokens: How many of them to leave free, from 0 on.
        counter: A name known to `get_counter` (an encoding, an estimate or a model), a
            `TokenCounter`, or a function from str to int, which is called for chunks, assembled
            texts and pieces of a cut chunk. The default is exact for GPT-4o and later models.
        ranking: What comes first; ties by input order. ``"lexical"`` (the default),
            ``"bm25"``, ``"embedding"`` and ``"hybrid"`` are short for the classes of
            `budgeteer.ranking`, which have options. ``"keyword"`` ranks by the share of the
            query's keywords in the chunk or its title, ``"recency"`` by the metadata ``mtime``,
            ``"input"`` by input order, ``"score"`` by the chunk's own score.
        min_score: Chunks that score lower are dropped as ``"out_of_scope"``. None keeps all.
            Scores by words compare within one call only: for them ``"auto"`` is 0.35 times the
            mean of the three best, and keeps what is linked or has its whole heading in the query.
        overflow: What happens to a chunk that does not fit. ``"skip"`` drops it, ``"stop"`` also
            all after it. ``"truncate_end"`` cuts the first such chunk at its end,
            ``"truncate_middle"`` in its middle; both leave a marker and then skip.
        max_chunks: The most chunks to keep, from 0 on; None for no limit.
        dedupe: ``"exact"`` drops a chunk whose text equals that of a kept one. ``"near"`` also
            drops one that shares four fifths of its five-word runs with one of the 4,096 best
            kept ones, or all of its own. None keeps duplicates.
        selection: ``"rank"`` admits the best first. ``"coverage"`` takes next, among the 512 best
            chunks, the one that adds most to the query's words covered so far.
        units: ``"chunk"`` packs chunks. ``"sentence"`` packs sentences of the best chunks
            first, with `` [...] `` for a gap, then whole chunks; not in presets, and not with
            ``dedupe="near"`` or ``selection="coverage"``.
        order: How kept chunks stand in the text. ``"rank"`` is best first, ``"input"`` as given.
            ``"document"`` groups by source, then sorts by the metadata ``position``,
            ``index`` or ``offset``. ``"edges"`` puts the best at both ends. ``"sticky"`` keeps the
            order of the previous packing: see `pack`.
        template: ``"plain"`` joins texts by a blank line. ``"tagged"`` writes ``[kind:id] ``
            before each, ``"markdown"`` a heading, ``"xml"`` elements, ``"json"`` a list of
            objects. Or a `Template`, which may be a function that writes each chunk; or a
            `Prompt`, a function that makes the whole text.
        notice: A last line, inside the budget, that counts the chunks left out. True gives
            ``Chunks left out: 3.``; a text of your own may contain ``{count}``. It never takes the
            room of the best chunk. None writes none.

    Raises:
        InvalidArgumentError: An argument has a wrong type, is out of range or contradicts another.

    Examples:
        >>> packer = Packer(12, overflow="truncate_end")
        >>> packer.pack("green tea", ["All about green tea and its many kinds.", "Coffee."]).text
        'All about green tea and its many kinds.\n\nCoffee.'

    """

    max_tokens: int
    _: KW_ONLY
    reserve_tokens: int = 0
    counter: str | Callable[[str], int] | TokenCounter = "o200k_base"
    ranking: Ranking = "lexical"
    min_score: MinScore | None = None
    overflow: Overflow = "skip"
    max_chunks: int | None = None
    dedupe: Dedupe | None = "exact"
    selection: Selection = "rank"
    units: Units = "chunk"
    order: Order = "rank"
    template: Style | Template | Prompt = "plain"
    notice: str | bool | None = None
    _prepared: Prepared = field(init=False, repr=False, compare=False)

    _policy: ClassVar[tuple[int, int]] = (NO_POLICY, 0)
    """The policy of presets, which are subclasses: its code, and the documents of a gate."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "max_tokens", _validate.tokens("max_tokens", self.max_tokens))
        set_field(self, "reserve_tokens", _validate.tokens("reserve_tokens", self.reserve_tokens))
        found = prepared(self)
        set_field(self, "min_score", found.min_score)
        set_field(self, "max_chunks", found.max_chunks)
        set_field(self, "_prepared", found)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, or a mapping of its options."""
        return options_schema(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options; unpickling prepares them again."""
        return _restored, (type(self), self._options())

    def _options(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def pack(
        self,
        query: str,
        chunks: Iterable[T] | Indexed[T],
        *,
        max_tokens: int | None = None,
        vectors: Any = None,
        previous: Packing[Any] | None = None,
        deadline: float | None = None,
    ) -> Packing[T]:
        r"""
        Pack the best of *chunks* for *query*.

        Args:
            query: The question that the chunks should answer. May be empty: then every score by
                words is 0.
            chunks: `Chunk`, str, mappings with ``text``, ``content`` or ``page_content``, or
                objects with ``.text``, ``.page_content`` or ``.content``; they may be mixed. The
                first object of a type decides which attributes hold the text and the title that
                ranks, on all objects of that type. Or a `Corpus`, or a column of pandas, Polars,
                Arrow or numpy without nulls; one of strings that gives Arrow is read where it
                lies. A data frame and a set, which has no order, are refused.
            max_tokens: Replaces the packer's own for this call; the reserve is still taken off.
            vectors: For a ranking by embeddings, the pair of the query's vector, shape ``(d,)``,
                and the chunks' vectors, shape ``(n, d)``. With an embedder you may give the
                chunks' vectors alone, or None to embed both. A contiguous float32 array of numpy,
                of Arrow (fixed-size lists) or of any other buffer is read in place. A strided,
                float16 or float64 array is copied as float32. The query's vector may be a list;
                the chunks' vectors may not.
            previous: Under ``order="sticky"``, the previous packing. The text begins with the same
                bytes, up to the first chunk that was kept then and is not now, so that a provider
                can use its prompt cache. `Packing.stable_prefix_tokens` counts that beginning.
                Where the template writes ids, a chunk without one is another at another index.
            deadline: The most seconds that the call may take, above 0; None for no limit. A
                function or an embedder of the caller's is not stopped; what it takes counts.

        Raises:
            InvalidArgumentError: An argument has a wrong type or shape, or a chunk has no text or
                a NaN score, or a vector is not finite; the message names the argument and the
                index.
            PackingTimeoutError: The deadline has passed. Packing stops within 50 ms, or 200 in a
                chunk of millions of characters.
            EmbeddingError: The embedder failed, and there is no fallback.
            CounterError: The caller's counter returned something that is not a count.

        Examples:
            >>> packing = Packer(6).pack("tea", [{"text": "Bread."}, {"text": "Green tea."}])
            >>> packing.text
            'Green tea.\n\nBread.'
            >>> import numpy
            >>> vectors = [0, 1], numpy.array([[1, 0], [3, 4]], dtype="float32")
            >>> packer = Packer(6, ranking="embedding")
            >>> packing = packer.pack("tea", ["Bread.", "Tea."], vectors=vectors)
            >>> packing.text, packing.kept[0].score
            ('Tea.\n\nBread.', 0.8)

        """
        return self._observed(query, chunks, max_tokens, vectors, previous, deadline)

    def _observed(
        self,
        query: Any,
        chunks: Any,
        max_tokens: int | None = None,
        vectors: Any = None,
        previous: Packing[Any] | None = None,
        deadline: float | None = None,
        *,
        releases: bool = False,
    ) -> Packing[Any]:
        """Pack; if *releases*, let other threads run meanwhile, however quick that is."""
        watch = None if deadline is None else _watch(deadline)
        observer = _telemetry.observer()
        if observer is None:
            return self._pack(query, chunks, max_tokens, vectors, previous, watch, releases)
        name, counter = self._prepared.ranking.name, self._prepared.counter.name
        with observer.packing(name, counter, query) as operation:
            packing = self._pack(query, chunks, max_tokens, vectors, previous, watch, releases)
            operation.tell_packing(packing)
            return packing

    def _pack(
        self,
        query: object,
        chunks: object,
        max_tokens: object,
        vectors: object,
        previous: object,
        watch: Watch | None,
        releases: bool,
    ) -> Packing[Any]:
        """Pack, without telemetry."""
        call = begun(prepared_of(self), query, chunks, vectors, previous, watch)
        call.releases = releases
        limit = self._limit(max_tokens)
        if call.is_missing_vectors:
            call.embed(watch)
        return finish(call, limit, self.reserve_tokens, watch)

    def _limit(self, max_tokens: object) -> int:
        return (
            self.max_tokens if max_tokens is None else _validate.tokens("max_tokens", max_tokens)
        )

    async def apack(
        self,
        query: str,
        chunks: Iterable[T] | Indexed[T],
        *,
        max_tokens: int | None = None,
        vectors: Any = None,
        previous: Packing[Any] | None = None,
        deadline: float | None = None,
    ) -> Packing[T]:
        """
        Pack as `pack` does, without blocking the event loop.

        An embedder is awaited. Packing that takes more than about a millisecond runs in a thread
        of asyncio's, in the caller's context, and so does what a counter of the caller's counts,
        for more than a few short chunks. Under other event loops it runs in the caller's thread.
        Cancelling does not wait for the thread, which stops packing within 50 ms.

        Args:
            query: As for `pack`.
            chunks: As for `pack`.
            max_tokens: As for `pack`.
            vectors: As for `pack`.
            previous: As for `pack`.
            deadline: As for `pack`.

        Raises:
            InvalidArgumentError: As from `pack`, or the embedder has no ``aembed``.
            PackingTimeoutError: As from `pack`.
            EmbeddingError: As from `pack`.
            CounterError: As from `pack`.

        Examples:
            >>> import asyncio
            >>> asyncio.run(Packer(3).apack("tea", ["Bread.", "Green tea."])).text
            'Green tea.'

        """
        watch = _watch(deadline)
        observer = _telemetry.observer()
        if observer is None:
            return await self._apack(query, chunks, max_tokens, vectors, previous, watch)
        name, counter = self._prepared.ranking.name, self._prepared.counter.name
        with observer.packing(name, counter, query) as operation:
            packing: Packing[T] = await self._apack(
                query, chunks, max_tokens, vectors, previous, watch
            )
            operation.tell_packing(packing)
            return packing

    async def _apack(
        self,
        query: object,
        chunks: object,
        max_tokens: object,
        vectors: object,
        previous: object,
        watch: Watch,
    ) -> Packing[Any]:
        """Pack, without telemetry."""
        call = begun(prepared_of(self), query, chunks, vectors, previous, watch)
        limit = self._limit(max_tokens)
        if call.is_missing_vectors:
            embedder = call.prepared.ranking.embedder
            if not callable(getattr(embedder, "aembed", None)):
                found = _validate.type_name(embedder)
                raise InvalidArgumentError(f"embedder must have a method aembed, not {found}")
            await call.aembed(watch)
        if call.is_quick(limit):
            return finish(call, limit, self.reserve_tokens, watch)
        call.releases = True
        return await in_thread(lambda: finish(call, limit, self.reserve_tokens, watch))

    @overload
    def pack_batch(
        self,
        requests: Iterable[Mapping[str, Any] | Sequence[Any]],
        *,
        on_error: Literal["raise"] = "raise",
        workers: int | None = None,
    ) -> Iterator[Packing[Any]]: ...
    @overload
    def pack_batch(
        self,
        requests: Iterable[Mapping[str, Any] | Sequence[Any]],
        *,
        on_error: Literal["yield"],
        workers: int | None = None,
    ) -> Iterator[Packing[Any] | Exception]: ...
    def pack_batch(
        self,
        requests: Iterable[Mapping[str, Any] | Sequence[Any]],
        *,
        on_error: OnError = "raise",
        workers: int | None = None,
    ) -> Iterator[Packing[Any] | Exception]:
        """
        Yield the packing of each request, in order.

        Args:
            requests: Each is a pair of query and chunks, or a mapping of the arguments of `pack`.
            on_error: What happens to a request that cannot be packed. ``"raise"`` raises its
                exception in its turn, and ends. ``"yield"`` yields the exception in place of the
                packing, and goes on.
            workers: How many threads pack, from 1 to 256. None packs in the caller's, each
                request when its packing is asked for. Several read up to twice their number of
                requests ahead, end with the iterator, and may call a counter or an embedder of
                the caller's at the same time. They save time where each has a processor or
                an embedder waits for its endpoint. The interpreter's lock is released while texts
                are read, ranked and counted, except by a counter of the caller's.

        Raises:
            InvalidArgumentError: An argument has a wrong type or is out of range; or a request is
                neither a pair nor a mapping, or as for `pack`. The message names the request.
            EmbeddingError: As from `pack`. From Python 3.11 on a note names the request, as for
                any other exception.
            CounterError: As from `pack`.

        Examples:
            >>> requests = [("tea", ["Green tea."]), {"query": "bread", "chunks": ["Rye bread."]}]
            >>> [packing.total_tokens for packing in Packer(8).pack_batch(requests)]
            [3, 4]
            >>> requests[0] = (None, ["Green tea."])
            >>> bad, good = Packer(8).pack_batch(requests, on_error="yield", workers=2)
            >>> print(bad)
            requests[0]: query must be a str, not None
            >>> good.text
            'Rye bread.'

        """
        requests = _validate.iterable("requests", requests, "an iterable of requests")
        is_raising = _validate.choice("on_error", on_error, ON_ERROR) == "raise"
        threads = 1 if workers is None else _validate.whole("workers", workers, 1, MAX_WORKERS)
        found = answers(requests, partial(self._observed, releases=threads > 1), threads)
        return raising(found) if is_raising else found


def begin(packer: Packer, query: object, chunks: object, watch: Watch | None = None) -> Call:
    """
    Return a call of *packer*: the first of two steps, for packing into several budgets.

    If the call is missing vectors, make it embed before the second step, `finish`. *watch* is
    asked while the texts to embed are read.

    Raises:
        InvalidArgumentError: *query* is not a str, or *chunks* is not a batch.

    """
    return begun(prepared_of(packer), query, chunks, watch=watch)


def finish(
    call: Call, max_tokens: int, reserve_tokens: int = 0, watch: Watch | None = None
) -> Packing[Any]:
    """
    Pack within *max_tokens*, and leave *reserve_tokens* of them free.

    *watch* is called while that is under way, about every 10 ms; what it raises ends it.

    Raises:
        InvalidArgumentError: A chunk cannot be read.
        CounterError: As from `Packer.pack`.

    """
    budget = max(0, max_tokens - reserve_tokens)
    own = None
    if call.prepared.prompt is not None:
        from budgeteer._pack.prompt import Prompted  # which few packers need

        packed = Prompted(call, budget, watch).pack()
        own = getattr(packed, "own", None)
    else:
        packed = call.packed(budget, watch)
    if isinstance(packed, tuple):
        raise refusal(call.items, *packed)
    if watch is not None:  # the last stage looks before it begins, and may take long
        watch()
    packing: Packing[Any] = Packing(
        call.items,
        packed,
        call.prepared,
        budget=budget,
        reserve=max_tokens - budget,
        fallback=call.fallback,
        own=own,
    )
    if call.previous is not None:
        packing._compare(call.previous)
    packing._again = Again(finish, call, max_tokens, reserve_tokens)
    return packing


def _watch(deadline: object) -> Watch:
    """Return what raises once a packing has taken *deadline* seconds, or nobody waits for it."""
    found = Deadline(seconds_of("deadline", deadline))
    return found.watch(lambda: PackingTimeoutError(found.late_packing))


def prepared_of(packer: Packer) -> Prepared:
    """Return the prepared options of a packer, for callers that begin its calls themselves."""
    return packer._prepared


def _restored(kind: type[Packer], options: dict[str, Any]) -> Packer:
    return kind(**options)


def pack(
    query: str, chunks: Iterable[T] | Indexed[T], max_tokens: int, **options: "Unpack[Options]"
) -> Packing[T]:
    """
    Pack the best of *chunks* for *query* into *max_tokens* tokens.

    Short for ``Packer(max_tokens, **options).pack(query, chunks)``; see `Packer` for the options
    and `Packer.pack` for the chunks. Keep a `Packer` if many calls share their options.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        CounterError: The caller's counter returned something that is not a count.

    Examples:
        >>> packing = pack("green tea", ["Coffee.", "Tea is green or black."], 6)
        >>> packing.text, packing.total_tokens
        ('Tea is green or black.', 6)

    """
    return Packer(max_tokens, **options).pack(query, chunks)
