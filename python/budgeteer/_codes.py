"""
The numbers by which the facade and both backends name things.

The native backend has its own copy in ``rust/binding/src/codes.rs``; a test compares the two.
"""

CHARS_DIV4, WORDS, CHARS_PER_TOKEN, CALLABLE, CL100K, O200K = range(6)
"""Counters."""

TIKTOKEN, HF = "tiktoken:", "hf:"
"""What the names of counters start with that other packages make."""

FRESH = 8
"""Added to an encoding: nothing is remembered."""

BM25, KEYWORD, RECENCY, INPUT, SCORE, EMBEDDING, HYBRID = range(7)
"""Rankings."""

SKIP, STOP, TRUNCATE_END, TRUNCATE_MIDDLE = range(4)
"""What happens to a chunk that does not fit."""

REPEATS, EXACT, NEAR = range(3)
"""Which duplicates are dropped: none, equal texts, near ones too."""

RANK, COVERAGE = range(2)
"""In which order chunks are admitted."""

NO_POLICY, SUM_OF_PARTS, CITE, GATE = range(4)
"""What only presets do."""

BY_RANK, BY_INPUT, BY_DOCUMENT, BY_EDGES, STICKY = range(5)
"""Orders of the text."""

PLAIN, TAGGED, MARKDOWN, XML, JSON, FORMAT = range(6)
"""Templates."""

DEFAULT_KIND = "document"
"""The kind of a chunk that says none."""

LINE_ENDS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""What str.splitlines() takes for the end of a line, for a class of characters."""

OUT_OF_SCOPE, EMPTY, CAP, DUPLICATE, BUDGET = range(5)
"""Why a chunk is dropped."""

START, END, BOTH = range(3)
"""Which part of a text a cut keeps."""

NO_TEXT, TEXT_TYPE, TITLE_TYPE = 1, 2, 3
"""Why a chunk cannot be read."""

ASSEMBLED, LOOSE = -1, -2
"""Stand for the assembled text, and for a text of its own, where a chunk's index is meant."""

TEXT_KEYS = ("text", "content")
"""Where a mapping may hold its text, first one wins."""

TEXT_ATTRIBUTES = ("text", "page_content", "content")
"""Where an object may hold its text, first one wins."""
