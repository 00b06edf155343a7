"""
Traces and metrics for OpenTelemetry, if the program has set it up.

Only OpenTelemetry's API is used, and it is not imported here: a program that has set a provider
has imported it. So `observer` looks at the imported modules at each call, as a program may set a
provider after it imported this library. Without a provider this is much faster than a span that
nobody records.

Spans have figures and the names of configured components, never a text, a query or the message of
an exception, which may quote either. `CONTENT` opts in to texts and queries.

No exception of OpenTelemetry reaches the caller: a failing part is left out and logged at level
DEBUG.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from budgeteer._codes import FILE, HF
from budgeteer._log import log

if TYPE_CHECKING:
    from typing_extensions import Self

    Told = Mapping[str, str | bool | int | float]

SCOPE = "budgeteer"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable that opts in to content, as for OpenTelemetry's instrumentations of GenAI."""

_CAPTURING = ("true", "span_only", "span_and_event")
_TRACE = ("opentelemetry.trace", "_TRACER_PROVIDER", "get_tracer_provider")
_METRICS = ("opentelemetry.metrics._internal", "_METER_PROVIDER", "get_meter_provider")
_FROM_ENVIRONMENT = (
    ("OTEL_PYTHON_TRACER_PROVIDER", "opentelemetry.trace", "get_tracer_provider"),
    ("OTEL_PYTHON_METER_PROVIDER", "opentelemetry.metrics", "get_meter_provider"),
)
_PACK_SECONDS = tuple(step * 10.0**power for power in range(-5, 1) for step in (1, 2.5, 5))
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TOKENS = tuple(float(4**power) for power in range(13))
_NAME_MAX = 255
_HISTOGRAMS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "budgeteer.pack.duration": ("s", "How long packing took.", _PACK_SECONDS),
    "budgeteer.pack.tokens": ("{token}", "What the packed texts count.", _TOKENS),
    "budgeteer.retrieve.duration": ("s", "How long a request to the service took.", _SECONDS),
    "budgeteer.retrieve.tokens": ("{token}", "What of a window went where.", _TOKENS),
}
"""The unit, description and bucket bounds of each histogram."""


class Packed(Protocol):
    """The reported figures of a packing."""

    @property
    def text(self) -> str: ...
    @property
    def total_tokens(self) -> int: ...
    @property
    def budget_tokens(self) -> int: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def was_truncated(self) -> bool: ...
    @property
    def kept(self) -> Sequence[Any]: ...
    @property
    def dropped_count(self) -> int: ...
    @property
    def fallback(self) -> str | None: ...


class Retrieved(Protocol):
    """The reported figures of a request to the service."""

    @property
    def model(self) -> str: ...
    @property
    def packing(self) -> Packed: ...


class _Guard:
    """Keeps exceptions of OpenTelemetry and its exporters from the observed operation."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> bool:
        if kind is None or not issubclass(kind, Exception):  # Ctrl-C passes
            return False
        log().debug("telemetry failed: %s", kind.__name__)  # the message may quote anything
        return True


_GUARD = _Guard()


class Operation:
    """
    An observed operation: a span while it lasts, if there is a tracer, and then its duration.

    This class itself is the operation that nobody observes.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        """End it; exceptions pass."""

    def tell(self, attributes: Told) -> None:
        """Add *attributes* to the span."""

    def tell_packing(self, packing: Packed) -> None:
        """Add the figures of a packing, without counting anything."""

    def tell_result(self, result: Retrieved, tokens: Any) -> None:
        """Add the figures of a request to the service, and of the budget that its packing had."""


UNOBSERVED = Operation()


class _Observed(Operation):
    """An operation with a span, a histogram or both."""

    __slots__ = (
        *("_duration", "_is_attached", "_is_recording", "_labels", "_observer", "_span", "_start"),
        "_token",
    )

    def __init__(
        self,
        observer: Observer,
        name: str,
        attributes: Told,
        *,
        duration: str = "",
        labels: Told | None = None,
        is_client: bool = False,
    ) -> None:
        self._observer = observer
        self._duration = duration
        self._labels = dict(_clean(labels or {}))
        self._span: Any = None
        if observer.tracer is not None:
            kind = observer.kinds.CLIENT if is_client else observer.kinds.INTERNAL
            self._span = observer.tracer.start_span(name, kind=kind, attributes=_clean(attributes))
        self._is_recording = self._span is not None and self._span.is_recording()

    def __enter__(self) -> Self:
        self._is_attached = False
        if self._span is not None:
            with _GUARD:
                self._token = self._observer.attach(self._span)
                self._is_attached = True
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        seconds = time.perf_counter() - self._start
        if self._is_attached:  # first, or later spans would be its children
            with _GUARD:
                self._observer.detach(self._token)
        found = {}
        if kind is not None and issubclass(kind, Exception):  # not a cancellation or Ctrl-C
            found["error.type"] = _short(kind.__qualname__)
        if self._duration:
            self._observer.record(self._duration, seconds, {**self._labels, **found})
        if self._span is None:
            return
        if self._is_recording:
            self.tell(found)
            if found:
                with _GUARD:
                    self._span.set_status(self._observer.failed)
        with _GUARD:
            self._span.end()

    def tell(self, attributes: Told) -> None:
        if self._is_recording and attributes:
            with _GUARD:
                self._span.set_attributes(_clean(attributes))

    def tell_result(self, result: Retrieved, tokens: Any) -> None:
        parts = {
            "system": tokens.system,
            "query": tokens.query,
            "retrieved": tokens.retrieved,
            "budget_remaining": tokens.remaining,
        }
        labels = {**self._labels, "budgeteer.model": _short(result.model)}
        for part, count in parts.items():
            self._observer.record(
                "budgeteer.retrieve.tokens", count, {**labels, "budgeteer.token.type": part}
            )
        if self._is_recording:
            self.tell({f"tokens.{part}": count for part, count in parts.items()})
            self.tell(_figures(result.packing))
            self.tell(
                {
                    "budgeteer.budget": tokens.budget,
                    "budgeteer.model": result.model,
                    "budgeteer.context_window": tokens.context_window,
                    "budgeteer.prompt_tokens": tokens.input,
                }
            )


class Observer:
    """
    A pair of providers, and their tracer and histograms, made once.

    Attributes:
        tracer: None if nobody traces.
        is_needed: Whether anybody traces or measures.

    """

    def __init__(self, tracers: Any, meters: Any) -> None:
        self.tracers, self.meters = tracers, meters
        self.tracer: Any = None
        self._histograms: dict[str, Any] = {}
        self.is_needed = False
        if tracers is None and meters is None:
            return
        options = (SCOPE, _version())
        if tracers is not None:
            with _GUARD:
                self._begin_tracing(tracers.get_tracer(*options))
        if meters is not None:
            with _GUARD:
                self._begin_measuring(meters.get_meter(*options))
        self.is_needed = self.tracer is not None or bool(self._histograms)

    def _begin_tracing(self, tracer: Any) -> None:
        trace = importlib.import_module("opentelemetry.trace")
        if isinstance(tracer, trace.NoOpTracer):  # OTEL_SDK_DISABLED
            return
        self.kinds = trace.SpanKind
        self.failed = trace.Status(trace.StatusCode.ERROR)
        self._in_context = trace.set_span_in_context
        self._context = importlib.import_module("opentelemetry.context")
        self.tracer = tracer

    def _begin_measuring(self, meter: Any) -> None:
        if not isinstance(meter, importlib.import_module("opentelemetry.metrics").NoOpMeter):
            self._histograms = {name: _histogram(meter, name) for name in _HISTOGRAMS}

    def attach(self, span: Any) -> Any:
        """Make *span* the current one, and return the token for `detach`."""
        return self._context.attach(self._in_context(span))

    def detach(self, token: Any) -> None:
        """Make the previous span current again."""
        self._context.detach(token)

    def record(self, name: str, value: float, labels: Told) -> None:
        """Record a value in a histogram, if there is one."""
        histogram = self._histograms.get(name)
        if histogram is not None:
            with _GUARD:
                histogram.record(value, labels)

    def packing(
        self, ranking: str, counter: str, query: str, told: Told | None = None
    ) -> Operation:
        """Return the operation of a packing; *told* are further attributes."""
        return _begun(_ObservedPacking, self, ranking, counter, query, told or {})


class _ObservedPacking(_Observed):
    """A packing."""

    __slots__ = ("_query",)

    def __init__(
        self, observer: Observer, ranking: str, counter: str, query: str, told: Told
    ) -> None:
        self._query = query
        labels = {"budgeteer.ranking": ranking, "budgeteer.counter": _counter_name(counter)}
        super().__init__(
            *(observer, "budgeteer.pack", {**labels, **told}),
            duration="budgeteer.pack.duration",
            labels=labels,
        )

    def tell_packing(self, packing: Packed) -> None:
        self._observer.record("budgeteer.pack.tokens", packing.total_tokens, self._labels)
        if not self._is_recording:
            return
        self.tell(
            {
                **_figures(packing),
                "tokens.retrieved": packing.total_tokens,
                "tokens.budget_remaining": packing.budget_tokens - packing.total_tokens,
                "budgeteer.budget": packing.budget_tokens,
            }
        )
        if _captures_content():
            self.tell({"budgeteer.query": self._query, "budgeteer.text": packing.text})


def _begun(kind: type[_Observed], *arguments: Any, **options: Any) -> Operation:
    """Return a new operation, or an unobserved one if that fails."""
    with _GUARD:
        return kind(*arguments, **options)
    return UNOBSERVED


_known: Observer | None = None


def observer() -> Observer | None:
    """Return the observer, None if nobody traces or measures."""
    tracers, meters = _provider(*_TRACE), _provider(*_METRICS)
    known = _known
    if known is None or known.tracers is not tracers or known.meters is not meters:
        known = _renewed(tracers, meters)
    return known if known.is_needed else None


def _provider(module: str, variable: str, getter: str) -> Any:
    """Return the provider that a program has set, None if there is none."""
    found = sys.modules.get(module)
    if found is None:
        return None
    names = found.__dict__
    if variable in names:
        return names[variable]
    return _asked(names[getter]) if getter in names else None  # another version, or half imported


def _asked(getter: Callable[[], Any]) -> Any:
    with _GUARD:
        return getter()
    return None


def _renewed(tracers: Any, meters: Any) -> Observer:
    """Return an observer for these providers, and remember it."""
    global _known  # noqa: PLW0603 - one reference; two threads make the same
    if _known is None:  # the first time, as only the environment may name a provider
        for variable, module, getter in _FROM_ENVIRONMENT:
            if variable in os.environ:
                with suppress(Exception):  # OpenTelemetry has logged it
                    getattr(importlib.import_module(module), getter)()
        tracers, meters = _provider(*_TRACE), _provider(*_METRICS)
    _known = Observer(tracers, meters)
    return _known


def stage(name: str, attributes: Told | None = None) -> Operation:
    """Return a stage of the current operation, observed by a span."""
    found = observer()
    if found is None or found.tracer is None:
        return UNOBSERVED
    return _begun(_Observed, found, name, attributes or {})


def embedding(embedder: object, texts: Sequence[str] | None) -> Operation:
    """Return the stage in which an embedder embeds *texts* and the query."""
    if observer() is None:
        return UNOBSERVED
    told: dict[str, str | int] = {"budgeteer.texts": len(texts or ()) + 1}
    with _GUARD:  # it may be a property that raises
        model = getattr(embedder, "model", None)
        if isinstance(model, str):
            told["gen_ai.request.model"] = model
    return stage("budgeteer.embed", told)


def reranking(name: str, chunks: int) -> Operation:
    """Return the stage in which a reranker is called."""
    return stage("budgeteer.rerank", {"budgeteer.reranker": name, "budgeteer.chunks": chunks})


def retrieval(source: str, query: str) -> Operation:
    """Return the stage in which a retriever is called, by the conventions for retrieval spans."""
    found = observer()
    if found is None or found.tracer is None:
        return UNOBSERVED
    attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": source}
    if _captures_content():
        attributes["gen_ai.retrieval.query.text"] = query
    return _begun(_Observed, found, f"retrieval {_short(source)}", attributes, is_client=True)


def request() -> Operation:
    """Return a request to a service, observed by a span and a histogram."""
    found = observer()
    if found is None:
        return UNOBSERVED
    return _begun(
        _Observed, found, "budgeteer.retrieve", {}, duration="budgeteer.retrieve.duration"
    )


def _figures(packing: Packed) -> dict[str, str | bool | int | float]:
    """Return the figures that need no counting."""
    told: dict[str, str | bool | int | float] = {
        "budgeteer.kept": len(packing.kept),
        "budgeteer.dropped": packing.dropped_count,
        "budgeteer.truncated": packing.was_truncated,
        "budgeteer.is_exact": packing.is_exact,
    }
    if packing.fallback is not None:
        told["budgeteer.fallback"] = packing.fallback
    return told


def _captures_content() -> bool:
    return os.environ.get(CONTENT, "").strip().lower() in _CAPTURING


def _clean(attributes: Told) -> Told:
    """Return *attributes* in exportable form, as a lone surrogate loses a whole batch."""
    return {
        key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for key, value in attributes.items()
    }


def _short(name: str) -> str:
    return name[:_NAME_MAX].encode("utf-8", "replace").decode()


def _counter_name(name: str) -> str:
    """Return the short name of a counter, without the path of a file."""
    return name.partition(":")[0] if name.startswith((FILE, HF)) else _short(name)


def _histogram(meter: Any, name: str) -> Any:
    unit, description, bounds = _HISTOGRAMS[name]
    try:
        return meter.create_histogram(
            name, unit, description, explicit_bucket_boundaries_advisory=bounds
        )
    except TypeError:  # the API before version 1.30 has no advice
        return meter.create_histogram(name, unit, description)


def _version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError):
        return version("budgeteer")
    return None
