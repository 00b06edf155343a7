"""
See that twice as long a text takes at most 2.2 times the instructions, also where it is hostile.

    python scripts/check_hostile.py [--smoke] [--only PART] [--chars N] [--program PATH]

Needs valgrind (Debian's package of that name) and cargo. Each operation of `benches/hostile.rs`
runs under callgrind with twelve texts, at N characters and at twice that; what it takes to make
them is not counted. It runs in one thread, whose instructions are the same each time.

Prints a line for each operation: its largest ratio, and the text that has it. Where a ratio is
larger than 2.2, texts of twice and four times the length are compared, too, and where theirs is,
of four and eight times: what grows with the text grows there again, and what does not was a table
that had become full. The exit status is 1 where all three ratios are larger, but for those in
KNOWN. `--smoke` takes a few operations, of the vocabularies that are in by default, and shorter
texts. `--program` takes a program that is built.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 2.2
SMOKE = (
    *("count o200k_base", "truncate both o200k_base", "score lexical many chunks"),
    *("score keyword one chunk", "pack many chunks", "fit log"),
)

KNOWN = {"pack near-duplicates"}
"""Reported, and not refused: the first 4,096 texts are compared each with each."""


def built(smoke: bool) -> Path:
    """Build the operations and return the path of the program."""
    command = ["cargo", "bench", "--locked", "--quiet", "--package", "budgeteer"]
    command += ["--bench", "hostile", "--no-run", "--message-format", "json"]
    command += [] if smoke else ["--features", "vocabularies"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    messages = map(json.loads, done.stdout.splitlines())
    (program,) = (one["executable"] for one in messages if one.get("executable"))
    return Path(program)


def ratios(program: Path, operation: str, chars: int) -> dict[str, float]:
    """Return the ratio of each text."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += ["--toggle-collect=hostile::measured", "--dump-after=hostile::measured"]
        command += [str(program), operation, str(chars)]
        environment = {**os.environ, "BUDGETEER_NUM_THREADS": "1"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(done.stderr)
        names = done.stdout.splitlines()
        counts = [instructions(Path(folder, f"out.{i + 1}")) for i in range(len(names))]
    pairs = zip(names[::2], counts[::2], counts[1::2], strict=True)
    return {name: twice / max(1, once) for name, once, twice in pairs}


def instructions(dump: Path) -> int:
    """Return the instructions of a dump."""
    found = re.search(r"^(?:summary|totals): (\d+)", dump.read_text(), re.MULTILINE)
    assert found, dump
    return int(found[1])


def main() -> None:
    """Print a line for each operation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    parser.add_argument("--smoke", action="store_true", help="a few operations")
    parser.add_argument(
        "--only", default="", metavar="PART", help="a part of the operations' names"
    )
    parser.add_argument(
        "--chars", type=int, metavar="N", help="the characters of the shorter text"
    )
    parser.add_argument("--program", type=Path, help="a program that is built")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing: install the package of that name")
    program = arguments.program or built(arguments.smoke)
    chars = arguments.chars or (5_000 if arguments.smoke else 400_000)
    names = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    known = SMOKE if arguments.smoke else names.splitlines()
    operations = [name for name in known if arguments.only in name]
    if not operations:
        sys.exit(f"no operation has {arguments.only!r} in its name")
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = threads.map(lambda one: ratios(program, one, chars), operations)
        for operation, texts in zip(operations, found, strict=True):
            worst = max(texts, key=lambda text: texts[text])
            print(f"{operation:36} {texts[worst]:6.2f}  {worst}", flush=True)
            left = texts
            for times in (2, 4):
                over = {text: ratio for text, ratio in left.items() if ratio > LIMIT}
                if not over:
                    break
                longer = ratios(program, operation, times * chars)
                left = {text: longer[text] for text in over}
                both = (f"{text} {over[text]:.2f}, then {left[text]:.2f}" for text in over)
                print(f"    over {LIMIT}: {'; '.join(both)}", flush=True)
            grows = max(left.values()) > LIMIT
            failed += [operation] if grows and operation not in KNOWN else []
    if failed:
        sys.exit(f"Over {LIMIT} times the instructions for twice the text: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
