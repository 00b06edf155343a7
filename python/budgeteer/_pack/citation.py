"""Citations: what citing a chunk costs, and the sources of a packing."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from budgeteer import _validate
from budgeteer._chunk.chunk import field_of, id_of, is_mapping, label_of, own_field, refusal
from budgeteer._codes import NO_TEXT, TEXT_ATTRIBUTES
from budgeteer._count.counter import TokenCounter
from budgeteer._count.resolve import get_counter
from budgeteer._pack.outcome import KeptChunk
from budgeteer._pack.packing import Packing
from budgeteer._public import public
from budgeteer.errors import BudgeteerError, InvalidArgumentError

HEADING = "Sources: "
SEPARATOR = "; "
"""The text after each citation in a footer; its envelope includes it."""

BLANK_LINE = "\n\n"
"""The separator between a text and its footer."""


@public("budgeteer.presets")
@dataclass(frozen=True, slots=True)
class Citation:
    """
    A source that is in the packed text.

    Attributes:
        index: The place of its chunk in the input, from 0.
        source: Its label; empty if the chunk has none.
        id: Its identifier; None if the chunk has none.
        span: Where it stands in ``Packing.text``: from its first code point to the one after its
            last. None as for `KeptChunk`.

    Examples:
        >>> from budgeteer import Chunk, pack
        >>> citations(pack("tea", [Chunk("Green tea.", id="7", source="tea.md")], 9))
        [Citation(index=0, source='tea.md', id='7', span=(0, 10))]

    """

    index: int
    source: str
    id: str | None
    span: tuple[int, int] | None


def estimate_citation_tokens(
    chunks: Iterable[Any], *, counter: str | Callable[[str], int] | TokenCounter = "chars_div4"
) -> int:
    """
    Return the number of tokens that citing all *chunks* costs.

    A citation is the chunk's source, a space, its id, its metadata as JSON if it has any (sorted,
    without spaces, not escaped to ASCII), and ``"; "``. Each citation is counted by itself: under
    ``"chars_div4"`` it costs the code points of source, id and JSON plus three, divided by four
    and rounded up. In JSON, dates and times are written as ISO 8601, and numpy scalars as Python
    values.

    Args:
        chunks: As for ``Packer.pack``.
        counter: As for `Packer`.

    Raises:
        InvalidArgumentError: An argument has a wrong type, or a chunk's metadata holds a value
            that JSON cannot hold: NaN, an infinity, bytes, a cycle. The message names the chunk.
        CounterError: The caller's counter returned something that is not a count.

    Examples:
        >>> from budgeteer import Chunk
        >>> estimate_citation_tokens([Chunk("Tea is green.", id="12", source="tea.md")])
        3
        >>> estimate_citation_tokens([Chunk("Tea.", source="tea.md", metadata={"page": 7})])
        5

    """
    items = _validate.batch("chunks", chunks)
    counted = get_counter(counter)
    total = 0
    for i, chunk in enumerate(items):
        if not (isinstance(chunk, str) or is_mapping(chunk) or _has_text(chunk)):
            raise refusal(items, NO_TEXT, i)
        total += counted._count_chunk(envelope(chunk, i), i)
    return total


def citations(packing: Packing[Any]) -> list[Citation]:
    """
    Return the sources in the text of *packing*, one for each kept chunk, in its order.

    A chunk that has no source or id of its own is cited by the one in its metadata.

    Raises:
        InvalidArgumentError: *packing* is not a packing, or a source has a wrong type.
        BudgeteerError: The packing was pickled: its sources are gone.

    Examples:
        >>> from budgeteer import Chunk, pack
        >>> packing = pack("tea", [Chunk("Green tea.", source="tea.md"), Chunk("Rye bread.")], 3)
        >>> [(cited.source, cited.span) for cited in citations(packing)]
        [('tea.md', (0, 10))]

    """
    _counter_of(packing, "citations")
    return [_citation(kept) for kept in packing.kept]


def sources_footer(packing: Packing[Any]) -> str:
    """
    Return a line ``Sources: ...`` that names each source in the text of *packing* once.

    In the packing's own counter it costs at most the ``citation_tokens`` of all kept chunks plus
    the packer's ``buffer_tokens`` and ``reserve_tokens``. The text, a blank line and the footer
    together stay within ``max_tokens``. If there is no room for all sources, the line ends with
    the number of the others; if there is no room for one, or no source, it is empty. In a name,
    whitespace becomes single spaces and ``"; "`` becomes ``", "``, so that no name adds a line
    or looks like two.

    Args:
        packing: A packing by `agentic_rag`, or by any `Packer` with ``reserve_tokens``.

    Raises:
        InvalidArgumentError: As for `citations`.
        BudgeteerError: As for `citations`.
        CounterError: The caller's counter returned something that is not a count.

    Examples:
        >>> from budgeteer import Chunk
        >>> from budgeteer.presets import agentic_rag
        >>> chunks = [Chunk("Green tea.", source="tea.md", id="1"), Chunk("Rye.", source="rye.md")]
        >>> sources_footer(agentic_rag().pack("tea", chunks))
        'Sources: tea.md 1; rye.md'

    """
    counter = _counter_of(packing, "sources_footer")
    names = list(dict.fromkeys(filter(None, map(_name, citations(packing)))))
    reserve = packing._reserve_tokens
    limit = reserve + sum(kept.citation_tokens for kept in packing.kept)

    def footer(shown: int) -> str:
        more = [f"and {len(names) - shown} more"] if shown < len(names) else []
        return HEADING + SEPARATOR.join(names[:shown] + more)

    def fits(line: str) -> bool:
        whole = f"{packing.text}{BLANK_LINE}{line}"
        return counter.count(line) <= limit and (
            counter.count(whole) <= packing.budget_tokens + reserve
        )

    # The returned line was counted, whatever the counter; the longest is tried first.
    shown, most, tried = 0, len(names), len(names)
    while shown < most:
        if fits(footer(tried)):
            shown = tried
        else:
            most = tried - 1
        tried = (shown + most + 1) // 2
    return footer(shown) if shown else ""


def envelope(chunk: Any, i: int) -> str:
    """Return the envelope of chunk *i*: the text whose tokens its citation costs."""
    return f"{_source(chunk, i)} {_identifier(chunk, i) or ''}{_extras(chunk, i)}{SEPARATOR}"


def _name(cited: Citation) -> str:
    """Return the name of a source in a footer; never longer than in the envelope."""
    name = " ".join(f"{cited.source} {cited.id or ''}".split())
    return name.replace(SEPARATOR, ", ")


def _counter_of(packing: Packing[Any], what: str) -> TokenCounter:
    if not isinstance(packing, Packing):
        raise InvalidArgumentError(
            f"packing must be a Packing, not {_validate.type_name(packing)}"
        )
    if packing._counter is None:
        raise BudgeteerError(f"a pickled packing has no sources: ask for {what} before")
    return packing._counter


def _has_text(chunk: object) -> bool:
    return any(hasattr(chunk, name) for name in TEXT_ATTRIBUTES)


def _citation(kept: KeptChunk[Any]) -> Citation:
    source = _source(kept.chunk, kept.index)
    identifier = _identifier(kept.chunk, kept.index)
    # Some frameworks keep them in the metadata, with which the envelope then counts them.
    if not source:
        source = label_of(kept.chunk, "source")
    if not identifier:
        identifier = id_of(kept.chunk)
    return Citation(kept.index, source, identifier, kept.span)


def _source(chunk: Any, i: int) -> str:
    """Return the source of chunk *i*; empty if there is none."""
    source = own_field(chunk, "source")
    return "" if source is None else _validate.text(f"chunks[{i}].source", source)


def _identifier(chunk: Any, i: int) -> str | None:
    """Return the id of chunk *i*, or None if there is none."""
    identifier = own_field(chunk, "id")
    if identifier is None or type(identifier) is str:
        return identifier
    if isinstance(identifier, UUID):
        return str(identifier)
    number = _validate.as_int(identifier)
    if number is not None:
        return str(number)
    raise InvalidArgumentError(
        f"chunks[{i}].id must be a str, an int or a UUID, not {_validate.type_name(identifier)}"
    )


def _metadata(chunk: Any, i: int) -> Mapping[Any, Any]:
    metadata = field_of(chunk, "metadata")
    if metadata is None:
        return {}
    if not is_mapping(metadata):
        raise InvalidArgumentError(
            f"chunks[{i}].metadata must be a mapping, not {_validate.type_name(metadata)}"
        )
    return metadata  # type: ignore[no-any-return]


def citer(chunks: Sequence[Any], counter: TokenCounter) -> Callable[[int], int]:
    """Return the function that counts the tokens of a chunk's citation."""

    def cite(i: int) -> int:
        return counter._count_chunk(envelope(chunks[i], i), i)

    return cite


class _NotJson(Exception):  # noqa: N818 - it carries a message only
    """Names the value that JSON cannot hold."""


def _plain(value: object) -> object:
    """Return the JSON value that replaces *value*."""
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        plain: object = value.item()  # type: ignore[attr-defined]  # numpy is not imported for it
        if type(plain) is not type(value):  # some scalars have no counterpart in Python
            return plain
    raise _NotJson(_validate.type_name(value))


_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
    default=_plain,
)


def _extras(chunk: Any, i: int) -> str:
    """Return the metadata of chunk *i* as JSON; empty if there is none."""
    metadata = _metadata(chunk, i)
    if not metadata:
        return ""
    try:
        return _ENCODER.encode(dict(metadata))
    except _NotJson as error:
        _refuse(i, str(error))
    except RecursionError:
        _refuse(i, "what is nested too deeply")
    except TypeError:
        _refuse(i, "keys that JSON cannot hold or that cannot be sorted")
    except ValueError as error:
        _refuse(i, "a cycle" if "ircular" in str(error) else "a number beyond what JSON can hold")


def _refuse(i: int, found: str) -> NoReturn:
    raise InvalidArgumentError(
        f"chunks[{i}].metadata must be what JSON can hold, not {found}"
    ) from None
