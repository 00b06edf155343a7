"""The cases that both languages answer alike, and the table that both read."""

import importlib.util
import json
from pathlib import Path

import pytest
import window_cases

from budgeteer import InvalidArgumentError
from budgeteer.window import count_messages, count_tools

CASES = json.loads(window_cases.FILE.read_text("utf-8"))


@pytest.mark.parametrize("kind", window_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(kind):
    """What `tests/cases/window.json` expects of Rust is what Python answers now."""
    assert CASES[kind.__name__] == kind()


@pytest.mark.parametrize("name", window_cases.BAD_MESSAGES)
def test_bad_messages_are_refused(name):
    """What is no message is an error, here as in Rust."""
    with pytest.raises(InvalidArgumentError):
        count_messages([window_cases.BAD_MESSAGES[name]], counter="words")


@pytest.mark.parametrize("name", window_cases.BAD_TOOLS)
def test_bad_tools_are_refused(name):
    """What is no tool is an error, here as in Rust."""
    with pytest.raises(InvalidArgumentError):
        count_tools([window_cases.BAD_TOOLS[name]], counter="words")


def test_rust_has_the_table():
    """The table of the Rust crate is what the script makes of `models.json`."""
    path = Path(__file__).parents[3] / "scripts/generate_models.py"
    spec = importlib.util.spec_from_file_location("generate_models", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    assert script.RUST.read_text("utf-8") == script.rust(window_cases.TABLE)
