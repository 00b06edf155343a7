"""The examples in the documentation of every module run as they stand."""

import doctest
import importlib
import pkgutil

import pytest
from support import ONLY_REFERENCE

import budgeteer

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(budgeteer.__path__, "budgeteer.")
    if name.rpartition(".")[2] not in ("_native", "__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """Every example in a docstring answers what it says."""
    if ONLY_REFERENCE and name == "budgeteer._pack.corpus":
        pytest.skip("files of corpora are native")
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)

    assert 0 == failed


def test_public_examples():
    """Every public class and function of the package has an example."""
    public = [getattr(budgeteer, name) for name in budgeteer.__all__]
    shown = [item for item in public if not issubclass_of_exception(item)]
    records = {budgeteer.Allocation, budgeteer.KeptChunk, budgeteer.DroppedChunk}

    assert [] == [item for item in shown if item not in records and ">>>" not in item.__doc__]


def issubclass_of_exception(item):
    return isinstance(item, type) and issubclass(item, Exception)
