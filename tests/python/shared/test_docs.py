"""The examples in the documentation of every module run as they stand."""

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest
from support import ONLY_REFERENCE

import budgeteer

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(budgeteer.__path__, "budgeteer.")
    if name.rpartition(".")[2] not in ("_native", "__main__")
]


class Finder(doctest.DocTestFinder):
    """Finds the examples of the classes that a module defines, wherever these say they live."""

    def _from_module(self, module, item):
        if isinstance(item, type):
            return item.__name__ in classes(module)
        return super()._from_module(module, item)


def classes(module):
    """Return the names of the classes that a module defines."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """Every example in a docstring answers what it says."""
    if ONLY_REFERENCE and name == "budgeteer._pack.corpus":
        pytest.skip("files of corpora are native")
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    tests = Finder().find(module, name)
    for test in tests:
        runner.run(test)

    assert 0 == runner.summarize(verbose=False).failed
    examples = Path(module.__file__).read_text(encoding="utf-8").count(">>> ")
    assert sum(len(test.examples) for test in tests) == examples


def test_public_examples():
    """Every public class and function of the package has an example."""
    public = [getattr(budgeteer, name) for name in budgeteer.__all__]
    shown = [item for item in public if not issubclass_of_exception(item)]
    records = {budgeteer.Allocation, budgeteer.KeptChunk, budgeteer.DroppedChunk}

    assert [] == [item for item in shown if item not in records and ">>>" not in item.__doc__]


def issubclass_of_exception(item):
    return isinstance(item, type) and issubclass(item, Exception)
