"""The result of a retrieval: the packing, the messages, and how the window was used."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from budgeteer._log import log
from budgeteer._messages.messages import Sent
from budgeteer._messages.shapes import mapping
from budgeteer._pack.packing import Packing
from budgeteer._public import public


@public("budgeteer.service")
@dataclass(frozen=True, slots=True)
class RetrievalTokens:
    """
    How the window was used, in tokens.

    Attributes:
        system: The system prompt.
        query: The query.
        retrieved: The packed text.
        budget: The rest for retrieval after the system prompt, the query and the answer's reserve.
        overhead: What the messages cost beside their texts: roles, the priming of the reply, and
            the blank line between context and query. Below 0 if the texts count less together than
            apart.
        remaining: The rest of the budget: *budget* - *overhead* - *retrieved*, at least 0.
        input: The whole prompt: *system* + *query* + *retrieved* + *overhead*.
            `budgeteer.window.count_messages` returns the same for the messages, unless a
            calibration corrects it: then it is the bound of the bill.
        output: The tokens reserved for the answer.
        context_window: The window; *input* + *output* is at most this.
        is_exact: Whether the counter counts as the model's tokenizer does.

    Examples:
        >>> from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService
        >>> service = RetrievalService(ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"))
        >>> tokens = service.retrieve("tea").tokens
        >>> tokens.system, tokens.query, tokens.retrieved, tokens.overhead, tokens.input
        (0, 1, 3, 7, 11)
        >>> tokens.input + tokens.output <= tokens.context_window
        True

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
    r"""
    The result of one request.

    Attributes:
        packing: The packing: which chunks were kept or dropped, and why.
        messages: The messages, ready to send.
        tokens: How the window was used.
        model: The model's name; empty if none was given.

    Examples:
        >>> from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService
        >>> service = RetrievalService(ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"))
        >>> result = service.retrieve("tea")
        >>> result.messages
        [{'role': 'user', 'content': 'Green tea.\n\ntea'}]
        >>> result.model, result.packing.total_tokens
        ('gpt-4o', 3)

    """

    packing: Packing[Any]
    messages: Sequence[Sent]
    tokens: RetrievalTokens
    model: str

    def to_dict(self) -> dict[str, Any]:
        """
        Return the result as plain data that JSON can hold, without the caller's objects.

        Examples:
            >>> from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalService
            >>> service = RetrievalService(ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"))
            >>> sorted(service.retrieve("tea").to_dict())
            ['messages', 'model', 'packing', 'tokens']

        """
        return {
            "model": self.model,
            "messages": [
                dict(mapping(f"messages[{i}]", message)) for i, message in enumerate(self.messages)
            ],
            "tokens": dataclasses.asdict(self.tokens),
            "packing": self.packing.to_dict(),
        }

    def __repr__(self) -> str:
        """Show the figures, never the text."""
        return f"<RetrievalResult for {self.model!r}: {self.tokens}, {self.packing!r}>"


_DEBUG, _WARNING = 10, 30  # of `logging`, which is slow to load


def bounded(tokens: RetrievalTokens, most: int) -> RetrievalTokens:
    """
    Return *tokens* with the budget that chunks had, for logs and spans.

    Args:
        tokens: Those of a result, whose budget is the rest of the window.
        most: The packer's own bound. Where it is smaller, it is what leaves chunks out, and with
            the window's figures nobody could tell why.

    """
    if most >= tokens.budget:
        return tokens
    remaining = min(tokens.remaining, max(0, most - tokens.retrieved))
    return dataclasses.replace(tokens, budget=most, remaining=remaining)


def log_result(result: RetrievalResult, tokens: RetrievalTokens, dropped: int, cut: int) -> None:
    """Log how many chunks the budget dropped, and how many it cut; *tokens* are `bounded`."""
    packing = result.packing
    if not log().isEnabledFor(_WARNING if dropped or cut else _DEBUG):
        return
    is_empty = not packing.kept and not packing.dropped_count
    code = "nothing_found" if is_empty else "chunks_fit"
    extra = {
        "code": "chunks_left_out" if dropped or cut else code,
        "model": result.model,
        "tokens.system": tokens.system,
        "tokens.query": tokens.query,
        "tokens.retrieved": tokens.retrieved,
        "tokens.budget": tokens.budget,
        "tokens.budget_remaining": tokens.remaining,
        "chunks.kept": len(packing.kept),
        "chunks.cut": cut,
        "chunks.dropped": packing.dropped_count,
    }
    if not dropped and not cut:
        told = "nothing was found" if is_empty else "everything fits"
        log().debug("retrieval: %s", told, extra=extra)
        return
    what = "dropped %d lowest-relevance chunk%s" if dropped else "cut %d chunk%s"
    count = dropped or cut
    log().warning(
        f"Token budget exceeded: {what}",
        *(count, "" if count == 1 else "s"),
        extra=extra,
    )
