"""
Fill in what only a release knows: its tag and the address of its repository.

    python scripts/prepare_release.py URL TAG [--root FOLDER]

URL is the repository's, such as https://example.org/owner/budgeteer, and TAG is `v` and the
version. No file of the checkout has the address, which differs from fork to fork: the workflow of
releases takes it from the service that it runs on. This script writes it, in place, into

- README.md, for package indexes, which show it without other files: a link to PATH becomes
  URL/blob/TAG/PATH, and that of a picture URL/raw/TAG/PATH;
- pyproject.toml, as project URLs;
- the manifests of the crates, as repository, homepage and documentation.

So run it in the copy of the checkout from which a release is built. It refuses a tag that is not
of the version in Cargo.toml, and a version that has no dated section, first, in CHANGELOG.md.
"""

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CRATES = {"rust/core/Cargo.toml": "budgeteer", "rust/vocab/Cargo.toml": "budgeteer-vocab"}


def linked(text: str, url: str, tag: str) -> str:
    """Return a Markdown text with absolute links; code keeps its brackets."""

    def link(found: re.Match[str]) -> str:
        code, mark, words, target = found.groups()
        if code or "://" in target or target.startswith("#"):
            return found[0]
        return f"{mark}[{words}]({url}/{'raw' if mark else 'blob'}/{tag}/{target})"

    code_or_link = r"(^```.*?^```$)|(!?)\[([^\]]*)\]\(([^)\s]+)\)"
    return re.sub(code_or_link, link, text, flags=re.MULTILINE | re.DOTALL)


def with_urls(pyproject: str, url: str, tag: str) -> str:
    """Return pyproject.toml with the table of project URLs."""
    urls = {
        "Homepage": url,
        "Documentation": f"{url}/blob/{tag}/docs/quickstart.md",
        "Repository": url,
        "Issues": f"{url}/issues",
        "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
    }
    table = "".join(f'{name} = "{target}"\n' for name, target in urls.items())
    return _put(pyproject, "[project.optional-dependencies]\n", f"[project.urls]\n{table}\n")


def with_links(manifest: str, url: str, name: str) -> str:
    """Return the manifest of a crate with its three addresses."""
    links = {"repository": url, "homepage": url, "documentation": f"https://docs.rs/{name}"}
    lines = "".join(f'{key} = "{target}"\n' for key, target in links.items())
    return _put(manifest, "edition.workspace = true\n", lines)


def _put(text: str, before: str, added: str) -> str:
    if text.count(before) != 1 or added.partition("\n")[0] in text:
        raise SystemExit(f"there is not one place before {before!r}, or it was filled in before")
    return text.replace(before, added + before)


def checked(tag: str, manifest: str, changelog: str) -> None:
    """Refuse a tag that is not of this version, and a version without a dated section."""
    found = re.search(r'^version = "(.+)"$', manifest, re.MULTILINE)
    version = found[1] if found else ""
    if tag != f"v{version}":
        raise SystemExit(f"the tag {tag!r} is not v{version}, by the version in Cargo.toml")
    first = re.search(r"^## (.*)$", changelog, re.MULTILINE)
    if not first or not re.fullmatch(re.escape(version) + r" - \d{4}-\d\d-\d\d", first[1]):
        raise SystemExit(f"the first section of CHANGELOG.md is not: ## {version} - YYYY-MM-DD")


def repository(url: str) -> str:
    """Return the address of a repository without a slash at its end."""
    if not re.fullmatch(r"https://[^\s\"\\]+", url):
        raise ValueError(url)
    return url.rstrip("/")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("url", type=repository, metavar="URL", help="https://...")
    parser.add_argument("tag", metavar="TAG", help="v and the version")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="FOLDER")
    given = parser.parse_args()

    def text_of(name: str) -> str:
        return str((given.root / name).read_text(encoding="utf-8"))

    checked(given.tag, text_of("Cargo.toml"), text_of("CHANGELOG.md"))
    written = {
        "README.md": linked(text_of("README.md"), given.url, given.tag),
        "pyproject.toml": with_urls(text_of("pyproject.toml"), given.url, given.tag),
        **{file: with_links(text_of(file), given.url, name) for file, name in CRATES.items()},
    }
    for name, text in written.items():
        (given.root / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
