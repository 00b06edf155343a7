"""What the tests of packing, counting and ranking share: backends, counters, strategies."""

import importlib
import os
import unicodedata
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from random import Random
from unittest import mock

import pytest
from hypothesis import strategies as st

from budgeteer import Chunk, Template, get_counter, ranking
from budgeteer._chunk import chunk, record
from budgeteer._count import counter
from budgeteer._layout import layout
from budgeteer._output import output
from budgeteer._pack import corpus, packer, packing, prepared
from budgeteer._rank import similarity, statistics
from budgeteer._table import table
from budgeteer.ranking import Lexical
from budgeteer.service import _service

ONLY_REFERENCE = os.environ.get("BUDGETEER_BACKEND") == "reference"
"""Whether this run was asked to leave the native backend out."""

BACKENDS = ("reference",) if ONLY_REFERENCE else ("native", "reference")

on_both = pytest.mark.parametrize("name", BACKENDS)
"""Runs a test with each backend's name."""

compared = pytest.mark.skipif(ONLY_REFERENCE, reason="BUDGETEER_BACKEND=reference was asked for")
"""Marks a test that compares both backends."""

FACADES = (chunk, corpus, record, packing, prepared, counter, layout, output, similarity)
FACADES += (ranking, statistics, table)
"""The modules that hold a backend of their own."""

END_MARKER = " [...]"
MIDDLE_MARKER = "\n[...truncated...]\n"


def backend_named(name):
    """Return a backend; a missing native one is an error, not a reason to skip."""
    return importlib.import_module(f"budgeteer._{name}")


@contextmanager
def using(name):
    """Let the public API run on the backend called *name*."""
    module = backend_named(name)
    with ExitStack() as stack:
        for facade in FACADES:
            stack.enter_context(mock.patch.object(facade, "backend", module))
        # A packer that was made before has the plan of another backend.
        for user in (packer, _service):
            stack.enter_context(mock.patch.object(user, "prepared_of", prepared.prepared))
        yield module


def options_of(packer):
    """Return the options of a packer by their names."""
    return {item.name: getattr(packer, item.name) for item in fields(packer) if item.init}


class Liar(str):
    """A str whose methods lie about its characters."""

    __slots__ = ()

    def __str__(self):
        return "LOUD " * 100

    def __len__(self):
        return 1_000

    def lower(self):
        return "loud"

    def split(self, *_):
        return ["loud"] * 50


def outcome(function, *args, **kwargs):
    """Return what *function* answers, or the class and message of what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


@dataclass(frozen=True)
class Pure:
    """A counter that always answers the same for the same text, however odd the answer."""

    kind: str
    factor: int

    def __call__(self, text):
        data = text.encode("utf-8", "surrogatepass")
        return {
            "chars": len(text),
            "bytes": len(data),
            "words": len(text.split()),
            "joints": len(text) + self.factor * text.count("\n"),
            "hash": zlib.crc32(data) % self.factor,
            "constant": self.factor,
            "nothing": 0,
            "falling": max(0, self.factor - len(text)),
            "only_joined": self.factor * ("\n" in text),
            "odd": self.factor * (len(text) % 2),
        }[self.kind]


@dataclass
class Recorder:
    """A counter that remembers what it was asked."""

    counter: object
    asked: list

    def __call__(self, text):
        self.asked.append(text)
        return self.counter(text)


FORMULAS = ("chars_div4", "words", "whitespace", "chars_per_token:2.5", "chars_per_token:0.3")

EXACT = ("o200k_base", "cl100k_base", "qwen3.5", "deepseek", "gemma4")
"""The counters that count what a model counts."""

pure_counters = st.builds(
    Pure,
    st.sampled_from(
        [
            *("chars", "bytes", "words", "joints", "hash"),
            *("constant", "nothing", "falling", "only_joined", "odd"),
        ]
    ),
    st.integers(1, 40),
)
formula_counters = st.sampled_from(FORMULAS) | st.floats(0.001, 50).map(
    "chars_per_token:{}".format
)
exact_counters = st.sampled_from((*EXACT, "claude4.8"))
scaled_counters = st.builds(
    lambda name, margin: get_counter(name, margin=margin),
    st.sampled_from((*EXACT, "claude3", "acme-7b", "claude-opus-4-7")),
    st.floats(0, 1),
)
counters = formula_counters | pure_counters | exact_counters | scaled_counters

WHITESPACE = [
    *"\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000",
    *map(chr, range(0x2000, 0x200B)),
]
"""The 29 characters at which str.split() splits."""

ODD_CHARACTERS = [
    "\x00", "\x7f", "\u180e", "\u200b", "\u2060", "\ufeff",  # nearly whitespace
    "\u03a3", "\u03c3", "\u03c2", "\u0130", "\u0131", "i\u0307", "\u212a", "\u212b", "\u1e9e",
    "\u00df", "\u01c5", "\u01c4", "\u1f88", "\u1fbc", "\ufb01", "\uff21", "\u10a0", "\u13a0",
    "\U00010400", "\U0001e900", "\ua7ae",  # special under lower()
    "\u0301", "\u0308", "\u0345", "\u00ad", "\u2019", "\u00b7", "\u05f4", "\u0387",  # ignorable
    "\ud800", "\udbff", "\udc00", "\udfff",  # lone surrogates
    "\U0001f1e9", "\U0001f1ea", "\U0001f468", "\u200d", "\U0001f469", "\U0001f467", "\U0001f3fd",
    "\ufe0f", "\u20e3", "\u2764",  # emoji and what joins them
    "\u1100", "\u1161", "\u11a8", "\uac00", "\uac01",  # Hangul
    "\u0915", "\u094d", "\u0937", "\u093f", "\u0d4e", "\u0600",  # Indic, prepended
    "\r\n", "\r", "\n",
]  # fmt: skip

PUNCTUATION = list(".,;:!?\"'()[]{}/-")
NOT_STRIPPED = list("*`#_<>@&%$^~|\\+=\u2018\u2019\u201c\u201d\u2014\u3002\u00bf")

VOCABULARY = [
    "tea", "green", "Green", "TEA", "Tea,", "(tea)", "tea-time", "don't", "the", "The", "of", "a",
    "I", "x", "x1", "42", "e-mail", "U.S.A.", "a/b", "remote", "work", "policy", "POLICY?",
    "\u041c\u043e\u0441\u043a\u0432\u0430", "\u043c\u043e\u0441\u043a\u0432\u0430",
    "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2", "\u03bf\u03b4\u03bf\u03c3",
    "\u8336", "\u7eff\u8336", "caf\u00e9", "CAF\u00c9", "cafe\u0301", "na\u00efve",
    "Stra\u00dfe", "STRA\u1e9eE", "\u0130stanbul", "\u212aelvin", "kelvin",
]  # fmt: skip

TOKENIZED = [
    "'s", "'S", "'ll", "'LL", "'\u017f", "'ve's", "I'm", "DON'T", "we'd've", "'tis",  # words
    "1", "12", "123", "1234", "20260114", "\u0663\u0664\u0665\u0666", "\u00bd",  # digits
    "/", "//", "/usr/bin", "\n/", ".\n/", ";\r\n/\n", "https://a.example/b",  # slashes
    "   ", " \n", "\n\n\n", "\t\t", " \r\n \n", "\u3000\u3000", "  x", "x  ",  # whitespace
    "<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|im_start|>", "<|", "|>",  # special
    "\ud83d", "\ude00", "\ud83d\ude00", "\ude00\ud83d",  # a pair of surrogates, or half of it
    "camelCase", "HTTPServer", "XMLHttp2", "\u01c5a", "A\u0301b", "\u0301a", "\u02b0\u02b1",
    "\u7eff\u8336\u5f88\u597d", "\u3053\u3093\u306b\u3061\u306f", "\uc548\ub155",  # CJK
    "zzzzzzzz", "qx" * 20, "-" * 70, "=" * 33, "\u00e9" * 24, "\u2500" * 30,  # long pretokens
    "internationalization", "\xe0\xb8\xad", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
]  # fmt: skip
"""What the patterns of the encodings tell apart, and what is merged in more than one way."""

KNOWN_CLUSTERS = (
    "\U0001f1e9\U0001f1ea",  # a flag
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",  # a family
    "\U0001f44d\U0001f3fd",  # a thumb with a skin tone
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # England
    "\u1112\u1161\u11ab",  # Hangul jamo: han
    "\uac00\u11a8",  # a Hangul syllable and a final consonant
    "\u0915\u094d\u0937\u093f",  # Devanagari: kshi
    "e\u0301\u0323",  # an e with two marks
    "1\ufe0f\u20e3",  # a keycap
    "\r\n",
)
"""Texts of exactly one grapheme cluster each, from Unicode's own examples."""


def is_assigned(character):
    """Return whether the running Python's Unicode assigns *character*; surrogates count."""
    return unicodedata.category(character) != "Cn"


any_character = st.characters(exclude_categories=["Cn"])
pieces = (
    st.sampled_from(VOCABULARY)
    | st.sampled_from(WHITESPACE)
    | st.sampled_from([text for text in ODD_CHARACTERS if all(map(is_assigned, text))])
    | st.sampled_from(PUNCTUATION + NOT_STRIPPED)
    | st.sampled_from(KNOWN_CLUSTERS)
    | st.sampled_from(TOKENIZED)
    | any_character
)
plain_texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=12).map(" ".join)
odd_texts = st.lists(pieces, min_size=1, max_size=20).map("".join)
meeting_texts = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", " ", "  ", "\n", " \n", "/", "/\n", "'s ", "\u3000", "\u0301", "\ude00"]),
    odd_texts,
    st.sampled_from(["", " ", "  ", "\n", "\n\n", ".", ".\n", "\r", "\t", "'", "\ud83d"]),
) | st.text(" \n\r\t\u3000", min_size=1, max_size=6)
"""Texts whose ends may count otherwise where they meet a separator, a label or a marker."""

long_texts = st.builds(
    "".join, st.lists(st.sampled_from(VOCABULARY + WHITESPACE) | pieces, min_size=24, max_size=60)
)
forging_texts = st.lists(
    st.sampled_from(
        [
            *("\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\n\n", "\\", "[", "]", ":", "] "),
            *("[notice] ", "[system:0] ", "[document:a]", "\uff3bsystem:0\uff3d", "## ", "## ["),
            *("# ", "Source: ", "n", "</document>", "\n</document>\n", "<document>", "<", ">"),
            *("]]>", "&", "&amp;", "&#92;u0001", '"', '"}', ",\n{", "]\n", "{", "}", "u000A"),
            *("\x00", "\x01", "\t", "\ufffe", "\uffff", "\ud800", "\udc00", "\U0001f375"),
            *("tea", " ", "{text}", "'"),
        ]
    ),
    max_size=12,
).map("".join)
"""Texts that try to pass for what stands around a chunk."""

texts = (
    st.sampled_from(["tea", "green tea", " ", ""])
    | plain_texts
    | odd_texts
    | meeting_texts
    | forging_texts
)
queries = st.sampled_from(["green tea", "the of", ""]) | plain_texts | odd_texts

scores = (
    st.none()
    | st.sampled_from([0.0, -0.0, 1.0, 0.5, float("inf"), float("-inf"), 10**30, -3, 5e-324])
    | st.floats(allow_nan=False)
)
mtimes = scores | st.booleans() | st.sampled_from(["3", [], 10**300])


@st.composite
def chunk_lists(draw, of_texts=texts, max_size=8):
    """Lists of chunks of every type, with repeated texts; never empty."""
    pool = draw(st.lists(of_texts, min_size=1, max_size=4))
    size = draw(st.sampled_from([*range(2, max_size + 1), 1]))
    repeated = st.sampled_from(pool) | of_texts
    return draw(st.lists(_chunks(repeated), min_size=size, max_size=size))


def _chunks(of_texts):
    metadata = st.none() | st.fixed_dictionaries(
        {},
        optional={
            "mtime": mtimes,
            "kind": texts,
            "position": mtimes,
            "index": mtimes,
            "title": texts | st.integers(),
            "source": texts,
            "id": texts | st.integers(),
        },
    )
    fields = {"title": texts, "score": scores, "metadata": metadata, "id": st.none() | texts}
    fields["source"] = st.sampled_from(["", "a", "b"]) | texts
    return (
        of_texts
        | st.builds(Chunk, of_texts, **fields)
        | st.fixed_dictionaries({"text": of_texts}, optional=fields)
        | st.fixed_dictionaries({"content": of_texts}, optional=fields)
    )


around = st.sampled_from(["", "\n", "# tea\n", "tea", " ", "[a:b]", "{", "é"])
format_strings = st.builds(
    "{}{}{{text}}{}{}".format,
    st.sampled_from(["", "tea", "{{", "\n", " ", "- "]),
    st.sampled_from(["", "{id}", "{kind}", "{source}{title}", "{index}. "]),
    st.sampled_from(["", "</a>", "\n", " ", "tea", "}}"]),
    st.sampled_from(["", "{title}", "{id}"]),
)
templates = st.sampled_from(["plain", "tagged", "markdown", "xml", "json"]) | (
    st.builds(Template, format_strings, separator=around, header=around, footer=around)
    | st.builds(
        Template,
        st.sampled_from(["plain", "tagged", "markdown", "xml", "json"]),
        header=around,
        footer=around,
    )
)
orders = st.sampled_from(["rank", "input", "document", "edges", "sticky"])
notices = st.sampled_from([None, True, "{count}", "left out {count}\n[a:b] of {count}"])
lexicals = st.builds(
    Lexical,
    stemming=st.sampled_from(["english", None, "german", "russian"]),
    stopwords=st.sampled_from(["english", None, ("tea", "of"), "french"]),
    headings=st.booleans(),
    links=st.booleans(),
    feedback=st.booleans(),
    k1=st.sampled_from([1.2, 0.0, 1e6]) | st.floats(0, 3),
    b=st.sampled_from([0.75, 0.0, 1.0]) | st.floats(0, 1),
    k3=st.sampled_from([3.0, 0.0, 1e6]) | st.floats(0, 9),
)
RANKINGS = ["lexical", "bm25", "keyword", "recency", "input", "score"]
"""The rankings that need no vectors."""

options = st.fixed_dictionaries(
    {},
    optional={
        "reserve_tokens": st.integers(0, 10),
        "ranking": st.sampled_from(RANKINGS) | lexicals,
        "min_score": st.none() | st.sampled_from([0.0, 0.5, 1.0, float("-inf"), float("inf")]),
        "overflow": st.sampled_from(["skip", "stop", "truncate_end", "truncate_middle"]),
        "max_chunks": st.none() | st.integers(0, 6),
        "dedupe": st.sampled_from(["exact", "near", None]),
        "selection": st.sampled_from(["rank", "coverage"]),
        "order": orders,
        "template": templates,
        "notice": notices,
    },
)
budgets = st.integers(0, 60) | st.sampled_from([0, 10**9, 2**63 - 1])


def sharing_texts(count):
    """Return texts that share passages: to look for near-duplicates among them takes seconds."""
    rng = Random(0)
    parts = [" ".join(f"w{rng.randrange(10**6)}" for _ in range(12)) for _ in range(300)]
    return [" ".join(rng.sample(parts, 40)) for _ in range(count)]


def tag_of(chunk, index):
    """Return what a chunk that `chunk_lists` drew says of itself."""
    data = {} if isinstance(chunk, str) else chunk
    if isinstance(chunk, Chunk):
        data = {name: getattr(chunk, name) for name in ("id", "source", "title", "metadata")}
    inner = data.get("metadata") or {}
    kind = inner.get("kind")
    identifier = data.get("id") or inner.get("id", data.get("id"))
    return {
        "kind": "document" if kind is None else kind,
        "id": str(index if identifier is None else identifier),
        "source": data.get("source") or inner.get("source", ""),
        "title": str(data.get("title") or inner.get("title") or ""),
    }


def text_of(chunk):
    """Return the text of a chunk that `chunk_lists` drew."""
    if isinstance(chunk, str):
        return chunk
    if isinstance(chunk, dict):
        return chunk["text"] if "text" in chunk else chunk["content"]
    return chunk.text
