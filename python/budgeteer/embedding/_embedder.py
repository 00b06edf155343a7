"""The embedder: its settings, checked, and its calls."""

from __future__ import annotations

import importlib
import ipaddress
import math
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from budgeteer import _validate
from budgeteer._public import public
from budgeteer.embedding._cache import MIN_BYTES, Cache
from budgeteer.embedding._job import QUERY, Job
from budgeteer.embedding._protocol import SIZES, exchange, where
from budgeteer.errors import EmbeddingError, InvalidArgumentError

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    import httpx
    import numpy as np
    from typing_extensions import Self

    from budgeteer.embedding._protocol import Exchange
    from budgeteer.embedding._transport import AsyncClients

_MAX_BYTES = 1 << 40
_RANGES = {
    "dimensions": (1, 1 << 16),
    "batch_size": (1, 2_048),
    "max_batch_bytes": (1, _MAX_BYTES),
    "max_concurrency": (1, 64),
    "max_retries": (0, 100),
    "max_response_bytes": (1, _MAX_BYTES),
    "max_cache_bytes": (MIN_BYTES, _MAX_BYTES),
    "max_input_tokens": (1, 1 << 30),
}
_OPTIONAL = ("dimensions", "max_input_tokens", "total_timeout")
_MAX_SECONDS = 86_400.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class _Process:
    """The resources of one process: connections, the cache's file, the size of vectors."""

    def __init__(self, embedder: OpenAIEmbedder) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.client: httpx.Client | None = None
        self.async_clients: AsyncClients | None = None
        self.size: int | None = None
        self.cache = None
        if embedder.cache_dir is not None:
            self.cache = Cache(Path(embedder.cache_dir), embedder.max_cache_bytes)

    def close(self) -> None:
        """Close the resources of threads."""
        with self.lock:
            client, self.client = self.client, None
        if client is not None:
            client.close()
        if self.cache is not None:
            self.cache.close()

    def __del__(self) -> None:
        """Close the resources of an embedder that was not closed."""
        # Inherited resources belong to the parent process; an error here helps nobody.
        with suppress(Exception):
            if self.pid == os.getpid():
                self.close()


@public("budgeteer.embedding")
@dataclass(frozen=True, slots=True, repr=False)
class OpenAIEmbedder:
    """
    Turns texts into vectors with an endpoint that speaks OpenAI's protocol.

    Immutable, picklable, and safe to share between threads, event loops and forked processes, each
    with its own connections. The key is read from the environment for each request and is never
    stored.

    ``with`` and ``async with`` close the connections and the cache's file at their end. Without
    ``async with``, each call of `aembed` opens its own connections.

    Args:
        model: The model's name.
        url: The full endpoint, http or https. Nothing else is contacted: redirects are errors, and
            proxies set in the environment are ignored.
        api_key_env: The environment variable that holds the key; None sends no key.
        cache_dir: The directory of the cache, made if it is missing; None for no cache. Queries
            are not stored. Several processes may share it.
        dimensions: The size of the vectors to request; None for the model's own.
        batch_size: The most texts in a request, from 1 to 2048.
        max_batch_bytes: The most bytes of UTF-8 in a request, unless a single text has more. The
            default stays below OpenAI's limit of 300,000 tokens for any text.
        max_concurrency: The most requests of a call at the same time.
        timeout: The most seconds for a request, from connecting to the last byte.
        connect_timeout: The most seconds of these for connecting.
        total_timeout: The most seconds for all requests of a call, retries and waiting included;
            None for no limit.
        max_retries: The most retries of a request after a transient failure: no connection, a
            timeout, 408, 409, 425, 429, 5xx, or a truncated answer.
        backoff: Seconds before the first retry, doubled for each further one up to 8, and reduced
            by a random part of up to a half. A ``Retry-After`` of the endpoint is obeyed; if it is
            above a minute or beyond *total_timeout*, the call fails at once.
        max_response_bytes: The largest answer to read, in bytes, compressed or not.
        max_cache_bytes: The largest size of the cache, from 1 MiB; the oldest rows are deleted
            first.
        max_input_tokens: The most ``cl100k_base`` tokens of a text; None is 8191 for OpenAI's own
            models and no limit for others.
        truncate: Whether a longer text is cut at its end; if not, it is an error. Of a query that
            is cut, the logger ``budgeteer`` warns.
        ca_file: A file of certificates to trust instead of the usual ones.
        allow_insecure_http: Whether the key may go to another machine without encryption.

    Raises:
        InvalidArgumentError: An argument has a wrong type, is out of range or contradicts another.

    Examples:
        >>> OpenAIEmbedder(url="http://localhost:8080/v1/embeddings", api_key_env=None)
        OpenAIEmbedder('text-embedding-3-small', url='http://localhost:8080/v1/embeddings')

    """

    model: str = "text-embedding-3-small"
    _: KW_ONLY
    url: str = "https://api.openai.com/v1/embeddings"
    api_key_env: str | None = "OPENAI_API_KEY"
    cache_dir: str | os.PathLike[str] | None = None
    dimensions: int | None = None
    batch_size: int = 128
    max_batch_bytes: int = 250_000
    max_concurrency: int = 4
    timeout: float = 30.0
    connect_timeout: float = 5.0
    total_timeout: float | None = None
    max_retries: int = 3
    backoff: float = 0.5
    max_response_bytes: int = 64 << 20
    max_cache_bytes: int = 1 << 30
    max_input_tokens: int | None = None
    truncate: bool = False
    ca_file: str | None = None
    allow_insecure_http: bool = False
    _processes: dict[int, _Process] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for name, value in _checked(self).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = [f"{self.model!r}", f"url={where(self.url)!r}"]
        given += [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if item.repr and item.name not in ("model", "url", "api_key_env")
            if getattr(self, item.name) != item.default
        ]
        return f"OpenAIEmbedder({', '.join(given)})"

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], OpenAIEmbedder], tuple[object]]:
        return _restored, ({item.name: getattr(self, item.name) for item in fields(self)[:-1]},)

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """
        Return the vectors of *texts*, from the cache if it has them.

        Args:
            texts: The texts, shape ``(n,)``. A repeated text is sent once. An empty one is not
                sent, and its vector is zeros. A lone surrogate is sent as U+FFFD.

        Returns:
            The vectors as the endpoint gave them, not normalised: float32, shape ``(n, d)``. If no
            text is sent, d is *dimensions*, or the size of OpenAI's model, or 0.

        Raises:
            InvalidArgumentError: *texts* is not a sequence of str.
            EmbeddingError: The endpoint cannot be reached, refuses, or breaks the protocol; there
                is no key; a text has too many tokens; or httpx is not installed. Batches that
                succeeded stay in the cache.

        Examples:
            >>> OpenAIEmbedder().embed([]).shape
            (0, 1536)

        """
        return self._embed(_validate.batch("texts", texts), "texts[{}]", self._process().cache)

    async def aembed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """
        Return what `embed` returns, without blocking the event loop, asyncio's or trio's.

        Cancelling it closes the connections in use.

        Args:
            texts: As for `embed`.

        Returns:
            As `embed`.

        Raises:
            InvalidArgumentError: As from `embed`.
            EmbeddingError: As from `embed`.

        Examples:
            >>> import asyncio
            >>> asyncio.run(OpenAIEmbedder(dimensions=256).aembed([""])).shape
            (1, 256)

        """
        return await self._aembed(
            _validate.batch("texts", texts), "texts[{}]", self._process().cache
        )

    def embed_query(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """
        Return the vector of a query, without using the cache.

        Args:
            text: The query.

        Returns:
            The vector: float32, shape ``(d,)``.

        Raises:
            InvalidArgumentError: *text* is not a str.
            EmbeddingError: As from `embed`.

        Examples:
            >>> OpenAIEmbedder(dimensions=256).embed_query("").shape
            (256,)

        """
        row: np.ndarray[Any, np.dtype[np.float32]] = self._embed([text], QUERY, None)[0]
        return row

    async def aembed_query(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """
        Return what `embed_query` returns, without blocking the event loop.

        Args:
            text: The query.

        Returns:
            The vector: float32, shape ``(d,)``.

        Raises:
            InvalidArgumentError: *text* is not a str.
            EmbeddingError: As from `embed`.

        Examples:
            >>> import asyncio
            >>> asyncio.run(OpenAIEmbedder(dimensions=256).aembed_query("")).shape
            (256,)

        """
        row: np.ndarray[Any, np.dtype[np.float32]] = (await self._aembed([text], QUERY, None))[0]
        return row

    def close(self) -> None:
        """
        Close the connections of threads and the cache's file.

        A later call opens them again. Calls that run in other threads meanwhile may fail.

        Examples:
            >>> OpenAIEmbedder().close()

        """
        process = self._processes.get(os.getpid())
        if process is not None:
            process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._async_clients(_transport()).enter(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._async_clients(_transport()).leave()
        self.close()

    def _process(self) -> _Process:
        """Return this process's resources; a forked process must not touch inherited ones."""
        pid = os.getpid()
        found = self._processes.get(pid)
        return found or self._processes.setdefault(pid, _Process(self))

    def _client(self, transport: ModuleType) -> httpx.Client:
        process = self._process()
        with process.lock:
            if process.client is None:
                process.client = transport.client(self)
            return process.client

    def _async_clients(self, transport: ModuleType) -> AsyncClients:
        process = self._process()
        with process.lock:
            if process.async_clients is None:
                process.async_clients = transport.AsyncClients()
            return process.async_clients

    def _work(self, job: Job, batch: Sequence[int], ends: float) -> Exchange:
        return exchange(self, job.texts(batch), ends, lambda i: job.index(batch[i]))

    def _embed(
        self, texts: Sequence[object], name: str, cache: Cache | None
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        process = self._process()
        ends = time.monotonic() + (self.total_timeout or math.inf)
        job = Job(self, texts, cache, ends, name, process.size)
        failure: EmbeddingError | None = None
        while failure is None and (batches := job.batches()):
            transport = _transport()
            transport.check_key(self)
            client = self._client(transport)
            try:
                transport.run(
                    self, client, batches, lambda batch: self._work(job, batch, ends), job.add
                )
            except EmbeddingError as error:  # raised below without its frames, which hold answers
                failure = transport.bared(error)
            process.size = job.size
        if failure is not None:
            raise failure
        return job.result()

    async def _aembed(
        self, texts: Sequence[object], name: str, cache: Cache | None
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        transport = _transport()
        process = self._process()
        ends = time.monotonic() + (self.total_timeout or math.inf)
        job = await transport.in_thread(lambda: Job(self, texts, cache, ends, name, process.size))
        failure: EmbeddingError | None = None
        while failure is None and (batches := job.batches()):
            transport.check_key(self)
            try:
                async with self._async_clients(transport).client(self) as client:
                    await transport.arun(
                        self, client, batches, lambda batch: self._work(job, batch, ends), job.add
                    )
            except EmbeddingError as error:
                failure = transport.bared(error)
            process.size = job.size
        if failure is not None:
            raise failure
        result: np.ndarray[Any, np.dtype[np.float32]] = job.result()
        return result


def _restored(options: dict[str, Any]) -> OpenAIEmbedder:
    return OpenAIEmbedder(**options)


def _transport() -> ModuleType:
    """Import the module that imports httpx."""
    try:
        return importlib.import_module("budgeteer.embedding._transport")
    except ImportError:
        pass
    raise EmbeddingError("embedding needs httpx: pip install 'budgeteer[embeddings]'")


def _checked(embedder: OpenAIEmbedder) -> dict[str, Any]:
    """Return all options, checked and normalised; the class says what is allowed."""
    given = {item.name: getattr(embedder, item.name) for item in fields(embedder)[:-1]}
    for name, (low, high) in _RANGES.items():
        if given[name] is not None or name not in _OPTIONAL:
            given[name] = _validate.whole(name, given[name], low, high)
    for name in ("timeout", "connect_timeout", "total_timeout", "backoff"):
        if given[name] is not None or name not in _OPTIONAL:
            least = 0.0 if name == "backoff" else 1e-3
            given[name] = _validate.number_between(
                name, given[name], least, _MAX_SECONDS, " seconds"
            )
    for name in ("truncate", "allow_insecure_http"):
        if not _validate.is_bool(given[name]):
            found = _validate.type_name(given[name])
            raise InvalidArgumentError(f"{name} must be a bool, not {found}")
        given[name] = bool(given[name])
    for name in ("cache_dir", "ca_file"):
        if given[name] is not None:
            given[name] = _path(name, given[name])
    _check_names(given)
    return given


def _check_names(given: dict[str, Any]) -> None:
    """Check the options that name endpoint and model, and those that depend on them."""
    model = given["model"] = _validate.text("model", given["model"])
    if not model.strip() or not model.isprintable():
        raise InvalidArgumentError("model must be a name in printable characters")
    if given["truncate"] and given["max_input_tokens"] is None and model not in SIZES:
        raise InvalidArgumentError(
            "truncate needs max_input_tokens: the limit of this model is not known"
        )
    variable = given["api_key_env"]
    if variable is not None:
        variable = given["api_key_env"] = _validate.text("api_key_env", variable)
        if not _VARIABLE.fullmatch(variable):  # not quoted: it may be the key itself
            raise InvalidArgumentError(
                "api_key_env must be the name of an environment variable: letters, digits and "
                "underscores"
            )
    url = given["url"] = _validate.text("url", given["url"])
    if not _is_private(url) and variable is not None and not given["allow_insecure_http"]:
        raise InvalidArgumentError(
            "url must be https where a key is sent to another machine; "
            "api_key_env=None sends none, allow_insecure_http=True allows it"
        )


def _path(name: str, value: object) -> str:
    """Return an absolute path, as the current directory may change before it is used."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise InvalidArgumentError(
            f"{name} must be a str or a path, not {_validate.type_name(value)}"
        )
    if not path or "\0" in path:
        raise InvalidArgumentError(f"{name} must be a path, neither empty nor with a null")
    return str(Path(path).absolute())


def _is_private(text: str) -> bool:
    """
    Return whether requests to this URL are private: https, or this machine.

    Raises:
        InvalidArgumentError: The URL cannot be used. The message does not quote it, as it may hold
            a key.

    """
    scheme, host, user, port = "", None, "", -1
    with suppress(ValueError):
        parts = urlsplit(text)
        user = parts.netloc.rpartition("@")[0]
        scheme, host, port = parts.scheme, parts.hostname, parts.port or 0
    if user:
        raise InvalidArgumentError("url must hold neither a user nor a password")
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\^`{|}#')
    if scheme not in ("http", "https") or not host or port < 0 or not is_plain:
        raise InvalidArgumentError(
            "url must be the full http or https URL of the endpoint, in ASCII and without a "
            "fragment"
        )
    if scheme == "https" or host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
