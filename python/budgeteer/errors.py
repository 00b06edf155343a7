"""Exceptions that the library raises, the same from either backend."""


class BudgeteerError(Exception):
    """Base class of every error that this library raises on purpose."""


class InvalidArgumentError(BudgeteerError, ValueError):
    """An argument has a wrong type, is out of range or contradicts another."""


class BudgetExhaustedError(BudgeteerError, ValueError):
    """Nothing is left for chunks once the fixed costs are taken."""


class InputValidationError(BudgetExhaustedError):
    """A query and the fixed costs leave nothing for retrieval; nothing need be retrieved."""


class CounterError(BudgeteerError):
    """A token counter cannot be had, or answered something that is not a count."""


class InternalError(BudgeteerError, RuntimeError):
    """A defect of this library, not of its input. Please report it."""
