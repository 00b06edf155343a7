"""
The cases of the retrieval service that both languages answer alike.

    python tests/python/service_cases.py

writes `tests/cases/service.json` anew, with what Python answers. `test_service_cases.py` holds it
against Python, `tests/rust/service.rs` against Rust.
"""

from dataclasses import asdict
from pathlib import Path
from random import Random

from cases import write
from window_cases import TABLE

from budgeteer import BudgeteerError, Chunk, Packer
from budgeteer.service import FolderRetriever, LlmSettings, RetrievalService

FILE = Path(__file__).parents[1] / "cases/service.json"
LONG = 400
HANDBOOK = Path(__file__).parents[2] / "examples/handbook"

WORDS = ["tea", " Grün", "\n日本", "🇳🇴 ", "e\u0301a", "x, ", " the", "\r\n", "'s", " 12345"]
MODELS = ["gpt-4", "gpt-4o", "gpt-5", "claude-sonnet-4-5", "nobody-knows", "openai/gpt-4o-mini"]
COUNTERS = [None, None, "chars_div4", "words", "chars_per_token:2.5", "cl100k_base", "gpt-4o"]
PACKERS = [
    {"max_tokens": 20, "ranking": "input", "overflow": "skip"},
    {"max_tokens": 10_000, "ranking": "bm25", "overflow": "truncate_end"},
    {"max_tokens": 60, "ranking": "keyword", "overflow": "stop", "reserve_tokens": 9},
    {"max_tokens": 10_000, "ranking": "score", "overflow": "truncate_middle", "max_chunks": 3},
    {"max_tokens": 10_000, "ranking": "score", "overflow": "skip", "template": "tagged"},
    {"max_tokens": 90, "ranking": "bm25", "overflow": "skip", "template": "xml"},
    {"max_tokens": 90, "ranking": "lexical", "overflow": "skip", "template": "markdown"},
]
REQUEST = {
    "settings": {"model": "gpt-4", "context_window": 4096, "max_output_tokens": 500},
    "system_prompt": "",
    "query": "q",
    "retrievers": [[]],
    "reverses": False,
    "packer": None,
    "pages": 0,
}


def _text(text):
    """Return the text that a case writes, perhaps as its number of tokens."""
    return text if isinstance(text, str) else "tea" + " tea" * (text - 1)


def _scored(*pairs):
    return [{"text": text, "title": "", "score": score} for text, score in pairs]


FIVE = _scored(*((300, score) for score in (0.9, 0.8, 0.7, 0.6, 0.5)))
WRITTEN = [
    {"system_prompt": 200, "query": 50},
    {
        "settings": {"model": "gpt-4", "context_window": 1750, "max_output_tokens": 500},
        "system_prompt": 200,
        "query": 50,
        "retrievers": [FIVE],
    },
    {"system_prompt": 200, "query": 3_500},
    {"query": 3_592},
    {"query": 3_580, "retrievers": [FIVE]},
    {"settings": {"model": "gpt-5", "max_output_tokens": 100}, "retrievers": [FIVE]},
    {"settings": {"model": "gpt-5", "context_window": 500_000, "max_output_tokens": 100}},
    {"settings": {"model": "gpt-5"}, "query": 271_000},
    {"settings": {"model": "gpt-5"}, "query": 272_001},
    {"settings": {"context_window": 1}},
    {"settings": {"context_window": 12, "max_output_tokens": 0}, "retrievers": [FIVE]},
    {"system_prompt": "Be brief.", "retrievers": [_scored(("a", None), ("b", None), ("", None))]},
    {"retrievers": [_scored(("a", 0.1), ("b", 0.9)), _scored(("c", 0.5))]},
    {"retrievers": [_scored(("a", 0.1), ("b", 0.9)), _scored(("c", None))]},
    {"retrievers": [_scored(("a", 0.9), ("b", 0.1))], "reverses": True},
    {"retrievers": [_scored(("tea", 0.9), ("tea", 0.1), ("rye", 0.5))]},
    {"retrievers": [_scored(("one two", 0.9), ("tea", 0.1))], "packer": PACKERS[0]},
    {"retrievers": [[{"text": 9, "title": "", "score": None}] * 520]},
    {"retrievers": [[{"text": 90, "title": "", "score": None}] * 90], "pages": 10},
    {"retrievers": [FIVE, [], FIVE], "pages": 2, "packer": PACKERS[3]},
    *(
        {
            "retrievers": [
                [{"text": n, "title": "", "score": None} for n in (25, 7, 30, 7, 40, 5, 9, 3, 2)]
            ],
            "pages": pages,
            "packer": packer,
        }
        for pages in (1, 2, 3)
        for packer in (PACKERS[0], {**PACKERS[0], "overflow": "stop"}, PACKERS[1])
    ),
    {
        "settings": {"model": "gpt-4", "context_window": 300, "max_output_tokens": 50},
        "retrievers": [[{"text": 1 + i * i % 23, "title": "", "score": None} for i in range(121)]],
    },
]
VARIABLES = [
    {},
    {"MODEL": "gpt-4o", "COUNTER": ""},
    {"MODEL": "gpt-4", "MAX_CONTEXT_WINDOW": "4096", "RESERVED_OUTPUT_TOKENS": "500"},
    {"CONTEXT_WINDOW_SIZE": "4096"},
    {"CONTEXT_WINDOW": "4096", "MAX_OUTPUT_TOKENS": "0", "COUNTER": "words"},
    {"CONTEXT_WINDOW": "4096", "COUNTER": "claude-sonnet-4-5"},
    {"CONTEXT_WINDOW": "9", "MAX_CONTEXT_WINDOW": "9"},
    {"CONTEXT_WINDOW": "4k"},
    {"CONTEXT_WINDOW": "+4"},
    {"CONTEXT_WINDOW": "0"},
    {"MAX_OUTPUT_TOKENS": "4"},
    {"MODEL": "gpt-4", "COUNTER": "nope"},
    {"MODEL": "mistral-large-latest"},
    {"MODEL": "mistral-large-latest", "COUNTER": "chars_per_token:3.5"},
    {"MODEL": "nobody-knows", "CONTEXT_WINDOW": "100"},
    {"MODEL": "gpt-5", "CONTEXT_WINDOW": "300000"},
    {"MODEL": "gpt-5", "CONTEXT_WINDOW": "500000"},
]


class _Fixed:
    """A retriever that answers what it is told, in pages of a size where that is not 0."""

    name = "fixed"

    def __init__(self, chunks, size):
        self.chunks = [Chunk(**{**it, "text": _text(it["text"])}) for it in chunks]
        if size:
            places = range(0, len(chunks) + size, size)
            self.pages = lambda _: (self.chunks[i : i + size] for i in places)

    def retrieve(self, query, limit):
        return self.chunks[:limit]


class _Reversed:
    def rerank(self, query, chunks):
        return chunks[::-1]


def _drawn(random):
    """Return a request as it may come."""

    def words(most):
        return "".join(random.choices(WORDS, k=random.randrange(most)))

    def chunks():
        is_scored = random.choice([True, True, False, None])
        return [
            {
                "text": words(40),
                "title": random.choice(["", "Tea"]),
                "score": random.randrange(-4, 5) / 4
                if is_scored or (is_scored is None and random.random() < 0.5)
                else None,
            }
            for _ in range(random.randrange(16))
        ]

    model = random.choice([*MODELS, None])
    return {
        "settings": {
            "model": model,
            "context_window": random.choice([None, 30, 90, 200, 400])
            if model
            else random.choice([40, 90, 300]),
            "max_output_tokens": random.choice([None, 0, 10, 25]),
            "counter": random.choice(COUNTERS),
        },
        "system_prompt": words(6),
        "query": words(12),
        "retrievers": [chunks() for _ in range(random.randrange(1, 4))],
        "reverses": random.random() < 0.2,
        "packer": random.choice([None, None, None, *PACKERS]),
        "pages": random.choice([0, 0, 0, 3]),
    }


def _answer(case):
    """Return what the service answers, and its figures."""
    try:
        service = RetrievalService(
            [_Fixed(chunks, case["pages"]) for chunks in case["retrievers"]],
            LlmSettings(**case["settings"]),
            system_prompt=_text(case["system_prompt"]),
            packer=Packer(**case["packer"]) if case["packer"] else None,
            reranker=_Reversed() if case["reverses"] else None,
        )
        result = service.retrieve(_text(case["query"]))
    except BudgeteerError as error:
        return {"error": str(error)}
    packing = result.packing
    return {
        "model": result.model,
        "tokens": asdict(result.tokens),
        "messages": [[message["role"], _short(message["content"])] for message in result.messages],
        "kept": [kept.index for kept in packing.kept],
        "dropped": [[dropped.index, dropped.reason] for dropped in packing.dropped],
        "stats": _stats(service.stats()),
    }


def _short(text):
    """Return a text, or the number of its code points where it is long."""
    return text if len(text) <= LONG else len(text)


def _stats(stats):
    """Return the figures of requests, the budgets as pairs."""
    figures = stats.to_dict()
    for name in ("next_budgets", "full_budgets"):
        figures[name] = [list(pair) for pair in figures[name].items()]
    return figures


def requests():
    """Return what the service answers to requests."""
    random = Random(8)
    cases = [{**REQUEST, **case} for case in WRITTEN] + [_drawn(random) for _ in range(110)]
    return [{**case, "answer": _answer(case)} for case in cases]


def _limits(settings):
    limits = settings()
    return {
        "name": limits.name,
        "context_window": limits.context_window,
        "max_input_tokens": limits.max_input_tokens,
        "max_output_tokens": limits.max_output_tokens,
        "is_exact": limits.counter.is_exact,
        "tokens": limits.counter.count("What is 緑茶? It's green tea."),
    }


def settings():
    """Return what settings come to, from variables and for models; None where they are refused."""

    def answer(make):
        try:
            return {"limits": _limits(make)}
        except BudgeteerError:
            return {"limits": None}

    variables = [
        {
            "variables": given,
            **answer(lambda given=given: LlmSettings.from_env(given, prefix="").limits),
        }
        for given in VARIABLES
    ]
    models = [
        {"variables": {"MODEL": name}, **answer(lambda name=name: LlmSettings(name).limits)}
        for name in [*TABLE["models"]][::9]  # whatever other tests have registered
    ]
    return variables + models


def folder():
    """Return what the retriever over the handbook finds."""
    retriever = FolderRetriever(HANDBOOK, name="handbook")
    queries = ["What is the remote work policy?", "Expenses & travel", "", "nothing of that sort"]
    return [
        {
            "query": query,
            "found": [
                [chunk.id, chunk.source, chunk.title, chunk.score, chunk.text]
                for chunk in retriever.retrieve(query, 5)
            ],
        }
        for query in queries
    ]


KINDS = (requests, settings, folder)


if __name__ == "__main__":
    write(FILE, KINDS)
