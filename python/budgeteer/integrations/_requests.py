"""Fits the requests of many conversations, each with what was sent for it before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import SYSTEM_ROLES, Counter, chosen, model_name
from budgeteer._messages.views import view_of
from budgeteer._request.fit import fit_request
from budgeteer._request.result import FittedRequest

_KEYS = ("messages", "input", "contents")
CONVERSATIONS = 64
"""How many conversations are remembered, the latest used ones."""
MAX_BYTES = 32 << 20
"""How many bytes their requests may have together, about."""
_NODE_BYTES = 64


class Fitter:
    """
    `fit_request` with options chosen once, and the requests of before.

    A conversation is known by its model and its first message that is not the system's. Whatever
    is remembered, a request fits; it only decides how much of the prompt's beginning stays.
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
        self._sent: OrderedDict[tuple[str, int], tuple[FittedRequest, int]] = OrderedDict()
        self._bytes = 0

    def __call__(self, request: Mapping[str, Any]) -> FittedRequest:
        """Return the request that fits; the errors are those of `fit_request`."""
        key = _conversation(request)
        with self._lock:
            previous, _ = self._sent.get(key, (None, 0))
        fitted = fit_request(
            request,
            model=self._model,
            context_window=self._window,
            max_output_tokens=self._output,
            counter=self._counter,
            previous=previous,
        )
        size = _size(request)
        with self._lock:
            _, before = self._sent.pop(key, (None, 0))
            self._sent[key] = (fitted, size)
            self._bytes += size - before
            while len(self._sent) > CONVERSATIONS or self._bytes > MAX_BYTES:
                _, (_, gone) = self._sent.popitem(last=False)
                self._bytes -= gone
        return fitted


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


def _conversation(request: Mapping[str, Any]) -> tuple[str, int]:
    """Return what tells the conversation of a request from others."""
    found = next((request[key] for key in _KEYS if request.get(key) is not None), ())
    items = found if isinstance(found, (list, tuple)) else (found,)
    for item in items:
        view = view_of(item)
        fields = {"content": item} if view is None else view.fields
        if fields.get("role") not in SYSTEM_ROLES:
            return str(request.get("model")), hash(repr(fields.get("content")))
    return str(request.get("model")), 0


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
