r"""
The command line: ``budgeteer query``, ``pack``, ``gate``, ``count``, ``models`` and ``inspect``.

A command writes its whole answer to standard output, or nothing: an error is one line on standard
error and exit status 2. Input and output are UTF-8; a lone surrogate is written as ``\udXXX``,
which is also its escape in JSON.
"""

from budgeteer.cli._main import main

__all__ = ["main"]
