"""What changed between two packings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from budgeteer import _validate
from budgeteer._chunk.chunk import id_of, is_mapping
from budgeteer._files import one_line
from budgeteer._pack.corpus import ID_BITS
from budgeteer._pack.explain import counted
from budgeteer._pack.options import REASONS
from budgeteer._pack.packing import Packing
from budgeteer._pack.shown import BETWEEN, facts_of, name_of
from budgeteer._public import public
from budgeteer._pydantic import instance_schema
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._report.difference import Changes

V = TypeVar("V")

_SHOWN = 40
"""The most chunks that `Comparison.explain` names."""
_ABSENT = "not there"
_DOT, _QUOTES = BETWEEN.strip(), ("'", '"')
_QUESTION = "question"
_SAME, _ONLY_TEXT = "Nothing changed.", "Only the text changed."
_REORDERED = "Chunks that both texts have stand in another order."


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class FigureChange:
    """
    A figure or an option of two packings. Made by `compare`.

    Attributes:
        name: What it is: ``"budget"``, ``"tokens"``, ``"kept"``, ``"cut"``, ``"dropped"``,
            ``"count"`` (exact, or an estimate); and where both are known ``"question"``,
            ``"counter"`` and ``"ranking"``.
        before: The value in the first packing.
        after: The value in the second one.

    Examples:
        >>> from budgeteer import compare, pack
        >>> compare(pack("tea", ["tea"], 4), pack("tea", ["tea"], 5)).figures[0]
        FigureChange(name='budget', before=4, after=5)

    """

    name: str
    before: int | str
    after: int | str

    def __repr__(self) -> str:
        """Show the fields, but of questions only how long they are."""
        before, after = self.before, self.after
        if self.name == _QUESTION:
            before, after = (f"<{len(str(it))} characters>" for it in (before, after))
        return f"FigureChange(name={self.name!r}, before={before!r}, after={after!r})"


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class ChunkChange:
    """
    A chunk that two packings treat differently. Made by `compare`.

    Attributes:
        key: Its id as templates show it, or its index where `Comparison.matched_by` says so.
        name: What its owner calls it: source, id and title; empty if nothing is known.
        before: ``"kept"``, ``"cut"``, the reason why it was dropped, such as ``"budget"``, or None
            if it is not among the chunks of the first packing.
        after: The same in the second one.
        tokens_before: The tokens it takes in the first text; None if it is not in it.
        tokens_after: The same in the second one.

    Examples:
        >>> from budgeteer import compare, pack
        >>> compare(pack("tea", ["tea"], 0), pack("tea", ["tea"], 5)).chunks[0].before
        'budget'

    """

    key: int | str
    name: str = field(repr=False)
    before: str | None
    after: str | None
    tokens_before: int | None
    tokens_after: int | None


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Comparison:
    """
    What changed between two packings. Made by `compare`.

    Attributes:
        figures: Figures and options that changed.
        chunks: Chunks with another outcome or another size, those of the second text first, in its
            order, then the others in the order of the first packing.
        matched_by: Whether chunks are the same that have the same id, or the same index.
        is_reordered: Whether the chunks of both texts stand in another order.
        is_same: Whether texts, figures and outcomes are the same.

    Examples:
        >>> from budgeteer import compare, pack
        >>> chunks = ["Green tea.", "Rye bread.", "Black tea."]
        >>> comparison = compare(pack("tea", chunks, 4), pack("tea", chunks, 8))
        >>> print(comparison.explain())
        Budget: 4 -> 8
        Tokens: 3 -> 6
        Kept: 1 -> 2
        Dropped: 2 -> 1
        Chunk 2: dropped (budget) -> kept with 3 tokens

    """

    figures: tuple[FigureChange, ...]
    chunks: tuple[ChunkChange, ...]
    matched_by: Literal["id", "index"]
    is_reordered: bool
    is_same: bool

    def explain(self) -> str:
        """
        Return the changes in lines. What cannot be printed in names is escaped.

        Examples:
            >>> from budgeteer import compare, pack
            >>> compare(pack("tea", ["tea"], 4), pack("tea", ["tea"], 4)).explain()
            'Nothing changed.'

        """
        return "\n".join(map(one_line, self._lines()))

    def _lines(self) -> Iterator[str]:
        if self.is_same:
            yield _SAME
            return
        for figure in self.figures:
            yield f"{figure.name.capitalize()}: {figure.before} -> {figure.after}"
        for chunk in self.chunks[:_SHOWN]:
            before = _outcome(chunk.before, chunk.tokens_before)
            after = _outcome(chunk.after, chunk.tokens_after)
            yield f"Chunk {_label(chunk)}: {before} -> {after}"
        if len(self.chunks) > _SHOWN:
            yield f"And {len(self.chunks) - _SHOWN} more chunks."
        if self.is_reordered:
            yield _REORDERED
        if not (self.figures or self.chunks or self.is_reordered):
            yield _ONLY_TEXT

    def to_dict(self) -> dict[str, Any]:
        """
        Return the comparison as plain data that JSON can hold.

        Examples:
            >>> from budgeteer import compare, pack
            >>> compare(pack("tea", ["tea"], 4), pack("tea", ["tea"], 5)).to_dict()["figures"]
            [{'name': 'budget', 'before': 4, 'after': 5}]

        """
        return {
            "is_same": self.is_same,
            "is_reordered": self.is_reordered,
            "matched_by": self.matched_by,
            "figures": [asdict(figure) for figure in self.figures],
            "chunks": [asdict(chunk) for chunk in self.chunks],
        }

    def to_html(self) -> str:
        """
        Return the comparison as one HTML file, which loads nothing.

        Examples:
            >>> from budgeteer import compare, pack
            >>> page = compare(pack("tea", ["tea"], 4), pack("tea", ["tea"], 5)).to_html()
            >>> page.startswith("<!DOCTYPE html>")
            True

        """
        from budgeteer._report.difference import tables  # few comparisons are shown so
        from budgeteer._report.page import document

        return document("What changed?", self._lead(), (), [*tables(self._tables())])

    def _repr_html_(self) -> str:
        from budgeteer._report.difference import tables

        return "".join(tables(self._tables()))

    def _lead(self) -> str:
        if self.is_same:
            return _SAME
        figures, chunks = len(self.figures), len(self.chunks)
        if not (figures or chunks or self.is_reordered):
            return _ONLY_TEXT
        changed = f"{counted(figures, 'figure')} and {counted(chunks, 'chunk')} changed."
        return f"{changed} {_REORDERED}" if self.is_reordered else changed

    def _tables(self) -> list[Changes]:
        from budgeteer._report.difference import Changes

        chunks = [
            (
                f"Chunk {_label(one)}",
                _outcome(one.before, one.tokens_before),
                _outcome(one.after, one.tokens_after),
            )
            for one in self.chunks
        ]
        return [
            Changes(
                "figures",
                "Figures and options",
                "Figure",
                [(one.name, _said(one.before), _said(one.after)) for one in self.figures],
            ),
            Changes("chunks", f"Chunks, matched by {self.matched_by}", "Chunk", chunks),
        ]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, and write what `to_dict` returns."""
        return instance_schema(cls, cls.to_dict)


def compare(
    before: Packing[Any] | Mapping[str, Any], after: Packing[Any] | Mapping[str, Any]
) -> Comparison:
    """
    Return what changed between two packings, of the same chunks or of others.

    Chunks are matched by their ids if each has one of its own in both packings, and else by their
    index.

    Args:
        before: A packing, or what `Packing.to_dict` returned, as the command line writes it.
        after: The other one.

    Raises:
        InvalidArgumentError: An argument is neither; the message names the place of what is wrong.
            Or it does not list all dropped chunks.

    Examples:
        >>> from budgeteer import compare, pack
        >>> chunks = ["Green tea.", "Rye bread."]
        >>> compare(pack("tea", chunks, 9), pack("rye", chunks, 9)).is_reordered
        True

    """
    one, two = _side("before", before), _side("after", after)
    by_id = one.has_ids and two.has_ids
    matched_by: Literal["id", "index"] = "id" if by_id else "index"
    first, second = one.by(by_id), two.by(by_id)
    figures = tuple(
        FigureChange(name, value, two.figures[name])
        for name, value in one.figures.items()
        if name in two.figures and two.figures[name] != value
    )
    changes = []
    for key in dict.fromkeys([*second, *first]):
        was, now = first.get(key), second.get(key)
        if was is None or now is None or (was.state, was.tokens) != (now.state, now.tokens):
            changes.append(
                ChunkChange(
                    key=key,
                    name=(now or was).name,  # type: ignore[union-attr]  # one of them has it
                    before=None if was is None else was.state,
                    after=None if now is None else now.state,
                    tokens_before=None if was is None else was.tokens,
                    tokens_after=None if now is None else now.tokens,
                )
            )
    common = {key for key, item in first.items() if item.is_in} & {
        key for key, item in second.items() if item.is_in
    }
    is_reordered = [key for key in first if key in common] != [
        key for key in second if key in common
    ]
    is_same = not (figures or changes or is_reordered) and one.text == two.text
    return Comparison(figures, tuple(changes), matched_by, is_reordered, is_same)


def _label(chunk: ChunkChange) -> str:
    """
    Return the key of a chunk and what else it is called, so that no two chunks have one label.

    The key leads, and ends before the first dot. An id in which that cannot be seen stands in
    quotes.
    """
    key, name = chunk.key, chunk.name
    if isinstance(key, int):
        return f"{key} ({name})" if name else f"{key}"
    is_plain = key and key.isprintable() and key[0] not in _QUOTES and _DOT not in key
    parts = f"{BETWEEN}{name}{BETWEEN}".replace(f"{BETWEEN}{key}{BETWEEN}", BETWEEN, 1)
    rest = parts[len(BETWEEN) : -len(BETWEEN)]
    return (key if is_plain else repr(key)) + (rest and BETWEEN + rest)


def _said(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _outcome(state: str | None, tokens: int | None) -> str:
    """Return what became of a chunk, in words."""
    if state is None:
        return _ABSENT
    if tokens is None:
        return f"dropped ({state.replace('_', ' ')})"
    said = f"{tokens:,} token" + ("" if tokens == 1 else "s")
    return f"cut to {said}" if state == "cut" else f"kept with {said}"


@dataclass(frozen=True, slots=True)
class _Item:
    """A chunk of one packing: what became of it, and its tokens in the text if it is there."""

    index: int
    identity: str | None
    name: str
    state: str
    tokens: int | None

    @property
    def is_in(self) -> bool:
        return self.tokens is not None


class _Side(NamedTuple):
    """One of the two packings."""

    text: str
    figures: dict[str, int | str]
    items: Sequence[_Item]

    @property
    def has_ids(self) -> bool:
        """Whether every chunk has an id of its own."""
        found = {item.identity for item in self.items}
        return None not in found and len(found) == len(self.items)

    def by(self, is_id: bool) -> dict[Any, _Item]:
        """Return the chunks by id or by index: those of the text first, in its order."""
        return {item.identity if is_id else item.index: item for item in self.items}


def _side(name: str, given: object) -> _Side:
    if isinstance(given, Packing):
        chunks = {item.index: item.chunk for item in given.kept}
        chunks |= {item.index: item.chunk for item in given.dropped}
        ids = {index: id_of(chunk) for index, chunk in chunks.items()}
        names = {index: name_of(chunk) for index, chunk in chunks.items()}
        facts = {term.lower(): value for term, value in facts_of(given)}
        return _read(name, given.to_dict(), ids, names, facts)
    if isinstance(given, Mapping):
        return _read(name, given, {}, {}, {})
    raise InvalidArgumentError(
        f"{name} must be a Packing or what Packing.to_dict returns, not "
        f"{_validate.type_name(given)}"
    )


def _read(
    name: str,
    document: Mapping[str, Any],
    ids: Mapping[int, str | None],
    names: Mapping[int, str],
    facts: Mapping[str, str],
) -> _Side:
    """Return one side, from the document of a packing."""
    places: dict[int, str] = {}

    def items_of(key: str, read: Callable[[str, Any], tuple[str, int | None]]) -> list[_Item]:
        items = []
        for i, item in enumerate(_field("", document, key, _validate.batch)):
            where = f"{key}[{i}]"
            index = _field(where, item, "index", _validate.tokens)
            first = places.setdefault(index, where)
            if first != where:
                raise InvalidArgumentError(
                    f"{where}.index must not be that of {first}, {index}: a chunk is listed once"
                )
            found = {one: _named(f"{where}.{one}", item.get(one)) for one in ("source", "title")}
            found["id"] = _id(f"{where}.id", item.get("id"))
            identity, called = ids.get(index, found["id"]), names.get(index)
            if called is None:
                called = name_of({one: value or "" for one, value in found.items()})
            items.append(_Item(index, identity, called, *read(where, item)))
        return items

    try:
        kept = items_of("kept", _kept)
        dropped = items_of("dropped", _dropped)
        least = len(dropped)
        given = document.get("dropped_count", least)
        count = _validate.whole("dropped_count", given, least, _validate.MAX_TOKENS)
        cut = sum(item.state == "cut" for item in kept)
        is_exact = _field("", document, "is_exact", _validate.flag)
        figures: dict[str, int | str] = {
            **{term: value for term, value in facts.items() if term != "counted"},
            "budget": _field("", document, "budget_tokens", _validate.tokens),
            "tokens": _field("", document, "total_tokens", _validate.tokens),
            "kept": len(kept),
            "cut": cut,
            "dropped": count,
            "count": "exact" if is_exact else "an estimate",
        }
        text = _field("", document, "text", _validate.text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{name} must be what Packing.to_dict returns: {error}"
        ) from None
    if count != len(dropped):
        raise InvalidArgumentError(
            f"{name} lists {len(dropped)} of {count} dropped chunks: write it without --dropped"
        )
    return _Side(text, figures, [*kept, *dropped])


def _field(where: str, item: Any, key: str, check: Callable[[str, object], V]) -> V:
    """Return a field of the document, or of the item of it at *where*, once it is checked."""
    if not is_mapping(item):
        raise InvalidArgumentError(f"{where} must be a mapping, not {_validate.type_name(item)}")
    if key not in item:
        raise InvalidArgumentError(f"{where or 'it'} has no {key!r}")
    return check(f"{where}.{key}" if where else key, item[key])


def _kept(where: str, item: Any) -> tuple[str, int | None]:
    """Return what became of a kept chunk, and its tokens."""
    was_cut = _field(where, item, "was_cut", _validate.flag)
    return "cut" if was_cut else "kept", _field(where, item, "token_count", _validate.tokens)


def _dropped(where: str, item: Any) -> tuple[str, int | None]:
    """Return why a chunk was dropped; it has no tokens in the text."""
    reason = _field(where, item, "reason", _validate.text)
    if reason not in REASONS:  # which is not quoted: it may be any text
        listed = ", ".join(map(repr, REASONS))
        raise InvalidArgumentError(f"{where}.reason must be one of {listed}, not another str")
    return reason, None


def _named(where: str, value: object) -> str | None:
    return None if value is None else _validate.text(where, value)


def _id(where: str, value: object) -> str | None:
    """Return an id as templates show it, so that it is that of the chunk in a packing."""
    if value is None or isinstance(value, str):
        return _named(where, value)
    if not isinstance(value, float):
        number = _validate.as_int(value)
        if number is None or number.bit_length() > ID_BITS:
            found = _validate.type_name(value) if number is None else _validate.shown(number)
            raise InvalidArgumentError(
                f"{where} must be a str or a number of at most {ID_BITS} bits, not {found}"
            )
        value = number
    return f"{value}"
