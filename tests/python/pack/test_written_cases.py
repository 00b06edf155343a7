"""The cases of templates and prompts that are functions, which both languages answer alike."""

import json

import pytest
import written_cases


@pytest.mark.parametrize("kind", written_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What the file in `tests/cases` expects of Rust is what Python answers now."""
    assert json.loads(written_cases.FILE.read_text("utf-8"))[kind.__name__] == kind()


def test_cases_say_everything():
    """Every reason and both kinds of place are in some case."""
    cases = json.loads(written_cases.FILE.read_text("utf-8"))
    said = "\n".join(
        line
        for kind in ("templates", "prompts")
        for case in cases[kind]
        for line in case["answer"]["explained"]
    )
    for words in [
        *("or what the template writes for it", "only the prompt knows", "of the text."),
        *("max_chunks was reached", "equals that of", "it needs at least", "had stopped"),
    ]:
        assert words in said
