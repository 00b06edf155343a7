"""
Compare the instructions of each kernel with those recorded in `benches/kernels.json`.

    python scripts/check_kernels.py [--record] [--only PART]

Needs valgrind (Debian's package of that name) and cargo. Each kernel of `benches/kernels.rs` runs
under callgrind: two rounds that fill caches, and two that are counted, of which half is a round.
That is the same in each run, whatever else the machine does. Tables made once are not counted:
what they cost is partly chance.

The exit status is 1 where a kernel takes over 3 % more than is recorded, or where it is not
recorded. `--record` writes what was measured instead: of the kernels named by `--only`, or of all,
and then the file has no others. Valgrind knows no AVX-512: what runs with it is not seen here.

Another compiler makes other code. Where its version is not the recorded one, the differences are
printed and nothing fails; record anew with the change that brings the compiler.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benches/kernels.json"
GROWTH = 0.03


def built() -> Path:
    """Build the kernels and return the path of the program."""
    command = ["cargo", "bench", "--locked", "--quiet", "--package", "budgeteer"]
    command += ["--bench", "kernels", "--no-run", "--message-format", "json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    messages = map(json.loads, done.stdout.splitlines())
    (program,) = (one["executable"] for one in messages if one.get("executable"))
    return Path(program)


def instructions(program: Path, kernel: str) -> int:
    """Return the instructions of a round."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += ["--toggle-collect=kernels::counted", str(program), kernel]
    done = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    found = re.search(r"Collected\s*:\s+(\d+)", done.stderr)
    assert found, done.stderr
    assert int(found[1]), "kernels::counted is not in the program"
    return int(found[1]) // 2


def compiler() -> str:
    """Return the version of the compiler."""
    done = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()[1]


def main() -> None:
    """Print a line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    parser.add_argument("--record", action="store_true", help="write what was measured")
    parser.add_argument("--only", default="", metavar="PART", help="a part of the kernels' names")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing: install the package of that name")
    program = built()
    names = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    kernels = [name for name in names.splitlines() if arguments.only in name]
    if not kernels:
        sys.exit(f"no kernel has {arguments.only!r} in its name")

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        counts = threads.map(partial(instructions, program), kernels)
        found = dict(zip(kernels, counts, strict=True))
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {"kernels": {}}
    if arguments.record:
        kept = known["kernels"] if arguments.only else {}
        record = {"rustc": compiler(), "kernels": dict(sorted({**kept, **found}.items()))}
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
    failed = []
    for kernel, now in found.items():
        before = known["kernels"].get(kernel)
        growth = now / before - 1 if before else float("inf")
        changed = f"{growth:+8.1%}" if before else "     new"
        print(f"{kernel:36} {now:12,} {changed}")
        if growth > GROWTH:
            failed.append(kernel)
    if not failed or arguments.record:
        return
    if known.get("rustc") not in {None, compiler()}:
        print(f"Recorded with Rust {known['rustc']}, this is {compiler()}: not compared.")
        return
    print(f"Over {GROWTH:.0%} more instructions than recorded, or new: {', '.join(failed)}.")
    sys.exit(1)


if __name__ == "__main__":
    main()
