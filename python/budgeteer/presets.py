"""Packers that reproduce what a known design fixes."""

from budgeteer import _validate
from budgeteer._pack import Packer

__all__ = ["context_router"]

_ESTIMATORS = ("chars_div4", "words", "whitespace")
_RANKINGS = {"relevance": "keyword", "recency": "recency", "manual": "input"}
_TRUNCATIONS = {
    "drop": "skip",
    "truncate_end": "truncate_end",
    "truncate_middle": "truncate_middle",
}


def context_router(
    max_tokens: int = 8000,
    *,
    reserve_tokens: int = 0,
    estimator: str = "chars_div4",
    ranking: str = "relevance",
    truncation: str = "drop",
) -> Packer:
    """
    Return a packer that answers as theaios-context-router 0.2.2 does, to the bit.

    For those who come from there. It reproduces that program's overruns too: markers and the
    blank lines between chunks are not counted, a cut may split a grapheme cluster, a cut by words
    collapses whitespace, and ``total_tokens`` is the sum of the parts. For a budget that holds
    use `Packer`.

    Args:
        max_tokens: Budget in tokens, from 1 on.
        reserve_tokens: Taken off the budget.
        estimator: ``"chars_div4"``, ``"words"`` or ``"whitespace"``.
        ranking: ``"relevance"``, ``"recency"`` or ``"manual"``.
        truncation: ``"drop"``, ``"truncate_end"`` or ``"truncate_middle"``.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.

    Examples:
        >>> context_router(2, truncation="truncate_end").pack("", ["Some long text"]).text
        'Some lon [...]'

    """
    return Packer(
        _validate.tokens("max_tokens", max_tokens, minimum=1),
        reserve_tokens=reserve_tokens,
        counter=_validate.choice("estimator", estimator, _ESTIMATORS),
        ranking=_RANKINGS[_validate.choice("ranking", ranking, tuple(_RANKINGS))],
        overflow=_TRUNCATIONS[_validate.choice("truncation", truncation, tuple(_TRUNCATIONS))],
        min_score=None,
        max_chunks=None,
        dedupe=None,
        order="rank",
        template="plain",
        notice=None,
        _sum_of_parts=True,
    )
