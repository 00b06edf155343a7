"""Vectors, given by callers or made by an embedder, and their cosines."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from budgeteer import _process, _validate
from budgeteer._backend import backend
from budgeteer._chunk.chunk import known_field, label_of, refusal
from budgeteer._deadline import Watch, watched
from budgeteer._public import public
from budgeteer.errors import EmbeddingError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float32]]

_CHUNKS, _QUERY = "the embedder's vectors", "the embedder's vector of the query"


@public("budgeteer.embedding")
@runtime_checkable
class Embedder(Protocol):
    """
    Turns texts into vectors, for packers, services and retrievers.

    `budgeteer.embedding.OpenAIEmbedder` is one. Asynchronous callers await the coroutines
    ``aembed`` and ``aembed_query``, if there are any. Failures are raised as `EmbeddingError`. A
    packer calls ``embed`` if there is no ``embed_query``; a service and a retriever call only
    ``embed_query``. If a query's vector has another size than those of the chunks, a packer asks
    for these once more, as they may be from a cache, and the model another one since.

    Examples:
        >>> import numpy as np
        >>> from budgeteer import Packer
        >>> from budgeteer.ranking import Embedding
        >>> class Letters:
        ...     def embed(self, texts):
        ...         return np.array([self.embed_query(text) for text in texts])
        ...     def embed_query(self, text):
        ...         return np.array([text.count("e"), text.count("a")], dtype="float32")
        >>> isinstance(Letters(), Embedder)
        True
        >>> Packer(3, ranking=Embedding(Letters())).pack("tea", ["Rye.", "Green tea."]).text
        'Green tea.'

    """

    def embed(self, texts: Sequence[str], /) -> Any:
        """
        Return the vectors of *texts*: float32, shape ``(n, d)``.

        Examples:
            >>> import numpy as np
            >>> class Lengths:
            ...     def embed(self, texts):
            ...         return np.array([[len(text)] for text in texts], dtype="float32")
            >>> Lengths().embed(["tea", "bread"]).tolist()
            [[3.0], [5.0]]

        """
        ...

    def embed_query(self, text: str, /) -> Any:
        """
        Return the vector of *text*: floats, shape ``(d,)``.

        Examples:
            >>> import numpy as np
            >>> class Lengths:
            ...     def embed_query(self, text):
            ...         return np.array([len(text)], dtype="float32")
            >>> Lengths().embed_query("tea").tolist()
            [3.0]

        """
        ...


def cosine_scores(query: Array, vectors: Array, names: tuple[str, str]) -> bytearray:
    """Return the cosines as float64; *names* name *query* and *vectors* in errors."""
    if query.shape[-1] != vectors.shape[1]:
        raise InvalidArgumentError(
            f"{names[1]} must have as many dimensions as {names[0]}, {query.shape[-1]}, "
            f"not {vectors.shape[1]}"
        )
    scores: bytearray | int = backend.cosine_scores(query, vectors)
    if isinstance(scores, int):
        raise _not_finite(names[scores >= 0], query if scores < 0 else vectors[scores], scores)
    return scores


def _not_finite(name: str, row: Array, index: int) -> InvalidArgumentError:
    import numpy as np

    place = int(np.isfinite(row).argmin())
    at = f"[{index}, {place}]" if index >= 0 else f"[{place}]"
    return InvalidArgumentError(f"{name}{at} must be a finite float32, not {float(row[place])!r}")


def query_vector(name: str, value: object) -> Array:
    """Return the vector of a query, shape ``(d,)``; a list of numbers will do."""
    if isinstance(value, (list, tuple)):
        try:
            value = array("f", value)
        except OverflowError:
            raise InvalidArgumentError(
                f"{name} must hold finite float32 alone, and a number is beyond their range"
            ) from None
        except (TypeError, ValueError):  # a ValueError is that of a signalling NaN of decimal
            raise InvalidArgumentError(f"{name} must hold numbers alone") from None
    found = _array(name, value)
    if found.ndim == 2 and found.shape[0] == 1:
        found = found[0]
    if found.ndim != 1 or not found.size:
        raise InvalidArgumentError(f"{name} must have the shape (d,), not {_shape(found)}")
    return found


def chunk_vectors(name: str, value: object, count: int | None = None) -> Array:
    """Return the vectors of chunks, shape ``(n, d)``; *count* is n if it is known."""
    if isinstance(value, (list, tuple)):
        raise InvalidArgumentError(
            f"{name} must be an array of float32 of the shape (n, d), not "
            f"{_validate.type_name(value)}; numpy.asarray(..., dtype='float32') makes one"
        )
    found = _array(name, value)
    if found.ndim != 2 or not found.shape[1]:
        raise InvalidArgumentError(f"{name} must have the shape (n, d), not {_shape(found)}")
    if count is not None and found.shape[0] != count:
        raise InvalidArgumentError(
            f"{name} must have a row for each of {count} chunks, not {found.shape[0]}"
        )
    return found


def _shape(found: Array) -> str:
    return str(tuple(map(int, found.shape)))


def _array(name: str, value: object) -> Array:
    """Return *value* as a contiguous float32 array: itself if it is one, else a copy."""
    _process.load_numpy()
    import numpy as np

    wanted = f"{name} must be an array of float16, float32 or float64"
    try:
        found = np.asarray(_of_arrow(name, value))
    except InvalidArgumentError:
        raise
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # its library's own words
        raise InvalidArgumentError(f"{wanted}, and {_kind(value)} cannot be read as one") from None
    kind = found.dtype.kind
    if kind != "f":
        is_numbers = kind in "biu" and found.ndim > 0
        found_kind = _kind(value, found.dtype if is_numbers else None)
        remedy = "; convert its numbers to float32" if is_numbers else ""
        raise InvalidArgumentError(f"{wanted}, not {found_kind}{remedy}")
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        return np.require(found, np.float32, ["C", "A"])


def _kind(value: object, held: object = None) -> str:
    """Return the type of *value* and of what it holds: *held* if it does not say."""
    held = getattr(value, "dtype", getattr(value, "type", held))
    of = "" if held is None else f" of {getattr(held, 'name', held)!s:.80}"
    return f"{_validate.type_name(value)}{of}"


def _of_arrow(name: str, value: Any) -> Any:
    """Return the numbers of a fixed-size list of Arrow; anything else as it is."""
    if hasattr(value, "combine_chunks"):
        value = value.combine_chunks()
    size = getattr(getattr(value, "type", None), "list_size", None)
    if not isinstance(size, int):
        return value
    numbers = value.flatten()  # leaves null lists out
    nulls = value.null_count + numbers.null_count
    if nulls:
        raise InvalidArgumentError(f"{name} must have no nulls, but has {nulls}")
    return numbers.to_numpy().reshape(len(value), size)


@contextmanager
def _naming(chunks: Sequence[object]) -> Iterator[None]:
    """Name the chunk that an embedder's error is about: its source and id."""
    try:
        yield
    except EmbeddingError as error:
        i = error.index
        if type(i) is int and 0 <= i < len(chunks):
            fields = {"source": label_of(chunks[i], "source"), "id": known_field(chunks[i], "id")}
            shown = [f"{name} {str(it)[:200]!r}" for name, it in fields.items() if it]
            if shown:
                error.args = (f"{error}; that is the chunk of {', '.join(shown)}",)
        raise


class Vectors:
    """
    The vectors of a query and of chunks, some of which may have to be embedded first.

    ``texts`` are the chunks' texts to embed, None if the caller gave their vectors; ``query`` is
    the query, None if the caller gave its vector.
    """

    def __init__(
        self,
        query: str,
        chunks: Sequence[object],
        given: object,
        embedder: Any,
        watch: Watch | None = None,
    ) -> None:
        self.count = len(chunks)
        self.query: str | None = query
        self.texts: list[str] | None = None
        self._vectors: Array | None = None
        self._wanted: Array | None = None
        self._known: Any = None
        self._embedder = embedder
        self._chunks: Sequence[object] = ()
        self._names = ("vectors[0]", "vectors[1]")
        if isinstance(given, (list, tuple)) and len(given) == 2:
            self.query = None
            self._wanted = query_vector("vectors[0]", given[0])
            self._vectors = chunk_vectors("vectors[1]", given[1], self.count)
        elif embedder is None:
            raise InvalidArgumentError(
                "vectors must be a pair, the query's and the chunks', where there is no embedder, "
                f"not {_validate.type_name(given)}; ranking=Embedding(embedder) or "
                f"Hybrid(embedding=Embedding(embedder)) makes both"
            )
        elif given is not None:
            self._names = (_QUERY, "vectors")
            self._vectors = chunk_vectors("vectors", given, self.count)
        else:
            self._names = (_QUERY, _CHUNKS)
            self.texts = _texts(chunks, watch)
            self._chunks = chunks

    @property
    def is_missing(self) -> bool:
        """Whether something must be embedded; never for an empty query or no text in chunks."""
        return bool(self.query) and self.count > 0 and (self.texts is None or any(self.texts))

    def know_query(self, vector: Any) -> None:
        """Set the query's vector, which the same embedder made before."""
        self._known = vector

    def embed(self, watch: Watch) -> None:
        """
        Make the missing vectors with the embedder; *watch* is asked before each call of it.

        Raises:
            EmbeddingError: The embedder failed, or returned something else than these vectors.

        """
        embedder, query = self._embedder, self.query
        self._embed_chunks(watch)
        watch()
        if self._known is not None:
            self._add_query(self._known)
        elif hasattr(embedder, "embed_query"):
            self._add_query(_plain("embed_query", embedder.embed_query(query)))
        else:
            self._add_query(_plain("embed", embedder.embed([query])))
        if self._mismatch:  # a cache may have had those of an older model, and knows it now
            self._embed_chunks(watch)
        if self._mismatch:
            raise EmbeddingError(self._mismatch)

    def _embed_chunks(self, watch: Watch) -> None:
        if self.texts is not None:
            watch()
            with _naming(self._chunks):
                answer = _plain("embed", self._embedder.embed(self.texts))
            self._vectors = _answered(_CHUNKS, answer, self.count)

    async def aembed(self, watch: Watch) -> None:
        """Embed as `embed` does, without blocking the event loop."""
        embedder, query = self._embedder, self.query
        await self._aembed_chunks(watch)
        watch()
        if self._known is not None:
            self._add_query(self._known)
        elif hasattr(embedder, "aembed_query"):
            self._add_query(await _awaitable("aembed_query", embedder.aembed_query(query)))
        else:
            self._add_query(await _awaitable("aembed", embedder.aembed([query])))
        if self._mismatch:
            await self._aembed_chunks(watch)
        if self._mismatch:
            raise EmbeddingError(self._mismatch)

    async def _aembed_chunks(self, watch: Watch) -> None:
        if self.texts is not None:
            watch()
            with _naming(self._chunks):
                answer = await _awaitable("aembed", self._embedder.aembed(self.texts))
            self._vectors = _answered(_CHUNKS, answer, self.count)

    def _add_query(self, answer: Any) -> None:
        self._wanted = _answered(_QUERY, answer, None)

    @property
    def _mismatch(self) -> str:
        """What is wrong with the embedder's vectors if they differ in size, else nothing."""
        found, wanted = self._vectors, self._wanted
        if self.texts is None or found is None or wanted is None or found.shape[1] == len(wanted):
            return ""
        return (
            f"the embedder's vectors have {found.shape[1]} dimensions, that of the query "
            f"{len(wanted)}"
        )

    def cosines(self) -> bytes:
        """Return the cosines as float64; 0 for all if the query is empty."""
        if self._wanted is None or self._vectors is None:
            return bytes(8 * self.count)
        return bytes(cosine_scores(self._wanted, self._vectors, self._names))


def _plain(method: str, answer: Any) -> Any:
    """Return the answer of an embedder's *method*, which must not be awaitable."""
    if not isawaitable(answer):
        return answer
    if iscoroutine(answer):
        answer.close()  # else Python warns that nobody awaited it
    raise EmbeddingError(
        f"the embedder's {method} must answer vectors, not {_validate.type_name(answer)}; "
        f"asynchronous calls await a method that is named a{method}"
    )


def _awaitable(method: str, answer: Any) -> Awaitable[Any]:
    """Return the answer of an embedder's *method*, which must be awaitable."""
    if isawaitable(answer):
        return answer
    raise EmbeddingError(
        f"the embedder's {method} must be a coroutine function, async def, and answers "
        f"{_validate.type_name(answer)}"
    )


def _answered(name: str, answer: object, count: int | None) -> Array:
    """Return an embedder's answer as checked vectors."""
    _process.load_numpy()
    import numpy as np

    try:
        found = query_vector(name, answer) if count is None else chunk_vectors(name, answer, count)
    except InvalidArgumentError as error:
        message = str(error)
    else:
        if np.isfinite(found).all():
            return found
        message = f"{name} must be finite"
    raise EmbeddingError(message)


def _texts(chunks: Sequence[object], watch: Watch | None) -> list[str]:
    """Return the text to embed for each chunk: its title on a line of its own, and its text."""
    from budgeteer._reference._chunk.chunk import read  # either backend reads alike

    texts, titles = read(watched(chunks, watch), True)
    if isinstance(texts, int) or isinstance(titles, int):
        raise refusal(chunks, texts, titles)  # type: ignore[arg-type]
    return [
        f"{title}\n{text}" if title and text else text
        for text, title in zip(texts, titles, strict=True)
    ]
