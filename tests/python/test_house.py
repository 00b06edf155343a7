"""The structure of the package: who imports whom, and where public names live."""

import ast
from pathlib import Path

import budgeteer

ROOT = Path(budgeteer.__file__).parent
MODULES = {
    ".".join(("budgeteer", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}
FLOORS = (
    {"_codes", "_process", "errors"},
    {"_files", "_validate"},
    {"_reference"},
    {"_backend", "_telemetry"},
    {"_chunk"},
    {"_count"},
    {"_messages", "_rank"},
    {"_pack", "ranking", "window"},
    {"_layout", "embedding", "presets"},
    {"_sources"},
    {"config"},
    {"service"},
    {"cli"},
    {"", "__main__"},
)
"""
The wings and the single modules, from the ground up.

An import goes to a lower floor, or stays within its wing. The root names the public names of all
wings and loads them when asked; only the command line takes it as a program would.
"""

FLOOR_OF = {name: height for height, names in enumerate(FLOORS) for name in names}


def imports(name):
    """Return the modules that module *name* imports anywhere in its text, lazily or for types."""
    found = set()
    is_package = MODULES[name].name == "__init__.py"
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} has a relative import"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif is_package and isinstance(node, ast.Assign | ast.AnnAssign) and name == "budgeteer":
            continue
    own = name if is_package else name.rpartition(".")[0]
    targets = {target for target in found if target in MODULES} - {name}
    # What stands in a package runs the package first.
    for target in list(targets):
        package = target.rpartition(".")[0]
        while package not in ("", "budgeteer"):
            if not f"{own}.".startswith(f"{package}."):
                targets.add(package)
            package = package.rpartition(".")[0]
    return {t for t in targets if t != "budgeteer" or "budgeteer" in found_roots(name)}


def found_roots(name):
    """Return the root where module *name* takes public names from it."""
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import) and any(a.name == "budgeteer" for a in node.names):
            return {"budgeteer"}
        if isinstance(node, ast.ImportFrom) and node.module == "budgeteer":
            names = {f"budgeteer.{alias.name}" for alias in node.names}
            if not names <= {*MODULES, "budgeteer._native"}:
                return {"budgeteer"}
    return set()


def wing(name):
    """Return the wing that a module belongs to, or the module itself on shared ground."""
    return name.removeprefix("budgeteer").removeprefix(".").partition(".")[0]
