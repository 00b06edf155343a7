"""
The cases of what bills teach that both languages answer alike.

    python tests/python/calibration_cases.py

writes `tests/cases/calibration.json` anew, with what Python answers. `test_calibration_cases.py`
holds it against Python, `tests/rust/calibration.rs` against Rust.
"""

import json
import tempfile
from pathlib import Path
from random import Random

from cases import write

from budgeteer import BudgeteerError, Calibration

FILE = Path(__file__).parents[1] / "cases/calibration.json"
MODEL = "chars_div4"
SIZES = [0, 1, 2, 999, 8_000, 33_554_432]
TEXTS = ["", "x", "Green tea is mild.", "日本" * 50, "tea " * 3000]

BILLS = {
    "affine": lambda n, random: 300 + n * random.randrange(1200, 1400) // 1000,
    "below one": lambda n, random: 20 + n * random.randrange(400, 500) // 1000,
    "exact": lambda n, random: n + random.choice([7, 11, 30]),
    "some twice": lambda n, random: 100 + n * random.choice([1] * 9 + [2]),
    "some without cache": lambda n, random: 100 + n * random.choice([1] * 9 + [0.2]),
    "a large frame": lambda n, _: 30_000 + n,
    "a frame out of range": lambda n, _: min(4 * n, 400_000 + n),
    "far too low": lambda n, _: 4 * n + 131_072,
    "as counted": lambda n, _: n,
}
"""What is billed for a count."""

RANGES = [(1, 40), (1_000, 1_300), (7_990, 8_000), (10, 120_000), (1, 33_554_432)]
RANGES += [(1_000, 3_000), (500, 2_100)]


def _learned(pairs, quantile=0.99):
    calibration = Calibration(quantile=quantile)
    for estimated, billed in pairs:
        calibration.observe(estimated, billed, model=MODEL)
    return calibration


def fits():
    """Return what is learned from pairs, and the bounds that follow."""
    random = Random(18)
    made = []
    for bill in BILLS.values():
        for low, high in RANGES:
            for n in (1, 2, 5, 40, 150):
                # As many small ones as large ones.
                sizes = [round(low * (high / low) ** random.random()) for _ in range(n)]
                pairs = [[size, max(1, size // 10 + 1, int(bill(size, random)))] for size in sizes]
                quantile = random.choice([0.5, 0.9, 0.99, 0.99, 1.0])
                learned = _learned(pairs, quantile).correction(MODEL)
                made.append(
                    {
                        "quantile": quantile,
                        "pairs": pairs,
                        "scale": learned.scale,
                        "frame_tokens": learned.frame_tokens,
                        "fitted": learned.pairs,
                        "bounds": [learned.bound(size) for size in SIZES],
                    }
                )
    return made


def counts():
    """Return what corrected counters count."""
    made = []
    halves = [[n, n // 2] for n in range(50, 5_000, 50)]
    for pairs in ([], [[8_000, 8_000]], [[1_000, 1_370]], halves):
        counter = _learned(pairs).counter(MODEL)
        tokens = [counter.count(text) for text in TEXTS]
        limited = [counter.count_till_limit(text, 25) for text in TEXTS]
        made.append({"pairs": pairs, "texts": TEXTS, "counts": tokens, "limited": limited})
    return made


def refusals():
    """Return the errors for pairs that no correction covers."""

    def answer(estimated, billed):
        try:
            _learned([(estimated, billed)])
        except BudgeteerError as error:
            return {"estimated": estimated, "billed": billed, "error": str(error)}
        raise AssertionError((estimated, billed))

    refused = [(0, 1), (33_554_433, 33_554_433), (1, 0), (1, 2**63)]
    refused += [(1_000, 135_073), (1_000, 10**9), (1_000, 99)]
    return [answer(*pair) for pair in refused]


FILES = [
    '{"version": 1, "models": {"m": {"pairs": [[1000, 1100]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [], "more": 3}}, "later": [1]}',
    '{"version": 1, "models": {"é \\" m": {"pairs": [[5, 6], [7, 9]]}, "n": {"pairs": [[9, 9]]}}}',
    *("", "{", "[]", "3", "{}", '{"version": 1}', '{"version": 1, "models": []}'),
    *('{"version": 2, "models": {}}', '{"models": {}}', '{"version": "1", "models": {}}'),
    *('{"version": true, "models": {}}', '{"version": 1.0, "models": {}}'),
    '{"version": 1, "models": {"m": []}}',
    '{"version": 1, "models": {"m": {"pairs": 3}}}',
    '{"version": 1, "models": {"m": {}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000, 1100, 3]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000, 1100.0]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000, true]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000, NaN]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000, -5]]}}}',
    '{"version": 1, "models": {"m": {"pairs": [[1000, 1100], [1000, 3]]}}}',
]


def files():
    """Return what is written again of a file that can be read, None of one that cannot."""
    made = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bills.json")
        for text in FILES:
            path.write_text(text, "utf-8")
            try:
                Calibration.load(path).save(path)
                models = json.loads(path.read_text("utf-8"))
            except BudgeteerError:
                models = None
            made.append({"text": text, "written": models})
    return made


KINDS = (fits, counts, refusals, files)


if __name__ == "__main__":
    write(FILE, KINDS)
