"""Templates: the text around the chunks, and how it is read back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from budgeteer import _process, _validate
from budgeteer._chunk.chunk import tagger, texts_of
from budgeteer._codes import FORMAT, WRITTEN
from budgeteer._pack.options import STYLES
from budgeteer._public import public
from budgeteer.errors import BudgeteerError, InvalidArgumentError

FIELDS = ("text", "kind", "id", "source", "title", "index", "nonce")
"""The fields that a format string may show."""

_LABELS = FIELDS[1:5]
"""Those of them that the owner of a chunk chooses beside its text, in the order of `tagger`."""

DEFAULT_NOTICE = "Chunks left out: {count}."


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Template:
    r"""
    What the packed text looks like around the chunks.

    The named templates except ``"plain"`` escape any part of a chunk that could be mistaken for a
    frame, so that `parse_context` returns exactly the chunks that went in. Other text stays as it
    is. ``"plain"``, format strings and functions escape nothing. Escaping marks boundaries; it
    does not stop prompt injection: a model may still follow what a text says.

    All of it is inside the budget. Header, footer and notice are written only if a chunk is kept.

    A function gets the caller's own object, as it stands in ``chunks``, and returns how it is
    written: a framework's own template can be one. Chunks are ranked, and compared with each
    other, by their own texts; all counts are of what is written. It is called once in a call for
    each chunk considered, best first, while a token is left; never for chunks that are out of
    scope, duplicates or beyond ``max_chunks``. A chunk for which it writes nothing is dropped as
    ``"empty"``. It cannot write part of a chunk: chunks are not cut then, and ``units`` is
    ``"chunk"``. Its exceptions pass.

    Args:
        format: ``"plain"``, ``"tagged"``, ``"markdown"``, ``"xml"`` or ``"json"``; or a format
            string for each chunk, with ``{text}`` once. It may have ``{kind}``, ``{id}``,
            ``{source}``, ``{title}``, ``{index}`` (the place in the input, from 0) and
            ``{nonce}``. Write a literal brace twice. Or a function from a chunk to a str.
        separator: The text between two chunks, a blank line by default. Only with a format string
            or a function may it differ.
        header: The text before the first chunk.
        footer: The text after the last chunk.
        nonce: For format strings: ``{nonce}`` in *format*, *header* and *footer* becomes 16
            hexadecimal digits, so that a chunk cannot forge a boundary. True derives them from the
            query and all texts, with the labels that *format* shows, which none of these can
            foresee. A str is a seed: the digits depend on it alone, so that texts begin alike call
            after call. Keep the seed secret from those who write the texts. False, the default,
            allows no ``{nonce}``.

    Raises:
        InvalidArgumentError: An argument has a wrong type, or *format* is not a template: the
            message says what is allowed.

    Examples:
        >>> from budgeteer import pack
        >>> template = Template("<{id}> {text}", separator="\n", header="Sources:\n")
        >>> pack("tea", [{"text": "Green tea.", "id": "a"}], 50, template=template).text
        'Sources:\n<a> Green tea.'
        >>> rows = [{"text": "Green tea.", "year": 2024}, {"text": "Rye.", "year": 2025}]
        >>> template = Template(lambda row: f"{row['year']}: {row['text']}", separator="\n")
        >>> pack("tea", rows, 20, template=template).text
        '2024: Green tea.\n2025: Rye.'

    """

    format: str | Callable[[Any], str]
    _: KW_ONLY
    separator: str | None = None
    header: str = ""
    footer: str = ""
    nonce: bool | str = False
    _style: int = field(init=False, repr=False, compare=False)
    _fixed: tuple[int, str, str, str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("header", "footer"):
            object.__setattr__(self, name, plain_text(name, getattr(self, name)))
        style, layout = WRITTEN, ""
        if isinstance(self.format, str) or not callable(self.format):
            name = plain_text("format", self.format, "a str or a function from a chunk to a str")
            object.__setattr__(self, "format", name)
            style, layout = (STYLES.index(name), "") if name in STYLES else (FORMAT, name)
        object.__setattr__(self, "_style", style)
        if self.separator is not None:
            object.__setattr__(self, "separator", plain_text("separator", self.separator))
        separator = "\n\n" if self.separator is None else self.separator
        fixed = (style, layout, separator, self.header, self.footer)
        object.__setattr__(self, "_fixed", fixed)
        self._check_nonce()
        if style == FORMAT:
            self._check_layout(layout)
        elif style != WRITTEN and self.separator is not None:
            raise InvalidArgumentError(
                f"separator must be left out with format={self.format!r}; only a format string "
                f"or a function has a choice"
            )

    def _check_nonce(self) -> None:
        if isinstance(self.nonce, str):
            object.__setattr__(self, "nonce", plain_text("nonce", self.nonce))
        elif _validate.is_bool(self.nonce):
            object.__setattr__(self, "nonce", bool(self.nonce))
        else:
            raise InvalidArgumentError(
                f"nonce must be True, False or a str, not {_validate.type_name(self.nonce)}"
            )
        if self._style != FORMAT and self.nonce is not False:
            shown = "a function" if self._style == WRITTEN else repr(self.format)
            raise InvalidArgumentError(
                f"nonce must be left out with format={shown}; only a format string has a choice"
            )

    def _check_layout(self, layout: str) -> None:
        names = field_names("format", layout, FIELDS)
        if names.count("text") != 1:
            hint = "" if names else _validate.did_you_mean(layout, STYLES)
            raise InvalidArgumentError(
                f"format must have {{text}} once or be one of {', '.join(map(repr, STYLES))}, "
                f"not have it {names.count('text')} times{hint}"
            )
        where = ["format"] if "nonce" in names else []
        where += [name for name in ("header", "footer") if "{nonce}" in getattr(self, name)]
        if where and self.nonce is False:
            raise InvalidArgumentError(
                f"nonce must be True or a str where {where[0]} has {{nonce}}"
            )
        if self.nonce is not False and not where:
            raise InvalidArgumentError(
                "nonce must be left out where neither format nor header nor footer has {nonce}"
            )

    def _wire(self, query: str, chunks: Sequence[object]) -> tuple[int, str, str, str, str] | None:
        """Return this template as a backend takes it for one call; None if it has no nonce."""
        if self.nonce is False:
            return None
        style, layout, separator, header, footer = self._fixed
        nonce = self._nonce(query, chunks)
        # Doubled braces stay doubled: they belong to no field.
        layout = "".join(
            text.replace("{", "{{").replace("}", "}}")
            + ("" if name is None else nonce if name == "nonce" else f"{{{name}}}")
            for text, name, _, _ in _parsed(layout)
        )
        header, footer = (text.replace("{nonce}", nonce) for text in (header, footer))
        return style, layout, separator, header, footer

    def _writer(self, chunks: Sequence[Any]) -> Callable[[int], str] | None:
        """Return the function that writes a chunk by its index; None if no function writes."""
        function = self.format
        if isinstance(function, str):
            return None

        def write(i: int) -> str:
            return answer_of(function, chunks[i], "template", f"chunks[{i}]")

        return write

    def _labels(self, chunks: Sequence[object]) -> Iterator[str]:
        """Yield what the format shows of each chunk beside its text."""
        names = [name for _, name, _, _ in _parsed(self._fixed[1])]
        places = [place for place, name in enumerate(_LABELS) if name in names]
        tag = tagger(chunks)
        for i in range(len(chunks) if places else 0):
            found = tag(i)
            for place in places:
                yield f"{found[place]}"

    def _nonce(self, query: str, chunks: Sequence[object]) -> str:
        from hashlib import blake2b  # few templates have a nonce

        parts = [self.nonce] if isinstance(self.nonce, str) else [query]
        if self.nonce is True:
            # The backend refuses a chunk without text soon after.
            with suppress(StopIteration, TypeError):
                texts = texts_of(chunks)
                parts += [texts(i) for i in range(len(chunks))]
            parts += self._labels(chunks)
        digest = blake2b(digest_size=8, person=b"budgeteer nonce")
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Prompt:
    r"""
    A function that makes the final text of the kept chunks, with all that stands around them.

    Given to `Packer` as ``template``. The function gets a list of the kept chunks, the caller's
    own objects in the order of ``order``, and returns the whole text: instructions, question,
    chunks. ``packing.text`` is exactly what it returned for the kept chunks, and its count is
    within the budget.

    It is called for the empty list first, and at most once for each set of chunks; at most nine
    times in a call. If what it returns for the empty list is over the budget, nothing is kept, and
    the text is empty. It should return the same for the same chunks. Its exceptions pass.

    Of a kept chunk, ``text`` and ``token_count`` are of its own text. ``span`` is None unless the
    final text has that text exactly once. Of a chunk dropped for the budget, the figures are those
    of its own text in the room that was left for such texts. There is no notice, and chunks are
    not cut: ``overflow`` is ``"skip"`` or ``"stop"``, ``units`` is ``"chunk"``, ``order`` is any
    but ``"sticky"``. The presets `agentic_rag`, `context_router` and `context_gate` take none.

    Args:
        render: A function from the list of kept chunks to the final text.

    Raises:
        InvalidArgumentError: *render* cannot be called.

    Examples:
        >>> from budgeteer import pack
        >>> def render(chunks):
        ...     listed = "\n".join(f"{n}. {chunk}" for n, chunk in enumerate(chunks, 1))
        ...     return f"Answer from:\n{listed}\nQuestion: What is tea?"
        >>> packing = pack("tea", ["Rye bread.", "Green tea."], 16, template=Prompt(render))
        >>> print(packing.text)
        Answer from:
        1. Green tea.
        Question: What is tea?
        >>> packing.total_tokens
        14

    """

    render: Callable[[list[Any]], str]

    def __post_init__(self) -> None:
        if not callable(self.render):
            raise InvalidArgumentError(
                f"render must be a function from a list of chunks to a str, "
                f"not {_validate.type_name(self.render)}"
            )


def answer_of(function: Callable[[Any], str], argument: Any, name: str, where: str) -> str:
    """Return what the caller's *function* answers for *argument*, which must be a str."""
    if _process.is_over():
        raise BudgeteerError("nothing is written any more: nobody waits for it")
    text = function(argument)
    if type(text) is str:
        return text
    if isinstance(text, str):
        return str.__str__(text)
    raise InvalidArgumentError(
        f"{name} must return a str for {where}, not {_validate.type_name(text)}"
    )


def template_of(name: str, value: object, objects: str = "a Template") -> Template:
    """Return *value* if it is a template, or the template with that name."""
    if isinstance(value, Template):
        return value
    if isinstance(value, str) and value in STYLES:
        return _NAMED[value]
    found, hint = _validate.type_name(value), ""
    if isinstance(value, str):
        found, hint = f"{value[:80]!r}", _validate.did_you_mean(value, STYLES)
        if "{" in value:
            hint = f": a format string is given as Template({found})"
    listed = ", ".join(map(repr, STYLES))
    raise InvalidArgumentError(f"{name} must be one of {listed} or {objects}, not {found}{hint}")


def notice_of(name: str, value: object) -> tuple[str, ...] | None:
    """Return the text before the number of chunks, and after each mention of it."""
    if _validate.is_bool(value):
        value = DEFAULT_NOTICE if value else None
    if value is None:
        return None
    text = plain_text(name, value, "True, None or a str")
    if not text:
        raise InvalidArgumentError(f"{name} must not be empty; None is for none")
    field_names(name, text, ("count",))
    pieces = [""]
    for literal, found, _, _ in _parsed(text):
        pieces[-1] += literal
        if found is not None:
            pieces.append("")
    return tuple(pieces)


def plain_text(name: str, value: object, allowed: str = "a str") -> str:
    """Return *value*, which must be a str that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be {allowed}, not {_validate.type_name(value)}")
    value = str.__str__(value)
    if not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise InvalidArgumentError(f"{name} must not contain surrogates")
    return value


def field_names(name: str, text: str, allowed: Sequence[str]) -> list[str]:
    """Return the fields of a format string: plain names, each one of *allowed*."""
    names = []
    listed = ", ".join(f"{{{field}}}" for field in allowed)
    try:
        parts = list(_parsed(text))
    except ValueError:
        raise InvalidArgumentError(
            f"{name} has a lone brace; a brace that begins none of {listed} is written twice"
        ) from None
    for _, found, spec, conversion in parts:
        if found is None:
            continue
        if found not in allowed or spec or conversion:
            raise InvalidArgumentError(
                f"{name} must have no other fields than {listed}, and no format or conversion"
            )
        names.append(found)
    return names


def _parsed(text: str) -> Iterable[tuple[str, str | None, str | None, str | None]]:
    """Return the parts of a format string: each a literal text and the field after it."""
    from string import Formatter  # compiles a pattern, which few packers need

    return Formatter().parse(text)


_NAMED = {name: Template(name) for name in STYLES}
