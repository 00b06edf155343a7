"""The messages of a request, and how many tokens they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._codes import SUM_OF_PARTS
from budgeteer._messages.messages import Message, MessageCosts
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.calibration import Correction
    from budgeteer._count.counter import TokenCounter
    from budgeteer._pack.packing import Packing

MessageBuilder = Callable[[str, str, str], Sequence[Message]]

_HEAD = 64
"""The number of characters of its beginning by which the context is looked for in a text."""


class Messages:
    """
    Makes the messages of a request, and counts them.

    The context is most of them, and its count is known: only what is around it is counted. Those
    of the system prompt and the query are known too.
    """

    __slots__ = (
        *("_builder", "_context", "_correction", "_costs", "_counter", "_known", "_query"),
        *("_system", "_tokens"),
    )

    def __init__(
        self,
        builder: MessageBuilder,
        system: str,
        query: str,
        *,
        counter: TokenCounter,
        model: str,
        correction: Correction | None,
        known: tuple[tuple[str, int], ...],
    ) -> None:
        """Begin with no context; *known* has texts whose tokens *counter* has counted."""
        self._builder, self._system, self._query = builder, system, query
        self._counter, self._correction, self._known = counter, correction, known
        self._context, self._tokens = "", 0
        self._costs = MessageCosts(self._of_text, model)

    def made(self, context: str) -> Sequence[Message]:
        """Return the messages with that context."""
        return _validate.batch(
            "the messages of message_builder", self._builder(self._system, context, self._query)
        )

    def count(self, messages: Sequence[Message], packing: Packing[Any] | None = None) -> int:
        """Return the tokens of *messages*, whose context is that of *packing*."""
        self._context = ""
        if packing is not None and self._is_counted_alike(packing):
            self._context, self._tokens = packing.text, packing.total_tokens
        try:
            costs = [self._costs.of(f"messages[{i}]", item) for i, item in enumerate(messages)]
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"message_builder: {error}") from None
        tokens = sum(costs) + (self._costs.around if costs else 0)
        return tokens if self._correction is None else self._correction.bound(tokens)

    def _is_counted_alike(self, packing: Packing[Any]) -> bool:
        """Return whether the tokens of a packing are those of its text by our counter."""
        prepared = packing._prepared  # noqa: SLF001
        return (
            prepared is not None
            and prepared.counter == self._counter
            and prepared.policy[0] != SUM_OF_PARTS
        )

    def _of_text(self, text: str) -> int:
        for known, tokens in self._known:
            if text is known:  # equal ones are not looked for: some are long
                return tokens
        counter, context = self._counter, self._context
        if context and len(text) >= len(context):
            # The whole context is compared: to look for it would take longer than to count it.
            start = text.find(context[:_HEAD])
            if start >= 0 and text.startswith(context, start):
                end = start + len(context)
                return counter._count_around(text, start, end, self._tokens)  # noqa: SLF001
        return counter.count(text)
