"""The logger of the package, made when there is something to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def log() -> logging.Logger:
    """Return the logger ``budgeteer``."""
    import logging  # slow to load, and most programs never hear of us

    return logging.getLogger("budgeteer")
