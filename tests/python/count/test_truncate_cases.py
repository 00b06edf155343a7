"""The cases of cut texts that both languages answer alike."""

import json

import pytest
import truncate_cases


@pytest.mark.parametrize("kind", truncate_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What `tests/cases/truncate.json` expects of Rust is what Python answers now."""
    assert json.loads(truncate_cases.FILE.read_text("utf-8"))[kind.__name__] == kind()
