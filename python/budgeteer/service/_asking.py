"""Calls retrievers, rerankers and embedders, under a deadline and with errors that name them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import inspect
import threading
from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, NamedTuple

from budgeteer import _deadline, _telemetry, _validate
from budgeteer._chunk.chunk import texts_of
from budgeteer._count.counter import TokenCounter
from budgeteer._guard import Guard, name_of
from budgeteer._pack.packer import Packer, begin, finish
from budgeteer.errors import (
    BudgeteerError,
    InvalidArgumentError,
    RetrievalError,
    RetrievalTimeoutError,
)
from budgeteer.service._threads import Threads

PAGED_MAX = 100_000
"""The most chunks to read in pages, whatever fits, as texts may count 0 tokens."""

_GRACE_SECONDS = 0.5  # in which cancelled tasks may clean up
_NAMES_MAX = 5


class Deadline(_deadline.Deadline):
    """The deadline of a request, if it has one."""

    __slots__ = ()

    def packing(self) -> _deadline.Watch:
        """Return what raises once nobody waits any more for the chunks to be packed."""
        return self.watch(lambda: RetrievalTimeoutError(self.late_packing))

    def error(self, sources: Sequence[str], *, was_asked: bool = True) -> RetrievalTimeoutError:
        """Return the error that names the components that were late, or not even called."""
        names = ", ".join(sources[:_NAMES_MAX])
        if len(sources) > _NAMES_MAX:
            names += f" and {len(sources) - _NAMES_MAX} more"
        what = f"{names} answered" if was_asked else f"a thread was free to ask {names}"
        return RetrievalTimeoutError(
            f"the deadline of {self.seconds:g} seconds passed before {what}", source=sources[0]
        )


class Flag:
    """Says to the threads of a request that nobody waits for it any more."""

    __slots__ = ("_is_set",)

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Say so."""
        self._is_set = True

    def is_set(self) -> bool:
        """Return whether it was said."""
        return self._is_set


class Wanted(NamedTuple):
    """
    What a packer needs from a retriever with pages.

    Attributes:
        tokens: The room for chunks.
        at_least: The least number of chunks to read: 0 if the packer takes chunks in the order
            given, else the limit of the service, as chunks compete.
        at_most: The number of fitting chunks that is enough; None for no bound. 0 if chunks
            compete and something other than the room bounds how many are kept.
        is_skipping: Whether a chunk that does not fit is skipped.
        is_deduping: Whether duplicates are dropped.

    """

    tokens: int
    at_least: int
    at_most: int | None
    is_skipping: bool
    is_deduping: bool


class Room:
    """
    The room that a paged retriever may fill.

    It is full when a chunk does not fit; if such chunks are skipped, when a chunk as small as the
    smallest so far would not fit. It also takes no further page after one that added nothing: all
    its chunks are too large, or are duplicates and dropped. If chunks compete, it takes at least
    ``at_least`` chunks in any case.
    """

    def __init__(self, counter: TokenCounter, wanted: Wanted, is_over: Flag) -> None:
        self._counter = counter
        self._wanted = wanted
        self._left = wanted.tokens
        self._chunks = 0
        self._fitting = 0
        self._is_over = is_over
        self._is_tight = False  # a chunk did not fit
        self._smallest = 0  # of the chunks so far, without empty ones
        self._seen: set[str] | None = set() if wanted.is_deduping else None

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any more."""
        return self._is_over.is_set()

    def is_full(self, page: Sequence[Any]) -> bool:
        """Add a page, and return whether no further page is needed."""
        self._chunks += len(page)
        if self.is_over or self._chunks >= PAGED_MAX:
            return True
        has_gained = False
        if not self._is_full:
            try:
                texts = texts_of(page)
                has_gained = self._takes([texts(i) for i in range(len(page))])
            except Exception:  # noqa: BLE001 - packing raises it again, with a message
                return True
        return self._chunks >= self._wanted.at_least and (self._is_full or not has_gained)

    @property
    def _is_enough(self) -> bool:
        return self._wanted.at_most is not None and self._fitting >= self._wanted.at_most

    @property
    def _is_full(self) -> bool:
        """Whether no further chunk can fit."""
        is_below = not self._wanted.is_skipping or self._left < self._smallest
        return self._is_enough or (self._is_tight and is_below)

    def _takes(self, texts: Sequence[str]) -> bool:
        """Add the texts of a page, and return whether any fitted."""
        has_gained = False
        for i, text in enumerate(texts):
            if self._seen is not None:
                if text in self._seen:
                    continue
                self._seen.add(text)
            tokens = self._counter._count_chunk(text, i)  # noqa: SLF001 - names the chunk
            self._smallest = min(self._smallest or tokens, tokens or self._smallest)
            if tokens <= self._left:
                self._left -= tokens
                self._fitting += bool(text)
                has_gained = True
            else:
                self._is_tight = True
            if self._is_enough or (self._is_tight and not self._wanted.is_skipping):
                break
        return has_gained


class Source:
    """A retriever and its methods."""

    def __init__(self, retriever: Any, where: str) -> None:
        self.retriever = retriever
        self.name = name_of(retriever)
        self.takes_vector = getattr(retriever, "takes_vector", False) is True
        self._pages = _method(retriever, "pages")
        self._apages = _method(retriever, "apages")
        self._one = _method(retriever, "retrieve")
        self._aone = _method(retriever, "aretrieve")
        if self._one is not None and inspect.iscoroutinefunction(self._one):
            self._one, self._aone = None, self._aone or self._one
        if self._pages is not None and inspect.isasyncgenfunction(self._pages):
            self._pages, self._apages = None, self._apages or self._pages
        if self._one is None and self._aone is None:
            raise InvalidArgumentError(
                f"{where} must have retrieve(query, limit), and "
                f"{_validate.type_name(retriever)} has not"
            )

    @property
    def is_async_only(self) -> bool:
        """Whether it has asynchronous methods only."""
        return self._one is None and self._pages is None

    def ask(self, query: str, limit: int, vector: Any, room: Room) -> list[Any]:
        """Return its chunks for *query*."""
        guard = Guard(self.name, is_awaited=False)
        with guard, _telemetry.retrieval(self.name, query) as operation:
            chunks = self._asked(query, limit, vector, room)
            operation.tell({"budgeteer.chunks": len(chunks)})
            return chunks

    def _asked(self, query: str, limit: int, vector: Any, room: Room) -> list[Any]:
        options = {"vector": vector} if self.takes_vector else {}
        if self._pages is None:
            assert self._one is not None  # noqa: S101 - is_async_only was asked before
            return self._listed(self._one(query, limit, **options), room)
        chunks: list[Any] = []
        answered = self._pages(query, **options)
        if not isinstance(answered, Iterable):
            raise self._refused("an iterable of pages", answered)
        pages = iter(answered)
        try:
            for found in pages:
                page = self._listed(found, room)
                chunks += page
                if not page or room.is_full(page):
                    break
        finally:
            close = getattr(pages, "close", None)
            if close is not None:
                close()
        return chunks

    def aask(
        self, query: str, limit: int, vector: Any, room: Room, threads: Threads
    ) -> Coroutine[Any, Any, list[Any]]:
        """Return a coroutine that returns the chunks as `ask` does."""
        if self._apages is not None or (self._aone is not None and self._pages is None):
            return self._aask(query, limit, vector, room)
        return in_thread(threads, lambda: self.ask(query, limit, vector, room))

    async def _aask(self, query: str, limit: int, vector: Any, room: Room) -> list[Any]:
        with Guard(self.name), _telemetry.retrieval(self.name, query) as operation:
            chunks = await self._aasked(query, limit, vector, room)
            operation.tell({"budgeteer.chunks": len(chunks)})
            return chunks

    async def _aasked(self, query: str, limit: int, vector: Any, room: Room) -> list[Any]:
        options = {"vector": vector} if self.takes_vector else {}
        if self._apages is None:
            assert self._aone is not None  # noqa: S101 - aask has looked
            return self._listed(await self._aone(query, limit, **options), room)
        chunks: list[Any] = []
        answered = self._apages(query, **options)
        if not isinstance(answered, AsyncIterable):
            raise self._refused("an asynchronous iterable of pages", answered)
        iterator = aiter_of(answered)
        try:
            async for found in iterator:
                page = self._listed(found, room)
                chunks += page
                if not page or room.is_full(page):
                    break
                await asyncio.sleep(0)  # an iterator that never waits would pass its deadline
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()
        return chunks

    def _listed(self, found: Any, room: Room) -> list[Any]:
        """Return an answer as a list; stop reading when nobody waits any more."""
        if isinstance(found, (list, tuple)):
            return list(found)
        if isinstance(found, (str, bytes, bytearray, Mapping)) or not isinstance(found, Iterable):
            raise self._refused("a sequence of chunks", found)
        chunks: list[Any] = []
        for chunk in values_of(self.name, found):
            chunks.append(chunk)
            if len(chunks) % _deadline.LOOK_EVERY == 0 and room.is_over:
                break
        return chunks

    def _refused(self, wanted: str, found: object) -> RetrievalError:
        """Return the error for an answer of another type."""
        if inspect.iscoroutine(found):
            found.close()  # else it would warn that nobody awaited it
        return RetrievalError(
            f"{self.name} must answer {wanted}, not {_validate.type_name(found)}", source=self.name
        )


def sources_of(retriever: object) -> tuple[Source, ...]:
    """Return a retriever, or each of several, as a source."""
    with_text = (str, bytes, bytearray)
    if (
        not isinstance(retriever, Sequence)
        or isinstance(retriever, with_text)
        or callable(getattr(retriever, "retrieve", None))
    ):
        return (Source(retriever, "retriever"),)
    if not retriever:
        raise InvalidArgumentError("retriever must have at least one retriever")
    return tuple(Source(one, f"retriever[{i}]") for i, one in enumerate(retriever))


def values_of(name: str, found: Any) -> Iterable[Any]:
    """Return the chunks in an answer: what it is made of, or the values of a column of Arrow."""
    _refuse_set(name, found)
    try:
        _validate.refuse_table("chunks", found)
        if hasattr(type(found), "to_pylist"):  # its own items are scalars, not texts
            return _validate.batch("chunks", found)
        return _validate.iterable("chunks", found)
    except InvalidArgumentError as error:
        raise RetrievalError(
            f"{name} answered what cannot be packed: {error}", source=name
        ) from error


def _refuse_set(name: str, found: object) -> None:
    """Raise the error for an answer without an order."""
    if isinstance(found, (set, frozenset)):
        raise RetrievalError(
            f"{name} must answer a sequence of chunks, not {_validate.type_name(found)}, "
            f"whose order differs between processes: answer a list, as sorted() makes one",
            source=name,
        )


def check_chunks(packer: Packer, name: str, chunks: Sequence[Any]) -> None:
    """Raise a `RetrievalError` if one of *chunks* cannot be packed."""
    packer = dataclasses.replace(packer, counter=len)  # not the caller's, nor an estimate
    try:
        finish(begin(packer, "", chunks), 0)
    except Exception as error:
        # Our own messages hold no texts; an error from a chunk's property may hold anything.
        found = error if isinstance(error, BudgeteerError) else _validate.type_name(error)
        raise RetrievalError(
            f"{name} answered what cannot be packed: {found}", source=name
        ) from error


def aiter_of(pages: AsyncIterable[Any]) -> Any:
    """Return the asynchronous iterator of *pages*."""
    return pages.__aiter__()


def _method(component: object, name: str) -> Callable[..., Any] | None:
    method = getattr(component, name, None)
    return method if callable(method) else None


def run(
    jobs: Sequence[tuple[str, Callable[[], Any]]], deadline: Deadline, threads: Threads
) -> list[Any]:
    """
    Return the results of the named *jobs*, in their order.

    Without a deadline they run one after another in the caller's thread, else all at once in other
    threads.
    """
    if deadline.seconds is None:
        return [job() for _, job in jobs]
    futures = [threads.submit(job) for _, job in jobs]
    try:
        done, _ = concurrent.futures.wait(
            futures, deadline.left(), concurrent.futures.FIRST_EXCEPTION
        )
        _raise_first(futures, done)
        if len(done) < len(futures):
            late = [pair for pair in zip(jobs, futures, strict=True) if pair[1] not in done]
            asked = [name for (name, _), future in late if future.running() or future.done()]
            raise deadline.error(asked or [name for (name, _), _ in late], was_asked=bool(asked))
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def need_loop() -> None:
    """
    Look for asyncio's event loop, in which a request awaits its components.

    Raises:
        BudgeteerError: None runs in this thread, as under trio.

    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise BudgeteerError(
            "aretrieve needs a running event loop of asyncio: under trio call "
            "trio.to_thread.run_sync(service.retrieve, query)"
        ) from None


async def arun(
    jobs: Sequence[tuple[str, Coroutine[Any, Any, Any]]], deadline: Deadline
) -> list[Any]:
    """Return the results of the named coroutines, run all at once, in their order."""
    tasks = [asyncio.ensure_future(job) for _, job in jobs]
    for task in tasks:
        task.add_done_callback(_look_at)
    try:
        done, _ = await asyncio.wait(
            tasks, timeout=deadline.left(), return_when=asyncio.FIRST_EXCEPTION
        )
        _raise_first(tasks, done)
        if len(done) < len(tasks):
            late = [name for (name, _), task in zip(jobs, tasks, strict=True) if task not in done]
            raise deadline.error(late)
        for (name, _), task in zip(jobs, tasks, strict=True):
            if task.cancelled():  # by itself: no cancellation of ours comes this far
                raise RetrievalError(f"{name} was cancelled", source=name)
        return [task.result() for task in tasks]
    finally:
        pending = [task for task in tasks if not task.done()]
        for task in pending:
            task.cancel()
        if pending:  # so that they clean up before the caller goes on
            await asyncio.wait(pending, timeout=_GRACE_SECONDS)


def _look_at(task: asyncio.Future[Any]) -> None:
    """Mark the error of a task as known, as of several only the first is raised, and none late."""
    if not task.cancelled():
        task.exception()


async def in_thread(threads: Threads, function: Callable[[], Any]) -> Any:
    """Return the result of *function*, run in a thread; cancelling does not wait for it."""
    given_up = threading.Event()
    try:
        return await asyncio.wrap_future(threads.submit(function, given_up))
    except asyncio.CancelledError:
        given_up.set()
        raise


async def awaited(source: str, function: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of a component's coroutine."""
    with Guard(source):
        return await function()


def _raise_first(futures: Sequence[Any], done: Any) -> None:
    """Raise the error of the first of *futures* that has one."""
    for future in futures:
        if future in done and not future.cancelled():
            error = future.exception()
            if error is not None:
                raise error
