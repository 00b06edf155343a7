"""
What litellm's file of models states, as limits.

It stands alone: `scripts/generate_models.py` imports it without the package. litellm's
``max_input_tokens`` is the whole window for some models, and the window less the answer for
others. The provider that is stated decides:

- OpenAI and Azure: 272000 and 922000 beside an answer of 128000 are the windows 400000 and 1050000
  less that answer. Every other number is the window.
- DashScope: it is the input alone; the window is the next power of two, or the next million above
  half a million.
- All others: it is the window.
"""

from collections.abc import Mapping
from typing import Any

FILE = "model_prices_and_context_window_backup.json"
"""The name of the file in litellm's package."""

_MODES = ("chat", "completion", "responses", "embedding", "rerank")
_WITHOUT_ANSWER = ((272_000, 128_000), (922_000, 128_000))
_HALF_A_MILLION, _MILLION = 500_000, 1_000_000
_MAX, _DIGITS = 2**53, 16  # the window of DashScope's is larger than what is stated


def is_litellm(document: Any) -> bool:
    """
    Return whether *document* has the form of litellm's file.

    Examples:
        >>> is_litellm({"acme-7b": {"max_tokens": 4096}}), is_litellm({"models": {}})
        (True, False)

    """
    if not isinstance(document, Mapping) or "models" in document:
        return False
    keys = ("litellm_provider", "max_input_tokens", "max_tokens")
    return any(
        isinstance(entry, Mapping) and any(key in entry for key in keys)
        for entry in document.values()
    )


def entries(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """
    Return the arguments of `register_model` for each entry that has text and states a window.

    Raises:
        ValueError: An entry has a value that cannot be; the message names its key.

    Examples:
        >>> read = {"max_input_tokens": 8_000, "litellm_provider": "acme", "mode": "chat"}
        >>> entries({"acme-7b": read, "acme-picture": {**read, "mode": "image_generation"}})
        {'acme-7b': {'context_window': 8000, 'max_input_tokens': 8000, 'provider': 'acme'}}

    """
    read = {}
    for name, entry in document.items():
        if name != "sample_spec" and isinstance(entry, Mapping):
            try:
                fields = limits(entry)
            except ValueError as error:
                raise ValueError(f"[{name[:80]!r}].{error}") from None
            if fields is not None:
                read[name] = fields
    return read


def limits(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    Return the arguments of `register_model` for an entry, None if it has no window.

    Raises:
        ValueError: A value cannot be; the message starts with its key.

    """
    if entry.get("mode", "chat") not in _MODES:
        return None
    known, output = _tokens(entry, "max_input_tokens"), _tokens(entry, "max_output_tokens")
    if known is None and output is None:
        known = _tokens(entry, "max_tokens")  # both, where only it is stated
    if not known:  # 0 is unknown there
        return None
    provider = entry.get("litellm_provider")
    if provider is not None and not isinstance(provider, str):
        raise ValueError(f"litellm_provider must be a str, not {type(provider).__name__}")
    total = _window(provider, known, output)
    fields = {"context_window": total, "max_input_tokens": known, "provider": provider}
    if output and output < total:  # any other is no limit
        fields["max_output_tokens"] = output
    return fields


def _tokens(entry: Mapping[str, Any], key: str) -> int | None:
    """Return a number of tokens, which some entries state as a text."""
    value = entry.get(key)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        value = int(value)
    if value is None or (type(value) is int and 0 <= value <= _MAX):
        return value
    raise ValueError(f"{key} must be a whole number from 0 to {_MAX}, not {value!r:.80}")


def _window(provider: object, known: int, output: object) -> int:
    if provider in ("openai", "azure") and (known, output) in _WITHOUT_ANSWER:
        return known + 128_000
    if provider == "dashscope":
        if known > _HALF_A_MILLION:
            return -(-known // _MILLION) * _MILLION
        return 1 << (known - 1).bit_length()
    return known
