"""Trims a chat history to its newest messages; tool calls stay with their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._messages.messages import (
    PER_REPLY,
    SYSTEM_ROLES,
    Counter,
    MessageCosts,
    chosen,
    model_name,
    role_of,
)
from budgeteer._messages.shapes import RESULT_ROLES, AnyMessage, fields_of, mapping
from budgeteer._messages.turn import Turn
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

M = TypeVar("M", bound=AnyMessage)

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
    r"""
    Return the system messages and the newest others that fit, in their order.

    `count_messages` of the result is at most *max_tokens*. The messages are the caller's own
    objects. They are taken from the newest backwards, up to the first that does not fit; none is
    skipped. A tool call and its results, parallel ones included, stay or go together with
    the messages between them, in OpenAI's shape (``tool_calls`` and the role ``tool``, or
    ``function_call`` and ``function``) and in Anthropic's (``tool_use`` and ``tool_result``). A
    message with a result whose call is missing is left out, as the APIs refuse it. A call without
    results stays, as they may still come.

    The newest message of the user that holds more than tool results always stays, and all that
    follows it; without one, the newest message. Where these do not fit, the longest texts of their
    tool results lose their middle, with a marker in its place, so that all of them share the room.
    Such a message is a copy that differs in these texts only.

    Each message is counted at most once, unless tool results are cut; those older than the first
    that does not fit are not counted.

    Args:
        messages: Mappings with a ``role``, or objects that are like one, as for `count_messages`.
            Messages of the roles ``system`` and ``developer`` always stay.
        max_tokens: The most tokens of the result, the priming of the reply included.
        counter: Counts the texts, as for `count_messages`.
        model: A model whose own costs apply, as for `count_messages`.
        start_on: ``"user"`` leaves out all messages before the first one of the user, as some APIs
            require: all but the system messages, if there is none. None keeps them.

    Raises:
        BudgetExhaustedError: The system messages, or what else always stays, do not fit, even with
            all tool results cut; the error states the figures.
        InvalidArgumentError: An argument has a wrong type or is out of range, or a message is not
            of a known shape; in messages that are not counted only the role is checked. Or
            *start_on* would leave out the newest message of the user.
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
        >>> call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        >>> messages = [
        ...     {"role": "user", "content": "What does the log say?"},
        ...     {"role": "assistant", "content": None, "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "a", "content": "Started. " * 500 + "Failed."},
        ... ]
        >>> trim_messages(messages, 45)[-1]["content"]
        'Started. Started. Started.\n[...truncated...]\n Started. Started. Failed.'

    """
    name = model_name(model)
    counting = chosen(counter, model)
    meter = _Meter(counting)
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
            f"{_number(len(history.system), 'system message')} - {PER_REPLY} for the reply = "
            f"{room}"
        )

    def cost(place: int, left: int) -> int | None:
        meter.left = left
        try:
            return costs.of(f"messages[{place}]", items[place])
        except _OverError:
            return None

    latest = history.turn("messages", start_on)
    kept = history.newest(room, cost, latest, start_on)
    if kept is not None:
        return [items[i] for i in sorted([*history.system, *kept])]
    meter.left = None
    turn = Turn("messages", items, latest, costs, counting, room)
    if turn.missing > 0:
        raise _exhausted(limit, needed, history, turn)
    made, _ = turn.cut()
    return [made.get(i, items[i]) for i in sorted([*history.system, *made])]


def _exhausted(limit: int, system: int, history: History, turn: Turn) -> BudgetExhaustedError:
    """Return the error for a turn that does not fit, with the arithmetic."""
    place = max(turn.fixed) if history.question is None else history.question
    what = "the newest message and what it belongs to do not fit"
    if history.question is not None:
        what = "the newest message of the user and what follows it do not fit"
    rest = sum(turn.fixed.values()) - turn.fixed[place]
    parts = [
        (system, _number(len(history.system), "system message")),
        (turn.fixed[place], f"messages[{place}]"),
        (rest, _number(len(turn.fixed) - 1, "other message")),
        (turn.least, _number(turn.results, "cut text") + " of tool results"),
        (PER_REPLY, "the reply"),
    ]
    shown = " - ".join(f"{tokens} for {name}" for tokens, name in parts if name[0] != "0")
    return BudgetExhaustedError(f"{what}: max_tokens {limit} - {shown} = {-turn.missing}")


def _number(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


@dataclass(slots=True)
class History:
    """
    The places of the messages of a history, by the kinds that trimming distinguishes.

    Attributes:
        system: The system messages.
        others: The others, except those with a result whose call is missing.
        reach: For each of the others, the place of the first call whose result it has, or its own
            place.
        users: Those of the others that are the user's.
        question: The newest of these that holds more than tool results; None if there is none.

    """

    system: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    reach: dict[int, int] = field(default_factory=dict)
    users: set[int] = field(default_factory=set)
    question: int | None = None

    @classmethod
    def read(cls, name: str, messages: Sequence[Any]) -> History:
        """Sort *messages* into these kinds; *name* is theirs in an error."""
        history = cls()
        calls: dict[object, int] = {}
        caller: int | None = None  # the call that results without an id belong to
        for i, item in enumerate(messages):
            role = item.get("role") if type(item) is dict else None
            fields = item
            if type(role) is not str:
                fields = mapping(f"{name}[{i}]", item)
                role = role_of(f"{name}[{i}]", fields)
            if role in SYSTEM_ROLES:
                history.system.append(i)
                continue
            reach = i
            answers = _results(role, fields)
            if answers:
                found = [caller if key is None else calls.get(key) for key in answers]
                if None in found:
                    continue
                reach = min(call for call in found if call is not None)
            history.others.append(i)
            history.reach[i] = reach
            if role == "user":
                history.users.add(i)
                content = fields.get("content")
                parts = len(content) if isinstance(content, (list, tuple)) else 0
                if not answers or len(answers) < parts:
                    history.question = i
            asked = _calls(fields)
            if asked:
                caller = i
                calls.update((key, i) for key in asked if key is not None)
            elif not answers:
                caller = None
        return history

    def turn(self, name: str, start_on: StartOn | None = None) -> list[int]:
        """
        Return the places of the others that must stay: the question and all that follows it.

        They begin where a history may begin. Without a question they are the newest of the others
        and what it belongs to, or none where a user's message must come first.
        """
        last = self.others[-1] if self.others and start_on is None else None
        last = last if self.question is None else self.question
        if last is None:
            return []
        reach = self.others[-1]
        for at in range(len(self.others) - 1, -1, -1):
            i = self.others[at]
            reach = min(reach, self.reach[i])
            if i <= last and reach >= i and (start_on is None or i in self.users):
                return self.others[at:]
        raise InvalidArgumentError(
            f"start_on {start_on!r} would leave out {name}[{last}], the newest message of the "
            "user: it, or what follows it, has the result of a call, and no message of the user "
            "is before that call"
        )

    def newest(
        self,
        room: int,
        cost: Callable[[int, int], int | None],
        turn: Sequence[int],
        start_on: StartOn | None = None,
    ) -> list[int] | None:
        """
        Return the newest of the others that fit into *room* together, newest first.

        None if those of the *turn* do not. *cost* returns the tokens of the message at
        a place; it may return None if they exceed what is left.
        """
        kept: list[int] = []
        starts = 0  # how many of them may be kept if a user's message must come first
        whole = 0  # how many of them may be kept with all calls of their results
        reach = self.others[-1] if self.others else 0
        for i in reversed(self.others):
            tokens = cost(i, room)
            if tokens is None or tokens > room:
                if turn and i >= turn[0]:
                    return None
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
    own = [_id(message, "tool_call_id")] if role in RESULT_ROLES else []
    return own + _ids_of_parts(message, "tool_result", "tool_use_id")


def _ids_of_parts(message: Mapping[str, Any], kind: str, key: str) -> list[str | None]:
    content = message.get("content")
    if not isinstance(content, (list, tuple)):
        return []
    found = (fields_of(part) for part in content)
    return [_id(part, key) for part in found if part is not None and part.get("type") == kind]


def _id(value: object, key: str) -> str | None:
    found = (fields_of(value) or {}).get(key)
    return found if isinstance(found, str) else None
