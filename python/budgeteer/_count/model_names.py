"""The known names that a model's name may stand for. Whether they are known is asked elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

_BOUNDARIES = "-:@/"
_BEFORE, _AFTER = "-:@/_.", "-:@/_"  # around a part; a name's own number may go on with "."
_WHOLE = "-:@_"  # after a family's name, of a whole name
_NAME_MAX = 200  # known names are shorter, and time grows with the square
_PREFIXES_MAX = 6


def fold(name: str) -> str:
    """
    Return *name* with the letters A to Z in lower case.

    Examples:
        >>> fold("GPT-4O")
        'gpt-4o'

    """
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def bare(name: str, prefixes: tuple[str, ...]) -> list[str]:
    """
    Return *name*, and what is left of it without one of *prefixes* after the other.

    Examples:
        >>> bare("OpenAI/ft:gpt-4o", ("openai/", "ft:"))
        ['OpenAI/ft:gpt-4o', 'ft:gpt-4o', 'gpt-4o']

    """
    names = [name]
    while len(names) <= _PREFIXES_MAX:
        lower = fold(names[-1][:_NAME_MAX])
        start = next((prefix for prefix in prefixes if lower.startswith(prefix)), None)
        if start is None:
            break
        names.append(names[-1][len(start) :])
    return names


def beginnings(name: str, prefixes: tuple[str, ...]) -> list[str]:
    """
    Return *name*, then without *prefixes*, then the beginnings of these, longest first.

    The last is what comes after the last slash.

    Examples:
        >>> beginnings("OpenAI/gpt-4o", ("openai/",))
        ['OpenAI/gpt-4o', 'gpt-4o', 'OpenAI/gpt', 'OpenAI', 'gpt', 'gpt-4o']

    """
    names = bare(name, prefixes)
    starts = [
        candidate[:end]
        for candidate in names
        for end in range(min(len(candidate), _NAME_MAX) - 1, 0, -1)
        if candidate[end] in _BOUNDARIES
    ]
    return [*names, *starts, name.rpartition("/")[2]]


def parts(name: str) -> list[str]:
    """
    Return the parts of *name* between boundaries, longest and rightmost first.

    Examples:
        >>> parts("my-gpt-4o")
        ['my-gpt-4o', 'gpt-4o', 'my-gpt', 'gpt', '4o', 'my']

    """
    name = name[:_NAME_MAX]
    starts = [0, *(i + 1 for i, sign in enumerate(name) if sign in _BEFORE)]
    ends = [*(i for i, sign in enumerate(name) if sign in _AFTER), len(name)]
    places = [(end - start, start) for start in starts for end in ends if end > start]
    return [name[start : start + length] for length, start in sorted(places, reverse=True)]


def families(name: str, known: Iterable[str], prefixes: tuple[str, ...]) -> list[tuple[str, bool]]:
    """
    Return the families that parts of *name* start with, and whether each is the whole name's.

    What comes before the last slash names a provider. At each place the longest family counts, and
    none inside it. It is the whole name's if the name starts with it and ends there, or goes on
    with one of ``-``, ``:``, ``@`` and ``_``.

    Examples:
        >>> families("us.meta.llama3-2-3b", ["llama", "llama3"], ("us.", "meta."))
        [('llama3', True)]
        >>> families("my-llama3.2-qwen2", ["llama", "llama3", "qwen"], ())
        [('llama3', False), ('qwen', False)]

    """
    last = fold(bare(name[:_NAME_MAX], prefixes)[-1].rpartition("/")[2])
    found, end = [], 0
    for start in (0, *(i + 1 for i, sign in enumerate(last) if sign in _BEFORE)):
        here = [family for family in known if last.startswith(family, start)]
        if here and start >= end:
            longest = max(here, key=len)
            end = start + len(longest)
            found.append((longest, start == 0 and last[end : end + 1] in (*_WHOLE, "")))
    return found
