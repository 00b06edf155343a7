"""OpenAI's message format, and the errors of endpoints about requests that are too long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from budgeteer import _validate
from budgeteer.errors import ContextLengthError, InvalidArgumentError

_CODES = ("context_length_exceeded", "exceed_context_size_error")
_N = r"\d[\d,]{0,20}"
_FIGURES = tuple(
    re.compile(
        form.replace("WINDOW", f"(?P<window>{_N})").replace("ASKED", f"(?P<asked>{_N})"),
        re.DOTALL | re.IGNORECASE,
    )
    for form in (
        # vLLM, for an answer that is too long.
        (
            rf"is too large: (?P<answer>{_N})\. This model's maximum context length is WINDOW "
            r"tokens and your request has ASKED input tokens"
        ),
        # vLLM: "... maximum context length is 4096 tokens. However, you requested 1000 output
        # tokens and your prompt contains at least 3100 input tokens, for a total of at least 4100
        # tokens", the whole of which is what was asked for.
        r"maximum context length is WINDOW tokens.{0,160}?a total of (?:at least )?ASKED tokens",
        # OpenAI, Azure, OpenRouter, DeepSeek and vLLM: "... maximum context length is 4096 tokens.
        # However, you requested 5000 tokens (4000 in the messages, 1000 in the completion)"; "...
        # resulted in 5000 tokens".
        (
            r"maximum context length is WINDOW tokens.{0,80}?"
            r"(?:requested|resulted in|contains?|has)(?: about| at least)? ASKED\b(?! output)"
        ),
        r"exceeds? the (?:configured )?limit of WINDOW tokens.{0,80}?resulted in ASKED tokens",
        # Anthropic, by itself and from Bedrock and Vertex.
        r"prompt is too long: ASKED tokens > WINDOW maximum",
        (
            r"input length and `?max_tokens`? exceed context limit:"
            rf"\s*ASKED\s*\+\s*(?P<answer>{_N})\s*>\s*WINDOW"
        ),
        # Gemini and Vertex.
        r"input token count is ASKED but the model only supports up to WINDOW",
        r"input token count \(?ASKED\)? exceeds the maximum number of tokens allowed \(?WINDOW",
        # Mistral.
        r"prompt contains ASKED tokens.{0,40}? too large for model with WINDOW maximum context",
        # vLLM again, and its engine.
        (
            rf"you passed ASKED input tokens and requested (?P<answer>{_N}) output tokens\. "
            r"However, the model's context length is only WINDOW tokens"
        ),
        r"the model's context length is only WINDOW tokens",
        r"prompt \(length ASKED\) is longer than the maximum model length of WINDOW",
        # sglang.
        r"input \(ASKED tokens\) is longer than the model's context length \(WINDOW tokens",
        (
            r"input length \(ASKED(?: tokens)?\) exceeds (?:the maximum allowed length|"
            r"(?:the )?model's maximum context length) \(WINDOW"
        ),
        r"maximum context length of WINDOW tokens\. You requested a total of ASKED tokens",
        # Text Generation Inference.
        (
            rf"`inputs` tokens \+ `max_new_tokens` must be <= WINDOW\. Given: ASKED `inputs` "
            rf"tokens and (?P<answer>{_N}) `max_new_tokens`"
        ),
        r"`inputs` must have less than WINDOW tokens\. Given: ASKED",
        # llama.cpp and its Python binding.
        r"request \(ASKED tokens\) exceeds the available context size \(WINDOW tokens",
        r"requested tokens \(ASKED\) exceed context window of WINDOW",
        r"n_prompt_tokens['\"]?\s*:\s*ASKED\s*,\s*['\"]n_ctx['\"]\s*:\s*WINDOW",
        # Bedrock's models of Amazon.
        r"too many input tokens\. max input tokens: WINDOW, request input token count: ASKED",
        # Cohere.
        (
            r"total number of tokens (?:in the prompt|\(prompt and prediction\)) cannot exceed "
            r"WINDOW(?: - received ASKED)?"
        ),
        # Without both figures.
        r"input token count exceeds the maximum number of tokens allowed \(?WINDOW",
        r"number of input tokens exceeds maximum length",  # Bedrock
        r"maximum context length is WINDOW tokens",
        r"maximum context length of WINDOW tokens",
        r"exceed the configured limit of WINDOW tokens",
        r"exceeds the context window of this model",  # OpenAI's Responses
        r"exceeds the available context size",  # llama.cpp, with figures beside its message
        r"input is too long for requested model",  # Bedrock
        r"prompt too long; exceeded (?:max )?context length",  # Ollama
        r"input length exceeds (?:the|maximum) context length",  # likewise
        rf"\b(?:{'|'.join(_CODES)})\b",  # the code alone, as some clients say it
    )
)
"""How endpoints say that a request is too long, with the figures in it."""

_MESSAGE_MAX = 10_000  # enough of an endpoint's message


def context_length_error(error: BaseException) -> ContextLengthError | None:
    """
    Return a `ContextLengthError` if an endpoint's error says that a request is too long.

    It is recognised by its ``code`` (``context_length_exceeded``), the code in its ``body``, or
    the wording of OpenAI, Azure, Anthropic, Gemini, Bedrock, Cohere, Mistral, vLLM, sglang, TGI,
    llama.cpp and Ollama. No package is needed for it.

    Args:
        error: The error of a client, such as ``openai.BadRequestError``.

    Returns:
        An error to raise, with both figures if the endpoint states them, and *error* as its cause.
        The requested tokens include the answer's where the endpoint adds them to the input's.
        None if *error* is about something else.

    Raises:
        InvalidArgumentError: *error* is no exception.

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
    if not isinstance(error, BaseException):
        raise InvalidArgumentError(
            f"error must be an exception, not {_validate.type_name(error)}: give the one that the "
            f"client raised"
        )
    body = _of(error, "body")
    details = body.get("error", body) if isinstance(body, Mapping) else {}
    details = details if isinstance(details, Mapping) else {}
    codes = (_of(error, "code"), details.get("code"), details.get("type"))
    is_meant = any(isinstance(code, str) and code in _CODES for code in codes)
    texts = (details.get("message"), _of(error, "message"), _text(error))
    figures: dict[str, int] = {}
    for text in texts:
        match = _search(text)
        if match:
            is_meant = True
            found = {name: value for name, value in match.groupdict().items() if value}
            figures = {name: int(value.replace(",", "")) for name, value in found.items()}
            break
    for name, field in (("window", "n_ctx"), ("asked", "n_prompt_tokens")):  # of llama.cpp
        if name not in figures and type(details.get(field)) is int:
            figures[name] = details[field]
    if not is_meant:
        return None
    window, asked = figures.get("window"), figures.get("asked")
    if asked is not None:
        asked += figures.get("answer", 0)
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
