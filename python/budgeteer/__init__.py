"""
Decides what goes into an LLM's context window.

`pack` and `Packer` fill one budget with the best of many chunks and say why each was kept, cut or
dropped. The returned text provably fits: its exact count is at most the budget. A `Layout` divides
a window among the sections of a whole prompt, `fit_request` makes a whole request to a provider
fit, `trim_messages` cuts a chat history to its newest messages, and `fit_output` cuts the result
of a tool, which stays valid JSON, a log or a diff.
"""

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than ours

if TYPE_CHECKING:
    from budgeteer._chunk.chunk import Chunk
    from budgeteer._count.calibration import Calibration, Correction
    from budgeteer._count.counter import CacheInfo, TokenCounter
    from budgeteer._count.resolve import get_counter
    from budgeteer._layout.layout import Allocation, Layout
    from budgeteer._layout.section import Section
    from budgeteer._messages.trim import trim_messages
    from budgeteer._output.output import FittedOutput, fit_output, fit_outputs
    from budgeteer._pack.compare import ChunkChange, Comparison, FigureChange, compare
    from budgeteer._pack.corpus import Corpus
    from budgeteer._pack.curve import BudgetPoint
    from budgeteer._pack.outcome import DroppedChunk, KeptChunk
    from budgeteer._pack.packer import Packer, pack
    from budgeteer._pack.packing import Packing
    from budgeteer._pack.parse import parse_context
    from budgeteer._pack.template import Prompt, Template
    from budgeteer._request.fit import fit_request
    from budgeteer._request.result import (
        FittedRequest,
        RequestChange,
        RequestReport,
        SectionTokens,
    )
    from budgeteer._table.table import PackedTable, pack_table
    from budgeteer.errors import (
        BudgeteerError,
        BudgetExhaustedError,
        CorpusError,
        CounterError,
        InternalError,
        InvalidArgumentError,
        PackingTimeoutError,
    )

    __version__: str

_HOMES = {
    "_chunk.chunk": ("Chunk",),
    "_count.calibration": ("Calibration", "Correction"),
    "_count.counter": ("CacheInfo", "TokenCounter"),
    "_count.resolve": ("get_counter",),
    "_layout.layout": ("Allocation", "Layout"),
    "_layout.section": ("Section",),
    "_messages.trim": ("trim_messages",),
    "_output.output": ("FittedOutput", "fit_output", "fit_outputs"),
    "_pack.compare": ("ChunkChange", "Comparison", "FigureChange", "compare"),
    "_pack.corpus": ("Corpus",),
    "_pack.curve": ("BudgetPoint",),
    "_pack.outcome": ("DroppedChunk", "KeptChunk"),
    "_pack.packer": ("Packer", "pack"),
    "_pack.packing": ("Packing",),
    "_pack.parse": ("parse_context",),
    "_pack.template": ("Prompt", "Template"),
    "_request.fit": ("fit_request",),
    "_request.result": ("FittedRequest", "RequestChange", "RequestReport", "SectionTokens"),
    "_table.table": ("PackedTable", "pack_table"),
    "errors": (
        *("BudgetExhaustedError", "BudgeteerError", "CorpusError", "CounterError"),
        *("InternalError", "InvalidArgumentError", "PackingTimeoutError"),
    ),
}
"""The modules of the public names. Each is loaded when one of its names is first used."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Allocation",
    "BudgetExhaustedError",
    "BudgetPoint",
    "BudgeteerError",
    "CacheInfo",
    "Calibration",
    "Chunk",
    "ChunkChange",
    "Comparison",
    "Corpus",
    "CorpusError",
    "Correction",
    "CounterError",
    "DroppedChunk",
    "FigureChange",
    "FittedOutput",
    "FittedRequest",
    "InternalError",
    "InvalidArgumentError",
    "KeptChunk",
    "Layout",
    "PackedTable",
    "Packer",
    "Packing",
    "PackingTimeoutError",
    "Prompt",
    "RequestChange",
    "RequestReport",
    "Section",
    "SectionTokens",
    "Template",
    "TokenCounter",
    "compare",
    "fit_output",
    "fit_outputs",
    "fit_request",
    "get_counter",
    "pack",
    "pack_table",
    "parse_context",
    "trim_messages",
]


if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> object:
        """Load a public name, or look the version up."""
        home = _HOME_OF.get(name)
        if home is not None:
            from importlib import import_module

            value = globals()[name] = getattr(import_module(f"budgeteer.{home}"), name)
            return value
        if name == "__version__":
            from importlib.metadata import version

            return version("budgeteer")
        raise AttributeError(f"module 'budgeteer' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOME_OF})
