"""Copies of objects that hold what is not theirs to copy, and errors where these are pickled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from budgeteer._process import renew
from budgeteer.errors import BudgeteerError

if TYPE_CHECKING:
    from typing_extensions import Self


class Copied:
    """
    Copies of it, deep ones too, have attributes of their own and share what these hold.

    They hold the caller's chunks, functions and clients, or what never changes. Locks, which
    forked processes renew, are made anew.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        other = type(self).__new__(type(self))
        getattr(other, "__dict__", {}).update(getattr(self, "__dict__", {}))
        begin_anew = getattr(other, "_begin_anew", None)
        if begin_anew is not None:
            begin_anew()
            renew(other)  # type: ignore[arg-type]  # it has the method
        return other

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()


class Unpickled(Copied):
    """It can be copied, but holds what no other process can have."""

    __slots__ = ()

    _instead: ClassVar[str]
    """What to do instead of pickling it."""

    def __reduce__(self) -> Any:
        raise BudgeteerError(f"a {type(self).__name__} cannot be pickled: {self._instead}")
