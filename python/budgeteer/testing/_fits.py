"""Checking a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from budgeteer import Allocation, FittedOutput, Packing, TokenCounter, _validate, get_counter
from budgeteer._count.names import meaning_of
from budgeteer._messages.messages import has_system
from budgeteer.errors import InvalidArgumentError
from budgeteer.window import ModelLimits, count_messages, count_tools

observer: Callable[[int, int], None] | None = None
"""What is told of each check in a test, in whatever thread: the tokens and the limit."""


def assert_fits(
    fitted: str | Packing[Any] | Allocation | FittedOutput | Sequence[Any],
    counter: str | TokenCounter | Callable[[str], int] | ModelLimits,
    limit: int,
) -> int:
    """
    Raise an AssertionError if something takes more than *limit* tokens.

    It is counted anew, whatever total it tells.

    Args:
        fitted: A text; a packing or a fitted output, whose text is counted; a list of chat
            messages; or an `Allocation`, whose messages and tools are counted.
        counter: What counts, as for `get_counter`. The name of a model counts messages by the
            model's own rules.
        limit: The most tokens, 0 or more.

    Returns:
        The tokens it takes.

    Raises:
        AssertionError: It takes more.
        InvalidArgumentError: An argument has another type, or nobody knows the counter.

    Examples:
        >>> from budgeteer import pack
        >>> from budgeteer.testing import assert_fits
        >>> assert_fits(pack("tea", ["Green tea.", "Coffee."], 4), "o200k_base", 4)
        3
        >>> assert_fits([{"role": "user", "content": "Green tea?"}], "gpt-4o", 9)
        Traceback (most recent call last):
        AssertionError: 1 message takes 10 tokens under gpt-4o, 1 above the limit of 9

    """
    limit = _validate.tokens("limit", limit)
    what, tokens = _counted(fitted, counter)
    if observer is not None:
        observer(int(tokens), limit)  # workers of pytest-xdist send no subclass of int
    if tokens > limit:
        raise AssertionError(
            f"{what} {_tokens(tokens)} under {_name(counter)}, {tokens - limit:,} above the limit "
            f"of {limit:,}"
        )
    return tokens


def _counted(fitted: object, counter: Any) -> tuple[str, int]:
    """Return what is counted, with its verb, and its tokens."""
    counting = get_counter(counter)  # messages would be guessed for a name that nobody knows
    if isinstance(fitted, str):
        return "the text takes", counting.count(fitted)
    if isinstance(fitted, (Packing, FittedOutput)):
        return "its text takes", counting.count(fitted.text)
    if isinstance(fitted, Allocation):
        how = _how(counter)
        tokens = count_messages(fitted.messages, **how) + count_tools(
            fitted.tools, has_system_message=has_system(fitted.messages), **how
        )
        return "its prompt takes", tokens
    if isinstance(fitted, Sequence) and not isinstance(fitted, (bytes, bytearray)):
        verb = "1 message takes" if len(fitted) == 1 else f"{len(fitted):,} messages take"
        return verb, count_messages(fitted, **_how(counter))
    raise InvalidArgumentError(
        "fitted must be a str, a Packing, an Allocation, a FittedOutput or a list of messages, "
        f"not {_validate.type_name(fitted)}"
    )


def _how(counter: Any) -> dict[str, Any]:
    """Return the arguments of `count_messages` for a counter or a model."""
    is_model = isinstance(counter, ModelLimits) or (
        isinstance(counter, str) and meaning_of(counter) is None
    )
    return {"model": counter} if is_model else {"counter": counter}


def _name(counter: object) -> str:
    """Return the name of a counter."""
    return counter if isinstance(counter, str) else getattr(counter, "name", repr(counter))


def _tokens(count: int) -> str:
    """Return a number of tokens in words."""
    return f"{count:,} token" + ("" if count == 1 else "s")
