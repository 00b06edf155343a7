"""Chunks in a file: all fields beside text and title, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, overload

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._chunk.chunk import Chunk, field_of, id_of, own_field, text_name
from budgeteer.errors import CorpusError, InvalidArgumentError

_DEEPEST = 64
"""The deepest nesting of lists and mappings."""

_DECODER = json.JSONDecoder()

_STR, _MAPPING, _CHUNK = range(3)
"""The type of a chunk: the first item of its record."""


class Stored(Sequence[Any]):
    """The chunks of an opened file, made on access, and those that came to them."""

    __slots__ = ("_index", "_items")

    def __init__(self, index: Any, items: Sequence[Any] | None = None) -> None:
        self._index = index
        # An int, which is no chunk, is the place of one in the file.
        self._items = range(len(index)) if items is None else items

    def changed(self, items: Callable[[Sequence[Any]], Sequence[Any]]) -> Stored:
        """Return chunks of the same file: what *items* makes of these."""
        return Stored(self._index, items(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return map(self._get, self._items)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [*map(self._get, self._items[index])]
        return self._get(self._items[index])

    def _get(self, item: Any) -> Any:
        if type(item) is not int:
            return item
        return _restored(item, *backend.stored_chunk(self._index, item))

    def ids_from(self, start: int) -> list[str | None]:
        """Return the ids as `id_of` does, of the chunks from place *start* on."""
        return [
            self._stored_id(item) if type(item) is int else id_of(item)
            for item in self._items[start:]
        ]

    def _stored_id(self, place: int) -> str | None:
        record = backend.stored_chunk(self._index, place)[2]
        if not record:
            return None
        if record.startswith(b"[%d," % _CHUNK):
            # The id comes first. The rest, which takes longer to read, is only needed without one.
            with suppress(ValueError):
                found, _ = _DECODER.raw_decode(record.decode(), 3)
                if found:
                    return f"{found}"
        return id_of(self._get(place))

    def records(self) -> list[bytes]:
        """Return the records of all chunks; those from the file unchanged."""
        return [
            backend.stored_chunk(self._index, item)[2] if type(item) is int else _record(item, i)
            for i, item in enumerate(self._items)
        ]


def ids_from(chunks: Sequence[Any], start: int) -> list[str | None]:
    """Return the id of each chunk from place *start* on as templates show it, None for none."""
    if isinstance(chunks, Stored):
        return chunks.ids_from(start)
    return [id_of(chunk) for chunk in chunks[start:]]


def records_of(chunks: Sequence[Any]) -> list[bytes]:
    """Return the record of each chunk: all that a file holds beside text and title."""
    if isinstance(chunks, Stored):
        return chunks.records()
    return [_record(chunk, i) for i, chunk in enumerate(chunks)]


def _record(chunk: Any, i: int) -> bytes:
    if isinstance(chunk, str):
        return b""
    record: list[Any]
    if isinstance(chunk, Mapping):
        key = text_name(chunk)
        fields = {name: chunk[name] for name in chunk if name != key}
        _check(fields, f"chunks[{i}]")
        record = [_MAPPING, key, fields]
    else:
        identifier, source = own_field(chunk, "id"), own_field(chunk, "source")
        metadata, score = field_of(chunk, "metadata"), field_of(chunk, "score")
        if identifier is not None:
            identifier = _validate.text(f"chunks[{i}].id", identifier)
        source = "" if source is None else _validate.text(f"chunks[{i}].source", source)
        if score is not None:
            score = _validate.number(f"chunks[{i}].score", score)
        if metadata is not None:
            if not isinstance(metadata, Mapping):  # which `Chunk` would refuse when it is read
                raise InvalidArgumentError(
                    f"chunks[{i}].metadata must be a mapping to be saved, not "
                    f"{_validate.type_name(metadata)}"
                )
            metadata = dict(metadata)
            _check(metadata, f"chunks[{i}].metadata")
        record = [_CHUNK, identifier, source, score, metadata]
    try:
        written = json.dumps(record, separators=(",", ":"))
        if "\\ud" in written and json.loads(written) != record:
            # Two surrogates that stand side by side are no escape for one character.
            written = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        return written.encode("utf-8", "surrogatepass")
    except ValueError as error:  # an int with too many digits
        raise InvalidArgumentError(f"chunks[{i}] cannot be saved: {error}") from None


def _check(value: Any, name: str, depth: int = 0) -> None:
    """Raise if JSON does not restore *value* unchanged."""
    if depth > _DEEPEST:
        raise InvalidArgumentError(
            f"{name} is nested more than {_DEEPEST} deep and cannot be saved"
        )
    if value is None or type(value) in (bool, int, str):
        return
    if type(value) is float:
        if not math.isfinite(value):
            raise InvalidArgumentError(f"{name} must be finite to be saved, not {value}")
    elif type(value) is list:
        for item in value:
            _check(item, name, depth + 1)
    elif type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidArgumentError(
                    f"{name} must have keys of type str to be saved, not "
                    f"{_validate.type_name(key)}"
                )
            _check(item, f"{name}[{key[:40]!r}]" if depth == 0 else name, depth + 1)
    else:
        raise InvalidArgumentError(
            f"{name} holds a {_validate.type_name(value)}, which JSON does not give back: it "
            f"cannot be saved"
        )


def _restored(place: int, text: str, title: str, record: bytes) -> Any:
    """Return the chunk that a file holds."""
    if not record:
        return text
    try:
        kind, *rest = json.loads(record)
        if kind == _MAPPING:
            key, fields = rest
            return {key: text, **fields}
        if kind == _CHUNK:
            identifier, source, score, metadata, *own = rest
            if own and own[0]:  # a Rust program wrote these as fields
                metadata = {**(metadata or {}), **own[0]}
            return Chunk(
                text, id=identifier, source=source, title=title, score=score, metadata=metadata
            )
    except (ValueError, TypeError, RecursionError):
        pass
    raise CorpusError(f"the record of chunk {place} in the file is not one that a Corpus writes")
