"""Packers that reproduce known designs, and their helpers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from budgeteer import _validate
from budgeteer._codes import CITE, GATE, SUM_OF_PARTS
from budgeteer._count.counter import TokenCounter
from budgeteer._count.names import ESTIMATORS, Estimator
from budgeteer._pack.citation import Citation, citations, estimate_citation_tokens, sources_footer
from budgeteer._pack.gate import artifacts_of
from budgeteer._pack.options import Overflow
from budgeteer._pack.packer import Packer
from budgeteer._pack.packing import Packing
from budgeteer._rank.rankings import RankingName

__all__ = [
    "APPROX_CHARS_PER_TOKEN",
    "DEFAULT_CITATION_SAFETY_BUFFER_TOKENS",
    "DEFAULT_TOKEN_BUDGET",
    "Citation",
    "agentic_rag",
    "citations",
    "context_gate",
    "context_router",
    "estimate_citation_tokens",
    "gate_bundle",
    "retrieval_service",
    "sources_footer",
]

DEFAULT_TOKEN_BUDGET = 8_000
"""The budget of `agentic_rag`, in tokens."""

APPROX_CHARS_PER_TOKEN = 4
"""Characters for each token, as `agentic_rag` counts by default."""

DEFAULT_CITATION_SAFETY_BUFFER_TOKENS = 64
"""Tokens that `agentic_rag` reserves for the footer of sources."""

RouterRanking: TypeAlias = Literal["relevance", "recency", "manual"]
Truncation: TypeAlias = Literal["drop", "truncate_end", "truncate_middle"]
_RANKINGS: dict[RouterRanking, RankingName] = {
    "relevance": "keyword",
    "recency": "recency",
    "manual": "input",
}
_TRUNCATIONS: dict[Truncation, Overflow] = {
    "drop": "skip",
    "truncate_end": "truncate_end",
    "truncate_middle": "truncate_middle",
}


class _Citing(Packer):
    """A packer that sets aside the cost of citing each chunk."""

    __slots__ = ()
    _policy = (CITE, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate(Packer):
    """A packer behind a gate, which considers *max_docs* documents."""

    max_docs: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_docs", _validate.tokens("max_docs", self.max_docs))
        Packer.__post_init__(self)

    @property
    def _policy(self) -> tuple[int, int]:  # type: ignore[override]
        return GATE, self.max_docs


class _SumOfParts(Packer):
    """A packer that sums the counts of a text's parts, under an estimate, without separators."""

    __slots__ = ()
    _policy = (SUM_OF_PARTS, 0)


def agentic_rag(
    max_tokens: int = DEFAULT_TOKEN_BUDGET,
    *,
    buffer_tokens: int = DEFAULT_CITATION_SAFETY_BUFFER_TOKENS,
    counter: str | Callable[[str], int] | TokenCounter = "chars_div4",
    notice: str | bool | None = True,
) -> Packer:
    """
    Return a packer that sets aside, for every chunk that it keeps, the tokens to cite it.

    Chunks with the highest scores come first, those without a score last, in input order. A chunk
    enters whole and with room for its citation (see `estimate_citation_tokens`), or is skipped.
    The ``token_count`` and ``citation_tokens`` of all kept chunks, each rounded up on its own, and
    *buffer_tokens* together are at most *max_tokens*. The text with its separators is also within
    ``max_tokens - buffer_tokens``. `citations` and `sources_footer` return the sources to cite.

    The default counter under-counts Chinese, Japanese, Korean, emoji, code and JSON: name the
    model's own counter for those.

    Args:
        max_tokens: The most tokens; `Packer.pack` takes another number for a call. The buffer is
            subtracted from either; if nothing is left, no chunk is kept.
        buffer_tokens: Tokens reserved for the footer of sources.
        counter: As for `Packer`. A function is also called for the citation of each chunk whose
            text fits.
        notice: As for `Packer`: a line in the text, inside the budget, that tells the model how
            many chunks were left out, if any were and the best chunk leaves room for it; None for
            no such line.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.

    Examples:
        >>> from budgeteer import Chunk
        >>> chunks = [Chunk("Rye bread.", score=0.2), Chunk("Green tea.", id="7", source="tea.md")]
        >>> packing = agentic_rag(80).pack("", chunks)
        >>> [(kept.token_count, kept.citation_tokens) for kept in packing.kept]
        [(3, 1), (3, 3)]
        >>> sources_footer(packing)
        'Sources: tea.md 7'

    """
    return _Citing(
        max_tokens,
        reserve_tokens=_validate.tokens("buffer_tokens", buffer_tokens),
        counter=counter,
        ranking="score",
        min_score=None,
        overflow="skip",
        max_chunks=None,
        dedupe=None,
        selection="rank",
        units="chunk",
        order="rank",
        template="plain",
        notice="Chunks left out: {count}." if notice is True else notice,
    )


def retrieval_service(max_tokens: int) -> Packer:
    """
    Return a packer that keeps the top chunks, up to the first that does not fit.

    Chunks with the highest scores come first, those without a score last, in input order. Tokens
    are counted by ``o200k_base``. No chunk after the first that does not fit is kept, so the kept
    chunks are always the most relevant.

    Raises:
        InvalidArgumentError: *max_tokens* has a wrong type or is out of range.

    Examples:
        >>> packing = retrieval_service(9).pack("", ["Green tea.", "Tea is a drink.", "Coffee."])
        >>> [kept.index for kept in packing.kept]
        [0, 1]

    """
    return Packer(
        max_tokens,
        reserve_tokens=0,
        counter="o200k_base",
        ranking="score",
        min_score=None,
        overflow="stop",
        max_chunks=None,
        dedupe=None,
        selection="rank",
        units="chunk",
        order="rank",
        template="plain",
        notice=None,
    )


def context_gate(max_tokens: int = 120, *, max_docs: int = 3) -> Packer:
    """
    Return a packer that ranks by authority and keeps only related documents.

    Each chunk has a kind, an authority and a priority, keys of its metadata or of the chunk if it
    is a mapping; the default kind is ``"document"``. Chunks are ranked by weight, ties in input
    order. The weight is the sum of:

    - authority: ``system`` 1000, ``developer`` 800, ``user`` 600, ``tool`` 400, ``other`` 200,
      any other or none 0,
    - plus kind: ``system`` 120, ``task`` 100, ``message`` 60, ``document`` 50, ``tool_output`` 40,
      ``other`` 10, any other 0,
    - plus priority: a number, 0 by default.

    A document whose text shares no keyword with the question is ``"out_of_scope"``. The question
    is the text of the first ``message`` or, without one, the query of `Packer.pack`. Empty texts
    are ``"empty"``. Of the other documents at most *max_docs* are considered, whether they fit or
    not; the rest is dropped for the ``"cap"``. A chunk that does not fit is dropped for the
    ``"budget"``, and smaller chunks after it may be kept.

    The text has a line ``[kind:id] text`` for each chunk. A token is three characters, and a chunk
    costs all it adds to the text, label and line end included.

    Args:
        max_tokens: The most tokens of the text.
        max_docs: The most documents to consider.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range. `Packer.pack` raises
            it for a kind or an authority that is not a str, or a priority that is not a number.

    Examples:
        >>> packing = context_gate().pack("Is green tea mild?", [
        ...     {"id": "bread", "text": "Rye bread is dark."},
        ...     {"id": "tea", "text": "Green tea is mild."},
        ...     {"id": "sys", "kind": "system", "authority": "system", "text": "Be brief."},
        ... ])
        >>> print(packing.text)
        [system:sys] Be brief.
        [document:tea] Green tea is mild.
        >>> print(packing.explain(0))
        Chunk 0 (score 0.00) was dropped: it shares no keyword with the question.

    """
    return _Gate(
        max_tokens,
        reserve_tokens=0,
        counter="chars_per_token:3",
        ranking="input",
        min_score=None,
        overflow="skip",
        max_chunks=None,
        dedupe=None,
        selection="rank",
        units="chunk",
        order="rank",
        template="tagged",
        notice=None,
        max_docs=max_docs,
    )


def gate_bundle(
    bundle: Mapping[str, Any], budget_tokens: int = 120, max_docs: int = 3
) -> Packing[Mapping[str, Any]]:
    """
    Pack a bundle of artifacts with `context_gate`.

    Args:
        bundle: ``{"artifacts": [...]}``; each artifact is a mapping with ``id`` and ``content``,
            and optionally ``kind``, ``authority``, ``priority`` and ``title``.
        budget_tokens: The most tokens of the text.
        max_docs: The most documents to consider.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, an artifact has no
            id, no content, or one of a wrong type, or two have the same id.

    Examples:
        >>> user = {"id": "user", "kind": "message", "authority": "user", "content": "Why tea?"}
        >>> tea = {"id": "tea", "kind": "document", "authority": "tool", "content": "Tea is mild."}
        >>> print(gate_bundle({"artifacts": [tea, user]}).text)
        [message:user] Why tea?
        [document:tea] Tea is mild.

    """
    packer = context_gate(_validate.tokens("budget_tokens", budget_tokens), max_docs=max_docs)
    return packer.pack("", artifacts_of(bundle))


def context_router(
    max_tokens: int = 8000,
    *,
    reserve_tokens: int = 0,
    estimator: Estimator = "chars_div4",
    ranking: RouterRanking = "relevance",
    truncation: Truncation = "drop",
) -> Packer:
    """
    Return a packer with the same results as theaios-context-router 0.2.2, to the bit.

    It is for users of that program, and reproduces its overruns too: markers and the blank lines
    between chunks are not counted, a cut may split a grapheme cluster, a cut by words collapses
    whitespace, and ``total_tokens`` is the sum of the parts. Use `Packer` for a budget that holds.
    A copy (`dataclasses.replace`) with an exact counter holds its budget as any packer does. Under
    an estimate a copy refuses ``max_chunks``, ``dedupe`` and ``selection``: the program has none.

    Args:
        max_tokens: The budget in tokens, from 1 on.
        reserve_tokens: Tokens to subtract from the budget.
        estimator: ``"chars_div4"``, ``"words"`` or ``"whitespace"``.
        ranking: ``"relevance"``, ``"recency"`` or ``"manual"``.
        truncation: ``"drop"``, ``"truncate_end"`` or ``"truncate_middle"``.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range.

    Examples:
        >>> context_router(2, truncation="truncate_end").pack("", ["Some long text"]).text
        'Some lon [...]'

    """
    return _SumOfParts(
        _validate.tokens("max_tokens", max_tokens, minimum=1),
        reserve_tokens=reserve_tokens,
        counter=_validate.choice("estimator", estimator, ESTIMATORS),
        ranking=_RANKINGS[_validate.choice("ranking", ranking, tuple(_RANKINGS))],
        overflow=_TRUNCATIONS[_validate.choice("truncation", truncation, tuple(_TRUNCATIONS))],
        min_score=None,
        max_chunks=None,
        dedupe=None,
        selection="rank",
        units="chunk",
        order="rank",
        template="plain",
        notice=None,
    )
