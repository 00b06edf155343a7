"""Fixtures of this room."""

import pytest

from budgeteer._count import limits


@pytest.fixture
def registry(monkeypatch):
    """The test has a registry of its own, and no names that were warned of."""
    monkeypatch.setattr(limits, "_own", {})
    monkeypatch.setattr(limits, "_warned", {})
    monkeypatch.delenv(limits.VARIABLE, raising=False)
