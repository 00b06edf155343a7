"""The cases of explained packings, and of a preset, that both languages answer alike."""

import json

import explain_cases
import presets_cases
import pytest

WRITERS = [(writer, kind) for writer in (presets_cases, explain_cases) for kind in writer.KINDS]


@pytest.mark.parametrize(
    ("writer", "kind"), WRITERS, ids=[f"{w.__name__}-{k.__name__}" for w, k in WRITERS]
)
def test_cases_are_what_python_answers(backend, writer, kind):
    """What the files in `tests/cases` expect of Rust is what Python answers now."""
    assert json.loads(writer.FILE.read_text("utf-8"))[kind.__name__] == kind()


def test_cases_say_everything():
    """Each sentence that a packing may say of a chunk, and of all, is in some case."""
    cases = json.loads(explain_cases.FILE.read_text("utf-8"))["packings"]
    said = "\n".join(
        line
        for case in cases
        for line in [*case["answer"]["explained"], case["answer"]["summary"]]
    )
    for words in [
        *("(no score)", "(score -1.00)", "was kept with 1 token,", "was cut to", "sentences with"),
        *("for its citation, characters", "its score is below min_score", "its text is empty"),
        *("it shares no keyword with the question", "1 document had been considered before it"),
        *(
            "max_chunks was reached with 1 chunk kept",
            "equals that of chunk",
            "or nearly, that of",
        ),
        *("packing had stopped before its turn came", "was dropped: it needs at least"),
        *("was dropped: with its citation it needs at least", "was dropped: it needs 3 tokens"),
        *("for its heading", "linked from chunk", "for words of chunk 0, the best."),
        *("Kept 0 of 0 chunks", "Cut 1 of them.", "1 out_of_scope", "1 empty", "1 cap"),
    ]:
        assert words in said
