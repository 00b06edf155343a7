"""What a request to a service has to work with: the model, the packers, the budget."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from budgeteer import _validate
from budgeteer._count.counter import Calibrated, TokenCounter
from budgeteer._log import log
from budgeteer._pack.packer import Packer, prepared_of
from budgeteer._pack.sentences import BUDGETS
from budgeteer._rank.rankings import with_own
from budgeteer.errors import InvalidArgumentError
from budgeteer.presets import retrieval_service
from budgeteer.service._asking import Wanted
from budgeteer.service._settings import ActiveModel, LlmSettings


class Active(NamedTuple):
    """What a request takes with it when it begins: a later swap does not reach it."""

    settings: LlmSettings
    model: ActiveModel
    system_tokens: int
    packer: Packer
    by_input: Packer  # the service's own in the order of the chunks; a caller's as it is
    is_slow: bool  # so that packing would hold an event loop up


class Plan(NamedTuple):
    """The budget of a request."""

    query: str
    active: Active
    query_tokens: int
    most: int  # that the prompt may have
    budget: int
    room: int  # budget, less what the messages cost beside their texts
    wanted: Wanted


def activated(settings: object, packer: Packer | None, system_prompt: str) -> Active:
    """Return what requests take with them under *settings*."""
    if not isinstance(settings, LlmSettings):
        raise InvalidArgumentError(
            f"settings must be LlmSettings, not {_validate.type_name(settings)}"
        )
    model = settings.limits
    own = packer or retrieval_service(_validate.MAX_TOKENS)
    own = dataclasses.replace(own, counter=model.counter)
    # A caller's packer may have options that no other ranking takes, and ranks as it says.
    by_input = own if packer else dataclasses.replace(own, ranking="input")
    system_tokens = model.counter.count(system_prompt)
    left = min(model.max_input_tokens, model.context_window - model.max_output_tokens)
    if left <= system_tokens:  # an error of whoever asks is what it would look like
        log().warning(
            "retrieval service: every query will be refused, as %d tokens of output and %d of the "
            "system prompt leave nothing of the context window %d",
            *(model.max_output_tokens, system_tokens, model.context_window),
            extra={"model": model.name, "context_window": model.context_window},
        )
    is_slow = _is_own(model.counter) or own.units == "sentence"
    return Active(settings, model, system_tokens, own, by_input, is_slow)


def with_embedder(packer: Packer | None, embedder: Any) -> Packer | None:
    """Return a packer that has an embedder where it ranks by vectors, its own or the service's."""
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
    """Return what a packer wants of pages, of which *tokens* have room."""
    # Some of those that were read may be out of scope.
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
    """Return whether a caller's own function counts, which may take any time."""
    function = counter._function  # noqa: SLF001
    return function is not None and not isinstance(function, Calibrated)
