"""How a name, a model or a function becomes a counter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._codes import CALLABLE, FRESH
from budgeteer._count.counter import TokenCounter
from budgeteer._count.names import ENCODINGS, NAMES, Meaning, meaning_of
from budgeteer._count.sources import SOURCES, Source, encoding_of
from budgeteer._models import MODELS, MODELS_OF, NATIVE
from budgeteer.errors import CounterError, InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

_LIKELY = tuple(name for name in NAMES if not name.startswith("claude"))
"""The names that a misspelled one may mean: every model of Claude's is nearly a counter's."""


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
            count more than this counter does. A counter with a margin is not exact. The factor of
            a model is multiplied by it, and rounded up once. The product is a float's, which may
            be one more than by hand: 50 and 0.1 are 56.

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
    cache, strict = _validate.flag("cache", cache), _validate.flag("strict", strict)
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
    basis, text = counter._source  # noqa: SLF001 - of this room, and below
    corrected = Source("factor" if basis == "exact" else basis, f"{text}, times {1 + margin:g}")
    return replace(counter._times(1 + margin, corrected), _observer=None)  # noqa: SLF001


def _say_estimate(counter: TokenCounter, *, strict: bool) -> None:
    """Refuse a counter that is not exact, or warn if it stands in for a model's."""
    estimate = counter._estimate  # noqa: SLF001 - of this room
    if estimate is not None:
        from budgeteer._count import limits as _limits  # few programs name a model

        if not strict:
            _limits.warn_of_estimate(counter.name, estimate.encoding, estimate.factor)
            return
        remedy = _limits.exact_remedy(counter.name)
    elif counter.basis == "reconstruction":
        remedy = "its tokenizer is not published: strict=False with margin=0.02 counts 2 % more"
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
        return name if cache else replace(name, _kind=_fresh(name._kind))  # noqa: SLF001 - of this room
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
    return _of_meaning(name, meaning, cache=cache)


def _of_meaning(name: str, meaning: Meaning, *, cache: bool) -> TokenCounter:
    kind = meaning.kind if cache else _fresh(meaning.kind)
    encoding = encoding_of(kind)
    is_exact = meaning.is_exact and (encoding is None or SOURCES[encoding].basis == "exact")
    return TokenCounter(name, is_exact, kind, meaning.ratio, meaning.function)


def _fresh(kind: Any) -> Any:
    """Return the kind of a counter that counts as *kind* does, without a cache."""
    if not isinstance(kind, int):
        return kind.fresh()
    return kind | FRESH if kind in ENCODINGS.values() else kind


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
        encoding, factor = _of_unknown(factor)
    return _by_encoding(limits.name, encoding, factor, cache=cache)


def _of_unknown(factor: float | None) -> tuple[str, float]:
    """Return what counts where nothing does natively, with the *factor* that is stated for it."""
    from budgeteer._count import limits as _limits  # few programs name such a model

    encoding, own = _limits.unknown_encoding()
    return encoding, own if factor is None else own * factor


def _by_encoding(name: str, encoding: str, factor: float | None, *, cache: bool) -> TokenCounter:
    """Return the counter of a model that has this encoding, times a factor."""
    if encoding in MODELS_OF and encoding not in NATIVE:
        encoding, factor = _of_unknown(factor)
    found = None if factor is None else _of_file(name, (encoding, factor), cache=cache)
    if found is not None:
        return found
    if factor is not None:
        counter = _named(NATIVE.get(encoding, encoding), cache=cache)
        return replace(counter._times(factor), name=name)  # noqa: SLF001 - of this room
    if encoding in NATIVE:
        return _named(NATIVE[encoding], cache=cache)
    if encoding in NAMES or ":" in encoding:  # for a model that a caller registered
        return _named(encoding, cache=cache)
    from budgeteer._count import limits as _limits  # few programs state an encoding

    raise _limits.no_encoding(f"the encoding of the model {name[:80]!r}", encoding)


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
