"""What the tests of telemetry share: providers that keep what is told, and stages to observe."""

from opentelemetry import trace
from opentelemetry.metrics import _internal as meters
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from service_support import Embedder, Fake

from budgeteer.errors import EmbeddingError

SECRET = "XYZZY"
CHUNKS = ["Green tea is mild.", "Rye bread is dark.", "Coffee is roasted.", "Black tea is strong."]


class Told:
    """What a program is told that has set providers."""

    def __init__(self, patch, sampler=sampling.ALWAYS_ON):
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.spans))
        patch.setattr(trace, "_TRACER_PROVIDER", self.provider)
        meter = MeterProvider([self.reader], shutdown_on_exit=False)
        patch.setattr(meters, "_METER_PROVIDER", meter)

    def named(self, name):
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def only(self, name):
        [span] = self.named(name)
        return span

    def points(self, name):
        """Return labels and sums of a histogram."""
        data = self.reader.get_metrics_data()
        scopes = [scope for part in data.resource_metrics for scope in part.scope_metrics]
        found = [metric for scope in scopes for metric in scope.metrics if metric.name == name]
        return [(dict(point.attributes), point.sum) for m in found for point in m.data.data_points]

    def everything(self):
        """Return all that would leave the process."""
        spans = [span.to_json() for span in self.spans.get_finished_spans()]
        return "".join(spans) + self.reader.get_metrics_data().to_json()


def failed_with(span, name):
    """Return whether a span says that it failed, of what type, and nothing of the message."""
    status = span.status
    is_error = status.status_code is trace.StatusCode.ERROR and not status.description
    return is_error and span.attributes["error.type"] == name and not span.events


class Vectors(Embedder):
    """An embedder of a model that has a name; fails where it is told to."""

    model = "text-embedding-3-small"
    is_broken = False

    def embed(self, texts):
        import numpy as np

        if self.is_broken:
            raise EmbeddingError(f"the endpoint said {SECRET}")
        return np.array(super().embed(texts), dtype="float32")

    async def aembed(self, texts):
        return self.embed(texts)


class Reranker:
    name = "by length"

    def rerank(self, query, chunks):
        return sorted(chunks, key=len)


class Searched(Fake):
    """A retriever that takes the query's vector."""

    name = "searched"
    takes_vector = True

    def retrieve(self, query, limit, *, vector):
        return super().retrieve(query, limit)


class Broken(Fake):
    """A retriever that raises what no trace may have."""

    def retrieve(self, query, limit):
        raise ConnectionError(f"https://user:{SECRET}@host refused {query}")
