"""The result of a retrieval: the packing, the messages, and what of the window went where."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from budgeteer._messages.messages import Sent
from budgeteer._pack.packing import Packing
from budgeteer._public import public


@public("budgeteer.service")
@dataclass(frozen=True, slots=True)
class RetrievalTokens:
    """
    What of a window went where, in tokens.

    Attributes:
        system: The system prompt.
        query: The query.
        retrieved: The packed text.
        budget: What the system prompt, the query and the answer's reserve left for retrieval.
        overhead: What the messages cost beside their texts: roles, what primes the reply, and the
            blank line between context and query. Below 0 where texts that meet count less than
            on their own.
        remaining: What is still free: *budget* - *overhead* - *retrieved*, at least 0.
        input: The whole prompt: *system* + *query* + *retrieved* + *overhead*. It is what
            `budgeteer.window.count_messages` answers for the messages.
        output: What is reserved for the answer.
        context_window: The window; *input* + *output* is at most that.
        is_exact: Whether the counter counts what the model's tokenizer does.

    """

    system: int
    query: int
    retrieved: int
    budget: int
    overhead: int
    remaining: int
    input: int
    output: int
    context_window: int
    is_exact: bool


@public("budgeteer.service")
@dataclass(frozen=True, slots=True, repr=False)
class RetrievalResult:
    """
    The answer to one request.

    Attributes:
        packing: Which chunks were kept, which were not, and why.
        messages: The messages, ready to send.
        tokens: What of the window went where.
        model: The model's name; empty where none was named.

    """

    packing: Packing[Any]
    messages: Sequence[Sent]
    tokens: RetrievalTokens
    model: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold, without the callers' objects."""
        return {
            "model": self.model,
            "messages": [dict(message) for message in self.messages],
            "tokens": dataclasses.asdict(self.tokens),
            "packing": self.packing.to_dict(),
        }

    def __repr__(self) -> str:
        """Say the figures, never the text."""
        return f"<RetrievalResult for {self.model!r}: {self.tokens}, {self.packing!r}>"
