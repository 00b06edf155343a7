"""
The codes that the facade and both backends share.

The native backend has its own copy in ``rust/binding/src/codes.rs``; a test compares the two.
"""

CHARS_DIV4, WORDS, CHARS_PER_TOKEN, CALLABLE = range(4)
"""Counters that are no encoding."""

CL100K, O200K, QWEN2, QWEN35, DEEPSEEK, GLM4, TEKKEN, GEMMA4 = range(4, 12)
"""Encodings. A tokenizer that was read from a file stands for itself."""

TIKTOKEN, HF, FILE = "tiktoken:", "hf:", "file:"
"""The prefixes of the names of counters from tiktoken, and from files."""

CLAUDE3, CLAUDE47, CLAUDE48 = range(12, 15)
"""Reconstructions: counted as encodings are, but estimates."""

FRESH = 64
"""Added to an encoding or a reconstruction: counts without a cache."""

LEXICAL, KEYWORD, RECENCY, INPUT, SCORE, EMBEDDING, HYBRID = range(7)
"""Rankings. BM25 is the lexical one without further signals."""

HEADING, LINK, FEEDBACK = range(3)
"""What a score by words has besides those of the query's words."""

SKIP, STOP, TRUNCATE_END, TRUNCATE_MIDDLE = range(4)
"""Overflow policies."""

REPEATS, EXACT, NEAR = range(3)
"""The duplicates to drop: none, equal texts, near ones too."""

RANK, COVERAGE = range(2)
CHUNK, SENTENCE = range(2)
"""Orders of admission."""

NO_POLICY, SUM_OF_PARTS, CITE, GATE = range(4)
"""Policies of presets."""

BY_RANK, BY_INPUT, BY_DOCUMENT, BY_EDGES, STICKY = range(5)
"""Orders of the text."""

PLAIN, TAGGED, MARKDOWN, XML, JSON, FORMAT, WRITTEN = range(7)
"""Templates."""

DEFAULT_KIND = "document"
"""The default kind of a chunk."""

LINE_ENDS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""The line ends of str.splitlines(), for a character class."""

OUT_OF_SCOPE, EMPTY, CAP, DUPLICATE, BUDGET = range(5)
"""Reasons for dropping a chunk."""

START, END, BOTH = range(3)
"""The part of a text that a cut keeps."""

AUTO, TEXT, JSON_VALUE, TABLE, LOG, DIFF = range(6)
"""Kinds of tool results; with AUTO the content decides."""

NOT_JSON, TOO_DEEP, NOT_DIFF, NO_ROOM = range(1, 5)
"""Reasons why a tool result cannot be cut."""

NO_TEXT, TEXT_TYPE, TITLE_TYPE = 1, 2, 3
"""Reasons why a chunk cannot be read."""

NO_TABLE, NO_COLUMN, COLUMN_TYPE, PRODUCER = range(1, 5)
"""Reasons why a table cannot be read."""

NULL, NOT_UTF8, OFFSETS, NAN, INFINITE = range(1, 6)
"""Reasons why a row of a table cannot be packed, or a column cannot be counted."""

QUERY_COLUMN, CHUNKS_COLUMN = range(2)
"""The columns that a row of a table has."""

ASSEMBLED, LOOSE = -1, -2
"""In place of a chunk's index: the assembled text, and a text that belongs to no chunk."""

TEXT_KEYS = ("text", "content", "page_content")
"""The keys that may hold a mapping's text; the first one wins."""

TEXT_ATTRIBUTES = ("text", "page_content", "content")
"""The attributes that may hold an object's text; the first one wins."""
