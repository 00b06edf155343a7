"""The newest turn of a history: what must stay of it, and how its tool results are cut to fit."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from budgeteer._count.counter import TokenCounter
from budgeteer._messages.mask import MASK
from budgeteer._messages.messages import MessageCosts
from budgeteer._messages.views import result_texts, with_results

MARKER = "\n[...truncated...]\n"
"""Stands where the middle of a text was cut out."""


class Turn:
    """
    Messages that stay whole, except for the texts of their tool results.

    Attributes:
        fixed: For the place of each message, its tokens without the texts of its tool results.
        least: The tokens that these texts take at least: each its own, or those of the marker.
        results: The number of these texts.
        missing: How many tokens more than the room all this takes; 0 or less if it fits.

    """

    __slots__ = (
        *("_counter", "_counts", "_messages", "_places", "_texts", "_wholes"),
        *("fixed", "least", "missing"),
    )

    def __init__(
        self,
        where: str,
        messages: Sequence[Any],
        given: Sequence[Any],
        places: Sequence[int],
        costs: MessageCosts,
        counter: TokenCounter,
        room: int,
        pinned: Container[int] = (),
    ) -> None:
        """
        Count the messages at *places* for *room* tokens; *where* names them in an error.

        Some of the *messages* may be shorter than they were *given*: cut before, or masked. Those
        that are *pinned* stay whole.
        """
        self._messages, self._counter = messages, counter
        self._places: list[int] = []  # of each text, that of its message
        self._texts: list[str] = []
        self._wholes: list[str] = []  # what each text is cut from
        self.fixed: dict[int, int] = {}
        for i in places:
            hold = None if i in pinned else self._hold
            self.fixed[i] = costs.of(f"{where}[{i}]", messages[i], hold)
            texts = self._texts[len(self._places) :]
            self._places += [i] * len(texts)
            # A text that was cut before is not cut a second time, which might hit its marker; a
            # mask stands for all texts of a result.
            is_cut = messages[i] is not given[i] and MASK not in texts
            wholes = result_texts(given[i]) if is_cut else texts
            self._wholes += wholes if len(wholes) == len(texts) else texts
        marker = counter.count(MARKER) if self._texts else 0
        most = max(room, marker)  # none gets more, so none is counted further
        counts = (counter.count_till_limit(text, most) for text in self._texts)
        self._counts = [most + 1 if tokens is None else tokens for tokens in counts]
        self.least = sum(min(tokens, marker) for tokens in self._counts)
        self.missing = sum(self.fixed.values()) + self.least - room

    def _hold(self, text: str) -> int:
        self._texts.append(text)
        return 0

    @property
    def results(self) -> int:
        return len(self._texts)

    def cut(self, room: int) -> tuple[dict[int, Any], dict[int, int]]:
        """
        Return the messages, by their places, with tool results cut to *room*, and their tokens.

        The longest texts are cut, to a length that all of them share. A message that stays as it
        is is the same object. *room* is from what all this takes at least to that for which it
        was counted.
        """
        tokens = dict(self.fixed)
        left = room - sum(tokens.values())
        cuts: dict[int, str] = {}
        order = sorted(range(len(self._texts)), key=self._counts.__getitem__)
        for done, i in enumerate(order):
            share = left // (len(order) - done)
            count = self._counts[i]
            if count > share:
                text = self._counter.truncate(self._wholes[i], share, keep="both", marker=MARKER)
                cuts[i] = text or MARKER
                count = self._counter.count(cuts[i])
            left -= count
            tokens[self._places[i]] += count
        texts: dict[int, list[str]] = {}  # of each place
        for i, text in enumerate(self._texts):
            texts.setdefault(self._places[i], []).append(cuts.get(i, text))
        made = {i: self._messages[i] for i in self.fixed}
        for place in {self._places[i] for i in cuts}:
            made[place] = with_results(self._messages[place], texts[place])
        return made, tokens
