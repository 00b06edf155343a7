"""The cases of the lexical ranking that both languages answer alike."""

import json

import lexical_cases
import pytest

CASES = json.loads(lexical_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", lexical_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What `tests/cases/lexical.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == kind()


def test_cases_say_everything():
    """Each part of a score is in many cases, by default and under options."""
    for is_default in (True, False):
        said = "\n".join(
            line
            for case in CASES["rankings"]
            if (case["options"] == {}) == is_default
            for line in case["answer"]["explained"]
        )
        for words in ("for its heading", "linked from chunk", "for words of chunk"):
            assert said.count(words) >= 10
