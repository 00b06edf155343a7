"""Where public names live."""

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def public(home: str) -> Callable[[T], T]:
    """
    Return a decorator that lets a class say the public module that it is imported from.

    It goes above all others: a dataclass looks names up in the module where it is made. So do
    those who read annotations later, and so the annotations are read here.
    """

    def told(item: T) -> T:
        names = vars(sys.modules[item.__module__])
        for name, hint in vars(item).get("__annotations__", {}).items():
            if isinstance(hint, str):
                own = {item.__name__: item}
                item.__annotations__[name] = eval(hint, names, own)  # noqa: S307 - our own text
        item.__module__ = home
        return item

    return told
