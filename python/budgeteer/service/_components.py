"""The embedder and the reranker of a service, and how a request calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from budgeteer import _telemetry, _validate
from budgeteer._guard import Guard, name_of
from budgeteer._pack.call import Call
from budgeteer.errors import InvalidArgumentError, RetrievalError
from budgeteer.service._asking import Deadline, arun, awaited, in_thread, run, values_of
from budgeteer.service._retrievers import NoOpReranker
from budgeteer.service._threads import Threads


class Components:
    """
    The embedder and the reranker of a service, each called under the deadline.

    An asynchronous request awaits the component's coroutine if it has one. Any other call runs in
    a thread, or in the caller's thread without a deadline.
    """

    def __init__(self, embedder: object, reranker: object, threads: Threads) -> None:
        self._embedder = _component("embedder", embedder, "embed_query")
        self._reranker = _component("reranker", reranker, "rerank")
        self._threads = threads

    @property
    def is_reranking(self) -> bool:
        """Whether the reranker decides the order in which chunks are packed."""
        return self._reranker is not None and type(self._reranker) is not NoOpReranker

    @property
    def reranker(self) -> str:
        """The reranker's name in errors."""
        return name_of(self._reranker)

    def vector(self, query: str, deadline: Deadline) -> Any:
        """Return the query's vector."""
        return self._run(*self._embedding(query), deadline)

    async def avector(self, query: str, deadline: Deadline) -> Any:
        """Return the query's vector without blocking."""
        embedder, name = self._embedder, name_of(self._embedder)
        method = _coroutine(embedder, "aembed_query", "embed_query")
        if method is None:
            return await self._arun(*self._embedding(query), deadline)

        async def embed() -> Any:
            with _telemetry.embedding(embedder, None):
                return await method(query)

        return (await arun([(name, awaited(name, embed))], deadline))[0]

    def _embedding(self, query: str) -> tuple[str, Callable[[], Any]]:
        embedder, name = self._embedder, name_of(self._embedder)

        def embed() -> Any:
            with Guard(name, is_awaited=False), _telemetry.embedding(embedder, None):
                return _waited("a vector", name, embedder.embed_query(query))

        return name, embed

    def reranked(self, query: str, chunks: list[Any], deadline: Deadline) -> list[Any]:
        """Return *chunks*, best first."""
        if not self.is_reranking:
            return chunks
        return list(self._run(*self._reranking(query, chunks), deadline))

    async def areranked(self, query: str, chunks: list[Any], deadline: Deadline) -> list[Any]:
        """Return *chunks*, best first, without blocking."""
        if not self.is_reranking:
            return chunks
        name, method = self.reranker, _coroutine(self._reranker, "arerank", "rerank")
        if method is None:
            return list(await self._arun(*self._reranking(query, chunks), deadline))

        async def rerank() -> list[Any]:
            with Guard(name), _telemetry.reranking(name, len(chunks)):
                return _reranked(name, await method(query, chunks))

        return list((await arun([(name, rerank())], deadline))[0])

    def _reranking(self, query: str, chunks: list[Any]) -> tuple[str, Callable[[], list[Any]]]:
        reranker, name = self._reranker, self.reranker

        def rerank() -> list[Any]:
            with Guard(name, is_awaited=False), _telemetry.reranking(name, len(chunks)):
                return _reranked(name, reranker.rerank(query, chunks))

        return name, rerank

    def embed(self, call: Call, vector: Any, deadline: Deadline) -> None:
        """Make the vectors that *call* ranks by; *vector* is the query's, if it was made."""
        if self._is_ready(call, vector):
            return
        self._run(*_embedding_chunks(call), deadline)

    async def aembed(self, call: Call, vector: Any, deadline: Deadline) -> None:
        """Make the vectors as `embed` does, without blocking."""
        if self._is_ready(call, vector):
            return
        embedder = call.prepared.ranking.embedder
        if not callable(getattr(embedder, "aembed", None)):
            await self._arun(*_embedding_chunks(call), deadline)
            return
        name = name_of(embedder)
        await arun([(name, awaited(name, call.aembed))], deadline)

    def _is_ready(self, call: Call, vector: Any) -> bool:
        """Set the query's vector, if any, and return whether nothing is left to embed."""
        if call.vectors is None or not call.vectors.is_missing:
            return True
        if vector is not None and call.prepared.ranking.embedder is self._embedder:
            call.vectors.know_query(vector)
        return False

    def _run(self, name: str, job: Callable[[], Any], deadline: Deadline) -> Any:
        return run([(name, job)], deadline, self._threads)[0]

    async def _arun(self, name: str, job: Callable[[], Any], deadline: Deadline) -> Any:
        return (await arun([(name, in_thread(self._threads, job))], deadline))[0]


def _component(name: str, value: object, method: str) -> Any:
    """Return *value*, which must have that method."""
    if value is not None and not callable(getattr(value, method, None)):
        raise InvalidArgumentError(
            f"{name} must have {method}, and {_validate.type_name(value)} has not"
        )
    return value


def _embedding_chunks(call: Call) -> tuple[str, Callable[[], None]]:
    name = name_of(call.prepared.ranking.embedder)

    def embed() -> None:
        with Guard(name, is_awaited=False):
            call.embed()

    return name, embed


def _coroutine(component: object, name: str, other: str) -> Callable[..., Any] | None:
    """Return the coroutine function *name*, or *other* if that is one."""
    method: Callable[..., Any] | None = getattr(component, name, None)
    if not callable(method):
        method = getattr(component, other, None)
        method = method if inspect.iscoroutinefunction(method) else None
    return method


def _waited(what: str, name: str, found: Any) -> Any:
    """Return an answer, which must not be awaitable."""
    if inspect.iscoroutine(found):
        found.close()
        raise RetrievalError(f"{name} must answer {what}, not coroutine", source=name)
    return found


def _reranked(name: str, found: Any) -> list[Any]:
    """Return a reranker's answer, which must be a batch of chunks."""
    _waited("a sequence of chunks", name, found)
    with_text = (str, bytes, bytearray, Mapping)
    if isinstance(found, with_text) or not hasattr(found, "__iter__"):
        raise RetrievalError(
            f"{name} must answer a sequence of chunks, not {_validate.type_name(found)}",
            source=name,
        )
    return list(values_of(name, found))
