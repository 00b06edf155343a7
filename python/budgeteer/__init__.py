"""
Decides what goes into an LLM's context window.

`pack` and `Packer` fill one budget with the best of many chunks and say why each was kept, cut or
dropped. What they return provably fits: the counter answers at most the budget for exactly the
text that is returned.
"""

from importlib.metadata import version as _version

from budgeteer._chunk import Chunk
from budgeteer._count import TokenCounter, get_counter
from budgeteer._pack import Packer, pack
from budgeteer._packing import DroppedChunk, KeptChunk, Packing
from budgeteer.errors import (
    BudgeteerError,
    BudgetExhaustedError,
    CounterError,
    InternalError,
    InvalidArgumentError,
)

__version__ = _version("budgeteer")

__all__ = [
    "BudgetExhaustedError",
    "BudgeteerError",
    "Chunk",
    "CounterError",
    "DroppedChunk",
    "InternalError",
    "InvalidArgumentError",
    "KeptChunk",
    "Packer",
    "Packing",
    "TokenCounter",
    "get_counter",
    "pack",
]
