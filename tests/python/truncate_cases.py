"""
The cases of cut texts that both languages answer alike.

    python tests/python/truncate_cases.py

writes `tests/cases/truncate.json` anew, with what Python answers. `test_truncate_cases.py`
holds it against Python, `tests/rust/truncate.rs` against Rust.
"""

from pathlib import Path
from random import Random

from cases import write

from budgeteer import get_counter

FILE = Path(__file__).parents[1] / "cases/truncate.json"

ENCODINGS = ["o200k_base", "cl100k_base", "qwen3.5"]

COUNTERS = [*ENCODINGS, "words", "chars_div4", "len"]
"""The names of counters, and that of a function that counts code points."""

KEEPS = ["start", "end", "both"]

MARKERS = ["", "", " ", "x", "1", "\r", " [...]", " [...] ", "\u2026", "\u0301", " " * 12]

PARTS = [
    *("tea", "green", " ", " ", " ", "\n", "\r\n", ".", "aaaa", "123", "4567", "_-", "    ", "\t"),
    *("\u4e00", "\u4e8c\u4e09", "\ua000", "\u3fff\u9fff", "~", "\x7f", "\xe9", "e\u0301"),
    *("\u0301\u0301", "\U0001f1f7\U0001f1f8", "\U0001f469\u200d\U0001f692", "\ufffd", "\u3000"),
]

HOSTILE = ["tea", " ", "a", "A", "1", "'s", "\n", "\u4e00", "\u0301", "\U0001f1f7", "!", "\xe9"]


def _counter(name):
    return get_counter(len if name == "len" else name)


def _text(parts):
    return "".join(part * times for part, times in parts)


def _short(rng):
    return [
        [rng.choice(PARTS), rng.choice([1, 1, 1, 2])] for _ in range(rng.choice([1, 4, 12, 30]))
    ]


def _long(rng):
    """Return parts longer than a cut looks at, most of them of one kind."""
    return [
        [rng.choice(HOSTILE + PARTS), rng.choice([1, 2, 40, 130, 300])]
        for _ in range(rng.randrange(2, 6))
    ]


def _case(rng, parts, counter, limits):
    case = {
        "parts": parts,
        "counter": counter,
        "keep": rng.choice(KEEPS),
        "marker": rng.choice(MARKERS),
    }
    cut = {"keep": case["keep"], "marker": case["marker"]}
    counting, text = _counter(counter), _text(parts)
    case["cuts"] = [[limit, counting.truncate(text, limit, **cut)] for limit in limits]
    return case


def short():
    """Return short texts, cut to every limit that leaves something out."""
    rng = Random(5)
    cases = []
    for _ in range(200):
        parts, counter = _short(rng), rng.choice(COUNTERS)
        most = min(_counter(counter).count(_text(parts)), 24)
        cases.append(_case(rng, parts, counter, range(most + 1)))
    return cases


def long():
    """Return texts longer than what is looked at, cut to few tokens of an encoding."""
    rng = Random(6)
    return [
        _case(rng, _long(rng), rng.choice(ENCODINGS), sorted(rng.sample(range(1, 9), 2)))
        for _ in range(80)
    ]


def stubborn():
    """Return runs of one character, which count more than their parts beside a marker."""
    rng = Random(7)
    return [
        {**case, "cuts": [cut for cut in case["cuts"] if len(cut[1]) < 200]}
        for before, run in [["", " "], ["", "\n"], ["", "A"], ["\xe9", " "], ["1", "\u3000"]]
        for _ in range(8)
        for case in [_case(rng, [[before, 1], [run, 250]], rng.choice(ENCODINGS), range(1, 18, 4))]
    ]


KINDS = (short, long, stubborn)


if __name__ == "__main__":
    write(FILE, KINDS)
