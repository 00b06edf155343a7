"""The context gate: its columns, and bundles of artifacts."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from budgeteer import _validate
from budgeteer._chunk.chunk import checked_number, field_of, is_mapping
from budgeteer._deadline import Watch, watched
from budgeteer.errors import InvalidArgumentError

GateColumns = tuple[tuple[str, ...], tuple[str, ...], bytes]
"""Kinds, authorities and priorities (float64) of all chunks."""

_NOTHING: Mapping[str, Any] = {}
_TEXT_FIELDS = ("id", "content")
_OPTIONAL_TEXT_FIELDS = ("kind", "authority", "title")


def gate_columns(chunks: Sequence[Any], watch: Watch | None = None) -> GateColumns:
    """
    Return what the gate needs to know of *chunks*.

    Each field is looked up in a chunk's metadata, and then in the chunk if it is a mapping. The
    default kind is document, the default authority unknown, and the default priority 0.
    """
    kinds = ["document"] * len(chunks)
    authorities = [""] * len(chunks)
    priorities = array("d", [0.0]) * len(chunks)
    for i, chunk in enumerate(watched(chunks, watch)):
        if isinstance(chunk, str):
            continue
        kind, authority, priority = _standing(chunk)
        if kind is not None:
            kinds[i] = _text(kind, i, "kind")
        if authority is not None:
            authorities[i] = _text(authority, i, "authority")
        if priority is not None:
            priorities[i] = checked_number(priority, "chunks[{}].priority", i)
    return tuple(kinds), tuple(authorities), priorities.tobytes()


def _standing(chunk: Any) -> tuple[Any, Any, Any]:
    """Return kind, authority and priority of a chunk, None for each that is missing."""
    metadata = field_of(chunk, "metadata")
    first = metadata if is_mapping(metadata) else _NOTHING
    kind, authority, priority = first.get("kind"), first.get("authority"), first.get("priority")
    if is_mapping(chunk):
        kind = chunk.get("kind") if kind is None else kind
        authority = chunk.get("authority") if authority is None else authority
        priority = chunk.get("priority") if priority is None else priority
    return kind, authority, priority


def _text(value: object, i: int, field: str) -> str:
    return value if type(value) is str else _validate.text(f"chunks[{i}].{field}", value)


def artifacts_of(bundle: object) -> list[Mapping[str, Any]]:
    """Return the artifacts of a bundle, a mapping with the fields of its JSON document."""
    if not isinstance(bundle, Mapping):
        raise InvalidArgumentError(f"bundle must be a mapping, not {_validate.type_name(bundle)}")
    if "artifacts" not in bundle:
        raise InvalidArgumentError("bundle must have a key 'artifacts'")
    artifacts = bundle["artifacts"]
    if not isinstance(artifacts, (list, tuple)):
        raise InvalidArgumentError(
            f"bundle['artifacts'] must be a list, not {_validate.type_name(artifacts)}"
        )
    places: dict[str, int] = {}
    for i, artifact in enumerate(artifacts):
        where = f"bundle['artifacts'][{i}]"
        _check(artifact, where)
        first = places.setdefault(str.__str__(artifact["id"]), i)
        if first != i:
            raise InvalidArgumentError(
                f"{where}['id'] must not be that of another artifact, but is that of {first}"
            )
    return list(artifacts)


def _check(artifact: object, where: str) -> None:
    """Check the fields of the artifact at *where*."""
    if not isinstance(artifact, Mapping):
        raise InvalidArgumentError(
            f"{where} must be a mapping, not {_validate.type_name(artifact)}"
        )
    for field in _TEXT_FIELDS:
        if field not in artifact:
            raise InvalidArgumentError(f"{where} must have a key {field!r}")
        _validate.text(f"{where}[{field!r}]", artifact[field])
    if "text" in artifact:  # a chunk's text would be read in place of the content
        raise InvalidArgumentError(f"{where} must not have a key 'text' beside 'content'")
    for field in _OPTIONAL_TEXT_FIELDS:
        if artifact.get(field) is not None:
            _validate.text(f"{where}[{field!r}]", artifact[field])
    if artifact.get("priority") is not None:
        _validate.number(f"{where}['priority']", artifact["priority"])
