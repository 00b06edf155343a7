"""The public modules of classes."""

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def public(home: str) -> Callable[[T], T]:
    """
    Return a decorator that sets a class's ``__module__`` to its public module.

    It must be the outermost decorator, as a dataclass looks names up in its own module. So does
    any later reader of annotations, and therefore the annotations are evaluated here.
    """

    def told(item: T) -> T:
        names = vars(sys.modules[item.__module__])
        for name, hint in vars(item).get("__annotations__", {}).items():
            if isinstance(hint, str):
                own = {item.__name__: item}
                item.__annotations__[name] = eval(hint, names, own)  # noqa: S307 - our own source
        item.__module__ = home
        return item

    return told
