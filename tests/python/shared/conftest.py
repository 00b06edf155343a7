"""Fixtures of this room."""

import pytest

from budgeteer import _telemetry


@pytest.fixture
def told(monkeypatch):
    """What a program is told that has set providers, and has not asked for texts."""
    from telemetry_support import Told  # needs opentelemetry-sdk

    monkeypatch.delenv(_telemetry.CONTENT, raising=False)
    return Told(monkeypatch)
