"""
The cases of the cut-off that is found from the scores, which both languages answer alike.

    python tests/python/scope_cases.py

writes `tests/cases/scope.json` anew, with what Python answers. `test_scope_cases.py` holds it
against Python, `tests/rust/scope.rs` against Rust.
"""

from pathlib import Path
from random import Random

from cases import is_refused, write

from budgeteer import Packer
from budgeteer.ranking import Bm25, Lexical

FILE = Path(__file__).parents[1] / "cases/scope.json"

WORDS = [
    *("tea", "green", "rye", "bread", "is", "the", "dark", "garden", "winter"),
    *("Lyon", "camels", "road", "silk", "old", "desert", "Ada", "Moreau", "spring"),
    *("leave", "worker", "noon", "lunch", "library", "book", "river"),
]
TITLES = ["", "Tea", "Ada Moreau", "Rye (bread)", "Winter garden", "The", "Old river road"]


def _ranking(options):
    return (Bm25 if options["ranking"] == "bm25" else Lexical)(**options["parts"])


def _chunk(rng, query):
    """Return a chunk, perhaps a good one, that may name another by its heading."""
    words = rng.choices(WORDS, k=rng.choice([0, 2, 2, 2, 6]))
    title = rng.choice(TITLES)
    if rng.random() < 0.4:
        words, title = [*query, rng.choice(TITLES)], ""
    line = rng.choice(["", "", "Silk camels\n"])
    return {"text": line + rng.choice([" ", ". "]).join(words), "title": title}


def packings():
    """Return packings as plain data, and what is said of each chunk."""
    rng = Random(7)
    cases = []
    for _ in range(90):
        ranking = rng.choice(["bm25", "lexical", "lexical", "lexical"])
        parts = {} if ranking == "bm25" else {"headings": True, "links": True, "feedback": True}
        parts |= {name: rng.choice([False, True, True]) for name in parts}
        options = {
            "ranking": ranking,
            "parts": parts,
            "units": rng.choice(["chunk", "chunk", "sentence"]),
            "overflow": rng.choice(["skip", "stop", "truncate_end"]),
            "counter": rng.choice(["chars_div4", "o200k_base"]),
        }
        query = rng.sample(WORDS, rng.choice([0, 1, 3, 9, 12, 12]))
        chunks = [_chunk(rng, query) for _ in range(rng.choice([0, 1, 2, 3, 6, 9, 12, 12]))]
        case = {
            "max_tokens": rng.choice([4, 20, 90, 900, 900]),
            "options": options,
            "query": " ".join(query),
            "chunks": chunks,
        }
        packer = Packer(
            case["max_tokens"],
            ranking=_ranking(options),
            min_score="auto",
            **{name: options[name] for name in ("units", "overflow", "counter")},
        )
        packing = packer.pack(case["query"], chunks)
        explained = [packing.explain(i) for i in range(len(chunks))]
        cases.append({**case, "answer": {"packing": packing.to_dict(), "explained": explained}})
    return cases


def refusals():
    """Return whether a ranking refuses the cut-off."""
    names = ["lexical", "bm25", "keyword", "recency", "input", "score", "embedding", "hybrid"]
    return {name: is_refused(Packer, 9, ranking=name, min_score="auto") for name in names}


KINDS = (packings, refusals)


if __name__ == "__main__":
    write(FILE, KINDS)
