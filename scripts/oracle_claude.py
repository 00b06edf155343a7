"""
Compare the counts for Claude with those of ctok, from whose measurements they are reconstructed.

    python3.12 -m venv VENV && VENV/bin/pip install ctok==1.3.0
    VENV/bin/python scripts/oracle_claude.py [--texts 5000] [--seed 0] [--characters 16] [FILE ...]

Counts texts made at random, and the files given: text, or JSON with a key "text" in each line,
either also compressed by gzip. With `--characters STEP` also every character of the first plane
and each STEPth of the others, between some neighbours. The counts of Rust come from a test of the
core. The empty text is left out: ctok counts the frame's marker there, the core nothing.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests/python"))

import claude_cases  # noqa: E402

TEST = "count::claude::tests::oracle"


def characters(step: int) -> list[str]:
    """Return texts with each character alone, in words, between others and among marks."""
    codes = [*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, step)]
    return [
        f"a{char}b {char} c{char}{char} 1{char}1 中{char}. {char}A "
        f"e{char}\u0323{char}o\u0301{char}"
        for char in map(chr, codes)
    ]


def read(path: Path) -> list[str]:
    """Return the texts of a file."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if ".jsonl" in path.name:
        return [json.loads(line)["text"] for line in content.splitlines()]
    return [content.decode()]


def count(texts: list[str]) -> list[list[int]]:
    """Return the counts of the core by family, for each text."""
    command = ["cargo", "test", "-q", "--release", "-p", "budgeteer", "--features", "claude"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts")
        path.write_text("".join(json.dumps(text) + "\n" for text in texts))
        subprocess.run(
            [*command, "--lib", "--", "--ignored", "--exact", TEST],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "BUDGETEER_ORACLE": str(path)},
        )
        lines = Path(f"{path}.counts").read_text().splitlines()
    return [list(map(int, line.split())) for line in lines]


def main() -> None:
    """Compare, and exit with 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--characters", type=int, metavar="STEP")
    parser.add_argument("files", type=Path, nargs="*")
    arguments = parser.parse_args()
    texts = claude_cases.made(arguments.texts, arguments.seed)
    if arguments.characters:
        texts += characters(arguments.characters)
    for path in arguments.files:
        texts += read(path)
    start = time.perf_counter()
    different = 0
    for text, ours in zip(texts, count(texts), strict=True):
        theirs = claude_cases.counts(text)
        if ours != theirs:
            different += 1
            if different <= 10:
                print(f"{text[:200]!r}: {ours}, but ctok says {theirs}")
    took = time.perf_counter() - start
    size = sum(len(text.encode()) for text in texts)
    print(f"{len(texts):,} texts, {size:,} bytes, {different:,} differences in {took:.0f} s")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
