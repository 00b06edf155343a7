"""
Counting, loading and packing with each tokenizer, beside the packages that others count with.

    python benches/bench_families.py [--vocabularies FOLDER] [--languages FILE] [--rounds N]
    python benches/bench_families.py --smoke

FOLDER holds a ``NAME.json`` for each encoding, the tokenizer.json of its models: the others load
their vocabulary from there, but for those that bring it along. `llama3.json` in it is counted,
too: its licence lets us load it, not ship it. FILE is JSON Lines (gzip or not) of ``f``, the name
of a language, and ``text``: with it the mixed chunks are half code, a quarter Chinese and a
quarter Hindi; without it they are those of `bench_count.py`, code, data and prose.

500 chunks of 800 characters are counted one by one on one thread, as new strings each time. The
cold pass is the first of a fresh process, after one short text; the warm ones count the same
chunks again in a process of all the counters, in turn. The cache of counts is off throughout.
Times are processor times, medians over the rounds, and a ratio is the median of the rounds'
ratios: above 1, the other takes longer than ours. A row that has no figure says why.

Packing ranks and packs the 500 English chunks into 8,000 tokens, its cache of counts cleared.
Loading is the first count of a fresh process, imports not counted.
"""

from __future__ import annotations

import argparse
import functools
import gc
import gzip
import importlib
import importlib.util
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench_count import (
    CHARS,
    MAX_TOKENS,
    PACK,
    QUERY,
    Run,
    Times,
    cut,
    fresh,
    real_chunks,
    seconds,
)
from texts import real_text

import budgeteer
from budgeteer import Packer

ENCODINGS = (
    *("cl100k_base", "o200k_base", "qwen2", "qwen3.5"),
    *("deepseek", "glm4", "tekken", "gemma4"),
)
FILES = (*ENCODINGS, "llama3")
OURS = "budgeteer"
PATIENCE = 60
"""The most seconds that a process may take."""

SPLINTR = {
    **{name: name for name in ("cl100k_base", "o200k_base", "glm4", "gemma4", "llama3")},
    "qwen2": "qwen3",
    "deepseek": "deepseek_v3",
    "tekken": "mistral_v3",
}
QUICKTOK = {
    **{name: name for name in ("cl100k_base", "o200k_base", "llama3")},
    "qwen2": "qwen3",
}
LANGUAGES = {"Chinese": ("cmn_hans", "cmn_hant"), "Hindi": ("hin",)}


class UnsupportedError(Exception):
    """Why a package does not count with an encoding here."""


# The chunks


def shuffled_phrases(text: str, count: int) -> list[str]:
    """Return chunks of the phrases of a text, in many orders: it is shorter than they are."""
    phrases = [
        part for line in text.splitlines() for part in re.split("(?<=\N{FULLWIDTH COMMA})", line)
    ]
    rng = random.Random(18)
    found = ""
    while len(found) < count * CHARS:
        found += "\n".join(rng.sample(phrases, len(phrases))) + "\n"
    return cut(found)[:count]


def mixed_chunks(languages: Path | None, count: int) -> list[str]:
    """Return code, Chinese and Hindi, or code, data and prose where no file has these."""
    if languages is None:
        return [*real_chunks(count)]
    opened = gzip.open if languages.suffix == ".gz" else open
    with opened(languages, "rt", encoding="utf-8") as lines:
        texts = {one["f"]: one["text"] for one in map(json.loads, lines)}
    wide = [
        chunk
        for names in LANGUAGES.values()
        for chunk in shuffled_phrases("\n".join(texts[name] for name in names), count // 4)
    ]
    code = cut("".join(path.read_text() for path in sorted(Path(os.__file__).parent.glob("*.py"))))
    rng = random.Random(18)
    chunks = rng.sample(code, count - len(wide)) + wide
    rng.shuffle(chunks)
    return chunks


# The counters


def found(encoding: str, folder: Path) -> Path:
    """Return the tokenizer.json of an encoding."""
    path = folder / f"{encoding}.json"
    if not path.is_file():
        raise UnsupportedError(f"no {path.name} in --vocabularies")
    return path


def ours(encoding: str, folder: Path) -> Run:
    """Count with budgeteer."""
    if encoding not in ENCODINGS:
        return file_run(encoding, folder)
    count = budgeteer.get_counter(encoding, cache=False).count
    return lambda texts: sum(map(count, texts))


def file_run(encoding: str, folder: Path) -> Run:
    """Count with budgeteer by a file."""
    count = budgeteer.get_counter(f"file:{found(encoding, folder)}", cache=False).count
    return lambda texts: sum(map(count, texts))


def tokenizers_run(encoding: str, folder: Path) -> Run:
    """Count with tokenizers."""
    load = importlib.import_module("tokenizers").Tokenizer.from_file
    encode = functools.partial(load(str(found(encoding, folder))).encode, add_special_tokens=False)
    return lambda texts: sum(len(encode(text).ids) for text in texts)


def gigatoken_run(encoding: str, folder: Path) -> Run:
    """Count with gigatoken."""
    encode = importlib.import_module("gigatoken").Tokenizer(found(encoding, folder)).encode
    return lambda texts: sum(map(len, map(encode, texts)))


def splintr_run(encoding: str, folder: Path) -> Run:
    """Count with splintr, which has most vocabularies."""
    splintr = importlib.import_module("splintr")
    if encoding in SPLINTR:
        encode = splintr.Tokenizer.from_pretrained(SPLINTR[encoding]).encode_ordinary
    else:
        encode = splintr.from_json(str(found(encoding, folder))).encode_ordinary
    return lambda texts: sum(map(len, map(encode, texts)))


def tokie_run(encoding: str, folder: Path) -> Run:
    """Count with tokie."""
    load = importlib.import_module("tokie").Tokenizer.from_json
    count = load(str(found(encoding, folder))).count_tokens
    return lambda texts: sum(map(count, texts))


def quicktok_run(encoding: str, folder: Path) -> Run:
    """Count with quicktok, which has some vocabularies and imports those it supports."""
    quicktok = importlib.import_module("quicktok")
    if encoding in QUICKTOK:
        count = quicktok.get_encoding(QUICKTOK[encoding]).count
        return lambda texts: sum(map(count, texts))
    path = found(encoding, folder)
    with tempfile.TemporaryDirectory() as made:
        try:
            quicktok.import_tokenizer(str(path.resolve()), encoding, made)
        except (ValueError, RuntimeError) as error:
            said = str(error).partition("\n")[0]
            raise UnsupportedError(f"its importer refuses the file: {said}") from error
        count = quicktok.get_encoding(encoding, made).count
    return lambda texts: sum(map(count, texts))


COUNTERS: dict[str, Callable[[str, Path], Run]] = {
    OURS: ours,
    "gigatoken": gigatoken_run,
    "tokenizers": tokenizers_run,
    "splintr": splintr_run,
    "tokie": tokie_run,
    "quicktok": quicktok_run,
}
LOADERS = {"file:": file_run, "tokenizers": tokenizers_run, "gigatoken": gigatoken_run}


# Measurements of a fresh process


def cold(texts: Sequence[str], folder: Path, encoding: str, name: str) -> Any:
    """Return the time of the first pass, and its sum."""
    run = COUNTERS[name](encoding, folder)
    run(["Hello, world"])
    chunks = fresh(texts)
    total: list[int] = []
    return seconds(lambda chunks: total.append(run(chunks)), chunks), total[0]


def warm(texts: Sequence[str], folder: Path, encoding: str, *names: str) -> Any:
    """Return the median time of each counter for texts that it has counted."""
    runs = {name: COUNTERS[name](encoding, folder) for name in names}
    for run in runs.values():
        run(fresh(texts))
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(3):
        for name, run in runs.items():
            for _ in range(1 if name == "tokenizers" else 5):
                times[name].append(seconds(run, fresh(texts)))
    return {name: statistics.median(values) for name, values in times.items()}


def load(_: Sequence[str], folder: Path, encoding: str, name: str) -> Any:
    """Return the time of the first count, the package imported."""
    importlib.import_module("numpy" if name in (OURS, "file:") else name)
    make = {**COUNTERS, **LOADERS}[name]
    return seconds(lambda text: make(encoding, folder)([text]), "Hello, world")


def packing(texts: Sequence[str], folder: Path, encoding: str, ranking: str, file: bool) -> Any:
    """Return the median time of packing texts whose counts are not cached."""
    name = f"file:{found(encoding, folder)}" if file else encoding
    counter = budgeteer.get_counter(name)
    options = {"ranking": ranking} if ranking != "default" else {}
    packer = Packer(MAX_TOKENS, counter=counter, **options)
    times = []
    for _ in range(30):
        counter.clear_cache()
        times.append(seconds(lambda chunks: packer.pack(QUERY, chunks), fresh(texts)))
    return statistics.median(times[5:])


SECTIONS = {section.__name__: section for section in (cold, warm, load, packing)}


# Rounds of processes


class Rounds(Times):
    """The measurements of fresh processes in each round."""

    def __init__(self, folder: Path, vocabularies: Path) -> None:
        super().__init__()
        self.folder = folder
        self.vocabularies = vocabularies
        self.totals: dict[tuple[str, str, str], int] = {}
        self.missing: dict[tuple[str, str], str] = {}

    def process(self, section: str, kind: str, *arguments: Any) -> Any:
        """Return the result of a section in a process of its own, or raise why it has none."""
        task = json.dumps([section, kind, *arguments])
        command = [sys.executable, __file__, "--section", task, "--folder", str(self.folder)]
        command += ["--vocabularies", str(self.vocabularies)]
        one = {
            "BUDGETEER_NUM_THREADS": "1",
            "RAYON_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "0",
        }
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **one},
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UnsupportedError(f"not done after {PATIENCE} seconds") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            said = lines[-1].rpartition("UnsupportedError: ")[2] if lines else ""
            raise UnsupportedError(said or f"the process ended with {done.returncode}")
        return json.loads(done.stdout.splitlines()[-1])

    def measure(self, encoding: str, kinds: Iterable[str]) -> None:
        """Measure an encoding once."""
        for kind in kinds:
            for name in COUNTERS:
                if importlib.util.find_spec(name) is None:
                    self.missing[encoding, name] = "it is not installed"
                if (encoding, name) in self.missing:
                    continue
                try:
                    time, total = self.process("cold", kind, encoding, name)
                except UnsupportedError as why:
                    self.missing[encoding, name] = str(why)
                    continue
                self.add(kind, "cold", encoding, name, time=time)
                self.totals[kind, encoding, name] = total
            names = [name for name in COUNTERS if (encoding, name) not in self.missing]
            if names:
                for name, time in self.process("warm", kind, encoding, *names).items():
                    self.add(kind, "warm", encoding, name, time=time)
        self.measure_rest(encoding)

    def measure_rest(self, encoding: str) -> None:
        """Measure packing and loading once."""
        cases = [
            ("packing", ranking, file) for ranking in ("keyword", "default") for file in (0, 1)
        ]
        for section, *case in [*cases, *(("load", name) for name in (OURS, *LOADERS))]:
            if encoding not in ENCODINGS and case in ([OURS], ["keyword", 0], ["default", 0]):
                continue
            try:
                time = self.process(section, "english", encoding, *case)
            except UnsupportedError:
                continue
            self.add(section, encoding, *case, time=time)


def report(rounds: Rounds, sizes: dict[str, int], encodings: Sequence[str]) -> None:
    """Print the tables, in Markdown."""
    for kind, size in sizes.items():
        print(f"\n{kind.capitalize()} chunks, MB/s (and how many times as long as ours)\n")
        print(f"| encoding | | {' | '.join(COUNTERS)} |\n|---|---|{'---|' * len(COUNTERS)}")
        for encoding in encodings:
            if (kind, "cold", encoding, OURS) not in rounds.times:
                continue
            for heat in ("cold", "warm"):
                cells = []
                for name in COUNTERS:
                    key = (kind, heat, encoding, name)
                    if key not in rounds.times:
                        cells.append("-")
                        continue
                    speed = f"{size / rounds.median(*key) / 1e6:.0f}"
                    if name != OURS:
                        speed += f" ({rounds.ratio(key, (kind, heat, encoding, OURS)):.2f})"
                        total = rounds.totals[kind, encoding, name]
                        apart = total - rounds.totals[kind, encoding, OURS]
                        speed += f" [{apart:+} tokens]" if apart else ""
                    cells.append(speed)
                print(f"| {encoding} | {heat} | {' | '.join(cells)} |")
    print(f"\n{PACK} chunks into {MAX_TOKENS} tokens, and the first count, ms\n")
    print(
        "| | keyword | keyword, file: | default | default, file: | first count | file: |", end=""
    )
    print(" tokenizers | gigatoken |\n|---|---|---|---|---|---|---|---|---|")
    for encoding in encodings:
        keys = [("packing", encoding, r, f) for r in ("keyword", "default") for f in (0, 1)]
        keys += [("load", encoding, name) for name in (OURS, *LOADERS)]
        cells = [
            f"{rounds.median(*key) * 1e3:.2f}" if key in rounds.times else "-" for key in keys
        ]
        print(f"| {encoding} | {' | '.join(cells)} |")
    for (encoding, name), why in rounds.missing.items():
        print(f"\n{name} does not count {encoding}: {why}")


def make_folder(folder: Path, vocabularies: Path | None) -> Path:
    """Return a folder with the vocabularies that there are."""
    made = folder / "vocabularies"
    made.mkdir()
    for path in vocabularies.glob("*.json") if vocabularies else ():
        (made / path.name).symlink_to(path.resolve())
    return made


def main() -> None:
    """Print the tables, or the result of one section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--vocabularies", type=Path)
    parser.add_argument("--languages", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--encodings", default=",".join(FILES))
    parser.add_argument("--smoke", action="store_true", help="one encoding once: does it run?")
    parser.add_argument("--section", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.section:
        name, kind, *rest = arguments.section
        texts = json.loads((arguments.folder / f"{kind}.json").read_text(encoding="ascii"))
        gc.collect()
        gc.disable()
        print(json.dumps(SECTIONS[name](texts, arguments.vocabularies, *rest)))
        return

    encodings = ["qwen2"] if arguments.smoke else arguments.encodings.split(",")
    chunks = {"english": cut(real_text())[:PACK]}
    if not arguments.smoke:
        chunks["mixed"] = mixed_chunks(arguments.languages, PACK)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, texts in chunks.items():
            (folder / f"{kind}.json").write_text(json.dumps(texts), encoding="ascii")
        rounds = Rounds(folder, make_folder(folder, arguments.vocabularies))
        for _ in range(1 if arguments.smoke else arguments.rounds):
            for encoding in encodings:
                rounds.measure(encoding, chunks)
        sizes = {kind: len("".join(texts).encode()) for kind, texts in chunks.items()}
        report(rounds, sizes, encodings)


if __name__ == "__main__":
    main()
