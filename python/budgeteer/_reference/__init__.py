"""Pure-Python backend: the readable definition of what the native backend must do."""

from budgeteer._reference._bm25 import bm25_scores
from budgeteer._reference._corpus import (
    index_chunks,
    open_corpus,
    save_corpus,
    stored_chunk,
)
from budgeteer._reference._count import (
    cache_info,
    clear_cache,
    count,
    count_batch,
    count_till_limit,
)
from budgeteer._reference._graphemes import grapheme_boundaries
from budgeteer._reference._keywords import keywords
from budgeteer._reference._layout import resolve_layout
from budgeteer._reference._pipeline import pack
from budgeteer._reference._score import keyword_scores
from budgeteer._reference._sentences import sentence_spans
from budgeteer._reference._similarity import cosine_scores
from budgeteer._reference._truncate import truncate

__all__ = [
    "bm25_scores",
    "cache_info",
    "clear_cache",
    "cosine_scores",
    "count",
    "count_batch",
    "count_till_limit",
    "grapheme_boundaries",
    "index_chunks",
    "keyword_scores",
    "keywords",
    "open_corpus",
    "pack",
    "resolve_layout",
    "save_corpus",
    "sentence_spans",
    "stored_chunk",
    "truncate",
]
