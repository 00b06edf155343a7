"""The logger of the package, made when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def log() -> logging.Logger:
    """Return the logger ``budgeteer``."""
    import logging  # slow to load, and most programs log nothing

    return logging.getLogger("budgeteer")
