"""
What budgeteer is to other packages: a module for each, named like it.

Importing one imports its package, and raises a `MissingPackageError` where that is not installed.
"""
