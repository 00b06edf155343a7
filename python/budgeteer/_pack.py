"""Packing: the best context that fits a budget, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar

from budgeteer import _assemble, _chunk, _gate, _telemetry, _terms, _validate
from budgeteer._assemble import ORDERS, Template
from budgeteer._backend import backend
from budgeteer._call import Call, links_of
from budgeteer._corpus import Corpus
from budgeteer._count import TokenCounter, get_counter
from budgeteer._hybrid import FUSIONS, Hybrid, hybrid_of, weights_of
from budgeteer._packing import Packing
from budgeteer._similarity import Embedder, Vectors
from budgeteer.errors import EmbeddingError, InvalidArgumentError

T = TypeVar("T")

RANKINGS = ("bm25", "keyword", "recency", "input", "score", "embedding", "hybrid")
FALLBACKS = ("bm25",)
UNITS = ("chunk", "sentence")
DEDUPES = (None, "exact", "near")
SELECTIONS = ("rank", "coverage")
OVERFLOWS = ("skip", "stop", "truncate_end", "truncate_middle")
_DEFAULT_WORDS: _terms.Words = (None, "english")
_ARGUMENTS = {"query", "chunks", "max_tokens", "vectors", "previous"}


@dataclass(frozen=True, slots=True)
class Packer:
    r"""
    Packs chunks into a budget, with options chosen once.

    Immutable, safe to share between threads, picklable unless its counter is not. Every packing
    holds the law: the counter answers at most ``max_tokens - reserve_tokens`` for its text.

    Args:
        max_tokens: Upper bound for the packed text, in tokens, from 0 on.
        reserve_tokens: Taken off the budget for what the caller adds. If nothing is left, the
            packing is empty.
        counter: A name that `get_counter` knows, that of a model among them; a `TokenCounter`; or
            a callable from str to int. The default is exact for GPT-4o and the models since. A
            callable, and what another package counts (``tiktoken:``, ``hf:``), is asked once for
            each chunk considered and at each assembling; to cut a chunk it is asked some more, for
            pieces of it.
        ranking: What comes first: ``"bm25"`` (how well a chunk with its title answers the query,
            by BM25 over all chunks of the call; see `budgeteer.ranking.bm25_scores`),
            ``"keyword"`` (share of the query's keywords that a chunk or its title contains),
            ``"recency"`` (metadata ``mtime``), ``"input"``, ``"score"`` (the chunk's own; those
            without one come last), ``"embedding"`` (cosine between the vectors of chunk and query,
            from -1 to 1), or ``"hybrid"`` (several of these scores as one). Ties keep the input
            order.
        min_score: Chunks that score below it are dropped as ``"out_of_scope"``. Scores of BM25
            are from 0 on and compare within one call only; shares of keywords are from 0 to 1.
        overflow: What happens to a chunk that does not fit: ``"skip"`` it and go on, ``"stop"``
            there, or cut the first such chunk, ``"truncate_end"`` with `` [...]`` behind it or
            ``"truncate_middle"`` with ``[...truncated...]`` on a line of its own inside it, and go
            on skipping.
        max_chunks: Keep at most so many chunks.
        dedupe: ``"exact"`` drops a chunk whose text equals that of a kept one; None does not.
            ``"near"`` also drops one that nearly repeats a kept one, or stands in it word for
            word. What is compared are shingles, all runs of five words (words as in
            `budgeteer.ranking.bm25_scores`, a text of fewer being one): four fifths of those that
            either text has must be in both, or all of the chunk's own in the kept one. A chunk
            that does not fit is dropped for the budget, whatever it repeats. On questions with
            known evidence it cost at most half a point of recall where nothing was repeated, and
            gained up to four where three chunks in ten were.
        selection: In which order chunks are admitted. ``"rank"`` is best first. ``"coverage"``
            takes each time the chunk that adds most to what those before cover of the query's
            words, and ranks well; for questions of several parts. It maximises, greedily, the
            submodular ``2 * sum(C / sqrt(r)) + sum(sqrt(w * x))``, with r being the places of the
            chunks by rank, from 1 on; w the weight of each word of the query and x what the chunks
            have of it together, by BM25 over those looked at; and C the most that one chunk has of
            all words. It looks at the 512 chunks that rank best; the others follow by rank. It
            moved recall by a point or two, up or down: see the README.
        order: How the kept chunks stand in the text; what is kept is chosen by rank in any case.
            ``"rank"`` is best first, as they were admitted, ``"input"`` as they came.
            ``"document"`` is by source, the one that came first first; within a source by the
            first number in the metadata of ``position``, ``index`` and ``offset``, then as they
            came. ``"edges"`` has the best first, the next best last, and so on inwards.
            ``"sticky"`` is as in the packing before, up to the first chunk that is gone, and then
            best first: see `pack`.
        template: ``"plain"`` joins the texts by a blank line, ``"tagged"`` puts ``[kind:id] `` in
            front of each and joins by a newline, ``"markdown"`` has a heading for each,
            ``"xml"`` is a document of elements and ``"json"`` a list of objects. Kind is from the
            metadata (``document`` where there is none), id from the chunk (its index where there
            is none). What a chunk contains cannot pass for what stands around it, but under
            ``"plain"``; see `Template`, which also takes a format string of your own.
        notice: Says behind the last chunk how many were left out, for whatever reason, where any
            were and any is kept. True for ``Chunks left out: 3.``, or a text of your own, in
            which ``{count}`` is that number. Room for it is set aside when the first chunk is
            left out, or cut with more behind it: those kept of lowest rank may have to leave.
        embedder: Makes the vectors that a call is not given, under ``ranking="embedding"`` and
            ``"hybrid"``: a `budgeteer.embedding.OpenAIEmbedder`, or any object with a method
            ``embed`` (see `budgeteer.embedding.Embedder`). Of a chunk, its title on a line of its
            own and its text are embedded. Nothing is asked for an empty query: all cosines are 0.
        fallback: ``"bm25"`` ranks by BM25, without *min_score*, where the embedder raises an
            `EmbeddingError`; ``Packing.fallback`` says so, and a warning of the logger
            ``budgeteer`` why. None lets the error pass.
        weights: What ``ranking="hybrid"`` weighs: ``"bm25"``, ``"embedding"`` and ``"score"`` (the
            chunk's own, from a reranker say), each from 0 to 1,000,000; what is not named weighs
            0, and is not needed. None weighs BM25 and embedding alike: 0.5 each under
            ``"minmax"``, 1 each under ``"rrf"``. The score is the weighted sum.
        fusion: How ``ranking="hybrid"`` compares scores of different scales. ``"minmax"``: from 0
            for the lowest of the call to 1 for the highest, and 0 for all where they are equal.
            ``"rrf"``: ``1 / (rrf_k + r)`` for the chunk in place r from 1 on, by that score and
            then in input order (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion Outperforms
            Condorcet and Individual Rank Learning Methods"). A chunk without that score gets 0.
        rrf_k: How little the first places stand out, from 0 to 1,000,000.
        stemming: Where BM25 ranks, the language whose words of the same stem are one term (work,
            works, working), by Snowball's algorithms: ``"arabic"``, ``"armenian"``, ``"basque"``,
            ``"catalan"``, ``"dutch"``, ``"english"``, ``"esperanto"``, ``"estonian"``,
            ``"french"``, ``"german"``, ``"greek"``, ``"hindi"``, ``"hungarian"``,
            ``"indonesian"``, ``"irish"``, ``"italian"``, ``"lithuanian"``, ``"nepali"``,
            ``"norwegian"``, ``"polish"``, ``"portuguese"``, ``"romanian"``, ``"russian"``,
            ``"serbian"``, ``"spanish"``, ``"swedish"``, ``"tamil"`` or ``"turkish"``. None: words
            as they are. On questions with known evidence English stems brought 0.00 to 0.02 more
            of it into 256 tokens and 0.02 to 0.03 more into 512 (HotpotQA, Natural Questions), and
            nDCG@10 from 0.385 to 0.417 on Cranfield, whose long texts gave 0.008 less at 256
            (``benches/eval_terms.py``). Scoring takes about 4 times as long for English, 10 for
            German, and up to 60 where words may change from their first letter on, as in Dutch.
        stopwords: Where BM25 ranks, words that match nothing: those of a language, for which
            there are ``"danish"``, ``"dutch"``, ``"english"``, ``"finnish"``, ``"french"``,
            ``"german"``, ``"hungarian"``, ``"indonesian"``, ``"irish"``, ``"italian"``,
            ``"norwegian"``, ``"portuguese"``, ``"russian"``, ``"sesotho"``, ``"spanish"`` and
            ``"swedish"``, or a collection of your own. None: every word counts. They are
            compared in lowercase and before stemming. To keep English ones cost up to 0.07 of the
            evidence in 512 tokens.
        units: What is packed. ``"chunk"`` is whole chunks. ``"sentence"``, for tight budgets, is
            sentences of the best chunks, and whole chunks into what is left. The best chunks that
            together have four times the tokens of the budget, at most 256, are split; a sentence
            counts its share of the highest score by BM25 over all of them, title included, and the
            reciprocal of its chunk's place. Those that fit, best first, stand in the order of
            their chunk, `` [...] `` where others were between; such a chunk was cut, and whatever
            else is said here goes for what is left of it. Where repetitions are dropped, a
            sentence stands once. Not for presets, ``dedupe="near"`` and selections. A caller's own
            counter is asked many times as often: for each try at how much fits. A `Corpus` is
            ranked by its index, and then read. On questions with known evidence
            (``benches/eval_sentences.py``) 256 tokens held 0.15 more of the gold sentences
            (HotpotQA, 0.563 to 0.710) and an answer to 0.025 more of the questions (Natural
            Questions, 0.830 to 0.855; at 128 tokens 0.368 to 0.730); 512 tokens held 0.05 more of
            the one and answered 0.015 fewer of the other. Fewer chunks are in whole.

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
    ranking: str = "bm25"
    min_score: float | None = None
    overflow: str = "skip"
    max_chunks: int | None = None
    dedupe: str | None = "exact"
    selection: str = "rank"
    order: str = "rank"
    template: str | Template = "plain"
    notice: str | bool | None = None
    embedder: Embedder | None = None
    fallback: str | None = None
    weights: Mapping[str, float] | None = field(default=None, hash=False)
    fusion: str = "minmax"
    rrf_k: float = 60
    stemming: str | None = None
    stopwords: str | Iterable[str] | None = "english"
    units: str = "chunk"
    _sum_of_parts: bool = field(default=False, repr=False)
    _is_citing: bool = field(default=False, repr=False)
    _max_docs: int | None = field(default=None, repr=False)
    _counter: TokenCounter = field(init=False, repr=False, compare=False)
    _template: Template = field(init=False, repr=False, compare=False)
    _notice: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    _hybrid: Hybrid | None = field(init=False, repr=False, compare=False)
    _words: _terms.Words = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "max_tokens", _validate.tokens("max_tokens", self.max_tokens))
        set_field(self, "reserve_tokens", _validate.tokens("reserve_tokens", self.reserve_tokens))
        set_field(self, "_counter", get_counter(self.counter))
        _validate.choice("ranking", self.ranking, RANKINGS)
        _validate.choice("overflow", self.overflow, OVERFLOWS)
        _validate.choice("selection", self.selection, SELECTIONS)
        _validate.choice("order", self.order, ORDERS)
        set_field(self, "_template", _assemble.template_of("template", self.template))
        set_field(self, "_notice", _assemble.notice_of("notice", self.notice))
        if self.min_score is not None:
            set_field(self, "min_score", _validate.number("min_score", self.min_score))
        if self.max_chunks is not None:
            set_field(self, "max_chunks", _validate.tokens("max_chunks", self.max_chunks))
        if self.dedupe is not None:
            is_text = isinstance(self.dedupe, str)
            if not is_text or self.dedupe not in DEDUPES:
                found = f"{self.dedupe[:80]!r}" if is_text else _validate.type_name(self.dedupe)
                raise InvalidArgumentError(f"dedupe must be 'exact', 'near' or None, not {found}")
        self._check_hybrid()
        self._check_embedder()
        self._check_words()
        _validate.choice("units", self.units, UNITS)
        if self.units != "chunk" and (
            self._sum_of_parts or self._is_citing or self._max_docs is not None
        ):
            raise InvalidArgumentError(f"units must be 'chunk' in a preset, not {self.units!r}")
        if self.units != "chunk" and self.dedupe == "near":
            raise InvalidArgumentError("units must be 'chunk' under dedupe='near'")
        if self.units != "chunk" and self.selection != "rank":
            raise InvalidArgumentError(f"units must be 'chunk' under selection={self.selection!r}")

    def _check_hybrid(self) -> None:
        set_field = object.__setattr__
        _validate.choice("fusion", self.fusion, FUSIONS)
        set_field(self, "rrf_k", _validate.number_between("rrf_k", self.rrf_k, 0, 1_000_000))
        set_field(self, "_hybrid", None)
        if self.ranking != "hybrid":
            if self.weights is not None:
                raise InvalidArgumentError(
                    f"weights must be None under ranking={self.ranking!r}, "
                    f"not {_validate.type_name(self.weights)}"
                )
            return
        if self.weights is not None:
            set_field(self, "weights", weights_of(self.weights))
        set_field(self, "_hybrid", hybrid_of(self.weights, self.fusion, self.rrf_k))

    def _check_embedder(self) -> None:
        if self.fallback is not None:
            _validate.choice("fallback", self.fallback, FALLBACKS)
            if self.embedder is None:
                raise InvalidArgumentError("fallback must be None where there is no embedder")
        if self.embedder is not None:
            found = _validate.type_name(self.embedder)
            if not self._takes_vectors:
                raise InvalidArgumentError(
                    f"embedder must be None under {self._ranking_shown}, not {found}"
                )
            if not callable(getattr(self.embedder, "embed", None)):
                raise InvalidArgumentError(f"embedder must have a method embed, not {found}")

    def _check_words(self) -> None:
        words = _terms.words(self.stemming, self.stopwords)
        object.__setattr__(self, "stopwords", words[1])
        object.__setattr__(self, "_words", words)
        if words != _DEFAULT_WORDS and not self._takes_words:
            name = "stemming" if words[0] is not None else "stopwords"
            default = "None" if words[0] is not None else "'english'"
            weightless = " without a weight for 'bm25'" if self._hybrid is not None else ""
            raise InvalidArgumentError(
                f"{name} must be {default} under ranking={self.ranking!r}{weightless}: "
                "it is for BM25"
            )

    @property
    def _takes_words(self) -> bool:
        """Whether words are weighed as in BM25: to rank chunks or sentences, or to cover."""
        is_weighed = self._hybrid is not None and self._hybrid[0] > 0
        is_asked = self.fallback == "bm25" or self.units == "sentence"
        return self.ranking == "bm25" or is_weighed or is_asked or self.selection == "coverage"

    @property
    def _takes_vectors(self) -> bool:
        return self.ranking == "embedding" or (self._hybrid is not None and self._hybrid[1] > 0)

    @property
    def _ranking_shown(self) -> str:
        weightless = " without a weight for 'embedding'" if self._hybrid is not None else ""
        return f"ranking={self.ranking!r}{weightless}"

    def pack(
        self,
        query: str,
        chunks: Iterable[T] | Corpus[T],
        *,
        max_tokens: int | None = None,
        vectors: Any = None,
        previous: Packing[Any] | None = None,
    ) -> Packing[T]:
        r"""
        Pack the best of *chunks* for *query*.

        Args:
            query: What the chunks should answer. May be empty: then every score is 0.
            chunks: `Chunk`, str, mappings with ``text`` or ``content``, or objects with
                ``.text``, ``.page_content`` or ``.content``; they may be mixed. Of an object's
                attributes the first that exists on the first object of its type is taken. Or a
                `Corpus` of such.
            max_tokens: Replaces the packer's own for this call; the reserve still comes off.
            vectors: Under ``ranking="embedding"`` and ``"hybrid"``, the pair of the query's
                vector, shape ``(d,)``, and those of the chunks, shape ``(n, d)``. With an embedder
                the chunks' alone will do, and None embeds both. Arrays of numpy, of Arrow
                (fixed-size lists) and any other buffer of float32 that lies in one piece are read
                in place. What is strided, float16 or float64 is copied as float32, which costs
                about as much as the ranking. Of lists only the query's vector may be one: to make
                an array of *n* lists costs over 100 times the arithmetic and is yours.
            previous: Under ``order="sticky"``, a packing before: the text begins as its text
                does, byte for byte, as far as the same chunks are kept. How much that is
                `Packing.stable_prefix_tokens` tells; a provider that caches prompts need not
                read it again.

        Raises:
            InvalidArgumentError: An argument has a wrong type or shape, or a chunk has no text or
                a NaN score, or a vector is not finite; the message names the argument and the
                index.
            EmbeddingError: From the embedder, where there is no fallback.
            CounterError: The caller's counter answered something that is not a count.

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
        observer = _telemetry.observer()
        if observer is None:
            return self._pack(query, chunks, max_tokens, vectors, previous)
        with observer.packing(self, query) as operation:
            packing = self._pack(query, chunks, max_tokens, vectors, previous)
            operation.tell_packing(packing)
            return packing

    def _pack(
        self,
        query: str,
        chunks: Iterable[T] | Corpus[T],
        max_tokens: int | None = None,
        vectors: Any = None,
        previous: Packing[Any] | None = None,
    ) -> Packing[T]:
        """Pack, unobserved."""
        call = self._call(query, chunks, max_tokens, vectors, previous)
        if call.vectors is not None and call.vectors.is_missing:
            self._embed(call)
        return self._packed(call)

    def _embed(self, call: Call) -> None:
        """Have the embedder make the vectors that are missing."""
        assert call.vectors is not None  # noqa: S101 - whoever calls has looked
        try:
            with _telemetry.embedding(self.embedder, call.vectors.texts):
                call.vectors.embed()
        except EmbeddingError as error:
            call.fall_back(error)

    async def apack(
        self,
        query: str,
        chunks: Iterable[T] | Corpus[T],
        *,
        max_tokens: int | None = None,
        vectors: Any = None,
        previous: Packing[Any] | None = None,
    ) -> Packing[T]:
        """
        Pack as `pack` does, and do not block the event loop while texts are embedded.

        Args:
            query: As for `pack`.
            chunks: As for `pack`.
            max_tokens: As for `pack`.
            vectors: As for `pack`.
            previous: As for `pack`.

        Raises:
            InvalidArgumentError: As from `pack`, or the embedder has no ``aembed``.
            EmbeddingError: As from `pack`.
            CounterError: As from `pack`.

        Examples:
            >>> import asyncio
            >>> asyncio.run(Packer(3).apack("tea", ["Bread.", "Green tea."])).text
            'Green tea.'

        """
        observer = _telemetry.observer()
        if observer is None:
            return await self._apack(query, chunks, max_tokens, vectors, previous)
        with observer.packing(self, query) as operation:
            packing = await self._apack(query, chunks, max_tokens, vectors, previous)
            operation.tell_packing(packing)
            return packing

    async def _apack(
        self,
        query: str,
        chunks: Iterable[T] | Corpus[T],
        max_tokens: int | None,
        vectors: Any,
        previous: Packing[Any] | None,
    ) -> Packing[T]:
        """Pack, unobserved."""
        call = self._call(query, chunks, max_tokens, vectors, previous)
        if call.vectors is not None and call.vectors.is_missing:
            if not callable(getattr(self.embedder, "aembed", None)):
                found = _validate.type_name(self.embedder)
                raise InvalidArgumentError(f"embedder must have a method aembed, not {found}")
            await self._aembed(call)
        return self._packed(call)

    async def _aembed(self, call: Call) -> None:
        """Do what `_embed` does, without blocking the event loop."""
        assert call.vectors is not None  # noqa: S101 - whoever calls has looked
        try:
            with _telemetry.embedding(self.embedder, call.vectors.texts):
                await call.vectors.aembed()
        except EmbeddingError as error:
            call.fall_back(error)

    def _call(
        self,
        query: object,
        chunks: object,
        max_tokens: int | None = None,
        vectors: object = None,
        previous: Packing[Any] | None = None,
    ) -> Call:
        """Return the arguments of a call, checked."""
        query = _validate.text("query", query)
        state = chunks._state if isinstance(chunks, Corpus) else None
        items = _validate.batch("chunks", chunks) if state is None else state.chunks
        if state is None and type(items) is not tuple:
            items = tuple(items)  # the caller's list may change while we or a packing use it
        if vectors is not None and not self._takes_vectors:
            raise InvalidArgumentError(
                f"vectors must be None under {self._ranking_shown}, "
                f"not {_validate.type_name(vectors)}"
            )
        limit = self.max_tokens
        if max_tokens is not None:
            limit = _validate.tokens("max_tokens", max_tokens)
        links = links_of(previous, self.order)
        found = Vectors(query, items, vectors, self.embedder) if self._takes_vectors else None
        budget = max(0, limit - self.reserve_tokens)
        return Call(
            query, items, state, budget, limit - budget, found, previous, links, self.fallback
        )

    def _packed(self, call: Call) -> Packing[Any]:
        items, budget, fallback = call.items, call.budget, call.fallback
        counter = self._counter
        ranking, keys = fallback or self.ranking, call.keys(self.ranking, self._hybrid)
        cite = gate = None
        if self._is_citing:
            from budgeteer import _citation  # JSON and more, which few packers need

            cite = _citation.citer(items, counter)
        if self._max_docs is not None:
            ranking, keys, gate = "input", None, _gate.columns(items, self._max_docs)
        extracts: dict[int, tuple[int, int]] = {}
        if self.units == "sentence":
            from budgeteer._sentences import Sentences  # likewise

            sentences = Sentences(self, call, RANKINGS.index(ranking), keys)
            result, extracts = sentences.pack()
        else:
            result = self._answer(
                call,
                items if call.state is None else call.state.index,
                RANKINGS.index(ranking),
                keys,
                self.min_score if fallback is None else None,
                self.overflow,
                dedupe=DEDUPES.index(self.dedupe),
                ask=counter._ask,
                tag=_chunk.tagger(items),
                cite=cite,
                gate=gate,
            )
        if len(result) == 2:
            raise _chunk.refusal(items, *result)
        packing: Packing[Any] = Packing(
            items,
            result,
            counter,
            budget,
            reserve=call.reserve,
            max_chunks=self.max_chunks,
            max_docs=self._max_docs,
            is_citing=self._is_citing,
            is_needed_a_bound=counter._is_encoding or self._is_citing,
            style=self._template._style,
            is_near=self.dedupe == "near",
            fallback=fallback,
            extracts=extracts,
        )
        if call.previous is not None:
            packing._compare(call.previous)
        return packing

    def _answer(
        self,
        call: Call,
        chunks: Any,
        ranking: int,
        keys: bytes | None,
        min_score: float | None,
        overflow: str,
        *,
        dedupe: int,
        ask: Callable[[str, int], int],
        tag: Callable[[int], tuple[str, str, str, str, float]],
        cite: Callable[[int], int] | None = None,
        gate: tuple[Any, ...] | None = None,
    ) -> tuple[Any, ...]:
        """Return what the backend answers for *chunks*, which may stand for those of the call."""
        counter = self._counter
        return backend.pack(  # type: ignore[no-any-return]
            call.query,
            chunks,
            call.budget,
            counter._kind,
            counter._ratio,
            None if counter._function is None else ask,
            ranking,
            keys,
            min_score,
            OVERFLOWS.index(overflow),
            self.max_chunks,
            dedupe,
            SELECTIONS.index(self.selection),
            ORDERS.index(self.order),
            call.links,
            self._template._wire(call.query, call.items),
            self._notice,
            tag,
            self._sum_of_parts,
            cite,
            gate,
            self._hybrid if call.fallback is None else None,
            self._words,
        )

    def pack_batch(
        self, requests: Iterable[Mapping[str, Any] | Sequence[Any]]
    ) -> Iterator[Packing[Any]]:
        """
        Yield the packing of each request, in order, one at a time.

        Args:
            requests: Each is a pair of query and chunks, or a mapping of the arguments of `pack`.

        Raises:
            InvalidArgumentError: A request is neither, or as for `pack`.

        Examples:
            >>> requests = [("tea", ["Green tea."]), {"query": "bread", "chunks": ["Rye bread."]}]
            >>> [packing.total_tokens for packing in Packer(8).pack_batch(requests)]
            [3, 4]

        """
        for i, request in enumerate(_validate.iterable("requests", requests)):
            if isinstance(request, Mapping):
                unknown = set(request) - _ARGUMENTS
                if unknown or not {"query", "chunks"} <= set(request):
                    raise InvalidArgumentError(
                        f"requests[{i}] must have 'query' and 'chunks', may have 'max_tokens', "
                        f"'vectors' and 'previous', and nothing else"
                    )
                yield self.pack(**request)
            elif isinstance(request, (tuple, list)) and len(request) == 2:
                yield self.pack(request[0], request[1])
            else:
                raise InvalidArgumentError(
                    f"requests[{i}] must be a pair of query and chunks or a mapping, "
                    f"not {_validate.type_name(request)}"
                )


def pack(query: str, chunks: Iterable[T], max_tokens: int, **options: Any) -> Packing[T]:
    """
    Pack the best of *chunks* for *query* into *max_tokens* tokens.

    Short for ``Packer(max_tokens, **options).pack(query, chunks)``; see `Packer` for the options
    and `Packer.pack` for the chunks. Keep a `Packer` where many calls share their options.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        CounterError: The caller's counter answered something that is not a count.

    Examples:
        >>> packing = pack("green tea", ["Coffee.", "Tea is green or black."], 6)
        >>> packing.text, packing.total_tokens
        ('Tea is green or black.', 6)

    """
    return Packer(max_tokens, **options).pack(query, chunks)
