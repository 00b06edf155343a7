"""What a run found: tables, as Markdown and as JSON, and what it ran on."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from suite.fixed import SOURCES, text_of

FORMAT = 1
"""The version of the JSON; a field that is renamed or removed makes a new one."""

PEERS = {
    "theaios.context_router": "theaios-context-router",
    "tiktoken": "tiktoken",
    "gigatoken": "gigatoken",
    "toktok": "toktok-rs",
    "quicktok": "quicktok-v1",
    "bm25s": "bm25s",
    "rank_bm25": "rank-bm25",
    "tantivy": "tantivy",
    "langchain_core": "langchain-core",
    "langchain_community": "langchain-community",
    "langchain_text_splitters": "langchain-text-splitters",
    "llama_index.core": "llama-index-core",
    "llama_index.retrievers.bm25": "llama-index-retrievers-bm25",
    "haystack": "haystack-ai",
    "litellm": "litellm",
}
"""The module of each peer, and its package."""


def has(module: str) -> bool:
    """Return whether the module of a peer is installed."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package around it
        return False


@dataclass
class Table:
    """Rows under columns. A cell is a text, a number or None, which is shown as a dash."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str | float | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"### {self.title}", ""]
        lines += [f"| {' | '.join(self.columns)} |", f"|{'---|' * len(self.columns)}"]
        lines += [f"| {' | '.join(map(shown, row))} |" for row in self.rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes), ""])

    def json(self) -> dict[str, Any]:
        """Return the table as JSON: each row by its columns."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}


@dataclass(frozen=True)
class Options:
    """What a run does."""

    smoke: bool = False
    """Everything once, and small."""
    rounds: int = 5
    questions: Sequence[Path] = ()
    """Files of questions with known evidence, for the section on recall."""

    def pick(self, usual: Any, small: Any) -> Any:
        """Return the one or the other, for a smoke run."""
        return small if self.smoke else usual


Section = Callable[[Options], Sequence[Table]]


def shown(cell: str | float | None) -> str:
    """Return a cell as it is read: three figures of a number."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"


def found_version(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def environment(options: Options, processors: int) -> dict[str, Any]:
    """Return what a run was on: the time, the machine, versions, texts and what was left out."""
    versions = {name: found_version(name) for name in ("budgeteer", "numpy", *PEERS.values())}
    return {
        "format": FORMAT,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "smoke": options.smoke,
        "rounds": options.rounds,
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": processor(),
        "processors": processors,
        "versions": {name: found for name, found in versions.items() if found},
        "left_out": sorted(package for module, package in PEERS.items() if not has(module)),
        "texts": {
            name: {
                "sha256": source.sha256,
                "characters": len(text_of(name)),
                "package": f"{source.package} {found_version(source.package)}",
            }
            for name, source in SOURCES.items()
        },
    }
