"""
The protocol of an embedding endpoint: its requests, and how answers are read. It uses no network.

`exchange` is the only state machine of a request: it yields the next step and is sent its result.
Both transports, with and without async, drive it.
"""

from __future__ import annotations

import base64
import json
import random
import re
import time
import zlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from budgeteer._log import log
from budgeteer.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np

    Vectors = np.ndarray[Any, np.dtype[np.float32]]

MAX_INPUT_TOKENS = 8_191
SIZES = {
    "text-embedding-3-small": 1_536,
    "text-embedding-3-large": 3_072,
    "text-embedding-ada-002": 1_536,
}
"""The models with known vector sizes; they share one input limit."""

_MAX_BACKOFF = 8.0
_MAX_WAIT = 60.0
_MAX_ERROR_BYTES = 65_536
_TRANSIENT = (408, 409, 425, 429)
_FINAL = (501, 505)
_CODE = re.compile(r"[a-z][a-z_]{0,47}")  # no digits, so that it is no part of a key
_INPUT = re.compile(r"\binput\[([0-9]{1,6})\]")  # as OpenAI names one of the texts
_TOO_LONG = (400, 413)
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class Settings(Protocol):
    """The settings of an `OpenAIEmbedder` that a request needs."""

    @property
    def model(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def api_key_env(self) -> str | None: ...
    @property
    def dimensions(self) -> int | None: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def max_batch_bytes(self) -> int: ...
    @property
    def max_concurrency(self) -> int: ...
    @property
    def timeout(self) -> float: ...
    @property
    def connect_timeout(self) -> float: ...
    @property
    def total_timeout(self) -> float | None: ...
    @property
    def max_retries(self) -> int: ...
    @property
    def backoff(self) -> float: ...
    @property
    def max_response_bytes(self) -> int: ...
    @property
    def max_input_tokens(self) -> int | None: ...
    @property
    def truncate(self) -> bool: ...
    @property
    def ca_file(self) -> str | None: ...


def limit_of(embedder: Settings) -> int | None:
    """Return the most tokens of a text that the model takes; None if that is not known."""
    if embedder.max_input_tokens is None and embedder.model in SIZES:
        return MAX_INPUT_TOKENS
    return embedder.max_input_tokens


@dataclass(frozen=True, slots=True)
class Send:
    """Step: send *body*, and receive the whole answer within *seconds*."""

    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Step: wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """The end: the vectors, shape ``(n, d)``."""

    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Reply:
    """The endpoint's answer."""

    status: int
    body: bytes
    encoding: str = ""
    retry_after: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure, in words that follow the endpoint's name."""

    message: str
    is_retryable: bool
    status: int | None = None
    code: str | None = None
    retry_after: float | None = None
    index: int | None = None


Step = Send | Wait
Exchange = Generator[Step, Reply | Problem | None, "Vectors"]


def where(url: str) -> str:
    """Return the endpoint's name in messages: without a query, which may be private."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def advance(work: Exchange, outcome: Reply | Problem | None) -> Step | Done:
    """Send *work* the result of its last step, and return its next one."""
    try:
        return work.send(outcome)
    except StopIteration as stop:
        return Done(stop.value)


def exchange(
    embedder: Settings, texts: Sequence[str], ends: float, index_of: Callable[[int], int | None]
) -> Exchange:
    """
    Embed *texts* by one request, retried if that may help, until the time *ends*.

    *index_of* returns the caller's index of one of *texts*, for errors.

    Raises:
        EmbeddingError: The endpoint fails or breaks the protocol.

    """
    question: dict[str, object] = {
        "input": list(texts),
        "model": embedder.model,
        "encoding_format": "float",
    }
    if embedder.dimensions is not None:
        question["dimensions"] = embedder.dimensions
    body = json.dumps(question, ensure_ascii=False, separators=(",", ":")).encode()
    tries = 0
    while True:
        left = ends - time.monotonic()
        if left <= 0.0:
            raise EmbeddingError(
                f"the embedding endpoint {where(embedder.url)} has not answered all within "
                f"{embedder.total_timeout or 0.0:.3g} s",
                is_retryable=True,
            )
        outcome = yield Send(body, min(embedder.timeout, left))
        tries += 1
        if isinstance(outcome, Reply):
            answer = read(outcome, len(texts), embedder.dimensions, embedder.max_response_bytes)
        else:
            answer = outcome or Problem("was not asked", False)
        if not isinstance(answer, Problem):
            return answer
        wait = _backoff(embedder.backoff, tries, answer.retry_after)
        is_too_long = wait > _MAX_WAIT or time.monotonic() + wait >= ends
        give_up = tries > embedder.max_retries or is_too_long
        if not answer.is_retryable or give_up:
            index = answer.index
            known = None if index is None or index >= len(texts) else index_of(index)
            raise _error(embedder, answer, tries, known)
        log().info(
            *("an embedding request failed (%s); again in %.1f s", answer.message, wait),
            extra={
                "model": embedder.model,
                "problem": answer.message,
                "http.status": answer.status,
                "wait_seconds": wait,
            },
        )
        yield Wait(wait)


def _backoff(base: float, tries: int, retry_after: float | None) -> float:
    """Return how long to wait: doubled each time, jittered, and at least *retry_after*."""
    backoff = min(_MAX_BACKOFF, base * 2.0 ** min(tries - 1, 32))
    return max(backoff * random.uniform(0.5, 1.0), retry_after or 0.0)  # noqa: S311


def _error(embedder: Settings, problem: Problem, tries: int, index: int | None) -> EmbeddingError:
    hint = ""
    if problem.status in (401, 403):
        name = embedder.api_key_env
        hint = f"; see that {name} holds a valid key" if name else "; it may need api_key_env"
    elif problem.status in (404, 405):
        hint = "; see that url is the full endpoint, and model one that it knows"
    elif problem.status == 413:
        hint = "; a smaller batch_size or max_batch_bytes may help"
    if problem.status in _TOO_LONG and limit_of(embedder) is None:
        hint += (
            "; a text may be too long for the model: give the most tokens that it takes as "
            "max_input_tokens, to which truncate cuts"
        )
    about = "" if index is None else f" about texts[{index}]"
    tried = f" (tried {tries} times)" if tries > 1 else ""
    return EmbeddingError(
        f"the embedding endpoint {where(embedder.url)} {problem.message}{about}{tried}{hint}",
        status=problem.status,
        code=problem.code,
        is_retryable=problem.is_retryable,
        retry_after=problem.retry_after,
        index=index,
    )


def read(reply: Reply, n: int, dimensions: int | None, max_bytes: int) -> Vectors | Problem:
    """Return the vectors of an answer to *n* texts, or the problem with it."""
    status = reply.status
    if 300 <= status < 400:
        return Problem(f"answered {status}: redirects are not followed", False, status)
    body = _decoded(reply, max_bytes)
    if not 200 <= status < 300:
        error = {} if isinstance(body, Problem) else _error_object(body)
        code = _code(error)
        transient = status in _TRANSIENT or (status >= 500 and status not in _FINAL)
        return Problem(
            f"answered {status}" + (f" ({code})" if code else ""),
            # A retry does not fill an empty account.
            transient and code != "insufficient_quota",
            status,
            code,
            _retry_after(reply.retry_after),
            _index(error),
        )
    if isinstance(body, Problem):
        return body
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):  # truncated, or the page of a gateway
        return Problem("answered what is not JSON", True, status)
    try:
        return _vectors(answer, n, dimensions)
    except _BreachError as breach:
        return Problem(f"answered {breach}", False, status)


def _decoded(reply: Reply, max_bytes: int) -> bytes | Problem:
    """Return the body decompressed, up to *max_bytes*, as a few bytes may become very many."""
    encoding = reply.encoding.strip().lower()
    if encoding in ("", "identity"):
        return reply.body
    if encoding not in ("gzip", "x-gzip"):
        return Problem("answered in an encoding that was not asked for", False, reply.status)
    unpack = zlib.decompressobj(31)
    try:
        body = unpack.decompress(reply.body, max_bytes + 1)
    except zlib.error:
        return Problem("answered what is not gzip", True, reply.status)
    if len(body) > max_bytes:
        return too_large(max_bytes, reply.status)
    if not unpack.eof:
        return Problem("cut its answer short", True, reply.status)
    return body


def too_large(max_bytes: int, status: int) -> Problem:
    """Return the problem of an answer above *max_bytes*."""
    return Problem(
        f"answered more than {max_bytes} bytes, all that max_response_bytes allows", False, status
    )


def _error_object(body: bytes) -> dict[str, Any]:
    """Return the error object of an answer, empty if it has none."""
    if len(body) > _MAX_ERROR_BYTES:
        return {}
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error = answer.get("error") if isinstance(answer, dict) else None
    return error if isinstance(error, dict) else {}


def _code(error: dict[str, Any]) -> str | None:
    """Return the code of an error object; its message may quote a text or a key."""
    for key in ("code", "type"):
        if isinstance(error.get(key), str) and _CODE.fullmatch(error[key]):
            return str(error[key])
    return None


def _index(error: dict[str, Any]) -> int | None:
    """Return the index of the text that an error object names, the only one of them."""
    said = (error.get(key) for key in ("param", "message"))
    named = {name for text in said if isinstance(text, str) for name in _INPUT.findall(text)}
    return int(named.pop()) if len(named) == 1 else None


def _retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After, which holds seconds or a date; None for neither."""
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
        seconds = (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, seconds - time.time())


class _BreachError(Exception):
    """An answer breaks the protocol; the message follows "answered"."""


def _vectors(answer: object, n: int, dimensions: int | None) -> Vectors:
    """Return the vectors in the order of their texts."""
    import numpy as np

    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise _BreachError("JSON without a list 'data'")
    if len(data) != n:
        raise _BreachError(f"{len(data)} embeddings for {n} texts")
    rows: list[Vectors | None] = [None] * n
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if type(index) is not int or not 0 <= index < n:
            raise _BreachError(f"an embedding without an index from 0 to {n - 1}")
        if rows[index] is not None:
            raise _BreachError(f"two embeddings of index {index}")
        row = rows[index] = _row(item.get("embedding"), index)
        if not np.isfinite(row).all():
            raise _BreachError(f"an embedding {index} with NaN or infinity")
    sizes = sorted({len(row) for row in rows if row is not None})
    if len(sizes) > 1:
        raise _BreachError(f"embeddings of {sizes[0]} and of {sizes[-1]} dimensions")
    wanted = dimensions or sizes[0]
    if sizes[0] != wanted or wanted == 0:
        raise _BreachError(
            f"embeddings of {sizes[0]} dimensions"
            + (f" where {wanted} were asked for" if wanted else "")
        )
    return np.array(rows, dtype=np.float32)


def _row(value: object, index: int) -> Vectors:
    """Return one embedding; a number beyond the range of float32 becomes infinity."""
    import numpy as np

    wrong = f"an embedding {index} that is neither a list of numbers nor base64 of float32"
    if isinstance(value, str):
        try:
            return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        except ValueError:  # bad base64, or not a whole number of floats
            raise _BreachError(wrong) from None
    # A set of types checks thousands of numbers fastest; True would pass for 1.0 below.
    if not isinstance(value, list) or not {*map(type, value)} <= {int, float}:
        raise _BreachError(wrong)
    try:
        wide = np.array(value, dtype=np.float64)
    except OverflowError:
        return np.array([np.inf], dtype=np.float32)
    with np.errstate(over="ignore"):
        return wide.astype(np.float32)
