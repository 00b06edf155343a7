"""Asks retrievers, rerankers and embedders: under a deadline, and with errors that name them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from budgeteer import _telemetry, _validate
from budgeteer._chunk import texts_of
from budgeteer._count import TokenCounter
from budgeteer._threads import Threads
from budgeteer.errors import (
    BudgeteerError,
    CounterError,
    InvalidArgumentError,
    RetrievalError,
    RetrievalTimeoutError,
)

PAGED_MAX = 100_000
"""So many chunks are read in pages at most, whatever fits: texts may count nothing."""

_GRACE_SECONDS = 0.5  # for what was cancelled to tidy up


class Deadline:
    """When a request must be answered, if there is such a time."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._ends = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Return the seconds that are left, at least 0, or None where there is no deadline."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    def error(self, sources: Sequence[str]) -> RetrievalTimeoutError:
        """Return the error that names what was not done in time."""
        names = ", ".join(sources)
        return RetrievalTimeoutError(
            f"the deadline of {self.seconds:g} seconds passed before {names} answered",
            source=sources[0],
        )


class Room:
    """
    What a paged retriever may fill: so many *tokens*.

    It is full when a chunk does not fit; where such chunks are skipped, when not even one as small
    as the smallest so far would fit. It takes no further page either behind one of which nothing
    goes in: all of it is too large, or, where a text is packed once, repeats what came before.
    """

    def __init__(
        self,
        counter: TokenCounter,
        tokens: int,
        is_over: threading.Event,
        *,
        is_skipping: bool,
        is_deduping: bool,
    ) -> None:
        self._counter = counter
        self._left = tokens
        self._chunks = 0
        self._is_over = is_over  # nobody waits any more
        self._is_skipping = is_skipping
        self._is_tight = False  # one did not fit
        self._smallest = 0  # of the chunks so far, empty ones aside
        self._seen: set[str] | None = set() if is_deduping else None

    def is_full(self, page: Sequence[Any]) -> bool:
        """Take a page in, and return whether no further one is wanted."""
        self._chunks += len(page)
        if self._is_over.is_set() or self._chunks >= PAGED_MAX:
            return True
        try:
            texts = texts_of(page)
            return not self._gains([texts(i) for i in range(len(page))])
        except (StopIteration, TypeError):  # no text: whoever packs says which one
            return True

    def _gains(self, texts: Sequence[str]) -> bool:
        """Take the texts of a page in, and return whether the next may bring more."""
        has_gained = False
        for i, text in enumerate(texts):
            if self._seen is not None:
                if text in self._seen:
                    continue
                self._seen.add(text)
            tokens = self._counter.count_chunk(text, i)
            self._smallest = min(self._smallest or tokens, tokens or self._smallest)
            if tokens <= self._left:
                self._left -= tokens
                has_gained = True
            elif self._is_skipping:
                self._is_tight = True
            else:
                return False
        return has_gained and not (self._is_tight and self._left < self._smallest)


class Source:
    """A retriever, and what it can do."""

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
        if self._one is None and self._aone is None:
            raise InvalidArgumentError(
                f"{where} must have retrieve(query, limit), and "
                f"{_validate.type_name(retriever)} has not"
            )

    @property
    def is_async_only(self) -> bool:
        """Whether only a coroutine can ask it."""
        return self._one is None and self._pages is None

    def ask(self, query: str, limit: int, vector: Any, room: Room) -> list[Any]:
        """Return its chunks for *query*."""
        with Guard(self.name), _telemetry.retrieval(self.name, query) as operation:
            chunks = self._asked(query, limit, vector, room)
            operation.tell({"budgeteer.chunks": len(chunks)})
            return chunks

    def _asked(self, query: str, limit: int, vector: Any, room: Room) -> list[Any]:
        options = {"vector": vector} if self.takes_vector else {}
        if self._pages is None:
            assert self._one is not None  # noqa: S101 - is_async_only was asked before
            return self._listed(self._one(query, limit, **options))
        chunks: list[Any] = []
        pages = iter(self._pages(query, **options))
        try:
            for found in pages:
                page = self._listed(found)
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
        """Return the coroutine that answers as `ask` does."""
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
            return self._listed(await self._aone(query, limit, **options))
        chunks: list[Any] = []
        pages: AsyncIterable[Any] = self._apages(query, **options)
        iterator = aiter_of(pages)
        try:
            async for found in iterator:
                page = self._listed(found)
                chunks += page
                if not page or room.is_full(page):
                    break
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()
        return chunks

    def _listed(self, found: Any) -> list[Any]:
        if isinstance(found, (str, bytes, bytearray, dict)) or not isinstance(found, Iterable):
            if inspect.iscoroutine(found):
                found.close()
            raise RetrievalError(
                f"{self.name} must answer a sequence of chunks, not {_validate.type_name(found)}",
                source=self.name,
            )
        return list(found)


def aiter_of(pages: AsyncIterable[Any]) -> Any:
    """Return the asynchronous iterator of *pages*."""
    return pages.__aiter__()


class Guard:
    """Turns what is raised within into a `RetrievalError` that names *source*."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, Exception):  # nothing, or a cancellation, or Ctrl-C
            return
        if isinstance(error, CounterError):  # of the room's counter, which is not the retriever's
            return
        if isinstance(error, RetrievalError) and error.source == self._source:
            return
        # Our own messages hold neither texts nor secrets; of others nobody knows.
        found = error if isinstance(error, BudgeteerError) else _validate.type_name(error)
        raise RetrievalError(f"{self._source} failed: {found}", source=self._source) from error


def name_of(component: object) -> str:
    """Return what errors call a component."""
    name = getattr(component, "name", None)
    return name[:80] if isinstance(name, str) and name else _validate.type_name(component)


def _method(component: object, name: str) -> Callable[..., Any] | None:
    method = getattr(component, name, None)
    return method if callable(method) else None


def run(
    jobs: Sequence[tuple[str, Callable[[], Any]]], deadline: Deadline, threads: Threads
) -> list[Any]:
    """
    Return what the named *jobs* answer, in their order.

    Without a deadline they run one after another in the caller's thread, else in others at once.
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
            late = [
                name for (name, _), future in zip(jobs, futures, strict=True) if future not in done
            ]
            raise deadline.error(late)
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


async def arun(
    jobs: Sequence[tuple[str, Coroutine[Any, Any, Any]]], deadline: Deadline
) -> list[Any]:
    """Return what the named coroutines answer, in their order; all at once."""
    tasks = [asyncio.ensure_future(job) for _, job in jobs]
    try:
        done, _ = await asyncio.wait(
            tasks, timeout=deadline.left(), return_when=asyncio.FIRST_EXCEPTION
        )
        _raise_first(tasks, done)
        if len(done) < len(tasks):
            late = [name for (name, _), task in zip(jobs, tasks, strict=True) if task not in done]
            raise deadline.error(late)
        return [task.result() for task in tasks]
    finally:
        pending = [task for task in tasks if not task.done()]
        for task in pending:
            task.cancel()
        if pending:  # so that they tidy up before the caller goes on
            await asyncio.wait(pending, timeout=_GRACE_SECONDS)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # looked at: of several errors the first is raised


async def in_thread(threads: Threads, function: Callable[[], Any]) -> Any:
    """Return what *function* answers in a thread; cancelling does not wait for it."""
    return await asyncio.wrap_future(threads.submit(function))


async def awaited(source: str, function: Callable[[], Awaitable[Any]]) -> Any:
    """Return what a component's coroutine answers."""
    with Guard(source):
        return await function()


def _raise_first(futures: Sequence[Any], done: Any) -> None:
    """Raise the error of the first of *futures* that has one."""
    for future in futures:
        if future in done and not future.cancelled():
            error = future.exception()
            if error is not None:
                raise error
