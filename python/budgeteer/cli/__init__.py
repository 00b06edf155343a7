r"""
The command line: ``budgeteer ask``, ``count``, ``cut``, ``pack`` and others; see its help.

An answer goes to standard output whole, or not at all: an error is one line on standard error and
exit status 2. ``count`` alone answers what it can beside an error. Everything is read and written
as UTF-8. A lone surrogate, which that cannot hold, is written as U+FFFD, as which it counts; in
JSON it is its escape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line and return its exit status.

    Args:
        argv: The arguments; None takes those of the process.

    Returns:
        0; 2 after an error in the input, which is one line on standard error; 130 after Ctrl-C;
        141 if nobody read the output. ``count``, ``ask``, ``pack`` and ``query`` return 1 in cases
        that their help names. Other errors are raised.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "chunks.json")
        ...     _ = path.write_text('["Rye bread.", "Green tea."]')
        ...     arguments = ["--query", "tea", "--max-tokens", "3", "--input", str(path)]
        ...     status = main(["pack", *arguments])
        Green tea.
        >>> status
        0

    """
    try:
        return _run(argv)
    except KeyboardInterrupt:  # also while it is loaded
        return _INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    try:
        from budgeteer.cli._main import run
    except ImportError as error:
        if error.name != "budgeteer._backend":
            raise
        # A variable of the environment has a value that it cannot have: an error of the input.
        from budgeteer.cli._streams import fail

        return fail(str(error))
    return run(argv)
