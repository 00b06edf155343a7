"""
The cases of `budgeteer.presets` that both languages answer alike.

    python tests/python/presets_cases.py

writes `tests/cases/presets.json` anew, with what Python answers, which
`test_context_router.py` holds against the program that `context_router` reproduces.
`test_explain_cases.py` holds it against Python, `tests/rust/presets.rs` against Rust.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

from cases import dropped_of, is_refused, scores_of, write

from budgeteer import presets

FILE = Path(__file__).parents[1] / "cases/presets.json"

WORDS = [
    *(
        "tea",
        "green",
        "Tea.",
        "rye!",
        "(Bread)",
        "is",
        "the",
        "\n",
        "\u8336",
        "\u00e9t\u00e9",
        " ",
    ),
    *("e\u0301", "\U0001f1f3\U0001f1f4", "\x1c", "\u3000", "re-do", "x" * 30),
]


def context_router():
    """Return what the preset packs."""
    rng = Random(3)
    cases = []
    for _ in range(200):
        chunks = [
            {
                "text": " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 4, 12, 40]))),
                "title": rng.choice(["", "green", "rye bread"]),
                "mtime": rng.choice([0, 7, 7, -2.5]),
            }
            for _ in range(rng.randrange(8))
        ]
        chunks += chunks[: rng.randrange(2)]
        case = {
            "query": rng.choice(["green tea", "What of rye bread?", "", "\u8336 the"]),
            "chunks": chunks,
            "max_tokens": rng.choice([1, 2, 4, 9, 20, 60]),
            "options": {
                "reserve_tokens": rng.choice([0, 0, 3]),
                "estimator": rng.choice(["chars_div4", "words", "whitespace"]),
                "ranking": rng.choice(["relevance", "recency", "manual"]),
                "truncation": rng.choice(["drop", "truncate_end", "truncate_middle"]),
            },
        }
        packer = presets.context_router(case["max_tokens"], **case["options"])
        given = [
            {"text": one["text"], "title": one["title"], "metadata": {"mtime": one["mtime"]}}
            for one in chunks
        ]
        packing = packer.pack(case["query"], given)
        case["answer"] = {
            "text": packing.text,
            "total_tokens": packing.total_tokens,
            "budget_tokens": packing.budget_tokens,
            "kept": [
                [kept.index, kept.token_count, kept.was_cut, kept.text] for kept in packing.kept
            ],
            "dropped": dropped_of(packing),
            "scores": scores_of(packing),
        }
        cases.append(case)
    return cases


COUNTERS = ("chars_div4", "words", "o200k_base", "function")
OPTIONS = {
    "agentic_rag": [("overflow", "truncate_end"), ("overflow", "truncate_middle")],
    "context_gate": [("ranking", "bm25"), ("ranking", "score"), ("overflow", "truncate_end")],
    "context_router": [("max_chunks", 2), ("dedupe", "near"), ("selection", "coverage")],
    "retrieval_service": [("overflow", "truncate_end"), ("ranking", "bm25"), ("dedupe", "near")],
}


def refusals():
    """Return whether a copy of a preset, with that counter, refuses an option."""
    cases = []
    for preset, options in OPTIONS.items():
        for counter in COUNTERS:
            made = getattr(presets, preset)(9)
            packer = replace(made, counter=len if counter == "function" else counter)
            for name, value in options:
                answer = is_refused(replace, packer, **{name: value})
                cases.append([preset, counter, name, value, answer])
    return cases


KINDS = (context_router, refusals)


if __name__ == "__main__":
    write(FILE, KINDS)
