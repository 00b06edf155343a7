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

    Stands wherever chunks do: `Packer.pack` gives for a corpus what it gives for the list of its
    chunks, to the bit, but reads only what the index has of the query's words, so that a million
    chunks take milliseconds. Texts, titles, scores and times are those that the chunks had when
    they were indexed or first ranked by: do not change a chunk that is in a corpus.

    Safe to share between threads, also while chunks are appended: a packing sees all of an
    addition or nothing. Ranking by ``"keyword"``, and the scores that ``"recency"`` and
    ``"input"`` report, still read each text that has something of a keyword in it.

    Args:
        chunks: What `Packer.pack` takes; they may be mixed. Kept as they are, not copied.

    Raises:
        InvalidArgumentError: *chunks* is no sequence, or a chunk has no text; the message names
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

        Every byte is looked at once, so that what is damaged is told now. Then the file is mapped
        into memory: a text becomes a str only when it is kept or looked at. Do not write to the
        file while it is open; `save` may replace it. The chunks are str, dicts and `Chunk`, as
        they were; of other objects a `Chunk`.

        Raises:
            CorpusError: The file is no corpus, of another version, cut off or damaged.
            OSError: It cannot be read.
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

        The file is written beside *path* and takes its place when it is whole. Beside texts and
        titles it holds what else a str, a mapping or a `Chunk` has, as JSON, and of any other
        object ``id``, ``source``, ``score`` and ``metadata``.

        Raises:
            InvalidArgumentError: JSON cannot hold what a chunk has; the message names the index.
            OSError: The file cannot be written; what was there before still is.
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
        Add *chunks* behind the others, all or, where one cannot be read, none.

        Takes time for each chunk that is there, if little: add many at once.

        Raises:
            InvalidArgumentError: As for the class; indices count from the first of *chunks*.

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

        So a corpus is a retriever of a `budgeteer.service.RetrievalService`. Empty chunks are
        left out; those without a word of the query come last.

        Raises:
            InvalidArgumentError: *query* is no str, or *limit* no int from 0 on.

        Examples:
            >>> corpus = Corpus(["Coffee.", "Green tea."])
            >>> [(chunk.text, round(chunk.score, 2)) for chunk in corpus.retrieve("Tea?", 1)]
            [('Green tea.', 0.61)]

        """
        limit = _validate.tokens("limit", limit)
        packer = Packer(_validate.MAX_TOKENS, counter="chars_div4", max_chunks=limit, dedupe=None)
        kept = finish(
            begin(packer, query, self), packer.max_tokens
        ).kept  # nobody asked for a packing
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
        """Say how many, never what."""
        count = len(self)
        return f"<Corpus of {count} chunk{'' if count == 1 else 's'}>"

    def __reduce__(self) -> Any:
        """Say where it was opened; what is in memory only is refused."""
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
    """Return *state* with *chunks* behind its own."""
    items = tuple(_validate.batch("chunks", chunks))
    index = backend.index_chunks(items, None if state is None else state.index)
    if isinstance(index, tuple):
        raise refusal(items, *index)
    if state is None:
        return State(items, index)
    if isinstance(state.chunks, Stored):
        return State(state.chunks.with_more(items), index)
    return State((*state.chunks, *items), index)
