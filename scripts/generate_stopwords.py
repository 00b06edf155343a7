"""
Write the stopwords of Snowball's languages, for both backends.

    python scripts/generate_stopwords.py PATH [--check]

PATH is a checkout of Snowball's website (https://github.com/snowballstem/snowball-website), whose
``algorithms/LANGUAGE/stop.txt`` are read. An entry is turned into BM25's terms, so that ``b'`` is
``b``. English is not among them: its list is our own, in ``stopwords/english.rs`` and
``_rank/terms.py``.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from budgeteer._reference._rank.terms import terms  # noqa: E402  # of this checkout

PYTHON = ROOT / "python/budgeteer/_reference/_rank/stopword_table.py"
RUST = ROOT / "rust/core/src/stopwords/table.rs"


def words_of(path: Path) -> list[str]:
    """Return the stopwords in a file of Snowball's: words, and comments after a bar."""
    lines = re.sub(r"\|.*", "", path.read_text("utf-8")).split()
    # Sorted by UTF-8 bytes, for the search in Rust.
    return sorted({term for word in lines for term in terms(word)}, key=str.encode)


def wrapped(words: list[str], width: int) -> list[str]:
    """Return the words in lines of that width."""
    return textwrap.wrap(" ".join(words), width, break_on_hyphens=False, break_long_words=False)


def python(lists: dict[str, list[str]]) -> str:
    """Return the table for Python."""
    lines = ['"""Stopwords of Snowball\'s lists (generate_stopwords.py)."""', "", "STOPWORDS = {"]
    for language, words in lists.items():
        rows = wrapped(words, 82)
        lines.append(f'    "{language}": (')
        lines += [f'        "{row} "' for row in rows[:-1]] + [f'        "{rows[-1]}"', "    ),"]
    return "\n".join([*lines, "}", ""])


def rust(lists: dict[str, list[str]]) -> str:
    """Return the table for Rust."""
    lines = [
        "//! Snowball's lists of stopwords, each sorted; written by",
        "//! `generate_stopwords.py`.",
        "",
        "#[rustfmt::skip]",
        f"pub(super) static STOPWORDS: [(&str, &[&str]); {len(lists)}] = [",
    ]
    for language, words in lists.items():
        rows = textwrap.wrap(", ".join(f'"{word}"' for word in words), 90, break_on_hyphens=False)
        lines += [f'    ("{language}", &[', *(f"        {row}" for row in rows), "    ]),"]
    return "\n".join([*lines, "];", ""])


def main() -> None:
    """Write the tables, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("path", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    files = sorted(arguments.path.glob("algorithms/*/stop.txt"))
    lists = {path.parent.name: words_of(path) for path in files}
    lists.pop("english")
    for target, text in ((PYTHON, python(lists)), (RUST, rust(lists))):
        if not arguments.check:
            target.write_text(text, "utf-8")
        elif target.read_text("utf-8") != text:
            sys.exit(f"{target.relative_to(ROOT)} is not what this script would write")


if __name__ == "__main__":
    main()
