"""The error of a package that is not installed."""

from budgeteer.errors import MissingPackageError


def missing(module: str, error: ImportError) -> MissingPackageError:
    """Return the error for *module* of this package, whose import failed by *error*."""
    extra = module.rpartition(".")[2].replace("_", "-")
    return MissingPackageError(f"{module} needs pip install 'budgeteer[{extra}]': {error}")
