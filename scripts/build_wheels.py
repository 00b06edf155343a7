"""
Build the source distribution and the wheels of a release, and check what was built.

    pip install --group release
    python scripts/build_wheels.py [--python PYTHON ...] [--musl] [--twice] [--out FOLDER]

The source distribution has the crates it needs and the tests. Everything else is built from it,
offline, as a user without a registry would: a wheel for each PYTHON (an interpreter; this one,
unless told otherwise). On Linux, zig links for manylinux2014, or with `--musl` for musllinux 1.2.

Each wheel must be below 8 MB and hold its licences, the notices of its crates and an SBOM that
names them; `twine check --strict` and auditwheel must accept it; installed into an environment of
its own it must pass `try_wheel.py`. `--twice` builds all of it again and compares the bytes. The
release workflow runs this script, and `.ci/release` does so for one Python.

Without a PYTHON behind `--python` only the source distribution is built.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LARGEST = 8_000_000
CLOCK = "SOURCE_DATE_EPOCH"
FOLDER = Path(tempfile.gettempdir()) / "budgeteer-wheels"
"""Where it is built. It is in the SBOM, so that it is always the same."""


def main() -> None:
    """Build, check and list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--python", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--musl", action="store_true", help="for musllinux: not installed here")
    parser.add_argument("--twice", action="store_true", help="and compare the bytes")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="FOLDER")
    given = parser.parse_args()
    os.environ.setdefault(CLOCK, output("git", "log", "-1", "--format=%ct", cwd=ROOT))
    # maturin finds zig in the environment that is active.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    target = target_of(musl=given.musl)
    given.out.mkdir(parents=True, exist_ok=True)
    built = build(given.python, target, given.out.resolve())
    for wheel in built[1:]:
        check(wheel, target)
        if not given.musl:
            try_out(wheel, given.python[built.index(wheel) - 1])
    run(sys.executable, "-m", "twine", "check", "--strict", *built)
    if given.twice:
        with tempfile.TemporaryDirectory() as folder:
            again = build(given.python, target, Path(folder))
            differ = [
                one.name for one, other in zip(built, again, strict=True) if differs(one, other)
            ]
        if differ:
            raise SystemExit(f"a second build has other bytes: {', '.join(differ)}")
    for file in built:
        print(f"{digest(file)}  {file.stat().st_size:>9,}  {file.name}")


def run(*command: Any, **options: Any) -> None:
    """Run a command that must succeed."""
    subprocess.run(list(map(str, command)), check=True, **options)


def output(*command: Any, **options: Any) -> str:
    """Return what a command prints."""
    command = tuple(map(str, command))
    return subprocess.check_output(command, text=True, **options).strip()


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def differs(one: Path, other: Path) -> bool:
    """Return whether two files differ, in name or bytes."""
    return one.name != other.name or digest(one) != digest(other)


def target_of(*, musl: bool) -> list[str]:
    """Return the arguments that say what to build for."""
    if sys.platform != "linux":
        return []
    triple = f"{platform.machine()}-unknown-linux-{'musl' if musl else 'gnu'}"
    libraries = output("rustc", "--print", "target-libdir", "--target", triple)
    if not Path(libraries).is_dir():
        raise SystemExit(f"no standard library for it: rustup target add {triple}")
    compatibility = "musllinux_1_2" if musl else "manylinux2014"
    return ["--zig", "--target", triple, "--compatibility", compatibility]


def build(pythons: list[str], target: list[str], out: Path) -> list[Path]:
    """Return the source distribution and a wheel for each Python, made of it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    source = source_distribution(FOLDER / "checkout", out)
    with tarfile.open(source) as archive:
        archive.extractall(FOLDER, filter="data")
    unpacked = FOLDER / source.name.removesuffix(".tar.gz")
    # No registry is there to ask, and the module does not say where it was built.
    env = {
        **os.environ,
        "CARGO_HOME": str(FOLDER / "cargo"),
        "CARGO_NET_OFFLINE": "true",
        "RUSTFLAGS": f"--remap-path-prefix={unpacked}=. {os.environ.get('RUSTFLAGS', '')}".strip(),
    }
    wheels: list[Path] = []
    for python in pythons:
        new = FOLDER / f"wheel-{len(wheels)}"
        run(
            *(sys.executable, "-m", "maturin", "build", "--release", "--locked", *target),
            "--compression-level=9",
            *("--interpreter", python, "--out", new),
            cwd=unpacked,
            env=env,
        )
        wheels += [Path(shutil.copy(wheel, out)) for wheel in new.iterdir()]
    shutil.rmtree(FOLDER, ignore_errors=True)
    return [source, *wheels]


def copy_checkout(to: Path) -> None:
    """Copy the files that git knows, as they are now."""
    for name in output("git", "ls-files", cwd=ROOT).splitlines():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, to / name)


def source_distribution(checkout: Path, out: Path) -> Path:
    """Build it of the files that git knows, with the crates and the tests."""
    copy_checkout(checkout)
    config = output("cargo", "vendor", "--locked", "--versioned-dirs", cwd=checkout)
    (checkout / ".cargo").mkdir()
    (checkout / ".cargo/config.toml").write_text(f"{config}\n", encoding="utf-8")
    run(sys.executable, "-m", "maturin", "sdist", "--out", out, cwd=checkout)
    (source,) = out.glob("budgeteer-*.tar.gz")
    return source


def check(wheel: Path, target: list[str]) -> None:
    """Refuse a wheel that is too large, lacks a document or asks for too new a system."""
    if wheel.stat().st_size >= LARGEST:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size:,} bytes, not below {LARGEST:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        boms = [name for name in names if re.search(r"\.dist-info/sboms/.*\.json$", name)]
        named = {found for bom in boms for found in components(json.loads(archive.read(bom)))}
    for ending in (
        "LICENSE",
        "LICENSE-snowball",
        "LICENSE-mistral",
        "THIRD-PARTY.txt",
        "py.typed",
    ):
        if not any(name.endswith(f"/{ending}") for name in names):
            raise SystemExit(f"{wheel.name} has no {ending}")
    if lacking := crates() - named:
        raise SystemExit(f"the SBOM of {wheel.name} lacks {sorted(lacking)}")
    if "--zig" in target:
        shown = output(sys.executable, "-m", "auditwheel", "show", wheel)
        wanted = "musllinux_1_2" if "musllinux_1_2" in target else "manylinux_2_17"
        if f'tag:\n"{wanted}_' not in shown.replace("tag: ", "tag:\n"):
            raise SystemExit(f"auditwheel does not find {wanted}:\n{shown}")


def components(bom: dict[str, Any]) -> list[str]:
    """Return what a CycloneDX document names, as `name version`."""
    if bom["bomFormat"] != "CycloneDX":
        raise SystemExit(f"an SBOM is no CycloneDX: {bom['bomFormat']}")
    return [f"{one['name']} {one['version']}" for one in bom["components"]]


def crates() -> set[str]:
    """Return the crates in the native module, as `name version`."""
    tree = output(
        *("cargo", "tree", "--locked", "--package", "budgeteer-python", "--edges", "normal"),
        *("--prefix", "none", "--format", "{p}"),
        cwd=ROOT,
    )
    found = {" ".join(line.split()[:2]).replace(" v", " ") for line in tree.splitlines()}
    return {crate for crate in found if not crate.startswith("budgeteer-python ")}


def try_out(wheel: Path, python: str) -> None:
    """Install a wheel into an environment of its own, and use it there."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if python == sys.executable:
            venv.create(folder, with_pip=True)
        else:
            run(python, "-m", "venv", folder)
        binary = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        run(binary / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel)
        run(binary / "python", "-I", ROOT / "scripts/try_wheel.py", cwd=folder)
        run(binary / "budgeteer", "--version", cwd=folder)


if __name__ == "__main__":
    main()
