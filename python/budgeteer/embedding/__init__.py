"""
Embeddings by any endpoint that speaks OpenAI's protocol, kept on disk.

Needs ``pip install 'budgeteer[embeddings]'``. Texts leave the machine for the configured URL, and
for nothing else; the rest of budgeteer has no network.
"""

from budgeteer._rank.similarity import Embedder
from budgeteer.embedding._embedder import OpenAIEmbedder
from budgeteer.errors import EmbeddingError

__all__ = ["Embedder", "EmbeddingError", "OpenAIEmbedder"]
