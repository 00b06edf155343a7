"""
Mutants of the core that are compiled all at once: the environment says which one is on.

cargo-mutants lists what to change, and would build the core anew for each of 13,000 changes. Here
each place that is changed asks which mutant is on. So the tests are built once, it is noted which
places each of them reaches, and a mutant takes as long as these tests, up to the first that fails.
The tests of Python are asked in the same manner, through the extension module.

Left out is what cannot be chosen while the program runs: constants and the functions that make
them, results of `impl Trait`, what does not compile, tests, and code for other processors or
without a feature.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import tree_sitter_rust
from build_wheels import copy_checkout
from mutants_by_python import Question, Suite, bound
from tree_sitter import Language, Node, Parser

ROOT = Path(__file__).resolve().parent.parent
FEATURES = "budgeteer/json,budgeteer/tracing,budgeteer/vocabularies"
CARGO = ("--locked", "--package", "budgeteer", "--features", FEATURES)

SWITCH = """
use std::fs::File;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static ON: LazyLock<AtomicU32> = LazyLock::new(|| {
    let on = std::env::var("MUTANT").ok().and_then(|on| on.parse().ok());
    AtomicU32::new(on.unwrap_or(0))
});
static REACHED: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os("MUTANTS_REACHED")?;
    Some(File::options().create(true).append(true).open(path).unwrap())
});
static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

pub(crate) fn on(place: u32) -> u32 {
    let on = ON.load(Ordering::Relaxed);
    if on == 0
        && let Some(file) = &*REACHED
        && !SEEN[place as usize].swap(true, Ordering::Relaxed)
    {
        // At once: other threads write, too.
        (&*file).write_all(format!("{place}\n").as_bytes()).unwrap();
    }
    on
}

/// For a process that has loaded the core before it knows the mutant; all places are new to it.
#[unsafe(no_mangle)]
pub extern "C" fn switch_on(mutant: u32) {
    SEEN.iter().for_each(|seen| seen.store(false, Ordering::Relaxed));
    ON.store(mutant, Ordering::Relaxed);
}
"""

OPERATORS = {
    "BinaryOperator": {"binary_expression", "compound_assignment_expr"},
    "UnaryOperator": {"unary_expression"},
}
ELSEWHERE = re.compile(
    r'#\[cfg\((all\()?(test\b|not\((feature|target_arch) = |target_arch = "aarch64")'
)
FIELDS = {"field_initializer", "shorthand_field_initializer"}

ROUNDS = (0.2, 0.6, 2.0, 6.0, 20.0)
"""Tests are asked in rounds, up to these numbers of seconds together; no more behind the last."""

SLOW = 1.0
"""Tests that take more seconds come last."""

PYTHON = "pytest"
"""The program of a test of Python."""

FINDERS = 6
"""The number of tests that come first as they found other mutants of the file."""


@dataclass(frozen=True)
class Mutant:
    """A change of one place."""

    number: int
    file: str
    genre: str
    name: str
    replacement: str
    start: int
    end: int


class Test(NamedTuple):
    """A test that reaches a place."""

    seconds: float
    program: str
    name: str


class Source:
    """A file of Rust, and its mutants."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_bytes()
        self.tree = Parser(Language(tree_sitter_rust.language())).parse(self.text)
        self.places: dict[int, list[Mutant]] = {}

    def offset(self, place: dict[str, int]) -> int:
        """Return the byte at a line and a column, which counts characters; both from 1."""
        lines = self.text.split(b"\n")[: place["line"]]
        return sum(len(line) + 1 for line in lines[:-1]) + len(
            lines[-1].decode()[: place["column"] - 1].encode()
        )

    def node_of(self, mutant: Mutant) -> Node | None:
        """Return the node that is changed."""
        is_field = mutant.genre == "StructField"  # its span has the comma
        end = mutant.start + 1 if is_field else mutant.end
        node = self.tree.root_node.descendant_for_byte_range(mutant.start, end)
        if mutant.genre in OPERATORS:
            parent = node and node.parent
            return parent if parent and parent.type in OPERATORS[mutant.genre] else None

        def is_it(node: Node) -> bool:
            parent = node.parent and node.parent.type
            match mutant.genre:
                case "FnValue":
                    return node.type == "block" and parent == "function_item"
                case "MatchArmGuard":
                    return parent == "match_pattern"
                case "MatchArm":
                    return node.type == "match_arm"
                case _:
                    return node.type in FIELDS

        while node and not is_it(node):
            node = node.parent
        return node

    def is_elsewhere(self, mutant: Mutant) -> bool:
        """Return whether it is in a test, or not compiled here."""
        node = self.tree.root_node.descendant_for_byte_range(mutant.start, mutant.end)
        while node:
            before = node.prev_sibling
            while before and before.type in ("attribute_item", "line_comment"):
                if ELSEWHERE.match(self._between(before.start_byte, before.end_byte)):
                    return True
                before = before.prev_sibling
            node = node.parent
        return False

    def put(self, mutant: Mutant) -> int | None:
        """Put a mutant at its place, and return the number of that; None where there is none."""
        node = self.node_of(mutant)
        if node is None:
            return None
        those = self.places.setdefault(node.id, [])
        those.append(mutant)
        return those[0].number

    def written(self) -> str:
        """Return the text with all mutants."""
        return self._shown(self.tree.root_node)

    def _between(self, start: int, end: int) -> str:
        return self.text[start:end].decode()

    def _shown(self, node: Node, start: int | None = None) -> str:
        """Return the text of a node, or of what is in it from a byte on, with all mutants."""
        mutants = self.places.get(node.id, []) if start is None else []
        if not mutants:
            parts, at = [], node.start_byte if start is None else start
            for child in node.children:
                if child.start_byte >= at:
                    parts += [self._between(at, child.start_byte), self._shown(child)]
                    at = child.end_byte
            return "".join([*parts, self._between(at, node.end_byte)])
        rest = self._shown(node, node.start_byte)
        place = mutants[0].number
        match mutants[0].genre:
            case "FnValue":
                early = {one.number: f"return {one.replacement};" for one in mutants}
                return f"{{ {chosen(place, early, '')} {rest[1:]}"
            case "MatchArm":
                return self._without_arm(node, place)
            case "StructField":
                name = self._between(node.children[0].start_byte, node.children[0].end_byte)
                siblings = node.parent.children if node.parent else []
                base = next(one for one in siblings if one.type == "base_field_initializer")
                other = self._between(base.start_byte + 2, base.end_byte)
                value = name if node.type.startswith("short") else rest.split(":", 1)[1]
                return f"{name}: {chosen(place, {place: f'({other}).{name}'}, value)}"
            case _:
                changed = {one.number: self._changed(node, one) for one in mutants}
                return f"({chosen(place, changed, rest)})"

    def _changed(self, node: Node, mutant: Mutant) -> str:
        """Return an expression with one mutant on."""
        if mutant.genre == "MatchArmGuard":
            return mutant.replacement
        before = self._between(node.start_byte, mutant.start)
        if mutant.genre == "BinaryOperator" and re.search(r"\bas \w+\s*$", before):
            before = f"({before}) "  # else a < would begin the arguments of a type
        return f"{before}{mutant.replacement}{self._between(mutant.end, node.end_byte)}"

    def _without_arm(self, node: Node, place: int) -> str:
        """Return an arm that a guard switches off."""
        pattern = next(one for one in node.children if one.type == "match_pattern")
        test = f"/*M{place}*/crate::switched::on({place}) != {place}/*E{place}*/"
        before = self._between(node.start_byte, pattern.start_byte)
        behind = self._shown(node, pattern.end_byte)
        guard = next((one for one in pattern.children if one.type == "if"), None)
        if guard is None:
            return f"{before}{self._shown(pattern)} if {test} {behind}"
        bare = self._between(pattern.start_byte, guard.start_byte)
        return f"{before}{bare}if {test} && ({self._shown(pattern, guard.end_byte)}) {behind}"


def chosen(place: int, changed: dict[int, str], rest: str) -> str:
    """Return what is one of the changed texts if that mutant is on."""
    arms = "".join(
        f"{one} => {{ /*M{one}*/ {text} /*E{one}*/ }}\n" for one, text in changed.items()
    )
    choice = f"match crate::switched::on({place}) {{ {arms} _ => {{ {rest} }} }}"
    return f"/*M{place}s*/{choice}/*E{place}s*/"


def blamed(message: dict, copy: Path) -> tuple[int, bool] | None:
    """Return the mutant that an error is about, or a whole place, and whether it is that."""
    if (message["code"] or {}).get("code") == "E0004":  # an arm that nothing stands in for
        span = message["spans"][0]
        text = (copy / span["file_name"]).read_bytes()
        arm = re.compile(rb"/\*M(\d+)\*/crate::switched").search(text, span["byte_end"])
        return (int(arm[1]), False) if arm else None
    spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
    spans += [span for child in message["children"] for span in child["spans"]]
    for span in spans:
        while span["file_name"].startswith("/") and span.get("expansion"):
            span = span["expansion"]["span"]  # noqa: PLW2901
        if span["file_name"].startswith("/"):
            continue
        text = (copy / span["file_name"]).read_bytes()
        for suffix in (b"", b"s"):
            found = None
            for begin in re.finditer(rb"/\*M(\d+)%s\*/" % suffix, text[: span["byte_start"] + 1]):
                end = text.find(b"/*E%s%s*/" % (begin[1], suffix), begin.end())
                if end + 1 >= span["byte_end"]:
                    found = int(begin[1])
            if found is not None:
                return found, suffix == b"s"
    return None


class Core:
    """A copy of the checkout in which mutants can be switched on."""

    def __init__(self, work: Path, files: list[str], workers: int) -> None:
        self.work, self.workers = work, workers
        self.copy = work / "checkout"
        self.place_of: dict[int, int] = {}
        self.left_out: dict[int, str] = {}
        self.tests: dict[int, list[Test]] = defaultdict(list)
        self.reached: Counter[tuple[str, str, str]] = Counter()
        self.finders: dict[str, list[Test]] = defaultdict(list)
        self.suites: SimpleQueue[Suite] = SimpleQueue()
        copy_checkout(self.copy)
        self.mutants = self._listed(files)

    def _listed(self, files: list[str]) -> list[Mutant]:
        command = ["cargo", "mutants", "--list", "--json", "--package", "budgeteer"]
        command += ["--exclude=**/neon.rs", *(f"--file={file}" for file in files)]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        mutants, sources = [], {}
        for number, one in enumerate(json.loads(done.stdout), 1):
            file = one["file"]
            source = sources.setdefault(file, Source(ROOT / file))
            start, end = (source.offset(one["span"][edge]) for edge in ("start", "end"))
            name = re.sub(r"^\S+ ", "", one["name"])
            mutant = Mutant(number, file, one["genre"], name, one["replacement"], start, end)
            mutants.append(mutant)
            returned = (one["function"] or {}).get("return_type", "")
            if mutant.genre == "FnValue" and returned.startswith("-> impl"):
                self.left_out[number] = "impl"
            if source.is_elsewhere(mutant):
                self.left_out[number] = "elsewhere"
        return mutants

    def _write(self) -> None:
        """Write the files with all mutants that are not left out."""
        self.place_of.clear()
        sources: dict[str, Source] = {}
        for one in self.mutants:
            source = sources.setdefault(one.file, Source(ROOT / one.file))
            if one.number in self.left_out:
                continue
            place = source.put(one)
            if place is None:
                self.left_out[one.number] = "unplaced"
            else:
                self.place_of[one.number] = place
        texts = {file: source.written() for file, source in sources.items()}
        root = "rust/core/src/lib.rs"
        texts[root] = texts.get(root, (ROOT / root).read_text("utf-8")) + "\nmod switched;\n"
        switch = SWITCH.lstrip().replace("COUNT", str(len(self.mutants) + 1))
        texts["rust/core/src/switched.rs"] = switch
        for file, text in texts.items():
            path = self.copy / file
            if not path.exists() or path.read_text("utf-8") != text:
                path.write_text(text, "utf-8")

    def _cargo(self, *arguments: str) -> list[dict]:
        """Run cargo, and return what it says."""
        environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(self.work / "target"),
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
            "RUSTFLAGS": "--cap-lints=allow",
            "PYO3_PYTHON": sys.executable,
        }
        done = subprocess.run(
            ["cargo", *arguments, *CARGO, "--quiet", "--message-format=json"],
            cwd=self.copy,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode and not errors(rows):
            sys.exit(done.stderr)
        return rows

    def compile(self) -> dict[str, str]:
        """Build the tests, without the mutants that do not compile; return their programs."""
        for checked in (("check", "--lib"), ("check", "--lib", "--tests")):
            while True:
                self._write()
                found = errors(self._cargo(*checked))
                if not found:
                    break
                known = len(self.left_out)
                for message in found:
                    self._leave_out(message)
                if len(self.left_out) == known:
                    sys.exit("".join(message["rendered"] for message in found))
        # At once, so that the core is built once for both.
        rows = self._cargo("build", "--lib", "--tests", "--package", "budgeteer-python")
        built = [row for row in rows if row.get("executable") and row["profile"]["test"]]
        (library,) = (row["filenames"][0] for row in rows if is_extension(row))
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        shutil.copy(library, self.copy / f"python/budgeteer/_native{suffix}")
        return {row["target"]["name"]: row["executable"] for row in built}

    def _leave_out(self, message: dict) -> None:
        found = blamed(message, self.copy)
        if found is None:
            return
        number, is_place = found
        those = [one for one, place in self.place_of.items() if place == number]
        for one in those if is_place else [number]:
            self.left_out.setdefault(one, (message["code"] or {}).get("code", "syntax"))

    @property
    def folder(self) -> Path:
        """Where tests run, as under cargo."""
        return self.copy / "rust/core"

    def look(self, programs: dict[str, str]) -> None:
        """Note which places each test reaches, and how long it takes."""
        for number in range(self.workers):
            reached = self.work / f"reached-{number}"
            self.suites.put(Suite(self.copy, reached, environment()))
        jobs = [(one, test) for one in programs.values() for test in self._tests_of(one)]
        with self._suite() as suite:
            jobs += [(PYTHON, test) for test in suite.tests]
        with ThreadPoolExecutor(self.workers) as pool:
            for job, found in zip(jobs, pool.map(self._reached, jobs), strict=True):
                if found is None:
                    print(f"without a mutant {job[1]} does not pass here")
                    continue
                seconds, places = found
                for place in places:
                    self.tests[place].append(Test(seconds, *job))
                    self.reached[(*job, self.mutants[place - 1].file)] += 1

    @contextmanager
    def _suite(self) -> Iterator[Suite]:
        """Give the tests of Python to one thread."""
        suite = self.suites.get()
        try:
            yield suite
        finally:
            self.suites.put(suite)

    def _tests_of(self, program: str) -> list[str]:
        command = [program, "--list"]
        done = subprocess.run(
            command, cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True
        )
        return re.findall("^(.+): test$", done.stdout, re.MULTILINE)

    def _reached(self, job: tuple[str, str]) -> tuple[float, set[int]] | None:
        """Return how long a test takes, and the places that it reaches; None if it fails."""
        program, test = job
        if program == PYTHON:
            with self._suite() as suite:
                return suite.look(test)
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            path = Path(folder, "reached")
            process = subprocess.Popen(
                [program, "--exact", "--test-threads=1", test],
                cwd=self.folder,
                env=environment(MUTANTS_REACHED=str(path)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, process.returncode, used = os.wait4(process.pid, 0)
            places = path.read_text("ascii").split() if path.exists() else []
        if process.returncode:
            return None
        return used.ru_utime + used.ru_stime, {int(one) for one in places}

    def ask(self, mutant: Mutant) -> str:
        """Return what the tests that reach a mutant make of it."""
        reaching = self.tests[self.place_of[mutant.number]]
        # First what has found others of this file, then the quickest, for the places of the file
        # that they reach.
        finders = [test for test in self.finders[mutant.file] if test in reaching][:FINDERS]

        def cost(test: Test) -> tuple[bool, float]:
            places = self.reached[test.program, test.name, mutant.file]
            return test.seconds > SLOW, (test.seconds + 0.01) / places

        reaching = sorted(reaching, key=cost)
        rounds: dict[int, dict[str, list[Test]]] = defaultdict(lambda: defaultdict(list))
        seconds = 0.0
        for test in [*finders, *(test for test in reaching if test not in finders)]:
            nth = bisect_left(ROUNDS, seconds + test.seconds)
            if nth < len(ROUNDS):
                rounds[nth][test.program].append(test)
                seconds += test.seconds
        state = "missed" if reaching else "unreached"
        for _, programs in sorted(rounds.items()):
            for tests in programs.values():
                state = self._run(tests, mutant)
                if state != "missed":
                    return state
        return state

    def _run(self, tests: list[Test], mutant: Mutant) -> str:
        """Run some tests of one program until one fails."""
        # The machine may be busy.
        seconds = 5 + 6 * sum(test.seconds for test in tests)
        if tests[0].program == PYTHON:
            question = Question([test.name for test in tests], mutant.number, seconds)
            with self._suite() as suite:
                answer = suite.ask(question)
            failed, is_late = answer.failed, answer.is_late
        else:
            failed, is_late = self._failed(tests, mutant, seconds)
        found = [test for test in tests if test.name == failed]
        if found:
            finders = self.finders[mutant.file]
            self.finders[mutant.file] = found + [one for one in finders if one not in found]
        return "caught" if failed else "timeout" if is_late else "missed"

    def _failed(
        self, tests: list[Test], mutant: Mutant, seconds: float
    ) -> tuple[str | None, bool]:
        """Return the first test of a Rust program that fails, and whether it takes too long."""
        process = subprocess.Popen(
            [tests[0].program, "--exact", "--test-threads=1", *(test.name for test in tests)],
            cwd=self.folder,
            env=environment(MUTANT=str(mutant.number)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        is_late = threading.Event()

        def end() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        def end_late() -> None:
            is_late.set()
            end()

        timer = threading.Timer(seconds, end_late)
        timer.start()
        with process:
            shown = (re.match("test (.+) [.]{3} FAILED$", line) for line in process.stdout or ())
            failed = next((one[1] for one in shown if one), None)
            timer.cancel()
            if failed is not None:
                end()
        if failed is None and not is_late.is_set() and process.returncode:
            failed = "the program"
        return failed, is_late.is_set()


def environment(**more: str) -> dict[str, str]:
    """Return the environment of tests; a property has fewer examples, as in Python."""
    proptest = {"CASES": "48", "DISABLE_FAILURE_PERSISTENCE": "1", "MAX_SHRINK_ITERS": "0"}
    return {**os.environ, **{f"PROPTEST_{name}": one for name, one in proptest.items()}, **more}


def is_extension(row: dict) -> bool:
    """Return whether what cargo says is of the extension module."""
    return row["reason"] == "compiler-artifact" and row["target"]["name"] == "_native"


def errors(rows: list[dict]) -> list[dict]:
    """Return the errors that stand somewhere."""
    messages = [row["message"] for row in rows if row["reason"] == "compiler-message"]
    return [one for one in messages if one["level"] == "error" and one["spans"]]


def asked(
    work: Path, files: list[str], only: str, workers: int
) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """
    Ask the tests of all mutants of some files.

    Yields each file and its mutants by what became of them: `caught`, `timeout`, `missed` by all
    tests that reach it, `unreached` by any, or `left out`.
    """
    core = Core(work, files, workers)
    core.look(core.compile())
    print(f"{len(core.place_of)} mutants; left out: {dict(Counter(core.left_out.values()))}")
    bound()

    def state_of(mutant: Mutant) -> str:
        return core.ask(mutant) if mutant.number in core.place_of else "left out"

    those = [one for one in core.mutants if only in one.name]
    those.sort(key=lambda one: files.index(one.file))
    with ThreadPoolExecutor(workers) as pool:
        states = zip(those, pool.map(state_of, those), strict=True)
        for file, some in groupby(states, key=lambda found: found[0].file):
            found = defaultdict(list)
            for one, state in some:
                found[state].append(one.name)
            yield file, found
    while not core.suites.empty():
        core.suites.get().close()
