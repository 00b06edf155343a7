"""
A retrieval service that works its budget out before it retrieves.

`RetrievalService` counts the system prompt and the query, refuses what leaves nothing before any
retriever or model is asked, retrieves, reranks, packs the top chunks that fit, and answers with
messages that provably fit the model's window, ready to send. The model can be changed while it
runs. `QdrantRetriever` needs ``pip install 'budgeteer[qdrant]'``; the others need nothing.
"""

from budgeteer._openai import chat_messages, context_length_error
from budgeteer._qdrant import QdrantRetriever
from budgeteer._retrieval_result import RetrievalResult, RetrievalTokens
from budgeteer._retrievers import (
    ChunkRetriever,
    Embedder,
    FolderRetriever,
    JsonlRetriever,
    NoOpReranker,
    PagedRetriever,
    Reranker,
    Retriever,
)
from budgeteer._service import RetrievalService
from budgeteer._service_stats import ServiceStats
from budgeteer._settings import LlmSettings
from budgeteer.errors import (
    ContextLengthError,
    InputValidationError,
    RetrievalError,
    RetrievalTimeoutError,
)

__all__ = [
    "ChunkRetriever",
    "ContextLengthError",
    "Embedder",
    "FolderRetriever",
    "InputValidationError",
    "JsonlRetriever",
    "LlmSettings",
    "NoOpReranker",
    "PagedRetriever",
    "QdrantRetriever",
    "Reranker",
    "RetrievalError",
    "RetrievalResult",
    "RetrievalService",
    "RetrievalTimeoutError",
    "RetrievalTokens",
    "Retriever",
    "ServiceStats",
    "chat_messages",
    "context_length_error",
]
