"""The budget that a window leaves for retrieval."""

from __future__ import annotations

from budgeteer import _validate
from budgeteer._count.resolve import get_counter
from budgeteer._messages.messages import Counter
from budgeteer.errors import InputValidationError
from budgeteer.window._negotiation import text_or_tokens


def retrieval_budget(
    *,
    context_window: int,
    system_tokens: int | str = 0,
    max_output_tokens: int = 0,
    query_tokens: int | str = 0,
    counter: Counter = "o200k_base",
) -> int:
    """
    Return how many tokens, at least 1, a window leaves for retrieved chunks.

    Call it before retrieving: it refuses a query that leaves nothing.

    Args:
        context_window: The window of the model, ``limits.context_window`` of `model_limits`. Where
            the model also has a limit of the input,
            ``min(limits.context_window, limits.max_input_tokens + max_output_tokens)``, which
            leaves no more than both allow. It goes for every model.
        system_tokens: The tokens of the system prompt, or its text.
        max_output_tokens: The tokens reserved for the answer.
        query_tokens: The tokens of the query, or its text.
        counter: Counts the texts, as for `get_counter`.

    Raises:
        InputValidationError: Nothing is left; the message has the arithmetic.
        InvalidArgumentError: An argument has a wrong type or is out of range.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> retrieval_budget(
        ...     context_window=4096, system_tokens=200, max_output_tokens=500, query_tokens=50
        ... )
        3346
        >>> retrieval_budget(context_window=4096, query_tokens="What is green tea?")
        4091
        >>> from budgeteer.window import model_limits
        >>> limits = model_limits("gpt-5")
        >>> limits.context_window, limits.max_input_tokens
        (400000, 272000)
        >>> window = min(limits.context_window, limits.max_input_tokens + 500)
        >>> retrieval_budget(context_window=window, system_tokens=200, max_output_tokens=500)
        271800
        >>> retrieval_budget(context_window=4096, system_tokens=200, query_tokens=4_000)
        Traceback (most recent call last):
        budgeteer.errors.InputValidationError: nothing is left for retrieval: context_window 4096 - system_tokens 200 - max_output_tokens 0 - query_tokens 4000 = -104

    """  # noqa: E501 - one message
    counting = get_counter(counter)
    window = _validate.tokens("context_window", context_window)
    system = text_or_tokens("system_tokens", system_tokens, counting)
    output = _validate.tokens("max_output_tokens", max_output_tokens)
    query = text_or_tokens("query_tokens", query_tokens, counting)
    left = window - system - output - query
    if left <= 0:
        raise InputValidationError(
            f"nothing is left for retrieval: context_window {window} - system_tokens {system} - "
            f"max_output_tokens {output} - query_tokens {query} = {left}"
        )
    return left
