"""Type-checked, never run: the public API as a caller writes it."""

from dataclasses import dataclass

from budgeteer import (
    Allocation,
    BudgetPoint,
    CacheInfo,
    Calibration,
    Chunk,
    Corpus,
    Correction,
    FittedOutput,
    KeptChunk,
    Layout,
    Packer,
    Packing,
    Section,
    Template,
    fit_output,
    fit_outputs,
    get_counter,
    pack,
    trim_messages,
)
from budgeteer.embedding import EmbeddingError, OpenAIEmbedder
from budgeteer.presets import (
    Citation,
    agentic_rag,
    citations,
    context_gate,
    context_router,
    estimate_citation_tokens,
    gate_bundle,
    retrieval_service,
    sources_footer,
)
from budgeteer.ranking import (
    Bm25,
    Embedding,
    Hybrid,
    Lexical,
    bm25_scores,
    keyword_scores,
    lexical_scores,
)
from budgeteer.service import (
    ChunkRetriever,
    LlmSettings,
    QdrantRetriever,
    RetrievalResult,
    RetrievalService,
    Retriever,
    context_length_error,
)
from budgeteer.window import ModelLimits, count_messages, model_limits, negotiate, retrieval_budget


@dataclass
class Document:
    """A caller's own type."""

    page_content: str


packing: Packing[str] = pack("query", ["a", "b"], 10, overflow="truncate_end")
text: str = packing.text
kept: KeptChunk[str] = packing.kept[0]
chunk: str = kept.chunk
reason: str = packing.dropped[0].reason
is_over: bool = packing.dropped[0].reason == "budget"
span: tuple[int, int] | None = kept.span
larger: Packing[str] = packing.whatif(20)
points: list[BudgetPoint] = packing.budget_curve(step=5, up_to=20)
came: tuple[int, ...] = points[0].admitted
page: str = packing.report(dropped=10, curve=False) + packing.plot()

in_order: list[Packing[object]] = [*Packer(9).pack_batch([("q", ["a"])], workers=2)]
for row in Packer(9).pack_batch([{"query": "q", "chunks": ["a"]}], on_error="yield"):
    said: str = str(row) if isinstance(row, Exception) else row.text

packer = Packer(8_000, reserve_tokens=500, counter=len, ranking="recency", min_score=0.1)
choosy = Packer(8_000, min_score="auto")
documents: Packing[Document] = packer.pack("query", (Document("a"), Document("b")))
content: str = documents.kept[0].chunk.page_content
chunks: Packing[Chunk] = context_router(100, truncation="drop").pack("", [Chunk("a")])

cited: Packing[Chunk] = agentic_rag(800, buffer_tokens=9, counter=len).pack("", [Chunk("a")])
citation: Citation = citations(cited)[0]
footer: str = sources_footer(cited)
aside: int = estimate_citation_tokens(["a", Chunk("b")], counter="words")
gated: Packing[Chunk] = context_gate(99, max_docs=2).pack("", (Chunk("a"),))
artifact: str = gate_bundle({"artifacts": []}).kept[0].chunk["id"]
top: Packing[str] = retrieval_service(99).pack("", ["a"])

counter = get_counter("chars_per_token:3")
count: int = counter.count("text")
limited: int | None = counter.count_till_limit("text", 3)
total: int = int(counter.count_batch(["a", "b"]).sum())
cut: str = counter.truncate("text", 1, keep="both", marker="…")

exact = get_counter("gpt-4o", cache=False)
info: CacheInfo = exact.cache_info()
hits: int = info.hits
rate: float = info.hit_rate
by_counter: Packing[str] = pack("query", ["a"], 10, counter=exact)
calibration = Calibration(quantile=0.95)
calibration.observe(900, 1_000, model="gpt-4o", counter=len)
calibration.counter(model_limits("gpt-4o")).observe(900, 1_000)
correction: Correction | None = calibration.correction(exact)
bound: int = correction.bound(900) if correction else 900
best: int = int(keyword_scores("query", ["a"]).argmax())
stemmed = pack("query", ["a"], 10, ranking=Bm25(stemming="english", stopwords={"the"}))
own_words = Bm25(stopwords=["the"]), Bm25(stopwords=("the",)), Bm25(stopwords=None)
indexed: Packing[Chunk] = pack("query", Corpus([Chunk("a")]), 10, template=Template("{text}"))
sentences: Packing[Chunk] = Packer(9, units="sentence").pack("query", [Chunk("a")])
lexical = pack("query", ["a"], 10, ranking=Lexical(links=False, stemming=None, k3=0))
lexical_score: float = float(lexical_scores("query", ["a"], titles=["b"], feedback=False).max())
score: float = float(bm25_scores("query", ["a"], titles=["b"], k1=1.5, b=0.5).max())

limits: ModelLimits = model_limits("gpt-4o")
messages = [{"role": "user", "content": "text"}]
prompt_tokens: int = count_messages(messages, model=limits)
answer: int = negotiate(
    model="gpt-4o", messages=messages, max_output_tokens=900, safety_margin="auto", counter=len
).adjusted_max_output_tokens


class Vectors:
    """A caller's own retriever, without a base class."""

    def retrieve(self, query: str, limit: int) -> list[Document]:
        """Return what is near."""
        return [Document(query)][:limit]


own: Retriever = Vectors()
settings = LlmSettings(model="gpt-4o", context_window=8_000, max_output_tokens=500)
service = RetrievalService([own, ChunkRetriever(["a"])], settings, packer=packer, timeout=1.5)
service.settings = LlmSettings.from_env()
found: RetrievalResult = RetrievalService(QdrantRetriever("docs"), settings).retrieve("query")
remaining: int = found.tokens.remaining
knob: int | None = service.stats(reset=True).budget_for(0.95)
too_long = context_length_error(ValueError())
asked: int | None = too_long.requested_tokens if too_long else None


async def answer_later() -> int:
    """Answer under asyncio."""
    return (await service.aretrieve("query", timeout=2)).packing.total_tokens


fitted: FittedOutput = fit_output({"a": [1]}, 9, kind="json", query="tea", counter=len)
several: list[FittedOutput] = fit_outputs(["tea", [1]], 9, spill=lambda text: text[:9])
shown: tuple[str, int, bool, str | None] = (
    fitted.text,
    fitted.left_out,
    fitted.was_cut,
    fitted.pointer,
)
trimmed: list[dict[str, str]] = trim_messages(messages, 100, counter=len, start_on="user")
sent = trim_messages(messages, 100, previous=trimmed, step=0.2, keep_results=3, pins=[0])
sent = trim_messages(messages, 100, previous=sent, pins=lambda message: "a" in message["content"])
marked = trim_messages(messages, 100, pins="cache_control")
figures: tuple[int, int] = (sent.total_tokens, marked.stable_prefix_tokens)
places: tuple[int, ...] = sent.left_out + sent.shortened
layout = Layout(
    limits,
    [
        Section("system", "text", shrink=0),
        Section("history", messages, max_tokens=1_000),
        Section("context", fill=lambda n: packer.pack("query", ["a"], max_tokens=n), grow=1),
        Section("more", fill=lambda n: trim_messages(messages, n), basis=100),
        Section("rest", messages, previous=sent, step=0.2, keep_results=3),
        Section("answer", tokens=500),
    ],
    gap=50,
)
allocation: Allocation = layout.fit()
answer_tokens: int = allocation.tokens["answer"]
dropped: list[str] = allocation.dropped_sections
left: int = retrieval_budget(context_window=limits.context_window, query_tokens="query")


async def embed(texts: list[str]) -> int:
    """Embed as an asynchronous caller does."""
    async with OpenAIEmbedder("text-embedding-3-large", dimensions=256, cache_dir="c") as embedder:
        try:
            vectors = await embedder.aembed(texts)
            width: int = (await embedder.aembed_query("tea")).shape[0]
        except EmbeddingError as error:
            status: int | None = error.status
            return status or int(error.is_retryable)
        return len(vectors) + width


with OpenAIEmbedder(url="http://localhost:8080/v1/embeddings", api_key_env=None) as local:
    similarity = float(local.embed(["a"])[0] @ local.embed_query("a"))
    embedding = Embedding(local, fallback=Bm25(k1=1.5))
    lexical_fallback = Embedding(local, fallback="lexical"), Embedding(local, fallback=Lexical())
    Hybrid(bm25=Lexical(k1=1.5))
    hybrid = Hybrid({"bm25": 0.3, "embedding": 0.7}, fusion="rrf", k=20, embedding=embedding)
    near: Packing[str] = Packer(9, ranking=hybrid, dedupe=None).pack("query", ["a"])
