"""The state of a corpus at one time, as packers see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from budgeteer._chunk.chunk import mtime_keys, score_keys
from budgeteer._deadline import Watch

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class State(Generic[T]):
    """Chunks and their index. A state never changes: a change of the corpus makes another one."""

    chunks: Sequence[T]
    index: Any
    path: str | None = None
    """The absolute path of the file it was read from."""

    _keys: dict[str, bytes] = field(default_factory=dict)
    _ids: list[str | None] = field(default_factory=list)
    """The ids of the first chunks, as far as they are known."""

    def scores(self, watch: Watch | None = None) -> bytes:
        """Return the chunks' own scores, read once."""
        if "score" not in self._keys:
            self._keys["score"] = score_keys(self.chunks, watch)
        return self._keys["score"]

    def times(self, watch: Watch | None = None) -> bytes:
        """Return the times of the chunks' last changes, read once."""
        if "time" not in self._keys:
            self._keys["time"] = mtime_keys(self.chunks, watch)
        return self._keys["time"]

    def ids(self) -> list[str | None]:
        """Return the id of each chunk as templates show it, None for none; read once."""
        from budgeteer._chunk.record import ids_from  # imports JSON, which few packers need

        self._ids.extend(ids_from(self.chunks, len(self._ids)))
        return self._ids


class Indexed(Generic[T]):
    """A batch of chunks with an index: a `budgeteer.Corpus`."""

    __slots__ = ()

    _state: State[T]
