"""
Embeddings from any endpoint that speaks OpenAI's protocol, with a cache on disk.

Needs ``pip install 'budgeteer[embeddings]'``. Texts are sent to the configured URL and nowhere
else; the rest of budgeteer uses no network.
"""

from budgeteer._rank.similarity import Embedder
from budgeteer.embedding._embedder import OpenAIEmbedder
from budgeteer.errors import EmbeddingError

__all__ = ["Embedder", "EmbeddingError", "OpenAIEmbedder"]
