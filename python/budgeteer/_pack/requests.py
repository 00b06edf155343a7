"""Many requests to one packer: their packings in order, by one thread or by several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from budgeteer import _validate
from budgeteer._pack.packing import Packing
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from concurrent.futures import Future

OnError: TypeAlias = Literal["raise", "yield"]
ON_ERROR: tuple[OnError, ...] = ("raise", "yield")

MAX_WORKERS = 256
"""The most threads that may pack one batch."""

_ARGUMENTS = {"query", "chunks", "max_tokens", "vectors", "previous", "deadline"}
_AHEAD = 2
"""The number of requests read ahead for each thread: one is packed while another waits."""

Answer: TypeAlias = "Packing[Any] | Exception"


def answers(
    requests: Iterable[Any], pack: Callable[..., Packing[Any]], workers: int
) -> Iterator[Answer]:
    """Yield of each request, in order, its packing or the exception, which names it."""

    def answer(i: int, request: Any) -> Answer:
        try:
            return pack(**_arguments(i, request))
        except Exception as error:  # noqa: BLE001 - whoever reads the answers decides
            return _named(error, i)

    if workers == 1:
        for i, request in enumerate(requests):
            yield answer(i, request)
    else:
        yield from _by_threads(requests, answer, workers)


def _by_threads(
    requests: Iterable[Any], answer: Callable[[int, Any], Answer], workers: int
) -> Iterator[Answer]:
    """Yield the answers of threads, which end with the iterator."""
    from concurrent.futures import ThreadPoolExecutor

    source = enumerate(requests)
    pending: deque[Future[Answer]] = deque()
    failure: Exception | None = None
    is_more = True
    pool = ThreadPoolExecutor(workers, thread_name_prefix="budgeteer-pack")
    try:
        while is_more or pending:
            while is_more and len(pending) < _AHEAD * workers:
                try:
                    i, request = next(source)
                except StopIteration:  # noqa: PERF203 - each may be the last
                    is_more = False
                except Exception as error:  # noqa: BLE001 - raised below, in its turn
                    is_more, failure = False, error
                else:  # in the caller's context, for spans
                    pending.append(pool.submit(copy_context().run, answer, i, request))
            if pending:
                yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure


def raising(found: Iterator[Answer]) -> Iterator[Packing[Any]]:
    """Yield the packings, and raise the first exception in its turn."""
    try:
        for answer in found:
            if isinstance(answer, Exception):
                raise answer
            yield answer
    finally:
        found.close()  # type: ignore[attr-defined]  # a generator's: its threads end


def _arguments(i: int, request: Any) -> dict[str, Any]:
    """Return the arguments of `Packer.pack` that a request holds."""
    if isinstance(request, Mapping):
        if set(request) - _ARGUMENTS or not {"query", "chunks"} <= set(request):
            raise InvalidArgumentError(
                f"requests[{i}] must have 'query' and 'chunks', may have 'max_tokens', "
                f"'vectors', 'previous' and 'deadline', and nothing else"
            )
        return dict(request)
    found = _validate.type_name(request)
    if isinstance(request, (tuple, list)):
        if len(request) == 2:
            return {"query": request[0], "chunks": request[1]}
        found = f"a {found} of {len(request)}"
        if len(request) > 2:
            found += ": a mapping may have more than query and chunks"
    raise InvalidArgumentError(
        f"requests[{i}] must be a pair of query and chunks or a mapping, not {found}"
    )


def _named(error: Exception, i: int) -> Exception:
    """
    Return *error*, which says now which request it is about.

    Ours about an argument says so in its message; others, which may be the caller's own, in a note
    where Python has notes.
    """
    name = f"requests[{i}]"
    if not isinstance(error, InvalidArgumentError):
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"in {name}")
    elif not str(error).startswith(f"{name} must "):
        error.args = (f"{name}: {error}", *error.args[1:])
    return error
