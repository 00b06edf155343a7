"""The structure of the package: who imports whom, and where public names live."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from support import BACKENDS

import budgeteer

ROOT = Path(budgeteer.__file__).parent
MODULES = {
    ".".join(("budgeteer", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}
FLOORS = (
    {"_codes", "_log", "_process", "_public", "errors"},
    {"_copies", "_models", "_needs", "_telemetry", "_validate"},
    {"_deadline", "_external", "_files", "_guard", "_pydantic", "_report"},
    {"_reference"},
    {"_backend"},
    {"_chunk"},
    {"_count"},
    {"_messages", "_rank"},
    {"_output", "_pack", "ranking"},
    {"_layout", "_table", "embedding", "presets", "window"},
    {"_request", "_sources"},
    {"config"},
    {"integrations", "service"},
    {"budgeteer"},
    {"cli", "testing"},
    {"__main__", "_pytest_plugin"},
)
"""
The wings, and the modules that are none, from the ground up.

An import goes to a lower floor or stays within its wing. The root is high up: it names the public
names of the wings, and loads them when they are asked for.
"""

FLOOR_OF = {wing: floor for floor, wings in enumerate(FLOORS) for wing in wings}


def wing_of(module):
    """Return the wing that a module stands in, or its own name on shared ground."""
    return module.removeprefix("budgeteer.").partition(".")[0]


def packages_of(module):
    """Return the packages that run before *module*, but for the root."""
    parts = module.split(".")
    return {".".join(parts[:size]) for size in range(2, len(parts))}


def imports(module):
    """Return the modules that *module* imports anywhere in its text: lazily and for types, too."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & {*MODULES}
            if not inner <= {*MODULES, "budgeteer._native"}:
                found.add(node.module)
    found &= {*MODULES}
    for name in [*found]:  # what stands in a package runs the package first
        found |= packages_of(name) - packages_of(module)
    return found - {module}


GRAPH = {module: imports(module) for module in MODULES}


def test_no_cycle():
    """No module imports another that imports it, directly or over others, lazily or for types."""
    try:
        tuple(TopologicalSorter(GRAPH).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_floors():
    """Each import goes to a lower floor, or stays within its wing."""
    upward = [
        f"{module} -> {target}"
        for module, targets in GRAPH.items()
        for target in targets
        if wing_of(module) != wing_of(target)
        and FLOOR_OF[wing_of(target)] >= FLOOR_OF[wing_of(module)]
    ]

    assert [] == upward


def test_every_wing_has_a_floor():
    """The picture above has every wing, and no other."""
    assert {wing_of(module) for module in MODULES} == {*FLOOR_OF}


def test_the_graph_sees_lazy_imports():
    """An import within a function, and one for types alone, counts like any other."""
    assert "budgeteer._pack.prompt" in GRAPH["budgeteer._pack.packer"]
    assert "budgeteer._pack.prepared" in GRAPH["budgeteer._pack.packing"]


PUBLIC = [
    import_module(name)
    for name in (
        *("budgeteer", "budgeteer.config", "budgeteer.embedding", "budgeteer.errors"),
        *("budgeteer.presets", "budgeteer.ranking", "budgeteer.service", "budgeteer.testing"),
        *("budgeteer.testing.strategies", "budgeteer.window"),
    )
]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_public_homes(module):
    """A public class says the public module that it is imported from, and is found there."""
    for name in vars(module).get("__all__", ()):
        item = getattr(module, name)
        if isinstance(item, type):
            assert "_" not in item.__module__
            assert item is getattr(import_module(item.__module__), item.__name__)


@pytest.mark.parametrize(
    "statement",
    ["import budgeteer", "from budgeteer import Packer; Packer(8).pack('tea', ['Tea.'])"],
)
def test_the_import_is_light(statement):
    """What is heavy is loaded when it is used, and not by packing."""
    heavy = {"asyncio", "importlib.metadata", "json", "logging", "numpy", "pathlib", "ssl"}
    code = f"import sys; before = {{*sys.modules}}; {statement}; print(*{{*sys.modules}} - before)"
    if BACKENDS == ("reference",):
        heavy -= {"json", "logging", "pathlib"}  # tiktoken's
    loaded = {*subprocess.check_output([sys.executable, "-c", code], text=True).split()}

    assert set() == heavy & loaded


def test_the_root_imports_nothing():
    """``import budgeteer`` loads no other module, of ours or of Python's."""
    code = "import sys; before = {*sys.modules}; import budgeteer; print(*{*sys.modules} - before)"

    assert "budgeteer" == subprocess.check_output([sys.executable, "-c", code], text=True).strip()
