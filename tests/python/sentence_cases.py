"""
The cases of sentences, stems and stopwords that both languages answer alike.

    python tests/python/sentence_cases.py

writes `tests/cases/sentences.json` anew, with what Python answers. `test_sentences.py` holds it
against Python, `tests/rust/sentences.rs` against Rust.
"""

from pathlib import Path
from random import Random

from cases import dropped_of, scores_of, write

from budgeteer import Packer
from budgeteer._backend import backend
from budgeteer.ranking import Bm25, Lexical

FILE = Path(__file__).parents[1] / "cases/sentences.json"

TEXTS = [
    "",
    " \n ",
    "One. Two! Three? Four\u2026 five.",
    "Dr. Smith and J. K. Rowling met Mr. X. They ate 3.14 pies, e.g. two of apple.",
    "In the U.S. Army, Fig. 3 of vol. 2 et al. is fine. Is it No. 5? It is 5. Yes!",
    'He said: "No." (Why?) "So!" she said. \u201cI see.\u201d [He left.] End',
    "\u7eff\u8336\u5f88\u597d\u3002\u300c\u597d\u3002\u300d\u8336\uff01\uff1f x. y",
    "\u0627\u0646\u062a\u0647\u0649\u061f \u0646\u0639\u0645\u06d4 \u0939\u093e\u0901\u0964 x",
    "# Heading\n\nA line that\nis wrapped here.\n- item one\n- item two\r\n\r\nnext\n\n\nlast",
    "a.b.c d.e! f?g h.\u2028I\u0085j\x1cK \U0001f375. \U0001f375x.",
    "... And? ... and. !? Wow!!! ok",
    "1. First. 2. Second. v1. 2 x2. Y A1. B \u00e9. \u00c9t\u00e9. \u017d. Z",
    "e\u0301. A\u0301. B . C .D\u3000. E",
]

WORDS = [
    *("tea", "green", "Tea.", "Green", "rye!", "Bread?", "is", "of", "dark", "Dr.", "working"),
    *("works.", "\n", "\u8336\u3002", "(Yes.)", "e.g.", "The", "A", "b,", "\u00e9t\u00e9.", "1."),
]


def spans():
    """Return where sentences start and end."""
    return [{"text": text, "spans": backend.sentence_spans(text)} for text in TEXTS]


def packings():
    """Return what is packed of sentences."""
    rng = Random(11)
    cases = []
    for _ in range(150):
        chunks = [
            {
                "text": " ".join(rng.choices(WORDS, k=rng.randrange(25))),
                "title": rng.choice(["", "green", "rye works", "Tea (green)"]),
                "id": rng.choice([None, "a", "longer id"]),
            }
            for _ in range(rng.randrange(1, 9))
        ]
        chunks += chunks[: rng.randrange(2)]
        case = {
            "query": rng.choice(["green tea", "work of rye", "rye, tea, rye", "", "\u8336 the"]),
            "chunks": chunks,
            "max_tokens": rng.choice([0, 4, 9, 20, 40, 90]),
            "counter": rng.choice(["chars_div4", "words", "o200k_base", "cl100k_base"]),
            "template": rng.choice(["plain", "tagged", "xml"]),
            "notice": rng.choice([None, "Left out: {count}."]),
            "overflow": rng.choice(["skip", "stop", "truncate_end", "truncate_middle"]),
            "max_chunks": rng.choice([None, None, 2]),
            "min_score": rng.choice([None, None, 0.1]),
            "dedupe": rng.choice(["exact", None]),
            "stemming": rng.choice([None, "english", "german"]),
            "stopwords": rng.choice([None, "english", "french", ["Tea", "e.g"]]),
            "ranking": rng.choice(["lexical", "bm25", "keyword", "input"]),
            "k3": rng.choice([0, 3]),
            "units": rng.choice(["sentence", "sentence", "sentence", "chunk"]),
        }
        words = {name: case[name] for name in ("stemming", "stopwords")}
        ranking = {"lexical": Lexical(**words, k3=case["k3"]), "bm25": Bm25(**words)}.get(
            case["ranking"], case["ranking"]
        )
        used = ("query", "chunks", "ranking", "k3", *words)
        others = {name: case[name] for name in case if name not in used}
        packing = Packer(**others, ranking=ranking).pack(case["query"], chunks)
        case["answer"] = {
            "text": packing.text,
            "total_tokens": packing.total_tokens,
            "kept": [[kept.index, kept.token_count, kept.was_cut] for kept in packing.kept],
            "dropped": dropped_of(packing),
            "scores": scores_of(packing),
        }
        cases.append(case)
    return cases


KINDS = (spans, packings)


if __name__ == "__main__":
    write(FILE, KINDS)
