"""Input that is made, and the same on every machine."""

from __future__ import annotations

from random import Random
from typing import Any

from budgeteer import Chunk, _validate

_WORDS = """
water stone light paper river table window garden letter market winter summer morning engine
budget token context model answer question document section policy ticket invoice customer
server cluster release version update error cause result change report figure number price order
account access key backup region network request response limit window history tool green black
strong early large small open public remote local first second new old quick write read send
keep drop count store build test check move need give take find show follow
""".split()  # noqa: SIM905 - easier to read
_LONGEST = 1_000_000


def chunks(count: int, *, chars: int = 800, seed: int = 0) -> list[Chunk]:
    """
    Return chunks of English words, the same for the same arguments.

    Args:
        count: How many, 0 or more.
        chars: About how many characters the text of each has, from 1 to 1,000,000; some have half
            as many, some half as many again.
        seed: Another number gives other texts.

    Returns:
        Chunks with an id, a title, a source, a score that descends from 1 to above 0, and their
        ``position`` as metadata.

    Examples:
        >>> from budgeteer.testing import chunks
        >>> chunks(2, chars=40) == chunks(2, chars=40), chunks(1, chars=40)[0].text
        (True, 'Paper find account move send find update build. Tool.')

    """
    count = _validate.whole("count", count, 0, 10**8)
    chars = _validate.whole("chars", chars, 1, _LONGEST)
    random = Random(_validate.whole("seed", seed, 0, 2**63 - 1))  # noqa: S311 - no secret
    return [
        Chunk(
            _text(random, chars),
            id=f"chunk-{place}",
            title=" ".join(random.choices(_WORDS, k=2)).capitalize(),
            source=f"{random.choice(_WORDS)}.md",
            score=(count - place) / count,
            metadata={"position": place},
        )
        for place in range(count)
    ]


def conversation(
    count: int, *, chars: int = 400, tools: bool = True, seed: int = 0
) -> list[dict[str, Any]]:
    """
    Return the messages of a chat in OpenAI's shape, the same for the same arguments.

    The first is the system's. Then come questions and answers; with *tools* some answers are calls
    of a tool, each followed by its result, which is up to eight times as long. A call is never the
    last message.

    Args:
        count: How many messages, 0 or more.
        chars: About how many characters a message has, from 1 to 1,000,000.
        tools: Whether there are calls of tools.
        seed: Another number gives other messages.

    Examples:
        >>> from budgeteer.testing import conversation
        >>> [message["role"] for message in conversation(6)]
        ['system', 'user', 'assistant', 'user', 'assistant', 'tool']

    """
    count = _validate.whole("count", count, 0, 10**8)
    chars = _validate.whole("chars", chars, 1, _LONGEST)
    tools = _validate.flag("tools", tools)
    random = Random(_validate.whole("seed", seed, 0, 2**63 - 1))  # noqa: S311 - no secret
    made: list[dict[str, Any]] = [{"role": "system", "content": _text(random, chars)}]
    while len(made) < count:
        made.append({"role": "user", "content": _text(random, chars)})
        while tools and count - len(made) >= 2 and random.random() < 0.5:
            made += _call(random, chars, f"call_{len(made)}")
        made.append({"role": "assistant", "content": _text(random, chars)})
    return made[:count]


def _call(random: Random, chars: int, key: str) -> list[dict[str, Any]]:
    """Return a call of a tool and its result."""
    function = {"name": "search", "arguments": f'{{"query": "{random.choice(_WORDS)}"}}'}
    call = {"id": key, "type": "function", "function": function}
    result = _text(random, min(chars * random.randint(1, 8), _LONGEST))
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": key, "content": result},
    ]


def _text(random: Random, chars: int) -> str:
    """Return sentences of about that many characters."""
    left = max(1, int(chars * random.uniform(0.5, 1.5)))
    sentences = []
    while left > 0:
        words = random.choices(_WORDS, k=random.randint(5, 14))
        size = 0
        kept: list[str] = []
        for word in words:
            if kept and size + len(word) + 1 > left:
                break
            kept.append(word)
            size += len(word) + 1
        sentences.append(" ".join(kept).capitalize() + ".")
        left -= size + 1
    return " ".join(sentences)
