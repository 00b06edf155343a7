"""Retrieval from Qdrant, embedded in the process or by a server."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from budgeteer import _validate
from budgeteer._chunk.chunk import CHUNK_FIELDS, Chunk, ChunkField, as_chunks
from budgeteer._process import renew
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError, RetrievalError

MEMORY = ":memory:"
_NAMESPACE = uuid.UUID("6f9c1a5e-3d52-5b0e-9a43-0d8f5f3f2b11")
_TEXT_KEYS = ("text", "content", "page_content", "document")
_PAGE_MAX = 1_024
_NEAREST_IS_LOWEST = ("Euclid", "Manhattan")


_turns: WeakKeyDictionary[Any, dict[int, threading.Lock]] = WeakKeyDictionary()


def _turn_of(client: Any) -> threading.Lock:
    """Return the lock of a client, the same for all its users in this process."""
    locks = _turns.setdefault(client, {})  # atomic: one operation of a dict
    return locks.setdefault(os.getpid(), threading.Lock())


@public("budgeteer.service")
class QdrantRetriever:
    """
    Finds the chunks nearest to a query in a collection of Qdrant.

    Needs ``pip install 'budgeteer[qdrant]'``. Without *url* the collection is in this process, in
    memory or in the folder *path*, and needs no server. Safe to share between threads.

    `RetrievalService` reads it in growing pages until its budget is full. A chunk's score is
    Qdrant's, or its negative if the collection uses a distance, so that higher is always better.

    Args:
        collection: The collection's name.
        embedder: Embeds queries, and chunks that are added; for example
            `budgeteer.embedding.OpenAIEmbedder`. None takes the vector that the service's embedder
            makes once for all its retrievers.
        path: The folder of an embedded collection. Only one process at a time can open it.
        url: The URL of a server, such as ``http://localhost:6333``.
        api_key_env: The environment variable that holds the server's key, which must be set; None
            sends none.
        client: A ``qdrant_client.QdrantClient`` to use instead of a new one. Several retrievers
            can share it, for example for two collections in one folder.
        vector_name: The name of the vector to use, if the collection's vectors have names.
        fields: The payload keys of a chunk's ``text``, ``title``, ``source``, ``id`` and
            ``metadata``; a dot leads into a mapping. By default the text is under ``text``,
            ``content``, ``page_content`` or ``document``, the metadata is the rest of the payload,
            and the id is the point's.
        to_chunk: Makes a chunk from a payload, the point's id and the score, instead of *fields*.
        query_filter: A ``qdrant_client.models.Filter`` that points must match.
        page_size: The number of points in the first page; it doubles with each page.
        timeout: The most seconds, a whole number, for the answer of the server at *url*.
        name: Its name in errors.

    Raises:
        InvalidArgumentError: An argument has a wrong type, is out of range or contradicts another.
        RetrievalError: qdrant-client is not installed.

    Examples:
        >>> from budgeteer import Chunk
        >>> retriever = QdrantRetriever("docs")
        >>> chunks = [Chunk("Green tea."), Chunk("Rye bread.")]
        >>> retriever.add(chunks, vectors=[[1, 0], [0, 1]])
        >>> [chunk.text for chunk in retriever.retrieve("tea", 1, vector=[0.9, 0.1])]
        ['Green tea.']
        >>> retriever.close()

    """

    def __init__(
        self,
        collection: str,
        *,
        embedder: Any = None,
        path: str | os.PathLike[str] | None = None,
        url: str | None = None,
        api_key_env: str | None = None,
        client: Any = None,
        vector_name: str | None = None,
        fields: Mapping[ChunkField, str] | None = None,
        to_chunk: Callable[[Mapping[str, Any], Any, float | None], Any] | None = None,
        query_filter: Any = None,
        page_size: int = 32,
        timeout: int | None = None,
        name: str | None = None,
    ) -> None:
        self.collection: str = filled("collection", collection)
        self.name: str = f"qdrant:{collection}" if name is None else _validate.text("name", name)
        _check_place(path, url, api_key_env, client, timeout)
        _check_callables(embedder, to_chunk, fields)
        if client is not None:
            _check_client(client)
        if vector_name is not None:
            _validate.text("vector_name", vector_name)
        self._page_size = _validate.tokens("page_size", page_size, minimum=1)
        if timeout is not None:
            timeout = _validate.tokens("timeout", timeout, minimum=1)
        if client is None and importlib.util.find_spec("qdrant_client") is None:
            raise RetrievalError(
                f"{self.name} needs qdrant-client: pip install 'budgeteer[qdrant]'",
                source=self.name,
            )
        self.takes_vector: bool = embedder is None
        self._embedder = embedder
        self._place: dict[str, Any] = {
            "path": None if path is None else os.fsdecode(path),
            "url": url,
            "timeout": timeout,
        }
        self._api_key_env = api_key_env
        self._client, self._is_own = client, client is None
        self._vector_name = vector_name
        self._filter = query_filter
        self._to_chunk = to_chunk or _reader(_fields(fields))
        self._opening = threading.Lock()
        renew(self)
        # An embedded collection is not made for several threads; a server is.
        self._turn: Any = nullcontext()
        self._sign: float | None = None
        if client is not None:
            self._set_turn()

    def retrieve(self, query: str, limit: int, *, vector: Any = None) -> list[Any]:
        """
        Return the *limit* nearest chunks, best first.

        Raises:
            InvalidArgumentError: There is neither an embedder nor a *vector*; or a point has no
                text.

        Examples:
            >>> from budgeteer import Chunk
            >>> retriever = QdrantRetriever("docs")
            >>> chunks = [Chunk("Green tea."), Chunk("Rye bread.")]
            >>> retriever.add(chunks, vectors=[[1, 0], [0, 1]])
            >>> [chunk.text for chunk in retriever.retrieve("bread", 1, vector=[0.1, 0.9])]
            ['Rye bread.']
            >>> retriever.close()

        """
        limit = _validate.tokens("limit", limit)
        if not limit:
            return []
        return self._chunks(self._nearest(self._vector(query, vector), limit, 0))

    def pages(self, query: str, *, vector: Any = None) -> Iterator[list[Any]]:
        """
        Yield the chunks of the collection, nearest first, in pages that double in size.

        Raises:
            InvalidArgumentError: As for `retrieve`.

        Examples:
            >>> from budgeteer import Chunk
            >>> retriever = QdrantRetriever("docs", page_size=1)
            >>> chunks = [Chunk("Green tea."), Chunk("Rye bread.")]
            >>> retriever.add(chunks, vectors=[[1, 0], [0, 1]])
            >>> pages = retriever.pages("tea", vector=[0.9, 0.1])
            >>> [[chunk.text for chunk in page] for page in pages]
            [['Green tea.'], ['Rye bread.']]
            >>> retriever.close()

        """
        embedded = self._vector(query, vector)
        seen: set[Any] = set()
        size, offset = self._page_size, 0
        while True:
            points = self._nearest(embedded, size, offset)
            new = [point for point in points if point.id not in seen]
            if not new:
                return
            seen.update(point.id for point in new)
            yield self._chunks(new)
            if len(points) < size:
                return
            offset += len(points)
            size = min(2 * size, max(_PAGE_MAX, self._page_size))

    def read(self, limit: int) -> list[Any]:
        """
        Return the first *limit* chunks by the order of their ids, without a score.

        Examples:
            >>> from budgeteer import Chunk
            >>> retriever = QdrantRetriever("docs")
            >>> chunks = [Chunk("Green tea."), Chunk("Rye bread.")]
            >>> retriever.add(chunks, vectors=[[1, 0], [0, 1]])
            >>> sorted(chunk.text for chunk in retriever.read(10))
            ['Green tea.', 'Rye bread.']
            >>> retriever.close()

        """
        limit = _validate.tokens("limit", limit)
        chunks: list[Any] = []
        offset = None
        while len(chunks) < limit:
            client = self._open()
            with self._turn:
                self._sign = self._sign or self._sign_of(client)
                points, offset = client.scroll(
                    self.collection,
                    scroll_filter=self._filter,
                    limit=min(_PAGE_MAX, limit - len(chunks)),
                    offset=offset,
                    with_payload=True,
                )
            chunks += [self._to_chunk(point.payload or {}, point.id, None) for point in points]
            if offset is None or not points:
                break
        return chunks

    def add(self, chunks: Iterable[Any], *, vectors: Any = None) -> None:
        """
        Put chunks into the collection, which is created if it is missing.

        A chunk replaces the one with the same id and source or, without an id, the one with the
        same text.

        Args:
            chunks: As for `budgeteer.Packer.pack`.
            vectors: Their embeddings, floats, shape ``(n, d)``; None embeds them.

        Raises:
            InvalidArgumentError: There are neither vectors nor an embedder with ``embed``, or not
                one vector for each chunk, all of one size.

        Examples:
            >>> from budgeteer import Chunk
            >>> retriever = QdrantRetriever("docs")
            >>> retriever.add([Chunk("Green tea.", id="1")], vectors=[[1, 0]])
            >>> retriever.add([Chunk("Green tea is mild.", id="1")], vectors=[[1, 0]])
            >>> [chunk.text for chunk in retriever.read(10)]
            ['Green tea is mild.']
            >>> retriever.close()

        """
        items = list(as_chunks(_validate.batch("chunks", chunks)))
        if vectors is None:
            embed = getattr(self._embedder, "embed", None)
            if embed is None:
                raise InvalidArgumentError("vectors are required without an embedder")
            vectors = embed([chunk.text for chunk in items])
        rows = _rows(vectors, len(items))
        if not items:
            return
        models = importlib.import_module("qdrant_client.models")
        client = self._open()
        with self._turn:
            if not client.collection_exists(self.collection):
                size = models.VectorParams(size=len(rows[0]), distance=models.Distance.COSINE)
                client.create_collection(
                    self.collection,
                    vectors_config={self._vector_name: size} if self._vector_name else size,
                )
            client.upsert(
                self.collection,
                [
                    models.PointStruct(
                        id=str(uuid.uuid5(_NAMESPACE, _key(chunk))),
                        vector={self._vector_name: row} if self._vector_name else row,
                        payload=_payload(chunk),
                    )
                    for chunk, row in zip(items, rows, strict=True)
                ],
            )

    def close(self) -> None:
        """
        Close the connection or folder, unless *client* was given; a later call reopens it.

        Examples:
            >>> import tempfile
            >>> from budgeteer import Chunk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     retriever = QdrantRetriever("docs", path=folder)
            ...     retriever.add([Chunk("Green tea.")], vectors=[[1, 0]])
            ...     retriever.close()
            ...     retriever.read(1)[0].text
            ...     retriever.close()
            'Green tea.'

        """
        with self._opening:
            if self._is_own and self._client is not None:
                with self._turn:
                    self._client.close()
                self._client, self._sign = None, None

    def _open(self) -> Any:
        with self._opening:
            if self._client is None:
                library = importlib.import_module("qdrant_client")
                place = {key: value for key, value in self._place.items() if value is not None}
                if self._place["url"] is not None:
                    place |= {"api_key": self._server_key(), "check_compatibility": False}
                else:
                    place["force_disable_check_same_thread"] = True
                    place.setdefault("path", None)
                    if place["path"] is None:
                        place["location"] = MEMORY
                try:
                    self._client = library.QdrantClient(**place)
                except RuntimeError as error:  # raised by the folder's lock
                    raise RetrievalError(
                        f"{self.name} cannot be opened; another process may have it open",
                        source=self.name,
                    ) from error
                self._set_turn()
            return self._client

    def _server_key(self) -> str | None:
        """Return the server's key: without the one it was told of, no request would be right."""
        name = self._api_key_env
        if name is None:
            return None
        key = os.environ.get(name, "").strip()
        if not key:
            # Some give the key itself as the variable's name: do not quote what may be a key.
            named = f"variable {name}" if name.isupper() else "variable of api_key_env"
            raise RetrievalError(
                f"{self.name}: the environment {named} is not set; it must hold the key",
                source=self.name,
            )
        return key

    def _begin_anew(self) -> None:
        """Make new locks, which no thread of another process holds."""
        self._opening = threading.Lock()
        if self._client is not None:
            self._set_turn()

    def _set_turn(self) -> None:
        is_local = type(getattr(self._client, "_client", None)).__name__ == "QdrantLocal"
        self._turn = _turn_of(self._client) if is_local else nullcontext()

    def _vector(self, query: str, vector: Any) -> list[float]:
        query = _validate.text("query", query)
        if vector is None:
            if self._embedder is None:
                raise InvalidArgumentError("an embedder or a vector is required")
            vector = self._embedder.embed_query(query)
        return _floats(vector)

    def _nearest(self, vector: list[float], limit: int, offset: int) -> list[Any]:
        client = self._open()
        with self._turn:
            self._sign = self._sign or self._sign_of(client)
            found = client.query_points(
                self.collection,
                query=vector,
                using=self._vector_name,
                query_filter=self._filter,
                limit=limit,
                offset=offset,
                with_payload=True,
            )
        points: list[Any] = found.points
        return points

    def _sign_of(self, client: Any) -> float:
        """Return -1 if the nearest point has the lowest score, else 1."""
        if not client.collection_exists(self.collection):
            raise InvalidArgumentError(f"the collection {self.collection[:80]!r} does not exist")
        vectors = client.get_collection(self.collection).config.params.vectors
        if isinstance(vectors, Mapping):
            vectors = vectors.get(self._vector_name or "")
        distance = getattr(vectors, "distance", None)
        return -1.0 if getattr(distance, "value", distance) in _NEAREST_IS_LOWEST else 1.0

    def _chunks(self, points: Sequence[Any]) -> list[Any]:
        sign = self._sign or 1.0
        return [self._to_chunk(p.payload or {}, p.id, sign * p.score) for p in points]


def filled(name: str, value: object) -> str:
    """Return a text that is not empty: an empty URL is one of this machine to the client."""
    text = _validate.text(name, value)
    if not text:
        raise InvalidArgumentError(f"{name} must not be empty")
    return text


def _check_place(
    path: object, url: object, api_key_env: object, client: object, timeout: object
) -> None:
    if sum(value is not None for value in (path, url, client)) > 1:
        raise InvalidArgumentError("only one of path, url and client can be given")
    if path is not None:
        _validate.path("path", path)
    for key, value in (("url", url), ("api_key_env", api_key_env)):
        if value is not None:
            filled(key, value)
    for key, value in (("api_key_env", api_key_env), ("timeout", timeout)):
        if value is not None and url is None:
            raise InvalidArgumentError(f"{key} needs a url to go with")


def _check_client(client: object) -> None:
    ask = getattr(client, "query_points", None)
    if not callable(ask):
        raise InvalidArgumentError(
            f"client must be a QdrantClient or None, not {_validate.type_name(client)}"
        )
    if inspect.iscoroutinefunction(ask):
        raise InvalidArgumentError(
            f"client must be a QdrantClient, not the asynchronous {_validate.type_name(client)}"
        )


def _check_callables(embedder: object, to_chunk: object, fields: object) -> None:
    if embedder is not None and not callable(getattr(embedder, "embed_query", None)):
        raise InvalidArgumentError(
            f"embedder must have embed_query, and {_validate.type_name(embedder)} has not"
        )
    if to_chunk is not None and not callable(to_chunk):
        raise InvalidArgumentError(
            f"to_chunk must be callable, not {_validate.type_name(to_chunk)}"
        )
    if to_chunk is not None and fields is not None:
        raise InvalidArgumentError("only one of fields and to_chunk can be given")


def _floats(vector: Any) -> list[float]:
    values = vector.tolist() if hasattr(vector, "tolist") else vector
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(
            f"a vector must be a sequence of floats, not {_validate.type_name(vector)}"
        ) from None


def _rows(vectors: Any, count: int) -> list[list[float]]:
    """Return a vector for each of *count* chunks, before anything is made for them."""
    try:
        given = iter(vectors)
    except TypeError:
        raise InvalidArgumentError(
            f"vectors must be a sequence of vectors, not {_validate.type_name(vectors)}"
        ) from None
    rows = [_floats(vector) for vector in given]
    if len(rows) != count:
        raise InvalidArgumentError(
            f"vectors must be one for each of {count} chunks, not {len(rows)}"
        )
    for i, row in enumerate(rows):
        if not row or len(row) != len(rows[0]):
            wanted = f"{len(rows[0])} floats, as vectors[0] has" if i else "floats"
            raise InvalidArgumentError(f"vectors[{i}] must have {wanted}, not {len(row)}")
        if not all(map(math.isfinite, row)):
            raise InvalidArgumentError(f"vectors[{i}] must have finite numbers alone")
    return rows


def _key(chunk: Chunk) -> str:
    named = chunk.text if chunk.id is None else chunk.id
    return f"{chunk.source}\0{named}".encode("utf-8", "replace").decode()


def _payload(chunk: Chunk) -> dict[str, Any]:
    payload: dict[str, Any] = {
        name: getattr(chunk, name) for name in CHUNK_FIELDS if getattr(chunk, name)
    }
    return {**payload, "text": chunk.text}


def _fields(fields: Mapping[ChunkField, str] | None) -> dict[ChunkField, list[str]]:
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise InvalidArgumentError(f"fields must be a mapping, not {_validate.type_name(fields)}")
    for name, key in fields.items():
        _validate.choice("a key of fields", name, CHUNK_FIELDS)
        _validate.text(f"fields[{name!r}]", key)
    return {name: key.split(".") for name, key in fields.items()}


def _reader(fields: dict[ChunkField, list[str]]) -> Callable[[Mapping[str, Any], Any, Any], Chunk]:
    """Return a function that makes a chunk from a payload."""
    ways = {name: fields.get(name, [name]) for name in CHUNK_FIELDS}
    used = {path[0] for name, path in ways.items() if name != "metadata" or name in fields}

    def chunk(payload: Mapping[str, Any], identifier: Any, score: float | None) -> Chunk:
        path = ways["text"]
        if "text" not in fields:
            path = [next((key for key in _TEXT_KEYS if payload.get(key) is not None), "text")]
        text = _at(payload, path)
        if not isinstance(text, str):
            raise InvalidArgumentError(
                f"the point {str(identifier)[:80]!r} must have a str under "
                f"{'.'.join(path)!r:.200}, not {_validate.type_name(text)}"
            )
        metadata = _at(payload, ways["metadata"])
        if "metadata" not in fields and not isinstance(metadata, Mapping):
            metadata = {
                key: value for key, value in payload.items() if key not in used | {path[0]}
            }
        own = _at(payload, ways["id"])
        return Chunk(
            text,
            id=str(identifier if own is None else own),
            title=_shown(_at(payload, ways["title"])),
            source=_shown(_at(payload, ways["source"])),
            score=score,
            metadata=metadata if isinstance(metadata, Mapping) else None,
        )

    return chunk


def _at(payload: Any, path: Sequence[str]) -> Any:
    for key in path:
        payload = payload.get(key) if isinstance(payload, Mapping) else None
    return payload


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
