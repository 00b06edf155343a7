"""Errors of a caller's own component, with the component's name."""

from __future__ import annotations

import asyncio

from budgeteer import _validate
from budgeteer.errors import BudgeteerError, RetrievalError


class Guard:
    """
    Turns an exception raised within into a `RetrievalError` that names *source*.

    A cancellation passes if *is_awaited*, as it comes from the caller.
    """

    def __init__(self, source: str, *, is_awaited: bool = True) -> None:
        self._source = source
        self._kinds = (Exception,) if is_awaited else (Exception, asyncio.CancelledError)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, self._kinds):  # none, a cancellation, or Ctrl-C
            return
        if isinstance(error, RetrievalError) and error.source == self._source:
            return
        # Our own messages hold neither texts nor secrets; others may.
        found = error if isinstance(error, BudgeteerError) else _validate.type_name(error)
        raise RetrievalError(f"{self._source} failed: {found}", source=self._source) from error


def name_of(component: object) -> str:
    """Return the name of a component in errors."""
    name = getattr(component, "name", None)
    return name[:80] if isinstance(name, str) and name else _validate.type_name(component)
