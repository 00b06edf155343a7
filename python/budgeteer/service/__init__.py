"""
A retrieval service that computes its budget before it retrieves.

`RetrievalService` counts the system prompt and the query, and refuses a request that leaves no
room before any retriever or model is called. Then it retrieves, reranks, packs the top chunks that
fit, and returns messages that provably fit the model's window. The model can be changed while it
runs. `QdrantRetriever` needs ``pip install 'budgeteer[qdrant]'``; the others need nothing.
"""

from budgeteer._rank.similarity import Embedder
from budgeteer._sources.qdrant import QdrantRetriever
from budgeteer.errors import (
    ContextLengthError,
    InputValidationError,
    RetrievalError,
    RetrievalTimeoutError,
)
from budgeteer.service._openai import chat_messages, context_length_error
from budgeteer.service._result import RetrievalResult, RetrievalTokens
from budgeteer.service._retrievers import (
    ChunkRetriever,
    FolderRetriever,
    JsonlRetriever,
    NoOpReranker,
    PagedRetriever,
    Reranker,
    Retriever,
)
from budgeteer.service._service import RetrievalService
from budgeteer.service._settings import LlmSettings
from budgeteer.service._stats import ServiceStats

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
