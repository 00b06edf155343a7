"""
Write THIRD-PARTY.txt: the licences of the crates in the native module, out of their packages.

    python scripts/generate_notices.py [--check]

With `--check` nothing is written, and the file must be up to date. Cargo says which crates these
are, on any system, and where their sources lie. Of a choice of licences with MIT, MIT is taken.
"""

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "THIRD-PARTY.txt"
HEAD = """\
The native module of budgeteer contains the Rust standard library (MIT OR Apache-2.0, copyright The
Rust Project Contributors) and the crates below. The licences of budgeteer's own code and data are
in files of their own. Written by scripts/generate_notices.py.
"""
LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
OTHERS = re.compile(r"apache|unlicense|zlib|0bsd|copying", re.IGNORECASE)
RULE = f"\n{'=' * 80}\n"


def main() -> None:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if it is not up to date")
    given = parser.parse_args()
    text = HEAD + "".join(notice(package) for package in linked())
    if not given.check:
        FILE.write_text(text, encoding="utf-8")
    elif not FILE.exists() or text != FILE.read_text(encoding="utf-8"):
        raise SystemExit(f"{FILE.name} is out of date: python scripts/generate_notices.py")


def cargo(*arguments: str) -> str:
    """Return what cargo prints."""
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def linked() -> list[dict[str, Any]]:
    """Return cargo's description of each crate in the native module, on any system."""
    package = ["--package", "budgeteer-python", "--target", "all"]
    tree = cargo("tree", *package, "--edges", "normal,no-proc-macro", "--prefix", "none")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    known = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    found = [one for one in known if (one["name"], f"v{one['version']}") in wanted]
    return sorted(
        (one for one in found if one["source"]), key=lambda one: (one["name"], one["version"])
    )


def notice(package: dict[str, Any]) -> str:
    """Return the section of a crate."""
    files = sorted(
        path
        for path in Path(package["manifest_path"]).parent.iterdir()
        if path.is_file() and LICENCE.match(path.name)
    )
    if any("MIT" in path.name.upper() for path in files):
        files = [path for path in files if not OTHERS.search(path.name)]
    texts = [clean(path.read_text(encoding="utf-8")) for path in files]
    if not texts:
        authors = ", ".join(re.sub(r" <.*?>", "", author) for author in package["authors"])
        texts = [f"Its package has no file of the licence. Its authors: {authors}.\n"]
    head = f"{package['name']} {package['version']}: {package['license']}\n"
    return RULE + head + "".join(f"\n{text}" for text in texts)


def clean(text: str) -> str:
    """Return a text without what differs between systems."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


if __name__ == "__main__":
    main()
