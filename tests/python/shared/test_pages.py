"""
The README and the pages of docs/: every snippet runs, in the order of its page.

The kinds of snippets, by the language behind their fence:

- ``pycon``: a session; what it answers is compared.
- ``python``: a script; what it prints is compared with the ``text`` block behind it.
- ``console``: commands behind ``$``, continued behind ``>``; output and errors are compared.
- ``rust``: a doctest of ``examples/rust``, which includes the page.
- ``yaml``, ``toml``, ``json``: a file, which the line above names.
- ``sh``: what needs a checkout and takes long. Only the names of files are checked here.

The snippets of a page share their names and a folder, which has a copy of ``examples`` but for
``rust``. A script that begins with ``# Not executed here:`` says why; it is only compiled. So is
one that begins with ``# Needs`` and a package that is not installed, as those of the integrations.
"""

import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from opentelemetry import trace
from opentelemetry.util._once import Once
from support import ONLY_REFERENCE

from budgeteer._count import limits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
DOCUMENTS = (*PAGES, "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "DECISIONS.md")
FILES = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}
RUN = ("pycon", "python", "console", "rust", *FILES)
NOT_EXECUTED = "# Not executed here: "
NEEDS = "# Needs "
NATIVE = ("docs/corpus.md", "docs/scale.md")
"""Pages about what the reference does not know."""

ENDPOINT = "http://localhost:8080/v1/embeddings"
"""What the pages call an endpoint of embeddings."""


@dataclass
class Snippet:
    """A fenced block: its language, its text, the line it begins at, and the line above it."""

    language: str
    text: str
    line: int
    above: str


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def snippets(name):
    """Return the fenced blocks of a page."""
    text = text_of(name)
    return [
        Snippet(
            found[1],
            found[2],
            text.count("\n", 0, found.start()) + 2,
            text[: found.start()].rstrip().rpartition("\n")[2],
        )
        for found in re.finditer(r"^```(.*)\n((?s:.*?))^```$", text, re.MULTILINE)
    ]


def has_what_it_needs(snippet):
    """Return whether the package that a snippet's first line names is installed."""
    first = snippet.text.partition("\n")[0]
    if not first.startswith(NEEDS):
        return True
    return importlib.util.find_spec(first.removeprefix(NEEDS)) is not None


class Page:
    """Runs the snippets of a page, one after the other."""

    def __init__(self, name, folder, endpoint):
        self.name, self.folder, self.url = name, folder, endpoint.url
        self.names = {"__name__": "__main__"}

    def run(self, snippet, following):
        if run := getattr(self, f"run_{snippet.language}", None):
            run(snippet, following)
        elif snippet.language in FILES:
            self.write(snippet)

    def run_pycon(self, snippet, _):
        test = doctest.DocTestParser().get_doctest(
            snippet.text.replace(ENDPOINT, self.url), self.names, self.name, self.name,
            snippet.line - 1,
        )  # fmt: skip
        assert test.examples
        test.globs = self.names
        told = []
        failed = doctest.DocTestRunner(verbose=False).run(test, out=told.append, clear_globs=False)
        assert 0 == failed.failed, "".join(told)

    def run_python(self, snippet, following):
        code = compile(
            "\n" * (snippet.line - 1) + snippet.text.replace(ENDPOINT, self.url),
            str(ROOT / self.name), "exec",
        )  # fmt: skip
        if snippet.text.startswith(NOT_EXECUTED) or not has_what_it_needs(snippet):
            return
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        said = following.text if following and following.language == "text" else ""
        assert said == out.getvalue(), f"{self.name}:{snippet.line}"

    def run_console(self, snippet, _):
        if shutil.which("sh") is None:
            pytest.skip("has no shell")
        program = "".join(
            f'{name}() {{ {shlex.quote(sys.executable)} {module}"$@"; }}\n'
            for name, module in (("budgeteer", "-m budgeteer "), ("python", ""))
        )
        steps = re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]
        assert steps
        for step in steps:
            lines = re.match(r"(.*\n(?:> ?.*\n)*)", step)[1]
            done = subprocess.run(
                ["sh", "-c", program + re.sub(r"^> ?", "", lines, flags=re.MULTILINE)],
                capture_output=True, text=True, check=False, timeout=60, cwd=self.folder,
                env={**os.environ, "COLUMNS": "80"},
            )  # fmt: skip
            said = (done.stdout + done.stderr).rstrip()
            assert step[len(lines) :].rstrip() == said, f"{self.name}:{snippet.line}: {lines}"

    def write(self, snippet):
        FILES[snippet.language](snippet.text)
        if named := re.search(r"`([\w./-]+)`:$", snippet.above):
            (self.folder / named[1]).write_text(snippet.text, encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_snippets(name, tmp_path, monkeypatch, endpoint):
    """What a page shows is what happens."""
    if ONLY_REFERENCE and name in NATIVE:
        pytest.skip("files of corpora are native")
    ignored = shutil.ignore_patterns("rust")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignored)
    monkeypatch.chdir(tmp_path)
    # What a page sets for its process is undone.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(limits, "_own", {})
    page = Page(name, tmp_path, endpoint)
    blocks = snippets(name)
    for snippet, following in zip(blocks, [*blocks[1:], None], strict=True):
        page.run(snippet, following)


@pytest.mark.parametrize("name", PAGES)
def test_kinds(name):
    """Each snippet is of a kind that is run, but for output, diagrams and slow commands."""
    blocks = snippets(name)

    assert text_of(name).count("```") == 2 * len(blocks), "a fence is not closed, or indented"
    assert {block.language for block in blocks} <= {*RUN, "text", "sh"}
    for before, block in zip([None, *blocks], blocks, strict=False):
        if block.language == "text":
            assert before is not None, name
            assert before.language == "python", f"{name}:{block.line}"


@pytest.mark.parametrize("name", PAGES[1:])
def test_beginning(name):
    """A page begins with its reader's question and a snippet that runs."""
    head, question, *_ = text_of(name).split("\n\n")
    first = snippets(name)[0]

    assert head.startswith("# ")
    assert question.endswith("?")
    assert first.language in RUN
    assert first.language not in FILES
    assert not first.text.startswith(NOT_EXECUTED)
    assert first.line <= 20


@pytest.mark.parametrize("name", PAGES)
def test_slow_commands(name):
    """A command that takes long names files, and examples of the crate, that there are."""
    manifest = text_of("rust/core/Cargo.toml")
    for block in snippets(name):
        if block.language == "sh":
            for path in re.findall(r"(?:benches|scripts|tests|examples)/[\w./-]+", block.text):
                assert (ROOT / path).exists(), path
            # maturin leaves examples and benchmarks out of the manifest of what it distributes.
            if (ROOT / "PKG-INFO").exists():
                continue
            for example in re.findall(r"--(?:example|bench) (\w+)", block.text):
                assert f'name = "{example}"' in manifest, example


def test_rust_is_run():
    """Each page with Rust is among the doctests of the examples."""
    root = text_of("examples/rust/src/lib.rs")
    included = re.findall(r'include_str!\("\.\./\.\./\.\./(.*?)"\)', root)
    written = [name for name in PAGES if any(b.language == "rust" for b in snippets(name))]

    assert written == sorted(included)


def test_picture():
    """The picture shows what the README's first command answers."""
    subprocess.run([sys.executable, ROOT / "scripts/generate_picture.py", "--check"], check=True)


def test_every_page_is_linked():
    """The README leads to each page."""
    readme = text_of("README.md")
    assert [] == [name for name in PAGES[1:] if f"({name})" not in readme]


def test_the_first_two_commands():
    """The gate takes the README's first two sh blocks for its commands: a line each."""
    first, second = [block.text for block in snippets("README.md") if block.language == "sh"][:2]

    for command in (first, second):
        assert 1 == command.count("\n")
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert "budgeteer ask examples/handbook" in first
    assert "pytest" in second


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links(name):
    """Each relative link of a document leads to a file, and to a heading where it names one."""
    broken = []
    text = re.sub(r"```.*?```", "", text_of(name), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    targets += re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    for target in targets:
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (ROOT / name).parent / path if path else ROOT / name
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)

    assert [] == broken


def anchors(file):
    """Return the anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_every_variable_of_the_environment_is_in_a_table():
    """What the package reads is in the table of all, or in that of the service."""
    read = {
        name
        for path in (ROOT / "python").rglob("*.py")
        for name in re.findall(r"\bBUDGETEER_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    pages = ("docs/command-line.md", "docs/service.md")
    rows = [
        re.findall(r"(?m)^\| `(BUDGETEER_\w+)`", (ROOT / page).read_text("utf-8"))
        for page in pages
    ]
    assert {"BUDGETEER_MODELS", "BUDGETEER_LLM_MODEL"} < read
    assert read == {*rows[0], *rows[1]}
