"""
The documentation site: every page has its place, every name its entry, and every link its end.

The site is built, strictly, where the group `docs` is installed.
"""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python/budgeteer"
COUNTED = ("h1", "h2", "h3", "h4", "li", "ol", "ul", "table", "tr", "pre", "code", "em", "strong")
INSTALLED = all(map(importlib.util.find_spec, ("mkdocs", "material", "mkdocstrings")))
needs_docs = pytest.mark.skipif(not INSTALLED, reason="the group docs is not installed")


class Html(HTMLParser):
    """The elements of an article, and the links of a page, what it loads, and its anchors."""

    def __init__(self, text, *, article=False):
        super().__init__()
        self.article, self.elements = article, Counter()
        self.links, self.loaded, self.anchors = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.article |= tag == "article"
        if self.article and tag in COUNTED:
            self.elements[tag] += 1
        self.anchors.add(given.get("id"))
        if tag == "a" or given.get("rel") in ("prev", "next", "canonical"):
            self.links += [given["href"]] if "href" in given else []
        else:
            self.loaded += [given[name] for name in ("src", "href", "srcset") if given.get(name)]

    def handle_endtag(self, tag):
        self.article &= tag != "article"


def files_of(nav):
    """Return the files of a navigation."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [file for part in parts for file in files_of(part)]


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = [
        token.content
        for before, token in pairwise(MarkdownIt().parse(page.read_text(encoding="utf-8")))
        if before.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", text).lower().replace(" ", "-") for text in headings}


def names_of(module):
    """Return the public names of a module, as its text has them."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for node in body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    return [node.name for node in body if isinstance(node, ast.ClassDef)]


def public_modules():
    """Return the public modules that have public names."""
    paths = [file.relative_to(PACKAGE.parent).with_suffix("") for file in PACKAGE.rglob("*.py")]
    modules = {".".join(path.parts).removesuffix(".__init__") for path in paths}
    return sorted(name for name in modules if "._" not in name and names_of(name))


def test_every_page_is_in_the_navigation():
    """A page of docs/ stands in the navigation once."""
    files = files_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}

    assert [] == [name for name, count in Counter(files).items() if count > 1]
    assert set() == pages - {*files}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: then warnings are not counted, and --strict does nothing.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@needs_docs
def test_structure(site):
    """A page has the headings, lists, tables and code blocks on the site that it has on GitHub."""
    github = MarkdownIt("gfm-like", {"linkify": False})
    pages = sorted(site.glob("*.md"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text(encoding="utf-8")
        expected = Html(github.render(text), article=True).elements
        html = Html(page.with_suffix(".html").read_text(encoding="utf-8"))
        assert expected == html.elements, page.name
        assert set() == anchors(page) - html.anchors, page.name


@needs_docs
def test_links(site):
    """Each link of the site leads to a file, and to a place in it where it names one."""
    pages = {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link in page.links:
            target, anchor = map(unquote, urldefrag(link))
            if "://" in target:
                continue
            file = (path.parent / target).resolve() if target else path
            if not file.exists() or (file in pages and anchor not in pages[file].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")

    assert [] == broken


@needs_docs
def test_nothing_is_loaded_from_elsewhere(site):
    """Styles, scripts, fonts and pictures are the site's own."""
    loaded = {
        link
        for path in site.rglob("*.html")
        for link in Html(path.read_text(encoding="utf-8")).loaded
    }
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))

    assert any(link.endswith(".js") for link in loaded)
    assert [] == [link for link in loaded if "//" in link]
    assert [] == re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)]*", styles)


@needs_docs
def test_reference(site):
    """Each public name is described, on the page of its module or where that page leads."""
    for module in public_modules():
        page = site / f"reference/{module}.html"
        html = Html(page.read_text(encoding="utf-8"))
        for name in names_of(module):
            elsewhere = [link for link in html.links if re.search(rf"[#.]{name}$", link)]
            assert f"{module}.{name}" in html.anchors or elsewhere, f"{module}.{name}"
    described = Html((site / "reference/budgeteer.html").read_text(encoding="utf-8")).anchors
    assert {"budgeteer.Packer.pack_batch", "budgeteer.Packing.explain"} <= described


@needs_docs
def test_llms(site):
    """llms.txt has the form of llmstxt.org, and leads to each page once, as plain Markdown."""
    title, summary, *rest = (site / "llms.txt").read_text(encoding="utf-8").split("\n\n")
    lines = [line for block in rest[1:] for line in block.splitlines()]
    form = r"- \[[^\]]+\]\((?:https://[^)]+?/)?((?:reference/)?[\w.-]+\.md)\): \S.*"
    links = [re.fullmatch(form, line) for line in lines]
    files = [link[1] for link in links if link]

    assert "# budgeteer" == title
    assert summary.startswith("> Decides what goes into an LLM's context window")
    assert all(line.startswith("## ") for line, link in zip(lines, links, strict=True) if not link)
    assert sorted(files) == sorted(
        path.relative_to(site).as_posix() for path in site.rglob("*.md")
    )
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    places = [whole.index((site / file).read_text(encoding="utf-8").strip()) for file in files]
    assert places == sorted(places)
    assert len(files) == len({*places})


@needs_docs
def test_the_reference_in_plain_text(site):
    """The whole documentation in one file has the signature of each public name."""
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    missing = [
        f"{module}.{name}"
        for module in public_modules()
        for name in names_of(module)
        if not re.search(rf"^(## {module}\.{name}$|`{name}` is `)", whole, re.MULTILINE)
    ]

    assert [] == missing
    assert "\n    pack(query: str, chunks: Iterable[T]" in whole
    assert "\n### Packer.pack_batch\n\n    pack_batch(requests: " in whole


@needs_docs
def test_links_to_the_repository():
    """What is no page is linked in the repository, and is plain text while that has no address."""
    code = (
        "import runpy\n"
        "linked = runpy.run_path('scripts/site_hook.py')['linked']\n"
        "text = '[`a`](../python/a.py#L1) ![b](../b.svg) [c](../DECISIONS.md#d) [e](e.md)'\n"
        "text += ' `[f](g)`'\n"
        "for address in ('https://example.org/o/r', None):\n"
        "    print(linked(text, 'docs/page.md', 'page.md', address))\n"
    )
    told = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)

    first, second = told.splitlines()
    url = "https://example.org/o/r"
    assert (
        f"[`a`]({url}/blob/HEAD/python/a.py#L1) ![b]({url}/raw/HEAD/b.svg) "
        "[c](decisions.md#d) [e](e.md) `[f](g)`"
    ) == first
    assert "`a` b [c](decisions.md#d) [e](e.md) `[f](g)`" == second
