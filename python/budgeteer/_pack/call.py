"""A call of a packer: one query, its chunks, and the request to the backend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from budgeteer import _process, _telemetry, _validate
from budgeteer._chunk.chunk import finite_score_keys, mtime_keys, score_keys, tagger, text_column
from budgeteer._codes import HYBRID, STICKY
from budgeteer._deadline import Watch, unwatched
from budgeteer._log import log
from budgeteer._pack.options import ORDERS
from budgeteer._pack.packing import Packing
from budgeteer._pack.prepared import Prepared
from budgeteer._pack.state import Indexed, State
from budgeteer._rank.rankings import RankingName
from budgeteer._rank.similarity import Vectors
from budgeteer.errors import EmbeddingError, InvalidArgumentError

T = TypeVar("T")

_QUICK = 1_500_000
"""The characters that are read and ranked in about a millisecond."""
_SLOWER = 1_000
"""How much longer a function of the caller's may take for them."""
_CHOSEN = 4
"""How much longer packing sentences may take."""
_COUNTED = 8
"""How much longer an encoding counts a character than it is read."""
_LISTED, _INDEXED = 300, 30
"""What a chunk takes beside its characters; what one of a corpus takes in all."""


@dataclass(slots=True)
class Call:
    """
    One query and its chunks, checked.

    Attributes:
        prepared: The packer's options; those of its fallback once embedding has failed.
        query: The question that the chunks should answer.
        items: The chunks.
        state: The corpus's state, None if the items are a batch.
        vectors: The vectors, given or still to be made; None if the ranking takes none.
        previous: The text of the previous packing, whose beginning the text should keep.
        links: The previous packing as a backend takes it.
        fallback: The ranking used because embedding failed, usually None.
        releases: Whether other threads should run while this one packs, however quick that is.
        cosines: The cosines, once they are known; the vectors are let go then.
        own: Sort keys in place of those that the ranking reads; None for none.

    """

    prepared: Prepared
    query: str
    items: Sequence[Any]
    state: State[Any] | None
    vectors: Vectors | None = None
    previous: str | None = None
    links: tuple[str, ...] = ()
    fallback: RankingName | None = None
    releases: bool = False
    cosines: bytes | None = None
    own: bytes | None = None

    @property
    def is_missing_vectors(self) -> bool:
        """Whether the embedder must be called before packing."""
        return self._missing() is not None

    def _missing(self) -> Vectors | None:
        """Return the vectors if the embedder must make some of them."""
        return self.vectors if self.vectors is not None and self.vectors.is_missing else None

    def with_prepared(self, prepared: Prepared) -> Call:
        """Return a call of the same chunks with other options."""
        return replace(self, prepared=prepared)

    def embed(self, watch: Watch | None = None) -> None:
        """
        Make the missing vectors with the embedder, or switch to the fallback.

        *watch* is asked before each call of the embedder.

        Raises:
            EmbeddingError: The embedder failed, and there is no fallback.

        """
        vectors = self._missing()
        if vectors is None:
            return
        try:
            with _telemetry.embedding(self.prepared.ranking.embedder, vectors.texts):
                vectors.embed(watch or unwatched)
        except EmbeddingError as error:
            self._fall_back(error)

    async def aembed(self, watch: Watch | None = None) -> None:
        """Embed as `embed` does, without blocking the event loop."""
        vectors = self._missing()
        if vectors is None:
            return
        try:
            with _telemetry.embedding(self.prepared.ranking.embedder, vectors.texts):
                await vectors.aembed(watch or unwatched)
        except EmbeddingError as error:
            self._fall_back(error)

    def _fall_back(self, error: EmbeddingError) -> None:
        """Rank by the fallback if there is one; raise *error* otherwise."""
        stand_in = self.prepared.stand_in
        if stand_in is None:
            raise error
        self.prepared, self.vectors, self.fallback = stand_in, None, stand_in.ranking.name
        log().warning(
            *("ranking by %s, as embedding failed: %s", self.fallback, error),
            extra={
                "code": "embedding_fallback",
                "fallback": self.fallback,
                "chunks": len(self.items),
                "http.status": error.status,
                "is_retryable": error.is_retryable,
            },
        )

    def is_quick(self, budget: int) -> bool:
        """Return whether packing takes about a millisecond at most."""
        prepared, count = self.prepared, len(self.items)
        is_slow = prepared.ask is not None or prepared.steps or callable(prepared.template.format)
        most = _QUICK // _SLOWER if is_slow else _QUICK
        if prepared.units == "sentence":
            most //= _CHOSEN
        if self.state is not None:
            return count * _INDEXED + 4 * budget * _COUNTED <= most
        if count * _LISTED > most:
            return False
        chars = self.chars()
        return count * _LISTED + chars + min(chars, 4 * budget) * _COUNTED <= most

    def chars(self) -> int:
        """Return the number of characters of a batch; 0 where a chunk is not as it should be."""
        try:
            chars: int = self.prepared.plan.text_chars(self.items)
        except Exception:  # noqa: BLE001 - raised by packing, in its turn
            return 0
        return chars

    def keys(self, watch: Watch | None = None) -> bytes | None:
        """Return the sort keys of the chunks other than their words."""
        if self.own is not None:
            return self.own
        needs, state = self.prepared.needs, self.state
        if needs.times:
            return mtime_keys(self.items, watch) if state is None else state.times(watch)
        keys = None
        if needs.cosines:
            vectors = self.vectors
            if vectors is not None:  # a packing keeps the call, and vectors are large
                self.cosines, self.vectors = vectors.cosines(), None
            keys = self.cosines
        if needs.scores:
            if self.prepared.ranking.code == HYBRID:
                return (keys or b"") + finite_score_keys(self.items, watch)
            return score_keys(self.items, watch) if state is None else state.scores(watch)
        return keys

    def packed(self, budget: int, watch: Watch | None = None) -> Any:
        """Return the backend's answer; a code and an index if a chunk cannot be read."""
        prepared, items = self.prepared, self.items
        cite = gate = None
        if prepared.is_citing:
            from budgeteer._pack.citation import citer  # imports JSON, which few packers need

            cite = citer(items, prepared.counter)
        elif prepared.max_docs is not None:
            from budgeteer._pack.gate import gate_columns  # few packers need it

            gate = gate_columns(items, watch)
        return prepared.plan.pack(
            self.query,
            items if self.state is None else self.state.index,
            budget,
            keys=None if gate is not None else self.keys(watch),
            previous=self.links,
            template=self.template(),
            ask=prepared.ask,
            tag=tagger(items),
            write=prepared.template._writer(items),
            cite=cite,
            gate=gate,
            watch=watch,
            releases=self.releases,
        )

    def template(self) -> tuple[int, str, str, str, str] | None:
        """Return this call's own template if it has a nonce; None for that of the plan."""
        template = self.prepared.template
        return template._wire(self.query, self.items)


def begun(
    prepared: Prepared,
    query: object,
    chunks: object,
    vectors: object = None,
    previous: object = None,
    watch: Watch | None = None,
) -> Call:
    """
    Return a call whose arguments are checked.

    *watch* is asked while the texts to embed are read.

    Raises:
        InvalidArgumentError: An argument has a wrong type or shape.

    """
    query = _validate.text("query", query)
    state = chunks._state if isinstance(chunks, Indexed) else None
    items = _batch(chunks) if state is None else state.chunks
    found = None
    if prepared.needs.cosines:
        found = Vectors(query, items, vectors, prepared.ranking.embedder, watch)
    elif vectors is not None:
        raise InvalidArgumentError(
            f"vectors must be None under {prepared.ranking.shown}, "
            f"not {_validate.type_name(vectors)}"
        )
    if previous is None:
        return Call(prepared, query, items, state, found)
    links = _links(previous, prepared.order)
    text = previous.text  # type: ignore[attr-defined]  # a packing by now; kept, it would keep its own
    return Call(prepared, query, items, state, found, text, links)


def _batch(chunks: object) -> Sequence[Any]:
    """Return chunks as a tuple, or as a column of texts that a backend reads."""
    column = text_column("chunks", chunks)
    if column is not None:
        return column  # type: ignore[no-any-return]
    items = _validate.batch("chunks", chunks)
    # The caller's list may change while a packing uses it.
    return items if type(items) is tuple else tuple(items)


def _links(previous: object, order: int) -> tuple[str, ...]:
    """Return the previous packing as a backend takes it."""
    if not isinstance(previous, Packing):
        raise InvalidArgumentError(
            f"previous must be a Packing or None, not {_validate.type_name(previous)}"
        )
    if order != STICKY:
        raise InvalidArgumentError(
            f"previous must be None under order={ORDERS[order]!r}: it is for order='sticky'"
        )
    if previous._own is not None:
        raise InvalidArgumentError(
            "previous must be a packing of this template, not of a Prompt, which has no order to "
            "keep: pack without previous"
        )
    return previous._links()


async def in_thread(function: Callable[[], T]) -> T:
    """
    Return the result of *function*, run in a thread of asyncio's; under others in the caller's.

    Cancelling does not wait for it; a counter of the caller's is not asked any more.
    """
    import asyncio  # which costs more to import than we do

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    given_up = threading.Event()

    def run() -> T | StopIteration:
        _process.under_way.given_up = given_up
        try:
            return function()
        except StopIteration as error:  # a future given it would be waited for without an end
            return error
        finally:
            _process.under_way.given_up = None

    try:
        found = await asyncio.to_thread(run)
    except asyncio.CancelledError:
        given_up.set()
        raise
    if isinstance(found, StopIteration):
        raise found  # Python makes a RuntimeError of it, as of any in a coroutine
    return found
