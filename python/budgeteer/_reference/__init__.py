"""Pure-Python backend: the readable definition of the native backend's behaviour."""

from budgeteer._reference._chunk.chunk import read_scores, scored
from budgeteer._reference._count.counter import (
    cache_info,
    clear_cache,
    count,
    count_around,
    count_batch,
    count_chunks,
    count_till_limit,
)
from budgeteer._reference._count.exact import Tokenizer
from budgeteer._reference._count.graphemes import grapheme_boundaries
from budgeteer._reference._count.truncate import truncate
from budgeteer._reference._layout.layout import resolve_layout
from budgeteer._reference._output.output import fit_output
from budgeteer._reference._pack.corpus import (
    corpus_statistics,
    index_chunks,
    open_corpus,
    remove_chunks,
    replace_chunks,
    save_corpus,
    stored_chunk,
)
from budgeteer._reference._pack.outcome import dropped_chunks, kept_chunks
from budgeteer._reference._pack.pipeline import Packed, Plan
from budgeteer._reference._pack.sentences import sentence_spans
from budgeteer._reference._rank.bm25 import bm25_scores
from budgeteer._reference._rank.keywords import keywords
from budgeteer._reference._rank.lexical import lexical_scores
from budgeteer._reference._rank.score import keyword_scores
from budgeteer._reference._rank.similarity import cosine_scores
from budgeteer._reference._rank.statistics import Statistics
from budgeteer._reference._table.column import TextColumn, count_column, read_column
from budgeteer._reference._table.table import Columns, Rows, pack_rows, read_rows

__all__ = [
    "Columns",
    "Packed",
    "Plan",
    "Rows",
    "Statistics",
    "TextColumn",
    "Tokenizer",
    "bm25_scores",
    "cache_info",
    "clear_cache",
    "corpus_statistics",
    "cosine_scores",
    "count",
    "count_around",
    "count_batch",
    "count_chunks",
    "count_column",
    "count_till_limit",
    "dropped_chunks",
    "fit_output",
    "grapheme_boundaries",
    "index_chunks",
    "kept_chunks",
    "keyword_scores",
    "keywords",
    "lexical_scores",
    "open_corpus",
    "pack_rows",
    "read_column",
    "read_rows",
    "read_scores",
    "remove_chunks",
    "replace_chunks",
    "resolve_layout",
    "save_corpus",
    "scored",
    "sentence_spans",
    "stored_chunk",
    "truncate",
]
