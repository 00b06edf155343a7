"""
Change one expression of a file at a time, and count how many such mutants the tests find.

    pip install --group test --group mutants
    python scripts/mutants.py FILE... [--only FUNCTION] [--children N] [--record]

mutmut mutates a file of Python, cargo-mutants one of Rust. `tests/mutants.json` says which tests
reach a file: only those run. What has no dashes there, for cargo, is a part of names of tests:
only those with such a part run. It also has what was found last, and each mutant that survives
with the reason why no test finds it. The exit status is 1 where fewer than 90 % are killed, or
where one survives without a reason there. `--record` writes what was found; new survivors get an
empty reason, which is none.

All is written below `target/mutants`, with what mutmut says in `run.log`. mutmut changes neither
what stands outside of functions nor a function that has a decorator.
"""

import argparse
import fnmatch
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests/mutants.json"
WORK = ROOT / "target/mutants"
SHARE = 0.9

COPIED = ("benches", ".vocabulary", "README.md", "docs", "examples")
"""What the tests read, beside themselves."""

KILLED = {"killed", "timeout", "segfault"}

CONFIG = """
[mutmut]
source_paths = src
only_mutate = {file}
also_copy = {copied}
process_isolation = forkserver
pytest_add_cli_args =
    --numprocesses=0
    -pno:cacheprovider
    --timeout=0
pytest_add_cli_args_test_selection = {tests}
# Three times as long as the tests took, and 24 seconds: the machine may be busy.
timeout_multiplier = 3
timeout_constant = 8
"""


@dataclass
class Found:
    """What became of the mutants of a file."""

    killed: int
    survivors: list[str]

    @property
    def mutants(self) -> int:
        """How many there were."""
        return self.killed + len(self.survivors)

    @property
    def share(self) -> float:
        """The share that was killed."""
        return self.killed / self.mutants if self.mutants else 1.0


def folder_of(file: str) -> Path:
    """Return an empty folder for a file's mutants."""
    folder = WORK / file.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def of_python(file: str, tests: list[str], only: str, children: int) -> Found:
    """Run mutmut on a file."""
    work = folder_of(file)
    shutil.copytree(ROOT / "python/budgeteer", work / "src/budgeteer")
    native = importlib.util.find_spec("budgeteer._native")
    if native is not None and native.origin is not None:
        shutil.copy2(native.origin, work / "src/budgeteer")
    for name in ("pyproject.toml", "tests", *COPIED):
        if (ROOT / name).exists():
            (work / name).symlink_to(ROOT / name)
    lines = {"copied": COPIED, "tests": tests}
    given = {key: "".join(f"\n    {one}" for one in value) for key, value in lines.items()}
    inside = file.replace("python/", "src/", 1)
    (work / "setup.cfg").write_text(CONFIG.format(file=inside, **given), "utf-8")
    # There before Python starts, or it remembers that the folder is none.
    (work / "mutants/src").mkdir(parents=True)
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "mutants"}
    environment["PYTHONPATH"] = str(work / "mutants/src")

    def mutmut(*arguments: str) -> str:
        command = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()", *arguments]
        done = subprocess.run(
            command, cwd=work, env=environment, check=False, stdout=subprocess.PIPE, text=True
        )
        if arguments[0] == "run" or done.returncode:
            (work / "run.log").write_text(done.stdout, "utf-8")
        if done.returncode:
            sys.exit(f"mutmut ended with status {done.returncode}: see {work}/run.log")
        return done.stdout

    pattern = f"*.x*{only}__mutmut_*" if only else "*"
    mutmut("run", "--max-children", str(children), *([pattern] if only else []))
    listed = re.findall(r"^ +(\S+): (.+)$", mutmut("results", "--all", "true"), re.MULTILINE)
    states = {name: state for name, state in listed if fnmatch.fnmatch(name, pattern)}
    print(file, dict(Counter(states.values())))
    alive = [name for name, state in states.items() if state not in KILLED]
    return Found(
        len(states) - len(alive), sorted(shown(name, mutmut("show", name)) for name in alive)
    )


def shown(name: str, diff: str) -> str:
    """Return the function of a mutant, and the lines that it takes away and adds."""
    # A method's name is behind its class's, between letters that look like two bars.
    function = re.sub(r"^.*\.x(?:_|\u01c1\w+\u01c1)|__mutmut_\d+$", "", name)
    lines = [line for line in diff.splitlines() if re.match(r"[-+](?![-+]{2} )", line)]
    return " ".join([f"{function}:", *(f"{line[0]} {line[1:].strip()}" for line in lines)])


def of_rust(file: str, tests: list[str], only: str, children: int) -> Found:
    """Run cargo-mutants on a file of the core, in a copy of the checkout."""
    work = folder_of(file)
    command = ["cargo", "mutants", "--package", "budgeteer", "--file", file, "--no-shuffle"]
    command += ["--jobs", str(children), "--output", str(work), "--colors", "never"]
    command += ["--re", only] if only else []
    # Only these tests are built, too. A property has fewer examples, as in Python.
    command += [f"--cargo-arg={one}" for one in tests if one.startswith("-")]
    command += ["--", "--", *(one for one in tests if not one.startswith("-"))]
    environment = {**os.environ, "CARGO_PROFILE_DEV_DEBUG": "0", "PROPTEST_CASES": "48"}
    done = subprocess.run(command, cwd=ROOT, check=False, env=environment)
    if done.returncode not in {0, 2, 3}:  # all caught, some missed, some timed out
        sys.exit(f"cargo-mutants ended with status {done.returncode}")
    states = {
        state: (work / f"mutants.out/{state}.txt").read_text("utf-8").splitlines()
        for state in ("caught", "timeout", "missed", "unviable")
    }
    print(file, {state: len(lines) for state, lines in states.items()})
    survivors = sorted(re.sub(r"^\S+ ", "", line) for line in states["missed"])
    return Found(len(states["caught"] + states["timeout"]), survivors)


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--only", default="", metavar="FUNCTION", help="mutate this one alone")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--record", action="store_true", help="write what was found")
    arguments = parser.parse_args()
    if arguments.only and arguments.record:
        parser.error("what is recorded is of whole files")
    record = json.loads(RECORD.read_text("utf-8"))
    failed = False
    for file in arguments.files:
        known = record[file]
        run = of_rust if file.endswith(".rs") else of_python
        found = run(file, known["tests"], arguments.only, arguments.children)
        reasons = known.get("survivors", {})
        new = [one for one in found.survivors if not reasons.get(one)]
        print(f"{file}: {found.killed} of {found.mutants} killed, {found.share:.1%}")
        for one in new:
            print(f"  no reason: {one}")
        failed |= bool(new) or found.share < SHARE
        if arguments.record:
            known |= {"mutants": found.mutants, "killed": found.killed}
            known["survivors"] = {one: reasons.get(one, "") for one in found.survivors}
            text = json.dumps(record, indent=2, ensure_ascii=False, sort_keys=True)
            RECORD.write_text(text + "\n", "utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
