"""Chunks, in the caller's own types or in ours."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, fields
from itertools import count
from reprlib import recursive_repr
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._codes import DEFAULT_KIND, NO_TEXT, TEXT_ATTRIBUTES, TEXT_KEYS, TITLE_TYPE
from budgeteer._deadline import LOOK_EVERY, Watch, watched
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

_SHOWN_MAX, _SHOWN = 500, 80
"""The most characters of a field in a repr, and how many of a longer one are shown."""


@recursive_repr()
def short_repr(item: Any) -> str:
    """Return the repr of a dataclass, with the beginning and the length of long fields alone."""
    shown = ", ".join(f"{it.name}={_short(getattr(item, it.name))}" for it in fields(item))
    return f"{type(item).__qualname__}({shown})"


def _short(value: object) -> str:
    if isinstance(value, str):
        size = str.__len__(value)
        if size <= _SHOWN_MAX:
            return repr(value)
        return f"{str.__str__(value)[:_SHOWN]!r}... ({size} characters)"
    text = repr(value)
    return text if len(text) <= 4 * _SHOWN_MAX else f"{text[:_SHOWN]}... ({len(text)} characters)"


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Chunk:
    """
    One retrieved piece of text.

    A `Packer` also takes strings, mappings with ``text``, ``content`` or ``page_content``, and
    objects with ``.text``, ``.page_content`` or ``.content``; this class is for callers without a
    type of their own. Of those it reads ``id`` (else ``node_id``), ``source``, ``title``,
    ``score`` and ``metadata`` (else ``meta``). A missing or empty title, source or id is the one
    in the metadata.

    Args:
        text: The text, the only field that a packing contains; all others are keywords.
        id: Identifier within its source, shown by templates; None for none.
        source: Where the chunk comes from, for people and citations.
        title: Heading of the chunk; its words count for ranking, not for the budget.
        score: Relevance given by a retriever or reranker, higher is better: any float except NaN;
            None for none.
        metadata: Anything else. Read here: ``title``, ``source`` and ``id`` if the chunk has none
            itself, ``mtime`` (seconds since 1970 or a datetime, which is in UTC without a zone,
            for ``ranking="recency"``), ``kind`` (shown by templates), and the first number of
            ``position``, ``index`` and ``offset`` (for ``order="document"``). Numbers are those of
            Python, decimals, fractions and numpy's; times those of Python, pandas and numpy. What
            pandas has for none and values of other types are none; an ``mtime`` of NaN is refused
            where it ranks. A mapping may have these beside its text as well.

    Raises:
        InvalidArgumentError: *text*, *source* or *title* is not a str, or *score* is not a number.

    Examples:
        >>> Chunk("Paris is the capital of France.", title="France").title
        'France'

    """

    text: str
    _: KW_ONLY
    id: str | None = None
    source: str = ""
    title: str = ""
    score: float | None = None
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _validate.text("text", self.text)
        _validate.text("source", self.source)
        _validate.text("title", self.title)
        if self.id is not None:
            _validate.text("id", self.id)
        if self.score is not None:
            _validate.number("score", self.score)
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise InvalidArgumentError(
                f"metadata must be a mapping, not {_validate.type_name(self.metadata)}"
            )

    def __repr__(self) -> str:
        """Show the fields; of a long one its beginning and its length."""
        return short_repr(self)


ChunkField: TypeAlias = Literal["text", "title", "source", "id", "metadata"]
CHUNK_FIELDS: tuple[ChunkField, ...] = get_args(ChunkField)
"""The fields of a chunk that a payload may hold."""

_EXACT = 2**53
"""Up to this number every int is exactly a float."""


def is_mapping(value: object) -> bool:
    """Return whether *value* is a mapping. Python remembers its type, and lets it go."""
    return issubclass(type(value), Mapping)


_OTHER_NAMES = {"id": "node_id", "metadata": "meta"}
"""What LlamaIndex and Haystack call a field."""


def field_of(chunk: Any, name: str) -> Any:
    """
    Return the field *name* of a chunk of any type, or None if it has none.

    Every field other than the text and the title that ranks is read here, so that each has the
    same names wherever it is read. `known_field` also looks into the metadata.
    """
    if type(chunk) is Chunk:
        return getattr(chunk, name)
    if isinstance(chunk, str):
        return None
    is_a_mapping = type(chunk) is dict or is_mapping(chunk)
    value = chunk.get(name) if is_a_mapping else getattr(chunk, name, None)
    if type(value) is dict or type(value) is str:  # without more calls, as most are
        return value
    other = _OTHER_NAMES.get(name)
    if other is None or not _validate.is_null(value):
        return value
    value = chunk.get(other) if is_a_mapping else getattr(chunk, other, None)
    return value if name != "metadata" or is_mapping(value) else None


def metadata_field(chunk: object, name: str) -> Any:
    """Return the metadata *name* of a chunk of any type, or None if it has none."""
    metadata = field_of(chunk, "metadata")
    return metadata.get(name) if is_mapping(metadata) else None


def _label(value: Any) -> Any:
    """Return *value*; None for what pandas has for none, a subclass of str as its characters."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return None if _validate.is_null(value) else value


def own_field(chunk: object, name: str) -> Any:
    """Return the title, source or id that a chunk of any type has itself, or None for none."""
    return _label(field_of(chunk, name))


def _is_missing(own: object) -> bool:
    """Return whether what `own_field` returned gives way to the metadata's."""
    return own is None or (type(own) is str and not own)


def known_field(chunk: object, name: str) -> Any:
    """
    Return the title, source or id of a chunk of any type, or None if it has none.

    Where its own is missing or empty, it is the one in its metadata. There an id is a str or a
    number; titles and sources are shown whatever they are. What pandas has for none is none.
    """
    own = own_field(chunk, name)
    if not _is_missing(own):
        return own
    inner = _label(metadata_field(chunk, name))
    if inner is None:
        return own
    if name == "id" and not isinstance(inner, (str, float)) and _validate.as_int(inner) is None:
        return own
    return inner


def id_of(chunk: object) -> str | None:
    """Return the id of a chunk as templates show it, None for none."""
    found = known_field(chunk, "id")
    return None if found is None else f"{found}"


def label_of(chunk: object, name: str) -> Any:
    """
    Return the title or source of a chunk of any type; empty if it has none.

    One in its metadata is passed over unless it is a str: anything may be there.
    """
    own = own_field(chunk, name)
    if not _is_missing(own):
        return own
    inner = _label(metadata_field(chunk, name))
    return inner if type(inner) is str else ""


def text_name(chunk: object) -> str:
    """Return the name under which a mapping or an object holds its text."""
    if isinstance(chunk, Mapping):
        return next(name for name in TEXT_KEYS if name in chunk)
    return next(name for name in TEXT_ATTRIBUTES if hasattr(chunk, name))


def text_column(name: str, value: object) -> Any:
    """
    Return a column of strings that gives Arrow as a backend reads it where it lies.

    None for anything else.

    Raises:
        InvalidArgumentError: A text of the column is null or cannot be read.

    """
    if type(value) is list or type(value) is tuple or not _validate.is_arrow(value):
        return None
    column = backend.read_column(value)
    if type(column) is tuple:
        raise _validate.unread(name, *column)
    return column


def texts_of(chunks: Sequence[object]) -> Callable[[int], str]:
    """
    Return a function that returns the text of a chunk that a backend has accepted.

    As in the backend, the first object of a type decides which attribute holds the text. One that
    has none of that name came to a corpus later, with chunks of which another was the first.
    """
    names: dict[type, str] = {}
    for chunk in chunks:
        if type(chunk) not in names and not isinstance(chunk, (str, Mapping)):
            names[type(chunk)] = text_name(chunk)

    def text(i: int) -> str:
        chunk = chunks[i]
        if type(chunk) is Chunk:  # without more calls, as a service asks for many texts
            chunk = chunk.text
        elif not isinstance(chunk, str):
            found = field_of(chunk, names.get(type(chunk)) or text_name(chunk))
            chunk = field_of(chunk, text_name(chunk)) if found is None else found
        return str.__str__(chunk)

    return text


def packed_texts(chunks: Sequence[object]) -> Callable[[int], str]:
    """
    Return what `texts_of` does, of chunks that were packed before.

    Raises:
        InvalidArgumentError: The caller has taken the text out of a chunk since then; so does the
            function that is returned.

    """
    since = "the text that was packed: it was taken out since"
    try:
        read = texts_of(chunks)
    except StopIteration:
        raise InvalidArgumentError(f"chunks must each have {since}") from None

    def text(i: int) -> str:
        try:
            return read(i)
        except (StopIteration, TypeError):
            raise InvalidArgumentError(f"chunks[{i}] must have {since}") from None

    return text


def score_keys(chunks: Sequence[object], watch: Watch | None = None) -> bytes:
    """Return each chunk's own score as float64, shape ``(n,)``; NaN stands for none."""
    items, keys = tuple(chunks), bytearray()
    step = max(1, len(items)) if watch is None else LOOK_EVERY
    for start in range(0, len(items), step):
        if watch is not None:
            watch()
        found, others = backend.read_scores(items[start : start + step])
        scores = memoryview(found).cast("d")
        for place in others:
            score = field_of(items[start + place], "score")
            if score is not None:
                scores[place] = checked_number(score, "chunks[{}].score", start + place)
        keys += found
    return bytes(keys)


def finite_score_keys(chunks: Sequence[object], watch: Watch | None = None) -> bytes:
    """Return the scores as `score_keys` does; refuse infinite ones, which cannot be scaled."""
    keys = score_keys(chunks, watch)
    for i, score in enumerate(watched(memoryview(keys).cast("d"), watch)):
        if math.isinf(score):
            raise InvalidArgumentError(
                f"chunks[{i}].score must be finite under ranking='hybrid', not {score}"
            )
    return keys


def _is_plain_number(value: Any) -> bool:
    """Return whether *value* is a float other than NaN, or an int that a float holds."""
    if type(value) is float:
        return value == value  # noqa: PLR0124 - NaN is not
    return type(value) is int and -_EXACT <= value <= _EXACT


def checked_number(number: Any, name: str, i: int) -> float:
    """Return *number* as a float; *name* and *i* are for the error."""
    if _is_plain_number(number):
        return float(number)
    return _validate.number(name.format(i), number)


def mtime_keys(chunks: Sequence[object], watch: Watch | None = None) -> bytes:
    """Return each chunk's modification time as float64, shape ``(n,)``; 0 stands for none."""
    keys = array("d", [0.0]) * len(chunks)
    for i, chunk in enumerate(watched(chunks, watch)):
        mtime = metadata_field(chunk, "mtime")
        if mtime is None and is_mapping(chunk):
            mtime = chunk.get("mtime")  # type: ignore[attr-defined]  # it is a mapping
        if _is_plain_number(mtime):
            keys[i] = mtime + 0  # -0.0 counts as 0
        elif mtime is not None:
            keys[i] = _mtime(chunk, i)
    return keys.tobytes()


def _mtime(chunk: Any, i: int) -> float:
    """Return the modification time of chunk *i*, whatever its type; 0 for none."""
    name, mtime = f"chunks[{i}].metadata['mtime']", metadata_field(chunk, "mtime")
    if _validate.is_absent(mtime) and is_mapping(chunk):
        name, mtime = f"chunks[{i}]['mtime']", chunk.get("mtime")
    if _validate.is_bool(mtime):
        return float(mtime)
    seconds = _validate.as_seconds(mtime)
    if seconds is not None:
        return 0.0 if math.isnan(seconds) else seconds
    found = _validate.as_float(name, mtime)
    return 0.0 if found is None else _validate.number(name, found) + 0


def tagger(chunks: Sequence[object]) -> Callable[[int], tuple[str, str, str, str, float]]:
    """
    Return a function that returns kind, id, source, title and position of a chunk.

    The default id is the chunk's index, the default position NaN.
    """

    def tag(i: int) -> tuple[str, str, str, str, float]:
        chunk = chunks[i]
        if isinstance(chunk, str):
            return DEFAULT_KIND, str(i), "", "", math.nan
        metadata = field_of(chunk, "metadata")
        if not is_mapping(metadata):
            metadata = {}
        # A mapping without metadata may have these fields itself.
        data: Any = chunk if is_mapping(chunk) else {}
        kind = _label(metadata.get("kind"))
        if kind is None:
            kind = _label(data.get("kind"))
        identifier = known_field(chunk, "id")
        return (
            DEFAULT_KIND if kind is None else f"{kind}",
            f"{i if identifier is None else identifier}",
            shown_label(known_field(chunk, "source")),
            shown_label(known_field(chunk, "title")),
            _position(metadata, data),
        )

    return tag


def shown_label(label: Any) -> str:
    """Return a title or source as templates show it; empty for none, False and what is empty."""
    if label is None or label is False:
        return ""
    # Not by its truth: 0 is a label, and numpy's arrays have none.
    has_size = hasattr(type(label), "__len__") and getattr(label, "ndim", 1) != 0
    return "" if has_size and len(label) == 0 else f"{label}"


def _position(metadata: Mapping[str, Any], data: Mapping[str, Any]) -> float:
    """Return the position of a chunk in its source, or NaN if it has none."""
    for name in ("position", "index", "offset"):
        value = metadata.get(name)
        if value is None:
            value = data.get(name)
        if value is None:
            continue
        if _is_plain_number(value):
            return float(value)
        if _validate.is_null(value):
            value = data.get(name)
        with suppress(InvalidArgumentError):  # beyond the range of a float
            found = _validate.as_float(name, value)
            if not _validate.is_null(found):
                return found  # type: ignore[return-value]  # a float
    return math.nan


_ALLOWED = (
    "a str, a mapping with 'text', 'content' or 'page_content', or an object with .text, "
    ".page_content or .content"
)
"""What a chunk may be, for errors."""


_OF_METADATA = ("kind", "position", "index", "offset", "mtime", "authority", "priority")
"""What packing looks for in the metadata of a chunk, and then in the chunk if it is a mapping."""


def metadata_of(row: Mapping[str, Any], metadata: Any) -> Any:
    """Return *metadata* with what packing reads of a mapping itself where that is missing."""
    given = {} if metadata is None else metadata
    if not is_mapping(given):
        return metadata
    names = [n for n in _OF_METADATA if row.get(n) is not None and given.get(n) is None]
    own = {name: row[name] for name in names}
    return {**{n: given[n] for n in given if n not in own}, **own} if own else metadata


def as_chunks(items: Sequence[Any], places: Iterable[int] | None = None) -> Iterator[Chunk]:
    """
    Yield chunks of any type as `Chunk`, which are packed as these are.

    *places* are those that errors name, if not the places in *items*.
    """
    for i, item in zip(count() if places is None else places, items, strict=False):
        if isinstance(item, Chunk):
            yield item
            continue
        try:
            text = texts_of([item])(0)
        except (StopIteration, TypeError):
            raise InvalidArgumentError(
                f"chunks[{i}] must be {_ALLOWED}, not {_validate.type_name(item)}"
            ) from None
        metadata = field_of(item, "metadata")
        if is_mapping(item):
            metadata = metadata_of(item, metadata)
        try:
            yield Chunk(
                text,
                id=id_of(item),
                source=label_of(item, "source"),
                title=label_of(item, "title"),
                metadata=metadata,
            )
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"chunks[{i}].{error}") from None


def scored(chunks: Iterable[Chunk], scores: Iterable[float | None]) -> list[Chunk]:
    """Return copies of *chunks* that have these scores, without checking their fields again."""
    return backend.scored(Chunk, [*chunks], [*scores])  # type: ignore[no-any-return]


def refusal(chunks: Sequence[object], code: int, i: int) -> InvalidArgumentError:
    """Return the error for chunk *i*, which a backend could not read; *code* is the reason."""
    chunk = chunks[i]
    found = _validate.type_name(chunk)
    if code == NO_TEXT and isinstance(chunk, Mapping):
        return InvalidArgumentError(
            f"chunks[{i}] must have a key 'text', 'content' or 'page_content'"
        )
    # As in the backend, the first object of its type decides.
    first = next(other for other in chunks if type(other) is type(chunk))
    if code == NO_TEXT and any(hasattr(chunk, name) for name in TEXT_ATTRIBUTES):
        return InvalidArgumentError(
            f"chunks[{i}] must have .{text_name(first)}, as the first {found} has"
        )
    if code == NO_TEXT:
        return InvalidArgumentError(f"chunks[{i}] must be {_ALLOWED}, not {found}")
    name = "title" if code == TITLE_TYPE else text_name(chunk if is_mapping(chunk) else first)
    return InvalidArgumentError(
        f"chunks[{i}].{name} must be a str, not {_validate.type_name(field_of(chunk, name))}"
    )
