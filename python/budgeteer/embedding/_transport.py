"""
Sends requests to the endpoint and receives answers, with httpx, blocking or async.

Only this module imports httpx, and anyio, which httpx needs. Only the configured URL is contacted:
no proxy or certificate is read from the environment, no redirect is followed, no cookie is stored.
A failure is returned as a `Problem`, not raised, as a caller may log an exception with the HTTP
library's frames, which hold the key.
"""

from __future__ import annotations

import http.cookiejar
import os
import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpcore
import httpx

from budgeteer.embedding._protocol import Done, Problem, Reply, Send, advance, too_large
from budgeteer.errors import BudgeteerError, EmbeddingError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Self

    from budgeteer.embedding._protocol import Exchange, Settings, Step, Vectors

T = TypeVar("T")

_SLICE = 0.2  # seconds until a thread notices that it is no longer wanted
_WRITE_BYTES = 65_536
_SMALL_BYTES = 100_000  # small enough to parse in the event loop
_TIMEOUTS = (httpx.TimeoutException, httpcore.TimeoutException, TimeoutError)
_BROKEN = (
    httpx.NetworkError,
    httpx.ProtocolError,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    OSError,
)

Work = Callable[[Sequence[int]], "Exchange"]
Batch = Sequence[int]


class _Call(threading.local):
    """A thread's call: its deadline, and whether it is still wanted."""

    ends: float = 0.0
    stop: threading.Event | None = None

    def left(self, error: type[Exception]) -> float:
        """Return the seconds left; raise *error* if none is."""
        if self.stop is not None and self.stop.is_set():
            raise httpcore.ReadError
        left = self.ends - time.monotonic()
        if left <= 0.0:
            raise error
        return left


_CALL = _Call()


class _Stream(httpcore.NetworkStream):
    """
    A connection with one deadline for a whole request.

    The HTTP library's timeouts apply to each piece that arrives, so an endpoint that sends a byte
    now and then could keep a caller for hours.
    """

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        while True:
            left = _CALL.left(httpcore.ReadTimeout)
            try:
                return self._stream.read(max_bytes, min(left, _SLICE))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        for start in range(0, len(buffer), _WRITE_BYTES):
            left = _CALL.left(httpcore.WriteTimeout)
            self._stream.write(buffer[start : start + _WRITE_BYTES], left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _CALL.left(httpcore.ConnectTimeout)
        timeout = left if timeout is None else min(timeout, left)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Makes such connections."""

    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = _CALL.left(httpcore.ConnectTimeout)
        timeout = left if timeout is None else min(timeout, left)
        return _Stream(
            self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _Transport(httpx.BaseTransport):
    """Works as httpx's own transport, over such connections."""

    def __init__(self, context: ssl.SSLContext, keep: int) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=keep,
            keepalive_expiry=30.0,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=url,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response.stream)
        )

    def close(self) -> None:
        self._pool.close()


_CONTEXTS: dict[str | None, ssl.SSLContext] = {}
_MAX_CONTEXTS = 8


def _context(embedder: Settings) -> ssl.SSLContext:
    """Return the TLS context, made once, as making it is slow."""
    name = embedder.ca_file
    if name not in _CONTEXTS:
        while len(_CONTEXTS) >= _MAX_CONTEXTS:
            _CONTEXTS.pop(next(iter(_CONTEXTS)), None)
        try:
            _CONTEXTS[name] = (
                httpx.create_ssl_context(trust_env=False)
                if name is None
                else ssl.create_default_context(cafile=name)
            )
        except OSError as error:  # ssl.SSLError is one
            problem = error.strerror or type(error).__name__
        else:
            return _CONTEXTS[name]
        raise EmbeddingError(f"ca_file {name!r} cannot be read as certificates: {problem}")
    return _CONTEXTS[name]


def _options(embedder: Settings) -> dict[str, Any]:
    """Return the options of both httpx clients."""
    seconds = embedder.timeout
    connect = min(seconds, embedder.connect_timeout)
    return {
        "trust_env": False,
        "follow_redirects": False,
        "timeout": httpx.Timeout(seconds, connect=connect, pool=None),
        "cookies": http.cookiejar.CookieJar(
            http.cookiejar.DefaultCookiePolicy(allowed_domains=[])
        ),
    }


def client(embedder: Settings) -> httpx.Client:
    """Return a client for threads."""
    transport = _Transport(_context(embedder), embedder.max_concurrency)
    return httpx.Client(transport=transport, **_options(embedder))


def async_client(embedder: Settings) -> httpx.AsyncClient:
    """Return a client for the running event loop."""
    limits = httpx.Limits(
        max_connections=None,
        max_keepalive_connections=embedder.max_concurrency,
        keepalive_expiry=30.0,
    )
    return httpx.AsyncClient(verify=_context(embedder), limits=limits, **_options(embedder))


def check_key(embedder: Settings) -> None:
    """
    Check that there is a key to send.

    Raises:
        EmbeddingError: The environment variable is not set, or a header cannot carry its value.

    """
    name = embedder.api_key_env
    if name is None:
        return
    # Some give the key itself as the variable's name: do not quote what may be a key.
    named = f"the environment variable {name if name.isupper() else 'of api_key_env'}"
    if not os.environ.get(name, "").strip():
        raise EmbeddingError(f"{named} is not set; it must hold the key")
    if not all("!" <= character <= "~" for character in os.environ[name].strip()):
        raise EmbeddingError(f"{named} must hold printable ASCII without spaces")


def _headers(embedder: Settings) -> dict[str, str]:
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "Content-Type": "application/json",
        "User-Agent": "budgeteer",
    }
    if embedder.api_key_env is not None:
        headers["Authorization"] = f"Bearer {os.environ.get(embedder.api_key_env, '').strip()}"
    return headers


def _problem(error: BaseException, seconds: float) -> Problem:
    """Return *error* in our own words, as its own may hold anything."""
    kinds: list[type[BaseException]] = []
    cause: BaseException | None = error
    while cause is not None and len(kinds) < 8:
        kinds.append(type(cause))
        cause = cause.__cause__ or cause.__context__
    if any(issubclass(kind, ssl.SSLCertVerificationError) for kind in kinds):
        return Problem("has a certificate that cannot be verified", False)
    name = type(error).__name__
    if name == "ConnectTimeout" or isinstance(error, (httpx.ConnectError, httpcore.ConnectError)):
        return Problem(f"cannot be reached ({name})", True)
    if isinstance(error, _TIMEOUTS):
        return Problem(f"did not answer within {seconds:.3g} s", True)
    if isinstance(error, _BROKEN):
        return Problem(f"broke off the connection ({name})", True)
    return Problem(f"cannot be asked ({name})", False)


def _reply(response: httpx.Response, body: bytes) -> Reply:
    return Reply(
        response.status_code,
        body,
        response.headers.get("content-encoding", ""),
        response.headers.get("retry-after", ""),
    )


def bared(error: BaseException) -> BaseException:
    """Return an exception without its frames, cause and context."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


def _post(embedder: Settings, http: httpx.Client, send: Send) -> Reply | Problem:
    limit = embedder.max_response_bytes
    parts, size = [], 0
    with http.stream(
        "POST", embedder.url, content=send.body, headers=_headers(embedder)
    ) as response:
        for part in response.iter_raw():
            parts.append(part)
            size += len(part)
            if size > limit:
                return too_large(limit, response.status_code)
        return _reply(response, b"".join(parts))


async def _apost(embedder: Settings, http: httpx.AsyncClient, send: Send) -> Reply | Problem:
    limit = embedder.max_response_bytes
    parts, size = [], 0
    with anyio.fail_after(send.seconds):
        async with http.stream(
            "POST", embedder.url, content=send.body, headers=_headers(embedder)
        ) as response:
            async for part in response.aiter_raw():
                parts.append(part)
                size += len(part)
                if size > limit:
                    return too_large(limit, response.status_code)
            return _reply(response, b"".join(parts))


def _ask(
    embedder: Settings, http: httpx.Client, send: Send, stop: threading.Event
) -> Reply | Problem:
    _CALL.ends, _CALL.stop = time.monotonic() + send.seconds, stop
    try:
        return _post(embedder, http, send)
    except Exception as error:  # noqa: BLE001 - reported by its type alone
        return _problem(error, send.seconds)
    except BaseException as error:  # noqa: BLE001 - an interruption, raised below
        passing = error
    raise bared(passing)


async def _aask(embedder: Settings, http: httpx.AsyncClient, send: Send) -> Reply | Problem:
    try:
        return await _apost(embedder, http, send)
    except Exception as error:  # noqa: BLE001 - reported by its type alone
        return _problem(error, send.seconds)
    except BaseException as error:  # noqa: BLE001 - cancelled, raised below
        passing = error
    raise bared(passing)


def _drive(
    embedder: Settings, http: httpx.Client, work: Exchange, stop: threading.Event
) -> Vectors | None:
    """Run the steps of *work* until it is done or no longer wanted."""
    outcome: Reply | Problem | None = None
    while True:
        step = advance(work, outcome)
        if isinstance(step, Done):
            return step.vectors
        outcome = None
        if isinstance(step, Send):
            outcome = _ask(embedder, http, step, stop)
        else:
            stop.wait(step.seconds)
        if stop.is_set():
            return None


async def _adrive(embedder: Settings, http: httpx.AsyncClient, work: Exchange) -> Vectors:
    outcome: Reply | Problem | None = None
    while True:
        step: Step | Done
        if isinstance(outcome, Reply) and len(outcome.body) > _SMALL_BYTES:
            step = await anyio.to_thread.run_sync(advance, work, outcome)
        else:
            step = advance(work, outcome)
        if isinstance(step, Done):
            return step.vectors
        outcome = None
        if isinstance(step, Send):
            outcome = await _aask(embedder, http, step)
        else:
            await anyio.sleep(step.seconds)


class _Crew:
    """Threads that take batches from one queue and put vectors or errors into another."""

    def __init__(
        self, embedder: Settings, http: httpx.Client, batches: Sequence[Batch], work: Work
    ) -> None:
        self.stop = threading.Event()
        self.done: queue.SimpleQueue[tuple[Batch, Vectors | BaseException | None]]
        self.done = queue.SimpleQueue()
        self._todo: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        for batch in batches:
            self._todo.put(batch)
        self._embedder, self._http, self._work = embedder, http, work
        # Daemons, so that a thread that hangs in a name lookup does not keep the process.
        self._threads = [
            threading.Thread(target=self._serve, name=f"budgeteer-embedding-{i}", daemon=True)
            for i in range(min(embedder.max_concurrency, len(batches)))
        ]

    def __enter__(self) -> Self:
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(5 * _SLICE)

    def answered(self) -> Iterator[tuple[Batch, Vectors]]:
        """Yield the batches that were answered and not yet taken."""
        while not self.done.empty():
            batch, outcome = self.done.get()
            if outcome is not None and not isinstance(outcome, BaseException):
                yield batch, outcome

    def _serve(self) -> None:
        while not self.stop.is_set():
            try:
                batch = self._todo.get_nowait()
            except queue.Empty:
                return
            try:
                vectors = _drive(self._embedder, self._http, self._work(batch), self.stop)
                self.done.put((batch, vectors))
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                self.done.put((batch, error))


def run(
    embedder: Settings,
    http: httpx.Client,
    batches: Sequence[Batch],
    work: Work,
    add: Callable[[Batch, Vectors], None],
) -> None:
    """
    Do *work* on all batches, a few at once, and pass each result to *add* as it comes.

    The first failure, or an interruption, stops the rest; results already added stay. So do those
    that are there, or are being read, when a failure is met.
    """
    if len(batches) == 1 or embedder.max_concurrency == 1:
        never = threading.Event()
        for batch in batches:
            vectors = _drive(embedder, http, work(batch), never)
            if vectors is not None:
                add(batch, vectors)
        return
    failure: BaseException | None = None
    with _Crew(embedder, http, batches, work) as crew:
        for _ in batches:
            batch, outcome = crew.done.get()
            if isinstance(outcome, BaseException):
                failure = outcome
                break
            if outcome is not None:
                add(batch, outcome)
    if failure is not None:
        for batch, vectors in crew.answered():
            add(batch, vectors)
        raise failure


async def arun(
    embedder: Settings,
    http: httpx.AsyncClient,
    batches: Sequence[Batch],
    work: Work,
    add: Callable[[Batch, Vectors], None],
) -> None:
    """Do the same as `run`, async."""
    todo = iter(batches)
    failures: list[BudgeteerError] = []

    async def worker() -> None:
        for batch in todo:
            try:
                vectors = await _adrive(embedder, http, work(batch))
            except BudgeteerError as error:
                failures.append(error)
                group.cancel_scope.cancel()
                return
            with anyio.CancelScope(shield=True):  # what was answered is kept
                await anyio.to_thread.run_sync(add, batch, vectors)

    async with anyio.create_task_group() as group:
        for _ in range(min(embedder.max_concurrency, len(batches))):
            group.start_soon(worker)
    if failures:
        raise failures[0]


class AsyncClients:
    """The clients of ``async with``, one for each event loop inside it."""

    def __init__(self) -> None:
        # Scoped to the loop, as a connection cannot be used in another one.
        self._entered: anyio.lowlevel.RunVar[list[httpx.AsyncClient]] = anyio.lowlevel.RunVar(
            "budgeteer.embedding"
        )

    def enter(self, embedder: Settings) -> None:
        """Keep the loop's connections open from now on."""
        clients = self._entered.get([])
        self._entered.set([*clients, clients[0] if clients else async_client(embedder)])

    async def leave(self) -> None:
        """Close them when the outermost ``async with`` ends."""
        *rest, last = self._entered.get()
        self._entered.set(rest)
        if not rest:
            await last.aclose()

    @asynccontextmanager
    async def client(self, embedder: Settings) -> AsyncIterator[httpx.AsyncClient]:
        """Yield the loop's client, or one for this call alone."""
        entered = self._entered.get([])
        if entered:
            yield entered[0]
        else:
            async with async_client(embedder) as http:
                yield http


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking *work* outside the event loop."""
    return await anyio.to_thread.run_sync(work)
