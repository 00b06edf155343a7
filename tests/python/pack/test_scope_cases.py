"""The cases of the cut-off that is found from the scores, which both languages answer alike."""

import json

import pytest
import scope_cases


@pytest.mark.parametrize("kind", scope_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(backend, kind):
    """What the file in `tests/cases` expects of Rust is what Python answers now."""
    assert json.loads(scope_cases.FILE.read_text("utf-8"))[kind.__name__] == kind()


def test_cases_say_everything():
    """Cut-offs, links, headings and sentences are in some case; so are too low scores kept."""
    cases = json.loads(scope_cases.FILE.read_text("utf-8"))["packings"]
    said = "\n".join(line for case in cases for line in case["answer"]["explained"])
    for words in ["the automatic min_score.", "by its heading", "for its heading", "sentences"]:
        assert words in said
    exempt = 0
    for case in cases:
        packing = case["answer"]["packing"]
        scores = sorted(one["score"] for one in packing["kept"] + packing["dropped"])[-3:]
        least = 0.35 * sum(scores) / 3
        exempt += sum(one["score"] < 0.99 * least for one in packing["kept"])
    assert 3 < exempt
