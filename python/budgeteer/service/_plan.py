"""The plan of a request to a service: the model, the packers, the budget."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from budgeteer import _validate
from budgeteer._count.calibration import Calibration, Correction
from budgeteer._count.counter import TokenCounter
from budgeteer._count.scaled import Scaled
from budgeteer._log import log
from budgeteer._messages.messages import count_messages
from budgeteer._pack.options import BUDGETS
from budgeteer._pack.packer import Packer, prepared_of
from budgeteer._rank.rankings import with_own
from budgeteer.errors import InvalidArgumentError
from budgeteer.presets import retrieval_service
from budgeteer.service._asking import Wanted
from budgeteer.service._messages import MessageBuilder, Messages
from budgeteer.service._result import RetrievalResult
from budgeteer.service._settings import ActiveModel, LlmSettings


class Active(NamedTuple):
    """The state that a request reads when it begins, so that a later swap does not affect it."""

    settings: LlmSettings
    model: ActiveModel
    system_tokens: int
    packer: Packer
    by_input: Packer  # the default packer by input order; a caller's packer unchanged
    is_slow: bool  # packing would block an event loop
    raw: TokenCounter  # that of the model before it was corrected
    correction: Correction | None

    def is_current(self, calibration: Calibration | None) -> bool:
        """Return whether nothing was learned since."""
        return self.correction == _correction(calibration, self.model.name, self.raw)

    def messages(self, builder: MessageBuilder, system: str, query: str, asked: int) -> Messages:
        """Return what makes and counts the messages of a query of *asked* tokens."""
        known: tuple[tuple[str, int], ...] = ()
        if self.model.counter is self.raw and self.raw._function is None:  # noqa: SLF001
            known = (system, self.system_tokens), (query, asked)
        options: dict[str, Any] = {"model": self.model.name, "correction": self.correction}
        return Messages(builder, system, query, counter=self.raw, known=known, **options)


class Plan(NamedTuple):
    """The budget of a request."""

    query: str
    active: Active
    query_tokens: int
    most: int  # tokens of the prompt
    budget: int
    room: int  # budget without the cost of messages beside their texts
    wanted: Wanted
    messages: Messages


def activated(
    settings: object, packer: Packer | None, system_prompt: str, calibration: Calibration | None
) -> Active:
    """Return the state of requests under *settings*, corrected by what was learned until now."""
    if not isinstance(settings, LlmSettings):
        raise InvalidArgumentError(
            f"settings must be LlmSettings, not {_validate.type_name(settings)}"
        )
    model = settings.limits
    raw = model.counter
    correction = _correction(calibration, model.name, raw)
    if calibration is not None:
        corrected = calibration.counter(model.name or raw, counter=raw)
        model = model._replace(counter=corrected)
    own = packer or retrieval_service(_validate.MAX_TOKENS)
    own = dataclasses.replace(own, counter=model.counter)
    # A caller's packer keeps its ranking: its options may be invalid under another.
    by_input = own if packer else dataclasses.replace(own, ranking="input")
    system_tokens = model.counter.count(system_prompt)
    left = min(model.max_input_tokens, model.context_window - model.max_output_tokens)
    if left <= system_tokens:  # else it would look like an error of the caller
        log().warning(
            "retrieval service: every query will be refused, as %d tokens of output and %d of the "
            "system prompt leave nothing of the context window %d",
            *(model.max_output_tokens, system_tokens, model.context_window),
            extra={
                "code": "no_room_for_queries",
                "model": model.name,
                "context_window": model.context_window,
                "tokens.output": model.max_output_tokens,
                "tokens.system": system_tokens,
            },
        )
    is_slow = _is_own(model.counter) or own.units == "sentence"
    return Active(settings, model, system_tokens, own, by_input, is_slow, raw, correction)


def checked_calibration(calibration: object) -> Calibration | None:
    """Return *calibration*, which must be one or None."""
    if calibration is None or isinstance(calibration, Calibration):
        return calibration
    raise InvalidArgumentError(
        f"calibration must be a Calibration or None, not {_validate.type_name(calibration)}"
    )


def observed(calibration: Calibration | None, active: Active, result: object, billed: int) -> None:
    """Teach the calibration of a service what *result* was billed."""
    if calibration is None:
        raise InvalidArgumentError(
            "this service has no calibration: RetrievalService(..., calibration=Calibration())"
        )
    if not isinstance(result, RetrievalResult):
        raise InvalidArgumentError(
            f"result must be a RetrievalResult, not {_validate.type_name(result)}"
        )
    model, raw = active.model.name, active.raw
    if result.model != model:
        raise InvalidArgumentError(
            f"result must be of the model {model[:80]!r} of the settings, not "
            f"{result.model[:80]!r}: the calibration's own observe takes any model and its counter"
        )
    estimated = count_messages(result.messages, counter=raw, model=model)
    calibration.observe(estimated, billed, model=model or raw, counter=raw)


def _correction(
    calibration: Calibration | None, model: str, raw: TokenCounter
) -> Correction | None:
    return None if calibration is None else calibration.correction(model or raw, counter=raw)


def with_embedder(packer: Packer | None, embedder: Any) -> Packer | None:
    """Return a packer whose ranking by vectors has an embedder, its own or the service's."""
    if packer is None:
        return None
    ranking = prepared_of(packer).ranking
    if not ranking.needs.cosines or ranking.embedder is not None:
        return packer
    if embedder is None:
        raise InvalidArgumentError(
            f"embedder is required: packer ranks by vectors under ranking={ranking.name!r}"
        )
    return dataclasses.replace(packer, ranking=with_own(packer.ranking, embedder))


def wanted(packer: Packer, tokens: int, *, is_reranking: bool, limit: int) -> Wanted:
    """Return what a packer needs from pages with room for *tokens*."""
    # Some of the chunks read may be out of scope.
    is_choosing = packer.min_score is not None or prepared_of(packer).max_docs is not None
    is_in_order = (
        not is_reranking
        and not is_choosing
        and prepared_of(packer).ranking.name in ("input", "score")
        and packer.dedupe != "near"
        and packer.units == "chunk"
        and packer.selection == "rank"
    )
    is_bounded = is_choosing or packer.max_chunks is not None
    return Wanted(
        tokens=tokens * (BUDGETS if packer.units == "sentence" else 1),
        at_least=0 if is_in_order else limit,
        at_most=packer.max_chunks if is_in_order else 0 if is_bounded else None,
        is_skipping=is_in_order and packer.overflow == "skip",
        is_deduping=packer.dedupe is not None,
    )


def _is_own(counter: TokenCounter) -> bool:
    """Return whether a caller's own function, which may be slow, counts."""
    function = counter._function  # noqa: SLF001
    return _is_own(function.counter) if isinstance(function, Scaled) else function is not None
