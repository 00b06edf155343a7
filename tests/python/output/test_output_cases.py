"""The cases of tool results that both languages answer alike."""

import json

import output_cases
import pytest

CASES = json.loads(output_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", output_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What `tests/cases/output.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == json.loads(json.dumps(kind()))
