"""
Help for the tests of programs that use budgeteer.

`assert_fits` checks a bound by counting anew. `chunks` and `conversation` make the same input on
every machine, and `budgeteer.testing.strategies` has strategies for Hypothesis.

With budgeteer installed, pytest says at the end of a run how close each test came to its limit:
``pytest --budget-report``.
"""

from budgeteer.testing._fits import assert_fits
from budgeteer.testing._made import chunks, conversation

__all__ = ["assert_fits", "chunks", "conversation"]
