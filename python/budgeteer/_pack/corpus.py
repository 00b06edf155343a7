"""Corpora: chunks that are indexed once and packed many times."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar, overload

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._chunk.chunk import Chunk, as_chunks, id_of, refusal, scored, text_column
from budgeteer._chunk.record import Stored, records_of
from budgeteer._copies import Copied
from budgeteer._pack.packer import Packer, begin, finish
from budgeteer._pack.state import Indexed, State
from budgeteer._public import public
from budgeteer._rank.statistics import Statistics
from budgeteer._rank.terms import Language, Stopwords, words_of
from budgeteer.errors import BudgeteerError, CorpusError, InvalidArgumentError

T = TypeVar("T")

_SHOWN = 5
"""How many ids an error names."""

ID_BITS = 128
"""The size of the largest number that is an id, that of a UUID."""


@public("budgeteer")
class Corpus(Copied, Indexed[T]):
    r"""
    Chunks that are indexed once and packed many times.

    `Packer.pack` takes a corpus in place of a list of chunks and returns the same packing, to the
    bit, but reads only the index entries of the query's words. Texts and titles are read when a
    chunk is indexed, scores and times when they first rank: do not change a chunk that is in a
    corpus.

    Safe to share between threads, also while chunks are appended, removed or replaced: a packing
    sees each change whole or not at all. Ranking by ``"keyword"``, and the scores that
    ``"recency"`` and ``"input"`` report, read texts only for keywords of several words, such as
    ``gpt-4o``: those that contain the rarest of them. A copy, deep or not, shares the chunks and
    what is indexed, and does not change with this one.

    Args:
        chunks: As for `Packer.pack`. They are not copied; those of a column of strings are read
            where it has them, until the corpus is changed.

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

        The file is mapped into memory. Opening reads the figures of each chunk, 20 bytes and 4 for
        each encoding that has counted; all else is read, and checked against its hashes, when it
        is needed. Damage that is met later is a `CorpusError` of the call that meets it, as of
        `Packer.pack`, `save` or a look at a chunk, and of all that follow. ``list(corpus)`` reads
        all texts, `save` all there is.

        Do not write to the file while it is open; `save` may replace it. A str, dict or `Chunk` is
        restored as it was; any other object as a `Chunk`. But a `Chunk` without a title of its own
        has that in its metadata then.

        Raises:
            CorpusError: The file is not a corpus, or it is of another version, cut off, or damaged
                in what was read. Or *path* is a pipe or a device.
            OSError: The file cannot be read; an IsADirectoryError for a directory.
            BudgeteerError: The backend is the reference, which knows no files.

        Examples:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Corpus(["Green tea.", "Rye bread."]).save(f"{folder}/teas")
            ...     corpus = Corpus.open(f"{folder}/teas")
            ...     len(corpus), corpus[0]
            (2, 'Green tea.')

        """
        name = _validate.path("path", path)
        _check_file(name)
        index = backend.open_corpus(name)
        if isinstance(index, str):
            raise CorpusError(f"{name!r} cannot be opened as a corpus: {index}")
        corpus: Corpus[Any] = cls.__new__(cls)
        absolute = os.path.abspath(name)  # noqa: PTH100 - a pickle may be made and read elsewhere
        corpus._begin(State(Stored(index), index, absolute))
        return corpus

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write the corpus to a file, which `open` reads on any platform.

        The file is written beside *path*, or beside what that links to, and replaces it when it is
        complete, with the same permissions. Beside texts and titles it holds the other fields of a
        mapping or a `Chunk` as JSON, and the ``id``, ``source``, ``score`` and ``metadata`` of any
        other object.

        Raises:
            InvalidArgumentError: JSON cannot hold a field of a chunk; the message names the index.
                Or *path* is a pipe or a device.
            OSError: The file cannot be written; a previous file is left as it was.
            CorpusError: The corpus was opened from a file that is damaged; likewise.
            BudgeteerError: The backend is the reference, which knows no files.

        Examples:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Corpus([{"text": "Green tea.", "shelf": 3}]).save(f"{folder}/teas")
            ...     list(Corpus.open(f"{folder}/teas"))
            [{'text': 'Green tea.', 'shelf': 3}]

        """
        state, name = self._state, _validate.path("path", path)
        backend.save_corpus(state.index, name, records_of(state.chunks))

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
        items = tuple(_validate.batch("chunks", chunks))
        with self._changing():
            self._state = _extended(self._state, items)

    def remove(self, ids: Iterable[str | int]) -> None:
        """
        Remove each chunk that has one of *ids*, or none if an id is unknown.

        The other chunks stay in their order, and the corpus packs as a new one of them. An id is
        the chunk's own or else that in its metadata, as templates show it: 7 is ``"7"``. A chunk
        without an id, such as a str, stays. Each call takes some time for every chunk, far less
        than indexing it: remove many at once.

        Args:
            ids: Ids of chunks. All chunks that share one of them are removed.

        Raises:
            InvalidArgumentError: *ids* is not a batch of str and int, or no chunk has one of
                them; the message names some.

        Examples:
            >>> from budgeteer import Chunk
            >>> corpus = Corpus([Chunk("Green tea.", id="a"), Chunk("Black tea.", id="b")])
            >>> corpus.remove(["a"])
            >>> [chunk.text for chunk in corpus]
            ['Black tea.']

        """
        is_set = isinstance(ids, (set, frozenset))  # which is no batch, but has no order to lose
        given = ids if is_set else _validate.batch("ids", ids)
        wanted = {_id(i, value) for i, value in enumerate(given)}
        with self._changing():
            self._state = _without(self._state, wanted)

    def replace(self, chunks: Iterable[T]) -> None:
        """
        Put each of *chunks* in the place of the chunk with its id, or none if one is refused.

        The corpus then packs as a new one of its chunks. Each call takes some time for every
        chunk, far less than indexing it: replace many at once.

        Raises:
            InvalidArgumentError: As for the class; or a chunk has no id, or that of another of
                *chunks*, of no chunk of the corpus, or of several. The message names the index.

        Examples:
            >>> from budgeteer import Chunk
            >>> corpus = Corpus([Chunk("Green tea.", id="a"), Chunk("Black tea.", id="b")])
            >>> corpus.replace([Chunk("White tea.", id="a")])
            >>> [chunk.text for chunk in corpus]
            ['White tea.', 'Black tea.']

        """
        items = tuple(_validate.batch("chunks", chunks))
        with self._changing():
            self._state = _replaced(self._state, items)

    def _changing(self) -> threading.Lock:
        """Return the lock of changes."""
        if self._process != os.getpid():  # forked, perhaps while a thread held the lock
            self._lock = threading.Lock()
            self._process = os.getpid()
        return self._lock

    def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """
        Return the *limit* best chunks by the default ranking as scored `Chunk`, best first.

        With this method a corpus is a retriever for `budgeteer.service.RetrievalService`. Empty
        chunks are left out; those that score 0 come last.

        Raises:
            InvalidArgumentError: *query* is not a str, or *limit* is not an int from 0 on. Or one
                of the best cannot be a `Chunk`, as its source is no str; the message names the
                index.

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
        chunks = as_chunks([found.chunk for found in kept], [found.index for found in kept])
        return scored(chunks, [found.score for found in kept])

    def statistics(
        self, *, stemming: Language | None = "english", stopwords: Stopwords | None = "english"
    ) -> Statistics:
        """
        Return how many chunks have each word, for a ranking of chunks from several corpora.

        Reads all texts, which takes about as long as indexing them. Later changes of the corpus do
        not change what was returned.

        Args:
            stemming: The language of stems, as of the ranking; None keeps words as they are.
            stopwords: The words that match nothing, as of the ranking.

        Raises:
            InvalidArgumentError: An argument has a wrong type or value.
            CorpusError: The corpus was opened from a file that is damaged.

        Examples:
            >>> Corpus(["Green tea.", "A tea house."]).statistics().frequencies["tea"]
            2

        """
        words = words_of(stemming, stopwords)
        chunks, count, found = backend.corpus_statistics(self._state.index, words)
        frequencies = dict(sorted(found.items()))  # else in another order in each process
        return Statistics(chunks, count, frequencies, stemming=words[0], stopwords=words[1])

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

    def __copy__(self) -> Corpus[T]:
        """Return a corpus of the same chunks, which does not change with this one."""
        corpus = super().__copy__()
        state = self._state
        corpus._begin(replace(state, _ids=[*state._ids]))  # to which each corpus adds its own
        return corpus

    def __reduce__(self) -> Any:
        """Pickle the path it was opened from; refuse a corpus that is in memory only."""
        path = self._state.path
        if path is None:
            raise BudgeteerError(
                "a Corpus cannot be pickled unless all of it was opened from a file: save it, "
                "open that, and pickle what you opened"
            )
        return Corpus.open, (path,)


def _extended(state: State[Any] | None, chunks: Iterable[Any]) -> State[Any]:
    """Return *state* with *chunks* added at the end."""
    column = text_column("chunks", chunks) if state is None else None
    items = tuple(_validate.batch("chunks", chunks)) if column is None else column
    index = backend.index_chunks(items, None if state is None else state.index)
    if isinstance(index, tuple):
        raise refusal(items, *index)
    if state is None:
        return State(items, index)
    return _changed(state, index, lambda before: (*before, *items), list(state._ids))


def _without(state: State[Any], wanted: set[str]) -> State[Any]:
    """Return *state* without the chunks that have one of the ids *wanted*."""
    if not wanted:
        return state
    ids = state.ids()
    unknown = sorted(wanted.difference(ids))
    if unknown and ids and not any(found is not None for found in ids):
        raise InvalidArgumentError(
            "no chunk of the corpus has an id, and chunks are removed by id: make the corpus of "
            "chunks that have one, as Chunk(text, id=...) has"
        )
    if unknown:
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise InvalidArgumentError(
            f"ids has {len(unknown)} that no chunk of the corpus has: "
            f"{', '.join(map(_shown, unknown[:_SHOWN]))}{more}"
        )
    is_kept = [found not in wanted for found in ids]
    places = [place for place, is_ in enumerate(is_kept) if not is_]
    index = backend.remove_chunks(state.index, places)
    rest = [*compress(ids, is_kept)]
    return _changed(state, index, lambda before: tuple(compress(before, is_kept)), rest)


def _replaced(state: State[Any], items: tuple[Any, ...]) -> State[Any]:
    """Return *state* with *items* in place of the chunks with their ids."""
    if not items:
        return state
    ids = list(state.ids())
    places = _places(ids, items)
    index = backend.replace_chunks(state.index, places, items)
    if isinstance(index, tuple):
        raise refusal(items, *index)
    new = dict(zip(places, items, strict=True))
    # Replaced by equal ids, so these stay as they are.
    return _changed(
        state,
        index,
        lambda before: tuple(new.get(place, item) for place, item in enumerate(before)),
        ids,
    )


def _places(ids: list[str | None], items: tuple[Any, ...]) -> list[int]:
    """Return the place of the one chunk with the id of each item."""
    own: dict[str, int] = {}
    for i, item in enumerate(items):
        found = id_of(item)
        if found is None:
            unread = backend.index_chunks(items, None)
            if isinstance(unread, tuple):  # what has no text has no id either
                raise refusal(items, *unread)
            raise InvalidArgumentError(
                f"chunks[{i}] has no id, and the chunk that it replaces is found by its id: give "
                f"it one, as Chunk(text, id=...) has"
            )
        if found in own:
            raise InvalidArgumentError(
                f"chunks[{i}] must not have the id of chunks[{own[found]}], {_shown(found)}"
            )
        own[found] = i
    places: dict[str, list[int]] = {found: [] for found in own}
    for place, found in enumerate(ids):
        if found in places:
            places[found].append(place)
    for found, having in places.items():
        where = f"the id of chunks[{own[found]}], {_shown(found)}"
        if not having:
            raise InvalidArgumentError(
                f"no chunk of the corpus has {where}: append() adds a chunk"
            )
        if len(having) > 1:
            raise InvalidArgumentError(
                f"{len(having)} chunks of the corpus have {where}: remove() them and append() the "
                f"new ones"
            )
    return [having[0] for having in places.values()]


def _changed(
    state: State[Any],
    index: Any,
    change: Callable[[Sequence[Any]], tuple[Any, ...]],
    ids: list[str | None],
) -> State[Any]:
    """Return a state with another index, and with the chunks that *change* makes."""
    chunks = state.chunks
    new = chunks.changed(change) if isinstance(chunks, Stored) else change(chunks)
    return State(new, index, _ids=ids)


def _id(i: int, value: object) -> str:
    """Return one of the ids to remove as templates show it."""
    if isinstance(value, str):
        return str.__str__(value)
    number = _validate.as_int(value)
    if number is None or number.bit_length() > ID_BITS:
        found = _validate.type_name(value) if number is None else _validate.shown(number)
        raise InvalidArgumentError(
            f"ids[{i}] must be a str or an int of at most {ID_BITS} bits, not {found}"
        )
    return f"{number}"


def _shown(found: str) -> str:
    return repr(found[:80])


def _check_file(name: str) -> None:
    """Refuse what is there and no regular file: to open a pipe would wait for its writer."""
    path = Path(name)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if path.exists() and not path.is_file():
        raise CorpusError(f"{name!r} cannot be opened as a corpus: it is no regular file")
