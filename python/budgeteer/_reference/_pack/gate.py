"""Reference of ``rust/core/src/gate.rs``."""

from collections.abc import Sequence
from dataclasses import dataclass

from budgeteer._codes import OUT_OF_SCOPE
from budgeteer._reference._pack.outcome import Outcome

AUTHORITIES = {"system": 1000, "developer": 800, "user": 600, "tool": 400, "other": 200}
KINDS = {
    "system": 120,
    "task": 100,
    "message": 60,
    "document": 50,
    "tool_output": 40,
    "other": 10,
}


@dataclass(slots=True)
class Gate:
    """The columns of the artifacts, and the number of documents to consider."""

    kinds: Sequence[str]
    authorities: Sequence[str]
    priorities: bytes
    max_docs: int

    def question(self, texts: Sequence[str], query: str) -> str:
        """Return the text of the first message, or *query* without one."""
        messages = (
            text for text, kind in zip(texts, self.kinds, strict=True) if kind == "message"
        )
        return next(messages, query)

    def rank(self, scores: Sequence[float], order: Sequence[int], outcome: Outcome) -> list[int]:
        """Return the indices, heaviest first; documents that score 0 are out of scope."""
        related = []
        for i in order:
            if self.is_document(i) and scores[i] == 0:
                outcome.drop(i, OUT_OF_SCOPE)
            else:
                related.append(i)
        return sorted(related, key=self.weight, reverse=True)

    def is_document(self, i: int) -> bool:
        return self.kinds[i] == "document"

    def weight(self, i: int) -> float:
        authority = AUTHORITIES.get(self.authorities[i], 0)
        priority = memoryview(self.priorities).cast("d")[i]
        return float(authority + KINDS.get(self.kinds[i], 0)) + priority
