"""
Build the pure-Python wheel, whose only backend is the reference.

    python scripts/build_pure_wheel.py [--out FOLDER]

It is for Pythons that load no extension module of this package: Pyodide and PyPy. Its metadata are
those of the other wheels, of pyproject.toml; hatchling builds it, as maturin cannot without Rust.
The sources are the same but for one word in `_backend.py`: here an unset `BUDGETEER_BACKEND` means
the reference. The vocabularies, which elsewhere are in the native module, are files. The same
sources give the same bytes; `SOURCE_DATE_EPOCH` sets their date.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = '[build-system]\nrequires = ["hatchling>=1.27,<2"]\nbuild-backend = "hatchling.build"\n'
TARGET = '\n[tool.hatch.build.targets.wheel]\npackages = ["python/budgeteer"]\n'
NATIVE = ("__pycache__", "*.pyc", "*.so", "*.pyd", "_native.pyi")


def replaced(pattern: str, by: str, text: str) -> str:
    """Return a text with the one place of *pattern* replaced."""
    text, count = re.subn(pattern, lambda _: by, text, flags=re.MULTILINE | re.DOTALL)
    if count != 1:
        raise SystemExit(f"{pattern!r} is {count} times where it should be once")
    return text


def copy(to: Path) -> None:
    """Copy what the wheel is built from, and say how it is built."""
    shutil.copytree(ROOT / "python", to / "python", ignore=shutil.ignore_patterns(*NATIVE))
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pyproject = replaced('^    "THIRD-PARTY.txt",\n', "", pyproject)  # what is in native code
    found = re.search(r"^license-files = \[(.*?)\]", pyproject, re.MULTILINE | re.DOTALL)
    for name in ("README.md", *re.findall(r'"(.*?)"', found[1] if found else "")):
        for file in ROOT.glob(name):
            (to / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to / file.relative_to(ROOT))
    vocabularies = to / "python/budgeteer/_reference/_count/vocabularies"
    vocabularies.mkdir()
    for file in (ROOT / "rust/vocab/data").glob("*.bin"):
        if not file.name.startswith("claude"):  # native code alone counts for it
            shutil.copy(file, vocabularies)
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = ".+?"$', manifest, re.MULTILINE)
    pyproject = replaced(r"\[build-system\].*?(?=^\[)", f"{BUILD}\n", pyproject)
    pyproject = replaced(r'^dynamic = \["version"\]$', version[0] if version else "", pyproject)
    (to / "pyproject.toml").write_text(pyproject + TARGET, encoding="utf-8")
    backend = to / "python/budgeteer/_backend.py"
    text = backend.read_text(encoding="utf-8")
    backend.write_text(
        replaced('^DEFAULT = "native"$', 'DEFAULT = "reference"', text), encoding="utf-8"
    )


def main() -> None:
    """Build the wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="FOLDER")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(folder))
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        subprocess.run([*command, out, folder], check=True)


if __name__ == "__main__":
    main()
