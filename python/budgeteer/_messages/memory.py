"""The tokens of messages that were counted for the list that trimming returned last time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from budgeteer._count.counter import TokenCounter

_DEEPEST = 20


class Memory:
    """
    The tokens of messages by one counter, each with its content at that time.

    A message may be changed by its owner. So its tokens are known only while it is the same object
    with the same content, which takes less time to see than to count it again.
    """

    __slots__ = ("_counter", "_known", "_model")

    def __init__(self, counter: TokenCounter, model: str) -> None:
        """Begin with nothing, for a counter and a model's own costs."""
        self._counter, self._model = counter, model
        self._known: dict[int, tuple[Any, object, int]] = {}

    def is_of(self, counter: TokenCounter, model: str) -> bool:
        """Return whether it is of that counter and model."""
        return self._counter == counter and self._model == model

    def tokens(self, message: Any) -> int | None:
        """Return the tokens of a message; None if they are not known."""
        known = self._known.get(id(message))
        if known is None or known[0] is not message or known[1] != _frozen(message):
            return None
        return known[2]

    def after(self, counted: Iterable[tuple[Any, int]]) -> Memory:
        """Return what to remember next: these messages and their tokens."""
        memory = Memory(self._counter, self._model)
        for message, tokens in counted:
            known = self._known.get(id(message))
            if known is None or known[0] is not message or known[2] != tokens:
                known = message, _frozen(message), tokens
            if known[1] is not None:  # it can be seen whether it changes
                memory._known[id(message)] = known
        return memory

    def __reduce__(self) -> tuple[Any, ...]:
        """Forget all: another process has other objects."""
        return Memory, (self._counter, self._model)


def _frozen(value: Any, depth: int = 0) -> object:
    """Return the content of a value that can be compared; None if it may hide a change."""
    kind = type(value)
    if kind is str:
        return value
    if kind is dict:
        items: list[object] = []
        for key, item in value.items():
            content = item if type(item) is str else _frozen(item, depth + 1)
            if content is None or type(key) is not str:
                return None
            items.append(key)
            items.append(content)
        return tuple(items) if depth < _DEEPEST else None
    if kind is list or kind is tuple:
        content = tuple([_frozen(item, depth + 1) for item in value])
        return (kind, *content) if depth < _DEEPEST and None not in content else None
    if value is None or kind in (bool, int, float):
        return kind, value
    return None
