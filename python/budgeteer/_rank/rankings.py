"""Rankings as objects: what comes first, with the options of each way to decide it."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from budgeteer import _codes, _validate
from budgeteer._needs import HybridWire, Needs, needs_of
from budgeteer._public import public
from budgeteer._rank.similarity import Embedder
from budgeteer._rank.statistics import Statistics, refuse_other_words
from budgeteer._rank.terms import Language, Stopwords, words_of
from budgeteer.errors import InvalidArgumentError

RankingName: TypeAlias = Literal[
    "lexical", "bm25", "keyword", "recency", "input", "score", "embedding", "hybrid"
]
Fusion: TypeAlias = Literal["minmax", "rrf"]
Signal: TypeAlias = Literal["bm25", "embedding", "score"]

NAMES: tuple[RankingName, ...] = get_args(RankingName)
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)
SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""The scores that a hybrid ranking weighs, in the order in which backends take the weights."""

DEFAULT_K = 60

LexicalWire: TypeAlias = tuple[
    float, float, str | None, str | tuple[str, ...] | None, float, bool, bool, bool, Any
]
"""
The options of a ranking by words as a backend takes them.

k1, b, the language of stems, stopwords, k3, whether headings, links and feedback count, and the
statistics, if any, as the backend has them.
"""


@public("budgeteer.ranking")
@dataclass(frozen=True, slots=True)
class Bm25:
    """
    Ranks chunks, each with its title, by BM25 over all chunks of a call.

    `budgeteer.ranking.bm25_scores` has the formula. ``ranking="bm25"`` is short for ``Bm25()``.

    Args:
        stemming: The language whose words are reduced to stems (work, works, working) by
            Snowball's algorithms: ``"arabic"``, ``"armenian"``, ``"basque"``, ``"catalan"``,
            ``"dutch"``, ``"english"``, ``"esperanto"``, ``"estonian"``, ``"french"``,
            ``"german"``, ``"greek"``, ``"hindi"``, ``"hungarian"``, ``"indonesian"``, ``"irish"``,
            ``"italian"``, ``"lithuanian"``, ``"nepali"``, ``"norwegian"``, ``"polish"``,
            ``"portuguese"``, ``"romanian"``, ``"russian"``, ``"serbian"``, ``"spanish"``,
            ``"swedish"``, ``"tamil"`` or ``"turkish"``. None, the default, keeps words as they
            are.
        stopwords: Words that match nothing: the list of a language (``"danish"``, ``"dutch"``,
            ``"english"``, ``"finnish"``, ``"french"``, ``"german"``, ``"hungarian"``,
            ``"indonesian"``, ``"irish"``, ``"italian"``, ``"norwegian"``, ``"portuguese"``,
            ``"russian"``, ``"sesotho"``, ``"spanish"`` or ``"swedish"``) or a collection of your
            own, compared in lowercase and before stemming. None has none.
        k1: How much repetitions of a term add, from 0 (nothing) to 1,000,000.
        b: How strongly long texts are marked down, from 0 to 1.
        statistics: Those of the collection that the chunks of a call are from: how rare a word and
            how long a text is goes by them. They must have the same stemming and stopwords. None,
            the default, goes by the chunks of the call, or those of the corpus.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.

    Examples:
        >>> from budgeteer import Packer
        >>> packer = Packer(5, ranking=Bm25(stemming="english"))
        >>> packer.pack("working", ["Lunch is at noon.", "We work remotely."]).text
        'We work remotely.'

    """

    _: KW_ONLY
    stemming: Language | None = None
    stopwords: Stopwords | None = "english"
    k1: float = 1.2
    b: float = 0.75
    statistics: Statistics | None = None

    def __post_init__(self) -> None:
        _set_terms(self)

    @property
    def _wire(self) -> LexicalWire:
        words = words_of(self.stemming, self.stopwords)
        return self.k1, self.b, *words, 0.0, False, False, False, _known(self)


@public("budgeteer.ranking")
@dataclass(frozen=True, slots=True)
class Lexical:
    """
    Ranks chunks, each with its title, by BM25 with headings, links and feedback.

    `budgeteer.ranking.lexical_scores` has the formulae. ``ranking="lexical"``, the default of a
    packer, is short for ``Lexical()``.

    Args:
        stemming: The language of stems, as for `Bm25`; None keeps words as they are. English stems
            do no harm to other languages.
        stopwords: Words that match nothing, as for `Bm25`.
        headings: Whether words of the query in a chunk's heading count more. The heading is the
            title or, without one, a first line of at most 120 characters with text behind it;
            words in parentheses at its end are left out.
        links: Whether each of the three best chunks raises the chunks whose headings stand in its
            text, word for word, by a fifth of its score. This finds what a question in two steps
            needs.
        feedback: Whether the ten words that stand out most in the best chunk count too, up to a
            fifth as much as words of the query.
        k1: How much repetitions of a term in a chunk add, from 0 (nothing) to 1,000,000.
        b: How strongly long texts are marked down, from 0 to 1.
        k3: How much repetitions of a term in the query add, from 0 (nothing) to 1,000,000.
        statistics: Those of the collection that the chunks of a call are from, as for `Bm25`.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.

    Examples:
        >>> from budgeteer import Packer
        >>> chunks = [
        ...     {"title": "Weather", "text": "It rains in spring."},
        ...     {"title": "Blue Library", "text": "It is in Lyon."},
        ...     "Ada gave her books to the Blue Library.",
        ... ]
        >>> packing = Packer(40, ranking=Lexical()).pack("Where are Ada's books?", chunks)
        >>> [kept.index for kept in packing.kept]
        [2, 1, 0]

    """

    _: KW_ONLY
    stemming: Language | None = "english"
    stopwords: Stopwords | None = "english"
    headings: bool = True
    links: bool = True
    feedback: bool = True
    k1: float = 1.2
    b: float = 0.75
    k3: float = 3.0
    statistics: Statistics | None = None

    def __post_init__(self) -> None:
        _set_terms(self)
        for name in ("headings", "links", "feedback"):
            object.__setattr__(self, name, _validate.flag(name, getattr(self, name)))
        object.__setattr__(self, "k3", _validate.number_between("k3", self.k3, 0, 1_000_000))

    @property
    def _wire(self) -> LexicalWire:
        signals = self.k3, self.headings, self.links, self.feedback
        words = words_of(self.stemming, self.stopwords)
        return self.k1, self.b, *words, *signals, _known(self)


def _set_terms(ranking: Bm25 | Lexical) -> None:
    """Set the options that BM25 has, checked."""
    stemming, stopwords = words_of(ranking.stemming, ranking.stopwords)
    k1 = _validate.number_between("k1", ranking.k1, 0, 1_000_000)
    b = _validate.number_between("b", ranking.b, 0, 1)
    for name, value in (("stemming", stemming), ("stopwords", stopwords), ("k1", k1), ("b", b)):
        object.__setattr__(ranking, name, value)
    statistics: object = ranking.statistics
    if isinstance(statistics, Statistics):
        refuse_other_words("statistics", statistics, ranking, "the ranking")
    elif statistics is not None:
        found = _validate.type_name(statistics)
        raise InvalidArgumentError(f"statistics must be a Statistics or None, not {found}")


def _known(ranking: Bm25 | Lexical) -> Any:
    return None if ranking.statistics is None else ranking.statistics._wire  # noqa: SLF001


@public("budgeteer.ranking")
@dataclass(frozen=True, slots=True)
class Embedding:
    """
    Ranks by the cosine between the vectors of chunk and query, from -1 to 1.

    ``ranking="embedding"`` is short for ``Embedding()``, which needs the vectors in each call.

    Args:
        embedder: Makes the vectors missing from a call: a `budgeteer.embedding.OpenAIEmbedder`, or
            any object with the method ``embed`` of `budgeteer.embedding.Embedder`. For a chunk, it
            embeds the title on a line of its own and then the text. For an empty query it is not
            called, and all cosines are 0.
        fallback: The ranking, ``"lexical"``, ``"bm25"``, a `Lexical` or a `Bm25`, to use without
            ``min_score`` when the embedder raises an `EmbeddingError`. ``Packing.fallback`` then
            names it, and the logger ``budgeteer`` warns with the reason. None, the default, lets
            the error pass.

    Raises:
        InvalidArgumentError: *embedder* has no method ``embed`` or is a class, or a fallback is
            given without an embedder.

    Examples:
        >>> from budgeteer import Packer
        >>> import numpy
        >>> vectors = [0, 1], numpy.array([[1, 0], [3, 4]], dtype="float32")
        >>> packing = Packer(6, ranking=Embedding()).pack("", ["Bread.", "Tea."], vectors=vectors)
        >>> packing.kept[0].text, packing.kept[0].score
        ('Tea.', 0.8)

    """

    embedder: Embedder | None = None
    _: KW_ONLY
    fallback: Literal["lexical", "bm25"] | Lexical | Bm25 | None = None

    def __post_init__(self) -> None:
        if isinstance(self.embedder, type):
            raise InvalidArgumentError(
                f"embedder must be an object with a method embed, not the class "
                f"{self.embedder.__name__}; calling it makes one"
            )
        if self.embedder is not None and not callable(getattr(self.embedder, "embed", None)):
            found = _validate.type_name(self.embedder)
            raise InvalidArgumentError(f"embedder must have a method embed, not {found}")
        if self.fallback is None or isinstance(self.fallback, (Lexical, Bm25)):
            pass
        elif not isinstance(self.fallback, str) or self.fallback not in KINDS_BY_WORDS:
            is_text = isinstance(self.fallback, str)
            found = f"{self.fallback[:80]!r}" if is_text else _validate.type_name(self.fallback)
            raise InvalidArgumentError(
                f"fallback must be 'lexical', 'bm25', a Lexical, a Bm25 or None, not {found}"
            )
        if self.fallback is not None and self.embedder is None:
            raise InvalidArgumentError("fallback must be None where there is no embedder")


@public("budgeteer.ranking")
@dataclass(frozen=True, slots=True)
class Hybrid:
    """
    Ranks by the weighted sum of several scores.

    ``ranking="hybrid"`` is short for ``Hybrid()``.

    Args:
        weights: The weights of ``"bm25"``, ``"embedding"`` and ``"score"`` (the chunk's own, from
            a reranker say), each from 0 to 1,000,000. A score that is not named weighs 0 and is
            not computed. None weighs BM25 and embedding equally: 0.5 each under ``"minmax"``, 1
            each under ``"rrf"``.
        fusion: How each score is scaled. ``"minmax"``: from 0 for the lowest of the call to 1 for
            the highest, and 0 for all if they are equal. ``"rrf"``: ``1 / (k + r)`` for the chunk
            of rank r, from 1 on, by that score and then by input order (Cormack, Clarke and
            Büttcher, "Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
            Methods"). A chunk without that score gets 0.
        k: Under ``"rrf"``, the constant above, from 0 to 1,000,000; the larger, the less the first
            ranks stand out.
        bm25: The ranking by words, if ``"bm25"`` has a weight: a `Bm25` or a `Lexical`.
        embedding: The embedder and its fallback, if the embedding has a weight. Here the fallback
            ``"bm25"`` means *bm25*.

    Raises:
        InvalidArgumentError: An argument has a wrong type, is out of range, or has no effect given
            the others.

    Examples:
        >>> from budgeteer import Packer
        >>> chunks = [{"text": "Green tea.", "score": 0.2}, {"text": "Coffee.", "score": 0.9}]
        >>> packer = Packer(9, ranking=Hybrid({"bm25": 0.3, "score": 0.7}))
        >>> [kept.index for kept in packer.pack("tea", chunks).kept]
        [1, 0]

    """

    weights: Mapping[Signal, float] | None = field(default=None, hash=False)
    _: KW_ONLY
    fusion: Fusion = "minmax"
    k: float = DEFAULT_K
    bm25: Bm25 | Lexical = Bm25()
    embedding: Embedding = Embedding()

    def __post_init__(self) -> None:
        _validate.choice("fusion", self.fusion, FUSIONS)
        object.__setattr__(self, "k", _validate.number_between("k", self.k, 0, 1_000_000))
        if self.weights is not None:
            object.__setattr__(self, "weights", _weights(self.weights))
        if self.k != DEFAULT_K and self.fusion != "rrf":
            raise InvalidArgumentError(f"k must be {DEFAULT_K} under fusion='minmax': it has none")
        for name, kind, a_kind in (
            ("bm25", (Bm25, Lexical), "a Bm25 or a Lexical"),
            ("embedding", Embedding, "an Embedding"),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                found = _validate.type_name(value)
                raise InvalidArgumentError(f"{name} must be {a_kind}, not {found}")
        bm25, embedding, _, _ = self._wire
        if not bm25 and self.bm25 != Bm25() and self.embedding.fallback != "bm25":
            raise InvalidArgumentError("bm25 must be Bm25() where weights has none for 'bm25'")
        if not embedding and self.embedding != Embedding():
            raise InvalidArgumentError(
                "embedding must be Embedding() where weights has none for 'embedding'"
            )

    @property
    def _wire(self) -> HybridWire:
        k = self.k if self.fusion == "rrf" else None
        weights: Mapping[Any, float] | None = self.weights
        if weights is None:
            weight = 0.5 if k is None else 1.0
            weights = {"bm25": weight, "embedding": weight}
        bm25, embedding, score = (weights.get(name, 0.0) for name in SIGNALS)
        return bm25, embedding, score, k


def _weights(weights: object) -> dict[str, float]:
    """Return the weights that the caller names, checked."""
    if not isinstance(weights, Mapping):
        raise InvalidArgumentError(
            f"weights must be a mapping or None, not {_validate.type_name(weights)}"
        )
    checked = {}
    for name, weight in weights.items():
        _validate.choice("a key of weights", name, SIGNALS)
        checked[name] = _validate.number_between(f"weights[{name!r}]", weight, 0, 1_000_000)
    if not any(checked.values()):
        raise InvalidArgumentError("weights must have one above 0")
    return checked


Ranking: TypeAlias = RankingName | Lexical | Bm25 | Embedding | Hybrid
"""The values of a packer's option ``ranking``."""


class Ranked(NamedTuple):
    """
    A ranking as a packer prepares it.

    Attributes:
        name: The name of the ranking; for an object its short form.
        code: Its number for the backends.
        by_words: The ranking by words, if it is needed.
        hybrid: The weights of a hybrid ranking, None for any other.
        embedder: The embedder, if any.
        fallback: The ranking used if the embedder fails, if any.

    """

    name: RankingName
    code: int
    by_words: Lexical | Bm25
    hybrid: HybridWire | None = None
    embedder: Embedder | None = None
    fallback: Literal["lexical", "bm25"] | Lexical | Bm25 | None = None

    @property
    def needs(self) -> Needs:
        """What it needs to know of the query and the chunks."""
        return needs_of(self.code, self.hybrid)

    @property
    def shown(self) -> str:
        """Its name in the error that it takes no vectors."""
        weightless = "" if self.hybrid is None else " without a weight for 'embedding'"
        return f"ranking={self.name!r}{weightless}"

    @property
    def wire(self) -> tuple[int, LexicalWire, HybridWire | None]:
        """The ranking as a backend takes it."""
        return self.code, self.by_words._wire, self.hybrid  # noqa: SLF001


KINDS_BY_WORDS: dict[str, Any] = {"lexical": Lexical, "bm25": Bm25}
"""The rankings by words that have options."""
_SHORT: dict[str, Any] = {**KINDS_BY_WORDS, "embedding": Embedding, "hybrid": Hybrid}
_CODES: dict[RankingName, int] = {
    "keyword": _codes.KEYWORD,
    "recency": _codes.RECENCY,
    "input": _codes.INPUT,
    "score": _codes.SCORE,
}


def ranked(value: object) -> Ranked:
    """Return the prepared form of *value*, a ranking or the name of one."""
    if isinstance(value, str):
        return _of_name(_validate.choice("ranking", value, NAMES))
    if isinstance(value, (Lexical, Bm25)):
        name: RankingName = "lexical" if isinstance(value, Lexical) else "bm25"
        return Ranked(name, _codes.LEXICAL, value)
    if isinstance(value, Embedding):
        return Ranked("embedding", _codes.EMBEDDING, Bm25(), None, value.embedder, value.fallback)
    if isinstance(value, Hybrid):
        embedding = value.embedding
        return Ranked(
            "hybrid",
            _codes.HYBRID,
            value.bm25,
            value._wire,  # noqa: SLF001 - a part of the ranking
            embedding.embedder,
            value.bm25 if embedding.fallback == "bm25" else embedding.fallback,
        )
    raise InvalidArgumentError(
        f"ranking must be one of {', '.join(map(repr, NAMES))}, or a Lexical, Bm25, Embedding or "
        f"Hybrid, not {_validate.type_name(value)}"
    )


@lru_cache(maxsize=16)
def _of_name(name: RankingName) -> Ranked:
    return Ranked(name, _CODES[name], Bm25()) if name in _CODES else ranked(_SHORT[name]())


def with_own(ranking: Ranking, embedder: Embedder) -> Ranking:
    """Return a ranking by vectors that has no embedder, with *embedder*."""
    ranking = (
        {"embedding": Embedding, "hybrid": Hybrid}[ranking]()
        if isinstance(ranking, str)
        else ranking
    )
    if isinstance(ranking, Hybrid):
        return replace(ranking, embedding=replace(ranking.embedding, embedder=embedder))
    assert isinstance(ranking, Embedding)  # noqa: S101 - no other ranks by vectors
    return replace(ranking, embedder=embedder)
