"""OpenAI's message format, and the errors of endpoints about requests that are too long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from budgeteer.errors import ContextLengthError

_CODE = "context_length_exceeded"
_FIGURES = (
    # OpenAI, Azure and vLLM: "... maximum context length is 4096 tokens. However, you requested
    # 5000 tokens (4000 in the messages, 1000 in the completion)"; "... resulted in 5000 tokens".
    re.compile(
        r"maximum context length is (?P<window>\d[\d,]{0,20}) tokens.{0,80}?"
        r"(?:requested|resulted in|contains?|has)(?: about| at least)? (?P<asked>\d[\d,]{0,20})",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(
        r"exceeds? the (?:configured )?limit of (?P<window>\d[\d,]{0,20}) tokens.{0,80}?"
        r"resulted in (?P<asked>\d[\d,]{0,20}) tokens",
        re.DOTALL | re.IGNORECASE,
    ),
    # Anthropic: "prompt is too long: 205000 tokens > 200000 maximum".
    re.compile(
        r"prompt is too long: (?P<asked>\d[\d,]{0,20}) tokens > (?P<window>\d[\d,]{0,20}) maximum",
        re.IGNORECASE,
    ),
    re.compile(r"maximum context length is (?P<window>\d[\d,]{0,20}) tokens", re.IGNORECASE),
    re.compile(r"exceeds the context window of this model", re.IGNORECASE),
)
_MESSAGE_MAX = 10_000  # enough of an endpoint's message


def context_length_error(error: BaseException) -> ContextLengthError | None:
    """
    Return a `ContextLengthError` if an endpoint's error says that a request is too long.

    It is recognised by its ``code`` (``context_length_exceeded``), the code in its ``body``, or
    the wording of OpenAI, Azure, vLLM and Anthropic. No package is needed for it.

    Args:
        error: The error of a client, such as ``openai.BadRequestError``.

    Returns:
        An error to raise, with both figures if the endpoint states them, and *error* as its cause.
        None if *error* is about something else.

    Examples:
        >>> class BadRequestError(Exception):
        ...     code = "context_length_exceeded"
        >>> found = context_length_error(
        ...     BadRequestError(
        ...         "This model's maximum context length is 4096 tokens. However, your messages "
        ...         "resulted in 5000 tokens."
        ...     )
        ... )
        >>> found.context_window, found.requested_tokens
        (4096, 5000)
        >>> context_length_error(ValueError("something else")) is None
        True

    """
    if isinstance(error, ContextLengthError):
        return error
    body = _of(error, "body")
    details = body.get("error", body) if isinstance(body, Mapping) else {}
    details = details if isinstance(details, Mapping) else {}
    codes = (_of(error, "code"), details.get("code"), details.get("type"))
    is_meant = any(isinstance(code, str) and code == _CODE for code in codes)
    texts = (details.get("message"), _of(error, "message"), _text(error))
    figures: dict[str, int] = {}
    for text in texts:
        match = _search(text)
        if match:
            is_meant = True
            found = {name: value for name, value in match.groupdict().items() if value}
            figures = {name: int(value.replace(",", "")) for name, value in found.items()}
            break
    if not is_meant:
        return None
    window, asked = figures.get("window"), figures.get("asked")
    made = ContextLengthError(
        f"the model's endpoint refused the request: "
        f"{'an unknown number of' if asked is None else asked} tokens were requested, and its "
        f"context window is {'not stated' if window is None else window}",
        context_window=window,
        requested_tokens=asked,
    )
    made.__cause__ = error
    return made


def _of(error: BaseException, name: str) -> Any:
    """Return an attribute of a foreign error, None if it cannot be read."""
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign error
        return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a foreign object
        return ""


def _search(text: Any) -> re.Match[str] | None:
    if not isinstance(text, str):
        return None
    return next((found for form in _FIGURES if (found := form.search(text[:_MESSAGE_MAX]))), None)


def chat_messages(system_prompt: str, context: str, query: str) -> list[dict[str, str]]:
    r"""
    Return the messages of a chat, in the form that OpenAI's and most other endpoints take.

    The first is the system prompt, if there is one. The second is a user's message: the context, a
    blank line, the query. Retrieved text never stands in the system message.

    Examples:
        >>> chat_messages("Be brief.", "Green tea is mild.", "Is it?")[1]
        {'role': 'user', 'content': 'Green tea is mild.\n\nIs it?'}

    """
    messages = [{"role": "system", "content": system_prompt}] if system_prompt else []
    content = f"{context}\n\n{query}" if context else query
    return [*messages, {"role": "user", "content": content}]
