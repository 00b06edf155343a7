"""The service: budget, retrieve, rerank, pack, answer; each stage is a method."""

from __future__ import annotations

import dataclasses
import math
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from budgeteer import _telemetry, _validate
from budgeteer._copies import Unpickled
from budgeteer._count.calibration import Calibration
from budgeteer._deadline import Watch, seconds_of
from budgeteer._log import log
from budgeteer._messages.messages import Message
from budgeteer._pack.call import Call
from budgeteer._pack.options import REASONS
from budgeteer._pack.packer import Packer, begin, finish, prepared_of
from budgeteer._pack.packing import Packing
from budgeteer._pack.prepared import refuse_sticky
from budgeteer._process import renew
from budgeteer._public import public
from budgeteer._rank.similarity import Embedder
from budgeteer.errors import (
    InputValidationError,
    InvalidArgumentError,
    RetrievalTimeoutError,
)
from budgeteer.service._asking import (
    Deadline,
    Flag,
    Room,
    Source,
    arun,
    check_chunks,
    in_thread,
    need_loop,
    run,
    sources_of,
)
from budgeteer.service._components import Components
from budgeteer.service._messages import MessageBuilder
from budgeteer.service._openai import chat_messages
from budgeteer.service._plan import (
    Active,
    Plan,
    activated,
    checked_calibration,
    observed,
    wanted,
    with_embedder,
)
from budgeteer.service._result import RetrievalResult, RetrievalTokens, bounded, log_result
from budgeteer.service._retrievers import Reranker, Retriever
from budgeteer.service._settings import LlmSettings
from budgeteer.service._stats import Outcome, Packed, Recorder, ServiceStats, packed
from budgeteer.service._threads import Threads
from budgeteer.window._retrieval_budget import retrieval_budget

T = TypeVar("T")


LIMIT = 500
"""The number of chunks to request from a retriever without pages."""

_BUDGET = REASONS.index("budget")
_PROBE = "x"  # a context of one token, to measure the text around a context
_NAN = array("d", [math.nan]).tobytes()  # stands for no score
_TRIES = 8
_THREADS, _OWN_THREADS = 64, 4
_MANY_CHUNKS, _MANY_CHARS, _LONG_QUERY = 1_000, 1_000_000, 100_000
"""From here on, packing would block an event loop."""


@dataclasses.dataclass(slots=True)
class _Request:
    """A request's telemetry, and what its answer adds to the figures."""

    operation: _telemetry.Operation = _telemetry.UNOBSERVED
    packed: Packed | None = None
    watch: Watch | None = None
    is_over: bool = False  # perhaps cancelled while a thread packs


@public("budgeteer.service")
class RetrievalService(Unpickled):
    r"""
    Answers a query with the best chunks that provably fit a model's window.

    For each request it counts the system prompt and the query, and subtracts them and the answer's
    reserve from the window. If nothing is left, it refuses the request before any retriever or
    model is called. Then it retrieves, reranks, packs, and returns the messages, ready to send.
    For every input

        ``count_messages(result.messages) + reserved output <= context window``

    holds under the counter of the settings. A service is safe to share between threads and event
    loops. A copy, deep or not, has settings of its own and shares all else.

    Args:
        retriever: A `Retriever`, or a sequence of them, whose chunks are merged in that order.
        settings: The model. Assign to `settings` to change it while requests run.
        system_prompt: The system prompt; empty by default.
        packer: A `budgeteer.Packer`, whose options apply: its ``max_tokens`` is a further bound,
            and the model's counter replaces its own. None is
            `budgeteer.presets.retrieval_service`, the top N that fit: by the chunks' own scores,
            by the reranker's order if there is one, or in the merged order if only some chunks
            have a score. A packer that ranks by embeddings embeds the retrieved chunks in each
            request.
        reranker: Puts the retrieved chunks into a better order, in which a packer with
            ``ranking="input"`` packs them, as does None; one that ranks in its own way only goes
            without those that the reranker leaves out. None for no reranker.
        embedder: Makes the query's vector once, for the retrievers that take one, and the vectors
            for a packer that ranks by them and has no embedder of its own.
        message_builder: Makes the messages from the system prompt, the context (empty if nothing
            was found) and the query. Text that it adds is counted. A request calls it several
            times, once with the context ``x``, so it must be a pure function.
        limit: The number of chunks to request from a retriever. A retriever with ``pages`` is read
            until the budget is full or a page adds nothing to it. If a reranker or the packer
            ranks chunks anew, at least *limit* chunks are read.
        timeout: The most seconds for retrieving, embedding, reranking and packing together.
            Retrievers then run in parallel threads; one that hangs keeps its thread, of at most
            64. None sets no limit and runs them in the caller's thread.
        calibration: What `observe` teaches, and what corrects the counts of requests. The count of
            the messages is then the bound of their bill, the frame of the request included. What
            it learns elsewhere counts from the next `observe` of this service on, or once
            `settings` is set. None learns nothing.

    Raises:
        InvalidArgumentError: An argument has a wrong type or is out of range, or a retriever or
            the packer needs an embedder and there is none.

    Examples:
        >>> from budgeteer.service import ChunkRetriever
        >>> service = RetrievalService(
        ...     ChunkRetriever(["Rye bread.", "Green tea is mild."]),
        ...     LlmSettings(model="gpt-4", context_window=4096, max_output_tokens=500),
        ...     system_prompt="Answer from the context.",
        ... )
        >>> result = service.retrieve("How is green tea?")
        >>> result.messages[1]["content"]
        'Green tea is mild.\n\nRye bread.\n\nHow is green tea?'
        >>> result.tokens.input + result.tokens.output <= result.tokens.context_window
        True

    """

    _instead = "make it in each process, of the same arguments"

    def __init__(
        self,
        retriever: Retriever | Sequence[Retriever],
        settings: LlmSettings,
        *,
        system_prompt: str = "",
        packer: Packer | None = None,
        reranker: Reranker | None = None,
        embedder: Embedder | None = None,
        message_builder: MessageBuilder = chat_messages,
        limit: int = LIMIT,
        timeout: float | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self._sources = sources_of(retriever)
        self._system_prompt = _validate.text("system_prompt", system_prompt)
        if packer is not None and not isinstance(packer, Packer):
            raise InvalidArgumentError(
                f"packer must be a Packer or None, not {_validate.type_name(packer)}"
            )
        if packer is not None:
            refuse_sticky(packer, "in a RetrievalService")
        self._threads = Threads(_THREADS)
        # Separate threads, which a hanging retriever cannot use up.
        self._own_threads = Threads(_OWN_THREADS, is_waited_for=True)
        self._components = Components(embedder, reranker, self._threads)
        takers = [source.name for source in self._sources if source.takes_vector]
        if embedder is None and takers:
            raise InvalidArgumentError(
                f"embedder is required: {takers[0]} takes the query's vector"
            )
        self._needs_vector = bool(takers)
        self._packer = with_embedder(packer, embedder)
        if not callable(message_builder):
            raise InvalidArgumentError(
                f"message_builder must be callable, not {_validate.type_name(message_builder)}"
            )
        self._message_builder = message_builder
        self._limit = _validate.tokens("limit", limit, minimum=1)
        self._timeout = seconds_of("timeout", timeout)
        self._recorder = Recorder()
        self._calibration = checked_calibration(calibration)
        self._begin_anew()
        renew(self)
        self._active = self._activated(settings)

    @property
    def settings(self) -> LlmSettings:
        """
        The model's settings.

        Assigning to it changes window, encoding and reserve for requests that begin afterwards. It
        is safe while requests run.

        Examples:
            >>> from budgeteer.service import ChunkRetriever
            >>> service = RetrievalService(ChunkRetriever([]), LlmSettings(model="gpt-4"))
            >>> service.settings = LlmSettings(model="gpt-4o")
            >>> service.retrieve("tea").tokens.context_window
            128000

        """
        return self._active.settings

    @settings.setter
    def settings(self, settings: LlmSettings) -> None:
        with self._changing:
            active = self._activated(settings)
            self._active = active  # one reference, which each request reads once
        log().info(
            "retrieval service: the model is now %.80r",
            active.model.name,
            extra={"model": active.model.name, "context_window": active.model.context_window},
        )

    def retrieve(self, query: str, *, timeout: float | None = None) -> RetrievalResult:
        """
        Answer *query*.

        Args:
            query: The user's question.
            timeout: Seconds, instead of the service's own.

        Raises:
            InputValidationError: Nothing is left for retrieval; no retriever or model was called.
            RetrievalError: A retriever, the reranker or the embedder failed, with its own error as
                the cause, or returned something that cannot be packed.
            RetrievalTimeoutError: The deadline passed.
            InvalidArgumentError: An argument has a wrong type, a retriever is asynchronous only,
                or the message builder returns something else than messages, or other messages for
                the same texts.
            CounterError: As for `budgeteer.TokenCounter.count`.

        Examples:
            >>> from budgeteer.service import ChunkRetriever
            >>> service = RetrievalService(ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"))
            >>> service.retrieve("tea", timeout=5).packing.text
            'Green tea.'

        """
        with self._recorded() as request:
            for source in self._sources:
                if source.is_async_only:
                    raise InvalidArgumentError(f"{source.name} is asynchronous: use aretrieve")
            seconds = self._timeout if timeout is None else seconds_of("timeout", timeout)
            plan = self._plan(query, request)
            deadline = Deadline(seconds)
            request.watch = deadline.packing()
            is_over = Flag()
            try:
                vector = None
                if self._needs_vector:
                    vector = self._components.vector(plan.query, deadline)
                jobs = [
                    (source.name, self._job(source, plan, vector, is_over))
                    for source in self._sources
                ]
                parts = run(jobs, deadline, self._threads)
                chunks = self._components.reranked(plan.query, _merged(parts), deadline)
            finally:
                is_over.set()
            call = self._call(plan, parts, chunks, request)
            self._components.embed(call, vector, deadline)
            return self._answer(plan, parts, call, request)

    async def aretrieve(self, query: str, *, timeout: float | None = None) -> RetrievalResult:
        """
        Answer *query* as `retrieve` does, without blocking asyncio's event loop.

        Retrievers run at the same time. Those without ``aretrieve`` run in threads, and so does a
        caller's own counter. Cancelling cancels all running coroutines; a thread ends by itself,
        and its result is ignored.

        Raises:
            InputValidationError: As from `retrieve`, and so on.
            BudgeteerError: No event loop of asyncio runs, as under trio.

        Examples:
            >>> from budgeteer.service import ChunkRetriever
            >>> service = RetrievalService(ChunkRetriever(["Tea."]), LlmSettings(model="gpt-4o"))
            >>> import asyncio
            >>> asyncio.run(service.aretrieve("tea")).packing.text
            'Tea.'

        """
        need_loop()
        with self._recorded() as request:
            seconds = self._timeout if timeout is None else seconds_of("timeout", timeout)
            is_long = isinstance(query, str) and len(query) > _LONG_QUERY
            is_long = is_long or self._active.is_slow
            plan = await self._apart(is_long, lambda: self._plan(query, request))
            deadline = Deadline(seconds)
            request.watch = deadline.packing()
            is_over = Flag()
            try:
                vector = None
                if self._needs_vector:
                    vector = await self._components.avector(plan.query, deadline)
                jobs = [
                    (
                        source.name,
                        source.aask(
                            *(plan.query, self._limit, vector, _room(plan, is_over)),
                            self._threads,
                        ),
                    )
                    for source in self._sources
                ]
                parts = await arun(jobs, deadline)
                chunks = _merged(parts)
                chunks = await self._components.areranked(plan.query, chunks, deadline)
            finally:
                is_over.set()

            is_much = len(chunks) >= _MANY_CHUNKS or plan.active.is_slow
            call = await self._apart(is_much, lambda: self._call(plan, parts, chunks, request))
            await self._components.aembed(call, vector, deadline)
            is_much = is_much or call.chars() >= _MANY_CHARS
            return await self._apart(is_much, lambda: self._answer(plan, parts, call, request))

    def stats(self, *, reset: bool = False) -> ServiceStats:
        """
        Return the figures of the requests so far.

        Args:
            reset: Whether to start the figures anew; none is lost or reported twice.

        Raises:
            InvalidArgumentError: *reset* is not a bool.

        Examples:
            >>> from budgeteer.service import ChunkRetriever
            >>> service = RetrievalService(ChunkRetriever(["Tea."]), LlmSettings(model="gpt-4o"))
            >>> _ = service.retrieve("tea")
            >>> service.stats(reset=True).answered, service.stats().answered
            (1, 0)

        """
        return self._recorder.stats(reset=_validate.flag("reset", reset))

    def observe(self, result: RetrievalResult, billed: int) -> None:
        """
        Tell the service what the provider billed for the prompt of *result*.

        Its calibration learns from it, and requests that begin afterwards are corrected. What the
        caller sent beside the messages, such as tools, is learned as a part of the frame.

        Args:
            result: What `retrieve` returned, under the model of the present settings.
            billed: ``usage.prompt_tokens`` of the answer, as for `budgeteer.Calibration.observe`.

        Raises:
            InvalidArgumentError: The service has no calibration, *result* is of another model, or
                *billed* is refused as by `budgeteer.Calibration.observe`.

        Examples:
            >>> from budgeteer import Calibration
            >>> from budgeteer.service import ChunkRetriever
            >>> settings, chunks = LlmSettings("gpt-4o"), ChunkRetriever(["Green tea."])
            >>> service = RetrievalService(chunks, settings, calibration=Calibration())
            >>> result = service.retrieve("tea")
            >>> result.tokens.input
            11
            >>> service.observe(result, 22)  # usage.prompt_tokens
            >>> service.retrieve("tea").tokens.input
            22

        """
        observed(self._calibration, self._active, result, billed)
        with self._changing:
            if not self._active.is_current(self._calibration):
                self._active = self._activated(self._active.settings)

    # The stages, in the order in which they run.

    def _begin_anew(self) -> None:
        self._changing = threading.RLock()  # by a change of settings, and by a bill

    def _activated(self, settings: LlmSettings) -> Active:
        return activated(settings, self._packer, self._system_prompt, self._calibration)

    def _plan(self, query: str, request: _Request) -> Plan:
        """Return the plan, or raise if there is no budget."""
        query = _validate.text("query", query)
        active = self._active
        model, system = active.model, active.system_tokens
        asked = model.counter.count(query)
        request.operation.tell(
            {
                "tokens.system": system,
                "tokens.query": asked,
                "budgeteer.model": model.name,
                "budgeteer.context_window": model.context_window,
            }
        )
        budget = retrieval_budget(
            context_window=model.context_window,
            system_tokens=system,
            max_output_tokens=model.max_output_tokens,
            query_tokens=asked,
        )
        most = model.context_window - model.max_output_tokens
        is_input_bounded = model.max_input_tokens < most
        if is_input_bounded:
            most = model.max_input_tokens
            budget = most - system - asked
        messages = active.messages(self._message_builder, self._system_prompt, query, asked)
        bare = messages.count(messages.made(""))
        around = messages.count(messages.made(_PROBE)) - model.counter.count(_PROBE)
        fixed = max(bare, around)
        if budget <= 0 or most - fixed <= 0:
            limit = (
                f"max_input_tokens {most}"
                if is_input_bounded
                else f"context_window {model.context_window} - "
                f"max_output_tokens {model.max_output_tokens}"
            )
            raise InputValidationError(
                f"nothing is left for retrieval: {limit} - system_tokens {system} - query_tokens "
                f"{asked} - message_tokens {fixed - system - asked} = {most - fixed}"
            )
        room, reserve = min(most - fixed, active.packer.max_tokens), active.packer.reserve_tokens
        if room <= reserve:
            raise InputValidationError(
                f"nothing is left for retrieval: max_tokens {room} - reserve_tokens {reserve} = "
                f"{room - reserve}"
            )
        found = wanted(
            active.packer,
            room - reserve,
            is_reranking=self._components.is_reranking,
            limit=self._limit,
        )
        return Plan(query, active, asked, most, budget, most - fixed, found, messages)

    def _job(
        self, source: Source, plan: Plan, vector: Any, is_over: Flag
    ) -> Callable[[], list[Any]]:
        return lambda: source.ask(plan.query, self._limit, vector, _room(plan, is_over))

    async def _apart(self, is_much: bool, work: Callable[[], T]) -> T:
        """Return the result of *work*, run in a thread if it would block the event loop."""
        if not is_much:
            return work()
        answer: T = await in_thread(self._own_threads, work)
        return answer

    def _call(
        self, plan: Plan, parts: Sequence[list[Any]], chunks: list[Any], request: _Request
    ) -> Call:
        """Return the call that packs *chunks*; *parts* are those of each retriever."""
        packer = plan.active.packer
        with self._blaming(packer, parts, chunks):
            return begin(packer, plan.query, chunks, request.watch)

    def _answer(
        self, plan: Plan, parts: Sequence[list[Any]], call: Call, request: _Request
    ) -> RetrievalResult:
        """Pack, log what was left out, and return the result."""
        packing, messages, total = self._pack(plan, parts, call, request.watch)
        model = plan.active.model
        overhead = total - plan.active.system_tokens - plan.query_tokens - packing.total_tokens
        tokens = RetrievalTokens(
            system=plan.active.system_tokens,
            query=plan.query_tokens,
            retrieved=packing.total_tokens,
            budget=plan.budget,
            overhead=overhead,
            remaining=plan.most - total,
            input=total,
            output=model.max_output_tokens,
            context_window=model.context_window,
            is_exact=model.counter.is_exact,
        )
        result = RetrievalResult(packing, messages, tokens, model.name)
        if request.is_over:
            return result
        # Read from the columns, without making an object for each chunk.
        dropped, cut = packing._reasons.count(_BUDGET), packing._cut_places()  # noqa: SLF001
        packer = plan.active.packer
        tokens = bounded(tokens, packer.max_tokens - packer.reserve_tokens)
        log_result(result, tokens, dropped, len(cut))
        with suppress(Exception):  # a failing figure must not cost the answer
            request.packed = packed(packing, dropped, cut, model.counter)
        request.operation.tell_result(result, tokens)
        return result

    def _pack(
        self, plan: Plan, parts: Sequence[list[Any]], call: Call, watch: Watch | None
    ) -> tuple[Packing[Any], Sequence[Message], int]:
        """Return a packing, its messages, and their count, which is at most ``plan.most``."""
        active = plan.active
        is_free = self._packer is None  # the service chooses the order
        packer = active.packer
        if is_by_input := is_free and self._components.is_reranking:
            call = call.with_prepared(prepared_of(active.by_input))
        room = plan.room
        for attempt in range(_TRIES):
            limit = min(packer.max_tokens, room)
            with self._blaming(packer, parts, call.items):
                packing = _packed(packer, plan, call, limit, watch)
            if is_free and not is_by_input and _are_some_unscored(packing):
                is_by_input = True
                call = call.with_prepared(prepared_of(active.by_input))
                packing = _packed(packer, plan, call, limit, watch)
            messages = plan.messages.made(packing.text)
            total = plan.messages.count(messages, packing)
            if total <= plan.most:
                return packing, messages, total
            # The text counts more beside the query than on its own: by a number of tokens or, if
            # the messages contain it twice or escaped, by a share.
            less = packing.total_tokens - (total - plan.most)
            share = packing.total_tokens * plan.room // (total - plan.most + plan.room)
            room = max(0, min(room - 1, max(less, share)))
            room = room if attempt < _TRIES // 2 else room // 2
        packing = _packed(packer, plan, call, 0, watch)
        if packing.text:  # the counter counts some texts as 0
            nothing = dataclasses.replace(call.prepared, max_chunks=0).with_plan()
            packing = _packed(packer, plan, call.with_prepared(nothing), 0, watch)
        messages = plan.messages.made("")
        total = plan.messages.count(messages)
        if total > plan.most:
            raise InvalidArgumentError(
                f"the messages count {total} tokens without a context, and {plan.most} fit: the "
                "counter or the message builder does not answer alike for the same texts"
            )
        return packing, messages, total

    @contextmanager
    def _blaming(
        self, packer: Packer, parts: Sequence[list[Any]], chunks: Sequence[Any]
    ) -> Iterator[None]:
        """Turn an error about chunks into one that names the component that returned them."""
        try:
            yield
        except RetrievalTimeoutError:
            raise
        except Exception:
            for source, part in zip(self._sources, parts, strict=True):
                check_chunks(packer, source.name, part)
            check_chunks(packer, self._components.reranker, chunks)
            raise

    @contextmanager
    def _recorded(self) -> Iterator[_Request]:
        """Record the outcome of a request."""
        self._recorder.begin()
        outcome: Outcome = "cancelled"
        request = _Request()
        try:
            with _telemetry.request() as request.operation:
                yield request
            outcome = "answered"
        except InputValidationError:
            outcome = "rejected"
            raise
        except RetrievalTimeoutError:
            outcome = "timed_out"
            raise
        except Exception:
            outcome = "failed"
            raise
        finally:
            request.is_over = True
            self._recorder.end(outcome, request.packed if outcome == "answered" else None)


def _packed(
    packer: Packer, plan: Plan, call: Call, limit: int, watch: Watch | None
) -> Packing[Any]:
    """Return a packing, observed with the figures of the request."""
    observer = _telemetry.observer()
    if observer is None:
        return finish(call, limit, packer.reserve_tokens, watch)
    told = {"tokens.system": plan.active.system_tokens, "tokens.query": plan.query_tokens}
    name, counter = call.prepared.ranking.name, call.prepared.counter.name
    with observer.packing(name, counter, plan.query, told) as operation:
        packing: Packing[Any] = finish(call, limit, packer.reserve_tokens, watch)
        operation.tell_packing(packing)
        return packing


def _room(plan: Plan, is_over: Flag) -> Room:
    return Room(plan.active.model.counter, plan.wanted, is_over)


def _merged(parts: Sequence[list[Any]]) -> list[Any]:
    return parts[0] if len(parts) == 1 else [chunk for part in parts for chunk in part]


def _are_some_unscored(packing: Packing[Any]) -> bool:
    """Return whether only some chunks have a score."""
    scores = packing._scores  # noqa: SLF001
    if _NAN not in bytes(scores):  # much the faster, and so it is nearly always
        return False
    unscored = sum([score != score for score in scores.tolist()])  # noqa: PLR0124 - NaN is unequal to itself
    return 0 < unscored < len(scores)
