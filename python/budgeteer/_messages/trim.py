"""Trims a chat history to its newest messages; tool calls stay with their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._messages.messages import (
    PER_REPLY,
    SYSTEM_ROLES,
    Counter,
    Message,
    MessageCosts,
    chosen,
    mapping,
    model_name,
    role_of,
)
from budgeteer.errors import BudgetExhaustedError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

M = TypeVar("M", bound=Message)

StartOn: TypeAlias = Literal["user"]
_STARTS: tuple[StartOn, ...] = get_args(StartOn)


def trim_messages(
    messages: Sequence[M],
    max_tokens: int,
    *,
    counter: Counter | None = None,
    model: str | ModelLimits | None = None,
    start_on: StartOn | None = None,
) -> list[M]:
    """
    Return the system messages and the newest others that fit, in their order.

    `count_messages` of the result is at most *max_tokens*. The messages are the caller's own
    objects. They are taken from the newest backwards, up to the first that does not fit; none is
    cut or skipped. A tool call and its results, parallel ones included, stay or go together with
    the messages between them, in OpenAI's shape (``tool_calls`` and the role ``tool``, or
    ``function_call`` and ``function``) and in Anthropic's (``tool_use`` and ``tool_result``). A
    message with a result whose call is missing is left out, as the APIs refuse it. A call without
    results stays, as they may still come.

    Each message is counted at most once; those older than the first that does not fit are not
    counted. If not even the newest fits, only the system messages are returned.

    Args:
        messages: Mappings with a ``role``, as for `count_messages`. Messages of the roles
            ``system`` and ``developer`` always stay.
        max_tokens: The most tokens of the result, the priming of the reply included.
        counter: Counts the texts, as for `count_messages`.
        model: A model whose own costs apply, as for `count_messages`.
        start_on: ``"user"`` leaves out all messages before the first one of the user, as some APIs
            require. None keeps them.

    Raises:
        BudgetExhaustedError: The system messages alone do not fit; the error states the figures.
        InvalidArgumentError: An argument has a wrong type or is out of range, or a message is not
            of a known shape; in messages that are not counted only the role is checked.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> messages = [
        ...     {"role": "system", "content": "Be brief."},
        ...     {"role": "user", "content": "What is green tea?"},
        ...     {"role": "assistant", "content": "Tea whose leaves are not oxidised."},
        ...     {"role": "user", "content": "And black tea?"},
        ... ]
        >>> [message["content"] for message in trim_messages(messages, 20)]
        ['Be brief.', 'And black tea?']
        >>> trim_messages(messages, 100) == messages
        True

    """
    name = model_name(model)
    meter = _Meter(chosen(counter, model))
    costs = MessageCosts(meter.count, name)
    items = _validate.batch("messages", messages)
    limit = _validate.tokens("max_tokens", max_tokens)
    if start_on is not None:
        _validate.choice("start_on", start_on, _STARTS)
    history = History.read("messages", items)
    needed = sum(costs.of(f"messages[{i}]", items[i]) for i in history.system)
    room = limit - PER_REPLY - needed
    if history.system and room < 0:
        raise BudgetExhaustedError(
            f"the system messages do not fit: max_tokens {limit} - {needed} for "
            f"{len(history.system)} system message{'' if len(history.system) == 1 else 's'} - "
            f"{PER_REPLY} for the reply = {room}"
        )

    def cost(place: int, left: int) -> int | None:
        meter.left = left
        try:
            return costs.of(f"messages[{place}]", items[place])
        except _OverError:
            return None

    kept = history.newest(room, cost, start_on)
    return [items[i] for i in sorted([*history.system, *kept])]


@dataclass(frozen=True, slots=True)
class History:
    """
    The places of the messages of a history, by the kinds that trimming distinguishes.

    Attributes:
        system: The system messages.
        others: The others, except those with a result whose call is missing.
        reach: For each of the others, the place of the first call whose result it has, or its own
            place.
        users: Those of the others that are the user's.

    """

    system: list[int]
    others: list[int]
    reach: dict[int, int]
    users: set[int]

    @classmethod
    def read(cls, name: str, messages: Sequence[Any]) -> History:
        """Sort *messages* into these kinds; *name* is theirs in an error."""
        history = cls([], [], {}, set())
        calls: dict[object, int] = {}
        caller: int | None = None  # the call that results without an id belong to
        for i, item in enumerate(messages):
            role = item.get("role") if type(item) is dict else None
            if type(role) is not str:
                role = role_of(f"{name}[{i}]", mapping(f"{name}[{i}]", item))
            if role in SYSTEM_ROLES:
                history.system.append(i)
                continue
            reach = i
            answers = _results(role, item)
            if answers:
                found = [caller if key is None else calls.get(key) for key in answers]
                if None in found:
                    continue
                reach = min(call for call in found if call is not None)
            history.others.append(i)
            history.reach[i] = reach
            if role == "user":
                history.users.add(i)
            asked = _calls(item)
            if asked:
                caller = i
                calls.update((key, i) for key in asked if key is not None)
            elif not answers:
                caller = None
        return history

    def newest(
        self,
        room: int,
        cost: Callable[[int, int], int | None],
        start_on: StartOn | None = None,
    ) -> list[int]:
        """
        Return the newest of the others that fit into *room* together, newest first.

        *cost* returns the tokens of the message at a place; it may return None if they exceed what
        is left.
        """
        kept: list[int] = []
        starts = 0  # how many of them may be kept if a user's message must come first
        whole = 0  # how many of them may be kept with all calls of their results
        reach = len(self.reach) and self.others[-1]
        for i in reversed(self.others):
            tokens = cost(i, room)
            if tokens is None or tokens > room:
                break
            room -= tokens
            kept.append(i)
            reach = min(reach, self.reach[i])
            if reach >= i:
                whole = len(kept)
                if i in self.users:
                    starts = whole
        return kept[: whole if start_on is None else starts]


class _OverError(Exception):
    """A text counts more than the room that is left."""


class _Meter:
    """Counts a message only up to the room that is left, if there is a limit."""

    __slots__ = ("_counter", "left")

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.left: int | None = None

    def count(self, text: str) -> int:
        if self.left is None:
            return self._counter.count(text)
        if self.left < 0:
            raise _OverError
        tokens = self._counter.count_till_limit(text, self.left)
        if tokens is None:
            raise _OverError
        self.left -= tokens
        return tokens


def _calls(message: Mapping[str, Any]) -> list[str | None]:
    """Return the id of each tool call in a message; None for a call without."""
    calls = message.get("tool_calls")
    keys = [_id(call, "id") for call in calls] if isinstance(calls, (list, tuple)) else []
    if message.get("function_call") is not None:
        keys.append(None)
    return keys + _ids_of_parts(message, "tool_use", "id")


def _results(role: str, message: Mapping[str, Any]) -> list[str | None]:
    """Return the id of the call of each result in a message; None for a result without."""
    own = [_id(message, "tool_call_id")] if role in ("tool", "function") else []
    return own + _ids_of_parts(message, "tool_result", "tool_use_id")


def _ids_of_parts(message: Mapping[str, Any], kind: str, key: str) -> list[str | None]:
    content = message.get("content")
    if not isinstance(content, (list, tuple)):
        return []
    return [
        _id(part, key)
        for part in content
        if isinstance(part, Mapping) and part.get("type") == kind
    ]


def _id(value: object, key: str) -> str | None:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else None
