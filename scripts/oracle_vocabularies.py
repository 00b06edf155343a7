"""
Count odd texts beside the packages that the vocabularies come with: the long run.

    python scripts/oracle_vocabularies.py FILES TOOL [--strings N] [--seed N] [--texts PATH ...]

FILES is the folder that ``generate_vocabularies.py --keep`` wrote, TOOL the example
`tokenizer_tool`, built with the feature ``vocabularies``. The encodings count beside `tokenizers`,
that of Tekken beside mistral-common and that of Kimi beside tiktoken. The files of families that
are not shipped are opened, and so count as well.

The texts are those of `tests/python/oracle.py`, and pieces of PATH: lines of JSON with strings in
them, packed by gzip where it ends in ``.gz``. All families count the same ones, a part after the
other, until N are counted or ``--minutes`` are over. A text that is counted differently is shown
with all taken out that it does not need.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]

import oracle  # noqa: E402  # of this checkout
import vocabulary  # noqa: E402
from generate_vocabularies import SPELLED  # noqa: E402

SOURCES = ROOT / "scripts/vocabulary_sources.json"

Counts = Callable[[list[str]], list[object]]

PART = 10_000
"""The number of texts that are counted by one family after the other."""


def tokenizers_counts(file: Path) -> tuple[Counts, list[str]]:
    """Return how the package counts, and the tokens that are texts."""
    from tokenizers import Tokenizer  # noqa: PLC0415  # an extra

    tokenizer = Tokenizer.from_file(str(file))

    def counts(texts: list[str]) -> list[object]:
        return [len(one.ids) for one in tokenizer.encode_batch_fast(texts)]

    return counts, tokens_of(file)


def tokens_of(file: Path) -> list[str]:
    """Return the tokens that `tokenizer.json` spells, as texts."""
    vocab = json.loads(file.read_bytes())["model"]["vocab"]
    if "\u2581" in vocab:
        return [token.replace("\u2581", " ") for token in vocab]
    values = {char: byte for byte, char in SPELLED.items()}
    spelled = (token for token in vocab if all(char in values for char in token))
    texts = (bytes(map(values.__getitem__, token)).decode(errors="replace") for token in spelled)
    return [text for text in texts if "\ufffd" not in text]


def tekken_counts(file: Path) -> tuple[Counts, list[str]]:
    """Return how Mistral's package counts, and the tokens that are texts."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer  # noqa: PLC0415

    tokenizer = Tekkenizer.from_file(file)

    def counts(texts: list[str]) -> list[object]:
        return [len(tokenizer.encode(text, bos=False, eos=False)) for text in texts]

    special = tokenizer.num_special_tokens
    pieces = map(tokenizer.id_to_byte_piece, range(special, tokenizer.n_words))
    texts = (piece.decode(errors="replace") for piece in pieces)
    return counts, [text for text in texts if "\ufffd" not in text]


def tiktoken_counts(file: Path, pattern: str) -> tuple[Counts, list[str]]:
    """Return how tiktoken counts with these ranks, and the tokens that are texts."""
    import tiktoken  # noqa: PLC0415
    from tiktoken.load import load_tiktoken_bpe  # noqa: PLC0415

    ranks = load_tiktoken_bpe(str(file))
    encoding = tiktoken.Encoding(
        file.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )

    def counts(texts: list[str]) -> list[object]:
        return [len(encoding.encode_ordinary(text)) for text in texts]

    texts = (token.decode(errors="replace") for token in ranks)
    return counts, [text for text in texts if "\ufffd" not in text]


def reference(name: str, files: Path) -> tuple[Counts, list[str]]:
    """Return how a family is counted by its package, and the tokens that are texts."""
    if name == "tekken":
        return tekken_counts(files / "tekken.json")
    if (files / f"{name}.json").is_file():
        return tokenizers_counts(files / f"{name}.json")
    entries = json.loads(SOURCES.read_text("utf-8"))["families"]
    ((pattern,),) = [entry["patterns"] for entry in entries if entry["name"] == name]
    return tiktoken_counts(files / f"{name}.tiktoken", pattern)


class Tool:
    """Counts with the tool, in a process that stays."""

    def __init__(self, path: Path, name: str) -> None:
        self.process = subprocess.Popen(
            [path, "count", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __call__(self, texts: list[str]) -> list[object]:
        """Return the counts: text where the ways to count differ."""
        into, out = self.process.stdin, self.process.stdout
        assert into is not None
        assert out is not None
        into.write(json.dumps(texts).encode() + b"\n")
        into.flush()
        counts: list[object] = json.loads(out.readline())
        return counts


def strings_in(path: Path) -> Iterator[str]:
    """Yield the long strings in lines of JSON."""
    open_it = gzip.open if path.suffix == ".gz" else open
    with open_it(path, "rt", encoding="utf-8") as lines:
        values = [json.loads(line) for line in lines]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield from (value,) if len(value) > 40 else ()
        elif isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value


class Family:
    """A vocabulary, and the two that count with it."""

    def __init__(self, entry: dict[str, object], files: Path, tool: Path) -> None:
        self.name = str(entry["name"])
        self.expected, self.words = reference(self.name, files)
        (file,) = (path for path in files.iterdir() if path.stem == self.name)
        self.counted = Tool(tool, self.name if entry["ship"] else str(file))

    def differences(self, texts: list[str]) -> list[oracle.Difference]:
        """Return where the two differ."""
        pairs = zip(texts, self.expected(texts), self.counted(texts), strict=True)
        return [
            oracle.Difference(self.name, "tool", *found) for found in pairs if found[1] != found[2]
        ]


def main() -> int:
    """Compare, and say what was found; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].strip())
    parser.add_argument("files", type=Path, help="what generate_vocabularies.py --keep wrote")
    parser.add_argument("tool", type=Path, help="the example tokenizer_tool")
    parser.add_argument("--strings", type=int, default=100_000, help="how many for each family")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="the most time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="lines of JSON")
    parser.add_argument("--only", metavar="NAME", action="append", help="one family")
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(vocabulary.cache_dir()))

    entries = json.loads(SOURCES.read_text("utf-8"))["families"]
    here = {path.stem for path in arguments.files.iterdir()} & set(
        arguments.only or [entry["name"] for entry in entries]
    )
    families = {
        entry["name"]: Family(entry, arguments.files, arguments.tool)
        for entry in entries
        if entry["name"] in here
    }
    rng = random.Random(arguments.seed)
    real = [text for path in arguments.texts for text in strings_in(path)]
    real += oracle.texts_of_the_machine(rng, 20.0)
    words = [word for family in families.values() for word in family.words]
    make = oracle.RandomTexts(arguments.seed, real, words)
    # A lone surrogate is no text in JSON.
    texts = (make().encode("utf-8", "replace").decode() for _ in range(arguments.strings))

    def compare(name: str, texts: list[str]) -> list[oracle.Difference]:
        return families[name].differences(texts)

    deadline = time.monotonic() + arguments.minutes * 60
    strings = characters = different = 0
    while time.monotonic() < deadline and (part := list(itertools.islice(texts, PART))):
        strings += len(part)
        characters += sum(map(len, part))
        for name in families:
            found = compare(name, part)
            different += len(found)
            for difference in oracle.shortest(found, 3):
                sys.stdout.write(f"{oracle.smallest(difference, compare=compare)!a}\n")
        sys.stdout.write(f"{strings} strings, {characters} characters, {different} differences\n")
        sys.stdout.flush()
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
