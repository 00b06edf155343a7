"""The cases of layouts and trimming that both languages answer alike."""

import json

import layout_cases
import pytest

CASES = json.loads(layout_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", layout_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What `tests/cases/layout.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == json.loads(json.dumps(kind()))
