"""The cases of what bills teach that both languages answer alike."""

import json

import calibration_cases
import pytest

CASES = json.loads(calibration_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", calibration_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(kind):
    """What `tests/cases/calibration.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == json.loads(json.dumps(kind()))
