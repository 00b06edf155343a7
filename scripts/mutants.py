"""
Change one expression of a file at a time, and count how many such mutants the tests find.

    pip install --group test --group mutants
    python scripts/mutants.py FILE... [--only FUNCTION] [--children N] [--record]

mutmut mutates a file of Python; `tests/mutants.json` says which tests reach it: only those run.
cargo-mutants says how to mutate a file of Rust: see `mutants_of_rust.py`. The record also has what
was found last, and each mutant that survives with the reason why no test finds it; `open` are
those that nobody has looked at. The exit status is 1 where fewer than 90 % are killed, or one is
open. `--record` writes what was found.

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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mutants_of_rust

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


def of_rust(files: list[str], only: str, children: int) -> Iterator[tuple[str, Found]]:
    """Ask the tests of both languages of the mutants of some files."""
    (WORK / "rust").mkdir(parents=True, exist_ok=True)
    for file, states in mutants_of_rust.asked(WORK / "rust", files, only, children):
        print(file, {state: len(names) for state, names in states.items()})
        survivors = sorted(states["missed"] + states["unreached"])
        yield file, Found(len(states["caught"] + states["timeout"]), survivors)


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
    files = arguments.files
    of_core = [file for file in files if file.endswith(".rs")]
    failed = False

    def results() -> Iterator[tuple[str, Found]]:
        for file in files:
            if file not in of_core:
                tests = record[file]["tests"]
                yield file, of_python(file, tests, arguments.only, arguments.children)
        if of_core:
            yield from of_rust(of_core, arguments.only, arguments.children)

    for file, found in results():
        known = record.setdefault(file, {})
        reasons = known.get("survivors", {})
        new = [one for one in found.survivors if not reasons.get(one)]
        print(f"{file}: {found.killed} of {found.mutants} killed, {found.share:.1%}")
        for one in new:
            print(f"  no reason: {one}")
        failed |= bool(new) or found.share < SHARE
        if arguments.record:
            known |= {"mutants": found.mutants, "killed": found.killed}
            known["survivors"] = {one: reasons[one] for one in found.survivors if reasons.get(one)}
            known["open"] = sorted(set(new))
            text = json.dumps(record, indent=2, ensure_ascii=False, sort_keys=True)
            RECORD.write_text(text + "\n", "utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
