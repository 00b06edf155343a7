"""The options of a packer, checked once, in the form that its backend takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from budgeteer import _validate
from budgeteer._backend import backend
from budgeteer._codes import (
    CALLABLE,
    CITE,
    GATE,
    LEXICAL,
    NO_POLICY,
    STICKY,
    SUM_OF_PARTS,
)
from budgeteer._count.counter import TokenCounter
from budgeteer._count.resolve import get_counter
from budgeteer._needs import Needs, needs_of
from budgeteer._pack.options import (
    DEDUPES,
    ORDERS,
    OVERFLOWS,
    SELECTIONS,
    UNITS,
    MinScore,
    Units,
)
from budgeteer._pack.template import Prompt, Template, notice_of, template_of
from budgeteer._rank.rankings import Ranked, ranked
from budgeteer.errors import InvalidArgumentError

_PLAIN = template_of("template", "plain")
_TEMPLATES = "a Template or a Prompt"


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    The options of a packer without its budget: all that its calls share.

    Attributes:
        counter: The token counter.
        ranking: The ranking.
        min_score: A chunk that scores lower is out of scope, ``"auto"`` finds it from the scores;
            None for no such limit.
        overflow: The code of the overflow policy.
        max_chunks: The most chunks to keep; None for no limit.
        dedupe: The code of the duplicates that are dropped.
        selection: The code of the order in which chunks are admitted.
        order: The code of the order of the kept chunks in the text.
        template: The template of the text.
        notice: The text around the number of chunks left out; None for no notice.
        policy: The code of the preset's policy, and the number of documents a gate considers.
        units: The unit of packing: ``"chunk"`` or ``"sentence"``.
        needs: What ranking and selection need to know of the query and the chunks.
        ask: The caller's own counter as a backend calls it; None if a backend counts.
        max_docs: The number of documents a gate considers; None if there is no gate.
        is_citing: Whether each chunk is cited.
        plan: The options as the backend takes them.
        prompt: The function that makes the final text; None if the template does.
        steps: With a prompt, the options that set tokens aside for each chunk, and those that
            keep nothing without a token.
        stand_in: The options to pack with when embedding fails; None if there is no fallback.

    """

    counter: TokenCounter
    ranking: Ranked
    min_score: MinScore | None
    overflow: int
    max_chunks: int | None
    dedupe: int
    selection: int
    order: int
    template: Template
    notice: tuple[str, ...] | None
    policy: tuple[int, int]
    units: Units
    needs: Needs = Needs()  # noqa: RUF009 - immutable, and so below
    ask: Callable[[str, int], int] | None = None
    max_docs: int | None = None
    is_citing: bool = False
    prompt: Prompt | None = None
    plan: Any = None
    steps: tuple[Prepared, ...] = ()
    stand_in: Prepared | None = None

    def with_plan(self) -> Prepared:
        """Return a copy whose plan, and all else derived from the options, is made anew."""
        counter, template = self.counter, self.template
        # Products that are rounded up one by one do not add up, as texts and citations must.
        is_cited = self.policy[0] == CITE and counter._is_scaled
        asked = None if counter._function is None else counter._ask
        plan = backend.Plan(
            counter=(CALLABLE, 1.0) if is_cited else (counter._kind, counter._ratio),
            ranking=self.ranking.wire,
            min_score=self.min_score,
            overflow=self.overflow,
            max_chunks=self.max_chunks,
            dedupe=self.dedupe,
            selection=self.selection,
            order=self.order,
            # A template with a nonce is made for each call.
            template=(template if template.nonce is False else _PLAIN)._fixed,
            notice=self.notice,
            policy=self.policy,
            units=UNITS.index(self.units),
        )
        policy, max_docs = self.policy
        return replace(
            self,
            needs=needs_of(self.ranking.code, self.ranking.hybrid, self.selection),
            ask=counter._count_chunk if is_cited else asked,
            max_docs=max_docs if policy == GATE else None,
            is_citing=policy == CITE,
            plan=plan,
            steps=self._steps(),
            stand_in=self._stand_in(),
        )

    def _steps(self) -> tuple[Prepared, ...]:
        if self.prompt is None:
            return ()
        plain = replace(self, prompt=None, ranking=self.ranking._replace(fallback=None))
        # What is written around a chunk takes room as its citation would.
        cited = replace(plain, policy=(CITE, 0)).with_plan()
        return cited, replace(plain, counter=get_counter("chars_div4")).with_plan()

    def _stand_in(self) -> Prepared | None:
        fallback = self.ranking.fallback
        if fallback is None:
            return None
        return replace(self, ranking=ranked(fallback), min_score=None).with_plan()


def prepared(packer: Any) -> Prepared:
    """
    Return the options of a `budgeteer.Packer`, checked.

    Raises:
        InvalidArgumentError: An option has a wrong type, is out of range or contradicts another.

    """
    max_chunks = packer.max_chunks
    prompt = packer.template if isinstance(packer.template, Prompt) else None
    found = Prepared(
        counter=get_counter(packer.counter),
        ranking=ranked(packer.ranking),
        overflow=OVERFLOWS.index(_validate.choice("overflow", packer.overflow, OVERFLOWS)),
        selection=SELECTIONS.index(_validate.choice("selection", packer.selection, SELECTIONS)),
        order=ORDERS.index(_validate.choice("order", packer.order, ORDERS)),
        template=_PLAIN if prompt else template_of("template", packer.template, _TEMPLATES),
        prompt=prompt,
        notice=notice_of("notice", packer.notice),
        min_score=None if packer.min_score is None else _min_score(packer.min_score),
        max_chunks=None if max_chunks is None else _validate.tokens("max_chunks", max_chunks),
        dedupe=_dedupe(packer.dedupe),
        units=_validate.choice("units", packer.units, UNITS),
        policy=packer._policy,
    )
    if found.min_score == "auto" and found.ranking.code != LEXICAL:
        raise InvalidArgumentError(
            f"min_score must be a number or None under ranking={found.ranking.name!r}, not "
            f"'auto': that is for ranking='lexical' and ranking='bm25'"
        )
    if prompt is not None or callable(found.template.format):
        _check_function(packer, found)
    _check_preset(packer, found)
    if found.units != "chunk":
        if found.policy[0] != NO_POLICY:
            raise InvalidArgumentError(f"units must be 'chunk' in a preset, not {found.units!r}")
        if packer.dedupe == "near":
            raise InvalidArgumentError("units must be 'chunk' under dedupe='near'")
        if packer.selection != "rank":
            raise InvalidArgumentError(
                f"units must be 'chunk' under selection={packer.selection!r}"
            )
    return found.with_plan()


_FUNCTION_TAKES: dict[str, tuple[str, ...]] = {"overflow": ("skip", "stop"), "units": ("chunk",)}
"""The options that a template restricts that is a function: it writes whole chunks."""


def _check_function(packer: Any, found: Prepared) -> None:
    """Refuse the options under which no function can write the chunks, or the whole text."""
    is_prompt = found.prompt is not None
    shown = "a Prompt" if is_prompt else "a function"
    for name, allowed in _FUNCTION_TAKES.items():
        if getattr(packer, name) not in allowed:
            raise InvalidArgumentError(
                f"{name} must be {' or '.join(map(repr, allowed))} where template is {shown}, "
                f"which cannot write part of a chunk, not {getattr(packer, name)!r}: a format "
                f"string can"
            )
    policy = found.policy[0]
    if policy == SUM_OF_PARTS or (is_prompt and policy != NO_POLICY):
        raise InvalidArgumentError(
            f"template must be a name or a format string in this preset, whose figures are of "
            f"the texts alone, not {shown}: a Packer takes it"
        )
    if is_prompt and found.notice is not None:
        raise InvalidArgumentError(
            "notice must be None where template is a Prompt: its function may write one"
        )
    if is_prompt and found.order == STICKY:
        raise InvalidArgumentError(
            "order must not be 'sticky' where template is a Prompt, of which no beginning can be "
            "kept: a Template of a function can"
        )


_PRESET_TAKES: dict[int, dict[str, tuple[object, ...]]] = {
    CITE: {"overflow": ("skip", "stop")},
    GATE: {"ranking": ("input",)},
    SUM_OF_PARTS: {"max_chunks": (None,), "dedupe": (None,), "selection": ("rank",)},
}
"""The options of which a copy of a preset takes only some values, as others would do nothing."""

_PRESET_DOES = {
    CITE: "in an agentic_rag, whose chunks enter whole",
    GATE: "in a context_gate, which ranks by authority, kind and priority",
    SUM_OF_PARTS: "in a context_router that counts by an estimate",
}


def _check_preset(packer: Any, found: Prepared) -> None:
    """Refuse the options that would do nothing in a copy of a preset."""
    policy, counter = found.policy[0], found.counter
    is_exact = counter._function is not None or counter._is_encoding
    if policy == NO_POLICY or (policy == SUM_OF_PARTS and is_exact):
        return
    for name, allowed in _PRESET_TAKES[policy].items():
        given = getattr(packer, name)
        if given not in allowed:
            shown = repr(given) if given is None or isinstance(given, (str, int)) else "an object"
            raise InvalidArgumentError(
                f"{name} must be {' or '.join(map(repr, allowed))} {_PRESET_DOES[policy]}, not "
                f"{shown}: a Packer takes it"
            )


def refuse_sticky(packer: Any, where: str) -> None:
    """Refuse the order that repeats a previous packing *where* none can be given."""
    if packer.order == "sticky":
        raise InvalidArgumentError(
            f"order must not be 'sticky' {where}, which has no previous packing"
        )


def _min_score(value: object) -> MinScore:
    if not isinstance(value, str):
        return _validate.number("min_score", value)
    if value == "auto":
        return "auto"
    raise InvalidArgumentError(
        f"min_score must be a number, 'auto' or None, not {value[:80]!r}"
        f"{_validate.did_you_mean(value, ('auto',))}"
    )


def _dedupe(value: object) -> int:
    is_text = isinstance(value, str)
    if value is None or (is_text and value in DEDUPES):
        return DEDUPES.index(value)
    found = f"{value[:80]!r}" if isinstance(value, str) else _validate.type_name(value)
    raise InvalidArgumentError(f"dedupe must be 'exact', 'near' or None, not {found}")
