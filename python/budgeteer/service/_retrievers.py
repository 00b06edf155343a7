"""Retrievers: their protocol, and those that need only files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from budgeteer import _validate
from budgeteer._chunk.chunk import Chunk, as_chunks, label_of, scored
from budgeteer._files import reason
from budgeteer._public import public
from budgeteer._sources.sources import PATTERN, Directory, Jsonl, source_of
from budgeteer.errors import InvalidArgumentError
from budgeteer.ranking import keyword_scores


@public("budgeteer.service")
@runtime_checkable
class Retriever(Protocol):
    """
    Finds chunks for a query. Any object with this method is one.

    `RetrievalService` also uses these, if it has them:

    - ``aretrieve(query, limit)``, a coroutine that the service's ``aretrieve`` awaits. Without it,
      ``retrieve`` runs in a thread.
    - ``pages(query)``: an iterable of batches of chunks, best first, read until the budget is full
      or a batch adds nothing to it; then ``retrieve`` is not called.
      ``apages(query)`` is the same as an asynchronous iterable.
    - ``takes_vector = True``: each of these methods also gets ``vector=``, the query's
      vector by the service's embedder.
    - ``name``: its name in errors.

    Several threads may call a retriever at once.

    Examples:
        >>> from budgeteer.service import LlmSettings, RetrievalService
        >>> class Search:
        ...     def retrieve(self, query, limit):
        ...         return ["Green tea.", "Rye bread."][:limit]
        >>> service = RetrievalService(Search(), LlmSettings("gpt-4o"), limit=1)
        >>> service.retrieve("tea").packing.text
        'Green tea.'

    """

    def retrieve(self, query: str, limit: int) -> Iterable[Any]:
        """
        Return the best chunks for *query*, at most *limit*, best first.

        They may be of any type that `budgeteer.Packer.pack` takes.

        Examples:
            >>> retriever = ChunkRetriever(["Green tea.", "Rye bread."])
            >>> [chunk.text for chunk in retriever.retrieve("tea", 1)]
            ['Green tea.']

        """
        ...


@public("budgeteer.service")
@runtime_checkable
class PagedRetriever(Retriever, Protocol):
    r"""
    A retriever that is read in pages while there is room.

    Examples:
        >>> from budgeteer.service import LlmSettings, RetrievalService
        >>> class Drawers:
        ...     def retrieve(self, query, limit):
        ...         return ["Green tea.", "Black tea.", "Rye bread."][:limit]
        ...     def pages(self, query):
        ...         yield ["Green tea."]
        ...         yield ["Black tea.", "Rye bread."]
        >>> service = RetrievalService(Drawers(), LlmSettings("gpt-4o"))
        >>> service.retrieve("tea").packing.text
        'Green tea.\n\nBlack tea.\n\nRye bread.'

    """

    def pages(self, query: str) -> Iterable[Sequence[Any]]:
        """
        Yield batches of chunks for *query*, best first, none of them twice.

        Examples:
            >>> class Drawers:
            ...     def pages(self, query):
            ...         yield ["Green tea."]
            ...         yield ["Black tea.", "Rye bread."]
            >>> [len(page) for page in Drawers().pages("tea")]
            [1, 2]

        """
        ...


@public("budgeteer.service")
class Reranker(Protocol):
    r"""
    Puts chunks into a better order. The coroutine ``arerank`` is used if there is one.

    Chunks are packed in the order it returns, unless the service has a packer that ranks in its
    own way, as `Packer` does by default. A chunk that it leaves out is not packed.

    Examples:
        >>> from budgeteer.service import LlmSettings, RetrievalService
        >>> class Shortest:
        ...     def rerank(self, query, chunks):
        ...         return sorted(chunks, key=lambda chunk: len(chunk.text))
        >>> retriever = ChunkRetriever(["Tea is mild.", "Tea."])
        >>> service = RetrievalService(retriever, LlmSettings("gpt-4o"), reranker=Shortest())
        >>> service.retrieve("tea").packing.text
        'Tea.\n\nTea is mild.'

    """

    def rerank(self, query: str, chunks: Sequence[Any]) -> Iterable[Any]:
        """
        Return *chunks*, best first.

        Examples:
            >>> class Shortest:
            ...     def rerank(self, query, chunks):
            ...         return sorted(chunks, key=len)
            >>> Shortest().rerank("tea", ["Tea is mild.", "Tea."])
            ['Tea.', 'Tea is mild.']

        """
        ...


@public("budgeteer.service")
class NoOpReranker:
    """
    Keeps the order of the retrievers.

    Examples:
        >>> NoOpReranker().rerank("tea", ["b", "a"])
        ['b', 'a']

    """

    def rerank(self, query: str, chunks: Sequence[Any]) -> Sequence[Any]:  # noqa: ARG002
        """
        Return *chunks* as they are.

        Examples:
            >>> NoOpReranker().rerank("tea", ["Rye bread.", "Green tea."])
            ['Rye bread.', 'Green tea.']

        """
        return chunks


@public("budgeteer.service")
class ChunkRetriever:
    """
    Finds chunks among those given, by the share of the query's keywords in them.

    Immutable, and safe to share between threads.

    Args:
        chunks: As for `budgeteer.Packer.pack`.
        name: Its name in errors.

    Raises:
        InvalidArgumentError: *chunks* is not a sequence, or one of them has no text.

    Examples:
        >>> retriever = ChunkRetriever(["Rye bread.", "Green tea."])
        >>> [(chunk.text, chunk.score) for chunk in retriever.retrieve("green tea", 1)]
        [('Green tea.', 1.0)]

    """

    def __init__(self, chunks: Iterable[Any], *, name: str = "ChunkRetriever") -> None:
        self.name: str = _validate.text("name", name)
        self._searched = Searched(tuple(as_chunks(_validate.batch("chunks", chunks))))

    def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """
        Return the best chunks as `Chunk` with their keyword scores, at most *limit*.

        Examples:
            >>> ChunkRetriever(["Tea."]).retrieve("coffee", 5)[0].score
            0.0

        """
        return self._searched.best(query, limit)


class _FileRetriever:
    """Finds chunks in a source that is read once, and again by `refresh`."""

    def __init__(self, source: Directory | Jsonl) -> None:
        self.name: str = source.name
        self._source = source
        self._searched = Searched(())
        self.refresh()

    def refresh(self) -> None:
        """
        Read the files again, for retrievals that begin afterwards.

        Raises:
            InvalidArgumentError: The files cannot be read; the chunks read before stay.

        Examples:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     retriever = FolderRetriever(folder)
            ...     _ = pathlib.Path(folder, "tea.md").write_text("Green tea.")
            ...     retriever.refresh()
            >>> retriever.retrieve("tea", 1)[0].text
            'Green tea.'

        """
        try:
            self._searched = Searched(tuple(self._source.read()))
        except OSError as error:
            raise InvalidArgumentError(reason(error)) from error

    def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """
        Return the best chunks with their keyword scores, at most *limit*.

        Examples:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "tea.md").write_text("Green tea.")
            ...     retriever = FolderRetriever(folder)
            >>> [(chunk.text, chunk.score) for chunk in retriever.retrieve("green leaves", 1)]
            [('Green tea.', 0.5)]

        """
        return self._searched.best(query, limit)


@public("budgeteer.service")
class FolderRetriever(_FileRetriever):
    r"""
    Finds sections of the Markdown files in a folder.

    The files are read once, and split at H2 headings; `refresh` reads them again. The logger
    ``budgeteer`` warns where there is none.

    Args:
        path: The folder.
        name: The ``source`` of its chunks and its name in errors; None is the path.
        pattern: The files to read, as a glob below the folder: ``**/*.txt``, or ``**/*`` for all.

    Raises:
        InvalidArgumentError: There is no such folder, or it cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "tea.md").write_text("## Green tea\nIt is mild.")
        ...     retriever = FolderRetriever(folder)
        >>> retriever.retrieve("green tea", 10)[0].title
        'Green tea'

    """

    def __init__(
        self, path: str | os.PathLike[str], *, name: str | None = None, pattern: str = PATTERN
    ) -> None:
        entry = {**_entry("directory", path, name), "pattern": pattern}
        super().__init__(_source(entry))


@public("budgeteer.service")
class JsonlRetriever(_FileRetriever):
    """
    Finds chunks in a file with a JSON object per line: ``text`` or ``content``, and more.

    The file is read once; `refresh` reads it again.

    Args:
        path: The file.
        name: The ``source`` of chunks that name none, and its name in errors; None is the path.

    Raises:
        InvalidArgumentError: There is no such file, or a line of it is invalid.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tea.jsonl")
        ...     _ = path.write_text('{"text": "Green tea."}')
        ...     JsonlRetriever(path).retrieve("tea", 1)[0].text
        'Green tea.'

    """

    def __init__(self, path: str | os.PathLike[str], *, name: str | None = None) -> None:
        super().__init__(_source(_entry("jsonl", path, name)))


class Searched:
    """The chunks that a retriever searches, with what it looks at in them read once."""

    def __init__(self, chunks: tuple[Chunk, ...]) -> None:
        self._chunks = chunks
        self._texts = tuple([chunk.text for chunk in chunks])
        self._titles = tuple([chunk.title or label_of(chunk, "title") for chunk in chunks])

    def best(self, query: str, limit: int) -> list[Chunk]:
        """Return the *limit* chunks with the highest keyword scores, ties in their order."""
        limit = _validate.tokens("limit", limit)
        query = _validate.text("query", query)
        scores = keyword_scores(query, self._texts, titles=self._titles).tolist()
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:limit]
        return scored([self._chunks[i] for i in order], [scores[i] for i in order])


def _entry(kind: str, path: object, name: str | None) -> dict[str, Any]:
    entry = {"type": kind, "path": _validate.path_like("path", path)}
    return entry if name is None else {**entry, "name": name}


def _source(entry: dict[str, Any]) -> Any:
    try:
        return source_of("", entry, Path.cwd())
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).removeprefix(".")) from None
