"""
Make the links of README.md absolute, for a package index, which shows it without other files.

    python scripts/link_readme.py URL REF [--file FILE]

URL is the repository's, such as https://example.org/owner/budgeteer, and REF a tag or a branch. A
link to PATH becomes URL/blob/REF/PATH, and that of a picture URL/raw/REF/PATH. The file is written
in place, so run this in a copy of the checkout from which the package is built.
"""

import argparse
import re
from pathlib import Path

FILE = Path(__file__).parents[1] / "README.md"


def absolute(text: str, url: str, ref: str) -> str:
    """Return a Markdown text with absolute links; code keeps its brackets."""

    def link(found: re.Match[str]) -> str:
        code, mark, words, target = found.groups()
        if code or "://" in target or target.startswith("#"):
            return found[0]
        return f"{mark}[{words}]({url}/{'raw' if mark else 'blob'}/{ref}/{target})"

    code_or_link = r"(^```.*?^```$)|(!?)\[([^\]]*)\]\(([^)\s]+)\)"
    return re.sub(code_or_link, link, text, flags=re.MULTILINE | re.DOTALL)


def repository(url: str) -> str:
    """Return the address of a repository without a slash at its end."""
    if not url.startswith("https://"):
        raise ValueError(url)
    return url.rstrip("/")


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("url", type=repository, metavar="URL", help="https://...")
    parser.add_argument("ref", metavar="REF", help="a tag or a branch")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    text = given.file.read_text(encoding="utf-8")
    given.file.write_text(absolute(text, given.url, given.ref), encoding="utf-8")


if __name__ == "__main__":
    main()
