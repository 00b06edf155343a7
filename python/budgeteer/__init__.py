"""
Decides what goes into an LLM's context window.

`pack` and `Packer` fill one budget with the best of many chunks and say why each was kept, cut or
dropped. What they return provably fits: the counter answers at most the budget for exactly the
text that is returned. A `Layout` divides a window among the sections of a whole prompt, and
`trim_messages` a chat history to its newest messages.
"""

from typing import TYPE_CHECKING, Any

from budgeteer._chunk.chunk import Chunk
from budgeteer._count.counter import CacheInfo, TokenCounter, get_counter
from budgeteer._pack.corpus import Corpus
from budgeteer._pack.packer import Packer, pack
from budgeteer._pack.packing import DroppedChunk, KeptChunk, Packing
from budgeteer._pack.template import Template, parse_context
from budgeteer.errors import (
    BudgeteerError,
    BudgetExhaustedError,
    CorpusError,
    CounterError,
    InternalError,
    InvalidArgumentError,
)

__all__ = [
    "Allocation",
    "BudgetExhaustedError",
    "BudgeteerError",
    "CacheInfo",
    "Chunk",
    "Corpus",
    "CorpusError",
    "CounterError",
    "DroppedChunk",
    "InternalError",
    "InvalidArgumentError",
    "KeptChunk",
    "Layout",
    "Packer",
    "Packing",
    "Section",
    "Template",
    "TokenCounter",
    "get_counter",
    "pack",
    "parse_context",
    "trim_messages",
]


_LATER = {
    "Allocation": "_layout",
    "Layout": "_layout",
    "Section": "_section",
    "trim_messages": "_trim",
}
"""The modules of names that are loaded when they are asked for: a third of the import's time."""

if TYPE_CHECKING:
    from budgeteer._layout.layout import Allocation, Layout
    from budgeteer._layout.section import Section
    from budgeteer._messages.trim import trim_messages

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """Load a name, or look the version up: what reads it loads half the standard library."""
        if name in _LATER:
            from importlib import import_module

            value = getattr(import_module(f"budgeteer.{_LATER[name]}"), name)
            globals()[name] = value
            return value
        if name == "__version__":
            from importlib.metadata import version

            return version("budgeteer")
        raise AttributeError(f"module 'budgeteer' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})
