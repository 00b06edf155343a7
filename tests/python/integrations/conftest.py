"""The provider on loopback."""

import pytest
from provider import Provider


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider
