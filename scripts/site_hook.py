"""
What `mkdocs build` does for this project beside its own work; mkdocs.yml names this file.

- The front page is README.md, and the documents in the root are pages; nothing is written twice.
- Each public module has a page of reference, which mkdocstrings makes of its docstrings.
- A relative link leads to the page of a file if it has one, and else to it in the repository.
- llms.txt lists the pages for readers that are models, llms-full.txt has all of them, in the order
  of the navigation, and each page stands as Markdown beside its HTML.
"""

import ast
import posixpath
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "python"
DOCUMENTS = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "decisions.md": "DECISIONS.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
"""The pages that are made of documents in the root, and those documents."""

ERRORS = "budgeteer.errors"
CODE_OR_LINK = re.compile(
    r"(^```.*?^```$|`[^`\n]*`(?!\]))|(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)

markdown: dict[str, str] = {}
"""The text of each page, by its file, as llms-full.txt has it."""


def on_config(config: Any) -> Any:
    """Take from pyproject.toml what stands there, and finish the navigation."""
    reference.cache_clear()
    package.cache_clear()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.site_description = project["description"]
    if url := project.get("urls", {}).get("Repository", "").rstrip("/"):
        # Not repo_url: for that, the theme has each reader's browser ask GitHub for stars.
        source = {"icon": "fontawesome/brands/git-alt", "link": url, "name": "Source"}
        config.extra |= {"repository": url, "social": [source]}
    config.mdx_configs["toc"]["slugify"] = slug
    config.nav = existing(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that have no file in docs/."""
    for path, document in DOCUMENTS.items():
        text = (ROOT / document).read_text(encoding="utf-8")
        files.append(File.generated(config, path, content=text))
    for path, module in reference().items():
        files.append(File.generated(config, path, content=directives(module)))
    return files


def on_page_markdown(text: str, page: Any, config: Any, **_: Any) -> str:
    """Turn the links of a page, and remember its text."""
    path = page.file.src_uri
    if path in reference():
        markdown[path] = described(reference()[path])
        return text
    document = DOCUMENTS.get(path, f"docs/{path}")
    written = markdown[path] = linked(text, document, path, config.extra.get("repository"))
    return written


def on_post_build(config: Any) -> None:
    """Write the files for readers that are models."""
    site = Path(config.site_dir)
    paths = [path for _, paths in sections(config.nav) for path in paths]
    for path in paths:
        (site / path).write_text(markdown[path], encoding="utf-8")
    (site / "llms.txt").write_text(overview(config), encoding="utf-8")
    whole = "\n\n".join(markdown[path].strip() for path in paths)
    (site / "llms-full.txt").write_text(f"{whole}\n", encoding="utf-8")


def existing(nav: list[Any]) -> list[Any]:
    """
    Return a navigation without pages that have no file, and with those of the reference.

    None is lost by that: mkdocs refuses a page that the navigation lacks.
    """
    kept: list[Any] = []
    for item in nav:
        if isinstance(item, dict) and isinstance(items := next(iter(item.values())), list):
            kept.append({next(iter(item)): existing(items)})
        elif item == "reference/":
            kept += [{name.removeprefix("budgeteer."): path} for path, name in reference().items()]
        elif isinstance(item, dict) or item in DOCUMENTS or (ROOT / "docs" / item).exists():
            kept.append(item)
    return kept


def sections(nav: list[Any]) -> list[tuple[str, list[str]]]:
    """Return the sections of a navigation with the files of their pages."""

    def paths(item: Any) -> list[str]:
        if isinstance(item, str):
            return [item]
        parts = item.values() if isinstance(item, dict) else item
        return [path for part in parts for path in paths(part)]

    return [(name, paths(items)) for item in nav for name, items in item.items()]


def slug(heading: str, separator: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", separator)


def linked(text: str, document: str, path: str, repository: str | None) -> str:
    """
    Return the text of a document with its links turned for the page at *path*.

    What is neither a page nor in docs/ is linked in the repository. While that has no address, the
    words stay without a link.
    """
    pages = {name: page for page, name in DOCUMENTS.items()}

    def link(found: re.Match[str]) -> str:
        code, mark, words, target = found.groups()
        name, hash_, anchor = (target or "").partition("#")
        if code or "://" in name or not name:
            return found[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(document), name))
        page = pages.get(file, file.removeprefix("docs/"))
        if page != file:
            where = posixpath.relpath(page, posixpath.dirname(path) or ".")
        elif repository:
            where = f"{repository}/{'raw' if mark else 'blob'}/HEAD/{file}"
        else:
            return words
        return f"{mark}[{words}]({where}{hash_}{anchor})"

    return CODE_OR_LINK.sub(link, text)


def overview(config: Any) -> str:
    """Return llms.txt, by llmstxt.org: what the project is, and its pages with their questions."""
    site = config.site_url or ""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    lines.append(f"All pages in one file: [llms-full.txt]({site}llms-full.txt)")
    for section, paths in sections(config.nav):
        # "Optional" is what a reader with little room may leave out.
        lines += ["", f"## {'Optional' if section == 'Project' else section}", ""]
        for path in paths:
            title, _, rest = markdown[path].strip().partition("\n")
            question = " ".join(rest.strip().partition("\n\n")[0].split())
            lines.append(f"- [{title.removeprefix('# ')}]({site}{path}): {question}")
    return "\n".join(lines) + "\n"


@cache
def package() -> Any:
    """Return the package as griffe reads it from the sources, which imports nothing."""
    return griffe.load("budgeteer", search_paths=[SOURCES], resolve_aliases=True)


def read(path: str) -> Any:
    """Return the module, class, function or value at a dotted path."""
    _, _, rest = path.partition(".")
    return package()[rest] if rest else package()


@cache
def reference() -> dict[str, str]:
    """Return the pages of the reference with their modules: all public ones with public names."""
    modules = [
        ".".join(file.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        for file in sorted(SOURCES.rglob("*.py"))
    ]
    public = sorted(module for module in modules if "._" not in module and exported(module))
    return {f"reference/{module}.md": module for module in public}


def exported(module: str) -> list[str]:
    """Return the public names of a module: its ``__all__``, or the classes of that of errors."""
    file = SOURCES.joinpath(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    if module == ERRORS:
        return sorted(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return []


def home(path: str) -> str:
    """Return where a public name is described: among the errors, or where it is found first."""
    own = read(path)
    for module in (ERRORS, *reference().values()):
        for name in exported(module):
            if name == own.name and read(f"{module}.{name}").canonical_path == own.canonical_path:
                return f"{module}.{name}"
    raise LookupError(path)


def is_called(item: Any) -> bool:
    """Return whether users call a name; they do not make what has no arguments to tell of."""
    return item.is_function or (item.is_class and "\nArgs:\n" in item.docstring.value)


def directives(module: str) -> str:
    """Return a page for mkdocstrings: what the module says of itself, and each of its names."""
    options = "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}"
    parts = [f"# Module {module}", f"::: {module}\n{options}"]
    others = []
    for name in exported(module):
        path = f"{module}.{name}"
        if home(path) != path:
            others.append(f"[`{name}`][{home(path)}]")
        elif is_called(read(path)):
            parts.append(f"::: {path}")
        else:
            parts.append(f"::: {path}\n    options: {{merge_init_into_class: false}}")
    if others:
        parts.insert(2, f"Also here: {', '.join(others)}.")
    return "\n\n".join(parts) + "\n"


def described(module: str) -> str:
    """Return the reference of a module as plain Markdown."""
    parts = [f"# Module {module}", read(module).docstring.value]
    for name in exported(module):
        path = f"{module}.{name}"
        if home(path) == path:
            parts += entry(read(path), path, 2)
        else:
            parts.append(f"`{name}` is `{home(path)}`.")
    return "\n\n".join(parts) + "\n"


def entry(item: Any, path: str, level: int) -> list[str]:
    """Return heading, signature and docstring of a name, and the members of a class."""
    if item.docstring is None:
        return []
    parts = [f"{'#' * level} {path}"]
    if is_called(item):
        signature = item.signature(return_type=True) if item.is_function else item.signature()
        parts.append(f"    {signature}")
    elif item.is_attribute and item.value is not None:
        parts.append(f"    {item.name} = {item.value}")
    parts.append(item.docstring.value)
    if item.is_class:
        for name, member in item.all_members.items():
            if not name.startswith("_"):
                parts += entry(member, f"{item.name}.{name}", level + 1)
    return parts
