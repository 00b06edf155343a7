"""What becomes of a request that is fitted: the request, its tokens by section, each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from budgeteer._messages.frames import Rule
from budgeteer._public import public
from budgeteer._pydantic import instance_schema
from budgeteer._request.past import Past
from budgeteer._request.read import Provider

SectionName: TypeAlias = Literal[
    "system",
    "tools",
    "schema",
    "reasoning",
    "history",
    "tool_results",
    "chunks",
    "media",
    "reply",
]
Action: TypeAlias = Literal["masked", "cut", "left_out"]


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class SectionTokens:
    """
    The tokens of a section of a request.

    Attributes:
        tokens_before: Its tokens in the request that was given.
        tokens: Its tokens in the request that fits.
        basis: What they rest on: ``published rule``, ``measured`` (bills and counts), ``bound``
            (not more than this) or ``estimate`` (the rule of a relative, or a file whose size is
            not known).
        source: Where that is from, with a date.

    Examples:
        >>> from budgeteer import fit_request
        >>> fitted = fit_request({"model": "gpt-4o", "messages": [], "max_tokens": 100})
        >>> fitted.report.sections["reply"].tokens
        100

    """

    tokens_before: int
    tokens: int
    basis: Rule
    source: str


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class RequestChange:
    """
    Something that was masked, cut or left out of a request.

    Attributes:
        place: Where it is in the request that was given, such as ``messages[3]``.
        action: ``masked`` (a line stands in its place), ``cut`` (a part of it is missing) or
            ``left_out``.
        reason: Why, in a few words.
        tokens_before: Its tokens before.
        tokens: Its tokens now.

    Examples:
        >>> from budgeteer import fit_request
        >>> messages = [
        ...     {"role": "user", "content": "What is green tea?"},
        ...     {"role": "assistant", "content": "Tea whose leaves are not oxidised."},
        ...     {"role": "user", "content": "And black tea?"},
        ... ]
        >>> fit_request({"messages": messages}, context_window=20).report.changes[0].place
        'messages[0]'

    """

    place: str
    action: Action
    reason: str
    tokens_before: int
    tokens: int


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class RequestReport:
    """
    The tokens of a request by section, and what was changed to make it fit.

    Attributes:
        provider: Whose shape the request has: ``openai_chat``, ``openai_responses``,
            ``anthropic`` or ``gemini``.
        context_window: The tokens of the window.
        max_input_tokens: The most tokens of the request: the window without what is reserved for
            the answer, or the model's own limit if that is lower.
        sections: The tokens by section. ``reasoning`` and ``reply`` are reserved for the answer;
            the others are the request, and add up to its ``total_tokens``.
        changes: What was masked, cut or left out, in the order of the request.
        stable_prefix_tokens: The tokens of the instructions, tools and leading messages that are
            the same as in the previous request, so that a provider finds them in its cache. 0
            without *previous*.
        is_exact: Whether the counter is exact and every figure of the request is by a published
            rule.

    Examples:
        >>> from budgeteer import fit_request
        >>> request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello!"}]}
        >>> report = fit_request(request).report
        >>> report.provider, report.sections["history"].tokens, report.changes, report.is_exact
        ('openai_chat', 9, [], True)

    """

    provider: Provider
    context_window: int
    max_input_tokens: int
    sections: dict[SectionName, SectionTokens]
    changes: Sequence[RequestChange]
    stable_prefix_tokens: int
    is_exact: bool

    def to_dict(self) -> dict[str, Any]:
        """
        Return the report as plain data for a log, without any text of the request.

        Examples:
            >>> from budgeteer import fit_request
            >>> fitted = fit_request({"messages": []}, context_window=10)
            >>> fitted.report.to_dict()["sections"]["history"]["tokens"]
            0

        """
        return {
            "provider": self.provider,
            "context_window": self.context_window,
            "max_input_tokens": self.max_input_tokens,
            "sections": {name: asdict(section) for name, section in self.sections.items()},
            "changes": [asdict(change) for change in self.changes],
            "stable_prefix_tokens": self.stable_prefix_tokens,
            "is_exact": self.is_exact,
        }

    def to_html(self) -> str:
        """
        Return a page that shows the tokens of each section and each change: one HTML file.

        It needs no network, and has no text of the request.

        Examples:
            >>> from budgeteer import fit_request
            >>> fitted = fit_request({"messages": []}, context_window=10)
            >>> fitted.report.to_html().startswith("<!DOCTYPE html>")
            True

        """
        from budgeteer._report.page import page
        from budgeteer._request.shown import report_of

        return page(report_of(self))

    def _repr_html_(self) -> str:
        """Show the sections in a notebook."""
        from budgeteer._report.small import small
        from budgeteer._request.shown import report_of

        return small(report_of(self))


@public("budgeteer")
@dataclass(frozen=True, slots=True)
class FittedRequest:
    """
    A request that fits. Made by `fit_request`.

    Attributes:
        request: The request, of the same shape. It is the caller's own object if nothing was
            changed, and else a copy; every message that is as it was is the caller's own object.
            An iterable that is neither a list nor a tuple is a list in it.
        report: Its tokens by section, and each change.
        total_tokens: The tokens of the whole request.

    Examples:
        >>> from budgeteer import fit_request
        >>> request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello!"}]}
        >>> fitted = fit_request(request)
        >>> fitted.request is request, fitted.total_tokens
        (True, 9)

    """

    request: Any = field(repr=False)
    report: RequestReport
    total_tokens: int
    _past: Past | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        """Show the sections in a notebook."""
        return self.report._repr_html_()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic take an instance as it is, and write the report and the total."""
        return instance_schema(
            cls, lambda fitted: {**fitted.report.to_dict(), "total_tokens": fitted.total_tokens}
        )
