"""OpenAI: a client whose requests fit."""

from __future__ import annotations

from typing import TypeVar

from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter
from budgeteer.integrations._clients import fitted_client
from budgeteer.integrations._missing import missing
from budgeteer.integrations._requests import Fitter

try:
    from openai import AsyncOpenAI, OpenAI
except ImportError as _error:
    raise missing(__name__, _error) from None

C = TypeVar("C", OpenAI, AsyncOpenAI)

__all__ = ["fitted"]

_PATHS = ("/chat/completions", "/responses")


def fitted(
    client: C,
    *,
    model: str | ModelLimits | None = None,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    counter: Counter | None = None,
) -> C:
    """
    Return a copy of a client that makes each request fit before it is sent.

    The law: what is sent counts at most the window without the tokens of the answer, as by
    `fit_request`, which says what leaves first. This goes for chat completions and Responses,
    created, parsed and streamed. A request that fits is sent as it is, and everything else passes
    through. What left a conversation stays away while it grows, so that the provider's cache finds
    the beginning of the prompt: the last 64 conversations are remembered.

    The copy shares the connections of *client*, which stays as it was. Its own ``copy`` and
    ``with_options`` fit, too.

    Args:
        client: `openai.OpenAI` or `openai.AsyncOpenAI`, or one of their subclasses.
        model: The model whose window, costs and counter apply. None takes each request's.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's.
        max_output_tokens: The tokens to reserve for the answer, even where a request states more.
            None takes what a request states, 0 if it states nothing.
        counter: Counts the texts, as for `fit_request`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range. From a request: as
            from `fit_request`.
        BudgetExhaustedError: From a request: what must stay does not fit. Nothing is sent.

    Examples:
        >>> from openai import OpenAI
        >>> client = fitted(OpenAI(api_key="none", base_url="http://localhost:9"))
        >>> messages = [{"role": "user", "content": "Green tea. " * 200_000}]
        >>> try:
        ...     client.chat.completions.create(model="gpt-4o", messages=messages)
        ... except ValueError as error:
        ...     print(type(error).__name__)
        BudgetExhaustedError

    """
    fit = Fitter(model, context_window, max_output_tokens, counter)
    return fitted_client(client, (OpenAI, AsyncOpenAI), _PATHS, fit)
