"""
The cases of explained packings that both languages answer alike.

    python tests/python/explain_cases.py

writes `tests/cases/explain.json` anew, with what Python answers. `test_explain_cases.py` holds it
against Python, `tests/rust/explain.rs` against Rust.
"""

from pathlib import Path
from random import Random

from cases import dropped_of, write

from budgeteer import BudgeteerError, Packer, pack, presets

FILE = Path(__file__).parents[1] / "cases/explain.json"

WORDS = [
    *(
        "tea",
        "green",
        "Tea.",
        "rye!",
        "Bread?",
        "is",
        "dark",
        "\n",
        "\u8336\u3002",
        "\u00e9t\u00e9",
    ),
    *("\n[a:b]", "\\[a:b]", "\n## [", "<b>", "&amp;", '"', "\t", "\r", "]]>", "\u2028", "\x01"),
]


def _chunk(rng, preset):
    chunk = {
        "text": " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 3, 9, 30]))),
        "title": rng.choice(["", "green", "Is dark"]),
        "id": rng.choice([None, "a", "longer id"]),
        "source": rng.choice(["", "tea.md"]),
        "score": rng.choice([None, 0.25, 1 / 3, 2.005, -1.0]),
    }
    if preset == "context_gate":
        chunk["kind"] = rng.choice(["document", "system", "message"])
        chunk["authority"] = rng.choice(["system", "user", "tool"])
        chunk["id"] = None
    return chunk


def _options(rng, preset):
    if preset == "context_gate":
        return {"max_docs": rng.choice([0, 1, 3])}
    if preset == "agentic_rag":
        return {"buffer_tokens": rng.choice([0, 5])}
    if preset == "context_router":
        return {"truncation": rng.choice(["drop", "truncate_end", "truncate_middle"])}
    if preset == "retrieval_service":
        return {}
    units = rng.choice(["chunk", "chunk", "sentence"])
    return {
        "reserve_tokens": rng.choice([0, 2]),
        "counter": rng.choice(["chars_div4", "words", "o200k_base", "cl100k_base", "len"]),
        "ranking": rng.choice(["lexical", "bm25", "keyword", "input", "score"]),
        "min_score": rng.choice([None, None, 0.1]),
        "overflow": rng.choice(["skip", "stop", "truncate_end", "truncate_middle"]),
        "max_chunks": rng.choice([None, None, 1, 2]),
        "dedupe": rng.choice(["exact", None, "near"]) if units == "chunk" else "exact",
        "units": units,
        "selection": rng.choice(["rank", "rank", "coverage"]) if units == "chunk" else "rank",
        "order": rng.choice(["rank", "input", "edges", "document"]),
        "template": rng.choice(["plain", "tagged", "markdown", "xml", "json"]),
        "notice": rng.choice([None, "Left out: {count}."]),
    }


def _packer(case):
    make = Packer if case["preset"] is None else getattr(presets, case["preset"])
    options = dict(case["options"])
    if options.get("counter") == "len":  # a function of the caller's
        options["counter"] = len
    return make(case["max_tokens"], **options)


def packings():
    """Return packings as plain data, what is said of each chunk, and of all."""
    rng = Random(2)
    cases = []
    for _ in range(400):
        preset = rng.choice(
            [None] * 4 + ["agentic_rag", "context_gate", "context_router", "retrieval_service"]
        )
        chunks = [_chunk(rng, preset) for _ in range(rng.randrange(7))]
        chunks += chunks[: rng.randrange(2)]
        case = {
            "preset": preset,
            "max_tokens": rng.choice([1, 4, 9, 20, 40, 90, 250]),
            "options": _options(rng, preset),
            "query": rng.choice(["green tea", "rye", ""]),
            "chunks": chunks,
        }
        packing = _packer(case).pack(case["query"], chunks)
        case["answer"] = {
            "packing": packing.to_dict(),
            "dropped_count": packing.dropped_count,
            "dropped_total_tokens": packing.dropped_total_tokens,
            "explained": [packing.explain(i) for i in range(len(chunks))],
            "summary": packing.explain(),
        }
        cases.append(case)
    return cases


def joints():
    """Return packings by functions to which texts that are joined are more than their sum."""
    rng = Random(3)
    cases = []
    for _ in range(300):
        count = rng.choice([1, 2, 5, 12, 40])
        case = {
            "texts": [" ".join(["tea"] * rng.choice([0, 1, 2, 9])) or "x" for _ in range(count)],
            "per_line": rng.choice([0, 1, 7, 40, 10**6]),
            "max_tokens": rng.choice([9, 30, 60, 200, 700]),
            "options": {**_options(rng, None), "units": "chunk", "min_score": None},
        }
        packer = Packer(
            case["max_tokens"],
            **case["options"]
            | {"counter": lambda text, each=case["per_line"]: len(text) + each * text.count("\n")},
        )
        packing = packer.pack("tea", case["texts"])
        case["answer"] = {
            "text": packing.text,
            "total_tokens": packing.total_tokens,
            "kept": [[kept.index, kept.token_count, kept.was_cut] for kept in packing.kept],
            "dropped": [[index, *tokens] for index, _, *tokens in dropped_of(packing)],
        }
        cases.append(case)
    return cases


def refusals():
    """Return what is said of a chunk that is not there."""

    def error(count, index):
        try:
            return pack("", ["tea"] * count, 9).explain(index)
        except BudgeteerError as refused:
            return str(refused)

    places = [(0, 0), (1, 1), (2, 99)]
    return [
        {"chunks": count, "index": index, "error": error(count, index)} for count, index in places
    ]


KINDS = (packings, joints, refusals)


if __name__ == "__main__":
    write(FILE, KINDS)
