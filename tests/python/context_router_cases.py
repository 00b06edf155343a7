"""
The cases of `presets.context_router` that both languages answer alike.

    python tests/python/context_router_cases.py

writes `tests/cases/context_router.json` anew, with what Python answers, which
`test_context_router.py` holds against the program that the preset reproduces.
`test_explain_cases.py` holds it against Python, `tests/rust/presets.rs` against Rust.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

from cases import write

from budgeteer import InvalidArgumentError, presets

FILE = Path(__file__).parents[1] / "cases/context_router.json"

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


def packings():
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
            "dropped": [
                [dropped.index, dropped.reason, dropped.needed_tokens, dropped.available_tokens]
                for dropped in packing.dropped
            ],
            # As text, which JSON readers take to the bit.
            "scores": [repr(kept.score) for kept in packing.kept],
        }
        cases.append(case)
    return cases


def refusals():
    """Return whether a copy that counts so takes an option that the original has not."""
    cases = []
    for counter in "chars_div4", "words", "o200k_base", "function":
        for name, value in ("max_chunks", 2), ("dedupe", "near"), ("selection", "coverage"):
            packer = replace(
                presets.context_router(9), counter=len if counter == "function" else counter
            )
            try:
                packer = replace(packer, **{name: value})
            except InvalidArgumentError:
                is_refused = True
            else:
                is_refused = False
                packer.pack("tea", ["tea"])
            cases.append([counter, name, is_refused])
    return cases


KINDS = (packings, refusals)


if __name__ == "__main__":
    write(FILE, KINDS)
