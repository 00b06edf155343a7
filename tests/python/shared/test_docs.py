"""The examples in the documentation of every module run as they stand."""

import ast
import doctest
import importlib
import pkgutil
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest
from support import ONLY_REFERENCE

import budgeteer
from budgeteer.errors import MissingPackageError

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(budgeteer.__path__, "budgeteer.")
    if name.rpartition(".")[2] not in ("_native", "__main__")
]
PUBLIC = ["budgeteer", *(name for name in MODULES if "._" not in name)]
MEMBERS = (FunctionType, classmethod, staticmethod, property, cached_property)
"""What a class defines beside its fields, which its own docstring describes."""


class Finder(doctest.DocTestFinder):
    """Finds the examples of the classes that a module defines, wherever these say they live."""

    def find(self, module, name):
        """Find those of cached properties too, which Python finds from some version on."""
        tests = super().find(module, name)
        found = {test.name for test in tests}
        parse = doctest.DocTestParser().get_doctest
        for kind in classes(module):
            for member, value in vars(getattr(module, kind)).items():
                path = f"{name}.{kind}.{member}"
                if isinstance(value, cached_property) and path not in found:
                    tests.append(parse(value.__doc__, {**vars(module)}, path, module.__file__, 0))
        return tests

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
    if name == "budgeteer._sources.qdrant":
        pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    module = imported(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    tests = Finder().find(module, name)
    for test in tests:
        if not (ONLY_REFERENCE and opens_a_corpus(test)):
            runner.run(test)

    assert 0 == runner.summarize(verbose=False).failed
    examples = Path(module.__file__).read_text(encoding="utf-8").count(">>> ")
    assert sum(len(test.examples) for test in tests) == examples


def imported(name):
    """Return a module; a test of one whose package is not installed is skipped."""
    try:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)
    except MissingPackageError as error:
        assert "integrations" in name
        pytest.skip(str(error))
    return module


def opens_a_corpus(test):
    """Return whether an example needs a file of a corpus, which only the native backend has."""
    return any("Corpus.open" in example.source for example in test.examples)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_examples(name):
    """Each public class and function has an example, and so has each method and property."""
    module = imported(name)
    # Only the errors, which other modules make public, have no list of names.
    names = getattr(module, "__all__", None) or [*classes(module)]
    shown = {
        path: item
        for name in names
        for path, item in members(name, getattr(module, name))
        if not isinstance(item, (int, str))  # a constant has no docstring of its own
    }

    assert shown or not classes(module)
    assert [] == [path for path, item in shown.items() if ">>>" not in (item.__doc__ or "")]


def members(name, item):
    """Yield a public object and, for a class, what it and its bases of ours define in public."""
    yield name, item
    for kind in item.__mro__ if isinstance(item, type) else ():
        if kind.__module__.partition(".")[0] == "budgeteer":
            for member, value in vars(kind).items():
                if member == "model_post_init":  # pydantic puts it there
                    continue
                if isinstance(value, MEMBERS) and not member.startswith("_"):
                    yield f"{name}.{member}", value
