"""What `scripts/mutants.py` found last, in `tests/mutants.json`, and how it changes Rust."""

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


def test_a_mutant_is_switched_on_while_the_program_runs(tmp_path, monkeypatch):
    """Each kind of change is made of one program, and without a number it does as before."""
    if shutil.which("rustc") is None:
        pytest.skip("needs rustc")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    scripts = importlib.import_module("mutants_of_rust")
    main = tmp_path / "main.rs"
    main.write_text(PROGRAM, "utf-8")
    source = scripts.Source(main)
    for number, (genre, replacement, where) in enumerate(CHANGES, 1):
        start = PROGRAM.index(where)
        size = len(where) if genre not in scripts.OPERATORS else len(where.split()[0].rstrip("(n"))
        mutant = scripts.Mutant(number, "", genre, "", replacement, start, start + size)
        assert source.put(mutant) is not None
    main.write_text(source.written(), "utf-8")
    switch = scripts.SWITCH.replace("COUNT", str(len(CHANGES) + 1))
    (tmp_path / "switched.rs").write_text(switch, "utf-8")
    subprocess.run(["rustc", "--edition=2024", "main.rs"], cwd=tmp_path, check=True)

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
