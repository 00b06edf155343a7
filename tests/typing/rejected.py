"""Type-checked, never run: mistakes, each of which mypy and pyright must find."""

from typing import Literal

from budgeteer import (
    Corpus,
    Packer,
    Packing,
    Section,
    fit_output,
    get_counter,
    pack,
    parse_context,
    trim_messages,
)
from budgeteer.config import Config
from budgeteer.embedding import OpenAIEmbedder
from budgeteer.presets import agentic_rag, context_router
from budgeteer.ranking import Bm25, Embedding, Hybrid, Lexical, bm25_scores
from budgeteer.service import LlmSettings, QdrantRetriever, RetrievalService
from budgeteer.window import count_messages, count_tools, negotiate, safe_message_count

# Words of a packer.
Packer(9, ranking="bm52")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, min_score="high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, overflow="truncate")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, dedupe="nearly")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, selection="cover")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, units="sentences")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, order="ranked")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, template="markup")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Its options.
Packer(9, stemming="english")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Packer(9, 8)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
pack("query", ["a"], 9, overflw="skip")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
pack("query", ["a"], 9, overflow="stp")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
pack("query", ["a"], 9, ranking=bm25_scores)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
pack("query", ["a"], 9, max_chunks="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
pack("query", ["a"], 9, template=Bm25())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Rankings.
Packer(9, ranking=OpenAIEmbedder())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Packer(9, ranking=Bm25)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Bm25(stemming="englisch")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Bm25(stopwords="klingon")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Lexical(stemming="englisch")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Lexical(links="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Bm25(k3=1.2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Bm25(k2=1.2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Embedding("text-embedding-3-small")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Embedding(fallback="keyword")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Hybrid({"bm25": 0.5, "embeddings": 0.5})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
Hybrid(fusion="max")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Hybrid(bm25="bm25")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
bm25_scores("query", ["a"], stemming="danish")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
bm25_scores("query", ["a"], stopwords="klingon")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Results.
packing: Packing[str] = pack("query", ["a"], 9)
chunk: int = packing.kept[0].chunk  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
is_over: bool = packing.dropped[0].reason == "over"  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
why: Literal["budget", "cap"] = packing.dropped[0].reason  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
packing.kept.append(packing.kept[0])  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
count: int = packing.droped_count  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
numbers: Packing[int] = Packer(9).pack("query", Corpus(["a"]))  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]

# Counters, messages and sections.
get_counter("words").truncate("text", 9, keep="middle")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
get_counter(9)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
parse_context("text", "tags")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
messages = [{"role": "user", "content": "text"}]
trim_messages(messages, 9, start_on="assistant")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
trim_messages(messages, 9, pins="cache")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
trim_messages(messages, 9, previous=["text"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
trim_messages(["text"], 9)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
trimmed: list[str] = trim_messages(messages, 9)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
fit_output("text", 9, kind="yaml")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
fit_output("text", 9, spill=len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
count_messages("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
count_tools(messages, tool_choice="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
negotiate(model="gpt-4o", messages=messages, max_output_tokens=9, safety_margin="none")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
safe_message_count(model="gpt-4o", safety_margin="none")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Section("system", "text", role="sytem")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Section("system", content=9)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Section("context", fill=lambda max_tokens: max_tokens)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
Section("context", "text", 9)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

# Presets and the service.
context_router(9, estimator="chars_div3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
context_router(9, ranking="relevant")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
context_router(9, truncation="skip")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agentic_rag(9, dedupe="exact")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
QdrantRetriever("docs", fields={"body": "text"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
RetrievalService(["a"], LlmSettings("gpt-4o"))  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
RetrievalService(QdrantRetriever("docs"), {"model": "gpt-4o"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
RetrievalService(QdrantRetriever("docs"), LlmSettings("gpt-4o"), message_builder=len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
LlmSettings(window=9)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def change(config: Config) -> None:
    """Assign to what is immutable."""
    config.packer = Packer(9)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    config.packer.max_tokens = 8  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
