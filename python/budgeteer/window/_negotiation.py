"""
Divides a model's window between the input and the answer, as flexbox does with a line.

The input keeps its size; the answer shrinks to the rest, but never below a floor. The number of
messages is decided before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits, model_limits
from budgeteer._count.resolve import get_counter
from budgeteer._log import log
from budgeteer._messages.messages import (
    Counter,
    Message,
    MessageCount,
    count_messages,
    count_tools,
    has_system,
)
from budgeteer._messages.shapes import AnyMessage, mapping
from budgeteer._public import public
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

Auto: TypeAlias = Literal["auto"]
_AUTO: tuple[Auto, ...] = get_args(Auto)

KNOWN_MARGIN, UNKNOWN_MARGIN = 50, 200
SYSTEM_TOKENS = 500
_DAY = 86_400.0
_TIME = "a datetime, ISO 8601 text or seconds since 1970"
_TIMES = ("created_at", "createdAt", "timestamp")


@public("budgeteer.window")
@dataclass(frozen=True, slots=True)
class Negotiation:
    """
    How a window was divided.

    Attributes:
        model: The name of the model.
        context_window: Its window.
        input_token_count: The tokens of messages, system prompt, memories and tools.
        available_tokens: The window less the input and the margin; negative if they exceed it.
        adjusted_max_output_tokens: The most tokens of the answer.
        requested_max_output_tokens: The tokens requested for it.
        was_reduced: Whether the answer gets fewer than requested.
        overflows_window: Whether input, answer and margin exceed the window, because the floor was
            enforced, or the input exceeds the model's input limit.
        message_count: The number of messages.
        memory_count: The number of memories chosen.
        memory_indices: Their places in *memories*, ascending; empty if a number was given.
        safety_margin: The tokens kept free.
        system_tokens: The tokens of the system prompt.
        memory_tokens: The tokens of the chosen memories.
        tool_tokens: The tokens of the tool schemas.
        is_exact: Whether nothing was guessed: the model is known, the system prompt is counted or
            stated, and an exact counter counted messages, memories and tools, if there are any;
            the messages by a rule that is exact, as `MessageCount` has it.

    Examples:
        >>> negotiate(model="gpt-4o", messages=4, max_output_tokens=1_000).input_token_count
        1500

    """

    model: str
    context_window: int
    input_token_count: int
    available_tokens: int
    adjusted_max_output_tokens: int
    requested_max_output_tokens: int
    was_reduced: bool
    overflows_window: bool
    message_count: int
    memory_count: int
    memory_indices: tuple[int, ...]
    safety_margin: int
    system_tokens: int
    memory_tokens: int
    tool_tokens: int
    is_exact: bool

    def to_dict(self) -> dict[str, Any]:
        """
        Return a dict of all attributes that JSON can hold.

        Examples:
            >>> answer = negotiate(model="gpt-4", messages=1, max_output_tokens=600).to_dict()
            >>> answer["adjusted_max_output_tokens"], answer["memory_indices"]
            (600, [])

        """
        return {**asdict(self), "memory_indices": list(self.memory_indices)}

    def _repr_html_(self) -> str:
        """Show the division in a notebook."""
        from budgeteer._report.small import small
        from budgeteer.window._shown import report_of

        return small(report_of(self))


def negotiate(
    *,
    model: str | ModelLimits,
    messages: int | Sequence[AnyMessage],
    max_output_tokens: int,
    system_tokens: int | str | None = None,
    memories: int | Sequence[Any] = (),
    tools: Sequence[Message] = (),
    safety_margin: int | Auto = 100,
    min_output_tokens: int = 500,
    tokens_per_message: int = 250,
    counter: Counter | None = None,
    min_importance: float = 0.6,
    max_memory_age_days: float = 7.0,
    max_memory_tokens: int | None = None,
    cap_output: bool = False,
    now: float | datetime | None = None,
    strict: bool = False,
) -> Negotiation:
    """
    Return how many tokens the answer may have, beside an input, in the window of a model.

    The answer gets the tokens requested, or the rest of the window after input and margin if that
    is less, but at least *min_output_tokens*. If this floor exceeds the rest, or the input exceeds
    the model's input limit, ``overflows_window`` is true. A request below the floor is raised to
    it, which is no reduction.

    The logger ``budgeteer`` logs the result at INFO, or as a WARNING with ``REDUCED``. Its figures
    are in ``extra``, with a ``code``: ``output_negotiated`` or ``output_reduced``.

    Args:
        model: A name, as for `model_limits`, or limits of your own.
        messages: The messages, or their number.
        max_output_tokens: The tokens requested for the answer.
        system_tokens: The tokens of a system prompt beside *messages*, or its text. None is 0 if
            *messages* has a system message, else a guess: 500.
        memories: Texts, or mappings with ``content`` or ``text`` and, if you like, ``importance``
            and an age: ``age_days``, or ``created_at``, ``createdAt`` or ``timestamp`` as a
            datetime, its ISO form or seconds since 1970. A memory is chosen if its importance is
            above *min_importance* and its age at most *max_memory_age_days*; a missing figure does
            not exclude it. Or the number of memories, which costs no tokens.
        tools: Tool schemas, as for `count_tools`.
        safety_margin: The tokens to keep free; ``auto`` is 50 for a known model, 200 otherwise.
        min_output_tokens: The floor of the answer.
        tokens_per_message: The tokens of a message that is not counted.
        counter: Counts messages, memories, tools and a text given as *system_tokens*. None takes
            *tokens_per_message* for each message and ``chars_div4`` for all else.
        min_importance: See *memories*.
        max_memory_age_days: See *memories*.
        max_memory_tokens: The most tokens of all memories; the most important that fit are chosen.
            None for no limit.
        cap_output: Whether the model's own ``max_output_tokens`` also bounds the answer, and the
            floor with it.
        now: The time to compute ages at; None is the present.
        strict: Whether to raise if ``overflows_window`` would be true.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        BudgetExhaustedError: *strict*, and the window overflows; the message has the arithmetic.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> reduced = negotiate(model="gpt-3.5-turbo", messages=50, max_output_tokens=5_000)
        >>> reduced.input_token_count, reduced.available_tokens
        (13000, 3285)
        >>> reduced.adjusted_max_output_tokens, reduced.was_reduced, reduced.overflows_window
        (3285, True, False)
        >>> messages = [{"role": "user", "content": "Hello, world!"}]
        >>> counted = negotiate(
        ...     model="gpt-4o",
        ...     messages=messages,
        ...     max_output_tokens=900,
        ...     system_tokens="Be brief.",
        ...     counter="gpt-4o",
        ... )
        >>> counted.input_token_count, counted.system_tokens, counted.is_exact
        (14, 3, True)

    """
    limits = model_limits(model)
    requested = _validate.tokens("max_output_tokens", max_output_tokens)
    margin = _margin(safety_margin, limits)
    floor = _validate.tokens("min_output_tokens", min_output_tokens)
    per_message = _validate.tokens("tokens_per_message", tokens_per_message)
    cap_output = _validate.flag("cap_output", cap_output)
    strict = _validate.flag("strict", strict)
    counting = get_counter("chars_div4" if counter is None else counter)
    system = (
        None if system_tokens is None else text_or_tokens("system_tokens", system_tokens, counting)
    )
    messages = _number_or_listed("messages", messages)  # once: an iterator cannot be read again
    message_count, message_tokens = _messages(messages, per_message, counter, limits)
    is_among = not _is_number(messages) and has_system(messages)  # type: ignore[arg-type]
    is_guessed = system is None and not is_among
    if system is None:
        system = 0 if is_among else SYSTEM_TOKENS
    chosen, memory_tokens, memory_count, has_memories = _memories(
        memories,
        counting.count,
        _validate.number("min_importance", min_importance),
        _validate.number("max_memory_age_days", max_memory_age_days),
        None
        if max_memory_tokens is None
        else _validate.tokens("max_memory_tokens", max_memory_tokens),
        _seconds("now", time.time() if now is None else now),
    )
    tool_tokens = count_tools(tools, counter=counting, has_system_message=is_among or system > 0)

    taken = message_tokens + system + memory_tokens + tool_tokens
    available = limits.context_window - taken - margin
    adjusted = max(floor, min(requested, available))
    if cap_output and limits.max_output_tokens is not None:
        adjusted = min(adjusted, limits.max_output_tokens)
    overflows = adjusted > available or taken > limits.max_input_tokens
    is_known = limits.known and not is_guessed and message_tokens.is_exact
    if _is_number(memories):
        is_known = is_known and not memory_count
    is_counting = (
        not _is_number(messages)
        or isinstance(system_tokens, str)
        or has_memories
        or tool_tokens > 0
    )
    if strict and overflows:
        raise BudgetExhaustedError(
            f"model {limits.name[:80]!r} has a window of {limits.context_window} tokens "
            f"({limits.max_input_tokens} of input): {taken} of input ({message_tokens} messages + "
            f"{system} system + {memory_tokens} memories + {tool_tokens} tools) + {adjusted} of "
            f"output + {margin} of margin = {taken + adjusted + margin}"
        )
    negotiation = Negotiation(
        model=limits.name,
        context_window=limits.context_window,
        input_token_count=taken,
        available_tokens=available,
        adjusted_max_output_tokens=adjusted,
        requested_max_output_tokens=requested,
        was_reduced=adjusted < requested,
        overflows_window=overflows,
        message_count=message_count,
        memory_count=memory_count,
        memory_indices=chosen,
        safety_margin=margin,
        system_tokens=system,
        memory_tokens=memory_tokens,
        tool_tokens=tool_tokens,
        is_exact=is_known and (not is_counting or (counter is not None and counting.is_exact)),
    )
    _log(negotiation)
    return negotiation


def safe_message_count(
    *,
    model: str | ModelLimits,
    max_output_tokens: int = 3000,
    system_tokens: int | str = SYSTEM_TOKENS,
    safety_margin: int | Auto = 100,
    tokens_per_message: int = 250,
    counter: Counter | None = None,
) -> int:
    """
    Return how many messages leave room for the answer, the system prompt and the margin.

    It returns at least 1, however small the window is.

    Args:
        model: As for `negotiate`.
        max_output_tokens: The tokens of the answer.
        system_tokens: The tokens of the system prompt, or its text.
        safety_margin: The tokens to keep free, or ``auto``, as for `negotiate`.
        tokens_per_message: The tokens of a message, from 1 on.
        counter: Counts a text given as *system_tokens*; None is ``chars_div4``.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> safe_message_count(model="gpt-4"), safe_message_count(model="llama3.2:3b")
        (18, 497)

    """
    limits = model_limits(model)
    output = _validate.tokens("max_output_tokens", max_output_tokens)
    margin = _margin(safety_margin, limits)
    per_message = _validate.tokens("tokens_per_message", tokens_per_message, minimum=1)
    counting = get_counter("chars_div4" if counter is None else counter)
    system = text_or_tokens("system_tokens", system_tokens, counting)
    room = min(limits.context_window - output - margin, limits.max_input_tokens) - system
    return max(1, room // per_message)


def text_or_tokens(name: str, value: object, counter: Any) -> int:
    """Return *value* if it is a number of tokens, or the count if it is a text."""
    if isinstance(value, str):
        return int(counter.count(value))
    if _validate.as_int(value) is None:
        raise InvalidArgumentError(
            f"{name} must be an int or a str, not {_validate.type_name(value)}"
        )
    return _validate.tokens(name, value)


def _is_number(value: object) -> bool:
    return _validate.as_int(value) is not None


def _margin(value: object, limits: ModelLimits) -> int:
    if isinstance(value, str) and value in _AUTO:
        return KNOWN_MARGIN if limits.known else UNKNOWN_MARGIN
    if not _is_number(value):
        found = _validate.type_name(value)
        if isinstance(value, str):
            found = f"{value[:80]!r}{_validate.did_you_mean(value, _AUTO)}"
        raise InvalidArgumentError(f"safety_margin must be an int or 'auto', not {found}")
    return _validate.tokens("safety_margin", value)


def _number_or_listed(name: str, value: Any) -> Any:
    """Return *value* if it is a number of items, or the items as a list or tuple."""
    if _is_number(value):
        return _validate.tokens(name, value)
    is_one = isinstance(value, (str, bytes, bytearray, Mapping))
    if is_one or not isinstance(value, Iterable):
        raise InvalidArgumentError(
            f"{name} must be an int, their number, or a sequence, not {_validate.type_name(value)}"
        )
    return _validate.batch(name, value)


def _messages(
    messages: Any, per_message: int, counter: Counter | None, limits: ModelLimits
) -> tuple[int, MessageCount]:
    """Return the number of messages and their tokens."""
    if _is_number(messages):
        return messages, MessageCount(messages * per_message, is_exact=messages == 0)
    for i, item in enumerate(messages):
        mapping(f"messages[{i}]", item)
    if counter is None:
        return len(messages), MessageCount(len(messages) * per_message, is_exact=False)
    return len(messages), count_messages(messages, counter=counter, model=limits)


def _memories(
    memories: Any,
    count: Any,
    min_importance: float,
    max_age_days: float,
    max_tokens: int | None,
    now: float,
) -> tuple[tuple[int, ...], int, int, bool]:
    """Return the places of the chosen memories, their tokens and number, and if any was given."""
    items = _number_or_listed("memories", memories)
    if _is_number(items):
        return (), 0, items, False
    found = []
    for i, memory in enumerate(items):
        where = f"memories[{i}]"
        importance, age = math.inf, -math.inf
        if isinstance(memory, str):
            text = memory
        elif isinstance(memory, Mapping):
            key = "content" if "content" in memory else "text"
            text = _validate.text(f"{where}[{key!r}]", memory.get(key))
            if not _validate.is_absent(memory.get("importance")):
                importance = _validate.number(f"{where}['importance']", memory["importance"])
            age = _age(where, memory, now)
        else:
            raise InvalidArgumentError(
                f"{where} must be a str or a mapping, not {_validate.type_name(memory)}"
            )
        if importance > min_importance and age <= max_age_days:
            found.append((-importance, i, text))
    chosen, total = [], 0
    for _, i, text in sorted(found):
        tokens = count(text)
        if max_tokens is None or total + tokens <= max_tokens:
            chosen.append(i)
            total += tokens
    return tuple(sorted(chosen)), total, len(chosen), bool(items)


def _age(where: str, memory: Mapping[str, Any], now: float) -> float:
    """Return the age of a memory in days, minus infinity if it states none."""
    if not _validate.is_absent(memory.get("age_days")):
        return _validate.number(f"{where}['age_days']", memory["age_days"])
    for key in _TIMES:
        if not _validate.is_absent(memory.get(key)):
            return (now - _seconds(f"{where}[{key!r}]", memory[key])) / _DAY
    return -math.inf


def _seconds(name: str, value: object) -> float:
    """Return a time in seconds since 1970; a time without a zone is in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            raise InvalidArgumentError(
                f"{name} must be {_TIME}; the text is not of that form"
            ) from None
    seconds = None if _validate.is_absent(value) else _validate.as_seconds(value)
    return _validate.number(name, value if seconds is None else seconds, _TIME)


def _log(negotiation: Negotiation) -> None:
    log().log(
        30 if negotiation.was_reduced else 20,
        "two-dimensional budget for %.80r: context window %d, input %d%s (%d messages + %d system "
        "+ %d memories + %d tools), margin %d, available for completion %d, requested maximum %d, "
        "adjusted maximum %d%s",
        negotiation.model,
        negotiation.context_window,
        negotiation.input_token_count,
        "" if negotiation.is_exact else " (estimated)",
        negotiation.message_count,
        negotiation.system_tokens,
        negotiation.memory_tokens,
        negotiation.tool_tokens,
        negotiation.safety_margin,
        negotiation.available_tokens,
        negotiation.requested_max_output_tokens,
        negotiation.adjusted_max_output_tokens,
        " REDUCED" if negotiation.was_reduced else "",
        extra={
            "code": "output_reduced" if negotiation.was_reduced else "output_negotiated",
            **negotiation.to_dict(),
        },
    )
