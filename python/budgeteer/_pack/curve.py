"""A packing in other budgets: what each would have admitted, without scoring anew."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from budgeteer import _validate
from budgeteer._codes import GATE, INPUT, RANK, RECENCY
from budgeteer._pack.outcome import score_in_json
from budgeteer._public import public
from budgeteer._pydantic import instance_schema
from budgeteer._rank.rankings import ranked
from budgeteer.errors import BudgeteerError, InvalidArgumentError

MOST = 1_000
"""The most points of a curve: each of them is packed."""
_STEPS = 16
"""How many steps lead to the packing's own budget where no step is given."""


class Finish(Protocol):
    """Packs a call into a budget."""

    def __call__(self, call: Any, max_tokens: int, reserve_tokens: int = 0) -> Any: ...


class Again(NamedTuple):
    """
    All that is needed to pack a call again.

    Attributes:
        finish: Packs a call into a budget.
        call: The call. Its vectors are gone once their cosines are known.
        max_tokens: The tokens that it was packed into, the reserve included.
        reserve_tokens: The tokens to leave free of any budget.

    """

    finish: Finish
    call: Any
    max_tokens: int
    reserve_tokens: int

    def packed(self, max_tokens: object) -> Any:
        """Return the packing of the same call within *max_tokens*."""
        limit = _validate.tokens("max_tokens", max_tokens)
        return self.finish(self.call, limit, self.reserve_tokens)


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """
    What one budget of a curve holds. Made by `Packing.budget_curve`.

    Attributes:
        max_tokens: The budget, with what is reserved of it, as `Packing.whatif` takes it.
        total_tokens: The tokens of the text.
        kept_count: The number of kept chunks.
        score: The sum of their finite scores. Infinite ones add nothing: with them, all sums would
            be alike, or of no value.
        admitted: The chunks that are kept here and not in the point before, by index.
        left: The chunks that were kept in the point before and are not here: a larger budget has
            room for a better chunk, and then perhaps not for those that filled the smaller one.

    Examples:
        >>> from budgeteer import pack
        >>> packing = pack("tea", ["Green tea.", "Rye bread."], 3)
        >>> packing.budget_curve(step=5, up_to=8)[-1]
        BudgetPoint(max_tokens=8, total_tokens=7, kept_count=2, score=0.6931471805599453,
        admitted=(1,), left=())

    """

    max_tokens: int
    total_tokens: int
    kept_count: int
    score: float
    admitted: tuple[int, ...]
    left: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """
        Return the point as plain data that JSON can hold.

        A sum beyond the range of a float is None, as JSON has no infinity.

        Examples:
            >>> from budgeteer import pack
            >>> pack("tea", ["Green tea."], 3).budget_curve()[-1].to_dict()["kept_count"]
            1

        """
        data = {name: getattr(self, name) for name in self.__slots__}
        data["score"] = score_in_json(self.score)
        return {name: list(of) if type(of) is tuple else of for name, of in data.items()}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, and write what `to_dict` returns."""
        return instance_schema(cls, cls.to_dict)


def again_of(packing: Any, doing: str) -> Again:
    """
    Return what packs the call of *packing* again.

    Raises:
        BudgeteerError: The packing was pickled.

    """
    again: Again | None = packing._again
    if again is None:
        raise BudgeteerError(
            f"{doing} packs again, and a packing that was pickled has neither the chunks nor the "
            f"packer: call it before pickling"
        )
    return again


def curve_of(packing: Any, step: object, up_to: object) -> list[BudgetPoint]:
    """Return the points of `Packing.budget_curve`."""
    again = again_of(packing, "budget_curve()")
    call = by_known_scores(packing, again.call)
    points = []
    before: set[int] = set()
    for limit in budgets_of(again.max_tokens, step, up_to):
        found = again.finish(call, limit, again.reserve_tokens)
        kept = set(found._kept)
        points.append(
            BudgetPoint(
                max_tokens=limit,
                total_tokens=found.total_tokens,
                kept_count=len(kept),
                score=_added(packing._scores, found._kept),
                admitted=tuple(sorted(kept - before)),
                left=tuple(sorted(before - kept)),
            )
        )
        before = kept
    return points


def budgets_of(own: int, step: object, up_to: object) -> range:
    """Return the budgets of a curve: *own*, and each step away from it up to the highest."""
    size, most = max(1, -(-own // _STEPS)), min(2 * own, _validate.MAX_TOKENS)
    if step is not None:
        size = _validate.whole("step", step, 1, _validate.MAX_TOKENS)
    if up_to is not None:
        most = _validate.tokens("up_to", up_to)
    first = own % size or min(own, size)
    if (most - first) // size >= MOST:
        raise InvalidArgumentError(
            f"step must be at least {-(-(most - first + 1) // MOST)} for budgets up to {most}, "
            f"as a curve has at most {MOST} points, not {size}"
        )
    return range(first, most + 1, size)


def by_known_scores(packing: Any, call: Any) -> Any:
    """
    Return a call that ranks as *call* did, by what is known by now.

    Where that cannot be: *call* itself, which reads and scores all chunks in every budget. A
    corpus has its index for that, so it is quick anyway.
    """
    prepared = call.prepared
    code = prepared.ranking.code
    is_by_score = code not in (INPUT, RECENCY)
    if (
        prepared.units != "chunk"
        or prepared.selection != RANK
        or prepared.policy[0] == GATE
        or call.state is not None
        or prepared.min_score == "auto"  # which keeps what is linked, whatever it scores
        or (prepared.min_score is not None and not is_by_score)
    ):
        return call
    if is_by_score:
        keys = bytes(packing._scores)
    else:
        keys = call.keys() if code == RECENCY else bytes(8 * len(call.items))
    return replace(call, prepared=replace(prepared, ranking=ranked("score")).with_plan(), own=keys)


def _added(scores: Any, kept: Any) -> float:
    """Return the sum of the finite scores of the kept chunks; NaN stands for none."""
    total = 0.0
    for score in array("d", [scores[index] for index in sorted(kept)]):
        if math.isfinite(score):
            total += score
    return total
