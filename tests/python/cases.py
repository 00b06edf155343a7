"""The files of cases that both languages answer alike, in `tests/cases/`."""

import json

from budgeteer import BudgeteerError


def is_refused(make, *given, **options):
    """Return whether *make* raises an error of ours for what it is given."""
    try:
        make(*given, **options)
    except BudgeteerError:
        return True
    return False


def dropped_of(packing):
    """Return what is said of each dropped chunk of a packing, but for its score."""
    return [
        [dropped.index, dropped.reason, dropped.needed_tokens, dropped.available_tokens]
        for dropped in packing.dropped
    ]


def scores_of(packing):
    """Return the scores of the kept chunks as text, which JSON readers take to the bit."""
    return [repr(kept.score) for kept in packing.kept]


def write(file, kinds):
    """
    Write what each of *kinds* answers, a function without arguments, under its name.

    A list has a line for each case; anything else is written as it is.
    """
    lines = []
    for kind in kinds:
        cases = kind()
        if isinstance(cases, list):
            rows = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
            shown = f"[\n{rows}\n]"
        else:
            shown = json.dumps(cases, ensure_ascii=False)
        lines.append(f"{json.dumps(kind.__name__)}: {shown}")
    file.parent.mkdir(exist_ok=True)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
