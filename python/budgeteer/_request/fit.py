"""Fits a request into the window of its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from budgeteer import _validate
from budgeteer._count.limits import ModelLimits
from budgeteer._messages.messages import Counter, Message, chosen, model_name
from budgeteer._request.read import read_request
from budgeteer._request.result import FittedRequest
from budgeteer._request.template import ChatTemplate
from budgeteer._request.work import SACRIFICES, Sacrifice, Work
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError

_TRIES = 8
"""How often a template may turn out to write more than was planned."""

_STEP = 0.125
"""
A turn of 1.5 % of the window then changes the beginning about once in eight turns, and half of
this share is unused on average.
"""


def fit_request(
    request: Message,
    *,
    model: str | ModelLimits | None = None,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    counter: Counter | None = None,
    order: Sequence[Sacrifice] = SACRIFICES,
    template: str | None = None,
    previous: FittedRequest | None = None,
    step: float | None = None,
) -> FittedRequest:
    r"""
    Return a request of the same shape that fits into the window, and what was changed.

    A request is the keyword arguments as they are sent to OpenAI's chat completions
    (``messages``) or Responses (``input``), to Anthropic (``messages``) or to Gemini
    (``contents``). Messages may be mappings, objects of these packages, and messages of LangChain
    or LlamaIndex. Everything in it is counted: messages and what the chat template of the
    model's family writes around them, tools, the schema of the answer, images, audio and
    documents. `RequestReport.sections` says by which rule.

    While the request is too large, this is done, in this order:

    - ``mask_results``: ``[tool result left out]`` stands for old tool results, oldest first.
      Those of the newest round stay.
    - ``cut_results``: the largest tool results are cut as by `fit_output`, down to 256 tokens.
      What answers the newest question of the user stays.
    - ``history``: whole turns are left out, oldest first, then the older rounds of calls and
      results in the newest turn.
    - ``chunks``: sections of retrieved chunks get less room, the last one first.

    At the end tool results are cut further, or get back what is free. The system messages, the
    newest message of the user and the newest round always stay, and no call is separated from
    its results. A result whose call is missing is left out, as every provider refuses it; what
    else is in its message stays.

    Where a content or the ``text`` of a part should be retrieved chunks, put a `Section` with
    *query* and *chunks* there, one in a message. It is packed into its ``max_tokens``, or what is
    left; ``packer`` and ``min_tokens`` are heeded too. Where tools may be too many, put
    ``Section(name, tools, select="bm25", query=...)`` in the place of ``tools``: those of *keep*,
    and one that ``tool_choice`` names, always stay, and the best others that its ``max_tokens``,
    and what must stay, leave room for.
    Where there are none, neither ``tools`` nor ``tool_choice`` and ``parallel_tool_calls`` stay.

    With *previous* what was masked, cut or left out of the messages of the last call stays so
    while they are the same, so that the beginning of the conversation only grows, and a
    provider's cache finds it. When that no longer fits, *step* more than is needed goes. A request
    that has not all messages of the last call, or has others in their place, keeps everything if
    it fits. Messages that have not changed since are not counted again.

    A request that fits comes back as it is, so fitting twice changes nothing. Nothing that is
    given is changed. Messages and tools may be any iterable: one that is neither a list nor a
    tuple, such as a generator, is read once, and the list of what it gave stands in a copy.

    Args:
        request: The request.
        model: The model, or its limits, for its window and counter. None takes the ``model`` of
            the request.
        context_window: The tokens of input and answer together, from 0 on. None takes the
            model's, with its limit of the input.
        max_output_tokens: The tokens to reserve for the answer, even where the request states
            more. None takes what it states, 0 if it states nothing.
        counter: Counts the texts, as for `count_messages`. None takes the model's.
        order: What may be sacrificed, in this order; what is not in it stays. All four by default.
        template: The chat template of an open model, in Jinja, as its ``tokenizer_config.json``
            has it. What it renders is counted, instead of the figures of the model's family. Its
            special tokens count as text, so this errs high. Needs
            ``pip install 'budgeteer[templates]'``.
        previous: What this function returned for the conversation before; the request has its
            messages as they were given then, and new ones. None starts anew.
        step: The share of the room that is kept free once something must go, from 0 to 0.9. None
            takes an eighth with *previous*, and 0 without.

    Raises:
        BudgetExhaustedError: What must stay does not fit; the message has the arithmetic.
        InvalidArgumentError: An argument has a wrong type or is out of range, something in the
            request is not of a known shape, or it refers to messages that only the provider has.
            Or neither a model nor a window is given.
        CounterError: As for `get_counter` and `TokenCounter.count`, or jinja2 is not installed.

    Examples:
        >>> call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        >>> request = {
        ...     "model": "gpt-4o",
        ...     "messages": [
        ...         {"role": "system", "content": "Be brief."},
        ...         {"role": "user", "content": "What does the log say?"},
        ...         {"role": "assistant", "content": None, "tool_calls": [call]},
        ...         {"role": "tool", "tool_call_id": "a", "content": "Started. " * 500},
        ...         {"role": "assistant", "content": "That it started."},
        ...         {"role": "user", "content": "How often?"},
        ...     ],
        ... }
        >>> fitted = fit_request(request, context_window=100)
        >>> fitted.request["messages"][3]["content"]
        '[tool result left out]'
        >>> fitted.total_tokens, [change.place for change in fitted.report.changes]
        (54, ['messages[3]'])
        >>> fit_request(fitted.request, context_window=100).request is fitted.request
        True

    """
    before = _previous(previous)
    past = None if before is None else before._past  # noqa: SLF001 - of this package
    counted = None if past is None else past.counted
    reading = read_request(request, counted)
    given = reading.request.get("model") if model is None else model
    name = model_name(given)
    steps = _steps(order)
    counting = chosen(counter, given)
    shown = None if template is None else ChatTemplate(template)
    work = Work(reading, name, counting, shown, previous=before)
    share = _step(step, previous)
    work.limit(given, context_window, max_output_tokens, share)
    carries = work.goes_on or work.has_sections
    if not carries:
        # Another conversation began alike: what left that one is missed here only if it must be.
        whole = Work(reading, name, counting, shown, previous=before, carries=False)
        whole.limit(given, context_window, max_output_tokens, share)
        carries = whole.total > whole.most
        work = work if carries else whole
    if not work.is_changed and work.total <= work.most:
        return work.answer(reading.request)
    if shown is None:
        return work.fit(steps)

    def begun(extra: int) -> Work:
        again = Work(reading, name, counting, shown, extra, previous, carries=carries)
        again.limit(given, context_window, max_output_tokens, share)
        return again

    work.share_frames()
    with suppress(BudgetExhaustedError):  # where shares say too little, all of them stay
        return _as_rendered(work, steps, lambda extra: begun(extra).share_frames())
    return _as_rendered(begun(0), steps, begun)


def _as_rendered(
    work: Work, steps: Sequence[Sacrifice], begun: Callable[[int], Work]
) -> FittedRequest:
    """Return the request, as its template counts what is left; *begun* sets so much aside."""
    fitted = work.fit(steps)
    for _ in range(_TRIES):
        # A template may write less or more around what is left: it is asked again.
        wrong = work.rendered(read_request(fitted.request)) - fitted.total_tokens
        if fitted.total_tokens + wrong <= work.most:
            work.around += wrong
            return work.answer(fitted.request)
        work = begun(work.extra + wrong)
        fitted = work.fit(steps)
    raise work.exhausted()


def _steps(order: Sequence[Sacrifice]) -> Sequence[Sacrifice]:
    steps = _validate.batch("order", order)
    for i, step in enumerate(steps):
        _validate.choice(f"order[{i}]", step, SACRIFICES)
        if step in steps[:i]:
            raise InvalidArgumentError(f"order[{i}] repeats {step!r}")
    return steps


def _previous(previous: object) -> FittedRequest | None:
    if previous is None or isinstance(previous, FittedRequest):
        return previous
    raise InvalidArgumentError(
        f"previous must be what fit_request returned, not {_validate.type_name(previous)}"
    )


def _step(step: object, previous: FittedRequest | None) -> float:
    if step is None:
        return 0.0 if previous is None else _STEP
    return _validate.number_between("step", step, 0, 0.9)
