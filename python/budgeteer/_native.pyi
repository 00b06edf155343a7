"""
Native backend of `budgeteer`. Private: import from `budgeteer`.
"""

from typing import Any, final

__all__ = ["Columns", "Packed", "Plan", "Rows", "Statistics", "TextColumn", "Tokenizer", "bm25_scores", "cache_info", "clear_cache", "corpus_statistics", "cosine_scores", "count", "count_around", "count_batch", "count_chunks", "count_column", "count_till_limit", "dropped_chunks", "fit_output", "grapheme_boundaries", "index_chunks", "kept_chunks", "keyword_scores", "keywords", "lexical_scores", "open_corpus", "pack_rows", "packed_vocabulary", "read_column", "read_rows", "read_scores", "remove_chunks", "replace_chunks", "resolve_layout", "save_corpus", "scored", "sentence_spans", "stored_chunk", "truncate"]

@final
class Columns:
    """
    The columns of all answers.
    """
    def __arrow_c_schema__(self, /) -> "object":
        """
        Returns a capsule with the types of the columns.
        """
    def __arrow_c_stream__(self, /, requested_schema: "object | None" = None) -> "object":
        """
        Returns a capsule with the columns. They come in the types that they have.
        """
    def __len__(self, /) -> int:
        """
        Returns the number of rows.
        """

@final
class Packed:
    """
    What became of the chunks: the text, and columns of numbers. A
    `budgeteer.Packing` wraps it.
    """
    @property
    def available(self, /) -> bytes | None:
        """
        The tokens that were available, as int64.
        """
    @property
    def citation_tokens(self, /) -> bytes:
        """
        The tokens set aside for citing each kept chunk, as int64.
        """
    @property
    def cut(self, /) -> int:
        """
        Which of the kept chunks was cut, by its place in the text; -1 for none.
        """
    @property
    def dropped(self, /) -> bytes | None:
        """
        The index of each dropped chunk, in the order in which that was decided,
        as uint32. For a corpus this and the next three are None.
        """
    @property
    def duplicates(self, /) -> dict[int, int]:
        """
        The kept chunk that each duplicate repeats, by the index of the
        duplicate.
        """
    @property
    def extracts(self, /) -> bytes:
        """
        Each kept chunk of which only some sentences are in the text, how many,
        and how many it has, as uint32.
        """
    @property
    def kept(self, /) -> bytes:
        """
        The index of each kept chunk, in the order of the text, as uint32.
        """
    @property
    def kept_scores(self, /) -> bytes:
        """
        The score of each kept chunk, as float64; NaN for none.
        """
    @property
    def least(self, /) -> float | None:
        """
        The score from which on chunks are in scope, if it was found from the
        scores; else None.
        """
    @property
    def needed(self, /) -> bytes | None:
        """
        The tokens that each dropped chunk needed, as int64.
        """
    @property
    def reasons(self, /) -> bytes | None:
        """
        Why each dropped chunk was dropped, as uint8.
        """
    @property
    def scores(self, /) -> bytes | None:
        """
        The score of each chunk, as float64; None of a corpus.
        """
    @property
    def signals(self, /) -> bytes | None:
        """
        What scores by words have besides those of the query's words: for each
        a chunk, a kind and another chunk, or whether a heading is a whole one, as
        uint32, and the score as float64; None of a corpus.
        """
    @property
    def spans(self, /) -> bytes:
        """
        Where the text of each kept chunk starts and ends, as int64.
        """
    @property
    def text(self, /) -> str:
        """
        The assembled text.
        """
    @property
    def token_counts(self, /) -> bytes:
        """
        The token count of the text of each kept chunk, as int64.
        """
    @property
    def total_tokens(self, /) -> int:
        """
        Its tokens.
        """
    @property
    def unseen(self, /) -> Any | None:
        """
        For a corpus, the object that has the scores, the signals and the
        dropped chunks; else None.
        """

@final
class Plan:
    """
    What a packer knows when it is made. It never changes.
    """
    def __new__(cls, /, *, counter: "tuple[int | Tokenizer, float]", ranking: "tuple[int, tuple[float, float, str | None, str | tuple[str, ...] | None, float, bool, bool, bool], tuple[float, float, float, float | None] | None]", min_score: "float | str | None", overflow: "int", max_chunks: "int | None", dedupe: "int", selection: "int", order: "int", template: "tuple[int, str, str, str, str]", notice: "tuple[str, ...] | None", policy: "tuple[int, int]", units: "int") -> Plan: ...
    def pack(self, /, query: "str", chunks: "object", budget: "int", *, keys: "bytes | None" = None, previous: "tuple[str, ...]" = ..., template: "tuple[int, str, str, str, str] | None" = None, ask: "object | None" = None, tag: "object | None" = None, write: "object | None" = None, cite: "object | None" = None, gate: "tuple[tuple[str, ...], tuple[str, ...], bytes] | None" = None, watch: "object | None" = None, releases: "bool" = False) -> "Packed | tuple[int, int]":
        """
        Packs chunks, a column of texts, or the result of
        [`index_chunks`](crate::corpus::index_chunks); or returns a code and the
        index of a bad chunk. What `watch` raises ends the call. If `releases`,
        other threads run meanwhile, however quick the work is.
        """
    @staticmethod
    def text_chars(chunks: "tuple[object, ...] | TextColumn") -> "int":
        """
        Returns the number of code points in the texts of chunks; 0 where one
        cannot be read.
        """

@final
class Rows:
    """
    A table of queries and chunks, whose memory is another program's.
    """
    def __len__(self, /) -> int:
        """
        Returns the number of queries.
        """
    def answered(self, /, answers: "list[tuple[str, int, bytes] | str]") -> "Columns":
        """
        Returns the columns of answers: each a text, its tokens, and the indices
        of the kept chunks; or the text of an error.
        """
    def row(self, /, nth: "int", wants: "tuple[bool, bool, bool, bool, bool, bool]") -> "tuple[str, list[object]] | tuple[int, int, str, int | None]":
        """
        Returns the query and the chunks of a row as objects; or a code, the
        column, the field and the chunk that cannot be read.
        """

@final
class Statistics:
    """
    The statistics of a collection, for the rankings by words.
    """
    def __new__(cls, /, of: "tuple[str | None, str | tuple[str, ...] | None]", chunks: "int", words: "int", frequencies: "dict[str, int]") -> Statistics: ...

@final
class TextColumn:
    """
    A column of texts, which become strs when they are asked for.
    """
    def __getitem__(self, index: Any, /) -> Any:
        """
        Returns a text; of a slice a list of texts.
        """
    def __len__(self, /) -> int:
        """
        Returns the number of texts.
        """

@final
class Tokenizer:
    """
    A tokenizer that was read from a file. Immutable, and equal to another of what was
    read once.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, path: "str", has_cache: "bool") -> Tokenizer:
        """
        Reads the file, or the one in a directory.
        """
    def fresh(self, /) -> "Tokenizer":
        """
        Returns the same tokenizer, which counts without a cache.
        """
    def made_with(self, /) -> "tuple[str, bool]":
        """
        Returns the arguments that it was made with.
        """

def bm25_scores(query: "str", texts: "list[object] | tuple[object, ...]", titles: "list[object] | tuple[object, ...] | None", k1: "float", b: "float", words: "tuple[str | None, str | tuple[str, ...] | None]") -> "bytearray | tuple[int, int]":
    """
    Scores each text as float64; or returns a code and the index of the first
    that is not a str.
    """

def cache_info(kind: "int | Tokenizer") -> "tuple[int, int, int, int, int]":
    """
    Returns figures of the cache of counts: hits, misses, entries, bytes and the
    maximum of bytes.
    """

def clear_cache(kind: "int | Tokenizer") -> "None":
    """
    Empties the cache of counts.
    """

def corpus_statistics(index: "object", of: "tuple[str | None, str | tuple[str, ...] | None]") -> "tuple[int, int, dict[str, int]]":
    """
    Returns the number of chunks, that of words, and of the chunks with each stem.
    """

def cosine_scores(query: "object", vectors: "object") -> "bytearray | int":
    """
    Scores each of `vectors` as float64; or returns the index of the first
    vector with a number that is not finite, -1 for the query's.
    """

def count(kind: "int | Tokenizer", ratio: "float", text: "str") -> "int":
    """
    Counts the tokens of `text`.
    """

def count_around(kind: "int | Tokenizer", ratio: "float", text: "str", start: "int", end: "int", tokens: "int") -> "int":
    """
    Counts `text` with an encoding. Its characters from `start` to `end` count
    `tokens`.
    """

def count_batch(kind: "int | Tokenizer", ratio: "float", texts: "list[object] | tuple[object, ...]") -> "bytearray | int":
    """
    Counts each of `texts`, as int64; or returns the index of the first that is
    not a str.
    """

def count_chunks(kind: "int | Tokenizer", ratio: "float", chunks: "tuple[object, ...]", limits: "list[int]") -> "list[int | None]":
    """
    Counts the text of each chunk, which can be read; None for more than its limit.
    """

def count_column(kind: "int | Tokenizer", ratio: "float", column: "TextColumn") -> "bytearray":
    """
    Counts each text of a column, as int64.
    """

def count_till_limit(kind: "int | Tokenizer", ratio: "float", text: "str", limit: "int") -> "int | None":
    """
    Counts the tokens of `text`, or returns None if there are more than `limit`.
    """

def dropped_chunks(kind: "type", chunks: "object", places: "tuple[int, int]", names: "tuple[str, ...]", columns: "tuple[memoryview, memoryview, bytes, memoryview, memoryview]", duplicates: "dict[int, int]") -> "list[object]":
    """
    Returns the dropped chunks from one place to another as objects of `kind`.
    `names` has the name of each reason, and `duplicates` the kept chunk that each
    duplicate repeats.
    """

def fit_output(kind: "int | Tokenizer", ratio: "float", ask: "object | None", text: "str", max_tokens: "int", shape: "int", query: "str | None", pointer: "str | None") -> "tuple[str, int, int, int] | tuple[int, int]":
    """
    Cuts the result of a tool to at most `max_tokens` tokens. Returns the text,
    its tokens, how many code points it leaves out, and its kind; or a code and
    a number: what is wrong with `text` and where, or the tokens of its smallest
    text.
    """

def grapheme_boundaries(text: "str") -> "list[int]":
    """
    Returns the places, in code points, where grapheme clusters end.
    """

def index_chunks(chunks: "tuple[object, ...] | TextColumn", index: "object | None") -> "object":
    """
    Indexes chunks behind those of `index`, or a column as the first chunks of
    all; or returns a code and the index of a bad chunk.
    """

def kept_chunks(kind: "type", chunks: "object", places: "tuple[int, int]", texts: "str | list[str]", columns: "tuple[memoryview, memoryview, memoryview, memoryview, memoryview]", cut: "list[int]") -> "list[object]":
    """
    Returns the kept chunks from one place to another as objects of `kind`.
    `texts` are theirs, or the one text in which theirs stand. `cut` has the places
    of those that were cut.
    """

def keyword_scores(query: "str", texts: "list[object] | tuple[object, ...]", titles: "list[object] | tuple[object, ...] | None") -> "bytearray | tuple[int, int]":
    """
    Scores each text as float64; or returns a code and the index of the first
    that is not a str.
    """

def keywords(text: "str") -> "list[str]":
    """
    Returns the keywords of `text`, each once, in order of first occurrence.
    """

def lexical_scores(query: "str", texts: "list[object] | tuple[object, ...]", titles: "list[object] | tuple[object, ...] | None", options: "tuple[float, float, str | None, str | tuple[str, ...] | None, float, bool, bool, bool, Statistics | None]") -> "bytearray | tuple[int, int]":
    """
    Scores each text as float64; or returns a code and the index of the first
    that is not a str.
    """

def open_corpus(path: "str") -> "object":
    """
    Opens a file that `save_corpus` wrote; or returns what is wrong with it.
    """

def pack_rows(plan: "Plan", rows: "Rows", budget: "int", needs_query: "bool", refuse: "object") -> "Columns":
    """
    Packs each row. `refuse` words the errors of rows that cannot be read.
    """

def packed_vocabulary(kind: "int") -> "bytes":
    """
    Returns the vocabulary of an encoding, packed.
    """

def read_column(column: "object") -> "TextColumn | tuple[int, int] | None":
    """
    Reads a column, which gives Arrow; or returns a code and the index of the
    first text that cannot be read, or None if it does not hold texts.
    """

def read_rows(table: "object", query: "str | None", chunks: "str | None", group_by: "str | None") -> "Rows | tuple[int, str, str]":
    """
    Reads a table, which gives Arrow; or returns a code, the column and what was
    found there. Without a column of chunks, rows have none.
    """

def read_scores(chunks: "tuple[object, ...]") -> "tuple[bytearray, list[int]]":
    """
    Returns the score of each chunk that has one as float64, NaN for the others,
    and the indices of those chunks whose score must still be found out: it is
    neither a float nor an int that a float holds, or reading it failed.
    """

def remove_chunks(index: "object", places: "list[int]") -> "object":
    """
    Returns the index of the chunks that are not at `places`.
    """

def replace_chunks(index: "object", places: "list[int]", chunks: "tuple[object, ...]") -> "object":
    """
    Returns the index of chunks that are others at `places`; or a code and the
    index of a bad chunk.
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

def scored(kind: "type", chunks: "list[object]", scores: "list[float | None]") -> "list[object]":
    """
    Returns copies of chunks that have these scores, as objects of `kind`, a
    class with slots.
    """

def sentence_spans(text: "str") -> "list[int]":
    """
    Returns where each sentence starts and ends, in one list.
    """

def stored_chunk(index: "object", place: "int") -> "tuple[str, str, bytes]":
    """
    Returns text, title and record of chunk `place` of an opened file, or an
    error where it is damaged.
    """

def truncate(kind: "int | Tokenizer", ratio: "float", ask: "object | None", text: "str", max_tokens: "int", keep: "int", marker: "str") -> "str":
    """
    Cuts `text` to at most `max_tokens` tokens, marker included.
    """
