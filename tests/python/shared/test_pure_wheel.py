"""The pure-Python wheel: the same package, whose only backend is the reference."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from budgeteer import get_counter
from budgeteer._reference._count import bpe

ROOT = Path(__file__).parents[3]
DATE = "1795000000"

PACK = """
import sys
from budgeteer import get_counter, pack

packing = pack("remote work", ["Lunch is at noon.", "Remote work needs a VPN."], 8,
               counter="chars_div4")
print(packing.text)
assert not [name for name in sys.modules if name.startswith("budgeteer._native")]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the wheel; the value is its file."""
    out = tmp_path_factory.mktemp("pure")
    command = [sys.executable, ROOT / "scripts/build_pure_wheel.py", "--out", out]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": DATE})
    (wheel,) = out.iterdir()
    return wheel


@pytest.fixture(scope="module")
def run(built, tmp_path_factory):
    """Return a function that runs code with the package in the wheel, and nothing said."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder)

    def run(code, **env):
        kept = {name: value for name, value in os.environ.items() if name != "BUDGETEER_BACKEND"}
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(folder), **env},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_it_needs_no_variable(run):
    """It packs without the variable, and without a native module."""
    done = run(PACK)
    assert ("Remote work needs a VPN.\n", "") == (done.stdout, done.stderr)


def test_no_native_backend_is_promised(run):
    """Who asks for the native backend is told that there is none."""
    done = run(PACK, BUDGETEER_BACKEND="native")
    assert done.returncode != 0
    assert "native module cannot be loaded" in done.stderr


def test_its_vocabularies(run):
    """They are those of the other wheels: each counts alike, offline."""
    text = "Für Qwen: naïve tokens, 中文 and code(); 12345\n\n\t end"
    names = list(bpe.NAMES.values())
    done = run(
        "from budgeteer import get_counter\n"
        f"print([get_counter(name).count({text!r}) for name in {names}])"
    )
    counts = [get_counter(name).count(text) for name in names]
    assert (f"{counts}\n", "") == (done.stdout, done.stderr)


def test_what_it_cannot_count(run):
    """Claude's counts are native: the error says so."""
    done = run("from budgeteer import get_counter\nget_counter('claude').count('a')")
    assert "CounterError" in done.stderr
    assert "without the native module" in done.stderr


def test_what_it_counts_with_a_package(run):
    """An encoding that is split by regex is named where that is not installed."""
    done = run(
        "import sys\nsys.modules['regex'] = None\n"
        "from budgeteer import get_counter\nget_counter('qwen2').count('a')"
    )
    assert "CounterError: without the native backend, 'qwen2' is split by regex" in done.stderr


def test_its_tags_and_files(built):
    """It is for every Python 3, has the licences and no binary, and no files of caches."""
    assert built.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
        backend = archive.read("budgeteer/_backend.py").decode()
        metadata = archive.read(next(n for n in names if n.endswith("/METADATA"))).decode()
    sources = {
        path.relative_to(ROOT / "python").as_posix()
        for path in (ROOT / "python/budgeteer").rglob("*.py")
    }

    assert 'DEFAULT = "reference"\n' in backend
    assert sources <= set(names)
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc"))]
    assert "License-Expression: MIT AND Apache-2.0 AND BSD-3-Clause\n" in metadata
    assert [name for name in names if name.endswith("/LICENSE-snowball")]


def test_the_same_sources_give_the_same_bytes(built, tmp_path):
    """A second build is the same file."""
    command = [sys.executable, ROOT / "scripts/build_pure_wheel.py", "--out", tmp_path]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": DATE})
    (again,) = tmp_path.iterdir()
    assert built.read_bytes() == again.read_bytes()
