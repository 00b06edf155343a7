"""Every warning carries its code and its figures in ``extra``."""

import ast
import logging
from pathlib import Path

import pytest

import budgeteer
from budgeteer.window import negotiate

ROOT = Path(budgeteer.__file__).parent
ELSEWHERE = ("_sources", "embedding", "cli", "config.py")
"""Rooms that tell where they read something."""

LEVELS = ("warning", "error", "critical", "exception", "log")


def sources():
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] not in ELSEWHERE:
            yield path, ast.parse(path.read_text("utf-8"))


def is_warning(call):
    """Return whether a call logs at WARNING or above, or at a level chosen when it runs."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "warn"
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr == "warn":
        return True
    target = function.value
    is_logger = isinstance(target, ast.Call) and getattr(target.func, "id", "") == "log"
    return is_logger and function.attr in LEVELS


def keys_of_extra(call, function):
    """Return the keys of the ``extra`` of a call, which may be a variable of *function*."""
    extra = next((word.value for word in call.keywords if word.arg == "extra"), None)
    if isinstance(extra, ast.Name):
        assigned = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == extra.id
        ]
        extra = assigned[0] if assigned else None
    if not isinstance(extra, ast.Dict):
        return []
    # A key of None is what is unpacked there.
    return [getattr(key, "value", "**") for key in extra.keys]


def faults(path, tree):
    """Return the places of warnings without a code and figures, and the number of warnings."""
    found, count = [], 0
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and is_warning(node):
                count += 1
                keys = keys_of_extra(node, function)
                if "code" not in keys or len(keys) < 2:
                    found.append(f"{path.name}:{node.lineno}")
    return found, count


def test_every_warning_has_a_code_and_figures():
    """No warning of the package has its figures in its text alone."""
    found, count = [], 0
    for path, tree in sources():
        more, some = faults(path.relative_to(ROOT), tree)
        found += more
        count += some

    assert found == []
    assert count >= 6


@pytest.mark.parametrize(
    ("line", "is_fault"),
    [
        ('log().warning("a")', True),
        ('log().warning("a", extra={})', True),
        ('log().warning("a", extra={"chunks": 3})', True),
        ('log().warning("a", extra={"code": "a"})', True),
        ('log().log(30, "a")', True),
        ('warnings.warn("a")', True),
        ('log().warning("a", extra={"code": "a", "chunks": 3})', False),
        ('extra = {"code": "a", **figures}; log().warning("a", extra=extra)', False),
        ('log().debug("a")', False),
    ],
)
def test_the_reader_of_sources(line, is_fault):
    """The test above sees a warning without figures, however it is written."""
    tree = ast.parse(f"def f():\n    {line}\n")

    assert bool(faults(Path("f.py"), tree)[0]) is is_fault


def test_a_reduced_answer(caplog):
    """The figures of a negotiation are with its line of the log."""
    with caplog.at_level(logging.INFO, "budgeteer"):
        reduced = negotiate(model="gpt-3.5-turbo", messages=50, max_output_tokens=5_000)
        negotiate(model="gpt-3.5-turbo", messages=5, max_output_tokens=500)
    warning, info = caplog.records

    assert ("WARNING", "output_reduced") == (warning.levelname, warning.code)
    assert ("INFO", "output_negotiated") == (info.levelname, info.code)
    for name, figure in reduced.to_dict().items():
        assert figure == getattr(warning, name)
