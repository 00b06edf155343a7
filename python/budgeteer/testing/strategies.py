"""
Strategies for Hypothesis: ``pip install 'budgeteer[testing]'``.

Texts are short and odd: words of several scripts, emoji, code, whitespace, control characters and
what looks like a template. Examples shrink to the empty text.
"""

from __future__ import annotations

from typing import Any

from budgeteer import Chunk
from budgeteer.errors import MissingPackageError

try:
    from hypothesis import strategies as st
except ImportError as _error:
    raise MissingPackageError(
        f"{__name__} needs pip install 'budgeteer[testing]': {_error}"
    ) from None

__all__ = ["chunk_lists", "chunks", "conversations", "packer_options", "texts"]

_PIECES = (
    *(
        "tea",
        "Tea.",
        "green tea",
        "Kaffee",
        "cafe\u0301",
        "чай",
        "绿茶",
        "お茶",
        "شاي",
        "🍵",
        "👩‍👩‍👧",
    ),
    *("def f(x):\n    return x", '{"a": [1, 2]}', "<b>", "</context>", "[document:1]", "{count}"),
    *(
        "\n\n",
        "\n",
        " ",
        "\t",
        "\u00a0",
        "\x00",
        "\u200b",
        "---",
        "# Title",
        "...",
        "e-mail",
        "x2",
    ),
)


def texts(*, max_size: int = 12) -> st.SearchStrategy[str]:
    """
    Return a strategy of texts, of up to *max_size* pieces.

    Examples:
        >>> from hypothesis import find
        >>> from budgeteer.testing import strategies
        >>> find(strategies.texts(), lambda text: "tea" in text)
        'tea'

    """
    piece = st.one_of(st.sampled_from(_PIECES), st.text(max_size=6))
    return st.lists(piece, max_size=max_size).map(" ".join)


def chunks(*, max_size: int = 12) -> st.SearchStrategy[str | dict[str, Any] | Chunk]:
    """
    Return a strategy of chunks: texts, mappings and `Chunk` objects, some with labels.

    Examples:
        >>> from hypothesis import find
        >>> from budgeteer.testing import strategies
        >>> find(strategies.chunks(), lambda chunk: isinstance(chunk, dict))
        {'text': ''}

    """
    labels: dict[str, st.SearchStrategy[Any]] = {
        "title": texts(max_size=3),
        "source": st.text(min_size=1, max_size=8),
        "score": st.floats(-1, 1),
        "metadata": st.fixed_dictionaries({"position": st.integers(0, 99)}),
    }
    made: dict[str, st.SearchStrategy[Any]] = {"text": texts(max_size=max_size)}
    name = st.text(min_size=1, max_size=6)
    mappings = st.fixed_dictionaries(made, optional={"id": name | st.integers(0, 99), **labels})
    objects = st.fixed_dictionaries(made, optional={"id": name, **labels})
    return st.one_of(made["text"], mappings, objects.map(_chunk))


def _chunk(labels: dict[str, Any]) -> Chunk:
    return Chunk(**labels)


def chunk_lists(
    *, max_chunks: int = 20, max_size: int = 12
) -> st.SearchStrategy[list[str | dict[str, Any] | Chunk]]:
    """
    Return a strategy of up to *max_chunks* chunks, the first of which may come again at the end.

    Examples:
        >>> from hypothesis import find
        >>> from budgeteer.testing import strategies
        >>> find(strategies.chunk_lists(), lambda made: len(made) == 2)
        ['', '']

    """
    each = st.lists(chunks(max_size=max_size), max_size=max_chunks)
    again = st.integers(0, 2)
    return st.builds(lambda made, again: (made + made[:again])[:max_chunks], each, again)


def packer_options() -> st.SearchStrategy[dict[str, Any]]:
    """
    Return a strategy of options of `Packer` that go together, without *max_tokens*.

    Examples:
        >>> from hypothesis import find
        >>> from budgeteer.testing import strategies
        >>> find(strategies.packer_options(), lambda options: "ranking" in options)
        {'ranking': 'lexical'}

    """
    return st.fixed_dictionaries(
        {},
        optional={
            "counter": st.sampled_from(("o200k_base", "cl100k_base", "chars_div4", "words")),
            "ranking": st.sampled_from(("lexical", "bm25", "keyword", "input")),
            "overflow": st.sampled_from(("skip", "stop", "truncate_end", "truncate_middle")),
            "max_chunks": st.integers(1, 9),
            "dedupe": st.sampled_from(("exact", "near", None)),
            "order": st.sampled_from(("rank", "input", "edges")),
            "template": st.sampled_from(("plain", "tagged", "markdown", "xml", "json")),
        },
    )


def conversations(*, max_messages: int = 12) -> st.SearchStrategy[list[dict[str, Any]]]:
    """
    Return a strategy of chats in OpenAI's shape, in which each call has its result.

    They have up to *max_messages* messages.

    Examples:
        >>> from hypothesis import find
        >>> from budgeteer.testing import strategies
        >>> find(strategies.conversations(), len)
        [{'role': 'system', 'content': ''}]

    """
    call = st.builds(
        lambda key, query, result: [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"call_{key}",
                        "type": "function",
                        "function": {"name": "search", "arguments": f'{{"query": {query}}}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": f"call_{key}", "content": result},
        ],
        st.integers(0, 10**6),
        st.sampled_from(('"tea"', "1", "null")),
        texts(),
    )
    said = st.builds(
        lambda role, content: [{"role": role, "content": content}],
        st.sampled_from(("user", "assistant")),
        texts(),
    )
    system: st.SearchStrategy[list[dict[str, Any]]] = st.one_of(
        st.just([]), texts().map(lambda text: [{"role": "system", "content": text}])
    )
    turns = st.lists(st.one_of(said, said, call), max_size=max_messages)
    return st.tuples(system, turns).map(lambda made: _up_to(max_messages, [made[0], *made[1]]))


def _up_to(most: int, turns: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the messages of the first turns, whole, that are *most* together."""
    made: list[dict[str, Any]] = []
    for turn in turns:
        if len(made) + len(turn) > most:
            break
        made += turn
    return made
