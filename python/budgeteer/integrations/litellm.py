"""
litellm: calls of any provider that fit.

`BudgetHook` fits what is awaited: ``litellm.acompletion``, a ``Router``, and the proxy. litellm
asks no hook before a call that is not awaited: `fitted` wraps a function instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, iscoroutinefunction, signature
from itertools import takewhile
from typing import Any, TypeVar

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations._missing import missing
from budgeteer.integrations._requests import Fitter

try:
    from litellm.exceptions import BadRequestError, ContextWindowExceededError
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as _error:
    raise missing(__name__, _error) from None

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["BudgetHook", "fitted"]

_KEYS = {
    "completion": "messages",
    "acompletion": "messages",
    "anthropic_messages": "messages",
    "responses": "input",
    "aresponses": "input",
}
"""The kinds of calls that have a window, and the key of their messages."""
_PLACES = {
    "completion": ("model", "messages"),
    "acompletion": ("model", "messages"),
    "responses": ("input", "model"),
    "aresponses": ("input", "model"),
}
"""What litellm's calls of these names take by its place."""
_PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
"""The kinds of parameters that may be given by their place."""


class BudgetHook(CustomLogger):
    """
    Makes each call that is awaited fit before it is sent.

    The law: what is sent counts at most the window without the tokens of the answer, as by
    `fit_request`, which says what leaves first. It goes for chat completions, Responses and
    Anthropic's messages; other calls pass. The model is the one that a ``Router`` or the proxy has
    chosen. What left a conversation stays away while it grows, so that the provider's cache finds
    the beginning of the prompt: the last 64 conversations are remembered.

    Add it to ``litellm.callbacks``, or name it in the proxy's ``callbacks``.

    Args:
        model: The model whose window, costs and counter apply. None takes each call's.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's.
        max_output_tokens: The tokens to reserve for the answer, even where a request states more.
            None takes what a call states, 0 if it states nothing.
        counter: Counts the texts, as for `fit_request`. None takes the model's.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range. From a call: as from
            `fit_request`, or its messages are not given by name, where no hook sees them. It is a
            ``BadRequestError`` of litellm's then: it is not tried again, and the proxy answers
            status 400.
        BudgetExhaustedError: From a call: what must stay does not fit. Nothing is sent. It is a
            ``ContextWindowExceededError`` of litellm's too, for which a ``Router`` goes to its
            ``context_window_fallbacks``.

    Examples:
        >>> import litellm
        >>> hook = BudgetHook(context_window=8_000)
        >>> litellm.callbacks.append(hook)
        >>> litellm.callbacks.remove(hook)

    """

    def __init__(
        self,
        *,
        model: str | ModelLimits | None = None,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        counter: Counter | None = None,
    ) -> None:
        super().__init__()
        self._fit = Fitter(model, context_window, max_output_tokens, counter)

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """
        Return the arguments of a call that fit; litellm awaits this before it sends them.

        Args:
            kwargs: The arguments of the call.
            call_type: What kind of call it is.

        Examples:
            >>> import asyncio
            >>> messages = [{"role": "user", "content": text} for text in ("tea " * 99, "Rye?")]
            >>> hook = BudgetHook(model="gpt-4o", context_window=20)
            >>> asked = hook.async_pre_call_deployment_hook({"messages": messages}, "acompletion")
            >>> asyncio.run(asked)["messages"]
            [{'role': 'user', 'content': 'Rye?'}]

        """
        key = _KEYS.get(getattr(call_type, "value", call_type))
        if key is None:
            return None
        about = (str(kwargs.get("model") or ""), str(kwargs.get("custom_llm_provider") or ""))
        if kwargs.get(key) is None:
            message = f"{key} must be given by name, and not None: a hook sees no others"
            raise _RefusedError(message, *about)
        try:
            return self._fit(kwargs).request
        except BudgetExhaustedError as error:
            raise _ExceededError(str(error), *about) from None
        except InvalidArgumentError as error:
            raise _RefusedError(str(error), *about) from None


class _ExceededError(ContextWindowExceededError, BudgetExhaustedError):
    """What must stay of a call does not fit, as litellm knows it."""


class _RefusedError(BadRequestError, InvalidArgumentError):
    """A call that cannot be read, as litellm knows it."""


def fitted(
    function: F,
    *,
    model: str | ModelLimits | None = None,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    counter: Counter | None = None,
) -> F:
    """
    Return a function that makes its arguments fit, and then calls *function* with them.

    The law is that of `BudgetHook`. With ``fallbacks`` a call fits each of the models.

    Args:
        function: ``litellm.completion``, ``litellm.responses``, their asynchronous twins, a
            ``Router``'s methods of these names, or any function that takes ``messages`` or
            ``input`` as these do.
        model: As for `BudgetHook`.
        context_window: As for `BudgetHook`.
        max_output_tokens: As for `BudgetHook`.
        counter: As for `BudgetHook`.

    Raises:
        InvalidArgumentError: As for `BudgetHook`, or *function* takes no messages.
        BudgetExhaustedError: As for `BudgetHook`.

    Examples:
        >>> import litellm
        >>> completion = fitted(litellm.completion, context_window=20)
        >>> messages = [{"role": "user", "content": text} for text in ("tea " * 99, "Which tea?")]
        >>> completion("gpt-4o", messages, mock_response="Rye.").choices[0].message.content
        'Rye.'

    """
    if not callable(function):
        raise InvalidArgumentError(
            f"function must be a function, not {_validate.type_name(function)}"
        )
    name = getattr(function, "__name__", "")
    if "embedding" in name:
        raise InvalidArgumentError(
            f"function must take one request, and {name} takes texts, each for itself"
        )
    taken = _signature_of(function)
    kinds = {name: it.kind for name, it in taken.parameters.items()}
    if not {"messages", "input"} & {*kinds}:
        raise InvalidArgumentError("function must take messages or input, as litellm.completion")
    fit = Fitter(model, context_window, max_output_tokens, counter)

    places = [name for name in kinds if kinds[name] in _PLACED]

    def fitting(
        args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that fit, each given as before: litellm reads some by name only."""
        taken.bind(*args, **kwargs)  # refuses what the function would refuse
        placed = dict(zip(places, args, strict=False))
        made = fit({**placed, **kwargs}).request
        for name in _fallbacks(made):
            made = {**fit({**made, "model": name}).request, "model": made.get("model")}
        front = [*takewhile(made.__contains__, placed)]  # behind one that leaves, by name
        named = [name for name in (*[*placed][len(front) :], *kwargs) if name in made]
        rest = args[len(placed) :]
        return (*(made[name] for name in front), *rest), {name: made[name] for name in named}

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = fitting(args, kwargs)
        return function(*args, **kwargs)

    @wraps(function)
    async def acall(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = fitting(args, kwargs)
        return await function(*args, **kwargs)

    # What awaits coroutine functions only, asks of this one, too.
    return acall if iscoroutinefunction(function) else call  # type: ignore[return-value]


def _fallbacks(asked: Mapping[str, Any]) -> list[Any]:
    """Return the names of the models that litellm asks where the model of a call fails."""
    given = asked.get("fallbacks")
    found = given if isinstance(given, list) else []
    own = asked.get("model")
    return [one.get("model", own) if isinstance(one, dict) else one for one in found]


def _signature_of(function: Callable[..., Any]) -> Signature:
    """Return what a function takes, nothing for one of Python's own that does not say."""
    try:
        found = signature(function)
    except ValueError:
        return Signature()
    names = _PLACES.get(getattr(function, "__name__", ""))
    kinds = {given.kind for given in found.parameters.values()}
    if names is None or Parameter.VAR_KEYWORD not in kinds or {*names} & {*found.parameters}:
        return found
    # A router's methods take any arguments, and do not say which.
    has_places = Parameter.VAR_POSITIONAL in kinds
    kind = Parameter.POSITIONAL_OR_KEYWORD if has_places else Parameter.KEYWORD_ONLY
    *own, others = (
        given for given in found.parameters.values() if given.kind is not Parameter.VAR_POSITIONAL
    )
    named = [Parameter(name, kind, default=None) for name in names]
    return Signature([*own, *named, others])
