"""
How often counters count too few: the tokenizers of many models against what stood in for them.

    python benches/eval_counts.py --vocabularies FOLDER [--languages FILE] [--recorded FILE]
        [--questions FILE...]
    python benches/eval_counts.py --smoke

FOLDER holds the tokenizer.json of each family as ``NAME.json``, with no added tokens in it: the
package `tokenizers` counts the truth by it. `--languages` is JSON Lines (gzip or not) of ``f``,
the name of a language, and ``text``. `--recorded` is a JSON file of what the counting endpoint of
Claude answered for these, as ``{family: {"counts": {language: tokens}}}``, frames included.
`--questions` are files as of `eval_ranking.py`, of which the chunks are read.

A document is a text of a language, a file of Python's own library, or a chunk of the questions.
Each cell of the first table is the share of documents that are counted too low, with its 95 %
interval by bootstrap, and the least count for a token that is there. Each cell of the second is
the share of packings over the budget, and the most tokens of one for a token of budget: parts of
a text are packed in their order into 1,000 tokens by the counter, and recounted.

"characters / 4" and `cl100k_base` are what many programs take for any model, among them the
fallbacks of most libraries; "factor" is `o200k_base` times what this library took for the family
before it had its tokenizer; "now" is its counter.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import importlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from questions import interval, records_of
from texts import real_text

from budgeteer import Packer, get_counter

Count = Callable[[str], int]

BUDGET = 1_000
CHARS = 400
"""The least characters of a part that is packed."""
LONGEST = 20_000
MOST = 1_000
"""The most documents of a kind, and characters of one."""


class Family(NamedTuple):
    """A tokenizer, what counts it now, and the factor of `o200k_base` before."""

    name: str
    encoding: str
    factor: float


FAMILIES = (
    Family("Qwen 2 to 3", "qwen2", 1.65),
    Family("Qwen 3.5", "qwen3.5", 1.65),
    Family("DeepSeek", "deepseek", 1.45),
    Family("GLM 4", "glm4", 1.4),
    Family("Mistral (Tekken)", "tekken", 1.65),
    Family("Gemma 4", "gemma4", 1.7),
    Family("Gemini 3.1", "gemma4", 1.1),
    Family("Llama 3", "llama3", 1.4),
)
LOADED = {"llama3"}
"""The encodings that are counted by their file: they may not be shipped."""

CLAUDE = {
    "v3": (Family("Claude 3 to 4.6", "claude-opus-4-5", 1.18), 7),
    "v4.7": (Family("Claude 4.7", "claude-opus-4-7", 1.53), 11),
    "v5": (Family("Claude 4.8 and later", "claude-opus-5", 1.53), 6),
}
"""By the name in the recorded answers: the family, and the tokens of its frame."""


# The documents


def opened(path: Path) -> Iterator[Any]:
    """Yield the records of a file of JSON Lines."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def code() -> Iterator[str]:
    """Yield the files of Python's own library."""
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        yield path.read_text(encoding="utf-8")[:LONGEST]


def chunks(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the different chunks of files of questions."""
    texts = (
        one["text"] for path in paths for record in records_of(path) for one in record["chunks"]
    )
    yield from dict.fromkeys(texts)


def documents(arguments: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the documents by kind, each with a name."""
    if arguments.smoke:
        parts = real_text().split("\n\n")[:20]
        return {"English": {str(nth): part for nth, part in enumerate(parts)}}
    kinds: dict[str, dict[str, str]] = {}
    if arguments.languages:
        records = opened(arguments.languages)
        kinds["languages"] = {one["f"]: one["text"] for one in records}
    for kind, texts in (("code", code()), ("English", chunks(arguments.questions))):
        named = {str(nth): text for nth, text in enumerate(texts) if text.strip()}
        kinds[kind] = dict([*named.items()][:MOST])
    return {kind: texts for kind, texts in kinds.items() if texts}


# The counters


def times(factor: float) -> Count:
    """Return the counter that was an estimate by a factor."""
    count = get_counter("o200k_base").count
    return lambda text: math.ceil(count(text) * factor)


def guesses(family: Family, folder: Path | None) -> dict[str, Count]:
    """Return the counters of a family by their names; the last is ours."""
    is_loaded = family.encoding in LOADED
    name = f"file:{folder}/{family.encoding}.json" if is_loaded else family.encoding
    return {
        "characters / 4": get_counter("chars_div4").count,
        "cl100k_base": get_counter("cl100k_base").count,
        "factor": times(family.factor),
        "now": get_counter(name).count,
    }


@functools.cache
def truth_of(path: Path) -> Count:
    """Return what `tokenizers` counts."""
    encode = importlib.import_module("tokenizers").Tokenizer.from_file(str(path)).encode
    return functools.cache(lambda text: len(encode(text, add_special_tokens=False).ids))


# The tables


def share(flags: Sequence[bool]) -> str:
    """Return a share in percent with its interval."""
    mean, low, high = (100 * value for value in interval([float(flag) for flag in flags]))
    return f"{mean:.1f} % [{low:.1f} {high:.1f}]"


def under_counts(count: Count, texts: Mapping[str, str], truth: Mapping[str, int]) -> str:
    """Return the share of documents counted too low, and the worst ratio."""
    ratios = [count(texts[name]) / tokens for name, tokens in truth.items() if tokens]
    return f"{share([ratio < 1 for ratio in ratios])}, {min(ratios):.2f}"


def parts_of(text: str) -> list[str]:
    """Return runs of lines of a text, each of some hundred characters."""
    parts, open_part = [], ""
    for line in text.splitlines(keepends=True):
        open_part += line
        if len(open_part) >= CHARS:
            parts.append(open_part)
            open_part = ""
    return [*parts, open_part] if open_part.strip() else parts


def packings(count: Count, texts: Iterable[str], truth: Count) -> str:
    """Return the share of packings over the budget, and the worst one."""
    packer = Packer(BUDGET, counter=count, ranking="input", dedupe=None)
    loads = [truth(packer.pack("", parts_of(text)).text) / BUDGET for text in texts]
    return f"{share([load > 1 for load in loads])}, {max(loads):.2f}"


def table(title: str, rows: Sequence[tuple[str, str, Mapping[str, str]]]) -> None:
    """Print a table in Markdown."""
    if not rows:
        return
    names = [*rows[0][2]]
    print(f"\n{title}\n\n| family | text | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for family, kind, cells in rows:
        print(f"| {family} | {kind} | {' | '.join(cells.values())} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--vocabularies", type=Path)
    parser.add_argument("--languages", type=Path)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--questions", type=Path, nargs="*", default=())
    parser.add_argument(
        "--smoke", action="store_true", help="our own counts as truth: does it run?"
    )
    arguments = parser.parse_args()
    folder = arguments.vocabularies
    if folder is None and not arguments.smoke:
        parser.error("--vocabularies must be a folder of tokenizer.json files")
    kinds = documents(arguments)
    print(", ".join(f"{kind}: {len(texts)} documents" for kind, texts in kinds.items()))
    counted, packed = [], []
    for family in FAMILIES:
        if arguments.smoke:
            if family.encoding in LOADED:
                continue
            truth = get_counter(family.encoding).count
        elif (path := folder / f"{family.encoding}.json").is_file():
            truth = truth_of(path)
        else:
            print(f"{family.name}: no {family.encoding}.json")
            continue
        counters = guesses(family, folder)
        for kind, texts in kinds.items():
            true = {name: truth(text) for name, text in texts.items()}
            cells = {name: under_counts(count, texts, true) for name, count in counters.items()}
            counted.append((family.name, kind, cells))
            long = [text for text in texts.values() if len(text) > 4 * CHARS] or [*texts.values()]
            if kind == "English":  # many chunks to a packing, as in use
                whole = "\n".join(texts.values())
                long = [whole[at : at + LONGEST] for at in range(0, len(whole), LONGEST)]
            cells = {name: packings(count, long, truth) for name, count in counters.items()}
            packed.append((family.name, kind, cells))
    if arguments.recorded and "languages" in kinds:
        recorded = json.loads(arguments.recorded.read_text(encoding="utf-8"))
        texts = kinds["languages"]
        for name, (family, frame) in CLAUDE.items():
            counts = recorded[name]["counts"].items()
            true = {language: tokens - frame for language, tokens in counts if language in texts}
            counters = guesses(family, folder)
            cells = {name: under_counts(count, texts, true) for name, count in counters.items()}
            counted.append((family.name, "languages", cells))
    table("Documents counted too low, and the least count for a token", counted)
    table(f"Packings over {BUDGET} tokens, and the most tokens for one of budget", packed)


if __name__ == "__main__":
    main()
