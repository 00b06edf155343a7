"""
Native backend of `budgeteer`. Private: import from `budgeteer`.
"""

__all__ = ["bm25_scores", "cache_info", "clear_cache", "cosine_scores", "count", "count_batch", "count_till_limit", "grapheme_boundaries", "index_chunks", "keyword_scores", "keywords", "open_corpus", "pack", "resolve_layout", "save_corpus", "sentence_spans", "stored_chunk", "truncate"]

def bm25_scores(query: "str", texts: "list[object] | tuple[object, ...]", titles: "list[object] | tuple[object, ...] | None", k1: "float", b: "float", words: "tuple[str | None, str | tuple[str, ...] | None]") -> "bytearray | tuple[int, int]":
    """
    Scores each text as float64; or returns a code and the index of what is no
    str.
    """

def cache_info(kind: "int") -> "tuple[int, int, int, int, int]":
    """
    Returns the hits, the misses, the entries, the bytes and the most bytes of
    the counts that are remembered.
    """

def clear_cache(kind: "int") -> "None":
    """
    Forgets the counts that are remembered.
    """

def cosine_scores(query: "object", vectors: "object") -> "bytearray | int":
    """
    Scores each of `vectors` as float64; or returns the index of the first that
    has a number that is not finite, -1 for the query's.
    """

def count(kind: "int", ratio: "float", text: "str") -> "int":
    """
    Counts the tokens of `text`.
    """

def count_batch(kind: "int", ratio: "float", texts: "list[object] | tuple[object, ...]") -> "bytearray | int":
    """
    Counts each of `texts`, as int64; or returns the index of the first that is
    no str.
    """

def count_till_limit(kind: "int", ratio: "float", text: "str", limit: "int") -> "int | None":
    """
    Counts the tokens of `text`, or returns None if there are more than `limit`.
    """

def grapheme_boundaries(text: "str") -> "list[int]":
    """
    Returns the places, in code points, where grapheme clusters end.
    """

def index_chunks(chunks: "tuple[object, ...]", index: "object | None") -> "object":
    """
    Indexes chunks behind those of `index`; or returns a code and the index of
    a bad chunk.
    """

def keyword_scores(query: "str", texts: "list[object] | tuple[object, ...]", titles: "list[object] | tuple[object, ...] | None") -> "bytearray | tuple[int, int]":
    """
    Scores each text as float64; or returns a code and the index of what is no
    str.
    """

def keywords(text: "str") -> "list[str]":
    """
    Returns the keywords of `text`, each once, in order of first occurrence.
    """

def open_corpus(path: "str") -> "object":
    """
    Opens a file that `save_corpus` wrote; or returns what is wrong with it.
    """

def pack(query: "str", chunks: "object", budget: "int", kind: "int", ratio: "float", ask: "object | None", ranking: "int", keys: "bytes | None", min_score: "float | None", overflow: "int", max_chunks: "int | None", dedupe: "int", selection: "int", order: "int", previous: "tuple[str, ...]", template: "tuple[int, str, str, str, str]", notice: "tuple[str, ...] | None", tag: "object", sum_of_parts: "bool", cite: "object | None", gate: "tuple[tuple[str, ...], tuple[str, ...], bytes, int] | None", hybrid: "tuple[float, float, float, float | None] | None", words: "tuple[str | None, str | tuple[str, ...] | None]") -> "tuple[object, ...]":
    """
    Packs chunks or what [`index_chunks`](crate::corpus::index_chunks) made of
    them, and returns the columns of a packing; or a code and the index of a bad
    chunk.
    """

def resolve_layout(space: "int", basis: "list[int]", grow: "list[float]", shrink: "list[float]", minimum: "list[int]", maximum: "list[int]", priority: "list[int]") -> "tuple[list[int], list[int], int]":
    """
    Divides `space` tokens among sections. Returns their sizes, the dropped ones
    and the free tokens.
    """

def save_corpus(index: "object", path: "str", records: "list[bytes]") -> "None":
    """
    Writes a corpus to a file, with a record of each chunk.
    """

def sentence_spans(text: "str") -> "list[int]":
    """
    Returns where each sentence starts and ends, in one list.
    """

def stored_chunk(index: "object", place: "int") -> "tuple[str, str, bytes]":
    """
    Returns text, title and record of chunk `place` of an opened file.
    """

def truncate(kind: "int", ratio: "float", ask: "object | None", text: "str", max_tokens: "int", keep: "int", marker: "str") -> "str":
    """
    Cuts `text` to at most `max_tokens` tokens, marker included.
    """
