"""The texts of one call to embed: the distinct ones that the cache lacks, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from budgeteer import _process, _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._count.resolve import get_counter
from budgeteer._files import repaired
from budgeteer._log import log
from budgeteer.embedding._cache import Cache, Keys
from budgeteer.embedding._protocol import SIZES, limit_of
from budgeteer.errors import EmbeddingError

if TYPE_CHECKING:
    from budgeteer.embedding._protocol import Settings, Vectors

QUERY = "text"
"""The name of a query in errors."""


class Job:
    """
    One call's texts and, row by row, their vectors.

    Args:
        embedder: The settings.
        texts: The texts. An empty one is never sent: its row is zeros.
        cache: The cache of vectors; None for none.
        ends: The time at which the call ends, until when the cache may wait.
        name: The texts' name in errors.
        size: The size of the vectors that the endpoint answered last; None if it is not known.

    """

    def __init__(
        self,
        embedder: Settings,
        texts: Sequence[object],
        cache: Cache | None,
        ends: float,
        name: str = "texts[{}]",
        size: int | None = None,
    ) -> None:
        _process.load_numpy()  # for what reads the cache and the answers, too
        self._embedder = embedder
        self._cache = cache
        self._ends = ends
        self._is_query = name == QUERY
        self.size = embedder.dimensions or size
        places: dict[str, int] = {}
        # All are checked before any is counted or looked up.
        clean = [repaired(_validate.text(name.format(i), text)) for i, text in enumerate(texts)]
        cut = [_fitting(embedder, text, i, name) for i, text in enumerate(clean)]
        self._place = [places.setdefault(text, len(places)) if text else -1 for text in cut]
        self._texts = list(places)
        self._rows: list[Vectors | None] = [None] * len(places)
        self._cached: dict[int, int] = {}
        """The size of each row that is from the cache."""
        self._keys: list[bytes] = []
        if cache is not None:
            make = Keys(embedder.url, embedder.model, embedder.dimensions)
            self._keys = [make(text) for text in self._texts]
            found = cache.get(self._keys, ends)
            for i, key in enumerate(self._keys):
                if key in found:
                    self._rows[i] = found[key]
                    self._cached[i] = len(found[key])

    def batches(self) -> list[list[int]]:
        """
        Return which texts to embed now, in batches; none if all vectors are there.

        A cached row is embedded again if its size differs from the endpoint's answers, which
        happens if another model is served under the same name.
        """
        sizes = {len(row) for row in self._rows if row is not None}
        if self.size is not None:
            sizes.add(self.size)
        is_whole = all(row is not None for row in self._rows)
        if is_whole and len(sizes) > 1:
            for i in [i for i, size in self._cached.items() if size != self.size]:
                del self._cached[i]
                self._rows[i] = None
        missing = [i for i, row in enumerate(self._rows) if row is None]
        batches: list[list[int]] = []
        size = 0
        for i in missing:
            length = len(self._texts[i].encode())
            is_full = not batches or len(batches[-1]) == self._embedder.batch_size
            if is_full or size + length > self._embedder.max_batch_bytes:
                batches.append([])
                size = 0
            batches[-1].append(i)
            size += length
        return batches

    def texts(self, batch: Sequence[int]) -> list[str]:
        """Return the texts of a batch."""
        return [self._texts[i] for i in batch]

    def index(self, i: int) -> int | None:
        """Return the caller's index of the text *i* of the batches; None for a query."""
        return None if self._is_query else self._place.index(i)

    def add(self, batch: Sequence[int], vectors: Vectors) -> None:
        """Add the vectors of a batch, and store them in the cache."""
        self.size = vectors.shape[1]
        for i, row in zip(batch, vectors, strict=True):
            self._rows[i] = row
        if self._cache is not None:
            self._cache.put([self._keys[i] for i in batch], vectors, self._ends)

    def result(self) -> Vectors:
        """
        Return all vectors in the order of the texts.

        Raises:
            EmbeddingError: The endpoint returned vectors of different sizes.

        """
        import numpy as np

        rows = [row for row in self._rows if row is not None]
        sizes = sorted({len(row) for row in rows})
        if len(sizes) > 1:
            raise EmbeddingError(
                f"the embedding endpoint answered embeddings of {sizes[0]} and of {sizes[-1]} "
                "dimensions"
            )
        known = SIZES.get(self._embedder.model, 0)
        size = sizes[0] if sizes else self._embedder.dimensions or known
        # An extra last row of zeros, which the index -1 refers to.
        table = np.zeros((len(rows) + 1, size), dtype=np.float32)
        if rows:
            np.stack(rows, out=table[:-1])
        result: Vectors = table[np.array(self._place, dtype=np.intp)]
        return result


def excessive(embedder: Settings, text: str) -> int | None:
    """Return how many tokens *text* has if the model takes fewer, else None."""
    text = repaired(text)
    return None if _fits(text, limit_of(embedder)) else _counter().count(text)


def _fits(text: str, limit: int | None) -> bool:
    # No token is shorter than a byte, no code point longer than four.
    if limit is None or len(text) * 4 <= limit or len(text.encode()) <= limit:
        return True
    return _counter().count_till_limit(text, limit) is not None


def _counter() -> TokenCounter:
    return get_counter("cl100k_base")


def _fitting(embedder: Settings, text: str, i: int, name: str) -> str:
    """Return *text*, cut to the model's input limit if that is wanted."""
    limit = limit_of(embedder)
    if limit is None or _fits(text, limit):
        return text
    if not embedder.truncate:
        raise EmbeddingError(
            f"{name.format(i)} has more than the {limit} tokens that {embedder.model[:80]!r} "
            "takes; the option truncate cuts it",
            index=i,
        )
    if name == QUERY:
        log().warning(
            "the query has more than the %d tokens that %.80r takes: the rest is not embedded",
            *(limit, embedder.model),
            extra={"max_input_tokens": limit, "model": embedder.model},
        )
    return _counter().truncate(text, limit)
