"""
The cases of templates and prompts that are functions, which both languages answer alike.

    python tests/python/written_cases.py

writes `tests/cases/written.json` anew, with what Python answers. `test_written_cases.py` holds it
against Python, `tests/rust/written.rs` against Rust, which has the same functions by name.
"""

from pathlib import Path
from random import Random

from cases import is_refused, write

from budgeteer import Packer, Prompt, Template, presets

FILE = Path(__file__).parents[1] / "cases/written.json"

WORDS = [
    *("tea", "green", "rye", "bread", "is", "the", "dark", "garden", "winter"),
    *("Lyon", "camels", "road", "silk", "old", "desert", "leave", "worker", "noon"),
]

WRITERS = {
    "titled": lambda chunk: f"{chunk['title']}: {chunk['text']}",
    "upper": lambda chunk: chunk["text"].upper(),
    "even": lambda chunk: "" if len(chunk["text"]) % 2 else chunk["text"],
    "twice": lambda chunk: f"{chunk['text']}\n{chunk['text']}\n",
    "start": lambda chunk: chunk["text"][:12],
}
"""What a template writes for a chunk."""


def _joined(chunks, glue):
    return glue.join(chunk["text"] for chunk in chunks)


PROMPTS = {
    "listed": lambda chunks: (
        "Read this.\n"
        + "\n".join(f"{n}. source: {c['title']}, {c['text']}" for n, c in enumerate(chunks, 1))
        + "\nWhat is tea?"
    ),
    "joined": lambda chunks: _joined(chunks, "\n"),
    "starts": lambda chunks: "\n".join(chunk["text"][:12] for chunk in chunks),
    "twice": lambda chunks: f"Two: {_joined(chunks, ' / ')} and {_joined(chunks, '; ')}",
    "same": lambda chunks: "always the same",
    "counted": lambda chunks: f"{len(chunks)} chunks",
    "falling": lambda chunks: "tea " * max(0, 12 - len(chunks)) + _joined(chunks, " "),
}
"""What a prompt makes of the kept chunks."""

SEARCHED = {
    **PROMPTS,
    "squares": lambda chunks: "tea " * (len(chunks) ** 2 // 3) + _joined(chunks, " "),
    "rounded": lambda chunks: "rye " * (-len(chunks) % 7 * 9) + _joined(chunks, " "),
}
"""The same, and what no multiple of the chunks' own tokens comes near."""


def _cases(seed, functions, options):
    """Return packings as plain data, and what is said of each chunk."""
    rng = Random(seed)
    cases = []
    for number in range(60):
        chosen = {name: rng.choice(values) for name, values in options.items()}
        chosen["function"] = [*functions][number % len(functions)]
        case = {
            "max_tokens": rng.choice([0, 6, 14, 30, 60, 120, 900]),
            "options": chosen,
            "query": " ".join(rng.sample(WORDS, rng.choice([0, 1, 3]))),
            "chunks": [
                {
                    "text": " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 3, 3, 8, 20]))),
                    "title": rng.choice(["", "Tea", "Rye (bread)"]),
                }
                for _ in range(rng.choice([0, 1, 4, 9, 14]))
            ],
        }
        cases.append({**case, "answer": answer(case, functions)})
    return cases


def answer(case, functions):
    """Return the packing of a case as plain data, and what is said of each chunk."""
    options = dict(case["options"])
    function = functions[options.pop("function")]
    if functions is PROMPTS:
        template = Prompt(function)
    else:
        around = {name: options.pop(name) for name in ("separator", "header", "footer")}
        template = Template(function, **around)
    packing = Packer(case["max_tokens"], template=template, **options).pack(
        case["query"], case["chunks"]
    )
    explained = [packing.explain(i) for i in range(len(case["chunks"]))]
    return {"packing": packing.to_dict(), "explained": explained}


COUNTERS = ["chars_div4", "o200k_base", "words", "cl100k_base"]


def templates():
    """Return packings with templates that are functions."""
    return _cases(
        11,
        WRITERS,
        {
            "counter": COUNTERS,
            "overflow": ["skip", "skip", "stop"],
            "order": ["rank", "input", "edges", "document"],
            "dedupe": ["exact", "exact", "near", None],
            "notice": [None, None, "left out {count}"],
            "max_chunks": [None, None, 2],
            "separator": ["\n\n", "\n", "", "'"],
            "header": ["", "Read:\n"],
            "footer": ["", "\nEnd."],
        },
    )


def prompts():
    """Return packings with prompts."""
    return _cases(
        12,
        PROMPTS,
        {
            "counter": COUNTERS,
            "overflow": ["skip", "skip", "stop"],
            "order": ["rank", "input", "edges", "document"],
            "dedupe": ["exact", "exact", "near", None],
            "max_chunks": [None, None, 2],
        },
    )


def refusals():
    """Return which options are refused with a template that is a function, and with a prompt."""
    options = {
        "truncate_end": {"overflow": "truncate_end"},
        "stop": {"overflow": "stop"},
        "sentence": {"units": "sentence"},
        "notice": {"notice": "left out"},
        "sticky": {"order": "sticky"},
        "edges": {"order": "edges"},
    }
    made = {
        "agentic_rag": type(presets.agentic_rag()),
        "context_router": type(presets.context_router()),
        "context_gate": type(presets.context_gate()),
    }

    def found(template):
        refused = {
            name: is_refused(Packer, 9, template=template, **given)
            for name, given in options.items()
        }
        for name, kind in made.items():
            given = {"max_docs": 3, "ranking": "input"} if name == "context_gate" else {}
            given |= {"counter": "chars_div4"} if name == "context_router" else {}
            refused[name] = is_refused(kind, 9, template=template, **given)
        return refused

    return {"template": found(Template(str)), "prompt": found(Prompt(str))}


def searches():
    """Return which sets of chunks a prompt is made of before it fits, and what fits."""
    rng = Random(13)
    cases = []
    for number in range(180):
        case = {
            "function": [*SEARCHED][number % len(SEARCHED)],
            "counter": rng.choice(COUNTERS),
            "max_tokens": rng.choice([20, 60, 300, 1_000]),
            "words": rng.choices([0, 1, 2, 5, 30], k=rng.choice([5, 60])),
        }
        cases.append(case)
    # So many sets that it ends before all chunks are in.
    many = {"function": "same", "counter": "words", "max_tokens": 20, "words": [1] * 3_000}
    return [{**case, "answer": _searched(case)} for case in [*cases, many]]


def _searched(case):
    made = []

    def make(chunks):
        made.append([int(chunk["title"]) for chunk in chunks])
        return SEARCHED[case["function"]](chunks)

    chunks = [
        {"title": str(place), "text": " ".join(["tea"] * words)}
        for place, words in enumerate(case["words"])
    ]
    packer = Packer(
        case["max_tokens"],
        template=Prompt(make),
        counter=case["counter"],
        ranking="input",
        dedupe=None,
    )
    packing = packer.pack("", chunks)
    # The number and the sum of the places in each.
    return {
        "made": [[len(places), sum(places)] for places in made],
        "total_tokens": packing.total_tokens,
        "kept": [kept.index for kept in packing.kept],
    }


KINDS = (templates, prompts, refusals, searches)


if __name__ == "__main__":
    write(FILE, KINDS)
