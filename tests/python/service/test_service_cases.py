"""The cases of the retrieval service that both languages answer alike."""

import json

import pytest
import service_cases

CASES = json.loads(service_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", service_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(kind):
    """What `tests/cases/service.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == json.loads(json.dumps(kind()))
