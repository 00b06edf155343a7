"""Corpora: chunks that are indexed once and packed many times."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._chunk.chunk import Chunk, as_chunks, refusal
from budgeteer._chunk.record import Stored, records_of
from budgeteer._pack.packer import Packer, begin, finish
from budgeteer._pack.state import Indexed, State
from budgeteer._public import public
from budgeteer.errors import BudgeteerError, CorpusError, InvalidArgumentError

T = TypeVar("T")


@public("budgeteer")
class Corpus(Indexed[T]):
    r"""
    Chunks that are indexed once and packed many times.

    `Packer.pack` takes a corpus in place of a list of chunks and returns the same packing, to the
    bit, but reads only the index entries of the query's words. Texts and titles are read when a
    chunk is indexed, scores and times when they first rank: do not change a chunk that is in a
    corpus.

    Safe to share between threads, also while chunks are appended: a packing sees an addition whole
    or not at all. Ranking by ``"keyword"``, and the scores that ``"recency"`` and ``"input"``
    report, still read each text that contains part of a keyword.

    Args:
        chunks: As for `Packer.pack`. They are not copied.

    Raises:
        InvalidArgumentError: *chunks* is not a sequence, or a chunk has no text; the message names
            the index.

    Examples:
        >>> from budgeteer import Packer
        >>> corpus = Corpus(["Green tea.", "Coffee."])
        >>> corpus.append(["Black tea."])
        >>> len(corpus)
        3
        >>> Packer(7).pack("black tea", corpus).text
        'Black tea.\n\nGreen tea.'

    """

    __slots__ = ("__weakref__", "_lock", "_process", "_state")

    def __init__(self, chunks: Iterable[T] = ()) -> None:
        self._begin(_extended(None, chunks))

    def _begin(self, state: State[T]) -> None:
        self._state = state
        self._process = os.getpid()
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Corpus[Any]:
        """
        Return the corpus that `save` wrote to the file at *path*.

        The whole file is read once, so that damage is reported at once. Then it is mapped into
        memory, and a text becomes a str only when it is kept or read. Do not write to the file
        while it is open; `save` may replace it. A str, dict or `Chunk` is restored as it was; any
        other object as a `Chunk`.

        Raises:
            CorpusError: The file is not a corpus, or it is of another version, cut off or damaged.
            OSError: The file cannot be read.
            BudgeteerError: The backend is the reference, which knows no files.

        """
        name = _path(path)
        index = backend.open_corpus(name)
        if isinstance(index, str):
            raise CorpusError(f"{name!r} cannot be opened as a corpus: {index}")
        corpus: Corpus[Any] = cls.__new__(cls)
        corpus._begin(State(Stored(index), index, name))
        return corpus

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write the corpus to a file, which `open` reads on any platform.

        The file is written beside *path* and replaces it when it is complete. Beside texts and
        titles it holds the other fields of a mapping or a `Chunk` as JSON, and the ``id``,
        ``source``, ``score`` and ``metadata`` of any other object.

        Raises:
            InvalidArgumentError: JSON cannot hold a field of a chunk; the message names the index.
            OSError: The file cannot be written; a previous file is left as it was.
            BudgeteerError: The backend is the reference, which knows no files.

        Examples:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Corpus([{"text": "Green tea.", "shelf": 3}]).save(f"{folder}/teas")
            ...     list(Corpus.open(f"{folder}/teas"))
            [{'text': 'Green tea.', 'shelf': 3}]

        """
        state = self._state
        backend.save_corpus(state.index, _path(path), records_of(state.chunks))

    def append(self, chunks: Iterable[T]) -> None:
        """
        Add *chunks* after the others, or none if one of them cannot be read.

        Each call takes a little time for every chunk already there: add many at once.

        Raises:
            InvalidArgumentError: As for the class; the index counts from the first of *chunks*.

        Examples:
            >>> corpus = Corpus(["Green tea."])
            >>> corpus.append(chunk for chunk in ["Black tea.", "Coffee."])
            >>> corpus[-1]
            'Coffee.'

        """
        if self._process != os.getpid():  # forked, perhaps while a thread held the lock
            self._lock = threading.Lock()
            self._process = os.getpid()
        items = tuple(_validate.batch("chunks", chunks))
        with self._lock:
            self._state = _extended(self._state, items)

    def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """
        Return the best chunks by BM25 as `Chunk` with their scores, at most *limit*, best first.

        With this method a corpus is a retriever for `budgeteer.service.RetrievalService`. Empty
        chunks are left out; chunks without a word of the query come last.

        Raises:
            InvalidArgumentError: *query* is not a str, or *limit* is not an int from 0 on.

        Examples:
            >>> corpus = Corpus(["Coffee.", "Green tea."])
            >>> [(chunk.text, round(chunk.score, 2)) for chunk in corpus.retrieve("Tea?", 1)]
            [('Green tea.', 0.61)]

        """
        limit = _validate.tokens("limit", limit)
        packer = Packer(_validate.MAX_TOKENS, counter="chars_div4", max_chunks=limit, dedupe=None)
        kept = finish(
            begin(packer, query, self), packer.max_tokens
        ).kept  # no telemetry: the caller did not ask for a packing
        return [
            Chunk(
                chunk.text,
                id=chunk.id,
                source=chunk.source,
                title=chunk.title,
                score=found.score,
                metadata=chunk.metadata,
            )
            for chunk, found in zip(as_chunks([found.chunk for found in kept]), kept, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._state.chunks)

    def __iter__(self) -> Iterator[T]:
        return iter(self._state.chunks)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._state.chunks[index]

    def __repr__(self) -> str:
        """Show the number of chunks, never their texts."""
        count = len(self)
        return f"<Corpus of {count} chunk{'' if count == 1 else 's'}>"

    def __reduce__(self) -> Any:
        """Pickle the path it was opened from; refuse a corpus that is in memory only."""
        path = self._state.path
        if path is None:
            raise BudgeteerError(
                "a Corpus cannot be pickled unless all of it was opened from a file: save it, "
                "open that, and pickle what you opened"
            )
        return Corpus.open, (str(Path(path).absolute()),)


def _path(path: object) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError(
            f"path must be a str or a path, not {_validate.type_name(path)}"
        )
    name = os.fsdecode(path)
    if not name or "\0" in name:
        raise InvalidArgumentError(
            "path must be the name of a file, not empty or with a NUL in it"
        )
    return name


def _extended(state: State[Any] | None, chunks: Iterable[Any]) -> State[Any]:
    """Return *state* with *chunks* added at the end."""
    items = tuple(_validate.batch("chunks", chunks))
    index = backend.index_chunks(items, None if state is None else state.index)
    if isinstance(index, tuple):
        raise refusal(items, *index)
    if state is None:
        return State(items, index)
    if isinstance(state.chunks, Stored):
        return State(state.chunks.with_more(items), index)
    return State((*state.chunks, *items), index)
