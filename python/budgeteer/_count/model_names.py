"""The known names that a model's name may stand for. Whether they are known is asked elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

_BOUNDARIES = "-:@/"
_BEFORE, _AFTER = "-:@/_.", "-:@/_"  # around a part; a name's own number may go on with "."
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


def beginnings(name: str, prefixes: tuple[str, ...]) -> list[str]:
    """
    Return *name*, then without *prefixes*, then the beginnings of these, longest first.

    The last is what comes after the last slash.

    Examples:
        >>> beginnings("OpenAI/gpt-4o", ("openai/",))
        ['OpenAI/gpt-4o', 'gpt-4o', 'OpenAI/gpt', 'OpenAI', 'gpt', 'gpt-4o']

    """
    names = [name]
    while len(names) <= _PREFIXES_MAX:
        lower = fold(names[-1][:_NAME_MAX])
        start = next((prefix for prefix in prefixes if lower.startswith(prefix)), None)
        if start is None:
            break
        names.append(names[-1][len(start) :])
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


def family_factor(name: str, families: Mapping[str, float]) -> float | None:
    """
    Return the factor of the family that a part of *name* starts with; None without any.

    What comes before the last slash names a provider. Of several families the largest factor is
    taken, which errs high.

    Examples:
        >>> family_factor("us.meta.llama3-2-3b", {"llama": 1.4, "llama2": 1.9})
        1.4

    """
    last = fold(name[:_NAME_MAX].rpartition("/")[2])
    starts = [0, *(i + 1 for i, sign in enumerate(last) if sign in _BEFORE)]
    factors = (
        factor
        for family, factor in families.items()
        if any(last.startswith(family, start) for start in starts)
    )
    return max(factors, default=None)
