"""Trims a chat history to its newest messages; tool calls stay with their results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._messages.history import History, StartOn
from budgeteer._messages.keep import Keeper, Kept, Rules
from budgeteer._messages.memory import Memory
from budgeteer._messages.messages import Counter, MessageCosts, chosen, model_name
from budgeteer._messages.previous import stable
from budgeteer._messages.shapes import AnyMessage, has_breakpoint
from budgeteer._messages.turn import Turn
from budgeteer._public import public
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

M = TypeVar("M", bound=AnyMessage)

_STARTS: tuple[StartOn, ...] = get_args(StartOn)

Pins: TypeAlias = Literal["cache_control"] | Collection[int] | Callable[[M], object]
"""Which messages stay: those with a cache breakpoint, places, or what a function says."""


@public("budgeteer.window")
class Trimmed(list[M]):
    """
    The messages that `trim_messages` kept. A list otherwise; the figures are those of its making.

    Attributes:
        total_tokens: What `count_messages` returns for it.
        stable_prefix_tokens: The tokens of its leading messages that are the same as the leading
            ones of *previous*: what a provider's cache may still have. 0 without *previous*.
        left_out: The places of the given messages that are not in it, ascending.
        shortened: The places of those that are in it with less of their tool results, ascending.

    Examples:
        >>> messages = [{"role": "user", "content": "How is the weather?"}]
        >>> sent = trim_messages(messages, 100)
        >>> sent == messages, sent.total_tokens, sent.left_out
        (True, 12, ())

    """

    __slots__ = ("_memory", "left_out", "shortened", "stable_prefix_tokens", "total_tokens")

    _memory: Memory
    total_tokens: int
    stable_prefix_tokens: int
    left_out: tuple[int, ...]
    shortened: tuple[int, ...]


def trim_messages(
    messages: Sequence[M],
    max_tokens: int,
    *,
    counter: Counter | None = None,
    model: str | ModelLimits | None = None,
    start_on: StartOn | None = None,
    previous: Sequence[AnyMessage] | None = None,
    step: float | None = None,
    keep_results: int | None = None,
    pins: Pins[M] = (),
) -> Trimmed[M]:
    r"""
    Return the system messages and the newest others that fit, in their order.

    `count_messages` of the result is at most *max_tokens*. The messages are the caller's own
    objects. They are taken from the newest backwards, up to the first that does not fit; none is
    skipped. A tool call and its results, parallel ones included, stay or go together with
    the messages between them, in OpenAI's shape (``tool_calls`` and the role ``tool``, or
    ``function_call`` and ``function``), in Anthropic's (``tool_use`` and ``tool_result``) and in
    the others that `count_messages` takes; reasoning in OpenAI's Responses stays with its item. A
    result whose call is missing is left out, as the APIs refuse it, and so is a message that holds
    nothing else; what else is in its message stays. A call without results stays, as they may
    still come.

    The newest message of the user that holds more than tool results always stays, and all that
    follows it; without one, the newest message. Where these do not fit, the longest texts of their
    tool results lose their middle, with a marker in its place, so that all of them share the room.
    Such a message is a copy that differs in these texts only.

    Each message is counted at most once, unless tool results are cut; those older than the first
    that does not fit are not counted.

    Providers cache the beginning of a prompt that stays the same. Give the list that this returned
    last time as *previous*, and while it and the new messages fit, it stays as it is and the new
    messages follow. Once they do not fit, the oldest messages leave until a part of the window is
    free, so that the next turns only add. Trimming what this returned once more changes nothing.
    A message that this list has, and that has not changed, is not counted again.

    Args:
        messages: Messages of any shape that `count_messages` takes: mappings with a ``role``,
            items of OpenAI's Responses, contents of Gemini, messages of LangChain and LlamaIndex,
            and objects that are like one. Those of the roles ``system`` and ``developer`` always
            stay.
        max_tokens: The most tokens of the result, the priming of the reply included.
        counter: Counts the texts, as for `count_messages`.
        model: A model whose own costs apply, as for `count_messages`.
        start_on: ``"user"`` leaves out all messages before the first one of the user, as some APIs
            require: all but the system messages, if there is none. None keeps them.
        previous: What this returned last time, or what was sent then; an empty list the first
            time. Its messages are found in *messages* as the same objects, else by their content;
            what is not found is passed over. None keeps as much as fits, whatever was kept before.
        step: The share of *max_tokens* that a cut frees, above 0 and below 1. None chooses it with
            *previous*, from the sizes of the turns, so that the prefix changes in as large a share
            of the turns as of the window is unused: at least an eighth, at most half of what the
            system messages leave. Without *previous* None frees nothing.
        keep_results: How many of the newest tool results stay. Where messages do not fit, the
            older results, except those to which the model has not replied, are replaced by
            ``[tool result left out]``, the oldest first, before any message leaves. None replaces
            none.
        pins: Messages that stay, and are neither masked nor cut: a collection of their places, a
            function that is true for them, or ``"cache_control"`` for those with a cache
            breakpoint in Anthropic's shape. The calls and results that they belong to stay as
            well, and with *start_on* the last message of the user before the first of them. A
            result without its call is left out even so.

    Returns:
        A list with the figures ``total_tokens``, ``stable_prefix_tokens``, ``left_out`` and
        ``shortened``.

    Raises:
        BudgetExhaustedError: The system messages, or what else always stays, do not fit, even with
            all tool results cut; the error states the figures.
        InvalidArgumentError: An argument has a wrong type or is out of range, or a message is not
            of a known shape; in messages that are not counted only the role is checked. Or
            *start_on* would leave out the newest message of the user, or a pinned one.
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
        >>> history, sent = [], []
        >>> for i in range(9):
        ...     history.append({"role": "user", "content": f"What is {i} and {i}?"})
        ...     sent = trim_messages(history, 60, previous=sent)
        ...     history.append({"role": "assistant", "content": f"It is {i + i}."})
        >>> [message["content"] for message in sent[:2]]
        ['It is 12.', 'What is 7 and 7?']
        >>> sent.total_tokens, sent.stable_prefix_tokens
        (45, 21)

    """
    name = model_name(model)
    counting = chosen(counter, model)
    meter = _Meter(counting)
    costs = MessageCosts(meter.count, name)
    given = _validate.batch("messages", messages)
    limit = _validate.tokens("max_tokens", max_tokens)
    if start_on is not None:
        _validate.choice("start_on", start_on, _STARTS)
    rules = Rules.of(previous, step, keep_results, _pinned(pins, given), start_on)
    memory = getattr(previous, "_memory", None)
    if memory is None or not memory.is_of(counting, name):
        memory = Memory(counting, name)
    resumes = memory.resumes(given, rules.previous or ())
    start = len(memory) if resumes else 0
    history = (memory.history if resumes else History()).grown("messages", given, start)
    items = history.complete(given)

    def cost(place: int, message: Any, left: int | None) -> int | None:
        tokens = memory.known(message)
        if tokens is not None:
            return tokens
        meter.left = left
        try:
            return costs.of(f"messages[{place}]", message)
        except _OverError:
            return None
        finally:
            meter.left = None

    known = memory.tokens if resumes else {}
    tokens = {i: known[i] if i in known else cost(i, items[i], None) or 0 for i in history.system}
    needed = sum(tokens.values())
    around = costs.around
    room = limit - around - needed
    if history.system and room < 0:
        raise BudgetExhaustedError(
            f"the system messages do not fit: max_tokens {limit} - {needed} for "
            f"{_number(len(history.system), 'system message')} - {around} for "
            f"{costs.family.around_name} = {room}"
        )

    args = ("messages", items, history, rules, costs, counting, cost)
    keeper = Keeper(*args, memory if resumes else None)
    kept = keeper.keep(limit, room)
    if kept.turn is not None and kept.turn.missing > 0:
        raise _exhausted(limit, needed, history, kept, kept.turn, costs)
    tokens.update(kept.tokens)
    places = sorted(tokens)
    trimmed = Trimmed([kept.messages.get(i, items[i]) for i in places])
    trimmed.total_tokens = sum(tokens.values()) + (around if places else 0)
    same_as = stable(trimmed, rules.previous or ())
    trimmed.stable_prefix_tokens = sum(tokens[i] for i in places[:same_as])
    trimmed.left_out = tuple([i for i in range(len(items)) if i not in tokens])
    shortened = {i: item for i, item in zip(places, trimmed, strict=True) if item is not given[i]}
    trimmed.shortened = tuple(shortened)
    if previous is not None:
        found = (given, history, trimmed, tokens, shortened, resumes)
        trimmed._memory = memory.after(*found)  # noqa: SLF001 - it is ours
    return trimmed


def _pinned(pins: Any, messages: Sequence[Any]) -> Collection[int]:
    """Return the places of the pinned messages."""
    if isinstance(pins, str):
        _validate.choice("pins", pins, ("cache_control",))
        pins = has_breakpoint
    if callable(pins):
        return [i for i, message in enumerate(messages) if pins(message)]
    if isinstance(pins, Mapping) or not isinstance(pins, Collection):
        raise InvalidArgumentError(
            "pins must be a collection of places, a function or 'cache_control', "
            f"not {_validate.type_name(pins)}"
        )
    places = []
    for pin in pins:
        place = _validate.as_int(pin)
        if place is None:
            raise InvalidArgumentError(
                f"pins must have ints, the places of messages, not {_validate.type_name(pin)}; "
                "a function may say which messages are pinned"
            )
        if not messages:
            raise InvalidArgumentError(
                "pins must have no places where there are no messages, "
                f"not {_validate.shown(place)}"
            )
        if not 0 <= place < len(messages):
            raise InvalidArgumentError(
                f"pins must have places from 0 to {len(messages) - 1}, those of the messages, "
                f"not {_validate.shown(place)}"
            )
        places.append(place)
    return places


def _exhausted(
    limit: int, system: int, history: History, kept: Kept, turn: Turn, costs: MessageCosts
) -> BudgetExhaustedError:
    """Return the error for a turn that does not fit, with the arithmetic."""
    place = max(turn.fixed) if history.question is None else history.question
    what = "the newest message and what it belongs to do not fit"
    if history.question is not None:
        what = "the newest message of the user and what follows it do not fit"
    rest = sum(turn.fixed.values()) - turn.fixed[place]
    pins, pinned = kept.pinned
    parts = [
        (system, _number(len(history.system), "system message")),
        (pinned, _number(pins, "pinned message")),
        (turn.fixed[place], f"messages[{place}]"),
        (rest, _number(len(turn.fixed) - 1, "other message")),
        (turn.least, _number(turn.results, "cut text") + " of tool results"),
        (costs.around, costs.family.around_name),
    ]
    shown = " - ".join(f"{tokens} for {name}" for tokens, name in parts if name[0] != "0")
    return BudgetExhaustedError(f"{what}: max_tokens {limit} - {shown} = {-turn.missing}")


def _number(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


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
