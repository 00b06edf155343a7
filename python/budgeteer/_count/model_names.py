"""The known names that a model's name may stand for. Whether they are known is asked elsewhere."""

from __future__ import annotations

_BOUNDARIES = "-:@/"
_BEFORE, _AFTER = "-:@/_.", "-:@/_"  # around a part; a name's own number may go on with "."
_NAME_MAX = 200  # known names are shorter, and time grows with the square
_PREFIXES_MAX = 6


def beginnings(name: str, prefixes: tuple[str, ...]) -> list[str]:
    """
    Return *name*, then without *prefixes*, then the beginnings of these, longest first.

    Examples:
        >>> beginnings("openai/gpt-4o", ("openai/",))
        ['openai/gpt-4o', 'gpt-4o', 'openai/gpt', 'openai', 'gpt']

    """
    names = [name]
    while len(names) <= _PREFIXES_MAX:
        start = next((prefix for prefix in prefixes if names[-1].startswith(prefix)), None)
        if start is None:
            break
        names.append(names[-1][len(start) :])
    starts = [
        candidate[:end]
        for candidate in names
        for end in range(min(len(candidate), _NAME_MAX) - 1, 0, -1)
        if candidate[end] in _BOUNDARIES
    ]
    return [*names, *starts]


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
