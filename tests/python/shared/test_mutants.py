"""What `scripts/mutants.py` found last, in `tests/mutants.json`, and how it changes Rust."""

import contextlib
import importlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORD = json.loads((ROOT / "tests/mutants.json").read_text("utf-8"))
ASKED = [file for file, found in RECORD.items() if "mutants" in found]

PROGRAM = """
mod switched;

#[derive(Default)]
struct Place {
    at: u32,
    end: u32,
}

fn name(n: u32) -> &'static str {
    match n {
        0 => "none",
        1 if n + 1 > 1 => "one",
        _ => "many",
    }
}

fn is_small(n: u32) -> bool {
    !(n as u32 > 9)
}

fn main() {
    for n in [0, 1, 9, 10] {
        let mut place = Place { at: n, ..Place::default() };
        place.end += 2;
        print!("{} {} {} {}, ", name(n), is_small(n), place.at, place.end);
    }
}
"""

CHANGES = [
    ("FnValue", '"x"', PROGRAM[PROGRAM.index("match n {") : PROGRAM.index("\n}\n\nfn is_small")]),
    ("MatchArm", "", '0 => "none",'),
    ("MatchArmGuard", "false", "n + 1 > 1"),
    ("BinaryOperator", "==", "> 1"),
    ("BinaryOperator", "<", "> 9"),
    ("UnaryOperator", "", "!(n"),
    ("StructField", "", "at: n,"),
    ("BinaryOperator", "-=", "+= 2"),
]


@pytest.mark.parametrize("file", RECORD)
def test_files_and_their_tests_are_there(file):
    """What is mutated exists, and so do the files of tests that it is given."""
    assert (ROOT / file).is_file()
    assert all((ROOT / test).is_file() for test in RECORD[file].get("tests", []))


@pytest.mark.parametrize("file", [file for file in ASKED if not RECORD[file].get("open")])
def test_nine_of_ten_mutants_are_killed(file):
    """The tests of a file that was mutated find nine of ten changes; each other has a reason."""
    found = RECORD[file]

    assert found["killed"] >= 0.9 * found["mutants"] > 0
    assert len(found["survivors"]) <= found["mutants"] - found["killed"]
    assert all(found["survivors"].values())


@pytest.mark.parametrize("file", ASKED)
def test_each_survivor_has_a_reason_or_is_open(file):
    """What survives is listed: with a reason, or as what nobody has looked at."""
    found = RECORD[file]
    unexplained = found.get("open", [])

    assert not {*unexplained} & {*found["survivors"]}
    assert len(unexplained) + len(found["survivors"]) <= found["mutants"] - found["killed"]


def build(folder, program, changes, *arguments):
    """Build a program of Rust in which each of its changes can be switched on."""
    scripts = importlib.import_module("mutants_of_rust")
    main = folder / "main.rs"
    main.write_text(program, "utf-8")
    source = scripts.Source(main)
    for number, (genre, replacement, where) in enumerate(changes, 1):
        start = program.index(where)
        size = len(where) if genre not in scripts.OPERATORS else len(where.split()[0].rstrip("(n"))
        mutant = scripts.Mutant(number, "", genre, "", replacement, start, start + size)
        assert source.put(mutant) is not None
    main.write_text(source.written(), "utf-8")
    switch = scripts.SWITCH.replace("COUNT", str(len(changes) + 1))
    (folder / "switched.rs").write_text(switch, "utf-8")
    subprocess.run(["rustc", "--edition=2024", *arguments, "main.rs"], cwd=folder, check=True)


def test_a_mutant_is_switched_on_while_the_program_runs(tmp_path, monkeypatch):
    """Each kind of change is made of one program, and without a number it does as before."""
    if shutil.which("rustc") is None:
        pytest.skip("needs rustc")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    build(tmp_path, PROGRAM, CHANGES)

    def answer(number, reached=None):
        told = {"MUTANT": str(number)} | ({"MUTANTS_REACHED": str(reached)} if reached else {})
        command, told = [tmp_path / "main"], {**os.environ, **told}
        done = subprocess.run(command, check=False, env=told, capture_output=True, text=True)
        return done.stdout.removesuffix(", ") if done.returncode == 0 else "panic"

    plain = "none true 0 2, one true 1 2, many true 9 2, many false 10 2"
    assert answer(0, tmp_path / "reached") == plain
    assert len((tmp_path / "reached").read_text("ascii").split()) == len(CHANGES) - 1
    assert [answer(number) for number in range(1, len(CHANGES) + 1)] == [
        "x true 0 2, x true 1 2, x true 9 2, x false 10 2",
        "many true 0 2, one true 1 2, many true 9 2, many false 10 2",
        "none true 0 2, many true 1 2, many true 9 2, many false 10 2",
        "none true 0 2, many true 1 2, many true 9 2, many false 10 2",
        "none false 0 2, one false 1 2, many true 9 2, many true 10 2",
        "none false 0 2, one false 1 2, many false 9 2, many true 10 2",
        "none true 0 2, one true 0 2, many true 0 2, many false 0 2",
        "panic",
    ]


HALF = """
mod switched;

#[unsafe(no_mangle)]
pub extern "C" fn half(n: u32) -> u32 {
    n / 2
}
"""

TESTS = """
import ctypes

from budgeteer import _native

half = ctypes.CDLL(_native.__file__).half


def test_none():
    assert True


def test_nought():
    assert half(0) == 0


def test_four():
    assert half(4) == 2


def test_endless():
    while half(6) != 3:
        pass
"""


def test_tests_of_python_are_asked(tmp_path, monkeypatch):
    """A process for each question: what a test reaches, what fails first, what takes too long."""
    if shutil.which("rustc") is None or not hasattr(os, "pidfd_open"):
        pytest.skip("needs rustc and Linux")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    by_python = importlib.import_module("mutants_by_python")
    change = ("BinaryOperator", "*", "/ 2")
    build(tmp_path, HALF, [change], "--crate-type=cdylib", "--crate-name=half")
    (library,) = tmp_path.glob("*half.*")
    package = tmp_path / "python/budgeteer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_pytest_plugin.py").touch()  # pytest asks for it where budgeteer is installed
    (package / "_native.py").write_text(f"__file__ = {str(library)!r}", "utf-8")
    for room in by_python.ROOMS:
        (tmp_path / "tests/python" / room).mkdir(parents=True)
    file = f"tests/python/{by_python.ROOMS[0]}/test_half.py"
    (tmp_path / file).write_text(TESTS, "utf-8")

    with contextlib.closing(
        by_python.Suite(tmp_path, tmp_path / "reached", {**os.environ})
    ) as suite:
        none, nought, four, endless = suite.tests
        looked = [suite.look(test) for test in suite.tests]
        answers = [
            suite.ask(by_python.Question(tests, mutant, 5))
            for tests, mutant in [
                ([nought, four, endless], 1),
                ([nought, endless], 1),
                ([none, nought], 1),
                ([nought, four, endless], 0),
            ]
        ]

    assert [reached for _, reached in looked] == [set(), {1}, {1}, {1}]
    found = [(answer.failed, answer.is_late) for answer in answers]
    assert found == [(four, False), (None, True), (None, False), (None, False)]
