"""
Write the table of grapheme cluster properties that the pure-Python backend reads.

    python scripts/generate_graphemes.py

The ranges are those of the Unicode Character Database, from the tables of the crate
`unicode-segmentation` at the version in Cargo.lock, so that both backends cut alike. Run it when
that version changes; the differential tests fail until then.
"""

import json
import re
import subprocess
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python/budgeteer/_reference/_count/grapheme_table.py"
HANGUL = {"LV", "LVT"}  # a formula gives these
SINGLE = {"CR", "LF", "ZWJ", "Any"}


def tables() -> str:
    """Return the crate's table source."""
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version=1", "--locked"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout
    )  # fmt: skip
    crate = next(p for p in metadata["packages"] if p["name"] == "unicode-segmentation")
    return (Path(crate["manifest_path"]).parent / "src/tables.rs").read_text()


def main() -> None:
    """Write the table."""
    source = tables()
    version = ".".join(
        re.findall(r"\d+", re.search(r"UNICODE_VERSION: .* = (\(.*\));", source)[1])
    )
    body = source[source.index("const grapheme_cat_table") :]
    body = body[: body.index("];")]
    ranges: dict[str, list[str]] = {}
    for first, last, name in re.findall(
        r"\('\\u\{([0-9a-f]+)\}',\s*'\\u\{([0-9a-f]+)\}',\s*GC_(\w+)\)", body
    ):
        if name not in HANGUL | SINGLE:
            ranges.setdefault(name, []).append(first if first == last else f"{first}-{last}")
    linkers = re.findall(
        r"'\\u\{([0-9A-F]+)\}'",
        re.search(r"fn is_incb_linker\(c: char\) -> bool \{(.*?)\n\}", source, re.DOTALL)[1],
    )
    ranges["Linker"] = [linker.lower() for linker in linkers]
    lines = [
        f'"""Grapheme cluster properties of Unicode {version} (generate_graphemes.py)."""',
        "",
        "RANGES = {",
    ]
    for name in sorted(ranges):
        lines.append(f'    "{name}": (')
        wrapped = textwrap.wrap(" ".join(ranges[name]), 86, break_on_hyphens=False)
        lines += [f'        "{line} "' for line in wrapped[:-1]] + [f'        "{wrapped[-1]}"']
        lines.append("    ),")
    lines += ["}", ""]
    TARGET.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
