"""Canaries in requests where nobody expects them: see `test_canaries.py`."""

import itertools

import pytest
from canary_support import MESSAGES, PASSWORD, TEXT, TOOLS, told
from support import outcome

from budgeteer import fit_request
from budgeteer.errors import BudgeteerError

CLAUDES = {
    "model": "claude-sonnet-4-5",
    "system": "s",
    "max_tokens": 9,
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"q": "x"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "r"}]},
    ],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
}
GEMINIS = {
    "model": "gemini-2.5-pro",
    "contents": [
        {
            "role": "user",
            "parts": [{"text": "t"}, {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}],
        },
        {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"q": 1}}}]},
        {
            "role": "user",
            "parts": [{"function_response": {"name": "f", "response": {"r": 1}}}],
        },
    ],
    "config": {"system_instruction": "s"},
}
OPENAIS = {
    "model": "gpt-4o",
    "messages": [
        *MESSAGES,
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
    ],
    "tools": TOOLS,
}
ODD = [
    *(TEXT, TEXT.encode(), [TEXT], {TEXT: TEXT}, {"type": TEXT}, [{"type": TEXT, TEXT: TEXT}]),
    *(f"data:image/png;base64,{TEXT}", f"https://user:{PASSWORD}@host/{TEXT}.png"),
    *({"role": TEXT, "content": TEXT}, 3, None, float("nan")),
]


def with_odd(value):
    """Yield copies of *value* in each of which one thing is another."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for place, item in [*items]:
        if place == "model":
            continue  # its name is told
        replaced = [*ODD, *with_odd(item)] if isinstance(item, (dict, list)) else ODD
        for odd in replaced:
            copy = value.copy()
            copy[place] = odd
            yield copy


@pytest.mark.parametrize("request_", [OPENAIS, CLAUDES, GEMINIS], ids=["chat", "claude", "gemini"])
def test_odd_requests(log, request_):
    """Whatever stands in a request in whichever place, no error and no log quotes it."""
    windows = itertools.cycle([99, 9_000])
    found = [
        outcome(fit_request, odd, context_window=window, max_output_tokens=1)
        for odd, window in zip(with_odd(request_), windows, strict=False)
    ]
    assert [] == told(log()) == [item for item in found if told(repr(item))]
    refused = [item for item in found if isinstance(item, tuple)]
    assert 50 < len(refused) < len(found) - 50
    assert all(issubclass(kind, BudgeteerError) for kind, _ in refused)
