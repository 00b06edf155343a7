"""
The cases of the lexical ranking that both languages answer alike.

    python tests/python/lexical_cases.py

writes `tests/cases/lexical.json` anew, with what Python answers. `test_lexical_cases.py` holds it
against Python, `tests/rust/lexical.rs` against Rust.
"""

import struct
from pathlib import Path
from random import Random

from cases import write

from budgeteer import BudgeteerError, Packer
from budgeteer.ranking import Lexical, lexical_scores

FILE = Path(__file__).parents[1] / "cases/lexical.json"

WORDS = [
    *("Ada", "Byron", "gave", "books", "the", "of", "Blue", "Library", "Lyon", "x", "1843"),
    *("dying", "dies", "works", "working", "universities", "caf\u00e9", "Caf\u00e9", "19th"),
    *("\u8336\u5f88\u597d", "\u7eff\u8336", "\u039f\u0394\u039f\u03a3", "(Texas)", "don't"),
    *("na\u00efve", "cafe\u0301", "skies", "\U0001f375", "snake_case"),
]
TITLES = [
    *("", "", "", " ", "Blue Library", "The Blue Library", "Blue Library (Lyon)", "Ada Byron"),
    *("works", "\u7eff\u8336", "(1)", "a b) (c)", "Lyon (a) (b)", "caf\u00e9"),
]
BREAKS = ["", "\n", "\n\n", "\r\n", "\n \n", " (x)\n", "\u2028"]
CHANGES = [
    *({}, {}, {}, {"headings": False}, {"links": False}, {"feedback": False}, {"k3": 0}),
    *({"stemming": None}, {"stemming": "german"}, {"stopwords": None}, {"stopwords": "french"}),
    *({"k1": 0}, {"b": 0}, {"k1": 2.5, "b": 1, "k3": 0.5}, {"links": False, "feedback": False}),
]


def _text(rng):
    """Return a text that may begin with a short line."""
    line = " ".join(rng.choices(WORDS, k=rng.randrange(4)))
    return line + rng.choice(BREAKS) + " ".join(rng.choices(WORDS, k=rng.randrange(40)))


def _bits(score):
    """Return a score to the bit, which not every reader of JSON keeps."""
    return struct.pack(">d", score).hex()


def rankings():
    """Return the scores of texts, to the bit, and what is said of each."""
    rng = Random(17)
    cases = []
    for _ in range(150):
        chunks = [
            {"text": _text(rng), "title": rng.choice(TITLES)} for _ in range(rng.randrange(9))
        ]
        query = " ".join(rng.choices(WORDS, k=rng.randrange(7)))
        options = rng.choice(CHANGES)
        texts, titles = ([chunk[name] for chunk in chunks] for name in ("text", "title"))
        # Without options it is what a packer does by default.
        by = {"ranking": Lexical(**options)} if options else {}
        packing = Packer(rng.choice([5, 20, 1_000]), counter="words", **by).pack(query, chunks)
        cases.append(
            {
                "query": query,
                "chunks": chunks,
                "options": options,
                "max_tokens": packing.budget_tokens,
                "answer": {
                    "scores": [
                        _bits(score)
                        for score in lexical_scores(query, texts, titles=titles, **options)
                    ],
                    "text": packing.text,
                    "explained": [packing.explain(i) for i in range(len(chunks))],
                },
            }
        )
    return cases


def refusals():
    """Return what is said of numbers out of range."""

    def error(options):
        try:
            return Packer(9, ranking=Lexical(**options)).pack("", ["tea"]).text
        except BudgeteerError as refused:
            return str(refused)

    wrong = [{"k3": -0.5}, {"k3": 1_000_000.5}, {"k1": -0.5}, {"b": 1.5}]
    return [{"options": options, "error": error(options)} for options in wrong]


KINDS = (rankings, refusals)


if __name__ == "__main__":
    write(FILE, KINDS)
