r"""
The command line: ``budgeteer ask``, ``count``, ``cut``, ``pack`` and others; see its help.

An answer goes to standard output whole, or not at all: an error is one line on standard error and
exit status 2. ``count`` alone answers what it can beside an error. Everything is read and written
as UTF-8. A lone surrogate, which that cannot hold, is written as U+FFFD, as which it counts; in
JSON it is its escape.
"""

from budgeteer.cli._main import main

__all__ = ["main"]
