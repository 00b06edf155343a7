"""
Prompts: the final text is what a function of the caller's makes of the kept chunks.

What that function writes around the chunks is not known before. Chunks are packed as plain texts
into a room inside the budget, rendered and counted, and the room is corrected by what was counted.
So this module keeps nothing that it has not counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._chunk.chunk import tagger
from budgeteer._codes import ASSEMBLED
from budgeteer._pack.template import answer_of

if TYPE_CHECKING:
    from budgeteer._deadline import Watch
    from budgeteer._pack.call import Call
    from budgeteer._pack.prepared import Prepared

RENDERINGS = 8
"""The most sets of kept chunks that are rendered, besides that without a chunk."""

PACKINGS = 12
"""The most rooms that are tried."""

SECANTS = 4
"""The number of rooms found from the last count; those after that halve what is left."""

_MOST = _validate.MAX_TOKENS
_INDEX = 4
"""The bytes of the index of a kept chunk."""

_BLOCK, _FEW = 32, 16
"""The characters by which parts of a text are found, and the most places that are looked at."""

_MUCH = 1 << 24
"""From how many characters on, read for all parts, finding them by blocks is faster."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The chunks that were kept in a room, and the final text of them."""

    packed: Any
    text: str
    total: int
    added: int
    """The tokens of the kept chunks' own texts, with what was set aside for each."""


@dataclass(slots=True)
class Prompted:
    """
    One call that packs for a prompt.

    Attributes:
        call: The call.
        budget: The tokens of the budget.
        watch: Called while chunks are packed; what it raises ends that. None for nothing.

    """

    call: Call
    budget: int
    watch: Watch | None = None
    prepared: Prepared = field(init=False)
    keys: bytes | None = field(init=False)
    extra: int = field(init=False, default=0)
    """The tokens that are set aside for what is written around each chunk."""

    made: dict[bytes, tuple[str, int]] = field(init=False, default_factory=dict)
    """The final text of each set of kept chunks, and its tokens."""

    counted: dict[str, int] = field(init=False, default_factory=dict)
    """What the counter answered, as chunks are considered again in each room."""

    def __post_init__(self) -> None:
        self.prepared = self.call.prepared
        self.keys = self.call.keys(self.watch)

    def pack(self) -> Any:
        """Return a backend's answer, with the final text in place of the plain one."""
        text, around = self._made(b"")
        packed = self._packed(max(0, self.budget - around))
        if isinstance(packed, tuple):
            return packed
        if around > self.budget:
            return Final(self._nothing(), "", 0)
        best = self._search(packed, around)
        if best is None:
            return Final(self._nothing(), text, around)
        return Final(best.packed, best.text, best.total)

    def _search(self, packed: Any, around: int) -> Rendered | None:
        """
        Return the fullest packing whose final text fits; None if none was found.

        *packed* has the room that is left of the budget by *around*, the tokens without a chunk.
        What rendering adds for each of its chunks is set aside for each from then on. Rooms are
        then found from the last count, and later halfway between one that fits and one that does
        not.
        """
        room = self.budget - around
        now = self._rendered(packed)
        best = now if now.total <= self.budget else None
        kept = len(packed.kept) // _INDEX
        beyond = now.total - around - now.added
        if kept and beyond > 0:
            self.extra = -(-beyond // kept)
            now = self._rendered(self._packed(room))
        low, high = 0, _MOST + 1
        for step in range(PACKINGS):
            if now.total <= self.budget:
                is_same = step > 0 and best is not None and best.packed.kept == now.packed.kept
                best, low = now, room
                if now.total == self.budget or (is_same and now.packed.kept and high > _MOST):
                    break  # no other chunk fits
            else:
                high = room
            if high - low <= 1:
                break
            room = self._next(now, room, around, low, high, step)
            packed = self._packed(room)
            if packed.kept not in self.made and len(self.made) > RENDERINGS:
                break
            now = self._rendered(packed)
        return best

    def _next(self, now: Rendered, room: int, around: int, low: int, high: int, step: int) -> int:
        """Return the room to try after *room*: above *low*, which fits, below *high*, over it."""
        missing, spent = self.budget - now.total, now.total - around
        is_open = high > _MOST
        if is_open and (spent <= 0 or now.added == 0):
            return min(2 * room + 1, _MOST)
        if spent > 0 and (is_open or step < SECANTS):
            by = max(1, abs(missing) * now.added // spent)
            found = room + by if missing > 0 else room - by
            if low < found < high:
                return found
        return _MOST if is_open else (low + high) // 2

    def _rendered(self, packed: Any) -> Rendered:
        """Return the final text of the chunks that *packed* keeps."""
        text, total = self._made(packed.kept)
        added = sum(memoryview(packed.token_counts).cast("q"))
        added += self.extra * (len(packed.kept) // _INDEX)
        return Rendered(packed, text, total, added)

    def _made(self, kept: bytes) -> tuple[str, int]:
        """Return the final text of these chunks and its tokens; it is made once."""
        if kept not in self.made:
            items, prompt = self.call.items, self.prepared.prompt
            assert prompt is not None  # noqa: S101 - callers have asked
            chunks = [items[i] for i in memoryview(kept).cast("I")]
            text = answer_of(prompt.render, chunks, "render", f"{len(chunks)} chunks")
            # Without text there are 0 tokens, whatever a counter says of it.
            total = self.prepared.counter._count_chunk(text, ASSEMBLED) if text else 0
            self.made[kept] = text, total
        return self.made[kept]

    def _nothing(self) -> Any:
        """Return a backend's answer in which nothing is kept."""
        self.extra = 0
        packed = self._packed(0)
        if packed.kept:  # chunks that count 0; no text does under an estimate by characters
            packed = self._packed(0, self.prepared.steps[1])
        return packed

    def _packed(self, room: int, prepared: Prepared | None = None) -> Any:
        """Return a backend's answer for plain texts within *room*."""
        call, extra = self.call, self.extra
        if prepared is None:
            prepared = self.prepared.steps[0] if extra else self.prepared
        return prepared.plan.pack(
            call.query,
            call.items if call.state is None else call.state.index,
            room,
            keys=self.keys,
            ask=None if prepared.ask is None else self._ask,
            tag=tagger(call.items),
            cite=(lambda _: extra) if extra else None,
            watch=self.watch,
            releases=call.releases,
        )

    def _ask(self, text: str, i: int) -> int:
        if text not in self.counted:
            self.counted[text] = self.prepared.counter._count_chunk(text, i)
        return self.counted[text]


def _places(text: str, parts: Sequence[str]) -> Iterator[int]:
    """
    Yield where each of *parts* stands in *text*, -1 if not once.

    Wherever a part that is long enough stands, a whole block of the text begins in its middle. So
    the text is not read again for each of many parts.
    """
    blocks: dict[str, list[int]] = {}
    if len(text) * len(parts) > _MUCH:
        for at in range(0, len(text) - _BLOCK + 1, _BLOCK):
            blocks.setdefault(text[at : at + _BLOCK], []).append(at)
    for part in parts:
        if blocks and len(part) >= 2 * _BLOCK:
            middle = len(part) // 2 - _BLOCK  # where parts of one kind are least alike
            offsets = range(middle, middle + _BLOCK)
            known = [(blocks.get(part[i : i + _BLOCK], ()), i) for i in offsets]
            if sum(len(found) for found, _ in known) <= _FEW:  # else much of the text is repeated
                starts = [at - i for found, i in known for at in found if at >= i]
                starts = [start for start in starts if text.startswith(part, start)]
                yield starts[0] if len(starts) == 1 else -1
                continue
        start = text.find(part)
        yield start if start >= 0 and text.find(part, start + 1) < 0 else -1


class Final:
    """A backend's answer, with the final text in place of the plain one."""

    def __init__(self, packed: Any, text: str, total: int) -> None:
        """Take the answer, the final text and its tokens."""
        self._packed = packed
        self.text = text
        self.total_tokens = total
        spans = memoryview(packed.spans).cast("q").tolist()
        self.own = tuple(
            packed.text[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)
        )
        """The kept chunks' own texts, in the order of the text."""

    @property
    def citation_tokens(self) -> bytes:
        """Nothing is cited: what was set aside is in the text by now."""
        return bytes(8 * len(self.own))

    @cached_property
    def spans(self) -> bytes:
        """Where each text stands, as int64; -1 if it stands there not once or more than once."""
        spans = array("q")
        for start, own in zip(_places(self.text, self.own), self.own, strict=True):
            spans.extend((-1, -1) if start < 0 else (start, start + len(own)))
        return spans.tobytes()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packed, name)
