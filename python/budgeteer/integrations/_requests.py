"""Fits the requests of many conversations, each with what was sent for it before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import (
    SYSTEM_ROLES,
    Counter,
    chosen,
    count_messages,
    model_name,
)
from budgeteer._messages.previous import same, stable
from budgeteer._messages.views import view_of
from budgeteer._request.fit import fit_request
from budgeteer._request.read import settled
from budgeteer._request.result import FittedRequest

_KEYS = ("messages", "input", "contents")
CONVERSATIONS = 64
"""How many conversations are remembered, the latest used ones."""
ALIKE = 4
"""How many of these begin alike."""
MAX_BYTES = 32 << 20
"""How many bytes their requests may have together, about."""
_NODE_BYTES = 64
_FRAME = {"role": "assistant", "content": ""}


class Fitter:
    """
    `fit_request` with options chosen once, and the requests of before.

    A request goes on with the conversation of which it has all messages, and what left that one
    stays away. Conversations may begin alike: they are looked for by the model and the first
    message that is not the system's. Whatever is remembered, a request fits.
    """

    def __init__(
        self,
        model: str | ModelLimits | None,
        context_window: int | None,
        max_output_tokens: int | None,
        counter: Counter | None,
    ) -> None:
        model_name(model)
        if context_window is not None:
            _validate.tokens("context_window", context_window)
        if max_output_tokens is not None:
            _validate.tokens("max_output_tokens", max_output_tokens)
        self._counter = None if counter is None else chosen(counter, model)
        self._model, self._window = model, context_window
        self._output = max_output_tokens
        self._lock = Lock()
        self._sent: OrderedDict[int, _Sent] = OrderedDict()
        self._numbers = count()
        self._bytes = 0

    def count(self, messages: Sequence[Any], model: str, *, as_items: bool = False) -> int:
        """Return the tokens of *messages* in a request to *model*, as `counted` does."""
        asked = self._model or model
        return counted(messages, as_items=as_items, model=asked, counter=self._counter)

    def __call__(
        self, request: Mapping[str, Any], added: Callable[[FittedRequest], int] | None = None
    ) -> FittedRequest:
        """
        Return the request that fits; the errors are those of `fit_request`.

        *added* returns the tokens that a framework adds to what is left of the request. They fit,
        too: it is asked again for each request that has room for more of them.
        """
        request = settled(request)  # what can be read once only is read here, too
        fitted = self._fitted(request, 0)
        reserve = 0
        while added is not None and (more := added(fitted)) > reserve:
            reserve = more
            fitted = self._fitted(request, reserve)
        return fitted

    def _fitted(self, request: Mapping[str, Any], reserve: int) -> FittedRequest:
        output = self._output
        if reserve:
            stated = _validate.tokens("request['max_tokens']", request.get("max_tokens") or 0)
            output = (stated if output is None else output) + reserve
        said = _said(_items(request))
        beginning = _beginning(request, said)
        with self._lock:
            alike = [
                (number, sent)
                for number, sent in reversed(self._sent.items())
                if sent.beginning == beginning
            ]
        own = [one for one in alike if _goes_on(one[1].said, said)]
        number, before = max(own, key=lambda one: len(one[1].said), default=(None, None))
        if before is None and alike:
            # It has a part of what was sent for another one: as much of it as can be stays.
            before = alike[0][1]
        fitted = fit_request(
            request,
            model=self._model,
            context_window=self._window,
            max_output_tokens=output,
            counter=self._counter,
            previous=before and before.fitted,
        )
        sent = _Sent(beginning, said, fitted, _size(request))
        with self._lock:
            self._forget(alike[-1][0] if number is None and len(alike) >= ALIKE else number)
            self._sent[next(self._numbers)] = sent
            self._bytes += sent.size
            while len(self._sent) > CONVERSATIONS or self._bytes > MAX_BYTES:
                self._forget(next(iter(self._sent)))
        return fitted

    def _forget(self, number: int | None) -> None:
        if number is not None and (gone := self._sent.pop(number, None)) is not None:
            self._bytes -= gone.size


def _items_more(message: Any) -> int:
    """Return how many items more than one a message is."""
    view = view_of(message)
    if view is None or view.fields.get("role") != "assistant":
        return 0
    content = view.fields.get("content") or ()
    parts = 1 if isinstance(content, str) else len(content)
    parts += len(view.fields.get("tool_calls") or ()) + ("reasoning" in view.fields)
    return max(0, parts - 1)


def counted(messages: Sequence[Any], *, as_items: bool, **options: Any) -> int:
    """
    Return the tokens of *messages*, as `count_messages` does.

    With *as_items* what an answer has besides its first part is an item each, as OpenAI's
    Responses have it.
    """
    frames = [_FRAME] * sum(map(_items_more, messages)) if as_items else []
    return int(count_messages([*messages, *frames], **options))


class _Sent(NamedTuple):
    """What was said in a conversation, and what was sent last for it."""

    beginning: tuple[str, int]
    said: Sequence[Any]
    fitted: FittedRequest
    size: int


def _goes_on(before: Sequence[Any], said: Sequence[Any]) -> bool:
    """Return whether messages are those of a request before, and perhaps more."""
    # What differs does so at the end, mostly.
    ends_alike = 0 < len(before) <= len(said) and same(before[-1], said[len(before) - 1])
    return ends_alike and stable(before, said) == len(before)


def _size(request: Mapping[str, Any]) -> int:
    """Return about how many bytes the strings of a request take, and what holds them."""
    found, left = 0, [*request.values()]
    while left and found <= MAX_BYTES:
        value = left.pop()
        found += _NODE_BYTES
        if isinstance(value, (str, bytes, bytearray)):
            found += len(value)
        elif isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, (list, tuple)):
            left += value
        else:
            left += getattr(value, "__dict__", {}).values()
    return found


def _items(request: Mapping[str, Any]) -> Sequence[Any]:
    found = next((request[key] for key in _KEYS if request.get(key) is not None), ())
    return found if isinstance(found, (list, tuple)) else (found,)


def _said(items: Sequence[Any]) -> Sequence[Any]:
    """Return the messages that are not the system's, which may change from call to call."""
    return [item for item in items if not _is_system(item)]


def _is_system(item: Any) -> bool:
    """Return whether a message is the system's, by what tells it without a view."""
    if isinstance(item, Mapping):
        role = item.get("role")
    else:
        role = getattr(item, "type", None)  # LangChain's; of OpenAI's items it is "message"
        role = getattr(item, "role", None) if role in (None, "message") else role
    role = getattr(role, "value", role)
    return isinstance(role, str) and role in SYSTEM_ROLES


def _beginning(request: Mapping[str, Any], said: Sequence[Any]) -> tuple[str, int]:
    """Return the model, and a hash of the first message of those that were *said*."""
    first = said[0] if said else None
    view = None if first is None else view_of(first)
    content = first if view is None else view.fields.get("content")
    try:
        shown = repr(content)
    except RecursionError:  # it is refused where it is counted
        shown = ""
    return str(request.get("model")), hash(shown)


def sent_of(fitted: FittedRequest, key: str) -> list[tuple[int, Any, bool]]:
    """Return the messages that stay: the place of each, what is sent, whether it was changed."""
    past = fitted._past
    if past is None:
        return [(i, item, False) for i, item in enumerate(fitted.request[key])]
    places = [i for i, is_kept in enumerate(past.kept) if is_kept]
    pairs = zip(places, past.sent, strict=True)
    return [(i, item, item is not past.given[i]) for i, item in pairs]


def tool_for(model: str, name: str, description: str | None, schema: Any) -> dict[str, Any]:
    """Return a tool as the provider of *model* is sent it: Claude's rule is another."""
    told = {"name": name, **({"description": description} if description else {})}
    if "claude" in model:
        return {**told, "input_schema": schema}
    return {"type": "function", "function": {**told, "parameters": schema}}
