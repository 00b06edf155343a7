"""What bills teach: a correction of counts for each model, fitted to pairs of count and bill."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from budgeteer import _process, _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._count.limits import ModelLimits
from budgeteer._count.resolve import get_counter
from budgeteer._count.sources import Source
from budgeteer._process import renew
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

VERSION = 1
MAX_MODELS = 256
MAX_PAIRS = 32  # of each size
MAX_ESTIMATED = 1 << 25

# A scale is a whole number of these steps to one: all of the fit is whole numbers, and other
# languages get the same answer.
_STEPS = 256
_MIN_SCALE, _MAX_SCALE = _STEPS // 4, _STEPS * 4
_MAX_FRAME = 1 << 17
_LEAST_SHARE = 10  # a bill is at least a tenth of the count
_COARSE = 16

_PAIRS_TO_LOWER, _SPREAD_TO_LOWER = 64, 4
_SPREAD_TO_SPLIT = 2

Pair: TypeAlias = tuple[int, int]
Counter: TypeAlias = str | TokenCounter | Callable[[str], int]


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class Correction:
    """
    What was learned of a model: a bill is at most ``frame_tokens`` plus *scale* times the count.

    Attributes:
        scale: What a count is multiplied by, from 0.25 to 4, in steps of 1/256.
        frame_tokens: What each request costs beside, whatever its size: 0 to 131072 tokens.
        pairs: The number of pairs that it is fitted to.

    Examples:
        >>> Correction(scale=1.25, frame_tokens=30, pairs=8).bound(1000)
        1280

    """

    scale: float
    frame_tokens: int
    pairs: int

    def bound(self, estimated: int) -> int:
        """
        Return the most tokens that a request of that count is expected to be billed.

        Raises:
            InvalidArgumentError: *estimated* is not an int from 0 on.

        Examples:
            >>> Correction(scale=1.5, frame_tokens=7, pairs=8).bound(3)
            12

        """
        count = _validate.tokens("estimated", estimated)
        return self.frame_tokens + math.ceil(count * self.scale)


@public("budgeteer")
class Calibration:
    """
    Learns from bills how far counts are off, for each model, and corrects them.

    After each request tell `observe` the count of what was sent, and what the provider billed for
    it, ``usage.prompt_tokens``. `correction` fits the line

        ``billed <= frame_tokens + scale * estimated``

    that covers the share *quantile* of the pairs, and is the lowest one at their median size.
    `counter` makes a counter that multiplies by the scale; a request needs ``frame_tokens``
    beside, once. Safe to share between threads. A copy, pickled or not, has what was observed
    until then, and learns by itself.

    What it keeps is bounded: the newest 32 pairs of each size, where sizes from a power of two to
    the next are one, so that many small requests do not displace a large one; and 256 models, of
    which the one that was not observed for longest goes first.

    A correction errs high where little was seen:

    - Fewer than 1 / (1 - *quantile*) pairs are all covered.
    - The scale is at least 1 until 64 pairs were seen, and sizes that differ by a factor of 4, the
      smallest and the largest tenth left aside. It is at least 0.25.
    - While sizes differ by less than a factor of 2, nothing tells frame and scale apart, and the
      scale takes it all: the frame has only what is above a scale of 4.
    - A drift of less than a step of the scale is taken for a frame, so that a model that counts
      exactly keeps its own counter.

    Args:
        quantile: The share of the pairs that a correction covers, from 0.5 to 1.

    Raises:
        InvalidArgumentError: *quantile* is not a number in that range.

    Examples:
        >>> calibration = Calibration()
        >>> calibration.correction("qwen3-32b") is None  # no data, which is not "no drift"
        True
        >>> for estimated in (1_000, 4_000, 9_000):
        ...     calibration.observe(estimated, 40 + estimated * 5 // 4, model="qwen3-32b")
        >>> calibration.correction("qwen3-32b")
        Correction(scale=1.25, frame_tokens=40, pairs=3)
        >>> raw, learned = get_counter("qwen3-32b"), calibration.counter("qwen3-32b")
        >>> text = "Green tea is mild. " * 20
        >>> learned.count(text) == math.ceil(1.25 * raw.count(text))
        True

    """

    def __init__(self, *, quantile: float = 0.99) -> None:
        self._quantile = _validate.number("quantile", quantile)
        if not 0.5 <= self._quantile <= 1:
            raise InvalidArgumentError(f"quantile must be from 0.5 to 1, not {self._quantile!r}")
        self._models: dict[str, _Pairs] = {}
        self._begin_anew()
        renew(self)

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()  # a signal handler may call in the middle of an update

    def __repr__(self) -> str:
        """Return the quantile and the number of models."""
        return f"<Calibration of {len(self._models)} models, quantile {self._quantile:g}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was observed; it is fitted again."""
        return _restored, (type(self), self._quantile, self._observed())

    def observe(
        self,
        estimated: int,
        billed: int,
        *,
        model: Counter | ModelLimits,
        counter: Counter | None = None,
    ) -> None:
        """
        Learn from one request.

        A pair that no correction within the bounds could cover is refused, and so is a bill far
        below the count, from which the tokens of a cache are missing. Nothing is learned then.

        Args:
            estimated: The count of all that was sent, before any correction, by the counter of
                *model*: 1 to 33554432 tokens. For a corrected count there is
                `TokenCounter.observe`.
            billed: The tokens of the whole prompt in the bill, cached ones included: a tenth of
                *estimated* to 4 * *estimated* + 131072.
            model: The model, as for `get_counter`. What is learned belongs to its name as it is
                spelled here: ``openai/gpt-4o`` and ``gpt-4o-2024-08-06`` are not ``gpt-4o``.
            counter: What counted, as for `get_counter`; None is the counter of *model*. Pairs of
                one model by counters of different names are kept apart; the name of a function is
                its ``__name__``, so two lambdas share theirs.

        Raises:
            InvalidArgumentError: A number is not an int or is out of range, or *model* or
                *counter* is a counter that is corrected already or that nobody knows.

        Examples:
            >>> calibration = Calibration()
            >>> calibration.observe(1_000, 1_100, model="gpt-4o")
            >>> calibration.correction("gpt-4o").bound(2_000)
            2204

        """
        key, _ = _key_and_counter(model, counter)
        self._add(key, *_checked(estimated, billed))

    def correction(
        self,
        model: Counter | ModelLimits,
        *,
        counter: Counter | None = None,
    ) -> Correction | None:
        """
        Return what was learned of a model; None if nothing was observed.

        Without drift it is a `Correction` with scale 1 and frame 0. *model* and *counter* are as
        for `observe`.

        Raises:
            InvalidArgumentError: As for `observe`.

        Examples:
            >>> calibration = Calibration()
            >>> calibration.observe(1_000, 1_000, model="gpt-4o")
            >>> calibration.correction("gpt-4o")
            Correction(scale=1.0, frame_tokens=0, pairs=1)

        """
        return self._correction(_key_and_counter(model, counter)[0])

    def counter(
        self,
        model: Counter | ModelLimits,
        *,
        counter: Counter | None = None,
    ) -> TokenCounter:
        """
        Return the counter of a model, corrected by what was learned until now.

        It gives ceil(scale * count), and 0 for the empty text. Where the model counts by a factor,
        that is multiplied by the scale, and rounded up once. As every counter it never changes:
        ask again to have what was learned since. The frame of a request is not in its counts, as
        it would be in those of each chunk: reserve the ``frame_tokens`` of the correction once. A
        `budgeteer.service.RetrievalService` with a calibration does so by itself.

        A scale of 1 leaves the counter as it is, native and exact where it was. With another scale
        it is an estimate. Its `TokenCounter.observe` learns from bills.

        Raises:
            InvalidArgumentError: As for `observe`.

        Examples:
            >>> from budgeteer import pack
            >>> calibration = Calibration()
            >>> for estimated in (1_000, 4_000):
            ...     calibration.observe(estimated, 200 + 2 * estimated, model="gpt-4o")
            >>> counter, learned = calibration.counter("gpt-4o"), calibration.correction("gpt-4o")
            >>> frame = learned.frame_tokens if learned else 0
            >>> packing = pack("tea", ["Green tea."] * 9, 220, counter=counter,
            ...                reserve_tokens=frame, dedupe=None)
            >>> counter.is_exact, frame, packing.total_tokens, len(packing.kept)
            (False, 200, 18, 3)

        """
        key, raw = _key_and_counter(model, counter)
        learned = self._correction(key)
        scale, pairs = (1.0, 0) if learned is None else (learned.scale, learned.pairs)
        observer = _Observer(self, key, scale)
        if scale == 1:
            return replace(raw, _observer=observer)
        learned_from = Source("learned", f"{pairs} pairs of counts and bills, over {raw.name}")
        return replace(raw._times(scale, learned_from), _observer=observer)  # noqa: SLF001

    def save(self, path: str | os.PathLike[str]) -> None:
        r"""
        Write what was observed to a small JSON file, which `load` reads.

        The file is written beside *path*, or beside what that links to, and replaces it when it is
        complete, with the same permissions. Where two processes save to one file, the last wins.

        Raises:
            InvalidArgumentError: *path* is not a path.
            OSError: The file cannot be written; a previous file is left as it was.

        Examples:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "bills.json")
            ...     calibration = Calibration()
            ...     calibration.observe(1_000, 1_100, model="chars_div4")
            ...     calibration.save(path)
            ...     path.read_text()
            '{"version": 1, "models": {"chars_div4": {"pairs": [[1000, 1100]]}}}\n'

        """
        import json

        from budgeteer._files import write_whole

        name = _validate.path("path", path)
        models = {key: {"pairs": pairs} for key, pairs in self._observed().items()}
        data = (json.dumps({"version": VERSION, "models": models}) + "\n").encode()
        write_whole(name, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, quantile: float = 0.99) -> Calibration:
        """
        Return the calibration that `save` wrote, with a quantile of its own.

        Keys that are not known are ignored.

        Raises:
            InvalidArgumentError: The file is of another version or damaged; the message names the
                file and the place. Or an argument has a wrong type or is out of range.
            OSError: The file cannot be read; FileNotFoundError if there is none yet.

        Examples:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     try:
            ...         calibration = Calibration.load(f"{folder}/bills.json")
            ...     except FileNotFoundError:
            ...         calibration = Calibration()
            >>> calibration
            <Calibration of 0 models, quantile 0.99>

        """
        from budgeteer._files import decode, parse_json

        name = _validate.path("path", path)
        calibration = cls(quantile=quantile)
        with open(name, "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            data = file.read()
        try:
            for key, pairs in _models_of(parse_json(decode(data))):
                for estimated, billed in pairs:
                    calibration._add(key, estimated, billed)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{name!r}: {error}") from None
        return calibration

    def _observed(self) -> dict[str, list[Pair]]:
        with self._lock:
            return {key: [*found] for key, found in self._models.items()}

    def _add(self, key: str, estimated: int, billed: int) -> None:
        with self._lock:
            found = self._models.pop(key, None) or _Pairs()
            found.add(estimated, billed)
            self._models[key] = found  # the newest is the last
            if len(self._models) > MAX_MODELS:
                del self._models[next(iter(self._models))]

    def _correction(self, key: str) -> Correction | None:
        with self._lock:
            found = self._models.get(key)
            return None if found is None else found.correction(self._quantile)


def _restored(
    kind: type[Calibration], quantile: float, models: dict[str, list[Pair]]
) -> Calibration:
    calibration = kind(quantile=quantile)
    for key, pairs in models.items():
        for pair in pairs:
            calibration._add(key, *pair)  # noqa: SLF001 - of its own module
    return calibration


@dataclass(frozen=True, slots=True)
class _Observer:
    """Teaches a calibration from counts of a corrected counter. A copy by pickle is None."""

    calibration: Calibration
    key: str
    scale: float

    def __call__(self, estimated: int, billed: int) -> None:
        given = _validate.tokens("estimated", estimated, minimum=1)
        self.calibration._add(self.key, *_checked(_raw(given, self.scale), billed))  # noqa: SLF001

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        # What a copy in another process learned would be lost without a word.
        return type(None), ()


class _Pairs:
    """The newest pairs of a model of each size, and the correction that fits them."""

    def __init__(self) -> None:
        self._sizes: dict[int, deque[Pair]] = {}
        self._correction: Correction | None = None  # None until it is asked for

    def __iter__(self) -> Iterator[Pair]:
        for size in sorted(self._sizes):
            yield from self._sizes[size]

    def add(self, estimated: int, billed: int) -> None:
        newest = self._sizes.setdefault(estimated.bit_length(), deque(maxlen=MAX_PAIRS))
        newest.append((estimated, billed))
        self._correction = None

    def correction(self, quantile: float) -> Correction:
        if self._correction is None:
            self._correction = _fitted([*self], quantile)
        return self._correction


def _fitted(pairs: list[Pair], quantile: float) -> Correction:
    """Return the lowest correction that covers the share *quantile* of *pairs*."""
    _process.load_numpy()
    import numpy as np

    estimated, billed = np.array(sorted(pairs), dtype=np.int64).T
    n = len(pairs)
    # More than half: else the larger or the smaller ones could be covered alone, by a scale that
    # fits no other.
    last = min(n, max(math.ceil(quantile * n), n // 2 + 1)) - 1
    low, middle, high = (int(estimated[at]) for at in (n // 10, n // 2, n - 1 - n // 10))

    def frames(scales: Sequence[int]) -> list[int]:
        """Return the least frame beside each scale that covers enough pairs."""
        above = _STEPS * billed - np.array(scales, dtype=np.int64)[:, None] * estimated
        reached = np.partition(above, last, axis=1)[:, last].tolist()
        return [max(0, -(-tokens // _STEPS)) for tokens in reached]

    def lowest(scales: Sequence[int]) -> tuple[int, int, int]:
        """Return of these scales what costs least at the middle size, cost and frame with it."""
        return min(
            (_STEPS * frame + scale * middle, -scale, frame)
            for scale, frame in zip(scales, frames(scales), strict=True)
            if frame <= _MAX_FRAME
        )

    [frame] = frames([_STEPS])  # without a scale
    if high < _SPREAD_TO_SPLIT * low:
        if _STEPS * frame <= low:
            return Correction(1.0, frame, n)
        ratios = np.partition(-(-_STEPS * billed // estimated), last)
        scale = min(max(int(ratios[last]), _STEPS), _MAX_SCALE)
        return Correction(scale / _STEPS, frames([scale])[0], n)
    can_lower = n >= _PAIRS_TO_LOWER and high >= _SPREAD_TO_LOWER * low
    least = _MIN_SCALE if can_lower else _STEPS
    _, near, _ = lowest(range(least, _MAX_SCALE + 1, _COARSE))
    around = range(max(least, -near - _COARSE), min(_MAX_SCALE, -near + _COARSE) + 1)
    cost, scale, best = lowest(around)
    is_frame = _STEPS * (frame - best) <= middle and frame <= _MAX_FRAME
    if is_frame and _STEPS * _STEPS * (frame + middle) <= (_STEPS + 1) * cost:
        return Correction(1.0, frame, n)
    return Correction(-scale / _STEPS, best, n)


def _raw(count: int, scale: float) -> int:
    """Return the least number, from 1 on, which the scale makes at least *count*."""
    times, parts = scale.as_integer_ratio()
    return parts * (count - 1) // times + 1


def _checked(estimated: object, billed: object) -> Pair:
    """Return a pair that a correction can cover."""
    count = _validate.whole("estimated", estimated, 1, MAX_ESTIMATED)
    bill = _validate.tokens("billed", billed, minimum=1)
    most = _MAX_SCALE // _STEPS * count + _MAX_FRAME
    if bill > most:
        raise InvalidArgumentError(
            f"billed must be at most 4 * {count} + {_MAX_FRAME} = {most} for a count of {count}, "
            f"not {_validate.shown(bill)}: is it the bill of another request?"
        )
    if _LEAST_SHARE * bill < count:
        raise InvalidArgumentError(
            f"billed must be at least a tenth of the count {count}, not {bill}: a bill has the "
            "tokens that a cache gave as well; add those that the provider states apart"
        )
    return count, bill


def _key_and_counter(
    model: Counter | ModelLimits, counter: Counter | None
) -> tuple[str, TokenCounter]:
    """Return what the pairs of a model are kept under, and the counter that is to be corrected."""
    raw = get_counter(model if counter is None else counter)
    if raw._observer is not None or raw.basis == "learned":  # noqa: SLF001
        argument = "model" if counter is None else "counter"
        raise InvalidArgumentError(
            f"{argument} must not be a counter that a calibration made: its own observe takes its "
            "counts, and the calibration makes a newer one from the model's name"
        )
    product = raw._product  # noqa: SLF001
    counted = raw.name if product is None else str(product)
    name = model.name if isinstance(model, ModelLimits) else model
    if not isinstance(name, str):
        name = get_counter(name).name
    return (name if name == counted else f"{name} ({counted})"), raw


def _models_of(document: object) -> Iterator[tuple[str, list[Pair]]]:
    """Yield the key and the pairs of each model in a file."""
    if not isinstance(document, dict) or not isinstance(document.get("models"), dict):
        raise InvalidArgumentError("it must be an object with an object 'models'")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        shown = repr(version)[:80]
        raise InvalidArgumentError(f"its version must be {VERSION}, not {shown}")
    for key, fields in document["models"].items():
        place = f"models[{key[:80]!r}]"
        pairs = fields.get("pairs") if isinstance(fields, dict) else None
        if not isinstance(pairs, list):
            raise InvalidArgumentError(f"{place} must be an object with a list 'pairs'")
        checked = []
        for i, pair in enumerate(pairs):
            if not isinstance(pair, list) or len(pair) != 2:
                raise InvalidArgumentError(f"{place}: pairs[{i}] must be a list of two numbers")
            try:
                checked.append(_checked(*pair))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{place}: pairs[{i}]: {error}") from None
        yield key, checked
